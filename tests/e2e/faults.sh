#!/usr/bin/env bash
# Planted faults of two unrelated programs: run, then verify, must name class, launch, kernel, file, line, allocation, distance.
. "$(dirname "$0")/lib/tap.bash"

# expect PROGRAM FAULT PRESET CLASS: one finding of that class at the marked line, and no finding of another class.
expect() {
    local program=$1 fault=$2 preset=$3 class=$4 source line json
    local name="$program/$preset"
    source=$(grep -rlE "FAULT: $fault \*/" "tests/programs/${program%%_*}" | head -n 1)
    line=$(fault_line "$source" "$fault")
    "$tool" run --device soft --preset "$preset" --out "$scratch/$program-$preset" -- "$programs/$program" >/dev/null 2>&1
    "$tool" verify --json "$scratch/$program-$preset" >"$scratch/verify.json" 2>"$scratch/verify.err"
    equal "$name: verify's exit code" 1 $?
    json=$(jq -c --arg c "$class" '[.findings[] | select(.class == $c)][0]' "$scratch/verify.json")
    equal "$name: only $class" "$class" "$(jq -r '[.findings[].class] | unique | join(",")' "$scratch/verify.json")"
    equal "$name: file" "$(basename "$source")" "$(jq -r '.where.file // "" | split("/") | last' <<<"$json")"
    equal "$name: line" "$line" "$(jq -r '.where.line' <<<"$json")"
    equal "$name: allocation, offset past its end" true \
        "$(jq -r '.allocation.id > 0 and (.allocation.offset >= .allocation.bytes)' <<<"$json")"
    equal "$name: allocation's stack names the program's source" true \
        "$(jq -r --arg f "$(dirname "$source" | xargs basename)" '.allocation.stack | any(test($f))' <<<"$json")"
    equal "$name: launch, kernel and next command" true \
        "$(jq -r '.launch.seq > 0 and (.launch.kernel | length > 0) and (.next | length > 0)' <<<"$json")"
    # The kernel named is the one whose body holds the guilty line.
    equal "$name: kernel holds the line" true "$(kernel_holds "$source" "$line" "$(jq -r .launch.kernel <<<"$json")")"
}
kernel_holds() { # the last __global__ function that starts above the line
    local found
    found=$(head -n "$2" "$1" | grep -oE '__global__ [^;{]*\b([a-z_0-9]+)\(' | tail -n 1 | grep -oE '[a-z_0-9]+\($' | tr -d '(')
    [ -n "$found" ] && [[ $3 == *$found* ]] && echo true || echo "false: $found is not in $3"
}

for preset in deep check; do
    for family in block ocean; do
        expect ${family}_tail_write tail_write $preset out-of-bounds-write
        expect ${family}_far_write far_write $preset out-of-bounds-write
    done
done
done_testing
