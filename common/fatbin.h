/* fatbin.h - reads NVIDIA's fat binary container: which PTX and which machine code a module image holds.
 *
 * Layout as measured on CUDA 13.0 (docs/fatbin.md). Machine code is never looked into; its entries are only listed.
 * All functions are pure and thread-safe, take hostile bytes, and never read outside [data, data + bytes).
 */
#ifndef COMMON_FATBIN_H
#define COMMON_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <opsdebug/status.h>

enum { FATBIN_MAGIC = 0x466243b1u, FATBIN_DATA_MAGIC = 0xba55ed50u };

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_ELF = 2 };
enum fatbin_flags {
    FATBIN_LZ4 = 0x2000,
    FATBIN_ZSTD = 0x8000,
    FATBIN_ARCH_SPECIFIC = 0x100000,
    FATBIN_FAMILY = 0x200000
};

struct fatbin_entry {
    uint32_t kind, sm;
    uint32_t major, minor; /* PTX ISA version */
    uint64_t flags;
    const uint8_t *payload; /* inside the image */
    uint64_t payload_bytes; /* as stored: compressed when flags say so, without padding when it is known */
    uint64_t plain_bytes;   /* uncompressed size, or payload_bytes when stored plainly */
    uint64_t offset;        /* of the entry in the image, for messages */
};

/* Size in bytes of the container that starts at `data` (header and all entries), from its header alone: at least 16
 * readable bytes. 0 when the magic is another. For images that are handed over as a bare pointer. */
uint64_t fatbin_data_size(const void *data);

/* Walks the entries: *offset starts at 0; false at the end, or with *diag filled (text not empty) when the bytes are
 * malformed. */
bool fatbin_next(const void *data, size_t bytes, size_t *offset, struct fatbin_entry *entry, struct diag *diag);

/* The plain payload of an entry in a new NUL-terminated buffer (*out, free with free(); *out_bytes without the NUL). */
enum status fatbin_payload(const struct fatbin_entry *entry, char **out, size_t *out_bytes, struct diag *diag);

/* The PTX that fits a device of capability `sm` (75, 90) best: the highest target not above it; where none is,
 * NOT_FOUND. sm 0 takes the highest target there is. `data` may also be plain PTX text, which is returned as a copy. */
enum status fatbin_ptx(const void *data, size_t bytes, uint32_t sm, char **out, size_t *out_bytes, struct diag *diag);

/* An image may be several containers one behind the other, each at a multiple of 8: those of a program that was linked
 * as device code (-rdc=true), whose PTX belongs together. Walks them: *offset starts at 0; false at the end, and where
 * something else begins. *size is cut off at the image's end. */
bool fatbin_next_container(const void *data, size_t bytes, size_t *offset, const void **container, size_t *size);
/* libcudadevrt's own container, which nvcc links into programs with -rdc=true: its functions are no program's. */
bool fatbin_is_device_runtime(const void *data, size_t bytes);

#endif
