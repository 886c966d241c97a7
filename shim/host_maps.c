#include "shim/host_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "shim/capture_write.h"
#include "shim/intern.h"

enum { RECORDS_MAX = 8192, LINE_MAX_BYTES = 4400 /* a path, and what stands before it */ };

struct mapping {
    uint64_t start, end;
    uint32_t kind;
    char path[LINE_MAX_BYTES];
};

/* Drivers map their devices, and reserve addresses that nobody may read; neither is the host's memory. */
static bool parse(const char *line, struct mapping *out)
{
    char rights[8];
    int at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &out->start, &out->end, rights, &at) < 3 ||
        rights[0] != 'r')
        return false;
    snprintf(out->path, sizeof out->path, "%s", at ? line + at : "");
    if (strncmp(out->path, "/dev/", 5) == 0 && strncmp(out->path, "/dev/shm/", 9) != 0 &&
        strncmp(out->path, "/dev/zero", 9) != 0)
        return false;
    uint64_t here = (uint64_t)(uintptr_t)rights;
    out->kind = CAP_HOST_MAP_OTHER;
    if (strcmp(out->path, "[heap]") == 0)
        out->kind = CAP_HOST_MAP_HEAP;
    else if (strcmp(out->path, "[stack]") == 0 || (here >= out->start && here < out->end))
        out->kind = CAP_HOST_MAP_STACK;
    else if (out->path[0] == '/')
        out->kind = CAP_HOST_MAP_FILE;
    return true;
}

static void write_mapping(const struct mapping *mapping)
{
    uint32_t path = mapping->kind == CAP_HOST_MAP_FILE ? intern_string(mapping->path) : 0;
    struct cap_host_map *record = capture_define(CAP_HOST_MAP, sizeof *record);
    if (!record)
        return;
    record->start = mapping->start;
    record->end = mapping->end;
    record->kind = mapping->kind;
    record->path = path;
    capture_commit(record);
}

void host_maps_record(void)
{
    static bool done; /* atomic */
    static char buffer[LINE_MAX_BYTES];
    static struct mapping mapping; /* one thread comes here, once: not on a stack that may be small */
    size_t have = 0, records = 0;
    ssize_t got = 0;
    if (__atomic_exchange_n(&done, true, __ATOMIC_ACQ_REL))
        return;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && records < RECORDS_MAX) {
        got = read(fd, buffer + have, sizeof buffer - 1 - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        have += (size_t)got;
        buffer[have] = '\0';
        char *line = buffer, *end;
        for (; records < RECORDS_MAX && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            if (!parse(line, &mapping))
                continue;
            write_mapping(&mapping);
            records++;
        }
        have -= (size_t)(line - buffer);
        memmove(buffer, line, have);
        if (have == sizeof buffer - 1) /* a line that long is none of a mapping's */
            break;
    }
    if (fd >= 0)
        close(fd);
}
