/* ptx_defects.h - the text of a random kernel that ends, and that is sound or has some defect that checked mode knows:
 * for comparing two ways of checking it. What it leaves in memory does not depend on the order of threads where it is
 * sound. */
#ifndef TESTS_PTX_DEFECTS_H
#define TESTS_PTX_DEFECTS_H

#include <stddef.h>
#include <stdint.h>

/* The kernel `k(u64 input, u64 cells, u64 out, u64 sums, u64 table)`:
 *     input  DEFECTS_INPUT bytes, only read
 *     cells  DEFECTS_REGIONS regions of DEFECTS_CELL bytes for each thread
 *     out    DEFECTS_OUT bytes for each thread, written at its end
 *     sums   64 bytes that every thread adds to
 *     table  the addresses of input, cells, and 8 numbers */
enum { DEFECTS_REGIONS = 4, DEFECTS_CELL = 16, DEFECTS_INPUT = 8192, DEFECTS_OUT = 32, DEFECTS_TEXT = 1 << 17 };

struct defects_shape {
    uint32_t grid, block[3], threads;
};

/* `percent`: how likely each statement is to go wrong. The same seed gives the same text and shape. */
void defects_kernel(uint64_t seed, uint32_t percent, char *text, struct defects_shape *shape);

#endif
