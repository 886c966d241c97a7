/* Everything that CUPTI's headers declare and nothing else here defines; see softgpu/driver_stubs.c. Nothing in this
 * device counts events or samples instructions. */
int cupti_unsupported(const char *name);

#define NAME(name)                                                                                                     \
    __attribute__((weak, visibility("default"))) int name(void);                                                       \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return cupti_unsupported(#name);                                                                               \
    }
#include "softgpu/cupti_names.h"
