/* arith.h - what the expressions of microops.def mean: integer and bit helpers, and IEEE arithmetic as PTX wants it.
 *
 * PTX results of single precision that are NaN are the canonical 0x7fffffff (halves: 0x7fff); double precision keeps
 * the payload of a NaN operand and makes 0xfff8000000000000 from none, which is what x86 does. Nothing here depends on
 * the rounding mode of the process being anything but to-nearest.
 *
 * Straight-line code. A function that is not marked otherwise has no branch that depends on an operand, calls nothing
 * and looks nothing up, so that a loop of it over the lanes of a warp becomes vector code (gcc -O3, x86-64-v3 and up;
 * bench/bench_arith.c measures it). `mod` and `mode` are the same for all lanes. Every engine uses these functions, is
 * compiled with -ffp-contract=off, and so gets the same bits, whatever the processor.
 *
 * This header has what the families share; each has its own:
 *     arith_integer.h   integers and bits            arith_float.h    single and double precision, narrowing
 *     arith_half.h      f16, bf16, tf32              arith_convert.h  floats to integers and back
 *     arith_approx.h    the .approx functions        arith_open.h     what PTX leaves open, done otherwise
 */
#ifndef PTX_ARITH_H
#define PTX_ARITH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Rounding modifiers; RNA is to nearest, ties away from zero. */
enum rounding { ROUND_NONE, ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA };

/* mod of float-to-integer conversions: rounding, width of the destination as log2 of bytes, signed. */
enum { INT_WIDTH_SHIFT = 3, INT_SIGNED = 1 << 5 };
/* mod of half-precision operations */
enum { HALF_BF16 = 1, HALF_RELU = 2, HALF_NAN = 4, HALF_XORSIGN = 8 };
/* mod of conversions to half precision: rounding, and: */
enum { NARROW_RELU = 8, NARROW_SATFINITE = 16 };
enum { DOT_A_SIGNED = 1, DOT_B_SIGNED = 2, DOT_HIGH = 4 };
enum { PRMT_F4E = 1, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };
enum { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL };

static inline uint32_t bits32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float float32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint64_t bits64(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

static inline double float64(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* All ones where the condition holds: choices as masks are vector code in either width, where gcc 12 gives up on bool.
 */
static inline uint32_t mask32(bool condition)
{
    return condition ? UINT32_MAX : 0;
}

/* All ones when bit n of `bits` is set. Arithmetic, since gcc 12 makes branches of choices that are the same for all
 * lanes. */
static inline uint32_t bit_mask32(uint32_t bits, unsigned n)
{
    return 0 - (bits >> n & 1);
}

static inline uint64_t bit_mask64(uint32_t bits, unsigned n)
{
    return 0 - (uint64_t)(bits >> n & 1);
}

/* All ones when the highest bit is set. */
static inline uint32_t sign_mask32(uint32_t a)
{
    return 0 - (a >> 31);
}

static inline uint64_t sign_mask64(uint64_t a)
{
    return 0 - (a >> 63);
}

#include "ptx/arith_integer.h"

#include "ptx/arith_float.h"

#include "ptx/arith_half.h"

#include "ptx/arith_convert.h"

#include "ptx/arith_approx.h"

#include "ptx/arith_open.h"

#include "ptx/arith_packed.h"

#endif
