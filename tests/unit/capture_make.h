/* capture_make.h - writes synthetic captures for tests, independently of the shim.
 *
 * Every call appends a record; capture_make_write() puts a capture directory under /tmp. Calls abort the test on
 * failure.
 */
#ifndef TESTS_CAPTURE_MAKE_H
#define TESTS_CAPTURE_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <opsdebug/capture.h>

struct capture_make {
    struct cap_header header;
    uint8_t *records; /* one segment: its header and the records */
    size_t bytes, capacity;
    uint64_t seq; /* of the next record */
    uint32_t next_id[64];
    char path[64]; /* "" until written */
};

void capture_make_start(struct capture_make *m);
void capture_make_end(struct capture_make *m); /* removes the directory, too */
/* Writes capture.bin, one segment and the blobs so far. Returns the path. May be called again. */
const char *capture_make_write(struct capture_make *m);
void capture_make_remove(const char *path);

/* Appends a record of `bytes` bytes and `tail_bytes` more; head.size and head.seq are filled in. Returns the seq. */
uint64_t capture_make_record(struct capture_make *m, void *record, size_t bytes, const void *tail, size_t tail_bytes);

uint32_t capture_make_string(struct capture_make *m, const char *text);
uint32_t capture_make_stack(struct capture_make *m, const uint64_t *frames, uint32_t count);
void capture_make_option(struct capture_make *m, const char *name, const char *value);
/* The image is stored as a blob; NULL: could not be read. */
uint32_t capture_make_module(struct capture_make *m, const char *ptx);
/* `sizes`: one per parameter, laid out with natural alignment; ends with 0. */
uint32_t capture_make_kernel(struct capture_make *m, uint32_t module, const char *name, const uint32_t *sizes);
uint32_t capture_make_config(struct capture_make *m, uint32_t grid, uint32_t block);
uint32_t capture_make_alloc(struct capture_make *m, uint64_t address, uint64_t bytes);
uint64_t capture_make_free(struct capture_make *m, uint32_t id, uint64_t address, int32_t result);
uint64_t capture_make_copy_in(struct capture_make *m, uint64_t target, uint64_t bytes); /* host to device */
uint64_t capture_make_set(struct capture_make *m, uint64_t target, uint64_t bytes);
uint64_t capture_make_launch(struct capture_make *m, uint32_t kernel, uint32_t config, const void *params,
                             uint16_t bytes);
/* Contents of a whole allocation. */
void capture_make_snapshot(struct capture_make *m, uint64_t launch, uint32_t allocation, enum cap_snapshot_when when,
                           const void *data, uint64_t bytes);
void capture_make_damage(struct capture_make *m, uint32_t allocation, int64_t offset, uint64_t length, uint64_t clean,
                         uint64_t seen);
void capture_make_error(struct capture_make *m, int32_t code, const char *name);
uint64_t capture_make_sync(struct capture_make *m, uint64_t wait_ns);
void capture_make_time(struct capture_make *m, uint64_t launch, uint32_t device_ns);
void capture_make_finish(struct capture_make *m); /* CAP_END */

#endif
