/* capture_read.h - opens a capture, also a damaged one, and hands out its records.
 *
 * Every record is checked before anybody sees it: its size against its type, its strings and lists against its size,
 * its ids against the records that define them, its ranges against overflow. What fails is left out, counted and
 * explained in `rejected`; the rest is used. Only a capture without a usable header is refused. Nothing here trusts a
 * byte of the input.
 */
#ifndef ANALYZER_CAPTURE_READ_H
#define ANALYZER_CAPTURE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <opsdebug/capture.h>
#include <opsdebug/status.h>
#include "common/hash.h"
#include "common/map.h"

struct capture_segment {
    char *name;    /* owned; file name without the folder */
    uint8_t *data; /* owned; the whole file */
    size_t bytes;
    size_t mapped; /* bytes, whatever of them counts; 0: in memory of its own */
};

enum { CAPTURE_KEPT_REJECTS = 16 };
struct capture_rejects {
    uint64_t count;
    struct diag kept[CAPTURE_KEPT_REJECTS]; /* the first ones */
};

struct capture {
    char *path; /* owned; as given */
    struct cap_header header;
    char program[sizeof((struct cap_header *)0)->command + 1]; /* arguments separated by spaces, for people */
    char *shell_path, *shell_program; /* owned; `path` and `program` as a shell takes them, for commands to be pasted */
    struct capture_segment *segments;
    size_t segment_count;
    const struct cap_head **records; /* ordered by seq; point into the segments */
    size_t record_count;
    struct map defined; /* (type, id) -> record */
    struct map strings; /* id -> NUL-terminated copy */
    struct capture_rejects rejected;
    char **processes; /* owned; names of folders in the folder, process-PID: captures of other processes */
    size_t process_count;
    uint64_t left_out; /* records that are there, but incomplete without what a limit of the capture had dropped, */
    uint64_t left_out_launches; /* and launches among them */
};

/* Opens the folder `path`. On failure *out is NULL and *diag names file, offset and what was expected. */
enum status capture_open(const char *path, struct capture **out, struct diag *diag);

/* The same from memory, for tests and fuzzing: the bytes of capture.bin and of `count` segments, all copied. There are
 * no blobs. */
struct capture_bytes {
    const void *data;
    size_t bytes;
};
enum status capture_open_memory(struct capture_bytes header, const struct capture_bytes *segments, size_t count,
                                struct capture **out, struct diag *diag);
void capture_close(struct capture *capture); /* NULL is fine */

/* Never NULL: "" for id 0 and for what is not there. Control characters and bytes that are not UTF-8 are replaced by
 * '?'. */
const char *capture_string(const struct capture *capture, uint32_t id);
/* The record that defines `id`, or NULL. */
const void *capture_definition(const struct capture *capture, enum cap_type type, uint32_t id);

/* Counts a record as impossible, with the reason. Also for later stages, which see contradictions between records. */
void capture_reject(struct capture *capture, const struct cap_head *record, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The contents of blob `hash`, at most `limit` bytes, in a new buffer (*out, free with free()). The hash is verified.
 */
enum status capture_blob(const struct capture *capture, struct hash128 hash, uint64_t limit, uint8_t **out,
                         size_t *out_bytes, struct diag *diag);

/* TSC ticks to nanoseconds, from the header's two clock pairs. */
uint64_t capture_ticks_ns(const struct capture *capture, uint64_t ticks);
/* What of the tool's own time was its start; 0: not told. */
uint64_t capture_start_ns(const struct capture *capture);
/* A record's TSC stamp as ns since the capture's start; 0 when it lies before. */
uint64_t capture_time_ns(const struct capture *capture, uint64_t tsc);

#endif
