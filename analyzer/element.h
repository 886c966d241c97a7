/* element.h - what the bytes of a buffer may mean: types, their names, values, and a guess where nothing tells. */
#ifndef ANALYZER_ELEMENT_H
#define ANALYZER_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name here, bytes, is it floating-point, NumPy's name. NumPy has no bfloat16: it is widened to float32. */
#define ELEMENTS(X)                                                                                                    \
    X(F64, "f64", 8, true, "<f8")                                                                                      \
    X(F32, "f32", 4, true, "<f4")                                                                                      \
    X(F16, "f16", 2, true, "<f2")                                                                                      \
    X(BF16, "bf16", 2, true, "<f4")                                                                                    \
    X(S64, "s64", 8, false, "<i8")                                                                                     \
    X(U64, "u64", 8, false, "<u8")                                                                                     \
    X(S32, "s32", 4, false, "<i4")                                                                                     \
    X(U32, "u32", 4, false, "<u4")                                                                                     \
    X(S16, "s16", 2, false, "<i2")                                                                                     \
    X(U16, "u16", 2, false, "<u2")                                                                                     \
    X(S8, "s8", 1, false, "|i1")                                                                                       \
    X(U8, "u8", 1, false, "|u1")
enum element_type {
#define X(id, name, bytes, floating, numpy) ELEMENT_##id,
    ELEMENTS(X)
#undef X
        ELEMENT_TYPES
};

const char *element_name(enum element_type type);
uint32_t element_bytes(enum element_type type);
bool element_floating(enum element_type type);
const char *element_numpy(enum element_type type);
/* False: there is no such type. */
bool element_parse(const char *name, enum element_type *out);
/* "f64, f32, ..." for messages. */
const char *element_names(void);

/* The element at `data`; 64-bit integers lose what a double cannot hold. */
double element_value(enum element_type type, const uint8_t *data);
/* By the contents alone: floats have moderate exponents, integers are small. */
enum element_type element_guess(const uint8_t *data, uint64_t bytes);

/* Of all elements. min, max and mean are over the finite ones; 0 when there are none. */
struct element_statistics {
    uint64_t count, finite, nans, infinities, zeros;
    double min, max, mean;
};
struct element_statistics element_statistics(enum element_type type, const uint8_t *data, uint64_t bytes);

#endif
