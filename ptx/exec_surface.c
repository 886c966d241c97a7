/* exec_surface.c - surfaces: loads, stores and reductions at coordinates of an array. */
#include <string.h>
#include "ptx/arith.h"
#include "ptx/exec_texture.h"

struct surface_place {
    int64_t x, y, z; /* x in bytes; z: the layer of a layered surface */
};

static struct surface_place read_place(const struct texture_access *x, const uint64_t **in, uint32_t scale)
{
    const struct texture_op *op = x->op;
    struct surface_place p = {0};
    if (op->layered)
        p.z = (uint32_t) * (*in)++;
    p.x = (int64_t)(int32_t) * (*in)++ * scale;
    if (op->dimensions > 1)
        p.y = (int32_t) * (*in)++;
    if (op->dimensions > 2)
        p.z = (int32_t) * (*in)++;
    return p;
}

static int64_t at_most(int64_t x, int64_t last)
{
    return x < 0 ? 0 : x > last ? last : x;
}

static void report(const struct texture_access *x, enum ptx_fault_kind kind, const struct surface_place *p,
                   uint32_t bytes)
{
    const struct ptx_texture_level *l = &x->texture->levels[0];
    struct ptx_fault f = {
        .kind = kind,
        .space = PTX_SPACE_SURFACE,
        .address = x->thread->stack[x->thread->base + x->in->a].u64,
        .bytes = bytes,
        .offset = p->z * (int64_t)l->slice_bytes + p->y * (int64_t)l->row_bytes + p->x,
    };
    f.access.write = x->op->kind != SURFACE_LOAD;
    f.access.atomic = x->op->kind == SURFACE_REDUCE;
    fault_report(x->worker, x->block, x->thread, x->in, &f);
}

/* The memory of `bytes` bytes at `p`; NULL: nothing is there, and *fault says whether that was reported. */
static uint8_t *find(const struct texture_access *x, struct surface_place p, uint32_t bytes, bool *fault)
{
    const struct ptx_texture_level *l = &x->texture->levels[0];
    int64_t row = (int64_t)l->width * texel_bytes(x->texture), rows = l->height ? l->height : 1;
    int64_t slices = x->op->layered ? x->texture->layers : x->op->dimensions > 2 ? l->depth : 1;
    *fault = true;
    if (p.x % bytes) {
        report(x, PTX_FAULT_MISALIGNED, &p, bytes);
        return NULL;
    }
    if (p.x < 0 || p.x + bytes > row || p.y < 0 || p.y >= rows || p.z < 0 || p.z >= slices) {
        if (x->op->bounds == BOUNDS_TRAP)
            report(x, PTX_FAULT_OUT_OF_BOUNDS, &p, bytes);
        *fault = x->op->bounds == BOUNDS_TRAP;
        if (x->op->bounds != BOUNDS_CLAMP || row < bytes || slices < 1)
            return NULL;
        p.x = at_most(p.x, (row / bytes - 1) * bytes);
        p.y = at_most(p.y, rows - 1);
        p.z = at_most(p.z, slices - 1);
    }
    return (uint8_t *)l->host + (uint64_t)p.z * l->slice_bytes + (uint64_t)p.y * l->row_bytes + (uint64_t)p.x;
}

/* ---- sust.p ---- */

static int64_t limited(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* A value of 32 bits as an element of the surface: integers saturate. */
static uint32_t encode(const struct ptx_texture *t, uint32_t value)
{
    if (t->kind == PTX_TEXEL_FLOAT)
        return t->bits == 16 ? double_to_half((double)float32(value), ROUND_RN) : value;
    if (t->bits == 32)
        return value;
    int64_t half = INT64_C(1) << (t->bits - 1);
    return t->kind == PTX_TEXEL_SIGNED ? (uint32_t)limited((int32_t)value, -half, half - 1)
                                       : (uint32_t)limited(value, 0, 2 * half - 1);
}

static void store_formatted(const struct texture_access *x, uint8_t *p, const uint64_t *values)
{
    const struct ptx_texture *t = x->texture;
    for (unsigned c = 0; c < t->channels; c++) {
        uint32_t element = c < x->op->elements ? encode(t, (uint32_t)values[c]) : 0;
        memcpy(p + c * t->bits / 8u, &element, t->bits / 8u);
    }
}

/* ---- accesses ---- */

/* Copies of a constant size are no calls. */
static void copy(void *to, const void *from, unsigned bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, bytes);
}

static void load(const struct texture_access *x, const uint8_t *p)
{
    const uint32_t *slots = x->thread->code->extra + x->in->b;
    for (unsigned i = 0; i < x->op->elements; i++) {
        uint64_t value = 0;
        copy(&value, p + i * x->op->bytes, x->op->bytes);
        x->thread->stack[x->thread->base + slots[i]].u64 = value;
    }
}

/* The signedness of sured.p is the surface's. */
static unsigned reduction(const struct texture_access *x)
{
    unsigned mod = x->op->atomic, type = mod >> 4;
    if (x->op->formatted && x->texture->kind == PTX_TEXEL_SIGNED)
        type = type == ATOM_U64 ? ATOM_S64 : ATOM_S32;
    return (mod & 0xf) | type << 4;
}

bool surface_access(struct texture_access *x, const uint64_t *in)
{
    const struct texture_op *op = x->op;
    bool formatted_store = op->formatted && op->kind == SURFACE_STORE, fault;
    uint32_t bytes = formatted_store ? texel_bytes(x->texture) : (uint32_t)op->bytes * op->elements;
    struct surface_place at = read_place(x, &in, op->formatted ? texel_bytes(x->texture) : 1);
    uint8_t *p = find(x, at, bytes, &fault);
    if (!p)
        return !fault || x->checked || x->shadow;
    if (op->kind == SURFACE_LOAD)
        load(x, p);
    else if (op->kind == SURFACE_REDUCE)
        (void)atom_apply(x->worker, reduction(x), p, in[0], 0);
    else if (formatted_store)
        store_formatted(x, p, in);
    else
        for (unsigned i = 0; i < op->elements; i++)
            copy(p + i * op->bytes, &in[i], op->bytes);
    return true;
}
