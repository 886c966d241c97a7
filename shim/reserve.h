/* reserve.h - address ranges that the program reserves for its own mappings (cuMemAddressReserve).
 *
 * What is mapped there belongs to the program to the last byte, so that no redzone fits inside. With
 * OPSDEBUG_SENTINELS=both, or when all allocations get guard pages, a range is reserved with one more granule on either
 * side that nothing is mapped to: what leaves it faults. The program sees its own range only.
 */
#ifndef SHIM_RESERVE_H
#define SHIM_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cuts a range that the driver tells about `address` down to what the program reserved. */
void reserve_clamp(uint64_t address, uint64_t *start, size_t *bytes);
/* Would a mapping there lie in the padding, that is outside of what the program reserved? */
bool reserve_pads(uint64_t address, uint64_t bytes);

#endif
