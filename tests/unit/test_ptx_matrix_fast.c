/* Matrix instructions of whole warps on vectors (ptx/matrix_fast.h) against the plain way, one thread at a time: the
 * same bits for all forms, over elements of many kinds, and the same faults, counts and bitmaps for accesses. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "ptx/arith.h"
#include "ptx/lanes_choice.h"
#include "tests/unit/ptx_kit.h"

enum { LANES = 32, SETS = 24, ROOM = 256, OUT = 64 }; /* bytes of a lane: a at 0, b at 64, c at 128; its results */
static _Alignas(64) uint8_t in[SETS][LANES][ROOM], out[SETS][LANES][OUT], plain[SETS][LANES][OUT];

/* ---- elements ---- */

enum kind { ANY_BITS, SMALL_NUMBERS, ALIKE, ALL_SIZES, ZEROS, TIES, KINDS };

struct number_type {
    const char *name;
    unsigned bits, exponent, mantissa; /* exponent 0: an integer */
};
static const struct number_type number_types[] = {
    {"f16", 16, 5, 10}, {"bf16", 16, 8, 7}, {"tf32", 32, 8, 23}, {"f32", 32, 8, 23}, {"f64", 64, 11, 52},
    {"e4m3", 8, 4, 3},  {"e5m2", 8, 5, 2},  {"s8", 8, 0, 0},     {"u8", 8, 0, 0},    {"s4", 4, 0, 0},
    {"u4", 4, 0, 0},    {"b1", 32, 0, 0},   {"s32", 32, 0, 0},
};
#define EACH(x, list) for (size_t x = 0; x < sizeof(list) / sizeof *(list); x++)

static const struct number_type *type_named(const char *name)
{
    EACH(i, number_types)
    if (strcmp(number_types[i].name, name) == 0)
        return &number_types[i];
    fail_msg("no type %s", name);
    return NULL;
}

static uint64_t small_number(const struct number_type *t, int v)
{
    return t->bits == 64 ? bits64(v) : encode_narrow(v, t->mantissa, t->exponent, ROUND_RN);
}

static uint64_t element(const struct number_type *t, enum kind kind, uint64_t *random)
{
    const uint64_t r = kit_random(random), all = t->bits == 64 ? UINT64_MAX : (UINT64_C(1) << t->bits) - 1;
    if (t->exponent == 0) {
        const uint64_t most = all >> 1, edges[] = {0, 1, all, most, most + 1, most - (r >> 8) % 600};
        return kind == ANY_BITS ? r & all : edges[r % 6] & all;
    }
    const unsigned special = (1u << t->exponent) - 1, bias = special / 2;
    uint64_t mantissa = r >> 8 & ((UINT64_C(1) << t->mantissa) - 1);
    unsigned exponent = (unsigned)(kit_random(random) % special);
    switch (kind) {
    case ANY_BITS:
        return r & all;
    case SMALL_NUMBERS:
        return small_number(t, (int)(r % 13) - 6);
    case ALIKE:
        exponent = bias - 2 + exponent % 3;
        break;
    case ALL_SIZES:
        break;
    case ZEROS: /* of both signs, and subnormal numbers */
        exponent = 0;
        mantissa = r % 3 ? 0 : mantissa;
        break;
    default: { /* sums that are half an ulp, or a little more or less */
        static const unsigned below[] = {0, 0, 1, 6, 11, 12, 13, 24};
        unsigned by = below[exponent % 8];
        exponent = by < bias ? bias - by : 0;
        mantissa = r % 4 == 0 ? 1 : r % 4 == 1 ? (UINT64_C(1) << t->mantissa) - 1 : 0;
    }
    }
    return (r & 1) << (t->bits - 1) | (uint64_t)exponent << t->mantissa | mantissa;
}

static void fill(uint8_t *base, unsigned bytes, const struct number_type *t, enum kind kind, uint64_t *random)
{
    for (unsigned at = 0; at < bytes * 8; at += t->bits) {
        uint64_t code = element(t, kind, random);
        if (t->bits == 4)
            base[at / 8] = (uint8_t)(at % 8 ? base[at / 8] | code << 4 : code);
        else
            memcpy(base + at / 8, &code, t->bits / 8);
    }
}

/* ---- products ---- */

struct form {
    const char *instruction, *d, *a, *b, *c; /* their types */
    uint8_t counts[4];                       /* registers of d, a, b, c */
};
static const struct form forms[] = {
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "f32", "f16", "f16", "f32", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f32", "f16", "f16", "f32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "f16", "f16", "f16", "f16", {2, 4, 2, 2}},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "f32", "bf16", "bf16", "f32", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "f32", "bf16", "bf16", "f32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "f32", "tf32", "tf32", "f32", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "f32", "tf32", "tf32", "f32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "f64", "f64", "f64", "f64", {2, 1, 1, 2}},
    {"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64", "f64", "f64", "f64", "f64", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "f64", "f64", "f64", "f64", {4, 8, 4, 4}},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32", "f32", "e4m3", "e5m2", "f32", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", "f32", "e5m2", "e4m3", "f32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16", "f16", "e4m3", "e4m3", "f16", {2, 4, 2, 2}},
    {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "f32", "f16", "f16", "f32", {8, 2, 2, 8}},
    {"mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16", "f32", "f16", "f16", "f16", {8, 2, 2, 4}},
    {"mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16", "f16", "f16", "f16", "f16", {4, 2, 2, 4}},
    {"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", "s32", "s8", "u8", "s32", {2, 1, 1, 2}},
    {"mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32", "s32", "u8", "s8", "s32", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "s32", "s8", "s8", "s32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32", "s32", "u8", "u8", "s32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32", "s32", "s4", "u4", "s32", {2, 1, 1, 2}},
    {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u4.s4.s32", "s32", "u4", "s4", "s32", {4, 2, 1, 4}},
    {"mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "s32", "s4", "s4", "s32", {4, 4, 2, 4}},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "s32", "b1", "b1", "s32", {2, 1, 1, 2}},
    {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "s32", "b1", "b1", "s32", {4, 4, 2, 4}},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "f32", "f16", "f16", "f32", {8, 8, 8, 8}},
    {"wmma.mma.sync.aligned.row.row.m8n32k16.f16.f32", "f16", "f16", "f16", "f32", {4, 8, 8, 8}},
    {"wmma.mma.sync.aligned.col.col.m32n8k16.f32.f16", "f32", "f16", "f16", "f16", {8, 8, 8, 4}},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16", "f16", "f16", "f16", "f16", {4, 8, 8, 4}},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", "f32", "bf16", "bf16", "f32", {8, 4, 4, 8}},
    {"wmma.mma.sync.aligned.row.col.m8n32k16.f32.bf16.bf16.f32", "f32", "bf16", "bf16", "f32", {8, 2, 8, 8}},
    {"wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", "f32", "tf32", "tf32", "f32", {8, 4, 4, 8}},
    {"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn", "f64", "f64", "f64", "f64", {2, 1, 1, 2}},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32", "s32", "s8", "s8", "s32", {8, 2, 2, 8}},
    {"wmma.mma.sync.aligned.row.col.m8n32k16.s32.u8.u8.s32.satfinite", "s32", "u8", "u8", "s32", {8, 1, 4, 8}},
    {"wmma.mma.sync.aligned.row.col.m32n8k16.s32.s8.s8.s32", "s32", "s8", "s8", "s32", {8, 4, 1, 8}},
    {"wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32", "s32", "s4", "s4", "s32", {2, 1, 1, 2}},
    {"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "s32", "b1", "b1", "s32", {2, 1, 1, 2}},
};

/* A block for each set. */
static const char *kernel_text(const struct form *f)
{
    static char text[8192];
    const char *const types[4] = {f->d, f->a, f->b, f->c};
    size_t n = 0;
#define ADD(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
    ADD(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b64 %%x<4>; .reg .b32 %%t<4>;\nmov.u32 %%t0, %%ctaid.x; mov.u32 %%t1, %%tid.x; mad.lo.u32 %%t0, %%t0, "
        "32, %%t1;\nld.param.u64 %%x0, [in]; mad.wide.u32 %%x0, %%t0, %d, %%x0; ld.param.u64 %%x1, [out]; mad.wide.u32 "
        "%%x1, %%t0, %d, %%x1;\n",
        ROOM, OUT);
    const unsigned bits = strcmp(f->d, "f64") == 0 ? 64 : 32;
    for (unsigned w = 0; w < 4; w++)
        ADD(".reg .%c%u %%%c<9>;\n", strcmp(types[w], "f32") == 0 || bits == 64 ? 'f' : 'b', bits, "dabc"[w]);
    for (unsigned w = 1; w < 4; w++)
        for (unsigned i = 0; i < f->counts[w]; i++)
            ADD("ld.global.b%u %%%c%u, [%%x0+%u];\n", bits, "dabc"[w], i, (w - 1) * 64 + i * bits / 8);
    ADD("%s", f->instruction);
    for (unsigned w = 0; w < 4; w++)
        for (unsigned i = 0; i < f->counts[w]; i++)
            ADD("%s%%%c%u%s", i ? "," : w ? ",{" : " {", "dabc"[w], i, i + 1 == f->counts[w] ? "}" : "");
    ADD(";\n");
    for (unsigned i = 0; i < f->counts[0]; i++)
        ADD("st.global.b%u [%%x1+%u], %%d%u;\n", bits, i * bits / 8, i);
    ADD("ret;\n}\n");
#undef ADD
    return text;
}

static void fill_sets(const struct form *f, uint64_t seed)
{
    const unsigned bytes = strcmp(f->d, "f64") == 0 ? 8 : 4;
    const struct number_type *types[3] = {type_named(f->a), type_named(f->b), type_named(f->c)};
    for (unsigned set = 0; set < SETS; set++) {
        enum kind kinds[3]; /* most sets of one kind, some mixed */
        for (unsigned w = 0; w < 3; w++)
            kinds[w] = (enum kind)(set < 2 * KINDS ? set % KINDS : kit_random(&seed) % KINDS);
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned w = 0; w < 3; w++)
                fill(in[set][lane] + w * 64, f->counts[w + 1] * bytes, types[w], kinds[w], &seed);
        if (set == 3) { /* sums of a few, next to much larger ones */
            memset(in[set][7], 0, ROOM);
            memset(in[set][20], 0, ROOM);
        }
    }
}

static bool on_vectors(void)
{
    return lanes_take_avx2();
}

/* The other ways: in lock-step by AVX-512 and by AVX2, in threads, checked. */
enum way { LOCK_STEP, LOCK_STEP_AVX2, IN_THREADS, CHECKED, WAYS };

static void run(struct kit *k, enum way way)
{
    k->launch.checked = way == CHECKED;
    k->launch.seed = way == IN_THREADS ? 5 : 0;
    lanes_only_avx2(way == LOCK_STEP_AVX2);
    assert_int_equal(ptx_run(&k->launch, &k->result, &k->diag), STATUS_OK);
    if (way == LOCK_STEP && on_vectors() && k->launch.matrix_sum == PTX_MATRIX_EXACT && !k->launch.rounding_seed)
        assert_int_equal(k->result.lane_steps, 0);
    ptx_result_free(&k->result);
    lanes_only_avx2(false);
}

static void start(struct kit *k, const struct form *f)
{
    kit_load(k, kernel_text(f));
    kit_buffer(k, 0, in, sizeof in);
    kit_buffer(k, 1, out, sizeof out);
    k->launch.kernel = ptx_module_find_kernel(k->module, "k");
    k->launch.grid[0] = SETS;
    k->launch.block[0] = LANES;
    k->launch.grid[1] = k->launch.grid[2] = k->launch.block[1] = k->launch.block[2] = 1;
}

static void run_plain(struct kit *k)
{
    memset(out, 0xee, sizeof out);
    k->launch.checked = false;
    k->launch.seed = 0;
    k->launch.one_by_one = true;
    assert_int_equal(ptx_run(&k->launch, &k->result, &k->diag), STATUS_OK);
    ptx_result_free(&k->result);
    k->launch.one_by_one = false;
    memcpy(plain, out, sizeof out);
}

static void compare(const struct form *f, const char *how)
{
    for (unsigned set = 0; set < SETS; set++)
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned at = 0; at < OUT; at += 4)
                if (memcmp(out[set][lane] + at, plain[set][lane] + at, 4) != 0) {
                    uint32_t got, want;
                    memcpy(&got, out[set][lane] + at, 4);
                    memcpy(&want, plain[set][lane] + at, 4);
                    fail_msg("%s, %s: set %u, lane %u, word %u: %08x, not %08x", f->instruction, how, set, lane, at / 4,
                             got, want);
                }
}

static void test_products_every_form(void **state)
{
    static const char *const names[WAYS] = {"lock-step", "lock-step by AVX2", "threads", "checked"};
    EACH(i, forms)
    {
        struct kit k;
        start(&k, &forms[i]);
        for (uint64_t seed = 1; seed < 7; seed++) {
            fill_sets(&forms[i], seed * 1000 + i);
            run_plain(&k);
            for (enum way way = 0; way < WAYS; way++) {
                memset(out, 0xee, sizeof out);
                run(&k, way);
                compare(&forms[i], names[way]);
            }
        }
        kit_free(&k);
    }
}

/* Other sums, and rounding by chance, are done the plain way. */
static void test_products_other_sums(void **state)
{
    EACH(i, forms)
    {
        if (i % 3)
            continue;
        struct kit k;
        start(&k, &forms[i]);
        fill_sets(&forms[i], i + 3);
        for (int sum = PTX_MATRIX_EXACT + 1; sum <= PTX_MATRIX_SUM_COUNT; sum++) {
            k.launch.matrix_sum = sum < PTX_MATRIX_SUM_COUNT ? (enum ptx_matrix_sum)sum : PTX_MATRIX_EXACT;
            k.launch.rounding_seed = sum < PTX_MATRIX_SUM_COUNT ? 0 : 7;
            run_plain(&k);
            memset(out, 0xee, sizeof out);
            run(&k, LOCK_STEP);
            compare(&forms[i], "another sum");
        }
        kit_free(&k);
    }
}

/* ---- accesses ---- */

enum { MEMORY = 4096 };
static _Alignas(64) uint8_t memory[MEMORY], kept[MEMORY];
static uint8_t written[MEMORY / 8], read_map[MEMORY / 8], maps[2][MEMORY / 8];

/* Loads by one address and stride, and stores by another, in one space; the shared memory is filled from device
 * memory, and goes back there. */
static const char *access_text(const char *type, const char *shape, const char *layout, const char *space)
{
    static char text[4096];
    const bool shared = strcmp(space, ".shared") == 0;
    const char letter = strcmp(type, "f32") == 0 ? 'f' : 'b';
    snprintf(
        text, sizeof text,
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 m, .param .u64 from, .param "
        ".u64 to, .param .u64 stride, .param .u64 stride2) {\n.shared .align 32 .b8 s[%d];\n.reg .b64 %%x<8>; .reg "
        ".b32 %%t<8>; .reg .pred %%p; .reg .%c32 %%v<8>;\nld.param.u64 %%x0, [m]; ld.param.u64 %%x1, [from]; "
        "ld.param.u64 %%x2, [to]; ld.param.u32 %%t1, [stride]; ld.param.u32 %%t2, [stride2];\n"
        "mov.u32 %%t0, %%tid.x; mul.wide.u32 %%x4, %%t0, 4; mov.u64 %%x3, s; add.s64 %%x5, %%x3, %%x4;\n"
        "add.s64 %%x6, %%x0, %%x4;\nL: ld.global.u32 %%t3, [%%x6]; st.shared.u32 [%%x5], %%t3; add.s64 %%x5, %%x5, "
        "128; add.s64 %%x6, %%x6, 128; add.u32 %%t0, %%t0, 32; setp.lt.u32 %%p, %%t0, 512; @%%p bra L;\n"
        "bar.sync 0; %s\nadd.s64 %%x1, %%x0, %%x1; add.s64 %%x2, %%x0, %%x2;\n"
        "wmma.load.c.sync.aligned.%s.%s%s.%s {%%v0,%%v1,%%v2,%%v3%s}, [%%x1], %%t1;\n"
        "wmma.store.d.sync.aligned.%s.%s%s.%s [%%x2], {%%v0,%%v1,%%v2,%%v3%s}, %%t2;\nbar.sync 0;\n"
        "mov.u32 %%t0, %%tid.x; cvta.shared.u64 %%x3, %%x3; add.s64 %%x5, %%x3, %%x4; ld.param.u64 %%x6, [m]; "
        "add.s64 %%x6, %%x6, %%x4;\nM: ld.u32 %%t3, [%%x5]; st.global.u32 [%%x6+2048], %%t3; add.s64 %%x5, "
        "%%x5, 128; add.s64 %%x6, %%x6, 128; add.u32 %%t0, %%t0, 32; setp.lt.u32 %%p, %%t0, 512; @%%p bra M;\n"
        "ret;\n}\n",
        MEMORY / 2, letter, shared ? "mov.u64 %x0, s;" : "", layout, shape, space, type,
        letter == 'f' ? ",%v4,%v5,%v6,%v7" : "", layout, shape, space, type, letter == 'f' ? ",%v4,%v5,%v6,%v7" : "");
    return text;
}

struct outcome {
    enum status status;
    struct ptx_counts counts;
    enum ptx_fault_kind kind;
    int64_t offset;
    uint32_t line, bytes;
};

static struct outcome run_access(struct kit *k, bool one_by_one, bool avx2)
{
    for (unsigned i = 0; i < MEMORY; i++)
        memory[i] = (uint8_t)(i * 29 + i / 256);
    memset(written, 0, sizeof written);
    memset(read_map, 0, sizeof read_map);
    k->launch.one_by_one = one_by_one;
    lanes_only_avx2(avx2);
    struct outcome o = {.status = ptx_run(&k->launch, &k->result, &k->diag)};
    lanes_only_avx2(false);
    o.counts = k->result.counts;
    if (k->result.fault_count) {
        o.kind = k->result.faults[0].kind;
        o.offset = k->result.faults[0].offset;
        o.line = k->result.faults[0].access.ptx_line;
        o.bytes = k->result.faults[0].bytes;
    }
    ptx_result_free(&k->result);
    return o;
}

static void test_accesses(void **state)
{
    static const char *const types[] = {"f32", "f16"}, *const layouts[] = {"row", "col"};
    static const char *const shapes[] = {"m16n16k16", "m8n32k16", "m32n8k16"}, *const spaces[] = {".shared", ".global",
                                                                                                  ""};
    uint64_t random = 11;
    unsigned sound = 0, faults = 0;
    for (unsigned round = 0; round < 600; round++) {
        const char *type = types[round % 2];
        unsigned bytes = round % 2 ? 2 : 4;
        struct kit k;
        kit_load(&k, access_text(type, shapes[round / 2 % 3], layouts[round / 6 % 2], spaces[round / 12 % 3]));
        kit_buffer(&k, 0, memory, sizeof memory);
        k.ranges[0].written = round % 5 ? written : NULL;
        k.ranges[0].read = round % 5 ? read_map : NULL;
        for (unsigned i = 1; i < 3; i++) {
            uint64_t r = kit_random(&random);
            k.params[i] = r % 16 == 0 ? r >> 8 & 4095 : r % 16 == 1 ? UINT64_C(0) - 64 : (r >> 8) % 24 * 32;
            k.params[i + 2] = (r >> 32) % 8 == 0 ? r >> 40 & 63 : ((r >> 40) % 3 + 1) * 32 / bytes;
        }
        k.launch.kernel = ptx_module_find_kernel(k.module, "k");
        k.launch.grid[0] = k.launch.grid[1] = k.launch.grid[2] = k.launch.block[1] = k.launch.block[2] = 1;
        k.launch.block[0] = LANES;
        const struct outcome want = run_access(&k, true, false);
        memcpy(kept, memory, sizeof kept);
        memcpy(maps[0], written, sizeof written);
        memcpy(maps[1], read_map, sizeof read_map);
        for (int avx2 = 0; avx2 < 2; avx2++) {
            const struct outcome got = run_access(&k, false, avx2);
            assert_int_equal(got.status, want.status);
            assert_int_equal(got.kind, want.kind);
            assert_int_equal(got.offset, want.offset);
            assert_int_equal(got.line, want.line);
            assert_int_equal(got.bytes, want.bytes);
            if (want.status == STATUS_OK) {
                assert_memory_equal(memory, kept, sizeof kept);
                assert_memory_equal(&got.counts, &want.counts, sizeof got.counts);
                assert_memory_equal(written, maps[0], sizeof written);
                assert_memory_equal(read_map, maps[1], sizeof read_map);
            }
        }
        *(want.status == STATUS_OK ? &sound : &faults) += 1;
        kit_free(&k);
    }
    assert_true(sound > 200 && faults > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_every_form),
        cmocka_unit_test(test_products_other_sums),
        cmocka_unit_test(test_accesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
