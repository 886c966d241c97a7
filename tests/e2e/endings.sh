#!/usr/bin/env bash
# Programs that end at once when they saw a fault: its evidence is on disk. Programs that end with a kernel that never does: in time.
# Programs that end while their threads still work: as ever, each time.
. "$(dirname "$0")/lib/tap.bash"

source=tests/programs/endings/at_once.cu
line=$(fault_line "$source" beyond)
for preset in check deep; do
    for where in near far; do
        for how in abort _exit kill; do
            name="at_once $where $how/$preset"
            capture=$scratch/at_once-$preset-$where-$how
            { "$tool" run --device soft --preset $preset --out "$capture" -- "$programs/endings/at_once" $where $how; } >/dev/null 2>&1
            "$tool" verify --json "$capture" >"$scratch/verify.json" 2>"$scratch/verify.err"
            equal "$name: class, file and line" "out-of-bounds-write at_once.cu:$line" \
                "$(jq -r '.findings[0] | "\(.class) \(.where.file // "" | split("/") | last):\(.where.line)"' "$scratch/verify.json")"
            rm -rf "$capture"
        done
    done
done

elapsed() { # elapsed COMMAND...: sets rc and ms
    local begin
    begin=$(date +%s%3N)
    timeout 60 "$@" >"$scratch/out" 2>/dev/null
    rc=$?
    ms=$(($(date +%s%3N) - begin))
}
elapsed env LD_LIBRARY_PATH="$PWD/$B/softgpu" "$programs/endings/hung"
bare_rc=$rc
bare_ms=$ms
for preset in watch check deep; do
    elapsed "$tool" run --device soft --preset $preset --out "$scratch/hung-$preset" -- "$programs/endings/hung"
    equal "hung/$preset: exit code" $bare_rc $rc
    equal "hung/$preset: output" "the end" "$(cat "$scratch/out")"
    check "hung/$preset: in time ($ms ms, $bare_ms ms without the tool)" test $ms -lt $((bare_ms + 5000))
    "$tool" report "$scratch/hung-$preset" >"$scratch/report" 2>&1
    equal "hung/$preset: the report can be made" 1 "$(($? <= 1))"
done

times() { # times N COMMAND...: how many of N runs ended with another exit code than 0
    local n=$1 bad=0
    shift
    for ((; n > 0; n--)); do
        { timeout 60 "$@"; } >/dev/null 2>&1 || bad=$((bad + 1))
    done
    echo $bad
}
equal "busy: no run of 60 fails" 0 "$(times 60 env LD_LIBRARY_PATH="$PWD/$B/softgpu" "$programs/endings/busy")"
for preset in check deep; do
    equal "busy/$preset: no run of 10 fails" 0 \
        "$(times 10 "$tool" run --device soft --preset $preset --force --out "$scratch/busy" -- "$programs/endings/busy")"
done
done_testing
