/* The lock-step engine against the one that runs a thread at a time: random kernels, and cases of whole kinds that once
 * went wrong. OPSDEBUG_LANES_SEEDS="FROM COUNT" runs other random kernels than the fixed ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/unit/ptx_kit.h"
#include "tests/unit/ptx_random.h"

enum { FIXED_SEEDS = 400 };

/* ---- random kernels ---- */

enum { CELLS, INPUT, OUT, SUMS, BUFFERS };
struct outcome {
    unsigned char *memory[BUFFERS], *written[BUFFERS], *read[BUFFERS];
    size_t bytes[BUFFERS];
    struct ptx_counts counts;
    enum status status;
};

static void run_random(const char *text, const struct random_shape *s, uint64_t seed, bool one_by_one, uint32_t workers,
                       struct outcome *o)
{
    static struct kit k;
    uint64_t random = seed;
    bool tracked = seed % 3 == 0;
    kit_load(&k, text);
    o->bytes[CELLS] = (size_t)RANDOM_REGIONS * RANDOM_CELL * s->threads;
    o->bytes[INPUT] = RANDOM_INPUT;
    o->bytes[OUT] = (size_t)RANDOM_OUT * s->threads;
    o->bytes[SUMS] = 64;
    for (int i = 0; i < BUFFERS; i++) {
        o->memory[i] = malloc(o->bytes[i]);
        o->written[i] = calloc(1, o->bytes[i] / 8 + 1);
        o->read[i] = calloc(1, o->bytes[i] / 8 + 1);
        assert_non_null(o->memory[i]);
        for (size_t n = 0; n < o->bytes[i]; n += 8) {
            uint64_t v = kit_random(&random);
            memcpy(o->memory[i] + n, &v, 8);
        }
        kit_buffer(&k, i, o->memory[i], o->bytes[i]);
        if (tracked) {
            k.ranges[i].written = o->written[i];
            k.ranges[i].read = o->read[i];
        }
    }
    k.params[4] = (uint64_t)0x8000 << 32 | s->threads;
    memcpy(k.launch.block, s->block, sizeof s->block);
    k.launch.one_by_one = one_by_one;
    k.launch.workers = workers;
    k.launch.instruction_limit = 100000000;
    k.launch.fill = 0xa5;
    o->status = kit_run(&k, "k", s->grid, s->block[0]);
    o->counts = k.result.counts;
    if (o->status != STATUS_OK)
        print_message("status %d: %s, %s, line %u\n", (int)o->status, k.diag.text,
                      k.result.fault_count ? ptx_fault_kind_name(k.result.faults[0].kind) : "",
                      k.result.fault_count ? k.result.faults[0].access.ptx_line : 0);
    kit_free(&k);
}

static void free_outcome(struct outcome *o)
{
    for (int i = 0; i < BUFFERS; i++) {
        free(o->memory[i]);
        free(o->written[i]);
        free(o->read[i]);
    }
}

static bool same_bytes(uint64_t seed, const char *what, int buffer, const unsigned char *a, const unsigned char *b,
                       size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i]) {
            print_message("seed %llu: %s of buffer %d differs at byte %zu: %02x one by one, %02x in lock-step\n",
                          (unsigned long long)seed, what, buffer, i, a[i], b[i]);
            return false;
        }
    return true;
}

static bool same_outcome(uint64_t seed, const struct outcome *a, const struct outcome *b)
{
    bool same = a->status == STATUS_OK && b->status == STATUS_OK;
    for (int i = 0; i < BUFFERS; i++) {
        same &= same_bytes(seed, "memory", i, a->memory[i], b->memory[i], a->bytes[i]);
        same &= same_bytes(seed, "what is written", i, a->written[i], b->written[i], a->bytes[i] / 8);
        same &= same_bytes(seed, "what is read", i, a->read[i], b->read[i], a->bytes[i] / 8);
    }
#define COUNT(name)                                                                                                    \
    if (a->counts.name != b->counts.name)                                                                              \
    same = false,                                                                                                      \
    print_message("seed %llu: " #name " is %llu one by one, %llu in lock-step\n", (unsigned long long)seed,            \
                  (unsigned long long)a->counts.name, (unsigned long long)b->counts.name)
    COUNT(thread_instructions);
    COUNT(warp_instructions);
    COUNT(blocks);
    COUNT(threads);
    COUNT(global_read_bytes);
    COUNT(global_write_bytes);
#undef COUNT
    return same;
}

static void test_random_kernels(void **state)
{
    (void)state;
    unsigned long long from = 1, count = FIXED_SEEDS, wrong = 0;
    const char *other = getenv("OPSDEBUG_LANES_SEEDS"), *keep = getenv("OPSDEBUG_LANES_TEXT");
    char *text = malloc(RANDOM_TEXT);
    assert_non_null(text);
    if (other)
        assert_int_equal(sscanf(other, "%llu %llu", &from, &count), 2);
    for (unsigned long long seed = from; seed < from + count; seed++) {
        struct random_shape shape;
        struct outcome threads = {0}, lanes = {0};
        random_kernel(seed, text, &shape);
        if (keep) {
            FILE *f = fopen(keep, "w");
            assert_non_null(f);
            fputs(text, f);
            fclose(f);
        }
        run_random(text, &shape, seed, true, 1, &threads);
        run_random(text, &shape, seed, false, seed % 7 == 0 ? 3 : 1, &lanes);
        if (!same_outcome(seed, &threads, &lanes)) {
            print_message("seed %llu: grid %u, block %u x %u x %u\n", seed, shape.grid, shape.block[0], shape.block[1],
                          shape.block[2]);
            wrong++;
        }
        free_outcome(&threads);
        free_outcome(&lanes);
    }
    free(text);
    assert_int_equal(wrong, 0);
}

/* ---- one kernel, both engines ---- */

enum { WORDS = 8192 };
struct pair {
    const char *body; /* of k(u64 a, u64 b, u64 w, u64 v): `a` holds random words, `b` zeros; %r0: the thread of the
                         block, %r3: of all */
    uint32_t grid, block, rows; /* rows: of a block; 0 is 1 */
    uint64_t w, v;
    bool cooperative, spins; /* spins: how often it looks depends on the order */
    uint32_t workers;
    uint64_t limit;
    uint32_t a_bytes; /* 0: all */
};
struct end {
    enum status status;
    enum ptx_fault_kind kind;
    uint32_t line, faults;
    struct ptx_access access;
    struct ptx_counts counts;
    double seconds;
    uint32_t a[WORDS], b[WORDS];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_one(const struct pair *p, bool one_by_one, struct end *e)
{
    static struct kit k;
    static char text[16384];
    uint64_t random = 1;
    int n = snprintf(text, sizeof text,
                     ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, "
                     ".param .u64 w, .param "
                     ".u64 v)\n{\n.reg .b16 %%h<4>; .reg .b32 %%r<16>; .reg .b64 %%d<16>; .reg .pred %%p<6>; .reg .b64 "
                     "%%a; .reg .b64 %%b; .reg "
                     ".b64 %%w; .reg .b64 %%v;\n.shared .align 16 .b8 tile[1024];\n.local .align 16 .b8 "
                     "stack[64];\nld.param.u64 %%a, [a]; "
                     "ld.param.u64 %%b, [b]; ld.param.u64 %%w, [w]; ld.param.u64 %%v, [v];\nmov.u32 %%r0, %%tid.x; "
                     "mov.u32 %%r1, %%ctaid.x; "
                     "mov.u32 %%r2, %%ntid.x; mad.lo.u32 %%r3, %%r1, %%r2, %%r0;\n%s\n}\n",
                     p->body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    kit_load(&k, text);
    for (size_t i = 0; i < WORDS; i++)
        e->a[i] = (uint32_t)kit_random(&random);
    memset(e->b, 0, sizeof e->b);
    kit_buffer(&k, 0, e->a, p->a_bytes ? p->a_bytes : sizeof e->a);
    kit_buffer(&k, 1, e->b, sizeof e->b);
    k.params[2] = p->w;
    k.params[3] = p->v;
    k.launch.block[1] = p->rows;
    k.launch.one_by_one = one_by_one;
    k.launch.cooperative = p->cooperative;
    k.launch.workers = p->workers;
    k.launch.instruction_limit = p->limit ? p->limit : 2000000000;
    double start = now();
    e->status = kit_run(&k, "k", p->grid, p->block);
    e->seconds = now() - start;
    e->counts = k.result.counts;
    e->faults = (uint32_t)k.result.fault_count;
    e->kind = PTX_FAULT_NONE;
    if (k.result.fault_count) {
        e->access = k.result.faults[0].access;
        e->kind = k.result.faults[0].kind;
    }
    kit_free(&k);
}

/* Both engines end alike. */
static struct end *both(const char *what, const struct pair *p)
{
    static struct end threads, lanes;
    memset(&threads.access, 0, sizeof threads.access);
    memset(&lanes.access, 0, sizeof lanes.access);
    run_one(p, true, &threads);
    run_one(p, false, &lanes);
    if (getenv("OPSDEBUG_LANES_TIMES"))
        print_message("%-40s %8.3f ms one by one, %8.3f ms in lock-step, %.2f; %llu, %llu\n", what,
                      1e3 * threads.seconds, 1e3 * lanes.seconds, lanes.seconds / threads.seconds,
                      (unsigned long long)threads.counts.thread_instructions,
                      (unsigned long long)lanes.counts.thread_instructions);
    if (threads.status != lanes.status || threads.kind != lanes.kind ||
        threads.access.ptx_line != lanes.access.ptx_line || threads.access.write != lanes.access.write ||
        threads.access.atomic != lanes.access.atomic)
        fail_msg("%s: status %d, %s in line %u one by one; %d, %s in line %u in lock-step", what, (int)threads.status,
                 ptx_fault_kind_name(threads.kind), threads.access.ptx_line, (int)lanes.status,
                 ptx_fault_kind_name(lanes.kind), lanes.access.ptx_line);
    if (memcmp(threads.access.thread, lanes.access.thread, sizeof lanes.access.thread) != 0 ||
        memcmp(threads.access.block, lanes.access.block, sizeof lanes.access.block) != 0)
        fail_msg("%s: thread (%u, %u, %u) one by one, (%u, %u, %u) in lock-step", what, threads.access.thread[0],
                 threads.access.thread[1], threads.access.thread[2], lanes.access.thread[0], lanes.access.thread[1],
                 lanes.access.thread[2]);
    if (lanes.status != STATUS_OK)
        return &lanes;
    for (size_t i = 0; i < WORDS; i++)
        if (threads.a[i] != lanes.a[i] || threads.b[i] != lanes.b[i])
            fail_msg("%s: word %zu is 0x%x, 0x%x one by one, 0x%x, 0x%x in lock-step", what, i, threads.a[i],
                     threads.b[i], lanes.a[i], lanes.b[i]);
    if (p->spins)
        return &lanes;
    assert_int_equal(threads.counts.global_read_bytes, lanes.counts.global_read_bytes);
    assert_int_equal(threads.counts.global_write_bytes, lanes.counts.global_write_bytes);
    return &lanes;
}

/* A launch constant that is first read as less than it is, and then by what the other engine does. */
static void test_constants_of_several_widths(void **state)
{
    (void)state;
    static const char *const narrow[] = {"cvt.u32.u64 %r4, %w;", "cvt.u16.u64 %h0, %w; cvt.u32.u16 %r4, %h0;",
                                         "cvt.s32.s8 %r4, %w;", "cvt.s64.s32 %d9, %w; cvt.u32.u64 %r4, %d9;"};
    static const char *const then[] = {"sub.cc.u64 %d0, %v, %w; subc.u64 %d1, 2, %w;",
                                       "bfi.b64 %d0, %w, %v, 4, 50; mov.u64 %d1, %w;",
                                       "mov.u64 %d0, %v; isspacep.global %p0, %w; selp.b64 %d1, %w, %v, %p0;",
                                       "add.u64 %d0, %b, 4096; atom.global.add.u64 %d1, [%d0], %w; mov.u64 %d1, 0;"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        for (size_t k = 0; k < sizeof then / sizeof *then; k++)
            for (int late = 0; late < 2; late++) {
                char body[1024];
                snprintf(
                    body, sizeof body,
                    "%s\n%s\nmad.wide.u32 %%d2, %%r3, 16, %%b; st.global.u64 [%%d2], %%d0; st.global.u64 [%%d2+8], "
                    "%%d1; mad.wide.u32 %%d3, %%r3, 4, %%a; st.global.u32 [%%d3], %%r4; ret;",
                    late ? then[k] : narrow[i], late ? narrow[i] : then[k]);
                struct pair p = {.body = body,
                                 .grid = 1,
                                 .block = 32,
                                 .w = UINT64_C(0x27a6a23b8763d1e5),
                                 .v = UINT64_C(0xfedcba9876543210)};
                both(body, &p);
            }
}

/* One lane, or all, do what faults: kind, instruction and thread are the other engine's. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const access[] = {"ld.global.u32 %r5, [%d1];",
                                         "st.global.u32 [%d1], %r3;",
                                         "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d1];",
                                         "st.global.v2.u64 [%d1], {%d2, %d3};",
                                         "ld.global.u8 %r5, [%d1];",
                                         "ld.u64 %d2, [%d1];",
                                         "st.u16 [%d1], %h0;",
                                         "atom.global.add.u32 %r5, [%d1], 1;",
                                         "red.global.add.u64 [%d1], %d0;",
                                         "atom.cas.b64 %d2, [%d1], %d3, %d4;",
                                         "ld.volatile.global.u32 %r5, [%d1];",
                                         "st.volatile.u32 [%d1], %r3;",
                                         "cvt.u32.u64 %r6, %d1; ld.shared.u32 %r5, [%r6];",
                                         "cvt.u32.u64 %r6, %d1; st.shared.v2.u32 [%r6], {%r3, %r3};",
                                         "ld.shared.u32 %r5, [%d1];",
                                         "cvt.u32.u64 %r6, %d1; atom.shared.add.u32 %r5, [%r6], 1;",
                                         "cvt.u32.u64 %r6, %d1; ld.local.u32 %r5, [%r6];",
                                         "st.local.u64 [%d1], %d0;",
                                         "setp.ne.u64 %p1, %d1, %d0; @%p1 trap;",
                                         "ld.global.f64 %d2, [%d1+1048576];",
                                         "cvt.u32.u64 %r6, %d1; cp.async.ca.shared.global [%r6], [%a], 16;"};
    static const uint64_t bad[] = {0,
                                   1,
                                   8,
                                   0x7f0000008000,
                                   0x7f0000007ffe,
                                   0x7f0000000001,
                                   0x7efffffffffc,
                                   0xfffffffffffffffc,
                                   0x00fe000000000400,
                                   0x00fe000000000002,
                                   0x00fd000000000040,
                                   0x00fc000000000000,
                                   0x00fb000000000010,
                                   0x8000000000000000,
                                   0xffffffff,
                                   0x80000000};
    static const char *const who[] = {"setp.eq.u32 %p0, %r0, 17; selp.b64 %d1, %w, %v, %p0;",
                                      "setp.gt.u32 %p0, %r0, 20; selp.b64 %d1, %w, %v, %p0;",
                                      "mov.u64 %d1, %w;",
                                      "mad.wide.u32 %d1, %r0, 4, %w;",
                                      "mul.wide.u32 %d1, %r0, 8; sub.u64 %d1, %w, %d1;",
                                      "setp.lt.u32 %p0, %r0, 9; @%p0 bra E; mov.u64 %d1, %w;",
                                      "setp.ne.u32 %p0, %r0, 9; @%p0 bra E; mad.wide.u32 %d1, %r0, 16, %w;"};
    for (size_t i = 0; i < sizeof access / sizeof *access; i++)
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
            for (size_t k = 0; k < sizeof who / sizeof *who; k++) {
                char body[1024], what[1200];
                bool shared = strstr(access[i], "shared"), local = strstr(access[i], ".local");
                snprintf(body, sizeof body, "cvt.u64.u32 %%d0, %%r0; cvt.u16.u32 %%h0, %%r0;\n%s\n%s\nE: ret;", who[k],
                         access[i]);
                struct pair p = {.body = body,
                                 .grid = 2,
                                 .block = 64,
                                 .w = bad[b],
                                 .v = shared  ? 64
                                      : local ? 16
                                              : 0x7f0000000100};
                snprintf(what, sizeof what, "%s %s at 0x%llx", access[i], who[k], (unsigned long long)bad[b]);
                both(what, &p);
            }
}

static void test_faults_of_control(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "X: .branchtargets A, B, A;\nshr.u32 %r4, %r0, 3; brx.idx %r4, X;\nA: add.u32 %r5, %r5, 1;\nB: ret;",
        "X: .branchtargets A, B;\nmov.u32 %r4, 0xffffffff; brx.idx %r4, X;\nA: add.u32 %r5, %r5, 1;\nB: ret;",
        "setp.eq.u32 %p0, %r0, 37; @%p0 bra A; bar.sync 0; ret;\nA: trap;",
        "setp.gt.u32 %p0, %r0, 29;\n@%p0 trap; ret;",
        "mov.u32 %r4, 16;\nbar.sync %r4; ret;",
        "mov.u32 %r4, 33;\nbarrier.sync 0, %r4; ret;",
        "stacksave.u64 %d0; add.u64 %d0, %d0, 4096;\nstackrestore.u64 %d0; ret;",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct pair p = {.body = bodies[i], .grid = 2, .block = 64};
        assert_int_equal(both(bodies[i], &p)->status, STATUS_FAULT);
    }
}

/* Steps so large that some lane is somewhere else than the first and the last one tell. */
static void test_steps_that_wrap_around(void **state)
{
    (void)state;
    static const char *const access[] = {
        "ld.shared.u32 %r5, [%d1];",
        "st.shared.u32 [%d1], %r5;",
        "st.shared.u64 [%d1], %d1;",
        "ld.global.u32 %r5, [%d1];",
        "st.global.u8 [%d1], %r5;",
        "ld.u32 %r5, [%d1];",
        "cvt.u32.u64 %r6, %d1; ld.shared.u8 %r5, [%r6];",
        "cvt.u32.u64 %r6, %d1; st.shared.u16 [%r6+16], %h0;",
        "cvt.u32.u64 %r6, %d1; ld.local.u8 %r5, [%r6];",
        "cvt.u32.u64 %r6, %d1; ld.shared.u32 %r5, [%r6+-64];",
        "cvt.u32.u64 %r6, %d1; cvt.u64.u32 %d1, %r6; add.u64 %d1, %d1, %a; ld.global.u8 %r5, [%d1];",
        "cvt.u32.u64 %r6, %d1; mad.wide.s32 %d1, %r6, 1, %a; ld.global.u8 %r5, [%d1];",
        "atom.global.add.u32 %r5, [%d1], 1;"};
    static const uint64_t steps[] = {138547336,
                                     138547332,
                                     UINT64_C(1) << 32,
                                     (UINT64_C(1) << 32) + 4,
                                     UINT64_C(1) << 31,
                                     UINT64_C(1) << 63,
                                     (UINT64_C(1) << 63) / 31 * 2,
                                     UINT64_C(0x8000000000000004),
                                     UINT64_C(1) << 59,
                                     (UINT64_C(1) << 59) + 8,
                                     0 - UINT64_C(138547336),
                                     0 - UINT64_C(4),
                                     UINT64_MAX << 33,
                                     UINT64_C(0x0842108421084210),
                                     UINT64_C(1) << 40,
                                     (UINT64_C(1) << 41) / 31,
                                     1,
                                     2,
                                     4,
                                     8,
                                     12,
                                     16};
    static const uint64_t bases[] = {0,
                                     64,
                                     128,
                                     124,
                                     0xffffffc0,
                                     0x7f0000000000,
                                     0x7f0000007f80,
                                     0x7f0000004000,
                                     0x00fe000000000000,
                                     0x00fe000000000080};
    for (size_t i = 0; i < sizeof access / sizeof *access; i++)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
            for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
                char body[1024], what[1200];
                snprintf(body, sizeof body,
                         "cvt.u64.u32 %%d0, %%r0; mov.u32 %%r5, 7; mov.u16 %%h0, 7;\nmad.lo.u64 %%d1, %%d0, %%v, "
                         "%%w;\n%s\nmad.wide.u32 %%d2, %%r0, 4, "
                         "%%b; st.global.u32 [%%d2], %%r5; E: ret;",
                         access[i]);
                struct pair p = {.body = body, .grid = 1, .block = 32, .w = bases[b], .v = steps[k]};
                snprintf(what, sizeof what, "%s at 0x%llx by 0x%llx", access[i], (unsigned long long)bases[b],
                         (unsigned long long)steps[k]);
                both(what, &p);
            }
}

/* The same with warps of several rows, whose step from row to row is another one. */
static void test_rows_that_wrap_around(void **state)
{
    (void)state;
    static const char *const access[] = {
        "ld.global.u32 %r5, [%d1];",
        "st.global.u32 [%d1], %r5;",
        "ld.shared.u32 %r5, [%d1];",
        "st.shared.u64 [%d1], %d1;",
        "ld.u64 %d6, [%d1]; cvt.u32.u64 %r5, %d6;",
        "cvt.u32.u64 %r6, %d1; st.shared.u32 [%r6+-32], %r5;",
        "st.global.u8 [%d1], %r5;",
        "red.global.add.u32 [%d1], 1;",
        "ld.global.v2.u32 {%r5, %r6}, [%d1];",
        "cvt.u32.u64 %r6, %d1; setp.lt.u32 %p1, %r6, 99; selp.u32 %r5, 3, 4, %p1; mul.wide.s32 %d6, %r6, 3; "
        "st.global.u64 [%b+8192], %d6;",
    };
    static const uint64_t columns[] = {0, 4, 8, UINT64_MAX - 3, 138547336, UINT64_C(1) << 31, UINT64_C(1) << 62};
    static const uint64_t rows[] = {
        0, 4, 32, 64, 128, UINT64_MAX - 63, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 64, UINT64_C(1) << 63, 0x10000000};
    static const uint64_t bases[] = {0, 256, 0x7f0000000000, 0x7f0000007f80, 0x7f0000004000, 0x00fe000000000000};
    for (size_t i = 0; i < sizeof access / sizeof *access; i++)
        for (size_t n = 0;
             n < sizeof columns / sizeof *columns * (sizeof rows / sizeof *rows) * (sizeof bases / sizeof *bases);
             n++) {
            uint64_t column = columns[n % 7], row = rows[n / 7 % 10], base = bases[n / 70];
            char body[1024], what[1200];
            snprintf(body, sizeof body,
                     "cvt.u64.u32 %%d0, %%r0; mov.u32 %%r5, 7; mov.u32 %%r4, %%tid.y; cvt.u64.u32 %%d4, "
                     "%%r4;\nmad.lo.u64 %%d1, %%d0, %%v, %%w; "
                     "mad.lo.u64 %%d1, %%d4, 0x%llx, %%d1;\n%s\nmov.u32 %%r7, %%ntid.x; mad.lo.u32 %%r7, %%r4, %%r7, "
                     "%%r0; mad.wide.u32 %%d2, "
                     "%%r7, 4, %%b; st.global.u32 [%%d2], %%r5; ret;",
                     (unsigned long long)row, access[i]);
            uint32_t block = UINT32_C(32) >> n % 4;
            struct pair p = {.body = body, .grid = 1, .block = block, .rows = 64 / block, .w = base, .v = column};
            snprintf(what, sizeof what, "%s at 0x%llx by 0x%llx, 0x%llx, %u columns", access[i],
                     (unsigned long long)base, (unsigned long long)column, (unsigned long long)row, block);
            both(what, &p);
        }
}

/* A warp of two rows, each in memory of its own. */
static void test_rows_in_two_ranges(void **state)
{
    (void)state;
    static const char *const access[] = {"ld.global.u32 %r5, [%d1]; add.u32 %r6, %r6, %r5;",
                                         "ld.u64 %d4, [%d1]; cvt.u32.u64 %r6, %d4;", "st.global.u32 [%d1], %r6;",
                                         "st.global.u64 [%d1], %d1;", "ld.global.u32 %r6, [%d5];"};
    for (size_t i = 0; i < sizeof access / sizeof *access; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 "mov.u32 %%r4, %%tid.y; cvt.u64.u32 %%d0, %%r4; sub.u64 %%d2, %%b, %%a; mul.lo.u64 %%d2, %%d2, %%d0; "
                 "add.u64 %%d5, %%a, "
                 "%%d2; mov.u32 %%r7, 3; mov.u32 %%r6, 5;\nmad.wide.u32 %%d1, %%r0, %u, %%d5;\nL: %s\nsub.u32 %%r7, "
                 "%%r7, 1; setp.ne.u32 "
                 "%%p0, %%r7, 0; @%%p0 bra L;\nmad.lo.u32 %%r4, %%r4, 16, %%r0; mad.wide.u32 %%d3, %%r4, 4, %%a; "
                 "st.global.u32 [%%d3+4096], "
                 "%%r6; ret;",
                 strstr(access[i], "64") ? 8u : 4u, access[i]);
        struct pair p = {.body = body, .grid = 1, .block = 16, .rows = 2};
        assert_int_equal(both(access[i], &p)->status, STATUS_OK);
    }
}

/* Two loads and the product of what they bring: registers that are one, memory that ends early, jumps between them. */
static void test_loads_and_their_product(void **state)
{
    (void)state;
    enum { SHAPES = 6, PRODUCTS = 6, LOADS = 4, STEPS = 7, GLOBAL = 0, SHARED, SHORT, KINDS };
    static const uint32_t shapes[SHAPES][2] = {{32, 2}, {16, 4}, {16, 2}, {8, 8}, {64, 1}, {16, 1}};
    static const char *const products[PRODUCTS] = {"3, %f1, %f2, %f3;",
                                                   "3, %f2, %f1, %f3;",
                                                   "1, %f1, %f2, %f3; add.f32 %f3, %f1, %f2;",
                                                   "4, %f2, %f1, %f3; mov.f32 %f3, %f4;",
                                                   "3, %f1, %f1, %f3;",
                                                   "3, %f1, %f2, %f2;"};
    static const char *const loads[LOADS] = {
        "%s %%f1, [%s8+32]; %s %%f2, [%s9+4];", "%s %%f2, [%s9+4]; %s %%f1, [%s8];", "%s %%f1, [%s8]; %s %%f2, [%s8];",
        "setp.eq.u32 %%p1, %%r7, 2; @%%p1 bra M; %s %%f1, [%s8]; M: %s %%f2, [%s9];"};
    static const uint32_t steps[STEPS][3] = {{4, 0, 0}, {4, 0, 16}, {4, 0, 20}, {4, 64, 64},
                                             {4, 0, 2}, {8, 0, 4},  {0, 64, 4}};
    for (uint32_t i = 0; i < SHAPES * PRODUCTS * LOADS * STEPS * KINDS; i++) {
        char body[2048], two[256];
        const uint32_t *shape = shapes[i % SHAPES], *step = steps[i / (SHAPES * PRODUCTS * LOADS) % STEPS];
        const uint32_t kind = i / (SHAPES * PRODUCTS * LOADS * STEPS), other = kind == GLOBAL ? step[2] : step[2] & 28;
        const char *load = kind == SHARED ? "ld.shared.f32" : "ld.global.f32", *at = kind == SHARED ? "%r" : "%d";
        snprintf(two, sizeof two, loads[i / (SHAPES * PRODUCTS) % LOADS], load, at, load, at);
        snprintf(body, sizeof body,
                 ".reg .f32 %%f<5>; mov.u32 %%r4, %%tid.y; mad.lo.u32 %%r5, %%r4, %%r2, %%r0; mad.wide.u32 %%d6, %%r5, "
                 "4, %%a; ld.global.u32 %%r6, [%%d6]; mov.b32 %%f3, %s;\n"
                 "mov.u32 %%r11, tile; mad.lo.u32 %%r10, %%r5, 4, %%r11; st.shared.u32 [%%r10], %%r6; %s\n"
                 "mul.lo.u32 %%r8, %%r0, %u; mad.lo.u32 %%r8, %%r4, %u, %%r8; mul.lo.u32 %%r9, %%r4, %u; mad.wide.u32 "
                 "%%d8, %%r8, 1, %%a; mad.wide.u32 %%d9, %%r9, 1, %%a; mov.u32 %%r7, %u;\n"
                 "L: %s\nfma.rn.f32 %%f%s\nadd.u64 %%d8, %%d8, 64; add.u32 %%r8, %%r8, 64; add.u64 %%d9, %%d9, 4; "
                 "add.u32 %%r9, %%r9, 4; sub.u32 %%r7, %%r7, 1; setp.ne.u32 %%p0, %%r7, 0; @%%p0 bra L;\n"
                 "mad.wide.u32 %%d3, %%r5, 16, %%b; st.global.f32 [%%d3], %%f1; st.global.f32 [%%d3+4], %%f2; "
                 "st.global.f32 [%%d3+8], %%f3; ret;",
                 i % 5 ? "%r6" : "0f7fc12345", kind == SHARED ? "bar.sync 0;" : "", step[0], step[1], other,
                 kind == SHORT || other == 2 ? 1 : 4, two, products[i / SHAPES % PRODUCTS]);
        struct pair p = {
            .body = body, .grid = 1, .block = shape[0], .rows = shape[1], .a_bytes = kind == SHORT ? 256 : 0};
        assert_true(both(body, &p)->status == STATUS_OK || kind == SHORT || other == 2);
    }
}

/* ---- forward progress ---- */

static const struct {
    const char *name;
    struct pair pair;
} progress[] = {
    {"spin lock among lanes",
     {.body =
          "L: atom.global.cas.b32 %r4, [%b], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra L;\n"
          "ld.volatile.global.u32 %r5, [%b+4]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%b+4], %r5; membar.gl;\n"
          "atom.global.exch.b32 %r4, [%b], 0; ret;",
      .grid = 4,
      .block = 128}},
    {"spin lock, release before the spin in the text",
     {.body = "bra S; R: ld.volatile.global.u32 %r5, [%b+4]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%b+4], %r5; "
              "membar.gl; atom.global.exch.b32 %r4, [%b], 0; "
              "ret;\nS: atom.global.cas.b32 %r4, [%b], 0, 1; setp.eq.u32 %p0, %r4, 0; @%p0 bra R; bra S;",
      .grid = 4,
      .block = 128}},
    {"lock taken in a branch, done flag",
     {.body = "mov.u32 %r6, 0;\nL: setp.ne.u32 %p0, %r6, 0; @%p0 bra E;\natom.global.cas.b32 %r4, [%b], 0, 1; "
              "setp.ne.u32 %p1, %r4, 0; @%p1 bra L;\n"
              "ld.volatile.global.u32 %r5, [%b+4]; add.u32 %r5, %r5, 3; st.volatile.global.u32 [%b+4], %r5; membar.gl; "
              "mov.u32 %r6, 1;\n"
              "atom.global.exch.b32 %r4, [%b], 0; bra L;\nE: ret;",
      .grid = 2,
      .block = 96}},
    {"ticket lock",
     {.body = "atom.global.add.u32 %r4, [%b], 1;\nL: ld.volatile.global.u32 %r5, [%b+4]; setp.ne.u32 %p0, %r5, %r4; "
              "@%p0 bra L;\n"
              "ld.volatile.global.u32 %r6, [%b+8]; mad.lo.u32 %r6, %r6, 3, 1; st.volatile.global.u32 [%b+8], %r6; "
              "membar.gl;\n"
              "add.u32 %r5, %r5, 1; st.volatile.global.u32 [%b+4], %r5; ret;",
      .grid = 3,
      .block = 64}},
    {"ticket lock with nanosleep",
     {.body = "atom.global.add.u32 %r4, [%b], 1;\nL: ld.volatile.global.u32 %r5, [%b+4]; setp.eq.u32 %p0, %r5, %r4; "
              "@%p0 bra G; nanosleep.u32 100; bra L;\nG:\n"
              "ld.volatile.global.u32 %r6, [%b+8]; mad.lo.u32 %r6, %r6, 3, 1; st.volatile.global.u32 [%b+8], %r6; "
              "membar.gl;\n"
              "add.u32 %r5, %r5, 1; st.volatile.global.u32 [%b+4], %r5; ret;",
      .grid = 3,
      .block = 64}},
    {"each lane waits for the one behind it",
     {.body = "mad.wide.u32 %d0, %r3, 4, %b; setp.eq.u32 %p0, %r3, 127; @%p0 bra G;\nL: ld.volatile.global.u32 %r5, "
              "[%d0+4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra L;\n"
              "add.u32 %r5, %r5, 1; st.volatile.global.u32 [%d0], %r5; ret;\nG: st.volatile.global.u32 [%d0], 1; ret;",
      .grid = 2,
      .block = 64}},
    {"each lane waits for the one before it, by acquire",
     {.body = "mad.wide.u32 %d0, %r3, 4, %b; setp.eq.u32 %p0, %r3, 0; @%p0 bra G;\nL: ld.acquire.gpu.global.u32 %r5, "
              "[%d0+-4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra L;\n"
              "add.u32 %r5, %r5, 1; st.release.gpu.global.u32 [%d0], %r5; ret;\nG: st.release.gpu.global.u32 [%d0], 1; "
              "ret;",
      .grid = 8,
      .block = 64}},
    {"plain loads spin in shared memory for lane 31",
     {.body = "mov.u32 %r4, tile; setp.eq.u32 %p0, %r0, 31; @%p0 bra G; st.shared.u32 [%r4+8], %r0;\nL: "
              "ld.volatile.shared.u32 %r5, [%r4]; setp.ne.u32 %p1, %r5, 1; @%p1 bra L; "
              "bra E;\nG: st.volatile.shared.u32 [%r4], 1;\nE: mad.wide.u32 %d0, %r3, 4, %b; st.global.u32 [%d0], %r0; "
              "ret;",
      .grid = 1,
      .block = 32}},
    {"a warp waits for the next",
     {.body = "mov.u32 %r4, tile; shr.u32 %r6, %r0, 5; shl.b32 %r7, %r6, 2; add.u32 %r7, %r7, %r4; "
              "st.volatile.shared.u32 [%r7], 0; bar.sync 0;\n"
              "setp.eq.u32 %p0, %r6, 7; @%p0 bra G;\nL: ld.volatile.shared.u32 %r5, [%r7+4]; setp.eq.u32 %p1, %r5, 0; "
              "@%p1 bra L;\n"
              "G: st.volatile.shared.u32 [%r7], 1; bar.sync 0; mad.wide.u32 %d0, %r3, 4, %b; ld.shared.u32 %r5, [%r7]; "
              "st.global.u32 [%d0], %r5; ret;",
      .grid = 2,
      .block = 256}},
    {"producer and consumer warps",
     {.body = "mov.u32 %r4, tile; setp.eq.u32 %p4, %r0, 0; @%p4 st.volatile.shared.u32 [%r4], 0; bar.sync 0; mov.u32 "
              "%r8, 0; mov.u32 %r9, 0; and.b32 %r6, %r0, 32; setp.ne.u32 %p0, %r6, 0; and.b32 %r7, %r0, 31; "
              "setp.ne.u32 %p1, %r7, 0; "
              "@%p1 bra E; @%p0 bra C;\nP: ld.volatile.shared.u32 %r5, [%r4]; setp.ne.u32 %p2, %r5, 0; @%p2 bra P; "
              "add.u32 %r8, %r8, 1; st.volatile.shared.u32 [%r4], %r8; setp.lt.u32 %p3, %r8, 50; @%p3 bra P; bra E;\n"
              "C: ld.volatile.shared.u32 %r5, [%r4]; setp.eq.u32 %p2, %r5, 0; @%p2 bra C; mad.lo.u32 %r9, %r9, 5, %r5; "
              "st.volatile.shared.u32 [%r4], 0; setp.lt.u32 %p3, %r5, 50; @%p3 bra C; st.global.u32 [%b], %r9;\n"
              "E: bar.sync 1; ret;",
      .grid = 1,
      .block = 64}},
    {"decoupled look-back",
     {.body = "mov.u32 %r12, tile; setp.ne.u32 %p0, %r0, 0; @%p0 bra W; atom.global.add.u32 %r4, [%b], 1; "
              "st.volatile.shared.u32 [%r12], %r4; setp.eq.u32 %p1, %r4, 0; @%p1 bra F;\n"
              "mad.wide.u32 %d0, %r4, 4, %b; L: ld.volatile.global.u32 %r5, [%d0+60]; setp.eq.u32 %p2, %r5, 0; @%p2 "
              "bra L; membar.gl; add.u32 %r5, %r5, %r4; st.volatile.global.u32 [%d0+64], %r5; bra W;\n"
              "F: st.volatile.global.u32 [%b+64], 1;\nW: bar.sync 0; ret;",
      .grid = 64,
      .block = 64}},
    {"look-back against the order of blocks",
     {.body =
          "mad.wide.u32 %d0, %r1, 4, %b; setp.ne.u32 %p0, %r0, 5; @%p0 bra W; setp.eq.u32 %p1, %r1, 2; @%p1 bra F;\n"
          "L: ld.volatile.global.u32 %r5, [%d0+4]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L; add.u32 %r5, %r5, 1; "
          "st.volatile.global.u32 [%d0], %r5; bra W;\n"
          "F: st.volatile.global.u32 [%d0], 1;\nW: ret;",
      .grid = 3,
      .block = 32}},
    {"mbarrier, some lanes wait",
     {.body = "mov.u32 %r4, tile; setp.ne.u32 %p0, %r0, 0; @%p0 bra I; mbarrier.init.shared.b64 [%r4], 64; I: bar.sync "
              "0; and.b32 %r6, %r0, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra O; "
              "mbarrier.arrive.shared.b64 %d1, [%r4];\nL: mbarrier.try_wait.shared.b64 %p2, [%r4], %d1; @!%p2 bra L; "
              "bra D;\nO: mbarrier.arrive.shared.b64 %d1, [%r4]; M: "
              "mbarrier.test_wait.shared.b64 %p2, [%r4], %d1; @!%p2 bra M;\nD: mad.wide.u32 %d0, %r3, 4, %b; "
              "st.global.u32 [%d0], %r0; ret;",
      .grid = 2,
      .block = 64}},
    {"grid barrier of atomics, cooperative",
     {.body = "mov.u32 %r10, 0;\nA: setp.ne.u32 %p0, %r0, 0; bar.sync 0; @%p0 bra W; atom.global.add.u32 %r4, [%b], 1; "
              "mov.u32 %r6, %nctaid.x; mad.lo.u32 %r7, %r6, %r10, %r6;\n"
              "L: ld.volatile.global.u32 %r5, [%b]; setp.lt.u32 %p1, %r5, %r7; @%p1 bra L;\nW: bar.sync 0; add.u32 "
              "%r10, %r10, 1; setp.lt.u32 %p2, %r10, 5; @%p2 bra A; ret;",
      .grid = 12,
      .block = 64,
      .cooperative = true}},
    {"half a warp spins on a shuffle of the other half",
     {.body = "and.b32 %r6, %r0, 16; setp.ne.u32 %p0, %r6, 0; @%p0 bra H; mov.u32 %r8, 0;\nL: ld.volatile.global.u32 "
              "%r5, [%b]; vote.sync.any.pred %p1, %p2, 0xffff; setp.lt.u32 %p3, %r5, 40; "
              "@%p3 bra L; bra E;\nH: mov.u32 %r8, 0;\nM: atom.global.add.u32 %r9, [%b+4], 1; shfl.sync.idx.b32 %r9, "
              "%r8, 16, 31, 0xffff0000; add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 20; @%p3 bra M;\n"
              "setp.eq.u32 %p4, %r0, 16; @%p4 st.volatile.global.u32 [%b], 40;\nE: ret;",
      .grid = 1,
      .block = 32}},
    {"a long loop beside one that waits for it",
     {.body = "setp.eq.u32 %p0, %r0, 3; @%p0 bra B;\nL: ld.volatile.global.u32 %r5, [%b]; setp.eq.u32 %p1, %r5, 0; "
              "@%p1 bra L; bra E;\nB: mov.u32 %r6, 0; M: mad.lo.u32 %r7, %r7, 3, %r6; add.u32 %r6, %r6, "
              "1; setp.lt.u32 %p2, %r6, 100000; @%p2 bra M; st.volatile.global.u32 [%b], 1;\nE: ret;",
      .grid = 1,
      .block = 64}},
    {"nanosleep and a plain load",
     {.body = "setp.eq.u32 %p0, %r0, 3; @%p0 bra B;\nL: nanosleep.u32 10; ld.global.u32 %r5, [%b]; setp.eq.u32 %p1, "
              "%r5, 0; @%p1 bra L; bra E;\nB: st.global.u32 [%b], 1;\nE: ret;",
      .grid = 1,
      .block = 32}},
    {"a plain load in a loop",
     {.body = "setp.eq.u32 %p0, %r0, 3; @%p0 bra B;\nL: ld.global.u32 %r5, [%b]; setp.eq.u32 %p1, %r5, 0; @%p1 bra L; "
              "bra E;\nB: st.global.u32 [%b], 1;\nE: ret;",
      .grid = 1,
      .block = 32}},
    {"a plain load in a loop, for three lanes in turn",
     {.body = "mov.u32 %r4, tile; shl.b32 %r5, %r0, 2; add.u32 %r5, %r5, %r4; setp.eq.u32 %p0, %r0, 31; st.shared.u32 "
              "[%r5], 0; bar.warp.sync 0xffffffff; @%p0 bra B;\nsetp.lt.u32 %p2, %r0, 28; @%p2 bra E;\nL: "
              "ld.shared.u32 %r6, [%r5+4]; setp.eq.u32 %p1, %r6, 0; @%p1 bra L;\nB: st.shared.u32 [%r5], 1;\nE: ret;",
      .grid = 1,
      .block = 32}},
    {"masks by lane at one instruction",
     {.body = "and.b32 %r4, %r0, 24; mov.u32 %r5, 255; shl.b32 %r5, %r5, %r4; shfl.sync.down.b32 %r6, %r0, 1, 0x1f, "
              "%r5; st.local.u32 [stack], %r6; shfl.sync.bfly.b32 %r7, %r6, 2, 0x1f, %r5; "
              "ld.local.u32 %r8, [stack]; mad.wide.u32 %d0, %r3, 4, %b; add.u32 %r8, %r8, %r7; st.global.u32 [%d0], "
              "%r8; ret;",
      .grid = 2,
      .block = 64}},
};

static void test_forward_progress(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof progress / sizeof *progress; i++) {
        struct pair p = progress[i].pair;
        p.spins = true;
        struct end *e = both(progress[i].name, &p);
        if (e->status != STATUS_OK)
            fail_msg("%s: status %d, %s in line %u", progress[i].name, (int)e->status, ptx_fault_kind_name(e->kind),
                     e->access.ptx_line);
    }
}

/* Barriers that not all threads come to, or not at one instruction. */
static void test_barriers(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        /* who brings and who takes, by warps */
        "mov.u32 %r4, tile; shl.b32 %r5, %r0, 2; and.b32 %r5, %r5, 127; add.u32 %r5, %r5, %r4; mov.u32 %r8, 0; mov.u32 "
        "%r9, 0; setp.gt.u32 "
        "%p0, %r0, 31; @%p0 bra C;\nP: add.u32 %r8, %r8, 1; mad.lo.u32 %r6, %r0, 7, %r8; st.shared.u32 [%r5], %r6; "
        "bar.arrive 1, 64; bar.sync 2, "
        "64; setp.lt.u32 %p1, %r8, 20; @%p1 bra P; bra E;\nC: bar.sync 1, 64; ld.shared.u32 %r6, [%r5]; mad.lo.u32 "
        "%r9, %r9, 3, %r6; bar.arrive "
        "2, 64; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 20; @%p1 bra C;\nE: mad.wide.u32 %d0, %r3, 4, %b; "
        "st.global.u32 [%d0], %r9; ret;",
        /* two instructions, one barrier, each with its result */
        "and.b32 %r4, %r0, 3; setp.eq.u32 %p0, %r4, 0; setp.lt.u32 %p1, %r0, 21; @%p0 bra A; barrier.red.popc.u32 %r5, "
        "1, %p1; add.u32 %r5, %r5, "
        "100; bra E;\nA: barrier.red.popc.u32 %r5, 1, !%p1;\nE: mad.wide.u32 %d0, %r3, 4, %b; st.global.u32 [%d0], "
        "%r5; ret;",
        "setp.lt.u32 %p0, %r0, 40; setp.ne.u32 %p1, %r0, 50; @%p0 bra A; barrier.red.and.pred %p2, 1, %p1; bra E;\nA: "
        "barrier.red.or.pred %p2, 1, "
        "%p1;\nE: selp.u32 %r5, 5, 6, %p2; mad.wide.u32 %d0, %r3, 4, %b; st.global.u32 [%d0], %r5; ret;",
        /* some end while others wait */
        "mov.u32 %r6, 0; and.b32 %r4, %r0, 7;\nL: setp.eq.u32 %p0, %r6, %r4; @%p0 bra E; barrier.sync 0; add.u32 %r6, "
        "%r6, 1; bra L;\nE: mad.wide.u32 "
        "%d0, %r3, 4, %b; st.global.u32 [%d0], %r6; ret;",
        /* a warp that went on in threads, and one that did not */
        "setp.gt.u32 %p0, %r0, 31; @%p0 bra E; and.b32 %r4, %r0, 16; mov.u32 %r5, 0xffff; shl.b32 %r5, %r5, %r4; "
        "shfl.sync.bfly.b32 %r6, %r0, 1, "
        "0x1f, %r5;\nE: barrier.red.popc.u32 %r7, 0, %p0; and.b32 %r4, %r0, 1; setp.eq.u32 %p1, %r4, 1; @%p1 bra F; "
        "add.u32 %r7, %r7, "
        "%r6; bar.sync 1;\nF: mad.wide.u32 %d0, %r3, 4, %b; st.global.u32 [%d0], %r7; @%p1 bar.sync 1; ret;",
        /* a count that only holds with the lanes that are missing */
        "mov.u32 %r6, 9; setp.gt.u32 %p0, %r0, 57; @%p0 bra E; barrier.sync 1, 64; mov.u32 %r6, 8;\nE: mad.wide.u32 "
        "%d0, %r3, 4, %b; st.global.u32 "
        "[%d0], %r6; ret;",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct pair p = {.body = bodies[i], .grid = 3, .block = 64};
        assert_int_equal(both(bodies[i], &p)->status, STATUS_OK);
    }
}

/* Nobody can go on: the same thread is named. */
static void test_deadlocks(void **state)
{
    (void)state;
    static const struct pair pairs[] = {
        {.body = "setp.lt.u32 %p0, %r0, 40; @%p0 bra E; setp.eq.u32 %p1, %r0, 45; @%p1 bra S;\nvote.sync.ballot.b32 "
                 "%r4, %p0, 0xffffffff; bra E;\nS: shfl.sync.idx.b32 %r4, %r0, 0, 31, 0xffffffff;\nE: ret;",
         .grid = 2,
         .block = 96},
        {.body = "setp.lt.u32 %p0, %r0, 33; @%p0 bra S; bar.sync 0; bra E;\nS: bar.sync 1;\nE: ret;",
         .grid = 1,
         .block = 64},
        {.body = "setp.lt.u32 %p0, %r0, 40; @%p0 bra E; barrier.sync 1, 64;\nE: ret;", .grid = 1, .block = 96},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct end *e = both(pairs[i].body, &pairs[i]);
        if (i < 2)
            assert_int_equal(e->kind, PTX_FAULT_BARRIER);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "L: bra L;", "setp.lt.u32 %p0, %r0, 7; @%p0 bra M;\nL: add.u32 %r4, %r4, 1; bra L;\nM: nanosleep.u32 5; bra M;",
        "setp.lt.u32 %p0, %r0, 7;\nL: @%p0 bra M; ld.volatile.global.u32 %r4, [%b]; bra L;\nM: atom.global.add.u32 "
        "%r4, [%b], 1; bra L;",
        "L: bar.sync 0; bra L;", "L: shfl.sync.idx.b32 %r4, %r5, 0, 31, 0xffffffff; bra L;"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (uint32_t workers = 1; workers < 4; workers++) {
            struct pair p = {.body = bodies[i], .grid = 4, .block = 96, .limit = 300000, .workers = workers};
            assert_int_equal(both(bodies[i], &p)->status, STATUS_LIMIT);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_kernels),
        cmocka_unit_test(test_constants_of_several_widths),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_faults_of_control),
        cmocka_unit_test(test_steps_that_wrap_around),
        cmocka_unit_test(test_rows_that_wrap_around),
        cmocka_unit_test(test_rows_in_two_ranges),
        cmocka_unit_test(test_loads_and_their_product),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_forward_progress),
        cmocka_unit_test(test_deadlocks),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
