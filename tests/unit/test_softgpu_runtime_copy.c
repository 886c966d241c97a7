/* Every copy and fill of the runtime, by table: what arrives, what is refused, and in which stream 0 it waits. */
#include "tests/unit/softgpu_runtime_module.h"

/* All targets hold ROWS rows of ROW bytes; on the device the rows lie PITCH apart, where there are any. */
enum { ROW = 16, ROWS = 4, BYTES = ROW * ROWS };

static char *linear, *pitched; /* on the device */
static size_t pitch;
static cudaArray_t array, other_array;
static char *host; /* pinned, so that asynchronous copies do not wait */

static int setup(void **state)
{
    const struct cudaChannelFormatDesc byte = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    register_module(state);
    return cudaMalloc((void **)&linear, BYTES) != cudaSuccess ||
           cudaMallocPitch((void **)&pitched, &pitch, ROW, ROWS) != cudaSuccess ||
           cudaMallocArray(&array, &byte, ROW, ROWS, 0) != cudaSuccess ||
           cudaMallocArray(&other_array, &byte, ROW, ROWS, 0) != cudaSuccess ||
           cudaMallocHost((void **)&host, 2 * BYTES) != cudaSuccess;
}

/* ---- the forms: `memory` is the host's, or with a kind between devices the device's ------------------------------ */

typedef cudaError_t form(void *memory, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);
#define FORM(name) static cudaError_t name(void *memory, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)

static struct cudaMemcpy3DParms box(void *memory, bool into, size_t rows, enum cudaMemcpyKind kind)
{
    const struct cudaPitchedPtr device = {pitched, pitch, ROW, ROWS}, ours = {memory, ROW, ROW, ROWS};
    return (struct cudaMemcpy3DParms){
        .srcPtr = into ? ours : device, .dstPtr = into ? device : ours, .extent = {ROW, rows, 1}, .kind = kind};
}

FORM(line_in)
{
    return cudaMemcpy(linear, memory, bytes, kind);
}
FORM(line_out)
{
    return cudaMemcpy(memory, linear, bytes, kind);
}
FORM(line_in_async)
{
    return cudaMemcpyAsync(linear, memory, bytes, kind, s);
}
FORM(line_out_async)
{
    return cudaMemcpyAsync(memory, linear, bytes, kind, s);
}
FORM(symbol_in)
{
    return cudaMemcpyToSymbol(&table_shadow, memory, bytes, 0, kind);
}
FORM(symbol_out)
{
    return cudaMemcpyFromSymbol(memory, &table_shadow, bytes, 0, kind);
}
FORM(symbol_in_async)
{
    return cudaMemcpyToSymbolAsync(&table_shadow, memory, bytes, 0, kind, s);
}
FORM(symbol_out_async)
{
    return cudaMemcpyFromSymbolAsync(memory, &table_shadow, bytes, 0, kind, s);
}
FORM(rows_in)
{
    return cudaMemcpy2D(pitched, pitch, memory, ROW, ROW, bytes / ROW, kind);
}
FORM(rows_out)
{
    return cudaMemcpy2D(memory, ROW, pitched, pitch, ROW, bytes / ROW, kind);
}
FORM(rows_in_async)
{
    return cudaMemcpy2DAsync(pitched, pitch, memory, ROW, ROW, bytes / ROW, kind, s);
}
FORM(rows_out_async)
{
    return cudaMemcpy2DAsync(memory, ROW, pitched, pitch, ROW, bytes / ROW, kind, s);
}
FORM(box_in)
{
    struct cudaMemcpy3DParms p = box(memory, true, bytes / ROW, kind);
    return cudaMemcpy3D(&p);
}
FORM(box_out)
{
    struct cudaMemcpy3DParms p = box(memory, false, bytes / ROW, kind);
    return cudaMemcpy3D(&p);
}
FORM(box_in_async)
{
    struct cudaMemcpy3DParms p = box(memory, true, bytes / ROW, kind);
    return cudaMemcpy3DAsync(&p, s);
}
FORM(box_out_async)
{
    struct cudaMemcpy3DParms p = box(memory, false, bytes / ROW, kind);
    return cudaMemcpy3DAsync(&p, s);
}
FORM(array_rows_in)
{
    return cudaMemcpy2DToArray(array, 0, 0, memory, ROW, ROW, bytes / ROW, kind);
}
FORM(array_rows_out)
{
    return cudaMemcpy2DFromArray(memory, ROW, array, 0, 0, ROW, bytes / ROW, kind);
}
FORM(array_rows_in_async)
{
    return cudaMemcpy2DToArrayAsync(array, 0, 0, memory, ROW, ROW, bytes / ROW, kind, s);
}
FORM(array_rows_out_async)
{
    return cudaMemcpy2DFromArrayAsync(memory, ROW, array, 0, 0, ROW, bytes / ROW, kind, s);
}
FORM(array_in)
{
    return cudaMemcpyToArray(array, 0, 0, memory, bytes, kind);
}
FORM(array_out)
{
    return cudaMemcpyFromArray(memory, array, 0, 0, bytes, kind);
}
FORM(array_in_async)
{
    return cudaMemcpyToArrayAsync(array, 0, 0, memory, bytes, kind, s);
}
FORM(array_out_async)
{
    return cudaMemcpyFromArrayAsync(memory, array, 0, 0, bytes, kind, s);
}

static const struct {
    const char *name;
    form *in, *out;
    bool async;
} forms[] = {
    {"cudaMemcpy", line_in, line_out, false},
    {"cudaMemcpyAsync", line_in_async, line_out_async, true},
    {"cudaMemcpyToSymbol", symbol_in, symbol_out, false},
    {"cudaMemcpyToSymbolAsync", symbol_in_async, symbol_out_async, true},
    {"cudaMemcpy2D", rows_in, rows_out, false},
    {"cudaMemcpy2DAsync", rows_in_async, rows_out_async, true},
    {"cudaMemcpy3D", box_in, box_out, false},
    {"cudaMemcpy3DAsync", box_in_async, box_out_async, true},
    {"cudaMemcpy2DToArray", array_rows_in, array_rows_out, false},
    {"cudaMemcpy2DToArrayAsync", array_rows_in_async, array_rows_out_async, true},
    {"cudaMemcpyToArray", array_in, array_out, false},
    {"cudaMemcpyToArrayAsync", array_in_async, array_out_async, true},
};

static void fill_host(int start)
{
    for (int i = 0; i < BYTES; i++)
        host[i] = (char)(start + i * 3);
    memset(host + BYTES, 0, BYTES);
}

static void test_copies_bring_what_was_there(void **state)
{
    cudaStream_t streams[2] = {NULL};
    ok(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    for (size_t i = 0; i < 4 * LENGTH(forms); i++) {
        size_t f = i / 4;
        bool plain = i & 1;
        cudaStream_t s = streams[i / 2 % 2];
        fill_host((int)i);
        if (forms[f].in(host, BYTES, plain ? cudaMemcpyDefault : cudaMemcpyHostToDevice, s) != cudaSuccess ||
            forms[f].out(host + BYTES, BYTES, plain ? cudaMemcpyDefault : cudaMemcpyDeviceToHost, s) != cudaSuccess ||
            cudaStreamSynchronize(s) != cudaSuccess || memcmp(host, host + BYTES, BYTES) != 0)
            fail_msg("%s, %s", forms[f].name, cudaGetErrorName(cudaGetLastError()));
    }
    ok(cudaStreamDestroy(streams[1]));
}

static void test_copies_refuse(void **state)
{
    for (size_t i = 0; i < LENGTH(forms); i++) {
        sets(cudaErrorInvalidMemcpyDirection, forms[i].in(host, BYTES, (enum cudaMemcpyKind)9, NULL));
        sets(cudaErrorInvalidMemcpyDirection, forms[i].out(host, BYTES, (enum cudaMemcpyKind) - 1, NULL));
        sets(cudaErrorInvalidValue, forms[i].in(NULL, BYTES, cudaMemcpyHostToDevice, NULL));
        sets(cudaErrorInvalidValue, forms[i].out(NULL, BYTES, cudaMemcpyDeviceToHost, NULL));
        sets(cudaErrorInvalidValue, forms[i].in(host, BYTES + ROW, cudaMemcpyHostToDevice, NULL));
        sets(cudaErrorInvalidValue, forms[i].out(host, BYTES + ROW, cudaMemcpyDeviceToHost, NULL));
        if (forms[i].async)
            sets(cudaErrorInvalidResourceHandle, forms[i].in(host, BYTES, cudaMemcpyHostToDevice, (cudaStream_t)host));
        /* Nothing to copy is no error. */
        ok(forms[i].in(host, 0, cudaMemcpyHostToDevice, NULL));
        ok(forms[i].out(host, 0, cudaMemcpyDeviceToHost, NULL));
    }
    sets(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&unknown_stub, host, 4, 0, cudaMemcpyHostToDevice));
    sets(cudaErrorInvalidSymbol, cudaMemcpyFromSymbolAsync(host, &unknown_stub, 4, 0, cudaMemcpyDeviceToHost, NULL));
    sets(cudaErrorInvalidValue, cudaMemcpyToSymbolAsync(&table_shadow, host, 4, 61, cudaMemcpyHostToDevice, NULL));
    sets(cudaErrorInvalidPitchValue, cudaMemcpy2D(pitched, ROW - 1, host, ROW, ROW, 2, cudaMemcpyHostToDevice));
    sets(cudaErrorInvalidPitchValue,
         cudaMemcpy2DAsync(host, ROW - 1, pitched, pitch, ROW, 2, cudaMemcpyDeviceToHost, NULL));
    sets(cudaErrorInvalidValue, cudaMemcpy3D(NULL));
    sets(cudaErrorInvalidValue, cudaMemcpy3DAsync(NULL, NULL));
    sets(cudaErrorInvalidMemcpyDirection, cudaMemcpyToArray(array, 0, 0, host, BYTES, cudaMemcpyDeviceToHost));
    sets(cudaErrorInvalidMemcpyDirection, cudaMemcpyFromArray(host, array, 0, 0, BYTES, cudaMemcpyHostToDevice));
    sets(cudaErrorInvalidResourceHandle, cudaMemcpyToArray(NULL, 0, 0, host, BYTES, cudaMemcpyHostToDevice));
}

/* ---- within the device ------------------------------------------------------------------------------------------ */

static void test_between_arrays(void **state)
{
    fill_host(7);
    ok(array_in(host, BYTES, cudaMemcpyHostToDevice, NULL));
    ok(cudaMemcpy2DArrayToArray(other_array, 0, 0, array, 0, 0, ROW, ROWS, cudaMemcpyDeviceToDevice));
    ok(cudaMemcpyFromArray(host + BYTES, other_array, 0, 0, BYTES, cudaMemcpyDeviceToHost));
    assert_memory_equal(host, host + BYTES, BYTES);
    /* From the second row on, so that the first row of the target gets it. */
    ok(cudaMemcpyArrayToArray(other_array, 0, 0, array, 0, 1, BYTES - ROW, cudaMemcpyDefault));
    ok(cudaMemcpyFromArray(host + BYTES, other_array, 0, 0, BYTES, cudaMemcpyDeviceToHost));
    assert_memory_equal(host + ROW, host + BYTES, BYTES - ROW);
    sets(cudaErrorInvalidMemcpyDirection,
         cudaMemcpy2DArrayToArray(other_array, 0, 0, array, 0, 0, ROW, ROWS, cudaMemcpyHostToDevice));
    sets(cudaErrorInvalidValue,
         cudaMemcpy2DArrayToArray(other_array, 0, 1, array, 0, 0, ROW, ROWS, cudaMemcpyDeviceToDevice));
    sets(cudaErrorInvalidResourceHandle,
         cudaMemcpyArrayToArray(other_array, 0, 0, NULL, 0, 0, ROW, cudaMemcpyDeviceToDevice));
}

static struct cudaMemcpy3DPeerParms peers(void)
{
    return (struct cudaMemcpy3DPeerParms){
        .srcPtr = {linear, ROW, ROW, ROWS}, .dstPtr = {pitched, pitch, ROW, ROWS}, .extent = {ROW, ROWS, 1}};
}

static void test_between_peers(void **state)
{
    struct cudaMemcpy3DPeerParms p = peers();
    fill_host(1);
    ok(line_in(host, BYTES, cudaMemcpyHostToDevice, NULL));
    ok(cudaMemcpy3DPeer(&p));
    ok(rows_out(host + BYTES, BYTES, cudaMemcpyDeviceToHost, NULL));
    assert_memory_equal(host, host + BYTES, BYTES);
    ok(cudaMemset2D(pitched, pitch, 0, ROW, ROWS));
    ok(cudaMemcpy3DPeerAsync(&p, NULL));
    ok(rows_out_async(host + BYTES, BYTES, cudaMemcpyDeviceToHost, NULL));
    ok(cudaStreamSynchronize(NULL));
    assert_memory_equal(host, host + BYTES, BYTES);
    ok(cudaMemset(linear, 5, BYTES));
    ok(cudaMemcpyPeer(pitched, 0, linear, 0, ROW));
    ok(cudaMemcpyPeerAsync(pitched + pitch, 0, linear, 0, ROW, NULL));
    ok(cudaDeviceSynchronize());
    ok(rows_out(host + BYTES, BYTES, cudaMemcpyDeviceToHost, NULL));
    assert_int_equal(host[BYTES], 5);
    assert_int_equal(host[BYTES + 2 * ROW - 1], 5);
    assert_int_equal(host[BYTES + 2 * ROW], host[2 * ROW]);
    sets(cudaErrorInvalidDevice, cudaMemcpyPeer(pitched, 1, linear, 0, ROW));
    sets(cudaErrorInvalidDevice, cudaMemcpyPeerAsync(pitched, 0, linear, -1, ROW, NULL));
    sets(cudaErrorInvalidValue, cudaMemcpyPeer(pitched, 0, NULL, 0, ROW));
    sets(cudaErrorInvalidValue, cudaMemcpy3DPeer(NULL));
    sets(cudaErrorInvalidValue, cudaMemcpy3DPeerAsync(NULL, NULL));
    p.dstDevice = 1;
    sets(cudaErrorInvalidDevice, cudaMemcpy3DPeer(&p));
    sets(cudaErrorInvalidDevice, cudaMemcpy3DPeerAsync(&p, NULL));
}

/* ---- fills ------------------------------------------------------------------------------------------------------ */

static cudaError_t fill_with(int which, int value, size_t rows, cudaStream_t s)
{
    const struct cudaPitchedPtr p = {pitched, pitch, ROW, ROWS};
    const struct cudaExtent e = {ROW, rows, 1};
    switch (which) {
    case 0:
        return cudaMemset(pitched, value, rows * pitch);
    case 1:
        return cudaMemsetAsync(pitched, value, rows * pitch, s);
    case 2:
        return cudaMemset2D(pitched, pitch, value, ROW, rows);
    case 3:
        return cudaMemset2DAsync(pitched, pitch, value, ROW, rows, s);
    case 4:
        return cudaMemset3D(p, value, e);
    default:
        return cudaMemset3DAsync(p, value, e, s);
    }
}

static void test_fills(void **state)
{
    for (int i = 0; i < 6; i++) {
        ok(cudaMemset2D(pitched, pitch, 0, ROW, ROWS));
        ok(fill_with(i, 0x100 + 40 + i, 2, NULL)); /* only the lowest byte counts */
        ok(rows_out(host, BYTES, cudaMemcpyDeviceToHost, NULL));
        assert_int_equal(host[0], 40 + i);
        assert_int_equal(host[2 * ROW - 1], 40 + i);
        assert_int_equal(host[2 * ROW], 0);
        ok(fill_with(i, 1, 0, NULL));
        sets(cudaErrorInvalidValue, fill_with(i, 1, 1 << 20, NULL));
        if (i % 2)
            sets(cudaErrorInvalidResourceHandle, fill_with(i, 1, 1, (cudaStream_t)host));
    }
    sets(cudaErrorInvalidValue, cudaMemset(NULL, 0, 1));
}

/* ---- which stream 0 is ------------------------------------------------------------------------------------------- */

static void *open_later(void *data)
{
    sleep_ms(15);
    atomic_store(&((struct gate *)data)->open, true);
    return NULL;
}

static cudaError_t default_stream_call(size_t i, bool *async)
{
    struct cudaMemcpy3DPeerParms p = peers();
    if (i < LENGTH(forms)) {
        *async = forms[i].async;
        return forms[i].in(host, BYTES, cudaMemcpyHostToDevice, NULL);
    }
    i -= LENGTH(forms);
    *async = true; /* fills and copies within devices do not wait, whatever they are called */
    if (i < 6)
        return fill_with((int)i, 9, ROWS, NULL);
    return i == 6 ? cudaMemcpy3DPeer(&p) : cudaMemcpy3DPeerAsync(&p, NULL);
}

static void test_default_stream(void **state)
{
    for (size_t i = 0; i < LENGTH(forms) + 8; i++) {
        struct elsewhere e;
        pthread_t opener;
        bool async;
        work_elsewhere(&e);
        if (!OWN_STREAM)
            pthread_create(&opener, NULL, open_later, &e.gate);
        ok(default_stream_call(i, &async));
        if (atomic_load(&e.gate.open) != (!OWN_STREAM && !async))
            fail_msg("form %zu", i);
        if (async && !OWN_STREAM)
            fails(cudaErrorNotReady, cudaStreamQuery(NULL));
        ok(cudaStreamSynchronize(NULL));
        assert_int_equal(atomic_load(&e.gate.open), !OWN_STREAM);
        if (!OWN_STREAM)
            pthread_join(opener, NULL);
        end_elsewhere(&e);
    }
    ok(cudaPeekAtLastError()); /* not ready is no error */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_bring_what_was_there),
        cmocka_unit_test(test_copies_refuse),
        cmocka_unit_test(test_between_arrays),
        cmocka_unit_test(test_between_peers),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_default_stream),
    };
    return cmocka_run_group_tests(tests, setup, unregister_module);
}
