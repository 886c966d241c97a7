/* Names and texts of errors. */
#include "softgpu/driver.h"

#define RUNTIME(name, text)

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = NULL;
    switch (error) {
#define DRIVER(name, text)                                                                                             \
    case name:                                                                                                         \
        *pStr = #name;                                                                                                 \
        return CUDA_SUCCESS;
#define BOTH(name, runtime, text) DRIVER(name, text)
#include "softgpu/errors.def"
#undef DRIVER
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = NULL;
    switch (error) {
#define DRIVER(name, text)                                                                                             \
    case name:                                                                                                         \
        *pStr = text;                                                                                                  \
        return CUDA_SUCCESS;
#include "softgpu/errors.def"
    }
    return CUDA_ERROR_INVALID_VALUE;
}
