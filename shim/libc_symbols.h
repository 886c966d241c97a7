/* libc_symbols.h - finds libc's own dlsym and dlvsym without calling either. */
#ifndef SHIM_LIBC_SYMBOLS_H
#define SHIM_LIBC_SYMBOLS_H

/* Walks the dynamic symbol tables of libc.so.6 (glibc 2.34 and later) and libdl.so.2 (before). NULL when neither has
 * it. */
void *libc_symbols_find(const char *name);

#endif
