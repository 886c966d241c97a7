/* static.cu - a program with the static runtime inside: one launch, its result on stdout. */
#include <cstdio>

__global__ void fill(float *p)
{
    p[threadIdx.x] = (float)threadIdx.x;
}

int main()
{
    float *p, last = -1;
    if (cudaMalloc(&p, 32 * sizeof(float)))
        return 1;
    fill<<<1, 32>>>(p);
    if (cudaMemcpy(&last, p + 31, sizeof last, cudaMemcpyDeviceToHost) || cudaFree(p))
        return 1;
    printf("%g\n", last);
    return 0;
}
