/* name.h - mangled C++ names for people (libiberty). Results are new strings, free with free(); NULL when memory runs
 * out. */
#ifndef ANALYZER_NAME_H
#define ANALYZER_NAME_H

#include <stdbool.h>

/* Without return type and parameters, template arguments kept: "ns::kernel<float, 4>". What is not mangled is copied.
 * ABI tags ("[abi:v1]": numba writes its whole set of compiler flags there) are left out of both. */
char *name_short(const char *mangled);
/* With parameters: "void ns::kernel<float, 4>(float*, int)". */
char *name_full(const char *mangled);
/* The words, one after the other, as a shell takes them: quoted where a character would mean something to it. `words`
 * ends with an empty one. */
char *name_shell(const char *words);
/* Is `file` (as in debug information) the program's own source? Not a header of CUDA's or of the compiler, not a stub
 * that nvcc writes for launches. */
bool name_own_source(const char *file);
/* The last part of a path; points into it. */
const char *name_file(const char *path);

#endif
