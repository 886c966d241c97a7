#!/usr/bin/env bash
# Life cycles: how processes begin, multiply and end, and with what else in them. docs/breakages.md, "Processes, exit, crashes".
. "$(dirname "$0")/lib/tap.bash"
folder=$programs/breakages
shim=$PWD/$B/libopsdebug.so
exec 3>&2 2>"$scratch/shell" # the shell tells of killed jobs

# same NAME PROGRAM...: output, messages and exit code of the bare program in each of PRESETS (PRELOAD: other libraries, with %s for
# ours); a capture that can be read. Leaves the captures as $scratch/PRESET.
same() {
    local name=$1 preset bare_rc rc preload=${PRELOAD:-%s}
    shift
    timeout 60 env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "LD_PRELOAD=${preload//%s/}" "$@" >"$scratch/bare.out" 2>"$scratch/bare.err"
    bare_rc=$?
    for preset in ${PRESETS:-watch deep}; do
        rm -rf "${scratch:?}/$preset"
        timeout 60 env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "LD_PRELOAD=${preload//%s/$shim}" OPSDEBUG_PRESET=$preset \
            "OPSDEBUG_OUT=$scratch/$preset" "$@" >"$scratch/out" 2>"$scratch/err"
        rc=$?
        if [ $rc = $bare_rc ] && cmp -s "$scratch/bare.out" "$scratch/out" && cmp -s "$scratch/bare.err" "$scratch/err" &&
            "$tool" report "$scratch/$preset" >"$scratch/report" 2>"$scratch/report.err"; then
            ok "$name, $preset"
        else
            not_ok "$name, $preset: exit $rc, bare $bare_rc"
            { diff "$scratch/bare.out" "$scratch/out"; head -n 3 "$scratch/err" "$scratch/report.err"; } | head -n 8 | sed 's/^/# /'
        fi
    done
}
children() { # how many other processes wrote a capture beside the first
    find "$scratch/$1" -maxdepth 1 -name 'process-*' | wc -l
}

# A child starts its own capture or none.
for way in fork fork-exit fork-abort vfork clone clone-use clone-files system; do
    same "a child made by $way" "$folder/children" $way
    equal "a child made by $way writes nothing" 0 "$(children deep)"
done
for way in fork-exec vfork-exec posix_spawn exec; do
    same "a child made by $way" "$folder/children" $way
    equal "a child made by $way has a capture of its own" 1 "$(children deep)"
    check "a child made by $way: its capture can be read" "$tool" report "$scratch"/deep/process-*
    equal "a child made by $way: its folder is private" 700 "$(stat -c %a "$scratch"/deep/process-*)"
done
same "a daemon, whose parent goes before it begins" "$folder/children" daemon

# Ends of all kinds, with other threads at work.
for how in exit _exit quick_exit exit_group abort trap null 15 2 9 11 8 thread; do
    PRESETS="check" same "an end by $how" "$folder/ends" $how
    equal "an end by $how: no launch before it is missing" 20 "$("$tool" list "$scratch/check" | grep -c ' mark ')"
done

# What is launched while the process ends may be refused because the driver is gone. That is no finding.
for round in 1 2 3 4 5; do
    PRESETS="check" same "an end while other threads launch, $round" "$folder/ends" launching
    equal "an end while other threads launch, $round: no finding" "" "$("$tool" report --json "$scratch/check" | jq -r '[.findings[].class] | join(" ")')"
done

same "C++: objects before main, behind it, of threads; exceptions; handlers of exit" "$folder/cxx"
same "signal handlers, masks and stacks stay the program's" "$folder/signals"

# A thread that was cancelled ends at the next place where it may: calls that do nothing are none.
for preset in watch check deep; do
    equal "cancelled threads, $preset" "20 of 20 threads did all their work, 20 ended where they may" \
        "$(timeout 60 env "LD_LIBRARY_PATH=$PWD/$B/stub" "LD_PRELOAD=$shim" OPSDEBUG_PRESET=$preset "OPSDEBUG_OUT=$scratch/cancelled" "$folder/cancelled")"
    check "cancelled threads, $preset: the capture can be read" "$tool" report "$scratch/cancelled"
    rm -rf "$scratch/cancelled"
done

# Threads with the smallest stack there is, in the process's first calls and in later ones.
for when in first later; do
    for kib in 16 24; do
        PRESETS="watch check deep" same "a thread with a stack of $kib KiB, $when calls" "$folder/small_stack" $((kib << 10)) $when
    done
    for preset in watch check deep; do
        rm -rf "${scratch:?}/$preset"
        env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "LD_PRELOAD=$shim" OPSDEBUG_PRESET=$preset "OPSDEBUG_OUT=$scratch/$preset" \
            "$folder/small_stack" 16384 $when wrong >"$scratch/out" 2>&1
        equal "a thread with a stack of 16 KiB that does wrong, $when calls, $preset" "0 0 problems" "$? $(cat "$scratch/out")"
        equal "what is wrong there is found, $when calls, $preset" "failed-launch invalid-free out-of-bounds-write" \
            "$("$tool" report --json "$scratch/$preset" | jq -r '[.findings[].class] | unique | join(" ")')"
    done
done
check "calls without a host stack are told" grep -q 'no host stack' <("$tool" report "$scratch/check")

# What the environment said when the process began holds, whatever the program does to it before its first call.
for way in clear overwrite; do
    rm -rf "$scratch/place" "$scratch/deep"
    mkdir "$scratch/place"
    (cd "$scratch/place" && exec env "LD_LIBRARY_PATH=$OLDPWD/$B/softgpu" "LD_PRELOAD=$shim" OPSDEBUG_CHECK=perhaps "OPSDEBUG_OUT=$scratch/deep" \
        "$OLDPWD/$folder/ends" _exit $way) >"$scratch/out" 2>&1
    equal "an environment that was changed ($way): the program" "4 _exit" "$? $(cat "$scratch/out")"
    equal "an environment that was changed ($way): nothing in the working directory" "" "$(ls -A "$scratch/place")"
    check "an environment that was changed ($way): the options are those that were given" grep -q 'OPSDEBUG_CHECK=perhaps' <("$tool" report "$scratch/deep")
done

# What the tool cost is in the capture of a program that is killed, too; where it is not, the report does not say that it was nothing.
rm -rf "$scratch/deep"
env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "LD_PRELOAD=$shim" "OPSDEBUG_OUT=$scratch/deep" "$folder/ends" 9 >"$scratch/out" 2>&1
check "a killed program: the tool's own cost, and its start's, are known" jq -e '.overhead | .ns_per_launch > 0 and .start_ns > 0 and .share > 0' \
    <("$tool" report --json "$scratch/deep")
check "the report says so" grep -qE '^own cost +[0-9.]+ .?s in the program.s threads, [0-9.]+ .?s of it for the start, [0-9.]+ .?s per launch' <("$tool" report "$scratch/deep")
dd if=/dev/zero "of=$scratch/deep/capture.bin" bs=8 seek=11 count=1 conv=notrunc status=none # own_tsc of struct cap_header
check "a cost that is not known is not told as none" grep -q '^own cost  not known: the program did not end in an orderly way' <("$tool" report "$scratch/deep")

# Plug-ins: all CUDA calls are in a library that is gone when the stacks are named; another one had its addresses since.
PRESETS="watch deep" same "plug-ins that come and go" "$folder/plugin_host" "$PWD/$folder/first.so" "$PWD/$folder/second.so" \
    "$PWD/$folder/first.so" "$PWD/$folder/second.so"
for launch in 1 2 3 4; do
    name=$([ $((launch % 2)) = 1 ] && echo first || echo second)
    equal "launch $launch: the stack names the plug-in that was there" "${name}_stage" \
        "$("$tool" show "$scratch/deep" $launch | grep -oE '(first|second)_stage' | sort -u | tr '\n' ' ' | sed 's/ $//')"
done

# Threads by the thousand, each with a call or two.
kib=$(LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_OUT=$scratch/threads "$folder/churn" "${THREADS:-3000}" threads)
check "${THREADS:-3000} short-lived threads: the shim's memory stays ($kib KiB)" test "$kib" -lt 512
check "their capture can be read" "$tool" report "$scratch/threads"
rm -rf "$scratch/threads"

# Beside other preloaded libraries, in both orders.
for library in allocator heap; do
    for order in "%s:$PWD/$B/stub/$library.so" "$PWD/$B/stub/$library.so:%s"; do
        for program in cxx contexts; do
            ALLOCATOR_OUT=$scratch/allocations PRELOAD=$order PRESETS=deep \
                same "another $library, $([ "${order:0:2}" = %s ] && echo behind || echo before) us: $program" "$folder/$program"
            check "it was asked" test "$(cat "$scratch/allocations")" -gt 100
        done
    done
done

# A disk that is full: from the start, at the first records, at later ones, at contents.
bare "$folder/contexts" >"$scratch/bare.out"
for room in 0 4096 100000 300000 600000 2000000; do
    rm -rf "$scratch/full"
    timeout 60 env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "LD_PRELOAD=$shim:$PWD/$B/stub/full_disk.so" FULL_AFTER=$room OPSDEBUG_PRESET=deep \
        "OPSDEBUG_OUT=$scratch/full" "$folder/contexts" >"$scratch/out" 2>"$scratch/err"
    equal "a disk with room for $room bytes: the program" "0 $(cat "$scratch/bare.out")" "$? $(cat "$scratch/out" "$scratch/err")"
    if [ -e "$scratch/full/capture.bin" ]; then
        "$tool" report "$scratch/full" >"$scratch/report" 2>&1
        equal "a disk with room for $room bytes: the capture can be read" 0 $?
        check "a disk with room for $room bytes: the report says it" grep -qiE 'no space|can no longer be stored' "$scratch/report"
    else
        check "a disk with room for $room bytes: no capture" test $room -lt 4097
    fi
done
# The same with a real one, where one may be mounted.
cat >"$scratch/small" <<'END'
mount -t tmpfs -o size=$1 none "$2" && shift 2 && exec "$@"
END
mkdir "$scratch/mount"
if unshare -rm sh "$scratch/small" 64k "$scratch/mount" true 2>/dev/null; then
    for size in 64k 1m 5m; do
        # shellcheck disable=SC2016
        unshare -rm sh "$scratch/small" $size "$scratch/mount" env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "SHIM=$shim" "FOLDER=$folder" \
            "OUT=$scratch/mount/c" "KEEP=$scratch/kept-$size" sh -c \
            'LD_PRELOAD=$SHIM OPSDEBUG_PRESET=deep OPSDEBUG_OUT=$OUT "$FOLDER/contexts"; rc=$?; cp -r "$OUT" "$KEEP"; exit $rc' \
            >"$scratch/out" 2>"$scratch/err"
        equal "a file system of $size: the program" "0 $(cat "$scratch/bare.out")" "$? $(cat "$scratch/out" "$scratch/err")"
        "$tool" report "$scratch/kept-$size" >"$scratch/report" 2>&1
        check "a file system of $size: the capture can be read or is not there" test $? -eq 0 -o ! -e "$scratch/kept-$size/capture.bin"
    done
else
    ok "a file system of 64 KiB # skip none can be mounted here"
fi

# No folder, not one to write in, one that goes while the program runs.
: >"$scratch/file"
for place in "$scratch/file" "$scratch/file/below" "$scratch/no/such/place" /proc/none /sys/none; do
    LD_LIBRARY_PATH=$PWD/$B/softgpu LD_PRELOAD=$shim OPSDEBUG_OUT=$place "$folder/contexts" >"$scratch/out" 2>"$scratch/err"
    equal "a capture in ${place#"$scratch/"}, which cannot be made: the program" "0 $(cat "$scratch/bare.out")" "$? $(cat "$scratch/out" "$scratch/err")"
    "$tool" run --device soft --out "$place" -- "$folder/contexts" >"$scratch/out" 2>"$scratch/err"
    equal "a capture in ${place#"$scratch/"}: the launcher says it in one line" "2 0 1" \
        "$? $(wc -c <"$scratch/out") $(grep -cE 'nothing can be written there|is not an empty folder' "$scratch/err")"
    equal "a capture in ${place#"$scratch/"}: and nothing else" 1 "$(wc -l <"$scratch/err")"
done
for size in 20000 200000; do
    LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_PRESET=deep OPSDEBUG_OUT=$scratch/vanishing "$folder/churn" $size >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    while [ ! -e "$scratch/vanishing/capture.bin" ] && kill -0 $pid; do :; done
    rm -rf "$scratch/vanishing"
    wait $pid
    equal "a folder that vanishes in the course of $size allocations: the program" "0 0" "$? $(wc -c <"$scratch/err")"
done

# What nothing can be preloaded into, or what cannot run here, is said before it starts.
printf '#include <dlfcn.h>\nint main(void) { return dlopen("libcuda.so.1", RTLD_NOW) == 0; }' |
    gcc -static -x c -o "$scratch/static" - -ldl 2>/dev/null
printf 'int main(void) { return 0; }' | gcc -static-pie -x c -o "$scratch/static-pie" - 2>/dev/null
cp "$B/programs/plain" "$scratch/narrow" && printf '\001' | dd of="$scratch/narrow" bs=1 seek=4 conv=notrunc status=none
sed 's,/lib64/ld-linux-x86-64.so.2,/lib/ld-musl-x86_64.so.1\x00\x00\x00,' "$B/programs/plain" >"$scratch/musl" && chmod +x "$scratch/musl"
while read -r name pattern; do
    "$tool" run --device soft --out "$scratch/never" -- "$scratch/$name" >"$scratch/out" 2>"$scratch/err"
    equal "$name: refused with one line" "2 1 1" "$? $(wc -l <"$scratch/err") $(grep -c "$pattern" "$scratch/err")"
done <<'END'
static statically linked
static-pie statically linked
narrow 32-bit
musl musl
END
exec 2>&3
done_testing
