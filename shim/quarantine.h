/* quarantine.h - freed device memory, held back so that a use after free meets a pattern and not somebody else's data.
 *
 * Within a budget of bytes; the oldest is given back for real when it is exceeded, and all of it when memory runs out.
 * Device, managed and page-locked memory: that of pools is not held back, which would change how the pool reuses it.
 *
 * Before it is given back, and at exit, its first and last 32 KiB are compared with the pattern.
 */
#ifndef SHIM_QUARANTINE_H
#define SHIM_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/alloc_table.h"
#include "shim/hooks.h"
#include "shim/track.h"

enum { QUARANTINE_PATTERN = 0xFFFDFFFDu }; /* NaN as fp64, fp32, fp16 and bf16, and not the redzones' pattern */

/* Waits for the context, as a real free does, and takes the memory in. False: free it for real. `*result` is what the
 * program gets (an error of earlier work, as from a real free). */
bool quarantine_take(const struct allocation *a, CUresult *result);
bool quarantine_covers(uint64_t address); /* any byte of what it holds, as the program saw it */
bool quarantine_holds(uint64_t address);  /* of the device, or of the host: the program frees it a second time */
/* Frees everything that is held in the current context, for real; false when there was nothing. */
bool quarantine_release(void);
void quarantine_drop_context(const struct tracked_context *context); /* it is gone, and its memory with it */
uint64_t quarantine_bytes(void);                                     /* of device memory */
void quarantine_look(void);                                          /* at what is held in the current context */

#endif
