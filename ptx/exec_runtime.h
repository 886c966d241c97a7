/* exec_runtime.h - the device runtime: kernels that start kernels, copies and fills, and ask for facts.
 *
 *     runtime.def      the functions and their parameters
 *     exec_runtime.c   what a thread's call does at once
 *     exec_grids.c     what it put into streams, run when the grid's blocks have ended
 *
 * A grid's children begin after its last block has ended, which is always allowed: nobody on the device can wait for
 * them. A grid counts as ended when all its children have, and those that it put behind itself (cudaStreamTailLaunch).
 * Works of one stream, and those that an event orders, keep their order; the rest keeps the order of the calls, or
 * with a seed has none. Each grid is a launch of its own with its own blocks, workers and caches; faults, counts,
 * limits, found ranges and what is known of memory belong to the launch that the caller made, their `root`.
 */
#ifndef PTX_EXEC_RUNTIME_H
#define PTX_EXEC_RUNTIME_H

#include "common/map.h"
#include "ptx/exec.h"

#define PARAMETER_WINDOW UINT64_C(0x00f9000000000000) /* buffers for parameters of launches */
#define STRING_WINDOW    UINT64_C(0x00f8000000000000) /* names of errors */
#define HANDLE_WINDOW    UINT64_C(0x00f7000000000000) /* streams and events: numbers, nothing is there */
enum {
    PARAMETER_STEP = 1 << 16, /* from one buffer to the next */
    MAX_PARAMETER_BYTES = 32764,
    MAX_NESTING = 24,
    PENDING_LAUNCHES = 1 << 16, /* without a limit of the caller */
};

/* cudaError_t, as far as it is returned here */
enum runtime_error {
    RUNTIME_OK = 0,
    RUNTIME_INVALID_VALUE = 1,
    RUNTIME_MEMORY = 2,
    RUNTIME_CONFIGURATION = 9,
    RUNTIME_PITCH = 12,
    RUNTIME_COPY_DIRECTION = 21,
    RUNTIME_DEPTH = 65,
    RUNTIME_NO_FUNCTION = 98,
    RUNTIME_NO_DEVICE = 101,
    RUNTIME_LIMIT = 215,
    RUNTIME_HANDLE = 400,
    RUNTIME_RESOURCES = 701,
};

enum { STREAM_DEFAULT, STREAM_LEGACY, STREAM_PER_THREAD, STREAM_TAIL, STREAM_FORGET };

/* Something in a stream. Works are numbered from 1, by grid. */
struct work {
    const struct ptx_kernel *kernel; /* of the program, or of own_module(); NULL: only what others wait for */
    bool own, done;
    uint32_t after[2]; /* works that must have ended; 0: none */
    uint32_t grid[3], block[3], shared;
    uint8_t *params;                /* owned */
    const struct ptx_kernel *asker; /* whose thread called; NULL: the root's */
    struct ptx_access at;           /* the call */
};
struct work_list {
    struct work *items;
    uint32_t count, capacity;
};
struct parameter_buffer {
    struct ptx_range range;
    const struct ptx_kernel *kernel; /* NULL: not given yet, or launched */
    uint32_t grid[3], block[3], shared;
    uint8_t bytes[];
};
struct grids {
    struct work_list works, tails;
    struct map streams, events; /* number of the last work there, or recorded */
    struct parameter_buffer **buffers;
    uint32_t buffer_count, buffer_capacity;
};

/* ---- exec_runtime.c ---- */
/* A call of row `row` of runtime.def. False: the thread ends in a fault. */
bool runtime_call(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint32_t row,
                  const uint8_t arguments[MAX_RUNTIME_PARAMS][MAX_RUNTIME_PARAM_BYTES], uint64_t *result);

extern const struct ptx_range runtime_strings; /* names of errors */

/* ---- exec_grids.c ---- */
/* Puts `work` into a stream, or behind the grid; takes over work->params, also when it fails. */
enum runtime_error grids_add(struct worker *w, const struct block *b, const struct thread *t, uint64_t stream,
                             struct work *work);
/* The number of the last work in the stream, 0 when there is none; false: no such stream. */
bool grids_last(struct worker *w, const struct block *b, const struct thread *t, uint64_t stream, uint32_t *last);
struct grids *grids_of(struct launch *l); /* made when it is first asked for; NULL: out of memory. Needs l->lock. */
/* A kernel of the executor's own, "copy" or "fill"; NULL: out of memory. */
const struct ptx_kernel *grids_own_kernel(struct launch *l, const char *name);
void grids_free(struct launch *l);

#endif
