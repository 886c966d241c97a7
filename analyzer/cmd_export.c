#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/commands.h"
#include "analyzer/npy.h"
#include "analyzer/report.h"
#include "analyzer/rerun.h"
#include "common/diag.h"

struct exporter {
    struct session session;
    const struct model_launch *launch;
    const struct model_allocation *allocation; /* NULL: all */
    bool before, after, has_type, into_folder;
    enum element_type type;
    const char *output;
    struct rerun_walk walk;
    struct rerun rerun; /* tells the types of what was stored */
};

static bool wanted(const struct exporter *e, const struct cap_snapshot *s)
{
    return s->bytes && (s->when == CAP_BEFORE ? e->before : e->after) &&
           (!e->allocation || e->allocation->id == s->allocation);
}

/* Place among the arguments of the first one that points into the allocation; -1: reached another way. */
static int argument_of(const struct exporter *e, uint32_t allocation)
{
    size_t count;
    struct report_argument *args = report_arguments(e->session.model, e->launch, &count);
    int found = -1;
    for (size_t i = 0; i < count && found < 0; i++)
        if (args[i].allocation && args[i].allocation->id == allocation)
            found = (int)i;
    free(args);
    return found;
}

static void path_of(const struct exporter *e, const struct cap_snapshot *s, char *out, size_t bytes)
{
    char argument[24] = "", offset[32] = "";
    int number = argument_of(e, s->allocation);
    if (!e->into_folder) {
        snprintf(out, bytes, "%s", e->output);
        return;
    }
    if (number >= 0)
        snprintf(argument, sizeof argument, "_argument-%d", number);
    if (s->offset)
        snprintf(offset, sizeof offset, "_offset-%" PRIu64, s->offset);
    snprintf(out, bytes, "%s/launch-%u%s_allocation-%u%s_%s.npy", e->output, e->launch->number, argument, s->allocation,
             offset, s->when == CAP_BEFORE ? "before" : "after");
}

static enum element_type type_of(const struct exporter *e, const struct cap_snapshot *s, const uint8_t *data)
{
    enum element_type type = e->type;
    size_t region = rerun_region(&e->rerun, s->allocation);
    if (e->has_type || (region != SIZE_MAX && rerun_stored_type(&e->rerun, region, &type)))
        return type;
    return element_guess(data, s->bytes);
}

static enum status write_snapshot(struct exporter *e, const struct cap_snapshot *s, struct diag *diag)
{
    char path[4096];
    const uint8_t *data =
        blob_cache_get(&e->walk.verify.blobs, (struct hash128){s->hash_low, s->hash_high}, s->bytes, diag);
    if (!data)
        return STATUS_BAD_INPUT;
    enum element_type type = type_of(e, s, data);
    path_of(e, s, path, sizeof path);
    if (s->bytes % element_bytes(type))
        return diag_set(diag, STATUS_BAD_INPUT, path, -1, "%" PRIu64 " bytes are no whole number of %s", s->bytes,
                        element_name(type));
    enum status status = npy_write(path, type, data, s->bytes, diag);
    if (!status)
        printf("%s: %" PRIu64 " x %s\n", path, s->bytes / element_bytes(type), element_name(type));
    return status;
}

static enum status write_all(struct exporter *e, size_t *written, struct diag *diag)
{
    const struct model *m = e->session.model;
    size_t count = 0;
    for (size_t i = 0; model_launch_snapshot(m, e->launch, i); i++)
        count += wanted(e, model_launch_snapshot(m, e->launch, i));
    size_t n = strlen(e->output);
    bool file = n >= 4 && strcmp(e->output + n - 4, ".npy") == 0;
    e->into_folder = !file;
    *written = 0;
    if (count == 0)
        return diag_set(diag, STATUS_BAD_INPUT, m->capture->path, -1,
                        "launch %u has no such snapshot (`ops-debug show %s %u` lists them)", e->launch->number,
                        m->capture->path, e->launch->number);
    if (file && count > 1)
        return diag_set(diag, STATUS_BAD_INPUT, e->output, -1,
                        "a file holds one snapshot, not %zu: choose with --allocation and --when, or name a folder",
                        count);
    if (e->into_folder && mkdir(e->output, 0777) != 0 && errno != EEXIST)
        return diag_set(diag, STATUS_IO, e->output, -1, "%s", strerror(errno));
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(m, e->launch, i)); i++) {
        enum status status = wanted(e, s) ? write_snapshot(e, s, diag) : STATUS_OK;
        if (status)
            return status;
    }
    *written = count;
    return STATUS_OK;
}

/* Returns an exit code, EXIT_NOTHING when all is well. */
static int take_options(struct exporter *e, const struct options *o)
{
    const struct model *m = e->session.model;
    e->launch = model_launch_by_number(m, (size_t)o->launch);
    if (!e->launch)
        return command_usage("%s has launches 1 to %zu; there is no launch %" PRIu64, m->capture->path, m->launch_count,
                             o->launch);
    if (o->allocation &&
        (o->allocation > UINT32_MAX || !(e->allocation = model_allocation_by_id(m, (uint32_t)o->allocation))))
        return command_usage("%s has no allocation %" PRIu64, m->capture->path, o->allocation);
    e->before = !o->when || strcmp(o->when, "before") == 0;
    e->after = !o->when || strcmp(o->when, "after") == 0;
    e->output = o->output;
    return EXIT_NOTHING;
}

int cmd_export(const struct options *options)
{
    struct exporter e = {0};
    struct diag diag = {.text = ""};
    size_t written;
    if (options->argument_count != 1 || !options->output || !options->launch)
        return command_usage("export wants a capture, --launch N and -o FILE_OR_FOLDER (ops-debug export --help)");
    if (strcmp(options->format, "npy") != 0)
        return command_usage("--format is npy, not '%s'", options->format);
    if (options->when && strcmp(options->when, "before") != 0 && strcmp(options->when, "after") != 0)
        return command_usage("--when is before or after, not '%s'", options->when);
    e.has_type = options->type != NULL;
    if (e.has_type && !element_parse(options->type, &e.type))
        return command_usage("--type is one of %s, not '%s'", element_names(), options->type);
    enum status status = session_open(options->arguments[0], &e.session, &diag);
    if (status)
        return command_fail(status, &diag);
    int code = take_options(&e, options);
    if (!code) {
        status = rerun_start(&e.walk, e.session.model, &diag);
        if (!status) {
            if (!e.has_type && rerun_at(&e.walk, e.launch))
                rerun_launch(&e.walk, e.launch, &e.rerun);
            status = write_all(&e, &written, &diag);
            rerun_free(&e.rerun);
            rerun_end(&e.walk);
        }
        code = status ? command_fail(status, &diag) : EXIT_NOTHING;
    }
    session_close(&e.session);
    return code;
}
