/* guard_sharing.h - whether the program may hand its memory to other processes or devices, for OPSDEBUG_GUARD=careful.
 *
 * Memory with guard pages cannot be exported by cuIpcGetMemHandle, and other devices reach it only when they were
 * allowed to. Who guards allocations unasked must therefore know that nobody will try.
 */
#ifndef SHIM_GUARD_SHARING_H
#define SHIM_GUARD_SHARING_H

#include <stdbool.h>

/* True when a loaded object imports an export function, when one was looked up by other than a shared cudart (which
 * looks everything up), when one was called, or when there are several devices. Cheap after the first time. */
bool guard_sharing_possible(void);

#endif
