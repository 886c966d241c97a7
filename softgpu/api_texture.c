/* Texture and surface objects: handles are small numbers, never used twice. */
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "softgpu/array.h"
#include "softgpu/memory.h"

enum { BASE_ALIGN = 512, PITCH_ALIGN = 32 };
#define MAX_LINEAR_TEXELS (UINT64_C(1) << 28)

struct object {
    struct context *context;
    bool surface, dead; /* dead: its array was destroyed */
    uint64_t destroyed; /* 0, or the number of its destruction: launches with lower ones still find it */
    const struct array *array;
    const struct mipmap *mipmap;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
    struct ptx_texture meaning;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct map objects; /* handle -> struct object */
static uint64_t last_handle, destructions;
static unsigned launches; /* queued, not done */
static bool garbage;      /* objects are kept for them */

static struct object *find_any(uint64_t handle)
{
    uint64_t at;
    return map_get(&objects, handle, &at) ? (struct object *)(uintptr_t)at : NULL;
}

static struct object *find(uint64_t handle)
{
    struct object *o = find_any(handle);
    return o && !o->destroyed ? o : NULL;
}

/* Frees the objects that `unwanted` says. */
static void free_objects(bool (*unwanted)(const struct object *o, const void *context), const void *context)
{
    for (size_t i = 0; i < objects.capacity;) {
        struct object *o = objects.slots[i].used ? (struct object *)(uintptr_t)objects.slots[i].value : NULL;
        if (!o || !unwanted(o, context)) {
            i++;
            continue;
        }
        map_remove(&objects, objects.slots[i].key); /* another may move here */
        free(o);
    }
}

static bool is_destroyed(const struct object *o, const void *context)
{
    return o->destroyed;
}

static bool is_of(const struct object *o, const void *context)
{
    return o->context == context;
}

uint64_t texture_launch_begin(void)
{
    pthread_rwlock_wrlock(&lock);
    launches++;
    uint64_t number = destructions;
    pthread_rwlock_unlock(&lock);
    return number;
}

void texture_launch_end(void)
{
    pthread_rwlock_wrlock(&lock);
    if (--launches == 0 && garbage) {
        free_objects(is_destroyed, NULL);
        garbage = false;
    }
    pthread_rwlock_unlock(&lock);
}

bool texture_find_object(uint64_t launch, uint64_t handle, struct ptx_texture *out)
{
    pthread_rwlock_rdlock(&lock);
    const struct object *o = find_any(handle);
    bool found = o && !o->dead && (!o->destroyed || launch < o->destroyed);
    if (found)
        *out = o->meaning;
    pthread_rwlock_unlock(&lock);
    return found;
}

void texture_forget(const struct array *array, const struct mipmap *mipmap)
{
    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < objects.capacity; i++) {
        struct object *o = objects.slots[i].used ? (struct object *)(uintptr_t)objects.slots[i].value : NULL;
        /* A surface may be of a level of the mipmap. */
        if (o && ((array && o->array == array) ||
                  (mipmap && (o->mipmap == mipmap || (o->array && !o->dead && o->array->mipmap == mipmap)))))
            o->dead = true;
    }
    pthread_rwlock_unlock(&lock);
}

void texture_free_context(const struct context *context)
{
    pthread_rwlock_wrlock(&lock);
    free_objects(is_of, context);
    pthread_rwlock_unlock(&lock);
}

/* ---- what an object means ---- */

static void take_array(struct ptx_texture *t, const struct array *a)
{
    bool layered = array_layered(a);
    if (!t->level_count) {
        t->channels = a->format.channels;
        t->bits = a->format.bits;
        t->kind = a->format.kind;
        t->read_normalised = a->format.normalised;
        t->layers = layered ? a->slices : 1;
    }
    t->levels[t->level_count++] = (struct ptx_texture_level){
        .host = a->memory,
        .row_bytes = a->row_bytes,
        .slice_bytes = a->slice_bytes,
        .width = a->width,
        .height = a->height,
        .depth = layered ? 1 : a->slices,
    };
}

static CUresult take_device(struct ptx_texture *t, uint64_t address, CUarray_format format, unsigned channels,
                            uint64_t width, uint64_t height, uint64_t pitch)
{
    struct array_format f;
    CUresult result = array_format_of(format, channels, &f);
    if (result != CUDA_SUCCESS)
        return result;
    t->channels = f.channels;
    t->bits = f.bits;
    t->kind = f.kind;
    t->read_normalised = f.normalised;
    t->layers = t->level_count = 1;
    t->linear_memory = true;
    t->levels[0] = (struct ptx_texture_level){.address = address,
                                              .row_bytes = pitch,
                                              .slice_bytes = pitch * height,
                                              .width = (uint32_t)width,
                                              .height = (uint32_t)height,
                                              .depth = 1};
    return address && address % BASE_ALIGN == 0 && memory_lookup(address, NULL) ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_INVALID_VALUE;
}

static CUresult take_resource(struct object *o, const CUDA_RESOURCE_DESC *r)
{
    struct ptx_texture *t = &o->meaning;
    struct array_format f;
    if (r->flags)
        return CUDA_ERROR_INVALID_VALUE;
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        o->array = array_from(r->res.array.hArray);
        if (!o->array)
            return CUDA_ERROR_INVALID_HANDLE;
        take_array(t, o->array);
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        o->mipmap = mipmap_from(r->res.mipmap.hMipmappedArray);
        if (!o->mipmap)
            return CUDA_ERROR_INVALID_HANDLE;
        for (unsigned i = 0; i < o->mipmap->count; i++)
            take_array(t, o->mipmap->levels[i]);
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR: {
        CUresult result = array_format_of(r->res.linear.format, r->res.linear.numChannels, &f);
        uint64_t width = result == CUDA_SUCCESS ? r->res.linear.sizeInBytes / (f.channels * f.bits / 8u) : 1;
        if (!width || width > MAX_LINEAR_TEXELS)
            return CUDA_ERROR_INVALID_VALUE;
        return take_device(t, r->res.linear.devPtr, r->res.linear.format, r->res.linear.numChannels, width, 1,
                           r->res.linear.sizeInBytes);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
        uint64_t width = r->res.pitch2D.width, height = r->res.pitch2D.height, pitch = r->res.pitch2D.pitchInBytes;
        CUresult result = array_format_of(r->res.pitch2D.format, r->res.pitch2D.numChannels, &f);
        if (!width || !height || width > 131072 || height > 65000 || pitch % PITCH_ALIGN || pitch > INT32_MAX ||
            (result == CUDA_SUCCESS && pitch < width * f.channels * f.bits / 8u))
            return CUDA_ERROR_INVALID_VALUE;
        return take_device(t, r->res.pitch2D.devPtr, r->res.pitch2D.format, r->res.pitch2D.numChannels, width, height,
                           pitch);
    }
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Addressing of both interfaces has the same order as the executor's. */
_Static_assert(CU_TR_ADDRESS_MODE_WRAP == (int)PTX_ADDRESS_WRAP && CU_TR_ADDRESS_MODE_CLAMP == (int)PTX_ADDRESS_CLAMP &&
                   CU_TR_ADDRESS_MODE_MIRROR == (int)PTX_ADDRESS_MIRROR &&
                   CU_TR_ADDRESS_MODE_BORDER == (int)PTX_ADDRESS_BORDER,
               "addressing modes");

static CUresult take_sampler(struct ptx_texture *t, const CUDA_TEXTURE_DESC *d)
{
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    if ((d->flags & ~known) || (unsigned)d->filterMode > CU_TR_FILTER_MODE_LINEAR ||
        (unsigned)d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; i++) {
        if ((unsigned)d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        t->addressing[i] = (enum ptx_addressing)d->addressMode[i];
    }
    t->linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
    t->mip_linear = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    t->normalised = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
    t->read_normalised |= t->kind != PTX_TEXEL_FLOAT && t->bits < 32 && !(d->flags & CU_TRSF_READ_AS_INTEGER);
    t->srgb = d->flags & CU_TRSF_SRGB;
    t->seamless = d->flags & CU_TRSF_SEAMLESS_CUBEMAP;
    t->level_bias = d->mipmapLevelBias;
    t->level_min = d->minMipmapLevelClamp;
    t->level_max = d->maxMipmapLevelClamp;
    memcpy(t->border, d->borderColor, sizeof t->border);
    return CUDA_SUCCESS;
}

/* Another format of the same size, and a part of the levels and layers. */
static CUresult take_view(struct ptx_texture *t, const CUDA_RESOURCE_VIEW_DESC *v)
{
    if (t->linear_memory)
        return CUDA_ERROR_INVALID_VALUE;
    if (v->format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1)
        return log_unsupported_part("cuTexObjectCreate", "block compression");
    if (v->format) { /* unsigned and signed, by 8, 16 and 32 bits; then floats; of 1, 2 and 4 channels */
        unsigned n = (unsigned)v->format - 1, group = n / 3, channels = 1u << n % 3;
        unsigned bits = group < 6 ? 8u << group / 2 : 16u << (group - 6);
        if (channels * bits != (unsigned)t->channels * t->bits)
            return CUDA_ERROR_INVALID_VALUE;
        t->kind = group >= 6 ? PTX_TEXEL_FLOAT : group % 2 ? PTX_TEXEL_SIGNED : PTX_TEXEL_UNSIGNED;
        t->channels = (uint8_t)channels;
        t->bits = (uint8_t)bits;
        t->read_normalised = false;
    }
    if (v->firstMipmapLevel > v->lastMipmapLevel || v->lastMipmapLevel >= t->level_count ||
        v->firstLayer > v->lastLayer || v->lastLayer >= t->layers)
        return CUDA_ERROR_INVALID_VALUE;
    t->level_count = v->lastMipmapLevel - v->firstMipmapLevel + 1;
    memmove(t->levels, t->levels + v->firstMipmapLevel, t->level_count * sizeof *t->levels);
    t->layers = v->lastLayer - v->firstLayer + 1;
    for (uint32_t i = 0; i < t->level_count; i++)
        t->levels[i].host = (char *)t->levels[i].host + v->firstLayer * t->levels[i].slice_bytes;
    return CUDA_SUCCESS;
}

/* ---- objects ---- */

static CUresult add(struct object *o, uint64_t *handle)
{
    pthread_rwlock_wrlock(&lock);
    bool good = map_put(&objects, last_handle + 1, (uintptr_t)o);
    if (good)
        *handle = ++last_handle;
    pthread_rwlock_unlock(&lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                           const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pTexObject || !pResDesc || !pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *o = calloc(1, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->context = c;
    o->resource = *pResDesc;
    o->texture = *pTexDesc;
    o->has_view = pResViewDesc != NULL;
    result = take_resource(o, pResDesc);
    if (result == CUDA_SUCCESS && pResViewDesc) {
        o->view = *pResViewDesc;
        result = take_view(&o->meaning, pResViewDesc);
    }
    if (result == CUDA_SUCCESS)
        result = take_sampler(&o->meaning, pTexDesc);
    if (result == CUDA_SUCCESS)
        result = add(o, (uint64_t *)pTexObject);
    if (result != CUDA_SUCCESS)
        free(o);
    return result;
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *o = calloc(1, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->context = c;
    o->resource = *pResDesc;
    o->surface = o->meaning.surface = true;
    result = take_resource(o, pResDesc);
    if (result == CUDA_SUCCESS && !(o->array->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = add(o, (uint64_t *)pSurfObject);
    if (result != CUDA_SUCCESS)
        free(o);
    return result;
}

static CUresult destroy(uint64_t handle, bool surface)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS || !handle)
        return result;
    pthread_rwlock_wrlock(&lock);
    struct object *o = find(handle);
    bool good = o && o->surface == surface;
    if (good && launches) {
        o->destroyed = ++destructions;
        garbage = true;
    } else if (good) {
        map_remove(&objects, handle);
        free(o);
    }
    pthread_rwlock_unlock(&lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectDestroy(CUtexObject texObject)
{
    return destroy(texObject, false);
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
    return destroy(surfObject, true);
}

/* ---- questions ---- */

static CUresult copy_of(uint64_t handle, bool surface, struct object *out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_rwlock_rdlock(&lock);
    const struct object *o = find(handle);
    bool good = o && o->surface == surface;
    if (good)
        *out = *o;
    pthread_rwlock_unlock(&lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult resource_of(uint64_t handle, bool surface, CUDA_RESOURCE_DESC *out)
{
    struct object o;
    CUresult result = out ? copy_of(handle, surface, &o) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = o.resource;
    return result;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    return resource_of(texObject, false, pResDesc);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    return resource_of(surfObject, true, pResDesc);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    struct object o;
    CUresult result = pTexDesc ? copy_of(texObject, false, &o) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pTexDesc = o.texture;
    return result;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
    struct object o;
    CUresult result = pResViewDesc ? copy_of(texObject, false, &o) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !o.has_view)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pResViewDesc = o.view;
    return result;
}
