/* A matrix product into memory that nobody else writes, and a kernel that adds up its columns. The result has room for one
 * column more than the product fills.
 *
 * With -DFAULT_UNINIT the sum takes that column, too. */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "../must.h"

#define CHECK_BLAS(call)                                                                                               \
    do {                                                                                                               \
        cublasStatus_t status_ = (call);                                                                               \
        if (status_ != CUBLAS_STATUS_SUCCESS) {                                                                        \
            std::printf("%s: %s\n", #call, cublasGetStatusString(status_));                                            \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

constexpr int M = 48, N = 20, K = 12;

__global__ void add_columns(const float *c, float *sums, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    if (row >= rows)
        return;
    for (int j = 0; j < columns; j++)
        sum += c[j * rows + row];
    sums[row] = sum;
}

int main()
{
    std::vector<float> a(M * K), b(K * N), sums(M);
    float *da, *db, *dc, *dsums;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 7) - 3;
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i % 5) - 2;
    MUST(cudaMalloc(&da, a.size() * sizeof(float)));
    MUST(cudaMalloc(&db, b.size() * sizeof(float)));
    MUST(cudaMalloc(&dc, M * (N + 1) * sizeof(float)));
    MUST(cudaMalloc(&dsums, M * sizeof(float)));
    MUST(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

    cublasHandle_t handle;
    const float one = 1, zero = 0;
    CHECK_BLAS(cublasCreate(&handle));
    CHECK_BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, da, M, db, K, &zero, dc, M));
#ifdef FAULT_UNINIT
    add_columns<<<1, 64>>>(dc, dsums, M, N + 1); /* FAULT: uninit */
#else
    add_columns<<<1, 64>>>(dc, dsums, M, N);
#endif
    MUST(cudaGetLastError());
    MUST(cudaMemcpy(sums.data(), dsums, M * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK_BLAS(cublasDestroy(handle));
    bool same = true;
    for (int i = 0; i < M; i++) {
        float sum = 0;
        for (int j = 0; j < N; j++)
            for (int k = 0; k < K; k++)
                sum += a[k * M + i] * b[j * K + k];
        same = same && sum == sums[i];
    }
    std::printf("%s\n", same ? "the sums are right" : "the sums are wrong");
    return same ? 0 : 1;
}
