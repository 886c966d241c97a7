#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"
#include "tests/unit/ptx_random.h"

enum { MAX_DEPTH = 4, LATER = 1 << 14 };

struct gen {
    uint64_t random;
    char *text;
    size_t used;
    char later[LATER]; /* blocks that stand behind the end of the kernel */
    size_t later_used;
    bool aside; /* writing one of those */
    uint32_t labels, loops, threads, block_threads;
    bool partial; /* some lanes of a warp may be elsewhere */
    bool exits;   /* some threads end early */
    bool calls, shared;
};

static uint32_t pick(struct gen *g, uint32_t below)
{
    return (uint32_t)(kit_random(&g->random) >> 33) % below;
}

static bool chance(struct gen *g, uint32_t percent)
{
    return pick(g, 100) < percent;
}

static __attribute__((format(printf, 2, 3))) void put(struct gen *g, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *to = g->aside ? g->later : g->text;
    size_t *used = g->aside ? &g->later_used : &g->used, room = g->aside ? sizeof g->later : RANDOM_TEXT;
    int n = vsnprintf(to + *used, room - *used, format, list);
    va_end(list);
    assert(n >= 0 && (size_t)n < room - *used);
    *used += (size_t)n;
}

/* ---- values ---- */

/* Upper case: written. H, R, W: 16, 32, 64 bits; P: a predicate; V: a 32-bit register, always one; n: an immediate of 0
 * to 63. */
static void put_operand(struct gen *g, char kind)
{
    static const char *const special[] = {"%tid.x",       "%tid.y",  "%ctaid.x",  "%ntid.x", "%laneid",
                                          "%lanemask_lt", "%warpid", "%nctaid.x", "%tid.z"};
    static const uint32_t words[] = {0, 1, 2, 0xffffffff, 0x7fffffff, 0x80000000, 32, 0x3f800000, 0x7fc00000, 31};
    switch (kind) {
    case 'H':
    case 'h':
        if (kind == 'h' && chance(g, 15))
            put(g, "%u", chance(g, 50) ? pick(g, 2) : pick(g, 0x8000));
        else
            put(g, "%%h%u", pick(g, 6));
        break;
    case 'r':
        if (chance(g, 20)) {
            put(g, "0x%x", chance(g, 60) ? words[pick(g, 10)] : (uint32_t)kit_random(&g->random));
            break;
        }
        if (chance(g, 6)) {
            put(g, "%%i%u", pick(g, 4));
            break;
        }
        put(g, "%%r%u", pick(g, 10));
        break;
    case 'R':
    case 'V':
        put(g, "%%r%u", pick(g, 10));
        break;
    case 's':
        put(g, "%s", special[pick(g, sizeof special / sizeof *special)]);
        break;
    case 'W':
    case 'w':
        if (kind == 'w' && chance(g, 12))
            put(g, "0x%llx", (unsigned long long)(chance(g, 60) ? pick(g, 3) : kit_random(&g->random)));
        else
            put(g, "%%d%u", pick(g, 8));
        break;
    case 'x':
        put(g, "%%d%u", pick(g, 8));
        break;
    case 'P':
    case 'p':
        put(g, "%%p%u", pick(g, 6));
        break;
    case 'n':
        put(g, "%u", pick(g, 64));
        break;
    default:
        assert(0);
    }
}

static void put_template(struct gen *g, const char *t)
{
    for (; *t; t++)
        if (*t == '$')
            put_operand(g, *++t);
        else
            put(g, "%c", *t);
}

static const char *const pure[] = {
#include "tests/unit/ptx_random.def"
};

static void pure_statement(struct gen *g)
{
    const char *t = pure[pick(g, sizeof pure / sizeof *pure)];
    if (chance(g, 25) && !strstr(t, ".cc"))
        put(g, "@%s%%p%u ", chance(g, 50) ? "!" : "", pick(g, 6));
    put_template(g, t);
    put(g, "\n");
}

/* ---- memory ---- */

/* A guard that may be silent. Nothing: the whole group. */
static void guard(struct gen *g)
{
    if (chance(g, 25))
        put(g, "@%s%%p%u ", chance(g, 50) ? "!" : "", pick(g, 6));
}

/* %a: the thread's own bytes of a region of global memory, in one of four orders of threads, through 32 or 64 bits. */
static void own_cell(struct gen *g, uint32_t region)
{
    uint32_t order = region % 4, cell = region / 4 ? RANDOM_CELL : 8;
    uint64_t offset = (uint64_t)region * RANDOM_CELL * g->threads;
    switch (pick(g, 6)) {
    case 0:
        put(g, "mad.wide.u32 %%a, %%i%u, %u, %%cells; ", order, cell);
        break;
    case 1:
        put(g, "mad.wide.s32 %%a, %%i%u, %u, %%cells; ", order, cell);
        break;
    case 2: /* wraps around on the way */
        put(g,
            "mad.lo.s32 %%t, %%i%u, %u, 0xfffffe00; add.u32 %%t, %%t, 0x200; cvt.u64.u32 %%a, %%t; add.u64 %%a, %%a, "
            "%%cells; ",
            order, cell);
        break;
    case 3: /* from the end backwards */
        put(g,
            "sub.s32 %%t, %u, %%i%u; mul.wide.s32 %%a, %%t, -%u; add.u64 %%a, %%a, %%cells; add.u64 %%a, %%a, %llu; ",
            g->threads - 1, order, cell, (unsigned long long)(g->threads - 1) * cell);
        break;
    case 4:
        put(g, "cvt.u64.u32 %%a, %%i%u; mad.lo.u64 %%a, %%a, %u, %%cells; ", order, cell);
        break;
    default: /* the lower half wraps around below a base that makes up for it */
        put(g,
            "add.u32 %%t, %%i%u, 0x70000000; mul.wide.u32 %%a, %%t, %u; add.u64 %%a, %%a, %%cells; sub.u64 %%a, %%a, "
            "%llu; ",
            order, cell, (unsigned long long)0x70000000 * cell);
    }
    if (chance(g, 50))
        put(g, "add.u64 %%a, %%a, %llu;\n", (unsigned long long)offset);
    else
        put(g, "add.s64 %%a, %%a, %llu;\n", (unsigned long long)offset - 16), put(g, "add.s64 %%a, %%a, 16;\n");
}

/* Loads and stores at [%a], which is aligned to `bytes` and has as many. */
static void access(struct gen *g, const char *space, const char *base, uint32_t bytes, bool store)
{
    static const char *const loads[] = {"ld@.u8 $R, [#];",
                                        "ld@.s8 $R, [#];",
                                        "ld@.u8 $H, [#];",
                                        "ld@.s8 $W, [#];",
                                        "ld@.u16 $H, [#];",
                                        "ld@.s16 $R, [#];",
                                        "ld@.u16 $W, [#];",
                                        "ld@.u32 $R, [#];",
                                        "ld@.u32 $R, [#];",
                                        "ld@.f32 $R, [#];",
                                        "ld@.s32 $W, [#];",
                                        "ld@.u32 $W, [#];",
                                        "ld@.u64 $W, [#];",
                                        "ld@.f64 $W, [#];",
                                        "ld@.v2.u32 {%r1, %r8}, [#];",
                                        "ld@.v2.u16 {%h1, %h2}, [#];",
                                        "ld@.v2.u8 {%h1, %h2}, [#];",
                                        "ld@.v4.u8 {%r1, %r2, %r3, %r4}, [#];",
                                        "ld@.v2.u64 {%d1, %d2}, [#];",
                                        "ld@.v4.u32 {%r9, %r2, %r3, %r0}, [#];",
                                        "ld.volatile@.u32 $R, [#];",
                                        "ld@.v2.s16 {%r5, %r6}, [#];",
                                        "ld@.v4.f32 {%r9, %r2, %r3, %r0}, [#];"};
    static const uint32_t load_bytes[] = {1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 4, 4, 8, 8, 8, 4, 2, 4, 16, 16, 4, 4, 16};
    static const char *const stores[] = {"st@.u8 [#], $V;",
                                         "st@.u8 [#], $H;",
                                         "st@.u16 [#], $H;",
                                         "st@.u16 [#], $V;",
                                         "st@.u32 [#], $V;",
                                         "st@.u32 [#], $V;",
                                         "st@.u32 [#], $x;",
                                         "st@.u64 [#], $x;",
                                         "st@.f64 [#], $x;",
                                         "st@.v2.u32 [#], {%r1, %r8};",
                                         "st@.v4.u8 [#], {%r1, %r2, %h3, %h4};",
                                         "st@.v2.u64 [#], {%d1, %d2};",
                                         "st@.v4.u32 [#], {%r9, %r9, %r3, %r0};",
                                         "st.volatile@.u32 [#], $V;",
                                         "st@.u32 [#], $r;"};
    static const uint32_t store_bytes[] = {1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 4, 16, 16, 4, 4};
    uint32_t i, count = store ? sizeof stores / sizeof *stores : sizeof loads / sizeof *loads;
    do
        i = pick(g, count);
    while ((store ? store_bytes : load_bytes)[i] > bytes);
    uint32_t size = (store ? store_bytes : load_bytes)[i], at = pick(g, bytes / size) * size;
    guard(g);
    for (const char *t = store ? stores[i] : loads[i]; *t; t++) {
        if (*t == '@')
            put(g, "%s", space);
        else if (*t == '#')
            put(g, at ? "%s+%u" : "%s", base, at);
        else if (*t == '$')
            put_operand(g, *++t);
        else
            put(g, "%c", *t);
    }
    put(g, "\n");
}

static void global_statement(struct gen *g)
{
    uint32_t region = pick(g, RANDOM_REGIONS);
    own_cell(g, region);
    for (uint32_t i = pick(g, 3) + 1; i > 0; i--)
        access(g, chance(g, 30) ? "" : ".global", "%a", region / 4 ? 32 : 8, chance(g, 55));
}

/* Read-only memory, where lanes may meet: scattered, the same for all, or by steps. */
static void input_statement(struct gen *g)
{
    switch (pick(g, 4)) {
    case 0:
        put_template(g, "and.b32 %t, $r, 0xff0; cvt.u64.u32 %a, %t; add.u64 %a, %a, %input;\n");
        break;
    case 1:
        put(g, "add.u64 %%a, %%input, %u;\n", pick(g, 64) * 16);
        break;
    case 2:
        put(g, "mov.u32 %%t, %s; and.b32 %%t, %%t, 31; mad.wide.u32 %%a, %%t, %u, %%input;\n",
            chance(g, 50) ? "%laneid" : "%tid.x", 16 * pick(g, 5));
        break;
    default:
        put(g,
            "mov.u32 %%t, %s; and.b32 %%t, %%t, 31; sub.u32 %%t, 0, %%t; mul.wide.s32 %%a, %%t, %u; add.u64 %%a, %%a, "
            "%%input; add.u64 %%a, %%a, %u;\n",
            chance(g, 50) ? "%laneid" : "%tid.y", 16 * pick(g, 4), 2048 + 16 * pick(g, 4));
    }
    access(g, chance(g, 30) ? "" : ".global", "%a", 16, false);
    if (chance(g, 60)) { /* consecutive elements, no masks: as most kernels do */
        put_template(g, "mov.u32 %t, $s; and.b32 %t, %t, 255; mad.wide.u32 %a, %t, 4, %input;\n");
        access(g, chance(g, 30) ? "" : ".global", "%a", 4, false);
        put_template(g, "mov.u32 %t, %tid.x; mad.wide.s32 %a, %t, 2, %input;\n");
        access(g, ".global", "%a", 2, false);
    }
}

static void shared_statement(struct gen *g)
{
    static const char *const order[] = {"%s0", "%s1", "%s2"};
    uint32_t o = pick(g, 3); /* one region for each order */
    uint32_t base = o * 16 * g->block_threads;
    if (chance(g, 60)) {
        put(g, "mad.lo.u32 %%t, %s, 16, tile; add.u32 %%t, %%t, %u;\n", order[o], base);
        access(g, ".shared", "%t", 16, chance(g, 55));
    } else {
        put(g, "mov.u64 %%a, tile; cvta.shared.u64 %%a, %%a; mad.wide.u32 %%a, %s, 16, %%a; add.u64 %%a, %%a, %u;\n",
            order[o], base);
        access(g, "", "%a", 16, chance(g, 55));
    }
    if (chance(g, 40)) { /* words side by side, or backwards */
        uint32_t k = pick(g, 2);
        put(g, "shl.b32 %%t, %%s%u, 2; mov.u32 %%t2, tile; add.u32 %%t, %%t, %%t2;\n", k);
        for (uint32_t i = 1 + pick(g, 2); i > 0; i--) {
            guard(g);
            put(g, chance(g, 50) ? "st.shared.u32 [%%t+%u], %%r%u;\n" : "ld.shared.u32 %%r%2$u, [%%t+%1$u];\n",
                (3 + k) * 16 * g->block_threads, pick(g, 10));
        }
    }
}

static void local_statement(struct gen *g)
{
    if (chance(g, 60))
        put_template(g, "and.b32 %t, $r, 0x30; mov.u32 %t2, stack; add.u32 %t, %t, %t2;\n");
    else if (chance(g, 20))
        put_template(g, "and.b32 %t, $r, 0x30; add.u32 %t, %t, 16; cvt.u64.u32 %a, %t; stacksave.u64 %o; alloca.u64 "
                        "%a, %a, 16; cvt.u32.u64 %t, %a; "
                        "st.local.v2.u64 [%a], {%d1, %d3};\n");
    else
        put(g, "mov.u32 %%t, stack; add.u32 %%t, %%t, %u;\n", 16 * pick(g, 4));
    if (chance(g, 50)) {
        access(g, ".local", "%t", 16, chance(g, 55));
    } else {
        put(g, "cvt.u64.u32 %%a, %%t; cvta.local.u64 %%a, %%a;\n");
        access(g, "", "%a", 16, chance(g, 55));
    }
}

static void atomic_statement(struct gen *g)
{
    static const char *const sums[] = {"red.global.add.u32 [%sums], $r;",    "red.global.min.s32 [%sums+4], $r;",
                                       "red.global.max.u64 [%sums+8], $w;",  "red.global.xor.b32 [%sums+16], $r;",
                                       "red.global.or.b32 [%sums+20], $r;",  "red.global.and.b64 [%sums+24], $w;",
                                       "red.global.add.u64 [%sums+32], $w;", "atom.global.add.u32 %t, [%sums], $r;",
                                       "red.add.u32 [%sums+40], $r;",        "atom.global.max.s32 %t, [%sums+44], $r;"};
    static const char *const own[] = {
        "atom.global.add.u32 $R, [%a], $r;",      "atom.global.exch.b32 $R, [%a], $r;",
        "atom.global.cas.b32 $R, [%a], $r, $r;",  "atom.global.add.f32 $R, [%a], $V;",
        "atom.global.add.u64 $W, [%a], $w;",      "atom.global.inc.u32 $R, [%a+4], $r;",
        "atom.cas.b64 $W, [%a], $w, $w;",         "atom.global.min.s64 $W, [%a], $w;",
        "red.global.dec.u32 [%a], $r;",           "atom.global.add.noftz.f16 $H, [%a], $H;",
        "atom.global.cas.b16 $H, [%a+2], $H, $H;"};
    if (chance(g, 50)) {
        guard(g);
        put_template(g, sums[pick(g, sizeof sums / sizeof *sums)]);
    } else {
        own_cell(g, pick(g, RANDOM_REGIONS));
        guard(g);
        put_template(g, own[pick(g, sizeof own / sizeof *own)]);
    }
    put(g, "\n");
}

/* ---- lanes and threads together ---- */

/* `mask`: NULL for all. Every lane of it that lives comes here. */
static void warp_statement(struct gen *g, const char *mask)
{
    static const char *const ops[] = {
        "shfl.sync.idx.b32 $R, $V, $r, 31, @;", "shfl.sync.up.b32 $R|$P, $V, $r, 0, @;",
        "shfl.sync.down.b32 $R|$P, $V, $r, 31, @;", "shfl.sync.bfly.b32 $R, $V, 1, 0x1f, @;",
        "shfl.sync.bfly.b32 $R, $V, 16, 0x1f, @;", "shfl.sync.idx.b32 $R|$P, $V, $r, 0x1807, @;",
        "shfl.sync.idx.b32 $R, $V, 0, $r, @;", "vote.sync.any.pred $P, $p, @;", "vote.sync.all.pred $P, $p, @;",
        "vote.sync.all.pred $P, !$p, @;", "vote.sync.uni.pred $P, $p, @;", "vote.sync.ballot.b32 $R, $p, @;",
        "match.any.sync.b32 $R, $V, @;", "match.all.sync.b32 $R|$P, $V, @;", "match.any.sync.b64 $R, $x, @;",
        "redux.sync.add.s32 $R, $V, @;", "redux.sync.min.u32 $R, $V, @;", "redux.sync.xor.b32 $R, $V, @;",
        "redux.sync.max.s32 $R, $V, @;", "elect.sync $R|$P, @;", "bar.warp.sync @;", "vote.sync.ballot.b32 $R, !$p, @;",
        /* those of eight lanes each: who names one is with others that name it */
        "{ and.b32 %t, %laneid, 24; shl.b32 %t, 255, %t; shfl.sync.down.b32 $R, $V, 1, 0x181f, %t; }"};
    uint32_t kinds = sizeof ops / sizeof *ops;
    if (!mask && !g->exits && chance(g, 5))
        put_template(g, "activemask.b32 $R;\n");
    for (const char *t = ops[pick(g, !mask && chance(g, 10) ? kinds : kinds - 1)]; *t; t++)
        if (*t == '@')
            put(g, "%s", mask ? mask : "0xffffffff");
        else if (*t == '$')
            put_operand(g, *++t);
        else
            put(g, "%c", *t);
    put(g, "\n");
}

static void statements(struct gen *g, uint32_t depth, uint32_t count, const char *mask);

static void block_statement(struct gen *g)
{
    switch (pick(g, g->exits ? 4 : g->shared ? 6 : 5)) {
    case 0:
        put(g, "bar.sync 0;\n");
        break;
    case 1:
        put_template(g, "barrier.red.popc.u32 $R, 1, $p;\n");
        break;
    case 2:
        put_template(g, chance(g, 50) ? "barrier.red.and.pred $P, 2, $p;\n" : "barrier.red.or.pred $P, 2, !$p;\n");
        break;
    case 3: { /* two instructions, one barrier */
        uint32_t l = g->labels++;
        put_template(g, "@$p bra ");
        put(g, "B%u; barrier.sync 3; bra C%u;\nB%u: barrier.sync 3;\nC%u:\n", l, l, l, l);
        break;
    }
    case 4:
        put(g, "barrier.sync 4, %u;\n", (g->block_threads + 31) / 32 * 32);
        break;
    default: { /* what another thread stored */
        uint32_t at = 5 * 16 * g->block_threads;
        put(g, "bar.sync 5; mad.lo.u32 %%t, %%s0, 4, tile; st.shared.u32 [%%t+%u], %%r%u; bar.sync 6;\n", at,
            pick(g, 10));
        put_template(g, "{ .reg .u32 %o; rem.u32 %o, $r, ");
        put(g, "%u; mad.lo.u32 %%o, %%o, 4, tile; ld.shared.u32 %%r%u, [%%o+%u]; } bar.sync 7;\n", g->block_threads,
            pick(g, 10), at);
    }
    }
}

/* ---- control ---- */

static void condition(struct gen *g)
{
    switch (pick(g, 4)) {
    case 0:
        put_template(g, "setp.lt.u32 %q, %laneid, $n; ");
        break;
    case 1:
        put_template(g, "{ .reg .u32 %o; mov.u32 %o, $s; and.b32 %o, %o, ");
        put(g, "%u; setp.ne.u32 %%q, %%o, 0; } ", 1u << pick(g, 5));
        break;
    case 2:
        put_template(g, "setp.gt.s32 %q, $r, $r; ");
        break;
    default:
        put_template(g, "mov.pred %q, $p; ");
    }
}

static void if_statement(struct gen *g, uint32_t depth, const char *mask)
{
    uint32_t l = g->labels++;
    bool partial = g->partial, ballot = !g->partial && !g->exits && chance(g, 50), alone = chance(g, 30);
    char sub[16];
    (void)mask;
    condition(g);
    if (ballot)
        put(g, "vote.sync.ballot.b32 %%m%u, %%q, 0xffffffff; not.b32 %%n%u, %%m%u; ", depth, depth, depth);
    put(g, "\n");
    bool far = chance(g, 15) && !g->aside;
    g->partial = true;
    put(g, "@%%q bra T%u;\n", l);
    snprintf(sub, sizeof sub, "%%n%u", depth);
    if (!alone)
        statements(g, depth + 1, 1 + pick(g, 4), ballot ? sub : NULL);
    snprintf(sub, sizeof sub, "%%m%u", depth);
    put(g, "bra E%u;\n", l);
    if (far)
        g->aside = true;
    put(g, "T%u:\n", l);
    statements(g, depth + 1, 1 + pick(g, 4), ballot ? sub : NULL);
    if (far) {
        put(g, "bra.uni E%u;\n", l);
        g->aside = false;
    }
    put(g, "E%u:\n", l);
    g->partial = partial;
}

static void loop_statement(struct gen *g, uint32_t depth)
{
    uint32_t l = g->labels++, c = g->loops++ % 32;
    bool partial = g->partial, leaves = chance(g, 30), uniform = chance(g, 40);
    if (uniform)
        put(g, "mov.u32 %%c%u, %u;\n", c, 1 + pick(g, 4));
    else
        put_template(g, "and.b32 %t, $r, 3;\n"), put(g, "add.u32 %%c%u, %%t, 1;\n", c), g->partial = true;
    g->partial |= leaves;
    put(g, "L%u:\n", l);
    statements(g, depth + 1, 1 + pick(g, 4), NULL);
    if (leaves) {
        condition(g);
        put(g, "\n@%%q bra D%u;\n", l);
        statements(g, depth + 1, 1 + pick(g, 2), NULL);
    }
    put(g, "sub.u32 %%c%u, %%c%u, 1; setp.ne.u32 %%q, %%c%u, 0;\n@%%q bra L%u;\nD%u:\n", c, c, c, l, l);
    g->partial = partial;
}

static void switch_statement(struct gen *g, uint32_t depth)
{
    uint32_t l = g->labels++;
    bool partial = g->partial;
    put(g, "X%u: .branchtargets Y%u_0, Y%u_1, Y%u_2, Y%u_1;\n", l, l, l, l, l);
    put_template(g, "and.b32 %t, $r, 3;\n");
    put(g, "brx.idx %%t, X%u;\n", l);
    g->partial = true;
    for (int i = 0; i < 3; i++) {
        put(g, "Y%u_%d:\n", l, i);
        statements(g, depth + 1, pick(g, 3), NULL);
        if (chance(g, 70))
            put(g, "bra Z%u;\n", l);
    }
    put(g, "Z%u:\n", l);
    g->partial = partial;
}

/* Forward jumps into one another. */
static void tangle_statement(struct gen *g, uint32_t depth)
{
    uint32_t l = g->labels++, count = 3 + pick(g, 3);
    bool partial = g->partial;
    g->partial = true;
    for (uint32_t i = 0; i < count; i++) {
        put(g, "U%u_%u:\n", l, i);
        statements(g, depth + 1, pick(g, 3), NULL);
        if (i + 1 < count) {
            condition(g);
            put(g, "\n@%%q bra U%u_%u;\n", l, i + 1 + pick(g, count - i - 1));
        }
    }
    g->partial = partial;
}

static void statements(struct gen *g, uint32_t depth, uint32_t count, const char *mask)
{
    if (g->aside ? g->later_used > LATER / 2 : g->used > RANDOM_TEXT / 4)
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = pick(g, 100);
        if (depth < MAX_DEPTH && kind < 8)
            if_statement(g, depth, mask);
        else if (depth < MAX_DEPTH && kind < 12)
            loop_statement(g, depth);
        else if (depth < MAX_DEPTH && kind < 14)
            switch_statement(g, depth);
        else if (depth < MAX_DEPTH && kind < 16)
            tangle_statement(g, depth);
        else if (kind < 24)
            global_statement(g);
        else if (kind < 30)
            input_statement(g);
        else if (kind < 34 && g->shared)
            shared_statement(g);
        else if (kind < 36)
            local_statement(g);
        else if (kind < 40)
            atomic_statement(g);
        else if (kind < 48 && (mask || !g->partial))
            warp_statement(g, g->partial ? mask : NULL);
        else if (kind < 52 && !g->partial && depth == 0)
            block_statement(g);
        else if (kind < 53 && g->calls)
            put_template(g, "call (%t), twice, (%i0); add.u32 $R, %t, $r;\n");
        else if (kind < 54 && g->exits && depth > 0 && !g->aside)
            put_template(g, "@$p bra END;\n");
        else if (kind < 55 && g->exits && depth > 0)
            put_template(g, "{ .reg .pred %o; setp.eq.u32 %o, $r, %laneid; @%o exit; }\n");
        else
            pure_statement(g);
    }
}

/* ---- the whole ---- */

static void choose_shape(struct gen *g, struct random_shape *s)
{
    static const uint32_t blocks[][3] = {{32, 1, 1},   {33, 1, 1},  {1, 1, 1},  {16, 16, 1}, {8, 8, 2},
                                         {24, 4, 1},   {100, 3, 1}, {1, 64, 1}, {2, 32, 1},  {64, 1, 1},
                                         {1024, 1, 1}, {16, 4, 1},  {4, 4, 4},  {1, 1, 64},  {31, 1, 1},
                                         {5, 7, 3},    {128, 1, 1}, {32, 4, 1}, {16, 2, 3},  {8, 8, 1}};
    uint32_t i;
    do
        i = pick(g, sizeof blocks / sizeof *blocks);
    while (blocks[i][0] == 1024 && !chance(g, 20));
    memcpy(s->block, blocks[i], sizeof s->block);
    g->block_threads = s->block[0] * s->block[1] * s->block[2];
    s->grid = g->block_threads > 500 ? 1 : 1 + pick(g, 3);
    s->threads = 32;
    while (s->threads < s->grid * g->block_threads)
        s->threads *= 2;
    g->threads = s->threads;
}

static void prologue(struct gen *g)
{
    put(g, ".version 9.0\n.target sm_90\n.address_size 64\n");
    if (g->calls)
        put(g, ".func (.reg .u32 %%y) twice(.reg .u32 %%x) { .reg .pred %%p; setp.gt.u32 %%p, %%x, 40; @%%p bra A; "
               "add.u32 %%y, %%x, "
               "%%x; ret; A: mul.lo.u32 %%y, %%x, 3; ret; }\n");
    put(g, ".visible .entry k(.param .u64 cells, .param .u64 input, .param .u64 out, .param .u64 sums, .param .u32 n, "
           ".param .s16 "
           "small)\n{\n");
    put(g, ".reg .b16 %%h<6>; .reg .b32 %%r<10>; .reg .b64 %%d<8>; .reg .pred %%p<6>; .reg .pred %%q; .reg .b32 "
           "%%i<4>; .reg .b32 %%s<3>;\n"
           ".reg .b32 %%c<32>; .reg .b32 %%m<8>; .reg .b32 %%n<8>; .reg .b32 %%t; .reg .b32 %%t2; .reg .b64 %%o; .reg "
           ".b64 %%a; .reg .b64 %%cells; .reg .b64 "
           "%%input; .reg .b64 %%out; .reg .b64 %%sums;\n");
    put(g, ".local .align 16 .b8 stack[64];\n");
    if (g->shared)
        put(g, ".shared .align 16 .b8 tile[%u];\n", 6 * 16 * g->block_threads);
    put(g, "ld.param.u64 %%cells, [cells]; ld.param.u64 %%input, [input]; ld.param.u64 %%out, [out]; ld.param.u64 "
           "%%sums, [sums];\n"
           "cvta.to.global.u64 %%cells, %%cells; cvta.to.global.u64 %%out, %%out;\n");
    /* s0: thread of the block; i0: of the grid; then backwards, scattered, crossed */
    put(g, "mov.u32 %%t, %%ntid.y; mov.u32 %%t2, %%tid.z; mov.u32 %%s0, %%tid.y; mad.lo.u32 %%s0, %%t2, %%t, %%s0; "
           "mov.u32 %%t, %%ntid.x; "
           "mov.u32 %%t2, %%tid.x; mad.lo.u32 %%s0, %%s0, %%t, %%t2;\n");
    put(g, "sub.u32 %%s1, %u, %%s0; mov.u32 %%t2, %%ctaid.x; mad.lo.u32 %%i0, %%t2, %u, %%s0;\n", g->block_threads - 1,
        g->block_threads);
    put(g, "xor.b32 %%s2, %%s0, 1; setp.ge.u32 %%q, %%s2, %u; selp.b32 %%s2, %%s0, %%s2, %%q;\n", g->block_threads);
    put(g, "sub.u32 %%i1, %u, %%i0; mad.lo.u32 %%i2, %%i0, %u, %u; and.b32 %%i2, %%i2, %u; xor.b32 %%i3, %%i0, %u;\n",
        g->threads - 1, 2 * pick(g, 100) + 1, pick(g, 100), g->threads - 1, pick(g, g->threads));
    for (uint32_t i = 0; i < 12; i++) {
        static const char *const starts[] = {
            "mov.u32 $R, $s;",         "mov.u32 $R, %i0;", "mov.u32 $R, $r;",      "cvt.u64.u32 $W, %i0;",
            "cvt.u64.u32 $W, %i1;",    "mov.u64 $W, $w;",  "cvt.u16.u32 $H, %i0;", "setp.lt.u32 $P, %laneid, $n;",
            "setp.gt.u32 $P, %i2, $n;"};
        put_template(g, starts[pick(g, sizeof starts / sizeof *starts)]);
        put(g, "\n");
    }
}

static void epilogue(struct gen *g)
{
    put(g, "END:\nmad.wide.u32 %%a, %%i0, %d, %%out;\n", RANDOM_OUT);
    for (int i = 0; i < 10; i++)
        put(g, "st.global.u32 [%%a+%d], %%r%d;\n", 4 * i, i);
    for (int i = 0; i < 6; i++)
        put(g, "st.global.u16 [%%a+%d], %%h%d;\nselp.u32 %%t, 1, 0, %%p%d; st.global.u32 [%%a+%d], %%t;\n", 40 + 2 * i,
            i, i, 52 + 4 * i);
    for (int i = 0; i < 8; i++)
        put(g, "st.global.u64 [%%a+%d], %%d%d;\n", 80 + 8 * i, i);
    put(g, "%s;\n", chance(g, 50) ? "ret" : "exit");
    if (g->later_used) {
        size_t n = g->later_used;
        assert(g->used + n < RANDOM_TEXT);
        memcpy(g->text + g->used, g->later, n);
        g->used += n;
        put(g, "ret;\n");
    }
    put(g, "}\n");
}

void random_kernel(uint64_t seed, char *text, struct random_shape *shape)
{
    static struct gen g;
    g = (struct gen){.random = seed, .text = text};
    choose_shape(&g, shape);
    g.calls = chance(&g, 5);
    g.exits = chance(&g, 35);
    g.shared = g.block_threads * 96 <= 48 << 10;
    prologue(&g);
    statements(&g, 0, 10 + pick(&g, 40), NULL);
    epilogue(&g);
    text[g.used] = 0;
}
