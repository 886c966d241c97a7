"""Kernels that numba compiles from Python: elementwise, shared memory, atomics, a tiled product, mathematical functions."""
import math
import os
import sys

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def axpy(r, a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        r[i] = a * x[i] + y[i]


@cuda.jit
def block_sums(x, sums):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = part[0]


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i] % bins.size, 1)


@cuda.jit
def product(a, b, c):
    sa = cuda.shared.array((TILE, TILE), float32)
    sb = cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.grid(2)
    i, k = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for first in range(0, a.shape[1], TILE):
        sa[i, k] = a[row, first + k]
        sb[i, k] = b[first + i, column]
        cuda.syncthreads()
        for j in range(TILE):
            total += sa[i, j] * sb[j, k]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def waves(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.sin(x[i]) * math.exp(-x[i]) + math.sqrt(x[i])


def main():
    n = 1000
    random = np.random.default_rng(1)
    passed = True

    def check(name, good):
        nonlocal passed
        passed = passed and bool(good)
        print(f"{name}: {'ok' if good else 'wrong'}")

    x = random.random(n, dtype=np.float32)
    y = random.random(n, dtype=np.float32)
    blocks = (n + 127) // 128
    result = cuda.device_array(n, np.float32)
    over = int(os.environ.get("WRITE_PAST_THE_END", "0"))
    axpy[blocks, 128](result, np.float32(2), cuda.to_device(x), cuda.to_device(y), n + over)
    check("axpy", np.allclose(result.copy_to_host(), 2 * x + y, rtol=1e-6))

    sums = cuda.device_array(blocks, np.float32)
    block_sums[blocks, 128](cuda.to_device(x), sums)
    check("sums", np.isclose(sums.copy_to_host().sum(), x.sum(), rtol=1e-5))

    numbers = random.integers(0, 1000, n)
    bins = cuda.to_device(np.zeros(10, np.int32))
    histogram[blocks, 128](cuda.to_device(numbers), bins)
    check("histogram", np.array_equal(bins.copy_to_host(), np.bincount(numbers % 10, minlength=10)))

    a = random.random((64, 48), dtype=np.float32)
    b = random.random((48, 32), dtype=np.float32)
    c = cuda.device_array((64, 32), np.float32)
    product[(4, 2), (TILE, TILE)](cuda.to_device(a), cuda.to_device(b), c)
    check("product", np.allclose(c.copy_to_host(), a @ b, rtol=1e-5))

    wide = cuda.device_array(n, np.float64)
    waves[blocks, 128](cuda.to_device(x.astype(np.float64)), wide)
    check("waves", np.allclose(wide.copy_to_host(), np.sin(x) * np.exp(-x.astype(np.float64)) + np.sqrt(x), rtol=1e-6))
    return 0 if passed else 1


sys.exit(main())
