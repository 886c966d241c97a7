/* lanes_v3.c - the lock-step engine's handlers for processors with AVX2 and FMA. */
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
#endif
#define PARTIAL  0
#define NAME(id) full_##id
#include "ptx/lanes_kit.inc"
#include "ptx/lanes_memory.inc"
#include "ptx/lanes_ops.inc"
#define PARTIAL  1
#define NAME(id) part_##id
#include "ptx/lanes_ops.inc"

lane_handler *const *const lane_handlers_v3[2] = {full_handlers, part_handlers};
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
