/* A profiler for programs that know nothing of it: the driver loads it because of
 * CUDA_INJECTION64_PATH. At exit it writes a line for each kernel that ran, and what the device is
 * called, to the file that INJECT_OUT names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cupti.h>

static FILE *out;

static void requested(uint8_t **buffer, size_t *size, size_t *maxNumRecords)
{
    *size = 64 << 10;
    *buffer = malloc(*size);
    *maxNumRecords = 0;
}

static void completed(CUcontext context, uint32_t streamId, uint8_t *buffer, size_t size,
                      size_t validSize)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)streamId, (void)size;
    while (cuptiActivityGetNextRecord(buffer, validSize, &record) == CUPTI_SUCCESS) {
        const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            fprintf(out, "kernel %s %d %d\n", k->name, k->gridX, k->blockX);
        if (record->kind == CUPTI_ACTIVITY_KIND_DEVICE)
            fprintf(out, "device %s\n", ((const CUpti_ActivityDevice5 *)record)->name);
    }
    free(buffer);
}

static void at_exit(void)
{
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    fclose(out);
}

int InitializeInjection(void);
int InitializeInjection(void)
{
    const char *path = getenv("INJECT_OUT");
    out = path ? fopen(path, "w") : NULL;
    if (!out || cuptiActivityRegisterCallbacks(requested, completed) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DEVICE) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
        return 0;
    atexit(at_exit);
    return 1;
}
