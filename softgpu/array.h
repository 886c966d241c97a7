/* array.h - CUDA arrays and mipmapped arrays: their storage, and which handles are alive.
 *
 * An array's elements lie row after row in memory of the host that has no device address. Layers of a layered array,
 * and faces of a cubemap, are slices like those of depth. Destroying waits for the device; a handle is dead before
 * that, so that nothing new finds its memory afterwards.
 */
#ifndef SOFTGPU_ARRAY_H
#define SOFTGPU_ARRAY_H

#include "softgpu/context.h"

enum { ARRAY_MAX_LEVELS = PTX_TEXTURE_MAX_LEVELS };

/* An element's format; `normalised`: of the UNORM and SNORM formats, which are read as floats always. */
struct array_format {
    uint8_t channels, bits;
    enum ptx_texel_kind kind;
    bool normalised;
};
/* CUDA_ERROR_INVALID_VALUE for what is no format, CUDA_ERROR_NOT_SUPPORTED for those that are not there. */
CUresult array_format_of(CUarray_format format, unsigned channels, struct array_format *out);

struct array {
    CUDA_ARRAY3D_DESCRIPTOR desc; /* as asked for */
    struct context *context;
    struct mipmap *mipmap; /* whose level it is; NULL */
    struct array_format format;
    uint32_t element;               /* bytes */
    uint32_t width, height, slices; /* at least 1 */
    uint64_t row_bytes, slice_bytes;
    void *memory;
    struct array *next;
};
struct mipmap {
    struct context *context;
    unsigned count;
    struct array *levels[ARRAY_MAX_LEVELS];
    struct mipmap *next;
};

/* Whether the layers of the array are its slices. */
static inline bool array_layered(const struct array *a)
{
    return a->desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

/* The live array or mipmapped array of a handle, or NULL. */
struct array *array_from(CUarray handle);
struct mipmap *mipmap_from(CUmipmappedArray handle);

CUresult array_create(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, struct array **out);
CUresult mipmap_create(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                       struct mipmap **out);
/* Handle first, then the work that may use it, then the memory. CUDA_ERROR_INVALID_HANDLE for a level of a mipmap. */
CUresult array_destroy(struct array *array);
CUresult mipmap_destroy(struct mipmap *mipmap);
/* What is left of a context that is torn down, when its work is done. */
void array_free_context(const struct context *context);

/* Whether a box of `width` bytes at byte x lies in the array; *address gets its first byte. */
bool array_box(const struct array *array, uint64_t x, uint64_t y, uint64_t z, uint64_t width, uint64_t height,
               uint64_t depth, uint64_t *address);

/* ---- api_texture.c ---- */

/* Texture and surface objects of this array, or mipmap, are of nothing from now on. */
void texture_forget(const struct array *array, const struct mipmap *mipmap);
void texture_free_context(const struct context *context);
/* A launch that was queued before an object was destroyed still finds it: it asks with the number that begin() gave it
 * when it was queued. end() when it is done. */
uint64_t texture_launch_begin(void);
void texture_launch_end(void);
bool texture_find_object(uint64_t launch, uint64_t handle, struct ptx_texture *out);

#endif
