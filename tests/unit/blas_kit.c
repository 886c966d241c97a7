#include "tests/unit/blas_kit.h"

cublasHandle_t handle;
const cudaDataType real_and_complex[4] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

const cublasOperation_t ops[3] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
const cublasFillMode_t fills[2] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};

int blas_setup(void **state)
{
    return use_primary_context(state) || cublasCreate_v2(&handle) != CUBLAS_STATUS_SUCCESS;
}

int blas_teardown(void **state)
{
    return cublasDestroy_v2(handle) != CUBLAS_STATUS_SUCCESS;
}

size_t type_bytes(cudaDataType type)
{
    switch ((int)type) {
    case CUDA_R_8I:
    case CUDA_R_8U:
        return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_C_8I:
        return 2;
    case CUDA_R_64F:
    case CUDA_R_64I:
    case CUDA_C_32F:
        return 8;
    case CUDA_C_64F:
        return 16;
    default:
        return 4;
    }
}

bool type_is_complex(cudaDataType type)
{
    return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_8I;
}

double tolerance_of(cudaDataType type)
{
    return type == CUDA_R_64F || type == CUDA_C_64F ? 1e-13 : 1e-5;
}

/* Normal halves and bf16 only, which is all that the tests use, besides NaN. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31)
        return mantissa ? NAN : INFINITY;
    double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return bits & 0x8000 ? -value : value;
}

static uint16_t half_bits(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return 0x7e00;
    int low = 0, high = 0x7c00; /* halves above zero grow with their bits */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(half_value((uint16_t)middle) <= fabs(value) ? &low : &high) = middle;
    }
    if (half_value((uint16_t)low) == fabs(value))
        return sign | (uint16_t)low;
    fail_msg("%g is no half", value);
    return 0;
}

static double bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return (double)value;
}

number get(const void *data, cudaDataType type, int64_t i)
{
    switch ((int)type) {
    case CUDA_R_8I:
        return ((const int8_t *)data)[i];
    case CUDA_R_8U:
        return ((const uint8_t *)data)[i];
    case CUDA_C_8I:
        return CMPLX(((const int8_t *)data)[2 * i], ((const int8_t *)data)[2 * i + 1]);
    case CUDA_R_32I:
        return ((const int32_t *)data)[i];
    case CUDA_R_64I:
        return (double)((const int64_t *)data)[i];
    case CUDA_R_16F:
        return half_value(((const uint16_t *)data)[i]);
    case CUDA_R_16BF:
        return bf16_value(((const uint16_t *)data)[i]);
    case CUDA_R_32F:
        return (double)((const float *)data)[i];
    case CUDA_R_64F:
        return ((const double *)data)[i];
    case CUDA_C_32F:
        return CMPLX((double)((const float *)data)[2 * i], (double)((const float *)data)[2 * i + 1]);
    default:
        return CMPLX(((const double *)data)[2 * i], ((const double *)data)[2 * i + 1]);
    }
}

void put(void *data, cudaDataType type, int64_t i, number value)
{
    float narrow = (float)creal(value);
    uint32_t bits;
    switch ((int)type) {
    case CUDA_R_8I:
        ((int8_t *)data)[i] = (int8_t)creal(value);
        break;
    case CUDA_R_8U:
        ((uint8_t *)data)[i] = (uint8_t)creal(value);
        break;
    case CUDA_C_8I:
        ((int8_t *)data)[2 * i] = (int8_t)creal(value);
        ((int8_t *)data)[2 * i + 1] = (int8_t)cimag(value);
        break;
    case CUDA_R_32I:
        ((int32_t *)data)[i] = (int32_t)creal(value);
        break;
    case CUDA_R_16F:
        ((uint16_t *)data)[i] = half_bits(creal(value));
        break;
    case CUDA_R_16BF:
        memcpy(&bits, &narrow, 4);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    case CUDA_R_32F:
        ((float *)data)[i] = narrow;
        break;
    case CUDA_R_64F:
        ((double *)data)[i] = creal(value);
        break;
    case CUDA_C_32F:
        ((float *)data)[2 * i] = narrow;
        ((float *)data)[2 * i + 1] = (float)cimag(value);
        break;
    default:
        ((double *)data)[2 * i] = creal(value);
        ((double *)data)[2 * i + 1] = cimag(value);
    }
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static double next(unsigned *seed, bool whole)
{
    *seed = *seed * 1103515245u + 12345u;
    int eighths = (int)(*seed >> 16 & 31) - 16;
    return whole ? eighths : eighths / 8.0;
}

static struct array make(cudaDataType type, int64_t n)
{
    struct array a = {.type = type, .n = n, .v = calloc((size_t)n + 1, sizeof(number))};
    assert_non_null(a.v);
    ok(cuMemAlloc_v2(&a.d, ((size_t)n + 1) * type_bytes(type)));
    return a;
}

void array_set(struct array *a)
{
    size_t size = type_bytes(a->type);
    void *host = calloc((size_t)a->n + 1, size);
    assert_non_null(host);
    for (int64_t i = 0; i < a->n; i++)
        put(host, a->type, i, a->v[i]);
    ok(cuMemcpyHtoD_v2(a->d, host, ((size_t)a->n + 1) * size));
    free(host);
}

struct array array_new(cudaDataType type, int64_t n, unsigned seed)
{
    struct array a = make(type, n);
    bool whole = type == CUDA_R_8I || type == CUDA_R_32I || type == CUDA_C_8I;
    for (int64_t i = 0; i < n; i++) {
        double re = next(&seed, whole);
        a.v[i] = type_is_complex(type) ? CMPLX(re, next(&seed, whole)) : re;
    }
    array_set(&a);
    return a;
}

struct array array_of(cudaDataType type, int64_t n, number value)
{
    struct array a = make(type, n);
    for (int64_t i = 0; i < n; i++)
        a.v[i] = value;
    array_set(&a);
    return a;
}

void array_free(struct array *a)
{
    ok(cuMemFree_v2(a->d));
    free(a->v);
}

void *pointer(const struct array *a)
{
    return (void *)(uintptr_t)a->d;
}

number *array_get(const struct array *a)
{
    size_t size = type_bytes(a->type);
    void *host = calloc((size_t)a->n + 1, size);
    number *v = calloc((size_t)a->n + 1, sizeof *v);
    assert_true(host && v);
    ok(cuCtxSynchronize());
    if (a->n)
        ok(cuMemcpyDtoH_v2(host, a->d, (size_t)a->n * size));
    for (int64_t i = 0; i < a->n; i++)
        v[i] = get(host, a->type, i);
    free(host);
    return v;
}

static bool close_to(number a, number b, double tolerance)
{
    if (isnan(creal(b)))
        return isnan(creal(a));
    return cabs(a - b) <= tolerance * fmax(1, cabs(b));
}

void array_expect(const struct array *a, const number *wanted, double tolerance, const char *what)
{
    number *v = array_get(a);
    for (int64_t i = 0; i < a->n; i++)
        if (!close_to(v[i], wanted[i], tolerance))
            fail_msg("%s, type %d: element %ld is %g%+gi, not %g%+gi", what, a->type, (long)i, creal(v[i]), cimag(v[i]),
                     creal(wanted[i]), cimag(wanted[i]));
    free(v);
}

CUdeviceptr address_list(const struct array *a, int64_t step, int count)
{
    CUdeviceptr list, host[16];
    assert_true(count <= 16);
    for (int i = 0; i < count; i++)
        host[i] = a->d + (size_t)(i * step) * type_bytes(a->type);
    ok(cuMemAlloc_v2(&list, sizeof host));
    ok(cuMemcpyHtoD_v2(list, host, sizeof host));
    return list;
}

/* ---- scalars ---------------------------------------------------------------------------------------------------- */

enum { SLOTS = 8 };
static cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
static double complex ring[SLOTS + 1]; /* the last one is for results */
static CUdeviceptr device_ring;

void use_pointer_mode(cublasPointerMode_t mode)
{
    if (!device_ring)
        ok(cuMemAlloc_v2(&device_ring, sizeof ring));
    pointer_mode = mode;
    succeeds(cublasSetPointerMode_v2(handle, mode));
}

/* The copies to the device wait for what is in the default stream, and so for readers of the old value. */
static void *slot(unsigned i)
{
    CUdeviceptr d = device_ring + i * sizeof ring[0];
    if (pointer_mode == CUBLAS_POINTER_MODE_HOST)
        return &ring[i];
    ok(cuMemcpyHtoD_v2(d, &ring[i], sizeof ring[0]));
    return (void *)(uintptr_t)d;
}

const void *scalar(cudaDataType type, number value)
{
    static unsigned next_slot;
    unsigned i = next_slot++ % SLOTS;
    put(&ring[i], type, 0, value);
    return slot(i);
}

void *result_room(void)
{
    memset(&ring[SLOTS], 0x55, sizeof ring[0]);
    return slot(SLOTS);
}

number result(cudaDataType type)
{
    if (pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        ok(cuMemcpyDtoH_v2(&ring[SLOTS], device_ring + SLOTS * sizeof ring[0], sizeof ring[0]));
    return get(&ring[SLOTS], type, 0);
}

int64_t at(int64_t i, int64_t n, int64_t inc)
{
    return inc < 0 ? (n - 1 - i) * -inc : i * inc;
}

number *copy_of(const struct array *a)
{
    number *v = calloc((size_t)a->n + 1, sizeof *v);
    assert_non_null(v);
    memcpy(v, a->v, (size_t)a->n * sizeof *v);
    return v;
}

void expect_number(number got, number wanted, double tolerance, const char *what)
{
    if (!close_to(got, wanted, tolerance))
        fail_msg("%s: %g%+gi, not %g%+gi", what, creal(got), cimag(got), creal(wanted), cimag(wanted));
}

static double nearest(double value, int mantissa_bits)
{
    int exponent;
    if (value == 0 || isnan(value) || isinf(value))
        return value;
    frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(value, mantissa_bits - exponent)), exponent - mantissa_bits);
}

number rounded(cudaDataType type, number value)
{
    enum { HALF = 11, BF16 = 8, SINGLE = 24, DOUBLE = 53 };
    bool single = type == CUDA_R_32F || type == CUDA_C_32F;
    int bits = type == CUDA_R_16F ? HALF : type == CUDA_R_16BF ? BF16 : single ? SINGLE : DOUBLE;
    return CMPLX(nearest(creal(value), bits), nearest(cimag(value), bits));
}

number factor(cudaDataType type, double re, double im)
{
    return type_is_complex(type) ? CMPLX(re, im) : re;
}

cudaDataType real_of(cudaDataType type)
{
    return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}

/* ---- loops ------------------------------------------------------------------------------------------------------ */

number op_at(const number *v, int64_t ld, cublasOperation_t op, int64_t i, int64_t j)
{
    if (op == CUBLAS_OP_N)
        return v[i + j * ld];
    return op == CUBLAS_OP_T ? v[j + i * ld] : conj(v[j + i * ld]);
}

void loop_gemm(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, number alpha, const number *a, int lda,
               const number *b, int ldb, number beta, number *c, int ldc)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            number sum = 0;
            for (int l = 0; l < k; l++)
                sum += op_at(a, lda, ta, i, l) * op_at(b, ldb, tb, l, j);
            c[i + j * ldc] = alpha * sum + (beta == 0 ? 0 : beta * c[i + j * ldc]);
        }
}

void full_symmetric(number *full, const number *v, int n, int ld, cublasFillMode_t uplo, bool hermitian)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            bool stored = uplo == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
            number value = stored ? v[i + j * ld] : v[j + i * ld];
            if (hermitian && !stored)
                value = conj(value);
            full[i + j * n] = hermitian && i == j ? creal(value) : value;
        }
}

void full_triangle(number *full, const number *v, int n, int ld, cublasFillMode_t uplo, cublasDiagType_t diag)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            bool stored = uplo == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
            full[i + j * n] = i == j && diag == CUBLAS_DIAG_UNIT ? 1 : stored ? v[i + j * ld] : 0;
        }
}
