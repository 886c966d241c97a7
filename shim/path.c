#include "shim/path.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/capture_write.h"

char *path_of(const char *format, ...)
{
    const char *folder = capture_directory();
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int name = vsnprintf(NULL, 0, format, args);
    size_t length = strlen(folder), bytes = length + 1 + (size_t)(name < 0 ? 0 : name) + 1;
    char *path = name < 0 ? NULL : malloc(bytes);
    if (path) {
        memcpy(path, folder, length);
        path[length] = '/';
        vsnprintf(path + length + 1, (size_t)name + 1, format, again);
    }
    va_end(again);
    va_end(args);
    return path;
}

char *path_of_segment(unsigned number)
{
    return path_of("segment-%06u.rec", number);
}

void path_free(char **path)
{
    free(*path);
}
