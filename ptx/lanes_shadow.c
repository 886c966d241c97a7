/* lanes_shadow.c - shadows of lane registers: one lane's, as a thread has them, and back; what a warp starts with. */
#include <stdlib.h>
#include "ptx/lanes_shadow.h"

#if defined(LANES_HERE) && !defined(__clang__)
#pragma GCC target("avx2,bmi,bmi2,popcnt") /* nothing here runs where the handlers cannot */
#pragma GCC optimize("O3")
#endif

/* ---- registers ---- */

static struct ptx_shadow_value lane_of(const struct lane_number *v, uint32_t lane)
{
    struct ptx_shadow_value s = {.wide = v->wide[lane], .origin = v->origin[lane]};
    memcpy((char *)&s + sizeof s - 4, &v->word[lane], 4);
    return s;
}

static void set_lane(struct lane_number *v, uint32_t lane, const struct ptx_shadow_value *s)
{
    v->wide[lane] = s->wide;
    v->origin[lane] = s->origin;
    memcpy(&v->word[lane], (const char *)s + sizeof *s - 4, 4);
}

void lane_number_get(const struct lane_numbers *n, uint32_t unit, uint32_t lane, struct ptx_shadow_value *s,
                     struct number_pair *p)
{
    if (!n->summary[unit]) {
        *s = n->memory[unit] >> lane & 1 ? NUMBER_MEMORY : NUMBER_PLAIN;
        return;
    }
    *s = lane_of(&n->of[unit][0], lane);
    if (s->kind >= PTX_SHADOW_F64)
        *p = (struct number_pair){lane_of(&n->of[unit][1], lane), lane_of(&n->of[unit][2], lane)};
}

void lane_number_expand(struct lane_numbers *n, uint32_t unit)
{
    struct lane_number *v = &n->of[unit][0];
    memset(v, 0, sizeof *v);
    for (uint32_t i = 0; i < WARP; i++)
        v->origin[i] = n->memory[unit] >> i & 1;
    _Static_assert(ORIGIN_COMPUTED == 0 && ORIGIN_MEMORY == 1, "the bit is the origin");
    n->summary[unit] = HAS(PTX_SHADOW_NONE);
}

void lane_number_set(struct lane_numbers *n, uint32_t unit, uint32_t lane, const struct ptx_shadow_value *s,
                     const struct number_pair *p)
{
    if (!n->summary[unit] && !number_tag(s)) {
        uint32_t bit = 1u << lane;
        n->memory[unit] = s->origin == ORIGIN_MEMORY ? n->memory[unit] | bit : n->memory[unit] & ~bit;
        return;
    }
    if (!n->summary[unit])
        lane_number_expand(n, unit);
    set_lane(&n->of[unit][0], lane, s);
    n->summary[unit] |= HAS(s->kind) | HAS_FLAGS(s->flags);
    if (s->kind >= PTX_SHADOW_F64) {
        set_lane(&n->of[unit][1], lane, &p->low);
        set_lane(&n->of[unit][2], lane, &p->high);
    }
}

void lane_number_tighten(const struct lanes *L, uint32_t unit)
{
    struct lane_numbers *n = L->numbers;
    const struct lane_number *v = &n->of[unit][0];
    uint32_t summary = 0, tags = 0, memory = 0;
    if (!n->summary[unit])
        return;
    for (uint32_t i = 0; i < WARP; i++) {
        const uint32_t live = -(L->live >> i & 1), word = v->word[i];
        tags |= word & WORD_TAG & live;
        summary |= (HAS((word & WORD_KIND) >> 24) | HAS_FLAGS(word >> WORD_SHIFT)) & live;
        memory |= (uint32_t)(v->origin[i] == ORIGIN_MEMORY) << i;
    }
    n->memory[unit] = memory & L->live;
    n->summary[unit] = tags ? summary : 0;
}

void lane_number_clear(struct lanes *L, uint32_t unit, bool partial)
{
    struct lane_numbers *n = L->numbers;
    if (!partial) {
        n->summary[unit] = n->memory[unit] = 0;
        return;
    }
    if (!n->summary[unit]) {
        n->memory[unit] &= ~L->mask;
        return;
    }
    struct lane_number *v = &n->of[unit][0];
    for (uint32_t i = 0; i < WARP; i++) {
        const uint32_t keep = (L->mask >> i & 1) - 1;
        v->wide[i] = keep ? v->wide[i] : 0;
        v->origin[i] = keep ? v->origin[i] : (uint32_t)ORIGIN_COMPUTED;
        v->word[i] &= keep;
    }
    n->summary[unit] |= HAS(PTX_SHADOW_NONE);
    lane_number_tighten(L, unit);
}

/* ---- threads ---- */

bool lane_numbers_frames(struct lanes *L)
{
    for (uint32_t i = 0; !L->numbers->framed && i < L->lanes; i++) {
        struct thread *t = &L->block->threads[L->first + i];
        if (!thread_prepare(L->block, t, L->code) || !shadow_prepare(t, L->code)) {
            launch_stop(L->worker->launch, STATUS_NO_MEMORY);
            return false;
        }
    }
    L->numbers->framed = true;
    return true;
}

void lane_number_lend(struct lanes *L, const struct operands *o, uint32_t lane)
{
    struct thread *t = &L->block->threads[L->first + lane];
    L->taints = true;
    for (uint32_t i = 0; i < o->read_count; i++) {
        uint32_t slot = o->reads[i];
        lane_number_get(L->numbers, L->lc->unit[slot], lane, &t->numbers[slot], &t->pairs[slot]);
    }
}

void lane_number_return(struct lanes *L, uint32_t slot, uint32_t lane)
{
    const struct thread *t = &L->block->threads[L->first + lane];
    uint32_t unit = L->lc->unit[slot];
    lane_number_set(L->numbers, unit, lane, &t->numbers[slot], &t->pairs[slot]);
}

void lane_number_give_back(struct lanes *L, const struct operands *o, uint32_t lane)
{
    for (uint32_t i = 0; i < o->write_count; i++)
        lane_number_return(L, o->writes[i], lane);
    L->numbers->tainted |= L->block->threads[L->first + lane].taint != 0;
}

void lane_numbers_settle(struct lanes *L, const struct operands *o)
{
    for (uint32_t i = 0; i < o->write_count; i++)
        lane_number_tighten(L, L->lc->unit[o->writes[i]]);
}

unsigned lane_numbers_taint(const struct lanes *L, uint32_t slot)
{
    unsigned flags = 0;
    for (uint32_t m = L->mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        struct ptx_shadow_value s;
        struct number_pair p;
        lane_number_get(L->numbers, L->lc->unit[slot], lane, &s, &p);
        flags |= s.flags | L->block->threads[L->first + lane].taint;
    }
    return flags;
}

void lane_numbers_branch(struct lanes *L, uint32_t unit)
{
    if (!(L->numbers->summary[unit] & HAS_CONTROL))
        return;
    for (uint32_t m = L->mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        unsigned taint = L->numbers->of[unit][0].word[lane] >> WORD_SHIFT & FLAGS_CONTROL;
        L->block->threads[L->first + lane].taint |= (uint8_t)taint;
        L->numbers->tainted |= taint != 0;
        L->taints |= taint != 0;
    }
}

void lane_numbers_to_thread(struct lanes *L, uint32_t lane)
{
    struct thread *t = &L->block->threads[L->first + lane];
    L->taints = true;
    for (uint32_t slot = 0; slot < L->code->slot_count; slot++)
        if (L->lc->unit[slot] != NO_UNIT && L->lc->written[slot])
            lane_number_get(L->numbers, L->lc->unit[slot], lane, &t->numbers[slot], &t->pairs[slot]);
}

uint64_t lane_numbers_tainted_threads(const struct lanes *L)
{
    uint64_t count = 0;
    for (uint32_t i = 0; L->taints && i < L->lanes; i++)
        count += L->block->threads[L->first + i].taint != 0;
    return count;
}

/* ---- a warp ---- */

struct lane_numbers *lane_numbers_create(uint32_t units, uint32_t slots)
{
    struct lane_numbers *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->summary = calloc(units + 1u, sizeof *n->summary);
    n->memory = calloc(units + 1u, sizeof *n->memory);
    n->of = aligned_alloc(64, (units + 1u) * sizeof *n->of);
    n->R = calloc(slots + 1u, sizeof *n->R);
    n->S = calloc(slots + 1u, sizeof *n->S);
    n->P = calloc(slots + 1u, sizeof *n->P);
    if (n->summary && n->memory && n->of && n->R && n->S && n->P) {
        memset(n->of, 0, (units + 1u) * sizeof *n->of);
        return n;
    }
    lane_numbers_free(n);
    return NULL;
}

void lane_numbers_free(struct lane_numbers *n)
{
    if (!n)
        return;
    free(n->summary);
    free(n->memory);
    free(n->of);
    free(n->R);
    free(n->S);
    free(n->P);
    free(n);
}

void lane_numbers_start(struct lanes *L)
{
    struct lane_numbers *n = L->numbers;
    const struct lane_code *lc = L->lc;
    memset(n->summary, 0, lc->units * sizeof *n->summary);
    memset(n->memory, 0, lc->units * sizeof *n->memory);
    n->framed = n->tainted = false;
    for (uint32_t i = 0; L->taints && i < L->lanes; i++)
        L->block->threads[L->first + i].taint = 0;
    L->taints = false;
    for (uint32_t i = 0; i < L->code->fill_count; i++) {
        if (!shadow_names_place(L->code->fills[i].kind))
            continue;
        for (uint32_t unit = 0; unit < lc->units; unit++)
            for (uint32_t lane = 0; lc->unit_slot[unit] == L->code->fills[i].slot && lane < WARP; lane++)
                lane_number_set(n, unit, lane, &(struct ptx_shadow_value){.flags = PTX_SHADOW_TIMED}, NULL);
    }
}

bool lane_numbers_launch(struct launch *l, bool avx512)
{
#ifdef LANES_HERE
    lane_handler *const *const *shadow = lane_shadow_handlers_v3;
#ifdef LANES_V4
    if (avx512)
        shadow = lane_shadow_handlers_v4;
#endif
    for (int partial = 0; partial < 2; partial++)
        l->lane_handlers[partial] = shadow[partial];
    return true;
#else
    (void)l;
    (void)avx512;
    return false;
#endif
}
