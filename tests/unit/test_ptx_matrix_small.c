/* Matrices of single bits and of 8-bit floats against plain C. Where elements lie is written from the PTX ISA's
 * formulas. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { LANES = 32 };

/* Registers come from and go to memory lane by lane: in[lane][register], out[lane][register]. */
static void run(const char *instruction, unsigned in_registers, unsigned out_registers, const uint32_t *in,
                uint32_t *out)
{
    char text[4096];
    size_t n = 0;
#define ADD(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
    ADD(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b64 %%x<4>; .reg .b32 %%r<20>; .reg .b32 %%d<8>; .reg .b32 %%t;\n"
        "ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; mov.u32 %%t, %%tid.x;\n"
        "mad.wide.u32 %%x0, %%t, %u, %%x0; mad.wide.u32 %%x1, %%t, %u, %%x1;\n",
        in_registers * 4, out_registers * 4);
    for (unsigned i = 0; i < in_registers; i++)
        ADD("ld.global.b32 %%r%u, [%%x0+%u];\n", i, i * 4);
    ADD("%s\n", instruction);
    for (unsigned i = 0; i < out_registers; i++)
        ADD("st.global.b32 [%%x1+%u], %%d%u;\n", i * 4, i);
    ADD("ret;\n}\n");
#undef ADD
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        kit_load(&k, text);
        kit_buffer(&k, 0, (void *)(uintptr_t)in, (size_t)in_registers * LANES * 4);
        kit_buffer(&k, 1, out, (size_t)out_registers * LANES * 4);
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        if (kit_run(&k, "k", 1, LANES) != STATUS_OK)
            fail_msg("%s: %s", instruction, k.diag.text);
        assert_int_equal(k.result.fault_count, 0);
        kit_free(&k);
    }
}

static void fill(uint32_t *words, unsigned count, uint64_t seed)
{
    for (unsigned i = 0; i < count; i++)
        words[i] = (uint32_t)kit_random(&seed);
}

/* ---- bits ---- */

static void test_mma_of_bits(void **state)
{
    static const struct {
        unsigned m, k;
    } shapes[] = {{8, 128}, {16, 128}, {16, 256}};
    static const char *const ra[] = {"{%r0}", "{%r0,%r1}", "{%r0,%r1,%r2,%r3}"},
                             *const rb[] = {"{%r4}", "{%r4}", "{%r4,%r5}"},
                             *const rc[] = {"{%r6,%r7}", "{%r6,%r7,%r8,%r9}", "{%r6,%r7,%r8,%r9}"},
                             *const rd[] = {"{%d0,%d1}", "{%d0,%d1,%d2,%d3}", "{%d0,%d1,%d2,%d3}"};
    static uint32_t in[LANES * 10], out[LANES * 4];
    for (unsigned shape = 0; shape < 3; shape++)
        for (int is_and = 0; is_and < 2; is_and++) {
            char text[256];
            unsigned m = shapes[shape].m, k = shapes[shape].k, outs = m == 8 ? 2 : 4;
            snprintf(text, sizeof text, "mma.sync.aligned.m%un8k%u.row.col.s32.b1.b1.s32.%s.popc %s, %s, %s, %s;", m, k,
                     is_and ? "and" : "xor", rd[shape], ra[shape], rb[shape], rc[shape]);
            fill(in, LANES * 10, shape + 7);
            run(text, 10, outs, in, out);
            for (unsigned row = 0; row < m; row++)
                for (unsigned column = 0; column < 8; column++) {
                    uint32_t want = 0;
                    for (unsigned bit = 0; bit < k; bit++) {
                        /* a: lane = row % 8 * 4 + word % 4; register 2 * (word / 4) + (row / 8), for 8 rows word / 4 */
                        unsigned word = bit / 32, ra_index = m == 8 ? word / 4 : word / 4 * 2 + row / 8;
                        uint32_t a = in[(row % 8 * 4 + word % 4) * 10 + ra_index] >> bit % 32 & 1;
                        uint32_t b = in[(column * 4 + word % 4) * 10 + 4 + word / 4] >> bit % 32 & 1;
                        want += is_and ? a & b : a ^ b;
                    }
                    unsigned lane = row % 8 * 4 + column / 2, index = row / 8 * 2 + column % 2;
                    want += in[lane * 10 + 6 + index];
                    if (out[lane * outs + index] != want)
                        fail_msg("%s: row %u column %u: %u, want %u", text, row, column, out[lane * outs + index],
                                 want);
                }
        }
}

/* wmma: from memory to memory, with strides in bits. */
static void test_wmma_of_bits(void **state)
{
    static const char body[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, "
        ".param "
        ".u64 d) {\n.reg .b64 %%x<4>; .reg .b32 %%r<8>;\n"
        "ld.param.u64 %%x0, [a]; ld.param.u64 %%x1, [b]; ld.param.u64 %%x2, [c]; ld.param.u64 %%x3, [d];\n"
        "mov.u32 %%r7, 256; wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {%%r0}, [%%x0], %%r7;\n"
        "wmma.load.b.sync.aligned.col.m8n8k128.global.b1 {%%r1}, [%%x1];\n"
        "wmma.load.c.sync.aligned.row.m8n8k128.global.s32 {%%r2,%%r3}, [%%x2], 8;\n"
        "wmma.mma.%s.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%%r4,%%r5}, {%%r0}, {%%r1}, {%%r2,%%r3};\n"
        "wmma.store.d.sync.aligned.col.m8n8k128.global.s32 [%%x3], {%%r4,%%r5}, 8;\nret;\n}\n";
    static _Alignas(32) uint32_t a[8 * 8], b[8 * 4], c[64], d[64];
    fill(a, 64, 1);
    fill(b, 32, 2);
    fill(c, 64, 3);
    for (int is_and = 0; is_and < 2; is_and++) {
        char text[2048];
        struct kit k;
        snprintf(text, sizeof text, body, is_and ? "and" : "xor");
        kit_load(&k, text);
        kit_buffer(&k, 0, a, sizeof a);
        kit_buffer(&k, 1, b, sizeof b);
        kit_buffer(&k, 2, c, sizeof c);
        kit_buffer(&k, 3, d, sizeof d);
        k.launch.checked = true;
        assert_int_equal(kit_run(&k, "k", 1, LANES), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        for (unsigned i = 0; i < 8; i++)
            for (unsigned j = 0; j < 8; j++) {
                uint32_t want = c[i * 8 + j];
                for (unsigned w = 0; w < 4; w++)
                    for (unsigned bit = 0; bit < 32; bit++) {
                        uint32_t x = a[i * 8 + w] >> bit & 1, y = b[j * 4 + w] >> bit & 1;
                        want += is_and ? x & y : x ^ y;
                    }
                assert_int_equal(d[j * 8 + i], want);
            }
        kit_free(&k);
    }
}

/* ---- 8-bit floats ---- */

static double small(unsigned code, int e5m2)
{
    int mantissa = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7;
    unsigned e = code >> mantissa & (e5m2 ? 31u : 15u), m = code & ((1u << mantissa) - 1);
    double v = e ? (1 + m * pow(2, -mantissa)) * pow(2, (int)e - bias) : m * pow(2, 1 - bias - mantissa);
    return code & 0x80 ? -v : v;
}

static void test_mma_of_small_floats(void **state)
{
    static uint32_t in[LANES * 10], out[LANES * 4];
    for (unsigned how = 0; how < 8; how++) {
        int a5 = how & 1, b5 = how >> 1 & 1;
        unsigned k = how & 4 ? 16 : 32;
        char text[256];
        snprintf(
            text, sizeof text,
            "mma.sync.aligned.m16n8k%u.row.col.f32.%s.%s.f32 {%%d0,%%d1,%%d2,%%d3}, %s, %s, {%%r6,%%r7,%%r8,%%r9};", k,
            a5 ? "e5m2" : "e4m3", b5 ? "e5m2" : "e4m3", k == 32 ? "{%r0,%r1,%r2,%r3}" : "{%r0,%r1}",
            k == 32 ? "{%r4,%r5}" : "{%r4}");
        fill(in, LANES * 10, how + 1);
        for (unsigned i = 0; i < LANES * 10; i++) {
            if (i % 10 < 6) {
                in[i] &= 0xbfbfbfbf; /* small numbers: sums are exact */
            } else {
                float c = (float)(int)(in[i] % 100) / 4;
                memcpy(&in[i], &c, sizeof c);
            }
        }
        run(text, 10, 4, in, out);
        for (unsigned row = 0; row < 16; row++)
            for (unsigned column = 0; column < 8; column++) {
                /* element x of a row: lane group x / 4 % 4, register 2 * (x / 16) + row / 8, byte x % 4 */
                double sum = 0;
                for (unsigned x = 0; x < k; x++) {
                    uint32_t a = in[(row % 8 * 4 + x / 4 % 4) * 10 + x / 16 * 2 + row / 8] >> x % 4 * 8 & 0xff;
                    uint32_t b = in[(column * 4 + x / 4 % 4) * 10 + 4 + x / 16] >> x % 4 * 8 & 0xff;
                    sum += small(a, a5) * small(b, b5);
                }
                unsigned lane = row % 8 * 4 + column / 2, index = row / 8 * 2 + column % 2;
                float c, d;
                memcpy(&c, &in[lane * 10 + 6 + index], sizeof c);
                memcpy(&d, &out[lane * 4 + index], sizeof d);
                if (d != (float)(sum + (double)c))
                    fail_msg("%s: row %u column %u: %a, want %a", text, row, column, (double)d, sum + (double)c);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_of_bits),
        cmocka_unit_test(test_wmma_of_bits),
        cmocka_unit_test(test_mma_of_small_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
