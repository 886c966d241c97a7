/* softgpu_test.h - what the tests of softgpu share: the driver's whole interface and short checks. */
#ifndef TESTS_UNIT_SOFTGPU_TEST_H
#define TESTS_UNIT_SOFTGPU_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#define ok(call)           assert_int_equal((call), CUDA_SUCCESS)
#define fails(error, call) assert_int_equal((call), (error))

static inline int use_primary_context(void **state)
{
    CUcontext c;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&c, 0) != CUDA_SUCCESS)
        return 1;
    return cuCtxSetCurrent(c) != CUDA_SUCCESS;
}

/* Between tests: whatever a test did to the context, the next one finds a fresh one. */
static inline int reset_context(void **state)
{
    return cuDevicePrimaryCtxReset_v2(0) != CUDA_SUCCESS;
}

#endif
