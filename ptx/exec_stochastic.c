/* exec_stochastic.c - the loop as a device runs it, with every inexact operation rounded by chance. */
#define RUN      run_stochastic
#define CHECKED  0
#define ROUNDING 1
#include "ptx/exec_loop.inc"
