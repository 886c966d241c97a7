/* Properties of functions, and how many blocks fit on a multiprocessor. */
#include "softgpu/device.h"
#include "softgpu/module.h"

static CUresult enter_function(CUfunction handle, struct function **out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    return result == CUDA_SUCCESS ? function_from(handle, c, out) : result;
}

CUresult function_attribute(const struct ptx_kernel *entry, const struct image *image, int max_dynamic_shared,
                            int carveout, CUfunction_attribute attribute, int *value)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)entry->max_threads;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)entry->static_shared_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)entry->local_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = DEVICE_REGISTERS;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = (int)image->version.target;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = (int)config_get()->capability;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = max_dynamic_shared ? max_dynamic_shared
                                    : (int)(device_limits()->shared_per_block - entry->static_shared_bytes);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = carveout;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult function_check_attribute(const struct ptx_kernel *entry, CUfunction_attribute attribute, int value)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return value >= 0 && (uint32_t)value + entry->static_shared_bytes <= device_limits()->shared_per_block_optin
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return log_unsupported_part("cuFuncSetAttribute", "clusters");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct function *f;
    CUresult result = enter_function(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    return function_attribute(f->entry, f->module->image, f->max_dynamic_shared, f->carveout, attrib, pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct function *f;
    CUresult result = enter_function(hfunc, &f);
    if (result == CUDA_SUCCESS)
        result = function_check_attribute(f->entry, attrib, value);
    if (result != CUDA_SUCCESS)
        return result;
    if (attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        f->max_dynamic_shared = value;
    else
        f->carveout = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    struct function *f;
    CUresult result = enter_function(hfunc, &f);
    if (result == CUDA_SUCCESS && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    struct function *f;
    CUresult result = enter_function(hfunc, &f);
    if (result == CUDA_SUCCESS && (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct function *f;
    CUresult result = enter_function(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!hmod)
        return CUDA_ERROR_INVALID_VALUE;
    *hmod = (CUmodule)f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct function *f;
    CUresult result = enter_function(hfunc, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = f->entry->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct function *f;
    CUresult result = enter_function(function, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
    struct function *f;
    return enter_function(function, &f);
}

/* ---- occupancy -------------------------------------------------------------------------------------------------- */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Blocks per multiprocessor by threads (in whole warps), block slots, registers (allocated per warp in steps of 256)
 * and shared memory (in steps of 128 bytes, plus what the system reserves per block). */
static uint32_t active_blocks(const struct function *f, uint64_t threads, uint64_t dynamic_shared)
{
    const struct device_limits *l = device_limits();
    if (!threads || threads > f->entry->max_threads || threads > l->max_threads_per_block)
        return 0;
    uint64_t shared = f->entry->static_shared_bytes + dynamic_shared;
    uint32_t warps = ((uint32_t)threads + DEVICE_WARP - 1) / DEVICE_WARP;
    uint32_t blocks = min_u32(l->blocks_per_sm, l->threads_per_sm / DEVICE_WARP / warps);
    blocks = min_u32(blocks, l->registers_per_sm / (DEVICE_REGISTERS * DEVICE_WARP) / warps);
    if (shared > l->shared_per_block_optin)
        return 0;
    if (shared)
        blocks = min_u32(blocks, l->shared_per_sm / (((uint32_t)shared + 127) / 128 * 128 + l->shared_reserved));
    return blocks;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags)
{
    struct function *f;
    CUresult result = enter_function(func, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!numBlocks || blockSize <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    *numBlocks = (int)active_blocks(f, (uint64_t)blockSize, dynamicSMemSize);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)
{
    struct function *f;
    CUresult result = enter_function(func, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (!minGridSize || !blockSize || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    int limit = (int)f->entry->max_threads, best = 0;
    if (blockSizeLimit > 0 && blockSizeLimit < limit)
        limit = blockSizeLimit;
    *blockSize = *minGridSize = 0;
    for (int size = (limit + DEVICE_WARP - 1) / DEVICE_WARP * DEVICE_WARP; size > 0; size -= DEVICE_WARP) {
        int threads = size < limit ? size : limit;
        size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(threads) : dynamicSMemSize;
        int blocks = (int)active_blocks(f, (uint64_t)threads, shared);
        if (blocks * threads > best) {
            best = blocks * threads;
            *blockSize = threads;
            *minGridSize = blocks * (int)config_get()->sm_count;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                          int blockSizeLimit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                     dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
    struct function *f;
    CUresult result = enter_function(func, &f);
    if (result != CUDA_SUCCESS)
        return result;
    const struct device_limits *l = device_limits();
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0 ||
        (uint32_t)numBlocks > active_blocks(f, (uint64_t)blockSize, 0))
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t share = l->shared_per_sm / (uint32_t)numBlocks / 128 * 128;
    uint32_t taken = f->entry->static_shared_bytes + l->shared_reserved;
    uint32_t most = l->shared_per_block_optin - f->entry->static_shared_bytes;
    *dynamicSmemSize = share > taken ? min_u32(share - taken, most) : 0;
    return CUDA_SUCCESS;
}

/* ---- clusters: each is one block -------------------------------------------------------------------------------- */

/* Blocks in a cluster as the launch asks for; 0 when it does not say. */
static uint64_t cluster_size(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return (uint64_t)config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                   config->attrs[i].value.clusterDim.z;
    return 0;
}

static CUresult enter_cluster(CUfunction func, const CUlaunchConfig *config, const int *out, struct function **f)
{
    CUresult result = enter_function(func, f);
    if (result != CUDA_SUCCESS)
        return result;
    return out && config && (!config->numAttrs || config->attrs) && config->blockDimX && config->blockDimY &&
                   config->blockDimZ
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
    struct function *f;
    CUresult result = enter_cluster(func, config, clusterSize, &f);
    if (result == CUDA_SUCCESS)
        *clusterSize = 1;
    return result;
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
    struct function *f;
    CUresult result = enter_cluster(func, config, numClusters, &f);
    if (result != CUDA_SUCCESS)
        return result;
    if (cluster_size(config) != 1)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    *numClusters = (int)(active_blocks(f, threads, config->sharedMemBytes) * config_get()->sm_count);
    return CUDA_SUCCESS;
}
