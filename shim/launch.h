/* launch.h - what all forms of a launch have in common: look, record, surround with our own work. */
#ifndef SHIM_LAUNCH_H
#define SHIM_LAUNCH_H

#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/intern.h"
#include "shim/scan.h"
#include "shim/timing.h"
#include "shim/track.h"

struct launch_request {
    uint64_t function; /* CUfunction or CUkernel */
    union {
        struct {
            uint32_t grid[3], block[3];
            uint32_t dynamic_shared_bytes;
            uint32_t flags; /* enum cap_config_flags */
        };
        struct shape shape; /* the same */
    };
    CUstream stream;
    bool per_thread;
    bool chained;      /* launched with a programmatic dependency on what is before it in the stream */
    bool no_arguments; /* the old forms, whose arguments were set one by one */
    void **kernel_params;
    void **extra;
};

struct launch {
    struct call *call;
    const struct launch_request *request;
    struct tracked_kernel *kernel; /* NULL: unknown before the call */
    struct tracked_stream *stream;
    struct cap_launch *record; /* NULL: not written yet */
    uint32_t config, stack;
    bool capturing, own_work, outputs;
    struct timing_slot timing;
    struct scan_slot *scan; /* NULL: its numbers are not looked at */
};

/* Before the real call: writes the record when everything about the launch can be trusted, and enqueues pre-images. */
void launch_before(struct launch *launch, struct call *call, const struct launch_request *request);
/* After it: outcome, post-images, checks; writes the record if that had to wait for the driver's answer. */
void launch_after(struct launch *launch, CUresult result);

#endif
