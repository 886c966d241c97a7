#include "analyzer/element.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
    bool floating;
    const char *numpy;
} types[] = {
#define X(id, name, bytes, floating, numpy) {name, bytes, floating, numpy},
    ELEMENTS(X)
#undef X
};

const char *element_name(enum element_type type)
{
    return types[type].name;
}

uint32_t element_bytes(enum element_type type)
{
    return types[type].bytes;
}

bool element_floating(enum element_type type)
{
    return types[type].floating;
}

const char *element_numpy(enum element_type type)
{
    return types[type].numpy;
}

bool element_parse(const char *name, enum element_type *out)
{
    for (int i = 0; i < ELEMENT_TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            *out = (enum element_type)i;
            return true;
        }
    return false;
}

const char *element_names(void)
{
    return "f64, f32, f16, bf16, s64, u64, s32, u32, s16, u16, s8 or u8";
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double magnitude = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
                       : exponent == 0 ? ldexp(mantissa, -24)
                                       : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

static double single_value(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

double element_value(enum element_type type, const uint8_t *data)
{
    uint64_t word = 0;
    double real;
    memcpy(&word, data, types[type].bytes);
    switch (type) {
    case ELEMENT_F64:
        memcpy(&real, &word, sizeof real);
        return real;
    case ELEMENT_F32:
        return single_value((uint32_t)word);
    case ELEMENT_F16:
        return half_value((uint16_t)word);
    case ELEMENT_BF16:
        return single_value((uint32_t)word << 16);
    case ELEMENT_S64:
        return (double)(int64_t)word;
    case ELEMENT_S32:
        return (double)(int32_t)word;
    case ELEMENT_S16:
        return (double)(int16_t)word;
    case ELEMENT_S8:
        return (double)(int8_t)word;
    default:
        return (double)word;
    }
}

/* How many of the first elements, read as `type`, are neither 0 nor what a program would compute with. */
static bool plausible(enum element_type type, const uint8_t *data, uint64_t bytes)
{
    enum { LOOKED_AT = 4096 };
    uint64_t step = types[type].bytes, count = bytes / step, odd = 0, zeros = 0;
    if (count > LOOKED_AT)
        count = LOOKED_AT;
    for (uint64_t i = 0; i < count; i++) {
        double v = element_value(type, data + i * step), size = fabs(v);
        zeros += v == 0;
        odd += isfinite(v) && v != 0 && (types[type].floating ? size < 1e-20 || size > 1e20 : size > 0x1p24);
    }
    return zeros == count ? type == ELEMENT_F32 : odd <= (count - zeros) / 16;
}

enum element_type element_guess(const uint8_t *data, uint64_t bytes)
{
    static const enum element_type tried[] = {ELEMENT_F32, ELEMENT_F64, ELEMENT_S64, ELEMENT_S32};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (bytes && bytes % types[tried[i]].bytes == 0 && plausible(tried[i], data, bytes))
            return tried[i];
    return bytes && bytes % 4 == 0 ? ELEMENT_U32 : ELEMENT_U8;
}

struct element_statistics element_statistics(enum element_type type, const uint8_t *data, uint64_t bytes)
{
    struct element_statistics s = {.count = bytes / types[type].bytes};
    double sum = 0;
    for (uint64_t i = 0; i < s.count; i++) {
        double v = element_value(type, data + i * types[type].bytes);
        s.nans += isnan(v) != 0;
        s.infinities += isinf(v) != 0;
        s.zeros += v == 0;
        if (!isfinite(v))
            continue;
        s.min = !s.finite || v < s.min ? v : s.min;
        s.max = !s.finite || v > s.max ? v : s.max;
        s.finite++;
        sum += v;
    }
    s.mean = s.finite ? sum / (double)s.finite : 0;
    return s;
}
