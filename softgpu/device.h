/* device.h - the limits of the imitated device, which depend on its compute capability (CUDA programming guide, table
 * of technical specifications per compute capability). */
#ifndef SOFTGPU_DEVICE_H
#define SOFTGPU_DEVICE_H

#include "softgpu/driver.h"

struct device_limits {
    uint32_t threads_per_sm, blocks_per_sm;
    uint32_t shared_per_sm, shared_per_block, shared_per_block_optin, shared_reserved;
    uint32_t registers_per_sm;
    uint32_t max_threads_per_block;
    uint32_t max_block[3], max_grid[3];
};
const struct device_limits *device_limits(void);

enum {
    DEVICE_WARP = 32,
    DEVICE_REGISTERS = 32, /* per thread; PTX has virtual registers only, so every kernel is said to use this many */
};

#endif
