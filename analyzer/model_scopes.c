/* model_scopes.c - which module each launch belongs to: the ranges that its thread had pushed by then. */
#include <stdlib.h>

#include "analyzer/model_scopes.h"

static int by_data(const void *a, const void *b)
{
    const uint8_t *x = (*(const struct capture_segment *const *)a)->data,
                  *y = (*(const struct capture_segment *const *)b)->data;
    return x < y ? -1 : x > y;
}

bool scopes_start(struct scopes *s, const struct capture *c)
{
    *s = (struct scopes){.capture = c, .segments = malloc((c->segment_count + 1) * sizeof(void *))};
    if (!s->segments)
        return false;
    for (size_t i = 0; i < c->segment_count; i++)
        s->segments[i] = &c->segments[i];
    qsort((void *)s->segments, c->segment_count, sizeof(void *), by_data);
    return true;
}

void scopes_end(struct scopes *s)
{
    free((void *)s->segments);
    map_free(&s->now);
    *s = (struct scopes){0};
}

uint32_t scopes_thread(struct scopes *s, const struct cap_head *record)
{
    const uint8_t *at = (const uint8_t *)record;
    size_t low = 0, high = s->capture->segment_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (s->segments[middle]->data <= at)
            low = middle;
        else
            high = middle;
    }
    return s->capture->segment_count ? ((const struct cap_segment *)s->segments[low]->data)->tid : 0;
}

bool scopes_range(struct scopes *s, const struct cap_range *r)
{
    if (!r->path) {
        map_remove(&s->now, r->thread);
        return true;
    }
    return map_put(&s->now, r->thread, (uint64_t)r->path << 32 | r->iteration);
}

struct scope scopes_of(struct scopes *s, const struct cap_head *record)
{
    uint64_t now;
    if (!s->now.count || !map_get(&s->now, scopes_thread(s, record), &now))
        return (struct scope){"", 0};
    const struct cap_path *path = capture_definition(s->capture, CAP_PATH, (uint32_t)(now >> 32));
    return (struct scope){path ? capture_string(s->capture, path->text) : "", (uint32_t)now};
}
