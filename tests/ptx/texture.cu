// Textures and surfaces, as programs write them.
// Made into texture.ptx by scripts/make-test-ptx: nvcc -ptx -lineinfo -arch=sm_75 texture.cu
#include <cuda_runtime.h>
#define KERNEL extern "C" __global__ void

// Twice the size, filtered.
KERNEL enlarge(cudaTextureObject_t image, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height)
        out[y * width + x] = tex2D<float>(image, (x + 0.5f) / width, (y + 0.5f) / height);
}

KERNEL gather_bytes(cudaTextureObject_t table, const int *index, uchar4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1Dfetch<uchar4>(table, index[i]);
}

KERNEL sum_fetched(cudaTextureObject_t table, float *out, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += tex1Dfetch<float>(table, i);
    *out = sum;
}

// Every form of fetch, one result each.
KERNEL all_fetches(cudaTextureObject_t t, float4 *out, float x, float y, float z, int i)
{
    out[0] = tex1D<float4>(t, x);
    out[1] = tex2D<float4>(t, x, y);
    out[2] = tex3D<float4>(t, x, y, z);
    out[3] = tex1DLayered<float4>(t, x, i);
    out[4] = tex2DLayered<float4>(t, x, y, i);
    out[5] = texCubemap<float4>(t, x, y, z);
    out[6] = texCubemapLayered<float4>(t, x, y, z, i);
    out[7] = tex1DLod<float4>(t, x, z);
    out[8] = tex2DLod<float4>(t, x, y, z);
    out[9] = tex3DLod<float4>(t, x, y, z, x);
    out[10] = tex1DLayeredLod<float4>(t, x, i, x);
    out[11] = tex2DLayeredLod<float4>(t, x, y, i, x);
    out[12] = texCubemapLod<float4>(t, x, y, z, x);
    out[13] = texCubemapLayeredLod<float4>(t, x, y, z, i, x);
    out[14] = tex1DGrad<float4>(t, x, y, z);
    out[15] = tex2DGrad<float4>(t, x, y, make_float2(x, y), make_float2(z, x));
    out[16] = tex3DGrad<float4>(t, x, y, z, make_float4(x, y, z, 0), make_float4(z, y, x, 0));
    out[17] = tex1DLayeredGrad<float4>(t, x, i, y, z);
    out[18] = tex2DLayeredGrad<float4>(t, x, y, i, make_float2(x, y), make_float2(z, x));
    out[19] = texCubemapGrad<float4>(t, x, y, z, make_float4(x, y, z, 0), make_float4(z, y, x, 0));
    out[20] = tex2Dgather<float4>(t, x, y, 0);
    out[21] = tex2Dgather<float4>(t, x, y, 3);
    bool resident;
    out[22] = tex2D<float4>(t, x, y, &resident);
    out[23].x = resident;
}

// Transposes a surface of 16-byte elements into another.
KERNEL transpose(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height)
        surf2Dwrite(surf2Dread<float4>(from, x * 16, y), to, y * 16, x);
}

// Stores far outside, kept inside by the boundary mode.
KERNEL beyond(cudaSurfaceObject_t s, int mode)
{
    int x = threadIdx.x - 2;
    if (mode == 0)
        surf1Dwrite((unsigned short)(x + 100), s, x * 2, cudaBoundaryModeZero);
    else if (mode == 1)
        surf1Dwrite((unsigned short)(x + 100), s, x * 2, cudaBoundaryModeClamp);
    else
        surf1Dwrite((unsigned short)(x + 100), s, x * 2, cudaBoundaryModeTrap);
}

// Every geometry of a surface: adds 1 to one element of each.
KERNEL all_surfaces(cudaSurfaceObject_t one, cudaSurfaceObject_t two, cudaSurfaceObject_t three,
                    cudaSurfaceObject_t layered1, cudaSurfaceObject_t layered2, int x, int y, int z)
{
    surf1Dwrite(surf1Dread<int>(one, x * 4) + 1, one, x * 4);
    surf2Dwrite(surf2Dread<long long>(two, x * 8, y) + 1, two, x * 8, y);
    surf3Dwrite((unsigned char)(surf3Dread<unsigned char>(three, x, y, z) + 1), three, x, y, z);
    short2 v = surf1DLayeredread<short2>(layered1, x * 4, z);
    surf1DLayeredwrite(make_short2(v.x + 1, v.y + 1), layered1, x * 4, z);
    int2 w = surf2DLayeredread<int2>(layered2, x * 8, y, z);
    surf2DLayeredwrite(make_int2(w.x + 1, w.y + 1), layered2, x * 8, y, z);
}
