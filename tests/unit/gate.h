/* gate.h - work that stays in a stream until a test lets it go, and flags that show what has run. */
#ifndef TESTS_UNIT_GATE_H
#define TESTS_UNIT_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* An operation that stays in its stream until the gate opens: cuLaunchHostFunc(stream, wait_at, &gate), or
 * cudaLaunchHostFunc(). */
struct gate {
    atomic_bool open, reached;
};

static inline void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static inline void wait_at(void *data)
{
    struct gate *g = data;
    atomic_store(&g->reached, true);
    while (!atomic_load(&g->open))
        sleep_ms(1);
}

static inline void set_flag(void *data)
{
    atomic_store((atomic_bool *)data, true);
}

/* Whether the flag is set within two seconds. */
static inline bool soon(atomic_bool *flag)
{
    for (int i = 0; i < 2000 && !atomic_load(flag); i++)
        sleep_ms(1);
    return atomic_load(flag);
}

/* Whether it stays unset for a while. */
static inline bool not_yet(atomic_bool *flag)
{
    sleep_ms(20);
    return !atomic_load(flag);
}

#endif
