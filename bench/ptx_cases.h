/* ptx_cases.h - the kernels of tests/ptx/bench.ptx as the benchmarks run them. */
#ifndef BENCH_PTX_CASES_H
#define BENCH_PTX_CASES_H

#include "bench/ptx_baseline.h"

static const struct bench_case {
    const char *name, *kernel;
    enum bench_loop baseline;
    uint32_t grid[2], block[2];
    const char *pointers;    /* the first arguments: fields of bench_data */
    int last[2], last_count; /* the arguments behind them */
} bench_cases[] = {
    {"vector_add", "vector_add", BENCH_VECTOR_ADD, {BENCH_COUNT / 256, 1}, {256, 1}, "abc", {BENCH_COUNT}, 1},
    {"sgemm 32x8", "matrix_multiply", BENCH_MATRIX, {BENCH_SIDE / 32, BENCH_SIDE / 8}, {32, 8}, "abc", {BENCH_SIDE}, 1},
    {"sgemm 16x16",
     "matrix_multiply",
     BENCH_MATRIX,
     {BENCH_SIDE / 16, BENCH_SIDE / 16},
     {16, 16},
     "abc",
     {BENCH_SIDE},
     1},
    {"sgemm tiled", "matrix_tiled", BENCH_MATRIX, {BENCH_SIDE / 16, BENCH_SIDE / 16}, {16, 16}, "abc", {BENCH_SIDE}, 1},
    {"tensor f16", "matrix_tensor", BENCH_TENSOR, {BENCH_SIDE / 32, BENCH_SIDE / 32}, {32, 1}, "abc", {BENCH_SIDE}, 1},
    {"mandelbrot", "mandelbrot", BENCH_MANDELBROT, {BENCH_SIDE / 64, BENCH_SIDE}, {64, 1}, "u", {BENCH_SIDE, 200}, 2},
    {"hash", "hash", BENCH_HASH, {BENCH_HASHES / 256, 1}, {256, 1}, "u", {100}, 1},
    {"tree_sum", "tree_sum", BENCH_SUM, {BENCH_COUNT / 256, 1}, {256, 1}, "ac", {BENCH_COUNT}, 1},
    {"shuffle_sum", "shuffle_sum", BENCH_SUM, {BENCH_COUNT / 256, 1}, {256, 1}, "ac", {BENCH_COUNT}, 1},
};
enum { BENCH_CASES = sizeof bench_cases / sizeof *bench_cases };

#endif
