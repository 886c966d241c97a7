/* track.h - the program's CUDA objects by handle: contexts, streams, events, modules, kernels.
 *
 * Handles are reused by drivers; a destroyed object is forgotten at once, and the next one with its handle gets a new
 * id. The structures themselves are never freed (they are small, and another thread may still hold a pointer).
 * Thread-safe: the maps are behind one lock; members are constant after creation unless said otherwise.
 */
#ifndef SHIM_TRACK_H
#define SHIM_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/alloc_table.h"
#include "shim/hooks.h"
#include "shim/ptx_scan.h"

struct cap_stream_state;
struct device_work; /* what the shim keeps on the device for one context, see device_work.h */

struct tracked_context {
    CUcontext handle;
    unsigned long long unique; /* the driver's own number of it, never given twice; 0: it has none (before CUDA 12) */
    uint32_t id, device;
    struct device_work *work;     /* atomic: NULL until made */
    int work_state;               /* atomic: enum in device_work.c */
    bool gone;                    /* atomic */
    bool ends;                    /* atomic: its end was asked for; nothing of ours asks in it from another thread */
    uint32_t askers;              /* atomic: threads that are asking about events of ours in it */
    struct tracked_context *next; /* all contexts ever, newest first */
};

enum { STREAM_TOUCHED = 128 };

struct tracked_stream {
    CUstream handle; /* as the legacy entry points take it: NULL, CU_STREAM_PER_THREAD or a created stream */
    uint32_t id, kind, flags;
    uint32_t thread; /* of a per-thread default stream: the one handle means another stream in each thread */
    struct tracked_context *context;
    bool gone;                      /* atomic */
    bool ends;                      /* atomic: its end was asked for */
    bool captured_from;             /* atomic: a capture began in it, and has not ended */
    struct cap_stream_state *state; /* of progress.c */
    uint32_t launches_unchecked;    /* atomic: launches since the last sentinel check was enqueued */
    uint32_t timing_pair;           /* atomic: id of the event that opened a pair of timing events, 0 none is open */
    uint32_t pair_kernels[4];       /* kernels launched in the pair so far, 0: none; racy by nature, a hint */
    uint32_t writes_unchecked;      /* atomic: copies and sets since then */
    uint64_t last_work;             /* atomic: seq of the newest launch, copy or set, 0 none */
    uint64_t last_look;             /* atomic: seq of the newest look at all redzones in this stream */
    uint64_t *touched;      /* atomic, NULL until needed: what launches since the last look were given, STREAM_TOUCHED
                               addresses: sentinel_choose.h */
    uint32_t touched_count; /* atomic; two threads may lose each other's, which costs a turn */
    uint64_t look_cursor;   /* atomic: address where the next look goes on, when it cannot take all */
    uint64_t freed_behind;  /* atomic: the newest work, when what a look had left out was freed, */
    uint32_t frees_behind;  /* atomic: and how often since then */
    uint64_t done_seq;      /* atomic: all work before this seq is known to be complete */
    struct tracked_stream *next;     /* all streams of all contexts that live, newest first */
    struct tracked_stream *previous; /* behind the lock of track.c; of one that is gone: the one gone before it */
    struct tracked_stream *next_unfinished; /* the same */
};

enum { MODULE_CONTEXTS = 16 };

struct tracked_module {
    uint64_t handle;
    uint32_t id, kind, context;
    bool library;                    /* CUlibrary, else CUmodule */
    uint32_t asked[MODULE_CONTEXTS]; /* atomic: contexts in which its variables were asked for (see reach.c), 0: none */
    struct ptx_scan scan;            /* empty without PTX; read-only */
    struct allocation *variables;    /* found so far; behind the lock of kernel.c */
    uint32_t variable_count;
};

struct tracked_kernel {
    uint64_t handle;
    bool library; /* a CUkernel */
    uint32_t id;
    struct tracked_module *module; /* may be NULL */
    const char *name;
    struct ptx_param *params; /* published by layout_source (release) */
    uint32_t param_count, param_bytes;
    uint32_t layout_source; /* atomic: enum cap_layout */
    uint32_t asked_driver;  /* atomic: attributes and layout were asked for, after the first launch */
    uint32_t matches;       /* OPSDEBUG_KERNEL: 1 yes, 0 no */
    uint32_t armed;         /* atomic: snapshots were asked for because of damage */
    uint32_t block[3];      /* of cuFuncSetBlockShape */
    uint64_t launches;      /* atomic */
};

/* The calling thread's current context; NULL when there is none or the driver cannot be asked. */
struct tracked_context *track_current_context(void);
struct tracked_context *track_context(CUcontext handle);
struct tracked_context *track_known_context(CUcontext handle); /* NULL: never seen current, or gone */
void track_context_gone(struct tracked_context *context);      /* once; NULL and gone ones are fine */
/* The driver has just made, or given out, the context of this handle: whatever had the handle before is gone, though
 * the call that ended it may still be on its way back in another thread. `fresh`: it is new for sure; else what the
 * driver says of it counts. */
void track_context_given(CUcontext handle, bool fresh);
struct tracked_context *track_first_context(void);

/* `per_thread`: the call was a _ptsz form. Without `create` an unknown handle gives NULL; it may be garbage. */
struct tracked_stream *track_stream(CUstream handle, bool per_thread, bool create);
uint32_t track_stream_id(CUstream handle, bool per_thread);       /* creates: only of what the driver has accepted */
uint32_t track_stream_known_id(CUstream handle, bool per_thread); /* 0: unknown */
struct tracked_stream *track_stream_created(CUstream handle, uint32_t flags);
/* Before a created stream is destroyed: as soon as it is, another thread may get the same handle. NULL: unknown. */
struct tracked_stream *track_stream_take(CUstream handle);
void track_stream_taken(struct tracked_stream *stream, bool gone); /* after it; false: it lives on */
void track_thread_ends(void);                                      /* with the thread goes its default stream */
struct tracked_stream *track_first_stream(void);
uint64_t track_gone_work(void); /* the newest work of streams that are gone */
/* `bound`, or less: all work before it of the context's streams that are gone is known to be complete. */
uint64_t track_unfinished(const struct tracked_context *context, uint64_t bound);
void track_context_waited(const struct tracked_context *context, uint64_t seq); /* all of its work before seq is */
/* Whether the calling thread can put work into it: it lives, and is not another thread's default stream. */
bool track_stream_reachable(const struct tracked_stream *stream);

uint32_t track_event_created(CUevent handle, uint32_t flags);
uint32_t track_event(CUevent handle, uint32_t *flags); /* 0: unknown (an imported one) */
/* The program recorded a timing event, not inside a capture: opens a pair, or closes the one that is open. An event
 * that is recorded twice without another in between was no start of a measurement; it and its later records are
 * ignored. */
void track_timing_event(struct tracked_stream *stream, CUevent handle, uint32_t id, uint32_t flags);
/* Before and after it is destroyed, as with streams. 0: unknown. */
uint32_t track_event_take(CUevent handle, uint32_t *flags);
void track_event_taken(CUevent handle, uint32_t id, uint32_t flags, bool gone);

struct tracked_module *track_module_loaded(uint64_t handle, bool library, const void *image, const char *file);
struct tracked_module *track_module_file(uint64_t handle, bool library, const char *file); /* reads the file */
struct tracked_module *track_module(uint64_t handle);                                      /* NULL: unknown */
void track_module_alias(uint64_t handle, struct tracked_module *module);
/* Before a module is unloaded it is forgotten with its kernels and variables, and their handles: as soon as it is,
 * another thread may get the same ones. NULL: unknown. Afterwards, when it lives on, all of that is put back. */
struct module_taken *track_module_take(uint64_t handle);
void track_module_taken(struct module_taken *taken, bool gone);
void track_modules_gone(uint32_t context); /* those that were loaded into a context that has ended */

void track_module_add_variable(struct tracked_module *module, const struct allocation *a);
/* The i-th variable found so far, false behind the last. */
bool track_module_variable(const struct tracked_module *module, uint32_t i, struct allocation *out);

struct tracked_kernel *track_kernel(uint64_t handle); /* NULL: unknown */
struct tracked_kernel *track_kernel_found(uint64_t handle, bool library, struct tracked_module *module,
                                          const char *name);
void track_kernel_alias(uint64_t handle, struct tracked_kernel *kernel);
static inline bool track_kernel_asked(const struct tracked_kernel *kernel)
{
    return __atomic_load_n(&kernel->asked_driver, __ATOMIC_RELAXED);
}
/* After a launch that succeeded: makes the kernel known, asks the driver for attributes and layout once. */
struct tracked_kernel *track_kernel_launched(uint64_t handle);

void track_write_end(void); /* CAP_END */

#endif
