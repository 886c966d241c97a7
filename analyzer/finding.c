#include "analyzer/finding.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {
#define CLASS(id, name, cure) name,
#include "analyzer/classes.def"
#undef CLASS
};
static const char *const class_cures[] = {
#define CLASS(id, name, cure) cure,
#include "analyzer/classes.def"
#undef CLASS
};

const char *finding_class_name(enum finding_class class)
{
    return class < FINDING_CLASSES ? class_names[class] : "unknown";
}

const char *finding_class_cure(enum finding_class class)
{
    return class < FINDING_CLASSES ? class_cures[class] : "";
}

const char *finding_cure(const struct finding *f)
{
    return f->cure ? f->cure : finding_class_cure(f->class);
}

const char *finding_severity_name(enum finding_severity severity)
{
    static const char *const names[] = {"error", "warning", "note"};
    return names[severity];
}

size_t findings_add(struct findings *fs, enum finding_class class, double confidence)
{
    struct finding *more = realloc(fs->items, (fs->count + 1) * sizeof *more);
    if (!more) {
        fs->no_memory = true;
        return SIZE_MAX;
    }
    fs->items = more;
    fs->items[fs->count] = (struct finding){.class = class, .confidence = confidence};
    return fs->count++;
}

/* The text, to be freed by the caller; NULL when memory runs out. "1 bytes" becomes "1 byte". */
static char *formatted(const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0)
        return NULL;
    for (char *at = text; (at = strstr(at, "1 bytes"));)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[7]))
            memmove(at + 6, at + 7, strlen(at + 7) + 1);
        else
            at++;
    return text;
}

void finding_evidence(struct finding *f, const char *kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = formatted(format, args);
    va_end(args);
    struct finding_evidence *more = text ? realloc(f->evidence, (f->evidence_count + 1) * sizeof *more) : NULL;
    if (!more) {
        free(text);
        return;
    }
    f->evidence = more;
    f->evidence[f->evidence_count++] = (struct finding_evidence){kind, text};
}

/* Puts a command among the next ones; what there is no memory for is left out. */
static void add_next(struct finding *f, size_t at, const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0)
        return;
    char **more = realloc((void *)f->next, (f->next_count + 1) * sizeof *more);
    if (!more) {
        free(text);
        return;
    }
    f->next = more;
    memmove((void *)(more + at + 1), (void *)(more + at), (f->next_count - at) * sizeof *more);
    more[at] = text;
    f->next_count++;
}

void finding_next(struct finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_next(f, f->next_count, format, args);
    va_end(args);
}

void finding_next_deeper(struct finding *f, const struct model *m)
{
    const char *preset = model_option(m, "PRESET"), *guard = model_option(m, "GUARD");
    bool deep = preset && strcmp(preset, "deep") == 0, guarded = guard && strcmp(guard, "off") != 0;
    if (!deep || !guarded)
        finding_next(f, "ops-debug run --preset deep%s -- %s", deep ? " --guard all" : "", m->capture->shell_program);
}

void finding_next_first(struct finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_next(f, 0, format, args);
    va_end(args);
}

void finding_summary(struct finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = formatted(format, args);
    va_end(args);
    if (!text)
        return;
    free(f->summary);
    f->summary = text;
}

void finding_launch(struct finding *f, size_t launch)
{
    size_t at = 0;
    while (at < f->launch_count && f->launches[at] < launch)
        at++;
    if (!f->launch)
        f->launch = launch;
    if (at < f->launch_count && f->launches[at] == launch)
        return;
    size_t *more = realloc(f->launches, (f->launch_count + 1) * sizeof *more);
    if (!more)
        return;
    f->launches = more;
    memmove(more + at + 1, more + at, (f->launch_count - at) * sizeof *more);
    more[at] = launch;
    f->launch_count++;
}

void findings_free(struct findings *fs)
{
    for (size_t i = 0; i < fs->count; i++) {
        struct finding *f = &fs->items[i];
        for (size_t k = 0; k < f->evidence_count; k++)
            free(f->evidence[k].text);
        for (size_t k = 0; k < f->next_count; k++)
            free(f->next[k]);
        free(f->evidence);
        free((void *)f->next);
        free(f->summary);
        free(f->launches);
        free(f->file);
        free(f->function);
    }
    free(fs->items);
    *fs = (struct findings){0};
}

size_t findings_serious(const struct findings *fs)
{
    size_t n = 0;
    for (size_t i = 0; i < fs->count; i++)
        n += fs->items[i].severity != FINDING_NOTE;
    return n;
}
