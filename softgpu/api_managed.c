/* Advice on managed memory and its prefetching: checked, kept and told (advice.h), but nothing moves. */
#include "softgpu/advice.h"
#include "softgpu/capture.h"
#include "softgpu/memory.h"

static CUresult enter_managed(CUdeviceptr address, size_t bytes, struct allocation *a)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    return bytes && memory_lookup(address, a) && a->kind == MEMORY_MANAGED && bytes <= a->bytes - (address - a->address)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

/* The host's nodes are one. */
static CUresult check_place(const CUmemLocation *place)
{
    switch (place->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return device_exists(place->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return place->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* What is kept of a place: the current node is node 0, and the host has no number. */
static CUmemLocation kept(CUmemLocation place)
{
    if (place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        place.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (place.type != CU_MEM_LOCATION_TYPE_DEVICE)
        place.id = 0;
    return place;
}

static CUmemLocation place_of(CUdevice device)
{
    return (CUmemLocation){.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                           .id = device};
}

/* ---- advice ----------------------------------------------------------------------------------------------------- */

struct word {
    CUmem_advise advice;
    CUmemLocation place;
};

static void apply(struct advice *a, const void *data)
{
    const struct word *w = data;
    uint64_t who = w->place.type == CU_MEM_LOCATION_TYPE_DEVICE ? UINT64_C(1) << w->place.id : ADVICE_HOST;
    switch (w->advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        a->read_mostly = w->advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        a->preferred = w->place;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        a->preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        a->accessed_by |= who;
        break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        a->accessed_by &= ~who;
        break;
    }
}

/* Some advice has no place; others take a device or the host only. */
static CUresult check_advice(CUmem_advise advice, const CUmemLocation *place)
{
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        return check_place(place);
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        return place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA || place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
                   ? CUDA_ERROR_INVALID_VALUE
                   : check_place(place);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
    struct allocation a;
    CUresult result = enter_managed(devPtr, count, &a);
    if (result == CUDA_SUCCESS)
        result = check_advice(advice, &location);
    if (result != CUDA_SUCCESS)
        return result;
    const struct word w = {advice, kept(location)};
    return advice_change(a.id, devPtr, count, apply, &w) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return cuMemAdvise_v2(devPtr, count, advice, place_of(device));
}

/* ---- prefetching and discarding --------------------------------------------------------------------------------- */

static void note_prefetch(struct advice *a, const void *data)
{
    a->prefetched = *(const CUmemLocation *)data;
}

static CUresult check_stream(CUstream handle)
{
    struct context *c;
    struct stream *s;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, handle, &s);
    return result == CUDA_SUCCESS ? capture_refuse(s) : result;
}

static CUresult prefetch(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned flags, CUstream stream)
{
    struct allocation a;
    CUresult result = enter_managed(devPtr, count, &a);
    if (result == CUDA_SUCCESS)
        result = flags ? CUDA_ERROR_INVALID_VALUE : check_place(&location);
    if (result == CUDA_SUCCESS)
        result = check_stream(stream);
    if (result != CUDA_SUCCESS)
        return result;
    location = kept(location);
    return advice_change(a.id, devPtr, count, note_prefetch, &location) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return prefetch(devPtr, count, place_of(dstDevice), 0, hStream);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return prefetch(devPtr, count, place_of(dstDevice), 0, per_thread(hStream));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream hStream)
{
    return prefetch(devPtr, count, location, flags, hStream);
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                                    CUstream hStream)
{
    return prefetch(devPtr, count, location, flags, per_thread(hStream));
}

/* All ranges of a batch are checked before anything is noted. */
static CUresult check_ranges(const CUdeviceptr *dptrs, const size_t *sizes, size_t count, unsigned long long flags,
                             CUstream stream)
{
    struct allocation a;
    CUresult result = check_stream(stream);
    if (result == CUDA_SUCCESS && (!stream || stream == CU_STREAM_LEGACY || !dptrs || !sizes || !count || flags))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = enter_managed(dptrs[i], sizes[i], &a);
    return result;
}

static CUresult check_places(const CUmemLocation *places, const size_t *indices, size_t number, size_t count)
{
    CUresult result = !places || !indices || !number || number > count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < number; i++)
        result = indices[i] >= count || (i ? indices[i] <= indices[i - 1] : indices[i] != 0) ? CUDA_ERROR_INVALID_VALUE
                                                                                             : check_place(&places[i]);
    return result;
}

/* Discarded memory may hold anything until it is written again; here it keeps what it held. */
CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
                                CUstream hStream)
{
    return check_ranges(dptrs, sizes, count, flags, hStream);
}

CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
                                     CUstream hStream)
{
    return check_ranges(dptrs, sizes, count, flags, per_thread(hStream));
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                 size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream)
{
    CUresult result = check_ranges(dptrs, sizes, count, flags, hStream);
    if (result == CUDA_SUCCESS)
        result = check_places(prefetchLocs, prefetchLocIdxs, numPrefetchLocs, count);
    for (size_t i = 0, k = 0; result == CUDA_SUCCESS && i < count; i++) {
        while (k + 1 < numPrefetchLocs && prefetchLocIdxs[k + 1] <= i)
            k++;
        result = prefetch(dptrs[i], sizes[i], prefetchLocs[k], 0, hStream);
    }
    return result;
}

CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                      size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                      CUstream hStream)
{
    return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
                                   per_thread(hStream));
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                           size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                           CUstream hStream)
{
    return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                                CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                                size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
    return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
                                   per_thread(hStream));
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static int number_of(const CUmemLocation *place)
{
    switch (place->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return place->id;
    case CU_MEM_LOCATION_TYPE_INVALID:
        return CU_DEVICE_INVALID;
    default:
        return CU_DEVICE_CPU;
    }
}

static CUresult give_accessed_by(uint64_t who, int *list, size_t bytes)
{
    size_t n = 0, room = bytes / sizeof *list;
    if (!bytes || bytes % sizeof *list)
        return CUDA_ERROR_INVALID_VALUE;
    for (int device = 0; device < 63 && n < room; device++)
        if (who >> device & 1)
            list[n++] = device;
    if (n < room && who & ADVICE_HOST)
        list[n++] = CU_DEVICE_CPU;
    while (n < room)
        list[n++] = CU_DEVICE_INVALID;
    return CUDA_SUCCESS;
}

static CUresult give(int *out, size_t bytes, CUmem_range_attribute attribute, const struct advice *a)
{
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        return give_accessed_by(a->accessed_by, out, bytes);
    int value;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        value = a->read_mostly;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        value = number_of(&a->preferred);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        value = number_of(&a->prefetched);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        value = (int)a->preferred.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        value = a->preferred.id;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        value = (int)a->prefetched.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        value = a->prefetched.id;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes != sizeof value)
        return CUDA_ERROR_INVALID_VALUE;
    *out = value;
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
    struct allocation a;
    CUresult result = enter_managed(devPtr, count, &a);
    if (result == CUDA_SUCCESS && (!data || !dataSizes || !attributes || !numAttributes))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    const struct advice common = advice_common(a.id, devPtr, count);
    for (size_t i = 0; result == CUDA_SUCCESS && i < numAttributes; i++)
        result = data[i] ? give(data[i], dataSizes[i], attributes[i], &common) : CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                size_t count)
{
    return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}
