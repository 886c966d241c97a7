/* pool.h - stream-ordered allocation.
 *
 * What is freed in a stream stays mapped in its pool. It is handed out again to the same stream at once, to others when
 * the freeing point has been reached; at a synchronisation the pool gives back what is idle above its release
 * threshold.
 */
#ifndef SOFTGPU_POOL_H
#define SOFTGPU_POOL_H

#include "softgpu/context.h"

struct pool;
CUresult pool_alloc(struct pool *pool, struct stream *stream, uint64_t bytes, uint64_t *address);
CUresult pool_free(uint64_t address, struct stream *stream);
CUresult pool_free_now(uint64_t address);   /* the device is idle */
struct pool *pool_current(unsigned device); /* the default one, unless the program set another */

unsigned pool_handle_types(const struct pool *pool); /* CU_MEM_HANDLE_TYPE_* bits */

void pool_trim_idle(void);        /* called after a synchronisation */
bool pool_trim_all(void);         /* waits for the device and gives back all cached memory; true when there was some */
void pool_reset(unsigned device); /* with the primary context: all memory of the device's pools goes */

#endif
