/* deadline.h - bounded waiting: a moment on the monotonic clock until which something may be waited for. Naps are
 * longer than asked for, more so on a busy machine, so counting them bounds nothing. */
#ifndef SHIM_DEADLINE_H
#define SHIM_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "shim/no_cancel.h"

struct deadline {
    uint64_t ns;
};

static inline uint64_t deadline_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline struct deadline deadline_in(unsigned milliseconds)
{
    return (struct deadline){deadline_now() + milliseconds * UINT64_C(1000000)};
}

static inline bool deadline_over(struct deadline deadline)
{
    return deadline_now() >= deadline.ns;
}

static inline struct deadline deadline_earlier(struct deadline a, struct deadline b)
{
    return a.ns < b.ns ? a : b;
}

/* Sleeps a little, longer each time (50 us to 1 ms): nap starts as 0. */
static inline void deadline_nap(unsigned *nap)
{
    *nap = *nap ? *nap * 5 / 4 : 50000;
    *nap = *nap > 1000000 ? 1000000 : *nap;
    const struct timespec time = {0, *nap};
    NO_CANCEL;
    nanosleep(&time, NULL);
}

#endif
