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

/* Launches that ran without snapshots, or with too few of them to be judged, and those among them that the shim left
 * out for its budget. */
struct unseen {
    size_t all, budget;
};

static struct unseen unseen_launches(const struct session *s)
{
    struct unseen n = {0};
    for (size_t i = 0; i < s->model->launch_count; i++) {
        const struct model_launch *l = &s->model->launches[i];
        const struct judgement *j = judgements_find(&s->judgements, l->number);
        const char *why = j && j->reason ? j->reason : "";
        bool budget = l->record->flags & CAP_LAUNCH_BUDGET;
        bool lacking = strcmp(why, "no-inputs") == 0 || strcmp(why, "no-outputs") == 0 ||
                       (strcmp(why, "budget") == 0 && budget); /* else it is the budget of verify */
        if (!model_launch_ran(l) || (j ? !lacking : l->snapshots))
            continue;
        n.all++;
        n.budget += budget;
    }
    return n;
}

static bool option_says(const struct model *m, const char *name, const char *initial)
{
    const char *value = model_option(m, name);
    return value && *value && strcmp(value, initial) != 0;
}

/* Why snapshots are missing although all were asked for and no budget left them out. */
static const char *why_unseen(const struct session *s, bool budget)
{
    const struct model *m = s->model;
    const struct cap_header *h = &s->capture->header;
    if (option_says(m, "KERNEL", "") || option_says(m, "LAUNCH_SKIP", "0") || option_says(m, "LAUNCH_COUNT", ""))
        return "not all were chosen (--kernel, --launch-skip, --launch-count)";
    if (h->dropped_snapshots_before)
        return "--max-capture dropped what was older";
    if (h->memory_refused)
        return "there was no memory for more (--max-memory)";
    if (h->dropped_snapshots && !budget)
        return "there was no room for more, on disk or in memory";
    if (!m->end && h->state != CAP_ENDED)
        return "the program was killed, or still runs, before their copies were stored";
    return "what they read or wrote is not all among the copies";
}

static void unseen_hint(const struct session *s, void (*take)(void *context, const char *text), void *context)
{
    const char *snapshots = model_option(s->model, "SNAPSHOTS");
    struct unseen n = unseen_launches(s);
    size_t launches = s->model->launch_count;
    char line[320];
    if (!snapshots || strcmp(snapshots, "none") == 0 || !n.all)
        return;
    if (strcmp(snapshots, "all") != 0) {
        snprintf(line, sizeof line,
                 "%zu of %zu launches have too few snapshots to be judged (run --preset deep or --snapshots all has "
                 "them judged)",
                 n.all, launches);
        take(context, line);
        return;
    }
    if (n.budget) {
        snprintf(line, sizeof line,
                 "%zu of %zu launches have too few snapshots to be judged (run with a larger %s has them judged)",
                 n.budget, launches,
                 option_says(s->model, "BUDGET", "off") ? "--budget or --snapshot-budget" : "--snapshot-budget");
        take(context, line);
    }
    if (n.all > n.budget) {
        snprintf(line, sizeof line, "%zu of %zu launches have too few snapshots to be judged: %s", n.all - n.budget,
                 launches, why_unseen(s, n.budget));
        take(context, line);
    }
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
    char line[320];
    unseen_hint(s, take, context);
    slab_hint(s, take, context);
    const char *leak_check = model_option(s->model, "LEAK_CHECK");
    uint64_t bytes;
    size_t leaks = leaks_count(s->model, &bytes);
    if (leaks && !s->leak_check && !(leak_check && strcmp(leak_check, "on") == 0)) {
        snprintf(line, sizeof line,
                 "%zu allocation%s of %" PRIu64 " bytes %s never freed (report --leak-check says which)", leaks,
                 leaks == 1 ? "" : "s", bytes, leaks == 1 ? "was" : "were");
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
