/* fault.h - a device with flaws on request (SOFTGPU_FAULTS), so that a tool can be tested for finding them.
 *
 * What a flaw does to memory is done after the launch to the bytes that it wrote, with what was there before at hand;
 * nothing here shares code with whatever is to find it. Rules count launches in the order in which the program makes
 * them, so a run is repeatable. Without SOFTGPU_FAULTS none of this costs anything.
 */
#ifndef SOFTGPU_FAULT_H
#define SOFTGPU_FAULT_H

#include <pthread.h>

#include "softgpu/driver.h"

#define FAULT_KINDS(K)                                                                                                 \
    K(NAN, "nan")               /* a written word becomes NaN */                                                       \
    K(BITFLIP, "bitflip")       /* one of the upper bits of a written word flips */                                    \
    K(DROPSTORE, "dropstore")   /* a written word keeps its old value */                                               \
    K(TAIL, "tail")             /* the last words written to an allocation keep their old values */                    \
    K(STALE, "stale")           /* the launch writes nothing */                                                        \
    K(REORDER, "reorder")       /* blocks and warps in another order */                                                \
    K(LAUNCHFAIL, "launchfail") /* the launch is refused */                                                            \
    K(STICKY, "sticky")         /* the launch ends in an error of the context */                                       \
    K(SLOWMEM, "slowmem")       /* it takes longer by a factor */                                                      \
    K(SLOWLAUNCH, "slowlaunch") /* the call takes longer by a factor */                                                \
    K(ALLOCFAIL, "allocfail")   /* an allocation fails */                                                              \
    K(TF32, "tf32")             /* operands of .f32 products rounded to 10 bits of mantissa */                         \
    K(FP16ACC, "fp16acc")       /* results of .f32 sums rounded to half precision */                                   \
    K(FTZ, "ftz")               /* .f32 arithmetic flushes subnormals to zero */
enum fault_kind {
#define K(id, text) FAULT_##id,
    FAULT_KINDS(K)
#undef K
        FAULT_COUNT
};

/* What is to happen to one launch. */
struct fault_plan {
    uint32_t kinds;           /* bits 1 << enum fault_kind */
    double rate[FAULT_COUNT]; /* 0: as if not given */
    uint64_t seed[FAULT_COUNT];
};
static inline bool fault_has(const struct fault_plan *plan, enum fault_kind kind)
{
    return plan->kinds >> kind & 1;
}

/* Reads SOFTGPU_FAULTS, once; a rule that cannot be read is a config_problem(). */
void fault_read(void);
/* Counts a launch (or an operator of a library) of that name, and says what is to happen to it. */
void fault_on_call(const char *name, struct fault_plan *plan);
/* Says in the log that the error of a launch was asked for. */
void fault_log_sticky(const char *name);
/* Whether an allocation by that function is to fail. */
bool fault_on_alloc(const char *function);

/* Flaws that are made by changing the kernel's text (fault_text.c). */
enum { FAULT_TEXT_KINDS = 1 << FAULT_TF32 | 1 << FAULT_FP16ACC | 1 << FAULT_FTZ };
bool fault_changes_text(void); /* some rule does: images keep their text */
/* The text with flaws `kinds`, line for line, in a new buffer (free()); NULL when memory is out. */
char *fault_rewrite(const char *text, size_t bytes, uint32_t kinds, size_t *out_bytes);

/* Watches what a launch writes: memory.find and its context for ptx_launch. */
struct watched;
struct fault_watch {
    pthread_mutex_t lock;
    struct watched *list;
};
bool fault_needs_watch(const struct fault_plan *plan);
void fault_watch_begin(struct fault_watch *watch);
bool fault_watch_find(void *watch, uint64_t address, struct ptx_range *range);
void fault_watch_end(struct fault_watch *watch, const struct fault_plan *plan); /* does the damage */

#endif
