#include "analyzer/name.h"

#include <string.h>

#include <libiberty/demangle.h>

/* A mangled name above this length is hostile: the demangler's work and stack grow with it. */
enum { MANGLED_LIMIT = 8192 };

static char *demangle(const char *mangled, int options)
{
    char *plain = NULL;
    if (strncmp(mangled, "_Z", 2) == 0 && strlen(mangled) <= MANGLED_LIMIT)
        plain = cplus_demangle(mangled, options | DMGL_GNU_V3);
    return plain ? plain : strdup(mangled);
}

char *name_short(const char *mangled)
{
    return demangle(mangled, DMGL_NO_OPTS);
}

char *name_full(const char *mangled)
{
    return demangle(mangled, DMGL_PARAMS | DMGL_ANSI);
}

const char *name_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Templates and intrinsics of the toolkit's headers are inlined into programs and kernels, and their lines are not
 * where a person wrote the call. */
bool name_own_source(const char *file)
{
    static const char *const folders[] = {"/usr/include/", "/usr/lib/",     "/targets/", "/cuda/include/",
                                          "/include/c++/", "/include/crt/", ".cudafe1."};
    static const char *const headers[] = {"cuda_runtime.h", "device_functions.h", "device_atomic_functions.hpp"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(file, folders[i]))
            return false;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (strncmp(name_file(file), headers[i], strlen(headers[i])) == 0)
            return false;
    return true;
}
