/* trace.h - the seam through which softgpu's libcupti watches libcuda and libcudart.
 *
 * Every exported function of the two libraries is a wrapper made from the headers (generate-trace, trace_calls.h): it
 * goes on to the function itself, under its name with `untraced_` in front, which is also what the library calls
 * inside. With nobody watching that costs one load and one branch. A watcher puts a table into softgpu_trace.hooks,
 * which libcuda exports besides the driver API; libcudart finds it there, too.
 *
 * Work in streams carries the tag that the watcher gave when it was made, and is reported to it, with its times, when
 * it has run and before anybody sees it done.
 */
#ifndef SOFTGPU_TRACE_H
#define SOFTGPU_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

enum trace_side { TRACE_DRIVER, TRACE_RUNTIME };

/* One function. */
struct trace_site {
    const char *name; /* as exported */
    enum trace_side side;
    _Atomic uint32_t id; /* the watcher's, 0 at first */
};

/* One call. */
struct trace_call {
    struct trace_site *site;
    const void *params; /* a structure of the arguments in their order; NULL without any */
    int result;         /* set before exit() */
    /* Name of the kernel that a runtime function was given as `function`; NULL in the driver. Calls the driver. */
    const char *(*kernel_name)(const void *function);
    uint64_t own[8]; /* the watcher's */
};

enum trace_work_kind { TRACE_KERNEL, TRACE_COPY, TRACE_FILL, TRACE_GRAPH };
enum trace_graph { TRACE_GRAPH_ITSELF, TRACE_GRAPH_NODE, TRACE_GRAPH_EXEC };
enum trace_memory { TRACE_PAGEABLE, TRACE_PINNED, TRACE_DEVICE, TRACE_ARRAY, TRACE_MANAGED };

/* Something that ran in a stream. Pointers are valid during the call only. */
struct trace_work {
    enum trace_work_kind kind;
    uint64_t tag;                /* what hooks->tag() gave */
    uint64_t queued, start, end; /* by hooks->now() */
    uint32_t device, context, stream;
    uint32_t graph;      /* executable graph that it is part of, or is the launch of; 0: none */
    uint64_t graph_node; /* 0: none */
    union {
        struct {
            const char *name;
            uint32_t grid[3], block[3];
            uint32_t static_shared, dynamic_shared, local, registers;
            bool cooperative;
        } kernel;
        struct {
            uint64_t bytes;
            enum trace_memory from, to;
            uint32_t from_device, to_device;
            bool async;
        } copy;
        struct {
            uint64_t bytes;
            uint32_t value;
            enum trace_memory to;
            bool async;
        } fill;
    };
};

struct trace_hooks {
    void (*enter)(struct trace_call *call);
    void (*exit)(struct trace_call *call);
    uint64_t (*tag)(void); /* for work that this thread is about to put into a stream; not 0 */
    uint64_t (*now)(void); /* ns */
    void (*work)(const struct trace_work *work);
};

struct trace_context {
    CUcontext handle;
    uint32_t id, device;
};
struct trace_stream {
    uint32_t id, context;
    int priority;
    bool non_blocking, null_stream;
};

struct trace_allocation {
    uint64_t bytes;
    enum trace_memory kind;
    uint32_t device;
};

enum { TRACE_VERSION = 1 };
/* What libcuda exports. The functions make no traced call, set no error, and may be used while a call is watched. */
struct softgpu_trace {
    uint32_t version; /* TRACE_VERSION */
    _Atomic(const struct trace_hooks *) hooks;
    bool (*initialised)(void);
    /* NULL is the calling thread's current context; false when it is none or not alive. */
    bool (*context)(CUcontext context, struct trace_context *out); /* zeroed when false */
    /* The primary context of a device, and how often it is retained. */
    unsigned (*primary)(CUdevice device, CUcontext *handle);
    /* Calls `each` with every live context. */
    void (*contexts)(void (*each)(const struct trace_context *context, void *data), void *data);
    bool (*stream)(CUcontext context, CUstream stream, struct trace_stream *out);
    /* Calls `each` with every stream of a live context. */
    void (*streams)(CUcontext context, void (*each)(const struct trace_stream *stream, void *data), void *data);
    const char *(*kernel_name)(CUfunction function); /* CUfunction or CUkernel; NULL when it is neither */
    uint64_t (*graph_id)(enum trace_graph kind, const void *handle); /* 0: it is none */
    /* The allocation at an address. */
    bool (*allocation)(CUdeviceptr address, struct trace_allocation *out);
};

#endif
