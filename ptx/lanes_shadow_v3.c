/* lanes_shadow_v3.c - shadow mode's handlers in lock-step for processors with AVX2 and FMA. */
#include <stdlib.h>
#include "ptx/lanes.h"
#ifdef LANES_HERE
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma clang attribute push(__attribute__((target("fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c"))), apply_to = function)
#else
#pragma GCC target("fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c")
#pragma GCC optimize("O3")
#pragma GCC diagnostic ignored "-Woverride-init"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
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

lane_handler *const *const lane_shadow_handlers_v3[2] = {full_handlers, part_handlers};
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
