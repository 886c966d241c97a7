/* Stream capture: what becomes a node, how streams fork and join, what is forbidden meanwhile, and what that does. */
#include <pthread.h>

#include "tests/unit/graph_kit.h"

static CUstream s, t, blocking;

static int setup(void **state)
{
    return graph_setup(state) || cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
           cuStreamCreate(&t, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
           cuStreamCreate(&blocking, CU_STREAM_DEFAULT) != CUDA_SUCCESS;
}

static void begin(CUstream stream)
{
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static size_t node_count(CUgraph g)
{
    size_t n = 0;
    ok(cuGraphGetNodes(g, NULL, &n));
    return n;
}

static size_t edge_count(CUgraph g)
{
    size_t n = 0;
    ok(cuGraphGetEdges(g, NULL, NULL, &n));
    return n;
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    ok(cuStreamIsCapturing(stream, &status));
    return status;
}

/* Ends a capture that was invalidated. */
static void end_invalid(CUstream stream)
{
    CUgraph g = (CUgraph)1;
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    fails(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, launch_step(stream, 0, 1, 1));
    fails(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &g));
    assert_null(g);
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

/* ---- what is captured ------------------------------------------------------------------------------------------- */

static void test_every_operation_becomes_a_node(void **state)
{
    static const CUgraphNodeType types[] = {
        CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST};
    enum { COUNT = sizeof types / sizeof *types };
    CUgraph g;
    CUgraphNode nodes[COUNT + 1];
    size_t count = COUNT + 1;
    unsigned in = 100, out = 0, factor = 1, summand = 1;
    atomic_int calls = 0;
    CUdeviceptr p = buffer;
    void *params[] = {&p, &factor, &summand};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -2};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = s,
                             .attrs = &attribute,
                             .numAttrs = 1};
    CUDA_MEMCPY2D two = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = buffer,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = buffer + 128,
                         .WidthInBytes = 4,
                         .Height = 1};
    CUDA_MEMCPY3D three = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = buffer + 128,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = &out,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1};
    set_word(buffer, 0);
    begin(s);
    ok(launch_step(s, 0, 1, 1));
    ok(cuLaunchKernelEx(&config, step, params, NULL));
    ok(cuLaunchCooperativeKernel(step, 1, 1, 1, 1, 1, 1, 0, s, params));
    ok(cuMemcpyHtoDAsync_v2(buffer + 64, &in, 4, s));
    ok(cuMemcpyDtoDAsync_v2(buffer, buffer + 64, 4, s));
    ok(cuMemcpyAsync(buffer + 68, buffer, 4, s));
    ok(cuMemcpy2DAsync_v2(&two, s));
    ok(cuMemcpy3DAsync_v2(&three, s));
    ok(cuMemsetD32Async(buffer, 5, 1, s));
    ok(cuMemsetD2D8Async(buffer + 4, 16, 7, 4, 2, s));
    ok(cuLaunchHostFunc(s, count_up, &calls));
    ok(cuStreamEndCapture(s, &g));
    assert_int_equal(word(buffer), 0); /* nothing was done */
    assert_int_equal(calls, 0);
    ok(cuGraphGetNodes(g, nodes, &count));
    assert_int_equal(count, COUNT);
    assert_null(nodes[COUNT]);
    for (int i = 0; i < COUNT; i++) {
        CUgraphNodeType type;
        ok(cuGraphNodeGetType(nodes[i], &type));
        assert_int_equal(type, types[i]);
    }
    assert_int_equal(edge_count(g), COUNT - 1);
    CUkernelNodeAttrValue value;
    ok(cuGraphKernelNodeGetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    assert_int_equal(value.priority, -2);
    ok(cuGraphKernelNodeGetAttribute(nodes[2], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    assert_int_equal(value.cooperative, 1);
    in = 200;
    run_graph(g);
    assert_int_equal(out, 200);
    assert_int_equal(word(buffer), 5);
    assert_int_equal(word(buffer + 4), 0x07070707);
    assert_int_equal(word(buffer + 20), 0x07070707);
    assert_int_equal(calls, 1);
    ok(cuGraphDestroy(g));
}

static void test_arguments_are_those_of_the_call(void **state)
{
    CUgraph g;
    begin(s);
    for (unsigned i = 1; i <= 5; i++)
        ok(launch_step(s, 0, 10, i));
    ok(cuStreamEndCapture(s, &g));
    set_word(buffer, 0);
    run_graph(g);
    assert_int_equal(word(buffer), 12345);
    run_graph(g);
    assert_int_equal(word(buffer), (unsigned)(12345ull * 100000 + 12345));
    ok(cuGraphDestroy(g));
}

static void test_launch_of_a_graph_becomes_a_child(void **state)
{
    CUgraph g, outer;
    CUgraphExec e;
    CUgraphNode n;
    CUgraphNodeType type;
    size_t one = 1;
    ok(cuGraphCreate(&g, 0));
    add_step(g, NULL, 0, 2, 1);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    begin(s);
    ok(cuGraphLaunch(e, s));
    ok(launch_step(s, 0, 10, 0));
    ok(cuStreamEndCapture(s, &outer));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphGetRootNodes(outer, &n, &one));
    ok(cuGraphNodeGetType(n, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
    set_word(buffer, 3);
    run_graph(outer);
    assert_int_equal(word(buffer), 70);
    ok(cuGraphDestroy(outer));
    ok(cuGraphDestroy(g));
}

/* ---- forks and joins -------------------------------------------------------------------------------------------- */

static void test_events_fork_and_join(void **state)
{
    CUevent fork, join;
    CUgraph g;
    CUgraphNode last[2];
    size_t two = 2;
    ok(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    begin(s);
    ok(launch_step(s, 0, 0, 1));
    ok(cuEventRecord(fork, s));
    ok(cuStreamWaitEvent(t, fork, 0));
    assert_int_equal(status_of(t), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ok(launch_step(s, 1, 0, 2));
    ok(launch_step(t, 2, 0, 3));
    ok(cuEventRecord(join, t));
    ok(cuStreamWaitEvent(s, join, 0));
    ok(launch_step(s, 3, 0, 4));
    ok(cuStreamEndCapture(s, &g));
    assert_int_equal(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(node_count(g), 4);
    assert_int_equal(edge_count(g), 4);
    CUgraphNode nodes[4];
    size_t four = 4;
    ok(cuGraphGetNodes(g, nodes, &four));
    ok(cuGraphNodeGetDependencies(nodes[3], last, &two));
    assert_int_equal(two, 2);
    ok(cuMemsetD8_v2(buffer, 0, 16));
    run_graph(g);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(word(buffer + 4 * i), i + 1);
    /* The events belong to a capture that is over. */
    fails(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
    fails(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(fork));
    fails(CUDA_ERROR_CAPTURED_EVENT, cuStreamWaitEvent(t, fork, 0));
    ok(cuEventRecord(fork, t));
    ok(cuEventSynchronize(fork));
    ok(cuGraphDestroy(g));
    ok(cuEventDestroy_v2(fork));
    ok(cuEventDestroy_v2(join));
}

static void test_unjoined_work_is_an_error(void **state)
{
    CUevent fork;
    CUgraph g;
    ok(cuEventCreate(&fork, 0));
    begin(s);
    ok(launch_step(s, 0, 0, 1));
    ok(cuEventRecord(fork, s));
    ok(cuStreamWaitEvent(t, fork, 0));
    ok(launch_step(t, 2, 0, 3));
    fails(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &g));
    assert_null(g);
    assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);
    /* A fork that did nothing needs no join. */
    begin(s);
    ok(launch_step(s, 0, 0, 1));
    ok(cuEventRecord(fork, s));
    ok(cuStreamWaitEvent(t, fork, 0));
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
    ok(cuEventDestroy_v2(fork));
}

static void test_capture_ends_where_it_began(void **state)
{
    CUevent fork;
    CUgraph g;
    ok(cuEventCreate(&fork, 0));
    fails(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &g));
    begin(s);
    fails(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuEventRecord(fork, s));
    ok(cuStreamWaitEvent(t, fork, 0));
    fails(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(t, &g));
    ok(cuStreamEndCapture(s, &g));
    assert_int_equal(node_count(g), 0);
    ok(cuGraphDestroy(g));
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(s, (CUstreamCaptureMode)3));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamEndCapture(s, NULL));
    ok(cuEventDestroy_v2(fork));
}

/* ---- boundaries of a capture ------------------------------------------------------------------------------------ */

static void test_dependencies_may_not_cross_the_boundary(void **state)
{
    CUevent outside, inside, never;
    CUgraph g;
    ok(cuEventCreate(&outside, 0));
    ok(cuEventCreate(&inside, 0));
    ok(cuEventCreate(&never, 0));
    ok(cuEventRecord(outside, t));
    begin(s);
    ok(cuStreamWaitEvent(s, never, 0));
    fails(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, outside, 0));
    end_invalid(s);
    /* Two captures may not merge. */
    begin(s);
    begin(t);
    ok(cuEventRecord(inside, s));
    fails(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(t, inside, 0));
    end_invalid(s);
    end_invalid(t);
    /* As a node of its own the wait is fine, and so is the record. */
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(s, outside, CU_EVENT_WAIT_EXTERNAL));
    fails(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(inside, s, CU_EVENT_RECORD_EXTERNAL));
    begin(s);
    ok(cuStreamWaitEvent(s, outside, CU_EVENT_WAIT_EXTERNAL));
    ok(cuEventRecordWithFlags(never, s, CU_EVENT_RECORD_EXTERNAL));
    ok(cuStreamEndCapture(s, &g));
    assert_int_equal(node_count(g), 2);
    ok(cuEventQuery(never));
    run_graph(g);
    ok(cuEventSynchronize(never));
    ok(cuGraphDestroy(g));
    ok(cuEventDestroy_v2(outside));
    ok(cuEventDestroy_v2(inside));
    ok(cuEventDestroy_v2(never));
}

static void test_waiting_ends_a_capture(void **state)
{
    CUevent e;
    unsigned x = 0;
    ok(cuEventCreate(&e, 0));
    begin(s);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
    end_invalid(s);
    begin(s);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(s));
    end_invalid(s);
    begin(s);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    end_invalid(s);
    begin(s);
    ok(cuEventRecord(e, s));
    fails(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
    end_invalid(s);
    begin(s);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(s, (CUstreamCallback)(uintptr_t)1, NULL, 0));
    end_invalid(s);
    ok(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemcpyDtoH_v2_ptds(&x, buffer, 4));
    end_invalid(CU_STREAM_PER_THREAD);
    ok(cuEventDestroy_v2(e));
}

static void test_legacy_stream_is_unusable_beside_blocking_ones(void **state)
{
    CUstreamCaptureStatus status;
    CUgraph g;
    unsigned x = 0;
    begin(blocking);
    fails(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    assert_int_equal(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    fails(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, launch_step(NULL, 0, 1, 1));
    end_invalid(blocking);
    begin(blocking);
    fails(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemcpyDtoH_v2(&x, buffer, 4));
    end_invalid(blocking);
    begin(s); /* a non-blocking one does not concern it */
    ok(cuStreamIsCapturing(NULL, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    ok(launch_step(NULL, 0, 1, 1));
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
    ok(cuCtxSynchronize());
}

/* ---- modes ------------------------------------------------------------------------------------------------------ */

struct other_thread {
    CUstreamCaptureMode mode;
    CUresult result, end;
    CUstream stream;
};

static void *allocate_elsewhere(void *data)
{
    struct other_thread *o = data;
    CUcontext c;
    CUgraph g;
    CUdeviceptr p;
    cuDevicePrimaryCtxRetain(&c, 0);
    cuCtxSetCurrent(c);
    cuThreadExchangeStreamCaptureMode(&o->mode);
    o->result = cuMemAlloc_v2(&p, 64);
    if (o->result == CUDA_SUCCESS)
        cuMemFree_v2(p);
    o->end = o->stream ? cuStreamEndCapture(o->stream, &g) : CUDA_SUCCESS;
    cuDevicePrimaryCtxRelease_v2(0);
    return NULL;
}

static struct other_thread elsewhere(CUstreamCaptureMode mode, CUstream stream)
{
    struct other_thread o = {.mode = mode, .stream = stream};
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_elsewhere, &o);
    pthread_join(thread, NULL);
    return o;
}

static void test_modes_decide_what_is_unsafe(void **state)
{
    CUdeviceptr p;
    CUgraph g;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin(s);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&p, 64));
    end_invalid(s);
    begin(s); /* any other thread, too */
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL, NULL).result);
    end_invalid(s);
    begin(s); /* but for those that ignore others */
    ok(elsewhere(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, NULL).result);
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuMemAlloc_v2(&p, 64)); /* or everything */
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
    ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok(elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL, NULL).result);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemFree_v2(p));
    end_invalid(s);
    ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuMemFree_v2(p));
    ok(elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL, NULL).result);
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
    fails(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(NULL));
    mode = 9;
    fails(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
}

static void test_only_relaxed_captures_end_in_another_thread(void **state)
{
    CUgraph g;
    begin(s);
    fails(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, elsewhere(CU_STREAM_CAPTURE_MODE_RELAXED, s).end);
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
    ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(elsewhere(CU_STREAM_CAPTURE_MODE_RELAXED, s).end);
    assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
}

/* ---- queries and changes ---------------------------------------------------------------------------------------- */

static void test_capture_info(void **state)
{
    CUstreamCaptureStatus status;
    cuuint64_t id, other_id;
    CUgraph g, same;
    const CUgraphNode *nodes;
    const CUgraphEdgeData *data;
    size_t count;
    ok(cuStreamGetCaptureInfo_v3(s, &status, &id, &g, &nodes, &data, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    begin(s);
    ok(launch_step(s, 0, 0, 1));
    ok(cuStreamGetCaptureInfo_v3(s, &status, &id, &g, &nodes, &data, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(count, 1);
    CUgraphNode first = nodes[0];
    ok(cuStreamGetCaptureInfo_v2(s, &status, &other_id, &same, &nodes, &count));
    assert_int_equal(id, other_id);
    assert_ptr_equal(same, g);
    ok(cuStreamGetCaptureInfo(s, &status, &other_id));
    assert_int_equal(id, other_id);
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetCaptureInfo(s, NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetCaptureInfo_v3(s, &status, NULL, NULL, NULL, &data, NULL));
    /* Nodes may be added by hand, and put before what comes next. */
    CUgraphNode mine = add_step(g, first, 0, 10, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(g));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(mine));
    ok(cuStreamUpdateCaptureDependencies_v2(s, &mine, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(launch_step(s, 0, 1, 5));
    CUgraphNode side = add_step(g, NULL, 1, 0, 8);
    CUgraphEdgeData edge = {.from_port = 1, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    ok(cuStreamUpdateCaptureDependencies_v2(s, &side, &edge, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    fails(CUDA_ERROR_LOSSY_QUERY, cuStreamGetCaptureInfo_v2(s, &status, NULL, NULL, &nodes, &count));
    ok(launch_step(s, 0, 1, 0));
    ok(cuStreamEndCapture(s, &g));
    assert_ptr_equal(g, same);
    fails(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(g, (CUgraphNode[8]){0}, (CUgraphNode[8]){0}, &(size_t){8}));
    run_graph(g);
    assert_int_equal(word(buffer), 15);
    assert_int_equal(word(buffer + 4), 8);
    fails(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(s, &side, 1, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies(s, &side, 1, 7));
    begin(s);
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies(s, &side, 1, 0)); /* of another graph */
    ok(cuStreamEndCapture(s, &same));
    ok(cuGraphDestroy(same));
    ok(cuGraphDestroy(g));
}

static void test_programmatic_launches_have_such_edges(void **state)
{
    CUdeviceptr p = buffer;
    unsigned factor = 1, summand = 1;
    void *params[] = {&p, &factor, &summand};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmaticStreamSerializationAllowed = 1};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = s,
                             .attrs = &attribute,
                             .numAttrs = 1};
    CUgraph g;
    CUgraphNode from, to;
    CUgraphEdgeData data;
    size_t one = 1;
    begin(s);
    ok(launch_step(s, 0, 0, 1));
    ok(cuLaunchKernelEx(&config, step, params, NULL));
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphGetEdges_v2(g, &from, &to, &data, &one));
    assert_int_equal(data.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    assert_int_equal(data.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    run_graph(g);
    assert_int_equal(word(buffer), 2);
    ok(cuGraphDestroy(g));
}

static void test_capture_into_a_graph(void **state)
{
    CUgraph g, out;
    CUgraphExec e;
    ok(cuGraphCreate(&g, 0));
    CUgraphNode first = add_step(g, NULL, 0, 0, 7), foreign;
    ok(cuStreamBeginCaptureToGraph(s, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e, g, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCaptureToGraph(t, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(launch_step(s, 0, 2, 0));
    ok(cuStreamEndCapture(s, &out));
    assert_ptr_equal(out, g);
    run_graph(g);
    assert_int_equal(word(buffer), 14);
    /* Whose graph it is knows it already; a graph that the capture made must be taken. */
    ok(cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuStreamEndCapture(s, NULL));
    begin(s);
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamEndCapture(s, NULL));
    ok(cuStreamEndCapture(s, &out));
    ok(cuGraphDestroy(out));
    ok(cuGraphCreate(&out, 0));
    foreign = add_step(out, NULL, 0, 0, 7);
    fails(CUDA_ERROR_INVALID_VALUE,
          cuStreamBeginCaptureToGraph(s, g, &foreign, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    /* The graph survives a capture that fails. */
    ok(cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
    end_invalid(s);
    assert_int_equal(node_count(g), 2);
    ok(cuGraphDestroy(out));
    ok(cuGraphDestroy(g));
}

static void test_memory_in_a_capture(void **state)
{
    CUdeviceptr p, pool;
    CUgraph g;
    unsigned out = 0;
    begin(s);
    ok(cuMemAllocAsync(&p, 4096, s));
    ok(cuMemsetD32Async(p, 99, 4, s));
    ok(cuMemcpyDtoHAsync_v2(&out, p + 8, 4, s));
    ok(cuMemFreeAsync(p, s));
    ok(cuStreamEndCapture(s, &g));
    assert_int_equal(node_count(g), 4);
    run_graph(g);
    assert_int_equal(out, 99);
    ok(cuGraphDestroy(g));
    ok(cuMemAllocAsync(&pool, 64, s));
    begin(s);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(pool, s)); /* not of a graph */
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
    ok(cuMemFreeAsync(pool, s));
    ok(cuStreamSynchronize(s));
}

static void test_destroying_a_stream_ends_its_capture(void **state)
{
    CUstream u;
    CUevent fork;
    CUgraph g;
    CUdeviceptr p;
    ok(cuEventCreate(&fork, 0));
    ok(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
    begin(u);
    ok(launch_step(u, 0, 1, 1));
    ok(cuStreamDestroy_v2(u));
    ok(cuMemAlloc_v2(&p, 64)); /* nothing is captured any more */
    ok(cuMemFree_v2(p));
    for (int joined = 0; joined < 2; joined++) { /* a forked stream may go when its work is joined, before or after */
        ok(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
        begin(s);
        ok(cuEventRecord(fork, s));
        ok(cuStreamWaitEvent(u, fork, 0));
        ok(launch_step(u, 0, 1, 1));
        ok(cuEventRecord(fork, u));
        ok(cuStreamDestroy_v2(u));
        if (joined) {
            ok(cuStreamWaitEvent(s, fork, 0));
            ok(cuStreamEndCapture(s, &g));
            assert_int_equal(node_count(g), 1);
            ok(cuGraphDestroy(g));
        } else {
            fails(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &g));
        }
    }
    begin(s); /* an event may go before its capture ends */
    ok(cuEventRecord(fork, s));
    ok(cuEventDestroy_v2(fork));
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
}

static void test_per_thread_forms(void **state)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph g, same;
    CUgraphExec e;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    const CUgraphNode *nodes;
    const CUgraphEdgeData *data;
    size_t count;
    set_word(buffer, 1);
    ok(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(launch_step(CU_STREAM_PER_THREAD, 0, 3, 0));
    ok(cuStreamIsCapturing_ptsz(NULL, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ok(cuStreamGetCaptureInfo_ptsz(NULL, &status, &id));
    ok(cuStreamGetCaptureInfo_v2_ptsz(NULL, &status, &id, &same, &nodes, &count));
    ok(cuStreamGetCaptureInfo_v3_ptsz(NULL, &status, &id, &same, &nodes, &data, &count));
    CUgraphNode node = nodes[0];
    ok(cuStreamUpdateCaptureDependencies_ptsz(NULL, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(cuStreamUpdateCaptureDependencies_v2_ptsz(NULL, &node, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    ok(cuStreamEndCapture_ptsz(NULL, &g));
    assert_ptr_equal(g, same);
    ok(cuStreamBeginCaptureToGraph_ptsz(NULL, g, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(launch_step(CU_STREAM_PER_THREAD, 0, 1, 4));
    ok(cuStreamEndCapture_ptsz(NULL, &same));
    ok(cuGraphInstantiateWithParams_ptsz(&e, g, &params));
    assert_null(params.hUploadStream);
    ok(cuGraphUpload_ptsz(e, NULL));
    ok(cuGraphLaunch_ptsz(e, NULL));
    ok(cuStreamSynchronize_ptsz(NULL));
    assert_int_equal(word(buffer), 7);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    /* The first forms know one mode only. */
    ok(cuStreamBeginCapture_ptsz(NULL));
    ok(cuStreamEndCapture_ptsz(NULL, &g));
    ok(cuGraphDestroy(g));
    ok(cuStreamBeginCapture(s));
    ok(cuStreamEndCapture(s, &g));
    ok(cuGraphDestroy(g));
}

/* Threads that capture, launch and invalidate at the same time. */
static void *capture_often(void *data)
{
    CUcontext c;
    CUstream mine;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    int at = *(int *)data;
    cuDevicePrimaryCtxRetain(&c, 0);
    cuCtxSetCurrent(c);
    cuThreadExchangeStreamCaptureMode(&mode);
    cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING);
    bool good = launch_step(mine, at, 0, 0) == CUDA_SUCCESS;
    for (int i = 0; i < 50 && good; i++) {
        CUgraph g;
        CUgraphExec e;
        good = cuStreamBeginCapture_v2(mine, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS &&
               launch_step(mine, at, 1, 1) == CUDA_SUCCESS && launch_step(mine, at, 1, 1) == CUDA_SUCCESS &&
               cuStreamEndCapture(mine, &g) == CUDA_SUCCESS && cuGraphInstantiateWithFlags(&e, g, 0) == CUDA_SUCCESS &&
               cuGraphLaunch(e, mine) == CUDA_SUCCESS && cuGraphLaunch(e, mine) == CUDA_SUCCESS &&
               cuGraphExecDestroy(e) == CUDA_SUCCESS && cuGraphDestroy(g) == CUDA_SUCCESS;
    }
    good = cuStreamSynchronize(mine) == CUDA_SUCCESS && good;
    cuStreamDestroy_v2(mine);
    cuDevicePrimaryCtxRelease_v2(0);
    return (void *)(uintptr_t)good;
}

static void test_threads_capture_at_the_same_time(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int at[THREADS];
    for (int i = 0; i < THREADS; i++) {
        at[i] = i;
        pthread_create(&threads[i], NULL, capture_often, &at[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        void *good;
        pthread_join(threads[i], &good);
        assert_non_null(good);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(word(buffer + 4 * (CUdeviceptr)i), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_becomes_a_node),
        cmocka_unit_test(test_arguments_are_those_of_the_call),
        cmocka_unit_test(test_launch_of_a_graph_becomes_a_child),
        cmocka_unit_test(test_events_fork_and_join),
        cmocka_unit_test(test_unjoined_work_is_an_error),
        cmocka_unit_test(test_capture_ends_where_it_began),
        cmocka_unit_test(test_dependencies_may_not_cross_the_boundary),
        cmocka_unit_test(test_waiting_ends_a_capture),
        cmocka_unit_test(test_legacy_stream_is_unusable_beside_blocking_ones),
        cmocka_unit_test(test_modes_decide_what_is_unsafe),
        cmocka_unit_test(test_only_relaxed_captures_end_in_another_thread),
        cmocka_unit_test(test_capture_info),
        cmocka_unit_test(test_programmatic_launches_have_such_edges),
        cmocka_unit_test(test_capture_into_a_graph),
        cmocka_unit_test(test_memory_in_a_capture),
        cmocka_unit_test(test_destroying_a_stream_ends_its_capture),
        cmocka_unit_test(test_per_thread_forms),
        cmocka_unit_test(test_threads_capture_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, setup, reset_context);
}
