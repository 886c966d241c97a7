#include "analyzer/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status regular_open(int folder, const char *name, const char *where, int *fd, struct stat *st, struct diag *diag)
{
    *st = (struct stat){0};
    *fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return diag_set(diag, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, where, -1, "%s", strerror(errno));
    if (fstat(*fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size >= 0)
        return STATUS_OK;
    close(*fd);
    *fd = -1;
    return diag_set(diag, STATUS_BAD_INPUT, where, -1, "not a regular file");
}

/* A file that is shortened meanwhile gives fewer bytes. */
static enum status read_all(int fd, const char *path, char *data, size_t room, size_t *bytes, struct diag *diag)
{
    for (*bytes = 0; *bytes < room;) {
        ssize_t n = read(fd, data + *bytes, room - *bytes);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return diag_set(diag, STATUS_IO, path, (long)*bytes, "%s", strerror(errno));
        *bytes += (size_t)n;
    }
    return STATUS_OK;
}

enum status regular_read(const char *path, size_t limit, char **out, size_t *bytes, struct diag *diag)
{
    int fd;
    struct stat st;
    char *data = NULL;
    enum status status = regular_open(AT_FDCWD, path, path, &fd, &st, diag);
    if (status)
        return status;
    if ((uintmax_t)st.st_size > limit)
        status = diag_set(diag, STATUS_BAD_INPUT, path, -1, "%jd bytes; at most %zu were expected",
                          (intmax_t)st.st_size, limit);
    else if (!(data = malloc((size_t)st.st_size + 1)))
        status = diag_set(diag, STATUS_NO_MEMORY, path, -1, "no memory for %jd bytes", (intmax_t)st.st_size);
    else
        status = read_all(fd, path, data, (size_t)st.st_size, bytes, diag);
    close(fd);
    if (status || !data) {
        free(data);
        return status;
    }
    data[*bytes] = '\0';
    *out = data;
    return STATUS_OK;
}
