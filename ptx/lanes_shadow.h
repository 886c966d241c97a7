/* lanes_shadow.h - shadow mode in lock-step: shadows of lane registers, beside those of exec_shadow.h, which are of the
 * slots of a thread.
 *
 *     lanes_shadow.c           registers' shadows; what they are in threads' frames and back
 *     lanes_shadow_each.c      arithmetic on one lane, by the functions of exec_shadow_ops.inc: what is not done below
 *     lanes_shadow_kit.inc     registers' shadows as vectors, lanes_shadow_float.inc arithmetic,
 * lanes_shadow_memory.inc loads and stores, lanes_shadow_ops.inc the handlers: compiled as lanes_shadow_v*.c
 *     exec_shadow_step.c       an instruction of one thread, for everything else
 *
 * A handler finds the shadow of its result, then goes on to the plain handler of lanes_ops.inc, or computes the value
 * itself. Most registers of most kernels are integers without any shadow: these cost one test.
 */
#ifndef PTX_LANES_SHADOW_H
#define PTX_LANES_SHADOW_H

#include <string.h>
#include "ptx/exec_shadow.h"
#include "ptx/lanes.h"

/* The shadows of 32 lanes, taken apart: `word` is what follows `origin` in struct ptx_shadow_value. */
struct lane_number {
    double wide[WARP];
    uint32_t origin[WARP], word[WARP];
} __attribute__((aligned(64)));
#define WORD_DEPTH    UINT32_C(0x00ffffff)
#define WORD_KIND     UINT32_C(0x0f000000)
#define WORD_FLAGS    UINT32_C(0xf0000000)
#define WORD_TAG      (WORD_KIND | WORD_FLAGS)
#define WORD_OF(kind) ((uint32_t)(kind) << 24)
#define WORD_SHIFT    28 /* of the flags */

/* What may be found in a register: a bit per kind, above these the flags. 0: only numbers of kind NONE without flags.
 */
#define HAS(kind)     (1u << (kind))
#define HAS_FLAGS(f)  ((uint32_t)(f) << 16)
#define HAS_CONTROL   HAS_FLAGS(FLAGS_CONTROL)
#define HAS_ROUNDED   HAS_FLAGS(PTX_SHADOW_INEXACT | PTX_SHADOW_LOST)
#define HAS_ANY_FLAGS HAS_FLAGS(0xf)

struct lane_numbers {
    uint32_t *summary; /* by unit */
    uint32_t *memory;  /* by unit, while the summary is 0: the lanes whose origin is ORIGIN_MEMORY */
    struct lane_number (
        *of)[3];  /* by unit, while it is not: the number, and from kind F64 on its pair's low and high */
    bool framed;  /* the threads have frames */
    bool tainted; /* some thread's `taint` is not 0 */
    /* one lane's operands and result, as exec_shadow_ops.inc wants them: by slot */
    union slot *R;
    struct ptx_shadow_value *S;
    struct number_pair *P;
};

struct lane_numbers *lane_numbers_create(uint32_t units, uint32_t slots);
void lane_numbers_free(struct lane_numbers *n);
/* Whether the launch's shadows can be kept here; then its handlers are set. */
bool lane_numbers_launch(struct launch *l, bool avx512);
void lane_numbers_start(struct lanes *L);
/* The threads get frames, if they have none yet. False: no memory. */
bool lane_numbers_frames(struct lanes *L);

/* One lane of a register, as a thread has it. `p` is set where the kind has a pair. */
void lane_number_get(const struct lane_numbers *n, uint32_t unit, uint32_t lane, struct ptx_shadow_value *s,
                     struct number_pair *p);
void lane_number_set(struct lane_numbers *n, uint32_t unit, uint32_t lane, const struct ptx_shadow_value *s,
                     const struct number_pair *p);
/* Makes vectors of a register's shadows that have none. */
void lane_number_expand(struct lane_numbers *n, uint32_t unit);
/* Finds the summary again, of the lanes that live. */
void lane_number_tighten(const struct lanes *L, uint32_t unit);
/* What was written has no shadow, in all lanes that live or in those of the group. */
void lane_number_clear(struct lanes *L, uint32_t unit, bool partial);

/* What the frame of a lane's thread needs to do an instruction, and what it has done to it. */
void lane_number_lend(struct lanes *L, const struct operands *o, uint32_t lane);
void lane_number_give_back(struct lanes *L, const struct operands *o, uint32_t lane);
void lane_number_return(struct lanes *L, uint32_t slot, uint32_t lane);
void lane_numbers_settle(struct lanes *L, const struct operands *o); /* after the last lane */
/* bar.red: the flags of the predicates of the lanes that come, and of the lanes. */
unsigned lane_numbers_taint(const struct lanes *L, uint32_t slot);
/* The group branched by this register. */
void lane_numbers_branch(struct lanes *L, uint32_t unit);
void lane_numbers_to_thread(struct lanes *L, uint32_t lane);
uint64_t lane_numbers_tainted_threads(const struct lanes *L);

/* ---- lanes_shadow_each.c ---- */
/* A pure micro-operation on one lane: its result in R, S and P of L->numbers, by slots. `in`: of lane_code. */
void lane_number_each(struct lanes *L, const struct insn *in, uint32_t lane);
/* The group, lane by lane. */
lane_handler lane_numbers_each;
/* How many operands a pure micro-operation reads. */
extern const uint8_t lane_number_sources[OP_COUNT];

#ifdef LANES_HERE
extern lane_handler *const *const lane_shadow_handlers_v3[2];
#ifdef LANES_V4
extern lane_handler *const *const lane_shadow_handlers_v4[2];
#endif
#endif

enum stop run_shadow_step(struct worker *w, struct block *b, struct thread *t);

#endif
