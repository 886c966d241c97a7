/* Functions on streams in their forms for the thread's own stream, attributes of streams, pools and events in their
 * rarer forms, older names of registering and linking. */
#include <pthread.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

enum { MIB = 1 << 20 };

static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry put(.param .u64 p, .param .u32 v) {\n"
                          "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
                          "  st.global.u32 [%rd1], %r1; ret;\n}\n";

static CUstream blocking;

static int setup(void **state)
{
    return cuStreamCreate(&blocking, CU_STREAM_DEFAULT) != CUDA_SUCCESS;
}

/* ---- each of these, with a null stream, goes into the thread's own ----------------------------------------------- */

static CUdeviceptr word;
static CUevent event;
static CUfunction put;
static atomic_bool ran;

static void note(CUstream s, CUresult status, void *data)
{
    if (!s || s == CU_STREAM_PER_THREAD)
        atomic_store((atomic_bool *)data, status == CUDA_SUCCESS);
}

static CUresult by_launch(void)
{
    uint32_t value = 1;
    CUlaunchConfig c = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUresult result = cuLaunchKernelEx_ptsz(&c, put, (void *[]){&word, &value}, NULL);
    return result == CUDA_SUCCESS ? cuLaunchHostFunc_ptsz(NULL, set_flag, &ran) : result;
}

static CUresult by_cooperative_launch(void)
{
    uint32_t value = 1;
    CUresult result = cuLaunchCooperativeKernel_ptsz(put, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&word, &value});
    return result == CUDA_SUCCESS ? cuLaunchHostFunc_ptsz(NULL, set_flag, &ran) : result;
}

static CUresult by_callback(void)
{
    return cuStreamAddCallback_ptsz(NULL, note, &ran, 0);
}

static CUresult by_event(void)
{
    CUresult result = cuEventRecord_ptsz(event, NULL);
    return result == CUDA_SUCCESS ? cuLaunchHostFunc_ptsz(NULL, set_flag, &ran) : result;
}

static CUresult by_event_with_flags(void)
{
    CUresult result = cuEventRecordWithFlags_ptsz(event, NULL, CU_EVENT_RECORD_DEFAULT);
    return result == CUDA_SUCCESS ? cuLaunchHostFunc_ptsz(NULL, set_flag, &ran) : result;
}

struct caller {
    CUresult (*run)(void);
    CUcontext context;
    struct gate *gate;
    CUresult result, busy, idle;
    atomic_bool submitted;
};

static void *call(void *data)
{
    struct caller *c = data;
    c->result = cuCtxSetCurrent(c->context);
    if (c->result == CUDA_SUCCESS && c->gate)
        c->result = cuLaunchHostFunc_ptsz(NULL, wait_at, c->gate);
    if (c->result == CUDA_SUCCESS)
        c->result = c->run();
    c->busy = cuStreamQuery_ptsz(NULL);
    atomic_store(&c->submitted, true);
    cuStreamSynchronize_ptsz(NULL);
    c->idle = cuStreamQuery_ptsz(NULL);
    return NULL;
}

static void test_work_in_the_threads_own_stream(void **state)
{
    static CUresult (*const ways[])(void) = {by_launch, by_cooperative_launch, by_callback, by_event,
                                             by_event_with_flags};
    CUmodule m;
    ok(cuModuleLoadData(&m, PTX));
    ok(cuModuleGetFunction(&put, m, "put"));
    ok(cuMemAlloc_v2(&word, 4));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int gated = 0; gated < 2; gated++) {
            struct gate elsewhere = {0}, g = {0};
            struct caller c = {.run = ways[i], .gate = gated ? &g : NULL};
            pthread_t thread;
            uint32_t out = 42;
            atomic_store(&ran, false);
            ok(cuMemsetD32_v2(word, 0, 1));
            ok(cuCtxGetCurrent(&c.context));
            ok(cuCtxSynchronize());
            ok(cuLaunchHostFunc(blocking, wait_at, &elsewhere)); /* would hold up the legacy stream */
            pthread_create(&thread, NULL, call, &c);
            assert_true(soon(&c.submitted));
            if (gated) {
                assert_true(not_yet(&ran));
                assert_int_equal(c.busy, CUDA_ERROR_NOT_READY);
                if (ways[i] == by_event || ways[i] == by_event_with_flags)
                    fails(CUDA_ERROR_NOT_READY, cuEventQuery(event));
                atomic_store(&g.open, true);
            }
            assert_true(soon(&ran));
            pthread_join(thread, NULL);
            ok(c.result);
            ok(c.idle);
            if (ways[i] == by_event || ways[i] == by_event_with_flags)
                ok(cuEventQuery(event));
            atomic_store(&elsewhere.open, true);
            ok(cuCtxSynchronize());
            ok(cuMemcpyDtoH_v2(&out, word, 4));
            assert_int_equal(out, ways[i] == by_launch || ways[i] == by_cooperative_launch);
        }
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx_ptsz(NULL, put, NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback_ptsz(NULL, note, &ran, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernel_ptsz(put, 0, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ok(cuEventDestroy_v2(event));
}

static void test_wait_for_event_in_the_threads_own_stream(void **state)
{
    struct gate g = {0};
    CUevent e;
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    ok(cuLaunchHostFunc(blocking, wait_at, &g));
    ok(cuEventRecordWithFlags(e, blocking, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(e, blocking, CU_EVENT_RECORD_EXTERNAL)); /* for captures */
    fails(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags_ptsz(e, NULL, 4));
    fails(CUDA_ERROR_INVALID_HANDLE, cuEventRecord_ptsz((CUevent)&e, NULL));
    ok(cuStreamWaitEvent_ptsz(NULL, e, 0));
    atomic_store(&ran, false);
    ok(cuLaunchHostFunc_ptsz(NULL, set_flag, &ran));
    assert_true(not_yet(&ran));
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery_ptsz(NULL));
    atomic_store(&g.open, true);
    assert_true(soon(&ran));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent_ptsz(NULL, e, 8));
    fails(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent_ptsz(NULL, (CUevent)&e, 0));
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    ok(cuEventDestroy_v2(e));
}

/* ---- properties ------------------------------------------------------------------------------------------------- */

static void test_properties_of_the_threads_own_stream(void **state)
{
    CUcontext c = NULL, mine;
    CUgreenCtx green = (CUgreenCtx)&c;
    CUdevice d = 42;
    unsigned flags = 42;
    int priority = 42;
    ok(cuCtxGetCurrent(&mine));
    ok(cuStreamGetCtx_ptsz(NULL, &c));
    assert_ptr_equal(c, mine);
    c = NULL;
    ok(cuStreamGetCtx_v2_ptsz(NULL, &c, &green));
    assert_ptr_equal(c, mine);
    assert_null(green);
    green = (CUgreenCtx)&c;
    ok(cuStreamGetCtx_v2(blocking, &c, &green));
    assert_ptr_equal(c, mine);
    assert_null(green);
    ok(cuStreamGetDevice_ptsz(NULL, &d));
    assert_int_equal(d, 0);
    ok(cuStreamGetFlags_ptsz(NULL, &flags));
    assert_int_equal(flags, CU_STREAM_DEFAULT);
    ok(cuStreamGetPriority_ptsz(NULL, &priority));
    assert_int_equal(priority, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetCtx_ptsz(NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetCtx_v2_ptsz(NULL, NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetDevice_ptsz(NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetFlags_ptsz(NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamGetPriority_ptsz(NULL, NULL));
    fails(CUDA_ERROR_INVALID_HANDLE, cuStreamGetCtx_v2((CUstream)0x1234, &c, &green));
    fails(CUDA_ERROR_INVALID_HANDLE, cuStreamGetFlags_ptsz((CUstream)0x1234, &flags));
}

static void test_attributes_of_streams(void **state)
{
    static const struct {
        CUresult (*set)(CUstream, CUstreamAttrID, const CUstreamAttrValue *);
        CUresult (*get)(CUstream, CUstreamAttrID, CUstreamAttrValue *);
        CUresult (*copy)(CUstream, CUstream);
        CUstream null;
    } forms[] = {
        {cuStreamSetAttribute, cuStreamGetAttribute, cuStreamCopyAttributes, CU_STREAM_LEGACY},
        {cuStreamSetAttribute_ptsz, cuStreamGetAttribute_ptsz, cuStreamCopyAttributes_ptsz, CU_STREAM_PER_THREAD}};
    for (int i = 0; i < 2; i++) {
        CUstreamAttrValue v = {.syncPolicy = CU_SYNC_POLICY_YIELD}, got;
        CUstream s;
        int priority;
        ok(cuStreamCreate(&s, 0));
        ok(forms[i].set(NULL, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
        ok(forms[i].get(forms[i].null, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
        assert_int_equal(got.syncPolicy, CU_SYNC_POLICY_YIELD);
        ok(forms[i].get(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
        assert_int_equal(got.syncPolicy, 0); /* each stream has its own */
        memset(&v, 0, sizeof v);
        v.accessPolicyWindow.num_bytes = 4096;
        v.accessPolicyWindow.hitRatio = 0.5f;
        ok(forms[i].set(NULL, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
        ok(forms[i].copy(s, NULL));
        ok(forms[i].get(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &got));
        assert_int_equal(got.accessPolicyWindow.num_bytes, 4096);
        ok(forms[i].get(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
        assert_int_equal(got.syncPolicy, CU_SYNC_POLICY_YIELD);
        v.priority = -2;
        ok(forms[i].set(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
        ok(cuStreamGetPriority(s, &priority));
        assert_int_equal(priority, -2);
        ok(forms[i].get(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
        assert_int_equal(got.priority, -2);
        v.priority = 7;
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].set(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].set(s, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].get(s, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].set(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].get(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
        fails(CUDA_ERROR_INVALID_HANDLE, forms[i].set((CUstream)0x1234, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
        fails(CUDA_ERROR_INVALID_HANDLE, forms[i].copy((CUstream)0x1234, s));
        ok(cuStreamDestroy(s));
        fails(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(s));
        fails(CUDA_ERROR_INVALID_HANDLE, forms[i].copy(NULL, s));
    }
    CUcontext other;
    CUstream there;
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuStreamCreate(&there, 0));
    ok(cuCtxPopCurrent_v2(NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(there, blocking)); /* of different contexts */
    ok(cuCtxDestroy_v2(other));
}

static void test_attached_memory(void **state)
{
    static CUresult (*const forms[])(CUstream, CUdeviceptr, size_t, unsigned) = {cuStreamAttachMemAsync,
                                                                                 cuStreamAttachMemAsync_ptsz};
    CUdeviceptr managed, device;
    ok(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_HOST));
    ok(cuMemAlloc_v2(&device, 4096));
    for (int i = 0; i < 2; i++) {
        ok(forms[i](blocking, managed, 0, CU_MEM_ATTACH_SINGLE));
        ok(forms[i](NULL, managed, 4096, CU_MEM_ATTACH_GLOBAL));
        /* Not to the legacy stream alone; to a thread's own one it may be. */
        fails(i ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, forms[i](NULL, managed, 0, CU_MEM_ATTACH_SINGLE));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](blocking, managed, 100, CU_MEM_ATTACH_SINGLE)); /* not the whole */
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](blocking, managed + 64, 0, CU_MEM_ATTACH_SINGLE));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](blocking, device, 0, CU_MEM_ATTACH_GLOBAL));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](blocking, managed, 0, 3));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](blocking, 0, 0, CU_MEM_ATTACH_GLOBAL));
        fails(CUDA_ERROR_INVALID_HANDLE, forms[i]((CUstream)0x1234, managed, 0, CU_MEM_ATTACH_GLOBAL));
    }
    ok(cuMemFree_v2(managed));
    ok(cuMemFree_v2(device));
}

static void test_pointer_can_be_marked(void **state)
{
    CUdeviceptr a;
    unsigned on = 1, off = 0, got = 42;
    ok(cuMemAlloc_v2(&a, 64));
    ok(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
    assert_int_equal(got, 0);
    ok(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a + 8));
    ok(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
    assert_int_equal(got, 1);
    ok(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
    ok(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
    assert_int_equal(got, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_CONTEXT, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1000));
    ok(cuMemFree_v2(a));
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

/* Memory freed in the thread's own stream is for that stream at once, and for others only when its work is done. */
static void test_pools_in_the_threads_own_stream(void **state)
{
    struct gate g = {0};
    CUmemoryPool pool;
    CUdeviceptr a, same, other, none = 42;
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemAllocAsync_ptsz(&a, 3 * MIB, NULL));
    ok(cuLaunchHostFunc_ptsz(NULL, wait_at, &g));
    ok(cuMemFreeAsync_ptsz(a, NULL));
    ok(cuMemAllocFromPoolAsync(&other, 3 * MIB, pool, blocking));
    assert_true(other != a);
    ok(cuMemAllocFromPoolAsync_ptsz(&same, 3 * MIB, pool, NULL));
    assert_int_equal(same, a);
    atomic_store(&g.open, true);
    ok(cuMemFreeAsync_ptsz(same, NULL));
    ok(cuMemFreeAsync(other, blocking));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync_ptsz(same, NULL));
    ok(cuMemAllocAsync_ptsz(&none, 0, NULL));
    assert_int_equal(none, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync_ptsz(NULL, 64, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync_ptsz(&a, 64, (CUmemoryPool)&a, NULL));
    fails(CUDA_ERROR_INVALID_HANDLE, cuMemAllocAsync_ptsz(&a, 64, (CUstream)0x1234));
    fails(CUDA_ERROR_INVALID_HANDLE, cuMemFreeAsync_ptsz(a, (CUstream)0x1234));
    ok(cuCtxSynchronize());
}

static void test_trim_gives_back_down_to_a_limit(void **state)
{
    CUmemoryPool pool;
    CUdeviceptr a, b;
    cuuint64_t keep = UINT64_MAX, reserved = 0;
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    ok(cuMemAllocAsync(&a, 4 * MIB, NULL));
    ok(cuMemAllocAsync(&b, 4 * MIB, NULL));
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemFreeAsync(b, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    assert_int_equal(reserved, 8 * MIB);
    ok(cuMemPoolTrimTo(pool, 8 * MIB));
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    assert_int_equal(reserved, 8 * MIB);
    ok(cuMemPoolTrimTo(pool, 4 * MIB));
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    assert_int_equal(reserved, 4 * MIB);
    ok(cuMemAllocAsync(&a, 64, NULL));
    ok(cuMemPoolTrimTo(pool, 0)); /* what is in use stays */
    ok(cuMemsetD8_v2(a, 1, 64));
    ok(cuMemFreeAsync(a, NULL));
    keep = 0;
    ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo((CUmemoryPool)&keep, 0));
    ok(cuCtxSynchronize());
}

static void test_pools_by_place(void **state)
{
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 9}, host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    CUmemoryPool standard, mine, got = NULL;
    ok(cuDeviceGetDefaultMemPool(&standard, 0));
    ok(cuMemGetDefaultMemPool(&got, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(got, standard);
    ok(cuMemPoolCreate(&mine, &props));
    ok(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
    ok(cuMemGetMemPool(&got, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(got, mine);
    ok(cuMemGetDefaultMemPool(&got, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(got, standard);
    ok(cuDeviceGetMemPool(&got, 0));
    assert_ptr_equal(got, mine);
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemGetMemPool(&got, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED));
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemGetDefaultMemPool(&got, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED));
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemSetMemPool(&nowhere, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(NULL, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&got, NULL, CU_MEM_ALLOCATION_TYPE_PINNED));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&got, &here, CU_MEM_ALLOCATION_TYPE_INVALID));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, (CUmemoryPool)&got));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuMemGetMemPool(&got, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    ok(cuMemPoolDestroy(mine));
}

/* ---- older names ------------------------------------------------------------------------------------------------ */

static void test_register_older_name(void **state)
{
    static uint32_t here[2048];
    CUdeviceptr a;
    ok(cuMemHostRegister(here, sizeof here, CU_MEMHOSTREGISTER_DEVICEMAP));
    fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(here, sizeof here, 0));
    ok(cuMemHostGetDevicePointer_v2(&a, here, 0));
    ok(cuMemsetD32_v2(a, 77, 1));
    ok(cuCtxSynchronize());
    assert_int_equal(here[0], 77);
    ok(cuMemHostUnregister(here));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(NULL, 64, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(here, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(here, 64, 0x100));
}

static void test_link_older_names(void **state)
{
    static CUresult (*const files[])(CUlinkState, CUjitInputType, const char *, unsigned, CUjit_option *,
                                     void **) = {cuLinkAddFile, cuLinkAddFile_v2};
    static char caller[] = ".version 7.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) seven();\n"
                           ".visible .entry main(.param .u64 p) { .reg .u64 %rd1; .reg .u32 %r1; .param .b32 x;\n"
                           "  call (x), seven; ld.param.u32 %r1, [x]; ld.param.u64 %rd1, [p];\n"
                           "  st.global.u32 [%rd1], %r1; ret; }\n";
    static const char callee[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                 ".visible .func (.param .b32 r) seven() { .reg .u32 %r1; mov.u32 %r1, 7;\n"
                                 "  st.param.b32 [r], %r1; ret; }\n";
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/softgpu-link-XXXXXX";
        CUlinkState link;
        CUmodule m;
        CUfunction f;
        CUdeviceptr a;
        void *image;
        size_t bytes;
        uint32_t out = 0;
        int fd = mkstemp(path);
        assert_true(fd >= 0 && write(fd, callee, sizeof callee - 1) == (ssize_t)sizeof callee - 1);
        close(fd);
        ok(cuLinkCreate(0, NULL, NULL, &link));
        ok(cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller", 0, NULL, NULL));
        fails(CUDA_ERROR_FILE_NOT_FOUND, files[i](link, CU_JIT_INPUT_PTX, "/nowhere/at/all", 0, NULL, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, files[i](link, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL));
        fails(CUDA_ERROR_NO_BINARY_FOR_GPU, files[i](link, CU_JIT_INPUT_CUBIN, path, 0, NULL, NULL));
        ok(files[i](link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
        ok(cuLinkComplete(link, &image, &bytes));
        ok(cuModuleLoadData(&m, image));
        ok(cuLinkDestroy(link));
        ok(cuModuleGetFunction(&f, m, "main"));
        ok(cuMemAlloc_v2(&a, 4));
        ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&a}, NULL));
        ok(cuMemcpyDtoH_v2(&out, a, 4));
        assert_int_equal(out, 7);
        ok(cuMemFree_v2(a));
        unlink(path);
        fails(CUDA_ERROR_INVALID_HANDLE, cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, 9, "x", 0, NULL, NULL));
        fails(CUDA_ERROR_INVALID_HANDLE, files[i](link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    }
    CUlinkState link;
    fails(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(0, NULL, NULL, NULL));
    ok(cuLinkCreate(0, NULL, NULL, &link));
    fails(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(link, CU_JIT_INPUT_PTX, NULL, 9, "x", 0, NULL, NULL));
    fails(CUDA_ERROR_INVALID_PTX, cuLinkAddData(link, CU_JIT_INPUT_PTX, "no", 3, "x", 0, NULL, NULL));
    ok(cuLinkDestroy(link));
}

/* Of arrays with deferred mapping only, which there are none of. */
static void test_requirements_of_mipmaps(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 16, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUDA_ARRAY_MEMORY_REQUIREMENTS need;
    CUmipmappedArray m;
    ok(cuMipmappedArrayCreate(&m, &d, 3));
    fails(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements(&need, m, 0));
    ok(cuMipmappedArrayDestroy(m));
    fails(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetMemoryRequirements(&need, m, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_work_in_the_threads_own_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_wait_for_event_in_the_threads_own_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_properties_of_the_threads_own_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_attributes_of_streams, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_attached_memory, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_pointer_can_be_marked, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_pools_in_the_threads_own_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_trim_gives_back_down_to_a_limit, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_pools_by_place, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_register_older_name, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_link_older_names, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_requirements_of_mipmaps, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
