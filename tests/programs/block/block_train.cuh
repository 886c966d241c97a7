/*
 * block_train.cuh - buffers, launches and the self-check of the transformer block.
 *
 * Two streams: `main` carries the forward pass and the gradients of the activations, `side` the
 * gradients of the weights, which nothing waits for before AdamW. Every gradient has a buffer of
 * its own, so that `main` never overwrites what `side` still reads.
 */
#ifndef BLOCK_TRAIN_CUH
#define BLOCK_TRAIN_CUH

#include "block_check.cuh"

struct trainer {
    model device;
    int rows, channels, step;
    cudaStream_t main, side;
    cudaEvent_t ready, done, before, after;
    float *history, *worst; /* [steps] */
};

static int blocks_for(size_t count, int threads)
{
    return (int)((count + threads - 1) / threads);
}

static float *device_floats(size_t count)
{
    void *p;

    CUDA_CHECK(cudaMalloc(&p, count * sizeof(float)));
    return (float *)p;
}

static int *upload_ints(const int *from, size_t count)
{
    void *p;

    CUDA_CHECK(cudaMalloc(&p, count * sizeof(int)));
    CUDA_CHECK(cudaMemcpy(p, from, count * sizeof(int), cudaMemcpyHostToDevice));
    return (int *)p;
}

static bool lives_for_a_step(int a)
{
    return a == PRE_GELU || a == GRAD_NORM;
}

static void trainer_open(trainer *t, const model *host, int steps)
{
    const shape *s = &host->shape;
    adam_factors schedule[MAX_STEPS];

    memset(t, 0, sizeof(*t));
    t->device.shape = *s;
    t->rows = s->batch * s->time;
    t->channels = s->channels;
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        const size_t count = parameter_count(s, (parameter)p), bytes = count * sizeof(float);
        t->device.value[p] = device_floats(count);
        t->device.grad[p] = device_floats(count);
        t->device.moment1[p] = device_floats(count);
        t->device.moment2[p] = device_floats(count);
        CUDA_CHECK(cudaMemcpy(t->device.value[p], host->value[p], bytes, cudaMemcpyHostToDevice));
#ifdef FAULT_UNINIT
        CUDA_CHECK(cudaMemset(t->device.moment1[p], 0, count)); /* FAULT-OTHER: uninit */
#else
        CUDA_CHECK(cudaMemset(t->device.moment1[p], 0, bytes));
#endif
        CUDA_CHECK(cudaMemset(t->device.moment2[p], 0, bytes));
    }
    for (int a = 0; a < ACTIVATION_COUNT; a++)
        if (!lives_for_a_step(a))
            t->device.act[a] = device_floats(activation_count(s, (activation)a));
    t->device.tokens = upload_ints(host->tokens, t->rows);
    t->device.targets = upload_ints(host->targets, t->rows);

    host_schedule(schedule);
    CUDA_CHECK(cudaMemcpyToSymbol(adam_schedule, schedule, sizeof(schedule)));

    CUDA_CHECK(cudaStreamCreate(&t->main));
    CUDA_CHECK(cudaStreamCreate(&t->side));
    CUDA_CHECK(cudaEventCreateWithFlags(&t->ready, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventCreateWithFlags(&t->done, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventCreate(&t->before));
    CUDA_CHECK(cudaEventCreate(&t->after));
    t->history = device_floats(steps);
    t->worst = device_floats(steps);
    CUDA_CHECK(cudaMemset(t->history, 0, steps * sizeof(float)));
    CUDA_CHECK(cudaMemset(t->worst, 0, steps * sizeof(float)));
    CUDA_CHECK(cudaDeviceSynchronize());
}

static void trainer_close(trainer *t)
{
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        CUDA_CHECK(cudaFree(t->device.value[p]));
        CUDA_CHECK(cudaFree(t->device.grad[p]));
        CUDA_CHECK(cudaFree(t->device.moment1[p]));
        CUDA_CHECK(cudaFree(t->device.moment2[p]));
    }
    for (int a = 0; a < ACTIVATION_COUNT; a++)
        if (!lives_for_a_step(a))
            CUDA_CHECK(cudaFree(t->device.act[a]));
    CUDA_CHECK(cudaFree(t->device.tokens));
    CUDA_CHECK(cudaFree(t->device.targets));
    CUDA_CHECK(cudaFree(t->history));
    CUDA_CHECK(cudaFree(t->worst));
    CUDA_CHECK(cudaEventDestroy(t->ready));
    CUDA_CHECK(cudaEventDestroy(t->done));
    CUDA_CHECK(cudaEventDestroy(t->before));
    CUDA_CHECK(cudaEventDestroy(t->after));
    CUDA_CHECK(cudaStreamDestroy(t->main));
    CUDA_CHECK(cudaStreamDestroy(t->side));
}

/* ---- launches ---- */

static dim3 tiles(int rows, int cols)
{
    return dim3(blocks_for(cols, TILE), blocks_for(rows, TILE));
}

static void linear(trainer *t, float *out, const float *in, const float *weight, int inner,
                   int cols)
{
    matmul_nn<<<tiles(t->rows, cols), dim3(TILE, TILE), 0, t->main>>>(out, in, weight, t->rows,
                                                                      cols, inner);
    CUDA_CHECK(cudaGetLastError());
}

static void add_bias(trainer *t, float *inout, const float *bias, const float *residual,
                     int columns)
{
    const int count = t->rows * columns;

    bias_add<<<blocks_for(count, FLAT_THREADS), FLAT_THREADS, 0, t->main>>>(inout, bias, residual,
                                                                            count, columns);
    CUDA_CHECK(cudaGetLastError());
}

/* The gradients of linear(): grad_in on `main`; weight and bias on `side`, as soon as grad_out,
   which `main` has just been told to compute, is there. bias may be -1. */
static void linear_gradient(trainer *t, float *grad_in, const float *grad_out, const float *in,
                            int weight, int bias, int inner, int cols)
{
    model *d = &t->device;

    CUDA_CHECK(cudaEventRecord(t->ready, t->main));
    CUDA_CHECK(cudaStreamWaitEvent(t->side, t->ready, 0));
    matmul_tn<<<tiles(inner, cols), dim3(TILE, TILE), 0, t->side>>>(d->grad[weight], in, grad_out,
                                                                    inner, cols, t->rows);
    CUDA_CHECK(cudaGetLastError());
    if (bias >= 0) {
        const dim3 grid(blocks_for(cols, 32), blocks_for(t->rows, COLUMN_ROWS));
        bias_gradient<<<grid, dim3(32, 8), 0, t->side>>>(d->grad[bias], grad_out, t->rows, cols);
        CUDA_CHECK(cudaGetLastError());
    }
    matmul_nt<<<tiles(t->rows, inner), dim3(TILE, TILE), 0, t->main>>>(
        grad_in, grad_out, d->value[weight], t->rows, inner, cols);
    CUDA_CHECK(cudaGetLastError());
}

/* scale, mean: the first of the pairs (scale, shift) and (mean, rstd) of this LayerNorm. */
static void norm(trainer *t, float *out, const float *in, int scale, int mean)
{
    model *d = &t->device;

    layernorm_forward<<<t->rows, ROW_THREADS, 0, t->main>>>(
        out, d->act[mean], d->act[mean + 1], in, d->value[scale], d->value[scale + 1], t->channels);
    CUDA_CHECK(cudaGetLastError());
}

static void norm_gradient(trainer *t, float *grad_in, const float *in, int scale, int mean)
{
    model *d = &t->device;

    layernorm_backward<<<t->rows, ROW_THREADS, 0, t->main>>>(
        grad_in, d->grad[scale], d->grad[scale + 1], d->act[GRAD_NORM], in, d->value[scale],
        d->act[mean], d->act[mean + 1], t->channels);
    CUDA_CHECK(cudaGetLastError());
}

static void clear(trainer *t, float *buffer, size_t count)
{
    CUDA_CHECK(cudaMemsetAsync(buffer, 0, count * sizeof(float), t->main));
}

static void copy_rows(trainer *t, float *to, const float *from)
{
    CUDA_CHECK(cudaMemcpyAsync(to, from, (size_t)t->rows * t->channels * sizeof(float),
                               cudaMemcpyDeviceToDevice, t->main));
}

/* ---- one step ---- */

static void forward(trainer *t)
{
    model *d = &t->device;
    const shape *s = &d->shape;
    const int count = t->rows * t->channels, flat = blocks_for(count, FLAT_THREADS);
    const size_t scores = s->time * sizeof(float);
    float **act = d->act, **w = d->value;

    embedding_gather<<<flat, FLAT_THREADS, 0, t->main>>>(
        act[EMBEDDED], w[TOKEN_TABLE], w[POSITION_TABLE], d->tokens, t->rows, s->time, t->channels);
    CUDA_CHECK(cudaGetLastError());
    norm(t, act[NORM1], act[EMBEDDED], NORM1_SCALE, MEAN1);
    linear(t, act[QKV], act[NORM1], w[QKV_WEIGHT], t->channels, 3 * t->channels);
    add_bias(t, act[QKV], w[QKV_BIAS], NULL, 3 * t->channels);
    softmax_attention_forward<<<dim3(s->time, s->heads, s->batch), ROW_THREADS, scores, t->main>>>(
        act[MIXED], act[ATTENTION], act[QKV], s->time, t->channels, s->heads);
    CUDA_CHECK(cudaGetLastError());
    linear(t, act[RESIDUAL1], act[MIXED], w[MIX_WEIGHT], t->channels, t->channels);
    add_bias(t, act[RESIDUAL1], w[MIX_BIAS], act[EMBEDDED], t->channels);

    norm(t, act[NORM2], act[RESIDUAL1], NORM2_SCALE, MEAN2);
    linear(t, act[HIDDEN], act[NORM2], w[FEED1_WEIGHT], t->channels, s->hidden);
    add_bias(t, act[HIDDEN], w[FEED1_BIAS], NULL, s->hidden);
    linear(t, act[PRE_GELU], act[HIDDEN], w[FEED2_WEIGHT], s->hidden, t->channels);
    gelu_add_residual<<<flat, FLAT_THREADS, 0, t->main>>>(
        act[RESIDUAL2], act[PRE_GELU], w[FEED2_BIAS], act[RESIDUAL1], count, t->channels);
    CUDA_CHECK(cudaGetLastError());

    norm(t, act[NORM3], act[RESIDUAL2], NORM3_SCALE, MEAN3);
    linear(t, act[LOGITS], act[NORM3], w[HEAD_WEIGHT], t->channels, s->vocab);
    cross_entropy_forward<<<t->rows, ROW_THREADS, 0, t->main>>>(act[PROBABILITY], act[ROW_LOSS],
                                                                act[LOGITS], d->targets, s->vocab);
    CUDA_CHECK(cudaGetLastError());
    cross_entropy_mean<<<1, 32, 0, t->main>>>(t->history, t->worst, act[ROW_LOSS], t->rows,
                                              t->step);
    CUDA_CHECK(cudaGetLastError());
}

static void free_pre_gelu(trainer *t)
{
    CUDA_CHECK(cudaStreamSynchronize(t->main));
    CUDA_CHECK(cudaFree(t->device.act[PRE_GELU]));
}

static void backward(trainer *t)
{
    model *d = &t->device;
    const shape *s = &d->shape;
    const int count = t->rows * t->channels, flat = blocks_for(count, FLAT_THREADS);
    const int logits = t->rows * s->vocab;
    const size_t scores = s->time * sizeof(float);
    float **act = d->act;

    cross_entropy_backward<<<blocks_for(logits, FLAT_THREADS), FLAT_THREADS, 0, t->main>>>(
        act[GRAD_LOGITS], act[PROBABILITY], d->targets, t->rows, s->vocab);
    CUDA_CHECK(cudaGetLastError());
    linear_gradient(t, act[GRAD_NORM], act[GRAD_LOGITS], act[NORM3], HEAD_WEIGHT, -1, t->channels,
                    s->vocab);
    clear(t, act[GRAD_RESIDUAL2], count);
    norm_gradient(t, act[GRAD_RESIDUAL2], act[RESIDUAL2], NORM3_SCALE, MEAN3);

    gelu_backward<<<flat, FLAT_THREADS, 0, t->main>>>(act[GRAD_PRE_GELU], act[GRAD_RESIDUAL2],
                                                      act[PRE_GELU], d->value[FEED2_BIAS], count,
                                                      t->channels);
    CUDA_CHECK(cudaGetLastError());
    linear_gradient(t, act[GRAD_HIDDEN], act[GRAD_PRE_GELU], act[HIDDEN], FEED2_WEIGHT, FEED2_BIAS,
                    s->hidden, t->channels);
    linear_gradient(t, act[GRAD_NORM], act[GRAD_HIDDEN], act[NORM2], FEED1_WEIGHT, FEED1_BIAS,
                    t->channels, s->hidden);
    copy_rows(t, act[GRAD_RESIDUAL1], act[GRAD_RESIDUAL2]);
    norm_gradient(t, act[GRAD_RESIDUAL1], act[RESIDUAL1], NORM2_SCALE, MEAN2);

    linear_gradient(t, act[GRAD_MIXED], act[GRAD_RESIDUAL1], act[MIXED], MIX_WEIGHT, MIX_BIAS,
                    t->channels, t->channels);
    clear(t, act[GRAD_QKV], 3 * (size_t)count);
    softmax_attention_backward<<<dim3(s->time, s->heads, s->batch), ROW_THREADS, scores, t->main>>>(
        act[GRAD_QKV], act[GRAD_MIXED], act[ATTENTION], act[QKV], s->time, t->channels, s->heads);
    CUDA_CHECK(cudaGetLastError());
    linear_gradient(t, act[GRAD_NORM], act[GRAD_QKV], act[NORM1], QKV_WEIGHT, QKV_BIAS, t->channels,
                    3 * t->channels);
    copy_rows(t, act[GRAD_EMBEDDED], act[GRAD_RESIDUAL1]);
    norm_gradient(t, act[GRAD_EMBEDDED], act[EMBEDDED], NORM1_SCALE, MEAN1);
    embedding_scatter<<<flat, FLAT_THREADS, 0, t->main>>>(
        d->grad[TOKEN_TABLE], d->grad[POSITION_TABLE], act[GRAD_EMBEDDED], d->tokens, t->rows,
        s->time, t->channels);
    CUDA_CHECK(cudaGetLastError());
}

static void update(trainer *t)
{
    model *d = &t->device;

    CUDA_CHECK(cudaEventRecord(t->done, t->side));
    CUDA_CHECK(cudaStreamWaitEvent(t->main, t->done, 0));
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        const int count = (int)parameter_count(&d->shape, (parameter)p);
        adamw_step<<<blocks_for(count, FLAT_THREADS), FLAT_THREADS, 0, t->main>>>(
            d->value[p], d->moment1[p], d->moment2[p], d->grad[p], count, t->step);
        CUDA_CHECK(cudaGetLastError());
    }
}

static void train_step(trainer *t)
{
    model *d = &t->device;
    const size_t count = (size_t)t->rows * t->channels;
    float elapsed;

    CUDA_CHECK(cudaEventRecord(t->before, t->main));
    for (int p = 0; p < PARAMETER_COUNT; p++)
        clear(t, d->grad[p], parameter_count(&d->shape, (parameter)p));

    d->act[PRE_GELU] = device_floats(count);
    forward(t);
#ifdef FAULT_UAF
    free_pre_gelu(t); /* FAULT-OTHER: uaf */
#endif
    d->act[GRAD_NORM] = device_floats(count);
    backward(t);
#ifndef FAULT_UAF
    free_pre_gelu(t);
#endif
    update(t);

    CUDA_CHECK(cudaEventRecord(t->after, t->main));
    CUDA_CHECK(cudaEventSynchronize(t->after));
    CUDA_CHECK(cudaEventElapsedTime(&elapsed, t->before, t->after));
    if (!(elapsed >= 0.0f)) {
        fprintf(stderr, "time runs backwards\n");
        exit(1);
    }
    CUDA_CHECK(cudaFree(d->act[GRAD_NORM]));
    t->step++;
}

/* ---- self-check ---- */

/* Close: within a thousandth of the largest element; a NaN is never close. */
static bool tensor_close(const char *name, const char *part, const float *on_device,
                         const float *expected, size_t count)
{
    float *got = (float *)host_alloc(count * sizeof(float)), top = 0.0f;
    bool close = true;

    CUDA_CHECK(cudaMemcpy(got, on_device, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        top = fmaxf(top, fabsf(expected[i]));
    for (size_t i = 0; i < count && close; i++) {
        close = fabsf(got[i] - expected[i]) <= 1e-3f * top + 1e-6f;
        if (!close)
            printf("self-check: %s%s[%zu] is %.6g, expected %.6g\n", name, part, i, got[i],
                   expected[i]);
    }
    free(got);
    return close;
}

static bool model_close(const model *device, const model *host)
{
    const shape *s = &host->shape;

    for (int a = 0; a < ACTIVATION_COUNT; a++)
        if (!lives_for_a_step(a) &&
            !tensor_close(activation_name((activation)a), "", device->act[a], host->act[a],
                          activation_count(s, (activation)a)))
            return false;
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        const char *name = parameter_name((parameter)p);
        const size_t count = parameter_count(s, (parameter)p);
        if (!tensor_close(name, " gradient", device->grad[p], host->grad[p], count) ||
            !tensor_close(name, "", device->value[p], host->value[p], count))
            return false;
    }
    return true;
}

/* Trains on the device and on the host; prints the losses and whether the two agree. */
static bool train(const shape *dims, uint64_t seed, int steps)
{
    model host;
    trainer t;
    adam_factors schedule[MAX_STEPS];
    float history[MAX_STEPS], worst[MAX_STEPS];
    bool close = true;

    host_model_init(&host, dims, seed);
    trainer_open(&t, &host, steps);
    for (int step = 0; step < steps; step++)
        train_step(&t);
    CUDA_CHECK(cudaMemcpy(history, t.history, steps * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(worst, t.worst, steps * sizeof(float), cudaMemcpyDeviceToHost));
    for (int step = 0; step < steps; step++)
        printf("step %d: loss %.4f, worst row %.4f\n", step, history[step], worst[step]);

    host_schedule(schedule);
    for (int step = 0; step < steps; step++) {
        const float expected = host_train_step(&host, &schedule[step]);
        if (close && !(fabsf(history[step] - expected) <= 1e-3f * expected)) {
            printf("self-check: loss of step %d is %.6g, expected %.6g\n", step, history[step],
                   expected);
            close = false;
        }
    }
    if (close && model_close(&t.device, &host))
        printf("self-check: ok\n");
    else
        close = false;
    trainer_close(&t);
    host_model_free(&host);
    return close;
}

#endif
