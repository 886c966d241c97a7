#!/usr/bin/env bash
# How tools of this kind broke programs by what they did with memory, arguments, streams and graphs: docs/breakages.md.
. "$(dirname "$0")/lib/tap.bash"
. "$(dirname "$0")/lib/breakages.bash"

same "unknown pointers get the driver's own answer; garbage arguments its error; cudaGetLastError is the program's" "$folder/arguments"
SOFTGPU_DEVICES=2 same "memory freed while another device is current" "$folder/arguments"

same "launch attributes and arguments in extra reach the driver" "$folder/attributes"
only failed-launch "launch attributes and arguments in extra"
# The second parameter holds a number that the program counts up; launches 3, 4 and those behind 7 are refused.
arguments=$(for launch in 1 2 5 6 7; do "$tool" show "$scratch/deep" $launch | awk '$1 == 1 && $2 == 8 { print $4 }'; done | tr '\n' ' ')
equal "they are recorded bit for bit" "0x5 0x6 0x9 0xa 0xb " "$arguments"
"$tool" verify --json "$scratch/deep" >"$scratch/verify.json"
equal "and the launches can be executed again" 5 "$(jq .coverage.as_written.checked "$scratch/verify.json")"

same "stream captures in all modes, with another thread at work: nothing is synchronised, nothing of ours is in the graph" "$folder/capture"
only failed-launch "stream captures" # the one into the legacy stream
same "kernels of two streams that wait for each other, as those of a collective do" "$folder/rendezvous"
only "" "kernels that wait for each other"
same "memory of a pool, freed in another stream than it was made in, which is far behind" "$folder/pools"
only "" "memory of a pool"
same "a primary context that ends while none, or another one, is current; a library's variables in each context" "$folder/primary"
only "" "a primary context that ends"
"$tool" verify --json "$scratch/deep" >"$scratch/verify.json"
equal "its launches can be executed again, each with its own context's variables" "36 0" "$(jq -r '"\(.coverage.as_written.checked) \(.findings | length)"' "$scratch/verify.json")"
same "many threads make and destroy contexts; handles come again; two are used by turns" "$folder/contexts"
only "" "many contexts"
"$tool" report --json "$scratch/check" >"$scratch/report.json"
check "each context has events of its own: its kernels have device times" \
    test "$(jq '[.kernels[] | select(.device_ns > 0)] | length' "$scratch/report.json")" -gt 0

# A grid whose product needs 64 bits, on a driver that does nothing.
for preset in watch check deep; do
    LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_PRESET=$preset OPSDEBUG_OUT=$scratch/wide-$preset "$folder/wide"
    equal "a grid whose product needs 64 bits, $preset" 0 $?
    "$tool" list "$scratch/wide-$preset" >"$scratch/list"
    equal "it is listed as it was, $preset" 40 "$(grep -c '2147483647x65535x65535' "$scratch/list")"
done

# What the driver is asked, and when; once with and once without kernels of ours.
for preset in watch check deep; do
    for kernels in "" STUB_TAKES_CHECKS=1; do
        for what in layout dependent; do
            env $kernels "LD_LIBRARY_PATH=$PWD/$B/stub" "LD_PRELOAD=$shim" OPSDEBUG_PRESET=$preset "OPSDEBUG_OUT=$scratch/order" \
                "$folder/order" $what >"$scratch/out" 2>&1
            if [ $what = layout ]; then
                equal "a layout is asked for after the kernel's first launch, $preset ${kernels:+with kernels}" "asked before the first launch: 0" "$(cat "$scratch/out")"
            else
                equal "nothing of ours between dependent launches, $preset ${kernels:+with kernels}" "between dependent launches: 0" "$(cat "$scratch/out")"
            fi
            rm -rf "$scratch/order"
        done
    done
done

# Memory handed to another process, with the tool in both, in one, in none. A redzone in front is something the other process cannot
# know of: deep puts none there in such a program, and where it is asked for, the capture says so.
handed_over "memory handed to another process" ipc "0 4096 words right"

# A transient buffer is nothing that stays: a table of allocations that only grows would show.
for preset in watch check deep; do
    kib=$(LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_PRESET=$preset OPSDEBUG_QUARANTINE=0 OPSDEBUG_OUT=$scratch/churn \
        "$folder/churn" "${CHURN:-60000}")
    check "${CHURN:-60000} short-lived allocations, $preset: the shim's memory stays ($kib KiB)" test "$kib" -lt 1024
    rm -rf "$scratch/churn"
done
done_testing
