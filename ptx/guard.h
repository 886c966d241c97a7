/* guard.h - checked mode's fast way: the launch in lock-step, watched just closely enough to say "nothing to report".
 *
 * A guarded run finds no faults, it only doubts. Whatever checked mode would report, and some things it would not, are
 * a doubt; at the first one memory is put back and the launch is run again, one thread at a time, by the checked loop,
 * which alone reports. So the list of faults is the checked loop's, and a sound launch costs little more than
 * lock-step.
 *
 *     guard.c           a launch: whether it can be guarded, the run, putting memory back
 *     guard_origin.c    before the run: which range the address of each access comes from, and so what it needs
 *     guard_memory.c    memory while it runs: what was defined, what it held before
 *     guard_race.c      who touched what, in global and shared memory
 *     guard_wait.c      whether a block that has run long waits for another one
 *     lanes_guard.c     handlers put before the plain ones of accesses, barriers and *.sync instructions
 *
 * See docs/guarded.md.
 */
#ifndef PTX_GUARD_H
#define PTX_GUARD_H

#include "ptx/lanes.h"

enum { GUARD_PAGE = 4096, GUARD_SEGMENT = 64 };
#define GUARD_ANY  0          /* `from` of an access: no range is known, what lies there decides */
#define GUARD_MANY UINT32_MAX /* more than one range */

/* Of one instruction: what the handler before the plain one has to look at. */
struct guard_access {
    uint32_t from; /* number of the range its address must stay in, GUARD_ANY, GUARD_MANY */
    uint32_t unit; /* of the address; its class */
    uint64_t imm;
    uint8_t class_, space, bytes; /* bytes: of all elements together */
    bool load, store, ordered;    /* ordered: atomic or volatile, half of no race */
    bool exchange;                /* writes without using what was there */
    bool pointer;                 /* what it loads becomes an address: it must not point anywhere */
    bool fetches;                 /* an atomic: likewise what it finds, which the lane before may have left there */
    bool quick;                   /* of shared memory: one cell, by a word */
    bool refused;                 /* nothing is known of it */
    struct guard_range *at;       /* the range met last */
};

/* Of one range, by its number. */
struct guard_range {
    const struct ptx_range *range;
    bool met, stored;                       /* stored: by plain accesses, which is known before the run */
    bool whole, looked;                     /* every byte is defined; that was asked */
    uint8_t *defined;                       /* the launch's own bitmap, when it stores to what is not whole */
    uint8_t *saved;                         /* a bit per GUARD_PAGE that was put by */
    uint64_t *segment_write, *segment_read; /* guard_race.c */
    uint64_t *unit_write, *unit_read;
    uint8_t *old_written, *old_read; /* the caller's bitmaps before the launch */
};

struct guard_page {
    uint8_t *host, *copy;
    uint32_t bytes;
};

struct guard {
    struct launch *launch;
    /* kept from try to try */
    uint32_t range_total;
    bool *stored;      /* by range: stored to, as the code says or as was found */
    bool again;        /* the last try found such a range after others had read it: once more */
    const char *doubt; /* why the launch is run by the checked loop; NULL: no doubt */
    uint32_t doubt_line;
    /* one try */
    struct guard_range *ranges;
    struct guard_access *accesses;                /* by pc */
    uint32_t *admitted;                           /* by access number: the only range it may touch; GUARD_ANY */
    struct lane_code code;                        /* the launch's, with other instructions */
    lane_handler *handlers[2][2 * LANE_OP_COUNT]; /* the plain ones, then those put before them */
    uint64_t lowest, highest;                     /* addresses that ranges span */
    uint8_t unit_shift, shared_shift; /* races are watched in units of so many bytes, log 2: global, shared memory */
    struct guard_page *pages;
    size_t page_count, page_capacity;
    uint8_t **chunks;
    size_t chunk_count, chunk_used, chunk_bytes;
    /* Time: one step at each start of a block, and at each barrier and *.sync that follows an access. */
    uint64_t clock, start, barrier;     /* of the block: when it started, and its last barrier */
    uint64_t shared_base;               /* times of shared memory are counted from here */
    bool touched;                       /* some access has the present time */
    uint64_t synced[MAX_BLOCK_THREADS]; /* by thread: its last *.sync; what it did before has an earlier time */
    uint32_t met[MAX_BLOCK_THREADS];    /* and the lanes that were there */
    struct {
        uint64_t time;
        uint32_t mask;
    } last_sync[MAX_BLOCK_THREADS / WARP]; /* of each warp's lanes */
    bool any_sync;                         /* since the block's start */
    struct {
        uint32_t now, start, barrier;
    } shared; /* these times as cells of shared memory have them */
    uint32_t *shared_write, *shared_read;
    uint8_t *local; /* a byte per byte of local memory of the block's threads: written */
};

/* ---- guard.c ---- */
/* NULL: the launch is none that can be guarded, or no memory. */
struct guard *guard_create(const struct ptx_launch *config);
void guard_free(struct guard *g);
/* Before the blocks of a try; false: it cannot be guarded, and the doubt says why. */
bool guard_start(struct guard *g, struct launch *l);
/* After them. `sound`: the result stands; else memory is put back. */
void guard_end(struct guard *g, bool sound);
void guard_doubt(struct guard *g, const char *why, uint32_t line);
void guard_block_start(struct block *b);
void guard_barrier(struct guard *g);
void guard_set_times(struct guard *g); /* after the clock, the start or the barrier changed */
/* The lanes of the group have met. */
void guard_sync(struct guard *g, const struct lanes *L);
/* A range comes into an instruction's cache. False: it must not. */
bool guard_admits(struct launch *l, const struct insn *in, const struct ptx_range *r, uint32_t number);

/* ---- guard_origin.c ---- */
bool guard_analyse(struct guard *g);
/* Whether the value is an address inside a range. */
bool guard_points(struct guard *g, uint64_t value);

/* ---- guard_memory.c ---- */
struct guard_range *guard_range_at(struct guard *g, uint64_t address);
bool guard_is_whole(struct guard_range *r);
bool guard_defined(const struct guard_range *r, uint64_t offset, uint64_t bytes);
bool guard_define(struct guard_range *r, uint64_t offset, uint64_t bytes);
bool guard_save(struct guard *g, struct guard_range *r, uint64_t offset, uint64_t bytes);
bool guard_keep_bitmaps(struct guard_range *r);
void guard_put_back(struct guard *g);
void guard_memory_free(struct guard *g);

/* ---- guard_race.c ---- */
/* `lanes` lanes from `lane` on access elements of `bytes` bytes each, side by side from `offset` on, which is counted
 * from the segment that the range starts in. False: a doubt. */
bool guard_row(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint32_t lane,
               uint32_t lanes, uint32_t bytes, bool write);
/* One element, read by several lanes or by one (`lane`). */
bool guard_element(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint32_t lane,
                   bool several, uint32_t bytes, bool write);
/* Likewise in shared memory, where a read of what was never written is a doubt, too. */
bool guard_shared_row(struct guard *g, const struct lanes *L, uint32_t offset, uint32_t lane, uint32_t lanes,
                      uint32_t bytes, bool write);
bool guard_shared_element(struct guard *g, const struct lanes *L, uint32_t offset, uint32_t lane, bool several,
                          uint32_t bytes, bool write);
/* An access of one cell by each lane of a full warp, whose addresses are steady. False: it is not of that kind, or a
 * doubt. */
bool guard_shared_quick(struct guard *g, const struct lanes *L, const struct guard_access *a);
/* For accesses that are half of no race. */
bool guard_shared_defined(const struct guard *g, uint32_t offset, uint32_t bytes);
void guard_shared_define(struct guard *g, uint32_t offset, uint32_t bytes);

/* ---- guard_wait.c ---- */
/* Whether the block only comes back to where it was. It runs on a little for that, and may end. */
bool guard_waits(struct block *b);

/* ---- lanes_guard.c: what is put before the plain handler ---- */
lane_handler guard_access_handler, guard_shared_handler, guard_meet_handler, guard_barrier_handler;

#endif
