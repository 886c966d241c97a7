/* touch.h - what memory work of ours may touch, and when the device may work for us at all.
 *
 * Most of the program's memory can be read in any stream of its context at any time. Not so
 * - registers of other hardware that were registered as memory (CU_MEMHOSTREGISTER_IOMEMORY): to read them is an
 * action;
 * - memory of a pool that lies on another device than the stream's, which that device need not be allowed to reach;
 * - mappings (cuMemMap) that this device was given no access to;
 * - managed memory where host and device cannot use it at once (CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0:
 * WSL, some virtual GPUs, devices before Pascal). There the host must not touch any of it while a kernel runs, whatever
 * the kernel does, and each allocation can be reserved for one stream, or for the host. A program that has waited for
 * its own work may be reading by then: a kernel of ours would end it. So ours run behind launches of the program only,
 *   where it has to wait anyway; copies are no kernels.
 */
#ifndef SHIM_TOUCH_H
#define SHIM_TOUCH_H

#include <stdbool.h>

#include "shim/alloc_table.h"
#include "shim/hooks.h"
#include "shim/track.h"

/* May it be read in this stream? Asks the driver where that is not known. */
bool touch_may_read(const struct allocation *a, const struct tracked_stream *stream);

bool touch_managed_is_shared(void); /* host and device may use managed memory at once, on all devices */
/* The program is about to get managed memory, or the address of a managed variable. */
void touch_managed_seen(void);
/* There is such memory, and it is not shared: kernels of ours come right behind the program's own launches, or not. */
bool touch_only_behind_launches(void);

/* Whether new memory of a pool lies on the device that `stream` belongs to. */
bool touch_lies_with(CUdeviceptr address, const struct tracked_stream *stream);

#endif
