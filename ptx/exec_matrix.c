/* exec_matrix.c - matrix instructions. The warp's registers are gathered into tiles (plain matrices, one cell per
 * element), the meaning is worked out on tiles, and the result is dealt out again.
 *
 * Arithmetic: products are exact. Their sum with the element of c is kept to about 100 bits, in the order of k, and
 * rounded once, to nearest even, to the type of d: PTX leaves order and precision open, and this is what every device's
 * result approximates; launches may choose another sum (enum ptx_matrix_sum). f64: one fma after the other, in the
 * order of k. Integers: exact, then cut to 32 bits or saturated. */
#include <string.h>
#include "ptx/exec_check.h"
#include "ptx/exec_matrix.h"
#include "ptx/exec_tile.h"
#include "ptx/matrix_fast.h"

/* Cells that no lane fills are zero. */
static void tile_clear(const struct warp *w, struct tile *t, unsigned count)
{
    memset(t->bits, 0, count * sizeof *t->bits);
    if (w->checked)
        memset(t->shadow, 0, count * sizeof *t->shadow);
    if (w->shadow)
        memset(t->number, 0, count * sizeof *t->number);
}

/* ---- registers ---- */

static uint64_t low_bits(unsigned count)
{
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* The bytes of element `s` of a register, as bits of an undef word. */
static uint32_t bytes_of(const struct fragment *f, unsigned s)
{
    unsigned first = s * f->bits / 8, bytes = f->bits < 8 ? 1 : f->bits / 8;
    return ((1u << bytes) - 1) << first;
}

static void gather(const struct warp *w, const struct fragment *f, const uint32_t *slots, struct tile *out)
{
    const uint16_t *place = f->place;
    if (!w->whole)
        tile_clear(w, out, elements(f));
    for (unsigned lane = 0; lane < WARP; lane++, place += f->registers * f->per_register) {
        const struct thread *t = w->lanes[lane];
        if (!t)
            continue;
        const uint16_t *at = place;
        for (unsigned r = 0; r < f->registers; r++) {
            uint64_t bits = slot_at(t, slots[r])->u64;
            for (unsigned s = 0; s < f->per_register; s++, at++) {
                out->bits[*at] = bits >> s * f->bits & low_bits(f->bits);
                if (w->checked) {
                    uint32_t undef = t->shadow[t->base + slots[r]].undef, bytes = undef & bytes_of(f, s);
                    out->shadow[*at].origin = f->per_register == 1 ? t->shadow[t->base + slots[r]].origin : 0;
                    out->shadow[*at].undef = bytes ? (undef & ~0xffu) | bytes >> s * f->bits / 8 : 0;
                }
                if (w->shadow) {
                    const struct ptx_shadow_value *n = &t->numbers[t->base + slots[r]];
                    const struct number_pair *p = &t->pairs[t->base + slots[r]];
                    out->number[*at] = f->bits == 16 ? shadow_half_of(n, p, s) : f->bits < 16 ? NUMBER_PLAIN : *n;
                    if (f->bits < 16)
                        out->number[*at] = shadow_plain_of(n);
                    if (out->number[*at].kind >= PTX_SHADOW_F64)
                        out->pair[*at] = *p;
                }
            }
        }
    }
}

/* The number of a register made of two halves. */
static void join_halves(struct ptx_shadow_value *to, struct number_pair *pair, const struct ptx_shadow_value *low,
                        const struct ptx_shadow_value *high)
{
    if (low->kind == PTX_SHADOW_NONE && high->kind == PTX_SHADOW_NONE) {
        *to = *low;
        to->flags |= high->flags;
    } else if (low->kind == NUMBER_LOADED && high->kind == NUMBER_LOADED && high->wide == low->wide + 2) {
        *to = *low;
    } else {
        *to = (struct ptx_shadow_value){.kind = NUMBER_PAIR16, .flags = low->flags | high->flags};
        *pair = (struct number_pair){*low, *high};
    }
}

static void deal(const struct warp *w, const struct fragment *f, const uint32_t *slots, const struct tile *from)
{
    const uint16_t *place = f->place;
    for (unsigned lane = 0; lane < WARP; lane++, place += f->registers * f->per_register) {
        struct thread *t = w->lanes[lane];
        if (!t)
            continue;
        const uint16_t *at = place;
        for (unsigned r = 0; r < f->registers; r++, at += f->per_register) {
            uint64_t bits = 0;
            struct shadow shadow = {0};
            for (unsigned s = 0; s < f->per_register; s++) {
                bits |= from->bits[at[s]] << s * f->bits;
                if (!w->checked || !from->shadow[at[s]].undef)
                    continue;
                uint32_t undef = from->shadow[at[s]].undef;
                shadow.undef = (undef & ~0xffu) | (shadow.undef & 0xff) | (undef & 0xff) << s * f->bits / 8;
            }
            thread_set(t, slots[r], bits);
            if (w->checked) {
                shadow.origin = f->bits == 64 ? from->shadow[*at].origin : 0;
                t->shadow[t->base + slots[r]] = shadow;
            }
            if (!w->shadow || f->bits < 16)
                continue;
            struct ptx_shadow_value *n = &t->numbers[t->base + slots[r]];
            struct number_pair *p = &t->pairs[t->base + slots[r]];
            if (f->bits == 16) {
                join_halves(n, p, &from->number[at[0]], &from->number[at[1]]);
            } else {
                *n = from->number[*at];
                if (n->kind >= PTX_SHADOW_F64)
                    *p = from->pair[*at];
            }
        }
    }
}

/* ---- memory ---- */

static enum mem_space resolve(enum mem_space space, uint64_t *address)
{
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

static uint8_t *locate(const struct warp *w, struct thread *t, uint64_t address, uint32_t bytes, bool write)
{
    enum mem_space space = (enum mem_space)w->matrix->space;
    if (w->checked)
        return check_access(w->worker, w->block, t, w->in, &t->shadow[t->base + w->in->a], space, address, bytes,
                            write);
    space = resolve(space, &address);
    return space == MEM_GLOBAL ? global_find(w->worker, w->block, t, w->in, address, bytes, write, false)
                               : space_find(w->worker, w->block, t, w->in, space, address, bytes, write, false);
}

/* One unit of memory (1, 2, 4 or 8 bytes at `p`, NULL: a bad access) into a cell, by way of the slot to work in. */
static void load_unit(const struct warp *w, struct thread *t, uint64_t address, uint32_t bytes, const uint8_t *p,
                      struct tile *out, unsigned cell)
{
    enum mem_space space = (enum mem_space)w->matrix->space;
    uint32_t work = w->extra[w->in->d - 1];
    uint64_t value = 0;
    if (p)
        memcpy(&value, p, bytes);
    out->bits[cell] = value;
    if (w->checked)
        check_loaded(w->worker, w->block, t, w->in, &out->shadow[cell], space, address, bytes, p, value);
    if (w->shadow) {
        shadow_loaded(w->worker, w->block, t, w->in, space, address, bytes, work, p != NULL);
        out->number[cell] = t->numbers[t->base + work];
        out->pair[cell] = t->pairs[t->base + work];
    }
}

static void store_unit(const struct warp *w, struct thread *t, uint64_t address, uint32_t bytes, uint8_t *p,
                       const struct tile *from, unsigned cell)
{
    enum mem_space space = (enum mem_space)w->matrix->space;
    uint32_t work = w->extra[w->in->d - 1];
    if (w->checked)
        check_stored(w->worker, w->block, t, w->in, &from->shadow[cell], space, address, bytes, p, from->bits[cell]);
    memcpy(p, &from->bits[cell], bytes);
    if (w->shadow) {
        t->numbers[t->base + work] = from->number[cell];
        if (from->number[cell].kind >= PTX_SHADOW_F64)
            t->pairs[t->base + work] = from->pair[cell];
        shadow_stored(w->worker, w->block, t, w->in, space, address, bytes, work);
    }
}

static unsigned cell_of(const struct matrix *m, const struct fragment *f, unsigned line, unsigned i)
{
    return m->columns ? i * f->columns + line : line * f->columns + i;
}

/* s4: two elements of a byte. */
static void split_byte(const struct warp *w, struct tile *t, unsigned low, unsigned high)
{
    uint64_t byte = t->bits[low];
    t->bits[low] = byte & 0xf;
    t->bits[high] = byte >> 4;
    if (w->checked)
        t->shadow[high] = t->shadow[low];
    if (w->shadow)
        t->number[high] = t->number[low];
}

/* Moves memory into or out of a tile, in pieces of at most 16 bytes: what PTX's and CUDA's rules for base and stride
 * keep aligned. Lanes take turns with the pieces of wmma; the rows of ldmatrix and stmatrix belong to their lanes.
 * False: the launch ended. */
static bool move_memory(const struct warp *w, const struct fragment *f, struct tile *tile)
{
    const struct matrix *m = w->matrix;
    const bool write = m->kind == MATRIX_STORE;
    unsigned unit = f->bits < 8 ? 1 : f->bits / 8, per_unit = f->bits < 8 ? 8 / f->bits : 1;
    unsigned bytes = m->line_elements * f->bits / 8u, piece = bytes < 16 ? bytes : 16, turn = 0;
    for (unsigned line = 0; line < m->lines; line++)
        for (unsigned done = 0; done < bytes; done += piece, turn++) {
            struct thread *t = w->lanes[m->addressed ? line : turn % WARP];
            if (!t && m->addressed)
                continue;
            if (!t)
                t = w->first;
            uint64_t address = slot_at(t, w->in->a)->u64 + w->in->imm + done;
            if (!m->addressed)
                address += (uint64_t)slot_at(t, w->in->c)->u32 * f->bits / 8 * line;
            uint8_t *p = locate(w, t, address, piece, write);
            if (!p && launch_stopped(w->worker->launch))
                return false;
            for (unsigned at = 0; at < piece; at += unit) {
                unsigned cell = cell_of(m, f, line, (done + at) / unit * per_unit);
                if (!write)
                    load_unit(w, t, address + at, unit, p ? p + at : NULL, tile, cell);
                else if (p)
                    store_unit(w, t, address + at, unit, p + at, tile, cell);
                if (per_unit == 2)
                    split_byte(w, tile, cell, cell_of(m, f, line, (done + at) / unit * 2 + 1));
            }
        }
    return true;
}

/* ---- products: what is known of them beside their values (exec_product.c) ---- */

/* An element is undefined when something it is made of is. Nothing is reported yet: rows behind the end of a matrix are
 * often multiplied and then thrown away. */
static void multiply_undefined(const struct matrix *x, const struct product *p)
{
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++) {
            uint32_t undef = p->c->shadow[cell_c(p, i, j)].undef;
            for (unsigned k = 0; k < p->k && !undef; k++) {
                undef = p->a->shadow[cell_a(p, i, k)].undef;
                if (!undef)
                    undef = p->b->shadow[cell_b(p, k, j)].undef;
            }
            uint32_t all = (1u << x->d.bits / 8) - 1;
            p->d->shadow[cell_c(p, i, j)] = (struct shadow){0, undef ? (undef & ~0xffu) | all : 0};
        }
}

/* ---- products of shadows ---- */

static enum ptx_shadow_kind number_kind(enum matrix_type type)
{
    return type == MATRIX_F16    ? PTX_SHADOW_F16
           : type == MATRIX_BF16 ? PTX_SHADOW_BF16
           : type == MATRIX_F64  ? PTX_SHADOW_F64
                                 : PTX_SHADOW_F32;
}

static struct operand_value number_of(const struct warp *w, enum matrix_type type, const struct tile *t, unsigned cell)
{
    union slot v = {.u64 = t->bits[cell]};
    return operand_value(w->worker, number_kind(type), &t->number[cell], &t->pair[cell], v,
                         decode(type, t->bits[cell]));
}

/* How much of the error of a sum a product brings in; no finite number comes before any. */
static double weight(const struct operand_value *a, const struct operand_value *b)
{
    double e = fabs(a->actual - a->wide) * fabs(b->wide) + fabs(b->actual - b->wide) * fabs(a->actual);
    return isfinite(a->actual) && isfinite(b->actual) && e == e ? e : INFINITY;
}

/* Which lane holds an element of the result first. */
static struct thread *owner(const struct warp *w, const struct fragment *f, unsigned cell)
{
    unsigned each = (unsigned)f->registers * f->per_register;
    for (unsigned lane = 0; lane < WARP; lane++)
        for (unsigned e = 0; w->lanes[lane] && e < each; e++)
            if (f->place[lane * each + e] == cell)
                return w->lanes[lane];
    return w->first;
}

static void multiply_number(const struct warp *w, const struct product *p, const struct operand_value *a,
                            const struct operand_value *b, unsigned cell)
{
    const struct matrix *x = w->matrix;
    struct operand_value o[3] = {a[0], b[0], number_of(w, x->c.type, p->c, cell)};
    const bool doubles = x->d.type == MATRIX_F64;
    struct dd wide = {o[2].wide, o[2].low}, exact = dd_of(o[2].actual);
    double most = -1;
    uint32_t depth = o[2].depth;
    unsigned flags = o[2].flags;
    for (unsigned k = 0; k < p->k; k++, a++, b += p->n) {
        if (doubles) {
            wide = dd_fma((struct dd){a->wide, a->low}, (struct dd){b->wide, b->low}, wide);
            exact = dd_fma(dd_of(a->actual), dd_of(b->actual), exact);
        } else {
            wide.high = __builtin_fma(a->wide, b->wide, wide.high);
            exact.high = __builtin_fma(a->actual, b->actual, exact.high);
        }
        depth = a->depth > depth ? a->depth : depth;
        depth = b->depth > depth ? b->depth : depth;
        flags |= a->flags | b->flags;
        double e = weight(a, b);
        if (e > most) {
            most = e;
            o[0] = *a;
            o[1] = *b;
        }
    }
    static const struct {
        double bound, floor;
        enum precision precision;
    } limits[] = {
        [PTX_SHADOW_F16] = {BOUND_F16, FLOOR_F16, PRECISION_F16},
        [PTX_SHADOW_F32] = {BOUND_F32, FLOOR_F32, PRECISION_F32},
        [PTX_SHADOW_F64] = {BOUND_F64, FLOOR_F64, PRECISION_F64},
    };
    enum ptx_shadow_kind kind = number_kind(x->d.type);
    double actual = decode(x->d.type, p->d->bits[cell]);
    struct ptx_shadow_value r = {wide.high, 0, deeper(depth, 0), kind & 0xf, flags & 0xf};
    /* Devices cut off while they add, also where the sum is exact. */
    r.flags |= !doubles || wide.high != actual || wide.low != 0 ? PTX_SHADOW_INEXACT : 0;
    if (!(dd_distance(actual, wide) <= limits[kind].bound * fabs(wide.high) + limits[kind].floor)) {
        struct judgement j = {o, 3, HOW_FMA, limits[kind].precision, actual, wide, exact};
        r.origin = shadow_judge(w->worker, w->block, owner(w, &x->d, cell), w->in, &j);
    }
    p->d->number[cell] = r;
    p->d->pair[cell].low.wide = wide.low;
}

enum { MAX_SIDE = 32 };

static void multiply_numbers(const struct warp *w, const struct product *p)
{
    const struct matrix *x = w->matrix;
    struct operand_value a[MAX_SIDE], b[MAX_SIDE * MAX_SIDE];
    for (unsigned k = 0; k < p->k; k++)
        for (unsigned j = 0; j < p->n; j++)
            b[k * p->n + j] = number_of(w, x->b.type, p->b, cell_b(p, k, j));
    for (unsigned i = 0; i < p->m; i++) {
        for (unsigned k = 0; k < p->k; k++)
            a[k] = number_of(w, x->a.type, p->a, cell_a(p, i, k));
        for (unsigned j = 0; j < p->n; j++)
            multiply_number(w, p, a, b + j, cell_c(p, i, j));
    }
}

/* Integers have no shadow, but what theirs depend on goes on. */
static void mark_integers(const struct matrix *x, const struct product *p)
{
    unsigned flags = 0;
    for (unsigned i = 0; i < elements(&x->a); i++)
        flags |= p->a->number[i].flags;
    for (unsigned i = 0; i < elements(&x->b); i++)
        flags |= p->b->number[i].flags;
    for (unsigned i = 0; i < elements(&x->d); i++)
        p->d->number[i] = (struct ptx_shadow_value){.flags = (flags | p->c->number[i].flags) & FLAGS_SPREADING};
}

/* ---- instructions ---- */

/* Registers of a fragment as matrix_fast.h wants them. */
struct registers {
    _Alignas(64) uint8_t bytes[MATRIX_BYTES];
    uint8_t *chunks[MATRIX_CHUNKS];
};

static void registers_start(struct registers *r)
{
    for (unsigned i = 0; i < MATRIX_CHUNKS; i++)
        r->chunks[i] = r->bytes + i * MATRIX_CHUNK;
}

/* False: some hold undefined bytes. */
static bool gather_registers(const struct warp *w, const struct fragment *f, const uint32_t *slots,
                             struct registers *to)
{
    const unsigned bytes = f->bits == 64 ? 8 : 4;
    uint8_t *out = to->bytes;
    uint32_t undef = 0;
    registers_start(to);
    for (unsigned r = 0; r < f->registers; r++)
        for (unsigned lane = 0; lane < WARP; lane++, out += bytes) {
            const struct thread *t = w->lanes[lane];
            memcpy(out, slot_at(t, slots[r]), bytes);
            if (w->checked)
                undef |= t->shadow[t->base + slots[r]].undef;
        }
    return !undef;
}

/* The values at once, where nothing else is to be known of them. False: nothing was done. */
static bool multiply_at_once(const struct warp *w)
{
    const struct matrix *x = w->matrix;
    const struct matrix_fast *fast = matrix_fast_for(w->worker->launch, x);
    struct registers a, b, c, d;
    const uint32_t *slots = w->extra + w->in->d;
    if (!fast || !w->whole || w->shadow || !gather_registers(w, &x->a, slots, &a) ||
        !gather_registers(w, &x->b, slots + x->a.registers, &b) ||
        !gather_registers(w, &x->c, slots + x->a.registers + x->b.registers, &c))
        return false;
    registers_start(&d);
    fast->multiply(x, (const uint8_t *const *)a.chunks, (const uint8_t *const *)b.chunks,
                   (const uint8_t *const *)c.chunks, d.chunks);
    const unsigned bytes = x->d.bits == 64 ? 8 : 4;
    const uint8_t *from = d.bytes;
    for (unsigned i = 0; i < x->d.registers; i++)
        for (unsigned lane = 0; lane < WARP; lane++, from += bytes) {
            uint64_t value = 0;
            memcpy(&value, from, bytes);
            thread_set(w->lanes[lane], w->extra[i], value);
        }
    return true;
}

static void multiply(const struct warp *w)
{
    const struct matrix *x = w->matrix;
    struct tile a, b, c, d;
    const uint32_t *slots = w->extra + w->in->d;
    if (multiply_at_once(w))
        return;
    gather(w, &x->a, slots, &a);
    gather(w, &x->b, slots + x->a.registers, &b);
    gather(w, &x->c, slots + x->a.registers + x->b.registers, &c);
    struct product p = {&a, &b, &c, &d, x->d.rows, x->d.columns, x->a.columns, 0};
    for (; p.batch < x->d.batches; p.batch++) {
        product_values(w, &p);
        if (w->checked)
            multiply_undefined(x, &p);
        if (w->shadow && x->d.type != MATRIX_S32)
            multiply_numbers(w, &p);
    }
    if (w->shadow && x->d.type == MATRIX_S32)
        mark_integers(x, &p);
    deal(w, &x->d, w->extra, &d);
}

static void load(const struct warp *w)
{
    struct tile t;
    if (!w->whole)
        tile_clear(w, &t, elements(&w->matrix->d));
    if (move_memory(w, &w->matrix->d, &t))
        deal(w, &w->matrix->d, w->extra, &t);
}

static void store(const struct warp *w)
{
    struct tile t;
    gather(w, &w->matrix->a, w->extra + w->in->d, &t);
    move_memory(w, &w->matrix->a, &t);
}

static void transpose(const struct warp *w)
{
    struct tile t;
    gather(w, &w->matrix->a, w->extra + w->in->d, &t);
    deal(w, &w->matrix->d, w->extra, &t);
}

void matrix_perform(struct block *b, struct thread *const lanes[WARP], const struct insn *in)
{
    const struct launch *l = b->worker->launch;
    struct warp w = {.worker = b->worker, .block = b, .lanes = lanes, .in = in, .whole = true};
    for (unsigned i = WARP; i-- > 0;) {
        w.whole &= lanes[i] != NULL;
        w.first = lanes[i] ? lanes[i] : w.first;
    }
    w.checked = l->checked;
    w.shadow = l->shadow;
    w.matrix = &l->module->matrices[in->mod];
    w.extra = w.first->code->extra + in->b;
    if (w.checked) /* whoever reads what a lane wrote before has waited for it */
        check_warp_sync(b, lanes);
    if (!w.whole) { /* PTX: all lanes must take part */
        fault_simple(b->worker, b, w.first, PTX_FAULT_BARRIER);
        if (launch_stopped(l))
            return;
    }
    switch (w.matrix->kind) {
    case MATRIX_LOAD:
        load(&w);
        break;
    case MATRIX_STORE:
        store(&w);
        break;
    case MATRIX_MULTIPLY:
        multiply(&w);
        break;
    case MATRIX_TRANSPOSE:
        transpose(&w);
        break;
    }
}
