/* damage.h - what is known about damaged redzones: windows, records, and the fallback that looks by copies. */
#ifndef SHIM_DAMAGE_H
#define SHIM_DAMAGE_H

#include "shim/device_work.h"
#include "shim/sentinel_slots.h"

/* A look on `stream` at `upto` orders only that stream's work. The seq below which all work of the context is complete
 * then. */
uint64_t damage_clean_bound(const struct tracked_stream *stream, uint64_t upto);
void damage_found(const struct check_entry *entry, const struct check_subject *subject, const struct check_look *look);
void damage_checked(uint64_t upto_seq, uint32_t redzones, uint32_t damaged);
void damage_checked_flush(void); /* looks are recorded several at a time; now those that are waiting for it */

bool damage_seen(void);       /* some was found in this process */
bool damage_take_fresh(void); /* some was found since the last call of this */

/* Copies redzones of the context to the host and compares there: all, or, when there are many, a part in turn. Waits
 * for our stream only: call it when the program's work is complete. */
void damage_look_by_copies(struct device_work *work);
void damage_look_at_by_copy(struct device_work *work, const struct allocation *a); /* at those of one allocation */

/* The kernels of the newest launches, so that those in a window can be watched more closely. */
void damage_launched(uint64_t seq, struct tracked_kernel *kernel);

#endif
