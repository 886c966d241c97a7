/* Variants: what PTX leaves open is done otherwise, within what PTX allows, the same for the same seed; what PTX
 * defines stays. Each kind of choice has a case that shows it and a twin that no variant may touch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { COUNT = 5000, VARIANTS = 12 };

static float single(uint64_t v)
{
    uint32_t u = (uint32_t)v;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint64_t bits_of_single(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* ---- approximate functions ---- */

static double unit(double x)
{
    int e;
    frexp(x, &e);
    return ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double reciprocal(double x)
{
    return 1 / x;
}

/* Bounds of the PTX ISA, for a result r of an argument x. */
static double bound_ex2(double x, double r)
{
    return 2 * unit(r);
}

static double bound_lg2(double x, double r)
{
    return x > 0.5 && x < 2 ? ldexp(1, -22) : ldexp(fabs(r), -22);
}

static double bound_sine(double x, double r)
{
    return exp2(fabs(x) <= 6.2831 ? -20.5 : -14.7);
}

static double bound_tanh(double x, double r)
{
    return ldexp(fabs(r), -11);
}

static double bound_rcp(double x, double r)
{
    return unit(r);
}

static double bound_sqrt(double x, double r)
{
    return ldexp(fabs(r), -23);
}

static double bound_rsqrt(double x, double r)
{
    return exp2(-22.9) * fabs(r);
}

static const struct approximate {
    const char *instruction;
    double (*exact)(double);
    double (*bound)(double x, double r);
    double from, to;
} approximates[] = {
    {"ex2.approx.f32 %d, %a;", exp2, bound_ex2, -130, 127},
    {"ex2.approx.ftz.f32 %d, %a;", exp2, bound_ex2, -10, 10},
    {"lg2.approx.f32 %d, %a;", log2, bound_lg2, 1e-6, 4},
    {"sin.approx.f32 %d, %a;", sin, bound_sine, -20, 20},
    {"cos.approx.f32 %d, %a;", cos, bound_sine, -20, 20},
    {"tanh.approx.f32 %d, %a;", tanh, bound_tanh, -5, 5},
    {"rcp.approx.f32 %d, %a;", reciprocal, bound_rcp, 1e-3, 1e3},
    {"sqrt.approx.f32 %d, %a;", sqrt, bound_sqrt, 0, 1e3},
    {"rsqrt.approx.f32 %d, %a;", rsqrt, bound_rsqrt, 1e-3, 1e3},
};
enum { APPROXIMATES = sizeof approximates / sizeof *approximates };

static void test_approximate_results_stay_in_their_bound(void **state)
{
    const struct approximate *f = *state;
    static uint64_t in[3 * COUNT], plain[COUNT], out[COUNT], again[COUNT];
    uint64_t seed = 3, differ = 0, far = 0;
    for (int i = 0; i < COUNT; i++)
        in[3 * i] = bits_of_single((float)(f->from + (f->to - f->from) * (double)(kit_random(&seed) >> 11) * 0x1p-53));
    const struct kit_shape shape = {32, 32, 0, 0};
    kit_instruction_variant(f->instruction, shape, in, plain, COUNT, 0);
    for (uint64_t v = 1; v <= VARIANTS; v++) {
        kit_instruction_variant(f->instruction, shape, in, out, COUNT, v);
        kit_instruction_variant(f->instruction, shape, in, again, COUNT, v);
        assert_memory_equal(out, again, sizeof out);
        for (int i = 0; i < COUNT; i++) {
            double x = single(in[3 * i]), exact = f->exact(x), bound = f->bound(x, exact);
            double error = fabs((double)single(out[i]) - exact);
            if (!(error <= bound))
                fail_msg("%s of %a by variant %d: %a, exact %a, off by %g of the bound", f->instruction, x, (int)v,
                         single(out[i]), exact, error / bound);
            differ += out[i] != plain[i];
            far += error > 0.7 * bound;
        }
    }
    assert_true(differ > COUNT); /* of VARIANTS * COUNT */
    assert_true(far > COUNT / 50);
}

static void test_special_values_stay(void **state)
{
    static const struct {
        const char *instruction;
        uint64_t in, out;
    } rows[] = {
        {"ex2.approx.f32 %d, %a;", 0xff800000, 0},           {"ex2.approx.f32 %d, %a;", 0x80000001, 0x3f800000},
        {"ex2.approx.f32 %d, %a;", 0xffc00000, 0x7fffffff},  {"lg2.approx.f32 %d, %a;", 0x80000000, 0xff800000},
        {"lg2.approx.f32 %d, %a;", 0xbf800000, 0x7fffffff},  {"sin.approx.f32 %d, %a;", 0x80000000, 0x80000000},
        {"cos.approx.f32 %d, %a;", 0, 0x3f800000},           {"rsqrt.approx.f32 %d, %a;", 0x80000000, 0xff800000},
        {"tanh.approx.f32 %d, %a;", 0x80000000, 0x80000000}, {"rcp.approx.f32 %d, %a;", 0x7f800000, 0},
        {"sqrt.approx.f32 %d, %a;", 0x80000000, 0x80000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t v = 1; v <= VARIANTS; v++) {
            uint64_t in[3] = {rows[i].in}, out;
            kit_instruction_variant(rows[i].instruction, (struct kit_shape){32, 32, 0, 0}, in, &out, 1, v);
            assert_int_equal(out, rows[i].out);
        }
}

/* ---- what is defined stays, what is not differs ---- */

static const struct {
    const char *instruction;
    struct kit_shape shape;
    uint64_t in[3];
    bool open; /* some variant gives another result than the default, else none */
} choices[] = {
    {"div.u32 %d, %a, %b;", {32, 32, 32, 0}, {7, 0, 0}, true},
    {"div.u32 %d, %a, %b;", {32, 32, 32, 0}, {7, 2, 0}, false},
    {"div.s16 %d, %a, %b;", {16, 16, 16, 0}, {0xfff9, 0, 0}, true},
    {"div.s16 %d, %a, %b;", {16, 16, 16, 0}, {0xfff9, 2, 0}, false},
    {"div.u64 %d, %a, %b;", {64, 64, 64, 0}, {7, 0, 0}, true},
    {"rem.s64 %d, %a, %b;", {64, 64, 64, 0}, {7, 0, 0}, true},
    {"rem.s64 %d, %a, %b;", {64, 64, 64, 0}, {UINT64_C(0) - 7, 4, 0}, false},
    {"rem.u32 %d, %a, %b;", {32, 32, 32, 0}, {7, 0, 0}, true},
    {"mul24.lo.u32 %d, %a, %b;", {32, 32, 32, 0}, {0x1000001, 3, 0}, true},
    {"mul24.hi.s32 %d, %a, %b;", {32, 32, 32, 0}, {0x00ff0000, 0xfff, 0}, true},
    {"mul24.lo.s32 %d, %a, %b;", {32, 32, 32, 0}, {0xffffff85, 0x7fffff, 0}, false},
    {"mul24.hi.u32 %d, %a, %b;", {32, 32, 32, 0}, {0xffffff, 0xffffff, 0}, false},
    {"cvt.rna.tf32.f32 %d, %a;", {32, 32, 0, 0}, {0x3f812345, 0, 0}, true},
    {"cvt.rna.tf32.f32 %d, %a;", {32, 32, 0, 0}, {0x7f800000, 0, 0}, false},
    {"add.f64 %d, %a, %b;", {64, 64, 64, 0}, {0x7ff8000000001234, 0x3ff0000000000000, 0}, true},
    {"add.f64 %d, %a, %b;", {64, 64, 64, 0}, {0x4008000000001234, 0x3ff0000000000000, 0}, false},
    {"fma.rn.f64 %d, %a, %b, %c;", {64, 64, 64, 64}, {0x7ff8000000001234, 0x3ff0000000000000, 0}, true},
    {"div.approx.f32 %d, %a, %b;", {32, 32, 32, 0}, {0x3f812345, 0x40490fdb, 0}, true},
    {"div.full.f32 %d, %a, %b;", {32, 32, 32, 0}, {0x3f812345, 0x40490fdb, 0}, true},
    {"div.rn.f32 %d, %a, %b;", {32, 32, 32, 0}, {0x3f812345, 0x40490fdb, 0}, false},
    {"div.approx.f32 %d, %a, %b;", {32, 32, 32, 0}, {0x3f812345, 0x7f000000, 0}, false}, /* zero, as specified */
    {"rcp.rn.f32 %d, %a;", {32, 32, 0, 0}, {0x40490fdb, 0, 0}, false},
    {"sqrt.rn.f32 %d, %a;", {32, 32, 0, 0}, {0x40490fdb, 0, 0}, false},
    {"ex2.approx.f16 %d, %a;", {16, 16, 0, 0}, {0x3a12, 0, 0}, true},
    {"ex2.approx.f16 %d, %a;", {16, 16, 0, 0}, {0x7e00, 0, 0}, false},
    {"ex2.approx.f16x2 %d, %a;", {32, 32, 0, 0}, {0x3a123812, 0, 0}, true},
    {"tanh.approx.bf16 %d, %a;", {16, 16, 0, 0}, {0x3f12, 0, 0}, true},
    {"rcp.approx.ftz.f64 %d, %a;", {64, 64, 0, 0}, {0x4008123400000000, 0, 0}, true},
    {"rcp.approx.ftz.f64 %d, %a;", {64, 64, 0, 0}, {0, 0, 0}, false},
    /* contraction: (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, less 1 + 2^-11 */
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; sub.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     true},
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; sub.f32 %d, %c, %t;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     true},
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; add.f32 %d, %c, %t;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0xbf801000},
     true},
    {"{.reg .f32 %t; mul.ftz.f32 %t, %a, %b; add.ftz.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0xbf801000},
     true},
    {"{.reg .f64 %t; mul.f64 %t, %a, %b; add.f64 %d, %t, %c;}",
     {64, 64, 64, 64},
     {0x3ff0000002000000, 0x3ff0000002000000, 0xbff0000004000000},
     true},
    {"{.reg .f32 %t; mul.rn.f32 %t, %a, %b; sub.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     false},
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; sub.rn.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     false},
    {"{.reg .f32 %t; mul.rn.ftz.f32 %t, %a, %b; add.ftz.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0xbf801000},
     false},
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; mov.f32 %a, 0f40000000; sub.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     false},
    {"{mul.f32 %a, %a, %b; sub.f32 %d, %a, %c;}", {32, 32, 32, 32}, {0x3f800800, 0x3f800800, 0x3f801000}, false},
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; bra NEXT; NEXT: sub.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     false},
    {"{.reg .f32 %t; mul.sat.f32 %t, %a, %b; sub.f32 %d, %t, %c;}",
     {32, 32, 32, 32},
     {0x3f800800, 0x3f800800, 0x3f801000},
     false},
    {"{.reg .f32 %t; mul.f32 %t, %a, %b; add.f32 %d, %t, %t;}", {32, 32, 32, 0}, {0x3f800800, 0x3f800801, 0}, false},
};

static void test_only_what_is_open_differs(void **state)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        uint64_t plain, out, again;
        bool differs = false;
        kit_instruction_variant(choices[i].instruction, choices[i].shape, choices[i].in, &plain, 1, 0);
        for (uint64_t v = 1; v <= 40; v++) {
            kit_instruction_variant(choices[i].instruction, choices[i].shape, choices[i].in, &out, 1, v);
            kit_instruction_variant(choices[i].instruction, choices[i].shape, choices[i].in, &again, 1, v);
            assert_int_equal(out, again);
            differs |= out != plain;
        }
        if (differs != choices[i].open)
            fail_msg("%s of %llx, %llx, %llx: %s", choices[i].instruction, (unsigned long long)choices[i].in[0],
                     (unsigned long long)choices[i].in[1], (unsigned long long)choices[i].in[2],
                     differs ? "a variant changed a defined result" : "no variant chose otherwise");
    }
}

/* A contracted pair gives the fma's result, nothing else. */
static void test_contraction_is_fma_or_not(void **state)
{
    static const char *const pairs[][2] = {
        {"{.reg .f32 %t; mul.f32 %t, %a, %b; add.f32 %d, %t, %c;}", "fma.rn.f32 %d, %a, %b, %c;"},
        {"{.reg .f32 %t; mul.f32 %t, %a, %b; sub.f32 %d, %t, %c;}", "{neg.f32 %c, %c; fma.rn.f32 %d, %a, %b, %c;}"},
        {"{.reg .f32 %t; mul.f32 %t, %a, %b; sub.f32 %d, %c, %t;}", "{neg.f32 %a, %a; fma.rn.f32 %d, %a, %b, %c;}"},
        {"{.reg .f32 %t; mul.ftz.f32 %t, %a, %b; sub.ftz.f32 %d, %c, %t;}",
         "{neg.f32 %a, %a; fma.rn.ftz.f32 %d, %a, %b, %c;}"},
    };
    static uint64_t in[3 * COUNT], plain[COUNT], fused[COUNT], out[COUNT];
    uint64_t seed = 11;
    for (int i = 0; i < 3 * COUNT; i++)
        in[i] = bits_of_single((float)((double)(kit_random(&seed) >> 11) * 0x1p-52 - 1));
    const struct kit_shape shape = {32, 32, 32, 32};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        unsigned kinds = 0;
        kit_instruction_variant(pairs[p][0], shape, in, plain, COUNT, 0);
        kit_instruction_variant(pairs[p][1], shape, in, fused, COUNT, 0);
        for (uint64_t v = 1; v <= 40; v++) {
            kit_instruction_variant(pairs[p][0], shape, in, out, COUNT, v);
            if (memcmp(out, plain, sizeof out) == 0)
                kinds |= 1;
            else if (memcmp(out, fused, sizeof out) == 0)
                kinds |= 2;
            else
                fail_msg("%s: variant %d is neither separate nor fused", pairs[p][0], (int)v);
        }
        assert_int_equal(kinds, 3);
    }
}

/* ---- atomics and order ---- */

static void test_atomic_add_may_flush(void **state)
{
    struct kit k;
    kit_load(
        &k, ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b64 %x; .reg "
            ".f32 %f<3>;\nld.param.u64 %x, [p]; mov.f32 %f0, 0f00000100;\natom.global.add.f32 %f1, [%x], %f0; ret;}\n");
    uint32_t word;
    kit_buffer(&k, 0, &word, sizeof word);
    unsigned seen = 0;
    for (uint64_t v = 0; v <= 20; v++) {
        word = 0x200;
        k.launch.variant = v;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        assert_true(word == 0x300 || word == 0);
        assert_true(v != 0 || word == 0x300);
        seen |= word ? 1 : 2;
    }
    assert_int_equal(seen, 3);
    kit_free(&k);
}

static void test_lanes_come_in_another_order(void **state)
{
    struct kit k;
    kit_load(&k,
             ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q) {\n.reg "
             ".b64 %x<3>; .reg .b32 %r<3>;\nld.param.u64 %x0, [p]; ld.param.u64 %x1, [q]; mov.u32 %r0, %tid.x;\n"
             "atom.global.add.u32 %r1, [%x0], 1; mad.wide.u32 %x2, %r0, 4, %x1; st.global.u32 [%x2], %r1; ret;}\n");
    uint32_t counter, place[48], first[48];
    kit_buffer(&k, 0, &counter, sizeof counter);
    kit_buffer(&k, 1, place, sizeof place);
    bool differs = false;
    for (uint64_t v = 0; v <= 8; v++) {
        counter = 0;
        k.launch.variant = v;
        assert_int_equal(kit_run(&k, "k", 1, 48), STATUS_OK);
        uint64_t seen = 0;
        for (int i = 0; i < 48; i++)
            seen |= UINT64_C(1) << place[i];
        assert_int_equal(seen, (UINT64_C(1) << 48) - 1);
        if (v == 0)
            memcpy(first, place, sizeof first);
        differs |= memcmp(first, place, sizeof first) != 0;
    }
    assert_true(differs);
    kit_free(&k);
}

/* ---- sums of matrix instructions ---- */

static const char matrix_text[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
    ".reg .b64 %x<3>; .reg .b32 %r<12>; .reg .f32 %f<8>;\nld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 "
    "%r0, "
    "%tid.x;\nmad.wide.u32 %x0, %r0, 20, %x0; mad.wide.u32 %x1, %r0, 4, %x1;\n"
    "ld.global.b32 %r1, [%x0]; ld.global.b32 %r2, [%x0+4]; ld.global.b32 %r3, [%x0+8]; ld.global.b32 %r4, [%x0+12]; "
    "ld.global.f32 %f4, [%x0+16];\n"
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r1,%r2,%r2}, {%r3,%r4}, "
    "{%f4,%f4,%f4,%f4};\nst.global.f32 [%x1], %f0; ret;}\n";

static uint16_t half_of_integer(int n, int exponent) /* n * 2^exponent, exactly */
{
    int e;
    double m = frexp(fabs(ldexp(n, exponent)), &e);
    return n == 0 ? 0
                  : (uint16_t)((n < 0 ? 0x8000 : 0) | (unsigned)(e - 1 + 15) << 10 | ((unsigned)ldexp(m, 11) & 0x3ff));
}

static float cut_to_single(double x)
{
    float f = (float)x;
    return fabs((double)f) > fabs(x) ? nextafterf(f, 0) : f;
}

/* `size` products at a time, all of them and the sum so far cut off 24 places below the leading bit of the largest. */
static float device_sum(const double *products, float sum, int size)
{
    for (int k = 0; k < 16; k += size) {
        double largest = fabs((double)sum), total;
        for (int i = 0; i < size; i++)
            largest = fmax(largest, fabs(products[k + i]));
        int e;
        frexp(largest, &e);
        double step = ldexp(1, e - 1 - 24);
        total = trunc((double)sum / step) * step;
        for (int i = 0; i < size; i++)
            total += trunc(products[k + i] / step) * step;
        sum = cut_to_single(total);
    }
    return sum;
}

static void test_matrix_sums(void **state)
{
    struct kit k;
    kit_load(&k, matrix_text);
    static uint32_t in[32][5];
    float out[32];
    kit_buffer(&k, 0, in, sizeof in);
    kit_buffer(&k, 1, out, sizeof out);
    unsigned differ = 0;
    for (uint64_t seed = 1, round = 0; round < 200; round++) {
        int a[16], b[16];
        double products[16];
        for (int i = 0; i < 16; i++) {
            a[i] = (int)(kit_random(&seed) % 2047) - 1023;
            b[i] = (int)(kit_random(&seed) % 2047) - 1023;
            products[i] = ldexp(a[i], i % 5 - 9) * ldexp(b[i], -6);
        }
        float c = (float)((double)(kit_random(&seed) % 100000) * 0.37);
        for (int lane = 0; lane < 32; lane++) {
            int j = lane % 4 * 2; /* element pairs of k that the lane holds: the same for every row and column */
            for (int h = 0; h < 2; h++) {
                int x = j + 8 * h;
                in[lane][h] = half_of_integer(a[x], x % 5 - 9) | (uint32_t)half_of_integer(a[x + 1], (x + 1) % 5 - 9)
                                                                     << 16;
                in[lane][2 + h] = half_of_integer(b[x], -6) | (uint32_t)half_of_integer(b[x + 1], -6) << 16;
            }
            in[lane][4] = (uint32_t)bits_of_single(c);
        }
        double exact = c;
        float sequential = c, results[PTX_MATRIX_SUM_COUNT];
        for (int i = 0; i < 16; i++) {
            exact += products[i];
            sequential = (float)(products[i] + (double)sequential); /* exact in double for these */
        }
        const float expected[] = {(float)exact, sequential, device_sum(products, c, 4), device_sum(products, c, 8),
                                  device_sum(products, c, 16)};
        for (int how = 0; how < PTX_MATRIX_SUM_COUNT; how++) {
            k.launch.variant = 0;
            k.launch.matrix_sum = (enum ptx_matrix_sum)how;
            assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_OK);
            for (int lane = 1; lane < 32; lane++)
                assert_true(bits_of_single(out[lane]) == bits_of_single(out[0]));
            results[how] = out[0];
            if (bits_of_single(out[0]) != bits_of_single(expected[how]))
                fail_msg("sum %d: %a, expected %a", how, out[0], expected[how]);
            differ |= results[how] != results[0] ? 1u << how : 0;
        }
        k.launch.matrix_sum = PTX_MATRIX_EXACT;
        k.launch.variant = round + 1;
        assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_OK);
        bool known = false;
        for (int how = 0; how < PTX_MATRIX_SUM_COUNT; how++)
            known |= bits_of_single(out[0]) == bits_of_single(results[how]);
        assert_true(known);
    }
    assert_int_equal(differ, 0x1e); /* every other sum gives another result somewhere */
    kit_free(&k);
}

/* ---- limits ---- */

static void test_variant_refuses_shadow_mode(void **state)
{
    struct kit k;
    kit_load(&k, ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n");
    k.launch.variant = 1;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    k.launch.checked = false;
    k.launch.shadow = true;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_BAD_INPUT);
    kit_free(&k);
}

/* Calls, shared code, recursion: a variant's copy is used everywhere. */
static void test_functions_are_varied_too(void **state)
{
    struct kit k;
    kit_load(&k,
             ".version 9.0\n.target sm_90\n.address_size 64\n.func (.reg .f32 %r) f(.reg .f32 %a) { ex2.approx.f32 %r, "
             "%a; ret; }\n.visible .entry k(.param .u64 p) {\n.reg .b64 %x; .reg .f32 %f<3>;\nld.param.u64 %x, [p]; "
             "ld.global.f32 %f0, [%x]; call (%f1), f, (%f0);\nst.global.f32 [%x+4], %f1; ret;}\n");
    float buffer[2], plain = 0;
    kit_buffer(&k, 0, buffer, sizeof buffer);
    bool differs = false;
    for (uint64_t v = 0; v < 10; v++) {
        buffer[0] = 0.7f;
        k.launch.variant = v;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        plain = v ? plain : buffer[1];
        differs |= buffer[1] != plain;
        assert_true(fabs((double)buffer[1] - exp2((double)0.7f)) <= 2 * 0x1p-23);
    }
    assert_true(differs);
    kit_free(&k);
}

int main(void)
{
    static struct CMUnitTest tests[APPROXIMATES + 9];
    static char names[APPROXIMATES][120];
    size_t n = 0;
    for (size_t i = 0; i < APPROXIMATES; i++) {
        snprintf(names[i], sizeof names[i], "test_bound_of_%s", approximates[i].instruction);
        tests[n++] = (struct CMUnitTest){.name = names[i],
                                         .test_func = test_approximate_results_stay_in_their_bound,
                                         .initial_state = (void *)(uintptr_t)&approximates[i]};
    }
    const struct CMUnitTest more[] = {
        cmocka_unit_test(test_special_values_stay),         cmocka_unit_test(test_only_what_is_open_differs),
        cmocka_unit_test(test_contraction_is_fma_or_not),   cmocka_unit_test(test_atomic_add_may_flush),
        cmocka_unit_test(test_lanes_come_in_another_order), cmocka_unit_test(test_matrix_sums),
        cmocka_unit_test(test_variant_refuses_shadow_mode), cmocka_unit_test(test_functions_are_varied_too),
    };
    memcpy(tests + n, more, sizeof more);
    return _cmocka_run_group_tests("variant", tests, n + sizeof more / sizeof *more, NULL, NULL);
}
