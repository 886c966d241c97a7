/* Graphs and captures. What needs no translation is a row of rt_graph.def; nodes that do are in rt_graph_node.c. */
#include "softgpu/rt.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "passed on as they are");
_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "likewise");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo), "likewise");
_Static_assert(sizeof(cudaKernelNodeAttrValue) == sizeof(CUkernelNodeAttrValue), "likewise");
_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "likewise");
_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "likewise");

#define PASS(name, parameters, call)                                                                                   \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        CUresult result = rt_enter();                                                                                  \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = driver.call;                                                                                      \
        return rt_end(result);                                                                                         \
    }
#include "softgpu/rt_graph.def"
#undef PASS

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out, cudaGraph_t graph,
                                             unsigned int defaultLaunchValue, unsigned int flags)
{
    CUcontext context;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetCurrent(&context);
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)pHandle_out, graph, context,
                                                       defaultLaunchValue, flags);
    return rt_end(result);
}
