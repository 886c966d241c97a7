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

for name in memory streams sharing kernels; do
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

# The other side: mistakes of many kinds (tests/programs/order/mistakes.cu), each with its class and line.
source=tests/programs/order/mistakes.cu
while read -r name class mark; do
    capture=$scratch/mistake
    "$tool" run --force --device soft --preset deep --out "$capture" -- "$programs/order/mistakes" $name >/dev/null 2>&1
    "$tool" verify --json "$capture" >"$scratch/verify.json" 2>&1
    expected="$class $(grep -n "FAULT: ${mark:-$name} \*/" $source | cut -d: -f1)"
    [ $class = failed-launch ] && expected=$class # of a launch that was refused the place is the call's
    equal "$name: class and line" "$expected" \
        "$(jq -r --arg c "$class" '[.findings[] | select(.class == $c)][0] | "\(.class) \(.where.line)"' "$scratch/verify.json" |
            sed "s/^failed-launch .*/failed-launch/")"
    equal "$name: nothing of another class" "" "$(jq -r --arg c "$class" '[.findings[] | select(.class != $c and .severity != "note") | .class] | unique | join(" ")' "$scratch/verify.json" |
        sed s/out-of-bounds-read//)"
    cp "$scratch/verify.json" "$scratch/$name.json"
done <<'TABLE'
shared_dynamic   out-of-bounds-write
shared_static    out-of-bounds-write
warp_race        race
misaligned       misaligned
unsigned_index   out-of-bounds-read
histogram        race
variable         out-of-bounds-write
one_missing      uninitialised-read
flags_missing    uninitialised-read
tile_in_part     uninitialised-read
stale_async      use-after-free increase
stale_managed    use-after-free increase
stale_graph      use-after-free increase
host_pointer     out-of-bounds-write increase
null_pointer     out-of-bounds-write increase
free_kind        invalid-free
too_many_threads failed-launch
TABLE
told() { # told NAME WORDS: is that in the evidence?
    jq -r '.findings[].evidence[].text' "$scratch/$1.json" | grep -q "$2"
}
check "a null pointer is told as one" told null_pointer "the kernel was given a null pointer"
done_testing
