#!/usr/bin/env bash
# scripts/smoke: which programs pass, which of them tell anything, and what it says of wrong lists.
. "$(dirname "$0")/lib/tap.bash"

smoke() {
    scripts/smoke --softgpu "$B/softgpu" "$@" >"$scratch/table" 2>&1
}
row() { # row NAME: its columns bare, stale, tool, findings
    awk -v name="$1" '$1 == name { print $(NF - 5), $(NF - 4), $(NF - 3), $(NF - 2) }' "$scratch/table"
}

list=$scratch/list
printf '# comment\n\n%s\t./block_ok\n.\t%s\tself-check: ok\n' "$programs" "$PWD/$programs/driver_ok" >"$list"
smoke "$list"
equal "sound programs: exit code" 0 $?
equal "a sound program passes, fails on a device that does nothing, is the same under the tool" "pass fails same 0" "$(row block_ok)"

# A program without kernels tells nothing; one with other output each time is compared by its constant lines.
cat >"$scratch/idle" <<'END'
#!/bin/bash
echo constant
echo "$EPOCHREALTIME $RANDOM"
END
cat >"$scratch/broken" <<'END'
#!/bin/bash
exit 3
END
cat >"$scratch/noticing" <<'END'
#!/bin/bash
[ -z "${LD_PRELOAD:-}" ] && echo bare || echo watched
END
cat >"$scratch/timing" <<'END'
#!/bin/bash
[ -z "${LD_PRELOAD:-}" ] && ms=3 || ms=6
echo "Time: 0.00$ms (s)"
echo "Sending to the device took 0.00$ms"
END
cat >"$scratch/slow" <<'END'
#!/bin/bash
sleep 30
END
chmod +x "$scratch/idle" "$scratch/broken" "$scratch/noticing" "$scratch/timing" "$scratch/slow"
printf '%s\t./idle\n%s\t./broken\n%s\t./noticing\n%s\t./idle\tnever printed\n' "$scratch" "$scratch" "$scratch" "$scratch" >"$list"
smoke "$list"
equal "programs that fail: exit code" 1 $?
equal "a program that does not need the device is marked" "pass passes same" "$(row idle | head -n 1 | cut -d' ' -f1-3)"
equal "its own check decides" "check fails same" "$(row idle | tail -n 1 | cut -d' ' -f1-3)"
check "an exit code is shown" grep -Eq '^broken +exit 3' "$scratch/table"
equal "other output under the tool is seen" output "$(row noticing | cut -d' ' -f3)"
check "totals" grep -q '^4 programs: 2 pass, 0 of them fail when kernels do nothing, 3 the same under the tool' "$scratch/table"
printf '%s\t./timing\n' "$scratch" >"$list"
smoke "$list"
equal "another time is no other output" same "$(row timing | cut -d' ' -f3)"
printf '%s\t./slow\n' "$scratch" >"$list"
smoke --timeout 1 "$list"
check "a program that does not end" grep -Eq '^slow +timeout' "$scratch/table"

smoke --help
equal "help: exit code" 0 $?
check "help names the options" grep -q -- --variants "$scratch/table"
for wrong in "--nothing $list" "" "$scratch/missing" "--softgpu $scratch $list" "--timeout" "--timeout soon $list" "--variants -1 $list"; do
    # shellcheck disable=SC2086
    smoke $wrong
    equal "wrong usage '${wrong//$scratch/}': exit code" 2 $?
    equal "wrong usage '${wrong//$scratch/}': one line" 1 "$(wc -l <"$scratch/table")"
done
printf 'no tab here\n' >"$list"
smoke "$list"
equal "a line without a command: exit code" 2 $?
printf '%s/nowhere\t./idle\n' "$scratch" >"$list"
smoke "$list"
equal "a folder that is not there: exit code" 2 $?
done_testing
