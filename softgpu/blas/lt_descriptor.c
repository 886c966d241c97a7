/* Descriptors of libcublasLt: made, destroyed, and read and written by attribute. */
#include "softgpu/blas/lt.h"

#include <stddef.h>
#include <stdlib.h>

static const struct lt_attribute *find(const struct lt_attribute *table, size_t count, int id)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].id == id)
            return &table[i];
    return NULL;
}

cublasStatus_t lt_set(void *object, const struct lt_attribute *table, size_t count, int id, const void *value,
                      size_t bytes)
{
    const struct lt_attribute *a = find(table, count, id);
    if (!object || !a || !value || bytes != a->bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy((char *)object + a->offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_get(const void *object, const struct lt_attribute *table, size_t count, int id, void *value,
                      size_t bytes, size_t *written)
{
    const struct lt_attribute *a = find(table, count, id);
    if (!object || !a || (!bytes && !written) || (bytes && (!value || bytes != a->bytes)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (bytes)
        memcpy(value, (const char *)object + a->offset, bytes);
    if (written)
        *written = a->bytes;
    return CUBLAS_STATUS_SUCCESS;
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The functions of one kind of descriptor: destroy, set, get. */
#define DESCRIPTOR(name, handle, attribute_type, table)                                                                \
    cublasStatus_t name##Destroy(handle object)                                                                        \
    {                                                                                                                  \
        free(object);                                                                                                  \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    cublasStatus_t name##SetAttribute(handle object, attribute_type attr, const void *buf, size_t sizeInBytes)         \
    {                                                                                                                  \
        return lt_set(object, table, COUNT(table), (int)attr, buf, sizeInBytes);                                       \
    }                                                                                                                  \
    cublasStatus_t name##GetAttribute(handle object, attribute_type attr, void *buf, size_t sizeInBytes,               \
                                      size_t *sizeWritten)                                                             \
    {                                                                                                                  \
        return lt_get(object, table, COUNT(table), (int)attr, buf, sizeInBytes, sizeWritten);                          \
    }

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

static const struct lt_attribute layout_fields[] = {
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, lt_layout, type),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, lt_layout, order),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, lt_layout, rows),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, lt_layout, cols),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_LD, lt_layout, ld),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, lt_layout, batch_count),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, lt_layout, stride),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, lt_layout, plane_offset),
    LT_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, lt_layout, batch_mode),
};
DESCRIPTOR(cublasLtMatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, layout_fields)

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t cols, int64_t ld)
{
    struct lt_layout layout = {.type = (int32_t)type, .batch_count = 1, .rows = rows, .cols = cols, .ld = ld};
    if (!matLayout)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size < sizeof *matLayout)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(matLayout, 0, sizeof *matLayout);
    memcpy(matLayout, &layout, sizeof layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    if (!matLayout)
        return CUBLAS_STATUS_INVALID_VALUE;
    *matLayout = malloc(sizeof **matLayout);
    if (!*matLayout)
        return CUBLAS_STATUS_ALLOC_FAILED;
    return cublasLtMatrixLayoutInit_internal(*matLayout, sizeof **matLayout, type, rows, cols, ld);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static const struct lt_attribute matmul_fields[] = {
    LT_FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, lt_matmul, compute),
    LT_FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, lt_matmul, scale_type),
    LT_FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, lt_matmul, pointer_mode),
    LT_FIELD(CUBLASLT_MATMUL_DESC_TRANSA, lt_matmul, transa),
    LT_FIELD(CUBLASLT_MATMUL_DESC_TRANSB, lt_matmul, transb),
    LT_FIELD(CUBLASLT_MATMUL_DESC_TRANSC, lt_matmul, transc),
    LT_FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, lt_matmul, fill_mode),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, lt_matmul, epilogue),
    LT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, lt_matmul, bias),
    LT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, lt_matmul, bias_stride),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, lt_matmul, aux),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, lt_matmul, aux_ld),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, lt_matmul, aux_stride),
    LT_FIELD(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, lt_matmul, alpha_stride),
    LT_FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, lt_matmul, sm_count),
    LT_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, lt_matmul, scale[0]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, lt_matmul, scale[1]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, lt_matmul, scale[2]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, lt_matmul, scale[3]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, lt_matmul, scale[4]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, lt_matmul, scale[5]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, lt_matmul, amax_d),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, lt_matmul, amax_aux),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, lt_matmul, aux_type),
    LT_FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, lt_matmul, fast_accumulation),
    LT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, lt_matmul, bias_type),
    LT_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, lt_matmul, scale_mode[0]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, lt_matmul, scale_mode[1]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, lt_matmul, scale_mode[2]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, lt_matmul, scale_mode[3]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, lt_matmul, scale_mode[4]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, lt_matmul, scale_mode[5]),
    LT_FIELD(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, lt_matmul, emulation),
};
DESCRIPTOR(cublasLtMatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, matmul_fields)

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc, size_t size,
                                               cublasComputeType_t computeType, cudaDataType_t scaleType)
{
    struct lt_matmul op = {.compute = (int32_t)computeType,
                           .scale_type = (int32_t)scaleType,
                           .fill_mode = CUBLAS_FILL_MODE_FULL,
                           .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                           .aux_type = -1,
                           .bias_type = -1};
    if (!matmulDesc)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size < sizeof *matmulDesc)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(matmulDesc, 0, sizeof *matmulDesc);
    memcpy(matmulDesc, &op, sizeof op);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc, cublasComputeType_t computeType,
                                        cudaDataType_t scaleType)
{
    if (!matmulDesc)
        return CUBLAS_STATUS_INVALID_VALUE;
    *matmulDesc = malloc(sizeof **matmulDesc);
    if (!*matmulDesc)
        return CUBLAS_STATUS_ALLOC_FAILED;
    return cublasLtMatmulDescInit_internal(*matmulDesc, sizeof **matmulDesc, computeType, scaleType);
}

/* ---- transformations -------------------------------------------------------------------------------------------- */

static const struct lt_attribute transform_fields[] = {
    LT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, lt_transform, scale_type),
    LT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, lt_transform, pointer_mode),
    LT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, lt_transform, transa),
    LT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, lt_transform, transb),
};
DESCRIPTOR(cublasLtMatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t,
           transform_fields)

cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t transformDesc, size_t size,
                                                        cudaDataType scaleType)
{
    struct lt_transform op = {.scale_type = (int32_t)scaleType};
    if (!transformDesc)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size < sizeof *transformDesc)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(transformDesc, 0, sizeof *transformDesc);
    memcpy(transformDesc, &op, sizeof op);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *transformDesc, cudaDataType scaleType)
{
    if (!transformDesc)
        return CUBLAS_STATUS_INVALID_VALUE;
    *transformDesc = malloc(sizeof **transformDesc);
    if (!*transformDesc)
        return CUBLAS_STATUS_ALLOC_FAILED;
    return cublasLtMatrixTransformDescInit_internal(*transformDesc, sizeof **transformDesc, scaleType);
}

/* ---- preferences ------------------------------------------------------------------------------------------------ */

static const struct lt_attribute preference_fields[] = {
    LT_FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, lt_preference, search_mode),
    LT_FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, lt_preference, workspace),
    LT_FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, lt_preference, reduction_mask),
    LT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, lt_preference, alignment[0]),
    LT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, lt_preference, alignment[1]),
    LT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, lt_preference, alignment[2]),
    LT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, lt_preference, alignment[3]),
    LT_FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, lt_preference, waves),
    LT_FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, lt_preference, implementation_mask),
};
DESCRIPTOR(cublasLtMatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
           preference_fields)

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t pref, size_t size)
{
    enum { ALIGNMENT = 256 };
    struct lt_preference p = {.reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK,
                              .alignment = {ALIGNMENT, ALIGNMENT, ALIGNMENT, ALIGNMENT},
                              .implementation_mask = UINT64_MAX};
    if (!pref)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size < sizeof *pref)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(pref, 0, sizeof *pref);
    memcpy(pref, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    if (!pref)
        return CUBLAS_STATUS_INVALID_VALUE;
    *pref = malloc(sizeof **pref);
    return *pref ? cublasLtMatmulPreferenceInit_internal(*pref, sizeof **pref) : CUBLAS_STATUS_ALLOC_FAILED;
}
