/* guard_sharing.h - whether the program may hand its memory to other processes or devices, for the word `careful` of
 * OPSDEBUG_GUARD and OPSDEBUG_SENTINELS.
 *
 * Memory with guard pages cannot be exported by cuIpcGetMemHandle, and other devices reach it only when they were
 * allowed to. Memory with a redzone in front is exported with it: another process finds the contents that much later.
 * Who does either unasked must know that nobody will try.
 */
#ifndef SHIM_GUARD_SHARING_H
#define SHIM_GUARD_SHARING_H

#include <stdbool.h>

#include <opsdebug/capture.h>

/* True when a loaded object imports an export function, when one was looked up by other than a shared cudart (which
 * looks everything up), when one was called, or when there are several devices. Cheap after the first time. */
bool guard_sharing_possible(void);
/* The same of export alone, by the functions that can export memory of this kind. */
bool guard_export_possible(enum cap_alloc_kind kind);

#endif
