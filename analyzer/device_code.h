/* device_code.h - the PTX inside a file: a PTX text, a fat binary, or a program or library whose ELF section .nv_fatbin
 * holds fat binaries one after the other. So does __nv_relfatbin, of separately compiled code (-rdc=true): in a linked
 * program its modules are one, joined as softgpu joins them. The file is mapped, and unpacked one container at a time.
 */
#ifndef ANALYZER_DEVICE_CODE_H
#define ANALYZER_DEVICE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <opsdebug/status.h>

enum { DEVICE_CODE_PARTS = 4 };
struct device_code {
    char path[256]; /* for messages */
    void *map;
    size_t map_bytes;
    void *elf; /* libelf's, or NULL */
    struct {
        const uint8_t *data;
        size_t bytes;
        bool relocatable;       /* __nv_relfatbin */
        char *joined;           /* its PTX as one module, owned; NULL before it was given, and when it does not link */
    } parts[DEVICE_CODE_PARTS]; /* what is searched */
    size_t part_count, part, offset;
};

/* STATUS_IO: cannot be read; STATUS_BAD_INPUT: no such file format, or no device code inside. */
enum status device_code_open(const char *path, struct device_code *code, struct diag *diag);
/* The next container's PTX of the highest target as a new string (*text, free with free()). false at the end. *text is
 * NULL when *status is not STATUS_OK: STATUS_NOT_FOUND for a container that has machine code only (one without any
 * function, or that was linked from PTX given before, is passed over), else *diag says what is wrong with it. */
bool device_code_next(struct device_code *code, char **text, size_t *bytes, enum status *status, struct diag *diag);
void device_code_close(struct device_code *code);

#endif
