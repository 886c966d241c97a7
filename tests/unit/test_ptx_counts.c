/* Exact counts of launches: what the executor says of a kernel against what plain C says of its pattern. The kernels
 * take the offsets that their threads access from a table, so that any pattern can be asked for, and the expected
 * sectors, lines and wavefronts are found by counting sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "tests/unit/ptx_kit.h"
#include "tests/unit/ptx_pattern.h"
#include "tests/unit/ptx_random.h"

enum { SHARED = 16384 };

/* ---- the kernel of one access ---- */

enum access { LOAD, STORE, ATOMIC };

/* k(table, data): thread i does the access at data + table[2 * i], if table[2 * i + 1] is not 0; by a branch around it
 * or by a guard. The access is on line 12 or 13. */
static void access_text(char *text, size_t room, const char *space, enum access what, uint32_t size, bool branch)
{
    static const char *const types[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64", [16] = "v2.u64"};
    char access[200];
    const char *value = size == 16 ? "{%rd6, %rd7}" : size == 8 ? "%rd6" : size == 4 ? "%r4" : "%rs1";
    const char *at = strcmp(space, "shared") == 0 ? "%r5" : "%rd5";
    if (what == LOAD)
        snprintf(access, sizeof access, "ld.%s.%s %s, [%s];", space, types[size], value, at);
    else if (what == STORE)
        snprintf(access, sizeof access, "st.%s.%s [%s], %s;", space, types[size], at, value);
    else
        snprintf(access, sizeof access, "atom.%s.add.%s %s, [%s], 1;", space, types[size], value, at);
    snprintf(
        text, room,
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 table, .param .u64 data)\n"
        "{ .reg .pred %%p<3>; .reg .b16 %%rs<4>; .reg .b32 %%r<8>; .reg .b64 %%rd<9>; .shared .align 16 .b8 s[%d];\n"
        "ld.param.u64 %%rd1, [table]; ld.param.u64 %%rd2, [data]; mov.u32 %%r1, %%tid.x;\n"
        "mov.u16 %%rs1, 0; mov.u32 %%r4, 0; mov.u64 %%rd6, 0; mov.u64 %%rd7, 0;\n"
        "mul.wide.u32 %%rd3, %%r1, 8; add.s64 %%rd4, %%rd1, %%rd3;\n"
        "ld.global.v2.u32 {%%r2, %%r3}, [%%rd4]; cvt.u64.u32 %%rd8, %%r2; add.s64 %%rd5, %%rd2, %%rd8;\n"
        "mov.u32 %%r6, s; add.s32 %%r5, %%r6, %%r2; setp.eq.u32 %%p1, %%r3, 0;\n"
        "%s\n%s %s\nDONE: ret; }\n",
        SHARED, branch ? "@%p1 bra DONE;" : "", branch ? "" : "@!%p1", access);
}

static const struct ptx_instruction_counts *at_line(const struct ptx_profile *p, uint32_t line)
{
    for (size_t i = 0; i < p->instruction_count; i++)
        if (p->instructions[i].ptx_line == line)
            return &p->instructions[i];
    return NULL;
}

static void check(const char *what, uint64_t is, uint64_t expected)
{
    if (is != expected)
        fail_msg("%s: %llu, expected %llu", what, (unsigned long long)is, (unsigned long long)expected);
}

static void run_pattern(const struct pattern *p, const char *space, enum access what, bool branch, bool one_by_one,
                        uint32_t grid)
{
    static struct kit k;
    static uint32_t table[MOST * 2];
    static _Alignas(256) unsigned char data[1 << 18];
    char text[2000];
    bool shared = strcmp(space, "shared") == 0;
    access_text(text, sizeof text, space, what, p->size, branch);
    kit_load(&k, text);
    for (uint32_t i = 0; i < p->threads; i++) {
        table[2 * i] = p->offset[i];
        table[2 * i + 1] = p->active[i];
    }
    kit_buffer(&k, 0, table, sizeof table);
    uint64_t base = kit_buffer(&k, 1, data, sizeof data);
    k.launch.profile = true;
    k.launch.one_by_one = one_by_one;
    k.launch.workers = 2;
    assert_int_equal(kit_run(&k, "k", grid, p->threads), STATUS_OK);
    const struct ptx_profile *r = k.result.profile;
    assert_non_null(r);
    struct expected e = expect(p, shared ? 0 : base);
    const struct ptx_instruction_counts *i = at_line(r, 12);
    if (branch && !e.accesses) { /* nobody came there */
        assert_null(i);
        kit_free(&k);
        return;
    }
    assert_non_null(i);
    const struct ptx_access_counts *a = &i->access[shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL];
    check("accesses", a->accesses, e.accesses * grid);
    check("bytes read", a->read_bytes, what == STORE ? 0 : e.bytes * grid);
    check("bytes written", a->write_bytes, what == LOAD ? 0 : e.bytes * grid);
    check("requests", a->requests, one_by_one ? 0 : e.requests * grid);
    check("accesses in requests", a->request_accesses, one_by_one ? 0 : e.accesses * grid);
    check("sectors", a->sectors, shared || one_by_one ? 0 : e.sectors * grid);
    check("ideal sectors", a->ideal_sectors, shared || one_by_one ? 0 : e.ideal * grid);
    check("lines", a->lines, shared || one_by_one ? 0 : e.lines * grid);
    check("wavefronts", a->wavefronts, shared && !one_by_one ? e.wavefronts * grid : 0);
    check("ideal wavefronts", a->ideal_wavefronts, shared && !one_by_one ? e.ideal_wavefronts * grid : 0);
    check("same address", a->same_address, what == ATOMIC && !one_by_one ? e.same * grid : 0);
    check("same address, most", a->same_address_most, what == ATOMIC && !one_by_one ? e.same_most : 0);
    check("guarded off", i->guarded_off, branch ? 0 : (p->threads - e.accesses) * grid);
    check("alone", r->alone, one_by_one ? r->threads : 0);
    check("threads", r->threads, k.result.counts.thread_instructions);
    uint64_t table_bytes = 8u * p->threads;
    check("different bytes read", r->unique[shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL].read,
          (what == STORE ? 0 : e.unique) + (shared ? 0 : table_bytes));
    check("different bytes written", r->unique[shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL].written,
          what == LOAD ? 0 : e.unique);
    check("parameters", r->access[PTX_SPACE_PARAM].read_bytes, 16u * p->threads * grid);
    kit_free(&k);
}

static void all_active(struct pattern *p, uint32_t threads, uint32_t size)
{
    memset(p, 0, sizeof *p);
    p->threads = threads;
    p->size = size;
    for (uint32_t i = 0; i < threads; i++)
        p->active[i] = true;
}

static void run_all_ways(const struct pattern *p, const char *space, enum access what)
{
    run_pattern(p, space, what, false, false, 3);
    run_pattern(p, space, what, true, false, 2);
    run_pattern(p, space, what, true, true, 2);
}

static void test_global_strides(void **state)
{
    (void)state;
    static struct pattern p;
    static const uint32_t strides[] = {0, 1, 2, 3, 4, 8, 16, 32, 33, 64};
    for (uint32_t size = 1; size <= 16; size *= 2)
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++)
            for (uint32_t shift = 0; shift <= 16; shift += 16) { /* elements: misaligned to sectors */
                all_active(&p, 96, size);
                for (uint32_t i = 0; i < p.threads; i++)
                    p.offset[i] = (i * strides[s] + shift + (shift ? 1 : 0)) * size;
                run_pattern(&p, "global", s % 2 ? LOAD : STORE, false, false, 3);
            }
}

/* What everybody knows of coalescing, as numbers. */
static void test_global_known(void **state)
{
    (void)state;
    static struct pattern p;
    struct expected e;
    all_active(&p, 32, 4);
    for (uint32_t i = 0; i < 32; i++)
        p.offset[i] = 4 * i;
    e = expect(&p, 0);
    check("coalesced", e.sectors * 100 + e.ideal * 10 + e.lines, 441);
    for (uint32_t i = 0; i < 32; i++)
        p.offset[i] = 4 * i + 4;
    e = expect(&p, 0);
    check("off by one element", e.sectors * 100 + e.ideal * 10 + e.lines, 542);
    for (uint32_t i = 0; i < 32; i++)
        p.offset[i] = 256 * i;
    e = expect(&p, 0);
    check("strided", e.sectors * 1000 + e.ideal * 100 + e.lines, 32432);
    for (uint32_t i = 0; i < 32; i++)
        p.offset[i] = 512;
    e = expect(&p, 0);
    check("one place", e.sectors * 100 + e.ideal * 10 + e.lines, 111);
    run_all_ways(&p, "global", LOAD);
}

static void test_shared_strides(void **state)
{
    (void)state;
    static struct pattern p;
    static const uint32_t strides[] = {0, 1, 2, 3, 4, 8, 16, 17, 32, 33};
    for (uint32_t size = 1; size <= 16; size *= 2)
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++) {
            all_active(&p, 64, size);
            for (uint32_t i = 0; i < p.threads; i++)
                p.offset[i] = i % 32 * strides[s] * size;
            if (p.offset[31] + size > SHARED)
                continue;
            run_pattern(&p, "shared", s % 2 ? LOAD : STORE, false, false, 2);
        }
}

static void test_shared_known(void **state)
{
    (void)state;
    static struct pattern p;
    static const struct {
        uint32_t size, stride, wavefronts, ideal;
    } known[] = {
        {4, 1, 1, 1}, {4, 2, 2, 1},   {4, 17, 1, 1}, {4, 32, 32, 1}, {4, 33, 1, 1},  {4, 0, 1, 1}, {8, 1, 2, 2},
        {8, 2, 4, 2}, {8, 16, 32, 2}, {16, 1, 4, 4}, {16, 2, 8, 4},  {16, 8, 32, 4}, {1, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        all_active(&p, 32, known[i].size);
        for (uint32_t k = 0; k < 32; k++)
            p.offset[k] = k * known[i].stride * known[i].size;
        struct expected e = expect(&p, 0);
        check("wavefronts of the oracle", e.wavefronts, known[i].wavefronts);
        check("ideal ones", e.ideal_wavefronts, known[i].ideal);
        run_all_ways(&p, "shared", LOAD);
    }
}

static void test_random_patterns(void **state)
{
    (void)state;
    static struct pattern p;
    uint64_t random = 11;
    for (int round = 0; round < 300; round++) {
        uint32_t size = 1u << kit_random(&random) % 5, room = 1u << (5 + kit_random(&random) % 9);
        bool shared = kit_random(&random) & 1;
        enum access what = (enum access)(kit_random(&random) % 3);
        if (what == ATOMIC)
            size = kit_random(&random) & 1 ? 4 : 8;
        all_active(&p, 1 + (uint32_t)(kit_random(&random) % 200), size);
        uint32_t density = (uint32_t)(kit_random(&random) % 5);
        for (uint32_t i = 0; i < p.threads; i++) {
            p.offset[i] = (uint32_t)(kit_random(&random) % room) / size * size;
            p.active[i] = kit_random(&random) % 4 < density;
        }
        run_pattern(&p, shared ? "shared" : "global", what, kit_random(&random) & 1, round % 5 == 0, 2);
    }
}

/* ---- addresses that grow by steps, which the executor keeps as such ---- */

struct steps {
    const char *space; /* "global", "shared", or "": generic, in global memory */
    enum access what;
    uint32_t size, columns, rows, stride, rise, start, next, rounds; /* bytes; `next`: from round to round */
    bool some;                                                       /* only lanes whose column is below 5 */
};

static void steps_text(char *text, size_t room, const struct steps *s)
{
    static const char *const types[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64", [16] = "v2.u64"};
    const char *value = s->size == 16 ? "{%rd6, %rd7}" : s->size == 8 ? "%rd6" : s->size == 4 ? "%r4" : "%rs1";
    const char *dot = *s->space ? "." : "", *at = strcmp(s->space, "shared") == 0 ? "%r5" : "%rd5";
    char access[200];
    if (s->what == LOAD)
        snprintf(access, sizeof access, "ld%s%s.%s %s, [%s+%u];", dot, s->space, types[s->size], value, at, s->start);
    else if (s->what == STORE)
        snprintf(access, sizeof access, "st%s%s.%s [%s+%u], %s;", dot, s->space, types[s->size], at, s->start, value);
    else
        snprintf(access, sizeof access, "atom%s%s.add.%s %s, [%s+%u], 1;", dot, s->space, types[s->size], value, at,
                 s->start);
    snprintf(text, room,
             ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n"
             "{ .reg .pred %%p<3>; .reg .b16 %%rs<4>; .reg .b32 %%r<12>; .reg .b64 %%rd<12>;"
             " .shared .align 128 .b8 s[%d];\n"
             "ld.param.u64 %%rd1, [data]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%tid.y;\n"
             "mov.u16 %%rs1, 0; mov.u32 %%r4, 0; mov.u64 %%rd6, 0; mov.u64 %%rd7, 0; mov.u32 %%r9, 0;\n"
             "mul.wide.u32 %%rd2, %%r1, %u; mul.wide.u32 %%rd3, %%r2, %u; add.s64 %%rd2, %%rd2, %%rd3;"
             " add.s64 %%rd5, %%rd1, %%rd2;\n"
             "mul.lo.u32 %%r6, %%r1, %u; mul.lo.u32 %%r7, %%r2, %u; add.s32 %%r6, %%r6, %%r7; mov.u32 %%r8, s;"
             " add.s32 %%r5, %%r8, %%r6;\n"
             "setp.lt.u32 %%p2, %%r1, 5;\n"
             "LOOP:\n%s %s\n"
             "add.s64 %%rd5, %%rd5, %u; add.s32 %%r5, %%r5, %u; add.s32 %%r9, %%r9, 1;\n"
             "setp.lt.u32 %%p1, %%r9, %u; @%%p1 bra LOOP; ret; }\n",
             SHARED, s->stride, s->rise, s->stride, s->rise, s->some ? "@%p2" : "", access, s->next, s->next,
             s->rounds);
}

static void run_steps(const struct steps *s)
{
    static struct kit k;
    static struct pattern p;
    static _Alignas(256) unsigned char data[1 << 18];
    char text[2400];
    bool shared = strcmp(s->space, "shared") == 0;
    struct expected e = {0};
    steps_text(text, sizeof text, s);
    kit_load(&k, text);
    uint64_t base = kit_buffer(&k, 0, data, sizeof data);
    k.launch.profile = true;
    k.launch.block[1] = s->rows;
    assert_int_equal(kit_run(&k, "k", 2, s->columns), STATUS_OK);
    all_active(&p, s->columns * s->rows, s->size);
    for (uint32_t round = 0; round < s->rounds; round++) {
        for (uint32_t i = 0; i < p.threads; i++) {
            p.offset[i] = s->start + i % s->columns * s->stride + i / s->columns * s->rise + round * s->next;
            p.active[i] = !s->some || i % s->columns < 5;
        }
        struct expected one = expect(&p, shared ? 0 : base);
        e.accesses += one.accesses;
        e.bytes += one.bytes;
        e.requests += one.requests;
        e.sectors += one.sectors;
        e.ideal += one.ideal;
        e.lines += one.lines;
        e.wavefronts += one.wavefronts;
        e.ideal_wavefronts += one.ideal_wavefronts;
        e.same += one.same;
        e.same_most = one.same_most > e.same_most ? one.same_most : e.same_most;
    }
    const struct ptx_instruction_counts *i = at_line(k.result.profile, 12);
    assert_non_null(i);
    const struct ptx_access_counts *a = &i->access[shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL];
    check("steps: all in lock-step", k.result.profile->alone, 0);
    check("steps: accesses", a->accesses, 2 * e.accesses);
    check("steps: bytes", a->read_bytes + a->write_bytes, (s->what == ATOMIC ? 4 : 2) * e.bytes);
    check("steps: requests", a->requests, 2 * e.requests);
    check("steps: sectors", a->sectors, shared ? 0 : 2 * e.sectors);
    check("steps: ideal sectors", a->ideal_sectors, shared ? 0 : 2 * e.ideal);
    check("steps: lines", a->lines, shared ? 0 : 2 * e.lines);
    check("steps: wavefronts", a->wavefronts, shared ? 2 * e.wavefronts : 0);
    check("steps: ideal wavefronts", a->ideal_wavefronts, shared ? 2 * e.ideal_wavefronts : 0);
    check("steps: same address", a->same_address, s->what == ATOMIC ? 2 * e.same : 0);
    check("steps: same address, most", a->same_address_most, s->what == ATOMIC ? e.same_most : 0);
    static uint8_t touched[1 << 18];
    uint64_t different = 0;
    memset(touched, 0, sizeof touched);
    for (uint32_t round = 0; round < s->rounds; round++)
        for (uint32_t t = 0; t < p.threads; t++)
            for (uint32_t b = 0; p.active[t] && b < s->size; b++)
                touched[s->start + t % s->columns * s->stride + t / s->columns * s->rise + round * s->next + b] = 1;
    for (size_t b = 0; b < sizeof touched; b++)
        different += touched[b];
    check("steps: different bytes", k.result.profile->unique[shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL].either,
          different);
    kit_free(&k);
}

static void test_addresses_by_steps(void **state)
{
    (void)state;
    static const char *const spaces[] = {"global", "shared", ""};
    static const uint32_t shapes[][2] = {{32, 2}, {16, 4}, {8, 8}, {64, 1}, {1, 32}, {24, 2}, {20, 1}, {4, 8}};
    uint64_t random = 5;
    for (int round = 0; round < 400; round++) {
        const uint32_t *shape = shapes[kit_random(&random) % 8];
        struct steps s = {.space = spaces[kit_random(&random) % 3],
                          .what = (enum access)(kit_random(&random) % 3),
                          .size = 1u << kit_random(&random) % 5,
                          .columns = shape[0],
                          .rows = shape[1],
                          .rounds = 1 + (uint32_t)(kit_random(&random) % 6),
                          .some = kit_random(&random) % 4 == 0};
        if (s.what == ATOMIC)
            s.size = kit_random(&random) & 1 ? 4 : 8;
        static const uint32_t steps[] = {0, 1, 1, 1, 2, 3, 8, 9};
        s.stride = steps[kit_random(&random) % 8] * s.size;
        s.rise = steps[kit_random(&random) % 8] * s.size * (kit_random(&random) & 1 ? 1 : 16);
        s.start = (uint32_t)(kit_random(&random) % 40) * s.size;
        s.next = (uint32_t)(kit_random(&random) % 5) * s.size;
        uint64_t top =
            s.start + (uint64_t)s.stride * s.columns + (uint64_t)s.rise * s.rows + (uint64_t)s.next * s.rounds + s.size;
        if (top < SHARED)
            run_steps(&s);
    }
}

static void test_atomics_on_one_address(void **state)
{
    (void)state;
    static struct pattern p;
    all_active(&p, 80, 4);
    struct expected e = expect(&p, 0);
    check("lanes at one address", e.same, 32 + 32 + 16);
    run_all_ways(&p, "global", ATOMIC);
    run_all_ways(&p, "shared", ATOMIC);
}

/* ---- classes, operations, divergence ---- */

static struct ptx_profile *run_text(struct kit *k, const char *text, uint32_t grid, uint32_t block, bool one_by_one)
{
    static _Alignas(256) unsigned char data[1 << 16];
    kit_load(k, text);
    kit_buffer(k, 0, data, sizeof data);
    k->launch.profile = true;
    k->launch.one_by_one = one_by_one;
    if (kit_run(k, "k", grid, block) != STATUS_OK)
        fail_msg("%s", k->diag.text);
    check("threads", k->result.profile->threads, k->result.counts.thread_instructions);
    return k->result.profile;
}

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n"

static void test_operations_by_type(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "{ .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .pred %p;\n"
             "mov.f32 %f1, 0f3F800000; mov.f64 %d1, 0d3FF0000000000000; mov.b16 %h1, 0x3C00; mov.b32 %r1, 0x3C003C00;\n"
             "fma.rn.f32 %f2, %f1, %f1, %f1; add.f32 %f2, %f2, %f1; mul.rn.f32 %f2, %f2, %f1; sqrt.rn.f32 %f3, %f2;\n"
             "min.f32 %f3, %f3, %f1; neg.f32 %f3, %f3; setp.lt.f32 %p, %f3, %f1; cvt.f64.f32 %d2, %f3;\n"
             "fma.rn.f64 %d2, %d2, %d1, %d1; sub.f64 %d3, %d2, %d1;\n"
             "fma.rn.f16 %h2, %h1, %h1, %h1; add.f16x2 %r2, %r1, %r1; fma.rn.f16x2 %r2, %r2, %r1, %r1;\n"
             "fma.rn.bf16x2 %r3, %r2, %r1, %r1; mad.lo.s32 %r4, %r3, %r2, %r1; lg2.approx.f32 %f3, %f1;\n"
             "@%p add.f32 %f3, %f3, %f1; ret; }\n";
    for (int alone = 0; alone < 2; alone++) {
        struct kit k;
        const struct ptx_profile *p = run_text(&k, text, 3, 48, alone);
        const uint64_t n = 3 * 48;
        /* The guard of the last addition is true where -min(sqrt(3), 1) < 1: everywhere. */
        check("f32", p->flops[PTX_FLOP_F32], n * (2 + 1 + 1 + 1 + 1 + 1));
        check("f64", p->flops[PTX_FLOP_F64], n * 3);
        check("f16", p->flops[PTX_FLOP_F16], n * (2 + 2 + 4));
        check("bf16", p->flops[PTX_FLOP_BF16], n * 4);
        check("class fp32", p->classes[PTX_CLASS_FP32], n * 7);
        check("class fp64", p->classes[PTX_CLASS_FP64], n * 2);
        check("class fp16", p->classes[PTX_CLASS_FP16], n * 4);
        check("class integer", p->classes[PTX_CLASS_INTEGER], n * 1);
        check("class conversion", p->classes[PTX_CLASS_CONVERSION], n * 1);
        check("class special", p->classes[PTX_CLASS_SPECIAL], n * 2);
        check("class move", p->classes[PTX_CLASS_MOVE], n * 4);
        check("class branch", p->classes[PTX_CLASS_BRANCH], n * 1);
        check("all", p->threads, n * 22);
        check("guarded off", p->guarded_off, 0);
        check("warps", p->warps, alone ? 0 : 3 * 2 * 22);
        kit_free(&k);
    }
}

static void test_guards_that_are_false(void **state)
{
    (void)state;
    static const char text[] = HEAD "{ .reg .f32 %f<4>; .reg .b32 %r<4>; .reg .pred %p<3>;\n"
                                    "mov.u32 %r1, %tid.x; mov.f32 %f1, 0f3F800000; setp.lt.u32 %p1, %r1, 10;\n"
                                    "@%p1 fma.rn.f32 %f1, %f1, %f1, %f1;\n"
                                    "@!%p1 add.f32 %f1, %f1, %f1;\n"
                                    "ret; }\n";
    for (int alone = 0; alone < 2; alone++) {
        struct kit k;
        const struct ptx_profile *p = run_text(&k, text, 1, 64, alone);
        check("operations", p->flops[PTX_FLOP_F32], 10 * 2 + 54);
        check("all", p->threads, 64 * 6);
        check("off", p->guarded_off, 54 + 10);
        check("off, first", at_line(p, 7)->guarded_off, 54);
        check("off, second", at_line(p, 8)->guarded_off, 10);
        check("warps that executed the first", at_line(p, 7)->warps, alone ? 0 : 2);
        check("their lanes", at_line(p, 7)->warp_threads, alone ? 0 : 64);
        check("not divergent", p->divergent, 0);
        kit_free(&k);
    }
}

/* Lanes below 8 go one way, the others the other way: each side has its own warp instructions. */
static void test_divergent_branch(void **state)
{
    (void)state;
    static const char text[] = HEAD "{ .reg .b32 %r<4>; .reg .pred %p<3>;\n"
                                    "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8;\n"
                                    "@%p1 bra LOW;\n"
                                    "add.s32 %r1, %r1, 1; add.s32 %r1, %r1, 2; bra BOTH;\n"
                                    "LOW: add.s32 %r1, %r1, 3;\n"
                                    "BOTH: add.s32 %r1, %r1, 4; ret; }\n";
    struct kit k;
    const struct ptx_profile *p = run_text(&k, text, 5, 64, false);
    check("branches", p->branches, 10);
    check("divergent", p->divergent, 5); /* the second warp is of one mind */
    check("warps on the upper side", at_line(p, 8)->warps, 10);
    check("lanes there", at_line(p, 8)->warp_threads, 5 * (24 + 32));
    check("warps on the lower side", at_line(p, 9)->warps, 5);
    check("lanes there", at_line(p, 9)->warp_threads, 5 * 8);
    check("together again", at_line(p, 10)->warps, 10);
    check("warp instructions", p->warps, 5 * (2 * 5 + 2 * 3 + 1));
    check("lanes", p->warp_threads, p->threads);
    kit_free(&k);
}

static void test_loop(void **state)
{
    (void)state;
    static const char text[] = HEAD "{ .reg .b32 %r<4>; .reg .pred %p<3>;\n"
                                    "mov.u32 %r1, %laneid; mov.u32 %r2, 0;\n"
                                    "LOOP: add.s32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1;\n"
                                    "@%p1 bra LOOP;\n"
                                    "bar.sync 0;\n"
                                    "shfl.sync.idx.b32 %r3, %r2, 0, 31, -1; ret; }\n";
    for (int alone = 0; alone < 2; alone++) {
        struct kit k; /* lane i goes round i + 1 times */
        const struct ptx_profile *p = run_text(&k, text, 2, 64, alone);
        check("rounds", at_line(p, 7)->threads, 4 * (32 * 33 / 2));
        check("rounds of warps", at_line(p, 7)->warps, alone ? 0 : 4 * 32);
        check("divergent", p->divergent, alone ? 0 : 4 * 31);
        check("barriers", p->classes[PTX_CLASS_BARRIER], 128);
        check("shuffles", p->classes[PTX_CLASS_SHUFFLE], 128);
        check("shuffles of warps", at_line(p, 10)->warps, alone ? 0 : 4);
        kit_free(&k);
    }
}

static void test_matrix_product(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "{ .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<4>; .shared .align 16 .b8 s[2048];\n"
             "mov.u32 %r1, s; mov.u32 %r2, %tid.x; shl.b32 %r2, %r2, 4; add.u32 %r1, %r1, %r2;\n"
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];\n"
             "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r1];\n"
             "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n"
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, "
             "{%f1,%f2,%f3,%f4};\n"
             "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, "
             "{%f1,%f2,%f3,%f4};\nret; }\n";
    for (int alone = 0; alone < 2; alone++) {
        struct kit k;
        const struct ptx_profile *p = run_text(&k, text, 3, 32, alone);
        check("f16", p->flops[PTX_FLOP_TENSOR_F16], UINT64_C(3) * 2 * 16 * 8 * 16);
        check("tf32", p->flops[PTX_FLOP_TENSOR_TF32], UINT64_C(3) * 2 * 16 * 8 * 8);
        check("class", p->classes[PTX_CLASS_TENSOR], 3 * 2 * 32);
        check("rows of x4", at_line(p, 7)->access[PTX_SPACE_SHARED].accesses, 3 * 32);
        check("bytes of x4", at_line(p, 7)->access[PTX_SPACE_SHARED].read_bytes, 3 * 512);
        check("wavefronts of x4", at_line(p, 7)->access[PTX_SPACE_SHARED].wavefronts, alone ? 0 : 3 * 4);
        check("rows of x2", at_line(p, 8)->access[PTX_SPACE_SHARED].accesses, 3 * 16);
        check("wavefronts of x2", at_line(p, 8)->access[PTX_SPACE_SHARED].wavefronts, alone ? 0 : 3 * 2);
        kit_free(&k);
    }
}

static void test_asynchronous_copy(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 s[4096];\n"
             "ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 32; add.s64 %rd3, %rd1, %rd2;\n"
             "mov.u32 %r2, s; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;\n"
             "cp.async.ca.shared.global [%r2], [%rd3], 16;\n"
             "cp.async.wait_all; ret; }\n";
    struct kit k;
    const struct ptx_profile *p = run_text(&k, text, 1, 32, false);
    check("bytes read", at_line(p, 8)->access[PTX_SPACE_GLOBAL].read_bytes, 512);
    check("sectors: every other half", at_line(p, 8)->access[PTX_SPACE_GLOBAL].sectors, 32);
    check("ideal", at_line(p, 8)->access[PTX_SPACE_GLOBAL].ideal_sectors, 16);
    check("bytes written", at_line(p, 8)->access[PTX_SPACE_SHARED].write_bytes, 512);
    check("wavefronts", at_line(p, 8)->access[PTX_SPACE_SHARED].wavefronts, 4);
    kit_free(&k);
}

/* Counting comes before the copy, and before it is known to fault: it must not count what nobody can copy, byte by
 * byte.
 */
static void test_bulk_copies_of_absurd_lengths(void **state)
{
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 to_global) {\n"
        ".reg .b64 %a; .reg .b32 %r<5>; .reg .pred %p; .shared .align 16 .b8 s[64]; ld.param.u64 %a, [a];\n"
        "ld.param.u32 %r1, [to_global]; setp.ne.u32 %p, %r1, 0; mov.u32 %r2, s; mov.u32 %r3, 0xfffffff0;\n"
        "add.u32 %r4, %r2, 16; mbarrier.init.shared.b64 [s], 1;\n"
        "@%p cp.async.bulk.global.shared::cta.bulk_group [%a], [%r4], %r3;\n"
        "@!%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%a], %r3, [%r2];\nret; }\n";
    static _Alignas(16) uint8_t data[64];
    struct rusage before, after;
    struct kit k;
    kit_load(&k, text);
    kit_buffer(&k, 0, data, sizeof data);
    k.launch.profile = true;
    getrusage(RUSAGE_SELF, &before);
    for (int mode = 0; mode < 4; mode++) {
        k.params[1] = mode & 1;
        k.launch.one_by_one = mode >> 1;
        assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_FAULT);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 200000); /* KiB; one such copy has 4 GiB in pages of 4 KiB */
    kit_free(&k);
}

/* Lanes whose addresses step below zero, or over the end of the address space, whole words or not. */
static void test_steps_around_the_end_of_memory(void **state)
{
    static const char *const types[] = {"u8", "u16", "u32", "u64", "v2.u64"};
    static const char *const spaces[] = {"shared", "global", "local"};
    static const int64_t strides[] = {-64, -16, -12, -8, -7, -4, -1, 1, 4, 5, 8, 64};
    for (size_t t = 0; t < 15; t++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 base, .param .u64 step)\n"
            "{ .reg .b64 %%rd<9>; .reg .b32 %%r; .reg .b16 %%h; ld.param.u64 %%rd1, [base]; ld.param.u64 %%rd2, "
            "[step];\nmov.u32 %%r, %%tid.x; cvt.u64.u32 %%rd3, %%r; mad.lo.s64 %%rd4, %%rd2, %%rd3, %%rd1;\n"
            "ld.%s.%s %s, [%%rd4]; ret; }\n",
            spaces[t / 5], types[t % 5],
            t % 5 == 4   ? "{%rd5, %rd6}"
            : t % 5 == 3 ? "%rd5"
            : t % 5 == 2 ? "%r"
                         : "%h");
        struct kit k;
        kit_load(&k, text);
        k.launch.profile = true;
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++)
            for (int64_t base = -40; base <= 40; base++) {
                k.params[0] = (uint64_t)base;
                k.params[1] = (uint64_t)strides[s];
                assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_FAULT);
            }
        kit_free(&k);
    }
}

static void test_local_memory_is_interleaved(void **state)
{
    (void)state;
    static const char text[] = HEAD "{ .local .align 16 .b8 a[64]; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                                    "mov.u64 %rd1, a; mov.u32 %r1, 7; mov.u64 %rd2, 7;\n"
                                    "st.local.u32 [%rd1+8], %r1;\n"
                                    "ld.local.u64 %rd2, [%rd1+8];\n"
                                    "ret; }\n";
    struct kit k;
    const struct ptx_profile *p = run_text(&k, text, 1, 32, false);
    check("sectors of a store of 4 bytes", at_line(p, 7)->access[PTX_SPACE_LOCAL].sectors, 4);
    check("sectors of a load of 8", at_line(p, 8)->access[PTX_SPACE_LOCAL].sectors, 8);
    check("different bytes", p->unique[PTX_SPACE_LOCAL].either, 8);
    check("bytes read", p->access[PTX_SPACE_LOCAL].read_bytes, 256);
    kit_free(&k);
}

/* ---- parts of launches, functions, refusals ---- */

static void test_chosen_blocks(void **state)
{
    (void)state;
    static const char text[] = HEAD "{ .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [data];\n"
                                    "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 128; add.s64 %rd1, %rd1, %rd2;\n"
                                    "st.global.u32 [%rd1], %r1; ret; }\n";
    static const uint64_t chosen[] = {3, 7, 20};
    static unsigned char data[1 << 16];
    struct kit k;
    kit_load(&k, text);
    kit_buffer(&k, 0, data, sizeof data);
    k.launch.profile = true;
    k.launch.chosen_blocks = chosen;
    k.launch.chosen_count = 3;
    assert_int_equal(kit_run(&k, "k", 64, 32), STATUS_OK);
    check("stores", k.result.profile->classes[PTX_CLASS_STORE], 3 * 32);
    check("different bytes", k.result.profile->unique[PTX_SPACE_GLOBAL].written, 3 * 4);
    kit_free(&k);
}

/* Kernels that call functions run one thread at a time: what is a warp's is unknown, and says so. */
static void test_calls_are_counted_by_thread(void **state)
{
    (void)state;
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".func (.reg .b32 %out) twice(.reg .b32 %in) { add.s32 %out, %in, %in; ret; }\n"
        ".visible .entry k(.param .u64 data) { .reg .b32 %r<4>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [data];\n"
        "mov.u32 %r1, %tid.x; call (%r2), twice, (%r1); st.global.u32 [%rd1], %r2; ret; }\n";
    struct kit k;
    const struct ptx_profile *p = run_text(&k, text, 2, 32, false);
    check("in the function", at_line(p, 4)->threads, 64);
    check("warps", p->warps, 0);
    check("alone", p->alone, p->threads);
    check("bytes", p->access[PTX_SPACE_GLOBAL].write_bytes, 256);
    check("requests", p->access[PTX_SPACE_GLOBAL].requests, 0);
    kit_free(&k);
}

/* A constant that is folded away right before a barrier is executed with it. */
static void test_folded_before_barrier(void **state)
{
    (void)state;
    static const char text[] = HEAD "{ .reg .b64 %rd<4>; .reg .b32 %r<3>; ld.param.u64 %rd1, [data];\n"
                                    "bar.sync 0; mov.u32 %r1, %ntid.x; bar.warp.sync -1; ret; }\n";
    for (int alone = 0; alone < 2; alone++) {
        struct kit k;
        const struct ptx_profile *p = run_text(&k, text, 1, 64, alone);
        check("all", p->threads, 64 * 5);
        check("parameters", p->access[PTX_SPACE_PARAM].read_bytes, 64 * 8);
        kit_free(&k);
    }
}

static void test_modes_that_have_no_profile(void **state)
{
    (void)state;
    struct kit k;
    kit_load(&k, HEAD "{ ret; }\n");
    k.launch.profile = true;
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_BAD_INPUT);
    assert_null(k.result.profile);
    k.launch.checked = false;
    k.launch.profile = false;
    ptx_result_free(&k.result);
    assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_OK);
    assert_null(k.result.profile);
    kit_free(&k);
}

/* ---- random kernels ---- */

static void run_random(const char *text, const struct random_shape *s, bool one_by_one, uint32_t workers, struct kit *k)
{
    static unsigned char *memory[4];
    const size_t bytes[] = {(size_t)RANDOM_REGIONS * RANDOM_CELL * s->threads, RANDOM_INPUT,
                            (size_t)RANDOM_OUT * s->threads, 64};
    kit_load(k, text);
    for (int i = 0; i < 4; i++) {
        memory[i] = calloc(1, bytes[i]);
        assert_non_null(memory[i]);
        for (size_t n = 0; n < bytes[i]; n++)
            memory[i][n] = (unsigned char)(n * 7 + n / 251);
        kit_buffer(k, i, memory[i], bytes[i]);
    }
    k->params[4] = (uint64_t)0x8000 << 32 | s->threads;
    memcpy(k->launch.block, s->block, sizeof s->block);
    k->launch.one_by_one = one_by_one;
    k->launch.workers = workers;
    k->launch.profile = true;
    k->launch.instruction_limit = 100000000;
    assert_int_equal(kit_run(k, "k", s->grid, s->block[0]), STATUS_OK);
    for (int i = 0; i < 4; i++)
        free(memory[i]);
}

static void same_thread_counts(const struct ptx_profile *a, const struct ptx_profile *b)
{
    check("instructions", a->instruction_count, b->instruction_count);
    for (size_t i = 0; i < a->instruction_count; i++) {
        const struct ptx_instruction_counts *x = &a->instructions[i], *y = &b->instructions[i];
        if (x->ptx_line != y->ptx_line || x->threads != y->threads || x->guarded_off != y->guarded_off ||
            x->flops != y->flops)
            fail_msg("line %u %s: %llu threads, %llu off, %llu operations; line %u %s: %llu, %llu, %llu", x->ptx_line,
                     x->opcode, (unsigned long long)x->threads, (unsigned long long)x->guarded_off,
                     (unsigned long long)x->flops, y->ptx_line, y->opcode, (unsigned long long)y->threads,
                     (unsigned long long)y->guarded_off, (unsigned long long)y->flops);
        for (int space = 0; space < 5; space++) {
            check("accesses", x->access[space].accesses, y->access[space].accesses);
            check("bytes read", x->access[space].read_bytes, y->access[space].read_bytes);
            check("bytes written", x->access[space].write_bytes, y->access[space].write_bytes);
        }
    }
    assert_memory_equal(a->unique, b->unique, sizeof a->unique);
}

static void test_random_kernels(void **state)
{
    (void)state;
    static char text[RANDOM_TEXT];
    for (uint64_t seed = 1; seed <= 120; seed++) {
        static struct kit lanes, threads, workers;
        struct random_shape shape;
        random_kernel(seed, text, &shape);
        run_random(text, &shape, false, 1, &lanes);
        run_random(text, &shape, true, 1, &threads);
        run_random(text, &shape, false, 3, &workers);
        const struct ptx_profile *l = lanes.result.profile, *t = threads.result.profile, *w = workers.result.profile;
        check("all, in lock-step", l->threads, lanes.result.counts.thread_instructions);
        check("all, one by one", t->threads, threads.result.counts.thread_instructions);
        check("both", l->threads, t->threads);
        check("bytes read", l->access[PTX_SPACE_GLOBAL].read_bytes, lanes.result.counts.global_read_bytes);
        check("bytes written", l->access[PTX_SPACE_GLOBAL].write_bytes, lanes.result.counts.global_write_bytes);
        check("lanes", l->warp_threads + l->alone, l->threads);
        same_thread_counts(l, t);
        check("instructions", w->instruction_count, l->instruction_count);
        for (size_t i = 0; i < l->instruction_count; i++) {
            struct ptx_instruction_counts x = w->instructions[i];
            x.opcode = l->instructions[i].opcode; /* another module's */
            assert_memory_equal(&x, &l->instructions[i], sizeof x);
        }
        assert_memory_equal(&l->classes, &w->classes, sizeof *l - offsetof(struct ptx_profile, classes));
        kit_free(&lanes);
        kit_free(&threads);
        kit_free(&workers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_strides),
        cmocka_unit_test(test_global_known),
        cmocka_unit_test(test_shared_strides),
        cmocka_unit_test(test_shared_known),
        cmocka_unit_test(test_random_patterns),
        cmocka_unit_test(test_addresses_by_steps),
        cmocka_unit_test(test_atomics_on_one_address),
        cmocka_unit_test(test_operations_by_type),
        cmocka_unit_test(test_guards_that_are_false),
        cmocka_unit_test(test_divergent_branch),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_matrix_product),
        cmocka_unit_test(test_asynchronous_copy),
        cmocka_unit_test(test_bulk_copies_of_absurd_lengths),
        cmocka_unit_test(test_steps_around_the_end_of_memory),
        cmocka_unit_test(test_local_memory_is_interleaved),
        cmocka_unit_test(test_chosen_blocks),
        cmocka_unit_test(test_calls_are_counted_by_thread),
        cmocka_unit_test(test_folded_before_barrier),
        cmocka_unit_test(test_modes_that_have_no_profile),
        cmocka_unit_test(test_random_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
