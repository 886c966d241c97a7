/* probe.c - the program that the shim's tests watch: probe ROUTE ACTION [ARGUMENT].
 *
 * ROUTE is how it gets the driver's functions: direct (bound by the loader; only in probe_direct), dlsym, dlvsym, proc
 * (cuGetProcAddress_v2, itself through dlsym). ACTION is one of the functions below. Exit 0: all as a program may
 * expect.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                                                   \
    X(cuInit, cuInit, 2000)                                                                                            \
    X(cuCtxCreate_v2, cuCtxCreate, 3020)                                                                               \
    X(cuCtxDestroy_v2, cuCtxDestroy, 4000)                                                                             \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                                                          \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000)                                                                        \
    X(cuMemAlloc_v2, cuMemAlloc, 3020)                                                                                 \
    X(cuMemFree_v2, cuMemFree, 3020)                                                                                   \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020)                                                                             \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020)                                                                             \
    X(cuMemcpy2D_v2, cuMemcpy2D, 3020)                                                                                 \
    X(cuModuleLoadData, cuModuleLoadData, 2000)                                                                        \
    X(cuModuleUnload, cuModuleUnload, 2000)                                                                            \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000)                                                                  \
    X(cuLaunchKernel, cuLaunchKernel, 4000)                                                                            \
    X(cuLaunchKernelEx, cuLaunchKernelEx, 11060)                                                                       \
    X(cuStreamCreate, cuStreamCreate, 2000)                                                                            \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000)                                                                       \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000)                                                                  \
    X(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010)                                                            \
    X(cuStreamEndCapture, cuStreamEndCapture, 10000)                                                                   \
    X(cuMemGetInfo_v2, cuMemGetInfo, 3020)                                                                             \
    X(cuMemsetD32Async, cuMemsetD32Async, 3020)                                                                        \
    X(cuEventCreate, cuEventCreate, 2000)                                                                              \
    X(cuEventDestroy_v2, cuEventDestroy, 4000)                                                                         \
    X(cuEventRecord, cuEventRecord, 2000)

static struct {
#define MEMBER(symbol, name, since) __typeof__(&symbol) symbol;
    FUNCTIONS(MEMBER)
} api;

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "probe: line %d: %s\n", __LINE__, #condition);                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void *driver_handle(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    MUST(handle);
    return handle;
}

static void route_direct(void)
{
#ifdef PROBE_DIRECT
#define DIRECT(symbol, name, since) api.symbol = &symbol;
    FUNCTIONS(DIRECT)
#else
    MUST(!"this probe is not linked with the driver");
#endif
}

static void route_dlsym(void)
{
    void *handle = driver_handle();
#define LOOK_UP(symbol, name, since) api.symbol = (__typeof__(&symbol))dlsym(handle, #symbol);
    FUNCTIONS(LOOK_UP)
    MUST(api.cuInit && api.cuLaunchKernel);
}

typedef CUresult proc_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void route_proc(void)
{
    void *handle = driver_handle(), *found = NULL;
    proc_v2 *get = (proc_v2 *)dlsym(handle, "cuGetProcAddress_v2");
    if (!get) { /* a driver before 12.0: the first form does */
        __typeof__(&cuGetProcAddress) old = (__typeof__(&cuGetProcAddress))dlsym(handle, "cuGetProcAddress");
        MUST(old);
#define OLD(symbol, name, since)                                                                                       \
    MUST(old(#name, &found, since, 0) == CUDA_SUCCESS || !strcmp(#name, "cuLaunchKernelEx"));                          \
    api.symbol = (__typeof__(&symbol))found;
        FUNCTIONS(OLD)
        return;
    }
    /* As cudart does: it asks for the resolver itself and uses that from then on. NULL status must be fine. */
    MUST(get("", &found, 2000, 0, NULL) != CUDA_SUCCESS);
    MUST(get("cuGetProcAddress", &found, 12000, 0, NULL) == CUDA_SUCCESS && found == (void *)get);
    get = (proc_v2 *)found;
#define PROC(symbol, name, since)                                                                                      \
    MUST(get(#name, &found, 13000, 0, NULL) == CUDA_SUCCESS || get(#name, &found, since, 0, NULL) == CUDA_SUCCESS);    \
    if (get(#name, &found, since, 0, NULL) == CUDA_SUCCESS)                                                            \
        api.symbol = (__typeof__(&symbol))found;
    FUNCTIONS(PROC)
}

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry noop(.param .u64 a)\n{\n\tret;\n}\n"
    ".visible .entry overrun(.param .u64 at, .param .u32 bytes)\n{\n"
    "\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
    "\tld.param.u64 %rd1, [at];\n\tld.param.u32 %r1, [bytes];\n\tmov.u32 %r2, 0;\n\tmov.u32 %r3, 90;\n"
    "LOOP:\n\tsetp.ge.u32 %p1, %r2, %r1;\n\t@%p1 bra DONE;\n\tcvt.u64.u32 %rd2, %r2;\n"
    "\tadd.u64 %rd3, %rd1, %rd2;\n\tst.global.u8 [%rd3], %r3;\n\tadd.u32 %r2, %r2, 1;\n\tbra.uni LOOP;\n"
    "DONE:\n\tret;\n}\n"
    ".visible .entry set_words(.param .u64 at, .param .u32 step, .param .u32 value)\n{\n"
    "\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<4>;\n"
    "\tld.param.u64 %rd1, [at];\n\tld.param.u32 %r1, [step];\n\tld.param.u32 %r2, [value];\n"
    "\tmov.u32 %r3, %ctaid.x;\n\tmul.wide.u32 %rd2, %r3, %r1;\n\tadd.u64 %rd3, %rd1, %rd2;\n"
    "\tst.global.u32 [%rd3], %r2;\n\tret;\n}\n";

static CUcontext context;
static CUfunction noop, overrun, set_words;
static CUmodule module;

static void begin(void)
{
    MUST(api.cuInit(0) == CUDA_SUCCESS);
    MUST(api.cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    MUST(api.cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    MUST(api.cuModuleGetFunction(&noop, module, "noop") == CUDA_SUCCESS);
    MUST(api.cuModuleGetFunction(&overrun, module, "overrun") == CUDA_SUCCESS);
    MUST(api.cuModuleGetFunction(&set_words, module, "set_words") == CUDA_SUCCESS);
}

static CUresult launch_noop(CUdeviceptr argument, CUstream stream)
{
    void *params[] = {&argument};
    return api.cuLaunchKernel(noop, 2, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static void work(unsigned launches)
{
    CUdeviceptr a;
    unsigned char bytes[1000], back[1000];
    memset(bytes, 7, sizeof bytes);
    MUST(api.cuMemAlloc_v2(&a, sizeof bytes) == CUDA_SUCCESS && a % 256 == 0);
    MUST(api.cuMemcpyHtoD_v2(a, bytes, sizeof bytes) == CUDA_SUCCESS);
    for (unsigned i = 0; i < launches; i++)
        MUST(launch_noop(a, NULL) == CUDA_SUCCESS);
    MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
    MUST(api.cuMemcpyDtoH_v2(back, a, sizeof back) == CUDA_SUCCESS && memcmp(bytes, back, sizeof back) == 0);
    MUST(api.cuMemFree_v2(a) == CUDA_SUCCESS);
}

static void act_work(const char *argument)
{
    begin();
    work(argument ? (unsigned)atoi(argument) : 3);
}

/* Writes `argument` bytes behind the end of an allocation of 1000. */
static void act_overrun(const char *argument)
{
    CUdeviceptr a;
    begin();
    MUST(api.cuMemAlloc_v2(&a, 1000) == CUDA_SUCCESS);
    MUST(launch_noop(a, NULL) == CUDA_SUCCESS);
    MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
    CUdeviceptr at = a + 1000;
    unsigned bytes = argument ? (unsigned)atoi(argument) : 4;
    void *params[] = {&at, &bytes};
    MUST(api.cuLaunchKernel(overrun, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS);
    MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
    MUST(api.cuMemFree_v2(a) == CUDA_SUCCESS);
}

/* A launch puts one value at every 64th of 65536 words that held numbers before. What numbers and value: by name. */
static void act_numbers(const char *argument)
{
    enum { WORDS = 65536 };
    static const struct {
        const char *name;
        uint32_t value, integers, at_start;
    } cases[] = {
        {"nan", 0x7fffffff, 0, 0},    {"inf", 0xff800000, 0, 0},      {"large", 0x7effffff, 0, 0},
        {"finite", 0x40490fdb, 0, 0}, {"integers", 0x7fffffff, 1, 0}, {"before", 0x7fffffff, 0, 0x7fffffff},
    };
    static uint32_t words[WORDS];
    CUdeviceptr a;
    begin();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (strcmp(cases[c].name, argument) != 0)
            continue;
        for (uint32_t i = 0; i < WORDS; i++) {
            float number = (float)i * 0.37f + 1.0f;
            memcpy(&words[i], &number, 4);
            if (cases[c].integers)
                words[i] = i;
        }
        if (cases[c].at_start)
            words[0] = cases[c].at_start;
        uint32_t step = 256, value = cases[c].value;
        MUST(api.cuMemAlloc_v2(&a, sizeof words) == CUDA_SUCCESS);
        MUST(api.cuMemcpyHtoD_v2(a, words, sizeof words) == CUDA_SUCCESS);
        void *params[] = {&a, &step, &value};
        MUST(launch_noop(a, NULL) == CUDA_SUCCESS);
        MUST(api.cuLaunchKernel(set_words, WORDS / 64, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS);
        MUST(launch_noop(a, NULL) == CUDA_SUCCESS);
        MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
        MUST(api.cuMemFree_v2(a) == CUDA_SUCCESS);
    }
}

/* What new memory holds, and that a program which writes before it reads gets what it wrote. Exit 3: not all zeros. */
static void act_fresh(const char *argument)
{
    unsigned char bytes[1003], back[1003];
    CUdeviceptr a;
    begin();
    MUST(api.cuMemAlloc_v2(&a, sizeof back) == CUDA_SUCCESS);
    MUST(api.cuMemcpyDtoH_v2(back, a, sizeof back) == CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    uint32_t first;
    memcpy(&first, back, sizeof first);
    bool poisoned = first == (uint32_t)strtoul(argument, NULL, 16);
    for (size_t i = 4; i < sizeof back; i++)
        MUST(!poisoned || back[i] == back[i % 4]);
    MUST(api.cuMemcpyHtoD_v2(a, bytes, sizeof bytes) == CUDA_SUCCESS);
    MUST(api.cuMemcpyDtoH_v2(back, a, sizeof back) == CUDA_SUCCESS && memcmp(back, bytes, sizeof back) == 0);
    MUST(api.cuMemFree_v2(a) == CUDA_SUCCESS);
    exit(poisoned ? 3 : 0);
}

/* A set or a copy, and no launch, writes behind the end of an allocation of 1000. ARGUMENT: what, and what comes then.
 */
static void act_overset(const char *argument)
{
    CUdeviceptr a;
    begin();
    MUST(api.cuMemAlloc_v2(&a, 1000) == CUDA_SUCCESS);
    MUST(launch_noop(a, NULL) == CUDA_SUCCESS);
    MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
    if (strncmp(argument, "set", 3) == 0)
        MUST(api.cuMemsetD32Async(a, 0, 251, NULL) == CUDA_SUCCESS);
    else if (strncmp(argument, "copy", 4) == 0)
        MUST(api.cuMemcpyHtoD_v2(a + 1000, "abcd", 4) == CUDA_SUCCESS);
    else
        MUST(api.cuMemsetD32Async(a, 0, 250, NULL) == CUDA_SUCCESS); /* just to the end */
    const char *then = strchr(argument, '-');
    if (strcmp(then, "-sync") == 0)
        MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
    if (strcmp(then, "-free") == 0)
        MUST(api.cuMemFree_v2(a) == CUDA_SUCCESS);
}

/* 100 launches, each between two events. ARGUMENT: timing (a pair each), fence (no timing), marker (one event only). */
static void act_events(const char *argument)
{
    CUdeviceptr a;
    CUevent begins, ends;
    unsigned flags = strcmp(argument, "fence") == 0 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT;
    begin();
    MUST(api.cuMemAlloc_v2(&a, 1000) == CUDA_SUCCESS);
    MUST(api.cuEventCreate(&begins, flags) == CUDA_SUCCESS && api.cuEventCreate(&ends, flags) == CUDA_SUCCESS);
    for (int i = 0; i < 100; i++) {
        MUST(api.cuEventRecord(begins, NULL) == CUDA_SUCCESS);
        MUST(launch_noop(a, NULL) == CUDA_SUCCESS);
        if (strcmp(argument, "marker") != 0)
            MUST(api.cuEventRecord(ends, NULL) == CUDA_SUCCESS);
    }
    MUST(api.cuCtxSynchronize() == CUDA_SUCCESS);
}

/* So many launches, with an allocation that lives as long and one that lives for a thousand of them. */
static void act_steady(const char *argument)
{
    CUdeviceptr a, b = 0;
    int launches = atoi(argument);
    begin();
    MUST(api.cuMemAlloc_v2(&a, 1000) == CUDA_SUCCESS);
    for (int i = 0; i < launches; i++) {
        if (i % 1000 == 0)
            MUST(api.cuMemAlloc_v2(&b, 2000) == CUDA_SUCCESS);
        MUST(launch_noop(i & 1 ? a : b, NULL) == CUDA_SUCCESS);
        if (i % 1000 == 999)
            MUST(api.cuCtxSynchronize() == CUDA_SUCCESS && api.cuMemFree_v2(b) == CUDA_SUCCESS);
    }
}

/* What a driver refuses must be refused, and must not be read. */
static void act_garbage(const char *argument)
{
    CUdeviceptr a;
    CUfunction f;
    begin();
    void *bad = (void *)(uintptr_t)16;
    MUST(api.cuMemAlloc_v2(NULL, 16) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuMemAlloc_v2(&a, 0) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, bad, bad) == CUDA_ERROR_INVALID_HANDLE);
    MUST(api.cuLaunchKernel(noop, 0, 1, 1, 1, 1, 1, 0, NULL, bad, NULL) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuLaunchKernelEx(NULL, noop, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuMemcpy2D_v2(NULL) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuModuleGetFunction(&f, module, NULL) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuMemFree_v2(12345) == CUDA_ERROR_INVALID_VALUE);
    work(1);
}

static void *thread_main(void *argument)
{
    unsigned rounds = (unsigned)(uintptr_t)argument;
    MUST(api.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    for (unsigned i = 0; i < rounds; i++)
        work(2);
    return NULL;
}

static void act_threads(const char *argument)
{
    pthread_t threads[16];
    begin();
    for (int i = 0; i < 16; i++)
        MUST(pthread_create(&threads[i], NULL, thread_main, (void *)(uintptr_t)atoi(argument)) == 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
}

static void *first_thread(void *unused)
{
    CUcontext own;
    MUST(api.cuInit(0) == CUDA_SUCCESS && api.cuCtxCreate_v2(&own, 0, 0) == CUDA_SUCCESS);
    return NULL;
}

/* "THREADS LAUNCHES": each thread launches so often; the i-th argument is the i-th byte of its own buffer. */
static void *crowd_thread(void *argument)
{
    unsigned launches = *(unsigned *)argument;
    CUdeviceptr a, b;
    MUST(api.cuCtxSetCurrent(context) == CUDA_SUCCESS && api.cuMemAlloc_v2(&a, launches) == CUDA_SUCCESS);
    for (unsigned i = 0; i < launches; i++) {
        MUST(launch_noop(a + i, NULL) == CUDA_SUCCESS);
        if (i % 256 == 255)
            MUST(api.cuMemAlloc_v2(&b, 512) == CUDA_SUCCESS && api.cuMemFree_v2(b) == CUDA_SUCCESS);
    }
    return NULL;
}

static void act_crowd(const char *argument)
{
    pthread_t threads[64];
    unsigned count, launches;
    MUST(sscanf(argument, "%u %u", &count, &launches) == 2 && count <= 64);
    begin();
    for (unsigned i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], NULL, crowd_thread, &launches) == 0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Many threads make the process's first calls at once. */
static void act_start_race(const char *argument)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        MUST(pthread_create(&threads[i], NULL, first_thread, NULL) == 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    begin();
    work(1);
}

static void act_fork_after(const char *argument)
{
    begin();
    work(3);
    pid_t child = fork();
    if (child == 0) { /* CUDA does not work here; the calls must only not harm */
        CUdeviceptr a;
        api.cuMemAlloc_v2(&a, 16);
        exit(5);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    work(3);
}

static void act_clone_after(const char *argument)
{
    begin();
    work(3);
    /* No atfork handler runs for this one, but the exit handlers do. */
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        exit(5);
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    work(3);
}

static void act_fork_before(const char *argument)
{
    pid_t child = fork();
    if (child == 0) {
        begin();
        work(2);
        exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    begin();
    work(3);
}

static char **arguments;

static void act_exec(const char *argument)
{
    begin();
    work(3);
    if (!argument || strcmp(argument, "again") != 0) {
        char *next[] = {arguments[0], arguments[1], "exec", "again", NULL};
        execv("/proc/self/exe", next);
        MUST(!"exec");
    }
}

static void act_kill(const char *argument)
{
    begin();
    for (unsigned i = 0;; i++) {
        work(50);
        if (i == 2)
            raise(SIGKILL);
    }
}

static void act_abort(const char *argument)
{
    begin();
    work(5);
    abort();
}

static void act_quick(const char *argument)
{
    begin();
    work(5);
    _exit(0);
}

/* Files may not grow: the capture cannot be made, or not go on. The program must not notice. */
static void act_limit(const char *argument)
{
    struct rlimit limit = {(rlim_t)atol(argument), (rlim_t)atol(argument)};
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    begin();
    for (int i = 0; i < 40; i++)
        work(200);
}

static void act_capture(const char *argument)
{
    CUstream stream;
    CUgraph graph;
    CUdeviceptr a;
    begin();
    MUST(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    MUST(api.cuMemAlloc_v2(&a, 4096) == CUDA_SUCCESS);
    for (int i = 0; i < 70; i++)
        MUST(launch_noop(a, stream) == CUDA_SUCCESS);
    MUST(api.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    for (int i = 0; i < 70; i++)
        MUST(launch_noop(a, stream) == CUDA_SUCCESS);
    MUST(api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS); /* invalidated if anything of ours got in */
    MUST(launch_noop(a, stream) == CUDA_SUCCESS);
    MUST(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
}

#define GRAPH_FUNCTIONS(X)                                                                                             \
    X(cuGraphCreate)                                                                                                   \
    X(cuGraphAddKernelNode_v2)                                                                                         \
    X(cuGraphAddChildGraphNode)                                                                                        \
    X(cuGraphInstantiateWithFlags)                                                                                     \
    X(cuGraphExecKernelNodeSetParams_v2)                                                                               \
    X(cuGraphExecChildGraphNodeSetParams)                                                                              \
    X(cuGraphExecUpdate_v2)                                                                                            \
    X(cuGraphNodeSetEnabled)                                                                                           \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphDestroy)
static struct {
#define GRAPH_MEMBER(symbol) __typeof__(&symbol) symbol;
    GRAPH_FUNCTIONS(GRAPH_MEMBER)
} graphs;

static CUstream graph_stream;
static CUdeviceptr graph_memory; /* 4096 bytes, 0 */

static void begin_graph(void)
{
    void *handle = driver_handle();
#define GRAPH_LOOK_UP(symbol) MUST((graphs.symbol = (__typeof__(&symbol))dlsym(handle, #symbol)));
    GRAPH_FUNCTIONS(GRAPH_LOOK_UP)
    unsigned char zeros[4096] = {0};
    begin();
    MUST(api.cuStreamCreate(&graph_stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    MUST(api.cuMemAlloc_v2(&graph_memory, 4096) == CUDA_SUCCESS);
    MUST(api.cuMemcpyHtoD_v2(graph_memory, zeros, sizeof zeros) == CUDA_SUCCESS);
}

/* A kernel that sets eight words from word `at` of the memory on. `params` has to live as long as the parameters are
 * used. */
static CUDA_KERNEL_NODE_PARAMS setter(void *params[3], CUdeviceptr *at, unsigned *step, unsigned *value)
{
    params[0] = at;
    params[1] = step;
    params[2] = value;
    return (CUDA_KERNEL_NODE_PARAMS){.func = set_words,
                                     .gridDimX = 8,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static CUgraphNode add_setter(CUgraph graph, const CUgraphNode *after, size_t count, unsigned word, unsigned value)
{
    CUdeviceptr at = graph_memory + 4 * word;
    unsigned step = 4;
    void *params[3];
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS p = setter(params, &at, &step, &value);
    MUST(graphs.cuGraphAddKernelNode_v2(&node, graph, after, count, &p) == CUDA_SUCCESS);
    return node;
}

static void change_setter(CUgraphExec exec, CUgraphNode node, unsigned word, unsigned value)
{
    CUdeviceptr at = graph_memory + 4 * word;
    unsigned step = 4;
    void *params[3];
    CUDA_KERNEL_NODE_PARAMS p = setter(params, &at, &step, &value);
    MUST(graphs.cuGraphExecKernelNodeSetParams_v2(exec, node, &p) == CUDA_SUCCESS);
}

static void launch_graph(CUgraphExec exec)
{
    MUST(graphs.cuGraphLaunch(exec, graph_stream) == CUDA_SUCCESS);
    MUST(api.cuStreamSynchronize(graph_stream) == CUDA_SUCCESS);
}

static void word_is(unsigned word, unsigned value)
{
    unsigned got;
    MUST(api.cuMemcpyDtoH_v2(&got, graph_memory + 4 * word, sizeof got) == CUDA_SUCCESS);
    MUST(got == value);
}

/* Two kernels that write apart, and a third behind both, as a graph that is launched `argument` times, changed in one
 * node, and launched once more. */
static void act_graph(const char *argument)
{
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[3];
    begin_graph();
    MUST(graphs.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        nodes[i] = add_setter(graph, nodes, i == 2 ? 2 : 0, 256 * i, 10 * i);
    MUST(graphs.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    for (int i = 0; i < atoi(argument); i++)
        MUST(graphs.cuGraphLaunch(exec, graph_stream) == CUDA_SUCCESS);
    change_setter(exec, nodes[1], 256, 99);
    launch_graph(exec);
    word_is(0, 0);
    word_is(256 + 7, 99);
    word_is(512, 20);
    MUST(graphs.cuGraphLaunch(NULL, graph_stream) != CUDA_SUCCESS && graphs.cuGraphExecDestroy(NULL) != CUDA_SUCCESS);
    CUgraphExec none;
    MUST(graphs.cuGraphInstantiateWithFlags(&none, NULL, 0) != CUDA_SUCCESS);
    MUST(graphs.cuGraphExecDestroy(exec) == CUDA_SUCCESS && graphs.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

static CUgraph child_of(unsigned first, unsigned second)
{
    CUgraph child;
    MUST(graphs.cuGraphCreate(&child, 0) == CUDA_SUCCESS);
    CUgraphNode node = add_setter(child, NULL, 0, 100, first);
    add_setter(child, &node, 1, 200, second);
    return child;
}

/* A kernel, a child graph of two, a kernel. The child is changed as a whole, then the graph, then a node by the handle
 * that it had at first, then one is switched off. */
static void act_graph_child(const char *argument)
{
    CUgraph graph, again;
    CUgraphExec exec;
    CUgraphNode first, inner, last;
    CUgraphExecUpdateResultInfo info;
    begin_graph();
    CUgraph child = child_of(1, 2), other = child_of(3, 4);
    CUgraph *const both[] = {&graph, &again};
    for (int i = 1; i >= 0; i--) {
        MUST(graphs.cuGraphCreate(both[i], 0) == CUDA_SUCCESS);
        first = add_setter(*both[i], NULL, 0, 0, 10 + (unsigned)i);
        MUST(graphs.cuGraphAddChildGraphNode(&inner, *both[i], &first, 1, child) == CUDA_SUCCESS);
        last = add_setter(*both[i], &inner, 1, 300, 30 + (unsigned)i);
    }
    MUST(graphs.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    launch_graph(exec);
    word_is(200, 2);
    MUST(graphs.cuGraphExecChildGraphNodeSetParams(exec, inner, other) == CUDA_SUCCESS);
    launch_graph(exec);
    word_is(200, 4);
    MUST(graphs.cuGraphExecUpdate_v2(exec, again, &info) == CUDA_SUCCESS);
    launch_graph(exec);
    word_is(200, 2);
    word_is(300, 31);
    change_setter(exec, last, 300, 77);
    MUST(graphs.cuGraphNodeSetEnabled(exec, first, 0) == CUDA_SUCCESS);
    launch_graph(exec);
    word_is(300, 77);
    MUST(graphs.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
}

/* With STUB_FAULT_AFTER: the device dies in the middle. */
static void act_fault(const char *argument)
{
    const CUresult expected = argument ? (CUresult)atoi(argument) : CUDA_ERROR_ILLEGAL_ADDRESS;
    CUdeviceptr a;
    begin();
    MUST(api.cuMemAlloc_v2(&a, 4096) == CUDA_SUCCESS);
    int failed = 0;
    for (int i = 0; i < 10; i++)
        failed += launch_noop(a, NULL) == expected;
    MUST(failed == 5);
    MUST(api.cuCtxSynchronize() == expected);
}

static void act_memory_info(const char *argument)
{
    size_t before, after, total;
    CUdeviceptr a[64];
    begin();
    MUST(api.cuMemGetInfo_v2(&before, &total) == CUDA_SUCCESS && before <= total);
    for (int i = 0; i < 64; i++)
        MUST(api.cuMemAlloc_v2(&a[i], 1 << 20) == CUDA_SUCCESS);
    MUST(api.cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS && after <= total);
    for (int i = 0; i < 64; i++)
        MUST(api.cuMemFree_v2(a[i]) == CUDA_SUCCESS);
}

/* With a quarantine (without one this stub would crash, and a driver might): the second free is refused, and the memory
 * of the first is not handed out again. */
static void act_double_free(const char *argument)
{
    CUdeviceptr a, b;
    begin();
    MUST(api.cuMemAlloc_v2(&a, 4096) == CUDA_SUCCESS && api.cuMemFree_v2(a) == CUDA_SUCCESS);
    MUST(api.cuMemFree_v2(a) == CUDA_ERROR_INVALID_VALUE);
    MUST(api.cuMemAlloc_v2(&b, 4096) == CUDA_SUCCESS && b != a);
    MUST(api.cuMemFree_v2(b) == CUDA_SUCCESS);
}

/* No CUDA at all: look-ups mean what they mean without us. */
static void act_plain(const char *argument)
{
    MUST(dlsym(RTLD_DEFAULT, "printf") && dlsym(RTLD_NEXT, "printf"));
    MUST(!dlsym(RTLD_DEFAULT, "cuNoSuchThing") && dlerror());
    MUST(!dlsym(RTLD_DEFAULT, "cuInit") && dlerror()); /* no driver is loaded */
    MUST(dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5") && dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
    MUST(!dlvsym(RTLD_DEFAULT, "printf", "GLIBC_9.9") && dlerror());
}

/* "Is CUDA in this process's own scope?": yes when it is linked, no when the driver was opened on the side. */
static void act_scope(const char *argument)
{
    bool linked = strcmp(argument, "linked") == 0;
    void *program = dlopen(NULL, RTLD_NOW), *driver = driver_handle();
    MUST(program && driver && dlsym(driver, "cuMemAlloc_v2"));
    MUST((dlsym(program, "cuMemAlloc_v2") != NULL) == linked);
    MUST(linked || !dlvsym(program, "cuMemAlloc_v2", "NOSUCH"));
    begin();
    MUST((dlsym(program, "cuMemAlloc_v2") != NULL) == linked);
}

/* A library that has a function of a driver's name gets its own. */
static void act_namesake(const char *argument)
{
    void *library = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    int (*own)(void) = (int (*)(void))dlsym(library, "cuMemAlloc_v2");
    MUST(own && own() == 4711);
    int (*next)(void) = (int (*)(void))dlsym(library, "namesake_next");
    MUST(next && next() == 1); /* RTLD_NEXT from inside it means behind it */
}

static void act_newer(const char *argument)
{
    void *handle = driver_handle(), *found = NULL, *known = NULL, *per_thread = NULL;
    proc_v2 *get = (proc_v2 *)dlsym(handle, "cuGetProcAddress_v2");
    begin();
    MUST(get("cuMemAlloc", &known, 13000, 0, NULL) == CUDA_SUCCESS && known == (void *)api.cuMemAlloc_v2);
    MUST(get("cuMemAlloc", &found, 99000, 0, NULL) == CUDA_SUCCESS && found != known);
    MUST(((__typeof__(&cuMemAlloc_v2))found)(NULL, 1) == CUDA_ERROR_NOT_SUPPORTED);
    MUST(get("cuMemcpyHtoD", &per_thread, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL) == CUDA_SUCCESS);
    MUST(per_thread != (void *)api.cuMemcpyHtoD_v2);
    CUdeviceptr a;
    MUST(api.cuMemAlloc_v2(&a, 16) == CUDA_SUCCESS);
    MUST(((__typeof__(&cuMemcpyHtoD_v2))per_thread)(a, "0123456789abcde", 16) == CUDA_SUCCESS);
    get("cuFutureThing", &found, 99000, 0, NULL);
}

/* With STUB_HANDLES: another thread gets a handle before the call has returned that destroys what had it; the program
 * goes on with that one. And one that never was a stream. */
static void act_handles(const char *argument)
{
    CUstream stream, other;
    CUevent event;
    CUdeviceptr a;
    begin();
    MUST(api.cuMemAlloc_v2(&a, 64) == CUDA_SUCCESS);
    MUST(api.cuStreamCreate(&other, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
    MUST(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    MUST(api.cuEventDestroy_v2(event) == CUDA_SUCCESS);
    MUST(api.cuEventRecord(event, other) == CUDA_SUCCESS);
    MUST(api.cuStreamCreate(&stream, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
    MUST(api.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
    MUST(api.cuMemsetD32Async(a, 1, 4, stream) == CUDA_SUCCESS);
    MUST(api.cuMemsetD32Async(a, 1, 4, (CUstream)((char *)other + 30 * sizeof(int))) == CUDA_ERROR_INVALID_HANDLE);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(const char *argument);
    } actions[] = {
        {"work", act_work},
        {"overrun", act_overrun},
        {"garbage", act_garbage},
        {"threads", act_threads},
        {"crowd", act_crowd},
        {"start-race", act_start_race},
        {"fork-after", act_fork_after},
        {"clone-after", act_clone_after},
        {"fork-before", act_fork_before},
        {"exec", act_exec},
        {"kill", act_kill},
        {"abort", act_abort},
        {"quick", act_quick},
        {"limit", act_limit},
        {"capture", act_capture},
        {"graph", act_graph},
        {"graph-child", act_graph_child},
        {"fault", act_fault},
        {"memory-info", act_memory_info},
        {"plain", act_plain},
        {"scope", act_scope},
        {"namesake", act_namesake},
        {"newer", act_newer},
        {"double-free", act_double_free},
        {"numbers", act_numbers},
        {"fresh", act_fresh},
        {"overset", act_overset},
        {"events", act_events},
        {"steady", act_steady},
        {"handles", act_handles},
    };
    MUST(argc >= 3);
    arguments = argv;
    if (strcmp(argv[1], "direct") == 0)
        route_direct();
    else if (strcmp(argv[1], "dlsym") == 0)
        route_dlsym();
    else if (strcmp(argv[1], "proc") == 0)
        route_proc();
    else
        MUST(strcmp(argv[1], "none") == 0);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(argv[2], actions[i].name) == 0) {
            actions[i].act(argc > 3 ? argv[3] : NULL);
            return 0;
        }
    MUST(!"unknown action");
    return 1;
}
