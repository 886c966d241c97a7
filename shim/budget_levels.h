/* budget_levels.h - which part does how much of what can be left out: the decision of budget.c, without clocks. */
#ifndef SHIM_BUDGET_LEVELS_H
#define SHIM_BUDGET_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include <opsdebug/capture.h>

struct budget_interval { /* of one part: what it cost (any unit), how many items were done and left out */
    double spent, taken, skipped;
};
struct budget_levels {
    uint32_t level[CAP_BUDGET_PARTS]; /* one of 2^level is done */
    double item[CAP_BUDGET_PARTS];    /* what one item cost when the part was last measured */
    unsigned room;                    /* intervals in a row with room in the budget */
};

/* After an interval in which the tool as a whole cost `own` where `allowed` was its budget. `now` is used up. False:
 * too much was spent, and nothing more can be left out. */
bool budget_decide(struct budget_levels *levels, struct budget_interval now[CAP_BUDGET_PARTS], double own,
                   double allowed);

#endif
