/* Kernel nodes, and routines of softgpu's own libraries, which are kernel nodes without a function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"
#include "softgpu/launch.h"
#include "softgpu/operator.h"
#include "softgpu/work_operator.h"

enum { ATTRIBUTES = CU_LAUNCH_ATTRIBUTE_MAX };

struct kernel_work {
    uint8_t *args; /* as the kernel has them; NULL without parameters */
    size_t arg_bytes;
    void **pointers;   /* to each of them, for who asks; the program may have written to it */
    uint32_t *offsets; /* of each in `args` */
    uint32_t count;
    bool has[ATTRIBUTES];
    CUlaunchAttributeValue attributes[ATTRIBUTES];
    struct shared_operator *routine; /* instead of a function: reference */
};

static void free_kernel(struct kernel_work *k)
{
    if (!k)
        return;
    operator_unref(k->routine);
    free(k->args);
    free(k->pointers);
    free(k->offsets);
    free(k);
}

static bool cooperative(const struct kernel_work *k)
{
    return k->has[CU_LAUNCH_ATTRIBUTE_COOPERATIVE] && k->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative;
}

static CUfunction handle_of_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
    return p->func ? p->func : (CUfunction)p->kern;
}

static CUresult find_function(const CUDA_KERNEL_NODE_PARAMS_v3 *p, struct function **out)
{
    struct context *c;
    CUresult result = work_context(p->func ? NULL : p->ctx, &c);
    if (result != CUDA_SUCCESS)
        return result;
    if (p->func && handle_of(p->func) == HANDLE_FUNCTION)
        c = ((struct function *)p->func)->module->context;
    result = function_from(handle_of_kernel(p), c, out);
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}

static struct launch shape(const CUDA_KERNEL_NODE_PARAMS_v3 *p, const struct kernel_work *k)
{
    return (struct launch){.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                           .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                           .dynamic_shared = p->sharedMemBytes,
                           .params = p->kernelParams,
                           .extra = p->extra,
                           .cooperative = k && cooperative(k)};
}

/* Storage for `count` parameters of `bytes` in all. */
static bool make_room(struct kernel_work *k, size_t bytes, uint32_t count)
{
    k->arg_bytes = bytes;
    k->count = count;
    k->args = calloc(1, bytes + 1);
    k->pointers = calloc(count + 1, sizeof(void *));
    k->offsets = calloc(count + 1, sizeof *k->offsets);
    return k->args && k->pointers && k->offsets;
}

static void set_pointers(struct kernel_work *k)
{
    for (uint32_t i = 0; i < k->count; i++)
        k->pointers[i] = k->args + k->offsets[i];
}

static struct kernel_work *new_kernel(const struct ptx_kernel *entry)
{
    struct kernel_work *k = calloc(1, sizeof *k);
    if (!k || !make_room(k, entry->param_bytes, entry->param_count)) {
        free_kernel(k);
        return NULL;
    }
    for (uint32_t i = 0; i < k->count; i++)
        k->offsets[i] = entry->params[i].offset;
    set_pointers(k);
    return k;
}

static CUresult set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    CUDA_KERNEL_NODE_PARAMS_v3 p = params->kernel;
    struct function *f;
    if (work->kernel && work->kernel->routine)
        return log_unsupported_part("cuGraphKernelNodeSetParams", "of a library's routine");
    CUresult result = find_function(&p, &f);
    if (result != CUDA_SUCCESS)
        return result;
    struct kernel_work *k = new_kernel(f->entry);
    if (!k)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const struct launch launch = shape(&p, work->kernel);
    result = launch_check(f, &launch, k->args);
    if (result != CUDA_SUCCESS) {
        free_kernel(k);
        return result;
    }
    if (work->kernel) {
        memcpy(k->has, work->kernel->has, sizeof k->has);
        memcpy(k->attributes, work->kernel->attributes, sizeof k->attributes);
    }
    /* Both handles are kept, so that whoever asks finds the one it knows. */
    if (f->kernel) {
        p.kern = (CUkernel)f->kernel;
        p.func = (CUfunction)f;
    }
    p.ctx = (CUcontext)f->module->context;
    p.kernelParams = f->entry->param_count ? k->pointers : NULL;
    p.extra = NULL;
    free_kernel(work->kernel);
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = p};
    work->context = f->module->context;
    work->kernel = k;
    return CUDA_SUCCESS;
}

static CUresult copy(struct work *to, const struct work *from, bool visible)
{
    const struct kernel_work *k = from->kernel;
    struct kernel_work *c = malloc(sizeof *c);
    to->kernel = c;
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = *k;
    if (k->routine) {
        operator_ref(k->routine);
        return CUDA_SUCCESS;
    }
    if (!make_room(c, k->arg_bytes, k->count)) {
        free_kernel(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(c->args, k->args, k->arg_bytes);
    memcpy(c->offsets, k->offsets, k->count * sizeof *k->offsets);
    set_pointers(c);
    to->params.kernel.kernelParams = k->count ? c->pointers : NULL;
    return CUDA_SUCCESS;
}

static void clear(struct work *work)
{
    free_kernel(work->kernel);
}

static CUresult make(const struct work *work, struct steps *steps)
{
    struct function *f;
    struct op *op;
    const struct kernel_work *k = work->kernel;
    CUresult result;
    if (k->routine) {
        result = operator_make(k->routine, work->context, &op);
        return result == CUDA_SUCCESS ? steps_add(steps, op) : result;
    }
    const CUDA_KERNEL_NODE_PARAMS_v3 *p = &work->params.kernel;
    result = function_from(p->kern ? (CUfunction)p->kern : p->func, work->context, &f);
    if (result != CUDA_SUCCESS)
        return result;
    /* The module may have been unloaded and another one loaded in its place. */
    if (f->entry->param_bytes != k->arg_bytes)
        return CUDA_ERROR_INVALID_HANDLE;
    struct launch launch = shape(p, k);
    launch.packed = k->args;
    result = launch_make(f, &launch, &op);
    return result == CUDA_SUCCESS ? steps_add(steps, op) : result;
}

static CUgraphExecUpdateResult change(const struct work *old, const struct work *new)
{
    if (old->context != new->context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (cooperative(old->kernel) != cooperative(new->kernel))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void print(const struct work *work, void *file)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *p = &work->params.kernel;
    const char *name = "library routine";
    if (work->kernel->routine)
        name = operator_name(work->kernel->routine);
    else if (p->func && handle_of(p->func) == HANDLE_FUNCTION)
        name = ((const struct function *)p->func)->entry->name;
    fprintf(file, "%s\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", name, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
            p->blockDimY, p->blockDimZ, p->sharedMemBytes);
}

const struct work_kind work_kernel = {
    .type = CU_GRAPH_NODE_TYPE_KERNEL,
    .name = "KERNEL",
    .in_bodies = true,
    .set = set,
    .copy = copy,
    .clear = clear,
    .make = make,
    .change = change,
    .print = print,
};

CUresult work_operator(struct work *work, struct softgpu_operator *routine, struct context *context)
{
    struct kernel_work *k = calloc(1, sizeof *k);
    if (!k || !(k->routine = operator_share(routine))) {
        free(k);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *work = (struct work){
        .kind = &work_kernel, .params = {.type = CU_GRAPH_NODE_TYPE_KERNEL}, .context = context, .kernel = k};
    return CUDA_SUCCESS;
}

void work_operator_disown(struct work *work)
{
    operator_disown(work->kernel->routine);
    work_clear(work);
}

bool work_is_operator(const struct work *work)
{
    return work->kernel && work->kernel->routine;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static bool known_attribute(CUkernelNodeAttrID id)
{
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

CUresult work_kernel_attribute(struct work *work, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    if (work->kind != &work_kernel || !value || !known_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned *cluster = &value->clusterDim.x;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && (cluster[0] > 1 || cluster[1] > 1 || cluster[2] > 1))
        return log_unsupported_part("cuGraphKernelNodeSetAttribute", "cluster dimension");
    work->kernel->has[id] = true;
    work->kernel->attributes[id] = *value;
    return CUDA_SUCCESS;
}

CUresult work_kernel_attribute_get(const struct work *work, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    if (work->kind != &work_kernel || !value || !known_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    if (work->kernel->has[id])
        *value = work->kernel->attributes[id];
    return CUDA_SUCCESS;
}

CUresult work_kernel_attributes_copy(struct work *to, const struct work *from)
{
    if (to->kind != &work_kernel || from->kind != &work_kernel || to->context != from->context)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to->kernel->has, from->kernel->has, sizeof to->kernel->has);
    memcpy(to->kernel->attributes, from->kernel->attributes, sizeof to->kernel->attributes);
    return CUDA_SUCCESS;
}
