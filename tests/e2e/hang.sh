#!/usr/bin/env bash
# Programs that never go on get a finding from outside, while they hang and after they were killed; sound ones that look like them get none.
. "$(dirname "$0")/lib/tap.bash"

declare -A pid
start() { # start MODE...: in the background; the capture is $scratch/MODE
    local mode
    for mode in "$@"; do
        "$tool" run --device soft --out "$scratch/$mode" -- "$programs/hang" "$mode" >/dev/null 2>&1 &
        pid[$mode]=$!
    done
}
look() { # look MODE WHAT: sets rc, writes $scratch/hang.json
    "$tool" hang --json --after 2 "$2" >"$scratch/hang.json" 2>"$scratch/hang.err"
    rc=$?
}
show() { sed 's/^/# /' "$scratch/hang.json" "$scratch/hang.err" | head -n 20; }
finish() { # finish MODE
    kill -9 "${pid[$1]}" 2>/dev/null
    wait "${pid[$1]}" 2>/dev/null
}

# stuck MODE JQ EXPECTED: within 60 s there is a finding, also when only the process is named; killed, it stays.
stuck() {
    local mode=$1 until=$((SECONDS + 60))
    rc=0
    while [ $rc -ne 1 ] && [ $SECONDS -lt $until ]; do
        sleep 0.5
        look "$mode" "$scratch/$mode"
    done
    equal "$mode: stuck" "1 hang $3" "$rc $(jq -r '.findings[0].class' "$scratch/hang.json") $(jq -r "$2" "$scratch/hang.json")"
    [ $rc -eq 1 ] || show
    look "$mode" "${pid[$mode]}"
    equal "$mode: the same by the number of the process" "1 hang alive" "$rc $(jq -r '.findings[0].class + " " + .process' "$scratch/hang.json")"
    finish "$mode"
    look "$mode" "$scratch/$mode"
    equal "$mode: the same when it was killed" "1 hang gone" "$rc $(jq -r '.findings[0].class + " " + .process' "$scratch/hang.json")"
}
# sound MODE JQ EXPECTED
sound() {
    look "$1" "$scratch/$1"
    equal "$1: no finding" "0 0 $3" "$rc $(jq -r '.findings | length' "$scratch/hang.json") $(jq -r "$2" "$scratch/hang.json")"
    [ $rc -eq 0 ] || show
}

# noted MODE JQ EXPECTED: within 60 s there is a note, and no finding.
noted() {
    local until=$((SECONDS + 60))
    while look "$1" "$scratch/$1"; [ "$(jq '.notes | length' "$scratch/hang.json")" != 1 ] && [ $SECONDS -lt $until ]; do
        sleep 0.5
    done
    sound "$@"
    "$tool" hang --after 2 "$scratch/$1" >"$scratch/$1.text"
    kill -STOP "${pid[$1]}"
    sleep 0.3
    "$tool" hang --after 2 "$scratch/$1" >"$scratch/$1.stopped"
    finish "$1"
}

start spin crossed never polled
launch='.findings[0].launch | "\(.kernel) \(.seq)"'
stuck spin "$launch" "poll_flag 14"
stuck crossed "$launch" "add 11"
stuck never "$launch" "add 11"
stuck polled '[(.threads[] | .polls), .findings[0].launch.kernel] | join(" ")' "true poll_flag"

start slow idle deadlock released function returns
# By its time alone it is not told from a slow kernel.
start spin_first
noted spin_first '.notes[0] | "\(.class) \(.launch.kernel)"' "unknown poll_flag"
check "spin_first: the text says what cannot be told" grep -q '^It cannot be told whether launch [0-9]* is stuck$' "$scratch/spin_first.text"
equal "spin_first: no cure that would change nothing" 0 "$(grep -c 're-run with --preset deep' "$scratch/spin_first.text")"
check "spin_first: stopped by a signal, and how it goes on" grep -q "^The program is stopped by a signal; kill -CONT ${pid[spin_first]} lets it go on\$" "$scratch/spin_first.stopped"
check "spin_first: its thread, too" grep -q 'state T, stopped by a signal' <(tr -s '\n ' ' ' <"$scratch/spin_first.stopped")
noted function '"\(.notes[0].class) \(.streams[] | .function // empty | "\(.name | split(":")[0]) \(.begun) \(.thread != null) \(.from)")"' \
    "unknown never_returns hang.cu true true hang.cu:$(grep -n -F 'cudaLaunchHostFunc(a, never_returns' tests/programs/hang/hang.cu | cut -d: -f1)"
check "function: the text says it, too" jq -e '[.streams[].text] | any(test("inside never_returns hang.cu:[0-9]+, a function of the host, for .* in thread [0-9]+"))' "$scratch/hang.json"
sound slow '.threads | length' 1
sound deadlock '[.threads[].inside] | join(" ")' ""
finish deadlock
sound idle '[.threads[].inside] | join(" ")' ""
sound released '.notes | length < 2' true
for mode in slow idle released returns; do
    wait "${pid[$mode]}"
    equal "$mode: ends as it should" 0 $?
    look $mode "$scratch/$mode"
    equal "$mode: no finding when it has ended" "0 0 true" "$rc $(jq -r '"\(.findings | length) \(.ended)"' "$scratch/hang.json")"
done

"$tool" hang "$scratch/nothing" >/dev/null 2>"$scratch/err"
equal "a capture that is not there: exit 2, one line" "2 1" "$? $(wc -l <"$scratch/err")"
"$tool" hang $$ >/dev/null 2>"$scratch/err"
equal "a process that writes none: exit 2, one line" "2 1" "$? $(wc -l <"$scratch/err")"
done_testing
