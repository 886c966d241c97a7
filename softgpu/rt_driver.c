#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/rt.h"

struct rt_driver driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUresult load_result;

/* In place of what the driver does not have. Called through pointers of all types: it takes no argument from the stack.
 */
static CUresult missing(void)
{
    return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
}

typedef CUresult (*get_proc_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void *look_up(void *library, get_proc_address get, const char *export, const char *base, int version,
                     int per_thread)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    if (!get)
        return dlsym(library, export);
    cuuint64_t flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
    return get(base, &function, version, flags, &status) == CUDA_SUCCESS ? function : NULL;
}

static void fill_table(void *library, get_proc_address get)
{
    CUresult (*fallback)(void) = missing;
    void *function;
#define FUNCTION(name, base, version, per_thread)                                                                      \
    function = look_up(library, get, #name, base, version, per_thread);                                                \
    memcpy(&driver.name, function ? (void *)&function : (void *)&fallback, sizeof driver.name);
#include "softgpu/rt_driver.def"
#undef FUNCTION
}

static void load(void)
{
    load_result = (CUresult)cudaErrorInsufficientDriver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    get_proc_address get = NULL;
    void *found = dlsym(library, "cuGetProcAddress_v2");
    memcpy(&get, &found, sizeof get);
    if (get) {
        /* The function gives itself, possibly that of a tool in between, which is used from here on. */
        CUdriverProcAddressQueryResult status;
        found = NULL;
        get("", &found, CUDA_VERSION, 0, &status);
        if (get("cuGetProcAddress", &found, 12000, 0, &status) == CUDA_SUCCESS && found)
            memcpy(&get, &found, sizeof get);
    }
    fill_table(library, get);
    int version = 0;
    if (driver.cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= CUDART_VERSION / 1000 * 1000)
        load_result = driver.cuInit(0);
}

CUresult rt_enter_driver(void)
{
    pthread_once(&once, load);
    return load_result;
}

/* ---- primary contexts, one of each device, retained once while the runtime uses it ------------------------------- */

enum { DEVICES = 64 };
static struct {
    CUcontext held; /* retained here, or NULL */
    CUcontext seen; /* what was held last: a thread that has it current may have missed a reset */
} primaries[DEVICES];
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static int primaries_used; /* no device from here on has been used */
static int first_choice;   /* of threads that chose none: cudaSetValidDevices() */
static _Thread_local int chosen = -1;

static CUresult hold(int device)
{
    if (device < 0 || device >= DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    if (primaries[device].held)
        return CUDA_SUCCESS;
    CUresult result = driver.cuDevicePrimaryCtxRetain(&primaries[device].held, device);
    if (result != CUDA_SUCCESS)
        return result;
    primaries[device].seen = primaries[device].held;
    if (device >= primaries_used)
        primaries_used = device + 1;
    return CUDA_SUCCESS;
}

/* The device of which this is or was the primary context, or -1. */
static int device_of(CUcontext context)
{
    for (int i = 0; i < primaries_used; i++)
        if (primaries[i].seen == context)
            return i;
    return -1;
}

CUresult rt_enter(void)
{
    CUcontext current = NULL;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&primary_lock);
    /* A context of the program is left alone; a primary one may have been reset and not been used again. */
    int device = current ? device_of(current) : chosen >= 0 ? chosen : first_choice;
    bool bound = current && (device < 0 || primaries[device].held);
    if (!bound && (result = hold(device)) == CUDA_SUCCESS)
        result = driver.cuCtxSetCurrent(primaries[device].held);
    pthread_mutex_unlock(&primary_lock);
    return result;
}

CUresult rt_primary(int device, CUcontext *out)
{
    pthread_mutex_lock(&primary_lock);
    CUresult result = hold(device);
    if (result == CUDA_SUCCESS)
        *out = primaries[device].held;
    pthread_mutex_unlock(&primary_lock);
    return result;
}

bool rt_is_primary(CUcontext context)
{
    pthread_mutex_lock(&primary_lock);
    bool found = device_of(context) >= 0;
    pthread_mutex_unlock(&primary_lock);
    return found;
}

void rt_choose(int device)
{
    chosen = device;
}

void rt_first_choice(int device)
{
    pthread_mutex_lock(&primary_lock);
    first_choice = device;
    pthread_mutex_unlock(&primary_lock);
}

CUresult rt_device(int *device)
{
    CUcontext current = NULL;
    CUresult result = driver.cuCtxGetCurrent(&current);
    pthread_mutex_lock(&primary_lock);
    int found = current ? device_of(current) : chosen >= 0 ? chosen : first_choice;
    pthread_mutex_unlock(&primary_lock);
    if (found < 0 && result == CUDA_SUCCESS)
        return driver.cuCtxGetDevice(device);
    *device = found; /* without asking: the context may be gone by a reset */
    return result;
}

CUresult rt_check_device(int device)
{
    int count = 0;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetCount(&count);
    return result == CUDA_SUCCESS && (device < 0 || device >= count) ? CUDA_ERROR_INVALID_DEVICE : result;
}

void rt_forget_primary(int device)
{
    pthread_mutex_lock(&primary_lock);
    bool held = device < DEVICES && primaries[device].held;
    if (held)
        primaries[device].held = NULL;
    pthread_mutex_unlock(&primary_lock);
    if (held)
        driver.cuDevicePrimaryCtxRelease_v2(device);
}

/* After the program's exit handlers; the driver may be gone already, which it then says. */
__attribute__((destructor)) static void release_at_exit(void)
{
    for (int i = 0; i < primaries_used; i++)
        if (primaries[i].held)
            driver.cuDevicePrimaryCtxRelease_v2(i);
}

CUresult rt_unsupported(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *noted[512];
    const char *path = secure_getenv("SOFTGPU_LOG");
    if (!path || !*path)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < 512 && noted[i] && noted[i] != name)
        i++;
    bool fresh = i < 512 && !noted[i];
    if (fresh)
        noted[i] = name;
    pthread_mutex_unlock(&lock);
    int fd = fresh ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s\n", name);
        close(fd);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}
