/* host_redzone.h - redzones of page-locked host memory, filled and looked at by the host itself.
 *
 * Kernels that write there are caught by the looks on the device, in stream order, like everywhere (sentinel.h). The
 * host may do damage when no launch is near: so it looks, too, before a free and at exit.
 */
#ifndef SHIM_HOST_REDZONE_H
#define SHIM_HOST_REDZONE_H

#include "shim/alloc_table.h"

void host_redzone_fill(const struct allocation *a);
void host_redzone_look(const struct allocation *a); /* reports damage, and puts the pattern back */
void host_redzone_look_at_all(void);

#endif
