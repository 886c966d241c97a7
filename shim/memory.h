/* memory.h - what the tool itself holds of the process's memory: counted, and kept within OPSDEBUG_MAX_MEMORY.
 *
 * Two kinds of use. What may be left out (copies of contents, slots, caches) is refused when three quarters of the
 * limit are taken, and counted as refused. What the tables cannot do without (an allocation, a stream, a kernel, a
 * graph) is refused at the limit only, and then the shim steps aside: a capture that is true up to there is worth more
 * than one with holes. Counted are pinned and mapped memory of ours, segments, and the tables by their entries; not the
 * C library's own overhead, and nothing that lives for one call only. Thread-safe; takes no lock.
 */
#ifndef SHIM_MEMORY_H
#define SHIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opsdebug/capture.h>

#include "common/map.h"

/* `limit` in bytes, 0: none. `over` is called once, when a table needs more; it may be called under any lock. */
void memory_start(uint64_t limit, void (*over)(const char *reason));

bool memory_may(size_t bytes);  /* false: do without, nothing was counted */
bool memory_must(size_t bytes); /* always counted; false: we have stepped aside, so what need not be kept is dropped */
void memory_give(size_t bytes);
bool memory_roomy(size_t bytes); /* so much more would still leave half of the limit */

/* map_put with the growth of the map counted as memory_may (false also when that was refused) or memory_must. */
bool memory_map_put(struct map *map, uint64_t key, uint64_t value, bool must);

void memory_tell(struct cap_header *header); /* the present figures into the capture */

#endif
