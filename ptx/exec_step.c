/* exec_step.c - the loop as a step: one instruction of one thread, for the lock-step engine. Floating-point results are
 * those of the loops. */
#define RUN     run_step
#define CHECKED 0
#define STEP    1
#include "ptx/exec_loop.inc"
