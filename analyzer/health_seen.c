#include "analyzer/health_seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/marks.h"
#include "analyzer/text.h"

enum { SHOWN = 4 };

static int by_launch(const void *a, const void *b)
{
    const struct health_seen *x = a, *y = b;
    if (x->launch != y->launch)
        return x->launch < y->launch ? -1 : 1;
    return x->record->head.seq < y->record->head.seq ? -1 : x->record->head.seq > y->record->head.seq;
}

static uint64_t key_of(const struct model *m, const struct health_seen *s)
{
    return (uint64_t)(s->launch->kernel - m->kernels) << 32 | s->record->allocation;
}

/* The first one of each kernel and allocation stays. */
static size_t join_repeated(const struct model *m, struct health_seen *all, size_t count)
{
    struct map first = {0};
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t index, key = key_of(m, &all[i]);
        if (map_get(&first, key, &index)) {
            all[index].times++;
            continue;
        }
        map_put(&first, key, kept); /* without memory it stands twice */
        all[kept++] = all[i];
    }
    map_free(&first);
    return kept;
}

struct health_seen *health_seen_list(const struct model *m, size_t *count, size_t *passed)
{
    const struct capture *c = m->capture;
    struct health_seen *all = NULL;
    size_t found = 0;
    *count = *passed = 0;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_health *h = (const void *)c->records[i];
        const struct model_launch *l = h->head.type == CAP_HEALTH ? model_launch_by_seq(m, h->launch) : NULL;
        if (!l)
            continue;
        if (h->flags & CAP_HEALTH_INPUTS) {
            ++*passed;
            continue;
        }
        if (!(found & (found - 1))) { /* full: it is doubled */
            struct health_seen *more = realloc(all, (found ? 2 * found : 1) * sizeof *more);
            if (!more)
                break;
            all = more;
        }
        all[found++] = (struct health_seen){.record = h, .launch = l, .times = 1};
    }
    if (found)
        qsort(all, found, sizeof *all, by_launch);
    *count = join_repeated(m, all, found);
    return all;
}

static const char *what(const struct cap_health *h)
{
    return h->nan && (h->inf || h->over) ? "NaN, Inf or too large"
           : h->nan                      ? "NaN"
           : h->inf && h->over           ? "Inf or too large"
           : h->inf                      ? "Inf"
                                         : "too large";
}

void health_seen_text(struct session *s, const struct health_seen *seen, char *out, size_t bytes)
{
    const struct cap_health *h = seen->record;
    const struct model_allocation *a = model_allocation_by_id(s->model, h->allocation);
    char place[200] = "", step[MARKS_STEP_BYTES], again[40] = "";
    if (a)
        symbols_place(s->symbols, a->record->stack, place, sizeof place);
    if (seen->times > 1)
        snprintf(again, sizeof again, "; so at %zu launches", seen->times);
    marks_step_text(s->model, model_launch_seq(seen->launch), step);
    snprintf(out, bytes,
             "launch %u, %.100s%s: %" PRIu64 " of %" PRIu64 " words%s of allocation %u%s%s%s are %s and were not "
             "before, the first at offset %" PRIu64 "%s",
             seen->launch->number, seen->launch->kernel->name, step, (uint64_t)h->nan + h->inf + h->over,
             (uint64_t)h->words, h->flags & CAP_HEALTH_FULL ? "" : " looked at", h->allocation,
             *place ? " (allocated at " : "", place, *place ? ")" : "", what(h), h->first, again);
}

void health_seen_print(FILE *out, struct session *s, const char *title, bool whole)
{
    size_t count, passed;
    struct health_seen *all = health_seen_list(s->model, &count, &passed);
    char line[640];
    for (size_t i = 0; i < count && (whole || i < SHOWN); i++) {
        health_seen_text(s, &all[i], line, sizeof line);
        text_fold(out, i ? "          " : title, 10, line);
    }
    if (!whole && count > SHOWN)
        fprintf(out, "          and %zu more (-v)\n", count - SHOWN);
    if (passed)
        fprintf(out, "%s%zu more launches may have passed such values on\n", count ? "          " : title, passed);
    free(all);
}

void health_seen_json(cJSON *to, const char *name, const struct session *s)
{
    size_t count, passed;
    struct health_seen *all = health_seen_list(s->model, &count, &passed);
    cJSON *array = cJSON_AddArrayToObject(to, name);
    for (size_t i = 0; i < count; i++) {
        const struct cap_health *h = all[i].record;
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "launch", all[i].launch->number);
        cJSON_AddStringToObject(json, "kernel", all[i].launch->kernel->name);
        cJSON_AddNumberToObject(json, "launches", (double)all[i].times);
        cJSON_AddNumberToObject(json, "allocation", h->allocation);
        cJSON_AddNumberToObject(json, "offset", (double)h->first);
        cJSON_AddNumberToObject(json, "words", (double)h->words);
        cJSON_AddNumberToObject(json, "nan", (double)h->nan);
        cJSON_AddNumberToObject(json, "inf", (double)h->inf);
        cJSON_AddNumberToObject(json, "over", (double)h->over);
        cJSON_AddBoolToObject(json, "full", h->flags & CAP_HEALTH_FULL);
        cJSON_AddItemToArray(array, json);
    }
    free(all);
}
