/* exec_shadow_step.c - the shadow loop as a step, as exec_step.c is the plain one's: for the lock-step engine. */
#define RUN     run_shadow_step
#define CHECKED 0
#define SHADOW  1
#define STEP    1
#include "ptx/lanes_shadow.h"
#include "ptx/exec_loop.inc"
