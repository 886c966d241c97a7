/* driver.h - what the files of softgpu's libcuda share: the state of the one device, and the rules between the files.
 *
 * The device is made of these parts, each with its own header and lock:
 *     config   environment variables, read once
 *     memory   device address space, allocations, host memory that kernels can reach   (rwlock)
 *     engine   operations in streams, worker threads, completion                       (one mutex)
 *     context  contexts and the per-thread stack of current ones                       (one mutex)
 *     module   images, modules, libraries, kernels, variables                          (the context's mutex)
 *     graph    graphs, their nodes and executable forms, captures of streams           (one mutex)
 * Lock order: graph, context, engine, memory, handles. No lock is held while a kernel or a callback of the program
 * runs.
 *
 * Files named api_*.c hold the exported functions by family; each starts with `enter()` or `enter_context()`.
 */
#ifndef SOFTGPU_DRIVER_H
#define SOFTGPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All versions of all functions under their exported names, none renamed by a macro; visible although the default is
 * hidden. */
#define __CUDA_API_VERSION_INTERNAL 1
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include "ptx/opsptx.h"

/* ---- config.c --------------------------------------------------------------------------------------------------- */

struct config {
    uint64_t memory_bytes; /* SOFTGPU_MEMORY, of each device */
    uint32_t devices;      /* SOFTGPU_DEVICES, less those that CUDA_VISIBLE_DEVICES hides */
    uint8_t number[8];     /* of each of these among all, for its identity */
    char name[64];         /* SOFTGPU_NAME */
    uint32_t sm_count;     /* SOFTGPU_SMS */
    uint32_t capability;   /* SOFTGPU_CC: 86 for 8.6 */
    uint32_t workers;      /* SOFTGPU_WORKERS */
    uint64_t variant;      /* SOFTGPU_VARIANT, 0 when unset */
};
const struct config *config_get(void); /* reads the environment at its first call; thread-safe */
/* Notes that a variable cannot be read; the first one is kept, for cuInit to tell. While config_get() or fault_read()
 * reads. */
void config_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *config_error(void); /* what was noted, or NULL */

/* Whether there is a device of that number. */
static inline bool device_exists(CUdevice device)
{
    return device >= 0 && (uint32_t)device < config_get()->devices;
}

/* Notes `name` in the file named by SOFTGPU_LOG, once per name; returns CUDA_ERROR_NOT_SUPPORTED. Nothing is ever
 * printed. */
CUresult log_unsupported(const char *name);
/* The same for a part of a function, or another remark: `detail` says which. */
CUresult log_unsupported_part(const char *name, const char *detail);

/* Adds to the log that cuLogs* gives out (api_logs.c). */
void logs_note(const char *name, const char *detail);

/* ---- handles.c: which opaque pointers are alive, so that stale and invented ones are refused -------------------- */

enum handle_kind {
    HANDLE_NONE,
    HANDLE_CONTEXT,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_LIBRARY,
    HANDLE_KERNEL,
    HANDLE_POOL,
    HANDLE_VMM,
    HANDLE_LINK,
    HANDLE_ARRAY,
    HANDLE_MIPMAP,
    HANDLE_GRAPH,
    HANDLE_GRAPH_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_USER_OBJECT,
};
bool handle_add(const void *pointer, enum handle_kind kind); /* false: out of memory */
bool handle_remove(const void *pointer, enum handle_kind kind);
enum handle_kind handle_of(const void *pointer);

/* ---- state.c: life of the library in the process ---------------------------------------------------------------- */

/* CUDA_SUCCESS when cuInit was called here; NOT_INITIALIZED before, and in a forked child; DEINITIALIZED at exit. */
CUresult enter(void);
bool state_exiting(void);  /* exit() was called: waits are bounded */
bool state_stopping(void); /* the exit handlers have run: nothing works any more */
uint64_t state_now_ns(void);

struct context;
/* enter(), and the calling thread's current context, which must be alive and without a sticky error. */
CUresult enter_context(struct context **out);

/* ---- the null stream's two meanings ----------------------------------------------------------------------------- */

/* In functions with the suffix _ptsz or _ptds a null stream is the thread's own. */
static inline CUstream per_thread(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

#endif
