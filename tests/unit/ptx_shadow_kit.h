/* ptx_shadow_kit.h - what the tests of shadow mode share: a kernel over x, y, z -> out, one thread each. */
#ifndef TESTS_PTX_SHADOW_KIT_H
#define TESTS_PTX_SHADOW_KIT_H

#include "tests/unit/ptx_kit.h"

enum { N = 256, BODY_LINE = 5 };
extern float x[N], y[N], z[N], out[N];
extern struct ptx_shadow_value in_shadow[3][N * 2], out_shadow[N * 2];

/* `body` computes %f0 from %f1, %f2, %f3 (x, y, z of the thread) and starts at BODY_LINE; %x1 to %x4 are their
 * addresses and out's, %r0 is the thread. Loads the kernel; the buffers have shadows. */
void shadow_start(struct kit *k, const char *body);
/* Runs `threads` threads; and once more in device mode: the bits must be the same. */
void shadow_run(struct kit *k, uint32_t threads);
void shadow_go(struct kit *k, const char *body, uint32_t threads); /* both */
const struct ptx_number_event *shadow_event(const struct kit *k, enum ptx_number_kind kind, uint32_t line);
void assert_close(double got, double want, double tolerance, const char *what); /* relative */
void fill(double low, double high, uint64_t seed);                              /* x, y and z with random numbers */

#endif
