#!/usr/bin/env bash
# What real programs do that looks like a mistake and is none (tests/programs/customs): same output and exit code as without the
# tool, and nothing is found, whatever is looked for.
. "$(dirname "$0")/lib/tap.bash"

sound() { # sound NAME OPTIONS -- PROGRAM ARGUMENTS: NAME begins with the program
    local name=$1 options=() capture=$scratch/capture
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    bare "$@" >"$scratch/bare.out" 2>"$scratch/bare.err"
    equal "$name: its own check passes" 0 $?
    "$tool" run --force --device soft "${options[@]}" --out "$capture" -- "$@" >"$scratch/out" 2>"$scratch/err"
    equal "$name: exit code" 0 $?
    check "$name: stdout" cmp "$scratch/bare.out" "$scratch/out"
    check "$name: stderr" cmp "$scratch/bare.err" "$scratch/err"
    check "$name: report finds nothing" "$tool" report "$capture"
    # A kernel that waits for another one cannot be executed again alone.
    check "$name: verify finds nothing" "$tool" verify --budget=2 "$capture"
}

for name in memory streams kernels; do
    sound "$name, check" --preset check --leak-check on -- "$programs/customs/$name"
    sound "$name, deep" --preset deep -- "$programs/customs/$name"
done
sound "memory, guarded" --guard all -- "$programs/customs/memory"
export SOFTGPU_DEVICES=2
sound "devices, deep" --preset deep --leak-check on -- "$programs/customs/devices"
sound "devices, guarded" --guard all -- "$programs/customs/devices"
unset SOFTGPU_DEVICES
for way in destructor at_exit reset fork_first detached nothing_left; do
    sound "life $way" --leak-check on -- "$programs/customs/life" $way
done
done_testing
