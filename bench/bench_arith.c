/* bench_arith - what the executor's arithmetic costs: nanoseconds per warp (32 lanes) of the functions of ptx/arith.h,
 * as vector code for AVX2, and of the same by libm or by the processor's scalar instructions in the same run, the
 * baseline. Usage: bench_arith */
#pragma GCC optimize("O3")
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt,f16c")
#endif
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "ptx/arith.h"

enum { LANES = 32, ROUNDS = 20000, REPEATS = 5 };
typedef float f32;
typedef double f64;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;

/* Operands: three for each type, of ordinary size. */
static f32 in_f32[3][LANES];
static u16 in_u16[3][LANES];
static u32 in_u32[3][LANES];
static s32 in_s32[3][LANES];
static u64 in_u64[3][LANES];
static _Alignas(64) u64 out[LANES];
static unsigned mod_rn = ROUND_RN, mod_rz_u32 = ROUND_RZ | 2 << INT_WIDTH_SHIFT, table = 0x96;

/* WARP: the function over a warp; LANE: one lane at a time, which no vectoriser touches. */
#define WARP(name, D, A, expression)                                                                                   \
    static __attribute__((noinline)) void warp_##name(const A *restrict x, const A *restrict y, const A *restrict z,   \
                                                      D *restrict d, unsigned mod)                                     \
    {                                                                                                                  \
        for (int l = 0; l < LANES; l++) {                                                                              \
            A a = x[l], b = y[l], c = z[l];                                                                            \
            (void)b;                                                                                                   \
            (void)c;                                                                                                   \
            d[l] = (D)(expression);                                                                                    \
        }                                                                                                              \
    }
#define LANE(name, D, A, expression)                                                                                   \
    static __attribute__((noinline, optimize("O2,no-tree-vectorize"))) void lane_##name(                               \
        const A *restrict x, const A *restrict y, const A *restrict z, D *restrict d, unsigned mod)                    \
    {                                                                                                                  \
        for (int l = 0; l < LANES; l++) {                                                                              \
            A a = x[l], b = y[l], c = z[l];                                                                            \
            (void)b;                                                                                                   \
            (void)c;                                                                                                   \
            d[l] = (D)(expression);                                                                                    \
        }                                                                                                              \
    }

// clang-format off
/* name, result, operands, modifier, ours, baseline */
#define ROWS(ROW)                                                                                                      \
    ROW(ex2, f32, f32, 0, exp2_32(a), exp2((double)a))                                                                 \
    ROW(lg2, f32, f32, 0, log2_32(a), log2((double)a))                                                                 \
    ROW(sin, f32, f32, 0, sin_32(a), sin((double)a))                                                                   \
    ROW(cos, f32, f32, 0, cos_32(a), cos((double)a))                                                                   \
    ROW(tanh, f32, f32, 0, tanh_32(a), tanh((double)a))                                                                \
    ROW(rsqrt, f32, f32, 0, rsqrt32(a), 1.0 / sqrt((double)a))                                                         \
    ROW(div_approx, f32, f32, 0, divide_approx32(a, b), a / b)                                                         \
    ROW(rcp, f32, f32, 0, canonical32(1.0f / a), 1.0f / a)                                                             \
    ROW(add_ftz, f32, f32, 0, flush32(canonical32(flush32(a) + flush32(b))), a + b)                                    \
    ROW(add_rz, f32, f32, ROUND_RZ, add_rounded32(a, b, (int)mod), a + b)                                              \
    ROW(fma_rz, f32, f32, ROUND_RZ, fma_rounded32(a, b, c, (int)mod), a * b + c)                                       \
    ROW(div_rz, f32, f32, ROUND_RZ, div_rounded32(a, b, (int)mod), a / b)                                              \
    ROW(sqrt_rz, f32, f32, ROUND_RZ, sqrt_rounded32(a, (int)mod), sqrtf(a))                                            \
    ROW(min, f32, f32, 0, minimum32(a, b), fminf(a, b))                                                                \
    ROW(saturate, f32, f32, 0, saturate32(a), fminf(fmaxf(a, 0), 1))                                                   \
    ROW(f16_to_f32, f32, u16, 0, half_to_float(a), (float)*(_Float16 *)&a)                                             \
    ROW(f32_to_f16, u16, f32, mod_rn, float_to_half(a, mod), (_Float16)a)                                              \
    ROW(f32_to_bf16, u16, f32, mod_rn, float_to_bfloat(a, mod), double_to_bfloat(a, mod))                              \
    ROW(add_f16, u16, u16, 0, add_half(a, b, mod), (float)a + b)                                                       \
    ROW(fma_f16, u16, u16, 0, fma_half(a, b, c, mod), (float)a * b + c)                                                \
    ROW(rint, f32, f32, mod_rn, round_integral32(a, (int)mod), nearbyintf(a))                                          \
    ROW(f32_to_s32, u32, f32, 0, float_to_s32_rz(a), (int32_t)a)                                                       \
    ROW(f32_to_u32, u64, f32, mod_rz_u32, float_to_int((double)a, mod, false), (uint32_t)a)                            \
    ROW(s64_to_f64, f64, u64, 0, s64_to_nearest64((int64_t)a), (double)(int64_t)a)                                     \
    ROW(div_u32, u32, u32, 0, divide_u32(a, b), b ? a / b : UINT32_MAX)                                                \
    ROW(rem_u32, u32, u32, 0, remainder_u32(a, b), b ? a % b : a)                                                      \
    ROW(div_s32, u32, s32, 0, divide_s32(a, b), b ? a / b : -1)                                                        \
    ROW(div_u16, u16, u16, 0, divide16(a, b), b ? a / b : 0xffff)                                                      \
    ROW(popc, u32, u32, 0, count_ones32(a), __builtin_popcount(a))                                                     \
    ROW(clz, u32, u32, 0, leading_zeros32(a), a ? __builtin_clz(a) : 32)                                               \
    ROW(brev, u32, u32, 0, reverse_bits32(a), reverse_bits32(a))                                                       \
    ROW(bfe, u32, u32, 0, extract_field32(a, b, c, true), extract_field32(a, b, c, true))                              \
    ROW(shl, u32, u32, 0, shift_left32(a, b), b > 31 ? 0 : a << b)                                                     \
    ROW(prmt, u32, u32, 0, permute_bytes(a, b, c), permute_bytes(a, b, c))                                             \
    ROW(lop3, u32, u32, table, lop3(a, b, c, mod), lop3(a, b, c, mod))                                                 \
    ROW(rcp_f64_20, u64, u64, 0, rcp_approx64(a), rcp_approx64(a))
// clang-format on
#define DEFINE(name, D, A, mod, ours, baseline) WARP(name, D, A, ours) LANE(name, D, A, baseline)
ROWS(DEFINE)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The best of a few repeats, in nanoseconds per call. */
#define MEASURE(best, call)                                                                                            \
    do {                                                                                                               \
        (best) = 1e30;                                                                                                 \
        for (int repeat = 0; repeat < REPEATS; repeat++) {                                                             \
            double start = now();                                                                                      \
            for (int round = 0; round < ROUNDS; round++) {                                                             \
                call;                                                                                                  \
                __asm__ volatile("" ::: "memory");                                                                     \
            }                                                                                                          \
            double t = (now() - start) / ROUNDS;                                                                       \
            (best) = t < (best) ? t : (best);                                                                          \
        }                                                                                                              \
    } while (0)

static void fill(void)
{
    uint64_t state = 1;
    for (int k = 0; k < 3; k++) {
        for (int l = 0; l < LANES; l++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            uint32_t r = (uint32_t)(state >> 32);
            in_f32[k][l] = 0.1f + (float)(r % 100000) * 1e-3f;
            in_u16[k][l] = (uint16_t)(0x3000 + r % 0x2000);
            in_u32[k][l] = k == 0 ? r : r % 40 + 1;
            in_s32[k][l] = (int32_t)in_u32[k][l];
            in_u64[k][l] = state;
        }
    }
}

int main(void)
{
    fill();
    printf("%-12s %12s %12s %8s\n", "", "ns per warp", "baseline", "ratio");
#define RUN(name, D, A, mod, ours, baseline)                                                                           \
    {                                                                                                                  \
        double warp, lane;                                                                                             \
        MEASURE(warp, warp_##name(in_##A[0], in_##A[1], in_##A[2], (D *)out, mod));                                    \
        MEASURE(lane, lane_##name(in_##A[0], in_##A[1], in_##A[2], (D *)out, mod));                                    \
        printf("%-12s %12.1f %12.1f %8.2f\n", #name, warp, lane, warp / lane);                                         \
    }
    ROWS(RUN)
    return 0;
}
