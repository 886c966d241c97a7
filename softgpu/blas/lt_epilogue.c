/* cublasLtMatmul when it runs: the product, and what its epilogue adds.
 *
 * GELU is the tanh approximation, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), and its gradient the derivative of
 * that. The bits of a ReLU mask are 1 where the input was above zero. */
#include <math.h>
#include <stdlib.h>

#include "softgpu/blas/lt.h"

enum { EPILOGUE_DRELU = 8, EPILOGUE_BGRAD = 16, EPILOGUE_DGELU = 64, EPILOGUE_AUX = 128 };

struct epilogue {
    const struct lt_work *w;
    int64_t rows, cols;
    bool relu, gelu, bias, aux, drelu, dgelu, bgrad;
    const void *bias_in;
    void *bias_out, *aux_data;
    cudaDataType bias_type, aux_type;
    double d_scale, aux_scale, amax_d, amax_aux;
    double *bias_sum;
};

static const double GELU_SCALE = 0.7978845608028654, GELU_CUBE = 0.044715;

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x)));
}

static double gelu_gradient(double x)
{
    double t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
}

/* Bit of the mask of row i and column j. */
static bool mask_bit(const struct epilogue *e, int64_t i, int64_t j)
{
    int64_t bit = i + j * e->w->op.aux_ld;
    return ((const uint8_t *)e->aux_data)[bit / 8] >> bit % 8 & 1;
}

static void set_mask_bit(const struct epilogue *e, int64_t i, int64_t j, bool on)
{
    int64_t bit = i + j * e->w->op.aux_ld;
    uint8_t *byte = (uint8_t *)e->aux_data + bit / 8, one = (uint8_t)(1u << bit % 8);
    *byte = on ? *byte | one : *byte & (uint8_t)~one;
}

static double forward(struct epilogue *e, int64_t i, int64_t j, double x)
{
    if (e->bias)
        x += creal(number_load(e->bias_in, e->bias_type, i));
    if (e->relu) {
        if (e->aux)
            set_mask_bit(e, i, j, x > 0);
        return x > 0 || isnan(x) ? x : 0;
    }
    if (e->gelu && e->aux) {
        e->amax_aux = fmax(e->amax_aux, fabs(x));
        number_store(e->aux_data, e->aux_type, i + j * e->w->op.aux_ld, x * e->aux_scale);
    }
    return e->gelu ? gelu(x) : x;
}

static double backward(struct epilogue *e, int64_t i, int64_t j, double x)
{
    if (e->drelu)
        x = mask_bit(e, i, j) ? x : 0;
    else
        x *= gelu_gradient(creal(number_load(e->aux_data, e->aux_type, i + j * e->w->op.aux_ld)));
    if (e->bgrad)
        e->bias_sum[i] += x;
    return x;
}

static void finish(void *context, int64_t j, double complex *values)
{
    struct epilogue *e = context;
    for (int64_t i = 0; i < e->rows; i++) {
        double x = creal(values[i]);
        x = e->drelu || e->dgelu ? backward(e, i, j, x) : forward(e, i, j, x);
        e->amax_d = fmax(e->amax_d, fabs(x));
        values[i] = x * e->d_scale;
    }
}

/* ---- operands of the epilogue ----------------------------------------------------------------------------------- */

/* A scale factor in device memory; 1 without one. */
static bool load_scale(struct job *job, uint64_t address, double *out)
{
    double complex value = 1;
    struct scalar s = {.device = address, .type = CUDA_R_32F};
    if (address && !job_load_scalar(job, &s, &value))
        return false;
    *out = creal(value);
    return true;
}

static bool open_bias(struct job *job, struct epilogue *e, int64_t batch)
{
    const struct lt_matmul *op = &e->w->op;
    bool by_columns = op->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    struct operand bias = vector(NULL, e->bias_type, by_columns ? e->cols : e->rows, 1);
    bias.address = op->bias;
    bias.stride = op->bias_stride;
    if (e->bias) {
        e->bias_in = job_read(job, &bias, batch);
        return e->bias_in != NULL;
    }
    if (!e->bgrad && op->epilogue != CUBLASLT_EPILOGUE_BGRADA && !by_columns)
        return true;
    e->bias_out = job_write(job, &bias, batch, SHAPE_FULL);
    e->bias_sum = calloc((size_t)bias.rows + 1, sizeof *e->bias_sum);
    return e->bias_out && e->bias_sum;
}

static bool open_aux(struct job *job, struct epilogue *e, int64_t batch)
{
    const struct lt_matmul *op = &e->w->op;
    struct operand aux = matrix(NULL, e->aux_type, e->rows, e->cols, op->aux_ld);
    if (!e->aux)
        return true;
    if (e->relu || e->drelu) {
        /* A matrix of bits, as one of bytes. */
        aux.type = CUDA_R_8U;
        aux.rows = (e->rows + 7) / 8;
        aux.ld = op->aux_ld / 8;
    }
    aux.address = op->aux;
    aux.stride = e->relu || e->drelu ? op->aux_stride / 8 : op->aux_stride;
    e->aux_data =
        e->relu || e->gelu ? job_write(job, &aux, batch, SHAPE_FULL) : (void *)(uintptr_t)job_read(job, &aux, batch);
    return e->aux_data != NULL;
}

/* Sums over k of op(A)'s rows or op(B)'s columns. */
static void sum_operand(const struct job *job, struct epilogue *e, const void *data, bool of_b)
{
    const struct operand *o = of_b ? &job->b : &job->a;
    bool transposed = (of_b ? e->w->op.transb : e->w->op.transa) != CUBLAS_OP_N;
    bool by_rows = of_b == transposed; /* row r of the stored matrix belongs to sum r */
    for (int64_t c = 0; c < o->cols; c++)
        for (int64_t r = 0; r < o->rows; r++) {
            double value = creal(number_load(data, o->type, o->row_major ? r * o->ld + c : r + c * o->ld));
            e->bias_sum[by_rows ? r : c] += value;
        }
}

static bool store_bias(const struct job *job, struct epilogue *e, const void *a, const void *b)
{
    bool of_a = e->w->op.epilogue == CUBLASLT_EPILOGUE_BGRADA, of_b = e->w->op.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    if (of_a || of_b)
        sum_operand(job, e, of_b ? b : a, of_b);
    for (int64_t i = 0; e->bias_out && i < (of_b ? e->cols : e->rows); i++)
        number_store(e->bias_out, e->bias_type, i, e->bias_sum[i]);
    return true;
}

static bool store_amax(struct job *job, uint64_t address, double value)
{
    struct operand o = {.address = address, .type = CUDA_R_32F, .rows = 1, .ld = 1};
    void *at = address ? job_write(job, &o, 0, SHAPE_FULL) : NULL;
    if (at)
        number_store(at, CUDA_R_32F, 0, value);
    return at || !address;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static cudaDataType default_bias_type(const struct lt_work *w, cudaDataType c_type)
{
    cudaDataType d = w->d.type;
    if (w->op.bias_type >= 0)
        return (cudaDataType)w->op.bias_type;
    if (d == CUDA_R_8I)
        return (cudaDataType)w->op.scale_type;
    if (d == CUDA_R_8F_E4M3 || d == CUDA_R_8F_E5M2)
        return c_type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF;
    return d;
}

static struct epilogue epilogue_of(const struct job *job, const struct lt_work *w)
{
    uint32_t e = w->op.epilogue;
    return (struct epilogue){
        .w = w,
        .rows = w->d.rows,
        .cols = w->d.cols,
        .relu = e & CUBLASLT_EPILOGUE_RELU,
        .gelu = e & CUBLASLT_EPILOGUE_GELU,
        .bias = e & CUBLASLT_EPILOGUE_BIAS,
        .aux = e & EPILOGUE_AUX,
        .drelu = e & EPILOGUE_DRELU,
        .dgelu = e & EPILOGUE_DGELU,
        .bgrad = e & EPILOGUE_BGRAD,
        .bias_type = default_bias_type(w, job->c.type),
        .aux_type = w->op.aux_type >= 0 ? (cudaDataType)w->op.aux_type : w->d.type,
        .d_scale = 1,
        .aux_scale = 1,
    };
}

/* Scalars, scale factors and vectors of alpha and beta. */
static bool open_scales(struct job *job, struct product *p, struct epilogue *e)
{
    const struct lt_work *w = e->w;
    double scale[LT_SCALES];
    for (int i = 0; i < LT_SCALES; i++)
        if (!load_scale(job, w->op.scale[i], &scale[i]))
            return false;
    if (!job_load_scalar(job, &job->alpha, &p->alpha) || !job_load_scalar(job, &job->beta, &p->beta))
        return false;
    p->alpha *= scale[0] * scale[1];
    p->beta *= scale[2];
    e->d_scale = scale[3];
    e->aux_scale = scale[4];
    return true;
}

static bool run_one(struct job *job, struct product *p, struct epilogue *e, int64_t i)
{
    const struct lt_work *w = e->w;
    bool vectors = w->op.pointer_mode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
    if (vectors && !(p->alpha_vector = job_read(job, &w->alpha_vector, i)))
        return false;
    if (w->beta_vector.address && !(p->beta_vector = job_read(job, &w->beta_vector, 0)))
        return false;
    p->a = job_read(job, &job->a, i);
    p->b = job_read(job, &job->b, i);
    p->d = job_write(job, &w->d, i, SHAPE_FULL);
    if (p->beta != 0 || p->beta_vector)
        p->c = job->c.address == w->d.address && !job->c.array ? p->d : job_read(job, &job->c, i);
    if (!p->a || !p->b || !p->d || ((p->beta != 0 || p->beta_vector) && !p->c))
        return false;
    return open_bias(job, e, i) && open_aux(job, e, i) && product_run(p) && store_bias(job, e, p->a, p->b);
}

void lt_run(struct job *job)
{
    const struct lt_work *w = job->extra;
    bool transposed = w->op.transa != CUBLAS_OP_N;
    struct epilogue e = epilogue_of(job, w);
    struct product p = {
        .transa = (cublasOperation_t)w->op.transa,
        .transb = (cublasOperation_t)w->op.transb,
        .m = w->d.rows,
        .n = w->d.cols,
        .k = transposed ? job->a.rows : job->a.cols,
        .a_type = job->a.type,
        .b_type = job->b.type,
        .c_type = job->c.type,
        .d_type = w->d.type,
        .lda = job->a.ld,
        .ldb = job->b.ld,
        .ldc = job->c.ld,
        .ldd = w->d.ld,
        .a_rows = job->a.row_major,
        .b_rows = job->b.row_major,
        .c_rows = job->c.row_major,
        .d_rows = w->d.row_major,
        .scale_type = (cudaDataType)w->op.scale_type,
        .compute = (cublasComputeType_t)w->op.compute,
        .rounding = product_rounding((cublasComputeType_t)w->op.compute, job->math, job->a.type),
        .flaws = job->op.flaws,
        .seed = job->op.seed,
    };
    /* A product alone is left to the product, so that it takes the same way as cublasGemmEx. */
    bool plain = w->op.epilogue == CUBLASLT_EPILOGUE_DEFAULT && !w->op.amax_d && !w->op.scale[3];
    if (!plain) {
        p.finish = finish;
        p.finish_context = &e;
    }
    bool ok = open_scales(job, &p, &e);
    for (int64_t i = 0; ok && i < job->batch; i++) {
        ok = run_one(job, &p, &e, i);
        free(e.bias_sum);
        e.bias_sum = NULL;
    }
    if (ok && store_amax(job, w->op.amax_d, e.amax_d))
        store_amax(job, w->op.amax_aux, e.amax_aux);
}
