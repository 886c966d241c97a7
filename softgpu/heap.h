/* heap.h - small device allocations: pages of 2 MiB shared at a granularity of 512 bytes, first fit by address.
 *
 * Needs the caller's lock. A page whose last allocation went away stays mapped until the next such page (so that one
 * buffer allocated and freed in turn does not map and unmap) and is then really unmapped.
 */
#ifndef SOFTGPU_HEAP_H
#define SOFTGPU_HEAP_H

#include <stdint.h>

enum { HEAP_UNIT = 512 };
#define HEAP_LIMIT (UINT64_C(1) << 20) /* larger allocations have pages of their own */

uint64_t heap_alloc(unsigned device, uint64_t bytes); /* address, or 0 when memory is full */
void heap_free(uint64_t address, uint64_t bytes);

#endif
