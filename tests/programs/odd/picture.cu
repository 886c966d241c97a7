/* picture.cu - textures and surfaces: an image is turned through a filtering texture, looked up in a table of linear memory,
 * read with a pitch, blurred slice by slice through surfaces, reduced to a pyramid of levels; a volume and a cube are sampled.
 * Everything is computed again on the host, with the device's weights of 1/256. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            printf("%s: %s\n", #call, cudaGetErrorString(error));                                                      \
            return 2;                                                                                                  \
        }                                                                                                              \
    } while (0)
#define W 40
#define H 24

static int wrong;

static void same(const char *what, const std::vector<float> &got, const std::vector<float> &want)
{
    double sum = 0;
    bool good = got.size() == want.size();
    for (size_t i = 0; i < want.size(); i++) {
        sum += got[i];
        good = good && fabs((double)got[i] - want[i]) < 1e-5; /* false for NaN too */
    }
    wrong += !good;
    printf("%-10s %4zu values, sum %.3f: %s\n", what, got.size(), sum, good ? "right" : "wrong");
}

__global__ void turn(cudaTextureObject_t image, float *out, float cosine, float sine)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= W)
        return;
    float u = (x + 0.5f) / W - 0.5f, v = (y + 0.5f) / H - 0.5f;
    out[y * W + x] = tex2D<float>(image, u * cosine - v * sine + 0.5f, u * sine + v * cosine + 0.5f);
}

__global__ void look_up(cudaTextureObject_t table, const int *index, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uchar4 c = tex1Dfetch<uchar4>(table, index[i]);
        out[i] = c.x + 256.0f * c.y + c.z / 256.0f + c.w;
    }
}

__global__ void read_pitched(cudaTextureObject_t bytes, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < W)
        out[y * W + x] = tex2D<float>(bytes, x + 0.5f, y + 0.5f);
}

__global__ void blur_layers(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int layers)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, layer = blockIdx.z;
    if (x >= W || layer >= layers)
        return;
    float left, middle, right;
    surf2DLayeredread(&left, from, (x - 1) * 4, y, layer, cudaBoundaryModeClamp);
    surf2DLayeredread(&middle, from, x * 4, y, layer);
    surf2DLayeredread(&right, from, (x + 1) * 4, y, layer, cudaBoundaryModeZero);
    surf2DLayeredwrite(left + 2 * middle + right, to, x * 4, y, layer);
}

__global__ void halve(cudaTextureObject_t finer, cudaSurfaceObject_t coarser, int width, int height)
{
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < height)
        surf2Dwrite(tex2D<float>(finer, (x + 0.5f) / width, (y + 0.5f) / height), coarser, x * 4, y);
}

__global__ void levels(cudaTextureObject_t pyramid, float *out, int n)
{
    int i = threadIdx.x;
    if (i < n)
        out[i] = tex2DLod<float>(pyramid, 0.3f, 0.6f, i * 0.25f);
}

__global__ void sample_volume(cudaTextureObject_t volume, float *out, int n)
{
    int i = threadIdx.x;
    if (i < n)
        out[i] = tex3D<float>(volume, i * 0.3f, i * 0.2f + 0.25f, i * 0.1f);
}

__global__ void sample_cube(cudaTextureObject_t cube, float *out)
{
    const float directions[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    int i = threadIdx.x;
    if (i < 6)
        out[i] = texCubemap<float>(cube, directions[i][0], directions[i][1], directions[i][2]);
}

/* ---- the host's side ---- */

static float weight(float x)
{
    return rintf((x - floorf(x)) * 256) / 256;
}

static float bilinear(const float *image, int width, int height, float u, float v, bool wrap)
{
    float x = u * width - 0.5f, y = v * height - 0.5f, a = weight(x), b = weight(y), sum = 0;
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++) {
            int px = (int)floorf(x) + i, py = (int)floorf(y) + j;
            if (wrap) {
                px = (px % width + width) % width;
                py = (py % height + height) % height;
            } else {
                px = px < 0 ? 0 : px >= width ? width - 1 : px;
                py = py < 0 ? 0 : py >= height ? height - 1 : py;
            }
            sum += (i ? a : 1 - a) * (j ? b : 1 - b) * image[py * width + px];
        }
    return sum;
}

static cudaTextureDesc reading(cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalised)
{
    cudaTextureDesc d;
    memset(&d, 0, sizeof d);
    d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = mode;
    d.filterMode = d.mipmapFilterMode = filter;
    d.readMode = cudaReadModeElementType;
    d.normalizedCoords = normalised;
    return d;
}

static cudaResourceDesc of_array(cudaArray_t array)
{
    cudaResourceDesc d;
    memset(&d, 0, sizeof d);
    d.resType = cudaResourceTypeArray;
    d.res.array.array = array;
    return d;
}

static int fetch(std::vector<float> &host, const float *device)
{
    CHECK(cudaMemcpy(host.data(), device, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return 0;
}

static int turn_image(const std::vector<float> &image, float *out)
{
    cudaArray_t array;
    cudaTextureObject_t texture;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, W, H));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = of_array(array);
    cudaTextureDesc how = reading(cudaAddressModeWrap, cudaFilterModeLinear, true);
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    turn<<<dim3(2, H), 32>>>(texture, out, 0.8f, 0.6f);
    CHECK(cudaGetLastError());
    std::vector<float> got(W * H), want(W * H);
    if (fetch(got, out))
        return 2;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float u = (x + 0.5f) / W - 0.5f, v = (y + 0.5f) / H - 0.5f;
            want[y * W + x] = bilinear(image.data(), W, H, fmaf(u, 0.8f, -(v * 0.6f)) + 0.5f,
                                       fmaf(u, 0.6f, v * 0.8f) + 0.5f, true);
        }
    /* A coordinate may be rounded to the other side of 1/512: then a weight differs by 1/256. */
    for (int i = 0; i < W * H; i++)
        if (fabsf(got[i] - want[i]) < 2.0f / 256 * 64)
            want[i] = got[i];
    same("turned", got, want);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    return 0;
}

static int tables(float *out)
{
    enum { N = 100, M = 64 };
    unsigned char table[M][4], *device, *pitched;
    int index[N], *device_index;
    std::vector<float> got(N), want(N);
    for (int i = 0; i < M * 4; i++)
        table[i / 4][i % 4] = (unsigned char)(i * 37);
    for (int i = 0; i < N; i++) {
        index[i] = i * 7 % (M + 8) - 4;
        const unsigned char none[4] = {0}, *t = index[i] < 0 || index[i] >= M ? none : table[index[i]];
        want[i] = t[0] + 256.0f * t[1] + t[2] / 256.0f + t[3];
    }
    CHECK(cudaMalloc(&device, sizeof table));
    CHECK(cudaMalloc(&device_index, sizeof index));
    CHECK(cudaMemcpy(device, table, sizeof table, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_index, index, sizeof index, cudaMemcpyHostToDevice));
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.linear.sizeInBytes = sizeof table;
    cudaTextureDesc how = reading(cudaAddressModeClamp, cudaFilterModePoint, false);
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    look_up<<<4, 32>>>(texture, device_index, out, N);
    if (fetch(got, out))
        return 2;
    same("table", got, want);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFree(device));
    CHECK(cudaFree(device_index));

    std::vector<unsigned char> bytes(W * H);
    size_t pitch;
    got.resize(W * H);
    want.resize(W * H);
    for (int i = 0; i < W * H; i++) {
        bytes[i] = (unsigned char)(i * 11);
        want[i] = bytes[i] / 255.0f;
    }
    CHECK(cudaMallocPitch(&pitched, &pitch, W, H));
    CHECK(cudaMemcpy2D(pitched, pitch, bytes.data(), W, W, H, cudaMemcpyHostToDevice));
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
    resource.res.pitch2D.width = W;
    resource.res.pitch2D.height = H;
    resource.res.pitch2D.pitchInBytes = pitch;
    how.readMode = cudaReadModeNormalizedFloat;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    read_pitched<<<dim3(2, H), 32>>>(texture, out);
    if (fetch(got, out))
        return 2;
    same("pitched", got, want);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFree(pitched));
    return 0;
}

static int layers()
{
    enum { LAYERS = 3 };
    std::vector<float> image(W * H * LAYERS), got(image.size()), want(image.size());
    for (size_t i = 0; i < image.size(); i++)
        image[i] = (float)(i * 31 % 97);
    cudaArray_t from, to;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaExtent extent = make_cudaExtent(W, H, LAYERS);
    CHECK(cudaMalloc3DArray(&from, &format, extent, cudaArrayLayered | cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&to, &format, extent, cudaArrayLayered | cudaArraySurfaceLoadStore));
    cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr(image.data(), W * 4, W, H);
    copy.dstArray = from;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaResourceDesc source = of_array(from), target = of_array(to);
    cudaSurfaceObject_t a, b;
    CHECK(cudaCreateSurfaceObject(&a, &source));
    CHECK(cudaCreateSurfaceObject(&b, &target));
    blur_layers<<<dim3(2, H, LAYERS), 32>>>(a, b, LAYERS);
    CHECK(cudaGetLastError());
    memset(&copy, 0, sizeof copy);
    copy.srcArray = to;
    copy.dstPtr = make_cudaPitchedPtr(got.data(), W * 4, W, H);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    for (size_t i = 0; i < image.size(); i++) {
        int x = (int)(i % W);
        want[i] = (x ? image[i - 1] : image[i]) + 2 * image[i] + (x < W - 1 ? image[i + 1] : 0);
    }
    same("layers", got, want);
    CHECK(cudaDestroySurfaceObject(a));
    CHECK(cudaDestroySurfaceObject(b));
    CHECK(cudaFreeArray(from));
    CHECK(cudaFreeArray(to));
    return 0;
}

static int pyramid(const std::vector<float> &image, float *out)
{
    enum { LEVELS = 4, N = 14 };
    cudaMipmappedArray_t mipmap;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(W, H, 0), LEVELS, cudaArraySurfaceLoadStore));
    std::vector<std::vector<float>> host(1, image);
    cudaArray_t finer, coarser;
    CHECK(cudaGetMipmappedArrayLevel(&finer, mipmap, 0));
    CHECK(cudaMemcpy2DToArray(finer, 0, 0, image.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    for (int level = 1; level < LEVELS; level++, finer = coarser) {
        int width = W >> level, height = H >> level;
        CHECK(cudaGetMipmappedArrayLevel(&coarser, mipmap, level));
        cudaResourceDesc source = of_array(finer), target = of_array(coarser);
        cudaTextureDesc how = reading(cudaAddressModeClamp, cudaFilterModeLinear, true);
        cudaTextureObject_t texture;
        cudaSurfaceObject_t surface;
        CHECK(cudaCreateTextureObject(&texture, &source, &how, NULL));
        CHECK(cudaCreateSurfaceObject(&surface, &target));
        halve<<<height, 32>>>(texture, surface, width, height);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaDestroyTextureObject(texture));
        CHECK(cudaDestroySurfaceObject(surface));
        host.push_back(std::vector<float>(width * height));
        for (int i = 0; i < width * height; i++)
            host[level][i] = bilinear(host[level - 1].data(), W >> (level - 1), H >> (level - 1),
                                      (i % width + 0.5f) / width, (i / width + 0.5f) / height, false);
    }
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc how = reading(cudaAddressModeClamp, cudaFilterModeLinear, true);
    how.maxMipmapLevelClamp = LEVELS - 1;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    levels<<<1, 32>>>(texture, out, N);
    std::vector<float> got(N), want(N);
    if (fetch(got, out))
        return 2;
    for (int i = 0; i < N; i++) {
        float level = fminf(i * 0.25f, LEVELS - 1), a = level - floorf(level);
        int l = (int)level;
        want[i] = bilinear(host[l].data(), W >> l, H >> l, 0.3f, 0.6f, false);
        if (a > 0)
            want[i] = (1 - a) * want[i] + a * bilinear(host[l + 1].data(), W >> (l + 1), H >> (l + 1), 0.3f, 0.6f, false);
    }
    same("pyramid", got, want);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeMipmappedArray(mipmap));
    return 0;
}

static int solids(float *out)
{
    enum { N = 8, SAMPLES = 20 };
    std::vector<float> volume(N * N * N), got(SAMPLES), want(SAMPLES);
    for (int i = 0; i < N * N * N; i++) /* linear, so that its samples are; up to the weights */
        volume[i] = i % N * 256.0f + i / N % N * 65536.0f + i / (N * N) * 1024.0f;
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(N, N, N)));
    cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr(volume.data(), N * 4, N, N);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(N, N, N);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaResourceDesc resource = of_array(array);
    cudaTextureDesc how = reading(cudaAddressModeClamp, cudaFilterModeLinear, false);
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    sample_volume<<<1, 32>>>(texture, out, SAMPLES);
    if (fetch(got, out))
        return 2;
    for (int i = 0; i < SAMPLES; i++) {
        float at[3] = {i * 0.3f, fmaf(i, 0.2f, 0.25f), i * 0.1f}, steps[3] = {256, 65536, 1024};
        for (int a = 0; a < 3; a++) {
            float x = fminf(fmaxf(at[a] - 0.5f, 0), N - 1);
            want[i] += (floorf(x) + weight(x)) * steps[a];
        }
    }
    same("volume", got, want);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));

    float faces[6][4];
    for (int i = 0; i < 24; i++)
        faces[i / 4][i % 4] = (float)(i / 4 * 10);
    got.resize(6);
    want.assign(6, 0);
    for (int i = 0; i < 6; i++)
        want[i] = faces[i][0];
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(2, 2, 6), cudaArrayCubemap));
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr(faces, 8, 2, 2);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(2, 2, 6);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    resource = of_array(array);
    how.normalizedCoords = 1;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
    sample_cube<<<1, 32>>>(texture, out);
    if (fetch(got, out))
        return 2;
    same("cube", got, want);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    return 0;
}

int main()
{
    float *out;
    std::vector<float> image(W * H);
    for (int i = 0; i < W * H; i++)
        image[i] = (float)(i * 29 % 64);
    CHECK(cudaMalloc(&out, W * H * sizeof *out));
    int error = turn_image(image, out) || tables(out) || layers() || pyramid(image, out) || solids(out);
    CHECK(cudaFree(out));
    return error ? 2 : wrong != 0;
}
