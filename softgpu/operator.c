#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/capture.h"
#include "softgpu/context.h"
#include "softgpu/fault.h"
#include "softgpu/memory.h"
#include "softgpu/operator.h"
#include "softgpu/trace.h"
#include "softgpu/work_operator.h"

enum { SLOW_FACTOR = 10, SLOW_LAUNCH_NS = 10000 }; /* as for launches */

/* A copy of memory that is not in one piece. */
struct bounce {
    uint64_t address, rows, row_bytes, pitch;
    char *copy;
    bool write;
    struct bounce *next;
};

struct softgpu_operator_state {
    struct bounce *bounces;
    struct fault_watch *watch; /* NULL: nobody asks what is written */
    bool failed;
};

/* Of a graph. The lock is for run(): two executable graphs may share it. */
struct shared_operator {
    struct softgpu_operator *work;
    pthread_mutex_t lock;
    atomic_uint refs;
};

struct operator_op {
    struct op op;
    struct softgpu_operator *work;
    struct shared_operator *shared; /* reference; NULL: `work` belongs to the operation */
    struct context *context;
    struct fault_plan faults;
};

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
}

static double factor(const struct fault_plan *plan, enum fault_kind kind)
{
    return plan->rate[kind] > 1 ? plan->rate[kind] : SLOW_FACTOR;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Whether all of [address, address + bytes) is mapped so; *direct when it is one piece of the host's memory. */
static bool reachable(uint64_t address, uint64_t bytes, bool write, char **direct)
{
    *direct = NULL;
    for (uint64_t done = 0; done < bytes;) {
        struct ptx_range range;
        if (!memory_find(NULL, address + done, &range) || (write && (range.flags & PTX_RANGE_READ_ONLY)))
            return false;
        uint64_t offset = address + done - range.address, room = range.bytes - offset;
        if (!done && room >= bytes)
            *direct = (char *)range.host + offset;
        done += room;
    }
    return true;
}

static bool rows_reachable(uint64_t address, uint64_t rows, uint64_t row_bytes, uint64_t pitch, bool write)
{
    char *direct;
    for (uint64_t i = 0; i < rows; i++)
        if (!reachable(address + i * pitch, row_bytes, write, &direct))
            return false;
    return true;
}

static void copy_rows(const struct bounce *b, bool back)
{
    for (uint64_t i = 0; i < b->rows; i++) {
        uint64_t there = b->address + i * b->pitch, here = (uint64_t)(uintptr_t)(b->copy + i * b->pitch);
        memory_copy(back ? there : here, back ? here : there, b->row_bytes);
    }
}

static void *bounce(struct softgpu_operator_state *state, struct bounce region)
{
    uint64_t bytes = (region.rows - 1) * region.pitch + region.row_bytes;
    struct bounce *b = malloc(sizeof *b);
    char *copy = bytes ? malloc(bytes) : NULL;
    if (!b || !copy) {
        free(copy);
        free(b);
        return NULL;
    }
    *b = region;
    b->copy = copy;
    b->next = state->bounces;
    state->bounces = b;
    copy_rows(b, false);
    return copy;
}

void *softgpu_operator_map(struct softgpu_operator *self, CUdeviceptr address, uint64_t rows, uint64_t row_bytes,
                           uint64_t pitch, bool write)
{
    static char empty[64];
    char *direct;
    if (!rows || !row_bytes)
        return empty;
    if (rows == 1)
        pitch = row_bytes;
    if (reachable(address, (rows - 1) * pitch + row_bytes, write, &direct) && direct)
        return direct;
    void *copy = NULL;
    if (rows_reachable(address, rows, row_bytes, pitch, write))
        copy = bounce(self->state, (struct bounce){address, rows, row_bytes, pitch, NULL, write, NULL});
    if (!copy)
        self->state->failed = true;
    return copy;
}

void softgpu_operator_mark(struct softgpu_operator *self, CUdeviceptr address, uint64_t bytes)
{
    struct fault_watch *watch = self->state->watch;
    struct ptx_range range;
    while (watch && bytes && fault_watch_find(watch, address, &range)) {
        uint64_t offset = address - range.address, n = range.bytes - offset;
        n = n < bytes ? n : bytes;
        for (uint64_t i = offset; i < offset + n; i++)
            range.written[i / 8] |= (uint8_t)(1u << i % 8);
        address += n;
        bytes -= n;
    }
}

/* Gives back what was copied; newest first, so that the order of writes to the same place does not matter. */
static void settle(struct softgpu_operator_state *state)
{
    for (struct bounce *b = state->bounces, *next; b; b = next) {
        next = b->next;
        if (b->write && !state->failed)
            copy_rows(b, true);
        free(b->copy);
        free(b);
    }
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static uint32_t flaws_of(const struct fault_plan *plan)
{
    return (fault_has(plan, FAULT_TF32) ? (uint32_t)SOFTGPU_FLAW_TF32 : 0) |
           (fault_has(plan, FAULT_FP16ACC) ? (uint32_t)SOFTGPU_FLAW_FP16ACC : 0) |
           (fault_has(plan, FAULT_FTZ) ? (uint32_t)SOFTGPU_FLAW_FTZ : 0);
}

static void run(struct op *op)
{
    struct operator_op *o = (struct operator_op *)op;
    struct fault_watch watch;
    struct softgpu_operator_state state = {0};
    if (fault_has(&o->faults, FAULT_STALE))
        return;
    if (o->shared)
        pthread_mutex_lock(&o->shared->lock);
    if (fault_needs_watch(&o->faults)) {
        fault_watch_begin(&watch);
        state.watch = &watch;
    }
    uint64_t start = state_now_ns();
    o->work->flaws = flaws_of(&o->faults);
    o->work->seed = config_get()->variant;
    if (fault_has(&o->faults, FAULT_REORDER))
        o->work->seed = o->faults.seed[FAULT_REORDER] | 1;
    o->work->state = &state;
    o->work->run(o->work);
    o->work->state = NULL;
    settle(&state);
    if (state.watch)
        fault_watch_end(&watch, &o->faults);
    if (fault_has(&o->faults, FAULT_SLOWMEM))
        sleep_ns((uint64_t)((double)(state_now_ns() - start) * (factor(&o->faults, FAULT_SLOWMEM) - 1)));
    if (o->shared)
        pthread_mutex_unlock(&o->shared->lock);
    if (state.failed) {
        log_unsupported_part(o->work->name, "reached memory that is not there");
        context_fail(o->context, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    if (fault_has(&o->faults, FAULT_STICKY)) {
        fault_log_sticky(o->work->name);
        context_fail(o->context, CUDA_ERROR_LAUNCH_FAILED);
    }
}

/* Among kernels, since it takes the place of one: of one block, as nobody knows better. */
static void describe(const struct op *op, struct trace_work *work)
{
    work->kind = TRACE_KERNEL;
    work->kernel.name = ((const struct operator_op *)op)->work->name;
    for (int i = 0; i < 3; i++)
        work->kernel.grid[i] = work->kernel.block[i] = 1;
}

static void drop(struct op *op)
{
    struct operator_op *o = (struct operator_op *)op;
    if (o->shared)
        operator_unref(o->shared);
    else if (o->work)
        o->work->drop(o->work);
    free(o);
}

/* An operation of the routine, with the flaws of this call; the caller says who owns the routine. */
static CUresult make(struct softgpu_operator *self, struct context *context, struct operator_op **out)
{
    struct fault_plan faults;
    fault_on_call(self->name, &faults);
    if (fault_has(&faults, FAULT_LAUNCHFAIL))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (fault_has(&faults, FAULT_SLOWLAUNCH))
        sleep_ns((uint64_t)(factor(&faults, FAULT_SLOWLAUNCH) * SLOW_LAUNCH_NS));
    struct operator_op *o = op_new(sizeof *o, run, drop);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->op.describe = describe;
    o->context = context;
    o->faults = faults;
    *out = o;
    return CUDA_SUCCESS;
}

CUresult softgpu_operator_submit(CUstream hStream, struct softgpu_operator *self)
{
    struct context *c;
    struct stream *stream;
    struct operator_op *o;
    bool captured;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_enter(stream, false, &captured);
    if (result == CUDA_SUCCESS && captured)
        return capture_operator(stream, self);
    if (result == CUDA_SUCCESS)
        result = make(self, stream->context, &o);
    if (result != CUDA_SUCCESS)
        return result;
    o->work = self;
    result = engine_submit(stream, &o->op);
    if (result != CUDA_SUCCESS)
        o->work = NULL; /* it stays the caller's */
    op_unref(&o->op);
    return result;
}

/* ---- in graphs -------------------------------------------------------------------------------------------------- */

struct shared_operator *operator_share(struct softgpu_operator *self)
{
    struct shared_operator *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    shared->work = self;
    pthread_mutex_init(&shared->lock, NULL);
    atomic_init(&shared->refs, 1);
    return shared;
}

void operator_disown(struct shared_operator *shared)
{
    shared->work = NULL;
}

void operator_ref(struct shared_operator *shared)
{
    atomic_fetch_add(&shared->refs, 1);
}

void operator_unref(struct shared_operator *shared)
{
    if (!shared || atomic_fetch_sub(&shared->refs, 1) != 1)
        return;
    if (shared->work)
        shared->work->drop(shared->work);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

CUresult operator_make(struct shared_operator *shared, struct context *context, struct op **out)
{
    struct operator_op *o;
    CUresult result = make(shared->work, context, &o);
    if (result != CUDA_SUCCESS)
        return result;
    operator_ref(shared);
    o->work = shared->work;
    o->shared = shared;
    *out = &o->op;
    return CUDA_SUCCESS;
}

const char *operator_name(const struct shared_operator *shared)
{
    return shared->work->name;
}

void softgpu_operator_note(const char *name)
{
    log_unsupported(name);
}
