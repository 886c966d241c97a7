/* injection.h - the library that CUDA_INJECTION64_PATH names. */
#ifndef SOFTGPU_INJECTION_H
#define SOFTGPU_INJECTION_H

#include <stdbool.h>

/* Loads it and calls its InitializeInjection(), the first time. True when it did; the library may have begun to watch.
 */
bool injection_load(void);

#endif
