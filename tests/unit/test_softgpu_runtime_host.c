/* Memory of the host, shapes of allocations, and the driver's log through the runtime. */
#include "tests/unit/softgpu_runtime.h"

enum { BYTES = 1 << 16 };

static void test_pinned_memory(void **state)
{
    void *p, *there;
    unsigned flags = 99;
    char stack[16];
    struct cudaPointerAttributes a;
    static const unsigned good[] = {cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped,
                                    cudaHostAllocWriteCombined, cudaHostAllocPortable | cudaHostAllocMapped};
    for (size_t i = 0; i < LENGTH(good); i++) {
        ok(cudaHostAlloc(&p, BYTES, good[i]));
        ok(cudaHostGetFlags(&flags, p));
        assert_int_equal(flags & good[i], good[i]);
        ok(cudaHostGetDevicePointer(&there, p, 0));
        assert_ptr_equal(there, p); /* one address for both sides */
        ok(cudaPointerGetAttributes(&a, (char *)p + 100));
        assert_int_equal(a.type, cudaMemoryTypeHost);
        assert_ptr_equal(a.hostPointer, (char *)p + 100);
        ok(cudaMemset(p, (int)i + 1, BYTES));
        ok(cudaDeviceSynchronize());
        assert_int_equal(((char *)p)[BYTES - 1], i + 1);
        ok(cudaFreeHost(p));
        sets(cudaErrorInvalidValue, cudaFreeHost(p));
    }
    ok(cudaFreeHost(NULL));
    sets(cudaErrorInvalidValue, cudaHostAlloc(&p, BYTES, 64));
    sets(cudaErrorInvalidValue, cudaHostAlloc(NULL, BYTES, 0));
    sets(cudaErrorInvalidValue, cudaMallocHost(NULL, BYTES));
    sets(cudaErrorInvalidValue, cudaHostGetFlags(&flags, stack));
    sets(cudaErrorInvalidValue, cudaHostGetFlags(NULL, stack));
    sets(cudaErrorInvalidValue, cudaHostGetDevicePointer(&there, stack, 0));
    sets(cudaErrorInvalidValue, cudaHostGetDevicePointer(NULL, stack, 0));
}

static void test_registered_memory(void **state)
{
    struct cudaPointerAttributes a;
    void *there;
    unsigned flags = 0;
    char *p = aligned_alloc(4096, BYTES), *other = aligned_alloc(4096, BYTES);
    ok(cudaHostRegister(p, BYTES, cudaHostRegisterMapped | cudaHostRegisterPortable));
    sets(cudaErrorInvalidValue, cudaHostGetFlags(&flags, p)); /* is for what cudaHostAlloc gave */
    ok(cudaPointerGetAttributes(&a, p));
    assert_int_equal(a.type, cudaMemoryTypeHost);
    ok(cudaHostGetDevicePointer(&there, p + 8, 0));
    assert_ptr_equal(there, p + 8);
    sets(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p, BYTES, 0));
    sets(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p + 4096, 4096, 0));
    ok(cudaHostUnregister(p));
    ok(cudaPointerGetAttributes(&a, p));
    assert_int_equal(a.type, cudaMemoryTypeUnregistered);
    sets(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(p));
    ok(cudaHostRegister(other, BYTES, cudaHostRegisterReadOnly));
    ok(cudaHostUnregister(other));
    sets(cudaErrorInvalidValue, cudaHostRegister(NULL, BYTES, 0));
    sets(cudaErrorInvalidValue, cudaHostRegister(p, 0, 0));
    sets(cudaErrorInvalidValue, cudaHostRegister(p, BYTES, 256));
    free(p);
    free(other);
}

static void test_shapes(void **state)
{
    char *p;
    size_t pitch = 0;
    struct cudaPitchedPtr box;
    struct cudaPointerAttributes a;
    ok(cudaMallocPitch((void **)&p, &pitch, 100, 7));
    assert_true(pitch >= 100 && pitch % 256 == 0); /* the texture alignment at least */
    ok(cudaMemset(p, 0, 7 * pitch));
    sets(cudaErrorInvalidValue, cudaMemset(p, 0, 8 * pitch));
    ok(cudaFree(p));
    ok(cudaMallocPitch((void **)&p, &pitch, 0, 7));
    assert_null(p);
    ok(cudaMalloc3D(&box, (struct cudaExtent){100, 5, 3}));
    assert_int_equal(box.xsize, 100);
    assert_int_equal(box.ysize, 5);
    ok(cudaMemset(box.ptr, 0, box.pitch * 15));
    ok(cudaPointerGetAttributes(&a, (char *)box.ptr + box.pitch * 14));
    assert_int_equal(a.type, cudaMemoryTypeDevice);
    ok(cudaFree(box.ptr));
    sets(cudaErrorInvalidValue, cudaMallocPitch(NULL, &pitch, 8, 8));
    sets(cudaErrorInvalidValue, cudaMallocPitch((void **)&p, NULL, 8, 8));
    sets(cudaErrorInvalidValue, cudaMalloc3D(NULL, (struct cudaExtent){8, 8, 8}));
    sets(cudaErrorMemoryAllocation, cudaMallocPitch((void **)&p, &pitch, 1 << 20, (size_t)1 << 40));
}

static void test_plain_and_managed(void **state)
{
    void *p = (void *)1;
    size_t free_before = 0, free_now = 0, total = 0;
    ok(cudaMemGetInfo(&free_before, &total));
    assert_true(free_before && free_before <= total);
    ok(cudaMalloc(&p, 64 << 20));
    ok(cudaMemGetInfo(&free_now, NULL));
    assert_true(free_now + (64 << 20) <= free_before);
    ok(cudaFree(p));
    ok(cudaMemGetInfo(&free_now, &total));
    assert_int_equal(free_now, free_before);
    ok(cudaMalloc(&p, 0));
    assert_null(p);
    sets(cudaErrorInvalidValue, cudaMalloc(NULL, 8));
    sets(cudaErrorMemoryAllocation, cudaMalloc(&p, SIZE_MAX / 2));
    sets(cudaErrorInvalidValue, cudaFree(&p));
    sets(cudaErrorInvalidValue, cudaMallocManaged(&p, 0, cudaMemAttachGlobal));
    sets(cudaErrorInvalidValue, cudaMallocManaged(&p, 8, 0));
    sets(cudaErrorInvalidValue, cudaMallocManaged(NULL, 8, cudaMemAttachGlobal));
    sets(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, p));
    ok(cudaMallocManaged(&p, 64, cudaMemAttachGlobal));
    sets(cudaErrorInvalidValue, cudaFreeHost(p));
    ok(cudaFree(p));
}

/* A call that fails sets the thread's last error; one that succeeds, and one that is not ready, leaves it. */
static void test_last_error(void **state)
{
    void *p;
    cudaGetLastError();
    fails(cudaErrorInvalidValue, cudaMalloc(NULL, 8));
    ok(cudaMalloc(&p, 8));
    fails(cudaErrorInvalidValue, cudaPeekAtLastError());
    fails(cudaErrorInvalidResourceHandle, cudaEventQuery(NULL));
    fails(cudaErrorInvalidResourceHandle, cudaPeekAtLastError()); /* the later one */
    ok(cudaFree(p));
    fails(cudaErrorInvalidResourceHandle, cudaGetLastError());
    ok(cudaPeekAtLastError());
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

/* Only arrays with deferred mapping tell what memory they need, and such cannot be made here. */
static void test_requirements_of_arrays(void **state)
{
    const struct cudaChannelFormatDesc byte = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    const struct cudaExtent size = {64, 64, 0};
    struct cudaArrayMemoryRequirements r = {0};
    cudaArray_t array;
    cudaMipmappedArray_t levels;
    sets(cudaErrorNotSupported, cudaMallocArray(&array, &byte, 64, 64, cudaArrayDeferredMapping));
    sets(cudaErrorNotSupported, cudaMallocMipmappedArray(&levels, &byte, size, 3, cudaArrayDeferredMapping));
    ok(cudaMallocArray(&array, &byte, 64, 64, 0));
    sets(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(&r, array, 0));
    sets(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(NULL, array, 0));
    ok(cudaFreeArray(array));
    sets(cudaErrorInvalidResourceHandle, cudaArrayGetMemoryRequirements(&r, array, 0));
    ok(cudaMallocMipmappedArray(&levels, &byte, size, 3, 0));
    sets(cudaErrorInvalidValue, cudaMipmappedArrayGetMemoryRequirements(&r, levels, 0));
    sets(cudaErrorInvalidValue, cudaMipmappedArrayGetMemoryRequirements(NULL, levels, 0));
    ok(cudaFreeMipmappedArray(levels));
    sets(cudaErrorInvalidResourceHandle, cudaMipmappedArrayGetMemoryRequirements(&r, levels, 0));
}

static void test_descriptions_of_objects(void **state)
{
    const struct cudaChannelFormatDesc byte = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    struct cudaResourceDesc r = {.resType = cudaResourceTypeArray}, got;
    struct cudaTextureDesc t = {.readMode = cudaReadModeElementType};
    struct cudaResourceViewDesc view = {.format = cudaResViewFormatUnsignedChar1, .width = 16, .height = 16}, seen;
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    ok(cudaMallocArray(&r.res.array.array, &byte, 16, 16, cudaArraySurfaceLoadStore));
    ok(cudaCreateTextureObject(&texture, &r, &t, &view));
    ok(cudaGetTextureObjectResourceViewDesc(&seen, texture));
    assert_int_equal(seen.format, cudaResViewFormatUnsignedChar1);
    assert_int_equal(seen.width, 16);
    sets(cudaErrorInvalidValue, cudaGetTextureObjectResourceViewDesc(NULL, texture));
    ok(cudaDestroyTextureObject(texture));
    ok(cudaCreateSurfaceObject(&surface, &r));
    ok(cudaGetSurfaceObjectResourceDesc(&got, surface));
    assert_int_equal(got.resType, cudaResourceTypeArray);
    assert_ptr_equal(got.res.array.array, r.res.array.array);
    sets(cudaErrorInvalidValue, cudaGetSurfaceObjectResourceDesc(NULL, surface));
    ok(cudaDestroySurfaceObject(surface));
    ok(cudaFreeArray(r.res.array.array));
}

/* ---- the driver's log ------------------------------------------------------------------------------------------- */

struct lines {
    unsigned count;
    cudaLogLevel level;
    char last[300];
};

static void take_line(void *data, cudaLogLevel level, char *message, size_t length)
{
    struct lines *l = data;
    l->count++;
    l->level = level;
    snprintf(l->last, sizeof l->last, "%.*s", (int)length, message);
}

static void test_log(void **state)
{
    struct lines lines = {0};
    cudaLogsCallbackHandle handle = NULL;
    cudaLogIterator since = 0;
    cudaLibrary_t library;
    char text[30000], path[] = "/tmp/softgpu-log-XXXXXX";
    size_t bytes = sizeof text;
    int fd = mkstemp(path);
    ok(cudaLogsRegisterCallback(take_line, &lines, &handle));
    ok(cudaLogsCurrent(&since, 0));
    fails(cudaErrorInvalidPtx, cudaLibraryLoadData(&library, ".version 7.0\nnonsense", NULL, NULL, 0, NULL, NULL, 0));
    assert_int_equal(lines.count, 1);
    assert_int_equal(lines.level, cudaLogLevelError);
    cudaLogIterator again = since;
    ok(cudaLogsDumpToMemory(&again, text, &bytes, 0));
    assert_non_null(strstr(text, lines.last));
    assert_int_equal(strlen(text), bytes);
    ok(cudaLogsDumpToFile(&since, path, 0));
    assert_true(read(fd, text, sizeof text) == (ssize_t)bytes);
    ok(cudaLogsUnregisterCallback(handle));
    sets(cudaErrorInvalidValue, cudaLogsUnregisterCallback(handle));
    fails(cudaErrorInvalidPtx, cudaLibraryLoadData(&library, ".version 7.0\nnonsense", NULL, NULL, 0, NULL, NULL, 0));
    assert_int_equal(lines.count, 1);
    sets(cudaErrorInvalidValue, cudaLogsRegisterCallback(NULL, NULL, &handle));
    sets(cudaErrorInvalidValue, cudaLogsCurrent(NULL, 0));
    sets(cudaErrorInvalidValue, cudaLogsDumpToFile(NULL, NULL, 0));
    sets(cudaErrorInvalidValue, cudaLogsDumpToMemory(NULL, NULL, &bytes, 0));
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pinned_memory),
        cmocka_unit_test(test_registered_memory),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_plain_and_managed),
        cmocka_unit_test(test_last_error),
        cmocka_unit_test(test_requirements_of_arrays),
        cmocka_unit_test(test_descriptions_of_objects),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
