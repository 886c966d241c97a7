#include "softgpu/array.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/memory.h"

enum { ROW_ALIGN = 32, MAX_SIDE = 131072, MAX_DEPTH = 16384 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists */
static struct array *arrays;                             /* but levels of mipmaps */
static struct mipmap *mipmaps;

struct array *array_from(CUarray handle)
{
    return handle && handle_of(handle) == HANDLE_ARRAY ? (struct array *)handle : NULL;
}

struct mipmap *mipmap_from(CUmipmappedArray handle)
{
    return handle && handle_of(handle) == HANDLE_MIPMAP ? (struct mipmap *)handle : NULL;
}

/* ---- formats ---- */

static bool plain_format(CUarray_format format, struct array_format *f)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_UNSIGNED_INT32:
        f->kind = PTX_TEXEL_UNSIGNED;
        f->bits = (uint8_t)(8 << (format - CU_AD_FORMAT_UNSIGNED_INT8));
        return true;
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
        f->kind = PTX_TEXEL_SIGNED;
        f->bits = (uint8_t)(8 << (format - CU_AD_FORMAT_SIGNED_INT8));
        return true;
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT:
        f->kind = PTX_TEXEL_FLOAT;
        f->bits = format == CU_AD_FORMAT_HALF ? 16 : 32;
        return true;
    default:
        return false;
    }
}

CUresult array_format_of(CUarray_format format, unsigned channels, struct array_format *out)
{
    *out = (struct array_format){.channels = (uint8_t)channels};
    if (channels != 1 && channels != 2 && channels != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (plain_format(format, out))
        return CUDA_SUCCESS;
    unsigned n = (unsigned)format - CU_AD_FORMAT_UNORM_INT8X1;
    if (n < 12) { /* unsigned and signed, of 8 and 16 bits, of 1, 2 and 4 channels */
        out->kind = n < 6 ? PTX_TEXEL_UNSIGNED : PTX_TEXEL_SIGNED;
        out->bits = n / 3 % 2 ? 16 : 8;
        out->normalised = true;
        return channels == 1u << n % 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    return log_unsupported_part("arrays", "this format");
}

/* ---- arrays ---- */

static CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                           CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
    if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_DEPTH_TEXTURE |
                    CUDA_ARRAY3D_VIDEO_ENCODE_DECODE))
        return log_unsupported_part("arrays", "sparse, deferred, depth or video");
    if ((d->Flags & ~known) || !d->Width || d->Width > MAX_SIDE || d->Height > MAX_SIDE || d->Depth > MAX_DEPTH)
        return CUDA_ERROR_INVALID_VALUE;
    if (layered && !d->Depth)
        return CUDA_ERROR_INVALID_VALUE;
    if (cube && (d->Width != d->Height || (layered ? d->Depth % 6 : d->Depth != 6)))
        return CUDA_ERROR_INVALID_VALUE;
    return !layered && !cube && d->Depth && !d->Height ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* An array that nobody knows yet. */
static CUresult make(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, struct array **out)
{
    struct array_format format;
    CUresult result = array_format_of(desc->Format, desc->NumChannels, &format);
    if (result == CUDA_SUCCESS)
        result = check_shape(desc);
    if (result != CUDA_SUCCESS)
        return result;
    struct array *a = calloc(1, sizeof *a);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a->desc = *desc;
    a->context = context;
    a->format = format;
    a->element = format.channels * format.bits / 8u;
    a->width = (uint32_t)desc->Width;
    a->height = desc->Height ? (uint32_t)desc->Height : 1;
    a->slices = desc->Depth ? (uint32_t)desc->Depth : 1;
    a->row_bytes = ((uint64_t)a->width * a->element + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
    a->slice_bytes = a->row_bytes * a->height;
    uint64_t free_bytes, total;
    memory_info(context->device, &free_bytes, &total);
    result = a->slice_bytes * a->slices > total
                 ? CUDA_ERROR_OUT_OF_MEMORY
                 : memory_alloc_host(context, a->slice_bytes * a->slices, MEMORY_ARRAY, 0, &a->memory);
    if (result != CUDA_SUCCESS) {
        free(a);
        return result;
    }
    *out = a;
    return CUDA_SUCCESS;
}

static void unmake(struct array *a)
{
    memory_free((uintptr_t)a->memory, 1u << MEMORY_ARRAY);
    free(a);
}

CUresult array_create(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, struct array **out)
{
    struct array *a;
    CUresult result = make(context, desc, &a);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_add(a, HANDLE_ARRAY)) {
        unmake(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    a->next = arrays;
    arrays = a;
    pthread_mutex_unlock(&lock);
    *out = a;
    return CUDA_SUCCESS;
}

/* Work that was queued before has its textures still; what another thread queues meanwhile finds none, or is waited
 * for.
 */
static CUresult forget(const struct array *array, const struct mipmap *mipmap)
{
    CUresult result = engine_wait_device();
    texture_forget(array, mipmap);
    return result == CUDA_SUCCESS ? engine_wait_device() : result;
}

CUresult array_destroy(struct array *a)
{
    if (a->mipmap || !handle_remove(a, HANDLE_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = forget(a, NULL);
    pthread_mutex_lock(&lock);
    for (struct array **at = &arrays; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    /* At exit, a kernel that did not end may still run. */
    if (result == CUDA_SUCCESS)
        unmake(a);
    return result;
}

/* ---- mipmapped arrays ---- */

static size_t halved(size_t n, unsigned level)
{
    return n && !(n >> level) ? 1 : n >> level;
}

static void unmake_mipmap(struct mipmap *m)
{
    for (unsigned i = 0; i < m->count; i++)
        unmake(m->levels[i]);
    free(m);
}

static void remove_levels(const struct mipmap *m)
{
    for (unsigned i = 0; i < m->count; i++)
        handle_remove(m->levels[i], HANDLE_ARRAY);
}

CUresult mipmap_create(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                       struct mipmap **out)
{
    CUDA_ARRAY3D_DESCRIPTOR d = *desc;
    bool layered = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    size_t largest = d.Width > d.Height ? d.Width : d.Height;
    if (!layered && d.Depth > largest)
        largest = d.Depth;
    unsigned most = 1;
    while (largest >> most)
        most++;
    if (!levels)
        return CUDA_ERROR_INVALID_VALUE;
    if (levels > most)
        levels = most;
    if (levels > ARRAY_MAX_LEVELS)
        levels = ARRAY_MAX_LEVELS;
    struct mipmap *m = calloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->context = context;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < levels && result == CUDA_SUCCESS; i++) {
        d.Width = halved(desc->Width, i);
        d.Height = halved(desc->Height, i);
        d.Depth = layered ? desc->Depth : halved(desc->Depth, i);
        result = make(context, &d, &m->levels[i]);
        if (result != CUDA_SUCCESS)
            break;
        m->levels[i]->mipmap = m;
        m->count++;
        if (!handle_add(m->levels[i], HANDLE_ARRAY))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS && !handle_add(m, HANDLE_MIPMAP))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        remove_levels(m);
        unmake_mipmap(m);
        return result;
    }
    pthread_mutex_lock(&lock);
    m->next = mipmaps;
    mipmaps = m;
    pthread_mutex_unlock(&lock);
    *out = m;
    return CUDA_SUCCESS;
}

CUresult mipmap_destroy(struct mipmap *m)
{
    if (!handle_remove(m, HANDLE_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    remove_levels(m);
    CUresult result = forget(NULL, m);
    pthread_mutex_lock(&lock);
    for (struct mipmap **at = &mipmaps; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        unmake_mipmap(m);
    return result;
}

/* Their memory goes with all of the context's. */
void array_free_context(const struct context *context)
{
    pthread_mutex_lock(&lock);
    for (struct array **at = &arrays; *at;) {
        struct array *a = *at;
        if (a->context != context) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        handle_remove(a, HANDLE_ARRAY);
        texture_forget(a, NULL); /* objects of other contexts */
        free(a);
    }
    for (struct mipmap **at = &mipmaps; *at;) {
        struct mipmap *m = *at;
        if (m->context != context) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        handle_remove(m, HANDLE_MIPMAP);
        remove_levels(m);
        texture_forget(NULL, m);
        for (unsigned i = 0; i < m->count; i++)
            free(m->levels[i]);
        free(m);
    }
    pthread_mutex_unlock(&lock);
}

bool array_box(const struct array *a, uint64_t x, uint64_t y, uint64_t z, uint64_t width, uint64_t height,
               uint64_t depth, uint64_t *address)
{
    uint64_t row = (uint64_t)a->width * a->element;
    if (x > row || width > row - x || y > a->height || height > a->height - y || z > a->slices || depth > a->slices - z)
        return false;
    *address = (uintptr_t)a->memory + z * a->slice_bytes + y * a->row_bytes + x;
    return true;
}
