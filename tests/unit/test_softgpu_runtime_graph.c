/* Graphs and captures through the runtime: kernels by the addresses of their stubs, its own forms of parameters, and
 * back. */
#include "tests/unit/softgpu_runtime_module.h"

static cudaStream_t stream;
static unsigned *words; /* 64, of the device */

static int setup(void **state)
{
    return register_module(state) || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
           cudaMalloc((void **)&words, 256) != cudaSuccess;
}

static int teardown(void **state)
{
    return cudaFree(words) != cudaSuccess || cudaStreamDestroy(stream) != cudaSuccess || unregister_module(state);
}

static unsigned word(const void *address)
{
    unsigned value = 0;
    ok(cudaMemcpy(&value, address, 4, cudaMemcpyDeviceToHost));
    return value;
}

static cudaGraph_t new_graph(void)
{
    cudaGraph_t g;
    ok(cudaGraphCreate(&g, 0));
    return g;
}

static struct cudaKernelNodeParams one_thread(void *function, void **params)
{
    return (struct cudaKernelNodeParams){
        .func = function, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = params};
}

/* words[at] = value, after `after`. */
static cudaGraphNode_t add_store(cudaGraph_t g, cudaGraphNode_t after, int at, unsigned value)
{
    cudaGraphNode_t n;
    unsigned *p = words + at;
    void *params[] = {&p, &value};
    const struct cudaKernelNodeParams k = one_thread(&store_stub, params);
    ok(cudaGraphAddKernelNode(&n, g, &after, after != NULL, &k));
    return n;
}

static void run_graph(cudaGraph_t g)
{
    cudaGraphExec_t e;
    ok(cudaGraphInstantiate(&e, g, 0));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    ok(cudaGraphExecDestroy(e));
}

static void count_up(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static void test_kernels_by_their_stubs(void **state)
{
    cudaGraph_t g = new_graph();
    cudaGraphExec_t e;
    cudaGraphNode_t n = add_store(g, NULL, 0, 5), bad;
    struct cudaKernelNodeParams p;
    cudaKernelNodeAttrValue v = {.priority = -1}, out;
    unsigned value = 6;
    ok(cudaGraphKernelNodeGetParams(n, &p));
    assert_ptr_equal(p.func, &store_stub);
    assert_int_equal(p.blockDim.x, 1);
    unsigned *to = words;
    void *params[] = {&to, &value};
    p.kernelParams = params;
    ok(cudaGraphInstantiateWithFlags(&e, g, 0));
    ok(cudaGraphExecKernelNodeSetParams(e, n, &p));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(word(words), 6);
    value = 7;
    ok(cudaGraphKernelNodeSetParams(n, &p));
    run_graph(g);
    assert_int_equal(word(words), 7);
    p.func = &unknown_stub;
    sets(cudaErrorInvalidDeviceFunction, cudaGraphAddKernelNode(&bad, g, NULL, 0, &p));
    sets(cudaErrorInvalidValue, cudaGraphAddKernelNode(&bad, g, NULL, 0, NULL));
    ok(cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributePriority, &v));
    bad = add_store(g, NULL, 0, 5);
    ok(cudaGraphKernelNodeCopyAttributes(bad, n));
    ok(cudaGraphKernelNodeGetAttribute(bad, cudaLaunchAttributePriority, &out));
    assert_int_equal(out.priority, -1);
    ok(cudaGraphExecDestroy(e));
    ok(cudaGraphDestroy(g));
}

static void test_copies(void **state)
{
    unsigned in[2] = {11, 12}, out[2] = {0}, later[2] = {0};
    cudaGraph_t g = new_graph();
    cudaGraphExec_t e;
    cudaGraphNode_t up, down, pitched, bad;
    struct cudaMemcpy3DParms p, q;
    ok(cudaGraphAddMemcpyNode1D(&up, g, NULL, 0, words, in, 8, cudaMemcpyHostToDevice));
    ok(cudaGraphAddMemcpyNode1D(&down, g, &up, 1, out, words, 8, cudaMemcpyDeviceToHost));
    run_graph(g);
    assert_int_equal(out[1], 12);
    ok(cudaGraphMemcpyNodeGetParams(down, &p));
    assert_ptr_equal(p.dstPtr.ptr, out);
    assert_ptr_equal(p.srcPtr.ptr, words);
    assert_int_equal(p.extent.width, 8);
    assert_int_equal(p.kind, cudaMemcpyDeviceToHost);
    ok(cudaGraphAddMemcpyNode(&pitched, g, &down, 1, &p));
    ok(cudaGraphMemcpyNodeSetParams(pitched, &p));
    ok(cudaGraphInstantiate(&e, g, 0));
    q = p;
    q.dstPtr.ptr = later;
    ok(cudaGraphExecMemcpyNodeSetParams(e, down, &q));
    ok(cudaGraphExecMemcpyNodeSetParams1D(e, pitched, later, words + 1, 4, cudaMemcpyDeviceToHost));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(later[0], 12);
    assert_int_equal(later[1], 12);
    ok(cudaGraphMemcpyNodeSetParams1D(pitched, later, words, 4, cudaMemcpyDeviceToHost));
    run_graph(g);
    assert_int_equal(later[0], 11);
    sets(cudaErrorInvalidMemcpyDirection,
         cudaGraphAddMemcpyNode1D(&bad, g, NULL, 0, words, in, 8, (enum cudaMemcpyKind)9));
    sets(cudaErrorInvalidValue, cudaGraphMemcpyNodeGetParams(down, NULL));
    ok(cudaGraphExecDestroy(e));
    ok(cudaGraphDestroy(g));
}

static void test_copies_of_symbols(void **state)
{
    unsigned in[2] = {21, 22}, out = 0;
    cudaGraph_t g = new_graph();
    cudaGraphExec_t e;
    cudaGraphNode_t to, from, bad;
    ok(cudaGraphAddMemcpyNodeToSymbol(&to, g, NULL, 0, &table_shadow, &in[0], 4, 8, cudaMemcpyHostToDevice));
    ok(cudaGraphAddMemcpyNodeFromSymbol(&from, g, &to, 1, &out, &table_shadow, 4, 8, cudaMemcpyDeviceToHost));
    run_graph(g);
    assert_int_equal(out, 21);
    ok(cudaGraphMemcpyNodeSetParamsToSymbol(to, &table_shadow, &in[1], 4, 12, cudaMemcpyHostToDevice));
    ok(cudaGraphMemcpyNodeSetParamsFromSymbol(from, &out, &table_shadow, 4, 12, cudaMemcpyDeviceToHost));
    run_graph(g);
    assert_int_equal(out, 22);
    ok(cudaGraphInstantiate(&e, g, 0));
    ok(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, to, &table_shadow, &in[0], 4, 16, cudaMemcpyHostToDevice));
    ok(cudaGraphExecMemcpyNodeSetParamsFromSymbol(e, from, &out, &table_shadow, 4, 16, cudaMemcpyDeviceToHost));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(out, 21);
    sets(cudaErrorInvalidValue,
         cudaGraphAddMemcpyNodeToSymbol(&bad, g, NULL, 0, &table_shadow, in, 8, 60, cudaMemcpyHostToDevice));
    sets(cudaErrorInvalidSymbol,
         cudaGraphAddMemcpyNodeFromSymbol(&bad, g, NULL, 0, &out, &unknown_stub, 4, 0, cudaMemcpyDeviceToHost));
    ok(cudaGraphExecDestroy(e));
    ok(cudaGraphDestroy(g));
}

static void test_sets_and_host_functions(void **state)
{
    atomic_int a = 0, b = 0;
    cudaGraph_t g = new_graph();
    cudaGraphExec_t e;
    cudaGraphNode_t set, host, empty;
    struct cudaMemsetParams p = {.dst = words, .value = 9, .elementSize = 4, .width = 2, .height = 1}, q;
    struct cudaHostNodeParams call = {count_up, &a}, got;
    ok(cudaGraphAddMemsetNode(&set, g, NULL, 0, &p));
    ok(cudaGraphAddEmptyNode(&empty, g, &set, 1));
    ok(cudaGraphAddHostNode(&host, g, &empty, 1, &call));
    ok(cudaGraphMemsetNodeGetParams(set, &q));
    assert_int_equal(q.value, 9);
    ok(cudaGraphHostNodeGetParams(host, &got));
    assert_ptr_equal(got.userData, &a);
    q.value = 10;
    ok(cudaGraphMemsetNodeSetParams(set, &q));
    ok(cudaGraphInstantiate(&e, g, 0));
    q.value = 11;
    got.userData = &b;
    ok(cudaGraphExecMemsetNodeSetParams(e, set, &q));
    ok(cudaGraphExecHostNodeSetParams(e, host, &got));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(word(words + 1), 11);
    assert_int_equal(atomic_load(&b), 1);
    ok(cudaGraphHostNodeSetParams(host, &got));
    run_graph(g);
    assert_int_equal(word(words), 10);
    assert_int_equal(atomic_load(&b), 2);
    assert_int_equal(atomic_load(&a), 0);
    ok(cudaGraphExecDestroy(e));
    ok(cudaGraphDestroy(g));
}

static void test_children_and_events(void **state)
{
    cudaGraph_t g = new_graph(), child = new_graph(), other = new_graph(), inner;
    cudaGraphExec_t e;
    cudaGraphNode_t n, record, wait;
    cudaEvent_t first, second, out;
    ok(cudaEventCreate(&first));
    ok(cudaEventCreate(&second));
    add_store(child, NULL, 0, 31);
    add_store(other, NULL, 0, 32);
    ok(cudaGraphAddChildGraphNode(&n, g, NULL, 0, child));
    ok(cudaGraphChildGraphNodeGetGraph(n, &inner));
    assert_ptr_not_equal(inner, child);
    ok(cudaGraphAddEventRecordNode(&record, g, &n, 1, first));
    ok(cudaGraphEventRecordNodeGetEvent(record, &out));
    assert_ptr_equal(out, first);
    ok(cudaGraphAddEventWaitNode(&wait, g, &record, 1, first));
    ok(cudaGraphEventWaitNodeGetEvent(wait, &out));
    assert_ptr_equal(out, first);
    ok(cudaGraphInstantiate(&e, g, 0));
    ok(cudaGraphExecChildGraphNodeSetParams(e, n, other));
    ok(cudaGraphExecEventRecordNodeSetEvent(e, record, second));
    ok(cudaGraphExecEventWaitNodeSetEvent(e, wait, second));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaEventSynchronize(second));
    assert_int_equal(word(words), 32);
    ok(cudaGraphEventRecordNodeSetEvent(record, second));
    ok(cudaGraphEventWaitNodeSetEvent(wait, second));
    run_graph(g);
    assert_int_equal(word(words), 31);
    ok(cudaGraphExecDestroy(e));
    ok(cudaGraphDestroy(g));
    ok(cudaGraphDestroy(child));
    ok(cudaGraphDestroy(other));
    ok(cudaEventDestroy(first));
    ok(cudaEventDestroy(second));
}

static void test_memory(void **state)
{
    cudaGraph_t g = new_graph();
    cudaGraphNode_t alloc, set, release;
    struct cudaMemAllocNodeParams p = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned, .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = 64};
    struct cudaMemAllocNodeParams got;
    unsigned long long bytes = 1, none = 0;
    void *freed;
    ok(cudaGraphAddMemAllocNode(&alloc, g, NULL, 0, &p));
    ok(cudaGraphMemAllocNodeGetParams(alloc, &got));
    assert_ptr_equal(got.dptr, p.dptr);
    struct cudaMemsetParams fill = {.dst = p.dptr, .value = 3, .elementSize = 1, .width = 64, .height = 1};
    ok(cudaGraphAddMemsetNode(&set, g, &alloc, 1, &fill));
    ok(cudaGraphAddMemFreeNode(&release, g, &set, 1, p.dptr));
    ok(cudaGraphMemFreeNodeGetParams(release, &freed));
    assert_ptr_equal(freed, p.dptr);
    run_graph(g);
    ok(cudaGraphDestroy(g));
    ok(cudaDeviceSynchronize());
    ok(cudaDeviceGraphMemTrim(0));
    ok(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes));
    assert_int_equal(bytes, 0);
    ok(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &none));
}

static void test_nodes_of_any_kind(void **state)
{
    cudaGraph_t g = new_graph();
    cudaGraphExec_t e;
    cudaGraphNode_t a, b, c, d;
    cudaGraphConditionalHandle handle;
    unsigned value = 41, out = 0;
    unsigned *to = words;
    void *params[] = {&to, &value};
    struct cudaGraphNodeParams kernel = {.type = cudaGraphNodeTypeKernel};
    kernel.kernel.func = &store_stub;
    kernel.kernel.gridDim = kernel.kernel.blockDim = one;
    kernel.kernel.kernelParams = params;
    ok(cudaGraphAddNode(&a, g, NULL, NULL, 0, &kernel));
    struct cudaGraphNodeParams copy = {.type = cudaGraphNodeTypeMemcpy};
    copy.memcpy.copyParams = (struct cudaMemcpy3DParms){
        .srcPtr = {words, 4, 4, 1}, .dstPtr = {&out, 4, 4, 1}, .extent = {4, 1, 1}, .kind = cudaMemcpyDeviceToHost};
    ok(cudaGraphAddNode(&b, g, &a, NULL, 1, &copy));
    struct cudaGraphNodeParams set = {.type = cudaGraphNodeTypeMemset};
    set.memset.dst = words;
    set.memset.value = 50;
    set.memset.elementSize = 4;
    set.memset.width = set.memset.height = 1;
    ok(cudaGraphAddNode(&c, g, &b, NULL, 1, &set));
    ok(cudaGraphConditionalHandleCreate(&handle, g, 1, cudaGraphCondAssignDefault));
    struct cudaGraphNodeParams branch = {.type = cudaGraphNodeTypeConditional};
    branch.conditional.handle = handle;
    branch.conditional.type = cudaGraphCondTypeIf;
    branch.conditional.size = 1;
    ok(cudaGraphAddNode(&d, g, &c, NULL, 1, &branch));
    add_store(branch.conditional.phGraph_out[0], NULL, 1, 60);
    ok(cudaGraphInstantiate(&e, g, 0));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(out, 41);
    assert_int_equal(word(words), 50);
    assert_int_equal(word(words + 1), 60);
    value = 42;
    ok(cudaGraphExecNodeSetParams(e, a, &kernel));
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(out, 42);
    ok(cudaGraphNodeSetParams(a, &kernel));
    sets(cudaErrorInvalidValue, cudaGraphAddNode(&a, g, NULL, NULL, 0, NULL));
    ok(cudaGraphExecDestroy(e));
    ok(cudaGraphDestroy(g));
}

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

static void test_structure(void **state)
{
    char path[] = "/tmp/softgpu_dot_XXXXXX";
    cudaGraph_t g = new_graph(), clone;
    cudaGraphNode_t a = add_store(g, NULL, 0, 1), b = add_store(g, a, 0, 2), nodes[4], others[4];
    cudaGraphEdgeData data[4];
    enum cudaGraphNodeType type;
    size_t count = 4;
    ok(cudaGraphGetNodes(g, nodes, &count));
    assert_int_equal(count, 2);
    count = 4;
    ok(cudaGraphGetRootNodes(g, nodes, &count));
    assert_int_equal(count, 1);
    count = 4;
    ok(cudaGraphGetEdges(g, nodes, others, data, &count));
    assert_ptr_equal(others[0], b);
    count = 4;
    ok(cudaGraphNodeGetDependencies(b, nodes, data, &count));
    assert_ptr_equal(nodes[0], a);
    count = 4;
    ok(cudaGraphNodeGetDependentNodes(a, nodes, data, &count));
    assert_ptr_equal(nodes[0], b);
    ok(cudaGraphRemoveDependencies(g, &a, &b, NULL, 1));
    ok(cudaGraphAddDependencies(g, &b, &a, NULL, 1));
    ok(cudaGraphNodeGetType(a, &type));
    assert_int_equal(type, cudaGraphNodeTypeKernel);
    ok(cudaGraphClone(&clone, g));
    ok(cudaGraphNodeFindInClone(&nodes[0], a, clone));
    ok(cudaGraphDestroyNode(nodes[0]));
    close(mkstemp(path));
    ok(cudaGraphDebugDotPrint(g, path, 0));
    unlink(path);
    run_graph(g);
    assert_int_equal(word(words), 1);
    run_graph(clone);
    assert_int_equal(word(words), 2);
    ok(cudaGraphDestroy(clone));
    ok(cudaGraphDestroy(g));
    sets(cudaErrorInvalidValue, cudaGraphDestroy(g));
}

static void test_executable_graphs(void **state)
{
    atomic_int gone = 0;
    cudaGraph_t g = new_graph(), h = new_graph();
    cudaGraphNode_t a = add_store(g, NULL, 0, 71);
    cudaGraphExec_t e;
    cudaGraphInstantiateParams p = {.flags = cudaGraphInstantiateFlagUpload, .uploadStream = stream};
    cudaGraphExecUpdateResultInfo info;
    cudaUserObject_t object;
    unsigned long long flags = 9;
    unsigned enabled;
    add_store(h, NULL, 0, 72);
    ok(cudaUserObjectCreate(&object, &gone, count_up, 1, cudaUserObjectNoDestructorSync));
    ok(cudaUserObjectRetain(object, 1));
    ok(cudaUserObjectRelease(object, 1));
    ok(cudaGraphRetainUserObject(g, object, 2, 0));
    ok(cudaGraphReleaseUserObject(g, object, 2));
    ok(cudaUserObjectRelease(object, 1));
    assert_int_equal(atomic_load(&gone), 1);
    ok(cudaGraphInstantiateWithParams(&e, g, &p));
    assert_int_equal(p.result_out, cudaGraphInstantiateSuccess);
    ok(cudaGraphExecGetFlags(e, &flags));
    assert_int_equal(flags, 0);
    ok(cudaGraphUpload(e, stream));
    ok(cudaGraphNodeSetEnabled(e, a, 0));
    ok(cudaGraphNodeGetEnabled(e, a, &enabled));
    assert_int_equal(enabled, 0);
    ok(cudaGraphNodeSetEnabled(e, a, 1));
    ok(cudaGraphExecUpdate(e, h, &info));
    assert_int_equal(info.result, cudaGraphExecUpdateSuccess);
    ok(cudaGraphLaunch(e, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(word(words), 72);
    add_store(h, NULL, 0, 73);
    sets(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(e, h, &info));
    ok(cudaGraphExecDestroy(e));
    sets(cudaErrorInvalidValue, cudaGraphLaunch(e, stream));
    ok(cudaGraphDestroy(g));
    ok(cudaGraphDestroy(h));
}

/* ---- captures --------------------------------------------------------------------------------------------------- */

static void test_capture(void **state)
{
    cudaGraph_t g, same;
    cudaGraphNode_t first;
    const cudaGraphNode_t *nodes;
    const cudaGraphEdgeData *data;
    size_t count;
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    unsigned value = 81, *to = words;
    void *params[] = {&to, &value};
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ok(cudaLaunchKernel(&store_stub, one, one, params, 0, stream));
    ok(cudaStreamGetCaptureInfo(stream, &status, &id, &same, &nodes, &data, &count));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    first = nodes[0];
    ok(cudaStreamUpdateCaptureDependencies(stream, &first, NULL, 1, cudaStreamSetCaptureDependencies));
    ok(cudaMemsetAsync(words + 1, 1, 4, stream));
    ok(cudaStreamEndCapture(stream, &g));
    assert_ptr_equal(g, same);
    ok(cudaStreamBeginCaptureToGraph(stream, g, &first, NULL, 1, cudaStreamCaptureModeRelaxed));
    ok(cudaMemcpyAsync(words + 2, words, 4, cudaMemcpyDeviceToDevice, stream));
    ok(cudaStreamEndCapture(stream, &g));
    run_graph(g);
    assert_int_equal(word(words + 1), 0x01010101);
    assert_int_equal(word(words + 2), 81);
    ok(cudaGraphDestroy(g));
    sets(cudaErrorIllegalState, cudaStreamEndCapture(stream, &g));
    sets(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    sets(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    sets(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &g));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_by_their_stubs), cmocka_unit_test(test_copies),
        cmocka_unit_test(test_copies_of_symbols),      cmocka_unit_test(test_sets_and_host_functions),
        cmocka_unit_test(test_children_and_events),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_nodes_of_any_kind),      cmocka_unit_test(test_structure),
        cmocka_unit_test(test_executable_graphs),      cmocka_unit_test(test_capture),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
