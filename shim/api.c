/* api.c - the tool's side of include/opsdebug/opsdebug.h. */
#include <opsdebug/opsdebug.h>

#include <string.h>

#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/intern.h"
#include "shim/ranges.h"
#include "shim/regions.h"
#include "shim/shim.h"
#include "shim/snapshot.h"
#include "shim/stack.h"
#include "shim/thread.h"
#include "shim/touch.h"
#include "shim/track.h"

_Static_assert((int)OPSDEBUG_U64 == (int)CAP_DTYPE_U64, "one numbering");

static const uint8_t dtype_bytes[CAP_DTYPES] = {0, 8, 4, 2, 2, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8};

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static bool sane_dtype(int dtype)
{
    return dtype >= 0 && dtype < CAP_DTYPES;
}

/* The program calls from anywhere, also from inside a library that we are watching. */
static bool enter(void)
{
    if (shim_thread.inside || !shim_is_recording())
        return false;
    shim_thread.inside = 1;
    if (shim_thread.ranges_unwritten)
        ranges_catch_up();
    return true;
}

static void leave(void)
{
    shim_thread.inside = 0;
}

static void api_name(const void *address, const char *name, int dtype, int dims, const uint64_t *shape)
{
    struct allocation a;
    uint64_t elements = 1, bytes;
    if (!sane_dtype(dtype) || dims < 0 || dims > CAP_DIMS_MAX || (dims && !shape) || !enter())
        return;
    bool known = alloc_table_find(address_of(address), &a);
    uint32_t text = intern_string(name);
    for (int i = 0; i < dims; i++)
        if (__builtin_mul_overflow(elements, shape[i], &elements))
            elements = 0;
    if (!__builtin_mul_overflow(elements, dtype_bytes[dtype] ? dtype_bytes[dtype] : 1u, &bytes)) {
        struct cap_name *record = capture_define(CAP_NAME, sizeof *record);
        if (record) {
            record->address = address_of(address);
            record->bytes = bytes;
            record->name = text;
            record->dtype = (uint32_t)dtype;
            record->allocation = known ? a.id : 0;
            record->dims = (uint32_t)dims;
            memcpy(record->shape, shape, (size_t)dims * sizeof *shape);
            capture_commit(record);
        }
    }
    leave();
}

static void write_mark(enum cap_mark_kind kind, const char *text, uint64_t number)
{
    if (!enter())
        return;
    uint32_t stack = stack_here(), text_id = intern_string(text);
    struct cap_mark *record = capture_define(CAP_MARK, sizeof *record);
    if (record) {
        record->kind = kind;
        record->text = text_id;
        record->number = number;
        record->stack = stack;
        capture_commit(record);
    }
    leave();
}

static void api_step(uint64_t number)
{
    write_mark(CAP_MARK_STEP, NULL, number);
}

static void api_mark(const char *text)
{
    write_mark(CAP_MARK_TEXT, text, 0);
}

/* The memory as the stream finds it: copied behind what the program has put into it so far. */
static void look(enum cap_mark_kind kind, const char *label, const void *address, uint64_t elements, int dtype,
                 void *handle)
{
    struct allocation a;
    uint64_t bytes;
    if (!sane_dtype(dtype) || !dtype_bytes[dtype] || __builtin_mul_overflow(elements, dtype_bytes[dtype], &bytes) ||
        !enter())
        return;
    uint32_t stack = stack_here(), text = intern_string(label);
    uint64_t at = address_of(address), seq = capture_next_seq();
    bool known = alloc_table_find(at, &a) && at - a.address <= a.bytes && bytes <= a.bytes - (at - a.address);
    struct tracked_stream *stream = track_stream((CUstream)handle, false, false);
    struct cap_mark *record = capture_record(CAP_MARK, sizeof *record, seq, __builtin_ia32_rdtsc());
    if (record) {
        record->kind = kind;
        record->text = text;
        record->address = at;
        record->bytes = bytes;
        record->dtype = (uint32_t)dtype;
        record->stack = stack;
        record->allocation = known ? a.id : 0;
        record->stream = stream ? stream->id : 0;
        capture_commit(record);
    }
    /* Asked for by the program itself, so also between two timing events of its own; never in a stream that is
     * captured. */
    if (record && known && bytes && stream && !device_stream_captures(stream)) {
        struct allocation part = a; /* and what may be done with it */
        part.address = at;
        part.bytes = bytes;
        (void)snapshot_take_found(SNAPSHOT_OF_MARK, seq, stream, &part, 1);
        if (touch_only_behind_launches()) /* the mark behind a copy is a kernel, and this is no launch */
            (void)snapshot_finish(deadline_in(1000));
    }
    leave();
}

static void api_checkpoint(const char *label, const void *address, uint64_t elements, int dtype, void *stream)
{
    look(CAP_MARK_CHECKPOINT, label, address, elements, dtype, stream);
}

static void api_assert_finite(const char *label, const void *address, uint64_t elements, int dtype, void *stream)
{
    look(CAP_MARK_ASSERT_FINITE, label, address, elements, dtype, stream);
}

static void api_region(const void *address, uint64_t bytes, const char *name)
{
    if (!enter())
        return;
    regions_begin(address_of(address), bytes, name, CAP_REGION_API,
                  UINT64_MAX); /* 0 is NVTX's heap of the whole process */
    leave();
}

static void api_region_end(const void *address)
{
    if (!enter())
        return;
    regions_end(address_of(address));
    leave();
}

static void api_push(const char *name)
{
    ranges_push(NULL, name);
}

static void api_pop(void)
{
    ranges_pop(NULL);
}

__attribute__((visibility("default"))) const struct opsdebug_api *opsdebug_api(uint32_t version);
const struct opsdebug_api *opsdebug_api(uint32_t version)
{
    static const struct opsdebug_api api = {
        .version = OPSDEBUG_API_VERSION,
        .bytes = sizeof api,
        .name = api_name,
        .step = api_step,
        .mark = api_mark,
        .checkpoint = api_checkpoint,
        .assert_finite = api_assert_finite,
        .region = api_region,
        .region_end = api_region_end,
        .push = api_push,
        .pop = api_pop,
    };
    return version >= 1 ? &api : NULL; /* later versions only add members */
}
