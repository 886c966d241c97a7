/* Memory nodes and conditional nodes: what belongs to a graph while it runs. */
#include "tests/unit/graph_kit.h"

static CUdeviceptr add_alloc(CUgraph g, size_t bytes, CUgraphNode *node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = bytes};
    ok(cuGraphAddMemAllocNode(node, g, NULL, 0, &p));
    assert_true(p.dptr != 0);
    return p.dptr;
}

static CUgraphNode add_fill(CUgraph g, CUgraphNode after, CUdeviceptr to, unsigned value)
{
    CUgraphNode n;
    CUcontext c;
    CUDA_MEMSET_NODE_PARAMS p = {.dst = to, .value = value, .elementSize = 4, .width = 1, .height = 1};
    ok(cuCtxGetCurrent(&c));
    ok(cuGraphAddMemsetNode(&n, g, &after, 1, &p, c));
    return n;
}

static cuuint64_t attribute(CUgraphMem_attribute which)
{
    cuuint64_t value = 0;
    ok(cuDeviceGetGraphMemAttribute(0, which, &value));
    return value;
}

/* ---- memory nodes ----------------------------------------------------------------------------------------------- */

static void test_memory_within_a_graph(void **state)
{
    CUgraph g, clone;
    CUgraphExec e, second;
    CUgraphNode alloc, fill, copy, release, x;
    CUDA_MEM_ALLOC_NODE_PARAMS p;
    CUdeviceptr q;
    unsigned out = 0;
    CUcontext c;
    ok(cuCtxGetCurrent(&c));
    ok(cuGraphCreate(&g, 0));
    CUdeviceptr a = add_alloc(g, 4096, &alloc);
    fill = add_fill(g, alloc, a + 8, 321);
    CUDA_MEMCPY3D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = a + 8,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = &out,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    ok(cuGraphAddMemcpyNode(&copy, g, &fill, 1, &down, c));
    ok(cuGraphAddMemFreeNode(&release, g, &copy, 1, a));
    ok(cuGraphMemAllocNodeGetParams(alloc, &p));
    assert_int_equal(p.dptr, a);
    assert_int_equal(p.bytesize, 4096);
    ok(cuGraphMemFreeNodeGetParams(release, &q));
    assert_int_equal(q, a);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&x, g, &copy, 1, a)); /* twice */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&x, g, &copy, 1, buffer));
    /* Such a graph keeps its shape, has no clones and one executable form. */
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(fill));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(g, &alloc, &fill, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphClone(&clone, g));
    CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {a}};
    fails(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(release, &np));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&second, g, 0));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuGraphExecNodeSetParams(e, release, &np));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(&out, a, 4)); /* nothing there for others */
    for (int i = 0; i < 3; i++) {
        out = 0;
        ok(cuGraphLaunch(e, NULL));
        ok(cuCtxSynchronize());
        assert_int_equal(out, 321);
    }
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a)); /* the graph did */
    ok(cuGraphExecDestroy(e));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_memory_that_outlives_the_launch(void **state)
{
    CUgraph g;
    CUgraphExec e, automatic;
    CUgraphNode alloc;
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuGraphCreate(&g, 0));
    CUdeviceptr a = add_alloc(g, 64, &alloc);
    add_fill(g, alloc, a, 55);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphLaunch(e, s));
    ok(cuStreamSynchronize(s));
    assert_int_equal(word(a), 55);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(e, s)); /* not freed yet */
    ok(cuMemFreeAsync(a, s));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, s));
    ok(cuGraphLaunch(e, s));
    ok(cuStreamSynchronize(s));
    ok(cuMemFree_v2(a));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphInstantiateWithFlags(&automatic, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int i = 0; i < 3; i++)
        ok(cuGraphLaunch(automatic, s));
    ok(cuStreamSynchronize(s));
    ok(cuGraphExecDestroy(automatic));
    ok(cuGraphDestroy(g));
    assert_int_equal(word(a), 55); /* it lives on its own now */
    ok(cuMemFree_v2(a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
    ok(cuStreamDestroy_v2(s));
}

static void test_another_graph_frees(void **state)
{
    CUgraph g, h;
    CUgraphExec e, f;
    CUgraphNode alloc, release;
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphCreate(&h, 0));
    CUdeviceptr a = add_alloc(g, 64, &alloc);
    ok(cuGraphAddMemFreeNode(&release, h, NULL, 0, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&release, g, &alloc, 1, a)); /* the other one does */
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuGraphInstantiateWithFlags(&f, h, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(f, NULL)); /* there is nothing to free */
    ok(cuGraphLaunch(e, NULL));
    ok(cuGraphLaunch(f, NULL));
    ok(cuGraphLaunch(e, NULL));
    ok(cuGraphLaunch(f, NULL));
    ok(cuCtxSynchronize());
    ok(cuGraphExecDestroy(e));
    ok(cuGraphExecDestroy(f));
    ok(cuGraphDestroy(h));
    ok(cuGraphAddMemFreeNode(&release, g, &alloc, 1, a)); /* nobody else does any more */
    ok(cuGraphDestroy(g));
}

static void test_failed_launch_leaves_nothing(void **state)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode alloc, copy;
    CUcontext c;
    CUdeviceptr other_memory;
    ok(cuCtxGetCurrent(&c));
    ok(cuMemAlloc_v2(&other_memory, 64));
    ok(cuGraphCreate(&g, 0));
    CUdeviceptr a = add_alloc(g, 64, &alloc);
    CUDA_MEMCPY3D p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = other_memory,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = buffer,
                       .WidthInBytes = 4,
                       .Height = 1,
                       .Depth = 1};
    ok(cuGraphAddMemcpyNode(&copy, g, &alloc, 1, &p, c));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    ok(cuMemFree_v2(other_memory));
    ok(cuDeviceGraphMemTrim(0));
    cuuint64_t used = attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    for (int i = 0; i < 2; i++) /* the second would find the first one's allocation */
        fails(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(e, NULL));
    ok(cuDeviceGraphMemTrim(0)); /* which takes nothing that is live */
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), used);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_memory_is_counted_and_given_back(void **state)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode alloc, release;
    cuuint64_t zero = 0, one = 1;
    size_t free_before, free_now, total;
    ok(cuCtxSynchronize());
    ok(cuDeviceGraphMemTrim(0));
    ok(cuMemGetInfo_v2(&free_before, &total));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    ok(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
    ok(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetGraphMemAttribute(7, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGraphMemTrim(7));
    ok(cuGraphCreate(&g, 0));
    CUdeviceptr a = add_alloc(g, 8 << 20, &alloc);
    ok(cuGraphAddMemFreeNode(&release, g, &alloc, 1, a));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0); /* an address, no memory */
    ok(cuGraphUpload(e, NULL));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 8 << 20);
    ok(cuMemGetInfo_v2(&free_now, &total));
    assert_true(free_before - free_now >= 8 << 20);
    ok(cuGraphLaunch(e, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 8 << 20); /* freed, and mapped by the graph */
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 8 << 20);
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 8 << 20);
    ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    ok(cuMemGetInfo_v2(&free_now, &total));
    assert_int_equal(free_now, free_before);
    ok(cuGraphLaunch(e, NULL)); /* it gets memory again, at the same address */
    ok(cuCtxSynchronize());
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
    ok(cuCtxSynchronize());
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
}

/* What CUDA's sample on the footprint of graphs prints: only a trim makes it smaller, and only by what is not live. */
static void test_footprint_of_unfreed_allocations(void **state)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode alloc;
    ok(cuDeviceGraphMemTrim(0));
    cuuint64_t before = attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    ok(cuGraphCreate(&g, 0));
    CUdeviceptr a = add_alloc(g, 8 << 20, &alloc);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before);
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before + (8 << 20));
    ok(cuCtxSynchronize());
    ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before + (8 << 20));
    ok(cuMemFree_v2(a));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before + (8 << 20));
    ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_child_graphs_with_memory_are_moved(void **state)
{
    CUgraph g, child;
    CUgraphExec e;
    CUgraphNode alloc, release, n, x;
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphCreate(&child, 0));
    CUdeviceptr a = add_alloc(child, 64, &alloc);
    n = add_fill(child, alloc, a, 9);
    ok(cuGraphAddMemFreeNode(&release, child, &n, 1, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&n, g, NULL, 0, child));
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
    ok(cuGraphAddNode(&n, g, NULL, 0, &p));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(child));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e, child, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&x, g, NULL, 0, &p)); /* it has a parent */
    CUDA_MEM_ALLOC_NODE_PARAMS more = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 64};
    fails(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&x, child, NULL, 0, &more));
    more.bytesize = 0;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&x, g, NULL, 0, &more));
    run_graph(g);
    ok(cuGraphDestroy(g));
}

/* ---- conditional nodes ------------------------------------------------------------------------------------------ */

static CUgraph *add_conditional(CUgraph g, CUgraphNode after, CUgraphConditionalHandle handle,
                                CUgraphConditionalNodeType type, unsigned size, CUgraphNode *node)
{
    CUcontext c;
    ok(cuCtxGetCurrent(&c));
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                           .conditional = {.handle = handle, .type = type, .size = size, .ctx = c}};
    ok(cuGraphAddNode_v2(node, g, &after, NULL, after != NULL, &p));
    assert_non_null(p.conditional.phGraph_out);
    return p.conditional.phGraph_out;
}

static CUgraphNode add_with_handle(CUgraph g, CUfunction f, CUgraphConditionalHandle handle)
{
    CUgraphNode n;
    CUdeviceptr p = buffer;
    void *params[] = {&p, &handle};
    CUDA_KERNEL_NODE_PARAMS_v2 k = one_thread(f, params);
    ok(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    return n;
}

static void test_while_runs_until_the_kernel_says_so(void **state)
{
    CUgraph g, clone;
    CUgraphExec e, second;
    CUgraphNode n;
    CUgraphConditionalHandle handle;
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphConditionalHandleCreate(&handle, g, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&e, g, 0)); /* a handle without a node */
    CUgraph *body = add_conditional(g, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &n);
    add_with_handle(body[0], countdown, handle);
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphClone(&clone, g));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(body[0]));
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&second, g, 0));
    for (unsigned turns = 1; turns <= 20; turns += 19) {
        set_word(buffer, turns);
        set_word(buffer + 4, 0);
        ok(cuGraphLaunch(e, NULL));
        assert_int_equal(word(buffer), 0);
        assert_int_equal(word(buffer + 4), turns);
    }
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_if_else_and_switch(void **state)
{
    CUgraph g;
    CUgraphExec e;
    CUgraphNode decide, n, m;
    CUgraphConditionalHandle branch, choice;
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphConditionalHandleCreate(&branch, g, NULL, 0, 0));
    ok(cuGraphConditionalHandleCreate(&choice, g, NULL, 0, 0));
    decide = add_with_handle(g, put, branch);
    CUgraph *bodies = add_conditional(g, decide, branch, CU_GRAPH_COND_TYPE_IF, 2, &n);
    add_step(bodies[0], NULL, 2, 0, 100);
    add_step(bodies[1], NULL, 2, 0, 200);
    decide = add_with_handle(g, put, choice);
    bodies = add_conditional(g, decide, choice, CU_GRAPH_COND_TYPE_SWITCH, 3, &m);
    for (unsigned i = 0; i < 3; i++)
        add_step(bodies[i], NULL, 3, 0, 10 + i);
    ok(cuGraphInstantiateWithFlags(&e, g, 0));
    for (unsigned value = 0; value < 5; value++) {
        set_word(buffer, value);
        set_word(buffer + 12, 77);
        ok(cuGraphLaunch(e, NULL));
        assert_int_equal(word(buffer + 8), value ? 100 : 200);
        assert_int_equal(word(buffer + 12), value < 3 ? 10 + value : 77);
    }
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g));
}

static void test_nested_and_captured_bodies(void **state)
{
    CUgraph g, out;
    CUgraphNode n, inner;
    CUgraphConditionalHandle outer_handle, inner_handle;
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphConditionalHandleCreate(&outer_handle, g, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    ok(cuGraphConditionalHandleCreate(&inner_handle, g, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraph *body = add_conditional(g, NULL, outer_handle, CU_GRAPH_COND_TYPE_WHILE, 1, &n);
    CUgraphNode count = add_with_handle(body[0], countdown, outer_handle);
    CUgraph *within = add_conditional(body[0], count, inner_handle, CU_GRAPH_COND_TYPE_IF, 1, &inner);
    ok(cuStreamBeginCaptureToGraph(s, within[0], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(launch_step(s, 2, 1, 10));
    ok(cuStreamEndCapture(s, &out));
    assert_ptr_equal(out, within[0]);
    set_word(buffer, 4);
    set_word(buffer + 8, 0);
    run_graph(g);
    assert_int_equal(word(buffer + 8), 40);
    ok(cuGraphDestroy(g));
    ok(cuStreamDestroy_v2(s));
}

static void test_conditional_errors(void **state)
{
    CUgraph g, parent;
    CUgraphNode n, x;
    CUgraphConditionalHandle handle;
    CUcontext c;
    ok(cuCtxGetCurrent(&c));
    ok(cuGraphCreate(&g, 0));
    ok(cuGraphCreate(&parent, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(NULL, g, c, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, g, c, 0, 2));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, NULL, c, 0, 0));
    ok(cuGraphConditionalHandleCreate(&handle, g, c, 0, 0));
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                           .conditional = {.handle = handle, .type = CU_GRAPH_COND_TYPE_WHILE, .size = 2, .ctx = c}};
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n, g, NULL, 0, &p));
    p.conditional.size = 1;
    p.conditional.handle = handle + 1000;
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n, g, NULL, 0, &p));
    p.conditional.handle = handle;
    ok(cuGraphAddNode(&n, g, NULL, 0, &p));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&x, g, NULL, 0, &p)); /* one node for each handle */
    /* What a body may not hold, and where the graph may not go. */
    CUDA_HOST_NODE_PARAMS call = {count_up, NULL};
    fails(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddHostNode(&x, p.conditional.phGraph_out[0], NULL, 0, &call));
    fails(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&x, parent, NULL, 0, g));
    ok(cuGraphDestroy(g));
    ok(cuGraphDestroy(parent));
}

static void test_update_reaches_bodies(void **state)
{
    CUgraph g[2];
    CUgraphExec e;
    CUgraphExecUpdateResultInfo info;
    for (unsigned i = 0; i < 2; i++) {
        CUgraphNode n;
        CUgraphConditionalHandle handle;
        ok(cuGraphCreate(&g[i], 0));
        ok(cuGraphConditionalHandleCreate(&handle, g[i], NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
        CUgraph *body = add_conditional(g[i], NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &n);
        add_step(body[0], NULL, 0, 0, 11 + i);
    }
    ok(cuGraphInstantiateWithFlags(&e, g[0], 0));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 11);
    ok(cuGraphExecUpdate_v2(e, g[1], &info));
    ok(cuGraphLaunch(e, NULL));
    assert_int_equal(word(buffer), 12);
    ok(cuGraphExecDestroy(e));
    ok(cuGraphDestroy(g[0]));
    ok(cuGraphDestroy(g[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_within_a_graph),
        cmocka_unit_test(test_memory_that_outlives_the_launch),
        cmocka_unit_test(test_another_graph_frees),
        cmocka_unit_test(test_failed_launch_leaves_nothing),
        cmocka_unit_test(test_memory_is_counted_and_given_back),
        cmocka_unit_test(test_footprint_of_unfreed_allocations),
        cmocka_unit_test(test_child_graphs_with_memory_are_moved),
        cmocka_unit_test(test_while_runs_until_the_kernel_says_so),
        cmocka_unit_test(test_if_else_and_switch),
        cmocka_unit_test(test_nested_and_captured_bodies),
        cmocka_unit_test(test_conditional_errors),
        cmocka_unit_test(test_update_reaches_bodies),
    };
    return cmocka_run_group_tests(tests, graph_setup, reset_context);
}
