/* slabs.h - allocations that look like those of a caching allocator: many buffers in one, whose bounds nobody told.
 */
#ifndef ANALYZER_SLABS_H
#define ANALYZER_SLABS_H

#include "analyzer/session.h"

struct slabs {
    size_t count;                         /* such allocations */
    const struct model_allocation *first; /* the one with the most places */
    size_t places;                        /* that arguments led to in it */
    bool torch;                           /* PyTorch's allocator was loaded */
};
struct slabs slabs_of(const struct session *session);

#endif
