/* context.h - contexts, the primary one included, and what belongs to them. */
#ifndef SOFTGPU_CONTEXT_H
#define SOFTGPU_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/buf.h"
#include "softgpu/engine.h"
#include "softgpu/pages.h"

enum { LIMIT_COUNT = CU_LIMIT_MAX };

struct module;
struct context {
    uint64_t id;
    unsigned device;
    bool primary;
    atomic_bool alive; /* false: destroyed, or the primary one not retained */
    atomic_int error;  /* CUresult, sticky */
    unsigned flags;
    unsigned retains;  /* of the primary context */
    unsigned attached; /* uses by cuCtxAttach; under the engine's lock */
    size_t limits[LIMIT_COUNT];
    CUfunc_cache cache_config;
    struct stream *legacy;
    struct stream *streams; /* all, by next_in_context; under the engine's lock */
    struct op *gate;        /* what all new work waits for, a reference, or NULL; under the engine's lock */
    struct context *_Atomic peers[PAGE_DEVICES]; /* whose memory kernels may use: one context of each other device */
    struct module *modules;                      /* by next; under context_lock() */
    pthread_mutex_t print_lock;
    struct buf print_out, print_err; /* device printf and assert text, until the next synchronisation */
    /* Of print_out: the running kernels' part begins at `sealed`. Of that, what is before `kept` was overwritten; the
     * rest came in pieces of print_pieces[oldest] (size_t) and so on. */
    size_t print_sealed, print_kept, print_oldest;
    struct buf print_pieces;
    uint64_t generation; /* counts how often it was torn down; under context_lock() */
    /* Of malloc() in kernels, made with the first that may call it; host memory. Under context_lock(). */
    void *heap;
    size_t heap_bytes;
    struct context *next; /* of all contexts ever made; freed never, since handles to them may live on */
};

void context_lock(void); /* contexts, modules, libraries */
void context_unlock(void);

struct context *context_current(void); /* of this thread; may be NULL or destroyed */
struct context *context_primary(unsigned device);
/* A live context from a handle (NULL: the current one). */
CUresult context_from(CUcontext handle, struct context **out);
struct context *context_all(void);

/* Bits of the devices whose memory its kernels may use: its own, and those of its peers. */
unsigned context_reach(const struct context *context);

/* Records an error of the device; the first one stays. */
void context_fail(struct context *context, CUresult error);
CUresult context_error(const struct context *context);

/* The heap of kernels: CU_LIMIT_MALLOC_HEAP_SIZE bytes, made when it is first asked for. */
CUresult context_heap(struct context *context, void **heap, size_t *bytes);

/* Device output waits here until the program synchronises. The FIFO's size is that of one kernel's output: a kernel
 * that begins has it to itself. */
void context_print_begin(struct context *context);
void context_print(struct context *context, const char *text, size_t bytes);
void context_flush(struct context *context);

/* The stream a handle means in the current context: NULL and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or a live stream.
 */
CUresult context_stream(struct context *context, CUstream handle, struct stream **out);
/* Stack of current contexts of the calling thread. */
CUresult context_push(struct context *context);
struct context *context_pop(void);                     /* NULL when empty */
CUresult context_set_current(struct context *context); /* NULL pops */

struct context *context_create(unsigned flags, unsigned device); /* live and a handle; NULL when memory is out */
void context_finish(struct context *context);                    /* waits for its work, prints what is left */
/* The same, and unloads modules, frees memory and streams. The primary context can live again. */
void context_teardown(struct context *context);
void context_revive(struct context *primary);

#endif
