/* exec_device.c - the loop as a device runs it: the first fault ends the launch. */
#define RUN     run_device
#define CHECKED 0
#include "ptx/exec_loop.inc"
