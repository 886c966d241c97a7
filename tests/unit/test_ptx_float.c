/* Floating-point instructions against MPFR, bit for bit; approximate ones against the bound that PTX states. */
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_format.h"
#include "tests/unit/ptx_kit.h"

enum op { ADD, SUB, MUL, FMA, DIV, RCP, SQRT, RINT, COPY, MIN, MAX, NEG, ABS };
enum flags { FTZ = 1, SAT = 2, RELU = 4, NAN_PROPAGATES = 8, XORSIGN = 16, APPROX_DIV = 32 };

static double compute(enum op op, const struct format *f, mpfr_rnd_t rnd, double a, double b, double c)
{
    mpfr_t x, y, z, r;
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_inits2(53, x, y, z, (mpfr_ptr)0);
    mpfr_init2(r, f->precision);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    mpfr_set_d(z, c, MPFR_RNDN);
    mpfr_set_emin(f->emin);
    mpfr_set_emax(f->emax);
    int t = 0;
    switch (op) {
    case ADD:
        t = mpfr_add(r, x, y, rnd);
        break;
    case SUB:
        t = mpfr_sub(r, x, y, rnd);
        break;
    case MUL:
        t = mpfr_mul(r, x, y, rnd);
        break;
    case FMA:
        t = mpfr_fma(r, x, y, z, rnd);
        break;
    case DIV:
        t = mpfr_div(r, x, y, rnd);
        break;
    case RCP:
        t = mpfr_ui_div(r, 1, x, rnd);
        break;
    case SQRT:
        t = mpfr_sqrt(r, x, rnd);
        break;
    case RINT:
        t = mpfr_rint(r, x, rnd);
        break;
    default:
        t = mpfr_set(r, x, rnd);
    }
    t = mpfr_check_range(r, t, rnd);
    mpfr_subnormalize(r, t, rnd);
    double result = mpfr_get_d(r, MPFR_RNDN);
    mpfr_clears(x, y, z, r, (mpfr_ptr)0);
    return result;
}

static double minmax(enum op op, unsigned flags, double a, double b)
{
    int sign = (signbit(a) != 0) ^ (signbit(b) != 0);
    if (flags & XORSIGN) {
        a = fabs(a);
        b = fabs(b);
    }
    double r;
    if (isnan(a) || isnan(b))
        r = (isnan(a) && isnan(b)) || flags & NAN_PROPAGATES ? NAN : isnan(a) ? b : a;
    else if (a == b)
        r = (op == MIN) == (signbit(a) != 0) ? a : b;
    else
        r = (op == MIN) == (a < b) ? a : b;
    return flags & XORSIGN && !isnan(r) ? copysign(r, sign ? -1.0 : 1.0) : r;
}

struct row {
    const char *instruction;
    int arity;
    enum op op;
    const struct format *to, *from;
    mpfr_rnd_t rnd;
    unsigned flags;
};

// clang-format off
/* A rounding in front of `type` for the four directions. */
#define DIRECTIONS(name, suffix, arity, op, f)                                                                         \
    {name ".rn" suffix, arity, op, &f, &f, MPFR_RNDN, 0}, {name ".rz" suffix, arity, op, &f, &f, MPFR_RNDZ, 0},          \
        {name ".rm" suffix, arity, op, &f, &f, MPFR_RNDD, 0}, {name ".rp" suffix, arity, op, &f, &f, MPFR_RNDU, 0}
#define ARITHMETIC(name, operands, arity, op)                                                                          \
    DIRECTIONS(name, ".f32 " operands, arity, op, F32), DIRECTIONS(name, ".f64 " operands, arity, op, F64),              \
        {name ".rn.ftz.f32 " operands, arity, op, &F32, &F32, MPFR_RNDN, FTZ},                                           \
        {name ".rz.ftz.f32 " operands, arity, op, &F32, &F32, MPFR_RNDZ, FTZ}
#define SATURATED(name, operands, arity, op)                                                                           \
    {name ".rn.sat.f32 " operands, arity, op, &F32, &F32, MPFR_RNDN, SAT},                                              \
        {name ".rp.ftz.sat.f32 " operands, arity, op, &F32, &F32, MPFR_RNDU, FTZ | SAT}
#define HALF(name, operands, arity, op)                                                                                \
    {name ".f16 " operands, arity, op, &F16, &F16, MPFR_RNDN, 0}, {name ".ftz.f16 " operands, arity, op, &F16, &F16, MPFR_RNDN, FTZ}, \
        {name ".sat.f16 " operands, arity, op, &F16, &F16, MPFR_RNDN, SAT}, {name ".bf16 " operands, arity, op, &BF16, &BF16, MPFR_RNDN, 0}
#define TWO "%d, %a, %b;"
#define THREE "%d, %a, %b, %c;"
#define ONE "%d, %a;"
#define ROUND_TO_INT(type, f)                                                                                          \
    {"cvt.rni." type "." type " " ONE, 1, RINT, &f, &f, MPFR_RNDN, 0}, {"cvt.rzi." type "." type " " ONE, 1, RINT, &f, &f, MPFR_RNDZ, 0}, \
        {"cvt.rmi." type "." type " " ONE, 1, RINT, &f, &f, MPFR_RNDD, 0}, {"cvt.rpi." type "." type " " ONE, 1, RINT, &f, &f, MPFR_RNDU, 0}
#define NARROW(to, from, tf, ff)                                                                                       \
    {"cvt.rn." to "." from " " ONE, 1, COPY, &tf, &ff, MPFR_RNDN, 0}, {"cvt.rz." to "." from " " ONE, 1, COPY, &tf, &ff, MPFR_RNDZ, 0}

static const struct row rows[] = {
    ARITHMETIC("add", TWO, 2, ADD),
    ARITHMETIC("sub", TWO, 2, SUB),
    ARITHMETIC("mul", TWO, 2, MUL),
    ARITHMETIC("fma", THREE, 3, FMA),
    ARITHMETIC("mad", THREE, 3, FMA),
    ARITHMETIC("div", TWO, 2, DIV),
    ARITHMETIC("rcp", ONE, 1, RCP),
    ARITHMETIC("sqrt", ONE, 1, SQRT),
    SATURATED("add", TWO, 2, ADD),
    SATURATED("sub", TWO, 2, SUB),
    SATURATED("mul", TWO, 2, MUL),
    SATURATED("fma", THREE, 3, FMA),
    {"add.f32 " TWO, 2, ADD, &F32, &F32, MPFR_RNDN, 0},
    {"add.ftz.f32 " TWO, 2, ADD, &F32, &F32, MPFR_RNDN, FTZ},
    {"mul.sat.f32 " TWO, 2, MUL, &F32, &F32, MPFR_RNDN, SAT},
    {"sub.f64 " TWO, 2, SUB, &F64, &F64, MPFR_RNDN, 0},
    {"div.full.f32 " TWO, 2, DIV, &F32, &F32, MPFR_RNDN, 0},
    {"div.full.ftz.f32 " TWO, 2, DIV, &F32, &F32, MPFR_RNDN, FTZ},
    {"div.approx.f32 " TWO, 2, DIV, &F32, &F32, MPFR_RNDN, APPROX_DIV},
    {"rcp.approx.ftz.f32 " ONE, 1, RCP, &F32, &F32, MPFR_RNDN, FTZ},
    {"sqrt.approx.f32 " ONE, 1, SQRT, &F32, &F32, MPFR_RNDN, 0},
    HALF("add", TWO, 2, ADD),
    HALF("sub", TWO, 2, SUB),
    HALF("mul", TWO, 2, MUL),
    HALF("fma.rn", THREE, 3, FMA),
    {"fma.rn.relu.f16 " THREE, 3, FMA, &F16, &F16, MPFR_RNDN, RELU},
    {"fma.rn.relu.bf16 " THREE, 3, FMA, &BF16, &BF16, MPFR_RNDN, RELU},
    {"min.f32 " TWO, 2, MIN, &F32, &F32, MPFR_RNDN, 0},
    {"max.f32 " TWO, 2, MAX, &F32, &F32, MPFR_RNDN, 0},
    {"min.ftz.f32 " TWO, 2, MIN, &F32, &F32, MPFR_RNDN, FTZ},
    {"max.NaN.f32 " TWO, 2, MAX, &F32, &F32, MPFR_RNDN, NAN_PROPAGATES},
    {"min.NaN.f32 " TWO, 2, MIN, &F32, &F32, MPFR_RNDN, NAN_PROPAGATES},
    {"min.xorsign.abs.f32 " TWO, 2, MIN, &F32, &F32, MPFR_RNDN, XORSIGN},
    {"max.NaN.xorsign.abs.f32 " TWO, 2, MAX, &F32, &F32, MPFR_RNDN, XORSIGN | NAN_PROPAGATES},
    {"min.f64 " TWO, 2, MIN, &F64, &F64, MPFR_RNDN, 0},
    {"max.f64 " TWO, 2, MAX, &F64, &F64, MPFR_RNDN, 0},
    {"min.f16 " TWO, 2, MIN, &F16, &F16, MPFR_RNDN, 0},
    {"max.NaN.f16 " TWO, 2, MAX, &F16, &F16, MPFR_RNDN, NAN_PROPAGATES},
    {"max.bf16 " TWO, 2, MAX, &BF16, &BF16, MPFR_RNDN, 0},
    {"abs.ftz.f32 " ONE, 1, ABS, &F32, &F32, MPFR_RNDN, FTZ},
    {"abs.f64 " ONE, 1, ABS, &F64, &F64, MPFR_RNDN, 0},
    {"neg.f32 " ONE, 1, NEG, &F32, &F32, MPFR_RNDN, 0},
    {"neg.f64 " ONE, 1, NEG, &F64, &F64, MPFR_RNDN, 0},
    ROUND_TO_INT("f32", F32),
    ROUND_TO_INT("f64", F64),
    ROUND_TO_INT("f16", F16),
    {"cvt.sat.f32.f32 " ONE, 1, COPY, &F32, &F32, MPFR_RNDN, SAT},
    {"cvt.ftz.sat.f32.f32 " ONE, 1, COPY, &F32, &F32, MPFR_RNDN, SAT | FTZ},
    {"cvt.sat.f64.f64 " ONE, 1, COPY, &F64, &F64, MPFR_RNDN, SAT},
    {"cvt.rmi.ftz.f32.f32 " ONE, 1, RINT, &F32, &F32, MPFR_RNDD, FTZ},
    {"cvt.f64.f32 " ONE, 1, COPY, &F64, &F32, MPFR_RNDN, 0},
    {"cvt.f32.f16 " ONE, 1, COPY, &F32, &F16, MPFR_RNDN, 0},
    {"cvt.f64.f16 " ONE, 1, COPY, &F64, &F16, MPFR_RNDN, 0},
    {"cvt.f32.bf16 " ONE, 1, COPY, &F32, &BF16, MPFR_RNDN, 0},
    NARROW("f32", "f64", F32, F64),
    {"cvt.rm.f32.f64 " ONE, 1, COPY, &F32, &F64, MPFR_RNDD, 0},
    {"cvt.rp.f32.f64 " ONE, 1, COPY, &F32, &F64, MPFR_RNDU, 0},
    {"cvt.rn.ftz.f32.f64 " ONE, 1, COPY, &F32, &F64, MPFR_RNDN, FTZ},
    {"cvt.rn.sat.f32.f64 " ONE, 1, COPY, &F32, &F64, MPFR_RNDN, SAT},
    NARROW("f16", "f32", F16, F32),
    {"cvt.rm.f16.f32 " ONE, 1, COPY, &F16, &F32, MPFR_RNDD, 0},
    {"cvt.rp.f16.f32 " ONE, 1, COPY, &F16, &F32, MPFR_RNDU, 0},
    {"cvt.rn.sat.f16.f32 " ONE, 1, COPY, &F16, &F32, MPFR_RNDN, SAT},
    NARROW("f16", "f64", F16, F64),
    NARROW("bf16", "f32", BF16, F32),
    {"cvt.rn.relu.bf16.f32 " ONE, 1, COPY, &BF16, &F32, MPFR_RNDN, RELU},
};

static const uint64_t edges32[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0xff7fffff,
                                   0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001,
                                   0x3f000000, 0x40200000, 0xc0200000, 0x40600000, 0x4b000001, 0x4f000000, 0x4f7fffff, 0x5f000000, 0x7e800000,
                                   0x7e800001, 0x34000000, 0x33800000, 0x477fe000, 0x477fefff, 0x477ff000, 0x38800000, 0x387fc000, 0x33000000,
                                   0x33000001, 0x0c000000, 0xbf000000, 0x3effffff};
static const uint64_t edges64[] = {0, UINT64_C(1) << 63, 1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
                                   0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x3ff0000000000000, 0xbff0000000000000,
                                   0x3fefffffffffffff, 0x3ff0000000000001, 0x3fe0000000000000, 0x4004000000000000, 0xc004000000000000,
                                   0x43e0000000000000, 0x43f0000000000000, 0x41e0000000000000, 0x41dfffffffc00000, 0x41efffffffe00000,
                                   0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, 0x380fffffe0000000, 0x380fffffffffffff,
                                   0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000, 0x40effc0000000000, 0x40effe0000000000,
                                   0x3e70000000000000, 0x3e60000000000000, 0x3e60000000000001, 0x3cb0000000000000, 0xc3e0000000000000,
                                   0xbfe0000000000000, 0x3fdfffffffffffff, 0x8000000000000001};
static const uint64_t edges16[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x0401, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3c00,
                                   0xbc00, 0x3bff, 0x3c01, 0x3800, 0x4100, 0xc100, 0x4300, 0x6400, 0x7800, 0x007f, 0x0080, 0x7f7f, 0x7f80, 0x3f80,
                                   0xbf80, 0xff80, 0x1400, 0x1000, 0x13ff, 0x6bff, 0x6c00, 0x3c02, 0x0200, 0x5140, 0xd140, 0x2e66};
// clang-format on
enum { EDGES = 40, RANDOM = 4000 };
_Static_assert(sizeof edges32 / sizeof *edges32 == EDGES && sizeof edges64 / sizeof *edges64 == EDGES &&
                   sizeof edges16 / sizeof *edges16 == EDGES,
               "one count for all");

static uint64_t *operands(unsigned bits, int arity, uint32_t *count)
{
    const uint64_t *edges = bits == 64 ? edges64 : bits == 32 ? edges32 : edges16;
    uint32_t n = arity == 1 ? EDGES : arity == 2 ? EDGES * EDGES : EDGES * EDGES * 6;
    uint64_t *in = calloc((n + RANDOM) * 3, sizeof *in), seed = 7;
    assert_non_null(in);
    for (uint32_t i = 0; i < n; i++) {
        in[3 * i] = edges[i % EDGES];
        in[3 * i + 1] = edges[i / EDGES % EDGES];
        in[3 * i + 2] = edges[(i / EDGES / EDGES * 7 + i * 3) % EDGES];
    }
    unsigned m = bits == 64 ? 52 : bits == 32 ? 23 : 10;
    for (uint32_t i = n * 3; i < (n + RANDOM) * 3; i++) {
        uint64_t v = kit_random(&seed) >> (64 - bits);
        if (kit_random(&seed) % 3) { /* most with exponents near each other, so that operands meet */
            uint64_t bias = (UINT64_C(1) << (bits - 2 - m)) - 1;
            v &= ((UINT64_C(1) << m) - 1) | UINT64_C(1) << (bits - 1);
            v |= (bias - 12 + kit_random(&seed) % 26) << m;
        }
        in[i] = v;
    }
    *count = n + RANDOM;
    return in;
}

static uint64_t expect(const struct row *r, const uint64_t *in)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        v[i] = decode(in[i], r->from);
        if (r->flags & FTZ)
            v[i] = flush_value(v[i], r->from);
    }
    double d;
    if (r->op == MIN || r->op == MAX)
        d = minmax(r->op, r->flags, v[0], v[1]);
    else if (r->op == NEG || r->op == ABS) {
        uint64_t bits = r->flags & FTZ && !isnan(v[0]) ? encode(v[0], r->from) : in[0], sign = UINT64_C(1)
                                                                                               << (r->from->bits - 1);
        return r->op == NEG ? bits ^ sign : bits & ~sign;
    } else if (r->flags & APPROX_DIV && isfinite(v[1]) && fabs(v[1]) > 0x1p126)
        d = isinf(v[0]) || isnan(v[0]) ? NAN : copysign(0.0, v[0]) * copysign(1.0, v[1]);
    else if (r->op == COPY && r->to == r->from && isnan(v[0]) && !(r->flags & SAT))
        return in[0];
    else
        d = compute(r->op, r->to, r->rnd, v[0], v[1], v[2]);
    if (r->flags & FTZ && r->to == r->from)
        d = flush_value(d, r->to);
    else if (r->flags & FTZ)
        d = flush_value(d, &F32);
    if (r->flags & SAT)
        d = d > 0 ? (d < 1 ? d : 1) : 0;
    if (r->flags & RELU && !isnan(d) && signbit(d))
        d = 0;
    return encode(d, r->to);
}

static void test_row(void **state)
{
    const struct row *r = *state;
    uint32_t count, wrong = 0;
    uint64_t *in = operands(r->from->bits, r->arity, &count), *out = calloc(count, sizeof *out);
    assert_non_null(out);
    struct kit_shape shape = {(uint8_t)r->to->bits, (uint8_t)r->from->bits, r->arity > 1 ? (uint8_t)r->from->bits : 0,
                              r->arity > 2 ? (uint8_t)r->from->bits : 0};
    kit_instruction(r->instruction, shape, in, out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t expected = expect(r, in + 3 * i);
        bool both_nan =
            r->to->nan == 0 && isnan(decode(out[i], r->to)) && expected == 0 && isnan(decode(out[i], r->to));
        if (r->to->nan == 0 && isnan(decode(out[i], r->to))) {
            double a = decode(in[3 * i], r->from), b = decode(in[3 * i + 1], r->from),
                   c = decode(in[3 * i + 2], r->from);
            both_nan = isnan(compute(r->op, r->to, r->rnd, a, b, c)) ||
                       ((r->op == MIN || r->op == MAX) && isnan(a) && isnan(b)) || r->op == NEG || r->op == ABS;
        }
        if (out[i] != expected && !both_nan && wrong++ < 5)
            print_error("%s a=%llx b=%llx c=%llx: %llx, expected %llx\n", r->instruction, (unsigned long long)in[3 * i],
                        (unsigned long long)in[3 * i + 1], (unsigned long long)in[3 * i + 2],
                        (unsigned long long)out[i], (unsigned long long)expected);
    }
    free(in);
    free(out);
    assert_int_equal(wrong, 0);
}

/* ---- approximate functions: |d - true| within the bound ---- */

struct approx_row {
    const char *instruction;
    int (*function)(mpfr_t, const mpfr_t, mpfr_rnd_t);
    double low, high;          /* range of random operands */
    double relative, absolute; /* either bound suffices */
};

static int rsqrt_true(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_rec_sqrt(r, x, rnd);
}

static int exp2_true(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_exp2(r, x, rnd);
}

static int log2_true(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_log2(r, x, rnd);
}

static int reciprocal_true(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_ui_div(r, 1, x, rnd);
}

static const struct approx_row approx_rows[] = {
    {"ex2.approx.f32 %d, %a;", exp2_true, -130, 128, 0x1p-22, 0x1p-149},
    {"ex2.approx.ftz.f32 %d, %a;", exp2_true, -125, 127, 0x1p-22, 0},
    {"lg2.approx.f32 %d, %a;", log2_true, 1e-30, 1e30, 0x1p-22, 0x1p-22},
    {"sin.approx.f32 %d, %a;", mpfr_sin, -6.3, 6.3, 0, 0x1p-20},
    {"cos.approx.f32 %d, %a;", mpfr_cos, -6.3, 6.3, 0, 0x1p-20},
    {"tanh.approx.f32 %d, %a;", mpfr_tanh, -10, 10, 0x1p-11, 0},
    {"rsqrt.approx.f32 %d, %a;", rsqrt_true, 1e-37, 1e38, 0x1.0p-22, 0},
    {"sqrt.approx.ftz.f32 %d, %a;", mpfr_sqrt, 1e-37, 1e38, 0x1p-22, 0},
    {"rcp.approx.ftz.f64 %d, %a;", reciprocal_true, 1e-300, 1e300, 0x1p-19, 0},
    {"rsqrt.approx.ftz.f64 %d, %a;", rsqrt_true, 1e-300, 1e300, 0x1p-19, 0},
    {"rsqrt.approx.f64 %d, %a;", rsqrt_true, 1e-300, 1e300, 0x1p-51, 0},
};

static void test_approx(void **state)
{
    const struct approx_row *r = *state;
    enum { COUNT = 3000 };
    bool wide = strstr(r->instruction, "f64") != NULL;
    uint64_t *in = calloc(3 * COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out), seed = 3;
    const struct format *f = wide ? &F64 : &F32;
    assert_true(in && out);
    for (int i = 0; i < COUNT; i++) {
        double u = (double)(kit_random(&seed) >> 11) * 0x1p-53;
        double x = r->low > 0 ? r->low * pow(r->high / r->low, u) : r->low + (r->high - r->low) * u;
        in[3 * i] = encode(wide ? x : (double)(float)x, f);
    }
    kit_instruction(r->instruction, (struct kit_shape){(uint8_t)f->bits, (uint8_t)f->bits, 0, 0}, in, out, COUNT);
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_t x, t;
    mpfr_inits2(120, x, t, (mpfr_ptr)0);
    for (int i = 0; i < COUNT; i++) {
        double d = decode(out[i], f);
        mpfr_set_d(x, decode(in[3 * i], f), MPFR_RNDN);
        r->function(t, x, MPFR_RNDN);
        double truth = mpfr_get_d(t, MPFR_RNDN);
        mpfr_sub_d(t, t, d, MPFR_RNDN);
        double error = fabs(mpfr_get_d(t, MPFR_RNDN));
        if (error > r->relative * fabs(truth) && error > r->absolute)
            fail_msg("%s of %g: %g, truth %g", r->instruction, mpfr_get_d(x, MPFR_RNDN), d, truth);
    }
    mpfr_clears(x, t, (mpfr_ptr)0);
    free(in);
    free(out);
}

/* ---- special values that the PTX ISA lists ---- */

static const struct special {
    const char *instruction;
    uint64_t in, out;
} specials[] = {
    {"ex2.approx.f32 %d, %a;", 0xff800000, 0},
    {"ex2.approx.f32 %d, %a;", 0x80000001, 0x3f800000},
    {"ex2.approx.f32 %d, %a;", 0x7f800000, 0x7f800000},
    {"ex2.approx.f32 %d, %a;", 0xffc00000, 0x7fffffff},
    {"ex2.approx.ftz.f32 %d, %a;", 0xc3000000, 0}, /* -128: the result is subnormal */
    {"ex2.approx.f32 %d, %a;", 0xc3000000, 0x00200000},
    {"lg2.approx.f32 %d, %a;", 0, 0xff800000},
    {"lg2.approx.f32 %d, %a;", 0x80000000, 0xff800000},
    {"lg2.approx.ftz.f32 %d, %a;", 1, 0xff800000},
    {"lg2.approx.f32 %d, %a;", 1, 0xc3150000},
    {"lg2.approx.f32 %d, %a;", 0xbf800000, 0x7fffffff},
    {"lg2.approx.f32 %d, %a;", 0x7f800000, 0x7f800000},
    {"sin.approx.f32 %d, %a;", 0x80000000, 0x80000000},
    {"sin.approx.f32 %d, %a;", 0x7f800000, 0x7fffffff},
    {"cos.approx.f32 %d, %a;", 0x80000000, 0x3f800000},
    {"cos.approx.f32 %d, %a;", 0xff800000, 0x7fffffff},
    {"rsqrt.approx.f32 %d, %a;", 0, 0x7f800000},
    {"rsqrt.approx.f32 %d, %a;", 0x80000000, 0xff800000},
    {"rsqrt.approx.f32 %d, %a;", 0x7f800000, 0},
    {"rsqrt.approx.f32 %d, %a;", 0xbf800000, 0x7fffffff},
    {"rcp.approx.ftz.f32 %d, %a;", 1, 0x7f800000},
    {"tanh.approx.f32 %d, %a;", 0xff800000, 0xbf800000},
    {"tanh.approx.f32 %d, %a;", 0x80000000, 0x80000000},
    {"sqrt.rn.f32 %d, %a;", 0x80000000, 0x80000000},
};

static void test_special_values(void **state)
{
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        uint64_t in[3] = {specials[i].in}, out;
        kit_instruction(specials[i].instruction, (struct kit_shape){32, 32, 0, 0}, in, &out, 1);
        if (out != specials[i].out)
            fail_msg("%s %llx: %llx, expected %llx", specials[i].instruction, (unsigned long long)in[0],
                     (unsigned long long)out, (unsigned long long)specials[i].out);
    }
    static const uint64_t wide[][2] = {{0, 0x7ff0000000000000},
                                       {UINT64_C(1) << 63, 0xfff0000000000000},
                                       {1, 0x7ff0000000000000},
                                       {0x7ff0000000000000, 0},
                                       {0x3ff00000ffffffff, 0x3ff0000000000000}}; /* the lower word is ignored */
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        uint64_t in[3] = {wide[i][0]}, out;
        kit_instruction("rcp.approx.ftz.f64 %d, %a;", (struct kit_shape){64, 64, 0, 0}, in, &out, 1);
        assert_int_equal(out, wide[i][1]);
    }
}

/* ---- float to integer and back ---- */

static uint64_t to_int(double x, mpfr_rnd_t rnd, unsigned bits, bool is_signed, bool from_f64)
{
    if (isnan(x))
        return from_f64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    mpfr_t r;
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_init2(r, 80);
    mpfr_set_d(r, x, MPFR_RNDN);
    mpfr_rint(r, r, rnd);
    uint64_t highest = is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits),
             lowest = is_signed ? UINT64_C(1) << (bits - 1) : 0;
    uint64_t v;
    if (mpfr_sgn(r) >= 0)
        v = mpfr_cmp_ui(r, highest) > 0 ? highest : mpfr_get_ui(r, MPFR_RNDZ);
    else
        v = !is_signed || mpfr_cmp_si(r, -(int64_t)(UINT64_C(1) << (bits - 2)) * 2) < 0
                ? lowest
                : (uint64_t)mpfr_get_si(r, MPFR_RNDZ);
    mpfr_clear(r);
    return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static void test_float_to_int(void **state)
{
    static const struct {
        const char *name;
        const struct format *format;
    } sources[] = {{"f32", &F32}, {"f64", &F64}, {"f16", &F16}};
    static const struct {
        const char *name;
        mpfr_rnd_t rnd;
    } roundings[] = {{"rni", MPFR_RNDN}, {"rzi", MPFR_RNDZ}, {"rmi", MPFR_RNDD}, {"rpi", MPFR_RNDU}};
    static const char *const types[] = {"u16", "s16", "u32", "s32", "u64", "s64", "u8", "s8"};
    for (size_t s = 0; s < 3; s++) {
        uint32_t count;
        uint64_t *in = operands(sources[s].format->bits, 1, &count), *out = calloc(count, sizeof *out);
        for (size_t r = 0; r < 4; r++) {
            for (size_t t = 0; t < 8; t++) {
                char text[80];
                unsigned bits = (unsigned)atoi(types[t] + 1), reg = bits == 8 ? 16 : bits;
                bool is_signed = types[t][0] == 's';
                snprintf(text, sizeof text, "cvt.%s.%s.%s %%d, %%a;", roundings[r].name, types[t], sources[s].name);
                kit_instruction(text, (struct kit_shape){(uint8_t)reg, (uint8_t)sources[s].format->bits, 0, 0}, in, out,
                                count);
                for (uint32_t i = 0; i < count; i++) {
                    uint64_t e =
                        to_int(decode(in[3 * i], sources[s].format), roundings[r].rnd, bits, is_signed, s == 1);
                    if (bits == 8 && is_signed)
                        e = (uint16_t)(int8_t)e;
                    if (out[i] != e)
                        fail_msg("%s of %llx: %llx, expected %llx", text, (unsigned long long)in[3 * i],
                                 (unsigned long long)out[i], (unsigned long long)e);
                }
            }
        }
        free(in);
        free(out);
    }
}

static void test_int_to_float(void **state)
{
    static const struct {
        const char *name;
        const struct format *format;
    } targets[] = {{"f32", &F32}, {"f64", &F64}, {"f16", &F16}, {"bf16", &BF16}};
    static const struct {
        const char *name;
        mpfr_rnd_t rnd;
    } roundings[] = {{"rn", MPFR_RNDN}, {"rz", MPFR_RNDZ}, {"rm", MPFR_RNDD}, {"rp", MPFR_RNDU}};
    static const char *const types[] = {"u16", "s16", "u32", "s32", "u64", "s64"};
    enum { COUNT = 2000 };
    uint64_t *in = calloc(3 * COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out), seed = 9;
    for (int i = 0; i < COUNT; i++)
        in[3 * i] =
            i < 70 ? (UINT64_C(1) << (i % 64)) - (uint64_t)(i / 64) : kit_random(&seed) >> (kit_random(&seed) % 64);
    for (size_t t = 0; t < 4; t++) {
        for (size_t r = 0; r < 4; r++) {
            for (size_t s = 0; s < 6; s++) {
                char text[80];
                unsigned bits = (unsigned)atoi(types[s] + 1);
                const struct format *f = targets[t].format;
                snprintf(text, sizeof text, "cvt.%s.%s.%s %%d, %%a;", roundings[r].name, targets[t].name, types[s]);
                kit_instruction(text, (struct kit_shape){(uint8_t)f->bits, (uint8_t)bits, 0, 0}, in, out, COUNT);
                for (int i = 0; i < COUNT; i++) {
                    uint64_t v = bits == 64 ? in[3 * i] : in[3 * i] & ((UINT64_C(1) << bits) - 1);
                    mpfr_t x, d;
                    mpfr_set_emin(mpfr_get_emin_min());
                    mpfr_set_emax(mpfr_get_emax_max());
                    mpfr_init2(x, 64);
                    mpfr_init2(d, f->precision);
                    if (types[s][0] == 's')
                        mpfr_set_si(x, (int64_t)(v << (64 - bits)) >> (64 - bits), MPFR_RNDN);
                    else
                        mpfr_set_ui(x, v, MPFR_RNDN);
                    mpfr_set_emin(f->emin);
                    mpfr_set_emax(f->emax);
                    int ternary = mpfr_set(d, x, roundings[r].rnd);
                    mpfr_check_range(d, ternary, roundings[r].rnd);
                    uint64_t e = encode(mpfr_get_d(d, MPFR_RNDN), f);
                    mpfr_clears(x, d, (mpfr_ptr)0);
                    if (out[i] != e)
                        fail_msg("%s of %llx: %llx, expected %llx", text, (unsigned long long)v,
                                 (unsigned long long)out[i], (unsigned long long)e);
                }
            }
        }
    }
    free(in);
    free(out);
}

/* ---- comparisons and properties ---- */

static void test_float_compare(void **state)
{
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const struct {
        const char *name;
        const struct format *format;
        bool ftz;
    } types[] = {{"f32", &F32, false},
                 {"f64", &F64, false},
                 {"ftz.f32", &F32, true},
                 {"f16", &F16, false},
                 {"bf16", &BF16, false}};
    for (size_t t = 0; t < 5; t++) {
        uint32_t count;
        const struct format *f = types[t].format;
        uint64_t *in = operands(f->bits, 2, &count), *out = calloc(count, sizeof *out);
        for (size_t c = 0; c < 14; c++) {
            char text[80];
            snprintf(text, sizeof text, "setp.%s.%s %%d, %%a, %%b;", names[c], types[t].name);
            kit_instruction(text, (struct kit_shape){1, (uint8_t)f->bits, (uint8_t)f->bits, 0}, in, out, count);
            for (uint32_t i = 0; i < count; i++) {
                double a = decode(in[3 * i], f), b = decode(in[3 * i + 1], f);
                if (types[t].ftz) {
                    a = flush_value(a, f);
                    b = flush_value(b, f);
                }
                bool nan = isnan(a) || isnan(b), e;
                switch (c % 6) {
                case 0:
                    e = a == b;
                    break;
                case 1:
                    e = a != b;
                    break;
                case 2:
                    e = a < b;
                    break;
                case 3:
                    e = a <= b;
                    break;
                case 4:
                    e = a > b;
                    break;
                default:
                    e = a >= b;
                }
                e = c == 12 ? !nan : c == 13 ? nan : nan ? c >= 6 : e;
                if (out[i] != e)
                    fail_msg("%s of %llx, %llx: %llu", text, (unsigned long long)in[3 * i],
                             (unsigned long long)in[3 * i + 1], (unsigned long long)out[i]);
            }
        }
        free(in);
        free(out);
    }
}

static void test_testp(void **state)
{
    static const char *const names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
    for (int wide = 0; wide < 2; wide++) {
        uint32_t count;
        const struct format *f = wide ? &F64 : &F32;
        uint64_t *in = operands(f->bits, 1, &count), *out = calloc(count, sizeof *out);
        for (size_t k = 0; k < 6; k++) {
            char text[80];
            snprintf(text, sizeof text, "testp.%s.%s %%d, %%a;", names[k], wide ? "f64" : "f32");
            kit_instruction(text, (struct kit_shape){1, (uint8_t)f->bits, 0, 0}, in, out, count);
            for (uint32_t i = 0; i < count; i++) {
                double a = decode(in[3 * i], f);
                bool sub = a != 0 && isfinite(a) && flush_value(a, f) == 0;
                bool e[] = {isfinite(a), isinf(a), !isnan(a), isnan(a), isfinite(a) && a != 0 && !sub, sub};
                assert_int_equal(out[i], e[k]);
            }
        }
        free(in);
        free(out);
    }
}

/* ---- packed halves: the same as two single ones ---- */

static void test_packed(void **state)
{
    static const char *const pairs[][2] = {{"add.f16x2", "add.f16"},           {"mul.f16x2", "mul.f16"},
                                           {"sub.bf16x2", "sub.bf16"},         {"max.f16x2", "max.f16"},
                                           {"min.NaN.bf16x2", "min.NaN.bf16"}, {"add.sat.f16x2", "add.sat.f16"},
                                           {"mul.ftz.f16x2", "mul.ftz.f16"}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        uint32_t count;
        char text[200];
        uint64_t *in = operands(32, 2, &count), *packed = calloc(count, sizeof *packed),
                 *split = calloc(count, sizeof *split);
        snprintf(text, sizeof text, "%s %%d, %%a, %%b;", pairs[k][0]);
        kit_instruction(text, (struct kit_shape){32, 32, 32, 0}, in, packed, count);
        snprintf(text, sizeof text,
                 "{.reg .b16 %%al,%%ah,%%bl,%%bh; mov.b32 {%%al,%%ah}, %%a; mov.b32 {%%bl,%%bh}, %%b; %s "
                 "%%al,%%al,%%bl; %s %%ah,%%ah,%%bh; "
                 "mov.b32 %%d, {%%al,%%ah};}",
                 pairs[k][1], pairs[k][1]);
        kit_instruction(text, (struct kit_shape){32, 32, 32, 0}, in, split, count);
        assert_memory_equal(packed, split, count * sizeof *packed);
        free(in);
        free(packed);
        free(split);
    }
}

static void test_set_and_pack(void **state)
{
    uint64_t in[] = {0x3c003c00, 0x3c004000, 0}, out;
    kit_instruction("set.gt.f16x2.f16x2 %d, %b, %a;", (struct kit_shape){32, 32, 32, 0}, in, &out, 1);
    assert_int_equal(out, 0x00003c00);
    uint64_t f[] = {0x3f800000, 0x40000000, 0};
    kit_instruction("cvt.rn.f16x2.f32 %d, %a, %b;", (struct kit_shape){32, 32, 32, 0}, f, &out, 1);
    assert_int_equal(out, 0x3c004000);
    kit_instruction("set.nan.f32.f32 %d, %a, %b;", (struct kit_shape){32, 32, 32, 0}, f, &out, 1);
    assert_int_equal(out, 0);
    kit_instruction("copysign.f32 %d, %b, %a;", (struct kit_shape){32, 32, 32, 0},
                    (uint64_t[]){0x3f800000, 0xc0000000, 0}, &out, 1);
    assert_int_equal(out, 0xbf800000);
    kit_instruction("slct.b32.f32 %d, %a, %b, %c;", (struct kit_shape){32, 32, 32, 32}, (uint64_t[]){1, 2, 0x80000000},
                    &out, 1);
    assert_int_equal(out, 1);
    kit_instruction("slct.b32.f32 %d, %a, %b, %c;", (struct kit_shape){32, 32, 32, 32}, (uint64_t[]){1, 2, 0x7fc00000},
                    &out, 1);
    assert_int_equal(out, 2);
}

int main(void)
{
    enum { COUNT = sizeof rows / sizeof *rows, APPROX = sizeof approx_rows / sizeof *approx_rows, MORE = 7 };
    static struct CMUnitTest tests[COUNT + APPROX + MORE];
    static char names[COUNT + APPROX][160];
    size_t n = 0;
    for (size_t i = 0; i < COUNT; i++, n++) {
        snprintf(names[n], sizeof names[n], "test_%s", rows[i].instruction);
        tests[n] =
            (struct CMUnitTest){.name = names[n], .test_func = test_row, .initial_state = (void *)(uintptr_t)&rows[i]};
    }
    for (size_t i = 0; i < APPROX; i++, n++) {
        snprintf(names[n], sizeof names[n], "test_%s", approx_rows[i].instruction);
        tests[n] = (struct CMUnitTest){
            .name = names[n], .test_func = test_approx, .initial_state = (void *)(uintptr_t)&approx_rows[i]};
    }
    const struct CMUnitTest more[MORE] = {cmocka_unit_test(test_special_values), cmocka_unit_test(test_float_to_int),
                                          cmocka_unit_test(test_int_to_float),   cmocka_unit_test(test_float_compare),
                                          cmocka_unit_test(test_testp),          cmocka_unit_test(test_packed),
                                          cmocka_unit_test(test_set_and_pack)};
    memcpy(tests + n, more, sizeof more);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
