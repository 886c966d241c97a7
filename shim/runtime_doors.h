/* runtime_doors.h - which of several cudarts in one process a call is meant for.
 *
 * A program or library is linked with cudaMalloc of a version that is named as its library
 * (cudaMalloc@libcudart.so.12). One cudart's streams and kernels mean nothing to another one, so a wrapper that took
 * the first it finds would break whoever brought the second. The shim therefore exports each entry point of cudart once
 * per version.
 */
#ifndef SHIM_RUNTIME_DOORS_H
#define SHIM_RUNTIME_DOORS_H

#include <stdint.h>

#include "shim/hooks.h"

/* Set by the entry that the caller was bound to, taken (and set to 0) by the wrapper's look for the real function; 0:
 * bound without a version. */
extern __thread uint32_t runtime_doors_asked __attribute__((tls_model("initial-exec")));

/* The function of the version `asked`; NULL when there is none. */
void *runtime_doors_real(enum hook hook, uint32_t asked);

#endif
