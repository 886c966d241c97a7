/* guard.h - guard pages: an allocation as a mapping of its own, between address ranges that nothing is mapped to, so
 * that an access outside of it faults at once (OPSDEBUG_GUARD, guard_choice.h).
 *
 * The mapping is made of whole granules (2 MiB on devices of today). With side `over` the allocation's end lies at its
 * end, but for the up to 511 bytes that the alignment of 512 costs; with `under` its start at its start. What is left
 * next to the allocation is filled and looked at like any other redzone. A freed one is unmapped, and its addresses
 * stay reserved for a while, so that a use after the free faults as well.
 *
 * Only what cuMemAlloc and cuMemAllocPitch make: managed memory and pools have no such mappings, and memory that the
 * program maps itself has the edges it was given.
 */
#ifndef SHIM_GUARD_H
#define SHIM_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/alloc_table.h"
#include "shim/call.h"
#include "shim/track.h"

/* Whether the allocation that will have this id is to have guard pages. */
bool guard_chosen(const struct call *call, uint64_t bytes, uint32_t id);
/* Its place and redzones (not yet filled) go to *a, which comes with an id and a kind. False: it cannot be had;
 * allocate as ever. */
bool guard_make(uint64_t bytes, struct allocation *a);
void guard_record(const struct call *call, const struct allocation *a); /* after the record of the allocation */

/* To whom the driver would say that it belongs; NULL when it has no guard pages. */
CUcontext guard_context(const struct allocation *a);

/* As cuMemFree: waits for the context, then unmaps. `*result` is what the program gets. */
void guard_free(const struct allocation *a, CUresult *result);
void guard_drop_context(const struct tracked_context *context);

/* Bytes of device memory that guarded allocations take beyond what the program and the redzones know of. */
uint64_t guard_slack_bytes(void);

/* The program shares memory with others, or asks whether it could: under `careful` nothing is guarded from now on. */
void guard_stop_sharing(void);
void guard_pool_exported(void); /* so far as redzones in front go, memory of pools likewise */
/* `address` is in a guarded allocation: the driver cannot export it in the old way (cuIpcGetMemHandle). */
void guard_export_failed(uint64_t address);

#endif
