/* libcublasLt: attributes of every descriptor, their sizes and defaults, as cublasLt.h describes them; settings of the
 * library and its log. */
#include "tests/unit/blas_kit.h"

static cublasLtHandle_t lt;

static int setup(void **state)
{
    return use_primary_context(state) || cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS;
}

static int teardown(void **state)
{
    return cublasLtDestroy(lt) != CUBLAS_STATUS_SUCCESS;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

struct attribute {
    int id;
    size_t bytes;
    int64_t value; /* before anything is set */
};

static const struct attribute layout_attributes[] = {
    {CUBLASLT_MATRIX_LAYOUT_TYPE, 4, CUDA_R_16BF},
    {CUBLASLT_MATRIX_LAYOUT_ORDER, 4, CUBLASLT_ORDER_COL},
    {CUBLASLT_MATRIX_LAYOUT_ROWS, 8, 20},
    {CUBLASLT_MATRIX_LAYOUT_COLS, 8, 30},
    {CUBLASLT_MATRIX_LAYOUT_LD, 8, 40},
    {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4, 1},
    {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8, 0},
    {CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, 8, 0},
    {CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, 4, CUBLASLT_BATCH_MODE_STRIDED},
};
static const struct attribute matmul_attributes[] = {
    {CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 4, CUBLAS_COMPUTE_32F_FAST_TF32},
    {CUBLASLT_MATMUL_DESC_SCALE_TYPE, 4, CUDA_R_32F},
    {CUBLASLT_MATMUL_DESC_POINTER_MODE, 4, CUBLASLT_POINTER_MODE_HOST},
    {CUBLASLT_MATMUL_DESC_TRANSA, 4, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_TRANSB, 4, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_TRANSC, 4, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_FILL_MODE, 4, CUBLAS_FILL_MODE_FULL},
    {CUBLASLT_MATMUL_DESC_EPILOGUE, 4, CUBLASLT_EPILOGUE_DEFAULT},
    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 8, 0},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8, 0},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 8, 0},
    {CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, 8, 0},
    {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 4, 0},
    {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 4, -1},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1, 0},
    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 4, -1},
    {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 4, 0},
    {CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 4, 0},
    {CUBLASLT_MATMUL_DESC_C_SCALE_MODE, 4, 0},
    {CUBLASLT_MATMUL_DESC_D_SCALE_MODE, 4, 0},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, 4, 0},
    {CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, 8, 0},
    {CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, 4, 0},
    {CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, 8, 0},
};
static const struct attribute transform_attributes[] = {
    {CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, 4, CUDA_R_64F},
    {CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, 4, CUBLASLT_POINTER_MODE_HOST},
    {CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, 4, CUBLAS_OP_N},
    {CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, 4, CUBLAS_OP_N},
};
static const struct attribute preference_attributes[] = {
    {CUBLASLT_MATMUL_PREF_SEARCH_MODE, 4, CUBLASLT_SEARCH_BEST_FIT},
    {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8, 0},
    {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 4, CUBLASLT_REDUCTION_SCHEME_MASK},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, 4, 0},
    {CUBLASLT_MATMUL_PREF_IMPL_MASK, 8, -1},
};
static const struct attribute algorithm_attributes[] = {
    {CUBLASLT_ALGO_CONFIG_ID, 4, 0},
    {CUBLASLT_ALGO_CONFIG_TILE_ID, 4, CUBLASLT_MATMUL_TILE_UNDEFINED},
    {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4, 1},
    {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4, CUBLASLT_REDUCTION_SCHEME_NONE},
    {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4, 0},
    {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4, 0},
    {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4, CUBLASLT_MATMUL_STAGES_UNDEFINED},
    {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2, CUBLASLT_MATMUL_INNER_SHAPE_UNDEFINED},
    {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2, CUBLASLT_CLUSTER_SHAPE_AUTO},
};
static const struct attribute capability_attributes[] = {
    {CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, 4, 0},
    {CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, 4, 1},
    {CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, 4, 1},
    {CUBLASLT_ALGO_CAP_UPLO_SUPPORT, 4, 0},
    {CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER, 4, 0},
    {CUBLASLT_ALGO_CAP_LD_NEGATIVE, 4, 0},
    {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, 4, 1},
    {CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT, 4, 1},
    {CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT, 4, 0},
};

/* The functions of one kind of object. */
typedef cublasStatus_t set_fn(void *object, int id, const void *value, size_t bytes);
typedef cublasStatus_t get_fn(void *object, int id, void *value, size_t bytes, size_t *written);
#define ACCESS(kind, function, object_type, attribute_type)                                                            \
    static cublasStatus_t set_##kind(void *object, int id, const void *value, size_t bytes)                            \
    {                                                                                                                  \
        return function##SetAttribute((object_type)object, (attribute_type)id, value, bytes);                          \
    }                                                                                                                  \
    static cublasStatus_t get_##kind(void *object, int id, void *value, size_t bytes, size_t *written)                 \
    {                                                                                                                  \
        return function##GetAttribute((object_type)object, (attribute_type)id, value, bytes, written);                 \
    }
ACCESS(layout, cublasLtMatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t)
ACCESS(matmul, cublasLtMatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t)
ACCESS(transform, cublasLtMatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t)
ACCESS(preference, cublasLtMatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t)
ACCESS(algorithm, cublasLtMatmulAlgoConfig, cublasLtMatmulAlgo_t *, cublasLtMatmulAlgoConfigAttributes_t)

static int64_t read_value(void *object, get_fn *get_attribute, const struct attribute *a)
{
    int64_t value = 0;
    size_t written = 0;
    succeeds(get_attribute(object, a->id, NULL, 0, &written)); /* the size alone */
    assert_int_equal(written, a->bytes);
    written = 0;
    succeeds(get_attribute(object, a->id, &value, a->bytes, &written));
    assert_int_equal(written, a->bytes);
    return value;
}

static int64_t cut(int64_t value, size_t bytes)
{
    return bytes == 8 ? value : value & ((INT64_C(1) << bytes * 8) - 1);
}

static void check_wrong_reads(void *object, get_fn *get_attribute, const struct attribute *a)
{
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    int64_t value[2] = {-1, -1};
    fails(invalid, get_attribute(object, a->id, value, a->bytes + 1, NULL));
    fails(invalid, get_attribute(object, a->id, value, a->bytes - 1 ? a->bytes - 1 : 16, NULL));
    fails(invalid, get_attribute(object, a->id, NULL, a->bytes, NULL));
    fails(invalid, get_attribute(object, a->id, NULL, 0, NULL));
    fails(invalid, get_attribute(object, 99, value, a->bytes, NULL));
    assert_true(value[0] == -1 && value[1] == -1);
}

/* Defaults; then every attribute gets a value of its own, which is there after all others were set. */
static void check_attributes(void *object, const struct attribute *table, size_t count, set_fn *set_attribute,
                             get_fn *get_attribute)
{
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        assert_true(read_value(object, get_attribute, &table[i]) == cut(table[i].value, table[i].bytes));
        check_wrong_reads(object, get_attribute, &table[i]);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0x1112131415161718 + (int64_t)i;
        fails(invalid, set_attribute(object, table[i].id, &value, table[i].bytes + 1));
        fails(invalid, set_attribute(object, table[i].id, NULL, table[i].bytes));
        fails(invalid, set_attribute(object, 99, &value, table[i].bytes));
        assert_true(read_value(object, get_attribute, &table[i]) == cut(table[i].value, table[i].bytes));
        succeeds(set_attribute(object, table[i].id, &value, table[i].bytes));
    }
    for (size_t i = 0; i < count; i++)
        assert_true(read_value(object, get_attribute, &table[i]) ==
                    cut(0x1112131415161718 + (int64_t)i, table[i].bytes));
}
#define CHECK(object, kind)                                                                                            \
    check_attributes(object, kind##_attributes, sizeof kind##_attributes / sizeof kind##_attributes[0], set_##kind,    \
                     get_##kind)

static void test_attributes(void **state)
{
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixTransformDesc_t transform;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulAlgo_t algorithm;
    succeeds(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 20, 30, 40));
    succeeds(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F));
    succeeds(cublasLtMatrixTransformDescCreate(&transform, CUDA_R_64F));
    succeeds(cublasLtMatmulPreferenceCreate(&preference));
    succeeds(cublasLtMatmulAlgoInit(lt, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                                    0, &algorithm));
    CHECK(layout, layout);
    CHECK(matmul, matmul);
    CHECK(transform, transform);
    CHECK(preference, preference);
    CHECK(&algorithm, algorithm);
    succeeds(cublasLtMatrixLayoutDestroy(layout));
    succeeds(cublasLtMatmulDescDestroy(matmul));
    succeeds(cublasLtMatrixTransformDescDestroy(transform));
    succeeds(cublasLtMatmulPreferenceDestroy(preference));
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    fails(invalid, cublasLtMatrixLayoutCreate(NULL, CUDA_R_32F, 1, 1, 1));
    fails(invalid, cublasLtMatmulDescCreate(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    fails(invalid, cublasLtMatrixTransformDescCreate(NULL, CUDA_R_32F));
    fails(invalid, cublasLtMatmulPreferenceCreate(NULL));
    fails(invalid, cublasLtMatmulAlgoInit(lt, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                                          CUDA_R_32F, 1, &algorithm));
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasLtMatmulAlgoInit(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F,
                                                                CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 0, &algorithm));
}

/* Descriptors in the program's own memory, which must be large enough. */
static void test_descriptors_in_place(void **state)
{
    cublasLtMatrixLayoutOpaque_t layout;
    cublasLtMatmulDescOpaque_t matmul;
    cublasLtMatrixTransformDescOpaque_t transform;
    cublasLtMatmulPreferenceOpaque_t preference;
    memset(&layout, 0xff, sizeof layout);
    memset(&matmul, 0xff, sizeof matmul);
    memset(&transform, 0xff, sizeof transform);
    memset(&preference, 0xff, sizeof preference);
    succeeds(cublasLtMatrixLayoutInit(&layout, CUDA_R_16BF, 20, 30, 40));
    succeeds(cublasLtMatmulDescInit(&matmul, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F));
    succeeds(cublasLtMatrixTransformDescInit(&transform, CUDA_R_64F));
    succeeds(cublasLtMatmulPreferenceInit(&preference));
    CHECK(&layout, layout);
    CHECK(&matmul, matmul);
    CHECK(&transform, transform);
    CHECK(&preference, preference);
    const cublasStatus_t failed = CUBLAS_STATUS_ALLOC_FAILED, invalid = CUBLAS_STATUS_INVALID_VALUE;
    fails(failed, cublasLtMatrixLayoutInit_internal(&layout, sizeof layout - 1, CUDA_R_32F, 1, 1, 1));
    fails(failed, cublasLtMatmulDescInit_internal(&matmul, sizeof matmul - 1, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    fails(failed, cublasLtMatrixTransformDescInit_internal(&transform, sizeof transform - 1, CUDA_R_32F));
    fails(failed, cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference - 1));
    fails(invalid, cublasLtMatrixLayoutInit_internal(NULL, sizeof layout, CUDA_R_32F, 1, 1, 1));
    fails(invalid, cublasLtMatmulDescInit_internal(NULL, sizeof matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    fails(invalid, cublasLtMatrixTransformDescInit_internal(NULL, sizeof transform, CUDA_R_32F));
    fails(invalid, cublasLtMatmulPreferenceInit_internal(NULL, sizeof preference));
}

static cublasStatus_t get_capability(void *object, int id, void *value, size_t bytes, size_t *written)
{
    return cublasLtMatmulAlgoCapGetAttribute(object, (cublasLtMatmulAlgoCapAttributes_t)id, value, bytes, written);
}

static void test_capabilities(void **state)
{
    cublasLtMatmulAlgo_t algorithm;
    succeeds(cublasLtMatmulAlgoInit(lt, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                                    0, &algorithm));
    for (size_t i = 0; i < sizeof capability_attributes / sizeof capability_attributes[0]; i++) {
        const struct attribute *a = &capability_attributes[i];
        assert_true(read_value(&algorithm, get_capability, a) == a->value);
        check_wrong_reads(&algorithm, get_capability, a);
    }
}

/* ---- the library ------------------------------------------------------------------------------------------------ */

static void test_versions_and_settings(void **state)
{
    int value = 0;
    size_t capacity = 0;
    succeeds(cublasLtGetProperty(MAJOR_VERSION, &value));
    assert_int_equal(value, CUBLAS_VER_MAJOR);
    succeeds(cublasLtGetProperty(MINOR_VERSION, &value));
    assert_int_equal(value, CUBLAS_VER_MINOR);
    succeeds(cublasLtGetProperty(PATCH_LEVEL, &value));
    assert_int_equal(value, CUBLAS_VER_PATCH);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtGetProperty((libraryPropertyType)7, &value));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtGetProperty(MAJOR_VERSION, NULL));
    assert_int_equal(cublasLtGetVersion(), CUBLAS_VERSION);
    assert_int_equal(cublasLtGetCudartVersion(), CUDA_VERSION);
    succeeds(cublasLtHeuristicsCacheSetCapacity(123));
    succeeds(cublasLtHeuristicsCacheGetCapacity(&capacity));
    assert_int_equal(capacity, 123);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtHeuristicsCacheGetCapacity(NULL));
    assert_int_equal(cublasLtDisableCpuInstructionsSetMask(5), 0);
    assert_int_equal(cublasLtDisableCpuInstructionsSetMask(0), 5);
    assert_string_equal(cublasLtGetStatusName(CUBLAS_STATUS_ALLOC_FAILED), "CUBLAS_STATUS_ALLOC_FAILED");
    assert_true(strlen(cublasLtGetStatusString(CUBLAS_STATUS_ALLOC_FAILED)) > 0);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtCreate(NULL));
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasLtDestroy(NULL));
}

static int lines, last_level;
static char last_function[64];

static void count_line(int level, const char *function, const char *message)
{
    lines++;
    last_level = level;
    snprintf(last_function, sizeof last_function, "%s", function);
}

/* A call that leaves a line of the level "performance trace", even though it fails. */
static void call(void)
{
    fails(CUBLAS_STATUS_INVALID_VALUE,
          cublasLtMatrixTransform(lt, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
}

static bool file_has(const char *name, const char *text)
{
    char line[256] = "";
    bool found = false;
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        found = found || strstr(line, text);
    fclose(file);
    return found;
}

static void test_log(void **state)
{
    char name[] = "/tmp/softgpu-cublaslt-log-XXXXXX";
    cublasLtHandle_t other;
    int descriptor = mkstemp(name);
    assert_true(descriptor >= 0);
    succeeds(cublasLtLoggerSetCallback(count_line));
    call();
    assert_int_equal(lines, 0); /* off at first */
    succeeds(cublasLtLoggerSetLevel(1));
    call();
    assert_int_equal(lines, 0);
    succeeds(cublasLtLoggerSetLevel(2));
    call();
    assert_int_equal(lines, 1);
    assert_int_equal(last_level, 2);
    assert_string_equal(last_function, "cublasLtMatrixTransform");
    succeeds(cublasLtLoggerSetMask(16));
    call();
    assert_int_equal(lines, 1);
    succeeds(cublasLtCreate(&other));
    succeeds(cublasLtDestroy(other));
    assert_int_equal(lines, 3);
    assert_int_equal(last_level, 5);
    assert_string_equal(last_function, "cublasLtDestroy");
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtLoggerSetLevel(6));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtLoggerSetLevel(-1));
    succeeds(cublasLtLoggerSetCallback(NULL));
    succeeds(cublasLtLoggerSetLevel(5));
    succeeds(cublasLtLoggerOpenFile(name));
    call();
    assert_int_equal(lines, 3);
    assert_true(file_has(name, "[cublasLtMatrixTransform]"));
    assert_true(file_has(name, "[Trace]"));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtLoggerOpenFile("/no/such/folder/log"));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtLoggerOpenFile(NULL));
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(descriptor, 0), 0);
    succeeds(cublasLtLoggerSetFile(file));
    succeeds(cublasLtCreate(&other));
    succeeds(cublasLtDestroy(other));
    assert_true(file_has(name, "[cublasLtCreate]"));
    assert_false(file_has(name, "[cublasLtMatrixTransform]"));
    /* For good: no level turns it on again. */
    succeeds(cublasLtLoggerForceDisable());
    succeeds(cublasLtLoggerSetCallback(count_line));
    succeeds(cublasLtLoggerSetLevel(5));
    call();
    assert_int_equal(lines, 3);
    assert_false(file_has(name, "[cublasLtMatrixTransform]"));
    succeeds(cublasLtLoggerSetFile(NULL));
    fclose(file);
    unlink(name);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes),   cmocka_unit_test(test_descriptors_in_place),
        cmocka_unit_test(test_capabilities), cmocka_unit_test(test_versions_and_settings),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests_name("softgpu_cublaslt_attributes", tests, setup, teardown);
}
