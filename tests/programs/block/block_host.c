/*
 * block_host.c - the transformer block in plain C: the oracle that the device side is checked
 * against.
 *
 * Nothing here is fast. Sums run in double, every loop is the textbook's, and no code is shared
 * with the kernels.
 */
#include "block.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INITIAL_SPREAD 0.2f
#define CLOSED_GATE    (-5.4f) /* GELU is all but zero here */

size_t parameter_count(const struct shape *s, enum parameter p)
{
#define X_COUNT(name, rows, columns) (size_t)(rows) * (size_t)(columns),
    const size_t counts[] = {PARAMETERS(X_COUNT)};
    return counts[p];
}

size_t activation_count(const struct shape *s, enum activation a)
{
    const int rows = s->batch * s->time;
    const size_t counts[] = {ACTIVATIONS(X_COUNT)};
#undef X_COUNT
    return counts[a];
}

#define X_STRING(name, rows, columns) #name,

const char *parameter_name(enum parameter p)
{
    static const char *const names[] = {PARAMETERS(X_STRING)};
    return names[p];
}

const char *activation_name(enum activation a)
{
    static const char *const names[] = {ACTIVATIONS(X_STRING)};
    return names[a];
}

void *host_alloc(size_t bytes)
{
    void *p = calloc(1, bytes);

    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

/* splitmix64: all randomness of the program comes from the seed through here. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Uniform in [-1, 1), a multiple of 2^-23. */
static float next_uniform(uint64_t *state)
{
    return (float)(int32_t)(next_random(state) >> 40) * 0x1p-23f - 1.0f;
}

static void fill_uniform(float *out, size_t count, float spread, uint64_t *state)
{
    for (size_t i = 0; i < count; i++)
        out[i] = spread * next_uniform(state);
}

static void fill_constant(float *out, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        out[i] = value;
}

static void init_padding_row(float *row, int channels)
{
    for (int c = 0; c < channels; c++) {
        const float sign = (c == channels - 1 && channels % 2 == 1) ? 0.0f : (c % 2 ? 1.0f : -1.0f);
        row[c] = PADDING_VALUE + sign * PADDING_SPREAD;
    }
}

void host_model_init(struct model *m, const struct shape *s, uint64_t seed)
{
    const int rows = s->batch * s->time;
    uint64_t state = seed;

    memset(m, 0, sizeof(*m));
    m->shape = *s;
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        const size_t count = parameter_count(s, p);
        m->value[p] = host_alloc(count * sizeof(float));
        m->grad[p] = host_alloc(count * sizeof(float));
        m->moment1[p] = host_alloc(count * sizeof(float));
        m->moment2[p] = host_alloc(count * sizeof(float));
        fill_uniform(m->value[p], count, INITIAL_SPREAD, &state);
    }
    for (int a = 0; a < ACTIVATION_COUNT; a++)
        m->act[a] = host_alloc(activation_count(s, a) * sizeof(float));

    fill_uniform(m->value[TOKEN_TABLE], parameter_count(s, TOKEN_TABLE), 1.0f, &state);
    init_padding_row(m->value[TOKEN_TABLE] + PADDING_TOKEN * s->channels, s->channels);
    /* Positions start at zero and are learned. */
    fill_constant(m->value[POSITION_TABLE], parameter_count(s, POSITION_TABLE), 0.0f);
    fill_constant(m->value[NORM1_SCALE], s->channels, 1.0f);
    fill_constant(m->value[NORM2_SCALE], s->channels, 1.0f);
    fill_constant(m->value[NORM3_SCALE], s->channels, 1.0f);
    /* A third of the channels start with their gate closed, as after a long training. */
    for (int c = 1; c < s->channels; c += 3)
        m->value[FEED2_BIAS][c] += CLOSED_GATE;

    m->tokens = host_alloc(rows * sizeof(int));
    m->targets = host_alloc(rows * sizeof(int));
    for (int n = 0; n < rows; n++) {
        m->tokens[n] = 1 + (int)(next_random(&state) % (uint64_t)(s->vocab - 1));
        m->targets[n] = 1 + (int)(next_random(&state) % (uint64_t)(s->vocab - 1));
    }
    /* The last sequence is one token shorter than the others. */
    m->tokens[rows - 1] = PADDING_TOKEN;
}

void host_model_free(struct model *m)
{
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        free(m->value[p]);
        free(m->grad[p]);
        free(m->moment1[p]);
        free(m->moment2[p]);
    }
    for (int a = 0; a < ACTIVATION_COUNT; a++)
        free(m->act[a]);
    free(m->tokens);
    free(m->targets);
}

/* Two warm-up steps, then a cosine. */
void host_schedule(struct adam_factors schedule[MAX_STEPS])
{
    for (int step = 0; step < MAX_STEPS; step++) {
        const double warm = step < 2 ? 0.5 * (step + 1) : 1.0;
        const double cosine = 0.5 * (1.0 + cos(M_PI * step / MAX_STEPS));
        schedule[step].rate = (float)(0.01 * warm * cosine);
        schedule[step].correct1 = (float)(1.0 / (1.0 - pow(ADAM_BETA1, step + 1)));
        schedule[step].correct2 = (float)(1.0 / (1.0 - pow(ADAM_BETA2, step + 1)));
    }
}

/* out[rows, cols] = a[rows, inner] b[inner, cols] (+ bias) */
static void matmul(float *out, const float *a, const float *b, const float *bias, int rows,
                   int inner, int cols)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            double sum = bias ? bias[j] : 0.0;
            for (int k = 0; k < inner; k++)
                sum += (double)a[i * inner + k] * b[k * cols + j];
            out[i * cols + j] = (float)sum;
        }
}

/* The three gradients of out = in weight + bias; any of them may be NULL. */
static void matmul_gradient(float *grad_in, float *grad_weight, float *grad_bias,
                            const float *grad_out, const float *in, const float *weight, int rows,
                            int inner, int cols)
{
    for (int k = 0; k < inner; k++)
        for (int j = 0; j < cols; j++) {
            double sum = 0.0;
            for (int i = 0; i < rows; i++)
                sum += (double)in[i * inner + k] * grad_out[i * cols + j];
            grad_weight[k * cols + j] = (float)sum;
        }
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < inner; k++) {
            double sum = 0.0;
            for (int j = 0; j < cols; j++)
                sum += (double)grad_out[i * cols + j] * weight[k * cols + j];
            grad_in[i * inner + k] = (float)sum;
        }
    for (int j = 0; grad_bias && j < cols; j++) {
        double sum = 0.0;
        for (int i = 0; i < rows; i++)
            sum += grad_out[i * cols + j];
        grad_bias[j] = (float)sum;
    }
}

static void layernorm(float *out, float *mean, float *rstd, const float *in, const float *scale,
                      const float *shift, int rows, int channels)
{
    for (int i = 0; i < rows; i++) {
        const float *x = in + i * channels;
        double sum = 0.0, square = 0.0;
        for (int c = 0; c < channels; c++)
            sum += x[c];
        sum /= channels;
        for (int c = 0; c < channels; c++)
            square += (x[c] - sum) * (x[c] - sum);
        const double inverse = 1.0 / sqrt(square / channels + LN_EPSILON);
        for (int c = 0; c < channels; c++)
            out[i * channels + c] = (float)((x[c] - sum) * inverse * scale[c] + shift[c]);
        mean[i] = (float)sum;
        rstd[i] = (float)inverse;
    }
}

/* Adds to grad_in; sets grad_scale and grad_shift. */
static void layernorm_gradient(float *grad_in, float *grad_scale, float *grad_shift,
                               const float *grad_out, const float *in, const float *scale,
                               const float *mean, const float *rstd, int rows, int channels)
{
    memset(grad_scale, 0, channels * sizeof(float));
    memset(grad_shift, 0, channels * sizeof(float));
    for (int i = 0; i < rows; i++) {
        const float *x = in + i * channels, *g = grad_out + i * channels;
        double sum = 0.0, dot = 0.0;
        for (int c = 0; c < channels; c++) {
            const double normed = ((double)x[c] - mean[i]) * rstd[i];
            sum += (double)g[c] * scale[c];
            dot += (double)g[c] * scale[c] * normed;
            grad_scale[c] += (float)(g[c] * normed);
            grad_shift[c] += g[c];
        }
        sum /= channels;
        dot /= channels;
        for (int c = 0; c < channels; c++) {
            const double normed = ((double)x[c] - mean[i]) * rstd[i];
            grad_in[i * channels + c] +=
                (float)(rstd[i] * ((double)g[c] * scale[c] - sum - normed * dot));
        }
    }
}

/* Causal attention; qkv rows hold q, k and v of all heads one after the other. */
static void attention(float *mixed, float *prob, const float *qkv, const struct shape *s)
{
    const int head_dim = s->channels / s->heads, row = 3 * s->channels;
    const double scale = 1.0 / sqrt(head_dim);

    for (int bh = 0; bh < s->batch * s->heads; bh++)
        for (int t = 0; t < s->time; t++) {
            const float *base =
                qkv + (size_t)(bh / s->heads) * s->time * row + bh % s->heads * head_dim;
            const float *q = base + t * row, *k = base + s->channels, *v = base + 2 * s->channels;
            float *p = prob + ((size_t)bh * s->time + t) * s->time;
            float *out = mixed + ((size_t)(bh / s->heads) * s->time + t) * s->channels +
                         bh % s->heads * head_dim;
            double score[t + 1], top = -INFINITY, sum = 0.0;
            for (int j = 0; j <= t; j++) {
                score[j] = 0.0;
                for (int d = 0; d < head_dim; d++)
                    score[j] += (double)q[d] * k[j * row + d];
                score[j] *= scale;
                top = fmax(top, score[j]);
            }
            for (int j = 0; j <= t; j++)
                sum += score[j] = exp(score[j] - top);
            for (int j = 0; j < s->time; j++)
                p[j] = j <= t ? (float)(score[j] / sum) : 0.0f;
            for (int d = 0; d < head_dim; d++) {
                double mix = 0.0;
                for (int j = 0; j <= t; j++)
                    mix += (double)p[j] * v[j * row + d];
                out[d] = (float)mix;
            }
        }
}

static void attention_gradient(float *grad_qkv, const float *grad_mixed, const float *prob,
                               const float *qkv, const struct shape *s)
{
    const int head_dim = s->channels / s->heads, row = 3 * s->channels;
    const double scale = 1.0 / sqrt(head_dim);

    memset(grad_qkv, 0, (size_t)s->batch * s->time * row * sizeof(float));
    for (int bh = 0; bh < s->batch * s->heads; bh++)
        for (int t = 0; t < s->time; t++) {
            const size_t first = (size_t)(bh / s->heads) * s->time * row + bh % s->heads * head_dim;
            const size_t q = first + t * row, k = first + s->channels, v = k + s->channels;
            const float *p = prob + ((size_t)bh * s->time + t) * s->time;
            const float *g = grad_mixed + ((size_t)(bh / s->heads) * s->time + t) * s->channels +
                             bh % s->heads * head_dim;
            double grad_p[t + 1], dot = 0.0;
            for (int j = 0; j <= t; j++) {
                grad_p[j] = 0.0;
                for (int d = 0; d < head_dim; d++)
                    grad_p[j] += (double)g[d] * qkv[v + j * row + d];
                dot += p[j] * grad_p[j];
            }
            for (int j = 0; j <= t; j++) {
                const double grad_score = p[j] * (grad_p[j] - dot) * scale;
                for (int d = 0; d < head_dim; d++) {
                    grad_qkv[q + d] += (float)(grad_score * qkv[k + j * row + d]);
                    grad_qkv[k + j * row + d] += (float)(grad_score * qkv[q + d]);
                    grad_qkv[v + j * row + d] += (float)((double)p[j] * g[d]);
                }
            }
        }
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static void forward(struct model *m)
{
    const struct shape *s = &m->shape;
    const int rows = s->batch * s->time, channels = s->channels;
    float **act = m->act, **w = m->value;

    for (int n = 0; n < rows; n++)
        for (int c = 0; c < channels; c++)
            act[EMBEDDED][n * channels + c] = w[TOKEN_TABLE][m->tokens[n] * channels + c] +
                                              w[POSITION_TABLE][n % s->time * channels + c];
    layernorm(act[NORM1], act[MEAN1], act[RSTD1], act[EMBEDDED], w[NORM1_SCALE], w[NORM1_SHIFT],
              rows, channels);
    matmul(act[QKV], act[NORM1], w[QKV_WEIGHT], w[QKV_BIAS], rows, channels, 3 * channels);
    attention(act[MIXED], act[ATTENTION], act[QKV], s);
    matmul(act[RESIDUAL1], act[MIXED], w[MIX_WEIGHT], w[MIX_BIAS], rows, channels, channels);
    for (int i = 0; i < rows * channels; i++)
        act[RESIDUAL1][i] += act[EMBEDDED][i];
    layernorm(act[NORM2], act[MEAN2], act[RSTD2], act[RESIDUAL1], w[NORM2_SCALE], w[NORM2_SHIFT],
              rows, channels);
    matmul(act[HIDDEN], act[NORM2], w[FEED1_WEIGHT], w[FEED1_BIAS], rows, channels, s->hidden);
    matmul(act[PRE_GELU], act[HIDDEN], w[FEED2_WEIGHT], w[FEED2_BIAS], rows, s->hidden, channels);
    for (int i = 0; i < rows * channels; i++) {
        const double x = act[PRE_GELU][i];
        act[RESIDUAL2][i] = (float)(act[RESIDUAL1][i] + x * normal_cdf(x));
    }
    layernorm(act[NORM3], act[MEAN3], act[RSTD3], act[RESIDUAL2], w[NORM3_SCALE], w[NORM3_SHIFT],
              rows, channels);
    matmul(act[LOGITS], act[NORM3], w[HEAD_WEIGHT], NULL, rows, channels, s->vocab);
}

/* Cross-entropy and its gradient by the logits; returns the mean over the rows. */
static float cross_entropy(struct model *m)
{
    const int rows = m->shape.batch * m->shape.time, vocab = m->shape.vocab;
    double total = 0.0;

    for (int n = 0; n < rows; n++) {
        const float *logit = m->act[LOGITS] + n * vocab;
        double top = -INFINITY, sum = 0.0;
        for (int c = 0; c < vocab; c++)
            top = fmax(top, logit[c]);
        for (int c = 0; c < vocab; c++)
            sum += exp(logit[c] - top);
        for (int c = 0; c < vocab; c++) {
            const double p = exp(logit[c] - top) / sum;
            m->act[PROBABILITY][n * vocab + c] = (float)p;
            m->act[GRAD_LOGITS][n * vocab + c] = (float)((p - (c == m->targets[n])) / rows);
        }
        m->act[ROW_LOSS][n] = (float)(log(sum) + top - logit[m->targets[n]]);
        total += m->act[ROW_LOSS][n];
    }
    return (float)(total / rows);
}

static void backward(struct model *m)
{
    const struct shape *s = &m->shape;
    const int rows = s->batch * s->time, channels = s->channels;
    const size_t row_bytes = (size_t)rows * channels * sizeof(float);
    float **act = m->act, **w = m->value, **g = m->grad;

    matmul_gradient(act[GRAD_NORM], g[HEAD_WEIGHT], NULL, act[GRAD_LOGITS], act[NORM3],
                    w[HEAD_WEIGHT], rows, channels, s->vocab);
    memset(act[GRAD_RESIDUAL2], 0, row_bytes);
    layernorm_gradient(act[GRAD_RESIDUAL2], g[NORM3_SCALE], g[NORM3_SHIFT], act[GRAD_NORM],
                       act[RESIDUAL2], w[NORM3_SCALE], act[MEAN3], act[RSTD3], rows, channels);

    for (int i = 0; i < rows * channels; i++) {
        const double x = act[PRE_GELU][i];
        const double slope = normal_cdf(x) + x * exp(-0.5 * x * x) / sqrt(2.0 * M_PI);
        act[GRAD_PRE_GELU][i] = (float)(act[GRAD_RESIDUAL2][i] * slope);
    }
    matmul_gradient(act[GRAD_HIDDEN], g[FEED2_WEIGHT], g[FEED2_BIAS], act[GRAD_PRE_GELU],
                    act[HIDDEN], w[FEED2_WEIGHT], rows, s->hidden, channels);
    matmul_gradient(act[GRAD_NORM], g[FEED1_WEIGHT], g[FEED1_BIAS], act[GRAD_HIDDEN], act[NORM2],
                    w[FEED1_WEIGHT], rows, channels, s->hidden);
    memcpy(act[GRAD_RESIDUAL1], act[GRAD_RESIDUAL2], row_bytes);
    layernorm_gradient(act[GRAD_RESIDUAL1], g[NORM2_SCALE], g[NORM2_SHIFT], act[GRAD_NORM],
                       act[RESIDUAL1], w[NORM2_SCALE], act[MEAN2], act[RSTD2], rows, channels);

    matmul_gradient(act[GRAD_MIXED], g[MIX_WEIGHT], g[MIX_BIAS], act[GRAD_RESIDUAL1], act[MIXED],
                    w[MIX_WEIGHT], rows, channels, channels);
    attention_gradient(act[GRAD_QKV], act[GRAD_MIXED], act[ATTENTION], act[QKV], s);
    matmul_gradient(act[GRAD_NORM], g[QKV_WEIGHT], g[QKV_BIAS], act[GRAD_QKV], act[NORM1],
                    w[QKV_WEIGHT], rows, channels, 3 * channels);
    memcpy(act[GRAD_EMBEDDED], act[GRAD_RESIDUAL1], row_bytes);
    layernorm_gradient(act[GRAD_EMBEDDED], g[NORM1_SCALE], g[NORM1_SHIFT], act[GRAD_NORM],
                       act[EMBEDDED], w[NORM1_SCALE], act[MEAN1], act[RSTD1], rows, channels);

    memset(g[TOKEN_TABLE], 0, parameter_count(s, TOKEN_TABLE) * sizeof(float));
    memset(g[POSITION_TABLE], 0, parameter_count(s, POSITION_TABLE) * sizeof(float));
    for (int n = 0; n < rows; n++)
        for (int c = 0; c < channels; c++) {
            const float grad = act[GRAD_EMBEDDED][n * channels + c];
            g[TOKEN_TABLE][m->tokens[n] * channels + c] += grad;
            g[POSITION_TABLE][n % s->time * channels + c] += grad;
        }
}

static void adamw(struct model *m, const struct adam_factors *f)
{
    for (int p = 0; p < PARAMETER_COUNT; p++)
        for (size_t i = 0; i < parameter_count(&m->shape, p); i++) {
            const float g = m->grad[p][i];
            float *m1 = &m->moment1[p][i], *m2 = &m->moment2[p][i], *w = &m->value[p][i];
            *m1 = ADAM_BETA1 * *m1 + (1.0f - ADAM_BETA1) * g;
            *m2 = ADAM_BETA2 * *m2 + (1.0f - ADAM_BETA2) * g * g;
            const float step = *m1 * f->correct1 / (sqrtf(*m2 * f->correct2) + ADAM_EPSILON);
            *w -= f->rate * (step + ADAM_DECAY * *w);
        }
}

float host_train_step(struct model *m, const struct adam_factors *factors)
{
    float loss;

    forward(m);
    loss = cross_entropy(m);
    backward(m);
    adamw(m, factors);
    return loss;
}
