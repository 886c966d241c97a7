#include "analyzer/budget.h"

#include <inttypes.h>

#include <cjson/cJSON.h>

#include "analyzer/text.h"
#include "common/buf.h"

static const char *const part_names[CAP_BUDGET_PARTS] = {
    [CAP_BUDGET_TIMES] = "times",
    [CAP_BUDGET_STACKS] = "stacks",
    [CAP_BUDGET_HEALTH] = "health looks",
    [CAP_BUDGET_SNAPSHOTS] = "snapshots",
    [CAP_BUDGET_LOOKS] = "looks at sentinels after launches",
    [CAP_BUDGET_SYNC_LOOKS] = "looks at sentinels before waits and frees",
};

/* The part's record, or NULL. */
static const struct cap_budget *part_of(const struct capture *c, uint32_t part)
{
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_budget *b = (const void *)c->records[i];
        if (b->head.type == CAP_BUDGET && b->part == part)
            return b;
    }
    return NULL;
}

/* Of the time that the process was recorded. */
static double share_of(const struct capture *c, uint64_t ticks)
{
    const struct cap_header *h = &c->header;
    uint64_t wall = h->mono_now_ns > h->mono_start_ns ? h->mono_now_ns - h->mono_start_ns : 0;
    return wall ? (double)capture_ticks_ns(c, ticks) / (double)wall : 0;
}

static void print_dropped(FILE *out, const struct capture *c)
{
    const struct cap_header *h = &c->header;
    char line[200], bytes[24];
    if (!h->dropped_segments)
        return;
    snprintf(line, sizeof line,
             "dropped to stay within --max-capture: %" PRIu64
             " launches, and what came with them (%s); launch 1 is the "
             "oldest that is left",
             h->dropped_launches + c->left_out_launches, text_bytes(h->dropped_segment_bytes, bytes));
    text_fold(out, "          ", 10, line);
}

static const char *const pace_names[CAP_PACE_KINDS] = {
    [CAP_PACE_REDZONES] = "looks at sentinels",
    [CAP_PACE_HEALTH] = "health looks",
};

/* The kind's record, or NULL. */
static const struct cap_pace *pace_of(const struct capture *c, uint32_t kind)
{
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_pace *p = (const void *)c->records[i];
        if (p->head.type == CAP_PACE && p->kind == kind)
            return p;
    }
    return NULL;
}

static void print_paced(FILE *out, const struct capture *c)
{
    struct buf line = {0};
    for (uint32_t i = 0; i < CAP_PACE_KINDS; i++) {
        const struct cap_pace *p = pace_of(c, i);
        if (!p || !p->skipped)
            continue;
        if (!line.size)
            buf_printf(&line, "left out to take no more than %.3g %% of the device's time: ", (double)p->share * 100);
        else
            buf_printf(&line, ", ");
        buf_printf(&line, "%" PRIu64 " of %" PRIu64 " %s", p->skipped, p->skipped + p->taken, pace_names[i]);
    }
    if (line.size && !line.failed)
        text_fold(out, "          ", 10, line.data);
    buf_free(&line);
}

static void paced_json(cJSON *to, const struct capture *c)
{
    const struct cap_pace *first = pace_of(c, 0);
    if (!first) {
        cJSON_AddNullToObject(to, "look_share");
        return;
    }
    cJSON *json = cJSON_AddObjectToObject(to, "look_share");
    cJSON_AddNumberToObject(json, "share", (double)first->share);
    cJSON *parts = cJSON_AddObjectToObject(json, "parts");
    for (uint32_t i = 0; i < CAP_PACE_KINDS; i++) {
        const struct cap_pace *p = pace_of(c, i);
        if (!p)
            continue;
        cJSON *part = cJSON_AddObjectToObject(parts, pace_names[i]);
        cJSON_AddNumberToObject(part, "done", (double)p->taken);
        cJSON_AddNumberToObject(part, "left_out", (double)p->skipped);
        cJSON_AddNumberToObject(part, "device_ns", (double)p->device_ns);
    }
}

void budget_print(FILE *out, const struct capture *c)
{
    print_dropped(out, c);
    print_paced(out, c);
    const struct cap_budget *first = part_of(c, 0);
    if (!first)
        return;
    struct buf b = {0};
    size_t parts = 0;
    for (uint32_t i = 0; i < CAP_BUDGET_PARTS; i++) {
        const struct cap_budget *p = part_of(c, i);
        if (!p || !p->skipped)
            continue;
        buf_printf(&b, "%s%" PRIu64 " of %" PRIu64 " %s", parts ? ", " : "", p->skipped, p->skipped + p->taken,
                   part_names[i]);
        parts++;
    }
    struct buf line = {0};
    buf_printf(&line, "left out by the budget of %.3g %% (the run: %.3g %%, and %.3g %% on the device): %s",
               (double)first->share * 100, share_of(c, c->header.own_tsc) * 100,
               share_of(c, c->header.budget_device_tsc) * 100, parts ? b.data : "nothing");
    if (!parts && share_of(c, c->header.own_tsc) > (double)first->share)
        buf_printf(&line, "; in so short a run what cannot be left out, the start above all, took more than that");
    if (!b.failed && !line.failed)
        text_fold(out, "          ", 10, line.data);
    buf_free(&b);
    buf_free(&line);
}

void budget_json(cJSON *to, const struct capture *c)
{
    cJSON_AddNumberToObject(to, "dropped_launches", (double)(c->header.dropped_launches + c->left_out_launches));
    paced_json(to, c);
    const struct cap_budget *first = part_of(c, 0);
    if (!first) {
        cJSON_AddNullToObject(to, "budget");
        return;
    }
    cJSON *json = cJSON_AddObjectToObject(to, "budget");
    cJSON_AddNumberToObject(json, "share", (double)first->share);
    cJSON_AddNumberToObject(json, "own_share", share_of(c, c->header.own_tsc));
    cJSON_AddNumberToObject(json, "device_share", share_of(c, c->header.budget_device_tsc));
    cJSON *parts = cJSON_AddObjectToObject(json, "parts");
    for (uint32_t i = 0; i < CAP_BUDGET_PARTS; i++) {
        const struct cap_budget *p = part_of(c, i);
        if (!p)
            continue;
        cJSON *part = cJSON_AddObjectToObject(parts, part_names[i]);
        cJSON_AddNumberToObject(part, "done", (double)p->taken);
        cJSON_AddNumberToObject(part, "left_out", (double)p->skipped);
        cJSON_AddNumberToObject(part, "highest", p->highest);
        cJSON_AddNumberToObject(part, "own_ns", (double)capture_ticks_ns(c, p->own_tsc));
    }
}
