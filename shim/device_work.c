#include "shim/device_work.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <opsdebug/capture.h>

#include "shim/deadline.h"
#include "shim/device_cost.h"
#include "shim/driver.h"
#include "shim/memory.h"
#include "shim/options.h"
#include "shim/pace.h"
#include "shim/scan.h"
#include "shim/sentinel_slots.h"
#include "shim/shim.h"
#include "shim/small_stack.h"
#include "shim/timing.h"

enum { WORK_NONE, WORK_MAKING, WORK_READY, WORK_FAILED };
enum { PROGRESS_WORDS = 1024 };
/* For whoever waits for a context, which may take long: the driver looks for captures when the wait begins. */
enum { CAPTURE_WAIT_MS = 1000 };

/* check.ptx, as bytes (build.mk). Text, so that any driver from CUDA 9 on can translate it for any device. */
static const char check_ptx[] = {
#ifndef __clang_analyzer__ /* the linter runs without a build folder */
#include "shim/check_ptx.inc"
    ,
#endif
    '\0'};

static const char scan_ptx[] = {
#ifndef __clang_analyzer__
#include "shim/scan_ptx.inc"
    ,
#endif
    '\0'};

static int captures_active;  /* atomic */
static int uncaptured;       /* atomic: threads between device_uncaptured_begins() and _ends() */
static int captures_unknown; /* atomic: of those, in streams that we could not take in */

CUstreamCaptureMode device_relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!driver.cuThreadExchangeStreamCaptureMode || driver.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return CU_STREAM_CAPTURE_MODE_RELAXED;
    return mode;
}

void device_unrelax(CUstreamCaptureMode before)
{
    if (driver.cuThreadExchangeStreamCaptureMode && before != CU_STREAM_CAPTURE_MODE_RELAXED)
        driver.cuThreadExchangeStreamCaptureMode(&before);
}

bool device_uncaptured_begins(void)
{
    __atomic_fetch_add(&uncaptured, 1, __ATOMIC_SEQ_CST);
    if (!device_captures_active())
        return true;
    device_uncaptured_ends();
    return false;
}

void device_uncaptured_ends(void)
{
    __atomic_fetch_sub(&uncaptured, 1, __ATOMIC_SEQ_CST);
}

void device_capture_begins(void)
{
    const struct deadline patience = deadline_in(CAPTURE_WAIT_MS);
    unsigned nap = 0;
    __atomic_fetch_add(&captures_active, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&uncaptured, __ATOMIC_SEQ_CST) && !deadline_over(patience))
        deadline_nap(&nap);
}

void device_capture_refused(void)
{
    __atomic_fetch_sub(&captures_active, 1, __ATOMIC_ACQ_REL);
}

void device_capture_began(struct tracked_stream *stream)
{
    if (!stream)
        __atomic_fetch_add(&captures_unknown, 1, __ATOMIC_ACQ_REL);
    else if (__atomic_exchange_n(&stream->captured_from, true, __ATOMIC_ACQ_REL))
        device_capture_refused(); /* the one before has ended without our seeing it */
}

bool device_capture_ended(struct tracked_stream *stream)
{
    int unknown = __atomic_load_n(&captures_unknown, __ATOMIC_ACQUIRE);
    bool ended = stream && __atomic_exchange_n(&stream->captured_from, false, __ATOMIC_ACQ_REL);
    while (!stream && !ended && unknown > 0)
        ended = __atomic_compare_exchange_n(&captures_unknown, &unknown, unknown - 1, true, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE);
    if (ended)
        __atomic_fetch_sub(&captures_active, 1, __ATOMIC_ACQ_REL);
    return ended;
}

bool device_captures_active(void)
{
    return __atomic_load_n(&captures_active, __ATOMIC_SEQ_CST) > 0;
}

bool device_stream_captures(const struct tracked_stream *stream)
{
    if (!device_captures_active())
        return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    /* For the legacy stream the question itself fails (STREAM_CAPTURE_IMPLICIT) while another stream captures: whatever
     * cannot be told is treated as capturing. */
    return !driver.cuStreamIsCapturing || driver.cuStreamIsCapturing(stream->handle, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool device_stream_free(const struct tracked_stream *stream)
{
    if (device_stream_captures(stream))
        return false;
    return options.preset == PRESET_DEEP || !__atomic_load_n(&stream->timing_pair, __ATOMIC_RELAXED);
}

void *device_host_memory(size_t bytes, CUdeviceptr *device_address)
{
    void *host = MAP_FAILED;
    if (!memory_may(bytes))
        return NULL;
    host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED) {
        memory_give(bytes);
        return NULL;
    }
    /* A fork would make pages copy-on-write that the device keeps writing to. */
    madvise(host, bytes, MADV_DONTFORK);
    unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | (device_address ? CU_MEMHOSTREGISTER_DEVICEMAP : 0);
    CUstreamCaptureMode mode = device_relax();
    bool pinned = driver.cuMemHostRegister_v2 && driver.cuMemHostRegister_v2(host, bytes, flags) == CUDA_SUCCESS;
    device_unrelax(mode);
    if (pinned && (!device_address || (driver.cuMemHostGetDevicePointer_v2 &&
                                       driver.cuMemHostGetDevicePointer_v2(device_address, host, 0) == CUDA_SUCCESS)))
        return host;
    if (!pinned) {
        munmap(host, bytes);
        memory_give(bytes);
    }
    return NULL;
}

static bool load_kernels(struct device_work *work)
{
    CUmodule module;
    int registers;
    if (!driver.cuModuleLoadData || !driver.cuModuleGetFunction || !driver.cuLaunchKernel ||
        driver.cuModuleLoadData(&module, check_ptx) != CUDA_SUCCESS ||
        driver.cuModuleGetFunction(&work->check, module, "opsdebug_check") != CUDA_SUCCESS ||
        driver.cuModuleGetFunction(&work->fill, module, "opsdebug_fill") != CUDA_SUCCESS) {
        work->check = work->fill = NULL;
        return false;
    }
    /* Under lazy loading (the default since CUDA 12) the code comes with the first use; a question counts as one. */
    if (driver.cuFuncGetAttribute) {
        driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, work->check);
        driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, work->fill);
    }
    return true;
}

static bool load_scan(struct device_work *work)
{
    CUmodule module;
    int registers;
    if (!driver.cuModuleLoadData || !driver.cuModuleGetFunction || !driver.cuLaunchKernel ||
        driver.cuModuleLoadData(&module, scan_ptx) != CUDA_SUCCESS ||
        driver.cuModuleGetFunction(&work->scan, module, "opsdebug_scan") != CUDA_SUCCESS) {
        work->scan = NULL;
        return false;
    }
    if (driver.cuFuncGetAttribute)
        driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, work->scan);
    return true;
}

static struct device_work *make(struct tracked_context *context)
{
    struct device_work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->context = context;
    if (!driver.cuStreamCreate || driver.cuStreamCreate(&work->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        free(work);
        return NULL;
    }
    work->progress_host = device_host_memory(PROGRESS_WORDS * sizeof(uint32_t), &work->progress_device);
    work->progress_used = calloc(PROGRESS_WORDS, 1);
    if (!work->progress_host || !work->progress_used)
        shim_note(CAP_NOTE_LOST, "no mapped host memory: no snapshots in context %u", context->id);
    if (options.sentinels != SENTINELS_OFF) {
        if (!load_kernels(work))
            shim_note(CAP_NOTE_LOST,
                      "the check kernel cannot be loaded in context %u: redzones are looked at by copies", context->id);
        work->slots = sentinel_slots_make();
    }
    if (options.health != HEALTH_OFF) {
        if (load_scan(work))
            work->scans = scan_slots_make();
        if (!work->scans)
            shim_note(CAP_NOTE_LOST, "the scan kernel cannot be loaded in context %u: no health check", context->id);
    }
    if (options.times)
        timing_prepare(work);
    work->costs = device_costs_make();
    work->pace = pace_make();
    return work;
}

struct making {
    struct tracked_context *context;
    struct device_work *work;
};

/* Modules of ours are loaded: whatever stack that takes of the driver, the program did not count on it. */
static void make_relaxed(void *data)
{
    struct making *making = data;
    CUstreamCaptureMode mode = device_relax();
    making->work = make(making->context);
    device_unrelax(mode);
}

void device_work_make(struct tracked_context *context)
{
    int none = WORK_NONE;
    if (__atomic_load_n(&context->work_state, __ATOMIC_ACQUIRE) != WORK_NONE || !shim_device_usable())
        return;
    if (options.sentinels == SENTINELS_OFF && !options.times && !options.snapshots_first && !options.quarantine &&
        !options.poison && options.health == HEALTH_OFF)
        return;
    if (!__atomic_compare_exchange_n(&context->work_state, &none, WORK_MAKING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    struct making making = {context, NULL};
    (void)small_stack_spare(make_relaxed, &making);
    struct device_work *work = making.work;
    shim_register_exit();
    if (!work)
        shim_note(CAP_NOTE_LOST, "no stream of our own in context %u: no checks, snapshots or times", context->id);
    __atomic_store_n(&context->work, work, __ATOMIC_RELEASE);
    __atomic_store_n(&context->work_state, work ? WORK_READY : WORK_FAILED, __ATOMIC_RELEASE);
}

struct device_work *device_work(struct tracked_context *context)
{
    if (!context || !shim_device_usable() || __atomic_load_n(&context->gone, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&context->work_state, __ATOMIC_ACQUIRE) != WORK_READY)
        return NULL;
    return context->work;
}

bool device_mark(struct device_work *work, struct tracked_stream *stream, struct progress_mark *out)
{
    if (!work->progress_host || !work->progress_used || !driver.cuMemsetD32Async)
        return false;
    static uint32_t next;
    uint32_t start = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < PROGRESS_WORDS; i++) {
        uint32_t at = (start + i) % PROGRESS_WORDS;
        if (__atomic_exchange_n(&work->progress_used[at], 1, __ATOMIC_ACQ_REL))
            continue;
        *out = (struct progress_mark){&work->progress_host[at], work};
        *out->word = 0;
        if (driver.cuMemsetD32Async(work->progress_device + at * sizeof(uint32_t), 1, 1, stream->handle) ==
            CUDA_SUCCESS)
            return true;
        device_mark_release(out);
        return false;
    }
    return false;
}

bool device_reached(const struct progress_mark *mark)
{
    return __atomic_load_n(mark->word, __ATOMIC_ACQUIRE) != 0;
}

void device_mark_release(struct progress_mark *mark)
{
    size_t at = (size_t)(mark->word - mark->work->progress_host);
    __atomic_store_n(&mark->work->progress_used[at], 0, __ATOMIC_RELEASE);
}
