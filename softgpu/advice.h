/* advice.h - what the program said about ranges of managed memory: advice, and where it last prefetched to.
 *
 * Nothing moves here because of it; it is kept, in pages of 4096 bytes, so that cuMemRangeGetAttribute can tell. What
 * was said of an allocation ends with it. Thread-safe.
 */
#ifndef SOFTGPU_ADVICE_H
#define SOFTGPU_ADVICE_H

#include "softgpu/driver.h"

/* Of one page; a place of type CU_MEM_LOCATION_TYPE_INVALID was never named. */
struct advice {
    bool read_mostly;
    CUmemLocation preferred, prefetched;
    uint64_t accessed_by; /* a bit for each device, ADVICE_HOST for the host */
};
#define ADVICE_HOST (UINT64_C(1) << 63)

/* Calls change(advice, data) for every stretch of [address, address + bytes), which lies in allocation `id`. False when
 * memory is out. */
bool advice_change(uint64_t id, uint64_t address, uint64_t bytes, void (*change)(struct advice *, const void *),
                   const void *data);
/* What holds for all pages of the range: read_mostly and accessed_by as far as all agree, places that all share. */
struct advice advice_common(uint64_t id, uint64_t address, uint64_t bytes);

#endif
