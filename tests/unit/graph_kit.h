/* graph_kit.h - what the tests of graphs share: kernels whose order shows in their result, and short ways to nodes. */
#ifndef TESTS_UNIT_GRAPH_KIT_H
#define TESTS_UNIT_GRAPH_KIT_H

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

/* step: p[0] = p[0] * factor + summand. countdown: p[0] -= 1, p[1] += 1, and the condition becomes p[0]. put: the
 * condition becomes p[0]. far: a store to an address that is not mapped. */
static const char GRAPH_PTX[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional (.param .b64 c0, .param .b32 c1);\n"
    ".visible .entry step(.param .u64 p, .param .u32 factor, .param .u32 summand) {\n"
    "  .reg .u64 %rd<2>; .reg .u32 %r<4>; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [factor];\n"
    "  ld.param.u32 %r2, [summand]; ld.global.u32 %r3, [%rd1]; mad.lo.u32 %r3, %r3, %r1, %r2;\n"
    "  st.global.u32 [%rd1], %r3; ret;\n}\n"
    ".visible .entry other(.param .u64 p, .param .u32 factor, .param .u32 summand) {\n"
    "  .reg .u64 %rd<2>; .reg .u32 %r<2>; ld.param.u64 %rd1, [p]; mov.u32 %r1, 4242;\n"
    "  st.global.u32 [%rd1], %r1; ret;\n}\n"
    ".visible .entry far(.param .u64 p) {\n"
    "  .reg .u64 %rd<2>; .reg .u32 %r<2>; ld.param.u64 %rd1, [p]; add.u64 %rd1, %rd1, 0x100000000;\n"
    "  st.global.u32 [%rd1], %r1; ret;\n}\n"
    ".visible .entry countdown(.param .u64 p, .param .u64 handle) {\n"
    "  .reg .u64 %rd<3>; .reg .u32 %r<4>; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [handle];\n"
    "  ld.global.u32 %r1, [%rd1]; sub.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;\n"
    "  ld.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2;\n"
    "  { .param .b64 q0; .param .b32 q1; st.param.b64 [q0], %rd2; st.param.b32 [q1], %r1;\n"
    "  call.uni cudaGraphSetConditional, (q0, q1); }\n  ret;\n}\n"
    ".visible .entry put(.param .u64 p, .param .u64 handle) {\n"
    "  .reg .u64 %rd<3>; .reg .u32 %r<2>; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [handle];\n"
    "  ld.global.u32 %r1, [%rd1];\n"
    "  { .param .b64 q0; .param .b32 q1; st.param.b64 [q0], %rd2; st.param.b32 [q1], %r1;\n"
    "  call.uni cudaGraphSetConditional, (q0, q1); }\n  ret;\n}\n";

static CUmodule module;
static CUfunction step, other, far, countdown, put;
static CUdeviceptr buffer; /* 1024 words */

static inline int graph_setup(void **state)
{
    return use_primary_context(state) || cuModuleLoadData(&module, GRAPH_PTX) != CUDA_SUCCESS ||
           cuModuleGetFunction(&step, module, "step") != CUDA_SUCCESS ||
           cuModuleGetFunction(&other, module, "other") != CUDA_SUCCESS ||
           cuModuleGetFunction(&far, module, "far") != CUDA_SUCCESS ||
           cuModuleGetFunction(&countdown, module, "countdown") != CUDA_SUCCESS ||
           cuModuleGetFunction(&put, module, "put") != CUDA_SUCCESS || cuMemAlloc_v2(&buffer, 4096) != CUDA_SUCCESS;
}

static inline unsigned word(CUdeviceptr address)
{
    unsigned value = 0;
    ok(cuMemcpyDtoH_v2(&value, address, 4));
    return value;
}

static inline void set_word(CUdeviceptr address, unsigned value)
{
    ok(cuMemcpyHtoD_v2(address, &value, 4));
}

static inline CUDA_KERNEL_NODE_PARAMS_v2 one_thread(CUfunction function, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = function,
                                        .gridDimX = 1,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = 1,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = params};
}

/* A node that does buffer[at] = buffer[at] * factor + summand, after `after` (may be NULL). */
static inline CUgraphNode add_step(CUgraph graph, CUgraphNode after, int at, unsigned factor, unsigned summand)
{
    CUgraphNode node;
    CUdeviceptr p = buffer + 4 * (CUdeviceptr)at;
    void *params[] = {&p, &factor, &summand};
    CUDA_KERNEL_NODE_PARAMS_v2 kernel = one_thread(step, params);
    ok(cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &kernel));
    return node;
}

/* The same as a launch in a stream. */
static inline CUresult launch_step(CUstream stream, int at, unsigned factor, unsigned summand)
{
    CUdeviceptr p = buffer + 4 * (CUdeviceptr)at;
    void *params[] = {&p, &factor, &summand};
    return cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* Instantiates, launches once, and waits. */
static inline void run_graph(CUgraph graph)
{
    CUgraphExec exec;
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    ok(cuGraphExecDestroy(exec));
}

/* A function of the host that counts its calls. */
static inline void count_up(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

#endif
