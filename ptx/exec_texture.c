/* exec_texture.c - textures: fetching, filtering, levels of detail, cubes, properties. docs/textures.md says by which
 * rules; surfaces are in exec_surface.c.
 *
 * Everything is worked out on texel numbers: a coordinate becomes the number of a texel (and, filtered, a weight in
 * 256ths), which the addressing mode brings inside. Weighted sums are exact to about 53 bits and rounded once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_texture.h"
#include "ptx/arith.h"
#include "ptx/exec_shadow.h"

enum { CACHED_TEXTURES = 16 };
struct texture_cache {
    struct {
        uint64_t handle;
        bool known;
        struct ptx_texture texture;
    } entries[CACHED_TEXTURES];
};

const struct ptx_texture *texture_find(struct worker *w, uint64_t handle)
{
    const struct ptx_memory *m = w->launch->memory;
    if (!m->texture)
        return NULL;
    if (!w->textures) {
        w->textures = calloc(1, sizeof *w->textures);
        if (!w->textures) {
            launch_stop(w->launch, STATUS_NO_MEMORY);
            return NULL;
        }
    }
    size_t at = (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 60);
    if (w->textures->entries[at].known && w->textures->entries[at].handle == handle)
        return &w->textures->entries[at].texture;
    struct ptx_texture *t = &w->textures->entries[at].texture;
    memset(t, 0, sizeof *t);
    w->textures->entries[at].known = m->texture(m->context, handle, t);
    w->textures->entries[at].handle = handle;
    return w->textures->entries[at].known ? t : NULL;
}

uint32_t texel_bytes(const struct ptx_texture *t)
{
    return (uint32_t)t->channels * t->bits / 8u;
}

/* ---- texels ---- */

static bool reads_floats(const struct ptx_texture *t)
{
    return t->kind == PTX_TEXEL_FLOAT || (t->read_normalised && t->bits < 32);
}

static float linearised(float x)
{
    return x <= 0.04045f ? (float)((double)x / 12.92) : (float)pow(((double)x + 0.055) / 1.055, 2.4);
}

/* A channel as the instruction returns it: the bits of a float, or an integer extended to 32 bits. */
static uint32_t decode(const struct ptx_texture *t, uint32_t raw, unsigned channel)
{
    if (t->kind == PTX_TEXEL_FLOAT)
        return t->bits == 16 ? bits32(half_to_float((uint16_t)raw)) : raw;
    int32_t s = t->bits == 8 ? (int8_t)raw : t->bits == 16 ? (int16_t)raw : (int32_t)raw;
    if (!reads_floats(t))
        return t->kind == PTX_TEXEL_SIGNED ? (uint32_t)s : raw;
    if (t->kind == PTX_TEXEL_SIGNED) {
        float x = (float)s / (float)((1 << (t->bits - 1)) - 1);
        return bits32(x < -1.0f ? -1.0f : x);
    }
    float x = (float)raw / (float)((1 << t->bits) - 1);
    return bits32(t->srgb && t->bits == 8 && channel < 3 ? linearised(x) : x);
}

/* Channels that the texture lacks are 0, the fourth 1. */
static uint32_t missing(const struct ptx_texture *t, unsigned channel)
{
    return channel < 3 ? 0 : reads_floats(t) ? bits32(1.0f) : 1;
}

static uint32_t raw_channel(const struct ptx_texture *t, const uint8_t *p, unsigned channel)
{
    uint32_t word;
    uint16_t half;
    switch (t->bits) {
    case 8:
        return p[channel];
    case 16:
        memcpy(&half, p + channel * 2, 2);
        return half;
    default:
        memcpy(&word, p + channel * 4, 4);
        return word;
    }
}

/* What checked and shadow mode know of a texel in device memory. */
static void note_texel(struct texture_access *x, uint64_t address, const uint8_t *p, struct texel *out)
{
    const struct ptx_texture *t = x->texture;
    const uint32_t bytes = t->bits / 8u;
    for (unsigned c = 0; c < t->channels; c++) {
        uint64_t at = address + c * bytes;
        if (x->checked)
            check_loaded(x->worker, x->block, x->thread, x->in, &out->checked[c], MEM_GLOBAL, at, bytes,
                         p ? p + c * bytes : NULL, p ? raw_channel(t, p, c) : 0);
        if (!x->shadow || !p)
            continue;
        struct number_pair pair;
        shadow_take(x->worker, device_entries(&x->worker->cache[x->in->aux], at), at, bytes, true, &out->number[c],
                    &pair);
        struct ptx_shadow_value *n = &out->number[c];
        if (t->kind == PTX_TEXEL_FLOAT && bytes == 2 && n->kind == PTX_SHADOW_F16) {
            n->kind = PTX_SHADOW_F32; /* as which it is returned */
        } else if (t->kind != PTX_TEXEL_FLOAT || bytes == 2 || n->kind == PTX_SHADOW_NONE) {
            *n = shadow_plain_of(n);
            n->origin = ORIGIN_MEMORY;
        }
    }
}

/* False: a fault ends the launch. */
static bool load_texel(struct texture_access *x, const struct ptx_texture_level *level, const uint32_t at[3],
                       struct texel *out)
{
    const struct ptx_texture *t = x->texture;
    uint64_t offset = at[2] * level->slice_bytes + at[1] * level->row_bytes + (uint64_t)at[0] * texel_bytes(t);
    const uint8_t *p = level->host;
    if (p) {
        p += offset;
    } else {
        p = texture_device(x, level->address + offset, texel_bytes(t));
        if (x->checked || x->shadow)
            note_texel(x, level->address + offset, p, out);
        if (!p)
            return x->checked || x->shadow;
    }
    for (unsigned c = 0; c < t->channels; c++)
        out->bits[c] = decode(t, raw_channel(t, p, c), c);
    return true;
}

/* ---- addressing ---- */

/* A number that is not one of the `count` texels becomes one; -1: the border. */
static int64_t brought_inside(enum ptx_addressing mode, int64_t i, int64_t count)
{
    switch (mode) {
    case PTX_ADDRESS_WRAP:
        i %= count;
        return i < 0 ? i + count : i;
    case PTX_ADDRESS_MIRROR:
        i %= 2 * count;
        if (i < 0)
            i += 2 * count;
        return i < count ? i : 2 * count - 1 - i;
    case PTX_ADDRESS_BORDER:
        return i < 0 || i >= count ? -1 : i;
    default:
        return i < 0 ? 0 : i >= count ? count - 1 : i;
    }
}

static enum ptx_addressing mode_of(const struct ptx_texture *t, unsigned axis)
{
    enum ptx_addressing mode = t->addressing[axis];
    return !t->normalised && mode != PTX_ADDRESS_BORDER ? PTX_ADDRESS_CLAMP : mode;
}

static void set_border(const struct ptx_texture *t, struct texel *out)
{
    for (unsigned c = 0; c < 4; c++)
        out->bits[c] = c < t->channels ? t->border[c] : missing(t, c);
}

static uint32_t extent(const struct ptx_texture_level *level, unsigned axis)
{
    uint32_t n = axis == 0 ? level->width : axis == 1 ? level->height : level->depth;
    return n ? n : 1;
}

/* Nothing is known of its values in the other modes. */
static void forget(const struct texture_access *x, struct texel *t)
{
    if (x->checked)
        memset(t->checked, 0, sizeof t->checked);
    if (x->shadow)
        memset(t->number, 0, sizeof t->number);
}

static bool texel_at(struct texture_access *x, const struct ptx_texture_level *level, const int64_t number[3],
                     struct texel *out)
{
    uint32_t at[3] = {0, 0, x->layer};
    forget(x, out);
    for (unsigned c = 0; c < 4; c++)
        out->bits[c] = missing(x->texture, c);
    for (unsigned axis = 0; axis < x->axes; axis++) {
        int64_t i = number[axis], count = extent(level, axis);
        if (x->op->integer && (i < 0 || i >= count)) {
            memset(out->bits, 0, sizeof out->bits);
            return true;
        }
        i = brought_inside(x->op->cube ? PTX_ADDRESS_CLAMP : mode_of(x->texture, axis), i, count);
        if (i < 0) {
            set_border(x->texture, out);
            return true;
        }
        at[axis] = (uint32_t)i;
    }
    return load_texel(x, level, at, out);
}

/* ---- cubes ---- */

struct face {
    unsigned number;
    double s, t; /* -1 to 1 */
};

/* The table of the CUDA guide. Of equal magnitudes, which it leaves open, z comes before y, and y before x. */
static struct face face_of(const double v[3])
{
    const double x = v[0], y = v[1], z = v[2], ax = fabs(x), ay = fabs(y), az = fabs(z);
    struct face f;
    double m;
    if (az >= ax && az >= ay) {
        m = az;
        f = z < 0 ? (struct face){5, -x, -y} : (struct face){4, x, -y};
    } else if (ay >= ax) {
        m = ay;
        f = y < 0 ? (struct face){3, x, -z} : (struct face){2, x, z};
    } else {
        m = ax;
        f = x < 0 ? (struct face){1, z, -y} : (struct face){0, -z, -y};
    }
    f.s = m > 0 ? f.s / m : 0;
    f.t = m > 0 ? f.t / m : 0;
    return f;
}

static void direction_of(struct face f, double v[3])
{
    const double vectors[6][3] = {{1, -f.t, -f.s}, {-1, -f.t, f.s}, {f.s, 1, f.t},
                                  {f.s, -1, -f.t}, {f.s, -f.t, 1},  {-f.s, -f.t, -1}};
    memcpy(v, vectors[f.number], sizeof vectors[0]);
}

static uint32_t face_layer(const struct texture_access *x, unsigned face)
{
    uint32_t layer = x->cube * 6 + face, layers = x->texture->layers ? x->texture->layers : 1;
    return layer < layers ? layer : layers - 1;
}

/* A texel beside a face is the one of the neighbour that lies there. */
static bool texel_over_edge(struct texture_access *x, const struct ptx_texture_level *level, int64_t i, int64_t j,
                            struct texel *out)
{
    double n = extent(level, 0), v[3];
    direction_of((struct face){x->face, (2.0 * (double)i + 1) / n - 1, (2.0 * (double)j + 1) / n - 1}, v);
    struct face f = face_of(v);
    int64_t number[3] = {(int64_t)floor((f.s + 1) / 2 * n), (int64_t)floor((f.t + 1) / 2 * n), 0};
    uint32_t layer = x->layer;
    x->layer = face_layer(x, f.number);
    bool good = texel_at(x, level, number, out);
    x->layer = layer;
    return good;
}

/* ---- filtering ---- */

/* The sum of two or four or eight texels with their weights: what `number` and `part` (in 256ths) say on each axis. */
static bool filtered(struct texture_access *x, const struct ptx_texture_level *level, const int64_t number[3],
                     const uint32_t part[3], double out[4])
{
    const unsigned channels = x->texture->channels;
    double sum[4] = {0}, missed = 0;
    int64_t n = extent(level, 0);
    for (unsigned corner = 0; corner < 1u << x->axes; corner++) {
        double weight = 1;
        int64_t at[3] = {0};
        bool beside[3] = {false};
        for (unsigned axis = 0; axis < x->axes; axis++) {
            bool far = corner >> axis & 1;
            weight *= (far ? part[axis] : 256 - part[axis]) / 256.0;
            at[axis] = number[axis] + far;
            beside[axis] = x->op->cube && x->texture->seamless && (at[axis] < 0 || at[axis] >= n);
        }
        if (weight == 0)
            continue;
        if (beside[0] && beside[1]) { /* the corner of a cube has three texels */
            missed += weight;
            continue;
        }
        struct texel t;
        if (!(beside[0] || beside[1] ? texel_over_edge(x, level, at[0], at[1], &t) : texel_at(x, level, at, &t)))
            return false;
        for (unsigned c = 0; c < channels; c++)
            sum[c] += weight * (double)float32(t.bits[c]);
        texture_used(x, &t);
    }
    for (unsigned c = 0; c < channels; c++)
        out[c] = missed > 0 && missed < 1 ? sum[c] / (1 - missed) : sum[c];
    for (unsigned c = channels; c < 4; c++)
        out[c] = (double)float32(missing(x->texture, c));
    return true;
}

/* A coordinate that is no number counts as 0; one that is far away stays far. */
static int64_t whole(double x)
{
    const double far = 0x1p40;
    if (!(fabs(x) <= far))
        return x != x ? 0 : x < 0 ? (int64_t)-far : (int64_t)far;
    int64_t i = (int64_t)x; /* floor() is a call where the processor's own may not be used */
    return i - ((double)i > x);
}

/* The number of the first texel, and the weight of the second in 256ths, rounded to nearest. */
static void footprint(const struct texture_access *x, const struct ptx_texture_level *level, int64_t number[3],
                      uint32_t part[3])
{
    for (unsigned axis = 0; axis < x->axes; axis++) {
        double at = x->coordinates[axis];
        if (x->texture->normalised || x->op->cube)
            at *= extent(level, axis);
        at -= 0.5;
        number[axis] = whole(at);
        double fraction = at - (double)number[axis];
        part[axis] = fraction >= 0 && fraction < 1 ? (uint32_t)(fraction * 256 + 0.5) : 0;
        number[axis] += x->offset[axis];
    }
}

static bool nearest(struct texture_access *x, const struct ptx_texture_level *level, struct texel *out)
{
    int64_t number[3] = {0};
    for (unsigned axis = 0; axis < x->axes; axis++) {
        double at = x->coordinates[axis];
        if ((x->texture->normalised || x->op->cube) && !x->op->integer)
            at *= extent(level, axis);
        number[axis] = whole(at) + x->offset[axis];
    }
    return texel_at(x, level, number, out);
}

/* ---- levels of detail ---- */

static double clamped(double x, double low, double high)
{
    return !(x > low) ? low : x > high ? high : x;
}

static double level_of_detail(const struct texture_access *x)
{
    const struct ptx_texture *t = x->texture;
    double last = (double)t->level_count - 1, level = 0;
    if (x->op->mip == MIP_LEVEL) {
        level = x->level;
    } else if (x->op->mip == MIP_GRADIENT) {
        double longest = 0;
        for (unsigned g = 0; g < 2; g++) {
            double sum = 0;
            for (unsigned axis = 0; axis < x->axes; axis++) {
                double d = x->gradients[g][axis];
                if (t->normalised || x->op->cube)
                    d *= extent(&t->levels[0], axis);
                sum += d * d;
            }
            longest = sum > longest ? sum : longest;
        }
        level = longest > 0 ? 0.5 * log2(longest) : -INFINITY;
    }
    if (x->op->integer)
        return clamped(level, 0, last);
    if (x->op->mip != MIP_BASE)
        level += (double)t->level_bias;
    if (t->level_max >= t->level_min)
        level = clamped(level, (double)t->level_min, (double)t->level_max);
    return clamped(level, 0, last);
}

static bool sample(struct texture_access *x, struct texel *out)
{
    const struct ptx_texture *t = x->texture;
    double level = level_of_detail(x);
    bool floats = reads_floats(t), linear = t->linear && floats && !x->op->integer;
    unsigned first = (unsigned)(t->mip_linear && floats ? level : level + 0.5), weight = 0;
    if (first >= t->level_count)
        first = t->level_count - 1;
    if (t->mip_linear && floats && first + 1 < t->level_count)
        weight = (unsigned)((level - first) * 256 + 0.5);
    if (!linear && weight == 0)
        return nearest(x, &t->levels[first], out);
    double sum[4] = {0};
    for (unsigned i = 0; i < 2; i++) {
        unsigned share = i ? weight : 256 - weight;
        double part[4] = {0};
        if (share == 0)
            continue;
        if (linear) {
            int64_t number[3] = {0};
            uint32_t parts[3] = {0};
            footprint(x, &t->levels[first + i], number, parts);
            if (!filtered(x, &t->levels[first + i], number, parts, part))
                return false;
        } else {
            if (!nearest(x, &t->levels[first + i], out))
                return false;
            texture_used(x, out);
            for (unsigned c = 0; c < 4; c++)
                part[c] = (double)float32(out->bits[c]);
        }
        for (unsigned c = 0; c < 4; c++)
            sum[c] += share / 256.0 * part[c];
    }
    forget(x, out);
    for (unsigned c = 0; c < 4; c++)
        out->bits[c] = bits32(canonical32((float)sum[c]));
    return true;
}

/* ---- tld4 ---- */

/* Counter-clockwise from the lower left, where rows go down. */
static bool gather(struct texture_access *x, struct texel *out)
{
    static const uint8_t right[4] = {0, 1, 1, 0}, below[4] = {1, 1, 0, 0};
    const struct ptx_texture_level *level = &x->texture->levels[0];
    int64_t number[3] = {0};
    uint32_t part[3] = {0};
    unsigned c = x->op->component;
    footprint(x, level, number, part);
    for (unsigned i = 0; i < 4; i++) {
        struct texel t;
        int64_t at[3] = {number[0] + right[i], number[1] + below[i], 0};
        if (!texel_at(x, level, at, &t))
            return false;
        out->bits[i] = t.bits[c];
        if (x->checked)
            out->checked[i] = t.checked[c];
        if (x->shadow)
            out->number[i] = t.number[c];
    }
    return true;
}

/* ---- inputs and results ---- */

static const uint64_t *read_coordinates(struct texture_access *x, const uint64_t *in)
{
    const struct texture_op *op = x->op;
    uint32_t layers = x->texture->layers ? x->texture->layers : 1;
    if (op->layered) {
        uint32_t layer = (uint32_t)*in++, most = op->cube ? (layers + 5) / 6 : layers;
        layer = layer < most ? layer : most - 1;
        x->cube = op->cube ? layer : 0;
        x->layer = op->cube ? 0 : layer;
    }
    for (unsigned i = 0; i < op->dimensions; i++, in++)
        x->coordinates[i] = op->integer ? (double)(int32_t)*in : (double)float32((uint32_t)*in);
    return in;
}

static void read_mip(struct texture_access *x, const uint64_t **in)
{
    const uint64_t *at = *in;
    if (x->op->mip == MIP_LEVEL) {
        x->level = x->op->integer ? (double)(int32_t)at[0] : (double)float32((uint32_t)at[0]);
        at++;
    }
    for (unsigned g = 0; x->op->mip == MIP_GRADIENT && g < 2; g++)
        for (unsigned i = 0; i < x->op->dimensions; i++)
            x->gradients[g][i] = (double)float32((uint32_t)*at++);
    *in = at;
}

/* The point on its face, and the gradients there: the derivatives of (s / m + 1) / 2. */
static void enter_cube(struct texture_access *x)
{
    const double *v = x->coordinates;
    struct face f = face_of(v);
    double m = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
    for (unsigned g = 0; g < 2 && x->op->mip == MIP_GRADIENT; g++) {
        const double small = 0x1p-20;
        const double *d = x->gradients[g];
        double moved[3];
        /* A difference quotient along the gradient, on the plane of the face. */
        for (unsigned i = 0; i < 3; i++)
            moved[i] = v[i] + small * d[i];
        double axis = f.number < 2 ? moved[0] : f.number < 4 ? moved[1] : moved[2];
        const double s[6] = {-moved[2], moved[2], moved[0], moved[0], moved[0], -moved[0]};
        const double t[6] = {-moved[1], -moved[1], moved[2], -moved[2], -moved[1], -moved[1]};
        double ds = m > 0 ? (s[f.number] / fabs(axis) - f.s) / small / 2 : 0;
        double dt = m > 0 ? (t[f.number] / fabs(axis) - f.t) / small / 2 : 0;
        x->gradients[g][0] = ds;
        x->gradients[g][1] = dt;
    }
    x->face = f.number;
    x->layer = face_layer(x, f.number);
    x->coordinates[0] = (f.s + 1) / 2;
    x->coordinates[1] = (f.t + 1) / 2;
}

static bool fetch(struct texture_access *x, const uint64_t *in, struct texel *out)
{
    in = read_coordinates(x, in);
    read_mip(x, &in);
    for (unsigned i = 0; x->op->offset && i < x->op->dimensions; i++)
        x->offset[i] = (int32_t)*in++;
    x->axes = x->op->cube ? 2 : x->op->dimensions;
    if (x->op->cube)
        enter_cube(x);
    return x->op->kind == TEXTURE_GATHER ? gather(x, out) : sample(x, out);
}

static uint32_t property(const struct ptx_texture *t, const struct texture_op *op, uint32_t level)
{
    const struct ptx_texture_level *l = &t->levels[level < t->level_count ? level : t->level_count - 1];
    unsigned size = t->bits == 8 ? 0 : t->bits == 16 ? 1 : 2;
    static const uint8_t addressing[] = {
        [PTX_ADDRESS_WRAP] = 0, [PTX_ADDRESS_MIRROR] = 1, [PTX_ADDRESS_CLAMP] = 3, [PTX_ADDRESS_BORDER] = 4};
    switch (op->query) {
    case QUERY_WIDTH:
        return l->width;
    case QUERY_HEIGHT:
        return l->height;
    case QUERY_DEPTH:
        return l->depth;
    case QUERY_DATA_TYPE: /* the numbers of OpenCL, as are those of the order */
        if (t->kind == PTX_TEXEL_FLOAT)
            return t->bits == 16 ? 0x10dd : 0x10de;
        if (t->read_normalised && t->bits < 32)
            return (t->kind == PTX_TEXEL_SIGNED ? 0x10d0 : 0x10d2) + size;
        return (t->kind == PTX_TEXEL_SIGNED ? 0x10d7 : 0x10da) + size;
    case QUERY_ORDER:
        return t->channels == 1 ? 0x10b0 : t->channels == 2 ? 0x10b2 : 0x10b5;
    case QUERY_NORMALISED:
        return t->normalised;
    case QUERY_ARRAY_SIZE:
        return t->layers;
    case QUERY_LEVELS:
        return t->level_count;
    case QUERY_SAMPLES:
        return 1;
    case QUERY_FILTER:
        return t->linear;
    case QUERY_ADDRESS_0:
    case QUERY_ADDRESS_1:
    case QUERY_ADDRESS_2:
        return addressing[mode_of(t, op->query - QUERY_ADDRESS_0)];
    case QUERY_MEMORY_LAYOUT:
        return t->linear_memory;
    default:
        return 0;
    }
}

/* ---- the instruction ---- */

uint8_t *texture_device(struct texture_access *x, uint64_t address, uint32_t bytes)
{
    /* Texels of one instruction may differ in size from texture to texture: what it found last says nothing. */
    x->worker->cache[x->in->aux] = (struct range_cache){0};
    if (x->checked) {
        struct shadow plain = {0};
        return check_access(x->worker, x->block, x->thread, x->in, &plain, MEM_GLOBAL, address, bytes, false);
    }
    return global_find(x->worker, x->block, x->thread, x->in, address, bytes, false, false);
}

void texture_used(struct texture_access *x, struct texel *t)
{
    for (unsigned c = 0; x->checked && c < 4; c++)
        if (t->checked[c].undef)
            undef_used(x->worker, x->block, x->thread, &t->checked[c]);
    for (unsigned c = 0; x->shadow && c < 4; c++)
        x->flags |= shadow_plain_of(&t->number[c]).flags;
}

static void bad_handle(struct texture_access *x, uint64_t handle)
{
    struct ptx_fault f = {.kind = PTX_FAULT_TEXTURE, .space = PTX_SPACE_GLOBAL, .address = handle};
    if (x->op->kind == SURFACE_LOAD || x->op->kind == SURFACE_STORE || x->op->kind == SURFACE_REDUCE)
        f.space = PTX_SPACE_SURFACE;
    f.access.write = x->op->kind == SURFACE_STORE || x->op->kind == SURFACE_REDUCE;
    fault_report(x->worker, x->block, x->thread, x->in, &f);
}

static void put(struct texture_access *x, unsigned i, uint64_t value, const struct shadow *checked,
                const struct ptx_shadow_value *number)
{
    uint32_t slot = x->thread->code->extra[x->in->b + i];
    x->thread->stack[x->thread->base + slot].u64 = value;
    if (x->checked)
        x->thread->shadow[x->thread->base + slot] = *checked;
    if (x->shadow) {
        x->thread->numbers[x->thread->base + slot] = *number;
        x->thread->numbers[x->thread->base + slot].flags |= x->flags;
    }
}

static void put_texel(struct texture_access *x, const struct texel *t)
{
    const struct texture_op *op = x->op;
    bool floats = reads_floats(x->texture);
    struct ptx_shadow_value plain = NUMBER_MEMORY;
    for (unsigned c = 0; c < 4 && op->result == RESULT_32; c++)
        put(x, c, t->bits[c], &t->checked[c], &t->number[c]);
    uint16_t half[4];
    for (unsigned c = 0; c < 4 && op->result != RESULT_32; c++)
        half[c] = floats ? double_to_half((double)float32(t->bits[c]), ROUND_RN) : (uint16_t)t->bits[c];
    for (unsigned c = 0; c < 4 && op->result == RESULT_F16; c++)
        put(x, c, half[c], &t->checked[c], &plain);
    for (unsigned c = 0; c < 2 && op->result == RESULT_F16X2; c++) {
        uint32_t low = x->checked ? t->checked[2 * c].undef : 0, high = x->checked ? t->checked[2 * c + 1].undef : 0;
        struct shadow joined = {.undef =
                                    low || high ? ((low ? low : high) & ~0xffu) | (low ? 3 : 0) | (high ? 12 : 0) : 0};
        put(x, c, half[2 * c] | (uint32_t)half[2 * c + 1] << 16, &joined, &plain);
    }
}

static bool do_texture(struct texture_access *x, uint64_t handle, const uint64_t *in)
{
    const struct texture_op *op = x->op;
    const struct shadow defined = {0};
    const struct ptx_shadow_value plain = NUMBER_PLAIN;
    x->texture = texture_find(x->worker, handle);
    if (op->kind == TEXTURE_IS) {
        put(x, 0, x->texture && x->texture->surface == op->surface, &defined, &plain);
        return true;
    }
    bool surface = op->kind == TEXTURE_QUERY ? op->surface : op->kind >= SURFACE_LOAD;
    bool known = x->texture && x->texture->surface == surface && x->texture->level_count;
    if (surface && known && !x->texture->levels[0].host)
        known = false;
    if (!known)
        bad_handle(x, handle);
    if (!known || op->kind >= SURFACE_LOAD) {
        for (unsigned i = 0; i < op->outputs; i++)
            put(x, i, 0, &defined, &plain);
        return known ? surface_access(x, in) : x->checked || x->shadow;
    }
    if (op->kind == TEXTURE_QUERY) {
        put(x, 0, property(x->texture, op, op->inputs ? (uint32_t)in[0] : 0), &defined, &plain);
        return true;
    }
    struct texel t;
    if (!fetch(x, in, &t))
        return false;
    put_texel(x, &t);
    if (op->resident)
        put(x, op->outputs - 1u, 1, &defined, &plain);
    return true;
}

bool texture_execute(struct worker *w, struct block *b, struct thread *t, const struct insn *in)
{
    const struct texture_op *op = &w->launch->module->texture_ops[in->mod];
    struct texture_access x;
    x.worker = w;
    x.block = b;
    x.thread = t;
    x.in = in;
    x.op = op;
    x.texture = NULL;
    x.checked = w->launch->checked;
    x.shadow = w->launch->shadow;
    x.flags = 0;
    x.axes = x.face = 0;
    x.layer = x.cube = 0;
    x.level = 0;
    memset(x.coordinates, 0, sizeof x.coordinates);
    memset(x.gradients, 0, sizeof x.gradients);
    memset(x.offset, 0, sizeof x.offset);
    const uint32_t *slots = t->code->extra + in->b + in->d;
    uint64_t values[TEXTURE_MAX_INPUTS] = {0};
    bool stores = op->kind == SURFACE_STORE;
    for (unsigned i = 0; i < op->inputs; i++) {
        values[i] = t->stack[t->base + slots[i]].u64;
        /* What is only stored may be undefined. */
        bool stored = stores && i + op->elements >= op->inputs;
        if (x.checked && !stored && t->shadow[t->base + slots[i]].undef)
            undef_used(w, b, t, &t->shadow[t->base + slots[i]]);
        if (x.shadow && !stored)
            x.flags |= shadow_plain_of(&t->numbers[t->base + slots[i]]).flags;
    }
    if (x.shadow)
        x.flags |= t->numbers[t->base + in->a].flags & FLAGS_CONTROL;
    if (x.checked && t->shadow[t->base + in->a].undef)
        undef_used(w, b, t, &t->shadow[t->base + in->a]);
    return do_texture(&x, t->stack[t->base + in->a].u64, values);
}
