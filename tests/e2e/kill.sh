#!/usr/bin/env bash
# kill -9 at random moments (50; KILLS=1000 by hand): what was captured until then is readable, nothing that the program was told
# is done is missing, and a report is given.
. "$(dirname "$0")/lib/tap.bash"

kills=${KILLS:-50}
program=$programs/breakages/killed
head -c 4 /dev/zero >"$scratch/done"
# How long the program lives under the tool, in ms, to spread the kills over its life.
start=$(date +%s%3N)
start_watched "$scratch/whole" "$program" "$scratch/done"
wait "$child"
life=$(($(date +%s%3N) - start))
RANDOM=${SEED:-20}
readable=0 complete=0 with_launches=0
for ((i = 0; i < kills; i++)); do
    capture=$scratch/kill-$i
    head -c 4 /dev/zero >"$scratch/done"
    start_watched "$capture" "$program" "$scratch/done"
    sleep "$(awk -v r=$RANDOM -v life=$life 'BEGIN { printf "%.3f", (r / 32767) * life / 1000 }')"
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
    told=$(od -An -tu4 -N4 "$scratch/done" | tr -d ' ') # launches that had returned
    if [ ! -e "$capture/capture.bin" ]; then
        readable=$((readable + 1)) # killed before its first CUDA call: there is nothing to read
        [ "$told" -eq 0 ] && complete=$((complete + 1))
        continue
    fi
    "$tool" report --json "$capture" >"$scratch/report.json" 2>"$scratch/report.err"
    rc=$?
    launches=$(jq '.coverage.launches' "$scratch/report.json")
    if [ $rc -le 1 ] && jq -e .schema "$scratch/report.json" >/dev/null; then
        readable=$((readable + 1))
        [ "$launches" -gt 0 ] && with_launches=$((with_launches + 1))
    fi
    # The one that was under way may be there, too.
    [ "$launches" -ge "$told" ] && [ "$launches" -le $((told + 1)) ] && complete=$((complete + 1))
    if [ $readable -ne $((i + 1)) ] || [ $complete -ne $((i + 1)) ]; then
        echo "# kill $i: report exit $rc, $launches launches, $told known: $(head -n 1 "$scratch/report.err")"
        cp -r "$capture" "$B/kill-$i.failed" 2>/dev/null
        break
    fi
    rm -rf "$capture"
done
equal "captures of $kills killed runs are readable" $kills $readable
equal "nothing recorded before a kill is missing" $kills $complete
check "some of them were killed with launches recorded ($with_launches)" test "$with_launches" -gt 0
done_testing
