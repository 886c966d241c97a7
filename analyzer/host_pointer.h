/* host_pointer.h - arguments of launches that are addresses of the host's ordinary memory, told from the mappings that
 * the shim recorded when the device stopped (CAP_HOST_MAP). That such a number was an argument proves nothing by
 * itself: it may be an integer, or a pointer that is only passed along. So this adds to findings that are there. */
#ifndef ANALYZER_HOST_POINTER_H
#define ANALYZER_HOST_POINTER_H

#include "analyzer/finding.h"

/* An access at `address` that re-execution saw at `l` in no known memory: says through which argument it went, when
 * that is plain host memory that the device cannot reach. True: it was. */
bool host_pointer_explains(const struct model *m, const struct model_launch *l, uint64_t address, struct finding *f);
/* Names the arguments of `l` that are such addresses; how many. */
size_t host_pointer_arguments(const struct model *m, const struct model_launch *l, struct finding *f);

#endif
