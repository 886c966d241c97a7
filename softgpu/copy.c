#include "softgpu/copy.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/capture.h"
#include "softgpu/memory.h"
#include "softgpu/trace_state.h"

/* Copies from pageable memory up to this size are staged, as on a device: the caller may reuse its buffer at once. */
enum { STAGED_BYTES = 64 << 10 };

struct copy_op {
    struct op op;
    struct copy_box box;
    struct fill_box fill;
    void *staged;
    bool async; /* by the name of the call that made it */
};

/* ---- checks ----------------------------------------------------------------------------------------------------- */

/* From the first byte to the last one. */
static unsigned __int128 span(uint64_t pitch, uint64_t slice, const struct copy_box *b)
{
    return (unsigned __int128)(b->depth - 1) * slice + (unsigned __int128)(b->height - 1) * pitch + b->width;
}

/* Of mapped ranges each row counts by itself: what is between rows may be unmapped. */
static bool rows_mapped(uint64_t start, uint64_t pitch, uint64_t slice, bool write, const struct copy_box *b)
{
    for (uint64_t z = 0; z < b->depth; z++)
        for (uint64_t y = 0; y < b->height; y++) {
            /* Rows without gaps are one range; then the first row stands for all. */
            uint64_t bytes = pitch == b->width ? b->width * b->height : b->width;
            if (!memory_covers(start + z * slice + y * pitch, bytes, write))
                return false;
            if (pitch == b->width)
                break;
        }
    return true;
}

static bool side_ok(uint64_t start, uint64_t pitch, uint64_t slice, enum copy_side side, bool write,
                    const struct copy_box *b)
{
    struct allocation a;
    unsigned __int128 bytes = span(pitch, slice, b);
    if (bytes > UINT64_MAX - start)
        return false;
    if (!memory_lookup(start, &a))
        return side != COPY_DEVICE && start && !pages_in_window(start);
    if (a.kind == MEMORY_MAPPING)
        return rows_mapped(start, pitch, slice, write, b);
    return bytes <= a.bytes - (start - a.address);
}

CUresult copy_check(const struct copy_box *b)
{
    if (!b->width || !b->height || !b->depth)
        return CUDA_SUCCESS;
    if ((b->height > 1 && (b->to_pitch < b->width || b->from_pitch < b->width)))
        return CUDA_ERROR_INVALID_VALUE;
    return side_ok(b->to, b->to_pitch, b->to_slice, b->to_side, true, b) &&
                   side_ok(b->from, b->from_pitch, b->from_slice, b->from_side, false, b)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

/* ---- work ------------------------------------------------------------------------------------------------------- */

static void do_copy(const struct copy_box *b, const void *staged)
{
    bool flat = b->to_pitch == b->width && b->from_pitch == b->width;
    uint64_t from = staged ? (uintptr_t)staged : b->from;
    for (uint64_t z = 0; z < b->depth; z++)
        for (uint64_t y = 0; y < b->height; y++) {
            uint64_t bytes = flat ? b->width * b->height : b->width;
            memory_copy(b->to + z * b->to_slice + y * b->to_pitch, from + z * b->from_slice + y * b->from_pitch, bytes);
            if (flat)
                break;
        }
}

static void run_copy(struct op *op)
{
    struct copy_op *c = (struct copy_op *)op;
    do_copy(&c->box, c->staged);
}

static void run_fill(struct op *op)
{
    const struct fill_box *b = &((struct copy_op *)op)->fill;
    for (uint64_t y = 0; y < b->height; y++)
        memory_fill(b->to + y * b->pitch, b->value, b->element, b->width);
}

static void describe_copy(const struct op *op, struct trace_work *work)
{
    const struct copy_op *c = (const struct copy_op *)op;
    const struct copy_box *b = &c->box;
    work->kind = TRACE_COPY;
    work->copy.bytes = b->width * b->height * b->depth;
    work->copy.from = trace_memory_of(b->from, b->from_side == COPY_DEVICE, &work->copy.from_device);
    work->copy.to = trace_memory_of(b->to, b->to_side == COPY_DEVICE, &work->copy.to_device);
    work->copy.async = c->async;
}

static void describe_fill(const struct op *op, struct trace_work *work)
{
    const struct copy_op *c = (const struct copy_op *)op;
    work->kind = TRACE_FILL;
    work->fill.bytes = c->fill.width * c->fill.height * c->fill.element;
    work->fill.value = c->fill.value;
    uint32_t device;
    work->fill.to = trace_memory_of(c->fill.to, true, &device);
    work->fill.async = c->async;
}

static void drop_copy(struct op *op)
{
    free(((struct copy_op *)op)->staged);
    free(op);
}

/* The bytes of a small source in pageable memory, taken at once. NULL when the source need not or cannot be staged. */
static void *stage(const struct copy_box *b)
{
    if (b->width > STAGED_BYTES || b->height != 1 || b->depth != 1 || memory_lookup(b->from, NULL) ||
        !memory_lookup(b->to, NULL))
        return NULL;
    void *copy = malloc(b->width);
    if (copy)
        memcpy(copy, (const void *)(uintptr_t)b->from, b->width);
    return copy;
}

/* Does the copy go from device to device in the default stream? Such a copy waits for all work of both devices, and
 * their later work waits for it. */
static bool between_devices(const struct stream *s, const struct copy_box *b, unsigned *devices)
{
    struct allocation to, from;
    if (!s->legacy || !memory_lookup(b->to, &to) || !memory_lookup(b->from, &from) || to.device == from.device)
        return false;
    *devices = 1u << to.device | 1u << from.device;
    return true;
}

static CUresult submit_copy(struct stream *s, struct copy_op *c, bool wait)
{
    unsigned devices;
    CUresult result = CUDA_SUCCESS;
    if (!between_devices(s, &c->box, &devices))
        return wait ? engine_submit_and_wait(s, &c->op) : engine_submit_and_forget(s, &c->op);
    for (struct context *side = context_all(); result == CUDA_SUCCESS && side; side = side->next)
        if (devices >> side->device & 1)
            result = engine_gather(side, &c->op);
    if (result == CUDA_SUCCESS)
        result = engine_submit(s, &c->op);
    for (struct context *side = context_all(); result == CUDA_SUCCESS && side; side = side->next)
        if (devices >> side->device & 1)
            engine_set_gate(side, &c->op);
    if (result == CUDA_SUCCESS && wait)
        result = engine_wait(&c->op);
    op_unref(&c->op);
    return result;
}

CUresult copy_make(const struct copy_box *box, struct op **out)
{
    bool empty = !box->width || !box->height || !box->depth;
    struct copy_op *c = op_new(sizeof *c, empty ? NULL : run_copy, drop_copy);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->box = *box;
    c->async = true;
    c->op.describe = empty ? NULL : describe_copy;
    *out = &c->op;
    return CUDA_SUCCESS;
}

CUresult copy_submit(struct context *context, CUstream handle, const CUDA_MEMCPY3D *params, const struct copy_box *box,
                     bool wait)
{
    struct stream *s;
    bool captured;
    CUresult result = context_stream(context, handle, &s);
    if (result == CUDA_SUCCESS)
        result = capture_enter(s, wait, &captured);
    if (result == CUDA_SUCCESS && captured) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                  .memcpy = {.copyCtx = (CUcontext)s->context, .copyParams = *params}};
        return capture_add(s, &node, NULL, 0);
    }
    if (result == CUDA_SUCCESS)
        result = copy_check(box);
    if (result != CUDA_SUCCESS)
        return result;
    if (wait && engine_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    bool empty = !box->width || !box->height || !box->depth;
    if (empty && !wait)
        return CUDA_SUCCESS;
    struct copy_op *c = op_new(sizeof *c, empty ? NULL : run_copy, drop_copy);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->box = *box;
    c->async = !wait;
    c->op.describe = empty ? NULL : describe_copy;
    /* Asynchronous copies of pageable memory are only so in name, on a device as here: from it, the call returns when
     * the bytes were taken; to it, when they have arrived. */
    if (!wait && !(c->staged = stage(box)))
        wait = !empty && (!memory_lookup(box->from, NULL) || !memory_lookup(box->to, NULL));
    result = submit_copy(s, c, wait);
    if (wait && result == CUDA_SUCCESS) {
        context_flush(s->context);
        result = context_error(s->context);
    }
    return result;
}

CUresult fill_check(const struct fill_box *box)
{
    if (box->to % box->element || (box->height > 1 && box->pitch % box->element))
        return CUDA_ERROR_INVALID_VALUE;
    if (!box->width || !box->height)
        return CUDA_SUCCESS;
    if (box->width > UINT64_MAX / box->element || box->height > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    struct copy_box check = {.width = box->width * box->element,
                             .height = box->height,
                             .depth = 1,
                             .to = box->to,
                             .to_pitch = box->height > 1 ? box->pitch : box->width * box->element,
                             .to_side = COPY_DEVICE};
    return check.to_pitch < check.width ||
                   !side_ok(check.to, check.to_pitch, check.to_slice, check.to_side, true, &check)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult fill_make(const struct fill_box *box, struct op **out)
{
    struct copy_op *c = op_new(sizeof *c, box->width && box->height ? run_fill : NULL, NULL);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->fill = *box;
    c->async = true;
    c->op.describe = describe_fill;
    *out = &c->op;
    return CUDA_SUCCESS;
}

static CUresult fill_capture(struct stream *s, const struct fill_box *box)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                                .memset = {.dst = box->to,
                                           .pitch = box->pitch,
                                           .value = box->value,
                                           .elementSize = box->element,
                                           .width = box->width,
                                           .height = box->height,
                                           .ctx = (CUcontext)s->context}};
    return box->width && box->height ? capture_add(s, &params, NULL, 0) : CUDA_SUCCESS;
}

CUresult fill_submit(struct context *context, CUstream handle, const struct fill_box *box, bool wait)
{
    struct stream *s;
    struct op *op;
    bool captured;
    CUresult result = context_stream(context, handle, &s);
    if (result == CUDA_SUCCESS)
        result = capture_enter(s, wait, &captured);
    if (result == CUDA_SUCCESS && captured)
        return fill_capture(s, box);
    if (result == CUDA_SUCCESS)
        result = fill_check(box);
    if (result != CUDA_SUCCESS || !box->width || !box->height)
        return result;
    result = fill_make(box, &op);
    if (result != CUDA_SUCCESS)
        return result;
    ((struct copy_op *)op)->async = !wait;
    /* A fill is asynchronous to the host even in its plain form, except where host memory is the target. */
    struct allocation a;
    bool host = memory_lookup(box->to, &a) && (a.kind == MEMORY_PINNED || a.kind == MEMORY_REGISTERED);
    if (wait && host && !engine_in_callback()) {
        result = engine_submit_and_wait(s, op);
        return result == CUDA_SUCCESS ? context_error(s->context) : result;
    }
    return engine_submit_and_forget(s, op);
}
