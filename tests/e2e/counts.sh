#!/usr/bin/env bash
# Counts of a program whose accesses are wasteful, and of its sound twin: exact figures, words in the report.
. "$(dirname "$0")/lib/tap.bash"

source=tests/programs/stride/stride.cu
for variant in strided ok; do
    "$tool" run --device soft --preset deep --out "$scratch/$variant" -- "$programs/stride_$variant" >/dev/null 2>&1
    equal "$variant: its results are right" 0 $?
    "$tool" counts --json "$scratch/$variant" >"$scratch/$variant.counts"
    equal "$variant: counts' exit code" 0 $?
    "$tool" verify --json "$scratch/$variant" >"$scratch/$variant.json" 2>/dev/null
    equal "$variant: no finding" 0 "$(jq '.findings | length' "$scratch/$variant.json")"
done
kernel() { # kernel VARIANT NAME FILTER
    jq -r --arg k "$2" ".kernels[] | select(.kernel == \$k) | $3" "$scratch/$1.counts"
}
line() { # line VARIANT NAME LINE FILTER
    kernel "$1" "$2" ".lines[] | select(.line == $3) | $4"
}
sectors=$(fault_line $source sectors)
banks=$(fault_line $source bank-conflicts)

# 4,096 threads in 128 warps read 4 bytes each, 256 bytes apart or side by side.
equal "one addition per thread" "4096 4096" "$(kernel strided double_column .operations.f32) $(kernel ok double_column .operations.f32)"
equal "bytes read, and how many different ones" "16384 16384" "$(kernel strided double_column '"\(.access.global.read_bytes) \(.different_bytes.global.read)"')"
equal "bytes written" "16384 16384" "$(kernel ok double_column '"\(.access.global.write_bytes) \(.different_bytes.global.written)"')"
equal "strided: sectors of the load" "128 4096 512" \
    "$(line strided double_column "$sectors" '.access.global | "\(.requests) \(.sectors) \(.ideal_sectors)"')"
equal "ok: all sectors" "256 1024 1024" "$(kernel ok double_column '.access.global | "\(.requests) \(.sectors) \(.ideal_sectors)"')"
# 8 blocks of 32 warps turn a tile each.
equal "strided: passes of shared memory" "256 8192 256" \
    "$(line strided turn_tiles "$banks" '.access.shared | "\(.requests) \(.wavefronts) \(.ideal_wavefronts)"')"
equal "ok: passes" "512 512 512" "$(kernel ok turn_tiles '.access.shared | "\(.requests) \(.wavefronts) \(.ideal_wavefronts)"')"
equal "barriers" 8192 "$(kernel ok turn_tiles .classes.barrier)"
equal "all in lock-step" "0 0" "$(kernel ok turn_tiles .alone) $(kernel strided double_column .alone)"
equal "full warps" true "$(kernel ok turn_tiles '.warp_threads == 32 * .warps')"

# The report says it, with the line; the twin is left alone.
equal "patterns of the strided one" "bank-conflicts $banks sectors $sectors" \
    "$(jq -r '[.patterns[] | "\(.kind) \(.line)"] | sort | join(" ")' "$scratch/strided.json")"
equal "patterns of the sound one" 0 "$(jq '.patterns | length' "$scratch/ok.json")"
"$tool" report "$scratch/strided" >"$scratch/out"
check "sectors in words" grep -qF "sectors per request 32 where 4 are ideal" "$scratch/out"
check "bank conflicts in words" grep -qF "32 passes" "$scratch/out"
"$tool" report "$scratch/ok" >"$scratch/out"
equal "the sound one's report has no such words" 0 "$(grep -c 'per request' "$scratch/out")"
equal "operations reach the list" 4096 "$("$tool" list --json "$scratch/ok" | jq '.launches[0].operations')"

# Text and choice of launches.
"$tool" counts --launch 1 "$scratch/strided" >"$scratch/out"
check "text: the costliest line first" grep -qE "^ +stride.cu:$sectors .*32 \(4\)" "$scratch/out"
equal "text: only the chosen launch" 0 "$(grep -c turn_tiles "$scratch/out")"
"$tool" counts "$scratch/strided" --launch 99 >/dev/null 2>&1
equal "no such launch: exit code" 2 $?
"$tool" counts >/dev/null 2>&1
equal "no capture: exit code" 2 $?
done_testing
