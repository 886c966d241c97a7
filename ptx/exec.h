/* exec.h - inside of the execution engine. One thread runs at a time, over decoded code, until it needs others, ends,
 * or used up its turn.
 *
 *     exec.c          a launch: configuration, workers, which block next, results
 *     exec_block.c    a block: its threads, turns, barriers, deadlock
 *     exec_call.c     calls, and returns
 *     exec_warp.c     what the lanes of a warp do together
 *     exec_loop.inc   a thread: the loop over instructions; compiled as run_device, run_checked, run_shadow and
 * run_stochastic exec_memory.c   finding memory, atomics, bitmaps exec_texture.c  textures, and exec_surface.c surfaces
 *     exec_fault.c    the table of faults
 *     exec_print.c    device printf
 *     exec_heap.c     device malloc
 *     exec_runtime.c  kernels that start kernels, and exec_grids.c when these run
 *     guard.h         checked launches in lock-step
 */
#ifndef PTX_EXEC_H
#define PTX_EXEC_H

#include <pthread.h>
#include "ptx/code.h"

enum { WARP = 32, MAX_BLOCK_THREADS = 1024, BARRIERS = 16, MAX_FOUND = 4096 };
#define GRID_WINDOW UINT64_C(0x00fa000000000000) /* workspace of a cooperative grid's barrier */
enum { GRID_WORKSPACE = 256 };

/* Why a thread stopped running. */
enum stop { STOP_DONE, STOP_TURN, STOP_WARP, STOP_ACTIVE, STOP_BARRIER, STOP_FAULT, STOP_STEP };
enum thread_state { THREAD_READY, THREAD_WARP, THREAD_ACTIVE, THREAD_BARRIER, THREAD_DONE };

/* The last range an access instruction touched. An access of the instruction's size at `address` is inside when
 * address - base < span. */
struct range_cache {
    uint64_t base, span;
    uint8_t *host;
    const struct ptx_range *range; /* NULL: not a caller's range */
    uint32_t number;               /* of the range */
    bool tracked;                  /* has bitmaps to keep */
};

/* Checked mode: what is known of a slot's value beside the value. */
struct shadow {
    uint32_t origin; /* number of the range its pointer came from; 0 none */
    uint32_t undef;  /* undefined bytes (low 8 bits), and the record of the load they came from */
};

struct number_pair; /* exec_shadow.h */

struct frame {
    const struct code *code;
    uint32_t pc, base, local_base, local_top;
    const struct call_site *site;
};

struct thread {
    union slot *stack;     /* all frames, the current one at `base` */
    struct shadow *shadow; /* likewise, in checked mode */
    uint32_t stack_slots, base;
    const struct code *code;
    uint32_t pc;
    enum thread_state state;
    struct frame *frames;
    uint32_t depth, frame_capacity;
    uint8_t *local;
    uint32_t local_room, local_base, local_top;
    uint8_t *local_valid; /* checked mode: bytes of local that were written */
    /* shadow mode: by slot, and of local per two bytes (NULL before the first float stored there) */
    struct ptx_shadow_value *numbers, *local_numbers;
    struct number_pair *pairs;
    uint32_t number_slots, local_number_room;
    uint64_t random; /* rounding by chance */
    uint8_t taint;   /* shadow mode: of everything it stores from here on (exec_shadow.h) */
    uint32_t index, lane, warp, tid[3];
    uint32_t wait_mask;     /* THREAD_WARP: lanes it waits for; THREAD_BARRIER: which */
    uint32_t cluster_phase; /* of the cluster's barrier, when it last arrived there */
    bool cluster_arrived;   /* and has not waited yet */
    uint16_t warp_clock;    /* checked mode: *.sync instructions it took part in, exec_race.c */
    uint64_t executed;
    uint32_t runtime_error; /* the last one of the device runtime */
};

struct barrier {
    uint32_t arrived, expected; /* expected: 0 all threads that have not ended */
    uint32_t population;        /* bar.red.popc so far */
    bool all, any;
    uint8_t taint; /* shadow mode: of the predicates so far */
};

struct worker;
struct guard;
struct lanes;
struct lane_code;
struct lane_file;
struct lane_fill;
struct convoy;
struct block {
    struct worker *worker;
    uint64_t linear;
    uint32_t ctaid[3];
    struct thread *threads;
    uint32_t thread_count, live;
    struct barrier barriers[BARRIERS];
    uint32_t barriers_open;                  /* bit i: somebody came to barrier i */
    uint32_t cluster_arrived, cluster_phase; /* barrier.cluster, of this block alone */
    uint32_t meeting;                        /* threads in THREAD_WARP */
    uint8_t *shared;
    uint32_t shared_bytes;
    uint32_t *warp_order;
    uint32_t warp_count;
    bool started, finished, yielded; /* yielded: some thread used up its turn since last asked */
    uint64_t turn, longest_turn;     /* instructions a thread may run before others get a turn */
    uint32_t accesses;               /* checked mode: memory accesses likewise; 0: any number */
    uint64_t random;                 /* draws of a seeded order */
    union slot **templates;          /* by function: initial frame for this block; NULL when not reachable */
    /* lock-step, lanes.h; NULL: threads only. `states`: its threads' states are kept all the time */
    struct lanes *lanes;
    struct lane_file *files;      /* register files that no warp uses */
    uint64_t *lane_base;          /* by unit: what registers start as */
    struct lane_fill *lane_fills; /* by warp, by fill unit */
    uint64_t lane_number;         /* of blocks started here */
    bool states;
    /* checked mode */
    uint8_t *shared_defined; /* one per byte */
    struct race_cell *shared_cells;
    uint32_t epoch, fences;                  /* barriers passed; fences executed by its threads */
    struct ptx_shadow_value *shared_numbers; /* shadow mode: per two bytes; NULL before the first float stored there */
    struct convoy *convoy;                   /* lanes_convoy.c; NULL: each warp begins by itself */
};

struct grids;
struct launch {
    const struct ptx_launch *config;
    struct launch *root;             /* the launch of the caller, perhaps this one: what its grids share is there */
    const struct ptx_kernel *named;  /* in faults; NULL: the caller's kernel */
    const struct ptx_access *asked;  /* a copy or fill of the device runtime: the call that asked for it */
    unsigned depth;                  /* 0: started by the caller */
    struct grids *grids;             /* what its threads have asked for, exec_runtime.h; NULL before the first */
    uint64_t next_id;                /* root: for grids, streams and events */
    uint32_t pending;                /* root: works that have not ended */
    struct ptx_module *own_module;   /* root: kernels of the executor's own, for copies and fills */
    const struct ptx_module *module; /* the caller's, or with a variant a copy with other code: always run this one's */
    struct ptx_module *variant;      /* that copy */
    const struct code *entry;
    const struct ptx_memory *memory;
    struct ptx_result *result;
    uint32_t *shared_offsets;
    struct kernel_layout layout;
    uint32_t shared_bytes, block_threads, warp_count;
    uint64_t block_count, run_count; /* of the grid; of them to run */
    _Atomic uint64_t next_block, blocks_done;
    _Atomic int status; /* enum status; not OK ends every worker */
    _Atomic uint64_t executed;
    uint64_t deadline; /* nanoseconds of CLOCK_MONOTONIC; 0: none */
    bool checked, multi, fma;
    struct guard *guard;               /* a guarded run of a checked launch; NULL: none */
    const struct lane_code *lane_code; /* NULL: threads only */
    const struct insn *(*const *lane_handlers[2])(struct lanes *L, const struct insn *in);
    const struct insn *(*const *lane_plain[2])(struct lanes *L, const struct insn *in); /* without what is put before */
    const struct insn *(*const *lane_chain[2])(struct lanes *L, const struct insn *in); /* see lanes_chain() */
    void *lane_chains;
    union slot **templates; /* by function, for the launch: all but what depends on block and thread */
    uint8_t *params;
    struct ptx_range grid_range, *found[MAX_FOUND];
    _Atomic uint32_t found_count;
    uint64_t grid_workspace[GRID_WORKSPACE / 8];
    pthread_mutex_t lock; /* faults, found ranges, print, misaligned atomics */
    struct fault_table *faults;
    struct check *check; /* checked mode's tables */
    bool shadow, rounding;
    uint64_t seed;        /* of the orders of blocks and warps */
    bool flushes_atomics; /* atom.add.f32 on global memory */
    enum ptx_matrix_sum matrix_sum;
    const struct matrix_fast *matrix_fast; /* matrix_fast.h; NULL: none is wanted, or none fits */
    struct number_table *numbers;          /* shadow mode's events */
    struct count_table *counting;          /* counts.h; NULL: no profile is asked for */
};

struct worker {
    struct launch *launch;
    struct range_cache *cache;  /* by access number */
    const struct ptx_range *at; /* checked mode: the range of the access in hand; NULL when it has no number */
    uint32_t at_number;
    struct texture_cache *textures; /* handles met last; NULL before the first */
    struct ptx_counts counts;
    uint64_t lane_steps;     /* as in struct ptx_result */
    struct counter *counter; /* counts.h; NULL: no profile is asked for */
    struct block **blocks;   /* resident */
    uint32_t block_count, block_capacity;
    pthread_t thread;
};

/* ---- loops ---- */
enum stop run_device(struct worker *w, struct block *b, struct thread *t);
enum stop run_device_fma(struct worker *w, struct block *b, struct thread *t); /* for processors with FMA and BMI */
enum stop run_checked(struct worker *w, struct block *b, struct thread *t);
enum stop run_shadow(struct worker *w, struct block *b, struct thread *t);
enum stop run_shadow_fma(struct worker *w, struct block *b, struct thread *t);
enum stop run_stochastic(struct worker *w, struct block *b, struct thread *t);
enum stop run_stochastic_fma(struct worker *w, struct block *b, struct thread *t);
enum stop run_counted(struct worker *w, struct block *b, struct thread *t); /* the device's, with a profile */
enum stop run_step(struct worker *w, struct block *b, struct thread *t);    /* one instruction, then STOP_STEP */

/* ---- exec_block.c ---- */
struct block *block_create(struct worker *w);
void block_destroy(struct block *b);
bool block_start(struct block *b, uint64_t linear);
/* Runs until all threads ended, the launch ended, or about `budget` instructions were executed. */
void block_run(struct block *b, uint64_t budget);
/* Makes the frame of a call, or of the thread's start; false: recursion too deep or out of memory. */
bool thread_push(struct block *b, struct thread *t, const struct code *code);
/* The thread's first frame: `code`'s initial slots, at its stack's beginning. */
bool thread_enter(struct block *b, struct thread *t, const struct code *code);
/* Only its memory: slots are not filled. */
bool thread_prepare(struct block *b, struct thread *t, const struct code *code);
bool thread_reserve(struct thread *t, uint32_t slots, uint32_t local, bool checked);
/* Threads leave a barrier when enough have come; called on arrival and when a thread ends. */
void barrier_arrive(struct block *b, struct thread *t, uint32_t id, uint32_t expected, bool counted, bool waits);
void barrier_thread_ended(struct block *b);
/* barrier.cluster. True when the thread may go on. */
void cluster_arrive(struct block *b, struct thread *t);
bool cluster_may_go(const struct block *b, struct thread *t);
/* alloca: 0 and a fault when there is no room. */
uint64_t stack_grow(struct block *b, struct thread *t, const struct insn *in, uint64_t bytes, uint64_t align);
bool stack_restore(struct block *b, struct thread *t, const struct insn *in, uint64_t top);
/* Lanes of one warp that come to a barrier instruction together; the threads' states follow. False: a fault. */
struct arrival {
    const struct code *code;
    uint32_t pc, first, mask; /* instruction; the warp's first thread; its lanes */
    uint32_t predicates;      /* of bar.red, by lane */
    uint32_t id, expected;
    bool counted, waits;
    unsigned taint; /* shadow mode: flags of the predicates */
};
bool barrier_arrive_group(struct block *b, const struct arrival *a);

/* ---- exec_warp.c ---- */
/* `t` has come to a *.sync instruction: when all lanes it names are there too, does it for all. True when it was done.
 */
bool warp_arrive(struct block *b, struct thread *t);
void warp_release_active(struct block *b, uint32_t warp);
bool warp_thread_ended(struct block *b, struct thread *t);

/* ---- exec_memory.c ---- */
struct access {
    const struct insn *in;
    uint32_t bytes;
    bool write, atomic;
};
/* Finds the memory of an access in device memory and fills the instruction's cache; NULL: a fault was reported. */
uint8_t *global_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t address,
                     uint32_t bytes, bool write, bool atomic);
/* Fills the instruction's cache when the access would be right; no fault is reported. */
bool range_cache_fill(struct worker *w, const struct insn *in, uint64_t address, uint32_t bytes, bool write);
void range_track(struct worker *w, const struct range_cache *c, uint64_t offset, uint32_t bytes, bool write);
uint8_t *generic_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t address,
                      uint32_t bytes, bool write, bool atomic);
uint8_t *space_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                    uint64_t address, uint32_t bytes, bool write, bool atomic);
const struct ptx_range *range_find(struct launch *l, uint64_t address, uint32_t *number);
const struct ptx_range *range_by_number(struct launch *l, uint32_t number);
uint64_t atom_apply(struct worker *w, unsigned mod, uint8_t *at, uint64_t b, uint64_t c);
uint32_t atom_bytes(unsigned mod);
/* exch and cas of 16 bytes. */
void atom_wide_apply(struct worker *w, unsigned mod, uint8_t *at, const uint64_t b[2], const uint64_t c[2],
                     uint64_t old[2]);
/* Reads device memory for printf: NULL when not mapped. */
const uint8_t *peek(struct worker *w, struct block *b, struct thread *t, uint64_t address, uint32_t bytes);

/* ---- exec_texture.c ---- */
/* An instruction on a texture or a surface. False: a fault was reported, and device mode ends. */
bool texture_execute(struct worker *w, struct block *b, struct thread *t, const struct insn *in);

/* ---- exec_fault.c ---- */
struct fault_table *fault_table_create(uint32_t limit);
void fault_table_free(struct fault_table *table);
/* Takes note of a fault; in device mode it also ends the launch. The fault's access fields but ptx_line are filled
 * here. */
void fault_report(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct ptx_fault *fault);
void fault_simple(struct worker *w, struct block *b, struct thread *t, enum ptx_fault_kind kind);
bool fault_table_finish(struct fault_table *table, struct ptx_result *result);
uint32_t thread_line(const struct thread *t, const struct insn *in);

/* ---- exec_print.c ---- */
uint32_t device_printf(struct worker *w, struct block *b, struct thread *t, uint64_t format, uint64_t arguments);
void device_assert(struct worker *w, struct block *b, struct thread *t, const uint64_t values[5]);

/* ---- exec_heap.c ---- */
uint64_t device_malloc(struct worker *w, uint64_t bytes); /* 0: no room, or no heap */
/* PTX_FAULT_NONE; FREED: a second time; OUT_OF_BOUNDS: malloc() never gave that. */
enum ptx_fault_kind device_free(struct worker *w, uint64_t address);

/* ---- exec_check.c: checked mode ---- */
bool check_launch_start(struct launch *l);
void check_launch_end(struct launch *l);
bool check_block_create(struct block *b);
void check_block_destroy(struct block *b);
void check_block_start(struct block *b);
/* What the filled slots of a new frame point into. */
void check_fill_origins(const struct block *b, const struct code *code, struct shadow *S);
void check_barrier(struct block *b);
void check_warp_sync(struct block *b, struct thread *const lanes[WARP]);

/* ---- exec.c ---- */
/* A grid of `root`, NULL for the caller's own; launch_run() runs its blocks, and no more. */
struct launch *launch_new(const struct ptx_launch *config, struct launch *root, struct ptx_result *result);
enum status launch_run(struct launch *l, struct diag *diag);
void launch_free(struct launch *l);
/* Can a grid be like that? RUNTIME_OK or what cudaLaunchKernel returns. */
bool launch_fits(const struct ptx_kernel *kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);

/* ---- exec_grids.c ---- */
/* Runs what the threads of `l`, whose blocks have ended, put into streams, and all that comes of it. */
enum status grids_run(struct launch *l, struct diag *diag);
/* Memory of the device runtime: parameters of launches, names of errors. */
const struct ptx_range *grids_range(struct launch *l, uint64_t address);

/* ---- exec_call.c ---- */
bool do_call(struct worker *w, struct block *b, struct thread *t, const struct insn *in);
void do_return(struct thread *t);

uint64_t clock_value(struct worker *w, const struct thread *t, unsigned mode, uint64_t executed);
void launch_stop(struct launch *l, enum status status);
uint64_t random_next(uint64_t *state);

/* A slot gets a plain number, outside the loops. */
static inline void thread_set(struct thread *t, uint32_t slot, uint64_t value)
{
    t->stack[t->base + slot].u64 = value;
    if (t->shadow)
        t->shadow[t->base + slot] = (struct shadow){0};
    if (t->numbers)
        t->numbers[t->base + slot] = (struct ptx_shadow_value){0};
}

/* The thread goes on behind the instruction it waited at. */
static inline void thread_pass(struct thread *t)
{
    t->executed += insn_weight(t->code, t->pc);
    t->pc++;
}

/* Where addresses have 32 bits, base and offset of `[%r1-4]` are added modulo 2^32: nvcc has bases that are negative
 * before the offset comes to them. */
static inline uint64_t narrow_address(enum mem_space space, uint64_t address)
{
    bool narrow = space == MEM_SHARED || space == MEM_LOCAL || space == MEM_PARAM;
    return narrow && (address + (UINT64_C(1) << 31)) >> 33 == 0 ? (uint32_t)address : address;
}

static inline bool launch_stopped(const struct launch *l)
{
    return atomic_load_explicit(&l->status, memory_order_relaxed) != STATUS_OK;
}
/* Stops the launch when the caller has cancelled it or its time is up. True: it is stopped. */
bool launch_overdue(struct launch *l);

#endif
