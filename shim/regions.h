/* regions.h - pieces of an allocation that an allocator of the program's gives out, with bounds of their own.
 *
 * Told by opsdebug.h or by NVTX's memory extension, and recorded; nothing on the device changes. Thread-safe.
 */
#ifndef SHIM_REGIONS_H
#define SHIM_REGIONS_H

#include <stdint.h>

#include <opsdebug/capture.h>

/* [address, address + bytes) becomes a region, in place of one that starts there. What lies in no known allocation, or
 * not all in one, is left out. `heap`: any number, for regions_reset. */
void regions_begin(uint64_t address, uint64_t bytes, const char *name, enum cap_region_source source, uint64_t heap);
void regions_end(uint64_t address);
void regions_reset(uint64_t heap);                     /* all of that heap end */
void regions_resize(uint64_t address, uint64_t bytes); /* where one starts; keeps its name */
void regions_name(uint64_t address, const char *name); /* where one starts */

#endif
