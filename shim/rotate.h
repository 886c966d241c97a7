/* rotate.h - OPSDEBUG_MAX_CAPTURE: a capture that stays within so many bytes by dropping the oldest records.
 *
 * Definitions (strings, kernels, ...) and findings go into segments of their own, which stay. All else lies in segments
 * of one thread; when there is too much, the oldest of those that are full and closed are deleted whole, with the blobs
 * that only they named. Of allocations that live on, or whose free lies in a segment that stays, the record is copied
 * into a carry segment first, which replaces the one before it. The header's dropped_before tells a reader from where
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
bool rotate_is_late(void); /* so much that the caller should see to it */

/* A segment of a thread is closed: nobody writes or patches it any more. */
void rotate_closed(unsigned number, uint64_t first_seq, uint64_t bytes);
/* A snapshot's record, or a module's, is going to name this blob, which has just taken so many bytes (0: it was there).
 * On the helper thread. */
void rotate_blob_named(struct hash128 hash, uint64_t bytes);

/* Drops what is too much. `helper`: on the thread that stores blobs, so these may go, too. */
void rotate_run(bool helper);

#endif
