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
struct stream;
void trace_tag(struct op *op); /* of an operation that was just made */
/* Runs it, watched if it is to be, as work of a stream; also an operation that is part of another one. */
void trace_run(struct op *op, const struct stream *stream);
/* What memory an address is of, and of which device. */
enum trace_memory trace_memory_of(uint64_t address, bool device_side, uint32_t *device);

#endif
