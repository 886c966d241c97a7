/* exec_counted.c - the loop as a device runs it, with every micro-operation and every access to memory counted, for
 * threads that run alone in a launch with a profile. Nothing is known of their warps. */
#define RUN     run_counted
#define CHECKED 0
#define COUNTED 1
#include "ptx/exec_loop.inc"

void count_thread(struct worker *w, struct thread *t, uint32_t number)
{
    const struct site *s = &w->counter->table->sites[number];
    const union slot *R = t->stack + t->base;
    struct site_values v;
    uint32_t lane = s->kind == SITE_MATRIX ? 0 : t->lane;
    if (s->kind == SITE_MATRIX && t->lane)
        return; /* once for the warp, all of which must be there */
    v.address[lane] = R[s->slot].u64;
    v.other[lane] = R[s->other_slot].u64;
    v.length[lane] = R[s->length_slot].u64;
    count_site(w->counter, number, &v, 1u << lane, false);
}
