/* ptx_pattern.h - what a device does for an access of many threads, found by counting sets: the oracle of the
 * executor's counts. */
#ifndef TESTS_PTX_PATTERN_H
#define TESTS_PTX_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

enum { WARP = 32, MOST = 1024 };

struct pattern {
    uint32_t threads, size; /* of one block; bytes of an access */
    uint32_t offset[MOST];  /* by thread */
    bool active[MOST];
};

struct expected {
    uint64_t accesses, bytes, requests, sectors, ideal, lines, wavefronts, ideal_wavefronts, same, same_most, unique;
};

/* Offsets are from `base`; in shared memory from its start, as banks are counted. */
struct expected expect(const struct pattern *pattern, uint64_t base);

#endif
