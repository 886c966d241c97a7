/*
 * block.h - what the device side and the host side of the transformer block share.
 *
 * Both sides keep the same `struct model`, one with device pointers, one with host pointers, so
 * that the self-check can walk over the two in step. All matrices are row-major and dense.
 */
#ifndef BLOCK_H
#define BLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_STEPS     64
#define LN_EPSILON    1e-5f
#define ADAM_BETA1    0.9f
#define ADAM_BETA2    0.999f
#define ADAM_EPSILON  1e-6f
#define ADAM_DECAY    0.01f
#define INV_SQRT2     0.70710678f /* 1 / sqrt(2) */
#define INV_SQRT2PI   0.39894228f /* 1 / sqrt(2 pi) */
#define PADDING_TOKEN 0
/* The padding token's embedding is almost constant; both numbers are multiples of 2^-17, so that
 * sums over it are exact. */
#define PADDING_VALUE  (92766.0f / 131072.0f)
#define PADDING_SPREAD (1.0f / 131072.0f)

struct shape {
    int batch, time, channels, heads, hidden, vocab;
};

/* Every trained tensor: name, rows, columns. */
#define PARAMETERS(X)                                                                              \
    X(TOKEN_TABLE, s->vocab, s->channels)                                                          \
    X(POSITION_TABLE, s->time, s->channels)                                                        \
    X(NORM1_SCALE, 1, s->channels)                                                                 \
    X(NORM1_SHIFT, 1, s->channels)                                                                 \
    X(QKV_WEIGHT, s->channels, 3 * s->channels)                                                    \
    X(QKV_BIAS, 1, 3 * s->channels)                                                                \
    X(MIX_WEIGHT, s->channels, s->channels)                                                        \
    X(MIX_BIAS, 1, s->channels)                                                                    \
    X(NORM2_SCALE, 1, s->channels)                                                                 \
    X(NORM2_SHIFT, 1, s->channels)                                                                 \
    X(FEED1_WEIGHT, s->channels, s->hidden)                                                        \
    X(FEED1_BIAS, 1, s->hidden)                                                                    \
    X(FEED2_WEIGHT, s->hidden, s->channels)                                                        \
    X(FEED2_BIAS, 1, s->channels)                                                                  \
    X(NORM3_SCALE, 1, s->channels)                                                                 \
    X(NORM3_SHIFT, 1, s->channels)                                                                 \
    X(HEAD_WEIGHT, s->channels, s->vocab)

/*
 * Every intermediate tensor, forward and backward: name, rows, columns. PRE_GELU and GRAD_NORM live
 * for a part of a step only, the others as long as the program.
 */
#define ACTIVATIONS(X)                                                                             \
    X(EMBEDDED, rows, s->channels)                                                                 \
    X(MEAN1, 1, rows)                                                                              \
    X(RSTD1, 1, rows)                                                                              \
    X(NORM1, rows, s->channels)                                                                    \
    X(QKV, rows, 3 * s->channels)                                                                  \
    X(ATTENTION, s->batch * s->heads, s->time * s->time)                                           \
    X(MIXED, rows, s->channels)                                                                    \
    X(RESIDUAL1, rows, s->channels)                                                                \
    X(MEAN2, 1, rows)                                                                              \
    X(RSTD2, 1, rows)                                                                              \
    X(NORM2, rows, s->channels)                                                                    \
    X(HIDDEN, rows, s->hidden)                                                                     \
    X(PRE_GELU, rows, s->channels)                                                                 \
    X(RESIDUAL2, rows, s->channels)                                                                \
    X(MEAN3, 1, rows)                                                                              \
    X(RSTD3, 1, rows)                                                                              \
    X(NORM3, rows, s->channels)                                                                    \
    X(LOGITS, rows, s->vocab)                                                                      \
    X(PROBABILITY, rows, s->vocab)                                                                 \
    X(ROW_LOSS, 1, rows)                                                                           \
    X(GRAD_LOGITS, rows, s->vocab)                                                                 \
    X(GRAD_NORM, rows, s->channels)                                                                \
    X(GRAD_RESIDUAL2, rows, s->channels)                                                           \
    X(GRAD_PRE_GELU, rows, s->channels)                                                            \
    X(GRAD_HIDDEN, rows, s->hidden)                                                                \
    X(GRAD_RESIDUAL1, rows, s->channels)                                                           \
    X(GRAD_MIXED, rows, s->channels)                                                               \
    X(GRAD_QKV, rows, 3 * s->channels)                                                             \
    X(GRAD_EMBEDDED, rows, s->channels)

#define X_NAME(name, rows, columns) name,
enum parameter { PARAMETERS(X_NAME) PARAMETER_COUNT };
enum activation { ACTIVATIONS(X_NAME) ACTIVATION_COUNT };
#undef X_NAME

struct model {
    struct shape shape;
    float *value[PARAMETER_COUNT];
    float *grad[PARAMETER_COUNT];
    float *moment1[PARAMETER_COUNT];
    float *moment2[PARAMETER_COUNT];
    float *act[ACTIVATION_COUNT];
    int *tokens;  /* [batch * time] */
    int *targets; /* [batch * time] */
};

/* AdamW's factors for one step: learning rate, 1 / (1 - beta1^t), 1 / (1 - beta2^t). */
struct adam_factors {
    float rate, correct1, correct2;
};

/* block_host.c: the plain C version. */
size_t parameter_count(const struct shape *s, enum parameter p);
size_t activation_count(const struct shape *s, enum activation a);
const char *parameter_name(enum parameter p);
const char *activation_name(enum activation a);
void *host_alloc(size_t bytes); /* zeroed; exits when memory runs out */
void host_model_init(struct model *m, const struct shape *s, uint64_t seed);
void host_schedule(struct adam_factors schedule[MAX_STEPS]);
float host_train_step(struct model *m, const struct adam_factors *factors); /* returns the loss */
void host_model_free(struct model *m);

/* exact_host.c: what the integer and the floating-point chains of exact.cuh must give, bit for bit.
 */
#define EXACT_WORDS  12
#define EXACT_CHAINS 6
#define MIX_ROUNDS   6
void host_exact_integers(uint64_t *out, size_t index, uint64_t seed);
void host_exact_chains(double *out, size_t index, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
