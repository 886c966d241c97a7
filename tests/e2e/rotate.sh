#!/usr/bin/env bash
# A capture with a limit stays within it, keeps the newest launches with all that they need, and is readable whenever it is killed.
. "$(dirname "$0")/lib/tap.bash"

kilobytes() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1024) }'; }

# Without a limit first, for comparison; each launch has snapshots.
"$tool" run --device soft --preset deep --out "$scratch/whole" -- "$programs/block_ok" >"$scratch/whole.out" 2>&1
"$tool" run --device soft --preset deep --max-capture 1M --out "$scratch/small" -- "$programs/block_ok" >"$scratch/small.out" 2>&1
equal "the program's exit code" 0 $?
whole=$(kilobytes "$scratch/whole")
small=$(kilobytes "$scratch/small")
# Five segments are always open, each a sixteenth, and so much may be on its way.
check "$small KB are within 1 MB and what is open ($whole KB without a limit)" test "$small" -lt $((1024 + 384)) -a "$small" -lt "$whole"
"$tool" verify --json "$scratch/small" >"$scratch/verify.json" 2>"$scratch/verify.err"
equal "verify finds nothing in a sound program" "0 0" "$? $(jq '.findings | length' "$scratch/verify.json")"
equal "no record is called impossible" 0 "$(jq .capture_state.rejected_records "$scratch/verify.json")"
launches=$(jq .coverage.launches "$scratch/verify.json")
dropped=$(jq .coverage.dropped_launches "$scratch/verify.json")
equal "launches that are left and those that were dropped" "$("$tool" report --json "$scratch/whole" | jq .coverage.launches)" $((launches + dropped))
check "some are left ($launches), with snapshots ($(jq .coverage.as_written.checked "$scratch/verify.json") judged)" \
    test "$launches" -gt 0 -a "$(jq .coverage.as_written.checked "$scratch/verify.json")" -gt 0
last() { "$tool" list --json "$1" | jq -r '.launches[-1] | "\(.kernel) \(.grid) \(.block)"'; }
equal "the newest launch is there" "$(last "$scratch/whole")" "$(last "$scratch/small")"

"$tool" run --device soft --preset deep --max-capture 1M --out "$scratch/fault" -- "$programs/block_tail_write" >/dev/null 2>&1
"$tool" verify --json "$scratch/fault" >"$scratch/verify.json" 2>&1
equal "a fault in what is left is found" "out-of-bounds-write" "$(jq -r '[.findings[].class] | unique | join(" ")' "$scratch/verify.json")"

RANDOM=${SEED:-7}
good=0
for ((i = 0; i < 12; i++)); do
    capture=$scratch/kill-$i
    start_watched "$capture" OPSDEBUG_MAX_CAPTURE=256k OPSDEBUG_SNAPSHOTS=all "$programs/block_ok"
    sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.2f", 0.2 + r / 32767 }')"
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
    if [ ! -e "$capture/capture.bin" ]; then
        good=$((good + 1)) # it had not made its first call
        continue
    fi
    "$tool" report --json "$capture" >"$scratch/report.json" 2>"$scratch/report.err"
    if [ $? -eq 0 ] && [ "$(jq .capture_state.rejected_records "$scratch/report.json")" = 0 ]; then
        good=$((good + 1))
    else
        echo "# kill $i: $(head -n 1 "$scratch/report.err") $(jq -c .capture_state "$scratch/report.json")"
    fi
    rm -rf "$capture"
done
equal "killed at 12 moments: readable, nothing impossible, nothing found" 12 $good
done_testing
