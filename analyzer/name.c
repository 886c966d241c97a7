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
