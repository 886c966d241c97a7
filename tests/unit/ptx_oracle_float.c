/* Floating-point instructions by MPFR. Exact operations must have the right bits; the .approx functions, which PTX only
 * bounds, must be within 0.501 units in the last place, as docs/arithmetic.md promises of the default. */
#include <math.h>
#include <mpfr.h>
#include <string.h>
#include "tests/unit/ptx_format.h"
#include "tests/unit/ptx_forms.h"

static const struct format *format_of(enum type t)
{
    return t == TYPE_F16 || t == TYPE_F16X2     ? &F16
           : t == TYPE_BF16 || t == TYPE_BF16X2 ? &BF16
           : t == TYPE_F32                      ? &F32
                                                : &F64;
}

static bool is_nan_of(uint64_t v, const struct format *f)
{
    return isnan(decode(v, f));
}

/* ---- operations by MPFR ---- */

enum op { ADD, SUB, MUL, FMA, DIV, RCP, SQRT, RSQRT, EX2, LG2, SIN, COS, TANH, RINT, COPY };

static void apply(enum op op, mpfr_t r, mpfr_t x, mpfr_t y, mpfr_t z, mpfr_rnd_t rnd, int *t)
{
    switch (op) {
    case ADD:
        *t = mpfr_add(r, x, y, rnd);
        break;
    case SUB:
        *t = mpfr_sub(r, x, y, rnd);
        break;
    case MUL:
        *t = mpfr_mul(r, x, y, rnd);
        break;
    case FMA:
        *t = mpfr_fma(r, x, y, z, rnd);
        break;
    case DIV:
        *t = mpfr_div(r, x, y, rnd);
        break;
    case RCP:
        *t = mpfr_ui_div(r, 1, x, rnd);
        break;
    case SQRT:
        *t = mpfr_sqrt(r, x, rnd);
        break;
    case RSQRT:
        *t = mpfr_rec_sqrt(r, x, rnd);
        if (mpfr_zero_p(x) && mpfr_signbit(x)) /* PTX: -infinity */
            mpfr_set_inf(r, -1);
        break;
    case EX2:
        *t = mpfr_exp2(r, x, rnd);
        break;
    case LG2:
        *t = mpfr_log2(r, x, rnd);
        break;
    case SIN:
        *t = mpfr_sin(r, x, rnd);
        break;
    case COS:
        *t = mpfr_cos(r, x, rnd);
        break;
    case TANH:
        *t = mpfr_tanh(r, x, rnd);
        break;
    case RINT:
        *t = mpfr_rint(r, x, rnd);
        break;
    default:
        *t = mpfr_set(r, x, rnd);
    }
}

/* The operation rounded once to the format, subnormals and overflow included. */
static double compute(enum op op, const struct format *f, mpfr_rnd_t rnd, const double v[3])
{
    static mpfr_t x, y, z, r[65];
    static bool ready[65];
    if (!ready[0]) {
        mpfr_inits2(53, x, y, z, (mpfr_ptr)0);
        ready[0] = true;
    }
    if (!ready[f->precision]) {
        mpfr_init2(r[f->precision], f->precision);
        ready[f->precision] = true;
    }
    mpfr_ptr d = r[f->precision];
    mpfr_set_emin(-20000);
    mpfr_set_emax(20000);
    mpfr_set_d(x, v[0], MPFR_RNDN);
    mpfr_set_d(y, v[1], MPFR_RNDN);
    mpfr_set_d(z, v[2], MPFR_RNDN);
    mpfr_set_emin(f->emin);
    mpfr_set_emax(f->emax);
    int t = 0;
    apply(op, d, x, y, z, rnd, &t);
    t = mpfr_check_range(d, t, rnd);
    mpfr_subnormalize(d, t, rnd);
    return mpfr_get_d(d, MPFR_RNDN);
}

static mpfr_rnd_t rounding(const struct form *f)
{
    int mode = form_has(f, M(ROUND_INT)) ? f->value[CLASS_ROUND_INT]
               : form_has(f, M(ROUND))   ? f->value[CLASS_ROUND]
                                         : ROUND_RN;
    return mode == ROUND_RZ ? MPFR_RNDZ : mode == ROUND_RM ? MPFR_RNDD : mode == ROUND_RP ? MPFR_RNDU : MPFR_RNDN;
}

/* .ftz concerns single precision, f16, and ex2 of bf16; of conversions only a single-precision end. */
static double flush_as(const struct form *f, double x, enum type t, bool half_too)
{
    bool bf16 = (t == TYPE_BF16 || t == TYPE_BF16X2) && strcmp(f->row->name, "cvt") != 0;
    bool flushes = form_has(f, M(FTZ)) && (t == TYPE_F32 || bf16 || (half_too && (t == TYPE_F16 || t == TYPE_F16X2)));
    return flushes ? flush_value(x, format_of(t)) : x;
}

static double finish(const struct form *f, double d)
{
    if (form_has(f, M(SAT)))
        d = d > 0 ? (d < 1 ? d : 1) : 0; /* NaN becomes +0 */
    if (form_has(f, M(RELU)) && !isnan(d) && signbit(d))
        d = 0;
    return d;
}

static bool same(uint64_t got, double d, const struct format *format, uint64_t *expected)
{
    *expected = encode(d, format);
    return got == *expected || (format->nan == 0 && isnan(d) && is_nan_of(got, format));
}

/* ---- exact arithmetic ---- */

static bool judge_exact(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    const struct format *format = format_of(f->types[0]);
    double v[3];
    for (int i = 0; i < 3; i++)
        v[i] = flush_as(f, decode(in[i], format), f->types[0], true);
    double d = flush_as(f, compute((enum op)f->oracle_index, format, rounding(f), v), f->types[0], true);
    return same(got, finish(f, d), format, expected);
}

/* div.approx: as if by a * (1 / b), where 1 / b is zero for |b| above 2^126. */
static bool judge_div_approx(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    double a = flush_as(f, decode(in[0], format_of(TYPE_F32)), TYPE_F32, false),
           b = flush_as(f, decode(in[1], format_of(TYPE_F32)), TYPE_F32, false);
    if (!isfinite(b) || fabs(b) <= 0x1p126)
        return judge_exact(f, in, got, expected);
    double d = isinf(a) || isnan(a) ? NAN : copysign(0.0, a) * copysign(1.0, b);
    return same(got, d, format_of(TYPE_F32), expected);
}

/* ---- approximate functions ---- */

/* |got - exact| in units in the last place of the format. */
static double error_in_ulp(enum op op, const struct format *f, double argument, double got)
{
    static mpfr_t x, exact, g;
    static bool ready;
    if (!ready) {
        mpfr_init2(x, 53);
        mpfr_init2(g, 53);
        mpfr_init2(exact, 110);
        ready = true;
    }
    mpfr_set_emin(-20000);
    mpfr_set_emax(20000);
    mpfr_set_d(x, argument, MPFR_RNDN);
    mpfr_set_d(g, got, MPFR_RNDN);
    int t;
    apply(op, exact, x, x, x, MPFR_RNDN, &t);
    if (mpfr_nan_p(exact) || mpfr_inf_p(exact) || mpfr_zero_p(exact))
        return 0; /* the rounded value is compared */
    long e = mpfr_get_exp(exact) - (long)f->precision, lowest = f->emin - 1;
    mpfr_sub(exact, exact, g, MPFR_RNDN);
    mpfr_mul_2si(exact, exact, -(e < lowest ? lowest : e), MPFR_RNDN);
    return fabs(mpfr_get_d(exact, MPFR_RNDN));
}

static bool judge_approx(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    const struct format *format = format_of(f->types[0]);
    enum op op = (enum op)f->oracle_index;
    double v[3] = {flush_as(f, decode(in[0], format), f->types[0], false)};
    double d = compute(op, format, MPFR_RNDN, v), flushed = flush_as(f, d, f->types[0], false);
    if (same(got, flushed, format, expected))
        return true;
    double g = decode(got, format);
    return !isnan(d) && isfinite(g) && flushed == d && error_in_ulp(op, format, v[0], g) <= 0.501;
}

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the lower word of operand and result is zero, 20 bits are right. */
static bool judge_high_word(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    const struct format *format = format_of(TYPE_F64);
    double v[3] = {flush_value(decode(in[0] & UINT64_C(0xffffffff00000000), format), format)};
    if (is_nan_of(in[0], format))
        v[0] = NAN;
    double d = flush_value(compute((enum op)f->oracle_index, format, MPFR_RNDN, v), format), g = decode(got, format);
    *expected = encode(d, format);
    if (isnan(d))
        return isnan(g);
    if (got & UINT32_MAX)
        return false;
    bool near_least = fabs(d) < 0x1.00001p-1022; /* what rounds across the least normal number may be flushed or not */
    return !isfinite(d) || d == 0 ? g == d && signbit(g) == signbit(d)
                                  : fabs(g - d) <= fabs(d) * 0x1p-20 || (near_least && g == 0);
}

/* ---- signs, order, properties ---- */

static bool judge_sign(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    const struct format *format = format_of(f->types[0]);
    uint64_t sign = UINT64_C(1) << (format->bits - 1), bits = in[0] & (sign | (sign - 1));
    if (form_has(f, M(FTZ)) && !is_nan_of(bits, format))
        bits = encode(flush_value(decode(bits, format), format), format);
    *expected = strcmp(f->row->name, "neg") == 0 ? bits ^ sign : bits & ~sign;
    return got == *expected;
}

static bool judge_minmax(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    const struct format *format = format_of(f->types[0]);
    double a = flush_as(f, decode(in[0], format), f->types[0], true),
           b = flush_as(f, decode(in[1], format), f->types[0], true), r;
    bool min = strcmp(f->row->name, "min") == 0, negative = (signbit(a) != 0) != (signbit(b) != 0);
    if (form_has(f, M(XORSIGN))) {
        a = fabs(a);
        b = fabs(b);
    }
    if (isnan(a) || isnan(b))
        r = (isnan(a) && isnan(b)) || form_has(f, M(NAN)) ? NAN : isnan(a) ? b : a;
    else if (a == b)
        r = min == (signbit(a) != 0) ? a : b;
    else
        r = min == (a < b) ? a : b;
    if (form_has(f, M(XORSIGN)) && !isnan(r))
        r = copysign(r, negative ? -1.0 : 1.0);
    return same(got, r, format, expected);
}

static bool judge_copysign(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    uint64_t sign = UINT64_C(1) << (form_bits(f->types[0]) - 1), rest = sign - 1;
    *expected = (in[0] & sign) | (in[1] & rest);
    return got == *expected;
}

static bool judge_testp(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    const struct format *format = format_of(f->types[0]);
    double a = decode(in[0], format);
    bool subnormal = a != 0 && isfinite(a) && flush_value(a, format) == 0;
    const bool answers[] = {[TEST_FINITE] = isfinite(a),
                            [TEST_INFINITE] = isinf(a),
                            [TEST_NUMBER] = !isnan(a),
                            [TEST_NOTANUMBER] = isnan(a),
                            [TEST_NORMAL] = isfinite(a) && a != 0 && !subnormal,
                            [TEST_SUBNORMAL] = subnormal};
    *expected = answers[f->value[CLASS_PROPERTY]];
    return got == *expected;
}

static int order_of(const struct form *f, enum type t, const uint64_t in[3])
{
    double a = flush_as(f, decode(in[0], format_of(t)), t, true), b = flush_as(f, decode(in[1], format_of(t)), t, true);
    return isnan(a) || isnan(b) ? 2 : a < b ? -1 : a > b;
}

static bool third(const uint64_t in[3])
{
    return (in[2] & UINT32_MAX) != 0;
}

static bool judge_setp(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    bool holds = compare_holds(f, order_of(f, f->types[0], in));
    *expected = combine(f, f->variant == 1 ? !holds : holds, f->variant == 2 ? !third(in) : third(in));
    return got == *expected;
}

static bool judge_set(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    enum type t = f->types[0];
    uint64_t one = t == TYPE_F32                                    ? 0x3f800000
                   : t == TYPE_F16 || t == TYPE_F16X2               ? 0x3c00
                   : t == TYPE_BF16 || t == TYPE_BF16X2             ? 0x3f80
                   : form_bits(t) == 16 || form_packed(f->types[1]) ? 0xffff
                                                                    : UINT32_MAX;
    *expected = combine(f, compare_holds(f, order_of(f, f->types[1], in)), third(in)) ? one : 0;
    return got == *expected;
}

static bool judge_slct(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    double c = flush_as(f, decode(in[2] & UINT32_MAX, format_of(TYPE_F32)), TYPE_F32, false);
    unsigned bits = form_bits(f->types[0]);
    uint64_t v = in[c >= 0 ? 0 : 1];
    *expected = bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
    return got == *expected;
}

/* ---- conversions ---- */

static bool judge_to_integer(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    static mpfr_t r;
    static bool ready;
    if (!ready)
        mpfr_init2(r, 80);
    ready = true;
    enum type to = f->types[0], from = f->types[1];
    unsigned bits = form_bits(to);
    bool is_signed = type_info[to].kind == 's';
    double x = flush_as(f, decode(in[0], format_of(from)), from, false);
    uint64_t highest = is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits),
             lowest = is_signed ? 0 - (UINT64_C(1) << (bits - 1)) : 0, v;
    mpfr_set_emin(-20000);
    mpfr_set_emax(20000);
    mpfr_set_d(r, x, MPFR_RNDN);
    mpfr_rint(r, r, rounding(f));
    if (isnan(x))
        v = from == TYPE_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    else if (mpfr_sgn(r) >= 0)
        v = mpfr_cmp_ui(r, highest) > 0 ? highest : mpfr_get_ui(r, MPFR_RNDZ);
    else
        v = !is_signed || mpfr_cmp_si(r, (int64_t)lowest) < 0 ? lowest : (uint64_t)mpfr_get_si(r, MPFR_RNDZ);
    if (bits == 8 && is_signed)
        v = (uint64_t)(int8_t)v;
    unsigned width = f->shape.d;
    *expected = width == 64 ? v : v & ((UINT64_C(1) << width) - 1);
    return got == *expected;
}

static bool judge_from_integer(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    static mpfr_t x, r[65];
    static bool ready[65];
    const struct format *format = format_of(f->types[0]);
    unsigned bits = form_bits(f->types[1]);
    if (!ready[0])
        mpfr_init2(x, 64);
    if (!ready[format->precision])
        mpfr_init2(r[format->precision], format->precision);
    ready[0] = ready[format->precision] = true;
    uint64_t v = in[0] << (64 - bits);
    mpfr_set_emin(-20000);
    mpfr_set_emax(20000);
    if (type_info[f->types[1]].kind == 's')
        mpfr_set_si(x, (int64_t)v >> (64 - bits), MPFR_RNDN);
    else
        mpfr_set_ui(x, v >> (64 - bits), MPFR_RNDN);
    mpfr_set_emin(format->emin);
    mpfr_set_emax(format->emax);
    int t = mpfr_set(r[format->precision], x, rounding(f));
    mpfr_check_range(r[format->precision], t, rounding(f));
    return same(got, finish(f, mpfr_get_d(r[format->precision], MPFR_RNDN)), format, expected);
}

static bool judge_to_float(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    enum type to = f->types[0], from = f->types[1];
    const struct format *tf = format_of(to), *ff = format_of(from);
    double v[3] = {flush_as(f, decode(in[0], ff), from, false)};
    double d = compute(form_has(f, M(ROUND_INT)) ? RINT : COPY, tf, rounding(f), v);
    d = finish(f, flush_as(f, d, to, false));
    if (form_has(f, M(SATFINITE)) && isinf(d))
        d = copysign(decode((UINT64_C(1) << (tf->bits - 1)) - 1 - (UINT64_C(1) << (tf->precision - 1)), tf), d);
    if (to == from && isnan(d)) /* moved, or made canonical: the ISA does not say */
        return is_nan_of(got, tf);
    return same(got, d, tf, expected);
}

/* tf32: 11 bits of precision with the exponents of f32; the lower 13 bits are zero here. */
static bool judge_tf32(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    static const struct format tf32 = {32, 11, -135, 128, 0x7fffffff};
    double v[3] = {decode(in[0], format_of(TYPE_F32))};
    mpfr_rnd_t rnd = f->value[CLASS_ROUND] == ROUND_RZ ? MPFR_RNDZ : MPFR_RNDN;
    double d = compute(COPY, &tf32, rnd, v);
    if (f->value[CLASS_ROUND] == ROUND_RNA &&
        isfinite(v[0])) { /* ties away: add half a unit to the magnitude and cut */
        uint64_t magnitude = (in[0] & 0x7fffffff) + 0x1000;
        d = copysign(decode(magnitude & 0x7fffe000, format_of(TYPE_F32)), v[0]);
    }
    d = finish(f, d);
    if (form_has(f, M(SATFINITE)) && isinf(d))
        d = copysign(0x1.ffcp127, d);
    return same(got, d, format_of(TYPE_F32), expected);
}

/* ---- packed types: the same of each half; variant 1 of setp is the upper one ---- */

static oracle *single_oracle(struct form *f);

static bool judge_packed(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    struct form half = *f;
    half.variant = 0;
    bool sources = form_packed(f->types[f->type_count - 1]), p = strcmp(f->row->name, "setp") == 0;
    half.types[0] = f->types[0] == TYPE_F16X2 ? TYPE_F16 : f->types[0] == TYPE_BF16X2 ? TYPE_BF16 : f->types[0];
    if (strcmp(f->row->name, "set") == 0)
        half.types[1] = f->types[1]; /* set looks at it: results are 16 bits wide */
    oracle *judge = single_oracle(&half);
    bool right = true;
    *expected = 0;
    for (unsigned i = p ? f->variant & 1 : 0; i < (p ? (f->variant & 1) + 1 : 2); i++) {
        uint64_t part[3], e;
        for (int k = 0; k < 3; k++)
            part[k] = sources && f->from[k] != TYPE_PRED ? in[k] >> 16 * i & 0xffff : in[k];
        if (!sources) /* cvt.f16x2.f32 d, a, b: a in the upper half */
            part[0] = in[1 - i];
        right &= judge(&half, part, p ? got : got >> 16 * i & 0xffff, &e);
        *expected |= p ? e : e << 16 * i;
    }
    return right;
}

static const struct {
    const char *name;
    enum op op;
    oracle *judge;
} oracles[] = {
    {"add", ADD, judge_exact},    {"sub", SUB, judge_exact},     {"mul", MUL, judge_exact},
    {"fma", FMA, judge_exact},    {"mad", FMA, judge_exact},     {"div", DIV, judge_exact},
    {"rcp", RCP, judge_exact},    {"sqrt", SQRT, judge_exact},   {"rsqrt", RSQRT, judge_approx},
    {"ex2", EX2, judge_approx},   {"lg2", LG2, judge_approx},    {"sin", SIN, judge_approx},
    {"cos", COS, judge_approx},   {"tanh", TANH, judge_approx},  {"abs", COPY, judge_sign},
    {"neg", COPY, judge_sign},    {"min", COPY, judge_minmax},   {"max", COPY, judge_minmax},
    {"setp", COPY, judge_setp},   {"set", COPY, judge_set},      {"slct", COPY, judge_slct},
    {"testp", COPY, judge_testp}, {"cvt", COPY, judge_to_float}, {"copysign", COPY, judge_copysign},
};

static oracle *single_oracle(struct form *f)
{
    for (size_t i = 0; i < sizeof oracles / sizeof *oracles; i++) {
        if (strcmp(f->row->name, oracles[i].name) != 0)
            continue;
        f->oracle_index = oracles[i].op;
        oracle *judge = oracles[i].judge;
        if (judge == judge_to_float && form_has(f, M(TF32)))
            return judge_tf32;
        if (judge == judge_to_float && type_info[f->types[0]].kind != 'f')
            return judge_to_integer;
        if (judge == judge_to_float && type_info[f->types[1]].kind != 'f')
            return judge_from_integer;
        if (f->oracle_index == DIV && form_has(f, M(APPROX)))
            return judge_div_approx;
        if (f->types[0] == TYPE_F64 && form_has(f, M(FTZ)) && (f->oracle_index == RCP || f->oracle_index == RSQRT))
            return judge_high_word;
        return judge;
    }
    return NULL;
}

oracle *float_oracle(struct form *f)
{
    oracle *judge = single_oracle(f);
    bool slct = strcmp(f->row->name, "slct") == 0;
    return judge && !slct && (form_packed(f->types[0]) || (f->type_count > 1 && form_packed(f->types[1])))
               ? judge_packed
               : judge;
}
