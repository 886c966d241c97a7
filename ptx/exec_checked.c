/* exec_checked.c - the loop that judges every access: faults are recorded, and the thread goes on. */
#define RUN     run_checked
#define CHECKED 1
#include "ptx/exec_loop.inc"
