#!/usr/bin/env bash
# On a GPU: memory handed to another process is what that process sees, whether the tool is in both, in one, or in none.
. "$(dirname "$0")/lib.bash"
program ipc tests/programs/breakages/ipc.cu
shim=$OPSDEBUG_BUILD/libopsdebug.so

for preset in watch check deep; do
    for giver in "" "$shim"; do
        for taker in "" "$shim"; do
            OPSDEBUG_PRESET=$preset OPSDEBUG_OUT=$scratch/c-$RANDOM timeout 60 "$scratch/ipc" "$giver" "$taker" >"$scratch/out" 2>&1
            equal "$preset: tool in the giver: ${giver:+yes}, in the taker: ${taker:+yes}" "0 4096 words right" "$? $(cat "$scratch/out")"
        done
    done
done
done_testing
