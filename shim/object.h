/* object.h - the loaded ELF objects, so that addresses in stacks can be named later, also on another machine. */
#ifndef SHIM_OBJECT_H
#define SHIM_OBJECT_H

#include <stdint.h>

/* Writes a CAP_OBJECT for every object not written yet. Costs one dl_iterate_phdr step when nothing was loaded since.
 */
void object_refresh(void);

/* A library was closed: its addresses may soon be another's. */
void object_closed(void);
/* Which time of the address space it is: another number once an object has taken another one's addresses, whose stacks
 * then mean something else. Looks when anything was closed since this thread's last call. */
uint32_t object_epoch(void);

#endif
