/* What the compiler registers before main(): fat binaries, host stubs of kernels, shadows of device variables.
 * Prototypes are those of crt/host_runtime.h, which is for C++ only. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "softgpu/rt.h"

#define EXPORT __attribute__((visibility("default")))

struct binary {
    void *wrapper;
    CUlibrary library;
    bool loaded;
    struct function *functions;
    struct variable *variables;
};
struct function {
    struct binary *binary;
    const char *name;
    const void *host;
    CUkernel kernel; /* once found */
    struct function *next;
};
struct variable {
    struct binary *binary;
    const char *name;
    const void *host; /* shadow; of a managed variable the address of the pointer that stands for it */
    void **managed;   /* NULL, or where the address goes */
    const void *home; /* of a managed variable, once known */
    struct variable *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map functions, variables, kernels;

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun, const char *deviceName,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize);
void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName, int ext, size_t size,
                       int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress, const char *deviceName,
                              int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);

/* A forked child unregisters at its exit, perhaps while a thread that is not there held the lock. */
static void fresh_lock(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, fresh_lock);
}

EXPORT void **__cudaRegisterFatBinary(void *fatCubin)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    struct binary *b = calloc(1, sizeof *b);
    if (b)
        b->wrapper = fatCubin;
    return (void **)b;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
}

EXPORT void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun, const char *deviceName,
                                   int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize)
{
    struct function *f = handle ? calloc(1, sizeof *f) : NULL;
    if (!f)
        return;
    f->binary = (struct binary *)handle;
    f->name = deviceName;
    f->host = hostFun;
    pthread_mutex_lock(&lock);
    f->next = f->binary->functions;
    f->binary->functions = f;
    map_put(&functions, (uintptr_t)hostFun, (uintptr_t)f);
    pthread_mutex_unlock(&lock);
}

static void register_variable(void **handle, const void *host, void **managed, const char *name)
{
    struct variable *v = handle ? calloc(1, sizeof *v) : NULL;
    if (!v)
        return;
    v->binary = (struct binary *)handle;
    v->name = name;
    v->host = host;
    v->managed = managed;
    pthread_mutex_lock(&lock);
    v->next = v->binary->variables;
    v->binary->variables = v;
    map_put(&variables, (uintptr_t)host, (uintptr_t)v);
    pthread_mutex_unlock(&lock);
}

EXPORT void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName, int ext,
                              size_t size, int constant, int global)
{
    register_variable(handle, hostVar, NULL, deviceName);
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress,
                                     const char *deviceName, int ext, size_t size, int constant, int global)
{
    register_variable(handle, hostVarPtrAddress, hostVarPtrAddress, deviceName);
}

/* Gives the managed variables of a loaded module their addresses. */
static CUresult place_managed(struct binary *b)
{
    for (struct variable *v = b->variables; v; v = v->next) {
        CUdeviceptr address;
        size_t bytes;
        if (!v->managed || v->home)
            continue;
        CUresult result = driver.cuLibraryGetManaged(&address, &bytes, b->library, v->name);
        if (result != CUDA_SUCCESS)
            return result;
        v->home = rt_pointer(address);
        *v->managed = rt_pointer(address);
        map_put(&variables, address, (uintptr_t)v);
    }
    return CUDA_SUCCESS;
}

/* Loads a module at its first use. A failure is not kept: the next use tries again. Needs the lock. */
static CUresult load(struct binary *b)
{
    if (b->loaded)
        return CUDA_SUCCESS;
    CUresult result = driver.cuLibraryLoadData(&b->library, b->wrapper, NULL, NULL, 0, NULL, NULL, 0);
    if (result != CUDA_SUCCESS)
        return result;
    b->loaded = true;
    return place_managed(b);
}

EXPORT char __cudaInitModule(void **handle)
{
    struct binary *b = (struct binary *)handle;
    CUresult result = b ? rt_enter() : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        result = load(b);
        pthread_mutex_unlock(&lock);
    }
    return rt_end(result) == cudaSuccess;
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    struct binary *b = (struct binary *)handle;
    if (!b)
        return;
    pthread_mutex_lock(&lock);
    for (struct function *f = b->functions, *next; f; f = next) {
        next = f->next;
        map_remove(&functions, (uintptr_t)f->host);
        if (f->kernel)
            map_remove(&kernels, (uintptr_t)f->kernel);
        free(f);
    }
    for (struct variable *v = b->variables, *next; v; v = next) {
        next = v->next;
        map_remove(&variables, (uintptr_t)v->host);
        if (v->home)
            map_remove(&variables, (uintptr_t)v->home);
        free(v);
    }
    bool loaded = b->loaded;
    pthread_mutex_unlock(&lock);
    /* Usually at exit, when the driver may be gone. */
    if (loaded)
        driver.cuLibraryUnload(b->library);
    free(b);
}

CUresult rt_kernel(const void *function, CUkernel *out)
{
    uint64_t found;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (map_get(&functions, (uintptr_t)function, &found)) {
        struct function *f = (struct function *)(uintptr_t)found;
        if (!f->kernel) {
            result = load(f->binary);
            if (result == CUDA_SUCCESS)
                result = driver.cuLibraryGetKernel(&f->kernel, f->binary->library, f->name);
            if (result == CUDA_SUCCESS)
                map_put(&kernels, (uintptr_t)f->kernel, (uintptr_t)f->host);
            else if (result == CUDA_ERROR_NOT_FOUND)
                result = (CUresult)cudaErrorInvalidDeviceFunction;
        }
        *out = f->kernel;
    } else if (map_get(&kernels, (uintptr_t)function, &found)) {
        *out = (CUkernel)function;
    } else {
        result = (CUresult)cudaErrorInvalidDeviceFunction;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void rt_known_kernel(CUkernel kernel)
{
    pthread_mutex_lock(&lock);
    map_put(&kernels, (uintptr_t)kernel, (uintptr_t)kernel);
    pthread_mutex_unlock(&lock);
}

const void *rt_host_function(CUkernel kernel, CUfunction function)
{
    uint64_t host;
    pthread_mutex_lock(&lock);
    bool known = map_get(&kernels, (uintptr_t)kernel, &host);
    pthread_mutex_unlock(&lock);
    return known ? (const void *)(uintptr_t)host : kernel ? (const void *)kernel : (const void *)function;
}

CUresult rt_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
    uint64_t found;
    CUresult result = (CUresult)cudaErrorInvalidSymbol;
    pthread_mutex_lock(&lock);
    if (map_get(&variables, (uintptr_t)symbol, &found)) {
        struct variable *v = (struct variable *)(uintptr_t)found;
        result = load(v->binary);
        if (result == CUDA_SUCCESS)
            result = v->managed ? driver.cuLibraryGetManaged(address, bytes, v->binary->library, v->name)
                                : driver.cuLibraryGetGlobal(address, bytes, v->binary->library, v->name);
        if (result == CUDA_ERROR_NOT_FOUND)
            result = (CUresult)cudaErrorInvalidSymbol;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    CUkernel found = NULL;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_kernel(function, &found);
    if (result == CUDA_SUCCESS)
        *kernel = (cudaKernel_t)found;
    return rt_end(result);
}
