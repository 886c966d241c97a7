#!/usr/bin/env bash
# kill -9 at 50 random moments: what was captured until then is readable, and a report is given.
. "$(dirname "$0")/lib/tap.bash"

kills=${KILLS:-50}
# How long the program lives under the tool, in ms, to spread the kills over its life.
start=$(date +%s%3N)
"$tool" run --device soft --out "$scratch/whole" -- "$programs/block_ok" >/dev/null 2>&1
life=$(($(date +%s%3N) - start))
RANDOM=${SEED:-20}
readable=0
with_launches=0
for ((i = 0; i < kills; i++)); do
    capture=$scratch/kill-$i
    "$tool" run --device soft --out "$capture" -- "$programs/block_ok" >/dev/null 2>&1 &
    child=$!
    sleep "$(awk -v r=$RANDOM -v life=$life 'BEGIN { printf "%.3f", (r / 32767) * life / 1000 }')"
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
    if [ ! -e "$capture/capture.bin" ]; then
        readable=$((readable + 1)) # killed before its first CUDA call: there is nothing to read
        continue
    fi
    "$tool" report --json "$capture" >"$scratch/report.json" 2>"$scratch/report.err"
    rc=$?
    if [ $rc -le 1 ] && jq -e .schema "$scratch/report.json" >/dev/null; then
        readable=$((readable + 1))
        [ "$(jq '.coverage.launches' "$scratch/report.json")" -gt 0 ] && with_launches=$((with_launches + 1))
    else
        echo "# kill $i: report exit $rc: $(head -n 1 "$scratch/report.err")"
        cp -r "$capture" "$B/kill-$i.failed" 2>/dev/null
    fi
    rm -rf "$capture"
done
equal "captures of $kills killed runs are readable" $kills $readable
check "some of them were killed with launches recorded ($with_launches)" test "$with_launches" -gt 0
done_testing
