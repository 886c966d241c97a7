/* Arrays and texture objects through the runtime's interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define __CUDA_API_VERSION_INTERNAL 1
#define CUDA_ENABLE_DEPRECATED      1
#include <cuda_runtime_api.h>

#define ok(call)           assert_int_equal((call), cudaSuccess)
#define fails(error, call) assert_int_equal((call), (error))

enum { W = 6, H = 4 };

static struct cudaChannelFormatDesc format(int x, int y, int z, int w, enum cudaChannelFormatKind kind)
{
    return cudaCreateChannelDesc(x, y, z, w, kind);
}

static cudaArray_t bytes_array(void)
{
    cudaArray_t a;
    struct cudaChannelFormatDesc d = format(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    ok(cudaMallocArray(&a, &d, W, H, 0));
    return a;
}

static void contents(cudaArray_t a, char text[W * H + 1])
{
    memset(text, 0, W * H + 1);
    ok(cudaMemcpy2DFromArray(text, W, a, 0, 0, W, H, cudaMemcpyDeviceToHost));
}

static void test_formats(void **state)
{
    static const struct cudaChannelFormatDesc good[] = {
        {8, 0, 0, 0, cudaChannelFormatKindUnsigned},
        {16, 16, 0, 0, cudaChannelFormatKindSigned},
        {32, 32, 32, 32, cudaChannelFormatKindFloat},
        {16, 0, 0, 0, cudaChannelFormatKindFloat},
        {32, 32, 0, 0, cudaChannelFormatKindUnsigned},
        {8, 8, 8, 8, cudaChannelFormatKindSigned},
        {8, 8, 8, 8, cudaChannelFormatKindUnsignedNormalized8X4},
        {16, 16, 0, 0, cudaChannelFormatKindSignedNormalized16X2},
    };
    static const struct cudaChannelFormatDesc bad[] = {
        {8, 0, 0, 0, cudaChannelFormatKindFloat},   {64, 0, 0, 0, cudaChannelFormatKindSigned},
        {8, 16, 0, 0, cudaChannelFormatKindSigned}, {8, 0, 8, 0, cudaChannelFormatKindSigned},
        {32, 0, 0, 0, cudaChannelFormatKindNone},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cudaArray_t a;
        struct cudaChannelFormatDesc d;
        struct cudaExtent e;
        unsigned flags;
        ok(cudaMallocArray(&a, &good[i], 10, 3, cudaArraySurfaceLoadStore));
        ok(cudaArrayGetInfo(&d, &e, &flags, a));
        assert_memory_equal(&d, &good[i], sizeof d);
        assert_true(e.width == 10 && e.height == 3 && e.depth == 0 && flags == cudaArraySurfaceLoadStore);
        memset(&d, 0, sizeof d);
        ok(cudaGetChannelDesc(&d, a));
        assert_memory_equal(&d, &good[i], sizeof d);
        ok(cudaFreeArray(a));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cudaArray_t a;
        fails(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&a, &bad[i], 10, 3, 0));
    }
    struct cudaChannelFormatDesc three = format(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
    cudaArray_t a;
    assert_int_not_equal(cudaMallocArray(&a, &three, 4, 4, 0), cudaSuccess);
    ok(cudaFreeArray(NULL));
}

/* Without a shape, rows are filled one after the other. */
static void test_copies_without_shape(void **state)
{
    cudaArray_t a = bytes_array(), b = bytes_array();
    char text[W * H + 1], part[20] = {0};
    cudaStream_t s;
    ok(cudaStreamCreate(&s));
    ok(cudaMemcpyToArray(a, 0, 0, "abcdefghijklmnopqrstuvwx", W * H, cudaMemcpyHostToDevice));
    contents(a, text);
    assert_string_equal(text, "abcdefghijklmnopqrstuvwx");
    ok(cudaMemcpyToArray(a, 4, 0, "ABCDEFGHIJ", 10, cudaMemcpyHostToDevice)); /* over three rows */
    contents(a, text);
    assert_string_equal(text, "abcdABCDEFGHIJopqrstuvwx");
    ok(cudaMemcpyFromArray(part, a, 5, 0, 9, cudaMemcpyDeviceToHost));
    assert_string_equal(part, "BCDEFGHIJ");
    ok(cudaMemcpyToArrayAsync(b, 0, 0, "------------------------", W * H, cudaMemcpyHostToDevice, s));
    ok(cudaStreamSynchronize(s));
    ok(cudaMemcpyArrayToArray(b, 1, 1, a, 3, 0, 10, cudaMemcpyDeviceToDevice));
    contents(b, text);
    assert_string_equal(text, "-------dABCDEFGHI-------");
    ok(cudaMemcpy2DArrayToArray(b, 4, 0, a, 0, 2, 2, 2, cudaMemcpyDeviceToDevice));
    contents(b, text);
    assert_string_equal(text, "----IJ-dABstEFGHI-------");
    ok(cudaMemcpyFromArrayAsync(part, a, 0, 3, 6, cudaMemcpyDeviceToHost, s));
    ok(cudaStreamSynchronize(s));
    assert_memory_equal(part, "stuvwx", 6);
    fails(cudaErrorInvalidValue, cudaMemcpyToArray(a, 0, 3, "1234567", 7, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpyFromArray(part, a, 7, 0, 1, cudaMemcpyDeviceToHost));
    fails(cudaErrorInvalidMemcpyDirection, cudaMemcpyToArray(a, 0, 0, "1", 1, cudaMemcpyDeviceToHost));
    ok(cudaStreamDestroy(s));
    ok(cudaFreeArray(a));
    ok(cudaFreeArray(b));
}

static void test_copies_with_pitch(void **state)
{
    cudaArray_t a = bytes_array();
    char text[W * H + 1];
    void *device;
    cudaStream_t s;
    ok(cudaStreamCreate(&s));
    ok(cudaMalloc(&device, 64));
    ok(cudaMemcpy(device, "ab..cd..ef..", 12, cudaMemcpyHostToDevice));
    ok(cudaMemcpyToArray(a, 0, 0, "------------------------", W * H, cudaMemcpyHostToDevice));
    ok(cudaMemcpy2DToArrayAsync(a, 3, 1, device, 4, 2, 3, cudaMemcpyDeviceToDevice, s));
    ok(cudaStreamSynchronize(s));
    contents(a, text);
    assert_string_equal(text, "---------ab----cd----ef-");
    memset(text, '.', sizeof text);
    ok(cudaMemcpy2DFromArrayAsync(text, 5, a, 3, 1, 2, 3, cudaMemcpyDeviceToHost, s));
    ok(cudaStreamSynchronize(s));
    assert_memory_equal(text, "ab...cd...ef.", 13);
    fails(cudaErrorInvalidPitchValue, cudaMemcpy2DToArray(a, 0, 0, text, 1, 2, 2, cudaMemcpyHostToDevice));
    ok(cudaStreamDestroy(s));
    ok(cudaFree(device));
    ok(cudaFreeArray(a));
}

/* An extent with an array counts its elements. */
static void test_copies_of_volumes(void **state)
{
    enum { D = 2 };
    struct cudaChannelFormatDesc d = format(32, 32, 0, 0, cudaChannelFormatKindSigned),
                                 narrow = format(8, 0, 0, 0, cudaChannelFormatKindSigned);
    cudaArray_t a, b, c;
    int from[D][H][W][2], to[D][H][W][2];
    for (int i = 0; i < D * H * W * 2; i++)
        (&from[0][0][0][0])[i] = i;
    memset(to, 0xff, sizeof to);
    struct cudaExtent whole = {W, H, D};
    ok(cudaMalloc3DArray(&a, &d, whole, 0));
    ok(cudaMalloc3DArray(&b, &d, whole, 0));
    ok(cudaMalloc3DArray(&c, &narrow, whole, 0));
    struct cudaMemcpy3DParms p = {
        .srcPtr = {from, W * 8, W * 8, H}, .dstArray = a, .extent = whole, .kind = cudaMemcpyHostToDevice};
    ok(cudaMemcpy3D(&p));
    p = (struct cudaMemcpy3DParms){.srcArray = a,
                                   .srcPos = {1, 2, 0},
                                   .dstArray = b,
                                   .dstPos = {2, 0, 1},
                                   .extent = {3, 2, 1},
                                   .kind = cudaMemcpyDeviceToDevice};
    ok(cudaMemcpy3DAsync(&p, NULL));
    p = (struct cudaMemcpy3DParms){.srcArray = b,
                                   .srcPos = {2, 0, 1},
                                   .dstPtr = {to, W * 8, W * 8, H},
                                   .dstPos = {8, 1, 1},
                                   .extent = {3, 2, 1},
                                   .kind = cudaMemcpyDeviceToHost};
    ok(cudaMemcpy3D(&p));
    for (int y = 0; y < 2; y++)
        assert_memory_equal(to[1][1 + y][1], from[0][2 + y][1], 3 * 8);
    assert_int_equal(to[1][1][0][0], -1);
    assert_int_equal(to[1][1][4][0], -1);
    p = (struct cudaMemcpy3DParms){.srcArray = a, .dstArray = c, .extent = {1, 1, 1}, .kind = cudaMemcpyDeviceToDevice};
    fails(cudaErrorInvalidValue, cudaMemcpy3D(&p));
    p = (struct cudaMemcpy3DParms){.srcArray = a,
                                   .srcPos = {W, 0, 0},
                                   .dstPtr = {to, W * 8, W * 8, H},
                                   .extent = {1, 1, 1},
                                   .kind = cudaMemcpyDeviceToHost};
    fails(cudaErrorInvalidValue, cudaMemcpy3D(&p));
    ok(cudaFreeArray(a));
    ok(cudaFreeArray(b));
    ok(cudaFreeArray(c));
}

static void test_texture_objects(void **state)
{
    void *memory;
    cudaTextureObject_t t;
    cudaSurfaceObject_t s;
    struct cudaResourceDesc r, r2;
    struct cudaTextureDesc d, d2;
    ok(cudaMalloc(&memory, 256));
    memset(&r, 0, sizeof r);
    memset(&d, 0, sizeof d);
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory;
    r.res.linear.desc = format(16, 16, 0, 0, cudaChannelFormatKindSigned);
    r.res.linear.sizeInBytes = 256;
    d.addressMode[0] = cudaAddressModeBorder;
    d.readMode = cudaReadModeNormalizedFloat;
    d.filterMode = cudaFilterModeLinear;
    d.borderColor[2] = 0.5f;
    d.normalizedCoords = 1;
    d.sRGB = 1;
    d.maxMipmapLevelClamp = 3;
    ok(cudaCreateTextureObject(&t, &r, &d, NULL));
    ok(cudaGetTextureObjectResourceDesc(&r2, t));
    assert_int_equal(r2.resType, cudaResourceTypeLinear);
    assert_ptr_equal(r2.res.linear.devPtr, memory);
    assert_int_equal(r2.res.linear.sizeInBytes, 256);
    assert_memory_equal(&r2.res.linear.desc, &r.res.linear.desc, sizeof r.res.linear.desc);
    ok(cudaGetTextureObjectTextureDesc(&d2, t));
    assert_memory_equal(&d2, &d, sizeof d);
    ok(cudaDestroyTextureObject(t));
    fails(cudaErrorInvalidValue, cudaDestroyTextureObject(t));
    /* What cannot be read so. */
    d.readMode = cudaReadModeElementType;
    fails(cudaErrorInvalidFilterSetting, cudaCreateTextureObject(&t, &r, &d, NULL));
    d.filterMode = cudaFilterModePoint;
    d.readMode = cudaReadModeNormalizedFloat;
    r.res.linear.desc = format(32, 0, 0, 0, cudaChannelFormatKindSigned);
    fails(cudaErrorInvalidNormSetting, cudaCreateTextureObject(&t, &r, &d, NULL));
    d.readMode = cudaReadModeElementType;
    ok(cudaCreateTextureObject(&t, &r, &d, NULL));
    ok(cudaDestroyTextureObject(t));
    fails(cudaErrorInvalidValue, cudaCreateSurfaceObject(&s, &r)); /* of memory */
    fails(cudaErrorInvalidValue, cudaCreateTextureObject(&t, NULL, &d, NULL));
    size_t most = 0;
    ok(cudaDeviceGetTexture1DLinearMaxWidth(&most, &r.res.linear.desc, 0));
    assert_true(most >= 1 << 27);
    struct cudaDeviceProp prop;
    ok(cudaGetDeviceProperties(&prop, 0));
    assert_true(prop.maxTexture2D[0] == 131072 && prop.maxTexture2D[1] == 65536 && prop.maxTexture3D[2] == 16384 &&
                prop.textureAlignment == 512);
    ok(cudaFree(memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),           cmocka_unit_test(test_copies_without_shape),
        cmocka_unit_test(test_copies_with_pitch), cmocka_unit_test(test_copies_of_volumes),
        cmocka_unit_test(test_texture_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
