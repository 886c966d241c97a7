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

/* Called when the frame's place on the stack is set and reserved. */
bool shadow_enter(struct thread *t, const struct code *code)
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
    if (space != MEM_GENERIC)
        return space;
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

/* An entry without a float: what was loaded is known by its first address, when floats are perturbed. */
static struct ptx_shadow_value without_float(const struct worker *w, const struct ptx_shadow_value *entry,
                                             uint64_t address, bool device)
{
    double from = entry ? entry->wide : 0;
    if (from == STORED_EXACT || (from == 0 && !device) || (device && !w->launch->config->perturbation))
        return NUMBER_MEMORY;
    return (struct ptx_shadow_value){.wide = from != 0 ? from : (double)address, .kind = NUMBER_LOADED};
}

static struct ptx_shadow_value part_of(const struct worker *w, const struct ptx_shadow_value *entry, uint64_t address,
                                       bool device, bool half)
{
    if (half ? is_half_kind(entry->kind) : entry->kind == PTX_SHADOW_F32)
        return *entry;
    return without_float(w, entry->kind == PTX_SHADOW_NONE ? entry : NULL, address, device);
}

void shadow_take(const struct worker *w, const struct ptx_shadow_value *from, uint64_t address, uint32_t bytes,
                 bool device, struct ptx_shadow_value *s, struct number_pair *p)
{
    unsigned kind = from ? from->kind : PTX_SHADOW_NONE;
    if ((bytes == 8 && kind == PTX_SHADOW_F64) || (bytes == 4 && kind == PTX_SHADOW_F32) ||
        (bytes == 2 && is_half_kind(kind))) {
        *s = *from;
        return;
    }
    if (from && bytes == 4 && (is_half_kind(kind) || is_half_kind(from[1].kind))) {
        *s = (struct ptx_shadow_value){.kind = NUMBER_PAIR16};
        *p = (struct number_pair){part_of(w, from, address, device, true),
                                  part_of(w, from + 1, address + 2, device, true)};
        return;
    }
    if (from && bytes == 8 && (kind == PTX_SHADOW_F32 || from[2].kind == PTX_SHADOW_F32)) {
        *s = (struct ptx_shadow_value){.kind = NUMBER_PAIR32};
        *p = (struct number_pair){part_of(w, from, address, device, false),
                                  part_of(w, from + 2, address + 4, device, false)};
        return;
    }
    *s = bytes == 1 ? NUMBER_MEMORY : without_float(w, kind == PTX_SHADOW_NONE ? from : NULL, address, device);
}

/* A store into the middle of an older value makes its entry void. */
static void clear_around(struct ptx_shadow_value *to, uint64_t address, uint32_t bytes, uint64_t first)
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
            *e = NUMBER_PLAIN;
    }
}

static struct ptx_shadow_value plain_entry(const struct worker *w, bool device)
{
    return (struct ptx_shadow_value){.wide = device && w->launch->config->perturbation ? STORED_EXACT : 0};
}

static struct ptx_shadow_value entry_of(const struct worker *w, const struct ptx_shadow_value *s, bool device)
{
    if (s->kind == NUMBER_LOADED)
        return (struct ptx_shadow_value){.wide = s->wide};
    return s->kind == PTX_SHADOW_NONE ? plain_entry(w, device) : *s;
}

void shadow_put(const struct worker *w, struct ptx_shadow_value *to, uint64_t address, uint32_t bytes, bool device,
                const struct ptx_shadow_value *s, const struct number_pair *p)
{
    uint32_t count = (bytes + 1) / 2;
    for (uint32_t i = 0; i < count; i++)
        to[i] = plain_entry(w, device);
    switch (s->kind) {
    case NUMBER_LOADED:
        for (uint32_t i = 0; i < count; i++)
            to[i] = (struct ptx_shadow_value){.wide = s->wide + 2 * i};
        break;
    case NUMBER_PAIR16:
        to[0] = entry_of(w, &p->low, device);
        if (bytes >= 4)
            to[1] = entry_of(w, &p->high, device);
        break;
    case NUMBER_PAIR32:
        if (bytes == 8) {
            for (unsigned i = 0; i < 2; i++) {
                struct ptx_shadow_value one = i ? p->high : p->low;
                shadow_put(w, to + 2 * i, address + 4 * i, 4, device, &one, p);
            }
        }
        break;
    case PTX_SHADOW_F64:
        if (bytes == 8)
            to[0] = *s;
        break;
    case PTX_SHADOW_F32:
        if (bytes == 4)
            to[0] = *s;
        break;
    case PTX_SHADOW_F16:
    case PTX_SHADOW_BF16:
        if (bytes >= 2)
            to[0] = *s;
        break;
    default:
        break;
    }
}

/* ---- accesses ---- */

void shadow_load(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                 uint64_t address, uint32_t bytes, uint32_t slot)
{
    space = real_space(space, &address);
    shadow_take(w, entries(w, b, t, in, space, address, false), address, bytes, space == MEM_GLOBAL,
                &t->numbers[t->base + slot], &t->pairs[t->base + slot]);
}

void shadow_store(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                  uint64_t address, uint32_t bytes, uint32_t slot)
{
    const struct ptx_shadow_value *s = &t->numbers[t->base + slot];
    space = real_space(space, &address);
    struct ptx_shadow_value *to = entries(w, b, t, in, space, address, s->kind != PTX_SHADOW_NONE);
    if (!to)
        return;
    clear_around(to, address, bytes, space == MEM_GLOBAL ? w->cache[in->aux].range->address : 0);
    shadow_put(w, to, address, bytes, space == MEM_GLOBAL, s, &t->pairs[t->base + slot]);
}

/* The operand of add.f32 and its kind, with the value that was in memory: the new entry. */
static struct ptx_shadow_value added(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                                     enum ptx_shadow_kind kind, const struct ptx_shadow_value *old,
                                     const struct ptx_shadow_value *s, const double actual[3])
{
    union slot none = {.u64 = 1};
    struct operand_value o[2] = {operand_value(w, kind, old, NULL, none, actual[0]),
                                 operand_value(w, kind, s, NULL, none, actual[1])};
    struct ptx_shadow_value r = {o[0].wide + o[1].wide, 0, deeper(o[0].depth, o[1].depth), (uint8_t)kind};
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
    if (!(fabs(actual[2] - r.wide) <= bounds[kind] * fabs(r.wide) + floors[kind])) {
        struct judgement j = {o, 2, HOW_SUM, precisions[kind], actual[2], r.wide, actual[0] + actual[1]};
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
        *old = added(w, b, t, in, wide ? PTX_SHADOW_F64 : PTX_SHADOW_F32, old, s, actual);
    } else if (op == ATOM_ADD && type >= ATOM_F16 && type <= ATOM_BF16X2) {
        bool bf16 = type == ATOM_BF16 || type == ATOM_BF16X2, two = type == ATOM_F16X2 || type == ATOM_BF16X2;
        unsigned mod = bf16 ? HALF_BF16 : 0;
        struct ptx_shadow_value parts[2];
        for (unsigned h = 0; h <= two; h++) {
            const struct ptx_shadow_value from = shadow_half_of(old, old_pair, h), add = shadow_half_of(s, p, h);
            const double actual[] = {widen_half((uint16_t)(x.u32 >> 16 * h), mod),
                                     widen_half((uint16_t)(y.u32 >> 16 * h), mod),
                                     widen_half((uint16_t)(z.u32 >> 16 * h), mod)};
            parts[h] = added(w, b, t, in, bf16 ? PTX_SHADOW_BF16 : PTX_SHADOW_F16, &from, &add, actual);
        }
        *old = two ? (struct ptx_shadow_value){.kind = NUMBER_PAIR16} : parts[0];
        if (two)
            *old_pair = (struct number_pair){parts[0], parts[1]};
    } else if (op == ATOM_EXCH || (after != before && after == operand)) {
        *old = *s;
        *old_pair = *p;
    } else if (after != before) {
        *old = NUMBER_PLAIN;
    }
}

void shadow_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                   uint64_t address, uint32_t bytes, uint64_t operand, uint64_t swapped, uint64_t before,
                   uint64_t after)
{
    bool cas = (in->mod & 0xf) == ATOM_CAS;
    space = real_space(space, &address);
    bool device = space == MEM_GLOBAL, is_float = t->numbers[t->base + (cas ? in->c : in->b)].kind != PTX_SHADOW_NONE;
    unsigned type = in->mod >> 4 & 0xf;
    is_float |= (in->mod & 0xf) == ATOM_ADD && type >= ATOM_F32 && type <= ATOM_BF16X2;
    struct ptx_shadow_value *to = entries(w, b, t, in, space, address, is_float), old;
    struct number_pair old_pair = {NUMBER_PLAIN, NUMBER_PLAIN};
    shadow_take(w, to, address, bytes, device, &old, &old_pair);
    struct ptx_shadow_value now = old;
    struct number_pair now_pair = old_pair;
    changed(w, b, t, in, &now, &now_pair, cas ? swapped : operand, before, after, cas);
    if (to) {
        clear_around(to, address, bytes, device ? w->cache[in->aux].range->address : 0);
        shadow_put(w, to, address, bytes, device, &now, &now_pair);
    }
    t->numbers[t->base + in->d] = old;
    t->pairs[t->base + in->d] = old_pair;
}

void shadow_copy(struct worker *w, struct block *b, const struct insn *in, uint64_t to, uint64_t from, uint32_t bytes,
                 uint32_t given)
{
    to &= UINT32_MAX;
    const struct ptx_range *r = NULL;
    uint32_t number;
    if (given)
        r = range_find(w->launch, from, &number);
    const struct ptx_shadow_value *source = r && r->shadow ? r->shadow + (from - r->address) / 2 : NULL;
    struct ptx_shadow_value *target =
        entries(w, b, NULL, in, MEM_SHARED, to, source || w->launch->config->perturbation);
    if (!target)
        return;
    clear_around(target, to, bytes, 0);
    for (uint32_t i = 0; i < bytes / 2; i++) {
        struct ptx_shadow_value e = i >= (given + 1) / 2 ? NUMBER_PLAIN : source ? source[i] : NUMBER_PLAIN;
        if (i < (given + 1) / 2 && e.kind == PTX_SHADOW_NONE && e.wide == 0 && w->launch->config->perturbation)
            e.wide = (double)(from + 2 * i);
        target[i] = e;
    }
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
        entry = local_entries(t, (uint64_t)to_local + to->at, s->kind != PTX_SHADOW_NONE);
        if (entry && bytes <= 8)
            shadow_put(NULL, entry, 0, bytes, false, s, &t->pairs[from_base + from->at]);
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
