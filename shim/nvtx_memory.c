/* nvtx_memory.c - NVTX's memory extension (nvToolsExtMem.h): what allocators register becomes regions.
 *
 * Of the extension's functions those are taken that say which memory is given out; permissions are left alone. Handles
 * that we give out are the addresses themselves.
 */
#include "shim/nvtx.h"

#include <string.h>

#include "shim/regions.h"

enum { VIRTUAL_ADDRESS = 1, REF_POINTER = 1, REF_HANDLE = 2 };
enum { NAME_MAX_BYTES = 256 };

/* As nvToolsExtMem.h defines them; the program's element sizes are used to step, so that later ones may be longer. */
struct range { /* nvtxMemVirtualRangeDesc_v1 */
    size_t bytes;
    const void *address;
};
struct register_batch { /* nvtxMemRegionsRegisterBatch_v1 */
    uint16_t compatible, struct_bytes;
    uint32_t type;
    const void *heap;
    size_t count, element_bytes;
    const void *elements;
    const void **handles;
};
struct resize_batch { /* nvtxMemRegionsResizeBatch_v1 */
    uint16_t compatible, struct_bytes;
    uint32_t type;
    size_t count, element_bytes;
    const void *elements;
};
struct unregister_batch { /* nvtxMemRegionsUnregisterBatch_v1 */
    uint16_t compatible, struct_bytes;
    uint32_t reference;
    size_t count, element_bytes;
    const void *elements; /* each a pointer */
};
struct region_name { /* nvtxMemRegionNameDesc_v1 */
    uint32_t reference, message_type;
    const void *region;
    union nvtx_message message;
    uint32_t category, reserved;
};
struct name_batch { /* nvtxMemRegionsNameBatch_v1 */
    uint16_t compatible, struct_bytes;
    uint32_t reserved;
    size_t count, element_bytes;
    const void *elements;
};
struct heap { /* nvtxMemHeapDesc_v1 */
    uint16_t compatible, struct_bytes;
    uint32_t reserved, usage, type;
    size_t specific_bytes;
    const void *specific;
};

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static const void *element(const void *elements, size_t bytes, size_t i)
{
    return (const char *)elements + i * bytes;
}

/* A heap is told by where it lies: that is its handle, too. */
static const void *heap_register(const void *domain, const struct heap *heap)
{
    const struct range *range = heap && heap->type == VIRTUAL_ADDRESS && heap->specific_bytes >= sizeof *range
                                    ? (const struct range *)heap->specific
                                    : NULL;
    return range ? range->address : heap;
}

static void heap_end(const void *domain, const void *heap)
{
    regions_reset(address_of(heap));
}

static void regions_register(const void *domain, const struct register_batch *batch)
{
    if (!batch || batch->type != VIRTUAL_ADDRESS || batch->element_bytes < sizeof(struct range))
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct range *r = element(batch->elements, batch->element_bytes, i);
        regions_begin(address_of(r->address), r->bytes, NULL, CAP_REGION_NVTX, address_of(batch->heap));
        if (batch->handles)
            batch->handles[i] = r->address;
    }
}

static void resize(const void *domain, const struct resize_batch *batch)
{
    if (!batch || batch->type != VIRTUAL_ADDRESS || batch->element_bytes < sizeof(struct range))
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct range *r = element(batch->elements, batch->element_bytes, i);
        regions_resize(address_of(r->address), r->bytes);
    }
}

static void unregister(const void *domain, const struct unregister_batch *batch)
{
    if (!batch || (batch->reference != REF_POINTER && batch->reference != REF_HANDLE) ||
        batch->element_bytes < sizeof(void *))
        return;
    for (size_t i = 0; i < batch->count; i++)
        regions_end(address_of(*(const void *const *)element(batch->elements, batch->element_bytes, i)));
}

static void name(const void *domain, const struct name_batch *batch)
{
    char space[NAME_MAX_BYTES];
    if (!batch || batch->element_bytes < sizeof(struct region_name))
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct region_name *n = element(batch->elements, batch->element_bytes, i);
        if (n->reference == REF_POINTER || n->reference == REF_HANDLE)
            regions_name(address_of(n->region),
                         nvtx_message((int32_t)n->message_type, n->message, space, sizeof space));
    }
}

enum { MODULE_MEMORY = 1, SLOTS = 7 };

int InitializeInjectionNvtxExtension(struct nvtx_extension *extension)
{
    static void (*const functions[SLOTS])(void) = {
        (void (*)(void))heap_register, (void (*)(void))heap_end,
        (void (*)(void))heap_end,      (void (*)(void))regions_register,
        (void (*)(void))resize,        (void (*)(void))unregister,
        (void (*)(void))name,
    };
    if (!extension || extension->bytes < sizeof *extension)
        return 0;
    /* Other extensions and layouts get nothing from us, which is not a failure. */
    if (extension->module != MODULE_MEMORY || !extension->segment_count || extension->segments[0].count < SLOTS)
        return 1;
    for (size_t i = 0; i < SLOTS; i++)
        extension->segments[0].slots[i] = (intptr_t)functions[i];
    return 1;
}

nvtx_initialize_extension *InitializeInjectionNvtxExtension_fnptr = InitializeInjectionNvtxExtension;
