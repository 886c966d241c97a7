/* libcublas: what is set in a handle, versions, the log, copies between host and device, and the routines that have one
 * width of integers or none: making rotations, packing triangles. */
#include "tests/unit/blas_kit.h"

/* ---- fields of the handle --------------------------------------------------------------------------------------- */

/* Default; good values come back, bad ones change nothing; each handle has its own. */
#define CHECK_FIELD(type, name, initial, good, bad)                                                                    \
    do {                                                                                                               \
        type value = (type)(good);                                                                                     \
        succeeds(cublasGet##name(h, &value));                                                                          \
        assert_true(value == (type)(initial));                                                                         \
        succeeds(cublasSet##name(h, (type)(good)));                                                                    \
        succeeds(cublasGet##name(h, &value));                                                                          \
        assert_true(value == (type)(good));                                                                            \
        if ((bad) != (good))                                                                                           \
            fails(CUBLAS_STATUS_INVALID_VALUE, cublasSet##name(h, (type)(bad)));                                       \
        succeeds(cublasGet##name(h, &value));                                                                          \
        assert_true(value == (type)(good));                                                                            \
        succeeds(cublasGet##name(other, &value));                                                                      \
        assert_true(value == (type)(initial));                                                                         \
        fails(CUBLAS_STATUS_INVALID_VALUE, cublasGet##name(h, NULL));                                                  \
        fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasGet##name(NULL, &value));                                           \
        fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasSet##name(NULL, (type)(good)));                                     \
    } while (0)

static void test_fields(void **state)
{
    static int count;
    int *const none = NULL, *const some = &count;
    cublasHandle_t h, other;
    succeeds(cublasCreate_v2(&h));
    succeeds(cublasCreate_v2(&other));
    CHECK_FIELD(cublasPointerMode_t, PointerMode_v2, CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE, 2);
    CHECK_FIELD(cublasAtomicsMode_t, AtomicsMode, CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED, 2);
    CHECK_FIELD(cublasMath_t, MathMode, CUBLAS_DEFAULT_MATH, CUBLAS_PEDANTIC_MATH, 7);
    CHECK_FIELD(int, SmCountTarget, 0, 12, -1);
    CHECK_FIELD(cublasEmulationStrategy_t, EmulationStrategy, CUBLAS_EMULATION_STRATEGY_DEFAULT,
                CUBLAS_EMULATION_STRATEGY_EAGER, 3);
    CHECK_FIELD(cudaEmulationSpecialValuesSupport, EmulationSpecialValuesSupport, 0,
                CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_NAN, CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_NAN);
    CHECK_FIELD(cudaEmulationMantissaControl, FixedPointEmulationMantissaControl,
                CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC, CUDA_EMULATION_MANTISSA_CONTROL_FIXED, 2);
    CHECK_FIELD(int, FixedPointEmulationMaxMantissaBitCount, 0, 40, -1);
    CHECK_FIELD(int, FixedPointEmulationMantissaBitOffset, 0, -4, -4);
    CHECK_FIELD(int *, FixedPointEmulationMantissaBitCountPointer, none, some, some);
    succeeds(cublasDestroy_v2(h));
    succeeds(cublasDestroy_v2(other));
}

static void test_versions(void **state)
{
    static const libraryPropertyType types[] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    const int wanted[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
    int value = 0;
    for (int i = 0; i < 3; i++) {
        succeeds(cublasGetProperty(types[i], &value));
        assert_int_equal(value, wanted[i]);
    }
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasGetProperty((libraryPropertyType)9, &value));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasGetVersion_v2(handle, NULL));
    assert_int_equal(cublasGetCudartVersion(), CUDA_VERSION);
    for (int status = 0; status < 17; status++) {
        assert_non_null(cublasGetStatusName((cublasStatus_t)status));
        assert_non_null(cublasGetStatusString((cublasStatus_t)status));
    }
    assert_string_equal(cublasGetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS");
    assert_string_equal(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
}

/* ---- the log ---------------------------------------------------------------------------------------------------- */

static int lines;
static char last_line[256];

static void keep_line(const char *line)
{
    lines++;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static void call(void)
{
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSscal_v2(handle, 4, NULL, NULL, 1));
}

static void test_log(void **state)
{
    char name[] = "/tmp/softgpu-cublas-log-XXXXXX", text[4096] = "";
    cublasLogCallback callback = keep_line;
    int descriptor = mkstemp(name);
    assert_true(descriptor >= 0);
    succeeds(cublasGetLoggerCallback(&callback));
    assert_null(callback);
    succeeds(cublasSetLoggerCallback(keep_line)); /* which turns the log on */
    call();
    assert_int_equal(lines, 1);
    assert_non_null(strstr(last_line, "cublasSscal_v2"));
    succeeds(cublasGetLoggerCallback(&callback));
    assert_true(callback == keep_line);
    succeeds(cublasLoggerConfigure(0, 0, 0, NULL));
    call();
    assert_int_equal(lines, 1);
    succeeds(cublasLoggerConfigure(1, 0, 0, name));
    call();
    assert_int_equal(lines, 2);
    succeeds(cublasSetLoggerCallback(NULL));
    call();
    assert_int_equal(lines, 2);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLoggerConfigure(1, 0, 0, "/no/such/folder/log"));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasGetLoggerCallback(NULL));
    succeeds(cublasLoggerConfigure(0, 0, 0, NULL));
    call();
    assert_true(read(descriptor, text, sizeof text - 1) > 0);
    int found = 0;
    for (const char *at_line = text; (at_line = strstr(at_line, "[cublasSscal_v2]")); at_line++)
        found++;
    assert_int_equal(found, 2);
    close(descriptor);
    unlink(name);
}

/* ---- transfers -------------------------------------------------------------------------------------------------- */

enum { T_ROWS = 3, T_COLS = 4, HOST_LD = 5, DEVICE_LD = 7, HOST_INC = 2, DEVICE_INC = 3, COUNT = T_COLS * DEVICE_LD };

/* All four directions and both widths; synchronous ones have no stream. */
struct transfer {
    bool wide, async;
};

static cublasStatus_t set_matrix(struct transfer t, int rows, int size, const void *a, int lda, void *b, CUstream s)
{
    if (t.async)
        return t.wide ? cublasSetMatrixAsync_64(rows, T_COLS, size, a, lda, b, DEVICE_LD, s)
                      : cublasSetMatrixAsync(rows, T_COLS, size, a, lda, b, DEVICE_LD, s);
    return t.wide ? cublasSetMatrix_64(rows, T_COLS, size, a, lda, b, DEVICE_LD)
                  : cublasSetMatrix(rows, T_COLS, size, a, lda, b, DEVICE_LD);
}

static cublasStatus_t get_matrix(struct transfer t, int rows, int size, const void *a, void *b, int ldb, CUstream s)
{
    if (t.async)
        return t.wide ? cublasGetMatrixAsync_64(rows, T_COLS, size, a, DEVICE_LD, b, ldb, s)
                      : cublasGetMatrixAsync(rows, T_COLS, size, a, DEVICE_LD, b, ldb, s);
    return t.wide ? cublasGetMatrix_64(rows, T_COLS, size, a, DEVICE_LD, b, ldb)
                  : cublasGetMatrix(rows, T_COLS, size, a, DEVICE_LD, b, ldb);
}

static cublasStatus_t set_vector(struct transfer t, int n, int size, const void *x, int inc, void *y, CUstream s)
{
    if (t.async)
        return t.wide ? cublasSetVectorAsync_64(n, size, x, inc, y, DEVICE_INC, s)
                      : cublasSetVectorAsync(n, size, x, inc, y, DEVICE_INC, s);
    return t.wide ? cublasSetVector_64(n, size, x, inc, y, DEVICE_INC)
                  : cublasSetVector(n, size, x, inc, y, DEVICE_INC);
}

static cublasStatus_t get_vector(struct transfer t, int n, int size, const void *x, void *y, int inc, CUstream s)
{
    if (t.async)
        return t.wide ? cublasGetVectorAsync_64(n, size, x, DEVICE_INC, y, inc, s)
                      : cublasGetVectorAsync(n, size, x, DEVICE_INC, y, inc, s);
    return t.wide ? cublasGetVector_64(n, size, x, DEVICE_INC, y, inc)
                  : cublasGetVector(n, size, x, DEVICE_INC, y, inc);
}

static void check_transfers(struct transfer t, CUstream stream)
{
    double host[COUNT], device[COUNT], back[COUNT];
    CUdeviceptr d;
    ok(cuMemAlloc_v2(&d, sizeof device));
    ok(cuMemsetD8_v2(d, 0, sizeof device));
    ok(cuCtxSynchronize()); /* the stream does not wait for it */
    void *p = (void *)(uintptr_t)d;
    for (int i = 0; i < COUNT; i++) {
        host[i] = i + 1;
        back[i] = -1;
    }
    succeeds(set_matrix(t, T_ROWS, sizeof *host, host, HOST_LD, p, stream));
    succeeds(get_matrix(t, T_ROWS, sizeof *host, p, back, HOST_LD, stream));
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH_v2(device, d, sizeof device));
    for (int i = 0; i < COUNT; i++) {
        bool on_device = i % DEVICE_LD < T_ROWS, on_host = i % HOST_LD < T_ROWS && i / HOST_LD < T_COLS;
        assert_true(device[i] == (on_device ? host[i % DEVICE_LD + i / DEVICE_LD * HOST_LD] : 0));
        assert_true(back[i] == (on_host ? host[i] : -1));
        back[i] = -1;
    }
    ok(cuMemsetD8_v2(d, 0, sizeof device));
    ok(cuCtxSynchronize()); /* the stream does not wait for it */
    succeeds(set_vector(t, T_COLS, sizeof *host, host, HOST_INC, p, stream));
    succeeds(get_vector(t, T_COLS, sizeof *host, p, back, HOST_INC, stream));
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH_v2(device, d, sizeof device));
    for (int i = 0; i < COUNT; i++) {
        bool on_device = i % DEVICE_INC == 0 && i / DEVICE_INC < T_COLS;
        bool on_host = i % HOST_INC == 0 && i / HOST_INC < T_COLS;
        assert_true(device[i] == (on_device ? host[i / DEVICE_INC * HOST_INC] : 0));
        assert_true(back[i] == (on_host ? host[i] : -1));
    }
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    fails(invalid, set_matrix(t, -1, 8, host, HOST_LD, p, stream));
    fails(invalid, set_matrix(t, 3, 0, host, HOST_LD, p, stream));
    fails(invalid, set_matrix(t, 3, 8, host, 2, p, stream));
    fails(invalid, get_matrix(t, DEVICE_LD + 1, 8, p, back, DEVICE_LD + 1, stream));
    fails(invalid, get_matrix(t, 3, 8, p, back, 0, stream));
    fails(invalid, set_vector(t, 3, 8, host, 0, p, stream));
    fails(invalid, get_vector(t, 3, -8, p, back, 1, stream));
    fails(CUBLAS_STATUS_MAPPING_ERROR, set_vector(t, COUNT, 8, host, 1, p, stream)); /* past the allocation */
    succeeds(set_vector(t, 0, 8, NULL, 1, NULL, stream));
    ok(cuMemFree_v2(d));
}

static void test_transfers(void **state)
{
    CUstream stream;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++)
        check_transfers((struct transfer){i & 1, i & 2}, stream);
    ok(cuStreamDestroy_v2(stream));
}

/* ---- making rotations ------------------------------------------------------------------------------------------- */

/* Scalars where the pointer mode wants them. */
static void *scalars(const struct array *a, void *host)
{
    cublasPointerMode_t mode;
    succeeds(cublasGetPointerMode_v2(handle, &mode));
    for (int i = 0; i < a->n; i++)
        put(host, a->type, i, a->v[i]);
    return mode == CUBLAS_POINTER_MODE_HOST ? host : pointer(a);
}

static number scalar_after(const struct array *a, const void *host, int i)
{
    cublasPointerMode_t mode;
    succeeds(cublasGetPointerMode_v2(handle, &mode));
    if (mode == CUBLAS_POINTER_MODE_HOST)
        return get(host, a->type, i);
    number *v = array_get(a), value = v[i];
    free(v);
    return value;
}

/* The rotation takes (a, b) to (r, 0), and is one: c real, c^2 + |s|^2 = 1. */
static void check_rotg(cudaDataType type, bool typed, number a, number b)
{
    struct array given = array_of(type, 3, a), cosine = array_of(real_of(type), 1, 7);
    number host[3], host_c[1];
    given.v[1] = b;
    given.v[2] = 7;
    array_set(&given);
    char *p = scalars(&given, host), *c_at = scalars(&cosine, host_c);
    size_t size = type_bytes(type);
    if (typed)
        succeeds(cublasRotgEx(handle, p, p + size, type, c_at, p + 2 * size, type, type));
    else
        succeeds(CALL(type, rotg_v2, handle, (void *)p, (void *)(p + size), (void *)c_at, (void *)(p + 2 * size)));
    number r = scalar_after(&given, host, 0), s = scalar_after(&given, host, 2);
    number c = scalar_after(&cosine, host_c, 0);
    double tolerance = tolerance_of(type);
    expect_number(c * c + s * conj(s), 1, tolerance, "rotg's length");
    expect_number(c * a + s * b, r, tolerance, "rotg's r");
    expect_number(c * b - conj(s) * a, 0, tolerance, "rotg's zero");
    array_free(&given);
    array_free(&cosine);
}

/* The four numbers of H by its form. */
static void form_of(const number *param, double h[4])
{
    double p[5];
    for (int i = 0; i < 5; i++)
        p[i] = creal(param[i]);
    h[0] = p[0] == -1 || p[0] == 1 ? p[1] : 1;
    h[1] = p[0] == -1 || p[0] == 0 ? p[2] : p[0] == 1 ? -1 : 0;
    h[2] = p[0] == -1 || p[0] == 0 ? p[3] : p[0] == 1 ? 1 : 0;
    h[3] = p[0] == -1 || p[0] == 1 ? p[4] : 1;
}

/* H takes (x1, y1) to (x1', 0); sqrt(d) H is a rotation: d1' x1'^2 = d1 x1^2 + d2 y1^2. */
static void check_rotmg(cudaDataType type, bool typed, double d1, double d2, double x1, double y1)
{
    const double values[4] = {d1, d2, x1, y1};
    struct array given = array_of(type, 9, 0);
    number host[9], after[9];
    double h[4];
    for (int i = 0; i < 4; i++)
        given.v[i] = values[i];
    array_set(&given);
    char *p = scalars(&given, host);
    size_t size = type_bytes(type);
    if (typed)
        succeeds(cublasRotmgEx(handle, p, type, p + size, type, p + 2 * size, type, p + 3 * size, type, p + 4 * size,
                               type, type));
    else
        succeeds(CALL_REAL(type, rotmg_v2, handle, (void *)p, (void *)(p + size), (void *)(p + 2 * size),
                           (void *)(p + 3 * size), (void *)(p + 4 * size)));
    for (int i = 0; i < 9; i++)
        after[i] = scalar_after(&given, host, i);
    form_of(after + 4, h);
    double tolerance = tolerance_of(type) * 10;
    expect_number(h[0] * x1 + h[2] * y1, after[2], tolerance, "rotmg's x");
    expect_number(h[1] * x1 + h[3] * y1, 0, tolerance, "rotmg's zero");
    expect_number(after[0] * after[2] * after[2], d1 * x1 * x1 + d2 * y1 * y1, tolerance, "rotmg's length");
    array_free(&given);
}

static void test_making_rotations(void **state)
{
    for (int mode = CUBLAS_POINTER_MODE_HOST; mode <= CUBLAS_POINTER_MODE_DEVICE; mode++) {
        use_pointer_mode((cublasPointerMode_t)mode);
        for (int i = 0; i < 8; i++) {
            cudaDataType type = real_and_complex[i % 4];
            check_rotg(type, i / 4, factor(type, 3, 1), factor(type, 4, -2));
            check_rotg(type, i / 4, factor(type, -3, 2), factor(type, 1, 0));
            check_rotg(type, i / 4, 0, factor(type, 2, 0));
            check_rotg(type, i / 4, factor(type, 2, 1), 0);
            if (type_is_complex(type))
                continue;
            check_rotmg(type, i / 4, 1, 2, 3, 4);
            check_rotmg(type, i / 4, 2, 1, 4, 1);
            check_rotmg(type, i / 4, 1, 1, 1, 0);
        }
    }
    use_pointer_mode(CUBLAS_POINTER_MODE_HOST);
    float a = 1;
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSrotg_v2(handle, &a, &a, NULL, &a));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSrotmg_v2(handle, &a, &a, &a, NULL, &a));
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasSrotg_v2(NULL, &a, &a, &a, &a));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, cublasRotgEx(handle, &a, &a, CUDA_R_16F, &a, &a, CUDA_R_16F, CUDA_R_32F));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, cublasRotmgEx(handle, &a, CUDA_R_16F, &a, CUDA_R_16F, &a, CUDA_R_16F, &a,
                                                     CUDA_R_16F, &a, CUDA_R_16F, CUDA_R_32F));
}

/* ---- packed triangles ------------------------------------------------------------------------------------------- */

static void check_packing(cudaDataType type, cublasFillMode_t uplo)
{
    enum { N = 6, LD = 8, PACKED = N * (N + 1) / 2 };
    struct array a = array_new(type, LD * N, 1), p = array_of(type, PACKED, NAN), c = array_new(type, LD * N, 2);
    int at_packed = 0;
    for (int j = 0; j < N; j++)
        for (int i = uplo == CUBLAS_FILL_MODE_UPPER ? 0 : j; i < (uplo == CUBLAS_FILL_MODE_UPPER ? j + 1 : N); i++) {
            p.v[at_packed++] = a.v[i + j * LD];
            c.v[i + j * LD] = a.v[i + j * LD];
        }
    succeeds(CALL(type, trttp, handle, uplo, N, pointer(&a), LD, pointer(&p)));
    array_expect(&p, p.v, 0, "trttp");
    succeeds(CALL(type, tpttr, handle, uplo, N, pointer(&p), pointer(&c), LD));
    array_expect(&c, c.v, 0, "tpttr");
    fails(CUBLAS_STATUS_INVALID_VALUE,
          CALL(type, trttp, handle, CUBLAS_FILL_MODE_FULL, N, pointer(&a), LD, pointer(&p)));
    fails(CUBLAS_STATUS_INVALID_VALUE, CALL(type, trttp, handle, uplo, -1, pointer(&a), LD, pointer(&p)));
    fails(CUBLAS_STATUS_INVALID_VALUE, CALL(type, tpttr, handle, uplo, N, pointer(&p), pointer(&c), N - 1));
    array_free(&a);
    array_free(&p);
    array_free(&c);
}

static void test_packing(void **state)
{
    for (int i = 0; i < 8; i++)
        check_packing(real_and_complex[i % 4], fills[i / 4]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),    cmocka_unit_test(test_versions),         cmocka_unit_test(test_log),
        cmocka_unit_test(test_transfers), cmocka_unit_test(test_making_rotations), cmocka_unit_test(test_packing),
    };
    return cmocka_run_group_tests_name("softgpu_cublas_handle", tests, blas_setup, blas_teardown);
}
