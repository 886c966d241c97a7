/*
 * driver_kernel.cu - the kernels of driver_api.c, which loads them as PTX.
 *
 * -DFAULT_TAIL_WRITE and -DFAULT_READ plant one fault each; the guilty line is marked.
 */
#define TAPS    16
#define THREADS 128

extern "C" {

__constant__ float taps[TAPS];
__device__ unsigned int peak_count;
__device__ float threshold = 0.25f;

struct ramp {
    double from;
    float slope;
    short stride;
    int count;
};

/* out[i] = sum of taps[k] in[i + k]; in has count + TAPS - 1 samples. */
__global__ void fir_filter(float *out, const float *in, int count)
{
    __shared__ float window[THREADS + TAPS - 1];
    const int first = blockIdx.x * THREADS, i = first + threadIdx.x, length = count + TAPS - 1;
    float sum = 0.0f;

    for (int j = threadIdx.x; j < THREADS + TAPS - 1; j += THREADS) {
        window[j] = 0.0f;
        if (first + j < length) {
#ifdef FAULT_READ
            const float *sample = in + first + j + 1; /* the first sample is the trigger */
#else
            const float *sample = in + first + j;
#endif
            window[j] = *sample; /* FAULT: read */
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        sum = __fmaf_rn(taps[k], window[threadIdx.x + k], sum);
#ifdef FAULT_TAIL_WRITE
    out[i] = sum; /* FAULT: tail_write */
#else
    if (i < count)
        out[i] = sum;
#endif
}

/* Counts the samples over the threshold that are larger than both neighbours. */
__global__ void count_peaks(const float *in, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < 1 || i >= count - 1)
        return;
    if (in[i] > threshold && in[i] > in[i - 1] && in[i] > in[i + 1])
        atomicAdd(&peak_count, 1);
}

/* Adds a ramp to every stride-th sample. */
__global__ void add_ramp(float *inout, struct ramp ramp)
{
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * ramp.stride;

    if (i < ramp.count)
        inout[i] = __fadd_rn(inout[i], (float)__fma_rn((double)ramp.slope, (double)i, ramp.from));
}
}
