/* memory.h - allocations: what the program was given, where it lies, and who may free it.
 *
 * Device memory comes in pages of 2 MiB (pages.h). Allocations up to 1 MiB share pages, at a granularity of 512 bytes,
 * so that a store a little past the end silently hits padding or a neighbour, as on a real device; larger ones have
 * pages of their own. First fit: what was freed is used again soon. Memory of the host that kernels can reach (pinned,
 * registered, managed) has the same address on both sides.
 *
 * All functions are thread-safe. None waits for the device: what frees memory synchronises first (engine.h).
 */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "softgpu/driver.h"
#include "softgpu/pages.h"

enum memory_kind {
    MEMORY_DEVICE = 1, /* cuMemAlloc */
    MEMORY_POOL,       /* cuMemAllocAsync */
    MEMORY_MODULE,     /* variables of a module */
    MEMORY_MANAGED,    /* cuMemAllocManaged, managed variables */
    MEMORY_PINNED,     /* cuMemHostAlloc, cuMemAllocHost */
    MEMORY_REGISTERED, /* cuMemHostRegister */
    MEMORY_MAPPING,    /* cuMemMap */
    MEMORY_IMPORTED,   /* of another process: cuIpcOpenMemHandle, cuMemPoolImportPointer */
    MEMORY_ARRAY,      /* storage of a CUDA array: memory of the host that kernels have no address of */
    MEMORY_GRAPH,      /* of a graph's memory nodes: its pages belong to graph_node_memory.c */
};

struct allocation {
    uint64_t address, bytes; /* as given out; `bytes` as asked for */
    uint64_t span;           /* bytes really taken there */
    enum memory_kind kind;
    uint32_t flags; /* of the call that made it */
    unsigned device;
    bool sync_memops; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS as it was set */
    uint64_t id;      /* never used twice */
    struct context *context;
    void *owner; /* the pool, or the VMM handle */
};

bool memory_init(void);

/* Takes `bytes` (not 0) of the memory of the context's device. CUDA_ERROR_OUT_OF_MEMORY when there is no room. */
CUresult memory_alloc(struct context *context, uint64_t bytes, enum memory_kind kind, void *owner, uint64_t *address);
CUresult memory_alloc_on(unsigned device, struct context *context, uint64_t bytes, enum memory_kind kind, void *owner,
                         uint64_t *address);
/* Pinned or managed memory of the host, or an array's, aligned to 4096. */
CUresult memory_alloc_host(struct context *context, uint64_t bytes, enum memory_kind kind, uint32_t flags,
                           void **pointer);
/* Makes the pages of [pointer, pointer + bytes) reachable. CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED when some are. */
CUresult memory_register(struct context *context, void *pointer, uint64_t bytes, uint32_t flags);

/* Frees what starts at `address` if its kind is in `kinds` (bits 1 << enum memory_kind); CUDA_ERROR_INVALID_VALUE
 * otherwise. */
CUresult memory_free(uint64_t address, uint32_t kinds);
/* Frees all of those kinds that belong to `context` (NULL: to any). */
void memory_free_all(const struct context *context, uint32_t kinds);

void memory_free_device(unsigned device, uint32_t kinds); /* likewise of a device */

/* Adds or removes a record without touching the memory itself, which belongs to a pool's cache or to a mapped handle.
 */
bool memory_record(const struct allocation *record);
bool memory_forget(uint64_t address, enum memory_kind kind, struct allocation *out);
void memory_release(const struct allocation *forgotten); /* frees what memory_forget() left */

/* The allocation whose [address, address + max(bytes, 1)) holds `address`, copied to *out (may be NULL). */
bool memory_lookup(uint64_t address, struct allocation *out);
bool memory_set_sync_memops(uint64_t address, bool value); /* false: no allocation */
/* The allocation with the lowest address >= `address` and below `end`. */
bool memory_next(uint64_t address, uint64_t end, struct allocation *out);

/* Whether every byte of [address, address + bytes) may be accessed by a copy: device memory inside one allocation or in
 * mapped ranges, or reachable host memory. */
bool memory_covers(uint64_t address, uint64_t bytes, bool write);
/* Host address of device-reachable `address`, and how many bytes follow contiguously; NULL when unmapped. */
char *memory_host(uint64_t address, uint64_t *contiguous);
/* Copies between any two addresses, of the device or of the host; both must have been checked. */
void memory_copy(uint64_t to, uint64_t from, uint64_t bytes);
/* Fills `count` elements of 1, 2 or 4 bytes. */
void memory_fill(uint64_t to, uint32_t value, uint32_t width, uint64_t count);

/* The executor's view (struct ptx_memory.find), of all devices' memory; and that of a launch that may use the memory of
 * the devices in `reach` (bits). */
bool memory_find(void *context, uint64_t address, struct ptx_range *range);
bool memory_find_within(unsigned reach, uint64_t address, struct ptx_range *range);
/* Lets other devices use the pages of an allocation without peer access. */
void memory_open_to(const struct allocation *allocation, unsigned reach);

/* What a mapping's owner may be exported as (api_vmm.c): CU_MEM_HANDLE_TYPE_* bits. */
unsigned memory_handle_types(const void *vmm_handle);

void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes);
/* The lock of pages.h, for api_vmm.c. */
void memory_lock(void);
void memory_unlock(void);
uint64_t memory_new_id(void);

#endif
