#!/usr/bin/env bash
# Sound programs of odd shapes (threads, life cycles): same output and exit code as without the tool, in time, and no finding.
. "$(dirname "$0")/lib/tap.bash"

for source in tests/programs/odd/*.cu; do
    name=$(basename "$source" .cu)
    bare timeout 30 "$programs/odd/$name" >"$scratch/bare.out" 2>"$scratch/bare.err"
    bare_rc=$?
    for preset in watch check deep deep; do
        capture=$scratch/$name-$preset
        timeout 60 "$tool" run --force --device soft --preset $preset --out "$capture" -- "$programs/odd/$name" \
            >"$scratch/out" 2>"$scratch/err"
        equal "$name/$preset: exit code" $bare_rc $?
        check "$name/$preset: stdout" cmp "$scratch/bare.out" "$scratch/out"
        check "$name/$preset: stderr" cmp "$scratch/bare.err" "$scratch/err"
        check "$name/$preset: verify finds nothing" "$tool" verify "$capture"
        check "$name/$preset: report finds nothing" "$tool" report "$capture"
    done
done
# Kernels of a program linked as device code, which start kernels of its other file, are executed again.
"$tool" list "$scratch/linked-deep" >"$scratch/list"
check "linked: launches that launch are judged" grep -q "sort_all .*as written" "$scratch/list"
check "linked: kernels of the other file are judged" grep -q "add_constant<5> .*as written" "$scratch/list"
check "first_launch: variables of the module are among its inputs" \
    sh -c "'$tool' list '$scratch/first_launch-deep' | grep -q 'look_up .*as written'"
done_testing
