/* classify_leaks.c - what the program never freed, where it allocated that. Only of a program that ended in an orderly
 * way: one that was killed had no chance. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/finding.h"

/* Variables come and go with their modules. */
static bool leaked(const struct model_allocation *a)
{
    return !a->parent && a->record->kind != CAP_ALLOC_VARIABLE && (a->released || a->free_seq == UINT64_MAX);
}

size_t leaks_count(const struct model *m, uint64_t *bytes)
{
    size_t n = 0;
    *bytes = 0;
    for (size_t i = 0; m->end && i < m->allocation_count; i++)
        if (leaked(&m->allocations[i])) {
            n++;
            *bytes += m->allocations[i].bytes;
        }
    return n;
}

static const char *kind_text(uint32_t kind)
{
    static const char *const names[] = {
        [CAP_ALLOC_DEVICE] = "device memory",
        [CAP_ALLOC_PITCHED] = "pitched memory",
        [CAP_ALLOC_MANAGED] = "managed memory",
        [CAP_ALLOC_HOST] = "pinned host memory",
        [CAP_ALLOC_REGISTERED] = "registered host memory",
        [CAP_ALLOC_ASYNC] = "stream-ordered memory",
        [CAP_ALLOC_POOL] = "memory of a pool",
        [CAP_ALLOC_MAPPED] = "mapped memory",
        [CAP_ALLOC_VARIABLE] = "a variable",
        [CAP_ALLOC_IMPORTED] = "another process's memory",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : "memory";
}

struct leak { /* of one place and kind */
    const struct model_allocation *first;
    size_t count, released;
    uint64_t bytes;
};

static int by_bytes(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->first->id < y->first->id ? -1 : 1;
}

/* The one of the allocation's place and kind; a new one where nobody knows the place. NULL: no memory. */
static struct leak *leak_of(struct leak *list, size_t *count, struct map *index, const struct model_allocation *a)
{
    uint64_t key = (uint64_t)a->record->stack << 32 | a->record->kind, at;
    if (a->record->stack && map_get(index, key, &at))
        return &list[at];
    if (a->record->stack && !map_put(index, key, *count))
        return NULL;
    list[*count].first = a;
    return &list[(*count)++];
}

static void tell(const struct model *m, const struct leak *leak, struct symbols *symbols, struct findings *out)
{
    const struct model_allocation *a = leak->first;
    const struct symbol_stack *s = symbols_stack(symbols, a->record->stack);
    size_t index = findings_add(out, FINDING_LEAK, 0.95);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    f->severity = FINDING_WARNING;
    f->allocation = a->id;
    if (s->own < s->count) {
        f->file = s->frames[s->own].file ? strdup(s->frames[s->own].file) : NULL;
        f->line = s->frames[s->own].line;
        f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
    }
    finding_summary(f, "%" PRIu64 " bytes of %s in %zu allocation%s were never freed", leak->bytes,
                    kind_text(a->record->kind), leak->count, leak->count == 1 ? "" : "s");
    if (leak->released)
        finding_evidence(f, "context", "%zu of them went with %s context", leak->released,
                         leak->released == 1 ? "its" : "their");
    finding_next(f, "ops-debug report -v --leak-check %s", m->capture->shell_path);
}

/* Objects that were made and not destroyed are counted only: the driver keeps few bytes for each. */
static void count_objects(const struct model *m, struct findings *out)
{
    size_t streams = 0, events = 0;
    for (size_t i = 0; i < m->capture->record_count; i++) {
        const struct cap_head *record = m->capture->records[i];
        const struct cap_stream *stream = (const void *)record;
        const struct cap_event *event = (const void *)record;
        if (record->type == CAP_STREAM && stream->kind == CAP_STREAM_CREATED)
            streams += stream->destroyed ? (size_t)-1 : 1;
        if (record->type == CAP_EVENT)
            events += event->destroyed ? (size_t)-1 : 1;
    }
    size_t index = streams || events ? findings_add(out, FINDING_LEAK, 0.95) : SIZE_MAX;
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    f->severity = FINDING_NOTE;
    finding_summary(f, "%zu stream%s and %zu event%s were never destroyed", streams, streams == 1 ? "" : "s", events,
                    events == 1 ? "" : "s");
}

void classify_leaks(const struct model *m, struct symbols *symbols, struct findings *out)
{
    struct leak *list = m->end ? calloc(m->allocation_count + 1, sizeof *list) : NULL;
    struct map index = {0};
    size_t count = 0;
    if (!m->end)
        return;
    out->no_memory = out->no_memory || !list;
    for (size_t i = 0; list && i < m->allocation_count; i++) {
        const struct model_allocation *a = &m->allocations[i];
        struct leak *leak = leaked(a) ? leak_of(list, &count, &index, a) : NULL;
        if (!leak)
            continue;
        leak->count++;
        leak->released += a->released;
        leak->bytes += a->bytes;
    }
    if (count)
        qsort(list, count, sizeof *list, by_bytes);
    for (size_t i = 0; i < count; i++)
        tell(m, &list[i], symbols, out);
    free(list);
    map_free(&index);
    count_objects(m, out);
}
