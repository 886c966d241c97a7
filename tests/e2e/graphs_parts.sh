#!/usr/bin/env bash
# One fault inside a graph each: put on the launch of the graph, on the node and on the line. The sound twin is silent. The
# same when graphs are launched node by node. Graphs in numbers.
. "$(dirname "$0")/lib/tap.bash"

parts=tests/programs/graphs/parts.cu
# run NAME OPTIONS PROGRAM: a capture $scratch/NAME of a run whose output must be the bare one's, and its verdict.
run() {
    local name=$1 options=$2 program=$3
    bare "$programs/$program" >"$scratch/bare.out" 2>"$scratch/bare.err"
    local code=$?
    # shellcheck disable=SC2086
    "$tool" run --device soft $options --out "$scratch/$name" -- "$programs/$program" >"$scratch/out" 2>"$scratch/err"
    equal "$name: exit code" $code $?
    check "$name: stdout" cmp "$scratch/bare.out" "$scratch/out"
    check "$name: stderr" cmp "$scratch/bare.err" "$scratch/err"
    "$tool" verify --json "$scratch/$name" >"$scratch/$name.json"
}
# found NAME: "class kernel node line" of every finding.
found() {
    jq -r '.findings[] | "\(.class) \(.launch.kernel) \(.launch.node) \(.where.line)"' "$scratch/$1.json"
}

for options in "--preset deep" "--preset check" "--preset watch" "--preset deep --graphs explode"; do
    name=ok-$(echo "$options" | tr -d ' -')
    run "$name" "$options" graphs_parts_ok
    equal "$name: nothing found" "" "$(found "$name")"
done
equal "ok: every launch of a graph is judged" 12 "$(jq .coverage.as_written.checked "$scratch/ok-presetdeep.json")"
equal "ok: node by node every launch is" 30 "$(jq .coverage.as_written.checked "$scratch/ok-presetdeepgraphsexplode.json")"
check "ok: show names the nodes" sh -c "'$tool' show '$scratch/ok-presetdeep' 12 | grep -q 'kernel.*root, grid'"
equal "ok: list tells of the graphs" "1,2,3" \
    "$("$tool" list --json "$scratch/ok-presetdeep" | jq -r '[.launches[].graph // empty] | unique | join(",")')"

# variant, class, kernel, its node, the node of the launch, the mark of the line
while read -r variant class kernel node mark; do
    line=$(fault_line $parts "$mark")
    run "$variant" "--preset deep" "graphs_parts_$variant"
    equal "$variant: found" "$class $kernel $node $line" "$(found "$variant")"
    equal "$variant: at a launch of a graph, three times" "true 3" \
        "$(jq -r '.findings[0] | "\(.launch.graph != null) \(.launches | length)"' "$scratch/$variant.json")"
    run "$variant-exploded" "--preset deep --graphs explode" "graphs_parts_$variant"
    equal "$variant: found node by node, too" "$class $kernel null $line" "$(found "$variant-exploded")"
done <<EOF
captured_write out-of-bounds-write ramp 1 captured_write
explicit_write out-of-bounds-write twice 3 explicit_write
updated_write out-of-bounds-write ramp 2 captured_write
branch_write out-of-bounds-write root 3 branch_write
nan nan-origin root 3 branch_write
EOF
run branch_race "--preset deep" graphs_parts_branch_race
equal "branch_race: found" "stream-race root 3 null" "$(found branch_race)"
equal "branch_race: with the other node" 4 "$(jq '.findings[0].launch.other_node' "$scratch/branch_race.json")"
# The health check looks at launches of graphs, too.
run health "--preset check" graphs_parts_nan
equal "nan: seen while the program ran, at the launch of the graph" "graph 3 12 true" \
    "$(jq -r '.health[0] | "\(.kernel) \(.launch) \(.nan > 0)"' "$scratch/health.json")"
equal "ok: no such values seen" "0 0" "$(jq -s -r 'map(.health | length) | join(" ")' "$scratch/ok-presetcheck.json" "$scratch/ok-presetdeep.json")"
run watched "--preset watch" graphs_parts_branch_write
equal "branch_write, only watched: the redzone tells the launch" "out-of-bounds-write graph 3 12" \
    "$(jq -r '.findings[] | "\(.class) \(.launch.kernel) \(.launch.seq)"' "$scratch/watched.json")"

for seed in 2 5; do
    SOFTGPU_VARIANT=$seed "$tool" run --device soft --preset deep --out "$scratch/variant$seed" -- "$programs/graphs_parts_ok" >/dev/null
    equal "device variant $seed: nothing found, all judged" "0 12" \
        "$("$tool" verify --json "$scratch/variant$seed" | jq -r '"\(.findings | length) \(.coverage.as_written.checked)"')"
done
while read -r class kernel node fault; do
    SOFTGPU_FAULTS=$fault "$tool" run --device soft --preset deep --out "$scratch/flawed-$class-$kernel" -- "$programs/graphs_parts_ok" >/dev/null
    "$tool" verify --json "$scratch/flawed-$class-$kernel" >"$scratch/flawed.json"
    equal "flawed device: $fault" "$class $kernel $node null" "$(found flawed)"
done <<EOF
dropped-write sum 4 kernel=sum,launch=1,kind=dropstore,rate=0.2
dropped-write twice 3 kernel=twice,launch=4,kind=dropstore,rate=1
mismatch root 3 kernel=root,launch=2,kind=bitflip,rate=0.1
EOF

for options in "--preset watch" "--preset check" "--preset watch --graphs explode"; do
    name=many-$(echo "$options" | tr -d ' -')
    run "$name" "$options" graphs_many
    equal "$name: nothing found" "" "$(found "$name")"
done
equal "many: launches of graphs" 1602 "$("$tool" list --json "$scratch/many-presetwatch" | jq '[.launches[] | select(.graph)] | length')"
done_testing
