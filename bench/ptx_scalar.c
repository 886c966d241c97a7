/* ptx_scalar.c - bench_ptx's baseline, compiled without the vectoriser (bench flags: ptx/build.mk). */
#define BASELINE bench_scalar
#include "bench/ptx_baseline.inc"
