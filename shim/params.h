/* params.h - the packed parameter buffer of a launch, from kernelParams or from extra. */
#ifndef SHIM_PARAMS_H
#define SHIM_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/track.h"

/* How many bytes the arguments take; PARAMS_UNKNOWN when they cannot be told: an `extra` buffer describes itself,
 * kernelParams needs the kernel's layout. */
enum { PARAMS_UNKNOWN = -1 };
int32_t params_measure(const struct tracked_kernel *kernel, void **kernel_params, void **extra);

/* `out` is zeroed and has room for `bytes`, which params_measure gave. */
void params_pack(const struct tracked_kernel *kernel, void **kernel_params, void **extra, uint8_t *out, uint32_t bytes);

#endif
