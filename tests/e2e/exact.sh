#!/usr/bin/env bash
# Where host and device arithmetic are both exactly defined, the executor agrees bit for bit with the host compiler's code.
. "$(dirname "$0")/lib/tap.bash"

for family in block ocean; do
    for seed in 1 2 3 4 5; do
        for size in small medium; do
            bare "$programs/${family}_ok" --seed $seed --size $size >"$scratch/out" 2>&1
            rc=$?
            line=$(grep '^exact:' "$scratch/out")
            if [ $rc -eq 0 ] && grep -qE ' 0 of [1-9][0-9]* differ.* 0 of [1-9][0-9]* differ' <<<"$line"; then
                ok "$family seed $seed $size: $line"
            else
                not_ok "$family seed $seed $size: exit $rc, $line"
            fi
        done
    done
done
done_testing
