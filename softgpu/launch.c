#include "softgpu/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/array.h"
#include "softgpu/device.h"
#include "softgpu/fault.h"
#include "softgpu/graph.h"
#include "softgpu/memory.h"
#include "softgpu/trace_state.h"

enum { SLOW_FACTOR = 10, SLOW_LAUNCH_NS = 10000 }; /* without a rate; per unit of the factor */

struct launch_op {
    struct op op;
    struct context *context;
    struct image *image; /* reference */
    struct ptx_launch launch;
    uint8_t *params;
    uint64_t *variables;
    struct fault_plan faults;
    uint64_t textures; /* texture_launch_begin() */
};

/* What the executor sees of the device. */
struct view {
    struct fault_watch watch; /* first: fault_watch_find() gets the view's address */
    const struct launch_op *launch;
    unsigned reach; /* devices whose memory the kernel may use */
};

static bool find_memory(void *context, uint64_t address, struct ptx_range *range)
{
    return memory_find_within(((const struct view *)context)->reach, address, range);
}

static bool find_texture(void *context, uint64_t handle, struct ptx_texture *out)
{
    return texture_find_object(((const struct view *)context)->launch->textures, handle, out);
}

CUresult launch_fault_error(enum ptx_fault_kind kind)
{
    switch (kind) {
    case PTX_FAULT_MISALIGNED:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case PTX_FAULT_ASSERT:
        return CUDA_ERROR_ASSERT;
    case PTX_FAULT_BAD_CALL:
        return CUDA_ERROR_INVALID_PC;
    case PTX_FAULT_STACK:
        return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case PTX_FAULT_TRAP:
    case PTX_FAULT_BARRIER:
    case PTX_FAULT_TEXTURE:
        return CUDA_ERROR_LAUNCH_FAILED;
    default:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
}

static CUresult run_error(const struct ptx_result *result)
{
    switch (result->status) {
    case STATUS_OK:
        return CUDA_SUCCESS;
    case STATUS_FAULT:
        /* Outside a surface is a trap; a misaligned access to one is what it is elsewhere. */
        if (!result->fault_count ||
            (result->faults[0].space == PTX_SPACE_SURFACE && result->faults[0].kind == PTX_FAULT_OUT_OF_BOUNDS))
            return launch_fault_error(PTX_FAULT_TRAP);
        return launch_fault_error(result->faults[0].kind);
    case STATUS_LIMIT:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    case STATUS_CANCELLED:
        return CUDA_ERROR_DEINITIALIZED;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

static void print(void *context, const char *text, size_t bytes)
{
    context_print(context, text, bytes);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
}

/* What a kernel asks the device runtime about the device. */
static bool device_attribute(void *context, int attribute, int *value)
{
    return cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, 0) == CUDA_SUCCESS;
}

/* cudaGraphSetConditional. */
static void set_condition(void *context, uint64_t handle, uint32_t value)
{
    graph_set_condition(handle, value);
}

/* Runs it with the flaws that were asked for. */
static void run_flawed(struct launch_op *l, struct ptx_result *result, struct diag *diag)
{
    struct view view = {.launch = l};
    const struct ptx_memory watched = {.find = fault_watch_find, .texture = find_texture, .context = &view};
    bool watching = fault_needs_watch(&l->faults);
    uint64_t start = state_now_ns();
    if (fault_has(&l->faults, FAULT_REORDER))
        l->launch.seed = l->faults.seed[FAULT_REORDER] | 1;
    if (watching) {
        fault_watch_begin(&view.watch);
        l->launch.memory = &watched;
        l->launch.workers = 1; /* the record of what was written is not made for several */
    }
    ptx_run(&l->launch, result, diag);
    if (watching)
        fault_watch_end(&view.watch, &l->faults);
    if (fault_has(&l->faults, FAULT_SLOWMEM)) {
        double factor = l->faults.rate[FAULT_SLOWMEM] > 1 ? l->faults.rate[FAULT_SLOWMEM] : SLOW_FACTOR;
        sleep_ns((uint64_t)((double)(state_now_ns() - start) * (factor - 1)));
    }
    if (fault_has(&l->faults, FAULT_STICKY)) {
        fault_log_sticky(l->launch.kernel->name);
        context_fail(l->context, CUDA_ERROR_LAUNCH_FAILED);
    }
}

/* "launch: KERNEL: out of bounds, write of 4 bytes at 0xa0017d78400, PTX line 35, block 0 0 0 thread 1 0 0" */
static void log_fault(const struct ptx_kernel *kernel, const struct ptx_fault *f, const char *why)
{
    char detail[480];
    const struct ptx_kernel *child = f ? f->kernel : NULL;
    int used = snprintf(detail, sizeof detail, "%.150s%s%.100s: %.100s", kernel->name, child ? " launched " : "",
                        child ? child->name : "", f ? ptx_fault_kind_name(f->kind) : why);
    if (f && f->bytes && used < (int)sizeof detail)
        used += snprintf(detail + used, sizeof detail - (size_t)used, ", %s of %u bytes at 0x%" PRIx64,
                         f->access.write ? "write" : "read", f->bytes, f->address);
    if (f && used < (int)sizeof detail)
        snprintf(detail + used, sizeof detail - (size_t)used, ", PTX line %u, block %u %u %u thread %u %u %u",
                 f->access.ptx_line, f->access.block[0], f->access.block[1], f->access.block[2], f->access.thread[0],
                 f->access.thread[1], f->access.thread[2]);
    log_unsupported_part("launch", detail);
}

static void run(struct op *op)
{
    struct launch_op *l = (struct launch_op *)op;
    struct view view = {.launch = l, .reach = context_reach(l->context)};
    const struct ptx_memory memory = {.find = find_memory, .texture = find_texture, .context = &view};
    struct ptx_result result;
    struct diag diag = {.offset = -1};
    if (fault_has(&l->faults, FAULT_STALE))
        return;
    l->launch.memory = &memory;
    l->launch.cancel = engine_cancel();
    l->launch.print = print;
    l->launch.print_context = l->context;
    context_print_begin(l->context);
    if (l->faults.kinds)
        run_flawed(l, &result, &diag);
    else
        ptx_run(&l->launch, &result, &diag);
    CUresult error = run_error(&result);
    if (error != CUDA_SUCCESS) {
        log_fault(l->launch.kernel, result.fault_count ? &result.faults[0] : NULL, diag.text);
        context_fail(l->context, error);
    }
    ptx_result_free(&result);
}

static void drop(struct op *op)
{
    struct launch_op *l = (struct launch_op *)op;
    if (l->launch.kernel && l->launch.kernel->uses_textures)
        texture_launch_end();
    if (l->image)
        image_unref(l->image);
    free(l->variables);
    free(l->params);
    free(l);
}

static void describe(const struct op *op, struct trace_work *work)
{
    const struct launch_op *l = (const struct launch_op *)op;
    const struct ptx_kernel *k = l->launch.kernel;
    work->kind = TRACE_KERNEL;
    work->kernel.name = k->name;
    memcpy(work->kernel.grid, l->launch.grid, sizeof work->kernel.grid);
    memcpy(work->kernel.block, l->launch.block, sizeof work->kernel.block);
    work->kernel.static_shared = k->static_shared_bytes;
    work->kernel.dynamic_shared = l->launch.dynamic_shared_bytes;
    work->kernel.local = k->local_bytes;
    work->kernel.registers = DEVICE_REGISTERS;
    work->kernel.cooperative = l->launch.cooperative;
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

static CUresult from_extra(void **extra, const void **data, size_t *bytes)
{
    *data = NULL;
    *bytes = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *data = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
            *bytes = *(const size_t *)extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult pack(const struct launch *launch, const struct ptx_kernel *entry, uint8_t *out)
{
    if (launch->packed) {
        memcpy(out, launch->packed, entry->param_bytes);
        return CUDA_SUCCESS;
    }
    if (!entry->param_count)
        return launch->params && launch->extra ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (launch->params && launch->extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->extra) {
        const void *data;
        size_t bytes;
        CUresult result = from_extra(launch->extra, &data, &bytes);
        if (result != CUDA_SUCCESS)
            return result;
        const struct ptx_param *last = &entry->params[entry->param_count - 1];
        if (!data || bytes < last->offset + last->size)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(out, data, bytes < entry->param_bytes ? bytes : entry->param_bytes);
        return CUDA_SUCCESS;
    }
    if (!launch->params)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        if (!launch->params[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(out + entry->params[i].offset, launch->params[i], entry->params[i].size);
    }
    return CUDA_SUCCESS;
}

/* ---- configuration ---------------------------------------------------------------------------------------------- */

static uint64_t product(const uint32_t dims[3])
{
    return (uint64_t)dims[0] * dims[1] * dims[2];
}

static CUresult check_shared(const struct function *f, uint32_t dynamic)
{
    const struct device_limits *l = device_limits();
    uint64_t allowed =
        l->shared_per_block > f->entry->static_shared_bytes ? l->shared_per_block - f->entry->static_shared_bytes : 0;
    if (f->max_dynamic_shared > 0 && (uint64_t)f->max_dynamic_shared > allowed)
        allowed = (uint64_t)f->max_dynamic_shared;
    return dynamic <= allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(const struct function *f, const struct launch *launch)
{
    const struct device_limits *l = device_limits();
    for (int i = 0; i < 3; i++) {
        if (!launch->grid[i] || launch->grid[i] > l->max_grid[i] || !launch->block[i] ||
            launch->block[i] > l->max_block[i])
            return CUDA_ERROR_INVALID_VALUE;
        if (f->entry->required_block[0] &&
            launch->block[i] != (f->entry->required_block[i] ? f->entry->required_block[i] : 1))
            return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t threads = product(launch->block);
    if (threads > l->max_threads_per_block)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > f->entry->max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    CUresult result = check_shared(f, launch->dynamic_shared);
    if (result == CUDA_SUCCESS && launch->cooperative) {
        int resident = 0;
        result =
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, (CUfunction)f, (int)threads, launch->dynamic_shared);
        if (result == CUDA_SUCCESS && product(launch->grid) > (uint64_t)resident * config_get()->sm_count)
            result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    return result;
}

CUresult launch_check(const struct function *f, const struct launch *launch, void *out)
{
    CUresult result = check(f, launch);
    const struct diag *refusal = ptx_kernel_refusal(f->module->image->ptx, f->entry);
    if (result == CUDA_SUCCESS && refusal)
        result = log_unsupported_part(f->entry->name, refusal->text);
    return result == CUDA_SUCCESS ? pack(launch, f->entry, out) : result;
}

CUresult launch_make(struct function *f, const struct launch *launch, struct op **out)
{
    static uint64_t last_launch;
    const struct ptx_kernel *entry = f->entry;
    struct context *context = f->module->context;
    struct fault_plan faults;
    CUresult result = check(f, launch);
    if (result != CUDA_SUCCESS)
        return result;
    const struct diag *refusal = ptx_kernel_refusal(f->module->image->ptx, entry);
    if (refusal)
        return log_unsupported_part(entry->name, refusal->text);
    fault_on_call(entry->name, &faults);
    if (fault_has(&faults, FAULT_LAUNCHFAIL))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (fault_has(&faults, FAULT_SLOWLAUNCH))
        sleep_ns((uint64_t)((faults.rate[FAULT_SLOWLAUNCH] > 1 ? faults.rate[FAULT_SLOWLAUNCH] : SLOW_FACTOR) *
                            SLOW_LAUNCH_NS));
    struct launch_op *l = op_new(sizeof *l, run, drop);
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t variables = ptx_module_variable_count(f->module->image->ptx);
    l->op.describe = describe;
    l->context = context;
    l->faults = faults;
    l->image = image_ref(f->module->image);
    l->params = calloc(1, entry->param_bytes + 1);
    l->variables = calloc(variables + 1, sizeof *l->variables);
    result = l->params && l->variables ? pack(launch, entry, l->params) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        op_unref(&l->op);
        return result;
    }
    void *heap = NULL;
    size_t heap_bytes = 0;
    if (entry->uses_heap && (result = context_heap(context, &heap, &heap_bytes)) != CUDA_SUCCESS) {
        op_unref(&l->op);
        return result;
    }
    memcpy(l->variables, f->module->variables, variables * sizeof *l->variables);
    l->launch = (struct ptx_launch){
        .module = f->module->image->ptx,
        .kernel = entry,
        .dynamic_shared_bytes = launch->dynamic_shared,
        .params = l->params,
        .variables = l->variables,
        .cooperative = launch->cooperative,
        .heap_address = (uintptr_t)heap,
        .heap_bytes = heap_bytes,
        .heap_host = heap,
        .variant = config_get()->variant,
        .workers = config_get()->workers,
        .launch_id = __atomic_add_fetch(&last_launch, 1, __ATOMIC_RELAXED),
        .sm_count = config_get()->sm_count,
        .device_attribute = device_attribute,
        .set_condition = set_condition,
    };
    if (entry->uses_textures)
        l->textures = texture_launch_begin();
    const struct ptx_module *flawed = faults.kinds & FAULT_TEXT_KINDS ? image_flawed(l->image, faults.kinds) : NULL;
    const struct ptx_kernel *rewritten = flawed ? ptx_module_find_kernel(flawed, entry->name) : NULL;
    if (rewritten && (refusal = ptx_kernel_refusal(flawed, rewritten)) != NULL) {
        log_unsupported_part("SOFTGPU_FAULTS", refusal->text);
    } else if (rewritten) {
        l->launch.module = flawed;
        l->launch.kernel = rewritten;
    }
    memcpy(l->launch.grid, launch->grid, sizeof launch->grid);
    memcpy(l->launch.block, launch->block, sizeof launch->block);
    *out = &l->op;
    return CUDA_SUCCESS;
}

CUresult launch_submit(struct context *context, struct function *f, struct stream *stream, const struct launch *launch)
{
    struct op *op = NULL;
    if (stream->context != f->module->context)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = launch_make(f, launch, &op);
    return result == CUDA_SUCCESS ? engine_submit_and_forget(stream, op) : result;
}
