#!/usr/bin/env bash
# NVTX ranges become module paths: of launches, of findings, of threads.
. "$(dirname "$0")/lib/tap.bash"
if [ ! -x "$programs/nvtx_ok" ]; then
    ok "programs/nvtx_ok # skip the toolkit has no NVTX headers"
    done_testing
    exit
fi

bare "$programs/nvtx_ok" >"$scratch/bare.out" 2>"$scratch/bare.err"
equal "nvtx_ok: exit code" 0 $?
"$tool" run --device soft --preset deep --out "$scratch/ok" -- "$programs/nvtx_ok" >"$scratch/out" 2>"$scratch/err"
equal "nvtx_ok: exit code under the tool" 0 $?
check "nvtx_ok: what it prints, levels of ranges included" cmp "$scratch/bare.out" "$scratch/out"
check "nvtx_ok: nothing else" cmp "$scratch/bare.err" "$scratch/err"
"$tool" list --json "$scratch/ok" >"$scratch/list.json"
step="program.step.layers.0 program.step.layers.1.müll program.step.update"
equal "the paths of two steps, of another thread, of the outermost range, of none" \
    "$step $step step.layers.0 step.layers.1.müll step.update program " \
    "$(jq -r '[.launches[].module_path] | join(" ")' "$scratch/list.json")"
equal "iterations" "0 0 0 1 1 1 0 0 0 0 0" "$(jq -r '[.launches[].iteration] | join(" ")' "$scratch/list.json")"
"$tool" verify --json "$scratch/ok" >"$scratch/verify.json" 2>/dev/null
equal "nvtx_ok: no finding" 0 "$(jq '.findings | length' "$scratch/verify.json")"

"$tool" run --device soft --preset deep --out "$scratch/bad" -- "$programs/nvtx_tail_write" >/dev/null 2>&1
"$tool" verify --json "$scratch/bad" >"$scratch/verify.json" 2>/dev/null
equal "nvtx_tail_write: class and module" "out-of-bounds-write program.step.layers.1.müll" \
    "$(jq -r '.findings[0] | "\(.class) \(.launch.module_path)"' "$scratch/verify.json")"
equal "the report says where" 1 "$("$tool" report "$scratch/bad" | grep -c '^     module  *program\.step\.layers\.1\.m')"

NVTX_INJECTION64_PATH=/nowhere/another_tool.so "$tool" run --device soft --out "$scratch/taken" -- "$programs/nvtx_ok" >"$scratch/out" 2>"$scratch/err"
equal "another tool's NVTX is left to it" 0 $?
equal "without ranges" 0 "$("$tool" list --json "$scratch/taken" | jq '[.launches[] | select(.module_path != "")] | length')"
equal "which the report says" 1 "$("$tool" report "$scratch/taken" | tr -s ' \n' ' ' | grep -c 'NVTX_INJECTION64_PATH names /nowhere/another_tool.so')"
done_testing
