/* object.h - the loaded ELF objects, so that addresses in stacks can be named later, also on another machine. */
#ifndef SHIM_OBJECT_H
#define SHIM_OBJECT_H

/* Writes a CAP_OBJECT for every object not written yet. Costs one dl_iterate_phdr step when nothing was loaded since.
 */
void object_refresh(void);

#endif
