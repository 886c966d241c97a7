#include "analyzer/kernel_table.h"

#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
    const struct kernel_row *x = a, *y = b;
    if (x->device_ns != y->device_ns)
        return x->device_ns > y->device_ns ? -1 : 1;
    if (x->launch_ns + x->wait_ns != y->launch_ns + y->wait_ns)
        return x->launch_ns + x->wait_ns > y->launch_ns + y->wait_ns ? -1 : 1;
    return strcmp(x->kernel->full_name, y->kernel->full_name);
}

static int by_name(const void *a, const void *b)
{
    const struct kernel_row *x = a, *y = b;
    return strcmp(x->kernel->full_name, y->kernel->full_name);
}

static void add_up(struct kernel_row *to, const struct kernel_row *from)
{
    to->launches += from->launches;
    to->timed += from->timed;
    to->launch_ns += from->launch_ns;
    to->device_ns += from->device_ns;
    to->wait_ns += from->wait_ns;
    to->bounded += from->bounded;
    to->bound_ns += from->bound_ns;
    to->memory_ns += from->memory_ns;
    to->compute_ns += from->compute_ns;
}

struct kernel_table kernel_table_of(const struct model *m, const struct judgements *js)
{
    struct kernel_table t = {.rows = calloc(m->kernel_count + 1, sizeof *t.rows)};
    if (!t.rows)
        return t;
    struct bound_walk walk;
    bound_walk_start(&walk, m, js);
    for (size_t i = 0; i < m->kernel_count; i++)
        t.rows[i].kernel = &m->kernels[i];
    for (size_t i = 0; i < m->launch_count; i++) {
        const struct model_launch *l = &m->launches[i];
        struct kernel_row one = {.launches = 1, .launch_ns = model_launch_host_ns(l), .wait_ns = l->wait_ns};
        if (l->time_source) {
            t.time_source = l->time_source;
            one.timed = 1;
            one.device_ns = l->device_ns;
        }
        struct bound bound = bound_walk_next(&walk, l);
        if (bound.by != BOUND_UNKNOWN) {
            one.bounded = 1;
            one.bound_ns = bound.ns;
            *(bound.by == BOUND_MEMORY ? &one.memory_ns : &one.compute_ns) = bound.ns;
        }
        add_up(&t.rows[l->kernel - m->kernels], &one);
    }
    bound_walk_end(&walk);
    /* The same kernel loaded twice (two contexts, two modules) is one row. */
    qsort(t.rows, m->kernel_count, sizeof *t.rows, by_name);
    for (size_t i = 0; i < m->kernel_count; i++) {
        if (!t.rows[i].launches)
            continue;
        if (t.count && strcmp(t.rows[t.count - 1].kernel->full_name, t.rows[i].kernel->full_name) == 0)
            add_up(&t.rows[t.count - 1], &t.rows[i]);
        else
            t.rows[t.count++] = t.rows[i];
    }
    qsort(t.rows, t.count, sizeof *t.rows, by_time);
    return t;
}
