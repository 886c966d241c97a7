/* resolve.c WHAT [FILE] - ways to get at a driver's functions that have broken tools which stand in between. Links with no
 * CUDA library. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: %s\n", __LINE__, #condition);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef CUresult get_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
typedef CUresult get_v1(const char *, void **, int, cuuint64_t);

static void *open_driver(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(handle);
    return handle;
}

static int threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

/* Every function of the list, by both doors, and no call. FILE: lines of "name version flags symbol". */
static void look_ups(const char *path)
{
    static const char *const early[] = {"cuGetExportTable", "cuInit", "cuDriverGetVersion", "cuDeviceGetCount"};
    char name[128], symbol[128];
    int version, flags;
    void *driver = open_driver("libcuda.so.1"), *found;
    for (size_t i = 0; i < sizeof early / sizeof *early; i++)
        (void)dlsym(driver, early[i]);
    get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    FILE *f = fopen(path, "r");
    MUST(get && f);
    while (fscanf(f, "%127s %d %d %127s", name, &version, &flags, symbol) == 4) {
        (void)dlsym(driver, symbol);
        (void)dlvsym(driver, symbol, "NO_SUCH_VERSION");
        (void)get(name, &found, version, (cuuint64_t)flags, NULL);
    }
    fclose(f);
    printf("%d thread\n", threads());
}

static const char *object_of(void *function, const char **symbol)
{
    Dl_info info = {0};
    MUST(dladdr(function, &info) && info.dli_fname);
    *symbol = info.dli_sname ? info.dli_sname : "?";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static void say(const char *door, const char *name, int version, int flags, void *function)
{
    const char *symbol = "-", *object = function ? object_of(function, &symbol) : "-";
    printf("%s %s %d %d %s %s\n", door, name, version, flags, object, symbol);
}

/* Where each look-up of the list leads, by both forms of cuGetProcAddress and by dlsym. */
static void list(const char *path)
{
    char name[128], symbol[128];
    int version, flags;
    void *driver = open_driver("libcuda.so.1"), *found;
    get_v2 *second = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    get_v1 *first = (get_v1 *)dlsym(driver, "cuGetProcAddress");
    FILE *f = fopen(path, "r");
    MUST(f && first);
    while (fscanf(f, "%127s %d %d %127s", name, &version, &flags, symbol) == 4) {
        CUdriverProcAddressQueryResult status;
        found = NULL;
        if (second && second(name, &found, version, (cuuint64_t)flags, &status) == CUDA_SUCCESS) {
            say("v2", name, version, flags, found);
            MUST((status == CU_GET_PROC_ADDRESS_SUCCESS) == (found != NULL));
            void *quiet = NULL;
            MUST(second(name, &quiet, version, (cuuint64_t)flags, NULL) == CUDA_SUCCESS && quiet == found);
        }
        found = NULL;
        if (first(name, &found, version, (cuuint64_t)flags) == CUDA_SUCCESS)
            say("v1", name, version, flags, found);
        found = dlsym(driver, symbol);
        if (found)
            say("dlsym", symbol, version, flags, found);
    }
    fclose(f);
}

/* Two drivers in one process: each handle's functions are that driver's. FILE is the path of the second. */
static void two(const char *path)
{
    void *drivers[2] = {open_driver("libcuda.so.1"), open_driver(path)};
    MUST(drivers[0] != drivers[1]);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++) {
            CUcontext context;
            CUdeviceptr p;
            __typeof__(&cuInit) init = (__typeof__(&cuInit))dlsym(drivers[i], "cuInit");
            __typeof__(&cuCtxCreate_v2) create = (__typeof__(&cuCtxCreate_v2))dlsym(drivers[i], "cuCtxCreate_v2");
            __typeof__(&cuMemAlloc_v2) alloc = (__typeof__(&cuMemAlloc_v2))dlsym(drivers[i], "cuMemAlloc_v2");
            __typeof__(&cuMemFree_v2) release = (__typeof__(&cuMemFree_v2))dlsym(drivers[i], "cuMemFree_v2");
            MUST(init(0) == CUDA_SUCCESS && create(&context, 0, 0) == CUDA_SUCCESS);
            for (int k = 0; k <= i; k++)
                MUST(alloc(&p, 1000) == CUDA_SUCCESS && release(p) == CUDA_SUCCESS);
        }
    for (int i = 0; i < 2; i++) {
        int (*count)(const char *) = (int (*)(const char *))dlsym(drivers[i], "stub_count");
        printf("driver %d: %d calls of cuInit, %d of cuMemAlloc\n", i, count("cuInit"), count("cuMemAlloc_v2"));
    }
}

/* A function that is in the driver and in no header. */
static void unknown(const char *unused)
{
    void *driver = open_driver("libcuda.so.1");
    __typeof__(&cuInit) init = (__typeof__(&cuInit))dlsym(driver, "cuInit");
    int (*future)(int) = (int (*)(int))dlsym(driver, "cuStubOnlyFunction");
    MUST(init(0) == CUDA_SUCCESS && future);
    printf("%d\n", future(1));
    MUST(!dlsym(driver, "cuNoSuchFunction") && dlerror());
}

/* Opened, used, closed, and once more. */
static void again(const char *unused)
{
    for (int i = 0; i < 3; i++) {
        CUcontext context;
        CUdeviceptr p;
        void *driver = open_driver("libcuda.so.1");
        __typeof__(&cuInit) init = (__typeof__(&cuInit))dlsym(driver, "cuInit");
        __typeof__(&cuCtxCreate_v2) create = (__typeof__(&cuCtxCreate_v2))dlsym(driver, "cuCtxCreate_v2");
        __typeof__(&cuMemAlloc_v2) alloc = (__typeof__(&cuMemAlloc_v2))dlsym(driver, "cuMemAlloc_v2");
        __typeof__(&cuMemFree_v2) release = (__typeof__(&cuMemFree_v2))dlsym(driver, "cuMemFree_v2");
        MUST(init(0) == CUDA_SUCCESS && create(&context, 0, 0) == CUDA_SUCCESS);
        MUST(alloc(&p, 1000) == CUDA_SUCCESS && release(p) == CUDA_SUCCESS);
        MUST(dlclose(driver) == 0);
    }
    printf("three times\n");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(const char *argument);
    } actions[] = {{"look-ups", look_ups}, {"list", list}, {"two", two}, {"unknown", unknown}, {"again", again}};
    for (size_t i = 0; argc > 1 && i < sizeof actions / sizeof *actions; i++)
        if (strcmp(argv[1], actions[i].name) == 0) {
            actions[i].act(argc > 2 ? argv[2] : NULL);
            return 0;
        }
    return 2;
}
