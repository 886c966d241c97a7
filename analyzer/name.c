#include "analyzer/name.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "common/buf.h"

/* A mangled name above this length is hostile: the demangler's work and stack grow with it. */
enum { MANGLED_LIMIT = 8192 };

static char *demangle(const char *mangled, int options)
{
    char *plain = NULL;
    if (strncmp(mangled, "_Z", 2) == 0 && strlen(mangled) <= MANGLED_LIMIT)
        plain = cplus_demangle(mangled, options | DMGL_GNU_V3);
    for (char *tag = plain; tag && (tag = strstr(tag, "[abi:"));) {
        char *end = strchr(tag, ']');
        if (!end)
            break;
        memmove(tag, end + 1, strlen(end + 1) + 1);
    }
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

char *name_shell(const char *words)
{
    struct buf text = {0};
    for (const char *word = words; *word; word += strlen(word) + 1) {
        bool plain =
            word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")] == '\0';
        buf_text(&text, word == words ? "" : " ");
        buf_text(&text, plain ? "" : "'");
        for (const char *p = word; *p; p++) {
            if (*p == '\'')
                buf_text(&text, "'\\''");
            else
                buf_append(&text, p, 1);
        }
        buf_text(&text, plain ? "" : "'");
    }
    buf_append(&text, "", 1);
    if (text.failed)
        buf_free(&text);
    return text.data;
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
    static const char *const headers[] = {"cuda_runtime.h", "device_functions.h", "device_atomic_functions.hpp",
                                          "opsdebug.h"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(file, folders[i]))
            return false;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (strncmp(name_file(file), headers[i], strlen(headers[i])) == 0)
            return false;
    return true;
}
