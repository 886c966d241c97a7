#!/usr/bin/env bash
# A program that never uses CUDA: no output of ours, no capture, the same exit code.
. "$(dirname "$0")/lib/tap.bash"

"$programs/plain" >"$scratch/bare.out" 2>"$scratch/bare.err"
rc=$?
cd "$scratch" || exit 1
LD_PRELOAD=$OLDPWD/$B/libopsdebug.so "$OLDPWD/$programs/plain" >out 2>err
equal "exit code under the preload" $rc $?
check "stdout under the preload" cmp bare.out out
check "stderr under the preload" cmp bare.err err
equal "no capture under the preload" "" "$(ls -d ops-debug-capture* 2>/dev/null)"
"$tool" run --device soft --out "$scratch/capture" -- "$OLDPWD/$programs/plain" >out 2>err
equal "exit code under the launcher" $rc $?
check "stderr under the launcher" cmp bare.err err
check "no capture under the launcher" test ! -e "$scratch/capture"
LD_PRELOAD=$OLDPWD/$B/libopsdebug.so sh -c 'exit 7' >out 2>err
equal "a shell under the preload" "7 0" "$? $(cat out err | wc -c)"
done_testing
