#!/usr/bin/env bash
# Programs that nobody here wrote the doors of: NVIDIA's Python bindings and numba, on softgpu, bare and watched.
. "$(dirname "$0")/lib/tap.bash"
if [ ! -d clients ]; then
    echo "1..0 # skip: scripts/setup --clients was not run"
    exit 77
fi
CUDA_HOME=${CUDA_HOME:-$(scripts/find-toolkit)}
# numba's own binding of the driver hands PTX on; the other one makes machine code first.
export CUDA_HOME NUMBA_CUDA_USE_NVIDIA_BINDING=0 NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS=0 PYTHONDONTWRITEBYTECODE=1

for script in bindings numba_kernels; do
    python=(/usr/bin/python3 tests/clients/run.py clients "tests/clients/$script.py")
    bare "${python[@]}" >"$scratch/bare" 2>&1
    equal "$script: its own checks pass" 0 $?
    SOFTGPU_FAULTS=kind=stale bare "${python[@]}" >/dev/null 2>&1
    equal "$script: they fail when kernels do nothing" 1 $?
    for seed in 2 5; do
        SOFTGPU_VARIANT=$seed bare "${python[@]}" >/dev/null 2>&1
        equal "$script: they pass on device variant $seed" 0 $?
    done
    for preset in check deep; do
        capture=$scratch/$script-$preset
        "$tool" run --device soft --preset $preset --out "$capture" -- "${python[@]}" >"$scratch/out" 2>&1
        equal "$script/$preset: exit code" 0 $?
        check "$script/$preset: output is the same" cmp "$scratch/bare" "$scratch/out"
        "$tool" verify --json "$capture" >"$scratch/json" 2>/dev/null
        equal "$script/$preset: nothing is found" 0 "$(jq '.findings | length' "$scratch/json")"
        equal "$script/$preset: every launch was judged" true "$(jq '.coverage | .launches > 0 and .as_written.checked == .launches' "$scratch/json")"
    done
    WRITE_PAST_THE_END=1 "$tool" run --device soft --out "$scratch/past" --force -- "${python[@]}" >/dev/null 2>&1
    "$tool" verify --json "$scratch/past" >"$scratch/json" 2>/dev/null
    equal "$script: a store past the end is found, in the first launch, by the thread behind the last" \
        "out-of-bounds-write 1 [7,0,0] [104,0,0]" \
        "$(jq -c -r '.findings[0] | "\(.class) \(.launch.seq) \(.where.block) \(.where.thread)"' "$scratch/json")"
done
equal "the line is NVRTC's source" 6 "$(WRITE_PAST_THE_END=1 "$tool" run --device soft --out "$scratch/past" --force -- \
    /usr/bin/python3 tests/clients/run.py clients tests/clients/bindings.py >/dev/null 2>&1
    "$tool" verify --json "$scratch/past" | jq '.findings[0].where.line')"
done_testing
