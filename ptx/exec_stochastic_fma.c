/* exec_stochastic_fma.c - the same loop for processors with FMA, as exec_device_fma.c is to exec_device.c. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c")
#define RUN      run_stochastic_fma
#define CHECKED  0
#define ROUNDING 1
#include "ptx/exec_loop.inc"
#endif
