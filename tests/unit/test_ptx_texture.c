/* Texture fetches against an oracle in plain C: every geometry, addressing mode, filter, format, with coordinates on
 * and beside edges, beyond them, and no numbers; levels of detail; cubes; tld4. The oracle keeps texels as doubles and
 * works axis by axis; it shares nothing with the executor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { POINTS = 160, MAX_COORDINATES = 8, LEVELS = 3 };
enum geometry { G1D, G2D, G3D, GA1D, GA2D, GCUBE, GACUBE, GEOMETRIES };
static const struct shape {
    const char *name;
    unsigned axes; /* of coordinates without the layer */
    bool layered, cube;
    uint32_t size[3], layers;
} shapes[GEOMETRIES] = {
    [G1D] = {"1d", 1, false, false, {13, 1, 1}, 1},     [G2D] = {"2d", 2, false, false, {9, 5, 1}, 1},
    [G3D] = {"3d", 3, false, false, {5, 4, 3}, 1},      [GA1D] = {"a1d", 1, true, false, {7, 1, 1}, 3},
    [GA2D] = {"a2d", 2, true, false, {6, 5, 1}, 4},     [GCUBE] = {"cube", 3, false, true, {4, 4, 1}, 6},
    [GACUBE] = {"acube", 3, true, true, {4, 4, 1}, 12},
};
static const struct format {
    enum ptx_texel_kind kind;
    uint8_t channels, bits;
    bool normalised, srgb;
} formats[] = {
    {PTX_TEXEL_FLOAT, 1, 32, false, false},    {PTX_TEXEL_FLOAT, 4, 32, false, false},
    {PTX_TEXEL_FLOAT, 2, 16, false, false},    {PTX_TEXEL_UNSIGNED, 4, 8, true, false},
    {PTX_TEXEL_UNSIGNED, 4, 8, true, true},    {PTX_TEXEL_SIGNED, 1, 8, true, false},
    {PTX_TEXEL_UNSIGNED, 2, 16, true, false},  {PTX_TEXEL_SIGNED, 1, 16, true, false},
    {PTX_TEXEL_UNSIGNED, 4, 8, false, false},  {PTX_TEXEL_SIGNED, 2, 8, false, false},
    {PTX_TEXEL_UNSIGNED, 1, 16, false, false}, {PTX_TEXEL_SIGNED, 4, 32, false, false},
    {PTX_TEXEL_UNSIGNED, 1, 32, false, false}, {PTX_TEXEL_SIGNED, 4, 16, false, false},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* ---- a texture, as bytes and as numbers ---- */

struct picture {
    struct ptx_texture texture;
    const struct shape *shape;
    const struct format *format;
    unsigned char bytes[LEVELS][8192];
    double value[LEVELS][12 * 25][4]; /* as the instruction returns them; integers too */
};

static uint64_t seed = 17;

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31;
    double m = h & 1023, x = e ? ldexp(m + 1024, e - 25) : ldexp(m, -24);
    return h >> 15 ? -x : x;
}

/* A random element in `out`, and what it is read as. */
static double random_element(const struct format *f, unsigned channel, unsigned char *out)
{
    uint64_t r = kit_random(&seed);
    if (f->kind == PTX_TEXEL_FLOAT && f->bits == 32) {
        float x = (float)((int)(r % 20001) - 10000) / 64.0f + (float)(r >> 40 & 7) * 0x1p-20f;
        memcpy(out, &x, 4);
        return (double)x;
    }
    if (f->kind == PTX_TEXEL_FLOAT) {
        uint16_t h = (uint16_t)((r & 0x83ff) | (r >> 20 & 0xf) << 10);
        memcpy(out, &h, 2);
        return half_value(h);
    }
    if (r % 5 == 0) /* the ends of the range */
        r = r & 32 ? UINT64_MAX : r & 64 ? 0 : UINT64_C(0x8080808080808080);
    memcpy(out, &r, f->bits / 8);
    double x = f->kind == PTX_TEXEL_UNSIGNED ? (double)(r & (UINT64_MAX >> (64 - f->bits)))
                                             : (double)((int64_t)(r << (64 - f->bits)) >> (64 - f->bits));
    if (!f->normalised)
        return x;
    double top = ldexp(1, f->bits - (f->kind == PTX_TEXEL_SIGNED)) - 1;
    x = (double)((float)x / (float)top);
    if (x < -1)
        x = -1;
    if (f->srgb && channel < 3)
        x = (double)(float)(x <= (double)0.04045f ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4));
    return x;
}

static uint32_t shrunk(uint32_t n, unsigned level)
{
    return n >> level ? n >> level : 1;
}

static void paint(struct picture *p, enum geometry g, const struct format *f, unsigned levels)
{
    memset(p, 0, sizeof *p);
    p->shape = &shapes[g];
    p->format = f;
    struct ptx_texture *t = &p->texture;
    *t = (struct ptx_texture){.layers = p->shape->layers,
                              .channels = f->channels,
                              .bits = f->bits,
                              .kind = f->kind,
                              .level_count = levels,
                              .read_normalised = f->normalised,
                              .srgb = f->srgb};
    uint32_t element = f->channels * f->bits / 8u;
    for (unsigned l = 0; l < levels; l++) {
        uint32_t w = shrunk(p->shape->size[0], l), h = shrunk(p->shape->size[1], l), d = shrunk(p->shape->size[2], l);
        uint32_t slices = p->shape->layers > 1 ? p->shape->layers : d, row = w * element + 16, slice = row * h + 32;
        t->levels[l] = (struct ptx_texture_level){
            .host = p->bytes[l], .row_bytes = row, .slice_bytes = slice, .width = w, .height = h, .depth = d};
        assert_true(slice * slices <= sizeof p->bytes[l] && w * h * slices <= 300);
        memset(p->bytes[l], 0xa5, sizeof p->bytes[l]);
        for (uint32_t z = 0; z < slices; z++)
            for (uint32_t y = 0; y < h; y++)
                for (uint32_t x = 0; x < w; x++)
                    for (unsigned c = 0; c < f->channels; c++)
                        p->value[l][(z * h + y) * w + x][c] =
                            random_element(f, c, p->bytes[l] + z * slice + y * row + x * element + c * f->bits / 8);
    }
}

static bool gives_floats(const struct picture *p)
{
    return p->format->kind == PTX_TEXEL_FLOAT || p->format->normalised;
}

/* ---- the oracle ---- */

static double texel(const struct picture *p, unsigned l, const long at[3], uint32_t layer, unsigned c)
{
    const struct ptx_texture_level *level = &p->texture.levels[l];
    if (c >= p->format->channels)
        return c == 3 ? 1 : 0;
    long slice = p->shape->layers > 1 ? (long)layer : at[2];
    return p->value[l][((unsigned long)slice * level->height + (unsigned long)at[1]) * level->width +
                       (unsigned long)at[0]][c];
}

/* One axis: which texels (-1: the border), with which weights. */
struct taps {
    long at[2];
    double weight[2];
};

static long inside(enum ptx_addressing mode, double i, long n)
{
    if (mode == PTX_ADDRESS_CLAMP)
        return i < 0 ? 0 : i > n - 1 ? n - 1 : (long)i;
    if (mode == PTX_ADDRESS_BORDER)
        return i < 0 || i > n - 1 ? -1 : (long)i;
    double period = mode == PTX_ADDRESS_WRAP ? n : 2 * n, r = fmod(i, period);
    if (r < 0)
        r += period;
    return r < n ? (long)r : 2 * n - 1 - (long)r;
}

static struct taps taps_of(const struct ptx_texture *t, bool cube, unsigned axis, long n, float coordinate, bool linear,
                           int offset)
{
    enum ptx_addressing mode = t->addressing[axis];
    if (cube || (!t->normalised && (mode == PTX_ADDRESS_WRAP || mode == PTX_ADDRESS_MIRROR)))
        mode = PTX_ADDRESS_CLAMP;
    double x = (double)coordinate;
    if (t->normalised || cube)
        x *= (double)n;
    if (linear)
        x -= 0.5;
    double i = floor(x), a = linear ? rint((x - i) * 256 + 0x1p-20) / 256 : 0;
    if (isnan(x))
        i = a = 0;
    if (fabs(x) > 0x1p40) { /* as far as coordinates reach */
        i = x < 0 ? -0x1p40 : 0x1p40;
        a = 0;
    }
    i += offset;
    return (struct taps){{inside(mode, i, n), inside(mode, i + 1, n)}, {1 - a, a}};
}

static double border(const struct picture *p, unsigned c)
{
    float f;
    memcpy(&f, &p->texture.border[c], 4);
    if (c >= p->format->channels)
        return c == 3 ? 1 : 0;
    return gives_floats(p)                       ? (double)f
           : p->format->kind == PTX_TEXEL_SIGNED ? (double)(int32_t)p->texture.border[c]
                                                 : (double)p->texture.border[c];
}

static unsigned cube_face(const float v[3], float st[2])
{
    double x = (double)v[0], y = (double)v[1], z = (double)v[2], s, t, m;
    unsigned face;
    if (fabs(z) >= fabs(x) && fabs(z) >= fabs(y)) {
        face = z < 0 ? 5 : 4;
        m = fabs(z), s = z < 0 ? -x : x, t = -y;
    } else if (fabs(y) >= fabs(x)) {
        face = y < 0 ? 3 : 2;
        m = fabs(y), s = x, t = y < 0 ? -z : z;
    } else {
        face = x < 0 ? 1 : 0;
        m = fabs(x), s = x < 0 ? z : -z, t = -y;
    }
    st[0] = (float)((s / m + 1) / 2);
    st[1] = (float)((t / m + 1) / 2);
    return face;
}

/* One level. `coordinates` are those of a face for a cube. */
static void oracle_level(const struct picture *p, unsigned l, const float coordinates[3], uint32_t layer, bool linear,
                         const int offset[3], double out[4])
{
    const struct ptx_texture_level *level = &p->texture.levels[l];
    const long size[3] = {level->width, level->height, level->depth};
    unsigned axes = p->shape->cube ? 2 : p->shape->axes;
    struct taps taps[3];
    for (unsigned a = 0; a < 3; a++)
        taps[a] = a < axes ? taps_of(&p->texture, p->shape->cube, a, size[a], coordinates[a], linear, offset[a])
                           : (struct taps){{0, 0}, {1, 0}};
    for (unsigned c = 0; c < 4; c++) {
        out[c] = 0;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                for (int k = 0; k < 2; k++) {
                    double w = taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k];
                    const long at[3] = {taps[0].at[i], taps[1].at[j], taps[2].at[k]};
                    bool outside = at[0] < 0 || at[1] < 0 || at[2] < 0;
                    if (w > 0)
                        out[c] += w * (outside ? border(p, c) : texel(p, l, at, layer, c));
                }
    }
}

static uint32_t layer_of(const struct picture *p, uint32_t given, unsigned face)
{
    uint32_t layers = p->shape->cube ? p->shape->layers / 6 : p->shape->layers;
    if (!p->shape->layered || given >= layers)
        given = p->shape->layered ? layers - 1 : 0;
    return p->shape->cube ? given * 6 + face : given;
}

static void oracle(const struct picture *p, const float coordinates[3], uint32_t layer, double level,
                   const int offset[3], double out[4])
{
    float at[3] = {coordinates[0], coordinates[1], coordinates[2]};
    unsigned face = p->shape->cube ? cube_face(coordinates, at) : 0;
    bool linear = p->texture.linear && gives_floats(p);
    double last = p->texture.level_count - 1.0;
    level = level > last ? last : level > 0 ? level : 0;
    layer = layer_of(p, layer, face);
    if (!p->texture.mip_linear || !gives_floats(p)) {
        oracle_level(p, (unsigned)floor(level + 0.5), at, layer, linear, offset, out);
        return;
    }
    double upper[4], a = rint((level - floor(level)) * 256 + 0x1p-20) / 256;
    oracle_level(p, (unsigned)floor(level), at, layer, linear, offset, out);
    oracle_level(p, (unsigned)fmin(floor(level) + 1, last), at, layer, linear, offset, upper);
    for (unsigned c = 0; c < 4; c++)
        out[c] = (1 - a) * out[c] + a * upper[c];
}

/* ---- the executor ---- */

static bool give_texture(void *context, uint64_t handle, struct ptx_texture *out)
{
    const struct picture *p = context;
    if (handle != 0x7e57)
        return false;
    *out = p->texture;
    return true;
}

/* Thread i reads eight words at in + 32 i and stores four at out + 16 i. */
static void kernel_text(char *text, size_t bytes, const char *instruction)
{
    snprintf(text, bytes,
             ".version 9.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 t) {\n"
             ".reg .b64 %%x<4>; .reg .b32 %%i<9>; .reg .f32 %%c<9>; .reg .b32 %%d<4>; .reg .b32 %%n; .reg .pred %%p;\n"
             "ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; ld.param.u64 %%x2, [t];\n"
             "mov.u32 %%n, %%tid.x; mad.wide.u32 %%x0, %%n, 32, %%x0; mad.wide.u32 %%x1, %%n, 16, %%x1;\n"
             "ld.global.v4.b32 {%%i0,%%i1,%%i2,%%i3}, [%%x0]; ld.global.v4.b32 {%%i4,%%i5,%%i6,%%i7}, [%%x0+16];\n"
             "mov.b32 %%c0,%%i0; mov.b32 %%c1,%%i1; mov.b32 %%c2,%%i2; mov.b32 %%c3,%%i3;\n"
             "mov.b32 %%c4,%%i4; mov.b32 %%c5,%%i5; mov.b32 %%c6,%%i6; mov.b32 %%c7,%%i7;\n"
             "%s\nst.global.v4.b32 [%%x1], {%%d0,%%d1,%%d2,%%d3};\nret;\n}\n",
             instruction);
}

/* The coordinates of `shape` from words 1 ...; the layer is word 0. */
static const char *coordinate_text(const struct shape *shape, bool integer)
{
    static char text[64];
    const char r = integer ? 'i' : 'c';
    if (shape->layered)
        snprintf(text, sizeof text,
                 shape->axes == 1   ? "{%%i0,%%%c1}"
                 : shape->axes == 2 ? "{%%i0,%%%c1,%%%c2,%%%c2}"
                                    : "{%%i0,%%%c1,%%%c2,%%%c3}",
                 r, r, r);
    else
        snprintf(text, sizeof text,
                 shape->axes == 1   ? "{%%%c1}"
                 : shape->axes == 2 ? "{%%%c1,%%%c2}"
                                    : "{%%%c1,%%%c2,%%%c3,%%%c3}",
                 r, r, r, r);
    return text;
}

union word {
    float f;
    uint32_t u;
    int32_t i;
};

/* All three modes must give the same. */
static void run(struct kit *k, struct picture *p, const union word (*in)[MAX_COORDINATES], union word (*out)[4])
{
    static union word again[POINTS][4];
    k->memory.texture = give_texture;
    k->memory.context = p;
    k->memory.range_count = 0;
    kit_buffer(k, 0, (void *)(uintptr_t)in, sizeof(union word) * MAX_COORDINATES * POINTS);
    for (int mode = 0; mode < 3; mode++) {
        k->memory.range_count = 1;
        kit_buffer(k, 1, mode ? again : out, sizeof again);
        k->params[2] = 0x7e57;
        k->launch.checked = mode == 1;
        k->launch.shadow = mode == 2;
        memset(mode ? again : out, 0x5a, sizeof again);
        assert_int_equal(kit_run(k, "k", 1, POINTS), STATUS_OK);
        assert_int_equal(k->result.fault_count, 0);
        if (mode)
            assert_memory_equal(out, again, sizeof again);
    }
}

static void compare(const struct picture *p, const union word got[4], const double want[4], const char *what, int i)
{
    for (unsigned c = 0; c < 4; c++) {
        bool good;
        if (!gives_floats(p))
            good = got[c].u == (uint32_t)(int64_t)want[c];
        else
            good = fabs((double)got[c].f - want[c]) <= fabs(want[c]) * 0x1p-23 + 0x1p-36;
        if (!good)
            fail_msg("%s, %u x %u bits kind %d, point %d, component %u: %08x (%.9g), expected %.9g", what,
                     p->format->channels, p->format->bits, p->format->kind, i, c, got[c].u, (double)got[c].f, want[c]);
    }
}

/* ---- coordinates ---- */

static float random_coordinate(uint32_t n, bool normalised)
{
    static const float special[] = {0.0f, -0.0f,    1.0f,      -1.0f, 0.5f,   2.0f,
                                    NAN,  INFINITY, -INFINITY, 1e30f, -1e30f, 1e-30f};
    uint64_t r = kit_random(&seed);
    float unit = normalised ? 1.0f / (float)n : 1.0f;
    switch (r % 8) {
    case 0:
        return special[r / 8 % (sizeof special / sizeof *special)];
    case 1: /* on borders of texels */
        return (float)((int)(r / 8 % (4 * n)) - (int)n) * unit;
    case 2: /* on centres */
        return ((float)((int)(r / 8 % (4 * n)) - (int)n) + 0.5f) * unit;
    case 3: /* just below */
        return nextafterf((float)((int)(r / 8 % (4 * n)) - (int)n) * unit, -INFINITY);
    default:
        return ((float)(r >> 20 & 0xffff) / 65536.0f * 4.0f - 1.5f) * (float)n * unit;
    }
}

static void random_points(const struct picture *p, union word (*in)[MAX_COORDINATES])
{
    for (int i = 0; i < POINTS; i++) {
        in[i][0].u = (uint32_t)(kit_random(&seed) % (p->shape->layers + 2u));
        if (i == 0)
            in[i][0].u = UINT32_MAX;
        for (unsigned a = 0; a < 3; a++) {
            in[i][1 + a].f = random_coordinate(p->shape->size[a], p->texture.normalised);
            if (p->shape->cube)
                in[i][1 + a].f = (float)((int)(kit_random(&seed) % 2001) - 1000) / 500.0f + 0.0007f;
        }
        for (unsigned a = 4; a < MAX_COORDINATES; a++)
            in[i][a].u = (uint32_t)kit_random(&seed);
    }
}

static void load_fetch(struct kit *k, const struct shape *shape, const struct format *f, bool integer)
{
    char instruction[200], text[2000];
    bool floats = f->kind == PTX_TEXEL_FLOAT || f->normalised;
    snprintf(instruction, sizeof instruction, "tex.%s.v4.%s.%s {%%d0,%%d1,%%d2,%%d3}, [%%x2, %s];", shape->name,
             floats                        ? "f32"
             : f->kind == PTX_TEXEL_SIGNED ? "s32"
                                           : "u32",
             integer ? "s32" : "f32", coordinate_text(shape, integer));
    kernel_text(text, sizeof text, instruction);
    kit_load(k, text);
}

static const int no_offset[3];

/* ---- tests ---- */

static void test_fetch(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    for (int g = 0; g < GEOMETRIES; g++)
        for (unsigned f = 0; f < FORMATS; f++) {
            struct kit k;
            load_fetch(&k, &shapes[g], &formats[f], false);
            paint(&p, (enum geometry)g, &formats[f], 1);
            for (int variant = 0; variant < 16; variant++) {
                char what[80];
                struct ptx_texture *t = &p.texture;
                for (int a = 0; a < 3; a++) /* each mode on each axis */
                    t->addressing[a] = (enum ptx_addressing)((variant + a) % 4);
                t->linear = variant & 4;
                t->normalised = variant & 8;
                for (int c = 0; c < 4; c++) {
                    float b = 0.25f * (float)(c + 1);
                    memcpy(&t->border[c], &b, 4);
                }
                random_points(&p, in);
                run(&k, &p, in, out);
                snprintf(what, sizeof what, "%s variant %d", shapes[g].name, variant);
                for (int i = 0; i < POINTS; i++) {
                    const float at[3] = {in[i][1].f, in[i][2].f, in[i][3].f};
                    double want[4];
                    oracle(&p, at, in[i][0].u, 0, no_offset, want);
                    compare(&p, out[i], want, what, i);
                }
            }
            kit_free(&k);
        }
}

/* Integer coordinates: texels by number, whatever the filter; 0 outside. */
static void test_fetch_integer(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    for (int g = 0; g < GCUBE; g++)
        for (unsigned f = 0; f < FORMATS; f++) {
            struct kit k;
            load_fetch(&k, &shapes[g], &formats[f], true);
            paint(&p, (enum geometry)g, &formats[f], 1);
            p.texture.linear = p.texture.normalised = true;
            for (int i = 0; i < POINTS; i++) {
                in[i][0].u = (uint32_t)(kit_random(&seed) % (shapes[g].layers + 2u));
                for (int a = 0; a < 3; a++)
                    in[i][1 + a].i = i < 2   ? (i ? INT32_MIN : INT32_MAX)
                                     : i < 4 ? (i == 2 ? -1 : (int)shapes[g].size[a])
                                             : (int)(kit_random(&seed) % (shapes[g].size[a] + 2u)) - 1;
            }
            run(&k, &p, in, out);
            for (int i = 0; i < POINTS; i++) {
                double want[4] = {0};
                bool outside = false;
                long at[3] = {0, 0, 0};
                for (unsigned a = 0; a < shapes[g].axes; a++) {
                    at[a] = in[i][1 + a].i;
                    outside |= at[a] < 0 || at[a] >= (long)shapes[g].size[a];
                }
                for (unsigned c = 0; c < 4 && !outside; c++)
                    want[c] = texel(&p, 0, at, layer_of(&p, in[i][0].u, 0), c);
                compare(&p, out[i], want, shapes[g].name, i);
            }
            kit_free(&k);
        }
}

static void test_levels(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    for (int g = 0; g < GEOMETRIES; g++)
        for (int variant = 0; variant < 8; variant++) {
            char instruction[200], text[2000], what[80];
            struct kit k;
            snprintf(instruction, sizeof instruction,
                     "tex.level.%s.v4.f32.f32 {%%d0,%%d1,%%d2,%%d3}, [%%x2, %s], %%c4;", shapes[g].name,
                     coordinate_text(&shapes[g], false));
            kernel_text(text, sizeof text, instruction);
            kit_load(&k, text);
            paint(&p, (enum geometry)g, &formats[variant % 2 ? 1 : 3], LEVELS);
            struct ptx_texture *t = &p.texture;
            t->linear = variant & 2;
            t->mip_linear = variant & 4;
            t->normalised = true;
            t->addressing[0] = t->addressing[1] = t->addressing[2] = PTX_ADDRESS_MIRROR;
            t->level_min = variant % 3 ? 0 : 0.25f;
            t->level_max = variant % 3 ? 5 : 1.5f;
            t->level_bias = variant % 3 ? 0 : -0.5f;
            random_points(&p, in);
            for (int i = 0; i < POINTS; i++)
                in[i][4].f = i == 0 ? NAN : i == 1 ? INFINITY : (float)(kit_random(&seed) % 1024) / 256.0f - 0.5f;
            run(&k, &p, in, out);
            snprintf(what, sizeof what, "levels of %s variant %d", shapes[g].name, variant);
            for (int i = 0; i < POINTS; i++) {
                const float at[3] = {in[i][1].f, in[i][2].f, in[i][3].f};
                double want[4], level = (double)in[i][4].f + (double)t->level_bias;
                level = level < (double)t->level_min || isnan(level) ? (double)t->level_min
                        : level > (double)t->level_max               ? (double)t->level_max
                                                                     : level;
                oracle(&p, at, in[i][0].u, level, no_offset, want);
                compare(&p, out[i], want, what, i);
            }
            kit_free(&k);
        }
}

/* The level by gradients, where it is a whole number; so that a point filter of levels shows it. */
static void test_gradients(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    char text[2000];
    struct kit k;
    kernel_text(text, sizeof text, "tex.grad.2d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%x2, {%c1,%c2}], {%c4,%c5}, {%c6,%c7};");
    kit_load(&k, text);
    paint(&p, G2D, &formats[1], LEVELS);
    p.texture.level_max = 9;
    for (int normalised = 0; normalised < 2; normalised++) {
        p.texture.normalised = normalised;
        random_points(&p, in);
        for (int i = 0; i < POINTS; i++) { /* lengths of 2 to the power of i % 4 - 1, in texels */
            float length = ldexpf(1.0f, i % 4 - 1), scale_x = normalised ? 9 : 1, scale_y = normalised ? 5 : 1;
            for (int a = 4; a < 8; a++)
                in[i][a].f = 0;
            in[i][i & 8 ? 4 : 6].f = length * 0.6f / scale_x;
            in[i][i & 8 ? 5 : 7].f = length * -0.8f / scale_y;
        }
        run(&k, &p, in, out);
        for (int i = 0; i < POINTS; i++) {
            const float at[3] = {in[i][1].f, in[i][2].f, 0};
            double want[4];
            oracle(&p, at, 0, i % 4 - 1, no_offset, want);
            compare(&p, out[i], want, "gradients", i);
        }
    }
    kit_free(&k);
    /* A cube: a gradient of one texel of its face (a quarter of 2) and its multiples. */
    kernel_text(text, sizeof text,
                "mov.f32 %c8, 0f00000000; tex.grad.cube.v4.f32.f32 {%d0,%d1,%d2,%d3}, "
                "[%x2, {%c1,%c2,%c3,%c3}], {%c4,%c5,%c6,%c6}, {%c8,%c8,%c8,%c8};");
    kit_load(&k, text);
    paint(&p, GCUBE, &formats[1], LEVELS);
    p.texture.level_max = 9;
    random_points(&p, in);
    for (int i = 0; i < POINTS; i++) {
        for (int a = 1; a < 4; a++) /* away from edges, where faces change */
            in[i][a].f =
                a == 1 + i % 3 ? (i & 8 ? 2.0f : -2.0f) : (float)((int)(kit_random(&seed) % 200) - 100) / 100.0f;
        for (int a = 4; a < 7; a++)
            in[i][a].f = a == 4 + (i + 1) % 3 ? ldexpf(1.0f, i / 3 % 4 - 1) * 1.05f : 0;
    }
    run(&k, &p, in, out);
    for (int i = 0; i < POINTS; i++) {
        const float at[3] = {in[i][1].f, in[i][2].f, in[i][3].f};
        double want[4];
        oracle(&p, at, 0, i / 3 % 4 - 1, no_offset, want);
        compare(&p, out[i], want, "gradients of a cube", i);
    }
    kit_free(&k);
}

static void test_offsets(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    char text[2000];
    struct kit k;
    kernel_text(text, sizeof text,
                "tex.a2d.v4.f32.f32 {%d0,%d1,%d2,%d3}|%p, [%x2, {%i0,%c1,%c2,%c2}], {%i4,-3};\n"
                "@!%p mov.b32 %d0, 0;");
    kit_load(&k, text);
    for (int linear = 0; linear < 2; linear++) {
        paint(&p, GA2D, &formats[1], 1);
        p.texture.linear = linear;
        p.texture.normalised = true;
        random_points(&p, in);
        for (int i = 0; i < POINTS; i++)
            in[i][4].i = (int)(kit_random(&seed) % 16) - 8;
        run(&k, &p, in, out);
        for (int i = 0; i < POINTS; i++) {
            const float at[3] = {in[i][1].f, in[i][2].f, 0};
            const int offset[3] = {in[i][4].i, -3, 0};
            double want[4];
            oracle(&p, at, in[i][0].u, 0, offset, want);
            compare(&p, out[i], want, "offsets", i);
        }
    }
    kit_free(&k);
}

/* tld4: what four fetches with a point filter give, at half a texel to the left and right of the point, above and
 * below. */
static void test_gather(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    static const enum geometry geometries[] = {G2D, GA2D, GCUBE, GACUBE};
    for (int n = 0; n < 4; n++)
        for (unsigned component = 0; component < 4; component++)
            for (int variant = 0; variant < 8; variant++) {
                const struct shape *shape = &shapes[geometries[n]];
                const struct format *f = &formats[variant % 2 ? 1 : 8];
                char instruction[200], text[2000];
                struct kit k;
                snprintf(instruction, sizeof instruction, "tld4.%c.%s.v4.%s.f32 {%%d0,%%d1,%%d2,%%d3}, [%%x2, %s];",
                         "rgba"[component], shape -> name, variant % 2 ? "f32" : "u32", coordinate_text(shape, false));
                kernel_text(text, sizeof text, instruction);
                kit_load(&k, text);
                paint(&p, geometries[n], f, 1);
                p.texture.normalised = variant & 2;
                p.texture.linear = variant & 4;
                p.texture.addressing[0] = p.texture.addressing[1] = variant & 4 ? PTX_ADDRESS_WRAP : PTX_ADDRESS_BORDER;
                random_points(&p, in);
                run(&k, &p, in, out);
                for (int i = 0; i < POINTS; i++) {
                    float at[3] = {in[i][1].f, in[i][2].f, in[i][3].f};
                    unsigned face = shape->cube ? cube_face(at, at) : 0;
                    struct taps x = taps_of(&p.texture, shape->cube, 0, shape->size[0], at[0], true, 0),
                                y = taps_of(&p.texture, shape->cube, 1, shape->size[1], at[1], true, 0);
                    double want[4];
                    for (int t = 0; t < 4; t++) {
                        const long place[3] = {x.at[t == 1 || t == 2], y.at[t < 2], 0};
                        want[t] = place[0] < 0 || place[1] < 0
                                      ? border(&p, component)
                                      : texel(&p, 0, place, layer_of(&p, in[i][0].u, face), component);
                    }
                    compare(&p, out[i], want, "tld4", i);
                }
                kit_free(&k);
            }
}

/* Seamless cubes: between two faces the sum of one texel of each; at a corner the mean of three. */
static void test_seamless(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4];
    struct kit k;
    load_fetch(&k, &shapes[GCUBE], &formats[0], false);
    paint(&p, GCUBE, &formats[0], 1);
    p.texture.linear = true;
    /* The edge between +x and +z, at the height of the second row of texels (y = 1 - 3/4): columns 0 and 3. */
    const long on_x[3] = {0, 1, 0}, on_z[3] = {3, 1, 0};
    /* The corner +x +y +z. */
    const long corner_x[3] = {0, 0, 0}, corner_y[3] = {3, 3, 0}, corner_z[3] = {3, 0, 0};
    memset(in, 0, sizeof in);
    for (int i = 0; i < POINTS; i++) {
        in[i][1].f = in[i][3].f = 1;
        in[i][2].f = i % 2 ? 0.25f : 1;
    }
    for (int seamless = 0; seamless < 2; seamless++) {
        p.texture.seamless = seamless;
        run(&k, &p, in, out);
        double edge[4] = {0, 0, 0, 1}, corner[4] = {0, 0, 0, 1};
        edge[0] = seamless ? (texel(&p, 0, on_x, 0, 0) + texel(&p, 0, on_z, 4, 0)) / 2 : texel(&p, 0, on_z, 4, 0);
        corner[0] =
            seamless ? (texel(&p, 0, corner_x, 0, 0) + texel(&p, 0, corner_y, 2, 0) + texel(&p, 0, corner_z, 4, 0)) / 3
                     : texel(&p, 0, corner_z, 4, 0);
        compare(&p, out[1], edge, "edge", seamless);
        compare(&p, out[0], corner, "corner", seamless);
    }
    kit_free(&k);
}

/* Halves as results, in each form. */
static void test_half_results(void **state)
{
    static struct picture p;
    static union word in[POINTS][MAX_COORDINATES], out[POINTS][4], wide[POINTS][4];
    char text[2000];
    struct kit k;
    paint(&p, G2D, &formats[1], 1);
    p.texture.linear = true;
    random_points(&p, in);
    load_fetch(&k, &shapes[G2D], &formats[1], false);
    run(&k, &p, in, wide);
    kit_free(&k);
    static const char *const forms[] = {
        ".reg .b16 %h<4>; tex.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%x2, {%c1,%c2}];\n"
        "mov.b32 %d0, {%h0,%h1}; mov.b32 %d1, {%h2,%h3}; mov.b32 %d2, 0; mov.b32 %d3, 0;",
        "tex.base.2d.v2.f16x2.f32 {%d0,%d1}, [%x2, {%c1,%c2}]; mov.b32 %d2, 0; mov.b32 %d3, 0;"};
    for (int form = 0; form < 2; form++) {
        kernel_text(text, sizeof text, forms[form]);
        kit_load(&k, text);
        run(&k, &p, in, out);
        for (int i = 0; i < POINTS; i++)
            for (unsigned c = 0; c < 4; c++) {
                double want = (double)wide[i][c].f, got = half_value((uint16_t)(out[i][c / 2].u >> 16 * (c % 2)));
                assert_true(fabs(got - want) <= fabs(want) * 0x1p-11 + 0x1p-25);
            }
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch),     cmocka_unit_test(test_fetch_integer), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_offsets),       cmocka_unit_test(test_gather),
        cmocka_unit_test(test_seamless),  cmocka_unit_test(test_half_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
