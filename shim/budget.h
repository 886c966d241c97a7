/* budget.h - OPSDEBUG_BUDGET: the share of the program's time that the tool may take, kept by doing less of what can be
 * left out.
 *
 * Each part has a level: at level N one of 2^N of its items is done. Parts measure what they cost; ten times a second a
 * wrapper compares the tool's own time with the budget and raises the levels of parts that cost much, in the order
 * below, or lowers one when there has been room for a while. What was skipped is counted in the part's CAP_BUDGET
 * record. Records of allocations, frees, copies, launches and waits are never left out: all else depends on them.
 */
#ifndef SHIM_BUDGET_H
#define SHIM_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <opsdebug/capture.h>

void budget_start(void);               /* the options are read and the capture is open */
void budget_started(uint64_t own_tsc); /* what the start of the shim itself took is no reason to do less */

extern bool budget_on;
bool budget_sample(enum cap_budget_part part); /* with a budget: is it this one's turn? Counts either way */

/* Whether an item of the part is to be done now. */
static inline bool budget_takes(enum cap_budget_part part)
{
    return !budget_on || budget_sample(part);
}

bool budget_lowered(enum cap_budget_part part); /* not all of the part is done now */

/* Everything up to the end of the block counts as the part's cost. */
struct budget_span {
    uint64_t begin; /* 0: no budget, nothing is measured */
    enum cap_budget_part part;
};
static inline struct budget_span budget_span(enum cap_budget_part part)
{
    return (struct budget_span){budget_on ? __builtin_ia32_rdtsc() : 0, part};
}
void budget_spent(const struct budget_span *span);
static inline void budget_span_end(const struct budget_span *span)
{
    if (span->begin)
        budget_spent(span);
}
void budget_spent_on_device(enum cap_budget_part part, uint64_t ns); /* see device_cost.h */
#define BUDGET_SPAN(of) __attribute__((cleanup(budget_span_end))) const struct budget_span span = budget_span(of)

void budget_tick(void); /* now and then, with the thread's counters flushed */

#endif
