/* params.h - the packed parameter buffer of a launch, from kernelParams or from extra. */
#ifndef SHIM_PARAMS_H
#define SHIM_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/track.h"

/* Whether the arguments can be told: an `extra` buffer describes itself, kernelParams needs the kernel's layout. */
bool params_known(const struct tracked_kernel *kernel, void **kernel_params, void **extra);
uint32_t params_size(const struct tracked_kernel *kernel, void **kernel_params, void **extra); /* 0 when unknown */
/* `out` is zeroed and has room for `bytes`, which params_size gave. */
void params_pack(const struct tracked_kernel *kernel, void **kernel_params, void **extra, uint8_t *out, uint32_t bytes);

#endif
