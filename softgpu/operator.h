/* operator.h - how softgpu's own libraries (libcublas) put work into streams.
 *
 * An operator takes the place of a kernel: it runs in stream order on a thread of the stream, events and waits see it,
 * SOFTGPU_FAULTS and SOFTGPU_VARIANT apply to it under its function's name, and it ends its context when it touches
 * memory that is not there. softgpu's libcuda exports these functions; no other driver has them, so a library finds
 * them with dlsym() and refuses to work without. Everything else it asks of the driver goes through the public names.
 */
#ifndef SOFTGPU_OPERATOR_H
#define SOFTGPU_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

/* Flaws of arithmetic that run() applies itself. */
enum softgpu_flaw {
    SOFTGPU_FLAW_TF32 = 1,    /* operands of float products rounded to 10 bits of mantissa */
    SOFTGPU_FLAW_FP16ACC = 2, /* float sums rounded to half precision */
    SOFTGPU_FLAW_FTZ = 4,     /* float subnormals are zero */
};

struct softgpu_operator_state;
struct softgpu_operator {
    const char *name;                            /* what SOFTGPU_FAULTS matches; must outlive the operator */
    void (*run)(struct softgpu_operator *self);  /* in stream order; not after an error of the context */
    void (*drop)(struct softgpu_operator *self); /* exactly once after a submission that succeeded, run or not */
    /* Set before run(): */
    uint32_t flaws; /* enum softgpu_flaw */
    uint64_t seed;  /* not 0: an order of sums of the device's own choice */
    struct softgpu_operator_state *state;
};

/* Puts the operator into the stream. On an error nothing was kept, and drop() is not called. Thread-safe. */
#pragma GCC visibility push(default)
CUresult softgpu_operator_submit(CUstream stream, struct softgpu_operator *self);

/* Within run(): where `rows` rows of `row_bytes`, each `pitch` after the one before, lie in the host's memory, with the
 * same pitch. NULL when a byte of it cannot be reached: run() then returns, and the context gets an error. Memory that
 * the device holds in pieces is copied, and copied back after run(). Valid until run() returns. Not NULL for an empty
 * region. */
void *softgpu_operator_map(struct softgpu_operator *self, CUdeviceptr address, uint64_t rows, uint64_t row_bytes,
                           uint64_t pitch, bool write);
/* Before anything is written: what of a region that was mapped for writing will be. */
void softgpu_operator_mark(struct softgpu_operator *self, CUdeviceptr address, uint64_t bytes);

/* A line for SOFTGPU_LOG, once per name. */
void softgpu_operator_note(const char *name);
#pragma GCC visibility pop

#endif
