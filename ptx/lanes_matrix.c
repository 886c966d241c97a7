/* lanes_matrix.c - matrix instructions of whole warps in lock-step, from lane registers to lane registers, with nothing
 * of theirs in threads' frames. What does not fit is left to lane_meet(), and so are faults: nothing is written before
 * all of an access is known to be right. */
#include <string.h>
#include "ptx/lanes.h"
#include "ptx/matrix_fast.h"

enum { PIECE = 16 }; /* what an access is checked and copied by, as exec_matrix.c does it */

/* Where a fragment's registers are; `other`: room for those that are stored another way. */
struct registers {
    uint8_t *chunks[MATRIX_CHUNKS];
    _Alignas(64) uint8_t other[MATRIX_BYTES];
};

static bool fits(const struct lanes *L, uint32_t unit, unsigned bytes)
{
    return L->lc->unit_class[unit] == (bytes == 4 ? CLASS_WORD : CLASS_WIDE);
}

/* Where one register is, in chunks. */
static uint8_t **place(uint8_t **chunk, uint8_t *at, unsigned bytes)
{
    for (unsigned i = 0; i < WARP * bytes; i += MATRIX_CHUNK)
        *chunk++ = at + i;
    return chunk;
}

static void registers_in(struct lanes *L, const struct fragment *f, const uint32_t *slots, struct registers *to)
{
    const unsigned bytes = f->bits == 64 ? 8 : 4;
    uint8_t **chunk = to->chunks, *other = to->other;
    for (unsigned r = 0; r < f->registers; r++, other += WARP * bytes) {
        const uint32_t unit = L->lc->unit[slots[r]];
        if (fits(L, unit, bytes)) {
            if (L->state[unit] & LANE_STALE)
                lane_expand(L, unit);
            chunk = place(chunk, L->file + (size_t)unit * LANE_UNIT, bytes);
            continue;
        }
        for (uint32_t lane = 0; lane < WARP; lane++) {
            uint64_t value = lane_value(L, unit, lane);
            memcpy(other + lane * bytes, &value, bytes);
        }
        chunk = place(chunk, other, bytes);
    }
}

/* Before what is written is known, and after. */
static void registers_out(struct lanes *L, const struct fragment *f, const uint32_t *slots, struct registers *to)
{
    const unsigned bytes = f->bits == 64 ? 8 : 4;
    uint8_t **chunk = to->chunks, *other = to->other;
    for (unsigned r = 0; r < f->registers; r++, other += WARP * bytes) {
        const uint32_t unit = L->lc->unit[slots[r]];
        chunk = place(chunk, fits(L, unit, bytes) ? L->file + (size_t)unit * LANE_UNIT : other, bytes);
    }
}

static void registers_done(struct lanes *L, const struct fragment *f, const uint32_t *slots,
                           const struct registers *from)
{
    const unsigned bytes = f->bits == 64 ? 8 : 4;
    const uint8_t *other = from->other;
    for (unsigned r = 0; r < f->registers; r++, other += WARP * bytes) {
        const uint32_t unit = L->lc->unit[slots[r]];
        if (fits(L, unit, bytes)) {
            L->state[unit] = LANE_VECTOR;
            continue;
        }
        for (uint32_t lane = 0; lane < WARP; lane++) {
            uint64_t value = 0;
            memcpy(&value, other + lane * bytes, bytes);
            lane_set(L, unit, lane, value);
        }
    }
}

/* ---- memory ---- */

/* Where the lines of an access lie, `bytes` each. */
struct lines {
    uint8_t *at[2 * WARP];
    unsigned count, bytes;
    bool global;
};

static bool all_same(const struct lanes *L, uint32_t unit, uint64_t *value)
{
    const void *v = L->file + (size_t)unit * LANE_UNIT;
    const bool wide = L->lc->unit_class[unit] == CLASS_WIDE;
    uint64_t differ = 0;
    *value = lane_value(L, unit, 0);
    if (!(L->state[unit] & (LANE_VECTOR | LANE_AFFINE)))
        return L->lc->unit_class[unit] != CLASS_BIT;
    if (!(L->state[unit] & LANE_VECTOR))
        return false;
    for (uint32_t lane = 1; lane < WARP; lane++)
        differ |= (wide ? ((const uint64_t *)v)[lane] : ((const uint32_t *)v)[lane]) ^ *value;
    return !differ;
}

/* In shared memory: its place there. */
static bool is_shared(enum mem_space space, uint64_t *address)
{
    if (space == MEM_GENERIC && *address >> 32 == PTX_SHARED_WINDOW >> 32)
        *address &= UINT32_MAX;
    else if (space != MEM_SHARED)
        return false;
    *address = narrow_address(MEM_SHARED, *address);
    return true;
}

/* Each line has a lane with its address. */
static bool find_rows(struct lanes *L, const struct insn *in, enum mem_space space, struct lines *l)
{
    const uint32_t unit = L->lc->unit[in->a], room = L->block->shared_bytes;
    for (unsigned i = 0; i < l->count; i++) {
        uint64_t address = lane_value(L, unit, i) + in->imm;
        if (!is_shared(space, &address) || address >= room || l->bytes > room - address || address % l->bytes)
            return false;
        l->at[i] = L->block->shared + address;
    }
    return true;
}

static bool find_lines(struct lanes *L, const struct insn *in, enum mem_space space, const struct fragment *f,
                       bool write, struct lines *l)
{
    uint64_t address, stride;
    if (!all_same(L, L->lc->unit[in->a], &address) || !all_same(L, L->lc->unit[in->c], &stride))
        return false;
    address += in->imm;
    stride = (uint64_t)(uint32_t)stride * f->bits / 8;
    const unsigned piece = l->bytes < PIECE ? l->bytes : PIECE;
    const uint64_t extent = stride * (l->count - 1) + l->bytes;
    uint8_t *first;
    if (is_shared(space, &address)) {
        if (address >= L->block->shared_bytes || extent > L->block->shared_bytes - address)
            return false;
        first = L->block->shared + address;
    } else {
        if ((space == MEM_GENERIC && address >= PTX_CODE_WINDOW) || (space != MEM_GENERIC && space != MEM_GLOBAL))
            return false;
        struct worker *w = L->worker;
        const struct range_cache *c = &w->cache[in->aux];
        const uint64_t last = extent - piece;
        if ((address - c->base >= c->span && !range_cache_fill(w, in, address, piece, write)) ||
            address - c->base >= c->span || last >= c->span - (address - c->base))
            return false;
        first = c->host + (address - c->base);
        l->global = true;
    }
    if ((address | stride) % piece)
        return false;
    for (unsigned i = 0; i < l->count; i++)
        l->at[i] = first + stride * i;
    return true;
}

/* What global memory's lines count for, and the bitmaps. */
static void note_lines(struct lanes *L, const struct insn *in, const struct lines *l, bool write)
{
    struct worker *w = L->worker;
    const struct range_cache *c = &w->cache[in->aux];
    *(write ? &w->counts.global_write_bytes : &w->counts.global_read_bytes) += l->count * l->bytes;
    for (unsigned i = 0; c->tracked && i < l->count; i++)
        range_track(w, c, (uint64_t)(l->at[i] - c->host), l->bytes, write);
}

static void copy_lines(const struct lines *l, uint8_t *rows, bool write)
{
    for (unsigned i = 0; i < l->count; i++)
        for (unsigned done = 0; done < l->bytes; done += PIECE, rows += PIECE) {
            uint8_t *at = l->at[i] + done;
            if (l->bytes < PIECE) {
                memcpy(write ? at : rows, write ? rows : at, l->bytes);
                rows -= PIECE - l->bytes;
            } else {
                memcpy(write ? at : rows, write ? rows : at, PIECE);
            }
        }
}

static bool move_memory(struct lanes *L, const struct insn *in, const struct matrix *m, const struct matrix_fast *fast)
{
    const bool write = m->kind == MATRIX_STORE;
    const struct fragment *f = write ? &m->a : &m->d;
    const enum mem_space space = (enum mem_space)m->space;
    struct lines l = {.count = m->lines, .bytes = m->line_elements * f->bits / 8u};
    struct registers registers;
    _Alignas(64) uint8_t rows[MATRIX_BYTES];
    const uint32_t *slots = L->code->extra + in->b;
    if (f->bits < 8)
        return false;
    if (!(m->addressed ? find_rows(L, in, space, &l) : find_lines(L, in, space, f, write, &l)))
        return false;
    if (l.global)
        note_lines(L, in, &l, write);
    if (write) {
        registers_in(L, f, slots + in->d, &registers);
        fast->gather(f, (const uint8_t *const *)registers.chunks, rows);
        copy_lines(&l, rows, true);
    } else {
        copy_lines(&l, rows, false);
        registers_out(L, f, slots, &registers);
        fast->spread(f, rows, registers.chunks);
        registers_done(L, f, slots, &registers);
    }
    return true;
}

/* ---- instructions ---- */

bool lane_matrix(struct lanes *L, const struct insn *in)
{
    const struct launch *launch = L->worker->launch;
    const struct matrix *m = &launch->module->matrices[in->mod];
    const struct matrix_fast *fast = matrix_fast_for(launch, m);
    if (!fast || L->mask != UINT32_MAX || L->numbers)
        return false;
    const uint32_t *written = L->code->extra + in->b, *slots = written + in->d;
    _Alignas(64) uint8_t rows[MATRIX_BYTES];
    struct registers a, b, c, d;
    switch (m->kind) {
    case MATRIX_MULTIPLY:
        registers_in(L, &m->a, slots, &a);
        registers_in(L, &m->b, slots + m->a.registers, &b);
        registers_in(L, &m->c, slots + m->a.registers + m->b.registers, &c);
        registers_out(L, &m->d, written, &d);
        fast->multiply(m, (const uint8_t *const *)a.chunks, (const uint8_t *const *)b.chunks,
                       (const uint8_t *const *)c.chunks, d.chunks);
        break;
    case MATRIX_TRANSPOSE:
        registers_in(L, &m->a, slots, &a);
        registers_out(L, &m->d, written, &d);
        fast->gather(&m->a, (const uint8_t *const *)a.chunks, rows);
        fast->spread(&m->d, rows, d.chunks);
        break;
    default:
        return move_memory(L, in, m, fast);
    }
    registers_done(L, &m->d, written, &d);
    return true;
}
