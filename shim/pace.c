#include "shim/pace.h"

#include <stdlib.h>

#include "shim/capture_write.h"
#include "shim/options.h"

enum {
    ADVANCE_S = 5,          /* the allowance begins with what so much time gives */
    AT_LEAST_MS = 1000,     /* a look that is due is not left out for longer */
    COST_FOLLOWS_ONE_OF = 4 /* the cost is a mean that forgets: a quarter is the newest measurement */
};

struct kind {
    uint64_t spent_ns, cost_ns; /* atomic: by all looks, and by one, 0: not measured yet */
    uint64_t unpriced;          /* atomic: looks that were taken before that */
    uint64_t last_tsc;          /* atomic: of the last look */
};

struct pace {
    uint64_t start_tsc;
    struct kind kinds[CAP_PACE_KINDS];
};

static struct cap_pace *records[CAP_PACE_KINDS]; /* in the capture */
static bool pace_on;

void pace_start(void)
{
    if (options.look_share <= 0)
        return;
    for (unsigned i = 0; i < CAP_PACE_KINDS; i++) {
        records[i] = capture_pin(CAP_PACE, sizeof *records[i]);
        if (!records[i])
            return;
        records[i]->kind = i;
        records[i]->share = (float)options.look_share;
    }
    pace_on = true;
}

struct pace *pace_make(void)
{
    struct pace *pace = pace_on ? calloc(1, sizeof *pace) : NULL;
    if (pace)
        pace->start_tsc = __builtin_ia32_rdtsc();
    return pace;
}

static void spend(struct kind *k, enum cap_pace_kind kind, uint64_t ns)
{
    __atomic_fetch_add(&k->spent_ns, ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&records[kind]->device_ns, ns, __ATOMIC_RELAXED);
}

void pace_measured(struct pace *pace, enum cap_pace_kind kind, uint64_t ns)
{
    if (!pace)
        return;
    struct kind *k = &pace->kinds[kind];
    uint64_t cost = __atomic_load_n(&k->cost_ns, __ATOMIC_RELAXED);
    cost = cost ? cost - cost / COST_FOLLOWS_ONE_OF + ns / COST_FOLLOWS_ONE_OF : ns;
    __atomic_store_n(&k->cost_ns, cost, __ATOMIC_RELAXED);
    uint64_t unpriced = __atomic_exchange_n(&k->unpriced, 0, __ATOMIC_RELAXED);
    if (unpriced)
        spend(k, kind, unpriced * cost);
}

static void count_taken(struct kind *k, enum cap_pace_kind kind, uint64_t tsc)
{
    uint64_t cost = __atomic_load_n(&k->cost_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&k->last_tsc, tsc, __ATOMIC_RELAXED);
    __atomic_fetch_add(&records[kind]->taken, 1, __ATOMIC_RELAXED);
    if (cost)
        spend(k, kind, cost);
    else
        __atomic_fetch_add(&k->unpriced, 1, __ATOMIC_RELAXED);
}

static bool used_up(const struct pace *pace, const struct kind *k, uint64_t tsc)
{
    double elapsed = (double)capture_tsc_to_ns(tsc - pace->start_tsc);
    double allowed = (elapsed + ADVANCE_S * 1e9) * options.look_share;
    uint64_t last = __atomic_load_n(&k->last_tsc, __ATOMIC_RELAXED);
    return (double)__atomic_load_n(&k->spent_ns, __ATOMIC_RELAXED) > allowed &&
           (tsc <= last || capture_tsc_to_ns(tsc - last) < AT_LEAST_MS * UINT64_C(1000000));
}

bool pace_takes(struct pace *pace, enum cap_pace_kind kind)
{
    uint64_t tsc = __builtin_ia32_rdtsc();
    if (!pace)
        return true;
    if (used_up(pace, &pace->kinds[kind], tsc))
        return false;
    count_taken(&pace->kinds[kind], kind, tsc);
    return true;
}

void pace_takes_anyway(struct pace *pace, enum cap_pace_kind kind)
{
    if (pace)
        count_taken(&pace->kinds[kind], kind, __builtin_ia32_rdtsc());
}

void pace_left_out(enum cap_pace_kind kind)
{
    if (pace_on)
        __atomic_fetch_add(&records[kind]->skipped, 1, __ATOMIC_RELAXED);
}
