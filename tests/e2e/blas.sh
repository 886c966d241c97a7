#!/usr/bin/env bash
# The cuBLAS program on softgpu: bare, under the preload, and on devices with flaws in one of its operators.
. "$(dirname "$0")/lib/tap.bash"
if [ ! -x "$programs/blas" ]; then
    ok "programs/blas # skip the toolkit has no cuBLAS"
    done_testing
    exit
fi
export LD_LIBRARY_PATH=$PWD/$B/softgpu

"$programs/blas" >"$scratch/bare.out" 2>"$scratch/bare.err"
equal "exit code" 0 $?
equal "no message" "" "$(cat "$scratch/bare.err")"
OPSDEBUG_OUT=$scratch/capture LD_PRELOAD=$PWD/$B/libopsdebug.so "$programs/blas" >"$scratch/out" 2>"$scratch/err"
equal "exit code under the preload" 0 $?
check "stdout under the preload" cmp "$scratch/bare.out" "$scratch/out"
check "stderr under the preload" cmp "$scratch/bare.err" "$scratch/err"
for fault in kind=stale kernel=cublasSgemm_v2,launch=2,kind=nan kernel=cublasSgemm_v2,launch=3,kind=fp16acc kernel=cublasLtMatmul,kind=tf32 \
    kernel=cublasSgemv,kind=tail kernel=cublasSgemmStrided,kind=bitflip,rate=0.1 kernel=cublasLtMatmul,kind=dropstore,rate=0.5; do
    SOFTGPU_FAULTS=$fault "$programs/blas" >"$scratch/out" 2>&1
    equal "notices $fault" 1 $?
done
for seed in 1 2 3; do
    SOFTGPU_VARIANT=$seed "$programs/blas" >"$scratch/out" 2>&1
    equal "passes on variant $seed" 0 $?
done
SOFTGPU_FAULTS=kind=reorder "$programs/blas" >"$scratch/out" 2>&1
equal "passes with sums in another order" 0 $?
done_testing
