/* rotate_carry.h - the carry segment: what is still needed of the segments that were dropped.
 *
 * That is all work from the cut on; and of what is older the allocations and events that live on, the frees whose
 * allocation is elsewhere, and the path that each thread was in. Not thread-safe.
 */
#ifndef SHIM_ROTATE_CARRY_H
#define SHIM_ROTATE_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opsdebug/capture.h>

#include "common/buf.h"

/* Records as they lie in a segment, behind its head. */
struct carry_records {
    const void *data;
    size_t bytes;
    uint32_t tid; /* who wrote them, up to the first CAP_WRITER */
};

typedef void carry_visit(const struct cap_head *record, void *data);
void carry_each(const struct carry_records *records, carry_visit *visit, void *data);

/* How the work of some records is spread: the seqs that lie at equal distances in it. */
enum { CARRY_SAMPLES = 32 };
struct carry_spread {
    uint64_t bytes; /* 0: nothing is known */
    uint64_t samples[CARRY_SAMPLES];
};
/* Of the records from seq `from` on. */
void carry_spread(struct carry_spread *out, const struct carry_records *records, uint64_t from);
uint64_t carry_spread_since(const struct carry_spread *spread, uint64_t seq); /* bytes, about */

/* Into *out, which is empty, what is needed of both. False: no memory. */
bool carry_build(struct buf *out, const struct carry_records *carried, const struct carry_records *dropped,
                 uint64_t cut);

#endif
