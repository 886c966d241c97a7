/* Modules, libraries and launches of softgpu: what is loaded, what runs, how faults end a context. */
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/softgpu_test.h"

static const char PTX[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 5;\n"
    ".visible .const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    ".extern .shared .align 4 .b8 dynamic[];\n"
    /* p[i] += i for i < n */
    ".visible .entry add_index(.param .u64 p, .param .u32 n) {\n"
    "  .reg .u64 %rd<4>; .reg .u32 %r<6>; .reg .pred %q;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %q, %r2, %r1; @%q bra done;\n"
    "  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;\n"
    "  ld.global.u32 %r5, [%rd1]; add.u32 %r5, %r5, %r2; st.global.u32 [%rd1], %r5;\n"
    "done: ret;\n}\n"
    ".visible .entry store(.param .u64 p) {\n"
    "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; ret;\n}\n"
    ".visible .entry bump() {\n"
    "  .reg .u32 %r<3>; ld.const.u32 %r1, [table+8]; atom.global.add.u32 %r2, [counter], %r1; ret;\n}\n"
    ".visible .entry give_up() { trap; }\n"
    /* waits until *p becomes other than 0, then sets it to 2 */
    ".visible .entry wait_for(.param .u64 p) {\n"
    "  .reg .u64 %rd1; .reg .u32 %r1; .reg .pred %q; ld.param.u64 %rd1, [p];\n"
    "again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %q, %r1, 0; @%q bra again;\n"
    "  mov.u32 %r1, 2; st.volatile.global.u32 [%rd1], %r1; ret;\n}\n"
    ".visible .entry delay(.param .u32 ticks) {\n"
    "  .reg .u32 %r<4>; .reg .pred %q; ld.param.u32 %r1, [ticks]; mov.u32 %r2, %clock;\n"
    "again: mov.u32 %r3, %clock; sub.u32 %r3, %r3, %r2; setp.lt.u32 %q, %r3, %r1; @%q bra again; ret;\n}\n"
    ".visible .entry small(.param .u64 p) .maxntid 64, 1, 1 {\n"
    "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; mov.u32 %r1, dynamic;\n"
    "  st.shared.u32 [%r1], %r1; ret;\n}\n"
    /* with one byte before a pointer: offsets 0 and 8 */
    ".visible .entry mixed(.param .u8 a, .param .u64 p) {\n"
    "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u8 %r1, [a]; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r1; "
    "ret;\n}\n";

struct fixture {
    CUmodule module;
    CUdeviceptr buffer;
};
static struct fixture f;

static int setup(void **state)
{
    return cuModuleLoadData(&f.module, PTX) != CUDA_SUCCESS || cuMemAlloc_v2(&f.buffer, 4096) != CUDA_SUCCESS ||
           cuMemsetD8_v2(f.buffer, 0, 4096) != CUDA_SUCCESS;
}

static CUfunction function(const char *name)
{
    CUfunction out = NULL;
    ok(cuModuleGetFunction(&out, f.module, name));
    return out;
}

static CUresult launch(CUfunction fn, unsigned grid, unsigned block, unsigned shared, void **params)
{
    return cuLaunchKernel(fn, grid, 1, 1, block, 1, 1, shared, NULL, params, NULL);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void test_module_functions_and_globals(void **state)
{
    unsigned count, value = 0;
    CUfunction fn, all[8];
    CUdeviceptr address;
    CUmodule m;
    size_t bytes;
    const char *name;
    ok(cuModuleGetFunctionCount(&count, f.module));
    assert_int_equal(count, 8);
    ok(cuModuleEnumerateFunctions(all, 8, f.module));
    ok(cuFuncGetName(&name, all[0]));
    assert_string_equal(name, "add_index");
    ok(cuFuncGetModule(&m, all[0]));
    assert_ptr_equal(m, f.module);
    fails(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&fn, f.module, "absent"));
    ok(cuModuleGetGlobal_v2(&address, &bytes, f.module, "counter"));
    assert_int_equal(bytes, 4);
    ok(cuMemcpyDtoH_v2(&value, address, 4));
    assert_int_equal(value, 5);
    ok(launch(function("bump"), 2, 3, 0, NULL));
    ok(cuMemcpyDtoH_v2(&value, address, 4));
    assert_int_equal(value, 5 + 6 * 30);
    value = 1;
    ok(cuModuleGetGlobal_v2(&address, &bytes, f.module, "table"));
    assert_int_equal(bytes, 16);
    ok(cuMemcpyHtoD_v2(address + 8, &value, 4)); /* constants can be set from the host */
    ok(launch(function("bump"), 1, 1, 0, NULL));
    ok(cuModuleGetGlobal_v2(&address, NULL, f.module, "counter"));
    ok(cuMemcpyDtoH_v2(&value, address, 4));
    assert_int_equal(value, 186);
    fails(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&address, &bytes, f.module, "absent"));
}

static void test_module_unload_ends_its_handles(void **state)
{
    CUmodule m;
    CUfunction fn;
    ok(cuModuleLoadData(&m, PTX));
    ok(cuModuleGetFunction(&fn, m, "bump"));
    ok(cuModuleUnload(m));
    fails(CUDA_ERROR_INVALID_HANDLE, launch(fn, 1, 1, 0, NULL));
    fails(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&fn, m, "bump"));
    fails(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
}

static void test_load_refuses_what_cannot_run(void **state)
{
    CUmodule m;
    fails(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, "\177ELF\2\1\1 machine code"));
    fails(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, "no image at all"));
    fails(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, ""));
    fails(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, "\177"));
    fails(CUDA_ERROR_INVALID_PTX,
          cuModuleLoadData(&m, ".version 7.0\n.target sm_75\n.address_size 64\n.entry k() { fly }"));
    fails(
        CUDA_ERROR_INVALID_PTX,
        cuModuleLoadData(&m, ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }")); /* device is 8.6 */
    fails(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent.ptx"));
    fails(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&m, NULL));
}

/* An instruction that the executor lacks refuses the launch of its kernel, and nothing else, for no longer. */
static void test_launch_of_an_unsupported_kernel(void **state)
{
    CUmodule m;
    CUfunction bad, good;
    int registers;
    ok(cuModuleLoadData(&m, ".version 7.0\n.target sm_75\n.address_size 64\n"
                            ".entry bad() { fly; }\n.entry good() { ret; }"));
    ok(cuModuleGetFunction(&bad, m, "bad"));
    ok(cuModuleGetFunction(&good, m, "good"));
    ok(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, bad));
    fails(CUDA_ERROR_NOT_SUPPORTED, launch(bad, 1, 1, 0, NULL));
    ok(launch(good, 1, 1, 0, NULL));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(m));
}

/* A block that one kernel takes is there for the next one; the limit is fixed by then. */
static void test_kernel_heap(void **state)
{
    CUmodule m;
    CUfunction take, give;
    CUdeviceptr home;
    size_t limit;
    uint64_t value[2] = {0};
    ok(cuModuleLoadData(
        &m, ".version 7.0\n.target sm_75\n.address_size 64\n"
            ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
            ".entry take(.param .u64 home) { .reg .b64 %a<3>; .param .b64 n; .param .b64 r;\n"
            "st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %a1, [r]; st.u64 [%a1+16], 77;\n"
            "ld.param.u64 %a2, [home]; st.global.u64 [%a2], %a1; ret; }\n"
            ".entry give(.param .u64 home) { .reg .b64 %a<4>; .param .b64 p;\n"
            "ld.param.u64 %a2, [home]; ld.global.u64 %a1, [%a2]; ld.u64 %a3, [%a1+16]; st.global.u64 [%a2+8], %a3;\n"
            "st.param.b64 [p], %a1; call free, (p); ret; }\n"));
    ok(cuModuleGetFunction(&take, m, "take"));
    ok(cuModuleGetFunction(&give, m, "give"));
    ok(cuMemAlloc_v2(&home, sizeof value));
    void *params[] = {&home};
    ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
    ok(launch(take, 1, 1, 0, params));
    ok(launch(give, 1, 1, 0, params));
    ok(cuMemcpyDtoH_v2(value, home, sizeof value));
    assert_true(value[0] != 0 && value[1] == 77);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 2 << 20));
    ok(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    assert_int_equal(limit, 1 << 20);
    ok(cuMemFree_v2(home));
    ok(cuModuleUnload(m));
}

static void test_jit_log_names_the_line(void **state)
{
    char error[512], info[64] = "x";
    CUmodule m;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)sizeof error, info, (void *)sizeof info};
    fails(CUDA_ERROR_INVALID_PTX,
          cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_75\n.address_size 64\n.entry k() {\n  add.u32 %r1;\n}", 4,
                             options, values));
    assert_non_null(strstr(error, "line 5"));
    assert_int_equal((size_t)values[1], strlen(error));
    assert_int_equal(info[0], 0);
    /* A buffer that is too small is filled as far as it goes. */
    char tiny[8];
    values[0] = tiny;
    values[1] = (void *)sizeof tiny;
    fails(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_75\nnonsense", 2, options, values));
    assert_true(memchr(tiny, 0, sizeof tiny) != NULL);
}

/* A fat binary as the compiler writes it, uncompressed, and its wrapper. */
static void test_fatbin_wrapper(void **state)
{
    static struct {
        uint32_t magic;
        uint16_t version, header;
        uint64_t size;
        uint16_t kind, one;
        uint32_t entry_header;
        uint64_t payload;
        uint32_t zero[2];
        uint16_t minor, major;
        uint32_t sm;
        uint64_t name, flags, zeros[2];
        char text[(sizeof PTX + 7) / 8 * 8];
    } image = {0xba55ed50, 1, 16, sizeof image - 16, 1, 0x101, 64, sizeof image.text, {0}, 0, 7, 75, 0, 0x11, {0}, {0}};
    static const struct {
        uint32_t magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, &image, NULL};
    CUmodule m;
    CUfunction fn;
    memcpy(image.text, PTX, sizeof PTX);
    ok(cuModuleLoadFatBinary(&m, &wrapper));
    ok(cuModuleGetFunction(&fn, m, "bump"));
    ok(cuModuleUnload(m));
    ok(cuModuleLoadData(&m, &image));
    ok(cuModuleUnload(m));
    image.kind = 2; /* machine code only */
    fails(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, &wrapper));
    image.kind = 1;
    image.sm = 90;
    fails(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, &wrapper));
    image.sm = 75;
    image.payload = UINT64_MAX;
    fails(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, &wrapper));
    image.payload = sizeof image.text;
}

static void test_link(void **state)
{
    static char caller[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .align 4 .u32 far;\n"
                           ".global .align 4 .u32 own = 1;\n"
                           ".visible .entry call_it(.param .u64 p) {\n .reg .u64 %rd1; .reg .u32 %r<4>;\n"
                           " ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [far]; ld.global.u32 %r3, [own]; {\n"
                           " .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a);\n"
                           " ld.param.b32 %r2, [b]; }\n add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2; ret;\n}\n";
    static char callee[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .global .align 4 .u32 far = 21;\n.global .align 4 .u32 own[2] = {100, 200};\n"
        ".visible .func (.param .b32 r) twice(.param .b32 x) {\n .reg .u32 %r<4>;\n"
        " ld.param.u32 %r1, [x]; ld.global.u32 %r2, [own+4]; shl.b32 %r1, %r1, 1; add.u32 %r1, %r1, %r2;\n"
        " st.param.b32 [r], %r1; ret;\n}\n";
    CUlinkState link;
    CUmodule m;
    CUfunction fn;
    void *cubin, *params[] = {&f.buffer};
    size_t bytes;
    unsigned out;
    ok(cuLinkCreate_v2(0, NULL, NULL, &link));
    fails(CUDA_ERROR_INVALID_IMAGE, cuLinkComplete(link, &cubin, &bytes)); /* nothing there yet */
    fails(CUDA_ERROR_NO_BINARY_FOR_GPU,
          cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, "\177ELF", 4, "code", 0, NULL, NULL));
    ok(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller", 0, NULL, NULL));
    ok(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, callee, sizeof callee, "callee", 0, NULL, NULL));
    ok(cuLinkComplete(link, &cubin, &bytes));
    ok(cuModuleLoadData(&m, cubin));
    ok(cuLinkDestroy(link));
    fails(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
    ok(cuModuleGetFunction(&fn, m, "call_it"));
    ok(launch(fn, 1, 1, 0, params));
    ok(cuMemcpyDtoH_v2(&out, f.buffer, 4));
    assert_int_equal(out, 2 * 21 + 200 + 1); /* each module has its `own` */
    ok(cuModuleUnload(m));
}

static void test_link_error_is_logged(void **state)
{
    static char uses[] = ".version 7.0\n.target sm_75\n.address_size 64\n.extern .global .align 4 .u32 lost;\n"
                         ".visible .global .align 8 .u64 pointer = lost;\n";
    static char defines[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 lost;\n";
    char log[256] = "never written", info[64] = "never written";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log, info, (void *)sizeof info}, *cubin;
    size_t bytes;
    CUlinkState link;
    ok(cuLinkCreate_v2(4, options, values, &link));
    assert_string_equal(log, ""); /* programs print both, whether there was a message or not */
    assert_string_equal(info, "");
    assert_null(values[1]);
    assert_null(values[3]);
    fails(CUDA_ERROR_INVALID_PTX,
          cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, ".version 7.0\n.target sm_75\nx", 29, "bad", 0, NULL, NULL));
    assert_non_null(strstr(log, "bad, line 3"));
    ok(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, uses, sizeof uses, "user", 0, NULL, NULL));
    fails(CUDA_ERROR_INVALID_PTX, cuLinkComplete(link, &cubin, &bytes));
    assert_non_null(strstr(log, "`lost`, which `user` uses"));
    ok(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, defines, sizeof defines, "definer", 0, NULL, NULL));
    ok(cuLinkComplete(link, &cubin, &bytes));
    ok(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, defines, sizeof defines, "again", 0, NULL, NULL));
    fails(CUDA_ERROR_INVALID_PTX, cuLinkComplete(link, &cubin, &bytes));
    assert_non_null(strstr(log, "in `again`, and already in `definer`"));
    ok(cuLinkDestroy(link));
}

/* ---- libraries -------------------------------------------------------------------------------------------------- */

static void test_library_lives_in_every_context(void **state)
{
    CUlibrary lib;
    CUkernel kernel, all[8];
    CUcontext other;
    CUfunction fn;
    CUdeviceptr here, there;
    CUmodule m;
    CUlibrary back;
    size_t bytes;
    unsigned count, value;
    const char *name;
    ok(cuLibraryLoadData(&lib, PTX, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetKernelCount(&count, lib));
    assert_int_equal(count, 8);
    ok(cuLibraryEnumerateKernels(all, 8, lib));
    ok(cuLibraryGetKernel(&kernel, lib, "bump"));
    assert_ptr_equal(kernel, all[2]);
    fails(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, lib, "absent"));
    ok(cuKernelGetName(&name, kernel));
    assert_string_equal(name, "bump");
    ok(cuKernelGetLibrary(&back, kernel));
    assert_ptr_equal(back, lib);
    ok(cuKernelGetFunction(&fn, kernel));
    ok(cuLibraryGetGlobal(&here, &bytes, lib, "counter"));
    ok(launch((CUfunction)kernel, 1, 1, 0, NULL)); /* a kernel passes for a function */
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuLibraryGetGlobal(&there, &bytes, lib, "counter"));
    assert_true(here != there);
    ok(cuMemcpyDtoH_v2(&value, there, 4));
    assert_int_equal(value, 5); /* each context has its own */
    ok(launch((CUfunction)kernel, 3, 1, 0, NULL));
    ok(cuMemcpyDtoH_v2(&value, there, 4));
    assert_int_equal(value, 95);
    ok(cuCtxDestroy_v2(other));
    ok(cuMemcpyDtoH_v2(&value, here, 4));
    assert_int_equal(value, 35);
    ok(cuLibraryGetModule(&m, lib));
    fails(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m)); /* it is the library's */
    fails(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&here, &bytes, lib, "counter"));
    ok(cuLibraryUnload(lib));
    fails(CUDA_ERROR_INVALID_HANDLE, launch((CUfunction)kernel, 1, 1, 0, NULL));
    fails(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(lib));
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

static void test_function_params(void **state)
{
    size_t offset, size;
    ok(cuFuncGetParamInfo(function("mixed"), 0, &offset, &size));
    assert_int_equal(offset, 0);
    assert_int_equal(size, 1);
    ok(cuFuncGetParamInfo(function("mixed"), 1, &offset, &size));
    assert_int_equal(offset, 8);
    assert_int_equal(size, 8);
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function("mixed"), 2, &offset, &size));
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function("bump"), 0, &offset, &size));
}

static void test_function_attributes(void **state)
{
    int value;
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function("small")));
    assert_int_equal(value, 64);
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function("small")));
    assert_int_equal(value, 75);
    for (int a = 0; a <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE; a++)
        ok(cuFuncGetAttribute(&value, (CUfunction_attribute)a, function("small")));
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, function("small")));
    fails(CUDA_ERROR_INVALID_HANDLE,
          cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUfunction)f.module));
}

static void test_occupancy(void **state)
{
    int blocks, size, grid;
    size_t bytes;
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("bump"), 256, 0));
    assert_int_equal(blocks, 6); /* 1536 threads on a device of capability 8.6 */
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("bump"), 256, 40 << 10));
    assert_int_equal(blocks, 2); /* two of 41 KiB in 100 */
    ok(cuOccupancyMaxPotentialBlockSize(&grid, &size, function("small"), NULL, 0, 0));
    assert_true(size > 0 && size <= 64 && grid > 0);
    ok(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function("bump"), 2, 256));
    assert_true(bytes > 40000 && bytes <= 50 << 10);
}

/* ---- launching -------------------------------------------------------------------------------------------------- */

static void test_launch_forms(void **state)
{
    unsigned n = 100, out[100];
    void *params[] = {&f.buffer, &n};
    struct {
        CUdeviceptr p;
        unsigned n;
    } packed = {f.buffer, 100};
    size_t bytes = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1}};
    CUlaunchConfig config = {2, 1, 1, 64, 1, 1, 0, NULL, attributes, 1};
    CUfunction fn = function("add_index");
    ok(cuLaunchKernel(fn, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    ok(cuLaunchKernel(fn, 2, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
    ok(cuLaunchKernelEx(&config, fn, params, NULL));
    ok(cuLaunchCooperativeKernel(fn, 2, 1, 1, 64, 1, 1, 0, NULL, params));
    ok(cuCtxSynchronize());
    ok(cuLaunchKernel_ptsz(fn, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    ok(cuStreamSynchronize_ptsz(NULL));
    ok(cuMemcpyDtoH_v2(out, f.buffer, sizeof out));
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(out[i], 5 * i);
}

static void test_launch_copies_its_arguments(void **state)
{
    unsigned char a = 3;
    unsigned out;
    CUdeviceptr p = f.buffer;
    void *params[] = {&a, &p};
    ok(launch(function("mixed"), 1, 1, 0, params));
    a = 9;
    p = 0;
    ok(cuMemcpyDtoH_v2(&out, f.buffer, 4));
    assert_int_equal(out, 3);
}

static void test_launch_refuses(void **state)
{
    CUfunction fn = function("small");
    void *params[] = {&f.buffer}, *none[] = {NULL};
    fails(CUDA_ERROR_INVALID_VALUE, launch(fn, 0, 1, 0, params));
    fails(CUDA_ERROR_INVALID_VALUE, launch(fn, 1, 0, 0, params));
    fails(CUDA_ERROR_INVALID_VALUE, launch(fn, 1, 1025, 0, params));
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fn, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL));
    fails(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch(fn, 1, 65, 0, params));
    fails(CUDA_ERROR_INVALID_VALUE, launch(fn, 1, 1, 49 << 10, params));
    fails(CUDA_ERROR_INVALID_VALUE, launch(fn, 1, 1, 0, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, launch(fn, 1, 1, 0, none));
    fails(CUDA_ERROR_INVALID_HANDLE, launch(NULL, 1, 1, 0, params));
    fails(CUDA_ERROR_INVALID_HANDLE, launch((CUfunction)params, 1, 1, 0, params));
    fails(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
          cuLaunchCooperativeKernel(fn, 100000, 1, 1, 64, 1, 1, 0, NULL, params));
    ok(cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
    ok(launch(fn, 1, 1, 49 << 10, params)); /* after asking for it */
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 101 << 10));
    ok(cuCtxSynchronize()); /* none of it is sticky */
}

static void test_kernel_reaches_host_memory(void **state)
{
    unsigned n = 8, *pinned;
    static unsigned registered[8];
    CUdeviceptr managed;
    CUfunction fn = function("add_index");
    ok(cuMemHostAlloc((void **)&pinned, 32, 0));
    ok(cuMemAllocManaged(&managed, 32, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemHostRegister_v2(registered, sizeof registered, 0));
    CUdeviceptr targets[] = {(uintptr_t)pinned, managed, (uintptr_t)registered};
    for (int i = 0; i < 3; i++) {
        void *params[] = {&targets[i], &n};
        memset((void *)(uintptr_t)targets[i], 0, 32);
        ok(launch(fn, 1, 8, 0, params));
        ok(cuCtxSynchronize());
        assert_int_equal(((unsigned *)(uintptr_t)targets[i])[7], 7);
    }
    ok(cuMemHostUnregister(registered));
    ok(cuMemFree_v2(managed));
    ok(cuMemFreeHost(pinned));
}

/* Kernels of different streams run at the same time, and the host can talk to a running one. */
static void test_kernels_run_concurrently(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* two kernels talk through a word without C's atomics: the kernels' affair, but a race to the sanitizer */
#endif
    volatile unsigned *flag;
    CUstream s, t;
    CUdeviceptr p;
    ok(cuMemHostAlloc((void **)&flag, 4, 0));
    *flag = 0;
    p = (uintptr_t)flag;
    void *params[] = {&p};
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchKernel(function("wait_for"), 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    ok(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, t, params, NULL));
    ok(cuStreamSynchronize(s));
    assert_int_equal(*flag, 2);
    *flag = 0;
    ok(cuLaunchKernel(function("wait_for"), 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    *flag = 1;
    ok(cuStreamSynchronize(s));
    assert_int_equal(*flag, 2);
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
    ok(cuMemFreeHost((void *)flag));
}

/* Programs reckon how many clocks a delay has from the attribute: one of a quarter of a second may not take many times
 * that. Counted in processor time, which a busy machine does not change. */
static void test_clock_rate_is_that_of_the_clock(void **state)
{
    int khz;
    struct timespec start, end;
    ok(cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0));
    unsigned ticks = (unsigned)khz * 250u;
    void *params[] = {&ticks};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    ok(launch(function("delay"), 1, 1, 0, params));
    ok(cuCtxSynchronize());
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    assert_true(seconds > 0.025);
#ifndef __SANITIZE_THREAD__
    assert_true(seconds < 2.5);
#endif
}

/* ---- faults ----------------------------------------------------------------------------------------------------- */

static void expect_sticky(CUresult error, const char *name, CUdeviceptr p)
{
    void *params[] = {&p};
    CUdeviceptr a;
    CUcontext other;
    unsigned out;
    ok(launch(function(name), 1, 1, 0, strcmp(name, "give_up") ? params : NULL)); /* seen only later */
    fails(error, cuCtxSynchronize());
    fails(error, cuMemAlloc_v2(&a, 4));
    fails(error, cuMemcpyDtoH_v2(&out, f.buffer, 4));
    fails(error, cuStreamQuery(NULL));
    fails(error, cuCtxSynchronize());
    ok(cuCtxCreate_v2(&other, 0, 0)); /* other contexts go on */
    ok(cuMemAlloc_v2(&a, 4));
    ok(cuCtxDestroy_v2(other));
    ok(cuDevicePrimaryCtxReset_v2(0));
    ok(cuCtxSynchronize());
}

static void test_fault_illegal_address(void **state)
{
    expect_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, "store", f.buffer + (64 << 20));
}

static void test_fault_null(void **state)
{
    expect_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, "store", 0);
}

static void test_fault_host_pointer(void **state)
{
    static unsigned plain;
    expect_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, "store", (uintptr_t)&plain);
}

static void test_fault_misaligned(void **state)
{
    expect_sticky(CUDA_ERROR_MISALIGNED_ADDRESS, "store", f.buffer + 2);
}

static void test_fault_trap(void **state)
{
    expect_sticky(CUDA_ERROR_LAUNCH_FAILED, "give_up", 0);
}

static void test_small_overrun_is_silent(void **state)
{
    CUdeviceptr a, b;
    unsigned out;
    ok(cuMemAlloc_v2(&a, 512));
    ok(cuMemAlloc_v2(&b, 512));
    ok(cuMemsetD8_v2(b, 0, 512));
    CUdeviceptr end = a + 512;
    assert_int_equal(end, b);
    void *params[] = {&end};
    ok(launch(function("store"), 1, 1, 0, params));
    ok(cuMemcpyDtoH_v2(&out, b, 4));
    assert_int_equal(out, 7); /* the neighbour was hit */
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(b));
}

static void test_unmapped_page_faults(void **state)
{
    const size_t g = 2 << 20;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr va, last;
    ok(cuMemAddressReserve(&va, 2 * g, 0, 0, 0));
    ok(cuMemCreate(&h, g, &prop, 0));
    ok(cuMemMap(va, g, 0, h, 0));
    ok(cuMemSetAccess(va, g, &access, 1));
    last = va + g - 4;
    void *params[] = {&last};
    ok(launch(function("store"), 1, 1, 0, params));
    ok(cuCtxSynchronize());
    expect_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, "store", va + g);
    ok(cuMemUnmap(va, g));
    ok(cuMemRelease(h));
    ok(cuMemAddressFree(va, 2 * g));
}

/* ---- the end of the process ------------------------------------------------------------------------------------- */

/* A kernel that never ends does not keep the process alive. */
static int leave_spinning(void)
{
    CUdeviceptr p;
    if (use_primary_context(NULL) || setup(NULL))
        return 1;
    p = f.buffer;
    void *params[] = {&p};
    CUfunction fn;
    return cuModuleGetFunction(&fn, f.module, "wait_for") != CUDA_SUCCESS ||
           launch(fn, 1, 1, 0, params) != CUDA_SUCCESS;
}

static void test_exit_is_bounded(void **state)
{
    int status;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", "--spin", NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_int_equal(status, 0);
    assert_true(end.tv_sec - start.tv_sec < 10);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--spin"))
        return leave_spinning();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_module_functions_and_globals, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_module_unload_ends_its_handles, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_load_refuses_what_cannot_run, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_launch_of_an_unsupported_kernel, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_kernel_heap, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_jit_log_names_the_line, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_fatbin_wrapper, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_link, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_link_error_is_logged, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_library_lives_in_every_context, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_function_params, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_function_attributes, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_occupancy, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_launch_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_launch_copies_its_arguments, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_launch_refuses, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_kernel_reaches_host_memory, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_kernels_run_concurrently, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_clock_rate_is_that_of_the_clock, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_fault_illegal_address, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_fault_null, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_fault_host_pointer, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_fault_misaligned, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_fault_trap, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_small_overrun_is_silent, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_unmapped_page_faults, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_exit_is_bounded, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
