/* launch.h - one kernel launch: checked when it is made, run later by its stream's worker. */
#ifndef SOFTGPU_LAUNCH_H
#define SOFTGPU_LAUNCH_H

#include "softgpu/module.h"

struct launch {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    bool cooperative;
    void **params; /* as in cuLaunchKernel; NULL with `extra` */
    void **extra;
    const void *packed; /* instead of both: the parameters as the kernel has them */
};
/* CUDA_ERROR_INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, COOPERATIVE_LAUNCH_TOO_LARGE for what cannot run; these are not
 * sticky. */
CUresult launch_submit(struct context *context, struct function *function, struct stream *stream,
                       const struct launch *launch);

/* The same in two steps, for graphs. Checks the shape and packs the parameters into `out` (param_bytes of the kernel).
 */
CUresult launch_check(const struct function *function, const struct launch *launch, void *out);
/* The operation, to be run in any stream's order, several times if wanted. */
CUresult launch_make(struct function *function, const struct launch *launch, struct op **out);

/* Result of a fault, as a device would report it. */
CUresult launch_fault_error(enum ptx_fault_kind kind);

#endif
