/* shim.h - the life of the shim in a process: idle, recording, stepped aside, passive.
 *
 * Idle until the first hooked driver call; a program that never makes one is not touched. A child of fork (or of a raw
 * clone) whose parent was recording is passive: everything passes through, and the parent's files are left alone. A
 * failure of ours means stepping aside: no more records or device work, but the tables go on, since the program's
 * pointers depend on them.
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/hooks.h"

enum shim_state { SHIM_IDLE, SHIM_STARTING, SHIM_RECORDING, SHIM_ASIDE, SHIM_PASSIVE };

/* What wrappers ask at every call, in one word: the state in the process that records, 0 in its children (see
 * own_page in shim.c) and before the first call. */
extern uint64_t *shim_live; /* atomic, and what it points to */

/* Whether wrappers work in this process; starts the capture at the first call. */
bool shim_enter(void);

static inline uint64_t shim_live_state(void)
{
    return __atomic_load_n(__atomic_load_n(&shim_live, __ATOMIC_ACQUIRE), __ATOMIC_ACQUIRE);
}

static inline bool shim_is_recording(void)
{
    return shim_live_state() == SHIM_RECORDING;
}

bool shim_is_idle(void);  /* no hooked driver call was made yet */
bool shim_is_owner(void); /* this process started the capture (or nobody did) */

void shim_step_aside(const char *reason);

/* A sticky error was returned: the context can do nothing more. What lies in host memory is still written out. */
void shim_device_lost(CUresult result);
bool shim_device_usable(void);

/* After a real call: makes our exit handler the last registered, so that it runs before the driver's. */
void shim_register_exit(void);
extern bool shim_exit_registered; /* atomic */

void shim_note(int kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The library's own code, for leaving its frames out of stacks. */
bool shim_owns_address(uintptr_t address);

#endif
