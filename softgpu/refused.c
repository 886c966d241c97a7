/* What a stub returns: the error that refused.def names for its function, not-supported where it names none. */
#include <string.h>

#include "softgpu/driver.h"

/* Rows of the other libraries name errors of theirs, which only they look up. */
static const struct {
    const char *name, *error;
} rows[] = {
#define REFUSED(name, error, reason) {#name, #error},
#include "softgpu/refused.def"
};

CUresult refuse(const char *name);
CUresult refuse(const char *name)
{
    log_unsupported(name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return strcmp(rows[i].error, "CUDA_ERROR_INVALID_CONTEXT") ? CUDA_ERROR_NOT_SUPPORTED
                                                                       : CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_ERROR_NOT_SUPPORTED;
}
