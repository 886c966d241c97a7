#!/usr/bin/env bash
# Flawed arithmetic in one kernel, too small to show in any single element's worst case, is found in that kernel alone; the same kernels in
# another order are sound. What depends on clocks is left out, with a reason.
. "$(dirname "$0")/lib/tap.bash"

# found PROGRAM FAULTS: class and kernel of each finding.
found() {
    SOFTGPU_FAULTS=$2 "$tool" run --device soft --preset deep --out "$scratch/capture" -- "$programs/$1" >/dev/null 2>&1
    "$tool" verify --json "$scratch/capture" >"$scratch/verify.json" 2>"$scratch/verify.err"
    jq -r '[.findings[] | "\(.class) \(.launch.kernel | sub("<.*"; ""))"] | unique | join(", ")' "$scratch/verify.json"
    rm -rf "$scratch/capture"
}
while read -r program kernel kind; do
    equal "$program, $kind in $kernel" "mismatch $kernel" "$(found "$program" "kernel=$kernel,kind=$kind")"
    equal "$program, $kernel in another order" "" "$(found "$program" "kernel=$kernel,kind=reorder")"
done <<'CASES'
block_ok layernorm_forward tf32
block_ok softmax_attention_forward fp16acc
block_ok gelu_add_residual tf32
ocean_ok blow_wind tf32
ocean_ok wave_phase tf32
CASES

"$tool" run --device soft --preset deep --out "$scratch/timed" -- "$programs/pairs/sampled_timing_right" >/dev/null 2>&1
"$tool" verify --json "$scratch/timed" >"$scratch/verify.json"
equal "clocks: nothing is found" 0 $?
equal "clocks: the one launch that stores them is left out" '{"checked":1,"not":{"time-dependent":1}}' \
    "$(jq -c '.coverage.as_written | {checked, not}' "$scratch/verify.json")"
done_testing
