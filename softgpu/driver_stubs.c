/* Everything that cuda.h declares and nothing else here defines: it says so, to the caller and to the log. Weak, so
 * that a real definition takes its place; the list comes from the header, so that none is missing. */
int refuse(const char *name);

#define NAME(name)                                                                                                     \
    __attribute__((weak, visibility("default"))) int name(void);                                                       \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return refuse(#name);                                                                                          \
    }
#include "softgpu/driver_names.h"
