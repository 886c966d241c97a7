/* The matrix product in all its types.
 *
 * Float and double, real and complex, go to OpenBLAS as they are. Whatever needs a conversion or a rounding is packed
 * first: op(A) and op(B) as plain matrices of the accumulator's type; the product is made there, then scaled, handed to
 * the caller's finish() and converted. Sums in half precision are rounded after every addition. */
#include "softgpu/blas/blas.h"

#include <math.h>
#include <stdlib.h>

enum kind { KIND_FLOAT, KIND_DOUBLE, KIND_HALF, KIND_INT };

struct work {
    const struct product *p;
    enum kind kind;
    bool complex_numbers;
    int64_t parts;       /* reals per element: 2 for complex */
    float *fa, *fb, *fc; /* packed A (m by k), B (k by n), the product (m by n) */
    double *da, *db, *dc;
};

enum number_rounding product_rounding(cublasComputeType_t compute, cublasMath_t math, cudaDataType type)
{
    if (type != CUDA_R_32F && type != CUDA_C_32F)
        return ROUND_NOT;
    switch ((int)compute) {
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        return ROUND_BF16;
    case CUBLAS_COMPUTE_32F_FAST_16F: /* to half or TF32, as the header says; TF32 keeps the range */
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        break;
    case CUBLAS_COMPUTE_32F:
        math = (cublasMath_t)(math & 15);
        if (math == CUBLAS_TF32_TENSOR_OP_MATH || math == CUBLAS_TENSOR_OP_MATH)
            break;
        return ROUND_NOT;
    default:
        return ROUND_NOT;
    }
    const char *override = secure_getenv("NVIDIA_TF32_OVERRIDE");
    return override && !strcmp(override, "0") ? ROUND_NOT : ROUND_TF32;
}

bool product_supported(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c,
                       cudaDataType *scale_type)
{
    if (a != b)
        return false;
    switch ((int)compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
        *scale_type = CUDA_R_16F;
        return a == CUDA_R_16F && c == CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
        *scale_type = CUDA_R_32I;
        return a == CUDA_R_8I && c == CUDA_R_32I;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
        *scale_type = number_is_complex(a) ? CUDA_C_32F : CUDA_R_32F;
        if (a == CUDA_R_16F || a == CUDA_R_16BF)
            return c == a || c == CUDA_R_32F;
        if (a == CUDA_C_8I)
            return c == CUDA_C_32F;
        return (a == CUDA_R_8I && c == CUDA_R_32F) || ((a == CUDA_R_32F || a == CUDA_C_32F) && c == a);
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
        *scale_type = a;
        return (a == CUDA_R_32F || a == CUDA_C_32F) && c == a;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
        *scale_type = a;
        return (a == CUDA_R_64F || a == CUDA_C_64F) && c == a;
    default:
        return false;
    }
}

/* ---- straight to OpenBLAS --------------------------------------------------------------------------------------- */

static CBLAS_TRANSPOSE transpose(cublasOperation_t op)
{
    return op == CUBLAS_OP_N ? CblasNoTrans : op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}

static bool is_direct(const struct product *p)
{
    bool same = p->a_type == p->b_type && p->a_type == p->c_type && p->a_type == p->d_type;
    bool floats = p->a_type == CUDA_R_32F || p->a_type == CUDA_C_32F;
    bool doubles = p->a_type == CUDA_R_64F || p->a_type == CUDA_C_64F;
    return same && (floats || doubles) && p->rounding == ROUND_NOT && !(floats && p->flaws) && !p->seed && !p->finish &&
           !p->alpha_vector && !p->beta_vector && !p->a_rows && !p->b_rows && !p->c_rows && !p->d_rows &&
           p->transa <= CUBLAS_OP_C && p->transb <= CUBLAS_OP_C && p->k > 0;
}

static void run_direct(const struct product *p)
{
    CBLAS_TRANSPOSE ta = transpose(p->transa), tb = transpose(p->transb);
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->lda, ldb = (int)p->ldb, ldd = (int)p->ldd;
    int64_t size = number_bytes(p->d_type);
    struct operand d = {.type = p->d_type, .rows = m, .cols = n, .ld = ldd};
    if (p->beta == 0)
        clear(p->d, &d);
    else if (p->c != p->d)
        for (int64_t j = 0; j < n; j++)
            memcpy((char *)p->d + j * ldd * size, (const char *)p->c + j * p->ldc * size, (size_t)(m * size));
    float complex alpha = (float complex)p->alpha, beta = (float complex)p->beta;
    if (p->a_type == CUDA_R_32F)
        cblas_sgemm(CblasColMajor, ta, tb, m, n, k, crealf(alpha), p->a, lda, p->b, ldb, crealf(beta), p->d, ldd);
    else if (p->a_type == CUDA_R_64F)
        cblas_dgemm(CblasColMajor, ta, tb, m, n, k, creal(p->alpha), p->a, lda, p->b, ldb, creal(p->beta), p->d, ldd);
    else if (p->a_type == CUDA_C_32F)
        cblas_cgemm(CblasColMajor, ta, tb, m, n, k, &alpha, p->a, lda, p->b, ldb, &beta, p->d, ldd);
    else
        cblas_zgemm(CblasColMajor, ta, tb, m, n, k, &p->alpha, p->a, lda, p->b, ldb, &p->beta, p->d, ldd);
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

struct source {
    const void *data;
    cudaDataType type;
    int64_t ld;
    bool by_columns; /* a column of op(X) is contiguous */
    bool conjugate;
};

static struct source source_of(const void *data, cudaDataType type, int64_t ld, cublasOperation_t op, bool row_major)
{
    bool transposed = op == CUBLAS_OP_T || op == CUBLAS_OP_C;
    return (struct source){data, type, ld, transposed == row_major, op == CUBLAS_OP_C || op == CUBLAS_OP_CONJG};
}

/* op(X), rows by cols, column by column. */
static void pack(const struct work *w, const struct source *s, int64_t rows, int64_t cols, float *f, double *d)
{
    int64_t size = number_bytes(s->type), step = s->by_columns ? 1 : s->ld, next = s->by_columns ? s->ld : 1;
    for (int64_t j = 0; j < cols; j++) {
        const void *column = (const char *)s->data + j * next * size;
        if (f)
            number_to_float(f + j * rows * w->parts, column, s->type, step, rows);
        else
            number_to_double(d + j * rows * w->parts, column, s->type, step, rows);
    }
    for (int64_t i = 1; i < rows * cols * 2 && w->complex_numbers && s->conjugate; i += 2) {
        if (f)
            f[i] = -f[i];
        else
            d[i] = -d[i];
    }
    if (!f)
        return;
    int64_t n = rows * cols * w->parts;
    number_round(f, n, w->p->rounding);
    if (w->p->flaws & SOFTGPU_FLAW_TF32)
        number_round(f, n, ROUND_TF32);
    if (w->p->flaws & SOFTGPU_FLAW_FTZ)
        number_flush_float(f, n);
}

/* ---- products of packed matrices -------------------------------------------------------------------------------- */

/* Sums rounded to half after each addition; the products are exact. */
static void multiply_half(const struct work *w)
{
    int64_t m = w->p->m, n = w->p->n, k = w->p->k, parts = w->parts;
    if (parts == 1) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++) {
                float b = w->fb[l + j * k];
                for (int64_t i = 0; i < m; i++)
                    w->fc[i + j * m] = number_half_round(w->fc[i + j * m] + w->fa[i + l * m] * b);
            }
        return;
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < m; i++) {
                const float *a = w->fa + 2 * (i + l * m), *b = w->fb + 2 * (l + j * k);
                float *c = w->fc + 2 * (i + j * m);
                c[0] = number_half_round(number_half_round(c[0] + a[0] * b[0]) - a[1] * b[1]);
                c[1] = number_half_round(number_half_round(c[1] + a[0] * b[1]) + a[1] * b[0]);
            }
}

/* Integers wrap at 32 bits, as on a device. */
static void multiply_int(const struct work *w)
{
    int64_t m = w->p->m, n = w->p->n, k = w->p->k;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            int64_t sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (int64_t)w->da[i + l * m] * (int64_t)w->db[l + j * k];
            w->dc[i + j * m] = (double)(int32_t)(uint32_t)(uint64_t)sum;
        }
}

/* Adds the terms [first, first + terms) of the sums. */
static void multiply_part(const struct work *w, int64_t first, int64_t terms)
{
    int m = (int)w->p->m, n = (int)w->p->n, k = (int)w->p->k;
    const float complex one_c = 1;
    const double complex one_z = 1;
    if (!terms)
        return;
    if (w->fa && !w->complex_numbers)
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, (int)terms, 1, w->fa + first * m, m, w->fb + first,
                    k, 1, w->fc, m);
    else if (w->fa)
        cblas_cgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, (int)terms, &one_c, w->fa + 2 * first * m, m,
                    w->fb + 2 * first, k, &one_c, w->fc, m);
    else if (!w->complex_numbers)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, (int)terms, 1, w->da + first * m, m, w->db + first,
                    k, 1, w->dc, m);
    else
        cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, (int)terms, &one_z, w->da + 2 * first * m, m,
                    w->db + 2 * first, k, &one_z, w->dc, m);
}

static void multiply(const struct work *w)
{
    const struct product *p = w->p;
    if (w->kind == KIND_HALF || (w->kind == KIND_FLOAT && (p->flaws & SOFTGPU_FLAW_FP16ACC))) {
        multiply_half(w);
    } else if (w->kind == KIND_INT) {
        multiply_int(w);
    } else {
        /* With a seed the sums start somewhere in the middle: another order, as sound as any. */
        int64_t start = p->seed ? (int64_t)(p->seed % (uint64_t)(p->k + 1)) : 0;
        multiply_part(w, start, p->k - start);
        multiply_part(w, 0, start);
    }
}

/* ---- scaling and storing ---------------------------------------------------------------------------------------- */

static double complex accumulated(const struct work *w, int64_t at)
{
    if (w->fc)
        return w->complex_numbers ? CMPLX((double)w->fc[2 * at], (double)w->fc[2 * at + 1]) : (double)w->fc[at];
    return w->complex_numbers ? CMPLX(w->dc[2 * at], w->dc[2 * at + 1]) : w->dc[at];
}

/* A product of complex numbers without the library's care for infinities. */
static double complex times(double complex a, double complex b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static double complex scaled(const struct work *w, double complex sum, double complex alpha, double complex beta,
                             double complex old)
{
    if (w->kind == KIND_DOUBLE || w->kind == KIND_INT || w->complex_numbers) {
        double complex value = times(alpha, sum);
        return beta == 0 ? value : value + times(beta, old);
    }
    float value = (float)creal(alpha) * (float)creal(sum);
    if (w->kind == KIND_HALF)
        value = number_half_round(value);
    if (beta != 0)
        value += (float)creal(beta) * (float)creal(old);
    return (double)(w->kind == KIND_HALF ? number_half_round(value) : value);
}

static int64_t place(int64_t i, int64_t j, int64_t ld, bool row_major)
{
    return row_major ? i * ld + j : i + j * ld;
}

static void store(const struct work *w, double complex *column)
{
    const struct product *p = w->p;
    for (int64_t j = 0; j < p->n; j++) {
        for (int64_t i = 0; i < p->m; i++) {
            double complex alpha = p->alpha_vector ? number_load(p->alpha_vector, p->scale_type, i) : p->alpha;
            double complex beta = p->beta_vector ? number_load(p->beta_vector, p->scale_type, i) : p->beta;
            double complex old = beta == 0 ? 0 : number_load(p->c, p->c_type, place(i, j, p->ldc, p->c_rows));
            column[i] = scaled(w, accumulated(w, i + j * p->m), alpha, beta, old);
        }
        if (p->finish)
            p->finish(p->finish_context, j, column);
        for (int64_t i = 0; i < p->m; i++) {
            double complex value = column[i];
            if ((p->flaws & SOFTGPU_FLAW_FTZ) && p->d_type == CUDA_R_32F &&
                fpclassify((float)creal(value)) == FP_SUBNORMAL)
                value = 0;
            number_store(p->d, p->d_type, place(i, j, p->ldd, p->d_rows), value);
        }
    }
}

static enum kind kind_of(cublasComputeType_t compute)
{
    switch ((int)compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
        return KIND_HALF;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
        return KIND_DOUBLE;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
        return KIND_INT;
    default:
        return KIND_FLOAT;
    }
}

bool product_run(const struct product *p)
{
    if (p->m <= 0 || p->n <= 0)
        return true;
    if (is_direct(p)) {
        run_direct(p);
        return true;
    }
    struct work w = {.p = p, .kind = kind_of(p->compute), .complex_numbers = number_is_complex(p->a_type)};
    w.parts = w.complex_numbers ? 2 : 1;
    size_t size = w.kind == KIND_FLOAT || w.kind == KIND_HALF ? sizeof(float) : sizeof(double);
    int64_t a = p->m * p->k * w.parts, b = p->k * p->n * w.parts, c = p->m * p->n * w.parts;
    void *memory = calloc((size_t)(a + b + c), size);
    double complex *column = malloc((size_t)p->m * sizeof *column);
    bool ok = memory && column;
    if (ok && size == sizeof(float)) {
        w.fa = memory;
        w.fb = w.fa + a;
        w.fc = w.fb + b;
    } else if (ok) {
        w.da = memory;
        w.db = w.da + a;
        w.dc = w.db + b;
    }
    if (ok) {
        struct source left = source_of(p->a, p->a_type, p->lda, p->transa, p->a_rows);
        struct source right = source_of(p->b, p->b_type, p->ldb, p->transb, p->b_rows);
        pack(&w, &left, p->m, p->k, w.fa, w.da);
        pack(&w, &right, p->k, p->n, w.fb, w.db);
        multiply(&w);
        store(&w, column);
    }
    free(column);
    free(memory);
    return ok;
}
