// The other file of linked.cu.
#include "part.h"

__device__ int table[4] = {1, 2, 3, 4};
__constant__ int offset = 1000;

static __device__ int own = 7; // linked.cu has another
static __global__ void own_kernel(int *data)
{
    data[threadIdx.x] = own + (int)threadIdx.x;
}

__device__ int scale(int x)
{
    return x * own + next_number() * 0;
}

// A quicksort whose halves are grids of their own.
__global__ void sort_run(int *data, int count)
{
    int pivot = data[count / 2], low = 0, high = count - 1;
    while (low <= high) {
        while (data[low] < pivot)
            low++;
        while (data[high] > pivot)
            high--;
        if (low <= high) {
            int kept = data[low];
            data[low++] = data[high];
            data[high--] = kept;
        }
    }
    if (high > 0)
        sort_run<<<1, 1>>>(data, high + 1);
    if (count - low > 1)
        sort_run<<<1, 1>>>(data + low, count - low);
}

void part_run(int *data)
{
    own_kernel<<<1, 32>>>(data);
    add_constant<5><<<1, 32>>>(data);
}
