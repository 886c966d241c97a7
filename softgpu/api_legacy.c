/* Launches as before cuLaunchKernel: shape, shared memory and parameters are set on the function, one after the other,
 * then it is launched. They are deprecated, but cuda.h still has them. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/launch.h"

enum { PARAM_LIMIT = 32764 }; /* bytes of parameters that a kernel can have */

struct legacy_launch {
    uint32_t block[3], shared, param_bytes;
    uint8_t params[PARAM_LIMIT];
};

/* The settings of a function in the current context; of `f`, with the lock. */
static CUresult enter_legacy(CUfunction handle, struct function **f)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = function_from(handle, c, f);
    if (result != CUDA_SUCCESS)
        return result;
    context_lock();
    if (!(*f)->legacy)
        (*f)->legacy = calloc(1, sizeof *(*f)->legacy);
    if ((*f)->legacy)
        return CUDA_SUCCESS;
    context_unlock();
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct function *f;
    CUresult result = enter_legacy(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        memcpy(f->legacy->block, (uint32_t[]){(uint32_t)x, (uint32_t)y, (uint32_t)z}, sizeof f->legacy->block);
    context_unlock();
    return result;
}

CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct function *f;
    CUresult result = enter_legacy(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    f->legacy->shared = bytes;
    context_unlock();
    return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    struct function *f;
    CUresult result = enter_legacy(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (numbytes > PARAM_LIMIT)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        f->legacy->param_bytes = numbytes;
    context_unlock();
    return result;
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    struct function *f;
    CUresult result = enter_legacy(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!ptr || offset < 0 || offset > PARAM_LIMIT || numbytes > PARAM_LIMIT - (unsigned)offset)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        memcpy(f->legacy->params + offset, ptr, numbytes);
    context_unlock();
    return result;
}

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return cuParamSetv(hfunc, offset, &value, sizeof value);
}

static CUresult launch(CUfunction handle, int width, int height, CUstream stream)
{
    struct function *f;
    CUresult result = enter_legacy(handle, &f);
    if (result != CUDA_SUCCESS)
        return result;
    const struct legacy_launch *l = f->legacy;
    uint32_t block[3] = {l->block[0], l->block[1], l->block[2]}, shared = l->shared;
    size_t bytes = l->param_bytes;
    void *params = malloc(bytes + 1);
    if (params)
        memcpy(params, l->params, bytes);
    context_unlock();
    if (!params)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    if (width <= 0 || height <= 0 || !block[0])
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, block[0], block[1], block[2], shared,
                                stream, NULL, extra);
    free(params);
    return result;
}

CUresult cuLaunch(CUfunction f)
{
    return launch(f, 1, 1, NULL);
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return launch(f, grid_width, grid_height, NULL);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    return launch(f, grid_width, grid_height, hStream);
}
