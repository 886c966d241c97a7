/* pages.h - the device's address space and its physical memory, in pages of 2 MiB as on a real device.
 *
 * Device addresses lie in one window, [pages_base(), pages_base() + PAGES_WINDOW_BYTES), where the host maps nothing: a
 * device pointer used on the host faults, and a pointer's kind can be told from its value. The lower half is for
 * allocations, the upper half for ranges reserved by the program. Physical memory is an arena of the host, touched only
 * when used; what was written there stays when a page is given back and taken again.
 *
 * pages_run() is safe at any time; the other functions need the caller's lock (memory.c's).
 */
#ifndef SOFTGPU_PAGES_H
#define SOFTGPU_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES         (UINT64_C(2) << 20)
#define PAGES_WINDOW_BYTES (UINT64_C(4) << 40)

enum page_access { PAGE_NO_ACCESS = 0, PAGE_READ = 1, PAGE_READ_WRITE = 3 };
enum { PAGE_DEVICES = 8 }; /* at most so many devices */

bool pages_init(void); /* once; false when the host has no room for the tables */
uint64_t pages_base(void);
static inline uint64_t pages_for(uint64_t bytes)
{
    return bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0);
}

/* Address ranges. `high` takes from the upper half; a free `hint` there is honoured. 0 when there is no room. */
uint64_t pages_reserve(uint64_t count, uint64_t align, bool high, uint64_t hint);
void pages_unreserve(uint64_t address, uint64_t count);

/* Physical pages of a device: `count` host addresses to `out`, contiguous when that is possible; all or nothing. */
bool pages_take(unsigned device, uint64_t count, void **out);
void pages_give(uint64_t count, void *const *pages);
uint64_t pages_free_count(unsigned device);
uint64_t pages_total_count(void); /* of each device */
/* Lets a physical page lie in a file at `offset`, what it holds included (share.h); given back, it is private again.
 * `file` is a number for it, not 0, that pages_file() tells; 0 for a private page. */
bool pages_into_file(void *page, int fd, uint64_t offset, uint32_t file);
uint32_t pages_file(const void *page);

/* One page of the map. `address` is a multiple of PAGE_BYTES in the window; `host` comes from pages_take(), or is any
 * multiple of 4096. `reach`: bits of the devices that may use it without being allowed to reach its device's memory. */
void pages_map(uint64_t address, void *host, enum page_access access, unsigned reach);
void *pages_unmap(uint64_t address); /* returns what was mapped, or NULL */
void *pages_mapped(uint64_t address, enum page_access *access, unsigned *reach);

struct pages_run {
    uint64_t address, bytes;
    char *host;
    enum page_access access;
    unsigned reach;
};
static inline bool pages_in_window(uint64_t address)
{
    return address - pages_base() < PAGES_WINDOW_BYTES;
}
/* The run of mapped pages around `address` with the same rights and contiguous memory (at most 256 pages to either
 * side). False when nothing is mapped there. */
bool pages_run(uint64_t address, struct pages_run *run);

#endif
