/* doors.h - the ways a program gets at a driver function: dlsym, dlvsym, cuGetProcAddress (direct binding needs no
 * code).
 *
 * One function answers them all: substitute the wrapper when, and only when, the real look-up found the very function
 * that a row of hooks.def names. Looking up never starts a capture and never calls into the driver beyond its own
 * resolver.
 */
#ifndef SHIM_DOORS_H
#define SHIM_DOORS_H

#include <stdbool.h>

/* The next dlsym behind ours, called with our own address as the caller: RTLD_NEXT means "after the shim". */
void *doors_real_dlsym(void *handle, const char *symbol);

/* A symbol of the loaded driver (or, with `runtime`, of the one loaded shared cudart), past every interposer; NULL
 * without. */
void *doors_library_symbol(bool runtime, const char *symbol);

/* Whether `function` lies in a loaded object whose soname begins with `soname`. */
bool doors_belongs(void *function, const char *soname);

/* The function that a caller bound to `symbol` of version `library` would get without us: the next one in the program's
 * order, or that of the loaded library of this name. NULL without. */
void *doors_versioned_symbol(const char *library, const char *symbol);

/* Names that were looked up and that nobody here knows, one per call with *cursor from 0; NULL at the end. */
const char *doors_unknown_name(unsigned *cursor);
/* Names for which a newer version than ours was handed out unwrapped, likewise. */
const char *doors_newer_name(unsigned *cursor);
/* Libraries of which the program uses a second one, whose functions it was handed unwrapped, likewise. */
const char *doors_second_library(unsigned *cursor);

#endif
