/* share.h - device memory that other processes can map: pages that lie in a memory file.
 *
 * Memory becomes a file when it is first exported, page by page under the same host addresses, so that plain
 * allocations cost nothing; memory made for sharing (cuMemCreate with a handle type) is one from the start. A file's
 * last 4096 bytes are its label: what it is, and which allocations in it were exported and are not freed. A process
 * that got no descriptor opens the file through /proc. Everything here needs memory's lock, but for share_open() and
 * share_read_label().
 */
#ifndef SOFTGPU_SHARE_H
#define SOFTGPU_SHARE_H

#include "softgpu/driver.h"

enum share_kind { SHARE_MEMORY = 1, SHARE_POOL, SHARE_EVENT };
enum { SHARE_LABEL_BYTES = 4096, SHARE_EXPORTS = 500 };
struct share_label {
    uint64_t magic, id;
    uint32_t kind, device;
    uint64_t pages;
    _Atomic uint64_t exports[SHARE_EXPORTS]; /* allocation ids; 0: free */
};
_Static_assert(sizeof(struct share_label) <= SHARE_LABEL_BYTES, "a label fits its place");

/* Where to find a file, and what in it, in the 64 bytes of a handle. */
struct share_handle {
    uint32_t magic, kind;
    int32_t pid, fd;
    uint64_t id;            /* the file's */
    uint64_t first, offset; /* page in the file, byte in that page */
    uint64_t bytes;
    uint64_t export_; /* the allocation's id over there, or 0 */
};
_Static_assert(sizeof(struct share_handle) <= 64, "a handle fits the interface's structures");

/* A new file of `pages` pages and its label, mapped. -1 when the system has no room. */
int share_create(enum share_kind kind, unsigned device, uint64_t pages, struct share_label **label);

/* Moves pages into a file, unless they are in one. -1: no room. *first: number of the first page in it. */
int share_pages(unsigned device, uint64_t count, void *const *pages, uint64_t *first);
/* Fills a handle for an allocation that lies in such pages; false when too many are exported from one file. */
bool share_export(void *const *pages, uint64_t export_id, struct share_handle *out);
/* The allocation was freed: handles to it open nothing any more. */
void share_retire(uint64_t export_id);

/* A descriptor of the file that a handle names, with its label; -1 when the process, the file or the allocation is
 * gone. `export_id` 0 asks for no allocation. */
int share_open(const struct share_handle *handle, struct share_label *label);
/* Whether the descriptor is of such a file. */
bool share_read_label(int fd, struct share_label *label);

#endif
