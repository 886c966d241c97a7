/* full_disk.c - preloaded after the shim: once FULL_AFTER bytes have been asked for in the folder OPSDEBUG_OUT there is
 * no more room on it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT int posix_fallocate(int fd, off_t from, off_t bytes);
EXPORT ssize_t write(int fd, const void *data, size_t bytes);

static long used;

static int in_capture(int fd)
{
    char link[64], path[4096];
    const char *folder = getenv("OPSDEBUG_OUT");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    return n > 0 && folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_full(long more)
{
    const char *limit = getenv("FULL_AFTER");
    return __atomic_add_fetch(&used, more, __ATOMIC_RELAXED) > (limit ? atol(limit) : 0);
}

int posix_fallocate(int fd, off_t from, off_t bytes)
{
    int (*next)(int, off_t, off_t) = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    return in_capture(fd) && is_full((long)bytes) ? ENOSPC : next(fd, from, bytes);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t (*next)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (in_capture(fd) && is_full((long)bytes)) {
        errno = ENOSPC;
        return -1;
    }
    return next(fd, data, bytes);
}
