#!/usr/bin/env bash
# The launcher: usage errors, exit codes, programs it cannot serve, plain preload with the same result.
. "$(dirname "$0")/lib/tap.bash"

# usage NAME PATTERN ARGS...: exit code 2 and one line on stderr that matches.
usage() {
    local name=$1 pattern=$2 rc
    shift 2
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err"
    rc=$?
    if [ $rc -eq 2 ] && [ "$(wc -l <"$scratch/err")" -eq 1 ] && grep -qE "$pattern" "$scratch/err"; then
        ok "$name: $(cat "$scratch/err")"
    else
        not_ok "$name: exit $rc"
        sed 's/^/# /' "$scratch/err" | head -n 5
    fi
}
usage "no program" 'no program given' run
usage "unknown option" 'unknown option --nonsense' run --nonsense 3 -- true
usage "unknown preset" 'watch, check or deep' run --preset fast -- true
usage "unknown device" 'auto, soft or gpu' run --device tpu -- true
usage "missing program" 'no such program' run -- ./not-there
usage "unknown command" 'nonsense' nonsense
usage "command without capture" 'capture' report
usage "help of no command" "there is no command 'nonsense'" help nonsense
check "help" "$tool" --help
check "run --help" "$tool" run --help
for command in run verify ptx; do
    "$tool" "$command" --help >"$scratch/out"
    equal "help $command is $command --help" "$(cat "$scratch/out")" "$("$tool" help "$command")"
done
equal "run --help fits on lines of 120" "" "$("$tool" run --help | awk 'length > 120')"
equal "every command and its purpose fit on a line" "" "$("$tool" help | awk 'length > 120 || /~/')"

cat >"$scratch/static.cu" <<'EOF'
__global__ void fill(float *p) { p[threadIdx.x] = 1; }
int main(void)
{
    float *p;
    if (cudaMalloc(&p, 128)) return 3;
    fill<<<1, 32>>>(p);
    return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
nvcc=$(scripts/find-toolkit)/bin/nvcc
"$nvcc" -o "$scratch/static" "$scratch/static.cu"
usage "static cudart without a GPU" 'cudart shared' run --device soft --out "$scratch/s" -- "$scratch/static"
strip "$scratch/static"
usage "the same, stripped" 'cudart shared' run --device soft --out "$scratch/s" -- "$scratch/static"
"$nvcc" -cudart shared -o "$scratch/shared" "$scratch/static.cu"
check "the same with shared cudart" "$tool" run --device soft --out "$scratch/shared.capture" -- "$scratch/shared"
usage "a capture is not overwritten" 'already holds a capture' run --device soft --out "$scratch/shared.capture" -- "$scratch/shared"
check "unless forced" "$tool" run --force --device soft --out "$scratch/shared.capture" -- "$scratch/shared"
"$nvcc" -cudart shared -gencode arch=compute_80,code=sm_80 -o "$scratch/machine" "$scratch/static.cu"
"$tool" run --device soft --out "$scratch/machine.capture" -- "$scratch/machine"
"$tool" report "$scratch/machine.capture" >"$scratch/out"
check "machine code only: the report says why nothing was launched" grep -q '^notes *nothing was launched.*CUDA_ERROR_NO_BINARY_FOR_GPU (209)' "$scratch/out"
"$tool" report "$scratch/shared.capture" >"$scratch/out"
equal "with PTX it says nothing of the kind" 0 "$(grep -c 'nothing was launched' "$scratch/out")"
printf 'int main(void) { return 0; }' | gcc -static -x c -o "$scratch/fully-static" - 2>/dev/null
usage "a statically linked program" 'statically linked' run --device soft -- "$scratch/fully-static"

equal "--no-torch-cache is what PyTorch reads" 1 \
    "$("$tool" run --device soft --no-torch-cache --out "$scratch/torch" -- sh -c 'echo "$PYTORCH_NO_CUDA_MEMORY_CACHING"')"
equal "without it, it is not set" "" "$("$tool" run --device soft --out "$scratch/torch" -- sh -c 'echo "$PYTORCH_NO_CUDA_MEMORY_CACHING"')"
"$tool" run --device soft --out "$scratch/rc" -- sh -c 'exit 42'
equal "the program's exit code" 42 $?
"$tool" run --device soft --report --out "$scratch/rc2" -- sh -c 'exit 43' 2>/dev/null
equal "the program's exit code with --report" 43 $?
"$tool" run --device soft --out "$scratch/sig" -- sh -c 'kill -SEGV $$' 2>/dev/null
equal "a signal ends it as without the tool" 139 $?
echo hello | "$tool" run --device soft --report --out "$scratch/in" -- cat >"$scratch/out" 2>/dev/null
equal "stdin reaches the program" hello "$(cat "$scratch/out")"
"$tool" run --device soft --preset deep --error-exitcode 77 --out "$scratch/found" -- "$programs/block_tail_write" >/dev/null 2>&1
equal "--error-exitcode with findings" 77 $?
"$tool" run --device soft --preset deep --error-exitcode 77 --out "$scratch/none" -- "$programs/driver_ok" >/dev/null 2>&1
equal "--error-exitcode without findings" 0 $?

# A plain preload can do all that the launcher does.
LD_LIBRARY_PATH=$PWD/$B/softgpu LD_PRELOAD=$PWD/$B/libopsdebug.so OPSDEBUG_PRESET=deep OPSDEBUG_OUT=$scratch/plain \
    "$programs/block_tail_write" >/dev/null 2>&1
"$tool" verify --json "$scratch/plain" >"$scratch/verify.json"
equal "plain preload: the fault is found" out-of-bounds-write "$(jq -r '.findings[0].class' "$scratch/verify.json")"
equal "capture folder is private" 700 "$(stat -c %a "$scratch/plain")"
# What wants a GPU steps aside without one.
if [ ! -e /dev/nvidiactl ]; then
    scripts/gpu-check run "$B" >"$scratch/gpu"
    equal "gpu-check: nothing but skipped steps" "0 6 6" "$? $(wc -l <"$scratch/gpu") $(grep -c ' skip *no GPU$' "$scratch/gpu")"
fi
check "gpu-check: a folder that is no pack" bash -c 'scripts/gpu-check run tests >"$1" 2>&1; [ $? = 2 ]' - "$scratch/gpu"
done_testing
