/* trace_state.h - the driver's side of trace.h. */
#ifndef SOFTGPU_TRACE_STATE_H
#define SOFTGPU_TRACE_STATE_H

#include "softgpu/trace.h"

extern __attribute__((visibility("default"))) struct softgpu_trace softgpu_trace;

static inline const struct trace_hooks *trace_hooks(void)
{
    return atomic_load_explicit(&softgpu_trace.hooks, memory_order_acquire);
}

struct op;
void trace_tag(struct op *op); /* of an operation that was just made */
void trace_run(struct op *op); /* runs it, watched if it is to be */
enum trace_memory trace_memory_of(uint64_t address, bool device_side);

#endif
