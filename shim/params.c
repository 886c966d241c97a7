#include "shim/params.h"

#include <string.h>

#include <opsdebug/capture.h>

enum { EXTRA_MAX = 16 }; /* pairs in `extra`; the driver knows two */

static bool extra_buffer(void **extra, const void **buffer, size_t *bytes)
{
    const size_t *size = NULL;
    *buffer = NULL;
    for (unsigned i = 0; extra && i < 2 * EXTRA_MAX && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[i + 1];
        else
            return false;
    }
    *bytes = size ? *size : 0;
    return *buffer && *bytes && *bytes <= PTX_PARAM_BYTES_MAX;
}

static bool has_layout(const struct tracked_kernel *kernel)
{
    return __atomic_load_n(&kernel->layout_source, __ATOMIC_ACQUIRE) != CAP_LAYOUT_UNKNOWN;
}

static bool pointers_present(const struct tracked_kernel *kernel, void **kernel_params)
{
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if ((uintptr_t)kernel_params[i] < 4096)
            return false;
    return true;
}

bool params_known(const struct tracked_kernel *kernel, void **kernel_params, void **extra)
{
    const void *buffer;
    size_t bytes;
    if (kernel_params)
        return has_layout(kernel) && pointers_present(kernel, kernel_params);
    if (extra)
        return extra_buffer(extra, &buffer, &bytes);
    return has_layout(kernel) && kernel->param_count == 0;
}

uint32_t params_size(const struct tracked_kernel *kernel, void **kernel_params, void **extra)
{
    const void *buffer;
    size_t bytes;
    if (!params_known(kernel, kernel_params, extra))
        return 0;
    if (kernel_params)
        return kernel->param_bytes;
    return extra && extra_buffer(extra, &buffer, &bytes) ? (uint32_t)bytes : 0;
}

void params_pack(const struct tracked_kernel *kernel, void **kernel_params, void **extra, uint8_t *out, uint32_t bytes)
{
    const void *buffer;
    size_t size;
    if (!bytes)
        return;
    if (kernel_params) {
        for (uint32_t i = 0; i < kernel->param_count; i++)
            memcpy(out + kernel->params[i].offset, kernel_params[i], kernel->params[i].size);
    } else if (extra_buffer(extra, &buffer, &size))
        memcpy(out, buffer, bytes);
}
