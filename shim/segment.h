/* segment.h - the files that records are written to: made, handed on, closed.
 *
 * A segment is a file whose space is allocated and that is mapped as long as somebody writes to it: one thread, or
 * (pinned) all of them under a lock of capture_write.c's. Nobody keeps a descriptor. Segments of a capture with a limit
 * are small when there are many threads, since each thread holds two of them open.
 */
#ifndef SHIM_SEGMENT_H
#define SHIM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct segment {
    uint8_t *base;
    size_t bytes, used;
    uint64_t last_seq; /* no record in it is newer; 0: it is still written to */
    unsigned number;
    bool pinned;          /* never closed: what is patched as long as the process lives, what is never dropped */
    struct segment *next; /* list of all open segments */
    struct segment *next_handed_on;
};

/* A new file of `bytes` allocated bytes, mapped shared; NULL: errno tells why not. */
void *segment_map_file(const char *path, size_t bytes);
unsigned segment_number(void); /* a new one */

/* NULL: no space, and the shim has stepped aside. `segment_first_bytes` is the size of a process's first one. */
struct segment *segment_open(size_t bytes);
size_t segment_first_bytes(void);
size_t segment_kept_bytes(void); /* of those of all threads */
void segment_adopt(struct segment *s);
void segment_close(struct segment *s); /* gives unused space back and unmaps; frees `s` */

/* The calling thread's next one, with room for `need` bytes; it becomes the thread's. NULL as above. */
struct segment *segment_next(size_t need);
void segment_hand_on(struct segment *s); /* the thread ends: to the next one that begins, or closed */
void segment_close_unused(void);         /* at the end of the process */

/* How many threads hold segments open. */
void segment_thread_begins(void);
void segment_thread_ends(void);

void segment_make_spare(void); /* on the helper thread: the next segment, ahead of its need */

#endif
