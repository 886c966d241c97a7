#include "analyzer/hints.h"

#include "analyzer/order.h"
#include "analyzer/slabs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The option of the shim, the value that leaves something out, what is missing, what brings it. */
static const struct {
    const char *option, *value, *missing, *bring;
} left_out[] = {
    {"SENTINELS", "off", "no sentinels: writes past the end of an allocation are seen by re-execution only",
     "--sentinels tail"},
    {"SENTINELS", "tail", "no sentinels before allocations", "--sentinels both"},
    {"CHECK", "off", "sentinels are never looked at", "--check batch"},
    {"CHECK", "exit", "sentinels are looked at once, at exit", "--check batch"},
    {"SNAPSHOTS", "none", "no snapshots: no launch can be re-executed", "--preset deep or --snapshots all"},
    {"QUARANTINE", "0", "no quarantine: a use after free is seen only when its memory was not handed out again",
     "--preset deep or --quarantine 1G"},
    {"STACKS", "off", "no host stacks", "--stacks on"},
    {"TIMES", "off", "no device times", "--times on"},
};

/* Launches that ran without snapshots, or with too few of them to be judged. */
static size_t unseen_launches(const struct session *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->model->launch_count; i++) {
        const struct model_launch *l = &s->model->launches[i];
        const struct judgement *j = judgements_find(&s->judgements, l->number);
        const char *why = j && j->reason ? j->reason : "";
        bool lacking = strcmp(why, "no-inputs") == 0 || strcmp(why, "no-outputs") == 0 || strcmp(why, "budget") == 0;
        n += model_launch_ran(l) && (j ? lacking : !l->snapshots);
    }
    return n;
}

/* Bounds inside of what a caching allocator keeps are nobody's to know, unless somebody tells. */
static void slab_hint(const struct session *s, void (*take)(void *context, const char *text), void *context)
{
    struct slabs slabs = slabs_of(s);
    char line[480];
    if (!slabs.count)
        return;
    snprintf(
        line, sizeof line,
        "allocation %u of %llu bytes%s looks like a caching allocator's: arguments lead to %zu%s places in it, "
        "and where the "
        "buffers in it end is not known (%s)",
        slabs.first->id, (unsigned long long)slabs.first->bytes, slabs.count > 1 ? " and others" : "", slabs.places,
        slabs.places == 64 ? " or more" : "",
        slabs.torch
            ? "ops-debug run --no-torch-cache ... turns PyTorch's cache off: slower, and reuse of memory no longer "
              "happens"
            : "turn its cache off, or have it register its buffers: docs/scopes.md");
    take(context, line);
}

/* With `careful` there are none in front where the program might export memory, which a static cudart always might. */
static bool lacks_heads(const struct model *m)
{
    const char *sentinels = model_option(m, "SENTINELS");
    bool careful = sentinels && strcmp(sentinels, "careful") == 0 && !m->guard_count; /* guards look before, too */
    for (size_t i = 0; careful && i < m->allocation_count; i++) {
        const struct cap_alloc *a = m->allocations[i].record;
        if (a->kind == CAP_ALLOC_DEVICE && a->tail_redzone && !a->head_redzone)
            return true;
    }
    return false;
}

void hints_each(const struct session *s, void (*take)(void *context, const char *text), void *context)
{
    const char *snapshots = model_option(s->model, "SNAPSHOTS");
    size_t unseen = unseen_launches(s);
    char line[320];
    if (snapshots && strcmp(snapshots, "none") != 0 && unseen) {
        bool all = strcmp(snapshots, "all") == 0;
        snprintf(line, sizeof line, "%zu of %zu launches have too few snapshots to be judged (run %s has them judged)",
                 unseen, s->model->launch_count,
                 all ? "with a larger --snapshot-budget" : "--preset deep or --snapshots all");
        take(context, line);
    }
    slab_hint(s, take, context);
    const char *leak_check = model_option(s->model, "LEAK_CHECK");
    uint64_t bytes;
    size_t leaks = leaks_count(s->model, &bytes);
    if (leaks && !s->leak_check && !(leak_check && strcmp(leak_check, "on") == 0)) {
        snprintf(line, sizeof line,
                 "%zu allocations of %" PRIu64 " bytes were never freed (report --leak-check says which)", leaks,
                 bytes);
        take(context, line);
    }
    const char *blind = order_unknown(s->model);
    if (blind) {
        snprintf(line, sizeof line, "order between streams: %s", blind);
        take(context, line);
    }
    if (lacks_heads(s->model))
        take(context,
             "no sentinels before allocations: the program might hand them to other processes, which would find "
             "their contents later (run --sentinels both)");
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        const char *value = model_option(s->model, left_out[i].option);
        if (!value || strcmp(value, left_out[i].value) != 0)
            continue;
        snprintf(line, sizeof line, "%s (run %s)", left_out[i].missing, left_out[i].bring);
        take(context, line);
    }
}
