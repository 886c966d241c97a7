/* exec_device_fma.c - the same loop for processors with FMA and bit-manipulation instructions, where fma.rn is one
 * instruction and not a call. exec.c chooses. The result of every operation is the same. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c")
#define RUN     run_device_fma
#define CHECKED 0
#include "ptx/exec_loop.inc"
#endif
