/* Properties of kernels, and occupancy. */
#include "softgpu/rt.h"

static CUresult enter_kernel(const void *func, CUkernel *kernel)
{
    CUresult result = rt_enter();
    return result == CUDA_SUCCESS ? rt_kernel(func, kernel) : result;
}

/* With the device whose attributes of the kernel are meant. */
static CUresult enter_kernel_on(const void *func, CUkernel *kernel, int *device)
{
    CUresult result = enter_kernel(func, kernel);
    return result == CUDA_SUCCESS ? rt_device(device) : result;
}

static CUresult enter_function(const void *func, CUfunction *function)
{
    CUkernel kernel;
    CUresult result = enter_kernel(func, &kernel);
    return result == CUDA_SUCCESS ? driver.cuKernelGetFunction(function, kernel) : result;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    enum { COUNT = CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE + 1 };
    int v[COUNT] = {0}, device;
    CUkernel kernel;
    CUfunction function;
    CUresult result = enter_kernel_on(func, &kernel, &device);
    if (result == CUDA_SUCCESS)
        result = attr ? driver.cuKernelGetFunction(&function, kernel) : CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; result == CUDA_SUCCESS && i < COUNT; i++)
        result = driver.cuKernelGetAttribute(&v[i], (CUfunction_attribute)i, kernel, device);
    if (result == CUDA_SUCCESS)
        *attr = (struct cudaFuncAttributes){
            .sharedSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
            .constSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
            .localSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
            .maxThreadsPerBlock = v[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
            .numRegs = v[CU_FUNC_ATTRIBUTE_NUM_REGS],
            .ptxVersion = v[CU_FUNC_ATTRIBUTE_PTX_VERSION],
            .binaryVersion = v[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
            .cacheModeCA = v[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA],
            .maxDynamicSharedSizeBytes = v[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
            .preferredShmemCarveout = v[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT],
            .clusterDimMustBeSet = v[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET],
            .requiredClusterWidth = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH],
            .requiredClusterHeight = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT],
            .requiredClusterDepth = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH],
            .clusterSchedulingPolicyPreference = v[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE],
            .nonPortableClusterSizeAllowed = v[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED],
        };
    return rt_end(result);
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    int device;
    CUkernel kernel;
    CUresult result = enter_kernel_on(func, &kernel, &device);
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelSetAttribute((CUfunction_attribute)attr, value, kernel, device);
    return rt_end(result);
}

cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    int device;
    CUkernel kernel;
    CUresult result = enter_kernel_on(func, &kernel, &device);
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelSetCacheConfig(kernel, (CUfunc_cache)cacheConfig, device);
    return rt_end(result);
}

/* Without effect on any device since Kepler. */
cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
    CUkernel kernel;
    CUresult result = enter_kernel(func, &kernel);
    return rt_end(result == CUDA_SUCCESS && (unsigned)config > cudaSharedMemBankSizeEightByte ? CUDA_ERROR_INVALID_VALUE
                                                                                              : result);
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
    CUkernel kernel;
    CUresult result = enter_kernel(func, &kernel);
    return rt_end(result == CUDA_SUCCESS ? driver.cuKernelGetName(name, kernel) : result);
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    CUkernel kernel;
    CUresult result = enter_kernel(func, &kernel);
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelGetParamInfo(kernel, paramIndex, paramOffset, paramSize);
    return rt_end(result);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func, int blockSize,
                                                                   size_t dynamicSMemSize, unsigned int flags)
{
    CUfunction function;
    CUresult result = enter_function(func, &function);
    if (result == CUDA_SUCCESS)
        result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, function, blockSize,
                                                                             dynamicSMemSize, flags);
    return rt_end(result);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize,
                                                          size_t dynamicSMemSize)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func, int numBlocks,
                                                      int blockSize)
{
    CUfunction function;
    CUresult result = enter_function(func, &function);
    if (result == CUDA_SUCCESS)
        result = driver.cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, function, numBlocks, blockSize);
    return rt_end(result);
}

/* ---- clusters --------------------------------------------------------------------------------------------------- */

static cudaError_t about_clusters(bool active, int *out, const void *func, const cudaLaunchConfig_t *config)
{
    CUfunction function;
    CUlaunchConfig c;
    CUresult result = enter_function(func, &function);
    if (result == CUDA_SUCCESS)
        result = rt_launch_config(config, &c);
    if (result == CUDA_SUCCESS)
        result = (active ? driver.cuOccupancyMaxActiveClusters
                         : driver.cuOccupancyMaxPotentialClusterSize)(out, function, &c);
    return rt_end(result);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
                                                 const cudaLaunchConfig_t *launchConfig)
{
    return about_clusters(false, clusterSize, func, launchConfig);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *numClusters, const void *func, const cudaLaunchConfig_t *launchConfig)
{
    return about_clusters(true, numClusters, func, launchConfig);
}
