/* scan.h - the health check: looks at the numbers that launches leave behind, for NaN, Inf and values above a
 * threshold.
 *
 * Around a launch two small kernels of ours (scan.ptx) look at every range of device memory that its arguments reach,
 * before and after, at the same places: the first 1,024 words, counted from where the argument points, and 1,024
 * pseudo-random ones (HEALTH=full: all). A range counts as floats only when nearly all of its words look like fp32;
 * whatever else it may be raises no alarm. Reported is what was not there before. Nobody waits: results lie in mapped
 * host memory and are taken in later.
 */
#ifndef SHIM_SCAN_H
#define SHIM_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/deadline.h"
#include "shim/hooks.h"
#include "shim/track.h"

enum { SCAN_SAMPLES = 2048, SCAN_ENTRIES = 32 };

/* As scan.ptx writes it; the members from `looked` on count words. */
struct scan_look {
    uint32_t state; /* 1: complete */
    uint32_t looked, upper_even, upper_odd, plausible, other, alike, nan, inf, over;
    uint32_t first; /* the first of the three, in words from the range's start */
    uint32_t reserved;
};

enum scan_flags { SCAN_ALL = 1, SCAN_KNOWN_FLOAT = 2 };

struct scan_entry {
    uint64_t address;
    uint32_t words, threshold, seed, flags, full_words, leave_out;
    struct scan_look before, after, full;
    uint32_t reserved[4];
};
_Static_assert(sizeof(struct scan_entry) == 192, "scan.ptx steps by 192");

struct scan_slot;
struct scan_slots;
struct device_work;

struct scan_slots *scan_slots_make(void); /* NULL: no mapped host memory */

/* Enqueues the look before a launch that is due. NULL: this launch is not looked at. */
struct scan_slot *scan_before(struct tracked_kernel *kernel, struct tracked_stream *stream, uint64_t launch_seq,
                              const uint8_t *arguments, uint32_t bytes, bool snapshots);
/* Whether the next launch of `kernel` is one that is looked at. */
bool scan_due(const struct tracked_kernel *kernel, bool snapshots);
/* The same as scan_before() for a launch that is due, of a graph: all of each of these allocations, which it reaches.
 */
struct scan_slot *scan_before_found(struct tracked_stream *stream, uint64_t launch_seq, const struct allocation *found,
                                    uint32_t count, bool snapshots);
/* Enqueues the look after it; `slot` may be NULL, and is not the caller's any more. */
void scan_after(struct scan_slot *slot, struct tracked_stream *stream, bool launched);
void scan_harvest(void);                    /* takes in what is complete */
void scan_flush(void);                      /* records how much that was, which else waits for more */
void scan_finish(struct deadline deadline); /* and waits for the rest of the current context */

/* Pure, for tests: whether the words that were looked at are fp32 numbers. */
bool scan_looks_float(const struct scan_look *look);

#endif
