#!/usr/bin/env bash
# On a GPU: work that overlaps still does under the tool, also between dependent launches and kernels that wait for each other.
. "$(dirname "$0")/lib.bash"
program overlap tests/gpu/overlap.cu
program rendezvous tests/programs/breakages/rendezvous.cu

"$scratch/overlap" >"$scratch/bare"
check "bare: two streams overlap" awk '$1 == "two" && $2 < 1.5 { good = 1 } END { exit !good }' "$scratch/bare"
for preset in watch check deep; do
    timeout 120 "$tool" run --device gpu --preset $preset --out "$scratch/$preset" -- "$scratch/overlap" >"$scratch/out"
    equal "$preset: exit code" 0 $?
    # In units of one stream's time. In deep each launch is followed by copies of what it wrote, so only the others are held to it.
    limit=$([ $preset = deep ] && echo 2.5 || echo 1.5)
    for what in two side; do
        check "$preset: $what: $(grep "^$what" "$scratch/out")" awk -v what=$what -v limit="$limit" '$1 == what && $2 < limit { good = 1 } END { exit !good }' "$scratch/out"
    done
    timeout 60 "$tool" run --device gpu --preset $preset --out "$scratch/meet-$preset" -- "$scratch/rendezvous" >"$scratch/out"
    equal "$preset: kernels that wait for each other end" "0 12" "$? $(cat "$scratch/out")"
done
done_testing
