#include "shim/device_cost.h"

#include <stdlib.h>

#include "shim/budget.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/options.h"
#include "shim/pace.h"

enum {
    PAIRS = 64,            /* in flight; what comes beyond is not measured */
    LOOKS_FIRST = 8,       /* so many looks of each kind are measured, */
    LOOKS_ONE_OF = 8,      /* then one of so many: two events cost as much as a look */
    LOOKS_OF_A_LAUNCH = 2, /* health looks: before and after */
};

enum pair_state { PAIR_FREE, PAIR_OPEN, PAIR_PENDING, PAIR_BROKEN };
struct cost_pair {
    uint32_t state; /* atomic */
    uint32_t weight;
    enum cap_budget_part part;
    CUevent begin, end;
};
struct device_costs {
    struct cost_pair pairs[PAIRS];
    uint32_t turns[CAP_BUDGET_PARTS]; /* atomic */
    uint32_t pending;                 /* atomic: pairs that wait to be read */
};

struct device_costs *device_costs_make(void)
{
    if (!(budget_on || options.look_share > 0) || !driver.cuEventCreate || !driver.cuEventRecord ||
        !driver.cuEventQuery || !driver.cuEventElapsedTime)
        return NULL;
    return calloc(1, sizeof(struct device_costs));
}

static bool events_of(struct cost_pair *pair)
{
    return (pair->begin || driver.cuEventCreate(&pair->begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
           (pair->end || driver.cuEventCreate(&pair->end, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
}

static struct cost_pair *take_pair(struct device_costs *costs)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        uint32_t unused = PAIR_FREE;
        if (__atomic_compare_exchange_n(&costs->pairs[i].state, &unused, PAIR_OPEN, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return &costs->pairs[i];
    }
    return NULL;
}

static void set_state(struct cost_pair *pair, enum pair_state state)
{
    __atomic_store_n(&pair->state, state, __ATOMIC_RELEASE);
}

void device_cost_begin(struct device_cost *cost, enum cap_budget_part part, struct tracked_stream *stream)
{
    bool copies = part == CAP_BUDGET_SNAPSHOTS;
    struct device_work *work = budget_on || !copies ? device_work(stream->context) : NULL;
    struct device_costs *costs = work ? work->costs : NULL;
    *cost = (struct device_cost){NULL, stream, costs};
    if (!costs)
        return;
    uint32_t turn = __atomic_fetch_add(&costs->turns[part], 1, __ATOMIC_RELAXED);
    uint32_t weight = copies || turn < LOOKS_FIRST ? 1 : LOOKS_ONE_OF;
    if (turn % weight)
        return;
    struct cost_pair *pair = take_pair(costs);
    if (!pair)
        return;
    pair->part = part;
    pair->weight = weight;
    if (events_of(pair) && driver.cuEventRecord(pair->begin, stream->handle) == CUDA_SUCCESS)
        cost->pair = pair;
    else
        set_state(pair, PAIR_BROKEN);
}

void device_cost_end(const struct device_cost *cost)
{
    if (!cost->pair)
        return;
    bool ok = driver.cuEventRecord(cost->pair->end, cost->stream->handle) == CUDA_SUCCESS;
    set_state(cost->pair, ok ? PAIR_PENDING : PAIR_BROKEN);
    if (ok)
        __atomic_fetch_add(&cost->costs->pending, 1, __ATOMIC_RELEASE);
}

static void measured(struct pace *pace, const struct cost_pair *pair, uint64_t ns)
{
    if (budget_on)
        budget_spent_on_device(pair->part, ns * pair->weight);
    if (pair->part == CAP_BUDGET_LOOKS)
        pace_measured(pace, CAP_PACE_REDZONES, ns);
    else if (pair->part == CAP_BUDGET_HEALTH)
        pace_measured(pace, CAP_PACE_HEALTH, LOOKS_OF_A_LAUNCH * ns);
}

void device_costs_collect(struct device_work *work)
{
    struct device_costs *costs = work->costs;
    for (unsigned i = 0; i < PAIRS && __atomic_load_n(&costs->pending, __ATOMIC_ACQUIRE); i++) {
        struct cost_pair *pair = &costs->pairs[i];
        uint32_t waiting = PAIR_PENDING;
        float milliseconds = 0;
        if (!__atomic_compare_exchange_n(&pair->state, &waiting, PAIR_OPEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        CUresult done = driver.cuEventQuery(pair->end);
        if (done == CUDA_SUCCESS && driver.cuEventElapsedTime(&milliseconds, pair->begin, pair->end) == CUDA_SUCCESS &&
            milliseconds > 0)
            measured(work->pace, pair, (uint64_t)((double)milliseconds * 1e6));
        if (done != CUDA_ERROR_NOT_READY)
            __atomic_fetch_sub(&costs->pending, 1, __ATOMIC_RELAXED);
        set_state(pair, done == CUDA_SUCCESS ? PAIR_FREE : done == CUDA_ERROR_NOT_READY ? PAIR_PENDING : PAIR_BROKEN);
    }
}
