/*
 * blas.cu - a two-layer perceptron on cuBLAS and cuBLASLt, forward and one backward step, checked against host loops.
 *
 * X (FEATURES by BATCH) -> H = relu(W1 X + b1) -> Y = W2 H, all column-major; loss 1/2 |Y - T|^2. The first layer is a
 * fused cublasLtMatmul, the second a cublasSgemm; gradients come from cublasSgemm, cublasSgemv and a kernel of its own.
 * Two streams with a handle each, device and host pointer modes, a strided batch, and half-precision products.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "../must.h"

#define FEATURES 37
#define HIDDEN   53
#define CLASSES  11
#define BATCH    29
#define THREADS  128

#define CHECK_BLAS(call)                                                                                               \
    do {                                                                                                               \
        cublasStatus_t status_ = (call);                                                                               \
        if (status_ != CUBLAS_STATUS_SUCCESS) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cublasGetStatusString(status_));             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef std::vector<float> host_array;

/* ---- the device's part ---- */

__global__ void loss_gradient(int count, const float *output, const float *target, float *gradient)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        gradient[i] = output[i] - target[i];
}

__global__ void relu_gradient(int count, const float *activation, float *gradient)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count && activation[i] <= 0.0f)
        gradient[i] = 0.0f;
}

__global__ void to_half(int count, const float *from, __half *to)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        to[i] = __float2half(from[i]);
}

static int blocks_for(int count)
{
    return (count + THREADS - 1) / THREADS;
}

/* ---- the host's part ---- */

static host_array random_array(int count, unsigned seed)
{
    host_array values(count);

    for (float &value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = (float)((int)(seed >> 12) - (1 << 19)) / (float)(1 << 20); /* 20 bits: more than TF32 has */
    }
    return values;
}

/* c = op(a) op(b), sums in double. */
static host_array product(bool ta, bool tb, int m, int n, int k, const host_array &a, const host_array &b)
{
    host_array c((size_t)m * n);

    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0.0;

            for (int l = 0; l < k; l++)
                sum += (double)a[ta ? l + i * k : i + l * m] * (double)b[tb ? j + l * n : l + j * k];
            c[i + (size_t)j * m] = (float)sum;
        }
    return c;
}

static float *upload(const host_array &values)
{
    float *device = NULL;

    MUST(cudaMalloc(&device, values.size() * sizeof(float)));
    MUST(cudaMemcpy(device, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return device;
}

static float *allocate(size_t count)
{
    float *device = NULL;

    MUST(cudaMalloc(&device, count * sizeof(float)));
    return device;
}

static int failures;

static void compare(const char *what, const float *device, const host_array &wanted, double tolerance)
{
    host_array got(wanted.size());
    int wrong = 0;

    MUST(cudaMemcpy(got.data(), device, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); i++)
        if (!(fabs((double)got[i] - (double)wanted[i]) <= tolerance * fmax(1.0, fabs((double)wanted[i]))))
            wrong++;
    printf("%-26s %5zu values  %s\n", what, got.size(), wrong ? "WRONG" : "ok");
    failures += wrong != 0;
}

/* ---- the network ---- */

/* h = relu(w x + b) in one call. */
static void fused_layer(cublasLtHandle_t lt, cudaStream_t stream, const float *w, const float *x, const float *b, float *h)
{
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t w_layout, x_layout, h_layout;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    const float one = 1.0f, zero = 0.0f;
    int found = 0;

    CHECK_BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &b, sizeof b));
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&w_layout, CUDA_R_32F, HIDDEN, FEATURES, HIDDEN));
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&x_layout, CUDA_R_32F, FEATURES, BATCH, FEATURES));
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&h_layout, CUDA_R_32F, HIDDEN, BATCH, HIDDEN));
    CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
    CHECK_BLAS(cublasLtMatmulAlgoGetHeuristic(lt, operation, w_layout, x_layout, h_layout, h_layout, preference, 1, &best,
                                              &found));
    if (found != 1) {
        fprintf(stderr, "no algorithm for the fused layer\n");
        exit(1);
    }
    CHECK_BLAS(cublasLtMatmul(lt, operation, &one, w, w_layout, x, x_layout, &zero, h, h_layout, h, h_layout, &best.algo,
                              NULL, 0, stream));
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(h_layout);
    cublasLtMatrixLayoutDestroy(x_layout);
    cublasLtMatrixLayoutDestroy(w_layout);
    cublasLtMatmulDescDestroy(operation);
}

static void network(cublasHandle_t handle, cublasLtHandle_t lt, cudaStream_t stream)
{
    const host_array x = random_array(FEATURES * BATCH, 1), w1 = random_array(HIDDEN * FEATURES, 2);
    const host_array b1 = random_array(HIDDEN, 3), w2 = random_array(CLASSES * HIDDEN, 4);
    const host_array target = random_array(CLASSES * BATCH, 5), ones((size_t)BATCH, 1.0f);
    float *dx = upload(x), *dw1 = upload(w1), *db1 = upload(b1), *dw2 = upload(w2), *dtarget = upload(target);
    float *dones = upload(ones), *dh = allocate(HIDDEN * BATCH), *dy = allocate(CLASSES * BATCH);
    float *gy = allocate(CLASSES * BATCH), *gh = allocate(HIDDEN * BATCH), *gw1 = allocate(HIDDEN * FEATURES);
    float *gw2 = allocate(CLASSES * HIDDEN), *gb1 = allocate(HIDDEN);
    const float one = 1.0f, zero = 0.0f;
    float norm = 0.0f;

    CHECK_BLAS(cublasSetStream(handle, stream));
    fused_layer(lt, stream, dw1, dx, db1, dh);
    CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, CLASSES, BATCH, HIDDEN, &one, dw2, CLASSES, dh, HIDDEN,
                           &zero, dy, CLASSES));
    loss_gradient<<<blocks_for(CLASSES * BATCH), THREADS, 0, stream>>>(CLASSES * BATCH, dy, dtarget, gy);
    MUST(cudaGetLastError());
    CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, CLASSES, HIDDEN, BATCH, &one, gy, CLASSES, dh, HIDDEN,
                           &zero, gw2, CLASSES));
    CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, HIDDEN, BATCH, CLASSES, &one, dw2, CLASSES, gy, CLASSES,
                           &zero, gh, HIDDEN));
    relu_gradient<<<blocks_for(HIDDEN * BATCH), THREADS, 0, stream>>>(HIDDEN * BATCH, dh, gh);
    MUST(cudaGetLastError());
    CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, HIDDEN, FEATURES, BATCH, &one, gh, HIDDEN, dx, FEATURES,
                           &zero, gw1, HIDDEN));
    CHECK_BLAS(cublasSgemv(handle, CUBLAS_OP_N, HIDDEN, BATCH, &one, gh, HIDDEN, dones, 1, &zero, gb1, 1));
    CHECK_BLAS(cublasSnrm2(handle, CLASSES * BATCH, gy, 1, &norm));
    MUST(cudaStreamSynchronize(stream));

    host_array h = product(false, false, HIDDEN, BATCH, FEATURES, w1, x);
    for (int i = 0; i < HIDDEN * BATCH; i++)
        h[i] = fmaxf(h[i] + b1[i % HIDDEN], 0.0f);
    host_array y = product(false, false, CLASSES, BATCH, HIDDEN, w2, h), ey = y;
    double squares = 0.0;
    for (int i = 0; i < CLASSES * BATCH; i++) {
        ey[i] = y[i] - target[i];
        squares += (double)ey[i] * (double)ey[i];
    }
    host_array eh = product(true, false, HIDDEN, BATCH, CLASSES, w2, ey), eb(HIDDEN, 0.0f);
    for (int i = 0; i < HIDDEN * BATCH; i++) {
        eh[i] = h[i] > 0.0f ? eh[i] : 0.0f;
        eb[i % HIDDEN] += eh[i];
    }
    compare("hidden layer, fused", dh, h, 1e-5);
    compare("output layer", dy, y, 1e-5);
    compare("gradient of output weights", gw2, product(false, true, CLASSES, HIDDEN, BATCH, ey, h), 1e-4);
    compare("gradient of hidden weights", gw1, product(false, true, HIDDEN, FEATURES, BATCH, eh, x), 1e-4);
    compare("gradient of the bias", gb1, eb, 1e-4);
    printf("%-26s        value   %s\n", "norm of the error", fabs((double)norm - sqrt(squares)) < 1e-4 ? "ok" : "WRONG");
    failures += !(fabs((double)norm - sqrt(squares)) < 1e-4);

    float *all[] = {dx, dw1, db1, dw2, dtarget, dones, dh, dy, gy, gh, gw1, gw2, gb1};
    for (float *pointer : all)
        MUST(cudaFree(pointer));
}

/* ---- other ways to ask for products ---- */

/* Half-precision operands, float sums. */
static void half_product(cublasHandle_t handle)
{
    enum { M = 24, N = 16, K = 40 };
    const host_array a = random_array(M * K, 6), b = random_array(K * N, 7);
    float *da = upload(a), *db = upload(b), *dc = allocate(M * N);
    __half *ha, *hb;
    const float one = 1.0f, zero = 0.0f;

    MUST(cudaMalloc(&ha, M * K * sizeof(__half)));
    MUST(cudaMalloc(&hb, K * N * sizeof(__half)));
    to_half<<<blocks_for(M * K), THREADS>>>(M * K, da, ha);
    to_half<<<blocks_for(K * N), THREADS>>>(K * N, db, hb);
    MUST(cudaGetLastError());
    CHECK_BLAS(cublasSetStream(handle, NULL));
    CHECK_BLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, ha, CUDA_R_16F, M, hb, CUDA_R_16F, K, &zero,
                            dc, CUDA_R_32F, M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    compare("half operands, float sums", dc, product(false, false, M, N, K, a, b), 1e-2);
    MUST(cudaFree(ha));
    MUST(cudaFree(hb));
    MUST(cudaFree(da));
    MUST(cudaFree(db));
    MUST(cudaFree(dc));
}

/* A strided batch whose alpha and beta lie on the device. */
static void batched_product(cublasHandle_t handle, cudaStream_t stream)
{
    enum { M = 7, N = 9, K = 5, COUNT = 4 };
    const host_array a = random_array(M * K * COUNT, 8), b = random_array(K * N * COUNT, 9), scalars = {2.0f, 0.0f};
    float *da = upload(a), *db = upload(b), *dc = allocate(M * N * COUNT), *ds = upload(scalars);
    host_array wanted;

    MUST(cudaMemsetAsync(dc, 0xff, M * N * COUNT * sizeof(float), stream)); /* NaN: beta is zero */
    CHECK_BLAS(cublasSetStream(handle, stream));
    CHECK_BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    CHECK_BLAS(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, ds, da, M, M * K, db, K, K * N,
                                         ds + 1, dc, M, M * N, COUNT));
    CHECK_BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        const host_array one_a(a.begin() + i * M * K, a.begin() + (i + 1) * M * K);
        const host_array one_b(b.begin() + i * K * N, b.begin() + (i + 1) * K * N);

        for (float value : product(false, false, M, N, K, one_a, one_b))
            wanted.push_back(2.0f * value);
    }
    compare("strided batch", dc, wanted, 1e-5);
    MUST(cudaFree(da));
    MUST(cudaFree(db));
    MUST(cudaFree(dc));
    MUST(cudaFree(ds));
}

int main(void)
{
    cublasHandle_t first, second;
    cublasLtHandle_t lt;
    cudaStream_t streams[2];

    CHECK_BLAS(cublasCreate(&first));
    CHECK_BLAS(cublasCreate(&second));
    CHECK_BLAS(cublasLtCreate(&lt));
    for (cudaStream_t &stream : streams)
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    network(first, lt, streams[0]);
    half_product(first);
    batched_product(second, streams[1]);
    for (cudaStream_t stream : streams)
        MUST(cudaStreamDestroy(stream));
    CHECK_BLAS(cublasLtDestroy(lt));
    CHECK_BLAS(cublasDestroy(second));
    CHECK_BLAS(cublasDestroy(first));
    printf("%s\n", failures ? "FAILED" : "all results agree with the host's");
    return failures ? 1 : 0;
}
