/* Everything that cublasLt.h declares and nothing else here defines; see softgpu/driver_stubs.c. */
int blas_unsupported(const char *name);

#define NAME(name)                                                                                                     \
    __attribute__((weak, visibility("default"))) int name(void);                                                       \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return blas_unsupported(#name);                                                                                \
    }
#include "softgpu/blaslt_names.h"
