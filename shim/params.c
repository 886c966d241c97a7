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

int32_t params_measure(const struct tracked_kernel *kernel, void **kernel_params, void **extra)
{
    const void *buffer;
    size_t bytes;
    if (extra && !kernel_params)
        return extra_buffer(extra, &buffer, &bytes) ? (int32_t)bytes : PARAMS_UNKNOWN;
    if (!has_layout(kernel) || !(kernel_params ? pointers_present(kernel, kernel_params) : kernel->param_count == 0))
        return PARAMS_UNKNOWN;
    return kernel_params ? (int32_t)kernel->param_bytes : 0;
}

/* Nearly all arguments are pointers and 32-bit numbers. */
static void pack_one(uint8_t *out, const void *value, uint32_t size)
{
    if (size == 8)
        memcpy(out, value, 8);
    else if (size == 4)
        memcpy(out, value, 4);
    else
        memcpy(out, value, size);
}

void params_pack(const struct tracked_kernel *kernel, void **kernel_params, void **extra, uint8_t *out, uint32_t bytes)
{
    const void *buffer;
    size_t size;
    if (!bytes)
        return;
    if (kernel_params) {
        for (uint32_t i = 0; i < kernel->param_count; i++)
            pack_one(out + kernel->params[i].offset, kernel_params[i], kernel->params[i].size);
    } else if (extra_buffer(extra, &buffer, &size))
        memcpy(out, buffer, bytes);
}
