/* Graphs of softgpu as wholes: nodes and edges, copies, executable graphs, their launches and updates, user objects. */
#include <pthread.h>

#include "tests/unit/graph_kit.h"

static CUgraph new_graph(void)
{
    CUgraph g;
    ok(cuGraphCreate(&g, 0));
    return g;
}

/* ---- nodes and edges -------------------------------------------------------------------------------------------- */

static void test_graph_handles(void **state)
{
    CUgraph g;
    CUgraphNodeType type;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&g, 1));
    g = new_graph();
    CUgraphNode n = add_step(g, NULL, 0, 1, 1);
    ok(cuGraphNodeGetType(n, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(n, NULL));
    ok(cuGraphDestroy(g));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(g)); /* neither the graph nor its nodes are there any more */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(n, &type));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(n));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(NULL));
}

static void test_lists_of_nodes(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n[4], out[6];
    size_t count = 0;
    n[0] = add_step(g, NULL, 0, 1, 1);
    n[1] = add_step(g, n[0], 0, 1, 1);
    n[2] = add_step(g, NULL, 1, 1, 1);
    n[3] = add_step(g, n[2], 1, 1, 1);
    ok(cuGraphGetNodes(g, NULL, &count));
    assert_int_equal(count, 4);
    count = 6;
    ok(cuGraphGetNodes(g, out, &count));
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(out[i], n[i]);
    assert_null(out[4]);
    assert_null(out[5]);
    count = 3; /* a small array gets what fits */
    ok(cuGraphGetNodes(g, out, &count));
    assert_int_equal(count, 3);
    count = 6;
    ok(cuGraphGetRootNodes(g, out, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(out[1], n[2]);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(g, out, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphGetRootNodes((CUgraph)n[0], out, &count));
    ok(cuGraphDestroy(g));
}

static void test_edges(void **state)
{
    CUgraph g = new_graph(), h = new_graph();
    CUgraphNode a = add_step(g, NULL, 0, 1, 1), b = add_step(g, NULL, 0, 1, 1), c = add_step(g, a, 0, 1, 1),
                elsewhere = add_step(h, NULL, 0, 1, 1), from[4], to[4];
    CUgraphEdgeData data[4], programmatic = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                             .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    size_t count = 4;
    ok(cuGraphAddDependencies(g, &b, &c, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &b, &c, 1)); /* it is there */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &b, &b, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &b, &elsewhere, 1));
    ok(cuGraphAddDependencies(g, NULL, NULL, 0));
    ok(cuGraphGetEdges(g, from, to, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(from[0], a);
    assert_ptr_equal(to[0], c);
    assert_null(from[2]);
    count = 4;
    ok(cuGraphNodeGetDependencies(c, from, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(from[1], b);
    count = 4;
    ok(cuGraphNodeGetDependentNodes(a, to, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(to[0], c);
    /* Edges with data are not shown without it. */
    ok(cuGraphAddDependencies_v2(g, &a, &b, &programmatic, 1));
    count = 4;
    fails(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(g, from, to, &count));
    fails(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependencies(b, from, &count));
    fails(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependentNodes(a, to, &count));
    ok(cuGraphGetEdges_v2(g, from, to, data, &count));
    assert_int_equal(count, 3);
    count = 4;
    ok(cuGraphNodeGetDependencies_v2(b, from, data, &count));
    assert_int_equal(data[0].from_port, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
    count = 4;
    ok(cuGraphNodeGetDependentNodes_v2(a, to, data, &count));
    assert_int_equal(count, 2);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges_v2(g, NULL, NULL, data, &count));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(g, &a, &b, 1)); /* the data must match */
    ok(cuGraphRemoveDependencies_v2(g, &a, &b, &programmatic, 1));
    ok(cuGraphRemoveDependencies(g, &b, &c, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(g, &b, &c, 1));
    /* Half of several is not done. */
    CUgraphNode two_from[] = {a, b}, two_to[] = {c, c};
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(g, two_from, two_to, 2));
    count = 0;
    ok(cuGraphGetEdges(g, NULL, NULL, &count));
    assert_int_equal(count, 1);
    CUgraphNode twice[] = {a, a}, x;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&x, g, twice, 2));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&x, g, &elsewhere, 1));
    ok(cuGraphGetNodes(g, NULL, &count));
    assert_int_equal(count, 3);
    ok(cuGraphDestroy(g));
    ok(cuGraphDestroy(h));
}

static void test_destroyed_node_takes_its_edges(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode a = add_step(g, NULL, 0, 0, 3), b = add_step(g, a, 0, 10, 0);
    add_step(g, b, 0, 1, 1);
    size_t count = 0;
    ok(cuGraphDestroyNode(b));
    ok(cuGraphGetEdges(g, NULL, NULL, &count));
    assert_int_equal(count, 0);
    ok(cuGraphGetRootNodes(g, NULL, &count));
    assert_int_equal(count, 2);
    run_graph(g);
    ok(cuGraphDestroy(g));
}

static void test_clones(void **state)
{
    CUgraph g = new_graph(), clone, again;
    CUgraphNode a = add_step(g, NULL, 0, 0, 3), b = add_step(g, a, 0, 10, 0), found;
    size_t count = 0;
    ok(cuGraphClone(&clone, g));
    ok(cuGraphNodeFindInClone(&found, b, clone));
    assert_ptr_not_equal(found, b);
    add_step(g, b, 0, 1, 7); /* the clone stays as it is */
    ok(cuGraphGetNodes(clone, NULL, &count));
    assert_int_equal(count, 2);
    ok(cuGraphDestroy(g));
    run_graph(clone);
    assert_int_equal(word(buffer), 30);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&found, b, clone)); /* gone */
    ok(cuGraphClone(&again, clone));
    ok(cuGraphNodeFindInClone(&a, found, again));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&b, a, again)); /* not of the original */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphClone(NULL, again));
    ok(cuGraphDestroy(clone));
    ok(cuGraphDestroy(again));
}

static void test_dot(void **state)
{
    char path[] = "/tmp/softgpu_dot_XXXXXX", text[4096] = "";
    close(mkstemp(path));
    CUgraph g = new_graph(), child = new_graph();
    CUgraphNode n = add_step(g, NULL, 0, 1, 1), m;
    add_step(child, NULL, 0, 1, 1);
    ok(cuGraphAddChildGraphNode(&m, g, &n, 1, child));
    ok(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    FILE *f = fopen(path, "re");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    unlink(path);
    assert_non_null(strstr(text, "digraph"));
    assert_non_null(strstr(text, "step"));
    assert_non_null(strstr(text, "->"));
    assert_non_null(strstr(text, "GRAPH"));
    fails(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(g, "/nonexistent/x.dot", 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(g, path, 1u << 30));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(g, NULL, 0));
    ok(cuGraphDestroy(g));
    ok(cuGraphDestroy(child));
}

/* ---- executable graphs ------------------------------------------------------------------------------------------ */

static void test_instantiate_forms(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode a = add_step(g, NULL, 0, 2, 1), error;
    CUgraphExec e[4];
    CUDA_GRAPH_INSTANTIATE_PARAMS p = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                                CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY};
    cuuint64_t flags;
    char log[64] = "x";
    ok(cuGraphInstantiate(&e[0], g, &error, log, sizeof log));
    ok(cuGraphInstantiate_v2(&e[1], g, &error, log, sizeof log));
    assert_null(error);
    assert_string_equal(log, "");
    ok(cuGraphInstantiateWithFlags(&e[2], g, 0));
    ok(cuGraphInstantiateWithParams(&e[3], g, &p));
    assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    ok(cuGraphExecGetFlags(e[3], &flags));
    assert_int_equal(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    set_word(buffer, 0);
    for (int i = 0; i < 4; i++) {
        ok(cuGraphLaunch(e[i], NULL));
        ok(cuGraphExecDestroy(e[i])); /* also while it is under way */
        fails(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(e[i], NULL));
    }
    assert_int_equal(word(buffer), 15);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e[0], g, 0x1000));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e[0], NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&e[0], g, NULL));
    fails(CUDA_ERROR_INVALID_VALUE,
          cuGraphInstantiateWithFlags(
              &e[0], g, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&e[0], g, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy(e[0]));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecGetFlags(e[0], &flags));
    /* A cycle. */
    CUgraphNode b = add_step(g, a, 0, 1, 1), c = add_step(g, b, 0, 1, 1);
    ok(cuGraphAddDependencies(g, &c, &b, 1));
    p = (CUDA_GRAPH_INSTANTIATE_PARAMS){0};
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&e[0], g, &p));
    assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    assert_true(p.hErrNode_out == b || p.hErrNode_out == c);
    ok(cuGraphDestroy(g));
}

/* Many nodes whose edges allow one order only, added in another. */
static void test_edges_order_the_nodes(void **state)
{
    enum { COUNT = 9 };
    CUgraph g = new_graph();
    CUgraphNode n[COUNT];
    unsigned expected = 0;
    for (unsigned i = 0; i < COUNT; i++)
        n[i] = add_step(g, NULL, 0, 10, COUNT - i);
    for (int i = COUNT - 1; i > 0; i--)
        ok(cuGraphAddDependencies(g, &n[i], &n[i - 1], 1));
    for (unsigned i = 1; i <= COUNT; i++)
        expected = expected * 10 + i;
    set_word(buffer, 0);
    run_graph(g);
    assert_int_equal(word(buffer), expected);
    ok(cuGraphDestroy(g));
}

static void test_launch_is_ordered_in_its_stream(void **state)
{
    struct gate gate = {0};
    CUgraph g = new_graph();
    CUgraphExec e;
    CUstream s, t;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    add_step(g, NULL, 0, 10, 2);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    set_word(buffer, 0);
    ok(cuLaunchHostFunc(s, wait_at, &gate));
    ok(launch_step(s, 0, 10, 1));
    ok(cuGraphUpload(e, s));
    ok(cuGraphLaunch(e, s));
    ok(launch_step(s, 0, 10, 3));
    /* The second launch waits for the first, in whatever stream. */
    ok(cuGraphLaunch(e, t));
    sleep_ms(20);
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(t));
    atomic_store(&gate.open, true);
    ok(cuStreamSynchronize(s));
    ok(cuStreamSynchronize(t));
    unsigned result = word(buffer); /* 123 and 2, or 12, 2 and 3: the streams do not wait for each other beyond that */
    assert_true(result == 1232 || result == 1223);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

static void test_changes_leave_launches_alone(void **state)
{
    struct gate gate = {0};
    CUgraph g = new_graph();
    CUgraphExec e;
    CUstream s;
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    unsigned summand = 7;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUgraphNode n = add_step(g, NULL, 0, 10, 1);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    set_word(buffer, 0);
    ok(cuLaunchHostFunc(s, wait_at, &gate));
    ok(cuGraphLaunch(e, s));
    ok(cuGraphKernelNodeGetParams_v2(n, &p));
    p.kernelParams[2] = &summand;
    ok(cuGraphExecKernelNodeSetParams_v2(e, n, &p));
    ok(cuGraphLaunch(e, s));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    atomic_store(&gate.open, true);
    ok(cuStreamSynchronize(s));
    assert_int_equal(word(buffer), 17);
    ok(cuStreamDestroy_v2(s));
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

static CUgraphExecUpdateResultInfo refused(CUgraphExec e, CUgraph g, CUgraphExecUpdateResult why)
{
    CUgraphExecUpdateResultInfo info;
    fails(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(e, g, &info));
    assert_int_equal(info.result, why);
    return info;
}

static void test_update(void **state)
{
    CUgraph g = new_graph(), h = new_graph();
    CUgraphExec e;
    CUgraphExecUpdateResultInfo info;
    CUgraphExecUpdateResult why;
    CUgraphNode a = add_step(g, NULL, 0, 0, 1), x, y, error;
    add_step(g, a, 0, 10, 2);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    x = add_step(h, NULL, 0, 0, 4);
    fails(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(e, h, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED); /* fewer nodes */
    assert_null(info.errorNode);
    y = add_step(h, NULL, 0, 10, 5);
    info = refused(e, h, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED); /* more ends */
    assert_non_null(info.errorNode);
    ok(cuGraphAddDependencies(h, &x, &y, 1));
    ok(cuGraphExecUpdate_v2(e, h, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 45);
    ok(cuGraphExecUpdate(e, g, &error, &why));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 12);
    /* Another kind of node, and one that may not change so. */
    CUgraph k = new_graph();
    CUDA_HOST_NODE_PARAMS call = {count_up, NULL};
    ok(cuGraphAddHostNode(&x, k, NULL, 0, &call));
    y = add_step(k, x, 0, 1, 1);
    info = refused(e, k, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_ptr_equal(info.errorNode, x);
    CUkernelNodeAttrValue cooperative = {.cooperative = 1};
    CUgraph c = new_graph();
    x = add_step(c, NULL, 0, 1, 1);
    y = add_step(c, x, 0, 1, 1);
    ok(cuGraphKernelNodeSetAttribute(y, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative));
    info = refused(e, c, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
    assert_ptr_equal(info.errorNode, y);
    ok(cuGraphLaunch(e, NULL)); /* as it was */
    assert_int_equal(word(buffer), 12);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate_v2(e, NULL, &info));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate_v2(e, g, NULL));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuGraphDestroy(h));
    ok(cuGraphDestroy(k));
    ok(cuGraphDestroy(c));
}

/* Nodes are paired by their edges, not by the order in which they were added. */
static void test_update_pairs_by_edges(void **state)
{
    CUgraph g = new_graph(), h = new_graph();
    CUgraphExec e;
    CUgraphExecUpdateResultInfo info;
    CUgraphNode a = add_step(g, NULL, 0, 0, 1);
    add_step(g, a, 0, 10, 2);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    CUgraphNode end = add_step(h, NULL, 0, 10, 9), start = add_step(h, NULL, 0, 0, 8);
    ok(cuGraphAddDependencies(h, &start, &end, 1));
    ok(cuGraphExecUpdate_v2(e, h, &info));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 89);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuGraphDestroy(h));
}

static void test_update_reaches_child_graphs(void **state)
{
    CUgraph g = new_graph(), h = new_graph(), child = new_graph();
    CUgraphExec e;
    CUgraphExecUpdateResultInfo info;
    CUgraphNode in_g, in_h, n;
    n = add_step(child, NULL, 0, 0, 5);
    ok(cuGraphAddChildGraphNode(&in_g, g, NULL, 0, child));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    unsigned summand = 6;
    ok(cuGraphKernelNodeGetParams_v2(n, &p));
    p.kernelParams[2] = &summand;
    ok(cuGraphKernelNodeSetParams_v2(n, &p));
    ok(cuGraphAddChildGraphNode(&in_h, h, NULL, 0, child));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 5);
    ok(cuGraphExecUpdate_v2(e, h, &info));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 6);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuGraphDestroy(h));
    ok(cuGraphDestroy(child));
}

/* ---- user objects ----------------------------------------------------------------------------------------------- */

static void test_user_objects_live_with_graphs(void **state)
{
    struct gate gate = {0};
    atomic_int gone = 0;
    CUuserObject object;
    CUgraph g = new_graph(), clone;
    CUgraphExec e;
    CUgraphNode n;
    CUDA_HOST_NODE_PARAMS call = {wait_at, &gate};
    ok(cuGraphAddHostNode(&n, g, NULL, 0, &call));
    ok(cuUserObjectCreate(&object, &gone, count_up, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ok(cuUserObjectRetain(object, 2));
    ok(cuUserObjectRelease(object, 2));
    ok(cuGraphRetainUserObject(g, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    ok(cuGraphClone(&clone, g));
    ok(cuGraphDestroy(g));
    assert_int_equal(atomic_load(&gone), 0);
    ok(cuGraphInstantiateWithFlags(&e, clone, 0));
    ok(cuGraphDestroy(clone));
    ok(cuGraphLaunch(e, NULL));
    ok(cuGraphExecDestroy(e));
    assert_int_equal(atomic_load(&gone), 0); /* the launch still needs it */
    atomic_store(&gate.open, true);
    ok(cuCtxSynchronize());
    for (int i = 0; i < 1000 && !atomic_load(&gone); i++)
        sleep_ms(1);
    assert_int_equal(atomic_load(&gone), 1);
    fails(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 1));
}

static void test_user_objects_are_counted(void **state)
{
    atomic_int gone = 0;
    CUuserObject object;
    CUgraph g = new_graph();
    fails(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, NULL, count_up, 1, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, NULL, count_up, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    fails(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, NULL, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ok(cuUserObjectCreate(&object, &gone, count_up, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ok(cuGraphRetainUserObject(g, object, 3, 0));
    ok(cuUserObjectRelease(object, 1)); /* the caller's own */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(g, object, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(g, object, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(g, object, 1, 8));
    ok(cuGraphReleaseUserObject(g, object, 2));
    assert_int_equal(atomic_load(&gone), 0);
    ok(cuGraphReleaseUserObject(g, object, 1));
    assert_int_equal(atomic_load(&gone), 1);
    ok(cuGraphDestroy(g));
    assert_int_equal(atomic_load(&gone), 1);
}

/* ---- errors of the device --------------------------------------------------------------------------------------- */

static void test_fault_in_a_graph_ends_the_context(void **state)
{
    CUcontext mine;
    CUmodule m;
    CUfunction bad;
    CUdeviceptr p;
    CUgraph g = new_graph();
    CUgraphExec e;
    CUgraphNode n, host, record;
    CUevent after;
    atomic_int calls = 0;
    CUDA_HOST_NODE_PARAMS call = {count_up, &calls};
    ok(cuCtxCreate_v2(&mine, 0, 0));
    ok(cuModuleLoadData(&m, GRAPH_PTX));
    ok(cuModuleGetFunction(&bad, m, "far"));
    ok(cuMemAlloc_v2(&p, 64));
    ok(cuEventCreate(&after, 0));
    void *params[] = {&p};
    CUDA_KERNEL_NODE_PARAMS_v2 k = one_thread(bad, params);
    ok(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    ok(cuGraphAddHostNode(&host, g, &n, 1, &call));
    ok(cuGraphAddEventRecordNode(&record, g, &host, 1, after));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphLaunch(e, NULL));
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(e, NULL));
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventSynchronize(after)); /* and not for ever */
    assert_int_equal(atomic_load(&calls), 0);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuCtxDestroy_v2(mine));
}

static void test_unloaded_module_is_refused(void **state)
{
    CUmodule m;
    CUfunction f;
    CUgraph g = new_graph();
    CUgraphExec e;
    CUgraphNode n;
    CUdeviceptr p = buffer;
    unsigned factor = 1, summand = 1;
    void *params[] = {&p, &factor, &summand};
    ok(cuModuleLoadData(&m, GRAPH_PTX));
    ok(cuModuleGetFunction(&f, m, "step"));
    CUDA_KERNEL_NODE_PARAMS_v2 k = one_thread(f, params);
    ok(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuModuleUnload(m));
    fails(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(e, NULL));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

/* Threads that launch graphs of their own in streams of their own. */
static void *launch_often(void *data)
{
    int at = *(int *)data;
    CUcontext c;
    CUstream s;
    CUgraph g;
    CUgraphExec e;
    CUgraphNode n, last = NULL;
    CUdeviceptr p = buffer + 4 * (CUdeviceptr)at;
    unsigned one = 1;
    void *params[] = {&p, &one, &one};
    CUDA_KERNEL_NODE_PARAMS_v2 k = one_thread(step, params);
    cuDevicePrimaryCtxRetain(&c, 0);
    cuCtxSetCurrent(c);
    bool good = cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && cuGraphCreate(&g, 0) == CUDA_SUCCESS;
    for (int i = 0; i < 10 && good; i++, last = n)
        good = cuGraphAddKernelNode_v2(&n, g, &last, last != NULL, &k) == CUDA_SUCCESS;
    good = good && cuGraphInstantiateWithFlags(&e, g, 0) == CUDA_SUCCESS;
    for (int i = 0; i < 40 && good; i++)
        good = cuGraphLaunch(e, s) == CUDA_SUCCESS && cuGraphExecKernelNodeSetParams_v2(e, n, &k) == CUDA_SUCCESS;
    good = good && cuStreamSynchronize(s) == CUDA_SUCCESS && cuGraphExecDestroy(e) == CUDA_SUCCESS &&
           cuGraphDestroy(g) == CUDA_SUCCESS && cuStreamDestroy_v2(s) == CUDA_SUCCESS;
    cuDevicePrimaryCtxRelease_v2(0);
    return (void *)(uintptr_t)good;
}

static void test_threads_launch_at_the_same_time(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int at[THREADS];
    ok(cuMemsetD8_v2(buffer, 0, 64));
    ok(cuCtxSynchronize());
    for (int i = 0; i < THREADS; i++) {
        at[i] = i;
        pthread_create(&threads[i], NULL, launch_often, &at[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        void *good;
        pthread_join(threads[i], &good);
        assert_non_null(good);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(word(buffer + 4 * (CUdeviceptr)i), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_handles),
        cmocka_unit_test(test_lists_of_nodes),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_destroyed_node_takes_its_edges),
        cmocka_unit_test(test_clones),
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_instantiate_forms),
        cmocka_unit_test(test_edges_order_the_nodes),
        cmocka_unit_test(test_launch_is_ordered_in_its_stream),
        cmocka_unit_test(test_changes_leave_launches_alone),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_update_pairs_by_edges),
        cmocka_unit_test(test_update_reaches_child_graphs),
        cmocka_unit_test(test_user_objects_live_with_graphs),
        cmocka_unit_test(test_user_objects_are_counted),
        cmocka_unit_test(test_fault_in_a_graph_ends_the_context),
        cmocka_unit_test(test_unloaded_module_is_refused),
        cmocka_unit_test(test_threads_launch_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, graph_setup, reset_context);
}
