#!/usr/bin/env bash
# Pairs of wrong and right kernels: every wrong one is named with its class and line, no right one is accused.
. "$(dirname "$0")/lib/tap.bash"

for source in tests/programs/pairs/*.cu; do
    name=$(basename "$source" .cu)
    class=$(grep -oE 'FAULT: [a-z-]+ \*/' "$source" | head -n 1 | cut -d' ' -f2)
    # Either party of a race may be named.
    lines=$(grep -nE 'FAULT(-OTHER)?: [a-z-]+ \*/' "$source" | cut -d: -f1 | tr '\n' ' ')
    for variant in wrong right; do
        capture=$scratch/$name-$variant
        "$tool" run --device soft --preset deep --out "$capture" -- "$programs/pairs/${name}_$variant" >/dev/null 2>&1
        "$tool" verify --json "$capture" >"$scratch/verify.json" 2>"$scratch/verify.err"
        rm -rf "$capture"
        found=$(jq -r '[.findings[] | "\(.class) \(.where.line)"] | unique | join(", ")' "$scratch/verify.json" 2>&1)
        if [ $variant = right ]; then
            equal "$name right: not accused" "" "$found"
            continue
        fi
        hit=no
        for line in $lines; do
            [ "$found" = "$class $line" ] && hit=yes
        done
        if [ $hit = yes ]; then
            ok "$name wrong: $found"
        else
            not_ok "$name wrong: found '$found', planted $class at line $lines"
        fi
    done
done
done_testing
