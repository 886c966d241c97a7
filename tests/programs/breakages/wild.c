/* wild.c WHAT - situations that a real device seldom gets into, on the stub driver (tests/stub),
 * which can be brought there. Prints what is not as a program may expect; nothing is the answer of
 * a sound tool. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <opsdebug/opsdebug.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 a)\n{\n\tret;\n}\n"
    ".visible .entry other(.param .u64 a)\n{\n\tret;\n}\n"
    ".visible .entry two(.param .u64 a, .param .u64 b)\n{\n\tret;\n}\n"
    ".visible .entry overrun(.param .u64 a, .param .u32 bytes)\n{\n\tret;\n}\n";

static CUcontext context;
static CUmodule module;
static CUfunction kernel;

static int (*stub_count)(const char *);

static void begin(void)
{
    stub_count = (int (*)(const char *))dlsym(RTLD_DEFAULT, "stub_count");
    EXPECT(stub_count && !cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) &&
           !cuCtxSetCurrent(context));
    EXPECT(!cuModuleLoadData(&module, ptx) && !cuModuleGetFunction(&kernel, module, "kernel"));
}

static int launch(CUfunction f, CUdeviceptr a, CUstream stream)
{
    void *arguments[] = {&a};
    return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

/* ---- registered memory ---- */

static void registered(int protection, unsigned flags)
{
    void *page = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED &&
           !cuMemHostRegister(page, 4096, flags | CU_MEMHOSTREGISTER_DEVICEMAP));
    for (int i = 0; i < 3; i++)
        EXPECT(!launch(kernel, (CUdeviceptr)page, NULL) && !cuCtxSynchronize());
    opsdebug_checkpoint("page", page, 16, OPSDEBUG_F32, NULL);
    EXPECT(!cuMemHostUnregister(page));
}

/* Nobody may read what stands for the registers of other hardware, also when asked to. */
static void registers(void)
{
    registered(PROT_NONE, CU_MEMHOSTREGISTER_IOMEMORY);
}

static void read_only(void)
{
    registered(PROT_READ, CU_MEMHOSTREGISTER_READ_ONLY);
}

static void plain(void)
{
    registered(PROT_READ | PROT_WRITE, 0);
}

/* ---- copies of a tool's own that fail ---- */

/* Nobody waits for a stream because of that: it may be waiting for what the program does next. */
static void refused(void)
{
    CUdeviceptr a, b;
    CUstream stream;
    CUfunction two;
    EXPECT(!cuMemAlloc(&a, 4096) && !cuMemAlloc(&b, 4096) &&
           !cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(!cuModuleGetFunction(&two, module, "two"));
    int before = stub_count("cuStreamSynchronize");
    void *arguments[] = {&a, &b};
    for (int i = 0; i < 4; i++)
        EXPECT(!cuLaunchKernel(two, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    EXPECT(stub_count("cuStreamSynchronize") == before);
    EXPECT(!cuStreamSynchronize(stream) && !cuMemFree(a) && !cuMemFree(b));
}

/* ---- managed memory, which host and device cannot use at once ---- */

/* The program knows that the device is idle, and would touch it now. */
#define IDLE() EXPECT(stub_count("running") == 0)

static void managed(void)
{
    CUdeviceptr m, d;
    CUstream stream;
    CUevent event;
    char bytes[64] = {0};
    EXPECT(!cuMemAlloc(&d, 4096) && !cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL));
    EXPECT(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) &&
           !cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 3; i++) {
        EXPECT(!launch(kernel, m, stream) && !launch(kernel, m, NULL));
        EXPECT(!cuEventRecord(event, stream) && !cuEventSynchronize(event));
        IDLE();
        EXPECT(!launch(kernel, d, stream) && !cuCtxSynchronize());
        IDLE();
        EXPECT(!cuMemcpyHtoD(d, bytes, sizeof bytes));
        IDLE();
        EXPECT(!launch(kernel, d, NULL) && !cuMemcpyHtoD(d, bytes, sizeof bytes));
        IDLE();
    }
    EXPECT(!launch(kernel, m, stream) && !cuEventSynchronize(event));
    EXPECT(!cuStreamDestroy(stream));
    IDLE();
    EXPECT(!cuMemFree(m));
    IDLE();
    EXPECT(!cuMemFree(d));
    IDLE();
}

/* Reserved for the host, which works with it while kernels run: they were given the address, and do
 * not use it. */
static void reserved(void)
{
    CUdeviceptr hosts, later;
    CUstream stream, other;
    EXPECT(!cuMemAllocManaged(&hosts, 4096, CU_MEM_ATTACH_HOST) &&
           !cuMemAllocManaged(&later, 4096, CU_MEM_ATTACH_GLOBAL));
    EXPECT(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) &&
           !cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    EXPECT(!cuStreamAttachMemAsync(stream, later, 0, CU_MEM_ATTACH_SINGLE) &&
           !cuStreamSynchronize(stream));
    EXPECT(!mprotect((void *)hosts, 4096, PROT_NONE) && !mprotect((void *)later, 4096, PROT_NONE));
    for (int i = 0; i < 3; i++)
        EXPECT(!launch(kernel, hosts, stream) && !launch(kernel, later, other) &&
               !cuCtxSynchronize());
    EXPECT(!mprotect((void *)hosts, 4096, PROT_READ | PROT_WRITE) &&
           !mprotect((void *)later, 4096, PROT_READ | PROT_WRITE));
    EXPECT(!launch(kernel, later, stream) && !cuCtxSynchronize());
    EXPECT(!cuMemFree(hosts) && !cuMemFree(later));
}

/* What is wrong is found all the same. This driver knows the kernel by its name. */
static void overrun(void)
{
    CUdeviceptr m, d, end;
    CUfunction f;
    unsigned bytes = 4;
    void *arguments[] = {&end, &bytes};
    EXPECT(!cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL) && !cuMemAlloc(&d, 1000));
    EXPECT(!cuModuleGetFunction(&f, module, "overrun"));
    end = d + 1000;
    EXPECT(!cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) && !cuCtxSynchronize());
    EXPECT(!cuMemFree(d) && !cuMemFree(m));
}

/* ---- handles that come again ---- */

static CUfunction found;
static CUdeviceptr kept;

static void load(void)
{
    CUmodule again;
    EXPECT(!cuCtxSetCurrent(context) && !cuModuleLoadData(&again, ptx) && again == module);
    EXPECT(!cuModuleGetFunction(&found, again, "other"));
}

static void (**meanwhile(void))(void)
{
    void (**there)(void) = (void (**)(void))dlsym(RTLD_DEFAULT, "stub_meanwhile");
    EXPECT(there);
    return there;
}

static void modules(void)
{
    CUdeviceptr d;
    EXPECT(!cuMemAlloc(&d, 4096));
    *meanwhile() = load;
    EXPECT(!cuModuleUnload(module) && found);
    EXPECT(!launch(found, d, NULL) && !cuCtxSynchronize());
}

/* The driver refuses: all is as before. */
static void kept_modules(void)
{
    CUdeviceptr d;
    EXPECT(!cuMemAlloc(&d, 4096));
    EXPECT(cuModuleUnload(module) == CUDA_ERROR_NOT_PERMITTED);
    EXPECT(!launch(kernel, d, NULL) && !cuCtxSynchronize());
}

static void create(void)
{
    CUcontext fresh;
#if CUDA_VERSION >= 13000
    CUresult (*make)(CUcontext *, unsigned, CUdevice) =
        (CUresult(*)(CUcontext *, unsigned, CUdevice))dlsym(RTLD_DEFAULT, "cuCtxCreate_v2");
    EXPECT(make && !make(&fresh, 0, 0));
#else
    EXPECT(!cuCtxCreate(&fresh, 0, 0));
#endif
    EXPECT(fresh == context && !cuMemAlloc(&kept, 1000));
}

/* Memory of the new context is given back as any other is, though what the program has is not the
 * driver's pointer. */
static void contexts(void)
{
    *meanwhile() = create;
    EXPECT(!cuCtxDestroy(context) && kept);
    *meanwhile() = NULL;
    EXPECT(!cuCtxSetCurrent(context) && !cuMemFree(kept));
}

/* ---- captures that end in other ways than they should ---- */

/* With a quarantine the second free is refused; without one this driver would be ruined by it. */
static void twice(void)
{
    CUdeviceptr d;
    EXPECT(!cuMemAlloc(&d, 4096) && !cuMemFree(d));
    EXPECT(cuMemFree(d) == CUDA_ERROR_INVALID_VALUE);
}

static void captures(void)
{
    CUstream stream, other;
    CUgraph graph;
    EXPECT(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) &&
           !cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    twice();
    /* An end without a beginning, and an end at the wrong stream, or that is refused: then it goes
     * on. */
    EXPECT(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
    EXPECT(!cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(cuStreamEndCapture(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    EXPECT(cuStreamEndCapture(stream, NULL) == CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 70; i++)
        EXPECT(!launch(kernel, 0, stream));
    EXPECT(!cuStreamEndCapture(stream, &graph)); /* nothing of anybody's got in */
    twice();
    EXPECT(!cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    twice();
    EXPECT(!cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) &&
           !cuStreamDestroy(stream));
    twice();
    EXPECT(!cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL) && !cuCtxDestroy(context));
    EXPECT(!cuCtxSetCurrent(context));
    cuStreamEndCapture(other, &graph);
    twice();
}

/* ---- what the driver refuses without looking at it ---- */

static void garbage(void)
{
    void *const bad = (void *)(uintptr_t)16;
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = bad,
                             .numAttrs = 3};
    EXPECT(cuLaunchKernelEx(&config, NULL, bad, NULL) == CUDA_ERROR_INVALID_HANDLE);
    EXPECT(!cuCtxSetCurrent(NULL));
    EXPECT(cuLaunchKernelEx(bad, bad, bad, bad) == CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- a child of a process that is just about to make its first call ---- */

static void *first_call(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)cuInit(0);
}

static void first_fork(void)
{
    pthread_t thread;
    int status = -1;
    EXPECT(!pthread_create(&thread, NULL, first_call, NULL));
    usleep(200000); /* it is in there for longer, see tests/stub/slow_disk.c */
    pid_t child = fork();
    if (!child) {
        alarm(20);
        begin();
        _exit(launch(kernel, 0, NULL) || cuCtxSynchronize() ? 3 : 4);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
    EXPECT(!pthread_join(thread, NULL));
    begin();
    EXPECT(!launch(kernel, 0, NULL) && !cuCtxSynchronize());
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(void);
    } all[] = {
        {"registers", registers},       {"read-only", read_only}, {"plain", plain},
        {"managed", managed},           {"reserved", reserved},   {"modules", modules},
        {"contexts", contexts},         {"captures", captures},   {"fork", first_fork},
        {"kept-modules", kept_modules}, {"overrun", overrun},     {"garbage", garbage},
        {"refused", refused},
    };
    for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            if (all[i].act != first_fork)
                begin();
            all[i].act();
            return 0;
        }
    return 2;
}
