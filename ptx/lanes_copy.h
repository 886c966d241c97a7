/* lanes_copy.h - cp.async of a group in lock-step. */
#ifndef PTX_LANES_COPY_H
#define PTX_LANES_COPY_H

#include "ptx/lanes.h"

/* For the running group. False: nothing was done. */
bool lane_copy(struct lanes *L, const struct insn *in);

#endif
