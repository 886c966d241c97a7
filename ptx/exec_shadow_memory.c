/* exec_shadow_memory.c - shadows of frames and of memory. Memory has an entry per two bytes, at the first byte of a
 * value; the entries of shared and local memory exist once a float was stored there. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_shadow.h"

/* ---- frames ---- */

static bool grow_numbers(struct ptx_shadow_value **p, uint32_t old, uint32_t now)
{
    struct ptx_shadow_value *fresh = realloc(*p, (size_t)now * sizeof *fresh);
    if (!fresh)
        return false;
    memset(fresh + old, 0, (size_t)(now - old) * sizeof *fresh);
    *p = fresh;
    return true;
}

/* Where and as what a thread runs is the device's choice. */
bool shadow_names_place(enum fill_kind kind)
{
    return kind == FILL_SMID || kind == FILL_NSMID || kind == FILL_WARPID || kind == FILL_NWARPID ||
           kind == FILL_GRIDID;
}

bool shadow_prepare(struct thread *t, const struct code *code)
{
    if (t->number_slots < t->stack_slots) {
        struct number_pair *pairs = realloc(t->pairs, (size_t)t->stack_slots * sizeof *pairs);
        if (!pairs)
            return false;
        t->pairs = pairs; /* read only where a slot's kind says so */
        if (!grow_numbers(&t->numbers, t->number_slots, t->stack_slots))
            return false;
        t->number_slots = t->stack_slots;
    }
    memset(t->numbers + t->base, 0, code->slot_count * sizeof *t->numbers);
    if (!t->local_numbers)
        return true;
    if (t->local_number_room < t->local_room) {
        if (!grow_numbers(&t->local_numbers, t->local_number_room / 2 + 4, t->local_room / 2 + 4))
            return false;
        t->local_number_room = t->local_room;
    }
    memset(t->local_numbers + t->local_base / 2, 0, (code->local_bytes + 1) / 2 * sizeof *t->local_numbers);
    return true;
}

/* Called when the frame's place on the stack is set and reserved. */
bool shadow_enter(struct thread *t, const struct code *code)
{
    if (!shadow_prepare(t, code))
        return false;
    for (uint32_t i = 0; i < code->fill_count; i++)
        if (shadow_names_place(code->fills[i].kind))
            t->numbers[t->base + code->fills[i].slot].flags = PTX_SHADOW_TIMED;
    return true;
}

void shadow_thread_free(struct thread *t)
{
    free(t->numbers);
    free(t->pairs);
    free(t->local_numbers);
}

void shadow_block_start(struct block *b)
{
    if (b->shared_numbers)
        memset(b->shared_numbers, 0, (b->shared_bytes / 2 + 4u) * sizeof *b->shared_numbers);
}

void shadow_block_free(struct block *b)
{
    free(b->shared_numbers);
}

static struct ptx_shadow_value *local_entries(struct thread *t, uint64_t address, bool make)
{
    if (!t->local_numbers && make) {
        t->local_numbers = calloc(t->local_room / 2 + 4u, sizeof *t->local_numbers);
        t->local_number_room = t->local_room;
    }
    return t->local_numbers ? t->local_numbers + address / 2 : NULL;
}

/* ---- entries ---- */

static enum mem_space real_space(enum mem_space space, uint64_t *address)
{
    if (space == MEM_CONST)
        return MEM_GLOBAL;
    if (space != MEM_GENERIC) {
        *address = narrow_address(space, *address);
        return space;
    }
    uint64_t window = *address >> 32;
    space = window == PTX_SHARED_WINDOW >> 32  ? MEM_SHARED
            : window == PTX_LOCAL_WINDOW >> 32 ? MEM_LOCAL
            : window == PTX_PARAM_WINDOW >> 32 ? MEM_PARAM
                                               : MEM_GLOBAL;
    if (space != MEM_GLOBAL)
        *address &= UINT32_MAX;
    return space;
}

/* The entry of the value at `address`, which was just found; NULL where none are kept. `make`: they are wanted. */
static struct ptx_shadow_value *entries(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                                        enum mem_space space, uint64_t address, bool make)
{
    switch (space) {
    case MEM_GLOBAL:
        return device_entries(&w->cache[in->aux], address);
    case MEM_SHARED:
        if (!b->shared_numbers && make)
            b->shared_numbers = calloc(b->shared_bytes / 2 + 4u, sizeof *b->shared_numbers);
        if (!b->shared_numbers && make)
            launch_stop(w->launch, STATUS_NO_MEMORY);
        return b->shared_numbers ? b->shared_numbers + address / 2 : NULL;
    case MEM_LOCAL:
        return local_entries(t, address, make);
    default:
        return NULL;
    }
}

static bool is_half_kind(unsigned kind)
{
    return kind == PTX_SHADOW_F16 || kind == PTX_SHADOW_BF16;
}

/* Entries without a float that fits: what was loaded is known by its first address, when floats are perturbed. The
 * error of a float whose bits these are is lost. */
static struct ptx_shadow_value without_float(const struct worker *w, const struct ptx_shadow_value *entry,
                                             uint64_t address, uint32_t bytes, bool device)
{
    struct ptx_shadow_value r = NUMBER_MEMORY;
    for (uint32_t i = 0; entry && i < (bytes + 1) / 2; i++)
        r.flags |= shadow_plain_of(&entry[i]).flags;
    double from = entry && entry->kind == PTX_SHADOW_NONE ? entry->wide : 0;
    if (bytes == 1 || from == STORED_EXACT || (from == 0 && !device) || (device && !w->launch->config->perturbation) ||
        (r.flags & PTX_SHADOW_LOST))
        return r;
    return (struct ptx_shadow_value){
        .wide = from != 0 ? from : (double)address, .kind = NUMBER_LOADED, .flags = r.flags};
}

static struct ptx_shadow_value part_of(const struct worker *w, const struct ptx_shadow_value *entry, uint64_t address,
                                       bool device, bool half)
{
    if (half ? is_half_kind(entry->kind) : entry->kind == PTX_SHADOW_F32)
        return *entry;
    return without_float(w, entry, address, half ? 2 : 4, device);
}

static struct ptx_shadow_value pair_of(unsigned kind, const struct number_pair *p)
{
    return (struct ptx_shadow_value){.kind = kind & 0xf, .flags = p->low.flags | p->high.flags};
}

void shadow_take(const struct worker *w, const struct ptx_shadow_value *from, uint64_t address, uint32_t bytes,
                 bool device, struct ptx_shadow_value *s, struct number_pair *p)
{
    unsigned kind = from ? from->kind : PTX_SHADOW_NONE;
    if ((bytes == 8 && kind == PTX_SHADOW_F64) || (bytes == 4 && kind == PTX_SHADOW_F32) ||
        (bytes == 2 && is_half_kind(kind))) {
        *s = *from;
        if (kind == PTX_SHADOW_F64)
            *p = (struct number_pair){{.wide = from[1].kind == PTX_SHADOW_REST ? from[1].wide : 0}, NUMBER_PLAIN};
        return;
    }
    if (from && bytes == 4 && (is_half_kind(kind) || is_half_kind(from[1].kind))) {
        *p = (struct number_pair){part_of(w, from, address, device, true),
                                  part_of(w, from + 1, address + 2, device, true)};
        *s = pair_of(NUMBER_PAIR16, p);
        return;
    }
    if (from && bytes == 8 && (kind == PTX_SHADOW_F32 || from[2].kind == PTX_SHADOW_F32)) {
        *p = (struct number_pair){part_of(w, from, address, device, false),
                                  part_of(w, from + 2, address + 4, device, false)};
        *s = pair_of(NUMBER_PAIR32, p);
        return;
    }
    *s = without_float(w, from, address, bytes, device);
}

void shadow_clear_around(struct ptx_shadow_value *to, uint64_t address, uint32_t bytes, uint64_t first)
{
    for (uint32_t size = bytes * 2 > 2 ? bytes * 2 : 2; size <= 8; size *= 2) {
        uint64_t back = address & (size - 1);
        if (back == 0 || back > address - first)
            continue;
        struct ptx_shadow_value *e = to - ((address - first) / 2 - (address - back - first) / 2);
        unsigned covers = e->kind == PTX_SHADOW_F64    ? 8
                          : e->kind == PTX_SHADOW_F32  ? 4
                          : e->kind == PTX_SHADOW_NONE ? 0
                                                       : 2;
        if (covers > back)
            *e = shadow_plain_of(e);
    }
}

/* Of bits without a float. */
static struct ptx_shadow_value plain_entry(const struct worker *w, const struct ptx_shadow_value *s, bool device,
                                           unsigned taint)
{
    struct ptx_shadow_value r = shadow_plain_of(s);
    r.wide = device && w->launch->config->perturbation ? STORED_EXACT : 0;
    r.flags |= taint;
    return r;
}

static struct ptx_shadow_value entry_of(const struct worker *w, const struct ptx_shadow_value *s, bool device,
                                        unsigned taint)
{
    struct ptx_shadow_value r = s->kind == NUMBER_LOADED ? (struct ptx_shadow_value){.wide = s->wide, .flags = s->flags}
                                : is_half_kind(s->kind)  ? *s
                                                         : plain_entry(w, s, device, 0);
    r.flags |= taint;
    return r;
}

static uint32_t bytes_of_kind(unsigned kind)
{
    return kind == PTX_SHADOW_F64 ? 8 : kind == PTX_SHADOW_F32 ? 4 : is_half_kind(kind) ? 2 : 0;
}

/* The value itself, in its first entry; the others say that they belong to it. */
static void put_float(struct ptx_shadow_value *to, uint32_t count, const struct ptx_shadow_value *s,
                      const struct number_pair *p, unsigned taint)
{
    for (uint32_t i = 1; i < count; i++) {
        to[i] = (struct ptx_shadow_value){.flags = s->flags | taint};
        to[i].kind = s->kind == PTX_SHADOW_F64 ? PTX_SHADOW_REST : PTX_SHADOW_NONE;
    }
    to[0] = *s;
    to[0].flags |= taint;
    if (s->kind == PTX_SHADOW_F64)
        to[1].wide = p->low.wide;
}

void shadow_put(const struct worker *w, struct ptx_shadow_value *to, uint64_t address, uint32_t bytes, bool device,
                const struct ptx_shadow_value *s, const struct number_pair *p, unsigned taint)
{
    uint32_t count = (bytes + 1) / 2;
    if (bytes > 1 && bytes_of_kind(s->kind) == bytes) {
        put_float(to, count, s, p, taint);
        return;
    }
    if (s->kind == NUMBER_PAIR32 && bytes == 8) {
        for (unsigned i = 0; i < 2; i++) {
            struct ptx_shadow_value one = i ? p->high : p->low;
            shadow_put(w, to + 2 * i, address + 4 * i, 4, device, &one, p, taint);
        }
        return;
    }
    if (bytes == 1) /* the other byte stays */
        taint |= shadow_plain_of(&to[0]).flags;
    for (uint32_t i = 0; i < count; i++)
        to[i] = plain_entry(w, s, device, taint);
    if (s->kind == NUMBER_LOADED && bytes > 1) {
        for (uint32_t i = 0; i < count; i++)
            to[i] = (struct ptx_shadow_value){.wide = s->wide + 2 * i, .flags = to[i].flags};
    } else if (s->kind == NUMBER_PAIR16 && bytes > 1) {
        to[0] = entry_of(w, &p->low, device, taint);
        if (bytes >= 4)
            to[1] = entry_of(w, &p->high, device, taint);
        for (uint32_t i = 2; i < count; i++)
            to[i] = plain_entry(w, &NUMBER_PLAIN, device, taint);
    } else if (is_half_kind(s->kind) && bytes > 1) { /* made wider by zeros */
        to[0] = entry_of(w, s, device, taint);
        for (uint32_t i = 1; i < count; i++)
            to[i] = plain_entry(w, &NUMBER_PLAIN, device, taint);
    }
}

/* ---- accesses ---- */

/* Flags of a value that is stored. A float's error is lost unless all of the float is. */
static unsigned told_of(const struct ptx_shadow_value *s, uint32_t bytes)
{
    bool whole = s->kind == NUMBER_PAIR16   ? bytes == 4
                 : s->kind == NUMBER_PAIR32 ? bytes == 8
                                            : bytes_of_kind(s->kind) == bytes || is_half_kind(s->kind);
    return whole ? s->flags & FLAGS_SPREADING : shadow_plain_of(s).flags;
}

static void tell_taint(const struct range_cache *c, uint64_t address, uint32_t bytes, unsigned flags)
{
    const struct ptx_range *r = c->range;
    if (r && r->tainted)
        memset(r->tainted + (address - r->address), (int)flags, bytes);
}

void shadow_load_value(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                       uint64_t address, uint32_t bytes, struct ptx_shadow_value *s, struct number_pair *p)
{
    space = real_space(space, &address);
    shadow_take(w, entries(w, b, t, in, space, address, false), address, bytes, space == MEM_GLOBAL, s, p);
}

void shadow_load(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                 uint64_t address, uint32_t bytes, uint32_t slot)
{
    shadow_load_value(w, b, t, in, space, address, bytes, &t->numbers[t->base + slot], &t->pairs[t->base + slot]);
}

void shadow_store_value(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                        enum mem_space space, uint64_t address, uint32_t bytes, const struct ptx_shadow_value *s,
                        const struct number_pair *p, unsigned taint)
{
    space = real_space(space, &address);
    if (space == MEM_GLOBAL)
        tell_taint(&w->cache[in->aux], address, bytes, told_of(s, bytes) | taint);
    struct ptx_shadow_value *to = entries(w, b, t, in, space, address, number_tag(s) || taint);
    if (!to)
        return;
    if (space == MEM_GLOBAL && !number_tag(s) && !taint && !w->launch->config->perturbation &&
        !entries_used(w->cache[in->aux].range, address, bytes))
        return; /* zero, as they are */
    if (space == MEM_GLOBAL)
        use_entries(w->cache[in->aux].range, address, bytes);
    shadow_clear_around(to, address, bytes, space == MEM_GLOBAL ? w->cache[in->aux].range->address : 0);
    shadow_put(w, to, address, bytes, space == MEM_GLOBAL, s, p, taint);
}

void shadow_store(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                  uint64_t address, uint32_t bytes, uint32_t slot)
{
    shadow_store_value(w, b, t, in, space, address, bytes, &t->numbers[t->base + slot], &t->pairs[t->base + slot],
                       t->taint | (t->numbers[t->base + in->a].flags & FLAGS_CONTROL));
}

/* The operand of add.f32 and its kind, with the value that was in memory: the new entry. */
static struct ptx_shadow_value added(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                                     enum ptx_shadow_kind kind, const struct ptx_shadow_value *old,
                                     struct number_pair *old_pair, const struct ptx_shadow_value *s,
                                     const struct number_pair *p, const double actual[3])
{
    union slot none = {.u64 = 1};
    struct operand_value o[2] = {operand_value(w, kind, old, old_pair, none, actual[0]),
                                 operand_value(w, kind, s, p, none, actual[1])};
    struct dd wide = dd_add((struct dd){o[0].wide, o[0].low}, (struct dd){o[1].wide, o[1].low});
    struct ptx_shadow_value r = {wide.high, 0, deeper(o[0].depth, o[1].depth), kind & 0xf,
                                 (o[0].flags | o[1].flags) & 0xf};
    if (kind == PTX_SHADOW_F64)
        old_pair->low.wide = wide.low;
    r.flags |= wide.high != actual[2] || wide.low != 0 ? PTX_SHADOW_INEXACT : 0;
    static const double bounds[] = {[PTX_SHADOW_F16] = BOUND_F16,
                                    [PTX_SHADOW_BF16] = BOUND_BF16,
                                    [PTX_SHADOW_F32] = BOUND_F32,
                                    [PTX_SHADOW_F64] = BOUND_F64};
    static const double floors[] = {[PTX_SHADOW_F16] = FLOOR_F16,
                                    [PTX_SHADOW_BF16] = FLOOR_BF16,
                                    [PTX_SHADOW_F32] = FLOOR_F32,
                                    [PTX_SHADOW_F64] = FLOOR_F64};
    static const enum precision precisions[] = {[PTX_SHADOW_F16] = PRECISION_F16,
                                                [PTX_SHADOW_BF16] = PRECISION_BF16,
                                                [PTX_SHADOW_F32] = PRECISION_F32,
                                                [PTX_SHADOW_F64] = PRECISION_F64};
    if (!(dd_distance(actual[2], wide) <= bounds[kind] * fabs(wide.high) + floors[kind])) {
        struct judgement j = {o, 2, HOW_SUM, precisions[kind], actual[2], wide, dd_two_sum(actual[0], actual[1])};
        r.origin = shadow_judge(w, b, t, in, &j);
    }
    return r;
}

/* What an atomic makes of the value in memory. `old` and `s` are the slots' kinds of shadow. */
static void changed(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                    struct ptx_shadow_value *old, struct number_pair *old_pair, uint64_t operand, uint64_t before,
                    uint64_t after, bool swapped)
{
    const struct ptx_shadow_value *s = &t->numbers[t->base + (swapped ? in->c : in->b)];
    const struct number_pair *p = &t->pairs[t->base + (swapped ? in->c : in->b)];
    unsigned op = in->mod & 0xf, type = in->mod >> 4 & 0xf;
    union slot x = {.u64 = before}, y = {.u64 = operand}, z = {.u64 = after};
    if (op == ATOM_ADD && (type == ATOM_F32 || type == ATOM_F64)) {
        bool wide = type == ATOM_F64;
        const double actual[] = {wide ? x.f64 : (double)x.f32, wide ? y.f64 : (double)y.f32,
                                 wide ? z.f64 : (double)z.f32};
        *old = added(w, b, t, in, wide ? PTX_SHADOW_F64 : PTX_SHADOW_F32, old, old_pair, s, p, actual);
    } else if (op == ATOM_ADD && type >= ATOM_F16 && type <= ATOM_BF16X2) {
        bool bf16 = type == ATOM_BF16 || type == ATOM_BF16X2, two = type == ATOM_F16X2 || type == ATOM_BF16X2;
        unsigned mod = bf16 ? HALF_BF16 : 0;
        struct ptx_shadow_value parts[2];
        for (unsigned h = 0; h <= two; h++) {
            const struct ptx_shadow_value from = shadow_half_of(old, old_pair, h), add = shadow_half_of(s, p, h);
            const double actual[] = {widen_half((uint16_t)(x.u32 >> 16 * h), mod),
                                     widen_half((uint16_t)(y.u32 >> 16 * h), mod),
                                     widen_half((uint16_t)(z.u32 >> 16 * h), mod)};
            parts[h] = added(w, b, t, in, bf16 ? PTX_SHADOW_BF16 : PTX_SHADOW_F16, &from, NULL, &add, NULL, actual);
        }
        *old_pair = (struct number_pair){parts[0], parts[1]};
        *old = two ? pair_of(NUMBER_PAIR16, old_pair) : parts[0];
    } else if (op == ATOM_EXCH || (after != before && after == operand)) {
        *old = *s;
        *old_pair = *p;
    } else {
        unsigned flags = shadow_plain_of(s).flags;
        if (after != before)
            *old = shadow_plain_of(old);
        old->flags |= after != before ? flags : flags & FLAGS_CONTROL;
    }
}

void shadow_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                   uint64_t address, uint32_t bytes, uint64_t operand, uint64_t swapped, uint64_t before,
                   uint64_t after)
{
    bool cas = (in->mod & 0xf) == ATOM_CAS;
    space = real_space(space, &address);
    unsigned taint = t->taint | (t->numbers[t->base + in->a].flags & FLAGS_CONTROL), type = in->mod >> 4 & 0xf;
    bool device = space == MEM_GLOBAL, told = number_tag(&t->numbers[t->base + (cas ? in->c : in->b)]) || taint;
    told |= (in->mod & 0xf) == ATOM_ADD && type >= ATOM_F32 && type <= ATOM_BF16X2;
    struct ptx_shadow_value *to = entries(w, b, t, in, space, address, told), old;
    struct number_pair old_pair = {NUMBER_PLAIN, NUMBER_PLAIN};
    shadow_take(w, to, address, bytes, device, &old, &old_pair);
    struct ptx_shadow_value now = old;
    struct number_pair now_pair = old_pair;
    changed(w, b, t, in, &now, &now_pair, cas ? swapped : operand, before, after, cas);
    if (to) {
        if (device)
            use_entries(w->cache[in->aux].range, address, bytes);
        shadow_clear_around(to, address, bytes, device ? w->cache[in->aux].range->address : 0);
        shadow_put(w, to, address, bytes, device, &now, &now_pair, taint);
    }
    if (device)
        tell_taint(&w->cache[in->aux], address, bytes, told_of(&now, bytes) | taint);
    if (!(in->mod & ATOM_NO_RESULT) && shadow_contended(w, b, t, space, address))
        old.flags |= PTX_SHADOW_TIMED;
    t->numbers[t->base + in->d] = old;
    t->pairs[t->base + in->d] = old_pair;
}

void shadow_copy(struct worker *w, struct block *b, const struct thread *t, const struct insn *in, uint64_t to,
                 uint64_t from, uint32_t bytes, uint32_t given)
{
    to &= UINT32_MAX;
    const struct ptx_range *r = NULL;
    uint32_t number;
    if (given)
        r = range_find(w->launch, from, &number);
    const struct ptx_shadow_value *source = r && r->shadow ? r->shadow + (from - r->address) / 2 : NULL;
    struct ptx_shadow_value *target =
        entries(w, b, NULL, in, MEM_SHARED, to, source || t->taint || w->launch->config->perturbation);
    if (!target)
        return;
    shadow_clear_around(target, to, bytes, 0);
    for (uint32_t i = 0; i < bytes / 2; i++) {
        struct ptx_shadow_value e = i >= (given + 1) / 2 ? NUMBER_PLAIN : source ? source[i] : NUMBER_PLAIN;
        if (i < (given + 1) / 2 && e.kind == PTX_SHADOW_NONE && e.wide == 0 && w->launch->config->perturbation)
            e.wide = (double)(from + 2 * i);
        e.flags |= t->taint;
        target[i] = e;
    }
}

void shadow_stack(struct thread *t, uint32_t from, uint32_t to)
{
    if (!t->local_numbers)
        return;
    if (t->local_number_room < t->local_room) {
        if (!grow_numbers(&t->local_numbers, t->local_number_room / 2 + 4, t->local_room / 2 + 4))
            return;
        t->local_number_room = t->local_room;
    }
    memset(t->local_numbers + from / 2, 0, ((to + 1) / 2 - from / 2) * sizeof *t->local_numbers);
}

/* ---- calls ---- */

void shadow_pass(struct thread *t, uint32_t from_base, uint32_t from_local, const struct call_arg *from,
                 uint32_t to_base, uint32_t to_local, const struct call_arg *to, uint32_t bytes)
{
    struct ptx_shadow_value *entry;
    if (from->slot && to->slot) {
        t->numbers[to_base + to->at] = t->numbers[from_base + from->at];
        t->pairs[to_base + to->at] = t->pairs[from_base + from->at];
    } else if (from->slot) {
        const struct ptx_shadow_value *s = &t->numbers[from_base + from->at];
        entry = local_entries(t, (uint64_t)to_local + to->at, number_tag(s) != 0);
        if (entry && bytes <= 8)
            shadow_put(NULL, entry, 0, bytes, false, s, &t->pairs[from_base + from->at], 0);
    } else if (to->slot) {
        entry = local_entries(t, (uint64_t)from_local + from->at, false);
        t->numbers[to_base + to->at] = NUMBER_PLAIN;
        if (entry && bytes <= 8)
            shadow_take(NULL, entry, 0, bytes, false, &t->numbers[to_base + to->at], &t->pairs[to_base + to->at]);
    } else if (t->local_numbers) {
        memmove(t->local_numbers + (to_local + to->at) / 2, t->local_numbers + (from_local + from->at) / 2,
                (bytes + 1) / 2 * sizeof *t->local_numbers);
    }
}
