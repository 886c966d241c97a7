/* Nodes whose parameters name kernels, copies or contexts: those of the runtime become the driver's, and back. */
#include <string.h>

#include "softgpu/rt.h"
#include "softgpu/rt_copy.h"

/* ---- translation ------------------------------------------------------------------------------------------------ */

static CUresult kernel_params(CUDA_KERNEL_NODE_PARAMS_v2 *out, void *func, dim3 grid, dim3 block, unsigned shared,
                              void **params, void **extra)
{
    CUkernel kernel;
    CUresult result = rt_kernel(func, &kernel);
    if (result == CUDA_SUCCESS)
        *out = (CUDA_KERNEL_NODE_PARAMS_v2){.kern = kernel,
                                            .gridDimX = grid.x,
                                            .gridDimY = grid.y,
                                            .gridDimZ = grid.z,
                                            .blockDimX = block.x,
                                            .blockDimY = block.y,
                                            .blockDimZ = block.z,
                                            .sharedMemBytes = shared,
                                            .kernelParams = params,
                                            .extra = extra};
    return result;
}

static CUresult enter_kernel(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && !p)
        result = CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS
               ? kernel_params(out, p->func, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra)
               : result;
}

/* Copies and sets run in a context, which the driver wants to be told. */
static CUresult enter_current(CUcontext *context)
{
    CUresult result = rt_enter();
    return result == CUDA_SUCCESS ? driver.cuCtxGetCurrent(context) : result;
}

static CUresult enter_copy(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out, CUcontext *context)
{
    CUresult result = enter_current(context);
    return result == CUDA_SUCCESS ? rt_copy_params(out, p) : result;
}

static CUresult enter_line(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *out,
                           CUcontext *context)
{
    CUresult result = enter_current(context);
    *out = (CUDA_MEMCPY3D){.srcHost = src,
                           .srcDevice = rt_address(src),
                           .dstHost = dst,
                           .dstDevice = rt_address(dst),
                           .WidthInBytes = count,
                           .Height = 1,
                           .Depth = 1};
    if (result == CUDA_SUCCESS && !rt_memory_types(kind, &out->dstMemoryType, &out->srcMemoryType))
        result = (CUresult)cudaErrorInvalidMemcpyDirection;
    return result;
}

static CUresult enter_symbol(const void *symbol, size_t count, size_t offset, void **address)
{
    CUresult result = rt_enter();
    return result == CUDA_SUCCESS ? rt_symbol_range(symbol, count, offset, address) : result;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies, const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUresult result = enter_kernel(pNodeParams, &p);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphAddKernelNode_v2(pGraphNode, graph, pDependencies, numDependencies, &p);
    return rt_end(result);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pNodeParams ? driver.cuGraphKernelNodeGetParams_v2(node, &p) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pNodeParams = (struct cudaKernelNodeParams){.func = (void *)rt_host_function(p.kern, p.func),
                                                     .gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
                                                     .blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
                                                     .sharedMemBytes = p.sharedMemBytes,
                                                     .kernelParams = p.kernelParams,
                                                     .extra = p.extra};
    return rt_end(result);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUresult result = enter_kernel(pNodeParams, &p);
    return rt_end(result == CUDA_SUCCESS ? driver.cuGraphKernelNodeSetParams_v2(node, &p) : result);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUresult result = enter_kernel(pNodeParams, &p);
    return rt_end(result == CUDA_SUCCESS ? driver.cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &p) : result);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

static cudaError_t add_copy(CUresult result, cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t count, const CUDA_MEMCPY3D *p,
                            CUcontext context)
{
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, p, context);
    return rt_end(result);
}

static cudaError_t set_copy(CUresult result, cudaGraphNode_t node, const CUDA_MEMCPY3D *p)
{
    return rt_end(result == CUDA_SUCCESS ? driver.cuGraphMemcpyNodeSetParams(node, p) : result);
}

static cudaError_t set_copy_in_exec(CUresult result, cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_MEMCPY3D *p,
                                    CUcontext context)
{
    return rt_end(result == CUDA_SUCCESS ? driver.cuGraphExecMemcpyNodeSetParams(exec, node, p, context) : result);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies, const struct cudaMemcpy3DParms *pCopyParams)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_copy(pCopyParams, &p, &context);
    return add_copy(result, pGraphNode, graph, pDependencies, numDependencies, &p, context);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D p;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pNodeParams ? driver.cuGraphMemcpyNodeGetParams(node, &p) : CUDA_ERROR_INVALID_VALUE;
    return rt_end(result == CUDA_SUCCESS ? rt_copy_params_back(pNodeParams, &p) : result);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_copy(pNodeParams, &p, &context);
    return set_copy(result, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_copy(pNodeParams, &p, &context);
    return set_copy_in_exec(result, hGraphExec, node, &p, context);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
                                     const void *src, size_t count, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_line(dst, src, count, kind, &p, &context);
    return add_copy(result, pGraphNode, graph, pDependencies, numDependencies, &p, context);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src, size_t count,
                                           enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_line(dst, src, count, kind, &p, &context);
    return set_copy(result, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst,
                                               const void *src, size_t count, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_line(dst, src, count, kind, &p, &context);
    return set_copy_in_exec(result, hGraphExec, node, &p, context);
}

static CUresult enter_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
                                enum cudaMemcpyKind kind, CUDA_MEMCPY3D *p, CUcontext *context)
{
    void *address = NULL;
    CUresult result = enter_symbol(symbol, count, offset, &address);
    return result == CUDA_SUCCESS ? enter_line(address, src, count, kind, p, context) : result;
}

static CUresult enter_from_symbol(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                                  CUDA_MEMCPY3D *p, CUcontext *context)
{
    void *address = NULL;
    CUresult result = enter_symbol(symbol, count, offset, &address);
    return result == CUDA_SUCCESS ? enter_line(dst, address, count, kind, p, context) : result;
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                           const void *symbol, const void *src, size_t count, size_t offset,
                                           enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_to_symbol(symbol, src, count, offset, kind, &p, &context);
    return add_copy(result, pGraphNode, graph, pDependencies, numDependencies, &p, context);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *src,
                                                 size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_to_symbol(symbol, src, count, offset, kind, &p, &context);
    return set_copy(result, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                     const void *symbol, const void *src, size_t count, size_t offset,
                                                     enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_to_symbol(symbol, src, count, offset, kind, &p, &context);
    return set_copy_in_exec(result, hGraphExec, node, &p, context);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                             const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
                                             const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_from_symbol(dst, symbol, count, offset, kind, &p, &context);
    return add_copy(result, pGraphNode, graph, pDependencies, numDependencies, &p, context);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst, const void *symbol, size_t count,
                                                   size_t offset, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_from_symbol(dst, symbol, count, offset, kind, &p, &context);
    return set_copy(result, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst,
                                                       const void *symbol, size_t count, size_t offset,
                                                       enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p;
    CUcontext context = NULL;
    CUresult result = enter_from_symbol(dst, symbol, count, offset, kind, &p, &context);
    return set_copy_in_exec(result, hGraphExec, node, &p, context);
}

/* ---- sets ------------------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "passed on as it is");

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies, const struct cudaMemsetParams *pMemsetParams)
{
    CUcontext context;
    CUresult result = enter_current(&context);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies,
                                             (const CUDA_MEMSET_NODE_PARAMS *)pMemsetParams, context);
    return rt_end(result);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *pNodeParams)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)pNodeParams);
    return rt_end(result);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphMemsetNodeSetParams(node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams);
    return rt_end(result);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *pNodeParams)
{
    CUcontext context;
    CUresult result = enter_current(&context);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphExecMemsetNodeSetParams(hGraphExec, node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams,
                                                       context);
    return rt_end(result);
}

/* ---- any kind --------------------------------------------------------------------------------------------------- */

static CUresult node_params(CUgraphNodeParams *out, const struct cudaGraphNodeParams *p)
{
    CUcontext context;
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    CUresult result = enter_current(&context);
    if (result == CUDA_SUCCESS && !p)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    _Static_assert(sizeof *out == sizeof *p, "what has no case below is passed on as it is");
    memcpy(out, p, sizeof *out);
    switch (p->type) {
    case cudaGraphNodeTypeKernel:
        result = kernel_params(&kernel, p->kernel.func, p->kernel.gridDim, p->kernel.blockDim, p->kernel.sharedMemBytes,
                               p->kernel.kernelParams, p->kernel.extra);
        memset(out->reserved1, 0, sizeof out->reserved1);
        if (result == CUDA_SUCCESS)
            memcpy(&out->kernel, &kernel, sizeof kernel);
        return result;
    case cudaGraphNodeTypeMemcpy:
        memset(out->reserved1, 0, sizeof out->reserved1);
        out->memcpy.flags = p->memcpy.flags;
        out->memcpy.copyCtx = context;
        return rt_copy_params(&out->memcpy.copyParams, &p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        out->memset.ctx = context;
        return CUDA_SUCCESS;
    case cudaGraphNodeTypeConditional:
        out->conditional.ctx = context;
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                             const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                             struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    CUresult result = node_params(&p, nodeParams);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphAddNode_v2(pGraphNode, graph, pDependencies, (const CUgraphEdgeData *)dependencyData,
                                          numDependencies, &p);
    if (result == CUDA_SUCCESS && nodeParams->type == cudaGraphNodeTypeMemAlloc)
        nodeParams->alloc.dptr = rt_pointer(p.alloc.dptr);
    if (result == CUDA_SUCCESS && nodeParams->type == cudaGraphNodeTypeConditional)
        nodeParams->conditional.phGraph_out = p.conditional.phGraph_out;
    return rt_end(result);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    CUresult result = node_params(&p, nodeParams);
    return rt_end(result == CUDA_SUCCESS ? driver.cuGraphNodeSetParams(node, &p) : result);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    CUresult result = node_params(&p, nodeParams);
    return rt_end(result == CUDA_SUCCESS ? driver.cuGraphExecNodeSetParams(graphExec, node, &p) : result);
}
