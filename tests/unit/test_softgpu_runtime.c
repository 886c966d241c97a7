/* softgpu's runtime library, used as the compiler uses it: what nvcc puts into a host program is done by hand here. */
#include <dlfcn.h>
#include <sys/wait.h>

#define MODULE_TEXT                                                                                                    \
    ".version 7.0\n.target sm_75\n.address_size 64\n"                                                                  \
    ".visible .global .align 4 .u32 counter = 5;\n"                                                                    \
    ".visible .global .attribute(.managed) .align 4 .u32 shared_value = 11;\n"                                         \
    ".visible .entry store(.param .u64 p, .param .u32 v) {\n"                                                          \
    "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"                                \
    "  st.global.u32 [%rd1], %r1; ret;\n}\n"                                                                           \
    ".visible .entry bump() {\n"                                                                                       \
    "  .reg .u32 %r<3>; mov.u32 %r1, 1; atom.global.add.u32 %r2, [counter], %r1;\n"                                    \
    "  atom.global.add.u32 %r2, [shared_value], %r1; ret;\n}\n"
#include "tests/unit/softgpu_runtime_module.h"

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                    cudaStream_t stream);

static char absent_stub, counter_shadow;
static unsigned *managed_pointer;
static void **binary;

static int register_binary(void **state)
{
    memcpy(module_image.text, MODULE, sizeof MODULE);
    binary = __cudaRegisterFatBinary(&module_wrapper);
    __cudaRegisterFunction(binary, &store_stub, NULL, "store", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(binary, &bump_stub, NULL, "bump", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(binary, &absent_stub, NULL, "absent", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(binary, &counter_shadow, NULL, "counter", 0, 4, 0, 0);
    __cudaRegisterManagedVar(binary, (void **)&managed_pointer, NULL, "shared_value", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(binary);
    return 0;
}

static int unregister_binary(void **state)
{
    __cudaUnregisterFatBinary(binary);
    return 0;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

static void test_launch_like_the_compiler(void **state)
{
    cudaKernel_t kernel = NULL;
    void *p;
    unsigned v = 42, out = 0;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    ok(cudaMalloc(&p, 4));
    assert_int_equal(__cudaPushCallConfiguration(one, one, 0, NULL), 0);
    ok(__cudaGetKernel(&kernel, &store_stub));
    ok(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    void *args[] = {&p, &v};
    ok(__cudaLaunchKernel(kernel, grid, block, args, shared, stream));
    ok(cudaMemcpy(&out, p, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(out, 42);
    v = 43;
    ok(__cudaLaunchKernel_ptsz(kernel, grid, block, args, shared, NULL));
    ok(cudaStreamSynchronize(cudaStreamPerThread));
    ok(cudaMemcpy(&out, p, 4, cudaMemcpyDefault));
    assert_int_equal(out, 43);
    fails(cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    fails(cudaErrorMissingConfiguration, cudaGetLastError());
    ok(cudaFree(p));
}

static void test_launch_by_function_and_by_kernel(void **state)
{
    void *p;
    unsigned v = 1, out = 0;
    cudaKernel_t kernel;
    void *args[] = {&p, &v};
    ok(cudaMalloc(&p, 4));
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL));
    v = 2;
    ok(cudaGetKernel(&kernel, &store_stub));
    ok(cudaLaunchKernel((const void *)kernel, one, one, args, 0, NULL));
    ok(cudaMemcpy(&out, p, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(out, 2);
    cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one};
    v = 3;
    ok(cudaLaunchKernelExC(&config, &store_stub, args));
    ok(cudaMemcpy(&out, p, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(out, 3);
    v = 4;
    ok(cudaLaunchCooperativeKernel(&store_stub, one, one, args, 0, NULL));
    ok(cudaMemcpy(&out, p, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(out, 4);
    ok(cudaFree(p));
}

static void test_launch_refuses(void **state)
{
    void *p = NULL;
    unsigned v = 0;
    void *args[] = {&p, &v};
    const dim3 zero = {0, 1, 1}, large = {2000, 1, 1};
    fails(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&unknown_stub, one, one, args, 0, NULL));
    fails(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&absent_stub, one, one, args, 0, NULL));
    fails(cudaErrorInvalidConfiguration, cudaLaunchKernel(&store_stub, zero, one, args, 0, NULL));
    fails(cudaErrorInvalidConfiguration, cudaLaunchKernel(&store_stub, one, large, args, 0, NULL));
    fails(cudaErrorInvalidValue, cudaLaunchKernel(&store_stub, one, one, args, 1 << 20, NULL));
    fails(cudaErrorInvalidValue, cudaPeekAtLastError());
    fails(cudaErrorInvalidValue, cudaGetLastError());
    ok(cudaGetLastError());
    ok(cudaDeviceSynchronize());
}

static void *last_error_of_thread(void *out)
{
    *(cudaError_t *)out = cudaGetLastError();
    return NULL;
}

static void test_last_error_is_per_thread(void **state)
{
    pthread_t thread;
    cudaError_t other = cudaErrorUnknown;
    void *p;
    fails(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 60));
    pthread_create(&thread, NULL, last_error_of_thread, &other);
    pthread_join(thread, NULL);
    ok(other);
    fails(cudaErrorMemoryAllocation, cudaGetLastError());
}

static void test_fault_is_sticky_until_reset(void **state)
{
    void *p = (void *)0x1000, *q;
    unsigned v = 0;
    void *args[] = {&p, &v};
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL));
    fails(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    fails(cudaErrorIllegalAddress, cudaGetLastError());
    fails(cudaErrorIllegalAddress, cudaMalloc(&q, 4));
    ok(cudaDeviceReset());
    cudaGetLastError();
    ok(cudaMalloc(&q, 4));
    p = q;
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL));
    ok(cudaDeviceSynchronize());
    ok(cudaFree(q));
}

/* ---- variables -------------------------------------------------------------------------------------------------- */

static void test_symbols(void **state)
{
    unsigned value = 0;
    void *address;
    size_t bytes;
    ok(cudaMemcpyFromSymbol(&value, &counter_shadow, 4, 0, cudaMemcpyDeviceToHost));
    assert_int_equal(value, 5);
    value = 70;
    ok(cudaMemcpyToSymbol(&counter_shadow, &value, 4, 0, cudaMemcpyHostToDevice));
    ok(cudaLaunchKernel(&bump_stub, one, one, NULL, 0, NULL));
    ok(cudaGetSymbolAddress(&address, &counter_shadow));
    ok(cudaGetSymbolSize(&bytes, &counter_shadow));
    assert_int_equal(bytes, 4);
    ok(cudaMemcpy(&value, address, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(value, 71);
    fails(cudaErrorInvalidValue, cudaMemcpyToSymbol(&counter_shadow, &value, 4, 1, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&unknown_stub, &value, 4, 0, cudaMemcpyHostToDevice));
    cudaGetLastError();
}

static void test_managed_variable(void **state)
{
    void *address;
    assert_int_equal(__cudaInitModule(binary), 1);
    assert_non_null(managed_pointer);
    unsigned before = *managed_pointer;
    assert_true(before >= 11);
    ok(cudaLaunchKernel(&bump_stub, one, one, NULL, 0, NULL));
    ok(cudaDeviceSynchronize());
    assert_int_equal(*managed_pointer, before + 1);
    ok(cudaGetSymbolAddress(&address, managed_pointer));
    assert_ptr_equal(address, managed_pointer);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
    char in[64], out[64] = {0};
    void *p, *h;
    struct cudaPointerAttributes a;
    memset(in, 3, sizeof in);
    ok(cudaMalloc(&p, 0));
    assert_null(p);
    ok(cudaFree(NULL));
    ok(cudaMalloc(&p, 64));
    ok(cudaMemcpy(p, in, 64, cudaMemcpyHostToDevice));
    ok(cudaMemset(p, 4, 10));
    ok(cudaMemcpyAsync(out, p, 64, cudaMemcpyDeviceToHost, NULL));
    ok(cudaStreamSynchronize(NULL));
    assert_int_equal(out[9], 4);
    assert_int_equal(out[10], 3);
    fails(cudaErrorInvalidMemcpyDirection, cudaMemcpy(p, in, 4, (enum cudaMemcpyKind)9));
    fails(cudaErrorInvalidValue, cudaMemcpy(p, in, 65, cudaMemcpyHostToDevice));
    ok(cudaPointerGetAttributes(&a, p));
    assert_int_equal(a.type, cudaMemoryTypeDevice);
    assert_ptr_equal(a.devicePointer, p);
    ok(cudaPointerGetAttributes(&a, in));
    assert_int_equal(a.type, cudaMemoryTypeUnregistered);
    ok(cudaMallocHost(&h, 64));
    ok(cudaPointerGetAttributes(&a, h));
    assert_int_equal(a.type, cudaMemoryTypeHost);
    assert_ptr_equal(a.hostPointer, h);
    ok(cudaFreeHost(h));
    ok(cudaMallocManaged(&h, 64, cudaMemAttachGlobal));
    ok(cudaPointerGetAttributes(&a, h));
    assert_int_equal(a.type, cudaMemoryTypeManaged);
    ok(cudaFree(h));
    ok(cudaFree(p));
    fails(cudaErrorInvalidValue, cudaFree(p));
    cudaGetLastError();
}

static void test_memory_shapes(void **state)
{
    char in[3][8], out[3][8] = {{0}};
    void *p;
    size_t pitch;
    struct cudaPitchedPtr box;
    memset(in, 6, sizeof in);
    ok(cudaMallocPitch(&p, &pitch, 8, 3));
    ok(cudaMemcpy2D(p, pitch, in, 8, 8, 3, cudaMemcpyHostToDevice));
    ok(cudaMemset2D(p, pitch, 1, 2, 3));
    ok(cudaMemcpy2D(out, 8, p, pitch, 8, 3, cudaMemcpyDeviceToHost));
    assert_int_equal(out[2][1], 1);
    assert_int_equal(out[2][2], 6);
    fails(cudaErrorInvalidPitchValue, cudaMemcpy2D(out, 8, p, pitch, 9, 3, cudaMemcpyDeviceToHost));
    ok(cudaFree(p));
    ok(cudaMalloc3D(&box, (struct cudaExtent){8, 3, 2}));
    ok(cudaMemset3D(box, 9, (struct cudaExtent){8, 2, 2})); /* not the third row of each slice */
    struct cudaMemcpy3DParms c = {.srcPtr = box,
                                  .dstPtr = {out, 8, 8, 3},
                                  .extent = {8, 3, 1},
                                  .srcPos = {0, 0, 1},
                                  .kind = cudaMemcpyDeviceToHost};
    ok(cudaMemcpy3D(&c));
    assert_int_equal(out[1][7], 9);
    ok(cudaFree(box.ptr));
    cudaGetLastError();
}

static void test_stream_ordered_memory(void **state)
{
    void *p;
    int out = 0;
    cudaStream_t s;
    ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    ok(cudaMallocAsync(&p, 4, s));
    ok(cudaMemsetAsync(p, 1, 4, s));
    ok(cudaMemcpyAsync(&out, p, 4, cudaMemcpyDeviceToHost, s));
    ok(cudaFreeAsync(p, s));
    ok(cudaStreamSynchronize(s));
    assert_int_equal(out, 0x01010101);
    ok(cudaStreamDestroy(s));
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static void test_device_properties(void **state)
{
    struct cudaDeviceProp p;
    int value, count;
    ok(cudaGetDeviceCount(&count));
    assert_int_equal(count, 1);
    ok(cudaGetDeviceProperties(&p, 0));
    assert_string_equal(p.name, "softgpu");
    assert_int_equal(p.warpSize, 32);
    assert_int_equal(p.maxThreadsDim[2], 64);
    ok(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    assert_int_equal(value, p.multiProcessorCount);
    fails(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 1));
    fails(cudaErrorInvalidDevice, cudaSetDevice(1));
    ok(cudaSetDevice(0));
    ok(cudaRuntimeGetVersion(&value));
    assert_int_equal(value, 13000);
    cudaGetLastError();
}

static void test_function_attributes(void **state)
{
    struct cudaFuncAttributes a;
    int blocks;
    size_t offset, size;
    const char *name;
    ok(cudaFuncGetAttributes(&a, &store_stub));
    assert_int_equal(a.maxThreadsPerBlock, 1024);
    assert_int_equal(a.ptxVersion, 75);
    ok(cudaFuncSetAttribute(&store_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 << 10));
    ok(cudaFuncGetAttributes(&a, &store_stub));
    assert_int_equal(a.maxDynamicSharedSizeBytes, 60 << 10);
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &store_stub, 128, 0));
    assert_true(blocks > 0);
    ok(cudaFuncGetName(&name, &store_stub));
    assert_string_equal(name, "store");
    ok(cudaFuncGetParamInfo(&store_stub, 1, &offset, &size));
    assert_int_equal(offset, 8);
    assert_int_equal(size, 4);
}

static void test_events(void **state)
{
    cudaEvent_t a, b;
    float ms = -1;
    ok(cudaEventCreate(&a));
    ok(cudaEventCreate(&b));
    ok(cudaEventRecord(a, NULL));
    ok(cudaLaunchKernel(&bump_stub, one, one, NULL, 0, NULL));
    ok(cudaEventRecord(b, NULL));
    ok(cudaEventSynchronize(b));
    ok(cudaEventElapsedTime(&ms, a, b));
    assert_true(ms >= 0);
    ok(cudaEventDestroy(a));
    ok(cudaEventDestroy(b));
}

static void test_errors_have_names(void **state)
{
    assert_string_equal(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    assert_string_equal(cudaGetErrorString((cudaError_t)54321), "unrecognized error code");
}

static void test_unsupported_says_so(void **state)
{
    cudaArray_t array;
    fails(cudaErrorNotSupported, cudaArrayGetPlane(&array, NULL, 0));
    fails(cudaErrorNotSupported, cudaGetLastError());
}

/* As in test_softgpu_entry.c, for the runtime's functions. */
static int call_all_with_zeros(void)
{
    typedef cudaError_t (*any)(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t);
    static const char *const names[] = {
#define NAME(name) #name,
#include "softgpu/runtime_names.h"
    };
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
    int missing = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        any function;
        void *symbol = dlsym(library, names[i]);
        memcpy(&function, &symbol, sizeof function);
        if (symbol)
            function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        else
            missing++;
    }
    return missing ? 3 : 0;
}

static void test_all_functions_take_zeros(void **state)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", "--zeros", NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--zeros"))
        return call_all_with_zeros();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_like_the_compiler),
        cmocka_unit_test(test_launch_by_function_and_by_kernel),
        cmocka_unit_test(test_launch_refuses),
        cmocka_unit_test(test_last_error_is_per_thread),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_managed_variable),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_shapes),
        cmocka_unit_test(test_stream_ordered_memory),
        cmocka_unit_test(test_device_properties),
        cmocka_unit_test(test_function_attributes),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_errors_have_names),
        cmocka_unit_test(test_unsupported_says_so),
        cmocka_unit_test(test_all_functions_take_zeros),
        cmocka_unit_test(test_fault_is_sticky_until_reset),
    };
    return cmocka_run_group_tests(tests, register_binary, unregister_binary);
}
