/* bad_free.h - what the address of a free that the driver refused really is. */
#ifndef SHIM_BAD_FREE_H
#define SHIM_BAD_FREE_H

#include <opsdebug/capture.h>

#include "shim/call.h"

/* After the real call: `record` is its CAP_FREE (may be NULL), `address` as the program gave it. Does nothing when the
 * free worked, or failed for another reason than its address. */
void bad_free_explain(const struct call *call, const struct cap_free *record, uint64_t address, CUresult result);

#endif
