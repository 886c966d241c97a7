#include "analyzer/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/diag.h"

enum { ALIGNMENT = 64, PREFIX = 10, HEADER = 256 };

static bool write_header(FILE *f, enum element_type type, uint64_t count)
{
    char text[HEADER];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ",), }",
                     element_numpy(type), count);
    size_t total = ((size_t)(PREFIX + n + 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, length = total - PREFIX;
    memset(text + n, ' ', length - (size_t)n);
    text[length - 1] = '\n';
    const uint8_t prefix[PREFIX] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)length, (uint8_t)(length >> 8),
    };
    return fwrite(prefix, 1, PREFIX, f) == PREFIX && fwrite(text, 1, length, f) == length;
}

static bool write_widened(FILE *f, const uint8_t *data, uint64_t count)
{
    bool ok = true;
    for (uint64_t i = 0; ok && i < count; i++) {
        const uint8_t wide[4] = {0, 0, data[2 * i], data[2 * i + 1]};
        ok = fwrite(wide, 1, sizeof wide, f) == sizeof wide;
    }
    return ok;
}

enum status npy_write(const char *path, enum element_type type, const uint8_t *data, uint64_t bytes, struct diag *diag)
{
    uint64_t count = bytes / element_bytes(type);
    FILE *f = fopen(path, "wbe");
    if (!f)
        return diag_set(diag, STATUS_IO, path, -1, "%s", strerror(errno));
    bool ok = write_header(f, type, count);
    if (type == ELEMENT_BF16)
        ok = ok && write_widened(f, data, count);
    else
        ok = ok && fwrite(data, element_bytes(type), count, f) == count;
    int problem = errno;
    if (fclose(f) != 0 && ok) {
        problem = errno;
        ok = false;
    }
    return ok ? STATUS_OK : diag_set(diag, STATUS_IO, path, -1, "%s", strerror(problem));
}
