#include "shim/budget_levels.h"

enum {
    LEVEL_MAX = 16,
    SYNC_LEVEL_MAX = 6, /* what is overwritten before a free is seen by no later look */
    PATIENCE = 5,       /* intervals with room until a level goes down, */
    AGAIN = 2,          /* and until the next one does */
};
/* With less than this much of the budget used there is room; going down must not use more than the second. Between the
 * two nothing changes, or levels would swing. */
#define ROOM_SHARE  0.6
#define AFTER_SHARE 0.85
#define WORTH_SHARE 0.05 /* of the tool's time: a part that costs less is not worth a level */

static uint32_t level_max(unsigned part)
{
    return part == CAP_BUDGET_SYNC_LOOKS ? SYNC_LEVEL_MAX : LEVEL_MAX;
}

/* Halves what costs much, in the order of the parts, until the excess would be gone. The last part only when no other
 * one is left. */
static double do_less(struct budget_levels *l, struct budget_interval *now, double own, double excess)
{
    bool changed = true;
    while (excess > 0 && changed) {
        changed = false;
        for (unsigned p = 0; p < CAP_BUDGET_PARTS && excess > 0; p++) {
            if (now[p].spent < own * WORTH_SHARE || l->level[p] >= level_max(p) ||
                (p == CAP_BUDGET_SYNC_LOOKS && changed))
                continue;
            l->level[p]++;
            now[p].spent /= 2;
            excess -= now[p].spent;
            changed = true;
        }
    }
    return excess;
}

/* Doubles what was given up last, if that fits. */
static void do_more(struct budget_levels *l, const struct budget_interval *now, double own, double allowed)
{
    for (unsigned p = CAP_BUDGET_PARTS; p-- > 0;) {
        if (!l->level[p])
            continue;
        double items = (now[p].taken + now[p].skipped) / (double)(1u << (l->level[p] - 1));
        if (own - now[p].spent + items * l->item[p] > allowed * AFTER_SHARE)
            continue;
        l->level[p]--;
        return;
    }
}

bool budget_decide(struct budget_levels *l, struct budget_interval now[CAP_BUDGET_PARTS], double own, double allowed)
{
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++)
        if (now[p].taken > 0)
            l->item[p] = now[p].spent / now[p].taken;
    if (own > allowed) {
        l->room = 0;
        return do_less(l, now, own, own - allowed) <= 0;
    }
    l->room = own < allowed * ROOM_SHARE ? l->room + 1 : 0;
    if (l->room >= PATIENCE) {
        do_more(l, now, own, allowed);
        l->room = PATIENCE - AGAIN;
    }
    return true;
}
