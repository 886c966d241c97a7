#!/usr/bin/env bash
# --budget: what the tool does on the device counts as well as what it does in the program's threads.
. "$(dirname "$0")/lib/tap.bash"

for budget in 100% 5%; do
    "$tool" run --device soft --preset deep --budget $budget --out "$scratch/$budget" -- "$programs/block_ok" >"$scratch/$budget.out" 2>&1
    equal "$budget: the program's exit code" 0 $?
    "$tool" report --json "$scratch/$budget" >"$scratch/$budget.json" 2>&1
done
bare "$programs/block_ok" >"$scratch/bare.out" 2>&1
check "the program prints what it prints without the tool" cmp "$scratch/bare.out" "$scratch/5%.out"
of() { jq ".coverage.budget.$2" "$scratch/$1.json"; }
equal "100%: nothing is left out" 0 "$(of 100% '"parts" | [.[].left_out] | add')"
# Copies of buffers and looks that are executed instruction by instruction: the device's share is the larger one by far.
check "100%: the device's work is measured ($(of 100% device_share) of the run)" jq -e '.coverage.budget | .device_share > 0.05' "$scratch/100%.json"
check "5%: snapshots are left out ($(of 5% parts.snapshots.left_out))" jq -e '.coverage.budget.parts.snapshots.left_out > 0' "$scratch/5%.json"
equal "5%: all snapshots are done or left out" "$(of 100% parts.snapshots.done)" "$(of 5% 'parts.snapshots | .done + .left_out')"
check "the report says both shares" grep -q 'left out by the budget of 5 % (the run: .* %, and .* % on the device)' <("$tool" report "$scratch/5%" | tr -s '\n ' ' ')
done_testing
