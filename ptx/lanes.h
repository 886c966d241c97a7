/* lanes.h - the fast engine: the 32 lanes of a warp in lock-step. The one-thread-at-a-time engine stays the oracle, and
 * takes over whatever this one does not do itself.
 *
 *     lanes_decode.c    decoded code again, over lane registers: which micro-operations get handlers of their own
 *     lanes_kit.inc     registers and control, lanes_memory.inc loads and stores, lanes_ops.inc the handlers:
 *                       compiled for AVX2 (lanes_v3.c) and AVX-512 (lanes_v4.c), for full and for partial warps
 *     lanes_warp.c      a warp: its groups of lanes, where they part and meet, what is done in threads instead
 *     lanes_block.c     the warps of a block, and what their registers start as
 *     lanes_convoy.c    a block's first instructions, for all its warps at once
 *     lanes_matrix.c    matrix instructions
 *     lanes_guard.c, lanes_count.c, lanes_shadow*    what is put before the plain handlers to check, count, shadow
 *
 * A lane register is a number, or one per lane. While every lane holds the same number (UNIFORM), or numbers that grow
 * by the same step from lane to lane and by another from row to row of the block (AFFINE), only that is kept and
 * computed; the vector is written when an operation wants it. So addresses, loop counters and parameters cost what they
 * cost a scalar processor.
 *
 * Lanes that stand at one instruction are a group. The group with the lowest pc runs; groups that come to one pc merge.
 * See docs/lanes.md.
 */
#ifndef PTX_LANES_H
#define PTX_LANES_H

#include "ptx/exec.h"
#include "ptx/operands.h"

/* How a register is stored: one bit per lane, 32 bits per lane, 64 bits per lane. */
enum lane_class { CLASS_BIT, CLASS_WORD, CLASS_WIDE };

/* State of a register; LANE_STALE: its vector does not hold the value (UNIFORM and AFFINE only). */
enum { LANE_UNIFORM = 0, LANE_AFFINE = 1, LANE_VECTOR = 2, LANE_STALE = 4 };

enum { LANE_UNIT = 4 * WARP, NO_UNIT = UINT32_MAX };

/* So many volatile and atomic accesses of a group look like spinning, at first. */
enum { LANES_SPINNING = 64, LANES_LONG_RUN = 1 << 20 };

/* Handlers beside those that carry their micro-operation's number. */
enum lane_op {
    LANE_ANY = OP_COUNT, /* a pure micro-operation whose registers are not stored as its types; imm: their classes */
    LANE_STEP,           /* what one thread does alone, done by the other engine for one lane after the other */
    LANE_MEET,           /* what the lanes of a warp do together, likewise */
    LANE_MOV_BIT,
    LANE_MOV_WORD,
    LANE_MOV_WIDE,
    LANE_MOV_EXTEND, /* wide from word, zeros above */
    LANE_MOV_LOW,    /* word from wide */
    LANE_AND_WORD,
    LANE_OR_WORD,
    LANE_XOR_WORD,
    LANE_SELP_WORD,
    LANE_SELP_WIDE,
    LANE_EXT_U8_WORD,
    LANE_EXT_S8_32_WORD,
    LANE_EXT_U16_WORD,
    LANE_EXT_S16_32_WORD,
    LANE_EXT_S32_64_WORD, /* wide from word, sign above */
    LANE_PART_32_WIDE,
    LANE_OP_COUNT
};

/* Two loads and the product of what both bring may be done at once: in `mod` of the first load, and by how the group's
 * lanes lie, one row of 32 or two of 16. */
enum { LANE_JOINED_32 = 1, LANE_JOINED_16 = 2 };

/* One per function, made when it first runs here. `insns` has the same pcs as the function's own: op is a lane_op,
 * operands are units of 128 bytes in the register file, of which a wide register has two. */
struct lane_code {
    struct insn *insns;
    uint32_t units;
    uint32_t *unit;  /* by slot: where a slot that is written lives; else its copy of its own class, or the first one,
                        NO_UNIT  when nothing names it */
    uint8_t *class_; /* by slot; one that is never written may have copies of other classes */
    uint8_t *unit_class; /* by unit */
    uint32_t *unit_slot; /* by unit: the slot it starts as */
    bool *written;       /* by slot */
    struct fill_unit {
        uint32_t fill, unit;
    } * fill_units; /* units that start as something each thread has its own of */
    uint32_t fill_unit_count;
    uint32_t *block_units; /* units that start as something each block has its own of */
    uint32_t block_unit_count;
    uint32_t *zero_units; /* units that may be read before they are written */
    uint32_t zero_unit_count;
    bool frames; /* some instruction needs a thread's frame */
    bool barriers;
    bool refused; /* the other engine runs it */
};

/* Made on first use; NULL: no memory. Any thread. */
const struct lane_code *lane_code_get(const struct ptx_module *m, struct code *k);
void lane_code_free(struct lane_code *lc);

enum group_wait { GROUP_READY, GROUP_BARRIER, GROUP_WARP, GROUP_ACTIVE };
struct group {
    uint32_t pc, mask;
    uint64_t executed; /* PTX instructions of each of its lanes since the group was made */
    uint64_t run;      /* how long it has run without a change */
    enum group_wait wait;
    bool parked; /* others first: it was seen spinning */
};

/* Why the handlers stopped. */
enum lane_stop {
    LANES_CHANGED, /* the group changed: another one goes on, or the mask is partial now, or full again */
    LANES_TURN,
    LANES_DONE, /* the group ended */
    LANES_FAULT,
    LANES_THREADS, /* the warp is to go on in threads */
};

struct lanes;
typedef const struct insn *lane_handler(struct lanes *L, const struct insn *in);

struct lanes {
    /* the running group; `mask` 0: none */
    const struct insn *insns, *stop; /* stop: where the next group stands behind the running one; NULL: none */
    lane_handler *const *handlers;   /* by enum lane_op, for this group: where plain handlers go on */
    lane_handler *const *plain;      /* the plain ones */
    struct lane_numbers *numbers;    /* shadow mode, lanes_shadow.h; NULL in others */
    const uint32_t *weight;
    uint8_t *file, *state; /* by unit, like base and stride */
    uint64_t *base;
    int64_t *stride, *rise;          /* AFFINE: lane i has base + stride * (i % 2^fold) + rise * (i / 2^fold) */
    uint32_t fold;                   /* 5, but in blocks of less than 32 columns, whose rows a warp has several of */
    uint32_t mask, live, live_count; /* live: lanes that have not ended */
    uint32_t start_pc;               /* where `executed` was last brought up to date */
    uint32_t joined;                 /* LANE_JOINED_...; 0: not in this group, or in this mode */
    int64_t turn;                    /* instructions left before others get a turn */
    uint64_t executed;               /* as in struct group */
    uint64_t run, run_mark;
    uint32_t strong;   /* volatile and atomic accesses since it was resumed; run: instructions */
    uint32_t patience; /* `strong` above this: it spins */
    uint32_t long_run; /* `run` above this: likewise */
    uint32_t pc;       /* where it stopped, and why */
    enum lane_stop reason;
    struct worker *worker;
    struct block *block;
    struct counter *counter; /* counts.h; NULL: nothing is counted */
    const struct code *code;
    const struct lane_code *lc;
    uint32_t first, lanes; /* its first thread; how many it has */
    uint32_t live_seen;    /* when lanes that wait for others were last asked */
    bool started, done;
    bool threads; /* goes on in threads */
    bool taints;  /* shadow mode: some thread's `taint` may not be 0 */
    bool alone;   /* no other group can run: activemask answers */
    struct lane_file *registers;
    struct group groups[WARP]; /* those that do not run, by ascending pc */
    uint32_t group_count;
    uint64_t extra[WARP]; /* instructions of each lane, of groups that are gone; `uneven`: some are not 0 */
    bool uneven;
    uint64_t total, longest; /* instructions of lanes that have ended: of all, and the most of one */
    uint32_t select[WARP] __attribute__((aligned(64))); /* all ones where `mask` has a bit; made for `selected` */
    uint32_t selected;
    uint8_t truth[WARP] __attribute__((aligned(64)));    /* of a comparison, by lane */
    uint64_t scratch[WARP] __attribute__((aligned(64))); /* a partial warp's results before they are blended */
};

#ifdef __x86_64__
#define LANES_HERE 1
/* [0] full warps, [1] partial ones; by enum lane_op */
extern lane_handler *const *const lane_handlers_v3[2];
#ifndef __clang__ /* which is used for fuzzing, where one set is enough to compile */
#define LANES_V4 1
extern lane_handler *const *const lane_handlers_v4[2];
#endif
#endif

/* ---- lanes_block.c ---- */
/* Whether the launch can run here; then l->lane_code and l->lane_handlers are set. */
bool lanes_launch(struct launch *l);
/* When all that is put before the plain handlers is there: plain ones go straight on to plain ones, and back to the
 * loop before others, whose frames must not pile up on the stack. False: no memory. */
bool lanes_chain(struct launch *l);
bool lanes_block_create(struct block *b);
void lanes_block_destroy(struct block *b);
void lanes_block_start(struct block *b);
/* A warp gets registers when it first runs, and gives them back when it ended: the next one finds them in the cache. */
bool lanes_start(struct lanes *L);
void lanes_release(struct lanes *L);

/* The warp's register file, if it has none yet. False: no memory. */
bool lanes_file(struct lanes *L);

/* What a unit that is filled by thread starts as in a warp; LANE_VECTOR: number by number. */
struct lane_fill {
    uint64_t base;
    int64_t stride, rise;
    uint8_t state;
};

/* ---- lanes_convoy.c ---- */
/* b->convoy, or NULL where warps are to begin by themselves. False: no memory. */
bool lanes_convoy_create(struct block *b);
void lanes_convoy_destroy(struct block *b);
/* Once per block, before its warps: does what it can; *spent: instructions of all threads. */
void lanes_convoy(struct block *b, uint64_t *spent);
/* The block in hand, or last in hand, ended so: what its lanes executed, each of them. False: its warps went on. */
bool lanes_convoy_ended(const struct block *b, uint64_t *executed);
/* The warp takes its registers over, and goes on from there. */
void lanes_convoy_leave(struct lanes *L);

/* ---- lanes_warp.c ---- */
/* Runs the warp until it ends, waits or had its turn. True: it did something. */
bool lanes_run(struct lanes *L, uint64_t *spent);
bool lanes_ready(const struct lanes *L);
/* Once per block, at its end: instructions of all lanes that did not go on in threads, added to *total, and the most of
 * one. */
void lanes_count(struct lanes *L, uint64_t *total, uint64_t *longest);
/* Writes all it knows into its threads' frames; they go on from there. */
void lanes_to_threads(struct lanes *L);

/* ---- lanes_matrix.c ---- */
/* Does a matrix instruction for a whole warp. False: nothing was done. */
bool lane_matrix(struct lanes *L, const struct insn *in);

/* ---- for handlers; those that return an instruction are handlers, or the end of one ---- */
void lane_expand(struct lanes *L, uint32_t unit); /* writes the vector of a UNIFORM or AFFINE register */
uint64_t lane_value(const struct lanes *L, uint32_t unit, uint32_t lane);
void lane_set(struct lanes *L, uint32_t unit, uint32_t lane, uint64_t value);
bool lane_same(struct lanes *L, uint32_t unit, uint32_t *value); /* the group's lanes agree on the lower 32 bits */
void lane_account(struct lanes *L, uint32_t pc);                 /* what was executed up to `pc` counts */
const struct insn *lane_leave(struct lanes *L, uint32_t pc, enum lane_stop why);
const struct insn *lane_branch(struct lanes *L, const struct insn *in, uint32_t taken, uint32_t target);
const struct insn *lane_skip(struct lanes *L, const struct insn *in, uint32_t taken, uint32_t target);
const struct insn *lane_retarget(struct lanes *L, uint32_t target);
/* All of `members` that live are in the running group. False: the group has left, to wait or to go on in threads. */
bool lane_together(struct lanes *L, const struct insn *in, uint32_t members);
bool lane_converged(struct lanes *L, const struct insn *in); /* likewise, for activemask */
lane_handler lane_switch, lane_exit, lane_sleep, lane_step, lane_meet, lane_warp_sync, lane_barrier;

#endif
