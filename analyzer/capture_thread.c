#include "analyzer/capture_thread.h"

#include <stdlib.h>
#include <string.h>

static int by_address(const void *a, const void *b)
{
    const struct capture_writing *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void add(struct capture_threads *t, const void *from, uint32_t tid)
{
    t->writings[t->count++] = (struct capture_writing){from, tid};
    t->several = t->several || tid != t->writings[0].tid;
}

bool capture_threads_find(struct capture_threads *out, const struct capture *c)
{
    size_t most = c->segment_count + 1;
    for (size_t i = 0; i < c->record_count; i++)
        most += c->records[i]->type == CAP_WRITER;
    *out = (struct capture_threads){.writings = calloc(most, sizeof *out->writings)};
    if (!out->writings)
        return false;
    for (size_t i = 0; i < c->segment_count; i++) {
        struct cap_segment head;
        if (c->segments[i].bytes < sizeof head)
            continue;
        memcpy(&head, c->segments[i].data, sizeof head);
        add(out, c->segments[i].data, head.tid);
    }
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_WRITER)
            add(out, c->records[i], ((const struct cap_writer *)(const void *)c->records[i])->tid);
    qsort(out->writings, out->count, sizeof *out->writings, by_address);
    return true;
}

void capture_threads_free(struct capture_threads *t)
{
    free(t->writings);
    *t = (struct capture_threads){0};
}

uint32_t capture_threads_of(const struct capture_threads *t, const struct cap_head *record)
{
    const uint8_t *at = (const uint8_t *)record;
    size_t low = 0, high = t->count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (t->writings[middle].from <= at)
            low = middle;
        else
            high = middle;
    }
    return t->count ? t->writings[low].tid : 0;
}
