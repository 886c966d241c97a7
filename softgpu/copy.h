/* copy.h - boxes of bytes: every copy and fill of the API is one of these. */
#ifndef SOFTGPU_COPY_H
#define SOFTGPU_COPY_H

#include "softgpu/context.h"

enum copy_side { COPY_HOST, COPY_DEVICE, COPY_ANY };
struct copy_box {
    uint64_t width, height, depth; /* bytes, rows, slices */
    uint64_t to, from;             /* first byte */
    uint64_t to_pitch, from_pitch; /* bytes from row to row */
    uint64_t to_slice, from_slice; /* bytes from slice to slice */
    enum copy_side to_side, from_side;
};
/* CUDA_ERROR_INVALID_VALUE when some byte may not be accessed. A box without bytes is fine. */
CUresult copy_check(const struct copy_box *box);
/* Copies in stream order; with `wait`, the call returns when the bytes are there. `params` is what the box was made of,
 * which a captured stream keeps. */
CUresult copy_submit(struct context *context, CUstream stream, const CUDA_MEMCPY3D *params, const struct copy_box *box,
                     bool wait);

/* The box that the parameters of a copy mean, with the storage of arrays (api_copy.c). */
CUresult copy_box_of(const CUDA_MEMCPY3D *params, struct copy_box *box);
/* The operation of a box that was checked, to be run in any stream's order. */
CUresult copy_make(const struct copy_box *box, struct op **out);

struct fill_box {
    uint64_t to, pitch;
    uint64_t width, height;  /* elements, rows */
    uint32_t element, value; /* element: 1, 2 or 4 bytes */
};
CUresult fill_check(const struct fill_box *box); /* CUDA_ERROR_INVALID_VALUE */
CUresult fill_make(const struct fill_box *box, struct op **out);
CUresult fill_submit(struct context *context, CUstream stream, const struct fill_box *box, bool wait);

#endif
