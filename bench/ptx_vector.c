/* ptx_vector.c - bench_ptx's baseline, compiled with the vectoriser (bench flags: ptx/build.mk). */
#define BASELINE bench_vector
#include "bench/ptx_baseline.inc"
