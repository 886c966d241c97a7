/* Matrix instructions against plain products in C. Where elements lie is written down here a second time, as the PTX
 * ISA's tables have it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "tests/unit/ptx_kit.h"

enum { LANES = 32, SIDE = 64, LANE_BYTES = 256 };
static int64_t A[SIDE][SIDE], B[SIDE][SIDE], C[SIDE][SIDE], D[SIDE][SIDE];

/* ---- elements ---- */

static unsigned type_bits(const char *type)
{
    return strcmp(type, "f64") == 0                             ? 64
           : strstr(type, "16")                                 ? 16
           : strcmp(type, "s8") == 0 || strcmp(type, "u8") == 0 ? 8
           : strcmp(type, "s4") == 0 || strcmp(type, "u4") == 0 ? 4
                                                                : 32;
}

static uint64_t encoded(const char *type, int64_t v)
{
    if (strcmp(type, "f16") == 0)
        return double_to_half((double)v, ROUND_RN);
    if (strcmp(type, "bf16") == 0)
        return double_to_bfloat((double)v, ROUND_RN);
    if (strcmp(type, "f64") == 0)
        return bits64((double)v);
    if (strcmp(type, "tf32") == 0) /* the lower 13 bits are to be ignored */
        return bits32((float)v) | (v ? 0x1234 : 0);
    if (strcmp(type, "f32") == 0)
        return bits32((float)v);
    return (uint64_t)v & ((UINT64_C(1) << type_bits(type)) - 1);
}

static void put(uint8_t *base, unsigned index, const char *type, int64_t v)
{
    unsigned bits = type_bits(type);
    uint64_t code = encoded(type, v);
    if (bits == 4)
        base[index / 2] = (uint8_t)((base[index / 2] & (index % 2 ? 0x0f : 0xf0)) | code << index % 2 * 4);
    else
        memcpy(base + index * bits / 8, &code, bits / 8);
}

static uint64_t get(const uint8_t *base, unsigned index, const char *type)
{
    uint64_t code = 0;
    memcpy(&code, base + index * type_bits(type) / 8, type_bits(type) / 8);
    return code;
}

static void fill_random(const char *type_a, const char *type_b, uint64_t seed)
{
    uint64_t state = seed;
    const char *types[2] = {type_a, type_b};
    for (int which = 0; which < 2; which++) {
        int64_t low = *types[which] == 'u' ? 0 : -8, span = 16;
        if (strcmp(types[which], "u8") == 0 || strcmp(types[which], "s8") == 0) {
            span = 256;
            low *= 16;
        }
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                (which ? B : A)[i][j] = low + (int64_t)(kit_random(&state) % (uint64_t)span);
    }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            C[i][j] = (int64_t)(kit_random(&state) % 200) - 100;
}

static void multiply(unsigned m, unsigned n, unsigned k)
{
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            D[i][j] = C[i][j];
            for (unsigned x = 0; x < k; x++)
                D[i][j] += A[i][x] * B[x][j];
        }
}

/* ---- mma: where elements lie ---- */

struct place {
    unsigned row, column;
};

static struct place place_a(unsigned m, unsigned k, const char *type, unsigned lane, unsigned i)
{
    unsigned group = lane >> 2, in_group = lane % 4, bits = type_bits(type);
    if (bits == 64)
        return m == 8 ? (struct place){group, in_group}
                      : (struct place){i % 2 ? group + 8 : group, in_group + i / 2 * 4};
    if (bits == 32 && k == 4)
        return (struct place){i == 0 ? group : group + 8, in_group};
    if (bits == 32)
        return (struct place){i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4};
    if (bits == 16 && k == 8)
        return (struct place){i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
    if (bits == 16)
        return (struct place){i < 2 || (i >= 4 && i < 6) ? group : group + 8,
                              in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
    if (m == 8)
        return (struct place){group, in_group * (bits == 8 ? 4 : 8) + i};
    if (bits == 8 && k == 16)
        return (struct place){i < 4 ? group : group + 8, in_group * 4 + (i & 3)};
    if (bits == 8)
        return (struct place){i < 4 || (i >= 8 && i < 12) ? group : group + 8,
                              in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
    if (k == 32)
        return (struct place){i < 8 ? group : group + 8, in_group * 8 + (i & 7)};
    return (struct place){i < 8 || (i >= 16 && i < 24) ? group : group + 8,
                          in_group * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
}

static struct place place_b(const char *type, unsigned lane, unsigned i)
{
    unsigned group = lane >> 2, in_group = lane % 4;
    switch (type_bits(type)) {
    case 64:
    case 32:
        return (struct place){in_group + i * 4, group};
    case 16:
        return (struct place){in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
    case 8:
        return (struct place){in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
    default:
        return (struct place){in_group * 8 + (i & 7) + (i >= 8 ? 32 : 0), group};
    }
}

static struct place place_c(unsigned m, unsigned lane, unsigned i)
{
    unsigned group = lane >> 2, in_group = lane % 4;
    return m == 8 ? (struct place){group, in_group * 2 + i}
                  : (struct place){i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
}

/* ---- one instruction over registers from memory ---- */

static _Alignas(32) uint8_t registers[LANES][LANE_BYTES], results[LANES][64];
static const unsigned at_b = 64, at_c = 128;

static size_t vector(char *out, size_t n, char letter, unsigned count)
{
    n += (size_t)sprintf(out + n, "{");
    for (unsigned i = 0; i < count; i++)
        n += (size_t)sprintf(out + n, "%s%%%c%u", i ? "," : "", letter, i);
    return n + (size_t)sprintf(out + n, "}");
}

/* `counts`: registers of d, a, b, c; `wide`: they have 64 bits. */
static const char *mma_kernel(const char *instruction, const unsigned counts[4], bool wide)
{
    static char text[8192];
    unsigned bits = wide ? 64 : 32, bytes = bits / 8;
    size_t n = (size_t)sprintf(text,
                               ".version 9.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
                               ".reg .b64 %%x<4>; .reg .b32 %%t<4>; .reg .b%u %%a<9>, %%b<9>, %%c<9>, %%d<9>;\n"
                               "mov.u32 %%t0, %%laneid; ld.param.u64 %%x0, [in]; mad.wide.u32 %%x0, %%t0, %d, %%x0;\n"
                               "ld.param.u64 %%x1, [out]; mad.wide.u32 %%x1, %%t0, 64, %%x1;\n",
                               bits, LANE_BYTES);
    for (unsigned w = 1; w < 4; w++)
        for (unsigned i = 0; i < counts[w]; i++)
            n += (size_t)sprintf(text + n, "ld.global.b%u %%%c%u, [%%x0+%u];\n", bits, "dabc"[w], i,
                                 (w - 1) * 64 + i * bytes);
    n += (size_t)sprintf(text + n, "%s ", instruction);
    for (unsigned w = 0; w < 4 && counts[w]; w++) {
        n += (size_t)sprintf(text + n, w ? ", " : "");
        n = vector(text, n, "dabc"[w], counts[w]);
    }
    n += (size_t)sprintf(text + n, ";\n");
    for (unsigned i = 0; i < counts[0]; i++)
        n += (size_t)sprintf(text + n, "st.global.b%u [%%x1+%u], %%d%u;\n", bits, i * bytes, i);
    sprintf(text + n, "ret;\n}\n");
    return text;
}

/* In each mode the same bits, and no fault. */
static void run_modes(const char *text, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    struct kit k;
    uint8_t *first = calloc(1, out_bytes);
    assert_non_null(first);
    for (int mode = 0; mode < 3; mode++) {
        kit_load(&k, text);
        kit_buffer(&k, 0, in, in_bytes);
        kit_buffer(&k, 1, out, out_bytes);
        memset(out, 0xee, out_bytes);
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        assert_int_equal(kit_run(&k, "k", 1, LANES), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        if (mode == 0)
            memcpy(first, out, out_bytes);
        else
            assert_memory_equal(first, out, out_bytes);
        kit_free(&k);
    }
    free(first);
}

struct mma {
    unsigned m, n, k;
    const char *d, *a, *b;
};

static void check_mma(const struct mma *x, bool saturate)
{
    char instruction[128];
    snprintf(instruction, sizeof instruction, "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s", x->m, x->n, x->k,
             saturate ? ".satfinite" : "", x->d, x->a, x->b, x->d);
    unsigned wide = strcmp(x->d, "f64") == 0, register_bits = wide ? 64 : 32;
    unsigned in_a = x->m * x->k / LANES, in_b = x->k * x->n / LANES, in_c = x->m * x->n / LANES;
    const unsigned counts[4] = {in_c * type_bits(x->d) / register_bits, in_a * type_bits(x->a) / register_bits,
                                in_b * type_bits(x->b) / register_bits, in_c * type_bits(x->d) / register_bits};
    memset(registers, 0, sizeof registers);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < in_a; i++) {
            struct place p = place_a(x->m, x->k, x->a, lane, i);
            put(registers[lane], i, x->a, A[p.row][p.column]);
        }
        for (unsigned i = 0; i < in_b; i++) {
            struct place p = place_b(x->b, lane, i);
            put(registers[lane] + at_b, i, x->b, B[p.row][p.column]);
        }
        for (unsigned i = 0; i < in_c; i++) {
            struct place p = place_c(x->m, lane, i);
            put(registers[lane] + at_c, i, x->d, C[p.row][p.column]);
        }
    }
    run_modes(mma_kernel(instruction, counts, wide), registers, sizeof registers, results, sizeof results);
    multiply(x->m, x->n, x->k);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < in_c; i++) {
            struct place p = place_c(x->m, lane, i);
            int64_t want = D[p.row][p.column];
            if (saturate)
                want = want > INT32_MAX ? INT32_MAX : want < INT32_MIN ? INT32_MIN : want;
            if (get(results[lane], i, x->d) != encoded(x->d, want))
                fail_msg("%s: lane %u, element %u (%u, %u)", instruction, lane, i, p.row, p.column);
        }
}

static const struct mma mmas[] = {
    {16, 8, 8, "f32", "f16", "f16"},   {16, 8, 16, "f32", "f16", "f16"},  {16, 8, 8, "f16", "f16", "f16"},
    {16, 8, 16, "f16", "f16", "f16"},  {16, 8, 8, "f32", "bf16", "bf16"}, {16, 8, 16, "f32", "bf16", "bf16"},
    {16, 8, 4, "f32", "tf32", "tf32"}, {16, 8, 8, "f32", "tf32", "tf32"}, {8, 8, 4, "f64", "f64", "f64"},
    {16, 8, 4, "f64", "f64", "f64"},   {16, 8, 8, "f64", "f64", "f64"},   {16, 8, 16, "f64", "f64", "f64"},
    {8, 8, 16, "s32", "s8", "s8"},     {16, 8, 16, "s32", "s8", "u8"},    {16, 8, 32, "s32", "u8", "s8"},
    {16, 8, 32, "s32", "u8", "u8"},    {8, 8, 32, "s32", "s4", "u4"},     {16, 8, 32, "s32", "u4", "s4"},
    {16, 8, 64, "s32", "s4", "s4"},    {16, 8, 64, "s32", "u4", "u4"},
};
#define EACH(x, list) for (size_t x = 0; x < sizeof(list) / sizeof *(list); x++)

static void test_mma_every_form(void **state)
{
    EACH(i, mmas)
    for (uint64_t seed = 1; seed < 4; seed++) {
        fill_random(mmas[i].a, mmas[i].b, seed * 100 + i);
        check_mma(&mmas[i], false);
    }
}

/* One element of a and one of b are not zero: exactly one of d. */
static void test_mma_one_hot(void **state)
{
    EACH(i, mmas)
    for (unsigned at = 0; at < mmas[i].k; at += 3) {
        memset(A, 0, sizeof A);
        memset(B, 0, sizeof B);
        memset(C, 0, sizeof C);
        A[at % mmas[i].m][at] = 3;
        B[at][(at + 5) % 8] = 2;
        check_mma(&mmas[i], false);
    }
}

static void test_mma_integers_wrap_or_saturate(void **state)
{
    fill_random("u8", "u8", 5);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            C[i][j] = (i + j) % 2 ? INT32_MAX - 5 : INT32_MIN + 5;
    static const struct mma u = {16, 8, 32, "s32", "u8", "u8"}, s = {16, 8, 32, "s32", "s8", "s8"};
    check_mma(&u, false);
    check_mma(&u, true);
    fill_random("s8", "s8", 6);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            C[i][j] = (i + j) % 2 ? INT32_MAX - 5 : INT32_MIN + 5;
    check_mma(&s, false);
    check_mma(&s, true);
}

/* Volta's four products at once. */
static void check_volta(bool a_columns, bool b_columns, const char *d, const char *c)
{
    char instruction[128];
    snprintf(instruction, sizeof instruction, "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s", a_columns ? "col" : "row",
             b_columns ? "col" : "row", d, c);
    const unsigned counts[4] = {*d == 'f' && d[1] == '3' ? 8 : 4, 2, 2, *c == 'f' && c[1] == '3' ? 8 : 4};
    memset(registers, 0, sizeof registers);
    fill_random("f16", "f16", 77);
    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned q = lane % 16 / 4 * 8, high = lane < 16 ? 0 : 4;
        for (unsigned i = 0; i < 4; i++) {
            put(registers[lane], i, "f16", a_columns ? A[q + i % 4 + high][lane % 4] : A[q + lane % 4 + high][i]);
            put(registers[lane] + at_b, i, "f16", b_columns ? B[i][q + lane % 4 + high] : B[lane % 4][q + i + high]);
        }
        for (unsigned i = 0; i < 8; i++) {
            unsigned row = c[1] == '3' ? (lane & 1) + (i & 2) + high : lane % 4 + high;
            unsigned column = c[1] == '3' ? (i & 4) + (lane & 2) + (i & 1) : i;
            put(registers[lane] + at_c, i, c, C[q + row][q + column]);
        }
    }
    run_modes(mma_kernel(instruction, counts, false), registers, sizeof registers, results, sizeof results);
    multiply(32, 32, 4);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < 8; i++) {
            unsigned q = lane % 16 / 4 * 8, high = lane < 16 ? 0 : 4;
            unsigned row = d[1] == '3' ? (lane & 1) + (i & 2) + high : lane % 4 + high;
            unsigned column = d[1] == '3' ? (i & 4) + (lane & 2) + (i & 1) : i;
            assert_int_equal(get(results[lane], i, d), encoded(d, D[q + row][q + column]));
        }
}

static void test_mma_volta(void **state)
{
    for (int layouts = 0; layouts < 4; layouts++) {
        check_volta(layouts & 1, layouts & 2, "f32", "f32");
        check_volta(layouts & 1, layouts & 2, "f16", "f16");
        check_volta(layouts & 1, layouts & 2, "f32", "f16");
    }
}

/* ---- rounding ---- */

/* Halves of all sizes: the sum is rounded once. */
static void test_mma_rounds_once(void **state)
{
    static const unsigned counts[4] = {4, 4, 2, 4};
    uint64_t random = 3;
    for (int round = 0; round < 20; round++) {
        memset(registers, 0, sizeof registers);
        float c[16][8];
        uint16_t a[16][16], b[16][8];
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 16; j++) {
                a[i][j] = (uint16_t)(kit_random(&random) % 0x7800 | (kit_random(&random) & 0x8000));
                if (j < 8) {
                    b[i][j] = (uint16_t)(kit_random(&random) % 0x7800 | (kit_random(&random) & 0x8000));
                    c[i][j] =
                        (float)ldexp((double)(kit_random(&random) % 1000000), (int)(kit_random(&random) % 40) - 30);
                }
            }
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned i = 0; i < 8; i++) {
                struct place p = place_a(16, 16, "f16", lane, i), q = place_b("f16", lane, i), r = place_c(16, lane, i);
                memcpy(registers[lane] + 2 * i, &a[p.row][p.column], 2);
                if (i < 4) {
                    memcpy(registers[lane] + at_b + 2 * i, &b[q.row][q.column], 2);
                    memcpy(registers[lane] + at_c + 4 * i, &c[r.row][r.column], 4);
                }
            }
        run_modes(mma_kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", counts, false), registers,
                  sizeof registers, results, sizeof results);
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned i = 0; i < 4; i++) {
                struct place r = place_c(16, lane, i);
                __float128 sum = c[r.row][r.column];
                for (unsigned k = 0; k < 16; k++)
                    sum += (__float128)half_to_float(a[r.row][k]) * half_to_float(b[k][r.column]);
                assert_int_equal(get(results[lane], i, "f32"), bits32((float)sum));
            }
    }
}

static void test_mma_special_values(void **state)
{
    static const unsigned counts[4] = {4, 4, 2, 4};
    memset(registers, 0, sizeof registers);
    const uint32_t infinite = 0x7c00, minus_zero = 0x80000000;
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 4; i++)
            memcpy(registers[lane] + at_c + 4 * i, &minus_zero, 4);
        if (lane == 0)
            memcpy(registers[lane], &infinite, 4); /* a[0][0] */
    }
    run_modes(mma_kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", counts, false), registers,
              sizeof registers, results, sizeof results);
    assert_int_equal(get(results[0], 0, "f32"), 0x7fffffff); /* inf * 0 */
    assert_int_equal(get(results[0], 2, "f32"), 0);          /* -0 + 0 */
}

/* ---- wmma ---- */

struct wmma {
    unsigned m, n, k;
    const char *d, *c, *a;
    unsigned a_registers, b_registers;
};
static const struct wmma wmmas[] = {
    {16, 16, 16, "f32", "f32", "f16", 8, 8},  {8, 32, 16, "f32", "f32", "f16", 8, 8},
    {32, 8, 16, "f32", "f32", "f16", 8, 8},   {16, 16, 16, "f16", "f16", "f16", 8, 8},
    {8, 32, 16, "f16", "f32", "f16", 8, 8},   {32, 8, 16, "f32", "f16", "f16", 8, 8},
    {16, 16, 16, "f32", "f32", "bf16", 4, 4}, {8, 32, 16, "f32", "f32", "bf16", 2, 8},
    {32, 8, 16, "f32", "f32", "bf16", 8, 2},  {16, 16, 8, "f32", "f32", "tf32", 4, 4},
    {16, 16, 16, "s32", "s32", "s8", 2, 2},   {8, 32, 16, "s32", "s32", "u8", 1, 4},
    {32, 8, 16, "s32", "s32", "u8", 4, 1},    {8, 8, 4, "f64", "f64", "f64", 1, 1},
    {8, 8, 32, "s32", "s32", "s4", 1, 1},     {8, 8, 32, "s32", "s32", "u4", 1, 1},
};
enum { MATRIX_BYTES = 8192 };
static _Alignas(32) uint8_t memory[4 * MATRIX_BYTES], stored[MATRIX_BYTES];

static void put_matrix(uint8_t *base, int64_t from[SIDE][SIDE], unsigned rows, unsigned columns, const char *type,
                       bool by_column, unsigned stride)
{
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < columns; j++)
            put(base, by_column ? j * stride + i : i * stride + j, type, from[i][j]);
}

/* a, b, c at 0, MATRIX_BYTES, 2 MATRIX_BYTES of memory, d to `out`, all with a stride of 32 elements (64 for s4). */
static const char *wmma_kernel(const struct wmma *x, const char *la, const char *lb, const char *lc, const char *space)
{
    static char text[8192];
    char shape[32];
    snprintf(shape, sizeof shape, "m%un%uk%u", x->m, x->n, x->k);
    bool wide = strcmp(x->d, "f64") == 0, shared = strcmp(space, ".shared") == 0, integers = strcmp(x->a, "f16") != 0;
    unsigned register_bits = wide ? 64 : 32;
    unsigned in_c = x->m * x->n / LANES * type_bits(x->c) / register_bits;
    unsigned in_d = x->m * x->n / LANES * type_bits(x->d) / register_bits;
    size_t n = 0;
#define ADD(...) n += (size_t)sprintf(text + n, __VA_ARGS__)
    ADD(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n");
    ADD(".shared .align 32 .b8 s[%d];\n", 3 * MATRIX_BYTES);
    ADD(".reg .b64 %%x<8>; .reg .b32 %%t<8>; .reg .pred %%p; .reg .b%u %%a<9>, %%b<9>, %%c<9>, %%d<9>;\n",
        register_bits);
    ADD("ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; mov.u32 %%t1, 32;\n");
    if (shared)
        ADD("mov.u32 %%t0, %%laneid; mul.lo.s32 %%t0, %%t0, 4; mov.u64 %%x3, s; cvt.u64.u32 %%x4, %%t0;\n"
            "L: add.s64 %%x5, %%x0, %%x4; ld.global.u32 %%t2, [%%x5]; add.s64 %%x5, %%x3, %%x4;\n"
            "st.shared.u32 [%%x5], %%t2; add.s64 %%x4, %%x4, 128; setp.lt.u64 %%p, %%x4, %d; @%%p bra L;\n"
            "bar.sync 0; mov.u64 %%x0, s;\n",
            3 * MATRIX_BYTES);
    ADD("wmma.load.a.sync.aligned.%s.%s%s.%s ", la, shape, space, x->a);
    n = vector(text, n, 'a', x->a_registers);
    ADD(", [%%x0], %s;\nwmma.load.b.sync.aligned.%s.%s%s.%s ", integers ? "%t1" : "32", lb, shape, space, x->a);
    n = vector(text, n, 'b', x->b_registers);
    ADD(", [%%x0+%d], 32;\nwmma.load.c.sync.aligned.%s.%s%s.%s ", MATRIX_BYTES, lc, shape, space, x->c);
    n = vector(text, n, 'c', in_c);
    ADD(", [%%x0+%d], 32;\nwmma.mma.sync.aligned.%s.%s.%s.%s", 2 * MATRIX_BYTES, la, lb, shape, x->d);
    if (integers)
        ADD(".%s.%s", x->a, x->a);
    ADD(".%s%s ", x->c, wide ? ".rn" : "");
    n = vector(text, n, 'd', in_d);
    for (int w = 0; w < 3; w++) {
        ADD(", ");
        n = vector(text, n, "abc"[w], w == 0 ? x->a_registers : w == 1 ? x->b_registers : in_c);
    }
    ADD(";\nwmma.store.d.sync.aligned.%s.%s.global.%s [%%x1], ", lc, shape, x->d);
    n = vector(text, n, 'd', in_d);
    ADD(", 32;\nret;\n}\n");
#undef ADD
    return text;
}

static void check_wmma(const struct wmma *x, bool a_columns, bool b_columns, bool c_columns, const char *space)
{
    fill_random(x->a, x->a, x->m + x->k);
    memset(memory, 0, sizeof memory);
    put_matrix(memory, A, x->m, x->k, x->a, a_columns, 32);
    put_matrix(memory + MATRIX_BYTES, B, x->k, x->n, x->a, b_columns, 32);
    put_matrix(memory + 2 * MATRIX_BYTES, C, x->m, x->n, x->c, c_columns, 32);
    const char *names[] = {"row", "col"};
    const char *text = wmma_kernel(x, names[a_columns], names[b_columns], names[c_columns], space);
    run_modes(text, memory, sizeof memory, stored, sizeof stored);
    multiply(x->m, x->n, x->k);
    for (unsigned i = 0; i < x->m; i++)
        for (unsigned j = 0; j < x->n; j++)
            if (get(stored, c_columns ? j * 32 + i : i * 32 + j, x->d) != encoded(x->d, D[i][j]))
                fail_msg("(%u, %u) of\n%s", i, j, text);
}

static void test_wmma_every_form(void **state)
{
    static const char *const spaces[] = {".global", ".shared", ""};
    EACH(i, wmmas)
    for (int layouts = 0; layouts < 8; layouts++) {
        bool a = layouts & 1, b = layouts & 2;
        if (type_bits(wmmas[i].a) == 4 && (a || !b))
            continue;
        check_wmma(&wmmas[i], a, b, layouts & 4, spaces[(i + (size_t)layouts) % 3]);
    }
}

/* ---- matrices of 8 x 8 halves ---- */

static uint16_t small[4][8][8], small_out[4][8][8];

/* Lane i's row of the matrices in memory, loaded and stored again with the given modifiers. */
static const char *small_kernel(unsigned count, const char *load, const char *store)
{
    static char text[4096];
    size_t n = (size_t)sprintf(
        text,
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".shared .align 16 .b8 s[1024];\n.reg .b64 %%x<8>; .reg .b32 %%t<8>, %%d<4>;\n"
        "ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; mov.u32 %%t0, %%laneid; mul.wide.u32 %%x2, %%t0, 16;\n"
        "add.s64 %%x0, %%x0, %%x2; add.s64 %%x1, %%x1, %%x2; mov.u64 %%x3, s; add.s64 %%x3, %%x3, %%x2;\n"
        "ld.global.v4.u32 {%%t1,%%t2,%%t3,%%t4}, [%%x0]; st.shared.v4.u32 [%%x3], {%%t1,%%t2,%%t3,%%t4};\n"
        "st.shared.v4.u32 [%%x3+512], {%%t1,%%t2,%%t3,%%t4}; cvt.u32.u64 %%t5, %%x3; bar.warp.sync -1;\n"
        "ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 ",
        count, load);
    n = vector(text, n, 'd', count);
    n += (size_t)sprintf(text + n, ", [%%t5];\n");
    if (store) {
        n += (size_t)sprintf(text + n, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%%x3+512], ", count, store);
        n = vector(text, n, 'd', count);
        sprintf(text + n, ";\nbar.warp.sync -1; ld.shared.v4.u32 {%%t1,%%t2,%%t3,%%t4}, [%%x3+512];\n"
                          "st.global.v4.u32 [%%x1], {%%t1,%%t2,%%t3,%%t4}; ret;\n}\n");
        return text;
    }
    for (unsigned i = 0; i < count; i++)
        n += (size_t)sprintf(text + n, "st.global.u32 [%%x1+%u], %%d%u;\n", 4 * i, i);
    sprintf(text + n, "ret;\n}\n");
    return text;
}

static void fill_small(void)
{
    for (int i = 0; i < 256; i++)
        (&small[0][0][0])[i] = (uint16_t)(0x4000 + i);
}

static void test_ldmatrix(void **state)
{
    fill_small();
    for (unsigned count = 1; count <= 4; count *= 2)
        for (int transposed = 0; transposed < 2; transposed++) {
            run_modes(small_kernel(count, transposed ? ".trans" : "", NULL), small, sizeof small, small_out,
                      sizeof small_out);
            for (unsigned lane = 0; lane < LANES; lane++)
                for (unsigned r = 0; r < count; r++)
                    for (unsigned s = 0; s < 2; s++) {
                        unsigned row = lane / 4, column = lane % 4 * 2 + s;
                        uint16_t got = (&small_out[0][0][0])[lane * 8 + r * 2 + s];
                        assert_int_equal(got, transposed ? small[r][column][row] : small[r][row][column]);
                    }
        }
}

static void test_stmatrix(void **state)
{
    static const char *const words[] = {"", ".trans"};
    fill_small();
    for (unsigned count = 1; count <= 4; count *= 2)
        for (int which = 0; which < 4; which++) {
            run_modes(small_kernel(count, words[which & 1], words[which >> 1]), small, sizeof small, small_out,
                      sizeof small_out);
            bool transposed = (which & 1) != which >> 1;
            for (unsigned r = 0; r < 4; r++)
                for (unsigned i = 0; i < 8; i++)
                    for (unsigned j = 0; j < 8; j++)
                        assert_int_equal(small_out[r][i][j], transposed && r < count ? small[r][j][i] : small[r][i][j]);
        }
}

static void test_movmatrix(void **state)
{
    static const unsigned counts[4] = {1, 1, 0, 0};
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned s = 0; s < 2; s++)
            put(registers[lane], s, "b16", lane / 4 * 8 + lane % 4 * 2 + s);
    run_modes(mma_kernel("movmatrix.sync.aligned.m8n8.trans.b16", counts, false), registers, sizeof registers, results,
              sizeof results);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned s = 0; s < 2; s++)
            assert_int_equal(get(results[lane], s, "b16"), (lane % 4 * 2 + s) * 8 + lane / 4);
}

/* ---- tf32 ---- */

static void test_cvt_tf32(void **state)
{
    enum { COUNT = 4096 };
    static uint64_t in[3 * COUNT], got[COUNT];
    uint64_t random = 9;
    for (unsigned i = 0; i < COUNT; i++)
        in[3 * i] = (uint32_t)kit_random(&random);
    const uint32_t edges[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7f7fffff, 0x3f801000, 0x3f800fff, 0x3f803000, 1};
    for (unsigned i = 0; i < sizeof edges / sizeof *edges; i++)
        in[3 * i] = edges[i];
    static const char *const words[] = {"rna", "rz", "rn"};
    for (unsigned which = 0; which < 3; which++) {
        char instruction[64];
        snprintf(instruction, sizeof instruction, "cvt.%s.tf32.f32 %%d, %%a;", words[which]);
        kit_instruction(instruction, (struct kit_shape){32, 32, 0, 0}, in, got, COUNT);
        for (unsigned i = 0; i < COUNT; i++) {
            uint32_t a = (uint32_t)in[3 * i], tie = which == 2 ? 0xfff + (a >> 13 & 1) : which == 0 ? 0x1000 : 0;
            uint32_t want = (a & 0x7fffffff) > 0x7f800000    ? 0x7fffffff
                            : (a & 0x7fffffff) == 0x7f800000 ? a
                                                             : (a + tie) & ~UINT32_C(0x1fff);
            if (got[i] != want)
                fail_msg("%s of %08x: %08x, not %08x", instruction, a, (unsigned)got[i], want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_every_form),
        cmocka_unit_test(test_mma_one_hot),
        cmocka_unit_test(test_mma_integers_wrap_or_saturate),
        cmocka_unit_test(test_mma_volta),
        cmocka_unit_test(test_mma_rounds_once),
        cmocka_unit_test(test_mma_special_values),
        cmocka_unit_test(test_wmma_every_form),
        cmocka_unit_test(test_ldmatrix),
        cmocka_unit_test(test_stmatrix),
        cmocka_unit_test(test_movmatrix),
        cmocka_unit_test(test_cvt_tf32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
