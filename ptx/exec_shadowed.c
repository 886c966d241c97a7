/* exec_shadowed.c - the loop that computes every float a second time, in double precision. */
#define RUN     run_shadow
#define CHECKED 0
#define SHADOW  1
#include "ptx/exec_loop.inc"
