/* Surfaces: every geometry, size of access and boundary mode against an oracle in plain C, on coordinates inside, on
 * edges and outside; reductions; formatted stores. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { THREADS = 128, BYTES = 4096 };
static const struct shape {
    const char *name;
    unsigned axes;
    bool layered;
    uint32_t size[3], layers;
} shapes[] = {
    {"1d", 1, false, {6, 1, 1}, 1}, {"2d", 2, false, {5, 4, 1}, 1}, {"3d", 3, false, {4, 3, 3}, 1},
    {"a1d", 1, true, {6, 1, 1}, 3}, {"a2d", 2, true, {4, 3, 1}, 4},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const char *const bounds[] = {"trap", "clamp", "zero", ""};

static uint64_t seed = 5;
static unsigned char memory[BYTES], expected[BYTES];
static struct ptx_texture surface;
static int32_t places[THREADS][4]; /* layer, x, y, z */
static uint64_t values[THREADS][4], results[THREADS][4], wanted[THREADS][4];

static bool give_surface(void *context, uint64_t handle, struct ptx_texture *out)
{
    (void)context;
    if (handle != 0x50f)
        return false;
    *out = surface;
    return true;
}

static void make_surface(const struct shape *s, unsigned channels, unsigned bits, enum ptx_texel_kind kind)
{
    uint32_t row = s->size[0] * channels * bits / 8 + 16, slice = row * s->size[1] + 16;
    surface = (struct ptx_texture){
        .surface = true, .layers = s->layers, .channels = (uint8_t)channels, .bits = (uint8_t)bits, .kind = kind};
    surface.level_count = 1;
    surface.levels[0] = (struct ptx_texture_level){.host = memory,
                                                   .row_bytes = row,
                                                   .slice_bytes = slice,
                                                   .width = s->size[0],
                                                   .height = s->size[1],
                                                   .depth = s->size[2]};
    for (size_t i = 0; i < BYTES; i++)
        memory[i] = (unsigned char)kit_random(&seed);
}

/* Thread i has its place at `place`, four values of 8 bytes at `value`, and as many results. */
static void load_kernel(struct kit *k, const char *instruction)
{
    static char text[4000];
    snprintf(
        text, sizeof text,
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 place, .param .u64 value, .param .u64 result, .param .u64 s) {\n"
        ".reg .b64 %%x<4>; .reg .b32 %%i<4>; .reg .b32 %%n; .reg .b64 %%v<4>; .reg .b32 %%w<4>; .reg .b16 %%h<4>;\n"
        "ld.param.u64 %%x0, [place]; ld.param.u64 %%x1, [value]; ld.param.u64 %%x2, [result]; ld.param.u64 %%x3, [s];\n"
        "mov.u32 %%n, %%tid.x; mad.wide.u32 %%x0, %%n, 16, %%x0; mad.wide.u32 %%x1, %%n, 32, %%x1;\n"
        "mad.wide.u32 %%x2, %%n, 32, %%x2; ld.global.v4.b32 {%%i0,%%i1,%%i2,%%i3}, [%%x0];\n"
        "ld.global.v2.b64 {%%v0,%%v1}, [%%x1]; ld.global.v2.b64 {%%v2,%%v3}, [%%x1+16];\n"
        "cvt.u32.u64 %%w0,%%v0; cvt.u32.u64 %%w1,%%v1; cvt.u32.u64 %%w2,%%v2; cvt.u32.u64 %%w3,%%v3;\n"
        "cvt.u16.u64 %%h0,%%v0; cvt.u16.u64 %%h1,%%v1; cvt.u16.u64 %%h2,%%v2; cvt.u16.u64 %%h3,%%v3;\n"
        "%s\nst.global.v2.b64 [%%x2], {%%v0,%%v1}; st.global.v2.b64 [%%x2+16], {%%v2,%%v3};\nret;\n}\n",
        instruction);
    kit_load(k, text);
    k->memory.texture = give_surface;
    kit_buffer(k, 0, places, sizeof places);
    kit_buffer(k, 1, values, sizeof values);
    kit_buffer(k, 2, results, sizeof results);
    k->params[3] = 0x50f;
}

static const char *place_text(const struct shape *s)
{
    return s->layered     ? (s->axes == 1 ? "{%i0,%i1}" : "{%i0,%i1,%i2,%i2}")
           : s->axes == 1 ? "{%i1}"
           : s->axes == 2 ? "{%i1,%i2}"
                          : "{%i1,%i2,%i3,%i3}";
}

/* Registers of `bytes` bytes that hold values 0 ... count - 1. */
static const char *register_text(unsigned bytes, unsigned count)
{
    static char text[32];
    char r = bytes == 8 ? 'v' : bytes == 4 ? 'w' : 'h';
    snprintf(text, sizeof text,
             count == 1   ? "{%%%c0}"
             : count == 2 ? "{%%%c0,%%%c1}"
                          : "{%%%c0,%%%c1,%%%c2,%%%c3}",
             r, r, r, r);
    return text;
}

static void random_places(const struct shape *s, unsigned unit, bool outside)
{
    uint32_t row = s->size[0] * surface.channels * surface.bits / 8u / unit;
    for (int i = 0; i < THREADS; i++) {
        uint64_t r = kit_random(&seed);
        const uint32_t size[4] = {s->layers, row, s->size[1], s->size[2]};
        for (unsigned a = 0; a < 4; a++, r >>= 16)
            places[i][a] = outside ? (int)((r & 0xffff) % (size[a] + 3)) - 1 : (int)((r & 0xffff) % size[a]);
        if (outside && i < 8)
            places[i][i / 2] = i % 2 ? INT32_MAX / 16 : INT32_MIN / 16;
        places[i][1] *= (int)unit;
        for (unsigned v = 0; v < 4; v++)
            values[i][v] = kit_random(&seed);
    }
}

/* Where an access of `bytes` bytes goes; -1: nowhere. The x coordinate is in bytes. */
static long place_of(const struct shape *s, const int32_t p[4], long x, long bytes, bool clamp)
{
    const struct ptx_texture_level *l = &surface.levels[0];
    long at[3] = {x, s->axes > 1 ? p[2] : 0, s->layered ? (long)(uint32_t)p[0] : s->axes > 2 ? p[3] : 0};
    const long last[3] = {((long)s->size[0] * surface.channels * surface.bits / 8 / bytes - 1) * bytes,
                          (long)s->size[1] - 1, s->layered ? (long)s->layers - 1 : (long)s->size[2] - 1};
    for (int a = 0; a < 3; a++) {
        if (at[a] >= 0 && at[a] <= last[a])
            continue;
        if (!clamp)
            return -1;
        at[a] = at[a] < 0 ? 0 : last[a];
    }
    return at[2] * (long)l->slice_bytes + at[1] * (long)l->row_bytes + at[0];
}

static void test_loads_and_stores(void **state)
{
    for (unsigned g = 0; g < SHAPES; g++)
        for (unsigned bytes = 1; bytes <= 8; bytes *= 2)
            for (unsigned count = 1; count * bytes <= 16 && count <= 4; count *= 2)
                for (unsigned mode = 0; mode < 4; mode++)
                    for (int store = 0; store < 2; store++) {
                        char instruction[300];
                        const char *vector = count == 1   ? ""
                                             : count == 2 ? ".v2"
                                                          : ".v4",
                                   *dot = bounds[mode][0] ? "." : "";
                        const char *zeros = "mov.b64 %v0, 0; mov.b64 %v1, 0; mov.b64 %v2, 0; mov.b64 %v3, 0;";
                        const char *widen = bytes == 8 ? ""
                                            : bytes == 4
                                                ? "cvt.u64.u32 %v0,%w0; cvt.u64.u32 %v1,%w1; cvt.u64.u32 %v2,%w2; "
                                                  "cvt.u64.u32 %v3,%w3;"
                                                : "cvt.u64.u16 %v0,%h0; cvt.u64.u16 %v1,%h1; cvt.u64.u16 %v2,%h2; "
                                                  "cvt.u64.u16 %v3,%h3;";
                        if (store)
                            snprintf(instruction, sizeof instruction, "sust.b.%s%s%s.b%u%s%s [%%x3, %s], %s;",
                                     shapes[g].name, bytes == 4 ? ".wb" : "", vector, bytes * 8, dot, bounds[mode],
                                     place_text(&shapes[g]), register_text(bytes, count));
                        else
                            snprintf(instruction, sizeof instruction, "%s suld.b.%s%s%s.b%u%s%s %s, [%%x3, %s]; %s",
                                     bytes == 8 ? zeros : "", shapes[g].name, bytes == 4 ? ".ca" : "", vector,
                                     bytes * 8, dot, bounds[mode], register_text(bytes, count), place_text(&shapes[g]),
                                     widen);
                        struct kit k;
                        load_kernel(&k, instruction);
                        make_surface(&shapes[g], 2, 32, PTX_TEXEL_UNSIGNED);
                        random_places(&shapes[g], bytes * count, mode == 1 || mode == 2);
                        memcpy(expected, memory, BYTES);
                        memcpy(wanted, values, sizeof wanted);
                        for (int i = 0; i < THREADS; i++) {
                            long at = place_of(&shapes[g], places[i], places[i][1], bytes * count, mode == 1);
                            for (unsigned e = 0; e < count; e++) {
                                if (store && at >= 0)
                                    memcpy(expected + at + e * bytes, &values[i][e], bytes);
                                if (!store)
                                    wanted[i][e] = 0;
                                if (!store && at >= 0)
                                    memcpy(&wanted[i][e], memory + at + e * bytes, bytes);
                            }
                            for (unsigned e = count; !store && e < 4; e++)
                                wanted[i][e] &= bytes == 8 ? 0 : bytes == 4 ? UINT32_MAX : UINT16_MAX;
                        }
                        for (int run = 0; run < 3; run++) { /* one lane after the other, so that the last store stays */
                            k.launch.checked = run == 1;
                            k.launch.shadow = run == 2;
                            assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
                            assert_int_equal(k.result.fault_count, 0);
                            assert_memory_equal(memory, expected, BYTES);
                            if (!store)
                                assert_memory_equal(results, wanted, sizeof wanted);
                        }
                        kit_free(&k);
                    }
}

/* Outside with .trap: the launch ends; checked, each is a fault, loads give 0 and stores are dropped. */
static void test_trap(void **state)
{
    for (unsigned g = 0; g < SHAPES; g++)
        for (int store = 0; store < 2; store++) {
            char instruction[300];
            struct kit k;
            snprintf(instruction, sizeof instruction,
                     store ? "\nsust.b.%s.b32.trap [%%x3, %s], {%%w0};"
                           : "\nsuld.b.%s.b32 {%%w0}, [%%x3, %s]; cvt.u64.u32 %%v0, %%w0;",
                     shapes[g].name, place_text(&shapes[g]));
            load_kernel(&k, instruction);
            make_surface(&shapes[g], 1, 32, PTX_TEXEL_SIGNED);
            random_places(&shapes[g], 4, true);
            memcpy(expected, memory, BYTES);
            uint64_t faults = 0;
            int first = -1;
            for (int i = 0; i < THREADS; i++) {
                long at = place_of(&shapes[g], places[i], places[i][1], 4, false);
                faults += at < 0;
                first = first < 0 && at < 0 ? i : first;
                wanted[i][0] = 0;
                if (store && at >= 0)
                    memcpy(expected + at, &values[i][0], 4);
                if (!store && at >= 0)
                    memcpy(&wanted[i][0], memory + at, 4);
            }
            assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_FAULT);
            assert_int_equal(k.result.faults[0].kind, PTX_FAULT_OUT_OF_BOUNDS);
            k.launch.checked = true;
            assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
            assert_int_equal(k.result.fault_count, 1);
            const struct ptx_fault *f = &k.result.faults[0];
            assert_int_equal(f->kind, PTX_FAULT_OUT_OF_BOUNDS);
            assert_int_equal(f->space, PTX_SPACE_SURFACE);
            assert_int_equal(f->address, 0x50f);
            assert_int_equal(f->count, faults);
            assert_int_equal(f->access.write, store);
            assert_int_equal(f->access.thread[0], first);
            assert_int_equal(f->access.ptx_line, 13);
            assert_memory_equal(memory, expected, BYTES);
            for (int i = 0; !store && i < THREADS; i++)
                assert_int_equal(results[i][0], wanted[i][0]);
            kit_free(&k);
        }
    /* Misaligned: a fault in every mode; aligned ones beside it are none. */
    struct kit k;
    load_kernel(&k, "sust.b.1d.b32.zero [%x3, {%i1}], {%w0};");
    make_surface(&shapes[0], 1, 32, PTX_TEXEL_SIGNED);
    random_places(&shapes[0], 4, false);
    places[17][1] = 6;
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_MISALIGNED);
    assert_int_equal(k.result.faults[0].count, 1);
    assert_int_equal(k.result.faults[0].access.thread[0], 17);
    assert_int_equal(k.result.faults[0].offset, 6);
    kit_free(&k);
}

/* ---- reductions ---- */

static uint64_t reduced(const char *op, const char *type, uint64_t a, uint64_t b)
{
    bool wide = strstr(type, "64") != NULL, sign = type[0] == 's';
    int64_t x = wide ? (int64_t)a : (int32_t)a, y = wide ? (int64_t)b : (int32_t)b;
    uint64_t u = wide ? a : (uint32_t)a, v = wide ? b : (uint32_t)b;
    if (strcmp(op, "add") == 0)
        return u + v;
    if (strcmp(op, "and") == 0)
        return u & v;
    if (strcmp(op, "or") == 0)
        return u | v;
    bool less = sign ? x < y : u < v;
    return less == (strcmp(op, "min") == 0) ? u : v;
}

static void test_reductions(void **state)
{
    static const struct {
        const char *form, *op, *type, *as;
        enum ptx_texel_kind kind;
    } cases[] = {
        {"b", "add", "u32", "u32", PTX_TEXEL_UNSIGNED}, {"b", "min", "s32", "s32", PTX_TEXEL_UNSIGNED},
        {"b", "max", "u32", "u32", PTX_TEXEL_SIGNED},   {"b", "and", "b32", "u32", PTX_TEXEL_UNSIGNED},
        {"b", "or", "b32", "u32", PTX_TEXEL_UNSIGNED},  {"b", "add", "u64", "u64", PTX_TEXEL_UNSIGNED},
        {"b", "max", "s64", "s64", PTX_TEXEL_UNSIGNED}, {"b", "min", "u64", "u64", PTX_TEXEL_UNSIGNED},
        {"p", "min", "b32", "s32", PTX_TEXEL_SIGNED},   {"p", "min", "b32", "u32", PTX_TEXEL_UNSIGNED},
        {"p", "add", "b32", "u32", PTX_TEXEL_SIGNED},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (unsigned g = 0; g < 3; g++) {
            bool wide = strstr(cases[n].type, "64") != NULL, formatted = cases[n].form[0] == 'p';
            unsigned bytes = wide ? 8 : 4;
            char instruction[300];
            struct kit k;
            snprintf(instruction, sizeof instruction, "sured.%s.%s.%s.%s.zero [%%x3, %s], %s;", cases[n].form,
                     cases[n].op, shapes[g].name, cases[n].type, place_text(&shapes[g]), wide ? "%v0" : "%w0");
            load_kernel(&k, instruction);
            make_surface(&shapes[g], wide ? 2 : 1, 32, cases[n].kind);
            random_places(&shapes[g], formatted ? 1 : bytes, !formatted);
            memcpy(expected, memory, BYTES);
            for (int i = 0; i < THREADS; i++) {
                if (formatted)
                    places[i][1] %= (int)shapes[g].size[0];
                long at = place_of(&shapes[g], places[i], places[i][1] * (formatted ? 4L : 1L), bytes, false);
                uint64_t old = 0;
                if (at < 0)
                    continue;
                memcpy(&old, expected + at, bytes);
                old = reduced(cases[n].op, cases[n].as, old, values[i][0]);
                memcpy(expected + at, &old, bytes);
            }
            assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
            assert_memory_equal(memory, expected, BYTES);
            kit_free(&k);
        }
}

/* ---- sust.p ---- */

static void test_formatted_stores(void **state)
{
    static const struct {
        unsigned channels, bits, given;
        enum ptx_texel_kind kind;
        uint32_t value[4], want[4];
    } cases[] = {
        {4, 8, 4, PTX_TEXEL_UNSIGNED, {1, 255, 256, UINT32_MAX}, {1, 255, 255, 255}},
        {4, 8, 4, PTX_TEXEL_SIGNED, {(uint32_t)-128, (uint32_t)-129, 127, 128}, {0x80, 0x80, 0x7f, 0x7f}},
        {2, 16, 4, PTX_TEXEL_UNSIGNED, {65535, 65536, 7, 7}, {65535, 65535, 0, 0}},
        {2, 16, 2, PTX_TEXEL_FLOAT, {0x3f800000, 0xc0000000, 0, 0}, {0x3c00, 0xc000, 0, 0}},
        {4, 32, 2, PTX_TEXEL_FLOAT, {0x3f800000, 0xc0000000, 5, 5}, {0x3f800000, 0xc0000000, 0, 0}},
        {1, 32, 1, PTX_TEXEL_SIGNED, {0x87654321, 0, 0, 0}, {0x87654321, 0, 0, 0}},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        char instruction[200];
        struct kit k;
        snprintf(instruction, sizeof instruction, "sust.p.2d%s.b32.trap [%%x3, {%%i1,%%i2}], %s;",
                 cases[n].given == 1   ? ""
                 : cases[n].given == 2 ? ".v2"
                                       : ".v4",
                 register_text(4, cases[n].given));
        load_kernel(&k, instruction);
        make_surface(&shapes[1], cases[n].channels, cases[n].bits, cases[n].kind);
        memcpy(expected, memory, BYTES);
        for (int i = 0; i < THREADS; i++) {
            places[i][1] = 4;
            places[i][2] = 2;
            for (int c = 0; c < 4; c++)
                values[i][c] = cases[n].value[c];
        }
        unsigned size = cases[n].channels * cases[n].bits / 8;
        for (unsigned c = 0; c < cases[n].channels; c++)
            memcpy(expected + 2 * surface.levels[0].row_bytes + 4 * size + c * cases[n].bits / 8, &cases[n].want[c],
                   cases[n].bits / 8);
        assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
        assert_memory_equal(memory, expected, BYTES);
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores),
        cmocka_unit_test(test_trap),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_formatted_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
