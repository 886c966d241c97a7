/* exec_memory.c - finding the memory behind an address, atomics, and the bitmaps of what was read and written. */
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "ptx/guard.h"

static uint32_t range_number(const struct launch *l, const struct ptx_range *r)
{
    if (r == &l->grid_range)
        return 0;
    return (uint32_t)(r - l->memory->ranges) + 1;
}

const struct ptx_range *range_by_number(struct launch *l, uint32_t number)
{
    if (number == 0)
        return NULL;
    if (number <= l->memory->range_count)
        return &l->memory->ranges[number - 1];
    return l->root->found[number - 1 - l->memory->range_count];
}

/* A range that `find` gave is kept, so that pointers to it and its number stay good. */
static const struct ptx_range *keep_found(struct launch *l, const struct ptx_range *r, uint32_t *number)
{
    const struct ptx_range *kept = NULL;
    l = l->root;
    pthread_mutex_lock(&l->lock);
    uint32_t count = atomic_load(&l->found_count);
    for (uint32_t i = 0; i < count && !kept; i++)
        if (l->found[i]->address == r->address && l->found[i]->bytes == r->bytes) {
            kept = l->found[i];
            *number = (uint32_t)l->memory->range_count + i + 1;
        }
    if (!kept && count < MAX_FOUND) {
        struct ptx_range *copy = malloc(sizeof *copy);
        if (copy) {
            *copy = *r;
            l->found[count] = copy;
            *number = (uint32_t)l->memory->range_count + count + 1;
            atomic_store(&l->found_count, count + 1);
            kept = copy;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return kept;
}

const struct ptx_range *range_find(struct launch *l, uint64_t address, uint32_t *number)
{
    const struct ptx_memory *m = l->memory;
    size_t low = 0, high = m->range_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->ranges[mid].address <= address)
            low = mid + 1;
        else
            high = mid;
    }
    if (low && address - m->ranges[low - 1].address < m->ranges[low - 1].bytes) {
        *number = range_number(l, &m->ranges[low - 1]);
        return &m->ranges[low - 1];
    }
    *number = 0;
    if (address - GRID_WINDOW < l->grid_range.bytes)
        return &l->grid_range;
    const struct ptx_range *own = grids_range(l, address);
    if (own)
        return own;
    const struct launch *root = l->root;
    uint32_t count = atomic_load(&root->found_count);
    for (uint32_t i = 0; i < count; i++)
        if (address - root->found[i]->address < root->found[i]->bytes) {
            *number = (uint32_t)m->range_count + i + 1;
            return root->found[i];
        }
    struct ptx_range r = {0};
    if (m->find && m->find(m->context, address, &r) && address - r.address < r.bytes)
        return keep_found(l, &r, number);
    return NULL;
}

static enum ptx_fault_kind judge_range(const struct launch *l, const struct ptx_range *r, uint64_t address,
                                       uint32_t bytes, bool write)
{
    if (!r || bytes > r->bytes - (address - r->address))
        return PTX_FAULT_OUT_OF_BOUNDS;
    if ((l->checked || l->shadow || l->guard) && (r->flags & PTX_RANGE_FREED))
        return PTX_FAULT_FREED;
    if (write && (r->flags & PTX_RANGE_READ_ONLY))
        return PTX_FAULT_READ_ONLY;
    return address & (bytes - 1) ? PTX_FAULT_MISALIGNED : PTX_FAULT_NONE;
}

static void set_bits(uint8_t *map, uint64_t from, uint64_t count, bool multi)
{
    while (count) {
        uint64_t byte = from / 8, bit = from % 8, n = 8 - bit < count ? 8 - bit : count;
        uint8_t mask = (uint8_t)(((1u << n) - 1) << bit);
        if (!multi)
            map[byte] |= mask;
        else if ((__atomic_load_n(&map[byte], __ATOMIC_RELAXED) & mask) != mask)
            __atomic_fetch_or(&map[byte], mask, __ATOMIC_RELAXED);
        from += n;
        count -= n;
    }
}

/* Bytes that this launch has not written before. */
static void mark_read(const struct ptx_range *r, uint64_t from, uint32_t count, bool multi)
{
    for (uint64_t end = from + count; from < end;) {
        uint64_t byte = from / 8, bit = from % 8, n = 8 - bit < end - from ? 8 - bit : end - from;
        unsigned mask = ((1u << n) - 1) << bit;
        if (r->written)
            mask &= ~(unsigned)(multi ? __atomic_load_n(&r->written[byte], __ATOMIC_RELAXED) : r->written[byte]);
        if (!multi)
            r->read[byte] |= (uint8_t)mask;
        else if ((__atomic_load_n(&r->read[byte], __ATOMIC_RELAXED) & mask) != mask)
            __atomic_fetch_or(&r->read[byte], (uint8_t)mask, __ATOMIC_RELAXED);
        from += n;
    }
}

void range_track(struct worker *w, const struct range_cache *c, uint64_t offset, uint32_t bytes, bool write)
{
    const struct ptx_range *r = c->range;
    bool multi = w->launch->multi;
    if (write && r->written)
        set_bits(r->written, offset, bytes, multi);
    if (!write && r->read)
        mark_read(r, offset, bytes, multi);
}

static const struct range_cache *fill_cache(struct worker *w, const struct insn *in, const struct ptx_range *r,
                                            uint32_t number, uint32_t bytes)
{
    struct range_cache *c = &w->cache[in->aux];
    *c = (struct range_cache){
        .base = r->address,
        .span = r->bytes - bytes + 1,
        .host = r->host,
        .range = r,
        .number = number,
        .tracked = r->written || r->read,
    };
    return c;
}

bool range_cache_fill(struct worker *w, const struct insn *in, uint64_t address, uint32_t bytes, bool write)
{
    uint32_t number;
    const struct ptx_range *r = range_find(w->launch, address, &number);
    if (judge_range(w->launch, r, address, bytes, write) != PTX_FAULT_NONE ||
        (w->launch->guard && !guard_admits(w->launch, in, r, number)))
        return false;
    (void)fill_cache(w, in, r, number, bytes);
    return true;
}

uint8_t *global_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t address,
                     uint32_t bytes, bool write, bool atomic)
{
    struct launch *l = w->launch;
    uint32_t number;
    const struct ptx_range *r = range_find(l, address, &number);
    enum ptx_fault_kind kind = judge_range(l, r, address, bytes, write);
    if (kind != PTX_FAULT_NONE) {
        struct ptx_fault f = {.kind = kind, .space = PTX_SPACE_GLOBAL, .address = address, .bytes = bytes};
        f.access.write = write;
        f.access.atomic = atomic;
        if (kind != PTX_FAULT_OUT_OF_BOUNDS) {
            f.has_range = true;
            f.range_id = r->id;
            f.offset = (int64_t)(address - r->address);
        }
        fault_report(w, b, t, in, &f);
        return NULL;
    }
    if (l->guard && !guard_admits(l, in, r, number))
        return NULL;
    const struct range_cache *c = fill_cache(w, in, r, number, bytes);
    uint64_t offset = address - r->address;
    if (write)
        w->counts.global_write_bytes += bytes;
    if (!write || atomic)
        w->counts.global_read_bytes += bytes;
    if (atomic)
        range_track(w, c, offset, bytes, false);
    range_track(w, c, offset, bytes, write);
    return (uint8_t *)r->host + offset;
}

uint8_t *space_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                    uint64_t address, uint32_t bytes, bool write, bool atomic)
{
    uint8_t *base = space == MEM_SHARED ? b->shared : space == MEM_LOCAL ? t->local : w->launch->params;
    uint64_t room = space == MEM_SHARED  ? b->shared_bytes
                    : space == MEM_LOCAL ? t->local_top
                                         : w->launch->entry->function->param_bytes;
    enum ptx_fault_kind kind = PTX_FAULT_NONE;
    address = narrow_address(space, address);
    if (address >= room || bytes > room - address)
        kind = PTX_FAULT_OUT_OF_BOUNDS;
    else if (address & (bytes - 1))
        kind = PTX_FAULT_MISALIGNED;
    else if (space == MEM_PARAM && write)
        kind = PTX_FAULT_READ_ONLY;
    if (kind == PTX_FAULT_NONE)
        return base + address;
    struct ptx_fault f = {
        .kind = kind,
        .space = space == MEM_SHARED  ? PTX_SPACE_SHARED
                 : space == MEM_LOCAL ? PTX_SPACE_LOCAL
                                      : PTX_SPACE_PARAM,
        .address = address,
        .bytes = bytes,
        .offset = address >> 32 ? (int64_t)address : (int32_t)address,
    };
    f.access.write = write;
    f.access.atomic = atomic;
    fault_report(w, b, t, in, &f);
    return NULL;
}

const uint8_t *peek(struct worker *w, struct block *b, struct thread *t, uint64_t address, uint32_t bytes)
{
    uint64_t window = address >> 32, offset = address & UINT32_MAX;
    if (window == PTX_SHARED_WINDOW >> 32)
        return offset + bytes <= b->shared_bytes ? b->shared + offset : NULL;
    if (window == PTX_LOCAL_WINDOW >> 32)
        return offset + bytes <= t->local_top ? t->local + offset : NULL;
    if (window == PTX_PARAM_WINDOW >> 32)
        return offset + bytes <= w->launch->entry->function->param_bytes ? w->launch->params + offset : NULL;
    uint32_t number;
    const struct ptx_range *r = range_find(w->launch, address, &number);
    if (!r || bytes > r->bytes - (address - r->address))
        return NULL;
    return (const uint8_t *)r->host + (address - r->address);
}

/* ---- atomics ---- */

uint32_t atom_bytes(unsigned mod)
{
    switch (mod >> 4 & 0xf) {
    case ATOM_U64:
    case ATOM_S64:
    case ATOM_F64:
        return 8;
    case ATOM_F16:
    case ATOM_BF16:
    case ATOM_B16:
        return 2;
    default:
        return 4;
    }
}

enum { ATOM_FLUSHES = 1 << 16 }; /* beside the instruction's 16 bits of mod */

static uint64_t atom_result32(unsigned mod, uint32_t old, uint32_t b, uint32_t c)
{
    unsigned type = mod >> 4 & 0xf;
    switch (mod & 0xf) {
    case ATOM_ADD:
        switch (type) {
        case ATOM_F32: /* on global memory it may flush, and by default does not: docs/arithmetic.md */
            if (mod & ATOM_FLUSHES)
                return bits32(flush32(canonical32(flush32(float32(old)) + flush32(float32(b)))));
            return bits32(canonical32(float32(old) + float32(b)));
        case ATOM_F16X2:
            return HALVES2(add_half, old, b, 0);
        case ATOM_BF16X2:
            return HALVES2(add_half, old, b, HALF_BF16);
        default:
            return old + b;
        }
    case ATOM_MIN:
        if (type == ATOM_F16X2 || type == ATOM_BF16X2)
            return HALVES2(min_half, old, b, type == ATOM_BF16X2 ? HALF_BF16 : 0);
        return type == ATOM_S32 ? ((int32_t)old < (int32_t)b ? old : b) : (old < b ? old : b);
    case ATOM_MAX:
        if (type == ATOM_F16X2 || type == ATOM_BF16X2)
            return HALVES2(max_half, old, b, type == ATOM_BF16X2 ? HALF_BF16 : 0);
        return type == ATOM_S32 ? ((int32_t)old > (int32_t)b ? old : b) : (old > b ? old : b);
    case ATOM_INC:
        return old >= b ? 0 : old + 1;
    case ATOM_DEC:
        return old == 0 || old > b ? b : old - 1;
    case ATOM_AND:
        return old & b;
    case ATOM_OR:
        return old | b;
    case ATOM_XOR:
        return old ^ b;
    case ATOM_EXCH:
        return b;
    default:
        return old == b ? c : old;
    }
}

static uint64_t atom_result64(unsigned mod, uint64_t old, uint64_t b, uint64_t c)
{
    unsigned type = mod >> 4 & 0xf;
    switch (mod & 0xf) {
    case ATOM_ADD:
        return type == ATOM_F64 ? bits64(canonical64(float64(old) + float64(b))) : old + b;
    case ATOM_MIN:
        return type == ATOM_S64 ? ((int64_t)old < (int64_t)b ? old : b) : (old < b ? old : b);
    case ATOM_MAX:
        return type == ATOM_S64 ? ((int64_t)old > (int64_t)b ? old : b) : (old > b ? old : b);
    case ATOM_AND:
        return old & b;
    case ATOM_OR:
        return old | b;
    case ATOM_XOR:
        return old ^ b;
    case ATOM_EXCH:
        return b;
    default:
        return old == b ? c : old;
    }
}

static uint64_t atom_result16(unsigned mod, uint16_t old, uint16_t b, uint16_t c)
{
    unsigned half = (mod >> 4 & 0xf) == ATOM_BF16 ? HALF_BF16 : 0;
    switch (mod & 0xf) {
    case ATOM_ADD:
        return add_half(old, b, half);
    case ATOM_MIN:
        return min_half(old, b, half);
    case ATOM_MAX:
        return max_half(old, b, half);
    default:
        return old == b ? c : old;
    }
}

static uint64_t atom_result(unsigned mod, uint32_t bytes, uint64_t old, uint64_t b, uint64_t c)
{
    return bytes == 8   ? atom_result64(mod, old, b, c)
           : bytes == 4 ? atom_result32(mod, (uint32_t)old, (uint32_t)b, (uint32_t)c)
                        : atom_result16(mod, (uint16_t)old, (uint16_t)b, (uint16_t)c);
}

static uint64_t atom_plain(unsigned mod, uint32_t bytes, uint8_t *at, uint64_t b, uint64_t c)
{
    uint64_t old = 0;
    memcpy(&old, at, bytes);
    uint64_t new = atom_result(mod, bytes, old, b, c);
    memcpy(at, &new, bytes);
    return old;
}

#define SWAP_LOOP(type)                                                                                                \
    do {                                                                                                               \
        type *p = (type *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED), new;                                 \
        do                                                                                                             \
            new = (type)atom_result(mod, bytes, old, b, c);                                                            \
        while (!__atomic_compare_exchange_n(p, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));                  \
        return old;                                                                                                    \
    } while (0)

uint64_t atom_apply(struct worker *w, unsigned mod, uint8_t *at, uint64_t b, uint64_t c)
{
    uint32_t bytes = atom_bytes(mod);
    if (w->launch->flushes_atomics && (enum mem_space)(mod >> 8 & 0xf) == MEM_GLOBAL)
        mod |= ATOM_FLUSHES;
    if ((enum mem_space)(mod >> 8 & 0xf) == MEM_SHARED) /* a block is run by one worker */
        return atom_plain(mod, bytes, at, b, c);
    /* Even of a single worker: the host and other launches may be at the same word. */
    if ((uintptr_t)at % bytes) { /* the caller's memory is not aligned as the device's */
        pthread_mutex_lock(&w->launch->lock);
        uint64_t old = atom_plain(mod, bytes, at, b, c);
        pthread_mutex_unlock(&w->launch->lock);
        return old;
    }
    if (bytes == 8)
        SWAP_LOOP(uint64_t);
    if (bytes == 4)
        SWAP_LOOP(uint32_t);
    SWAP_LOOP(uint16_t);
}

/* One 16-byte exchange, which x86-64 has as cmpxchg16b. */
static bool swap_wide(uint8_t *at, uint64_t expected[2], const uint64_t desired[2])
{
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*(unsigned __int128 *)(void *)at), "+a"(expected[0]), "+d"(expected[1])
                     : "b"(desired[0]), "c"(desired[1])
                     : "memory");
    return done;
}

void atom_wide_apply(struct worker *w, unsigned mod, uint8_t *at, const uint64_t b[2], const uint64_t c[2],
                     uint64_t old[2])
{
    bool cas = (mod & 0xf) == ATOM_CAS;
    if ((uintptr_t)at % 16) { /* the caller's memory is not aligned as the device's */
        pthread_mutex_lock(&w->launch->lock);
        memcpy(old, at, 16);
        if (!cas || memcmp(old, b, 16) == 0)
            memcpy(at, cas ? c : b, 16);
        pthread_mutex_unlock(&w->launch->lock);
        return;
    }
    memcpy(old, cas ? (const void *)b : at, 16);
    while (!swap_wide(at, old, cas ? c : b) && !cas)
        ;
}
