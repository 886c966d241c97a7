/* Graphs of softgpu, node by node: what each kind does, its parameters, and how they change. */
#include "tests/unit/graph_kit.h"

static void test_kernel_node_runs_with_copied_parameters(void **state)
{
    CUgraph g;
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUDA_KERNEL_NODE_PARAMS_v1 p1;
    ok(cuGraphCreate(&g, 0));
    set_word(buffer, 1);
    n = add_step(g, NULL, 0, 10, 5); /* its arguments are gone when it runs */
    ok(cuGraphKernelNodeGetParams_v2(n, &p));
    assert_ptr_equal(p.func, step);
    assert_int_equal(*(unsigned *)p.kernelParams[1], 10);
    assert_int_equal(*(unsigned *)p.kernelParams[2], 5);
    run_graph(g);
    assert_int_equal(word(buffer), 15);

    unsigned factor = 2;
    p.kernelParams[1] = &factor;
    ok(cuGraphKernelNodeSetParams_v2(n, &p));
    run_graph(g);
    assert_int_equal(word(buffer), 35);

    ok(cuGraphKernelNodeGetParams(n, &p1));
    p1.gridDimX = 0;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetParams(n, &p1));
    p1.gridDimX = 2; /* two blocks: both add */
    ok(cuGraphKernelNodeSetParams(n, &p1));
    ok(cuGraphKernelNodeGetParams_v2(n, &p));
    assert_int_equal(p.gridDimX, 2);
    CUgraphNode m;
    ok(cuGraphKernelNodeGetParams(n, &p1)); /* the parameters belong to the node, which has new ones */
    p1.gridDimX = 1;
    ok(cuGraphAddKernelNode(&m, g, &n, 1, &p1));
    p1.func = (CUfunction)g;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&m, g, &n, 1, &p1));
    p1.func = step;
    p1.kernelParams = NULL;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&m, g, &n, 1, &p1));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&m, g, &n, 1, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetParams((CUgraphNode)g, &p1));
    ok(cuGraphDestroy(g));
}

static void test_kernel_attributes(void **state)
{
    CUgraph g;
    CUkernelNodeAttrValue v = {.cooperative = 1}, out;
    ok(cuGraphCreate(&g, 0));
    CUgraphNode a = add_step(g, NULL, 0, 1, 1), b = add_step(g, a, 0, 1, 1), empty;
    ok(cuGraphAddEmptyNode(&empty, g, NULL, 0));
    ok(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &out));
    assert_int_equal(out.cooperative, 0);
    ok(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
    v.priority = -3;
    ok(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    ok(cuGraphKernelNodeCopyAttributes(b, a));
    ok(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &out));
    assert_int_equal(out.priority, -3);
    ok(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &out));
    assert_int_equal(out.cooperative, 1);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(empty, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_MAX, &out));
    /* Launched as a cooperative grid, one that is too large is refused. */
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    ok(cuGraphKernelNodeGetParams_v2(a, &p));
    p.gridDimX = 100000;
    fails(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuGraphKernelNodeSetParams_v2(a, &p));
    ok(cuGraphDestroy(g));
}

static CUDA_MEMCPY3D line(CUmemorytype to_type, void *to_host, CUdeviceptr to, CUmemorytype from_type,
                          const void *from_host, CUdeviceptr from, size_t bytes)
{
    return (CUDA_MEMCPY3D){.dstMemoryType = to_type,
                           .dstHost = to_host,
                           .dstDevice = to,
                           .srcMemoryType = from_type,
                           .srcHost = from_host,
                           .srcDevice = from,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};
}

static void test_copy_nodes_read_when_they_run(void **state)
{
    unsigned in[4] = {1, 2, 3, 4}, out[4] = {0};
    CUgraph g;
    CUgraphNode up, across, down, bad;
    CUcontext c;
    ok(cuCtxGetCurrent(&c));
    ok(cuGraphCreate(&g, 0));
    CUDA_MEMCPY3D p = line(CU_MEMORYTYPE_DEVICE, NULL, buffer, CU_MEMORYTYPE_HOST, in, 0, sizeof in), q;
    ok(cuGraphAddMemcpyNode(&up, g, NULL, 0, &p, c));
    p = line(CU_MEMORYTYPE_DEVICE, NULL, buffer + 64, CU_MEMORYTYPE_DEVICE, NULL, buffer, sizeof in);
    ok(cuGraphAddMemcpyNode(&across, g, &up, 1, &p, c));
    p = line(CU_MEMORYTYPE_HOST, out, 0, CU_MEMORYTYPE_DEVICE, NULL, buffer + 64, sizeof in);
    ok(cuGraphAddMemcpyNode(&down, g, &across, 1, &p, c));
    in[2] = 33;
    run_graph(g);
    assert_int_equal(out[2], 33);
    ok(cuGraphMemcpyNodeGetParams(down, &q));
    assert_ptr_equal(q.dstHost, out);
    assert_int_equal(q.WidthInBytes, sizeof in);
    q.WidthInBytes = 4;
    ok(cuGraphMemcpyNodeSetParams(down, &q));
    memset(out, 0, sizeof out);
    run_graph(g);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 0);
    p.srcDevice = buffer + 4096;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&bad, g, NULL, 0, &p, c));
    p.srcMemoryType = 77;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&bad, g, NULL, 0, &p, c));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&bad, g, NULL, 0, NULL, c));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuGraphAddMemcpyNode(&bad, g, NULL, 0, &q, (CUcontext)g));
    ok(cuGraphDestroy(g));
}

static void test_copy_changes_in_an_executable_graph(void **state)
{
    unsigned in[4] = {7, 8, 9, 10}, out = 0, later = 0;
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUcontext c;
    ok(cuCtxGetCurrent(&c));
    ok(cuMemcpyHtoD_v2(buffer, in, sizeof in));
    ok(cuGraphCreate(&g, 0));
    CUDA_MEMCPY3D p = line(CU_MEMORYTYPE_HOST, &out, 0, CU_MEMORYTYPE_DEVICE, NULL, buffer, 4), q = p;
    ok(cuGraphAddMemcpyNode(&n, g, NULL, 0, &p, c));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    q.dstHost = &later;
    q.srcDevice = buffer + 4;
    ok(cuGraphExecMemcpyNodeSetParams(e, n, &q, c));
    ok(cuGraphLaunch(e, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(out, 0);
    assert_int_equal(later, 8);
    ok(cuGraphMemcpyNodeGetParams(n, &q)); /* the graph is as it was */
    assert_ptr_equal(q.dstHost, &out);
    q.Height = 2;
    q.srcPitch = q.dstPitch = 4;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(e, n, &q, c));
    q = line(CU_MEMORYTYPE_DEVICE, NULL, buffer + 8, CU_MEMORYTYPE_DEVICE, NULL, buffer, 4);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(e, n, &q, c));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(e, n, NULL, c));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_memset_nodes(void **state)
{
    CUgraph g;
    CUgraphNode n, bad;
    CUgraphExec e;
    CUcontext c;
    CUDA_MEMSET_NODE_PARAMS p = {.dst = buffer, .value = 0xab, .elementSize = 1, .width = 8, .height = 1}, q;
    ok(cuCtxGetCurrent(&c));
    ok(cuMemsetD8_v2(buffer, 0, 64));
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphAddMemsetNode(&n, g, NULL, 0, &p, c));
    run_graph(g);
    assert_int_equal(word(buffer + 4), 0xabababab);
    assert_int_equal(word(buffer + 8), 0);
    ok(cuGraphMemsetNodeGetParams(n, &q));
    assert_int_equal(q.width, 8);
    q = (CUDA_MEMSET_NODE_PARAMS){.dst = buffer, .pitch = 16, .value = 5, .elementSize = 4, .width = 1, .height = 2};
    ok(cuGraphMemsetNodeSetParams(n, &q));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer + 16), 5);
    assert_int_equal(word(buffer + 4), 0xabababab);
    q.value = 6;
    ok(cuGraphExecMemsetNodeSetParams(e, n, &q, c));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 6);
    q.width = 2; /* of two dimensions: may not change */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(e, n, &q, c));
    p.elementSize = 3;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&bad, g, NULL, 0, &p, c));
    p = (CUDA_MEMSET_NODE_PARAMS){.dst = buffer + 1, .elementSize = 4, .width = 1, .height = 1};
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&bad, g, NULL, 0, &p, c));
    p.dst = buffer + 4092;
    p.width = 2;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&bad, g, NULL, 0, &p, c));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(e, n, NULL, c));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void wait_in_callback(void *data)
{
    CUcontext c;
    cuDevicePrimaryCtxRetain(&c, 0);
    *(CUresult *)data = cuCtxSynchronize_v2(c);
    cuDevicePrimaryCtxRelease_v2(0);
}

static void test_host_nodes(void **state)
{
    atomic_int a = 0, b = 0;
    CUresult inside = CUDA_SUCCESS;
    CUgraph g;
    CUgraphNode n, m;
    CUgraphExec e;
    CUDA_HOST_NODE_PARAMS p = {count_up, &a}, q;
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphAddHostNode(&n, g, NULL, 0, &p));
    ok(cuGraphHostNodeGetParams(n, &q));
    assert_ptr_equal(q.userData, &a);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    q.userData = &b;
    ok(cuGraphExecHostNodeSetParams(e, n, &q));
    ok(cuGraphLaunch(e, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(atomic_load(&a), 0);
    assert_int_equal(atomic_load(&b), 1);
    ok(cuGraphHostNodeSetParams(n, &q));
    q = (CUDA_HOST_NODE_PARAMS){wait_in_callback, &inside};
    ok(cuGraphAddHostNode(&m, g, &n, 1, &q));
    run_graph(g);
    assert_int_equal(atomic_load(&b), 2);
    assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
    q.fn = NULL;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&m, g, NULL, 0, &q));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_child_graphs_are_copies(void **state)
{
    CUgraph g, child, inner;
    CUgraphNode n, in_child;
    CUgraphExec e;
    CUgraphNodeType type;
    set_word(buffer, 1);
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphCreate(&child, 0));
    in_child = add_step(child, NULL, 0, 10, 0);
    CUgraphNode first = add_step(g, NULL, 0, 1, 1);
    ok(cuGraphAddChildGraphNode(&n, g, &first, 1, child));
    ok(cuGraphNodeGetType(n, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
    add_step(g, n, 0, 1, 3);
    add_step(child, in_child, 0, 100, 0); /* too late for the copy */
    run_graph(g);
    assert_int_equal(word(buffer), 23);
    /* What is added to the node's own graph counts. */
    ok(cuGraphChildGraphNodeGetGraph(n, &inner));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e, inner, 0));
    CUgraphNode inner_node;
    ok(cuGraphNodeFindInClone(&inner_node, in_child, inner));
    add_step(inner, inner_node, 0, 1, 1);
    set_word(buffer, 1);
    run_graph(g);
    assert_int_equal(word(buffer), 24);
    /* A node of a child graph changes in the executable graph; a whole child graph does, too. */
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    unsigned factor = 1000;
    ok(cuGraphKernelNodeGetParams_v2(inner_node, &p));
    p.kernelParams[1] = &factor;
    ok(cuGraphExecKernelNodeSetParams_v2(e, inner_node, &p));
    set_word(buffer, 1);
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 2004);
    CUgraph another;
    ok(cuGraphCreate(&another, 0));
    CUgraphNode x = add_step(another, NULL, 0, 5, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(e, n, another)); /* another shape */
    add_step(another, x, 0, 1, 7);
    ok(cuGraphExecChildGraphNodeSetParams(e, n, another));
    set_word(buffer, 1);
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 20);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(another));
    ok(cuGraphDestroy(child));
    ok(cuGraphDestroy(g));
}

static void test_event_nodes(void **state)
{
    struct gate gate = {0};
    CUgraph g;
    CUgraphNode record, wait, host;
    CUgraphExec e;
    CUevent before, after, other_event, out;
    CUstream s, t;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&before, 0));
    ok(cuEventCreate(&after, 0));
    ok(cuEventCreate(&other_event, 0));
    ok(cuGraphCreate(&g, 0));
    CUDA_HOST_NODE_PARAMS p = {wait_at, &gate};
    ok(cuGraphAddEventRecordNode(&record, g, NULL, 0, before));
    ok(cuGraphAddHostNode(&host, g, &record, 1, &p));
    ok(cuGraphAddEventRecordNode(&wait, g, &host, 1, after));
    ok(cuGraphEventRecordNodeGetEvent(wait, &out));
    assert_ptr_equal(out, after);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphLaunch(e, s));
    ok(cuEventSynchronize(before)); /* in the middle of the graph */
    fails(CUDA_ERROR_NOT_READY, cuEventQuery(after));
    set_word(buffer, 1);
    ok(cuStreamWaitEvent(t, after, 0));
    ok(launch_step(t, 0, 1, 1));
    sleep_ms(20);
    assert_int_equal(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
    atomic_store(&gate.open, true);
    ok(cuStreamSynchronize(t));
    ok(cuEventQuery(after));
    float ms;
    ok(cuEventElapsedTime_v2(&ms, before, after));
    assert_true(ms > 10);
    /* Other events in the executable graph, and in the graph. */
    ok(cuGraphExecEventRecordNodeSetEvent(e, wait, other_event));
    ok(cuGraphLaunch(e, s));
    ok(cuStreamSynchronize(s));
    ok(cuEventElapsedTime_v2(&ms, before, other_event));
    ok(cuGraphEventRecordNodeSetEvent(wait, other_event));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventRecordNode(&wait, g, NULL, 0, NULL));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuEventDestroy_v2(before));
    ok(cuEventDestroy_v2(after));
    ok(cuEventDestroy_v2(other_event));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

static void test_event_wait_nodes(void **state)
{
    struct gate gate = {0};
    CUgraph g;
    CUgraphNode wait;
    CUgraphExec e;
    CUevent event, never, out;
    CUstream s, t;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, 0));
    ok(cuEventCreate(&never, 0));
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphAddEventWaitNode(&wait, g, NULL, 0, event));
    ok(cuGraphEventWaitNodeGetEvent(wait, &out));
    assert_ptr_equal(out, event);
    add_step(g, wait, 0, 0, 77);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    set_word(buffer, 1);
    ok(cuLaunchHostFunc(t, wait_at, &gate));
    ok(cuEventRecord(event, t));
    ok(cuGraphLaunch(e, s));
    sleep_ms(20);
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    atomic_store(&gate.open, true);
    ok(cuStreamSynchronize(s));
    assert_int_equal(word(buffer), 77);
    ok(cuGraphExecEventWaitNodeSetEvent(e, wait, never));
    atomic_store(&gate.open, false);
    ok(cuLaunchHostFunc(t, wait_at, &gate));
    ok(cuEventRecord(event, t));
    ok(cuGraphLaunch(e, s));
    ok(cuStreamSynchronize(s)); /* an event that was never recorded holds nobody up */
    atomic_store(&gate.open, true);
    ok(cuGraphEventWaitNodeSetEvent(wait, never));
    ok(cuGraphEventWaitNodeGetEvent(wait, &out));
    assert_ptr_equal(out, never);
    ok(cuCtxSynchronize());
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuEventDestroy_v2(event));
    ok(cuEventDestroy_v2(never));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

static void test_generic_nodes(void **state)
{
    CUgraph g;
    CUgraphNode a, b;
    CUgraphExec e;
    CUdeviceptr p = buffer;
    unsigned factor = 3, summand = 1;
    void *params[] = {&p, &factor, &summand};
    CUDA_KERNEL_NODE_PARAMS_v2 k = one_thread(step, params);
    CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&np.kernel, &k, sizeof k);
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphAddNode(&a, g, NULL, 0, &np));
    CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    ok(cuGraphAddNode_v2(&b, g, &a, &edge, 1, &np));
    set_word(buffer, 1);
    run_graph(g);
    assert_int_equal(word(buffer), 13);
    factor = 0;
    ok(cuGraphNodeSetParams(b, &np));
    run_graph(g);
    assert_int_equal(word(buffer), 1);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    summand = 9;
    ok(cuGraphExecNodeSetParams(e, b, &np));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 9);
    CUDA_KERNEL_NODE_PARAMS_v1 k1;
    ok(cuGraphKernelNodeGetParams(b, &k1));
    k1.func = other;
    ok(cuGraphExecKernelNodeSetParams(e, b, &k1));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 4242);
    np.reserved0[1] = 1;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&a, g, NULL, 0, &np));
    np.reserved0[1] = 0;
    np.type = CU_GRAPH_NODE_TYPE_HOST; /* another kind than the node's */
    np.host.fn = count_up;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(b, &np));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(e, b, &np));
    np = (CUgraphNodeParams){.type = 99};
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&a, g, NULL, 0, &np));
    np.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    fails(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode(&a, g, NULL, 0, &np));
    edge.type = 5;
    np = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&a, g, &b, &edge, 1, &np));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static CUstreamBatchMemOpParams write_word(CUdeviceptr address, unsigned value)
{
    CUstreamBatchMemOpParams p = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = address}};
    p.writeValue.value = value;
    return p;
}

static void test_memory_operation_nodes(void **state)
{
    CUgraph g;
    CUgraphNode n, bad;
    CUgraphExec e;
    CUstream s;
    CUstreamBatchMemOpParams two[] = {write_word(buffer, 5), write_word(buffer + 4, 6)};
    CUDA_BATCH_MEM_OP_NODE_PARAMS p = {.count = 2, .paramArray = two}, q;
    ok(cuCtxGetCurrent(&p.ctx));
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &p));
    two[1].writeValue.value = 60; /* the node has its own */
    run_graph(g);
    assert_int_equal(word(buffer), 5);
    assert_int_equal(word(buffer + 4), 6);
    ok(cuGraphBatchMemOpNodeGetParams(n, &q));
    assert_int_equal(q.count, 2);
    assert_int_equal(q.paramArray[1].writeValue.value, 6);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphExecBatchMemOpNodeSetParams(e, n, &p));
    ok(cuGraphLaunch(e, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(word(buffer + 4), 60);
    p.count = 1;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecBatchMemOpNodeSetParams(e, n, &p));
    ok(cuGraphBatchMemOpNodeSetParams(n, &p));
    p.flags = 1;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&bad, g, NULL, 0, &p));
    p.flags = 0;
    p.count = 0;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&bad, g, NULL, 0, &p));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&bad, g, NULL, 0, NULL));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuStreamWriteValue32_v2(s, buffer, 7, 0));
    ok(cuStreamEndCapture(s, &g));
    assert_int_equal(word(buffer), 5);
    run_graph(g);
    assert_int_equal(word(buffer), 7);
    ok(cuGraphDestroy(g));
    ok(cuStreamDestroy_v2(s));
}

static void test_disabled_nodes_do_nothing(void **state)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode a, b, empty;
    unsigned on;
    ok(cuGraphCreate(&g, 0));
    a = add_step(g, NULL, 0, 0, 5);
    b = add_step(g, a, 0, 2, 0);
    ok(cuGraphAddEmptyNode(&empty, g, &b, 1));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphNodeGetEnabled(e, b, &on));
    assert_int_equal(on, 1);
    ok(cuGraphNodeSetEnabled(e, b, 0));
    ok(cuGraphNodeGetEnabled(e, b, &on));
    assert_int_equal(on, 0);
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 5);
    ok(cuGraphNodeSetEnabled(e, b, 1));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 10);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(e, empty, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(e, empty, &on));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_node_runs_with_copied_parameters),
        cmocka_unit_test(test_kernel_attributes),
        cmocka_unit_test(test_copy_nodes_read_when_they_run),
        cmocka_unit_test(test_copy_changes_in_an_executable_graph),
        cmocka_unit_test(test_memset_nodes),
        cmocka_unit_test(test_host_nodes),
        cmocka_unit_test(test_child_graphs_are_copies),
        cmocka_unit_test(test_event_nodes),
        cmocka_unit_test(test_event_wait_nodes),
        cmocka_unit_test(test_generic_nodes),
        cmocka_unit_test(test_memory_operation_nodes),
        cmocka_unit_test(test_disabled_nodes_do_nothing),
    };
    return cmocka_run_group_tests(tests, graph_setup, reset_context);
}
