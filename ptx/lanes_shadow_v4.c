/* lanes_shadow_v4.c - shadow mode's handlers in lock-step for processors with AVX-512. */
#include <stdlib.h>
#include "ptx/lanes.h"
#ifdef LANES_V4
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c,prefer-vector-width=512")
#pragma GCC optimize("O3")
#pragma GCC diagnostic ignored "-Woverride-init"
#pragma GCC diagnostic ignored "-Wunused-function"
#define PARTIAL  0
#define NAME(id) full_##id
#include "ptx/lanes_kit.inc"
#include "ptx/exec_rounding.h"
#include "ptx/lanes_shadow.h"
#include "ptx/lanes_memory.inc"
#include "ptx/lanes_shadow_kit.inc"
#include "ptx/lanes_shadow_judge.inc"
#include "ptx/lanes_shadow_memory.inc"
#include "ptx/lanes_shadow_float.inc"
#include "ptx/lanes_shadow_ops.inc"
#define PARTIAL  1
#define NAME(id) part_##id
#include "ptx/lanes_shadow_float.inc"
#include "ptx/lanes_shadow_ops.inc"

lane_handler *const *const lane_shadow_handlers_v4[2] = {full_handlers, part_handlers};
#endif
