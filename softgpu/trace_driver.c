/* The exported functions of the driver: each may be watched (trace.h). */
#include "softgpu/driver.h"
#include "softgpu/trace_state.h"

#define TRACE_SIDE        TRACE_DRIVER
#define TRACE_RESULT      CUresult
#define TRACE_KERNEL_NAME NULL
#include "softgpu/trace_calls.h"

#include "softgpu/driver_calls.h"
