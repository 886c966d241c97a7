/* Arrays, textures and surfaces through the driver's interface. */
#include <pthread.h>
#include "tests/unit/softgpu_test.h"

/* out[thread] = a fetch of one component, by place; the surface kernel adds 1 to an element. */
static const char PTX[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry fetch(.param .u64 out, .param .u64 t, .param .f32 y) {\n"
    ".reg .b64 %x<3>; .reg .b32 %r<5>; .reg .f32 %f<3>;\n"
    "ld.param.u64 %x0, [out]; ld.param.u64 %x1, [t]; ld.param.f32 %f1, [y];\n"
    "mov.u32 %r4, %tid.x; mad.wide.u32 %x0, %r4, 4, %x0; cvt.rn.f32.u32 %f0, %r4; add.f32 %f0, %f0, 0f3f000000;\n"
    "tex.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%x1, {%f0,%f1}];\nst.global.u32 [%x0], %r0; ret;\n}\n"
    ".visible .entry level(.param .u64 out, .param .u64 t, .param .f32 l) {\n"
    ".reg .b64 %x<3>; .reg .b32 %r<5>; .reg .f32 %f<3>;\n"
    "ld.param.u64 %x0, [out]; ld.param.u64 %x1, [t]; ld.param.f32 %f1, [l]; mov.f32 %f0, 0f3f000000;\n"
    "tex.level.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%x1, {%f0,%f0}], %f1;\nst.global.u32 [%x0], %r0; ret;\n}\n"
    ".visible .entry layer(.param .u64 out, .param .u64 t, .param .u32 l) {\n"
    ".reg .b64 %x<3>; .reg .b32 %r<6>; .reg .f32 %f<3>;\n"
    "ld.param.u64 %x0, [out]; ld.param.u64 %x1, [t]; ld.param.u32 %r5, [l]; mov.f32 %f0, 0f00000000;\n"
    "tex.a2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%x1, {%r5,%f0,%f0,%f0}];\nst.global.u32 [%x0], %r0; ret;\n}\n"
    ".visible .entry add(.param .u64 s, .param .u32 x, .param .u32 y) {\n"
    ".reg .b64 %x<2>; .reg .b32 %r<4>;\n"
    "ld.param.u64 %x0, [s]; ld.param.u32 %r0, [x]; ld.param.u32 %r1, [y];\n"
    "suld.b.2d.b32.trap {%r2}, [%x0, {%r0,%r1}]; add.u32 %r2, %r2, 1; sust.b.2d.b32.trap [%x0, {%r0,%r1}], {%r2}; "
    "ret;\n}\n";

enum { W = 5, H = 4 };

static CUfunction function(const char *name)
{
    CUmodule m;
    CUfunction f;
    ok(cuModuleLoadData(&m, PTX));
    ok(cuModuleGetFunction(&f, m, name));
    return f;
}

static void launch(CUfunction f, unsigned threads, void **arguments)
{
    ok(cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL));
}

static CUarray array_2d(size_t width, size_t height, CUarray_format format, unsigned channels, unsigned flags)
{
    CUarray a;
    CUDA_ARRAY3D_DESCRIPTOR d = {
        .Width = width, .Height = height, .Format = format, .NumChannels = channels, .Flags = flags};
    ok(cuArray3DCreate_v2(&a, &d));
    return a;
}

static CUDA_RESOURCE_DESC resource_of(CUarray a)
{
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_ARRAY;
    r.res.array.hArray = a;
    return r;
}

static CUDA_TEXTURE_DESC sampler(void)
{
    CUDA_TEXTURE_DESC t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 3; i++)
        t.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    t.flags = CU_TRSF_READ_AS_INTEGER;
    return t;
}

static CUDA_MEMCPY2D host_to_array(const void *host, CUarray a, size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcPitch = width,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = a,
                           .WidthInBytes = width,
                           .Height = height};
}

/* ---- arrays ---- */

static void test_descriptors(void **state)
{
    CUarray a = array_2d(W, H, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_ARRAY_DESCRIPTOR flat;
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUDA_ARRAY_MEMORY_REQUIREMENTS need;
    ok(cuArrayGetDescriptor_v2(&flat, a));
    assert_true(flat.Width == W && flat.Height == H && flat.Format == CU_AD_FORMAT_HALF && flat.NumChannels == 2);
    ok(cuArray3DGetDescriptor_v2(&d, a));
    assert_true(d.Width == W && d.Height == H && d.Depth == 0 && d.Flags == CUDA_ARRAY3D_SURFACE_LDST);
    fails(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&need, a, 0)); /* its mapping is not deferred */
    fails(CUDA_ERROR_INVALID_HANDLE, cuArrayGetMemoryRequirements(&need, (CUarray)&need, 0));
    ok(cuArrayDestroy(a));
    fails(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(a));
    fails(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor_v2(&flat, a));
}

static void test_shapes_that_are_none(void **state)
{
    static const struct {
        CUDA_ARRAY3D_DESCRIPTOR d;
        CUresult want;
    } cases[] = {
        {{.Width = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1}, CUDA_ERROR_INVALID_VALUE},
        {{.Width = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 3}, CUDA_ERROR_INVALID_VALUE},
        {{.Width = 4, .Depth = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1}, CUDA_ERROR_INVALID_VALUE},
        {{.Width = 4,
          .Height = 3,
          .Depth = 6,
          .Format = CU_AD_FORMAT_FLOAT,
          .NumChannels = 1,
          .Flags = CUDA_ARRAY3D_CUBEMAP},
         CUDA_ERROR_INVALID_VALUE},
        {{.Width = 4,
          .Height = 4,
          .Depth = 5,
          .Format = CU_AD_FORMAT_FLOAT,
          .NumChannels = 1,
          .Flags = CUDA_ARRAY3D_CUBEMAP},
         CUDA_ERROR_INVALID_VALUE},
        {{.Width = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = CUDA_ARRAY3D_LAYERED},
         CUDA_ERROR_INVALID_VALUE},
        {{.Width = 4, .Height = 4, .Format = CU_AD_FORMAT_NV12, .NumChannels = 1}, CUDA_ERROR_NOT_SUPPORTED},
        {{.Width = 4, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SPARSE},
         CUDA_ERROR_NOT_SUPPORTED},
        {{.Width = 131072, .Height = 131072, .Depth = 16384, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4},
         CUDA_ERROR_OUT_OF_MEMORY},
        {{.Width = 4, .Depth = 3, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = CUDA_ARRAY3D_LAYERED},
         CUDA_SUCCESS},
        {{.Width = 4,
          .Height = 4,
          .Depth = 12,
          .Format = CU_AD_FORMAT_UNORM_INT8X4,
          .NumChannels = 4,
          .Flags = CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
         CUDA_SUCCESS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUarray a;
        assert_int_equal(cuArray3DCreate_v2(&a, &cases[i].d), cases[i].want);
        if (cases[i].want == CUDA_SUCCESS)
            ok(cuArrayDestroy(a));
    }
    fails(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(NULL, &cases[9].d));
}

/* ---- copies ---- */

static void test_copies_of_boxes(void **state)
{
    CUarray a = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0),
            b = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0);
    uint32_t from[H][W], to[H][W + 3];
    CUdeviceptr device;
    for (uint32_t i = 0; i < W * H; i++)
        from[i / W][i % W] = i + 100;
    memset(to, 0, sizeof to);
    CUDA_MEMCPY2D c = host_to_array(from, a, W * 4, H);
    ok(cuMemcpy2D_v2(&c));
    /* A part of it into another array, from there to the device, and back with a pitch. */
    c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = a,
                        .srcXInBytes = 4,
                        .srcY = 1,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = b,
                        .dstXInBytes = 8,
                        .dstY = 2,
                        .WidthInBytes = 12,
                        .Height = 2};
    ok(cuMemcpy2DUnaligned_v2(&c));
    ok(cuMemAlloc_v2(&device, 64));
    c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = b,
                        .srcXInBytes = 8,
                        .srcY = 2,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = device,
                        .dstPitch = 16,
                        .WidthInBytes = 12,
                        .Height = 2};
    ok(cuMemcpy2DAsync_v2(&c, NULL));
    uint32_t flat[8];
    ok(cuMemcpyDtoH_v2(flat, device, sizeof flat));
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++)
            assert_int_equal(flat[y * 4 + x], from[y + 1][x + 1]);
    c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = a,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = to,
                        .dstPitch = sizeof to[0],
                        .WidthInBytes = W * 4,
                        .Height = H};
    ok(cuMemcpy2D_v2(&c));
    for (int y = 0; y < H; y++) {
        assert_memory_equal(to[y], from[y], W * 4);
        assert_int_equal(to[y][W], 0);
    }
    /* What is not inside the array is refused. */
    CUDA_MEMCPY2D bad = host_to_array(from, a, W * 4 + 4, 1);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&bad));
    bad = host_to_array(from, a, W * 4, H);
    bad.dstY = 1;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&bad));
    bad = host_to_array(from, a, 4, 1);
    bad.dstXInBytes = W * 4;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&bad));
    bad = host_to_array(from, NULL, 4, 1);
    fails(CUDA_ERROR_INVALID_HANDLE, cuMemcpy2D_v2(&bad));
    ok(cuMemFree_v2(device));
    ok(cuArrayDestroy(b));
    bad = host_to_array(from, b, 4, 1);
    fails(CUDA_ERROR_INVALID_HANDLE, cuMemcpy2D_v2(&bad));
    ok(cuArrayDestroy(a));
}

static void test_copies_of_volumes(void **state)
{
    enum { D = 3 };
    CUarray a;
    CUDA_ARRAY3D_DESCRIPTOR d = {
        .Width = W, .Height = H, .Depth = D, .Format = CU_AD_FORMAT_SIGNED_INT16, .NumChannels = 2};
    int16_t from[D][H][W][2], to[D][H][W][2];
    for (int i = 0; i < D * H * W * 2; i++)
        (&from[0][0][0][0])[i] = (int16_t)(i * 7);
    memset(to, 0, sizeof to);
    ok(cuArray3DCreate_v2(&a, &d));
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = from,
                       .srcPitch = W * 4,
                       .srcHeight = H,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = a,
                       .WidthInBytes = W * 4,
                       .Height = H,
                       .Depth = D};
    ok(cuMemcpy3DAsync_v2(&c, NULL));
    c = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = a,
                        .srcZ = 1,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = to,
                        .dstPitch = W * 4,
                        .dstHeight = H,
                        .WidthInBytes = W * 4,
                        .Height = H,
                        .Depth = 2};
    ok(cuMemcpy3D_v2(&c));
    assert_memory_equal(to, from[1], 2 * sizeof from[0]);
    c.srcZ = 2;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    ok(cuArrayDestroy(a));
}

static void test_copies_of_lines(void **state)
{
    CUarray a, b;
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUdeviceptr device;
    CUstream s;
    char got[17] = "................";
    ok(cuArrayCreate_v2(&a, &d));
    ok(cuArrayCreate_v2(&b, &d));
    ok(cuMemAlloc_v2(&device, 16));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuMemcpyHtoA_v2(a, 0, "0123456789abcdef", 16));
    ok(cuMemcpyAtoA_v2(b, 4, a, 8, 8));
    ok(cuMemcpyHtoAAsync_v2(b, 0, "wxyz", 4, s));
    ok(cuStreamSynchronize(s));
    ok(cuMemcpyAtoD_v2(device, b, 0, 12));
    ok(cuMemcpyDtoA_v2(a, 2, device, 6));
    ok(cuCtxSynchronize()); /* the stream does not wait for the other by itself */
    ok(cuMemcpyAtoHAsync_v2(got, a, 0, 16, s));
    ok(cuStreamSynchronize(s));
    assert_string_equal(got, "01wxyz8989abcdef");
    ok(cuMemcpyAtoH_v2(got, b, 4, 8));
    assert_memory_equal(got, "89abcdef", 8);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(got, b, 9, 8));
    ok(cuStreamDestroy_v2(s));
    ok(cuMemFree_v2(device));
    ok(cuArrayDestroy(a));
    ok(cuArrayDestroy(b));
}

/* ---- textures ---- */

static void test_texture_of_an_array(void **state)
{
    CUarray a = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
    uint8_t image[H][W];
    uint32_t got[8];
    CUdeviceptr out;
    CUtexObject t, other;
    for (int i = 0; i < W * H; i++)
        image[i / W][i % W] = (uint8_t)(i * 9);
    CUDA_MEMCPY2D c = host_to_array(image, a, W, H);
    ok(cuMemcpy2D_v2(&c));
    ok(cuMemAlloc_v2(&out, sizeof got));
    CUDA_RESOURCE_DESC r = resource_of(a), r2;
    CUDA_TEXTURE_DESC d = sampler(), d2;
    CUDA_RESOURCE_VIEW_DESC v;
    ok(cuTexObjectCreate(&t, &r, &d, NULL));
    float y = 2.5f;
    void *arguments[] = {&out, &t, &y};
    CUfunction f = function("fetch");
    launch(f, 8, arguments);
    ok(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (int x = 0; x < 8; x++)
        assert_int_equal(got[x], image[2][x < W ? x : W - 1]);
    /* The same, read as a float of 0 to 1. */
    d.flags = 0;
    ok(cuTexObjectCreate(&other, &r, &d, NULL));
    arguments[1] = &other;
    launch(f, 8, arguments);
    ok(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (int x = 0; x < W; x++) {
        float want = (float)image[2][x] / 255.0f;
        assert_memory_equal(&want, &got[x], 4);
    }
    ok(cuTexObjectGetResourceDesc(&r2, t));
    assert_true(r2.resType == CU_RESOURCE_TYPE_ARRAY && r2.res.array.hArray == a);
    ok(cuTexObjectGetTextureDesc(&d2, t));
    assert_true(d2.flags == CU_TRSF_READ_AS_INTEGER && d2.addressMode[0] == CU_TR_ADDRESS_MODE_CLAMP);
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceViewDesc(&v, t));
    fails(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(t));
    ok(cuTexObjectDestroy(t));
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(t));
    ok(cuTexObjectDestroy(other));
    ok(cuArrayDestroy(a));
}

static void test_textures_of_memory(void **state)
{
    uint32_t words[2][32], got[8];
    CUdeviceptr memory, out;
    CUtexObject t;
    for (uint32_t i = 0; i < 64; i++)
        words[i / 32][i % 32] = i + 7;
    ok(cuMemAlloc_v2(&memory, sizeof words));
    ok(cuMemAlloc_v2(&out, sizeof got));
    ok(cuMemcpyHtoD_v2(memory, words, sizeof words));
    CUDA_RESOURCE_DESC r;
    CUDA_TEXTURE_DESC d = sampler();
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_PITCH2D;
    r.res.pitch2D.devPtr = memory;
    r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT32;
    r.res.pitch2D.numChannels = 1;
    r.res.pitch2D.width = 6;
    r.res.pitch2D.height = 2;
    r.res.pitch2D.pitchInBytes = 128;
    ok(cuTexObjectCreate(&t, &r, &d, NULL));
    float y = 1.25f;
    void *arguments[] = {&out, &t, &y};
    launch(function("fetch"), 8, arguments);
    ok(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (int x = 0; x < 8; x++)
        assert_int_equal(got[x], words[1][x < 6 ? x : 5]);
    ok(cuTexObjectDestroy(t));
    CUDA_RESOURCE_DESC bad = r;
    bad.res.pitch2D.pitchInBytes = 100;
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &bad, &d, NULL));
    bad = r;
    bad.res.pitch2D.devPtr += 64;
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &bad, &d, NULL));
    bad = r;
    bad.res.pitch2D.width = 33;
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &bad, &d, NULL));
    bad = r;
    bad.flags = 1;
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &bad, &d, NULL));
    CUDA_TEXTURE_DESC bad_sampler = d;
    bad_sampler.flags = 0x1000;
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &bad_sampler, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, NULL, &d, NULL));
    ok(cuMemFree_v2(memory));
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &d, NULL));
    ok(cuMemFree_v2(out));
}

static void test_levels_and_views(void **state)
{
    CUmipmappedArray m;
    CUarray level;
    CUtexObject t;
    CUdeviceptr out;
    uint32_t got;
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1},
                            part;
    ok(cuMemAlloc_v2(&out, 4));
    ok(cuMipmappedArrayCreate(&m, &d, 9)); /* no more than there can be: 8, 4, 2, 1 */
    fails(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, m, 4));
    for (uint32_t i = 0; i < 4; i++) {
        ok(cuMipmappedArrayGetLevel(&level, m, i));
        ok(cuArray3DGetDescriptor_v2(&part, level));
        assert_true(part.Width == 8u >> i && part.Height == (i < 2 ? 4u >> i : 1));
        uint32_t fill[32];
        for (int k = 0; k < 32; k++)
            fill[k] = 50 + i;
        CUDA_MEMCPY2D c = host_to_array(fill, level, part.Width * 4, part.Height);
        ok(cuMemcpy2D_v2(&c));
    }
    fails(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(level));
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    r.res.mipmap.hMipmappedArray = m;
    CUDA_TEXTURE_DESC s = sampler();
    s.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    s.maxMipmapLevelClamp = 9;
    CUDA_RESOURCE_VIEW_DESC v = {.firstMipmapLevel = 1, .lastMipmapLevel = 2}, v2;
    CUfunction f = function("level");
    for (int viewed = 0; viewed < 2; viewed++) {
        ok(cuTexObjectCreate(&t, &r, &s, viewed ? &v : NULL));
        for (uint32_t i = 0; i < 5; i++) {
            float l = (float)i;
            void *arguments[] = {&out, &t, &l};
            launch(f, 1, arguments);
            ok(cuMemcpyDtoH_v2(&got, out, 4));
            assert_int_equal(got, viewed ? (i < 1 ? 51 : 52) : 50 + (i < 3 ? i : 3));
        }
        if (viewed) {
            ok(cuTexObjectGetResourceViewDesc(&v2, t));
            assert_memory_equal(&v2, &v, sizeof v);
        }
        ok(cuTexObjectDestroy(t));
    }
    v.lastMipmapLevel = 4;
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &s, &v));
    v = (CUDA_RESOURCE_VIEW_DESC){.format = CU_RES_VIEW_FORMAT_FLOAT_1X16};
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &s, &v));
    v.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
    fails(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&t, &r, &s, &v));
    v.format = CU_RES_VIEW_FORMAT_UINT_4X8; /* the lowest byte of each word */
    ok(cuTexObjectCreate(&t, &r, &s, &v));
    float l = 0;
    void *arguments[] = {&out, &t, &l};
    launch(f, 1, arguments);
    ok(cuMemcpyDtoH_v2(&got, out, 4));
    assert_int_equal(got, 50);
    ok(cuTexObjectDestroy(t));
    ok(cuMipmappedArrayDestroy(m));
    fails(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(m));
    fails(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&part, level));
    ok(cuMemFree_v2(out));
}

static void test_layers(void **state)
{
    CUarray a;
    CUtexObject t;
    CUdeviceptr out;
    uint32_t fill[3 * 4], got;
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 2,
                                 .Height = 2,
                                 .Depth = 3,
                                 .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                 .NumChannels = 1,
                                 .Flags = CUDA_ARRAY3D_LAYERED};
    for (uint32_t i = 0; i < 12; i++)
        fill[i] = i / 4;
    ok(cuMemAlloc_v2(&out, 4));
    ok(cuArray3DCreate_v2(&a, &d));
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = fill,
                       .srcPitch = 8,
                       .srcHeight = 2,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = a,
                       .WidthInBytes = 8,
                       .Height = 2,
                       .Depth = 3};
    ok(cuMemcpy3D_v2(&c));
    CUDA_RESOURCE_DESC r = resource_of(a);
    CUDA_TEXTURE_DESC s = sampler();
    CUDA_RESOURCE_VIEW_DESC v = {.firstLayer = 1, .lastLayer = 2};
    for (uint32_t viewed = 0; viewed < 2; viewed++) {
        ok(cuTexObjectCreate(&t, &r, &s, viewed ? &v : NULL));
        for (uint32_t l = 0; l < 4; l++) {
            void *arguments[] = {&out, &t, &l};
            launch(function("layer"), 1, arguments);
            ok(cuMemcpyDtoH_v2(&got, out, 4));
            assert_int_equal(got, l + viewed < 2 ? l + viewed : 2);
        }
        ok(cuTexObjectDestroy(t));
    }
    ok(cuArrayDestroy(a));
    ok(cuMemFree_v2(out));
}

/* ---- surfaces ---- */

static void test_surfaces(void **state)
{
    CUarray a = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    CUsurfObject s;
    CUDA_RESOURCE_DESC r = resource_of(a), r2;
    uint32_t image[H][W], x = 8, y = 3;
    memset(image, 0, sizeof image);
    CUDA_MEMCPY2D c = host_to_array(image, a, W * 4, H);
    ok(cuMemcpy2D_v2(&c));
    ok(cuSurfObjectCreate(&s, &r));
    ok(cuSurfObjectGetResourceDesc(&r2, s));
    assert_true(r2.res.array.hArray == a);
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(s));
    void *arguments[] = {&s, &x, &y};
    CUfunction f = function("add");
    for (int i = 0; i < 3; i++)
        launch(f, 1, arguments);
    c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = a,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = image,
                        .dstPitch = W * 4,
                        .WidthInBytes = W * 4,
                        .Height = H};
    ok(cuMemcpy2D_v2(&c));
    for (int i = 0; i < W * H; i++)
        assert_int_equal(image[i / W][i % W], i == 3 * W + 2 ? 3 : 0);
    CUarray plain = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0);
    CUDA_RESOURCE_DESC bad = resource_of(plain);
    CUsurfObject none;
    fails(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&none, &bad));
    ok(cuArrayDestroy(plain));
    /* Outside, the kernel traps. */
    y = H;
    launch(f, 1, arguments);
    fails(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    ok(reset_context(state));
    ok(cuCtxSynchronize());
}

static void CUDA_CB hold(void *gate)
{
    while (!__atomic_load_n((int *)gate, __ATOMIC_ACQUIRE))
        usleep(1000);
}

/* A launch that waits in its stream keeps its textures when the program destroys the objects meanwhile. */
static void test_objects_destroyed_behind_a_launch(void **state)
{
    CUarray a = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC r = resource_of(a);
    CUDA_TEXTURE_DESC d = sampler(), got;
    CUtexObject t;
    CUsurfObject s;
    CUstream stream;
    CUdeviceptr out;
    uint32_t image[H][W], values[8], x = 0, y = 0;
    int gate = 0;
    for (uint32_t i = 0; i < W * H; i++)
        image[i / W][i % W] = i + 40;
    CUDA_MEMCPY2D c = host_to_array(image, a, W * 4, H);
    ok(cuMemcpy2D_v2(&c));
    ok(cuMemAlloc_v2(&out, sizeof values));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUfunction fetch = function("fetch"), add = function("add");
    ok(cuTexObjectCreate(&t, &r, &d, NULL));
    ok(cuSurfObjectCreate(&s, &r));
    ok(cuLaunchHostFunc(stream, hold, &gate));
    float row = 0.5f;
    void *of_add[] = {&s, &x, &y}, *of_fetch[] = {&out, &t, &row};
    ok(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, of_add, NULL));
    ok(cuLaunchKernel(fetch, 1, 1, 1, 8, 1, 1, 0, stream, of_fetch, NULL));
    ok(cuTexObjectDestroy(t));
    ok(cuSurfObjectDestroy(s));
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(t));
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetTextureDesc(&got, t));
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    ok(cuArrayDestroy(a)); /* waits */
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH_v2(values, out, sizeof values));
    for (uint32_t i = 0; i < W; i++)
        assert_int_equal(values[i], image[0][i] + (i == 0));
    /* One that is queued behind that finds none. */
    ok(cuLaunchKernel(fetch, 1, 1, 1, 8, 1, 1, 0, stream, of_fetch, NULL));
    fails(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
    ok(reset_context(state));
}

/* An object outlives its array, but is of nothing then. */
static void test_array_that_is_gone(void **state)
{
    CUarray a = array_2d(W, H, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC r = resource_of(a);
    CUDA_TEXTURE_DESC d = sampler();
    CUtexObject t;
    CUsurfObject s;
    ok(cuTexObjectCreate(&t, &r, &d, NULL));
    ok(cuSurfObjectCreate(&s, &r));
    ok(cuArrayDestroy(a));
    fails(CUDA_ERROR_INVALID_HANDLE, cuSurfObjectCreate(&s, &r));
    uint32_t x = 0, y = 0;
    void *arguments[] = {&s, &x, &y};
    launch(function("add"), 1, arguments);
    fails(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    ok(reset_context(state));
    fails(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(t)); /* it went with the context */
}

/* Arrays and objects of a context go with it; those of others stay. */
static void test_context_ends(void **state)
{
    CUcontext c;
    CUtexObject t;
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR got;
    CUDA_TEXTURE_DESC s = sampler();
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuArrayCreate_v2(&a, &d));
    CUcontext old;
    ok(cuCtxPopCurrent_v2(&old));
    CUDA_RESOURCE_DESC r = resource_of(a);
    ok(cuTexObjectCreate(&t, &r, &s, NULL));
    ok(cuCtxDestroy_v2(c));
    fails(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&got, a));
    ok(cuTexObjectDestroy(t));
}

/* Descriptions of copies, launches, arrays and objects. */
static void *describe_without_context(void *out)
{
    const CUresult none = CUDA_ERROR_INVALID_CONTEXT;
    void *nowhere = (void *)0x1000;
    CUarray array;
    CUmipmappedArray levels;
    CUtexObject object;
    int *wrong = out;
    *wrong = cuMemcpy2D_v2(nowhere) != none;
    *wrong += cuMemcpy2DUnaligned_v2(nowhere) != none;
    *wrong += cuMemcpy2DAsync_v2(nowhere, NULL) != none;
    *wrong += cuMemcpy3D_v2(nowhere) != none;
    *wrong += cuMemcpy3DAsync_v2(nowhere, NULL) != none;
    *wrong += cuMemcpy3DPeer(nowhere) != none;
    *wrong += cuMemcpy3DPeerAsync(nowhere, NULL) != none;
    *wrong += cuLaunchKernelEx(nowhere, NULL, NULL, NULL) != none;
    *wrong += cuArrayCreate_v2(&array, nowhere) != none;
    *wrong += cuArray3DCreate_v2(&array, nowhere) != none;
    *wrong += cuMipmappedArrayCreate(&levels, nowhere, 1) != none;
    *wrong += cuTexObjectCreate(&object, nowhere, nowhere, nowhere) != none;
    *wrong += cuSurfObjectCreate(&object, nowhere) != none;
    return NULL;
}

static void test_descriptions_without_a_context(void **state)
{
    pthread_t thread;
    int wrong = 42;
    pthread_create(&thread, NULL, describe_without_context, &wrong);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptions_without_a_context),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_shapes_that_are_none),
        cmocka_unit_test(test_copies_of_boxes),
        cmocka_unit_test(test_copies_of_volumes),
        cmocka_unit_test(test_copies_of_lines),
        cmocka_unit_test(test_texture_of_an_array),
        cmocka_unit_test(test_textures_of_memory),
        cmocka_unit_test(test_levels_and_views),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_surfaces),
        cmocka_unit_test(test_objects_destroyed_behind_a_launch),
        cmocka_unit_test(test_array_that_is_gone),
        cmocka_unit_test(test_context_ends),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
