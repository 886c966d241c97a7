#include "analyzer/slabs.h"

#include <stdlib.h>
#include <string.h>

/* A cache's allocations are large, its buffers aligned, and many of them are in use. Fewer places may well be rows or
 * parts that a program addresses itself. */
enum { SLAB_BYTES = 1 << 20, ALIGNMENT = 256, PLACES = 8 };

/* Places of one allocation, the first PLACES_MAX distinct ones. */
enum { PLACES_MAX = 64 };
struct places {
    uint64_t offset[PLACES_MAX];
    size_t count;
};

static void add(struct places *p, uint64_t offset)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->offset[i] == offset)
            return;
    if (p->count < PLACES_MAX)
        p->offset[p->count++] = offset;
}

static bool loaded(const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->capture->record_count; i++)
        if (s->capture->records[i]->type == CAP_OBJECT) {
            const struct cap_object *object = (const void *)s->capture->records[i];
            if (strstr(capture_string(s->capture, object->path), name))
                return true;
        }
    return false;
}

static void look_at(const struct model_launch *l, const struct model_live *live, struct places **all)
{
    const struct model *m = live->model;
    const uint8_t *params = model_launch_params(l);
    for (uint32_t at = 0; params && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        const struct model_allocation *a = model_live_find(live, word);
        if (!a || a->bytes < SLAB_BYTES || (word - a->address) % ALIGNMENT || model_live_find_region(live, word))
            continue;
        struct places **of = &all[a - m->allocations];
        if (!*of)
            *of = calloc(1, sizeof **of);
        if (*of)
            add(*of, word - a->address);
    }
}

struct slabs slabs_of(const struct session *s)
{
    const struct model *m = s->model;
    struct slabs out = {0};
    struct model_live live;
    struct places **all = calloc(m->allocation_count + 1, sizeof(void *));
    model_live_start(&live, m);
    for (size_t i = 0; all && i < m->launch_count; i++) {
        if (model_launch_graph(&m->launches[i]))
            continue;
        model_live_advance(&live, model_launch_seq(&m->launches[i]));
        look_at(&m->launches[i], &live, all);
    }
    model_live_end(&live);
    for (size_t i = 0; all && i < m->allocation_count; i++) {
        if (all[i] && all[i]->count >= PLACES) {
            out.count++;
            if (all[i]->count > out.places) {
                out.places = all[i]->count;
                out.first = &m->allocations[i];
            }
        }
        free(all[i]);
    }
    free((void *)all);
    out.torch = out.count && loaded(s, "libc10_cuda");
    return out;
}
