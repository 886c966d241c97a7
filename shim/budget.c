#include "shim/budget.h"

#include "shim/budget_levels.h"
#include "shim/capture_write.h"
#include "shim/options.h"
#include "shim/shim.h"

#define INTERVAL_NS UINT64_C(100000000)

bool budget_on;

static struct cap_budget *parts[CAP_BUDGET_PARTS]; /* in the capture */
static uint32_t turns[CAP_BUDGET_PARTS];           /* atomic */
static uint64_t device_tsc[CAP_BUDGET_PARTS];      /* atomic: what the device did for it */

/* Behind `deciding`. */
static bool deciding; /* atomic */
static struct {
    uint64_t spent, on_device, taken, skipped;
} seen[CAP_BUDGET_PARTS];
static struct budget_levels levels;
static uint64_t last_tsc, last_own;
static uint64_t next_tsc; /* atomic */
static bool noted;

void budget_start(void)
{
    if (options.budget <= 0)
        return;
    for (unsigned i = 0; i < CAP_BUDGET_PARTS; i++) {
        parts[i] = capture_pin(CAP_BUDGET, sizeof *parts[i]);
        if (!parts[i])
            return;
        parts[i]->part = i;
        parts[i]->share = (float)options.budget;
    }
    last_tsc = next_tsc = __builtin_ia32_rdtsc();
    budget_on = true;
}

bool budget_sample(enum cap_budget_part part)
{
    uint32_t level = __atomic_load_n(&parts[part]->level, __ATOMIC_RELAXED);
    /* Scattered, so that a program that repeats itself does not have the same launch of each round left out. */
    uint32_t turn = level ? __atomic_fetch_add(&turns[part], 1, __ATOMIC_RELAXED) * 2654435761u : 0;
    bool taken = !level || turn >> (32 - level) == 0;
    __atomic_fetch_add(taken ? &parts[part]->taken : &parts[part]->skipped, 1, __ATOMIC_RELAXED);
    return taken;
}

bool budget_lowered(enum cap_budget_part part)
{
    return budget_on && __atomic_load_n(&parts[part]->level, __ATOMIC_RELAXED) > 0;
}

void budget_spent(const struct budget_span *span)
{
    __atomic_fetch_add(&parts[span->part]->own_tsc, __builtin_ia32_rdtsc() - span->begin, __ATOMIC_RELAXED);
}

void budget_spent_on_device(enum cap_budget_part part, uint64_t ns)
{
    uint64_t ticks = capture_ns_to_tsc(ns);
    __atomic_fetch_add(&device_tsc[part], ticks, __ATOMIC_RELAXED);
    CAPTURE_COUNT(budget_device_tsc, ticks);
}

void budget_started(uint64_t own_tsc)
{
    last_own = own_tsc;
}

/* `*on_device`: the device's share of it, which is not in the tool's own time. */
static struct budget_interval take_interval(unsigned part, double *on_device)
{
    uint64_t device = __atomic_load_n(&device_tsc[part], __ATOMIC_RELAXED);
    uint64_t spent = __atomic_load_n(&parts[part]->own_tsc, __ATOMIC_RELAXED);
    uint64_t taken = __atomic_load_n(&parts[part]->taken, __ATOMIC_RELAXED);
    uint64_t skipped = __atomic_load_n(&parts[part]->skipped, __ATOMIC_RELAXED);
    *on_device = (double)(device - seen[part].on_device);
    struct budget_interval i = {(double)(spent - seen[part].spent) + *on_device, (double)(taken - seen[part].taken),
                                (double)(skipped - seen[part].skipped)};
    seen[part].spent = spent;
    seen[part].on_device = device;
    seen[part].taken = taken;
    seen[part].skipped = skipped;
    return i;
}

static void decide(uint64_t tsc)
{
    struct budget_interval now[CAP_BUDGET_PARTS];
    uint64_t own_total = capture_own_tsc();
    double wall = (double)(tsc - last_tsc), own = (double)(own_total - last_own), allowed = wall * options.budget;
    last_tsc = tsc;
    last_own = own_total;
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++) {
        double on_device;
        now[p] = take_interval(p, &on_device);
        own += on_device;
    }
    if (options.budget >= 1) /* measured only */
        return;
    bool kept = budget_decide(&levels, now, own, allowed);
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++) {
        __atomic_store_n(&parts[p]->level, levels.level[p], __ATOMIC_RELAXED);
        if (levels.level[p] > parts[p]->highest)
            __atomic_store_n(&parts[p]->highest, levels.level[p], __ATOMIC_RELAXED);
    }
    if (!kept && !noted) {
        noted = true;
        shim_note(CAP_NOTE_INFO, "the budget of %.3g %% was exceeded where nothing more could be left out",
                  options.budget * 100);
    }
}

void budget_tick(void)
{
    uint64_t tsc = __builtin_ia32_rdtsc(), due = __atomic_load_n(&next_tsc, __ATOMIC_RELAXED);
    if (!budget_on || tsc < due || __atomic_exchange_n(&deciding, true, __ATOMIC_ACQUIRE))
        return;
    if (tsc > last_tsc && capture_tsc_to_ns(tsc - last_tsc) >= INTERVAL_NS)
        decide(tsc);
    __atomic_store_n(&next_tsc, tsc + capture_ns_to_tsc(INTERVAL_NS), __ATOMIC_RELAXED);
    __atomic_store_n(&deciding, false, __ATOMIC_RELEASE);
}
