#!/usr/bin/env bash
# How tools of this kind may break programs in situations that are rare, or that only some devices have: docs/breakages.md.
. "$(dirname "$0")/lib/tap.bash"
. "$(dirname "$0")/lib/breakages.bash"

# wild NAME WHAT SETTING...: on the stub driver, in all presets; the program says nothing when all is as it may expect. The capture of
# PRESET stays in $scratch/PRESET.
wild() {
    local name=$1 what=$2 preset
    shift 2
    for preset in watch check deep; do
        rm -rf "${scratch:?}/$preset"
        env "LD_LIBRARY_PATH=$PWD/$B/stub" "LD_PRELOAD=$shim" OPSDEBUG_PRESET=$preset "OPSDEBUG_OUT=$scratch/$preset" "$@" \
            timeout 60 "$folder/wild" "$what" >"$scratch/out" 2>&1
        equal "$name, $preset" "0 " "$? $(cat "$scratch/out")"
    done
}
kernels_of() { # names of the kernels that were launched
    "$tool" list "$scratch/$1" | awk 'NR > 1 { print $2 }' | tr '\n' ' '
}

wild "registers of other hardware, registered as memory, are not read" registers
wild "memory that is registered to be read only is not written" read-only
snapshots=$("$tool" show "$scratch/deep" 1 | grep -c '^ *\(before\|after\)')
equal "and is taken into snapshots" 2 "$snapshots"

wild "copies of ours that the driver refuses are not waited for" refused STUB_REFUSES_COPY=2
equal "what was refused is missing, the rest is there" "0 4 4 4 " \
    "$(for launch in 1 2 3 4; do "$tool" show "$scratch/deep" $launch | grep -c '^ *\(before\|after\)'; done | tr '\n' ' ')"
wild "host memory cannot be pinned" refused STUB_NO_PINNING=1
equal "then there are no snapshots: the driver would wait for the stream" 0 "$("$tool" show "$scratch/deep" 1 | grep -c '^ *\(before\|after\)')"

# Host and device cannot use managed memory at once: WSL, some virtual GPUs, devices before Pascal.
for kernels in "" STUB_TAKES_CHECKS=1; do
    wild "nothing of ours runs where the host may touch managed memory ${kernels:+(with kernels)}" managed STUB_NOT_SHARED=1 $kernels
    wild "managed memory that is reserved is left alone ${kernels:+(with kernels)}" reserved STUB_NOT_SHARED=1 $kernels
done
snapshots=$("$tool" show "$scratch/deep" 7 | grep -c '^ *\(before\|after\)')
equal "but in the stream that it is reserved for" 2 "$snapshots"
for kernels in "" STUB_TAKES_CHECKS=1; do
    wild "while there is such memory ${kernels:+(with kernels)}" overrun STUB_NOT_SHARED=1 $kernels
    for preset in watch check deep; do
        found=$("$tool" report --json "$scratch/$preset" | jq -r '[.findings[].class] | join(" ")')
        equal "damage of other memory is found, $preset ${kernels:+(with kernels)}" "out-of-bounds-write" "$found"
    done
done

wild "a module's handle that another thread gets at once is the new module's" modules STUB_HANDLES=1
equal "and the kernel that is launched its kernel" "other " "$(kernels_of check)"
wild "a module that the driver does not unload stays" kept-modules STUB_KEEPS_MODULES=1
equal "with its kernels" "kernel " "$(kernels_of check)"
wild "memory of a context whose handle another thread got at once" contexts OPSDEBUG_SENTINELS=both
wild "captures that end with their stream, their context, or an error" captures OPSDEBUG_QUARANTINE=1M STUB_TAKES_CHECKS=1

wild "what the driver refuses without looking at it" garbage
same "null pointers, sizes of zero, handles that are gone; calls after a fault" "$folder/refused"

same "a thread captures in global mode while another one launches far ahead of the device" "$folder/capture_beside"
only "" "a capture beside launches"

# NVTX by hand, as its headers would do it.
equal "names are kept once each, and so many" "65535 kept, 200000 same, little" \
    "$(LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_OUT=$scratch/names timeout 60 "$folder/names" many)"
check "the report says that there were more" bash -c '"$1" report "$2" | grep -q "times a name was registered with NVTX"' - "$tool" "$scratch/names"
equal "children that are forked while other threads name ranges" "100 children went on" \
    "$(LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim timeout 60 "$folder/names" forks)"

equal "an allocator that marks what it does" "all went on" \
    "$(LD_LIBRARY_PATH=$PWD/$B/stub LD_PRELOAD=$shim OPSDEBUG_OUT=$scratch/allocator timeout 30 "$folder/names" allocator)"

# The first call takes its time: making a file does.
for preset in watch deep; do
    env "LD_LIBRARY_PATH=$PWD/$B/stub" "LD_PRELOAD=$shim:$PWD/$B/stub/slow_disk.so" OPSDEBUG_PRESET=$preset "OPSDEBUG_OUT=$scratch/fork" \
        timeout 60 "$folder/wild" fork >"$scratch/out" 2>&1
    equal "a child that is forked while another thread is in its first call, $preset" "0 " "$? $(cat "$scratch/out")"
    equal "its parent records as before, $preset" "kernel " "$(kernels_of fork)"
    rm -rf "$scratch/fork"
done

SOFTGPU_DEVICES=2 same "memory of a pool that lies on another device than its stream; a mapping that the device has no access to" "$folder/elsewhere"
only "" "memory of a pool on another device"

# Memory of a shared pool, with the tool in both processes, in one, in none.
handed_over "memory of a shared pool" pool_ipc "0 taker: 4500 words right giver: 4500 words right"
done_testing
