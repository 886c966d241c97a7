/* Handles and what is set in them. */
#include "softgpu/blas/blas.h"

#include <stdlib.h>

#include "softgpu/blas/log.h"

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    if (!handle)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasHandle_t h = malloc(sizeof *h);
    if (!h)
        return CUBLAS_STATUS_ALLOC_FAILED;
    if (!blas_handle_init(h)) {
        free(h);
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *handle = h;
    return CUBLAS_STATUS_SUCCESS;
}

/* Waits for the stream, as the real one does to free its workspace. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (!blas_handle_alive(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (blas_enter())
        blas_driver()->cuStreamSynchronize(handle->stream);
    blas_handle_end(handle);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    if (!version)
        return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    return blas_property(type, value);
}

size_t cublasGetCudartVersion(void)
{
    return CUDA_VERSION;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    return blas_status_name(status);
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return blas_status_string(status);
}

/* Nothing here needs a workspace; it is only checked. */
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
    enum { ALIGNMENT = 256 };
    if (!blas_handle_alive(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return (uintptr_t)workspace % ALIGNMENT ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

/* Called by the legacy interface with the name of a routine and the number of a bad argument; nothing is printed here.
 */
void cublasXerbla(const char *srName, int info)
{
}

/* ---- logging: a line for each routine ---------------------------------------------------------------------------- */

static cublasLogCallback log_callback;

static void pass_on(int level, const char *function, const char *message)
{
    enum { LINE = 256 };
    char line[LINE];
    cublasLogCallback to = __atomic_load_n(&log_callback, __ATOMIC_ACQUIRE);
    snprintf(line, sizeof line, "%s: %s\n", function, message);
    if (to)
        to(line);
}

cublasStatus_t cublasLoggerConfigure(int logIsOn, int logToStdOut, int logToStdErr, const char *logFileName)
{
    blas_log_clear_files();
    if (logToStdOut)
        blas_log_add_file(stdout);
    if (logToStdErr)
        blas_log_add_file(stderr);
    blas_log_set_mask(logIsOn ? ~0u : 0);
    return logFileName && !blas_log_open_file(logFileName) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

/* A callback turns the log on, as documented. */
cublasStatus_t cublasSetLoggerCallback(cublasLogCallback userCallback)
{
    __atomic_store_n(&log_callback, userCallback, __ATOMIC_RELEASE);
    blas_log_set_callback(userCallback ? pass_on : NULL);
    if (userCallback)
        blas_log_set_mask(~0u);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetLoggerCallback(cublasLogCallback *userCallback)
{
    if (!userCallback)
        return CUBLAS_STATUS_INVALID_VALUE;
    *userCallback = __atomic_load_n(&log_callback, __ATOMIC_ACQUIRE);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- one setter and one getter for each field ------------------------------------------------------------------- */

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)
{
    if (!blas_handle_alive(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = streamId;
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_pointer_mode(cublasPointerMode_t mode)
{
    return mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE;
}

static bool is_atomics_mode(cublasAtomicsMode_t mode)
{
    return mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED;
}

static bool is_math_mode(cublasMath_t mode)
{
    switch (mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) {
    case CUBLAS_DEFAULT_MATH:
    case CUBLAS_TENSOR_OP_MATH:
    case CUBLAS_PEDANTIC_MATH:
    case CUBLAS_TF32_TENSOR_OP_MATH:
    case CUBLAS_FP32_EMULATED_BF16X9_MATH:
    case CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH:
        return true;
    default:
        return false;
    }
}

static bool is_strategy(cublasEmulationStrategy_t strategy)
{
    return strategy <= CUBLAS_EMULATION_STRATEGY_EAGER;
}

static bool is_control(cudaEmulationMantissaControl control)
{
    return control == CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC || control == CUDA_EMULATION_MANTISSA_CONTROL_FIXED;
}

static bool is_count(int count)
{
    return count >= 0;
}

static bool is_any(int64_t value)
{
    return true;
}

static bool is_any_pointer(const int *pointer)
{
    return true;
}

#define SETTER(name, type, field, valid)                                                                               \
    cublasStatus_t name(cublasHandle_t handle, type value)                                                             \
    {                                                                                                                  \
        if (!blas_handle_alive(handle))                                                                                \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        if (!valid(value))                                                                                             \
            return CUBLAS_STATUS_INVALID_VALUE;                                                                        \
        handle->field = value;                                                                                         \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
#define GETTER(name, type, field)                                                                                      \
    cublasStatus_t name(cublasHandle_t handle, type *value)                                                            \
    {                                                                                                                  \
        if (!blas_handle_alive(handle))                                                                                \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        if (!value)                                                                                                    \
            return CUBLAS_STATUS_INVALID_VALUE;                                                                        \
        *value = handle->field;                                                                                        \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
#define FIELD(suffix, type, field, valid)                                                                              \
    SETTER(cublasSet##suffix, type, field, valid)                                                                      \
    GETTER(cublasGet##suffix, type, field)

GETTER(cublasGetStream_v2, cudaStream_t, stream)
FIELD(PointerMode_v2, cublasPointerMode_t, pointer_mode, is_pointer_mode)
FIELD(AtomicsMode, cublasAtomicsMode_t, atomics_mode, is_atomics_mode)
FIELD(MathMode, cublasMath_t, math_mode, is_math_mode)
FIELD(SmCountTarget, int, sm_count_target, is_count)
FIELD(EmulationStrategy, cublasEmulationStrategy_t, emulation_strategy, is_strategy)
FIELD(EmulationSpecialValuesSupport, cudaEmulationSpecialValuesSupport, emulation_special_values, is_any)
FIELD(FixedPointEmulationMantissaControl, cudaEmulationMantissaControl, emulation_mantissa_control, is_control)
FIELD(FixedPointEmulationMaxMantissaBitCount, int, emulation_max_bits, is_count)
FIELD(FixedPointEmulationMantissaBitOffset, int, emulation_bit_offset, is_any)
FIELD(FixedPointEmulationMantissaBitCountPointer, int *, emulation_bit_count, is_any_pointer)
