/* Everything that cuda_runtime_api.h declares and nothing else here defines; see driver_stubs.c. The thread's last
 * error is set as for any other failure. */
int rt_unsupported(const char *name);
int rt_end(int result);

#define NAME(name)                                                                                                     \
    __attribute__((weak, visibility("default"))) int name(void);                                                       \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return rt_end(rt_unsupported(#name));                                                                          \
    }
#include "softgpu/runtime_names.h"
