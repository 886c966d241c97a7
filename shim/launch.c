#include "shim/launch.h"

#include <stdlib.h>
#include <string.h>

#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/device_work.h"
#include "shim/health.h"
#include "shim/intern.h"
#include "shim/options.h"
#include "shim/params.h"
#include "shim/reach.h"
#include "shim/sentinel.h"
#include "shim/sentinel_choose.h"
#include "shim/snapshot.h"
#include "shim/stack.h"
#include "shim/touch.h"

/* Whether the arguments may be read before the driver has accepted the launch. A driver looks at function, stream and
 * shape first, and refuses without ever following the pointers; so must we. */
static bool trustworthy(const struct launch *launch)
{
    const struct launch_request *r = launch->request;
    uint64_t threads = (uint64_t)r->block[0] * r->block[1] * r->block[2];
    return launch->kernel && launch->stream && threads && threads <= 1024 && r->block[2] <= 64 && r->grid[0] &&
           r->grid[1] && r->grid[2] && r->grid[0] <= INT32_MAX && r->grid[1] <= 65535 && r->grid[2] <= 65535;
}

static int32_t measure_arguments(const struct launch *launch)
{
    const struct launch_request *r = launch->request;
    return r->no_arguments ? PARAMS_UNKNOWN : params_measure(launch->kernel, r->kernel_params, r->extra);
}

static void write_record(struct launch *launch, uint8_t outcome, int32_t argument_bytes)
{
    const struct launch_request *r = launch->request;
    struct tracked_kernel *kernel = launch->kernel;
    uint32_t bytes = argument_bytes == PARAMS_UNKNOWN ? 0 : (uint32_t)argument_bytes;
    uint8_t flags = argument_bytes == PARAMS_UNKNOWN ? CAP_LAUNCH_ARGS_UNKNOWN : 0;
    if (launch->capturing)
        flags |= CAP_LAUNCH_CAPTURING;
    struct cap_launch *record =
        capture_record(CAP_LAUNCH, sizeof *record + bytes, launch->call->seq, launch->call->tsc);
    if (!record)
        return;
    record->kernel = kernel->id;
    record->config = launch->config;
    record->stream = launch->stream ? launch->stream->id : 0;
    record->stack = launch->stack;
    record->param_bytes = (uint16_t)bytes;
    record->outcome = outcome;
    record->flags = flags;
    params_pack(kernel, r->kernel_params, r->extra, (uint8_t *)(record + 1), bytes);
    capture_commit(record);
    launch->record = record;
}

static void describe(struct launch *launch)
{
    const struct launch_request *r = launch->request;
    launch->stack = stack_sampled();
    launch->config = intern_shape(&r->shape);
}

static void add_flag(struct launch *launch, uint8_t flag)
{
    if (launch->record)
        __atomic_store_n(&launch->record->flags, (uint8_t)(launch->record->flags | flag), __ATOMIC_RELAXED);
}

void launch_before(struct launch *launch, struct call *call, const struct launch_request *request)
{
    *launch = (struct launch){.call = call, .request = request};
    launch->kernel = track_kernel(request->function);
    launch->stream = track_stream(request->stream, request->per_thread, false);
    if (!trustworthy(launch))
        return;
    launch->capturing = device_stream_captures(launch->stream);
    launch->own_work = !launch->capturing && !request->chained && device_stream_free(launch->stream);
    describe(launch);
    /* Without a layout only a launch that succeeded tells it: asking the driver before might load the module. */
    int32_t bytes = measure_arguments(launch);
    if (bytes == PARAMS_UNKNOWN && !(request->no_arguments && params_measure(launch->kernel, NULL, NULL) == 0))
        return;
    enum snapshot_choice choice = SNAPSHOT_NONE;
    if (!launch->capturing && snapshot_possible(launch->kernel))
        choice = snapshot_choose(launch->kernel, launch->config, request->chained ? NULL : launch->stream,
                                 !launch->own_work);
    if (choice == SNAPSHOT_TAKE && reach_variables(launch->kernel->module))
        call->seq = capture_next_seq();
    write_record(launch, CAP_LAUNCH_PENDING, bytes);
    if (!launch->record || launch->capturing)
        return;
    if (choice == SNAPSHOT_OVER_BUDGET)
        add_flag(launch, CAP_LAUNCH_BUDGET);
    if (choice == SNAPSHOT_TAKE) {
        thread_slow();
        struct snapshot_result got = snapshot_take(CAP_BEFORE, call->seq, launch->kernel, launch->stream,
                                                   (const uint8_t *)(launch->record + 1), launch->record->param_bytes);
        launch->outputs = got.taken;
        add_flag(launch, (uint8_t)((got.taken ? CAP_LAUNCH_INPUTS : 0) | (got.left_out ? CAP_LAUNCH_BUDGET : 0)));
    }
    if (launch->own_work && options.health != HEALTH_OFF)
        launch->scan = scan_before(launch->kernel, launch->stream, call->seq, (const uint8_t *)(launch->record + 1),
                                   launch->record->param_bytes, launch->outputs);
    if (launch->own_work && options.times)
        timing_begin(&launch->timing, launch->kernel, launch->stream, call->seq);
}

static uint32_t saturated(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Without a lock prefix: a launch that two threads count as one makes no difference to what the count is for. */
static void count_launch(struct tracked_kernel *kernel)
{
    uint64_t number = __atomic_load_n(&kernel->launches, __ATOMIC_RELAXED);
    __atomic_store_n(&kernel->launches, number + 1, __ATOMIC_RELAXED);
}

void launch_after(struct launch *launch, CUresult result)
{
    bool ok = result == CUDA_SUCCESS;
    /* Whoever reads of a failure reads its error as well; else the outcome stays open, also after a kill. */
    bool failed = !ok && call_tell_error(launch->call, result);
    shim_thread.launches++;
    if (launch->timing.pair)
        timing_end(&launch->timing, ok);
    if (!ok)
        scan_after(launch->scan, launch->stream, false);
    if (ok) {
        const struct launch_request *r = launch->request;
        bool had_stream = launch->stream != NULL;
        if (!had_stream)
            launch->stream = track_stream(r->stream, r->per_thread, true);
        if (launch->stream && !had_stream)
            launch->capturing = device_stream_captures(launch->stream);
        /* In a capture no function is loaded yet; asking would be the first use. */
        if (!launch->kernel || (!launch->capturing && !track_kernel_asked(launch->kernel)))
            launch->kernel = track_kernel_launched(r->function);
        if (!launch->record && launch->kernel) {
            if (!launch->config)
                describe(launch);
            /* They may lie in managed memory, which the kernel has now. */
            write_record(launch, CAP_LAUNCH_OK,
                         touch_only_behind_launches() ? PARAMS_UNKNOWN : measure_arguments(launch));
        }
        if (launch->kernel)
            count_launch(launch->kernel);
    } else if (failed && !launch->record && launch->kernel) {
        if (!launch->config)
            describe(launch);
        write_record(launch, CAP_LAUNCH_FAILED, PARAMS_UNKNOWN); /* refused: they are not to be trusted */
    }
    if (launch->record && (ok || capture_can_patch(launch->record))) {
        __atomic_store_n(&launch->record->host_ns, saturated(call_real_ns(launch->call)), __ATOMIC_RELAXED);
        if (ok || failed)
            __atomic_store_n(&launch->record->outcome, (uint8_t)(ok ? CAP_LAUNCH_OK : CAP_LAUNCH_FAILED),
                             __ATOMIC_RELEASE);
    }
    if (!ok || launch->capturing || !launch->record)
        return;
    if (launch->scan)
        scan_after(launch->scan, launch->stream, true);
    if (launch->outputs) {
        struct snapshot_result got = snapshot_take(CAP_AFTER, launch->call->seq, launch->kernel, launch->stream,
                                                   (const uint8_t *)(launch->record + 1), launch->record->param_bytes);
        if (got.taken)
            add_flag(launch, CAP_LAUNCH_OUTPUTS);
    }
    if (options.sentinels != SENTINELS_OFF) {
        damage_launched(launch->call->seq, launch->kernel);
        sentinel_touched(launch->stream, (const uint8_t *)(launch->record + 1), launch->record->param_bytes);
        sentinel_after_launch(launch->stream, launch->call->seq, launch->request->chained);
    }
    health_poll();
}
