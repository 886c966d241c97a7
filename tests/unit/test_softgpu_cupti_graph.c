/* softgpu's libcupti on graphs: as wholes or by their nodes, and what is told of them. */
#include "tests/unit/cupti_test.h"

static unsigned created, cloned, destroyed, execs, execs_gone, nodes, nodes_gone;
static CUgraphNodeType last_type;

static void on_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata)
{
    const CUpti_GraphData *g = ((const CUpti_ResourceData *)cbdata)->resourceDescriptor;
    created += cbid == CUPTI_CBID_RESOURCE_GRAPH_CREATED;
    cloned += cbid == CUPTI_CBID_RESOURCE_GRAPH_CLONED && g->originalGraph && g->graph != g->originalGraph;
    destroyed += cbid == CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING;
    execs += cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED && g->graphExec;
    execs_gone += cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING;
    nodes += cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED && g->node;
    nodes_gone += cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING;
    if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED)
        last_type = g->nodeType;
}

/* A fill, then a kernel. */
static void build(CUgraph *graph, CUgraphNode node[2], CUdeviceptr memory)
{
    CUcontext context;
    CUfunction function;
    good(cuCtxGetCurrent(&context));
    good(cuKernelGetFunction(&function, (CUkernel)nothing));
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .elementSize = 1, .width = 50, .height = 1, .value = 7};
    CUDA_KERNEL_NODE_PARAMS kernel = {
        .func = function, .gridDimX = 5, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 2, .blockDimY = 1, .blockDimZ = 1};
    good(cuGraphCreate(graph, 0));
    good(cuGraphAddMemsetNode(&node[0], *graph, NULL, 0, &fill, context));
    good(cuGraphAddKernelNode(&node[1], *graph, &node[0], 1, &kernel));
}

static void test_nodes_are_recorded_with_the_launch(void **state)
{
    CUgraph graph;
    CUgraphNode node[2];
    CUgraphExec exec;
    CUdeviceptr memory;
    uint64_t id[2];
    uint32_t exec_id, graph_id;
    good(cuMemAlloc(&memory, 64));
    build(&graph, node, memory);
    good(cuGraphInstantiate(&exec, graph, 0));
    good(cuptiGetGraphExecId(exec, &exec_id));
    good(cuptiGetGraphId(graph, &graph_id));
    assert_int_not_equal(exec_id, graph_id);
    for (int i = 0; i < 2; i++)
        good(cuptiGetGraphNodeId(node[i], &id[i]));
    assert_int_not_equal(id[0], id[1]);
    assert_int_equal(cuptiGetGraphId(NULL, &graph_id), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiGetGraphExecId((CUgraphExec)graph, &exec_id), CUPTI_ERROR_INVALID_PARAMETER);
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    collect(CUPTI_ACTIVITY_KIND_MEMSET);
    collect(CUPTI_ACTIVITY_KIND_DRIVER);
    good(cuGraphLaunch(exec, NULL));
    flush();
    const CUpti_ActivityAPI *call = call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
    assert_non_null(call);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMSET), 1);
    const CUpti_ActivityKernel10 *k = &nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel;
    const CUpti_ActivityMemset4 *f = &nth(CUPTI_ACTIVITY_KIND_MEMSET, 0)->fill;
    assert_string_equal(k->name, "nothing");
    assert_int_equal(k->gridX, 5);
    assert_int_equal(k->graphId, exec_id);
    assert_int_equal(k->graphNodeId, id[1]);
    assert_int_equal(k->correlationId, call->correlationId);
    assert_int_equal(f->graphId, exec_id);
    assert_int_equal(f->graphNodeId, id[0]);
    assert_int_equal(f->bytes, 50);
    assert_int_equal(f->correlationId, call->correlationId);
    assert_true(f->end <= k->start);
    good(cuGraphExecDestroy(exec));
    good(cuGraphDestroy(graph));
    good(cuMemFree(memory));
}

static void test_graph_trace_is_one_record_for_a_launch(void **state)
{
    CUgraph graph;
    CUgraphNode node[2];
    CUgraphExec exec;
    CUdeviceptr memory;
    uint32_t exec_id;
    good(cuMemAlloc(&memory, 64));
    build(&graph, node, memory);
    good(cuGraphInstantiate(&exec, graph, 0));
    good(cuptiGetGraphExecId(exec, &exec_id));
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    collect(CUPTI_ACTIVITY_KIND_MEMSET);
    collect(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    good(cuGraphLaunch(exec, NULL));
    good(cuGraphLaunch(exec, NULL));
    launch(nothing, 1, 1, NULL, NULL); /* of no graph */
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), 2);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMSET), 0);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel.graphId, 0);
    const CUpti_ActivityGraphTrace2 *first = &nth(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0)->graph;
    const CUpti_ActivityGraphTrace2 *second = &nth(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 1)->graph;
    assert_int_equal(first->graphId, exec_id);
    assert_true(first->start <= first->end && first->end <= second->start);
    assert_int_not_equal(first->correlationId, second->correlationId);
    good(cuGraphExecDestroy(exec));
    good(cuGraphDestroy(graph));
    good(cuMemFree(memory));
}

static void test_callbacks_of_graphs(void **state)
{
    CUpti_SubscriberHandle subscriber;
    CUgraph graph, copy;
    CUgraphNode node[2];
    CUgraphExec exec;
    CUdeviceptr memory;
    good(cuMemAlloc(&memory, 64));
    good(cuptiSubscribe(&subscriber, on_callback, NULL));
    for (uint32_t id = CUPTI_CBID_RESOURCE_GRAPH_CREATED; id <= CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING; id++)
        good(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
    build(&graph, node, memory);
    assert_int_equal(created, 1);
    assert_int_equal(nodes, 2);
    assert_int_equal(last_type, CU_GRAPH_NODE_TYPE_KERNEL);
    good(cuGraphClone(&copy, graph));
    assert_int_equal(cloned, 1);
    good(cuGraphInstantiate(&exec, graph, 0));
    assert_int_equal(execs, 1);
    good(cuGraphDestroyNode(node[0]));
    assert_int_equal(nodes_gone, 1);
    good(cuGraphExecDestroy(exec));
    assert_int_equal(execs_gone, 1);
    good(cuGraphDestroy(graph));
    good(cuGraphDestroy(copy));
    assert_int_equal(destroyed, 2);
    good(cuMemFree(memory));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    static const struct CMUnitTest tests[] = {
        TEST(test_nodes_are_recorded_with_the_launch),
        TEST(test_graph_trace_is_one_record_for_a_launch),
        TEST(test_callbacks_of_graphs),
    };
    return cmocka_run_group_tests(tests, load_kernels, NULL);
}
