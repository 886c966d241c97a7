/* ptx_random.h - the text of a random kernel: it ends, no two threads race, and its results do not depend on the order
 * in which threads run. So any two ways of running it must agree on every bit. */
#ifndef TESTS_PTX_RANDOM_H
#define TESTS_PTX_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* The kernel `k(u64 cells, u64 input, u64 out, u64 sums, u32 n, s16 small)`:
 *     cells  RANDOM_REGIONS regions of RANDOM_CELL * threads bytes, each thread its own bytes in each
 *     input  RANDOM_INPUT bytes, only read
 *     out    RANDOM_OUT bytes for each thread, written at its end
 *     sums   64 bytes that every thread adds to
 * `threads` is the grid's, rounded up to a power of two. */
enum { RANDOM_REGIONS = 8, RANDOM_CELL = 32, RANDOM_INPUT = 4096, RANDOM_OUT = 256, RANDOM_TEXT = 1 << 18 };

struct random_shape {
    uint32_t grid, block[3], threads;
};

/* The same seed gives the same text and shape. */
void random_kernel(uint64_t seed, char *text, struct random_shape *shape);

#endif
