#!/usr/bin/env bash
# Planted faults of two unrelated programs: run, then verify, must name class, launch, kernel, file, line, allocation, distance.
# With the default preset: the same, or the report says what to switch on.
. "$(dirname "$0")/lib/tap.bash"

memory_faults=" out-of-bounds-write out-of-bounds-read uninitialised-read use-after-free "

# capture PROGRAM PRESET: runs and verifies; leaves $scratch/verify.json and sets rc.
capture() {
    "$tool" run --device soft --preset "$2" --out "$scratch/$1-$2" -- "$programs/$1" >/dev/null 2>&1
    "$tool" verify --json "$scratch/$1-$2" >"$scratch/verify.json" 2>"$scratch/verify.err"
    rc=$?
    rm -rf "${scratch:?}/$1-$2"
}
# located NAME PROGRAM FAULT CLASS: the first finding of that class is at the marked line, in the kernel that holds it.
located() {
    local name=$1 program=$2 fault=$3 class=$4 source line json
    source=$(grep -rlE "FAULT: $fault \*/" "tests/programs/${program%%_*}" | head -n 1)
    line=$(fault_line "$source" "$fault")
    json=$(jq -c --arg c "$class" '[.findings[] | select(.class == $c and .where.line)][0]' "$scratch/verify.json")
    equal "$name: file and line" "$(basename "$source"):$line" \
        "$(jq -r '"\(.where.file // "" | split("/") | last):\(.where.line)"' <<<"$json")"
    equal "$name: launch, kernel and next command" true \
        "$(jq -r '.launch.seq > 0 and (.launch.kernel | length > 0) and (.next | length > 0)' <<<"$json")"
    # The kernel named is the one whose body holds the guilty line, or calls the function that does.
    equal "$name: kernel holds the line" true "$(kernel_holds "$source" "$line" "$(jq -r .launch.kernel <<<"$json")")"
    [[ $memory_faults == *" $class "* ]] || return
    equal "$name: allocation's stack names the program's source" true \
        "$(jq -r --arg f "$(dirname "$source" | xargs basename)" '.allocation.id > 0 and (.allocation.stack | any(test($f)))' <<<"$json")"
    case $class in
    out-of-bounds-*)
        equal "$name: offset past the allocation's end" true "$(jq -r '.allocation.offset >= .allocation.bytes' <<<"$json")"
        ;;
    use-after-free)
        equal "$name: where it was freed" true "$(jq -r '.allocation.free_stack | length > 0' <<<"$json")"
        ;;
    esac
}
kernel_holds() { # the last function that starts above the line: the kernel, or one that the kernel calls, maybe as a macro
    local found macro
    found=$(head -n "$2" "$1" | grep -oE '__(global|device)__ [^;{]*\b([a-z_0-9]+)\(' | tail -n 1 | grep -oE '[a-z_0-9]+\($' | tr -d '(')
    macro=$(sed -n "s/^#define \([a-z_0-9]*\) $found\$/\1/p" "$1")
    if [ -n "$found" ] && { [[ $3 == *$found* ]] || calls "$1" "${3%%<*}" "$found" || calls "$1" "${3%%<*}" "${macro:-none}"; }; then
        echo true
    else
        echo "false: $found is not in $3"
    fi
}
calls() { # calls FILE KERNEL FUNCTION: FUNCTION( stands in KERNEL's body
    awk -v k="[^a-z_0-9]$2\\\\(" -v f="$3(" '$0 ~ k { inside = 1 } inside && index($0, f) { found = 1 } /^}/ { inside = 0 } END { exit !found }' "$1"
}
# deep PROGRAM FAULT CLASS [LAUNCH]: nothing but this class is found, in every detail.
deep() {
    capture "$1" deep
    equal "$1/deep: verify's exit code" 1 $rc
    equal "$1/deep: only $3" "$3" "$(jq -r '[.findings[].class] | unique | join(",")' "$scratch/verify.json")"
    equal "$1/deep: first faulty launch" "$4" "$(jq -r '.findings[0].launch.seq' "$scratch/verify.json")"
    located "$1/deep" "$1" "$2" "$3"
}
# default PROGRAM FAULT CLASS OPTION: found, or the report names the option that would have shown it.
default() {
    capture "$1" check
    if jq -e --arg c "$3" '.findings | any(.class == $c and .where.line)' "$scratch/verify.json" >/dev/null; then
        located "$1/check" "$1" "$2" "$3"
    else
        # Damage may be seen at a launch that could not be re-executed.
        equal "$1/check: not located, and the report names $4" true \
            "$(jq --arg o "$4" '.hints | any(contains($o) and contains("--preset deep"))' "$scratch/verify.json")"
    fi
}
# The launches are those of tests/programs/README.md.
while read -r program fault class launch option; do
    deep "$program" "$fault" "$class" "$launch"
    default "$program" "$fault" "$class" "$option"
done <<'TABLE'
block_tail_write tail_write out-of-bounds-write 14 --snapshots
block_far_write far_write out-of-bounds-write 72 --snapshots
block_read read out-of-bounds-read 3 --snapshots
block_uninit uninit uninitialised-read 40 --snapshots
block_race race race 22 --snapshots
block_nan nan nan-origin 4 --snapshots
block_gelu gelu approximation 14 --snapshots
block_uaf uaf use-after-free 23 --quarantine
ocean_tail_write tail_write out-of-bounds-write 18 --snapshots
ocean_far_write far_write out-of-bounds-write 27 --snapshots
ocean_read read out-of-bounds-read 23 --snapshots
ocean_uninit uninit uninitialised-read 7 --snapshots
ocean_race race race 20 --snapshots
ocean_nan nan nan-origin 3 --snapshots
ocean_approx approx approximation 24 --snapshots
ocean_uaf uaf use-after-free 46 --quarantine
driver_tail_write tail_write out-of-bounds-write 1 --snapshots
driver_read read out-of-bounds-read 1 --snapshots
nvrtc_tail_write tail_write out-of-bounds-write 1 --snapshots
TABLE

# NVRTC asked for sm_75 instead of compute_75 gives machine code, which nothing here executes.
SOFTGPU_LOG=$scratch/softgpu.log bare "$programs/nvrtc_ok" --sm >"$scratch/sm.out" 2>&1
equal "machine code is refused" "3 1" "$? $(grep -c CUDA_ERROR_NO_BINARY_FOR_GPU "$scratch/sm.out")"
check "and the log says what to do instead" grep -q 'compute_75' "$scratch/softgpu.log"

# A kernel that dies on the bare device: the log alone says which access of which thread. Without debug information the program's own
# code is named, not the library's line.
cat >"$scratch/far.cu" <<'EOF'
__global__ void far(float *x) { x[threadIdx.x * 100000000] = 3; }
int main(void)
{
    float *x;
    if (cudaMalloc((void **)&x, 400)) return 3;
    far<<<1, 2>>>(x);
    return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
EOF
"$(scripts/find-toolkit)/bin/nvcc" -cudart shared -o "$scratch/far" "$scratch/far.cu"
SOFTGPU_LOG=$scratch/far.log bare "$scratch/far"
equal "an illegal address" 0 $?
check "the log names kernel, access, line and thread" \
    grep -qE '^launch: _Z3farPf: out of bounds, write of 4 bytes at 0x[0-9a-f]+, PTX line [0-9]+, block 0 0 0 thread 1 0 0$' "$scratch/far.log"
"$tool" run --device soft --out "$scratch/far.capture" -- "$scratch/far"
"$tool" report --json "$scratch/far.capture" >"$scratch/far.json"
equal "before verify: what to do first" "failed-launch ops-debug verify $scratch/far.capture" \
    "$(jq -r '.findings[0] | "\(.class) \(.next[0])"' "$scratch/far.json")"
"$tool" verify --json "$scratch/far.capture" >"$scratch/far.json"
equal "the store" "out-of-bounds-write" "$(jq -r '.findings[0].class' "$scratch/far.json")"
"$tool" show "$scratch/far.capture" 1 | sed -n '/^launched at/,/^$/p' >"$scratch/stack"
check "launched by the program's code" grep -qE '^  main far\+0x' "$scratch/stack"
equal "no frames of libraries and stubs" 0 "$(grep -cE 'rt_launch|__device_stub__|__libc_start' "$scratch/stack")"
done_testing
