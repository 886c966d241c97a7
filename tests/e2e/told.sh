#!/usr/bin/env bash
# What a program says through opsdebug.h, and what the ranks of one say to each other.
. "$(dirname "$0")/lib/tap.bash"

bare "$programs/told_ok" >"$scratch/bare.out" 2>"$scratch/bare.err"
equal "told_ok: alone" 0 $?
for variant in ok nan neighbour; do
    "$tool" run --device soft --preset deep --out "$scratch/$variant" -- "$programs/told_$variant" >"$scratch/$variant.out" 2>"$scratch/$variant.err"
    "$tool" verify --json "$scratch/$variant" >"$scratch/$variant.json" 2>/dev/null
    "$tool" list --json "$scratch/$variant" >"$scratch/$variant.list" 2>/dev/null
done
check "told_ok: its output is what it is alone" cmp "$scratch/bare.out" "$scratch/ok.out"
equal "told_ok: nothing on stderr" "" "$(cat "$scratch/ok.err")"
equal "told_ok: no finding" 0 "$(jq '.findings | length' "$scratch/ok.json")"
equal "told_ok: all launches are judged" true "$(jq '.coverage | .launches == 12 and .as_written.checked == 12' "$scratch/ok.json")"
equal "steps and marks among the launches" "step assert-finite checkpoint step assert-finite checkpoint step assert-finite checkpoint step assert-finite checkpoint mark" \
    "$(jq -r '[.marks[].kind] | join(" ")' "$scratch/ok.list")"
equal "where they stand" "1 3 4 4 6 7" "$(jq -r '[.marks[:6][].before_launch] | join(" ")' "$scratch/ok.list")"
equal "values of checkpoints and assertions" "1280 0 64 0" \
    "$(jq -r '[.marks[1].elements, .marks[1].nans, .marks[2].elements, .marks[2].nans] | join(" ")' "$scratch/ok.list")"
equal "ranges without NVTX" step "$(jq -r '.launches[0].module_path' "$scratch/ok.list")"
equal "names in show" 1 "$("$tool" show "$scratch/ok" 2 | grep -c 'normalised, f32 \[20, 64\], allocation')"

source=tests/programs/told/told.cu
equal "told_nan: what was asserted is evidence of where the NaN was born" "nan-origin told.cu assertion" \
    "$(jq -r '.findings[0] | "\(.class) \(.where.file | split("/") | last) \([.evidence[].kind] | map(select(. == "assertion")) | first)"' "$scratch/nan.json")"
equal "told_nan: in which step" 2 "$(jq '.findings[0].launch.step' "$scratch/nan.json")"
"$tool" run --device soft --preset watch --out "$scratch/watch" -- "$programs/told_nan" >/dev/null 2>&1
"$tool" report --json "$scratch/watch" >"$scratch/watch.json"
equal "told_nan without re-execution: a finding of its own, with the place and the step" "nan-origin told.cu:$(grep -n 'FAULT-OTHER: nan \*/' $source | cut -d: -f1) true" \
    "$(jq -r '.findings[0] | "\(.class) \(.where.file | split("/") | last):\(.where.line) \(.text | test("1280 NaN among 1280 f32 of normalised, the first at \\[0, 0\\], in step 2"))"' "$scratch/watch.json")"
check "told_nan: what was seen while it ran, with the step" sh -c "'$tool' trace '$scratch/watch' | grep -q '^seen .*normalise, step 2: 1280 of'"
equal "told_neighbour: a store into the neighbour is out of bounds" "out-of-bounds-write told.cu:$(fault_line $source neighbour) 256 256" \
    "$(jq -r '.findings[0] | "\(.class) \(.where.file | split("/") | last):\(.where.line) \(.allocation.bytes) \(.allocation.offset)"' "$scratch/neighbour.json")"
equal "told_neighbour: it is named" true "$(jq '[.findings[0].evidence[].text] | any(test("of next|of sums"))' "$scratch/neighbour.json")"
equal "told_neighbour: redzones saw nothing" 0 "$(jq '[.findings[0].evidence[] | select(.kind == "sentinel")] | length' "$scratch/neighbour.json")"

if [ -x "$programs/told_nvtx_ok" ]; then
    for variant in ok neighbour; do
        "$tool" run --device soft --preset deep --out "$scratch/nvtx_$variant" -- "$programs/told_nvtx_$variant" >/dev/null 2>&1
        "$tool" verify --json "$scratch/nvtx_$variant" >"$scratch/nvtx_$variant.json" 2>/dev/null
    done
    equal "regions told by NVTX: no finding" "0 12" "$(jq -r '"\(.findings | length) \(.coverage.as_written.checked)"' "$scratch/nvtx_ok.json")"
    equal "regions told by NVTX: the store into the neighbour" "out-of-bounds-write 256 1" \
        "$(jq -r '.findings[0] | "\(.class) \(.allocation.bytes) \(.allocation.region_of)"' "$scratch/nvtx_neighbour.json")"
fi

export LD_LIBRARY_PATH=$PWD/$B/stub/nccl
for variant in ok uninit; do
    "$tool" run --device soft --preset deep --out "$scratch/ranks_$variant" -- "$programs/ranks_$variant" >"$scratch/ranks_$variant.out" 2>&1
    "$tool" verify --json "$scratch/ranks_$variant" >"$scratch/ranks_$variant.json" 2>/dev/null
done
equal "ranks_ok: output" "both ranks agree" "$(cat "$scratch/ranks_ok.out")"
equal "ranks_ok: no finding" 0 "$(jq '.findings | length' "$scratch/ranks_ok.json")"
"$tool" list --json "$scratch/ranks_ok" >"$scratch/list.json"
equal "collectives and their kinds" "all-reduce all-reduce reduce-scatter reduce-scatter all-gather all-gather send receive broadcast" \
    "$(jq -r '[.operators[] | select(.kind != "setup" and .kind != "group") | .kind] | join(" ")' "$scratch/list.json")"
equal "count, type, reduction, rank" "500 f32 sum 0/2 500 f32 sum 1/2" \
    "$(jq -r '[.operators[] | select(.kind == "all-reduce") | "\(.what) \(.rank)/\(.ranks)"] | join(" ")' "$scratch/list.json")"
equal "each on the stream of its rank" 2 "$(jq '[.operators[] | select(.kind == "all-reduce") | .stream] | unique | length' "$scratch/list.json")"
equal "the report marks them as communication" 1 "$("$tool" report "$scratch/ranks_ok" | grep -c 'operators: 9 library calls, 9 of them with their meaning, 9 communication')"
equal "ranks_uninit: a rank reads what no rank sent" "uninitialised-read ranks.cu 1000" \
    "$(jq -r '.findings[0] | "\(.class) \(.where.file | split("/") | last) \(.allocation.offset)"' "$scratch/ranks_uninit.json")"
done_testing
