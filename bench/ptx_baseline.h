/* ptx_baseline.h - what bench_ptx compares the executor with. */
#ifndef BENCH_PTX_BASELINE_H
#define BENCH_PTX_BASELINE_H

#include <stdint.h>

enum { BENCH_SIDE = 256, BENCH_COUNT = 1 << 20, BENCH_HASHES = 1 << 16 };
enum bench_loop {
    BENCH_VECTOR_ADD,
    BENCH_MATRIX,
    BENCH_TENSOR,
    BENCH_MANDELBROT,
    BENCH_HASH,
    BENCH_SUM,
    BENCH_LOOP_COUNT
};
struct bench_data { /* BENCH_COUNT elements each */
    float *a, *b, *c;
    uint32_t *u;
};
/* gcc -O3, for the processor it is built on: without and with the vectoriser. */
extern void (*const bench_scalar[BENCH_LOOP_COUNT])(const struct bench_data *d);
extern void (*const bench_vector[BENCH_LOOP_COUNT])(const struct bench_data *d);

#endif
