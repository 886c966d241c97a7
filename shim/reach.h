/* reach.h - the memory that a launch can reach through its arguments and its module's variables. */
#ifndef SHIM_REACH_H
#define SHIM_REACH_H

#include "shim/track.h"

enum { REACH_MAX = 256 }; /* places that one launch's arguments can name */

struct reached {
    struct allocation a;
    uint64_t address; /* where the argument points: in the allocation, or right behind it; its start for variables */
};

/* Records where the module's variables are, once, and not before its functions are used. NULL: nothing. True: some were
 * recorded now; a launch that is to have them among what it reaches has to be numbered after this. */
bool reach_variables(struct tracked_module *module);
/* Every aligned 8-byte word of the arguments that points into an allocation (or right behind it), and the module's
 * variables, also those the program never asked for. The same address comes once; the same allocation may come more
 * than once. `out` has room for REACH_MAX. */
uint32_t reach(struct tracked_kernel *kernel, const uint8_t *arguments, uint32_t bytes, struct reached *out);

#endif
