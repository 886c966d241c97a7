#!/usr/bin/env bash
# Graphs and captures: the same output with and without the tool, nothing false found, and what a kernel in a graph damages is.
. "$(dirname "$0")/lib/tap.bash"

bare "$programs/graphs_ok" >"$scratch/bare.out" 2>"$scratch/bare.err"
equal "graphs_ok: passes its own check on softgpu" 0 $?
for seed in 3 8; do
    SOFTGPU_VARIANT=$seed bare "$programs/graphs_ok" >"$scratch/out"
    equal "graphs_ok: on device variant $seed" 0 $?
done
SOFTGPU_FAULTS="kind=stale" bare "$programs/graphs_ok" >"$scratch/out" 2>&1
equal "graphs_ok: fails when kernels do nothing" 1 $?
SOFTGPU_FAULTS="kernel=scale,launch=2,kind=stale" bare "$programs/graphs_ok" >"$scratch/out" 2>&1
equal "graphs_ok: fails when one launch inside a graph does nothing" 1 $?
for preset in watch check deep; do
    capture=$scratch/graphs-$preset
    "$tool" run --device soft --preset $preset --out "$capture" -- "$programs/graphs_ok" >"$scratch/out" 2>"$scratch/err"
    equal "$preset: exit code" 0 $?
    check "$preset: stdout" cmp "$scratch/bare.out" "$scratch/out"
    check "$preset: stderr" cmp "$scratch/bare.err" "$scratch/err"
    check "$preset: report finds nothing" "$tool" report "$capture"
    check "$preset: verify finds nothing" "$tool" verify "$capture"
    equal "$preset: what is only recorded into a graph is not judged" 10 \
        "$("$tool" verify --json "$capture" | jq '.coverage.as_written.not.graph')"
done
"$tool" run --device soft --preset deep --out "$scratch/tail" -- "$programs/graphs_tail_write" >/dev/null 2>&1
"$tool" verify --json "$scratch/tail" >"$scratch/tail.json"
equal "graphs_tail_write: verify finds it" 1 $?
equal "graphs_tail_write: one class" out-of-bounds-write "$(jq -r '[.findings[].class] | unique[]' "$scratch/tail.json")"
equal "graphs_tail_write: one cause, at two launches and at ten of graphs" "1 12" \
    "$(jq -r '"\(.findings | length) \(.findings[0].launches | length)"' "$scratch/tail.json")"
bare "$programs/graphs_loop" >"$scratch/bare.out"
equal "graphs_loop: passes its own check on softgpu" 0 $?
for preset in check deep; do
    "$tool" run --device soft --preset $preset --out "$scratch/loop-$preset" -- "$programs/graphs_loop" >"$scratch/out" 2>"$scratch/err"
    equal "graphs_loop/$preset: exit code" 0 $?
    check "graphs_loop/$preset: stdout" cmp "$scratch/bare.out" "$scratch/out"
    equal "graphs_loop/$preset: nothing on stderr" "" "$(cat "$scratch/err")"
    check "graphs_loop/$preset: verify finds nothing" "$tool" verify "$scratch/loop-$preset"
done
for program in graphs_ok graphs_loop; do # with functions of the host, memory and conditions: launched as they are
    bare "$programs/$program" >"$scratch/bare.out"
    "$tool" run --device soft --preset check --graphs explode --out "$scratch/whole-$program" -- "$programs/$program" >"$scratch/out" 2>&1
    check "$program: not taken apart, same output" cmp "$scratch/bare.out" "$scratch/out"
    check "$program: not taken apart, nothing found" "$tool" verify "$scratch/whole-$program"
done
number=$("$tool" list --json "$scratch/loop-deep" | jq '[.launches[] | select(.graph)][0].seq')
check "graphs_loop: the kernel in the loop's body is known" sh -c "'$tool' show '$scratch/loop-deep' $number | grep -q 'collatz, grid'"
done_testing
