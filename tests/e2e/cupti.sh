#!/usr/bin/env bash
# A program that profiles itself with CUPTI: bare, on another device, and under the tool, which must not take CUPTI from it.
. "$(dirname "$0")/lib/tap.bash"
if [ ! -x "$programs/profile" ]; then
    ok "programs/profile # skip the toolkit has no CUPTI"
    done_testing
    exit
fi

bare "$programs/profile" >"$scratch/bare.out" 2>"$scratch/bare.err"
equal "exit code" 0 $?
equal "no message" "" "$(cat "$scratch/bare.err")"
equal "kernels" 4 "$(grep -c '^_Z5s.*<<<' "$scratch/bare.out")"
SOFTGPU_WORKERS=2 SOFTGPU_VARIANT=7 bare "$programs/profile" >"$scratch/out" 2>&1
equal "exit code on a variant" 0 $?
check "the same records on a variant" cmp "$scratch/bare.out" "$scratch/out"
SOFTGPU_FAULTS="kernel=scale,kind=stale" bare "$programs/profile" >"$scratch/out" 2>&1
equal "notices a kernel without effect" 1 $?

# A profiler that the driver loads into a program which does not know of it.
inject=$PWD/$programs/inject.so
CUDA_INJECTION64_PATH=$inject INJECT_OUT=$scratch/kernels bare "$programs/driver_ok" >"$scratch/out" 2>&1
equal "exit code with an injected profiler" 0 $?
equal "the device" 1 "$(grep -c '^device .' "$scratch/kernels")"
check "kernels of the injected profiler" grep -q '^kernel [^ ]* [1-9][0-9]* [1-9]' "$scratch/kernels"
for kernel in matmul layernorm softmax cross_entropy adamw; do
    [ -e "$scratch/block" ] || CUDA_INJECTION64_PATH=$inject INJECT_OUT=$scratch/block bare "$programs/block_ok" >"$scratch/block.out" 2>&1
    check "kernel $kernel of the transformer block" grep -q "^kernel [^ ]*$kernel" "$scratch/block"
done
if [ -x "$programs/blas" ]; then
    CUDA_INJECTION64_PATH=$inject INJECT_OUT=$scratch/blas bare "$programs/blas" >"$scratch/blas.out" 2>&1
    equal "exit code of the cuBLAS program" 0 $?
    check "routines are kernels" grep -q '^kernel cublasSgemm_v2 1 1$' "$scratch/blas"
fi
CUDA_INJECTION64_PATH=/nowhere.so bare "$programs/driver_ok" >"$scratch/other" 2>&1
equal "exit code with an injection that is not there" 0 $?
check "output with an injection that is not there" cmp "$scratch/out" "$scratch/other"

for preset in watch check deep; do
    "$tool" run --device soft --preset "$preset" --out "$scratch/$preset" -- "$programs/profile" >"$scratch/out" 2>"$scratch/err"
    equal "exit code under the tool, $preset" 0 $?
    check "output under the tool, $preset" cmp "$scratch/bare.out" "$scratch/out"
done
done_testing
