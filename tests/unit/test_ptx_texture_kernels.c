/* Textures in whole kernels: what nvcc makes of tests/ptx/texture.cu; textures of linear memory in checked and shadow
 * mode; properties, variables, handles of nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

static struct ptx_texture textures[8]; /* handle: 0x100 + index, or what a test says */
static uint64_t variable_handle;

static bool give(void *context, uint64_t handle, struct ptx_texture *out)
{
    (void)context;
    size_t i = handle == variable_handle ? 0 : handle - 0x100;
    if (i >= 8 || !textures[i].level_count)
        return false;
    *out = textures[i];
    return true;
}

static struct ptx_texture array_of(void *host, uint32_t width, uint32_t height, uint8_t channels, uint8_t bits,
                                   enum ptx_texel_kind kind)
{
    struct ptx_texture t = {.layers = 1, .channels = channels, .bits = bits, .kind = kind, .level_count = 1};
    uint64_t row = (uint64_t)width * channels * bits / 8;
    t.levels[0] = (struct ptx_texture_level){
        .host = host, .row_bytes = row, .slice_bytes = row * height, .width = width, .height = height, .depth = 1};
    return t;
}

static void start(struct kit *k, const char *file)
{
    memset(textures, 0, sizeof textures);
    variable_handle = 0;
    if (strstr(file, "\n"))
        kit_load(k, file);
    else
        kit_load_file(k, file);
    k->memory.texture = give;
}

/* ---- nvcc's kernels ---- */

static void test_enlarge(void **state)
{
    enum { N = 4, M = 8 };
    float image[N * N], out[M * M] = {0};
    struct kit k;
    start(&k, "texture.ptx");
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            image[y * N + x] = (float)(x * 8 + y * 80); /* linear: so is the result, away from the edges */
    textures[0] = array_of(image, N, N, 1, 32, PTX_TEXEL_FLOAT);
    textures[0].linear = textures[0].normalised = true;
    textures[0].addressing[0] = textures[0].addressing[1] = PTX_ADDRESS_CLAMP;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, out, sizeof out);
    k.params[2] = M | (uint64_t)M << 32;
    k.launch.grid[1] = M;
    assert_true(ptx_module_find_kernel(k.module, "enlarge")->uses_textures);
    assert_int_equal(kit_run(&k, "enlarge", 1, M), STATUS_OK);
    for (int y = 1; y < M - 1; y++)
        for (int x = 1; x < M - 1; x++)
            assert_true(out[y * M + x] == (float)(4 * x - 2 + 40 * y - 20));
    assert_true(out[0] == 0 && out[M - 1] == 24 && out[M * M - 1] == 264);
    kit_free(&k);
}

static void test_all_fetches(void **state)
{
    float texel[4] = {1, 2, 3, 4}, out[24][4];
    struct kit k;
    start(&k, "texture.ptx");
    memset(out, 0, sizeof out);
    textures[0] = array_of(texel, 1, 1, 4, 32, PTX_TEXEL_FLOAT); /* the same everywhere */
    textures[0].addressing[0] = textures[0].addressing[1] = textures[0].addressing[2] = PTX_ADDRESS_CLAMP;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, out, sizeof out);
    const float at[4] = {0.25f, 0.5f, 0.75f, 0};
    memcpy(&k.params[2], at, sizeof at);
    assert_int_equal(kit_run(&k, "all_fetches", 1, 1), STATUS_OK);
    for (int i = 0; i < 23; i++)
        for (int c = 0; c < 4; c++)
            assert_true(out[i][c] == (i == 20 ? 1.0f : i == 21 ? 4.0f : texel[c]));
    assert_true(out[23][0] == 1);
    kit_free(&k);
}

static void test_surface_kernels(void **state)
{
    enum { W = 5, H = 3 };
    float from[H][W][4], to[W][H][4];
    struct kit k;
    start(&k, "texture.ptx");
    for (int i = 0; i < H * W * 4; i++)
        (&from[0][0][0])[i] = (float)i;
    memset(to, 0, sizeof to);
    textures[0] = array_of(from, W, H, 4, 32, PTX_TEXEL_FLOAT);
    textures[1] = array_of(to, H, W, 4, 32, PTX_TEXEL_FLOAT);
    textures[0].surface = textures[1].surface = true;
    k.params[0] = 0x100;
    k.params[1] = 0x101;
    k.params[2] = W | (uint64_t)H << 32;
    k.launch.grid[1] = H;
    assert_int_equal(kit_run(&k, "transpose", 1, 8), STATUS_OK);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            assert_memory_equal(from[y][x], to[x][y], 16);
    k.launch.grid[1] = 1;
    for (uint32_t mode = 0; mode < 3; mode++) { /* threads at -2 ... 5 of a row of four */
        uint16_t row[6] = {1, 2, 3, 4, 77, 88}, *inside = row;
        textures[0] = array_of(inside, 4, 1, 1, 16, PTX_TEXEL_UNSIGNED);
        textures[0].surface = true;
        k.params[1] = mode;
        k.launch.checked = true;
        assert_int_equal(kit_run(&k, "beyond", 1, 8), STATUS_OK);
        const uint16_t want[6] = {100, 101, 102, mode == 1 ? 105 : 103, 77, 88};
        assert_memory_equal(row, want, sizeof want);
        assert_int_equal(k.result.fault_count, mode == 2);
        if (mode == 2) {
            struct ptx_source where;
            const struct ptx_fault *f = &k.result.faults[0];
            assert_int_equal(f->count, 4);
            assert_int_equal(f->access.thread[0], 0);
            assert_int_equal(f->offset, -4);
            assert_int_equal(ptx_module_source(k.module, f->access.ptx_line, &where, 1), 1);
            assert_true(where.line > 0);
            k.launch.checked = false;
            assert_int_equal(kit_run(&k, "beyond", 1, 8), STATUS_FAULT);
        }
    }
    kit_free(&k);
}

static void test_surface_geometries(void **state)
{
    int32_t one[4] = {0}, layered2[3 * 3 * 2 * 2] = {0};
    int64_t two[3 * 3] = {0};
    uint8_t three[3 * 3 * 3] = {0};
    int16_t layered1[3 * 3 * 2] = {0};
    struct kit k;
    start(&k, "texture.ptx");
    textures[0] = array_of(one, 4, 1, 1, 32, PTX_TEXEL_SIGNED);
    textures[1] = array_of(two, 3, 3, 2, 32, PTX_TEXEL_SIGNED);
    textures[2] = array_of(three, 3, 3, 1, 8, PTX_TEXEL_UNSIGNED);
    textures[2].levels[0].depth = 3;
    textures[3] = array_of(layered1, 3, 1, 2, 16, PTX_TEXEL_SIGNED);
    textures[3].layers = 3;
    textures[4] = array_of(layered2, 3, 3, 2, 32, PTX_TEXEL_SIGNED);
    textures[4].layers = 2;
    for (int i = 0; i < 5; i++) {
        textures[i].surface = true;
        k.params[i] = 0x100 + (uint64_t)i;
    }
    const uint32_t at[3] = {2, 1, 1};
    memcpy(&k.params[5], at, sizeof at);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kit_run(&k, "all_surfaces", 1, 1), STATUS_OK);
    assert_int_equal(one[2], 2);
    assert_int_equal(two[3 + 2], 2);
    assert_int_equal(three[9 + 3 + 2], 2);
    assert_int_equal(layered1[(3 + 2) * 2], 2);
    assert_int_equal(layered1[(3 + 2) * 2 + 1], 2);
    assert_int_equal(layered2[(9 + 3 + 2) * 2 + 1], 2);
    kit_free(&k);
}

/* ---- linear memory ---- */

static struct ptx_texture linear_texture(uint64_t address, uint32_t width, uint8_t channels, uint8_t bits,
                                         enum ptx_texel_kind kind)
{
    struct ptx_texture t = array_of(NULL, width, 1, channels, bits, kind);
    t.levels[0].address = address;
    t.linear_memory = true;
    return t;
}

static void test_linear_memory(void **state)
{
    enum { N = 9 };
    uint8_t table[5][4], out[N][4];
    int32_t index[N] = {4, 0, 3, -1, 5, 1, 2, INT32_MIN, INT32_MAX};
    struct kit k;
    start(&k, "texture.ptx");
    for (int i = 0; i < 20; i++)
        table[i / 4][i % 4] = (uint8_t)(i * 11 + 1);
    uint8_t read[3] = {0};
    textures[0] = linear_texture(kit_buffer(&k, -1, table, sizeof table), 5, 4, 8, PTX_TEXEL_UNSIGNED);
    k.ranges[0].read = read;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, index, sizeof index);
    kit_buffer(&k, 2, out, sizeof out);
    k.params[3] = N;
    for (int mode = 0; mode < 3; mode++) {
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        memset(out, 0xee, sizeof out);
        assert_int_equal(kit_run(&k, "gather_bytes", 1, 16), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        static const uint8_t zero[4];
        for (int i = 0; i < N; i++)
            assert_memory_equal(out[i], index[i] >= 0 && index[i] < 5 ? table[index[i]] : zero, 4);
    }
    assert_true(read[0] == 0xff && read[1] == 0xff && read[2] == 0x0f);
    k.launch.shadow = false;
    /* A texture larger than its allocation: what the texture unit thinks is inside is not there. */
    textures[0].levels[0].width = 6;
    assert_int_equal(kit_run(&k, "gather_bytes", 1, 16), STATUS_FAULT);
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "gather_bytes", 1, 16), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(k.result.faults[0].space, PTX_SPACE_GLOBAL);
    assert_int_equal(k.result.faults[0].offset, 20);
    assert_int_equal(k.result.faults[0].access.thread[0], 4);
    kit_free(&k);
}

static void test_uninitialised(void **state)
{
    float table[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out = 0;
    uint8_t valid[4] = {0xff, 0xff, 0xff, 0xff};
    struct kit k;
    start(&k, "texture.ptx");
    textures[0] = linear_texture(kit_buffer(&k, -1, table, sizeof table), 8, 1, 32, PTX_TEXEL_FLOAT);
    k.ranges[0].valid = valid;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, &out, sizeof out);
    k.params[2] = 8;
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "sum_fetched", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 0);
    assert_true(out == 36);
    valid[2] = 0xbf; /* a byte of texel 5 */
    assert_int_equal(kit_run(&k, "sum_fetched", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_UNINITIALISED);
    assert_int_equal(k.result.faults[0].offset, 20);
    k.params[2] = 5; /* it is not fetched */
    assert_int_equal(kit_run(&k, "sum_fetched", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 0);
    kit_free(&k);
    /* Filtered, the value is used at once. */
    start(&k, "texture.ptx");
    float small[8 * 8] = {0};
    valid[2] = 0xff;
    textures[0] = linear_texture(kit_buffer(&k, -1, table, sizeof table), 4, 1, 32, PTX_TEXEL_FLOAT);
    textures[0].levels[0].height = 2;
    textures[0].levels[0].row_bytes = 16;
    textures[0].linear = textures[0].normalised = true;
    k.ranges[0].valid = valid;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, small, sizeof small);
    k.params[2] = 8 | UINT64_C(8) << 32;
    k.launch.grid[1] = 8;
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "enlarge", 1, 8), STATUS_OK);
    assert_int_equal(k.result.fault_count, 0);
    valid[2] = 0xbf;
    assert_int_equal(kit_run(&k, "enlarge", 1, 8), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_UNINITIALISED);
    kit_free(&k);
}

/* Shadow entries of what an earlier launch stored come back through a point fetch. */
static void test_shadows(void **state)
{
    float table[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out = 0;
    struct ptx_shadow_value entries[16] = {{0}}, result[2] = {{0}};
    struct kit k;
    start(&k, "texture.ptx");
    textures[0] = linear_texture(kit_buffer(&k, -1, table, sizeof table), 8, 1, 32, PTX_TEXEL_FLOAT);
    k.ranges[0].shadow = entries;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, &out, sizeof out);
    k.ranges[1].shadow = result;
    k.params[2] = 8;
    k.launch.shadow = true;
    assert_int_equal(kit_run(&k, "sum_fetched", 1, 1), STATUS_OK);
    assert_true(out == 36 && result[0].wide == 36 && result[0].kind == PTX_SHADOW_F32);
    entries[2 * 3] = (struct ptx_shadow_value){.wide = 4.0000001, .depth = 70, .kind = PTX_SHADOW_F32};
    assert_int_equal(kit_run(&k, "sum_fetched", 1, 1), STATUS_OK);
    assert_true(out == 36 && fabs(result[0].wide - 36.0000001) < 1e-12 && result[0].depth > 70);
    kit_free(&k);
    /* A half is a float once it is fetched. */
    uint16_t halves[8] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
    struct ptx_shadow_value half_entries[8] = {{0}};
    start(&k, "texture.ptx");
    textures[0] = linear_texture(kit_buffer(&k, -1, halves, sizeof halves), 8, 1, 16, PTX_TEXEL_FLOAT);
    k.ranges[0].shadow = half_entries;
    half_entries[3] = (struct ptx_shadow_value){.wide = 4.001, .depth = 70, .kind = PTX_SHADOW_F16};
    k.params[0] = 0x100;
    kit_buffer(&k, 1, &out, sizeof out);
    k.ranges[1].shadow = result;
    k.params[2] = 8;
    k.launch.shadow = true;
    assert_int_equal(kit_run(&k, "sum_fetched", 1, 1), STATUS_OK);
    assert_true(out == 36 && fabs(result[0].wide - 36.001) < 1e-12 && result[0].depth > 70);
    kit_free(&k);
}

/* What coordinates and filtered texels are made of marks the result. */
static void test_shadow_flags(void **state)
{
    static const char text[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                               ".entry k(.param .u64 t, .param .u64 out, .param .f32 a, .param .f32 b) {\n"
                               ".reg .b64 %x<2>; .reg .f32 %f<9>;\nld.param.u64 %x0, [t]; ld.param.u64 %x1, [out];\n"
                               "ld.param.f32 %f0, [a]; ld.param.f32 %f1, [b]; add.f32 %f2, %f0, %f1;\n"
                               "tex.1d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%x0, {%f2}]; st.global.f32 [%x1], %f4; ret;\n}\n";
    float table[4] = {1, 2, 3, 4}, out;
    struct ptx_shadow_value entries[8], result[2];
    struct kit k;
    start(&k, text);
    textures[0] = linear_texture(kit_buffer(&k, -1, table, sizeof table), 4, 1, 32, PTX_TEXEL_FLOAT);
    textures[0].addressing[0] = PTX_ADDRESS_CLAMP;
    k.ranges[0].shadow = entries;
    k.params[0] = 0x100;
    kit_buffer(&k, 1, &out, sizeof out);
    k.ranges[1].shadow = result;
    k.launch.shadow = true;
    for (int inexact = 0; inexact < 3; inexact++) /* the coordinate; a texel that is filtered */
        for (int linear = 0; linear < 2; linear++) {
            const float at[2] = {1.0f, inexact == 1 ? 0.1f : 0.75f}; /* 1.1 is rounded, 1.75 is not */
            textures[0].linear = linear;
            memcpy(&k.params[2], at, sizeof at);
            memset(entries, 0, sizeof entries);
            memset(result, 0, sizeof result);
            if (inexact == 2)
                entries[2] = (struct ptx_shadow_value){.wide = 2, .kind = PTX_SHADOW_F32, .flags = PTX_SHADOW_INEXACT};
            assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
            assert_int_equal(result[0].flags & PTX_SHADOW_LOST,
                             inexact == 1 || (inexact == 2 && linear) ? PTX_SHADOW_LOST : 0);
            assert_true(out == (linear ? (inexact == 1 ? 1.6015625f : 2.25f) : 2.0f));
        }
    kit_free(&k);
}

/* ---- properties, variables, handles ---- */

#define HEAD                                                                                                           \
    ".version 9.0\n.target sm_90\n.address_size 64\n.global .texref t;\n.global .surfref s;\n"                         \
    ".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b, .param .texref p) {\n"                           \
    ".reg .b64 %x<5>; .reg .b32 %d; .reg .f32 %f<4>; .reg .pred %p<3>;\n"                                              \
    "ld.param.u64 %x0, [out]; ld.param.u64 %x1, [a]; ld.param.u64 %x2, [b];\n"
#define TAIL "\nst.global.b32 [%x0], %d;\nret;\n}\n"

static uint32_t run_one(struct kit *k, const char *instruction, enum status want)
{
    static uint32_t out;
    char text[2000];
    struct ptx_texture kept[8];
    memcpy(kept, textures, sizeof kept);
    snprintf(text, sizeof text, "%s%s%s", HEAD, instruction, TAIL);
    start(k, text);
    memcpy(textures, kept, sizeof kept);
    out = 0xdead;
    kit_variables(k);
    kit_buffer(k, 0, &out, sizeof out);
    k->params[1] = 0x100;
    k->params[2] = 0x101;
    k->params[3] = 0x100;
    variable_handle = k->variables[0];
    assert_int_equal(kit_run(k, "k", 1, 1), want);
    return out;
}

static void test_properties(void **state)
{
    static const struct {
        const char *instruction;
        uint32_t want;
    } cases[] = {
        {"txq.width.b32 %d, [%x1];", 40},
        {"txq.height.b32 %d, [%x1];", 30},
        {"txq.depth.b32 %d, [%x1];", 20},
        {"txq.level.width.b32 %d, [%x1], 1;", 20},
        {"txq.level.depth.b32 %d, [%x1], 7;", 10},
        {"txq.channel_data_type.b32 %d, [%x1];", 0x10d2},
        {"txq.channel_order.b32 %d, [%x1];", 0x10b5},
        {"txq.normalized_coords.b32 %d, [%x1];", 1},
        {"txq.array_size.b32 %d, [%x1];", 1},
        {"txq.num_mipmap_levels.b32 %d, [%x1];", 2},
        {"txq.num_samples.b32 %d, [%x1];", 1},
        {"txq.filter_mode.b32 %d, [%x1];", 1},
        {"txq.addr_mode_0.b32 %d, [%x1];", 1},
        {"txq.addr_mode_1.b32 %d, [%x1];", 0},
        {"txq.addr_mode_2.b32 %d, [%x1];", 4},
        {"txq.force_unnormalized_coords.b32 %d, [%x1];", 0},
        {"suq.width.b32 %d, [%x2];", 7},
        {"suq.height.b32 %d, [%x2];", 1},
        {"suq.array_size.b32 %d, [%x2];", 3},
        {"suq.channel_data_type.b32 %d, [%x2];", 0x10dd},
        {"suq.channel_order.b32 %d, [%x2];", 0x10b2},
        {"suq.memory_layout.b32 %d, [%x2];", 0},
        {"istypep.texref %p0, %x1; selp.b32 %d, 1, 0, %p0;", 1},
        {"istypep.surfref %p0, %x1; selp.b32 %d, 1, 0, %p0;", 0},
        {"istypep.surfref %p0, %x2; selp.b32 %d, 1, 0, %p0;", 1},
        {"istypep.texref %p0, %x0; selp.b32 %d, 1, 0, %p0;", 0},
        {"txq.width.b32 %d, [t];", 40},
        {"txq.width.b32 %d, [p];", 40},
        {"mov.u64 %x3, t; txq.width.b32 %d, [%x3];", 40},
        {"mov.f32 %f0, 0f3f000000; tex.1d.v4.u32.f32 {%d,_,_,_}, [t, %f0];", 0x3f000000},
    };
    static uint8_t texels[40 * 4];
    memset(textures, 0, sizeof textures);
    memset(texels, 128, sizeof texels);
    textures[0] = array_of(texels, 40, 30, 4, 8, PTX_TEXEL_UNSIGNED);
    textures[0].levels[0].depth = 20;
    textures[0].levels[1] = textures[0].levels[0];
    textures[0].levels[1].width = 20;
    textures[0].levels[1].depth = 10;
    textures[0].level_count = 2;
    textures[0].normalised = textures[0].linear = textures[0].read_normalised = true;
    textures[0].addressing[0] = PTX_ADDRESS_MIRROR;
    textures[0].addressing[1] = PTX_ADDRESS_WRAP;
    textures[0].addressing[2] = PTX_ADDRESS_BORDER;
    textures[1] = array_of(texels, 7, 1, 2, 16, PTX_TEXEL_FLOAT);
    textures[1].layers = 3;
    textures[1].surface = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit k;
        uint32_t got = run_one(&k, cases[i].instruction, STATUS_OK), want = cases[i].want;
        if (want == 0x3f000000) { /* 128 of 255 */
            float f = 128.0f / 255.0f;
            memcpy(&want, &f, sizeof f);
        }
        if (got != want)
            fail_msg("%s: %u, expected %u", cases[i].instruction, got, want);
        assert_int_equal(ptx_module_variable(k.module, 0)->opaque, PTX_TEXREF);
        assert_int_equal(ptx_module_variable(k.module, 1)->opaque, PTX_SURFREF);
        kit_free(&k);
    }
}

static void test_handles_of_nothing(void **state)
{
    static const char *const bad[] = {
        "tex.1d.v4.u32.s32 {%d,_,_,_}, [%x0, 0];", /* a pointer */
        "tex.1d.v4.u32.s32 {%d,_,_,_}, [%x2, 0];", /* a surface */
        "suld.b.1d.b32.zero %d, [%x1, 0];",        /* a texture */
        "txq.width.b32 %d, [%x2];",
        "suq.width.b32 %d, [s];", /* not bound */
        "mov.b32 %d, 1; sust.b.1d.b32.zero [%x1, 0], %d;",
    };
    static uint32_t texels[4] = {7, 7, 7, 7};
    memset(textures, 0, sizeof textures);
    textures[0] = array_of(texels, 4, 1, 1, 32, PTX_TEXEL_UNSIGNED);
    textures[1] = textures[0];
    textures[1].surface = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kit k;
        (void)run_one(&k, bad[i], STATUS_FAULT);
        assert_int_equal(k.result.faults[0].kind, PTX_FAULT_TEXTURE);
        k.launch.checked = true;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        assert_int_equal(k.result.fault_count, 1);
        assert_int_equal(k.result.faults[0].kind, PTX_FAULT_TEXTURE);
        k.launch.checked = false;
        k.memory.texture = NULL; /* nobody knows any */
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_FAULT);
        kit_free(&k);
    }
    struct kit k;
    assert_int_equal(run_one(&k, "suld.b.1d.b32.zero %d, [%x2, 4];", STATUS_OK), 7);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enlarge),         cmocka_unit_test(test_all_fetches),
        cmocka_unit_test(test_surface_kernels), cmocka_unit_test(test_surface_geometries),
        cmocka_unit_test(test_linear_memory),   cmocka_unit_test(test_uninitialised),
        cmocka_unit_test(test_shadows),         cmocka_unit_test(test_shadow_flags),
        cmocka_unit_test(test_properties),      cmocka_unit_test(test_handles_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
