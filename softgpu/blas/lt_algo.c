/* Algorithms: there is one, it needs no workspace, and it takes whatever configuration it is given. */
#include "softgpu/blas/lt.h"

#include <stddef.h>

#include "softgpu/blas/log.h"

static void init(cublasLtMatmulAlgo_t *algo)
{
    struct lt_algo a = {.magic = LT_ALGO_MAGIC, .id = LT_ALGO_ID, .split_k = 1};
    memset(algo, 0, sizeof *algo);
    memcpy(algo, &a, sizeof a);
}

bool lt_algo_valid(const cublasLtMatmulAlgo_t *algo)
{
    struct lt_algo a;
    memcpy(&a, algo, sizeof a);
    return a.magic == LT_ALGO_MAGIC && a.id == LT_ALGO_ID;
}

static cublasStatus_t check(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
    if (!blas_handle_alive((const struct cublasContext *)handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!op || !a || !b || !c || !d)
        return CUBLAS_STATUS_INVALID_VALUE;
    return lt_check((const struct lt_matmul *)op, (const struct lt_layout *)a, (const struct lt_layout *)b,
                    (const struct lt_layout *)c, (const struct lt_layout *)d);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                              cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                              cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                              cublasLtMatmulPreference_t preference, int requestedAlgoCount,
                                              cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
                                              int *returnAlgoCount)
{
    if (returnAlgoCount)
        *returnAlgoCount = 0;
    if (requestedAlgoCount <= 0 || !heuristicResultsArray || !returnAlgoCount || !preference)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check(lightHandle, operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    blas_log(BLAS_LOG_HEURISTICS, __func__, "the only algorithm");
    memset(&heuristicResultsArray[0], 0, sizeof heuristicResultsArray[0]);
    init(&heuristicResultsArray[0].algo);
    heuristicResultsArray[0].state = CUBLAS_STATUS_SUCCESS;
    heuristicResultsArray[0].wavesCount = 1;
    *returnAlgoCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
                                        cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
                                        cudaDataType_t Ctype, cudaDataType_t Dtype, int requestedAlgoCount,
                                        int algoIdsArray[], int *returnAlgoCount)
{
    if (!blas_handle_alive((const struct cublasContext *)lightHandle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (requestedAlgoCount <= 0 || !algoIdsArray || !returnAlgoCount)
        return CUBLAS_STATUS_INVALID_VALUE;
    algoIdsArray[0] = LT_ALGO_ID;
    *returnAlgoCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
                                      cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
                                      cudaDataType_t Ctype, cudaDataType_t Dtype, int algoId,
                                      cublasLtMatmulAlgo_t *algo)
{
    if (!blas_handle_alive((const struct cublasContext *)lightHandle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!algo || algoId != LT_ALGO_ID)
        return CUBLAS_STATUS_INVALID_VALUE;
    init(algo);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                       cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                       cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    if (!algo || !result || !lt_algo_valid(algo))
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check(lightHandle, operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
    if (status == CUBLAS_STATUS_SUCCESS) {
        cublasLtMatmulAlgo_t copy = *algo; /* may be result->algo */
        memset(result, 0, sizeof *result);
        result->algo = copy;
        result->wavesCount = 1;
    }
    return status;
}

/* ---- capabilities ----------------------------------------------------------------------------------------------- */

struct capabilities {
    int32_t no, yes;
    uint32_t one, pointer_modes, epilogues, undefined;
    uint64_t implementation;
};
static const struct capabilities capabilities = {
    .no = 0,
    .yes = 1,
    .one = 1,
    .pointer_modes = CUBLASLT_POINTER_MODE_MASK_HOST | CUBLASLT_POINTER_MODE_MASK_DEVICE |
                     CUBLASLT_POINTER_MODE_MASK_DEVICE_VECTOR |
                     CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_ZERO |
                     CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_HOST,
    .epilogues = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_AUX_BIAS | CUBLASLT_EPILOGUE_GELU_AUX_BIAS |
                 CUBLASLT_EPILOGUE_DRELU_BGRAD | CUBLASLT_EPILOGUE_DGELU_BGRAD | CUBLASLT_EPILOGUE_BGRADA |
                 CUBLASLT_EPILOGUE_BGRADB,
    .implementation = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F,
};
static const struct lt_attribute capability_fields[] = {
    LT_FIELD(CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, capabilities, no),
    LT_FIELD(CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, capabilities, undefined),
    LT_FIELD(CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, capabilities, undefined),
    LT_FIELD(CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, capabilities, yes),
    LT_FIELD(CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, capabilities, yes),
    LT_FIELD(CUBLASLT_ALGO_CAP_UPLO_SUPPORT, capabilities, no),
    LT_FIELD(CUBLASLT_ALGO_CAP_TILE_IDS, capabilities, undefined),
    LT_FIELD(CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, capabilities, no),
    LT_FIELD(CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER, capabilities, no),
    LT_FIELD(CUBLASLT_ALGO_CAP_POINTER_MODE_MASK, capabilities, pointer_modes),
    LT_FIELD(CUBLASLT_ALGO_CAP_EPILOGUE_MASK, capabilities, epilogues),
    LT_FIELD(CUBLASLT_ALGO_CAP_STAGES_IDS, capabilities, undefined),
    LT_FIELD(CUBLASLT_ALGO_CAP_LD_NEGATIVE, capabilities, no),
    LT_FIELD(CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, capabilities, implementation),
    LT_FIELD(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, capabilities, one),
    LT_FIELD(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, capabilities, one),
    LT_FIELD(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, capabilities, one),
    LT_FIELD(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, capabilities, one),
    LT_FIELD(CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT, capabilities, yes),
    LT_FIELD(CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT, capabilities, no),
};
static const struct lt_attribute configuration_fields[] = {
    LT_FIELD(CUBLASLT_ALGO_CONFIG_ID, lt_algo, id),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_TILE_ID, lt_algo, tile),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, lt_algo, split_k),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, lt_algo, reduction),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, lt_algo, swizzling),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, lt_algo, custom),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_STAGES_ID, lt_algo, stages),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, lt_algo, inner_shape),
    LT_FIELD(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, lt_algo, cluster_shape),
};
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attr, void *buf, size_t sizeInBytes,
                                                 size_t *sizeWritten)
{
    if (!algo)
        return CUBLAS_STATUS_INVALID_VALUE;
    return lt_get(&capabilities, capability_fields, COUNT(capability_fields), (int)attr, buf, sizeInBytes, sizeWritten);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr, const void *buf,
                                                    size_t sizeInBytes)
{
    return lt_set(algo, configuration_fields, COUNT(configuration_fields), (int)attr, buf, sizeInBytes);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr, void *buf,
                                                    size_t sizeInBytes, size_t *sizeWritten)
{
    return lt_get(algo, configuration_fields, COUNT(configuration_fields), (int)attr, buf, sizeInBytes, sizeWritten);
}
