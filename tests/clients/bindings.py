"""NVIDIA's own Python bindings of the driver and NVRTC: compiles a kernel to PTX and runs it, checks its result."""
import ctypes
import os
import sys

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""


def ok(result):
    error, *values = result
    if error.value:
        sys.exit(f"{error}")
    return values[0] if len(values) == 1 else values


def compiled():
    program = ok(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
    options = [b"--gpu-architecture=compute_75", b"--generate-line-info", b"--fmad=false"]
    ok(nvrtc.nvrtcCompileProgram(program, len(options), options))
    ptx = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
    ok(nvrtc.nvrtcGetPTX(program, ptx))
    return ptx


def main():
    n = 1000
    over = int(os.environ.get("WRITE_PAST_THE_END", "0"))
    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(device))
    ok(driver.cuCtxSetCurrent(context))
    module = ok(driver.cuModuleLoadData(compiled()))
    kernel = ok(driver.cuModuleGetFunction(module, b"saxpy"))
    stream = ok(driver.cuStreamCreate(0))
    x = np.arange(n, dtype=np.float32)
    y = np.full(n, 0.5, dtype=np.float32)
    expected = np.float32(3) * x + y
    on_device = []
    for array in (x, y):
        pointer = ok(driver.cuMemAlloc(array.nbytes))
        ok(driver.cuMemcpyHtoDAsync(pointer, array.ctypes.data, array.nbytes, stream))
        on_device.append(pointer)
    arguments = ((3.0, *on_device, n + over), (ctypes.c_float, None, None, ctypes.c_int))
    ok(driver.cuLaunchKernel(kernel, (n + 127) // 128, 1, 1, 128, 1, 1, 0, stream, arguments, 0))
    ok(driver.cuMemcpyDtoHAsync(y.ctypes.data, on_device[1], y.nbytes, stream))
    ok(driver.cuStreamSynchronize(stream))
    for pointer in on_device:
        ok(driver.cuMemFree(pointer))
    print("saxpy:", "ok" if np.array_equal(y, expected) else "wrong")
    return 0 if np.array_equal(y, expected) else 1


sys.exit(main())
