#!/usr/bin/env bash
# The tool's own memory stays within --max-memory, whatever the program holds, and the report says what it was; short-lived threads
# share their segments; pointers of the host in the arguments of kernels.
. "$(dirname "$0")/lib/tap.bash"
folder=$programs/breakages
shim=$PWD/$B/libopsdebug.so

# held LIMIT KIND COUNT: under the stub driver, which does nothing, so that only our tables grow.
held() {
    rm -rf "$scratch/held"
    LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_PRESET=watch OPSDEBUG_CHECK=off OPSDEBUG_MAX_MEMORY=$1 OPSDEBUG_OUT=$scratch/held \
        timeout 60 "$folder/held" "$2" "$3" >"$scratch/out" 2>"$scratch/err"
    equal "$3 $2, at most $1: what the program does" "0 $3 right" "$? $(cat "$scratch/out")"
    "$tool" report --json "$scratch/held" >"$scratch/report.json"
    equal "$3 $2, at most $1: no finding" 0 "$(jq '.findings | length' "$scratch/report.json")"
}
for kind in allocations host streams events; do
    held 1M $kind 4000
    equal "$kind: it stepped aside" true "$(jq .capture_state.stepped_aside "$scratch/report.json")"
    check "$kind: and kept to the limit, but for what is needed to give memory back" \
        jq -e '.overhead.memory_peak < 1048576 + 4000 * 200' "$scratch/report.json"
    "$tool" report "$scratch/held" >"$scratch/report"
    check "$kind: the report says why" grep -q 'stepped aside: its tables need more than MAX_MEMORY' "$scratch/report"
    held 2G $kind 4000
    equal "$kind: with room it goes on to the end" false "$(jq .capture_state.stepped_aside "$scratch/report.json")"
    "$tool" report "$scratch/held" >"$scratch/report"
    check "$kind: the report says how much it was" grep -q 'of memory at most' "$scratch/report"
done

# Copies that find no room are left out, and that is said; what is judged is judged as before.
"$tool" run --device soft --preset deep --max-memory 6M --out "$scratch/tight" -- "$programs/block_ok" >"$scratch/out" 2>&1
rc=$?
bare "$programs/block_ok" >"$scratch/bare" 2>&1
equal "a tight limit in deep: exit code" $? $rc
check "the program's output" cmp "$scratch/bare" "$scratch/out"
"$tool" verify --json "$scratch/tight" >"$scratch/verify.json"
equal "no finding" 0 "$(jq '.findings | length' "$scratch/verify.json")"
check "something was left out" jq -e '.overhead.memory_refused > 0' "$scratch/verify.json"
check "within the limit" jq -e '.overhead.memory_peak <= .overhead.memory_limit' "$scratch/verify.json"

# Threads that live for two calls: a segment goes from one to the next, and each record keeps its thread.
LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_PRESET=check OPSDEBUG_OUT=$scratch/threads "$folder/churn" 400 threads >/dev/null
equal "400 short-lived threads" 0 $?
segments=$(find "$scratch/threads" -name 'segment-*' | wc -l)
check "share their segments ($segments)" test "$segments" -lt 20
"$tool" report --json "$scratch/threads" >"$scratch/report.json"
equal "nothing is lost" "0 0 false" "$(jq -r '"\(.findings | length) \(.capture_state.rejected_records) \(.capture_state.stepped_aside)"' "$scratch/report.json")"

# Pointers of the host.
for how in stack heap data store; do
    "$tool" run --device soft --preset deep --out "$scratch/$how" -- "$programs/host/host_pointer" $how >/dev/null 2>&1
    "$tool" verify --json "$scratch/$how" >"$scratch/verify.json"
    class=out-of-bounds-read line=$(fault_line tests/programs/host/host_pointer.cu load) argument=1
    [ $how = store ] && class=out-of-bounds-write line=$(fault_line tests/programs/host/host_pointer.cu store) argument=0
    equal "$how: class, launch, line" "$class 1 $line" "$(jq -r '.findings[] | "\(.class) \(.launch.seq) \(.where.line)"' "$scratch/verify.json")"
    text=$(jq -r '.findings[].evidence[] | select(.kind == "host-pointer").text' "$scratch/verify.json")
    case $how in
    stack) place='stack of a thread' ;;
    data) place='data of host_pointer' ;;
    *) place='heap' ;;
    esac
    check "$how: argument $argument, and what it points to" grep -q "^argument $argument .*$place" <<<"$text"
    check "$how: the cure is for a pointer" grep -q 'copy the data to the device first' <<<"$(jq -r '.findings[].cure' "$scratch/verify.json")"
    "$tool" run --device soft --preset watch --out "$scratch/$how-watch" -- "$programs/host/host_pointer" $how >/dev/null 2>&1
    text=$("$tool" report --json "$scratch/$how-watch" | jq -r '.findings[] | .class, (.evidence[] | select(.kind == "host-pointer").text)')
    equal "$how, watch: class" failed-launch "$(head -n 1 <<<"$text")"
    check "$how, watch: which argument" grep -q "^argument $argument of launch 1 .*$place" <<<"$text"
done
for how in unused number pinned managed registered; do
    for preset in watch deep; do
        "$tool" run --force --device soft --preset $preset --out "$scratch/$how" -- "$programs/host/host_pointer" $how >"$scratch/out" 2>&1
        equal "$how, $preset: the program" "0 $how: cudaSuccess" "$? $(cat "$scratch/out")"
        "$tool" verify --json "$scratch/$how" >"$scratch/verify.json"
        equal "$how, $preset: no finding" "" "$(jq -r '.findings[].class' "$scratch/verify.json")"
    done
done
# Given, not followed, and another launch is to blame.
for preset in watch deep; do
    "$tool" run --force --device soft --preset $preset --out "$scratch/elsewhere" -- "$programs/host/host_pointer" elsewhere >/dev/null 2>&1
    "$tool" verify --json "$scratch/elsewhere" >"$scratch/verify.json"
    equal "elsewhere, $preset: launch 2, and no word of the host's memory" "2 0" \
        "$(jq -r '.findings[] | "\(.launch.seq) \([.evidence[] | select(.kind == "host-pointer")] | length)"' "$scratch/verify.json")"
done
done_testing
