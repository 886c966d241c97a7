/* exec_rounding.c - rounding by chance: the neighbour that is nearer the more often. */
#include <string.h>
#include "ptx/exec_rounding.h"

uint64_t rounding_start(uint64_t seed, uint64_t block, uint32_t thread)
{
    uint64_t state = seed ^ (block * MAX_BLOCK_THREADS + thread) * UINT64_C(0xd6e8feb86659fd93);
    return random_next(&state);
}

/* In [0, 1). */
static double draw(struct thread *t)
{
    return (double)(random_next(&t->random) >> 11) * 0x1p-53;
}

static double noisy(struct thread *t, double exact, double noise)
{
    return noise > 0 ? exact + noise * (2 * draw(t) - 1) : exact;
}

/* Is the neighbour taken, which is `gap` away in the direction of the true value, itself `off` away? */
static bool takes_neighbour(struct thread *t, double off, double gap)
{
    return off <= gap && draw(t) * gap < off;
}

uint32_t rounding_single(struct thread *t, uint32_t result, double exact, double noise)
{
    double x = noisy(t, exact, noise), r = (double)float32(result);
    if (noise > 0 && fabs(x) < INFINITY && fabs(r) < INFINITY) {
        result = bits32((float)x);
        r = (double)float32(result);
    }
    if (x == r || !(fabs(x) < INFINITY) || !(fabs(r) < INFINITY) || r == 0)
        return result;
    uint32_t other = result + ((x > r) == (r > 0) ? 1 : UINT32_MAX);
    double neighbour = (double)float32(other);
    return fabs(neighbour) < INFINITY && takes_neighbour(t, fabs(x - r), fabs(neighbour - r)) ? other : result;
}

static double half_value(uint16_t h, bool bf16)
{
    return bf16 ? (double)bfloat_to_float(h) : (double)half_to_float(h);
}

uint16_t rounding_half(struct thread *t, uint16_t result, bool bf16, double exact, double noise)
{
    double x = noisy(t, exact, noise), r = half_value(result, bf16);
    if (noise > 0 && fabs(x) < INFINITY && fabs(r) < INFINITY) {
        result = narrow_half(x, bf16 ? HALF_BF16 : 0);
        r = half_value(result, bf16);
    }
    if (x == r || !(fabs(x) < INFINITY) || !(fabs(r) < INFINITY) || r == 0)
        return result;
    uint16_t other = (uint16_t)(result + ((x > r) == (r > 0) ? 1 : UINT16_MAX));
    double neighbour = half_value(other, bf16);
    return fabs(neighbour) < INFINITY && takes_neighbour(t, fabs(x - r), fabs(neighbour - r)) ? other : result;
}

uint32_t rounding_tf32(struct thread *t, uint32_t result, double exact)
{
    const uint32_t step = 1u << 13;
    double r = (double)float32(result);
    if (exact == r || !(fabs(exact) < INFINITY) || !(fabs(r) < INFINITY) || r == 0)
        return result;
    uint32_t other = (exact > r) == (r > 0) ? result + step : result - step;
    double neighbour = (double)float32(other);
    return fabs(neighbour) < INFINITY && takes_neighbour(t, fabs(exact - r), fabs(neighbour - r)) ? other : result;
}

uint64_t rounding_double(struct thread *t, uint64_t result, struct dd exact, double noise)
{
    double r = float64(result);
    if (!(fabs(exact.high) < INFINITY) || !(fabs(r) < INFINITY))
        return result;
    if (noise > 0) {
        exact = dd_add(exact, dd_of(noise * (2 * draw(t) - 1)));
        r = exact.high;
        result = bits64(r);
    }
    double off = (exact.high - r) + exact.low;
    if (off == 0 || r == 0)
        return result;
    uint64_t other = result + ((off > 0) == (r > 0) ? 1 : UINT64_MAX);
    double neighbour = float64(other);
    return fabs(neighbour) < INFINITY && takes_neighbour(t, fabs(off), fabs(neighbour - r)) ? other : result;
}

/* ---- half precision ---- */

static double exact_half(unsigned op, unsigned mod, double a, double b, double c)
{
    switch (op) {
#define HALF(id, id_x2, operands, how, expression)                                                                     \
    case OP_##id:                                                                                                      \
    case OP_##id_x2:                                                                                                   \
        return expression;
#include "ptx/shadow.def"
    default:
        return a;
    }
}

static bool is_packed(unsigned op)
{
    switch (op) {
#define HALF(id, id_x2, operands, how, expression) case OP_##id_x2:
#include "ptx/shadow.def"
        return true;
    default:
        return false;
    }
}

union slot rounding_halves(struct thread *t, const struct insn *in, const union slot *R, union slot result)
{
    bool bf16 = in->mod & HALF_BF16;
    uint32_t out = 0;
    for (unsigned h = 0; h < (is_packed(in->op) ? 2u : 1u); h++) {
        double o[3];
        const uint32_t slots[3] = {in->a, in->b, in->c};
        for (unsigned i = 0; i < 3; i++)
            o[i] = half_value((uint16_t)(R[slots[i]].u32 >> 16 * h), bf16);
        double exact = exact_half(in->op, in->mod, o[0], o[1], o[2]);
        uint16_t half = (uint16_t)(result.u32 >> 16 * h);
        out |= (uint32_t)rounding_half(t, half, bf16, exact, rounding_noise(in->op, in->mod, exact)) << 16 * h;
    }
    return (union slot){.u64 = out};
}

/* ---- atomics ---- */

static uint64_t added(struct thread *t, unsigned type, uint64_t old, uint64_t b)
{
    union slot x = {.u64 = old}, y = {.u64 = b};
    if (type == ATOM_F32)
        return rounding_single(t, bits32(canonical32(x.f32 + y.f32)), (double)x.f32 + (double)y.f32, 0);
    if (type == ATOM_F64)
        return rounding_double(t, bits64(x.f64 + y.f64), dd_two_sum(x.f64, y.f64), 0);
    bool bf16 = type == ATOM_BF16 || type == ATOM_BF16X2, two = type == ATOM_F16X2 || type == ATOM_BF16X2;
    uint64_t out = 0;
    for (unsigned h = 0; h <= two; h++) {
        uint16_t p = (uint16_t)(old >> 16 * h), q = (uint16_t)(b >> 16 * h);
        uint16_t sum = add_half(p, q, bf16 ? HALF_BF16 : 0);
        out |= (uint64_t)rounding_half(t, sum, bf16, half_value(p, bf16) + half_value(q, bf16), 0) << 16 * h;
    }
    return out;
}

uint64_t rounding_atomic(struct worker *w, struct thread *t, unsigned mod, uint8_t *at, uint64_t b, uint64_t c)
{
    unsigned type = mod >> 4 & 0xf, op = mod & 0xf;
    if (op != ATOM_ADD || type < ATOM_F32 || type > ATOM_BF16X2)
        return atom_apply(w, mod, at, b, c);
    /* A compare-and-swap of the width that is meant, until nobody came between. */
    uint32_t bytes = atom_bytes(mod);
    unsigned swap = (mod & ~0xffu) | ATOM_CAS | (bytes == 8 ? ATOM_U64 : bytes == 4 ? ATOM_U32 : ATOM_B16) << 4;
    for (;;) {
        uint64_t old = 0;
        memcpy(&old, at, bytes);
        if (atom_apply(w, swap, at, old, added(t, type, old, b)) == old)
            return old;
    }
}
