/* engine.h - operations in streams: what runs when, on which thread, and who waits for it.
 *
 * A stream is a queue with a worker thread of its own, started with the first operation and ended when idle. An
 * operation runs when its predecessors in the stream and its dependencies are done. A thread that waits for a stream
 * runs what is next there itself when it can: that saves two switches between threads, which cost more than a short
 * kernel. The legacy stream and the blocking
 * streams of a context order themselves against each other by implicit dependencies, added when an operation is
 * submitted.
 *
 * After a sticky error in a context its remaining operations are dropped, except those marked `always`.
 */
#ifndef SOFTGPU_ENGINE_H
#define SOFTGPU_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "softgpu/driver.h"

struct stream;
struct trace_work;
struct captured_stream;
struct op {
    void (*run)(struct op *op);  /* on the worker thread, no lock held; NULL: only a marker */
    void (*drop)(struct op *op); /* releases what the operation owns and the operation itself; NULL: free() */
    bool always;                 /* also after an error of the context */
    bool bound;                  /* calls the program: only on the worker thread */
    /* For a watcher (trace.h): says what the operation was, after it ran; NULL: not worth a word. */
    void (*describe)(const struct op *op, struct trace_work *work);
    uint64_t tag, queued_ns;    /* the watcher's; 0 without one */
    uint64_t graph, graph_node; /* ids, where it is part of an executable graph's launch, or is one */
    /* The engine's: */
    struct op *next;
    struct op **deps; /* references */
    size_t dep_count;
    struct stream *stream; /* valid until done */
    atomic_uint refs;
    atomic_bool done;
    uint64_t finished_ns;
};

struct stream {
    struct context *context;
    uint64_t id;
    unsigned flags; /* CU_STREAM_NON_BLOCKING or 0 */
    int priority;
    bool legacy, per_thread;
    CUstreamAttrValue attributes[4]; /* api_stream.c; under the engine's lock */
    /* Under the engine's lock: */
    struct op *head, *tail; /* submitted, not done */
    struct op *last;        /* newest one, reference; done or not */
    bool worker, destroyed;
    bool busy;                        /* somebody runs the head */
    struct captured_stream *captured; /* under graph_lock(): its part in a capture (capture.h) */
    pthread_cond_t wake;
    struct stream *next_in_context;
};

/* Makes a stream; NULL when memory is out. It is not a handle yet. */
struct stream *engine_stream_new(struct context *context, unsigned flags, int priority);
/* Ends a stream: pending operations still run, and are waited for with the context; then it is freed. */
void engine_stream_close(struct stream *stream);
/* Ends all streams of a context, which then has none. */
void engine_close_all(struct context *context);

/* A zeroed operation of `bytes` (at least sizeof(struct op)) with one reference; NULL when memory is out. */
void *op_new(size_t bytes, void (*run)(struct op *op), void (*drop)(struct op *op));
struct op *op_ref(struct op *op);
void op_unref(struct op *op); /* NULL is fine */

/* Adds a dependency before submission. */
bool op_after(struct op *op, struct op *dependency);
/* Makes it depend on all that was submitted to the context. */
CUresult engine_gather(struct context *context, struct op *op);
/* All that is submitted to the context from now on waits for `op`, which was submitted and so waits for what the
 * context waited for before. */
void engine_set_gate(struct context *context, struct op *op);
/* Puts the operation into a stream of its own: it runs when its dependencies are done. */
CUresult engine_submit_aside(struct context *context, struct op *op);
/* Puts the operation into the stream; the engine takes a reference of its own, the caller keeps its. Streams that are
 * being captured refuse it (capture.h). */
CUresult engine_submit(struct stream *stream, struct op *op);
/* Likewise, by a caller that asked the capture itself and holds graph_lock(). */
CUresult engine_submit_allowed(struct stream *stream, struct op *op);
/* Submits, waits until it is done, and drops the caller's reference. */
CUresult engine_submit_and_wait(struct stream *stream, struct op *op);
/* Submits and drops the caller's reference. */
CUresult engine_submit_and_forget(struct stream *stream, struct op *op);

/* Within an operation that is `bound`: a part of it that may use memory of the device begins or ends. */
void engine_use_memory(bool begins);
/* Marks as done what was never submitted: an event inside a larger operation. */
void engine_complete(struct op *op);

/* Wait until done; early with CUDA_ERROR_DEINITIALIZED at exit. From a callback of the program:
 * CUDA_ERROR_NOT_PERMITTED. */
CUresult engine_wait(struct op *op);
CUresult engine_wait_stream(struct stream *stream);
CUresult engine_wait_context(struct context *context);
CUresult engine_wait_blocking(struct context *context); /* its streams that the legacy stream waits for, and that one */
CUresult engine_wait_device(void);                      /* every context; for what frees memory */
bool engine_stream_busy(struct stream *stream);
/* Marks this thread as running a callback of the program. */
void engine_callback(bool entered);
bool engine_in_callback(void);

void engine_lock(void);
void engine_unlock(void);
/* Like engine_lock(), at a moment when no kernel and no copy runs; none begins until it is unlocked. Not in a callback.
 */
void engine_stop(void);
/* At exit: running kernels are cancelled, and workers get a bounded time to stop. */
void engine_shutdown(void);
const atomic_bool *engine_cancel(void);

#endif
