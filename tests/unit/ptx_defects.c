#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_defects.h"
#include "tests/unit/ptx_kit.h"

struct gen {
    uint64_t random;
    char *text;
    size_t used;
    uint32_t percent, next, labels, threads, block_threads;
    enum { ALL_KINDS, GLOBAL_ONLY, SHARED_ONLY } theme;
    bool partial, exits; /* lanes may be elsewhere; some threads end early */
};

static uint32_t pick(struct gen *g, uint32_t below)
{
    return (uint32_t)(kit_random(&g->random) >> 33) % below;
}

static bool chance(struct gen *g, uint32_t percent)
{
    return pick(g, 100) < percent;
}

static bool defect(struct gen *g)
{
    return pick(g, 1000) < g->percent * 10;
}

static __attribute__((format(printf, 2, 3))) void put(struct gen *g, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(g->text + g->used, DEFECTS_TEXT - g->used, format, list);
    va_end(list);
    assert(n >= 0 && (size_t)n < DEFECTS_TEXT - g->used);
    g->used += (size_t)n;
}

/* A register of its own for each value, as nvcc has it. */
static uint32_t word(struct gen *g)
{
    put(g, ".reg .b32 %%w%u; ", g->next);
    return g->next++;
}

static uint32_t wide(struct gen *g)
{
    put(g, ".reg .b64 %%a%u; ", g->next);
    return g->next++;
}

static uint32_t value(struct gen *g)
{
    return pick(g, 6);
}

/* ---- accesses ---- */

/* `bytes` at [register + offset], in some way; loaded values are used, or not. */
static void load(struct gen *g, const char *space, char kind, uint32_t at, uint32_t offset, uint32_t bytes,
                 bool is_volatile)
{
    const char *strong = is_volatile ? ".volatile" : "";
    uint32_t r = word(g), v = value(g);
    if (bytes == 16 && chance(g, 50)) {
        uint32_t s = word(g), t = word(g), u = word(g);
        put(g, "ld%s%s.v4.u32 {%%w%u, %%w%u, %%w%u, %%w%u}, [%%%c%u+%u]; xor.b32 %%w%u, %%w%u, %%w%u;\n", strong, space,
            r, s, t, u, kind, at, offset, r, r, chance(g, 50) ? t : u);
    } else if (bytes >= 8 && chance(g, 60)) {
        uint32_t d = wide(g);
        put(g, "ld%s%s.u64 %%a%u, [%%%c%u+%u]; cvt.u32.u64 %%w%u, %%a%u;\n", strong, space, d, kind, at,
            offset + pick(g, bytes / 8) * 8, r, d);
    } else if (bytes >= 4 && chance(g, 70)) {
        put(g, "ld%s%s.%s %%w%u, [%%%c%u+%u];\n", strong, space, chance(g, 70) ? "u32" : "f32", r, kind, at,
            offset + pick(g, bytes / 4) * 4);
    } else if (bytes >= 2 && chance(g, 50)) {
        put(g, "ld%s%s.s16 %%w%u, [%%%c%u+%u];\n", strong, space, r, kind, at, offset + pick(g, bytes / 2) * 2);
    } else {
        put(g, "ld%s%s.u8 %%w%u, [%%%c%u+%u];\n", strong, space, r, kind, at, offset + pick(g, bytes));
    }
    if (chance(g, 85))
        put(g, "mad.lo.u32 %%v%u, %%v%u, 5, %%w%u;\n", v, v, r);
}

static void store(struct gen *g, const char *space, char kind, uint32_t at, uint32_t offset, uint32_t bytes,
                  bool is_volatile)
{
    const char *strong = is_volatile ? ".volatile" : "";
    uint32_t v = value(g);
    if (bytes == 16 && chance(g, 40)) {
        put(g, "st%s%s.v4.u32 [%%%c%u+%u], {%%v%u, %%v%u, %%v0, %%v1};\n", strong, space, kind, at, offset, v,
            value(g));
    } else if (bytes >= 8 && chance(g, 40)) {
        uint32_t d = wide(g);
        put(g, "cvt.u64.u32 %%a%u, %%v%u; st%s%s.u64 [%%%c%u+%u], %%a%u;\n", d, v, strong, space, kind, at,
            offset + pick(g, bytes / 8) * 8, d);
    } else if (bytes >= 4 && chance(g, 80)) {
        put(g, "st%s%s.u32 [%%%c%u+%u], %%v%u;\n", strong, space, kind, at, offset + pick(g, bytes / 4) * 4, v);
    } else if (bytes >= 2 && chance(g, 50)) {
        put(g, "st%s%s.u16 [%%%c%u+%u], %%v%u;\n", strong, space, kind, at, offset + pick(g, bytes / 2) * 2, v);
    } else {
        put(g, "st%s%s.u8 [%%%c%u+%u], %%v%u;\n", strong, space, kind, at, offset + pick(g, bytes), v);
    }
}

/* ---- global memory ---- */

static void input_statement(struct gen *g)
{
    static const uint32_t sizes[] = {1, 2, 4, 4, 4, 8, 16};
    uint32_t size = sizes[pick(g, 7)], i = word(g), a = wide(g), count = DEFECTS_INPUT / size, last = 0;
    switch (pick(g, 5)) {
    case 0: /* side by side */
        put(g, "add.u32 %%w%u, %%i0, %u;\n", i, pick(g, 64));
        break;
    case 1: /* one place */
        put(g, "mov.u32 %%w%u, %u;\n", i, pick(g, count));
        break;
    case 2: /* anywhere */
        put(g, "mad.lo.u32 %%w%u, %%v%u, 77, %%i0; and.b32 %%w%u, %%w%u, %u;\n", i, value(g), i, i, count - 1);
        break;
    case 3: /* by steps */
        put(g, "mul.lo.u32 %%w%u, %%s0, %u; and.b32 %%w%u, %%w%u, %u;\n", i, 1 + pick(g, 9), i, i, count - 1);
        break;
    default: /* up to the end */
        last = 1;
        put(g, "sub.u32 %%w%u, %u, %%s0;\n", i, count - (defect(g) ? 0 : 1));
    }
    if (!last && (size == 16 || g->threads + 64 > count))
        put(g, "and.b32 %%w%u, %%w%u, %u;\n", i, i, count - 1);
    put(g, "%s %%a%u, %%w%u, %u, %%input;\n", chance(g, 50) ? "mad.wide.u32" : "mad.wide.s32", a, i, size);
    if (size > 1 && defect(g))
        put(g, "add.u64 %%a%u, %%a%u, %u;\n", a, a, chance(g, 50) ? 1u : (uint32_t)DEFECTS_INPUT - 8);
    load(g, chance(g, 25) ? "" : ".global", 'a', a, 0, size, chance(g, 4));
}

/* Some thread's bytes in a region of global memory; `other`: perhaps not its own. */
static uint32_t cell(struct gen *g, uint32_t region, bool other)
{
    static const char *const wrong[] = {"xor.b32 %%w%u, %%i%u, 1;\n",  "xor.b32 %%w%u, %%i%u, 32;\n",
                                        "and.b32 %%w%u, %%i%u, 31;\n", "shr.u32 %%w%u, %%i%u, 1;\n",
                                        "add.u32 %%w%u, %%i%u, 1;\n",  "and.b32 %%w%u, %%i%u, 0xffffffc0;\n"};
    uint32_t a = wide(g), i = word(g), b = wide(g);
    put(g, other ? wrong[pick(g, sizeof wrong / sizeof *wrong)] : "mov.u32 %%w%u, %%i%u;\n", i, region % 4);
    put(g, "mad.wide.u32 %%a%u, %%w%u, %u, %%cells; add.u64 %%a%u, %%a%u, %u;\n", a, i, region < 2 ? 4 : DEFECTS_CELL,
        b, a, region * DEFECTS_CELL * g->threads);
    return b;
}

static void cell_statement(struct gen *g)
{
    uint32_t region = g->theme == GLOBAL_ONLY ? 2 * pick(g, 2) : pick(g, DEFECTS_REGIONS),
             bytes = region < 2 ? 4 : DEFECTS_CELL, at;
    /* Atomic and volatile accesses are at 1: in no race, but where others come, too, the order of threads would show.
     */
    const bool other = region != 1 && defect(g);
    at = cell(g, region, other);
    for (uint32_t n = 1 + pick(g, 3); n > 0; n--) {
        const char *space = chance(g, 25) ? "" : ".global";
        bool is_volatile = region == 1 && chance(g, 10);
        if (chance(g, 50))
            store(g, space, 'a', at, 0, bytes, is_volatile);
        else
            load(g, space, 'a', at, 0, bytes, is_volatile);
    }
}

/* A pointer that comes by a detour: chosen, from memory, as a difference. */
static void pointer_statement(struct gen *g)
{
    uint32_t p = wide(g), q = wide(g), i = word(g);
    put(g, "and.b32 %%w%u, %%i0, 15;\n", i);
    switch (pick(g, 4)) {
    case 0:
        put(g, "setp.lt.u32 %%q, %%s0, %u; selp.b64 %%a%u, %%input, %%cells, %%q;\n", pick(g, 40), p);
        break;
    case 1: /* a pointer, the same for all */
        put(g, "ld.global.u64 %%a%u, [%%table+%u];\n", p, 8 * pick(g, 2) + (defect(g) ? 16 : 0));
        break;
    case 2: { /* lanes have different ones */
        uint32_t t = wide(g), k = word(g);
        put(g, "and.b32 %%w%u, %%s0, 1; mad.wide.u32 %%a%u, %%w%u, 8, %%table; ld.global.u64 %%a%u, [%%a%u];\n", k, t,
            k, p, t);
        break;
    }
    default: {
        uint32_t t = wide(g);
        put(g, "sub.s64 %%a%u, %%input, %%table; add.s64 %%a%u, %%table, %%a%u;\n", t, p, t);
    }
    }
    put(g, "mad.wide.u32 %%a%u, %%w%u, 4, %%a%u;\n", q, i, p);
    if (defect(g))
        put(g, "add.u64 %%a%u, %%a%u, %u;\n", q, q, (uint32_t)DEFECTS_INPUT);
    load(g, chance(g, 25) ? "" : ".global", 'a', q, 0, 4, false);
    if (chance(g, 30)) { /* a number of 64 bits as an index */
        uint32_t n = wide(g), m = wide(g);
        put(g, "ld.global.u64 %%a%u, [%%table+%u]; shl.b64 %%a%u, %%a%u, 2; add.s64 %%a%u, %%input, %%a%u;\n", n,
            16 + 8 * pick(g, 8), n, n, m, n);
        load(g, ".global", 'a', m, 0, 4, false);
    }
}

static void atomic_statement(struct gen *g)
{
    static const char *const sums[] = {"red.global.add.u32 [%%sums], %%v%u;\n",
                                       "red.global.max.s32 [%%sums+4], %%v%u;\n",
                                       "red.global.xor.b32 [%%sums+8], %%v%u;\n", "red.add.u32 [%%sums+12], %%v%u;\n"};
    if (chance(g, 50)) {
        put(g, sums[pick(g, 4)], value(g));
        return;
    }
    uint32_t at = cell(g, 1, false), w = word(g);
    put(g, chance(g, 50) ? "atom.global.add.u32 %%w%u, [%%a%u], %%v%u;" : "atom.global.exch.b32 %%w%u, [%%a%u], %%v%u;",
        w, at, value(g));
    put(g, "add.u32 %%v0, %%v0, %%w%u;\n", w);
}

/* ---- shared and local memory ---- */

static uint32_t place(struct gen *g, const char *index, uint32_t bytes, uint32_t offset)
{
    uint32_t t = word(g);
    put(g, "mad.lo.u32 %%w%u, %s, %u, tile; add.u32 %%w%u, %%w%u, %u;\n", t, index, bytes, t, t, offset);
    return t;
}

static void shared_load(struct gen *g, uint32_t at, uint32_t bytes, bool own)
{
    if (chance(g, 80)) {
        load(g, ".shared", 'w', at, 0, bytes, own && chance(g, 4));
        return;
    }
    uint32_t a = wide(g);
    put(g, "cvt.u64.u32 %%a%u, %%w%u; cvta.shared.u64 %%a%u, %%a%u;\n", a, at, a, a);
    load(g, "", 'a', a, 0, bytes, false);
}

static void own_shared_statement(struct gen *g)
{
    static const char *const orders[] = {"%s0", "%s1", "%s2", "%laneid"};
    uint32_t o = g->theme == SHARED_ONLY ? 1 + pick(g, 2) : pick(g, 3), index = o && defect(g) ? pick(g, 4) : o,
             at = place(g, orders[index], 16, o * 16 * g->block_threads);
    for (uint32_t n = 1 + pick(g, 3); n > 0; n--)
        if (chance(g, 50))
            store(g, ".shared", 'w', at, 0, 16, o == 0 && chance(g, 10));
        else
            shared_load(g, at, 16, o == 0);
}

static void barrier(struct gen *g)
{
    if (defect(g))
        return;
    switch (pick(g, 4)) {
    case 0:
        put(g, "barrier.sync 1, %u;\n", (g->block_threads + 31) / 32 * 32);
        break;
    case 1:
        put(g, "setp.ne.u32 %%q, %%v0, 0; barrier.red.or.pred %%q, 0, %%q;\n");
        break;
    default:
        put(g, "bar.sync 0;\n");
    }
}

/* What another thread of the block stored: through shared or global memory. */
static void exchange_statement(struct gen *g)
{
    uint32_t v = value(g), base = 3 * 16 * g->block_threads;
    barrier(g);
    if (chance(g, 70)) {
        uint32_t at = place(g, chance(g, 50) ? "%s0" : "%s1", 4, base), i = word(g);
        put(g, "st.shared.u32 [%%w%u], %%v%u;\n", at, v);
        barrier(g);
        put(g, "mad.lo.u32 %%w%u, %%s0, %u, %u; rem.u32 %%w%u, %%w%u, %u;\n", i, pick(g, 5), pick(g, 50), i, i,
            g->exits ? 1 : g->block_threads);
        char index[16];
        snprintf(index, sizeof index, "%%w%u", i);
        at = place(g, index, 4, base);
        shared_load(g, at, 4, false);
    } else {
        uint32_t region = 2 + pick(g, 2), at = cell(g, region, false), i = word(g), a = wide(g);
        store(g, ".global", 'a', at, 0, 16, false);
        barrier(g);
        put(g, "xor.b32 %%w%u, %%s0, %u; min.u32 %%w%u, %%w%u, %u; mad.lo.u32 %%w%u, %%ctaid.x, %u, %%w%u;\n", i,
            1 << pick(g, 6), i, i, g->block_threads - 1, i, g->block_threads, i);
        if (region == 3)
            put(g, "sub.u32 %%w%u, %u, %%w%u;\n", i, g->threads - 1, i);
        put(g, "mad.wide.u32 %%a%u, %%w%u, %u, %%cells; add.u64 %%a%u, %%a%u, %u;\n", a, i, DEFECTS_CELL, a, a,
            region * DEFECTS_CELL * g->threads);
        load(g, ".global", 'a', a, 0, 16, false);
    }
    barrier(g);
}

static void warp_barrier(struct gen *g)
{
    uint32_t w = word(g);
    if (defect(g))
        return;
    if (chance(g, 70))
        put(g, "bar.warp.sync 0xffffffff;\n");
    else
        put(g, "shfl.sync.bfly.b32 %%w%u, %%v0, 1, 0x1f, 0xffffffff; add.u32 %%v1, %%v1, %%w%u;\n", w, w);
}

static void warp_statement(struct gen *g)
{
    uint32_t base = 3 * 16 * g->block_threads + 4 * g->block_threads, i = word(g);
    char index[16];
    warp_barrier(g);
    uint32_t at = place(g, "%s0", 4, base);
    store(g, ".shared", 'w', at, 0, 4, false);
    warp_barrier(g);
    put(g, "xor.b32 %%w%u, %%s0, %u; min.u32 %%w%u, %%w%u, %u;\n", i, defect(g) ? 32 : 1 << pick(g, 5), i, i,
        g->block_threads - 1);
    snprintf(index, sizeof index, "%%w%u", i);
    at = place(g, index, 4, base);
    shared_load(g, at, 4, false);
    warp_barrier(g);
}

static void shared_atomic_statement(struct gen *g)
{
    uint32_t base = 3 * 16 * g->block_threads + 8 * g->block_threads;
    if (chance(g, 20)) /* what it finds depends on the order of threads */
        put(g, "ld.shared.u32 %%t, [tile+%u];\n", base);
    if (defect(g))
        put(g, "@%%q st.shared.u32 [tile+%u], %%t;\n", base);
    put(g, "red.shared.add.u32 [tile+%u], %%v%u;\n", base, value(g));
}

static void local_statement(struct gen *g)
{
    uint32_t t = word(g), u = word(g);
    put(g, "and.b32 %%w%u, %%v%u, 0x30; mov.u32 %%w%u, stack; add.u32 %%w%u, %%w%u, %%w%u;\n", t, value(g), u, t, t, u);
    if (chance(g, 50))
        store(g, ".local", 'w', t, 0, 16, false);
    if (!defect(g))
        put(g, "st.local.v4.u32 [%%w%u], {%%v0, %%v1, %%v2, %%v3};\n", t);
    load(g, ".local", 'w', t, 0, 16, false);
}

/* ---- control ---- */

static void statements(struct gen *g, uint32_t depth, uint32_t count);

static void if_statement(struct gen *g, uint32_t depth)
{
    uint32_t l = g->labels++;
    bool partial = g->partial;
    switch (pick(g, 4)) {
    case 0:
        put(g, "setp.lt.u32 %%q, %%s0, %u;\n", pick(g, g->block_threads + 1));
        break;
    case 1:
        put(g, "setp.gt.s32 %%q, %%v%u, %%v%u;\n", value(g), value(g));
        break;
    case 2:
        put(g, "{ .reg .b32 %%o; and.b32 %%o, %%s0, %u; setp.ne.u32 %%q, %%o, 0; }\n", 1u << pick(g, 6));
        break;
    default:
        put(g, "setp.eq.u32 %%q, %%s0, %u;\n", pick(g, g->block_threads));
    }
    put(g, "@%%q bra T%u;\n", l);
    g->partial = true;
    statements(g, depth + 1, 1 + pick(g, 2));
    if (chance(g, 60))
        put(g, "bra E%u;\nT%u:\n", l, l), statements(g, depth + 1, 1 + pick(g, 2)), put(g, "E%u:\n", l);
    else
        put(g, "T%u:\n", l);
    g->partial = partial;
}

static void loop_statement(struct gen *g, uint32_t depth)
{
    uint32_t l = g->labels++, c = word(g);
    bool partial = g->partial, uniform = chance(g, 70);
    if (uniform)
        put(g, "mov.u32 %%w%u, %u;\n", c, 1 + pick(g, 3));
    else
        put(g, "and.b32 %%w%u, %%v0, 1; add.u32 %%w%u, %%w%u, 1;\n", c, c, c);
    g->partial |= !uniform;
    put(g, "L%u:\n", l);
    statements(g, depth + 1, 1 + pick(g, 3));
    put(g, "sub.u32 %%w%u, %%w%u, 1; setp.ne.u32 %%q, %%w%u, 0;\n@%%q bra L%u;\n", c, c, c, l);
    g->partial = partial;
}

static void statements(struct gen *g, uint32_t depth, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = g->theme == ALL_KINDS || chance(g, 15) ? pick(g, 100)
                        : g->theme == GLOBAL_ONLY              ? (chance(g, 75) ? 40 : 80)
                                                               : 64 + pick(g, 30);
        if (depth < 3 && kind < 10)
            if_statement(g, depth);
        else if (depth < 3 && kind < 16)
            loop_statement(g, depth);
        else if (kind < 36)
            input_statement(g);
        else if (kind < 54)
            cell_statement(g);
        else if (kind < 58)
            pointer_statement(g);
        else if (kind < 63)
            atomic_statement(g);
        else if (kind < 74)
            own_shared_statement(g);
        else if (kind < 84 && (!g->partial || defect(g)))
            exchange_statement(g);
        else if (kind < 91 && !g->partial)
            warp_statement(g);
        else if (kind < 94)
            shared_atomic_statement(g);
        else
            local_statement(g);
    }
}

/* ---- the whole ---- */

static void choose_shape(struct gen *g, struct defects_shape *s)
{
    static const uint32_t blocks[][3] = {{32, 1, 1}, {33, 1, 1}, {64, 1, 1}, {16, 16, 1}, {8, 8, 2},  {24, 4, 1},
                                         {2, 32, 1}, {96, 1, 1}, {16, 4, 1}, {128, 1, 1}, {32, 4, 1}, {31, 1, 1}};
    memcpy(s->block, blocks[pick(g, sizeof blocks / sizeof *blocks)], sizeof s->block);
    g->block_threads = s->block[0] * s->block[1] * s->block[2];
    s->grid = 1 + pick(g, 3);
    s->threads = 32;
    while (s->threads < s->grid * g->block_threads)
        s->threads *= 2;
    g->threads = s->threads;
}

static void prologue(struct gen *g)
{
    put(g,
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 input, .param .u64 cells, .param "
        ".u64 "
        "out, .param .u64 sums, .param .u64 table)\n{\n.reg .b32 %%v<6>; .reg .b32 %%i<4>; .reg .b32 %%s<3>; .reg .b32 "
        "%%t; .reg "
        ".b32 %%u; .reg .pred %%q; .reg .b64 %%input; .reg .b64 %%cells; .reg .b64 %%out; .reg .b64 %%sums; .reg .b64 "
        "%%table; .reg .b64 %%a;\n.local .align 16 .b8 stack[64];\n.shared .align 16 .b8 tile[%u];\n",
        (3 * 16 + 8) * g->block_threads + 16);
    put(g, "ld.param.u64 %%input, [input]; ld.param.u64 %%cells, [cells]; ld.param.u64 %%out, [out]; ld.param.u64 "
           "%%sums, [sums]; "
           "ld.param.u64 %%table, [table];\n");
    if (chance(g, 50))
        put(g, "cvta.to.global.u64 %%cells, %%cells; cvta.to.global.u64 %%input, %%input;\n");
    put(g, "mov.u32 %%t, %%ntid.y; mov.u32 %%u, %%tid.z; mov.u32 %%s0, %%tid.y; mad.lo.u32 %%s0, %%u, %%t, %%s0; "
           "mov.u32 %%t, "
           "%%ntid.x; mov.u32 %%u, %%tid.x; mad.lo.u32 %%s0, %%s0, %%t, %%u;\n");
    put(g, "sub.u32 %%s1, %u, %%s0; mov.u32 %%u, %%ctaid.x; mad.lo.u32 %%i0, %%u, %u, %%s0; mov.u32 %%i2, %%i0;\n",
        g->block_threads - 1, g->block_threads);
    put(g, "xor.b32 %%s2, %%s0, 1; setp.ge.u32 %%q, %%s2, %u; selp.b32 %%s2, %%s0, %%s2, %%q;\n", g->block_threads);
    put(g, "sub.u32 %%i1, %u, %%i0; sub.u32 %%i3, %u, %%i0;\n", g->threads - 1, g->threads - 1);
    for (int i = 0; i < 6; i++)
        put(g, "mad.lo.u32 %%v%d, %%i0, %u, %u;\n", i, pick(g, 3), pick(g, 1000));
    if (g->exits)
        put(g, "setp.ge.u32 %%q, %%s0, %u;\n@%%q bra END;\n", 1 + pick(g, g->block_threads));
    for (uint32_t o = 0; o < 3; o++)
        if (!defect(g))
            put(g, "mad.lo.u32 %%t, %%s%u, 16, tile; st.shared.v4.u32 [%%t+%u], {%%v0, %%v1, %%v2, %%v3};\n", o,
                o * 16 * g->block_threads);
    put(g, "setp.eq.u32 %%q, %%s0, 0; @%%q st.shared.u32 [tile+%u], %%v1;\n", (3 * 16 + 8) * g->block_threads);
    barrier(g);
}

void defects_kernel(uint64_t seed, uint32_t percent, char *text, struct defects_shape *shape)
{
    static struct gen g;
    g = (struct gen){.random = seed, .text = text, .percent = percent};
    choose_shape(&g, shape);
    g.theme = pick(&g, 3);
    g.exits = chance(&g, 20);
    prologue(&g);
    statements(&g, 0, 2 + pick(&g, 10));
    put(&g, "mad.wide.u32 %%a, %%i0, %d, %%out;\n", DEFECTS_OUT);
    for (int i = 0; i < 6; i++)
        put(&g, "st.global.u32 [%%a+%d], %%v%d;\n", 4 * i, i);
    put(&g, "END: ret;\n}\n");
    text[g.used] = 0;
}
