/* device_work.h - what the shim keeps in each context for its own work: a stream, its kernels, mapped host memory.
 *
 * Made when a context is first seen current, and not later: loading a module beside a spinning kernel can deadlock. No
 * thread waits for another one here; who comes while it is being made does without.
 */
#ifndef SHIM_DEVICE_WORK_H
#define SHIM_DEVICE_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/track.h"

struct pace;
struct scan_slots;
struct sentinel_slots;
struct timing_pool;

struct device_work {
    struct tracked_context *context;
    CUstream stream;                  /* non-blocking, ours */
    CUfunction check, fill;           /* NULL: loading failed, copies on the host instead */
    CUfunction scan;                  /* NULL: no health check */
    struct sentinel_slots *slots;     /* of sentinel.c */
    uint64_t copy_cursor;             /* atomic: address where the next look by copies at a wait goes on, */
    uint64_t copies_seq;              /* and the seq of the one before */
    struct scan_slots *scans;         /* of scan.c */
    struct timing_pool *times;        /* of timing.c */
    struct device_costs *costs;       /* of device_cost.c */
    struct pace *pace;                /* of looks; NULL: all are made */
    volatile uint32_t *progress_host; /* words that streams write when they get there, in mapped host memory */
    CUdeviceptr progress_device;
    uint8_t *progress_used; /* atomic flags, one per word */
};

void device_work_make(struct tracked_context *context);           /* the context is current */
struct device_work *device_work(struct tracked_context *context); /* NULL: not there, or the device is lost */

/* Driver calls that a stream capture in global mode forbids to every thread are allowed between these two. */
CUstreamCaptureMode device_relax(void);
void device_unrelax(CUstreamCaptureMode before);

/* Zeroed memory of our own, pinned in the current context so that copies run beside the program. It is never freed:
 * unlike what cuMemHostAlloc gives, it outlives the context, and our helper may still be reading it. `device_address`
 * may be NULL; else the device must be able to write there. NULL: no memory, or it cannot be pinned: the driver would
 * wait for the whole stream before it copies into pageable memory, and the stream may be waiting for the host. */
void *device_host_memory(size_t bytes, CUdeviceptr *device_address);

/* A stream that is being captured must see nothing of ours; so must the legacy stream while another one is captured.
 * A capture counts from before the call that begins it. It belongs to the stream that it began in, and ends with it:
 * by the program's call, or because stream, thread or context go. */
void device_capture_begins(void);
void device_capture_refused(void);                        /* it did not begin */
void device_capture_began(struct tracked_stream *stream); /* NULL: unknown */
bool device_capture_ended(struct tracked_stream *stream); /* NULL: unknown. False: there was none */
/* What a capture that begins on another thread forbids, or would see: waiting for a context, putting something into
 * streams that are not the calling thread's. False: not now, a capture is going on. True: a capture that begins waits
 * until device_uncaptured_ends(). */
bool device_uncaptured_begins(void);
void device_uncaptured_ends(void);
bool device_captures_active(void); /* any stream of the process */
bool device_stream_captures(const struct tracked_stream *stream);

/* May something of ours be put into the stream now? Not while it is captured, and (but for `deep`) not between a pair
 * of the program's timing events. */
bool device_stream_free(const struct tracked_stream *stream);

/* Progress marks: the stream will write a word when everything before it is done. No order between marks is assumed, so
 * threads may share a stream. False: none is free, or the driver refused. */
struct progress_mark {
    volatile uint32_t *word;
    struct device_work *work;
};
bool device_mark(struct device_work *work, struct tracked_stream *stream, struct progress_mark *out);
bool device_reached(const struct progress_mark *mark);
void device_mark_release(struct progress_mark *mark);

#endif
