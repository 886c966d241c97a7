/* runtime_api.h - cudart's prototypes for the rows RUNTIME_HOOK, visible like the driver's (see hooks.h). */
#ifndef SHIM_RUNTIME_API_H
#define SHIM_RUNTIME_API_H

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#endif
