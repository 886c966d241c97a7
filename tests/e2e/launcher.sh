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
usage "unknown preset" 'watch, check, deep' run --preset fast -- true
while read -r option value form; do
    usage "--$option $value" "[-]-$option .*does not take '.*'; it wants .*$form" run --out "$scratch/refused" --$option "$value" -- touch "$scratch/ran"
done <<'TABLE'
guard          foo    sample=1/N
budget         500%   like 5%
max-capture    -3     a number of bytes
look-share     x      like 1%
graphs         bang   explode
snapshots      foo    first=N
kernel         (      regular expression
launch-count   -1     a whole number
times          maybe  on or off
check-batch    0      a whole number
health-threshold big  a number above 0
sentinels      front  careful
TABLE
OPSDEBUG_GUARD=foo usage "the same from the environment" "OPSDEBUG_GUARD.*does not take 'foo'" run --out "$scratch/refused" -- touch "$scratch/ran"
check "neither a capture nor the program" test ! -e "$scratch/refused" -a ! -e "$scratch/ran"
check "what is understood is not refused" "$tool" run --device soft --guard all,side=under,budget=64M --budget 5% --max-capture 64m --look-share off \
    --graphs explode --snapshots first=3 --kernel '^(a|b)' --launch-count 3 --times off --stacks 1 --health-threshold 1e20 --out "$scratch/good" -- true
usage "unknown device" 'auto, soft or gpu' run --device tpu -- true
usage "missing program" 'no such program' run -- ./not-there
usage "an unknown short option" 'unknown option -x' run -x -- true
usage "a short option without its value" 'option --out needs a value' run -o
: >"$scratch/plain.cu"
usage "a file that is no program" 'plain.cu is not executable' run -- "$scratch/plain.cu"
usage "a folder" 'is a folder' run -- "$scratch"
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
check "-o is --out" "$tool" run --device soft -o "$scratch/short_o" -- "$scratch/shared"
check "and the capture is there" test -s "$scratch/short_o/capture.bin"
usage "an unknown colour" 'auto, always or never' report "$scratch/shared.capture" --color sometimes
ln -s shared.capture "$scratch/link"
cp "$scratch/shared.capture/capture.bin" "$scratch/before"
check "a link to a capture: forced" "$tool" run --force --device soft --out "$scratch/link" -- "$scratch/shared"
check "it stays a link" test -L "$scratch/link"
equal "to a new capture" 1 "$(cmp -s "$scratch/before" "$scratch/shared.capture/capture.bin"; echo $?)"
for foreign in notes.txt blobs/notes.txt process-1/notes.txt capture.bin.old; do
    mkdir -p "$(dirname "$scratch/shared.capture/$foreign")" && echo mine >"$scratch/shared.capture/$foreign"
    usage "--force leaves what is not a capture's: $foreign" "holds $foreign, which is no part of a capture" \
        run --force --device soft --out "$scratch/shared.capture" -- "$scratch/shared"
    equal "all is still there" "mine 1" "$(cat "$scratch/shared.capture/$foreign") $(ls "$scratch/shared.capture/capture.bin" | wc -l)"
    rm "$scratch/shared.capture/$foreign"
done
check "without it the capture is replaced, processes and all" "$tool" run --force --device soft --out "$scratch/shared.capture" -- "$scratch/shared"
check "nothing of the old one is left" test ! -e "$scratch/shared.capture/process-1"
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
"$tool" run --device soft --report --out "$scratch/sig2" -- sh -c 'kill -SEGV $$' 2>"$scratch/err"
equal "with --report, too" 139 $?
equal "and the shell's own words are kept away" 0 "$(grep -c Segmentation "$scratch/err")"
check "nothing was recorded: the reason is not made up" grep -q 'nothing was recorded: the program made no CUDA call, or nothing could be written' "$scratch/err"
echo hello | "$tool" run --device soft --report --out "$scratch/in" -- cat >"$scratch/out" 2>/dev/null
equal "stdin reaches the program" hello "$(cat "$scratch/out")"
"$tool" run --device soft --preset deep --error-exitcode 77 --out "$scratch/found" -- "$programs/block_tail_write" >/dev/null 2>&1
equal "--error-exitcode with findings" 77 $?
"$tool" run --device soft --preset deep --error-exitcode 77 --out "$scratch/none" -- "$programs/driver_ok" >/dev/null 2>&1
equal "--error-exitcode without findings" 0 $?

# Processes that the program starts: the first to use CUDA has the folder itself, the others have folders in it.
"$tool" run --device soft --preset deep --report --error-exitcode 9 --out "$scratch/many" -- \
    sh -c '"$1" >/dev/null; "$2" >/dev/null; exit 4' - "$programs/driver_ok" "$programs/block_tail_write" 2>"$scratch/err"
equal "--error-exitcode with findings in another process" 9 $?
check "its report is there, too" grep -q '^1  *out-of-bounds-write' "$scratch/err"
"$tool" report "$scratch/many" >"$scratch/out"
equal "the report of the first: exit code" 0 $?
next=$(sed -n 's/^next *1 other process left a capture: ops-debug //p' "$scratch/out")
check "it names the other one ($next)" grep -q '^verify .*/many/process-[0-9]*$' <<<"$next"
# shellcheck disable=SC2086
"$tool" $next >/dev/null
equal "which has the finding" 1 $?
equal "in JSON, too" "${next#verify }" "$("$tool" report --json "$scratch/many" | jq -r '.processes[]')"
"$tool" run --device soft --preset deep --report --error-exitcode 9 --out "$scratch/many_ok" -- \
    sh -c '"$1" >/dev/null; "$1" >/dev/null; exit 4' - "$programs/driver_ok" 2>/dev/null
equal "without findings it is the program's exit code" 4 $?

"$tool" run --device soft --max-capture 10K --out "$scratch/tight" -- "$programs/driver_ok" >/dev/null 2>&1
check "a limit that cannot be kept is told" grep -q 'the records alone take .* more than --max-capture' <("$tool" report "$scratch/tight" | tr -s '\n ' ' ')
"$tool" run --device soft --budget 0.01% --out "$scratch/short" -- "$programs/driver_ok" >/dev/null 2>&1
"$tool" report --json "$scratch/short" >"$scratch/short.json"
left_out=$(jq '.coverage.budget | [.parts[].left_out] | add' "$scratch/short.json")
check "a budget that the start alone exceeds ($left_out left out)" \
    test "$left_out" -gt 0 -o "$("$tool" report "$scratch/short" | tr -s '\n ' ' ' | grep -c 'nothing; in so short a run what cannot be left out')" = 1

# A folder without room.
cat >"$scratch/small" <<'END'
mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"
END
mkdir "$scratch/mount"
if unshare -rm sh "$scratch/small" "$scratch/mount" true 2>/dev/null; then
    unshare -rm sh "$scratch/small" "$scratch/mount" "$tool" run --device soft --out "$scratch/mount/c" -- touch "$scratch/ran" 2>"$scratch/err"
    equal "no room for a capture: exit code, one line" "2 1" "$? $(grep -c 'no capture fits there (No space left on device)' "$scratch/err")"
    check "the program was not started" test ! -e "$scratch/ran"
else
    ok "no room for a capture # skip no file system can be mounted here"
fi

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
