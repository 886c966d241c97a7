/* Every copy and every fill in every form: what it moves, which stream it is ordered by, whether the call waits, what
 * it refuses. The forms are rows of a table. */
#include <pthread.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

enum { BYTES = 64, PITCH = 96, ROWS = 4, SPACE = PITCH * ROWS };
enum end { HOST, DEVICE, ARRAY, FILL };

/* What the rows' calls take. Host memory is pinned, so that asynchronous copies are. */
static CUdeviceptr to_device, from_device;
static uint8_t *to_host, *from_host;
static CUarray to_array, from_array;
static CUstream stream;

static CUDA_MEMCPY2D flat(CUmemorytype from, CUmemorytype to)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = from,
                           .srcHost = from_host,
                           .srcDevice = from_device,
                           .srcPitch = BYTES,
                           .dstMemoryType = to,
                           .dstHost = to_host,
                           .dstDevice = to_device,
                           .dstPitch = PITCH,
                           .WidthInBytes = BYTES,
                           .Height = ROWS};
}

static CUDA_MEMCPY3D deep(CUmemorytype from, CUmemorytype to)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = from,
                           .srcHost = from_host,
                           .srcDevice = from_device,
                           .srcPitch = BYTES,
                           .srcHeight = ROWS / 2,
                           .dstMemoryType = to,
                           .dstHost = to_host,
                           .dstDevice = to_device,
                           .dstPitch = PITCH,
                           .dstHeight = ROWS / 2,
                           .WidthInBytes = BYTES,
                           .Height = ROWS / 2,
                           .Depth = 2};
}
#define FLAT(from, to) &(CUDA_MEMCPY2D[]){flat(CU_MEMORYTYPE_##from, CU_MEMORYTYPE_##to)}[0]
#define DEEP(from, to) &(CUDA_MEMCPY3D[]){deep(CU_MEMORYTYPE_##from, CU_MEMORYTYPE_##to)}[0]

/* X(id, function, own, waits, from, to, rows, arguments)
 *     own    a null stream is the thread's, not the legacy one
 *     waits  the call returns when the bytes are there */
#define PLAIN_AND_OWN(X, id, function, suffix, waits, from, to, rows, ...)                                             \
    X(id, function, false, waits, from, to, rows, __VA_ARGS__)                                                         \
    X(id##_own, function##suffix, true, waits, from, to, rows, __VA_ARGS__)
#define FORMS(X)                                                                                                       \
    PLAIN_AND_OWN(X, unified, cuMemcpy, _ptds, true, DEVICE, DEVICE, 1, to_device, from_device, BYTES)                 \
    PLAIN_AND_OWN(X, hd, cuMemcpyHtoD_v2, _ptds, true, HOST, DEVICE, 1, to_device, from_host, BYTES)                   \
    PLAIN_AND_OWN(X, dh, cuMemcpyDtoH_v2, _ptds, true, DEVICE, HOST, 1, to_host, from_device, BYTES)                   \
    PLAIN_AND_OWN(X, dd, cuMemcpyDtoD_v2, _ptds, false, DEVICE, DEVICE, 1, to_device, from_device, BYTES)              \
    PLAIN_AND_OWN(X, ha, cuMemcpyHtoA_v2, _ptds, true, HOST, ARRAY, 1, to_array, 0, from_host, BYTES)                  \
    PLAIN_AND_OWN(X, ah, cuMemcpyAtoH_v2, _ptds, true, ARRAY, HOST, 1, to_host, from_array, 0, BYTES)                  \
    PLAIN_AND_OWN(X, da, cuMemcpyDtoA_v2, _ptds, false, DEVICE, ARRAY, 1, to_array, 0, from_device, BYTES)             \
    PLAIN_AND_OWN(X, ad, cuMemcpyAtoD_v2, _ptds, false, ARRAY, DEVICE, 1, to_device, from_array, 0, BYTES)             \
    PLAIN_AND_OWN(X, aa, cuMemcpyAtoA_v2, _ptds, false, ARRAY, ARRAY, 1, to_array, 0, from_array, 0, BYTES)            \
    PLAIN_AND_OWN(X, async, cuMemcpyAsync, _ptsz, false, DEVICE, DEVICE, 1, to_device, from_device, BYTES, stream)     \
    PLAIN_AND_OWN(X, hd_async, cuMemcpyHtoDAsync_v2, _ptsz, false, HOST, DEVICE, 1, to_device, from_host, BYTES,       \
                  stream)                                                                                              \
    PLAIN_AND_OWN(X, dh_async, cuMemcpyDtoHAsync_v2, _ptsz, false, DEVICE, HOST, 1, to_host, from_device, BYTES,       \
                  stream)                                                                                              \
    PLAIN_AND_OWN(X, dd_async, cuMemcpyDtoDAsync_v2, _ptsz, false, DEVICE, DEVICE, 1, to_device, from_device, BYTES,   \
                  stream)                                                                                              \
    PLAIN_AND_OWN(X, ha_async, cuMemcpyHtoAAsync_v2, _ptsz, false, HOST, ARRAY, 1, to_array, 0, from_host, BYTES,      \
                  stream)                                                                                              \
    PLAIN_AND_OWN(X, ah_async, cuMemcpyAtoHAsync_v2, _ptsz, false, ARRAY, HOST, 1, to_host, from_array, 0, BYTES,      \
                  stream)                                                                                              \
    PLAIN_AND_OWN(X, flat_hd, cuMemcpy2D_v2, _ptds, true, HOST, DEVICE, ROWS, FLAT(HOST, DEVICE))                      \
    PLAIN_AND_OWN(X, flat_dd, cuMemcpy2D_v2, _ptds, false, DEVICE, DEVICE, ROWS, FLAT(DEVICE, DEVICE))                 \
    PLAIN_AND_OWN(X, odd_dh, cuMemcpy2DUnaligned_v2, _ptds, true, DEVICE, HOST, ROWS, FLAT(DEVICE, HOST))              \
    PLAIN_AND_OWN(X, flat_async, cuMemcpy2DAsync_v2, _ptsz, false, HOST, DEVICE, ROWS, FLAT(HOST, DEVICE), stream)     \
    PLAIN_AND_OWN(X, deep_dh, cuMemcpy3D_v2, _ptds, true, DEVICE, HOST, ROWS, DEEP(DEVICE, HOST))                      \
    PLAIN_AND_OWN(X, deep_async, cuMemcpy3DAsync_v2, _ptsz, false, DEVICE, DEVICE, ROWS, DEEP(DEVICE, DEVICE), stream) \
    PLAIN_AND_OWN(X, d8, cuMemsetD8_v2, _ptds, false, FILL, DEVICE, 1, to_device, 0xa5, BYTES)                         \
    PLAIN_AND_OWN(X, d16, cuMemsetD16_v2, _ptds, false, FILL, DEVICE, 1, to_device, 0xa5a5, BYTES / 2)                 \
    PLAIN_AND_OWN(X, d32, cuMemsetD32_v2, _ptds, false, FILL, DEVICE, 1, to_device, 0xa5a5a5a5, BYTES / 4)             \
    PLAIN_AND_OWN(X, d8_async, cuMemsetD8Async, _ptsz, false, FILL, DEVICE, 1, to_device, 0xa5, BYTES, stream)         \
    PLAIN_AND_OWN(X, d16_async, cuMemsetD16Async, _ptsz, false, FILL, DEVICE, 1, to_device, 0xa5a5, BYTES / 2, stream) \
    PLAIN_AND_OWN(X, d32_async, cuMemsetD32Async, _ptsz, false, FILL, DEVICE, 1, to_device, 0xa5a5a5a5, BYTES / 4,     \
                  stream)                                                                                              \
    PLAIN_AND_OWN(X, flat8, cuMemsetD2D8_v2, _ptds, false, FILL, DEVICE, ROWS, to_device, PITCH, 0xa5, BYTES, ROWS)    \
    PLAIN_AND_OWN(X, flat16, cuMemsetD2D16_v2, _ptds, false, FILL, DEVICE, ROWS, to_device, PITCH, 0xa5a5, BYTES / 2,  \
                  ROWS)                                                                                                \
    PLAIN_AND_OWN(X, flat32, cuMemsetD2D32_v2, _ptds, false, FILL, DEVICE, ROWS, to_device, PITCH, 0xa5a5a5a5,         \
                  BYTES / 4, ROWS)                                                                                     \
    PLAIN_AND_OWN(X, flat8_async, cuMemsetD2D8Async, _ptsz, false, FILL, DEVICE, ROWS, to_device, PITCH, 0xa5, BYTES,  \
                  ROWS, stream)                                                                                        \
    PLAIN_AND_OWN(X, flat16_async, cuMemsetD2D16Async, _ptsz, false, FILL, DEVICE, ROWS, to_device, PITCH, 0xa5a5,     \
                  BYTES / 2, ROWS, stream)                                                                             \
    PLAIN_AND_OWN(X, flat32_async, cuMemsetD2D32Async, _ptsz, false, FILL, DEVICE, ROWS, to_device, PITCH, 0xa5a5a5a5, \
                  BYTES / 4, ROWS, stream)

#define CALL(id, function, own, waits, from, to, rows, ...)                                                            \
    static CUresult run_##id(void)                                                                                     \
    {                                                                                                                  \
        return function(__VA_ARGS__);                                                                                  \
    }
FORMS(CALL)

static const struct form {
    const char *name;
    CUresult (*run)(void);
    bool own, waits;
    enum end from, to;
    int rows;
} forms[] = {
#define ROW(id, function, own, waits, from, to, rows, ...) {#function, run_##id, own, waits, from, to, rows},
    FORMS(ROW)};
enum { FORMS_COUNT = sizeof forms / sizeof *forms };

/* ---- around a form ---------------------------------------------------------------------------------------------- */

static CUstream blocking;

static CUarray line_array(void)
{
    CUarray a = NULL;
    CUDA_ARRAY_DESCRIPTOR d = {.Width = BYTES * ROWS, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    ok(cuArrayCreate_v2(&a, &d));
    return a;
}

static uint8_t source_byte(const struct form *f, int i)
{
    return f->from == FILL ? 0xa5 : (uint8_t)(i * 5 + 3);
}

static int setup(void **state)
{
    void *p, *q;
    ok(cuMemAlloc_v2(&to_device, SPACE));
    ok(cuMemAlloc_v2(&from_device, SPACE));
    ok(cuMemHostAlloc(&p, SPACE, 0));
    ok(cuMemAllocHost_v2(&q, SPACE));
    to_host = p;
    from_host = q;
    to_array = line_array();
    from_array = line_array();
    ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (int i = 0; i < SPACE; i++)
        from_host[i] = (uint8_t)(i * 5 + 3);
    ok(cuMemcpyHtoD_v2(from_device, from_host, SPACE));
    ok(cuMemcpyHtoA_v2(from_array, 0, from_host, BYTES * ROWS));
    return 0;
}

static void clear(void)
{
    static const uint8_t zero[SPACE];
    stream = NULL;
    ok(cuMemcpyHtoD_v2(to_device, zero, SPACE));
    ok(cuMemcpyHtoA_v2(to_array, 0, zero, BYTES * ROWS));
    memset(to_host, 0, SPACE);
}

/* Reads the destination by a stream that waits for nobody. */
static void read_back(const struct form *f, uint8_t *out)
{
    CUstream aside;
    ok(cuStreamCreate(&aside, CU_STREAM_NON_BLOCKING));
    memset(out, 0, SPACE);
    if (f->to == DEVICE)
        ok(cuMemcpyDtoHAsync_v2(out, to_device, SPACE, aside));
    else if (f->to == ARRAY)
        ok(cuMemcpyAtoHAsync_v2(out, to_array, 0, BYTES * ROWS, aside));
    else
        memcpy(out, to_host, SPACE);
    ok(cuStreamSynchronize(aside));
    ok(cuStreamDestroy_v2(aside));
}

static bool untouched(const struct form *f)
{
    uint8_t out[SPACE];
    read_back(f, out);
    for (int i = 0; i < SPACE; i++)
        if (out[i])
            return false;
    return true;
}

/* All rows where they belong, and nothing between and behind them. */
static bool arrived(const struct form *f)
{
    uint8_t out[SPACE];
    read_back(f, out);
    for (int i = 0; i < SPACE; i++) {
        int y = i / PITCH, x = i % PITCH;
        uint8_t want = y < f->rows && x < BYTES ? source_byte(f, y * BYTES + x) : 0;
        if (out[i] != want)
            return false;
    }
    return true;
}

static void check(bool right, const struct form *f, const char *what)
{
    if (!right)
        fail_msg("%s: %s", f->name, what);
}

struct caller {
    const struct form *form;
    struct gate *own_gate; /* to be put before it in the stream that it uses, or NULL */
    CUcontext context;
    CUresult result;
    atomic_bool returned, finished;
};

/* The form on a thread of its own, whose own stream it then uses; that stream is waited for. */
static void *call(void *data)
{
    struct caller *c = data;
    CUresult result = cuCtxSetCurrent(c->context);
    if (result == CUDA_SUCCESS && c->own_gate)
        result = c->form->own ? cuLaunchHostFunc_ptsz(NULL, wait_at, c->own_gate)
                              : cuLaunchHostFunc(NULL, wait_at, c->own_gate);
    if (result == CUDA_SUCCESS)
        result = c->form->run();
    c->result = result;
    atomic_store(&c->returned, true);
    cuStreamSynchronize(c->form->own ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
    atomic_store(&c->finished, true);
    return NULL;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void test_each_moves_its_bytes(void **state)
{
    for (int i = 0; i < FORMS_COUNT; i++) {
        const struct form *f = &forms[i];
        clear();
        check(f->run() == CUDA_SUCCESS, f, "fails");
        check(!f->waits || arrived(f), f, "did not wait");
        ok(cuCtxSynchronize());
        check(arrived(f), f, "moved other bytes");
    }
}

/* Behind work in the stream that a null stream means there: nothing is moved before that is done, and only the forms
 * that wait keep their caller. */
static void test_each_keeps_order_in_its_stream(void **state)
{
    for (int i = 0; i < FORMS_COUNT; i++) {
        struct gate g = {0};
        struct caller c = {.form = &forms[i], .own_gate = &g};
        pthread_t thread;
        clear();
        ok(cuCtxGetCurrent(&c.context));
        pthread_create(&thread, NULL, call, &c);
        assert_true(soon(&g.reached));
        if (c.form->waits)
            sleep_ms(5);
        else
            check(soon(&c.returned), c.form, "keeps its caller");
        check(untouched(c.form), c.form, "ran ahead");
        check(atomic_load(&c.returned) == !c.form->waits, c.form, "returned early");
        atomic_store(&g.open, true);
        pthread_join(thread, NULL);
        assert_int_equal(c.result, CUDA_SUCCESS);
        check(arrived(c.form), c.form, "lost its bytes");
    }
}

/* Work in another blocking stream holds up the legacy stream, and not a thread's own. */
static void test_each_uses_the_right_null_stream(void **state)
{
    for (int i = 0; i < FORMS_COUNT; i++) {
        struct gate g = {0};
        struct caller c = {.form = &forms[i]};
        pthread_t thread;
        clear();
        ok(cuCtxGetCurrent(&c.context));
        ok(cuLaunchHostFunc(blocking, wait_at, &g));
        assert_true(soon(&g.reached));
        pthread_create(&thread, NULL, call, &c);
        if (c.form->own) {
            check(soon(&c.finished) && arrived(c.form), c.form, "waits for a stream that is not its own");
        } else {
            sleep_ms(5);
            check(untouched(c.form), c.form, "does not wait for a blocking stream");
        }
        atomic_store(&g.open, true);
        pthread_join(thread, NULL);
        assert_int_equal(c.result, CUDA_SUCCESS);
        ok(cuStreamSynchronize(blocking));
        check(arrived(c.form), c.form, "lost its bytes");
    }
}

static void test_each_refuses(void **state)
{
    const CUdeviceptr nowhere = UINT64_C(0x0a7000000000), good_to = to_device, good_from = from_device;
    CUarray array_to = to_array, array_from = from_array;
    for (int i = 0; i < FORMS_COUNT; i++) {
        const struct form *f = &forms[i];
        clear();
        if (strstr(f->name, "Async")) {
            stream = (CUstream)0x1234;
            check(f->run() == CUDA_ERROR_INVALID_HANDLE, f, "takes a stream that is none");
            stream = NULL;
        }
        if (f->to == DEVICE || f->from == DEVICE) {
            to_device = f->to == DEVICE ? nowhere : good_to;
            from_device = f->from == DEVICE ? nowhere : good_from;
            check(f->run() == CUDA_ERROR_INVALID_VALUE, f, "takes an address of nothing");
            to_device = f->to == DEVICE ? good_to + SPACE - BYTES / 2 : good_to; /* too little behind it */
            from_device = f->to == DEVICE ? good_from : good_from + SPACE - BYTES / 2;
            check(f->run() == CUDA_ERROR_INVALID_VALUE, f, "takes a range that ends too soon");
            to_device = good_to;
            from_device = good_from;
        }
        if (f->to == ARRAY || f->from == ARRAY) {
            to_array = f->to == ARRAY ? (CUarray)&array_to : array_to;
            from_array = f->from == ARRAY ? (CUarray)&array_from : array_from;
            check(f->run() == CUDA_ERROR_INVALID_HANDLE, f, "takes an array that is none");
            to_array = array_to;
            from_array = array_from;
        }
        ok(cuCtxSynchronize());
        check(untouched(f), f, "moved something all the same");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_moves_its_bytes, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_each_keeps_order_in_its_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_each_uses_the_right_null_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_each_refuses, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
