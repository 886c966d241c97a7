/* slow_disk.c - preloaded after the shim: making the first file takes its time, so that what is done meanwhile meets a
 * tool that is only starting. */
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT int posix_fallocate(int fd, off_t from, off_t bytes);

int posix_fallocate(int fd, off_t from, off_t bytes)
{
    int (*next)(int, off_t, off_t) = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    static int before;
    if (!__atomic_exchange_n(&before, 1, __ATOMIC_RELAXED))
        usleep(500000);
    return next(fd, from, bytes);
}
