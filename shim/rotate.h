/* rotate.h - OPSDEBUG_MAX_CAPTURE: a capture that stays within so many bytes by dropping the oldest records.
 *
 * Definitions (strings, kernels, ...) and findings go into segments of their own, which stay. All else lies in segments
 * of one thread; when there is too much, those of them that are full and closed are deleted, the one whose newest
 * record is the oldest first. What is still needed of it is copied into a carry segment, which replaces the one before
 * it (see rotate_carry.h). The newest work, a quarter of the limit (4 MiB at most), stays in any case. Segments with
 * snapshots go on their own, with the blobs that only they named. The header's dropped_before tells a reader from where
 * on everything is there. At every instant the capture is readable: what is copied is there twice for a moment, what is
 * deleted was declared dropped before.
 */
#ifndef SHIM_ROTATE_H
#define SHIM_ROTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

bool rotate_keeps(uint16_t type); /* whether records of this type are never dropped */

/* Bytes on disk, of segments and blobs. */
void rotate_grown(int64_t bytes);
bool rotate_is_due(void);  /* there is too much, and something that can go */
bool rotate_is_late(void); /* so much that the caller should see to it, and can */

/* A segment of the calling thread is closed: nobody writes or patches it any more. */
struct rotate_span {
    uint64_t first_seq, last_seq; /* about: a record may be written later than its seq */
    uint64_t bytes;
};
void rotate_closed(unsigned number, const struct rotate_span *span);
/* A snapshot's record, or a module's, is going to name this blob, which has just taken so many bytes (0: it was there).
 * On the helper thread. */
void rotate_blob_named(struct hash128 hash, uint64_t bytes);

/* Drops what is too much. `helper`: on the thread that stores blobs, so these may go, too. */
void rotate_run(bool helper);

#endif
