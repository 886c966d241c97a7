#!/usr/bin/env bash
# Bad captures give one clear line, exit code 2, and never a crash.
. "$(dirname "$0")/lib/tap.bash"

"$tool" run --device soft --preset deep --out "$scratch/good" -- "$programs/driver_ok" >/dev/null 2>&1

# refused NAME PATH: report and verify exit with 2 and one line that names the path.
refused() {
    local command rc
    for command in report verify list; do
        "$tool" $command "$2" >"$scratch/out" 2>"$scratch/err"
        rc=$?
        if [ $rc -eq 2 ] && [ "$(wc -l <"$scratch/err")" -eq 1 ] && grep -qF "$(basename "$2")" "$scratch/err" && [ ! -s "$scratch/out" ]; then
            ok "$1: $command: $(cat "$scratch/err")"
        else
            not_ok "$1: $command: exit $rc, $(wc -l <"$scratch/err") lines"
            head -n 5 "$scratch/err" | sed 's/^/# /'
        fi
    done
}
# survived NAME CAPTURE: any of 0, 1, 2 is fine, a crash is not.
survived() {
    local rc worst=0 command
    for command in report verify list "report --json"; do
        timeout 120 $tool $command "$2" >"$scratch/out" 2>"$scratch/err"
        rc=$?
        [ $rc -gt $worst ] && worst=$rc
    done
    if [ $worst -le 2 ]; then ok "$1"; else
        not_ok "$1: exit $worst"
        head -n 5 "$scratch/err" | sed 's/^/# /'
    fi
}

refused "no such folder" "$scratch/missing"
mkdir "$scratch/empty-folder"
refused "empty folder" "$scratch/empty-folder"
mkdir "$scratch/empty-header" && : >"$scratch/empty-header/capture.bin"
refused "empty header" "$scratch/empty-header"
mkdir "$scratch/foreign" && head -c 8192 /bin/ls >"$scratch/foreign/capture.bin"
refused "foreign header" "$scratch/foreign"
cp -r "$scratch/good" "$scratch/short" && truncate -s 100 "$scratch/short/capture.bin"
refused "truncated header" "$scratch/short"
cp -r "$scratch/good" "$scratch/newer" && printf '\377' | dd of="$scratch/newer/capture.bin" bs=1 seek=8 conv=notrunc status=none
refused "version of the future" "$scratch/newer"
: >"$scratch/a-file"
refused "a file instead of a folder" "$scratch/a-file"

for ((i = 0; i < 10; i++)); do
    bad=$scratch/bad-$i
    cp -r "$scratch/good" "$bad"
    for file in "$bad"/segment-*.rec; do
        truncate -s $((i * 1789 + 33)) "$file"
    done
    survived "segments cut to $((i * 1789 + 33)) bytes" "$bad"
    rm -rf "$bad"
done
RANDOM=7
for ((i = 0; i < 20; i++)); do
    bad=$scratch/bad-$i
    cp -r "$scratch/good" "$bad"
    for file in "$bad"/segment-*.rec; do
        used=$(stat -c %s "$file")
        for ((k = 0; k < 10; k++)); do
            printf "\\x$(printf %02x $((RANDOM % 256)))" |
                dd of="$file" bs=1 seek=$((64 + (RANDOM * 32768 + RANDOM) % (used < 20000 ? used - 64 : 20000))) conv=notrunc status=none
        done
    done
    survived "ten random bytes changed, round $i" "$bad"
    rm -rf "$bad"
done
cp -r "$scratch/good" "$scratch/blobless" && rm -rf "$scratch/blobless/blobs"
survived "no blobs" "$scratch/blobless"
cp -r "$scratch/good" "$scratch/bad-blobs"
find "$scratch/bad-blobs/blobs" -type f | while read -r file; do printf 'garbage' | dd of="$file" bs=1 conv=notrunc status=none; done
survived "garbage in every blob" "$scratch/bad-blobs"
# A FIFO in place of any file is refused, and never waited for.
check "verify.json is as private as the capture" sh -c "'$tool' verify '$scratch/good' >/dev/null; test \"\$(stat -c %a '$scratch/good/verify.json')\" = 600"
blob=$(cd "$scratch/good" && find blobs -type f | head -n 1)
for file in verify.json "$blob" segment-000000.rec capture.bin; do
    rm -rf "$scratch/fifo" && cp -r "$scratch/good" "$scratch/fifo"
    rm "$scratch/fifo/$file" && mkfifo "$scratch/fifo/$file"
    for command in report verify "export --launch 1 -o $scratch/export"; do
        timeout -k 1 20 $tool $command "$scratch/fifo" >"$scratch/out" 2>"$scratch/err"
        rc=$?
        if [ $rc -le 2 ]; then ok "a FIFO as ${file##*/}: ${command%% *}"; else not_ok "a FIFO as ${file##*/}: ${command%% *}: exit $rc"; fi
        [ "$file" != capture.bin ] || check "it is named" grep -q 'capture.bin: not a regular file' "$scratch/err"
    done
done
done_testing
