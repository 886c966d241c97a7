#!/usr/bin/env bash
# Sound programs: under every preset the output and exit code are byte for byte those without the tool, and nothing is found.
. "$(dirname "$0")/lib/tap.bash"

for program in block_ok ocean_ok driver_ok nvrtc_ok unseen_ok; do
    bare "$programs/$program" >"$scratch/bare.out" 2>"$scratch/bare.err"
    bare_rc=$?
    equal "$program: passes its own check on softgpu" 0 $bare_rc
    for preset in watch check deep; do
        capture=$scratch/$program-$preset
        "$tool" run --device soft --preset $preset --out "$capture" -- "$programs/$program" >"$scratch/out" 2>"$scratch/err"
        equal "$program/$preset: exit code" $bare_rc $?
        check "$program/$preset: stdout" cmp "$scratch/bare.out" "$scratch/out"
        check "$program/$preset: stderr" cmp "$scratch/bare.err" "$scratch/err"
        check "$program/$preset: report finds nothing" "$tool" report "$capture"
        check "$program/$preset: verify finds nothing" "$tool" verify "$capture"
        check "$program/$preset: report after verify finds nothing" "$tool" report "$capture"
        if [ $preset = deep ]; then
            equal "$program/$preset: every launch was judged" true \
                "$("$tool" verify --json "$capture" | jq '.coverage | .launches > 0 and .as_written.checked == .launches')"
        fi
        rm -rf "$capture"
    done
done
# Sound but different devices: everything that the specification leaves open is chosen otherwise.
for seed in 3 8; do
    for program in block_ok ocean_ok; do
        for preset in check deep; do
            capture=$scratch/$program-$preset-$seed
            SOFTGPU_VARIANT=$seed "$tool" run --device soft --preset $preset --out "$capture" -- "$programs/$program" >/dev/null 2>&1
            equal "$program/$preset, device variant $seed: exit code" 0 $?
            check "$program/$preset, device variant $seed: verify finds nothing" "$tool" verify "$capture"
            rm -rf "$capture"
        done
    done
done
done_testing
