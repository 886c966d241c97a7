#!/usr/bin/env bash
# How tools of this kind broke programs that looked functions up: docs/breakages.md, "Resolving symbols"; and several runtimes.
. "$(dirname "$0")/lib/tap.bash"
stub=$B/stub
resolve=$programs/breakages/resolve
lookups=tests/data/cudart13-lookups.txt
shim=$PWD/$B/libopsdebug.so

# watched DEVICE COMMAND...: under the preload, on softgpu or a stub; leaves out, err and the capture, sets rc. PRELOAD replaces the preload.
watched() {
    rm -rf "$scratch/capture"
    timeout 60 env "LD_LIBRARY_PATH=$PWD/$B/$1${MORE_LIBRARIES:+:$MORE_LIBRARIES}" "LD_PRELOAD=${PRELOAD:-$shim}" \
        "OPSDEBUG_OUT=$scratch/capture" "${@:2}" >"$scratch/out" 2>"$scratch/err"
    rc=$?
}
bare_on() {
    LD_LIBRARY_PATH=$PWD/$B/$1${MORE_LIBRARIES:+:$MORE_LIBRARIES} timeout 60 "${@:2}" >"$scratch/bare" 2>&1
    bare_rc=$?
}

# A look-up never initialises anything.
watched softgpu "$resolve" look-ups $lookups
equal "look-ups, cuGetExportTable's too, start nothing: no thread" "0 1 thread" "$rc $(cat "$scratch/out" "$scratch/err")"
check "look-ups start nothing: no capture" test ! -e "$scratch/capture"

# The caller's handle is what the real dlsym gets.
mkdir "$scratch/second" && cp "$stub/libcuda.so.1" "$scratch/second/"
bare_on stub "$resolve" two "$scratch/second/libcuda.so.1"
watched stub "$resolve" two "$scratch/second/libcuda.so.1"
equal "two drivers in a process: each handle's functions are its own" "0 $(cat "$scratch/bare")" "$rc $(cat "$scratch/out" "$scratch/err")"
"$tool" report "$scratch/capture" >"$scratch/report"
check "two drivers in a process: the report says so" grep -q 'a second libcuda: its calls are not seen' "$scratch/report"
watched stub "$resolve" again
equal "a driver that is opened and closed again and again" "0 three times" "$rc $(cat "$scratch/out" "$scratch/err")"

# Undefined symbol _dl_sym, GLIBC_PRIVATE.
equal "nothing of glibc's private version is needed" "" "$(nm -D --undefined-only "$shim" | grep -E 'PRIVATE|_dl_')"
equal "what ends, prints, or takes signals is not even imported" "" \
    "$(nm -D --undefined-only "$shim" | awk '{ sub(/@.*/, "", $2); print $2 }' |
        grep -xE 'exit|_exit|quick_exit|abort|raise|kill|signal|sigaction|bsd_signal|sigaltstack|printf|puts|putchar|perror|fprintf|fputs|fwrite|vfprintf|stderr|stdout|system|fork|pthread_atfork' | tr '\n' ' ')"
equal "of CUDA nothing is imported: the runtime's last error stays the program's" "" "$(nm -D --undefined-only "$shim" | grep -E ' _*cu')"

# Another profiler's own dlvsym hook jumps to NULL.
for order in "$shim:$PWD/$stub/interposer_dlvsym.so" "$PWD/$stub/interposer_dlvsym.so:$shim"; do
    name="beside a tool that hooks dlvsym, $([ "${order%%:*}" = "$shim" ] && echo before || echo behind) it"
    PRELOAD=$order watched stub "$stub/probe" dlsym work 3
    equal "$name: works" "0 " "$rc $(cat "$scratch/out" "$scratch/err")"
    check "$name: we see the calls" test "$("$tool" list "$scratch/capture" | grep -c noop)" -eq 3
    PRELOAD=$order INTERPOSER_OUT=$scratch/count watched stub "$resolve" look-ups $lookups
    check "$name: so does it" test "$(cat "$scratch/count")" -gt 100
done

# The tool silently saw nothing; what is unknown to it is said.
watched stub "$resolve" unknown
"$tool" report -v "$scratch/capture" >"$scratch/report"
equal "a driver function that is in no header works" "0 2" "$rc $(cat "$scratch/out" "$scratch/err")"
check "a driver function that is in no header: the report names it" grep -q 'cuStubOnlyFunction' "$scratch/report"

# cuGetProcAddress in all forms, symbolStatus NULL, versions and flags; drivers without _v2. The answer is our wrapper of the very
# function that the driver means, or the driver's own.
hooked() { # the symbols of hooks.def
    sed -n 's/^HOOK(\([A-Za-z0-9_]*\),.*/\1/p' shim/hooks.def
}
hooked | LC_ALL=C sort >"$scratch/hooked"
for device in softgpu stub stub/old; do
    bare_on $device "$resolve" list $lookups
    watched $device "$resolve" list $lookups
    equal "every look-up of cudart answers as without the tool, on $device" "" \
        "$(diff <(cut -d' ' -f1-4,6 "$scratch/bare") <(cut -d' ' -f1-4,6 "$scratch/out"))"
    awk -v list="$scratch/hooked" 'BEGIN { while ((getline line <list) > 0) hooked[line] = 1 }
        $5 != "-" && ($5 == "libopsdebug.so") != ($6 in hooked) { print }' "$scratch/out" >"$scratch/wrong"
    equal "all that we hook of them are our wrappers, and only those, on $device" "" "$(head -n 3 "$scratch/wrong")"
    check "there are many, on $device" test "$(grep -c libopsdebug "$scratch/out")" -gt 60
done

# The toolkit's static cudart, up to where it refuses the driver.
cat >"$scratch/static.cu" <<'END'
#include <cstdio>
__global__ void fill(float *p) { p[threadIdx.x] = 1; }
int main(void)
{
    float *p;
    printf("%d", (int)cudaMalloc(&p, 128));
    fill<<<1, 32>>>(p);
    printf(" %d", (int)cudaGetLastError());
    printf(" %d\n", (int)cudaDeviceSynchronize());
    return 0;
}
END
nvcc=$(scripts/find-toolkit)/bin/nvcc
"$nvcc" -o "$scratch/static" "$scratch/static.cu"
bare_on softgpu "$scratch/static"
watched softgpu "$scratch/static"
equal "static cudart: its refusal of the driver is passed on untouched" "$bare_rc $(cat "$scratch/bare")" "$rc $(cat "$scratch/out" "$scratch/err")"
PRELOAD=$PWD/$stub/observer.so:$shim OBSERVER_OUT=$scratch/observed watched softgpu "$scratch/static"
awk -v list="$scratch/hooked" 'BEGIN { while ((getline line <list) > 0) hooked[line] = 1 }
    ($4 == "libopsdebug.so") != ($5 in hooked) { print }' "$scratch/observed" >"$scratch/wrong"
equal "static cudart: all that it looks up and we hook are our wrappers, and only those" "" "$(head -n 3 "$scratch/wrong")"
awk 'FNR == NR { want[$1 " " $2 " " $3] = $4; next } ($1 " " $2 " " $3 in want) && want[$1 " " $2 " " $3] != $5 { print }' \
    $lookups "$scratch/observed" >"$scratch/wrong"
equal "static cudart: each look-up means the symbol that it is known to mean" "" "$(head -n 3 "$scratch/wrong")"
check "static cudart: of its 439 look-ups these found something ($(wc -l <"$scratch/observed"))" test "$(wc -l <"$scratch/observed")" -gt 400

# softgpu's static archive, end to end: the fault is found.
"$nvcc" -O2 -g -lineinfo -cudart none -o "$scratch/archive" tests/programs/endings/at_once.cu "$B/softgpu/libcudart_static.a" -ldl -lpthread
"$tool" run --device soft --preset deep --out "$scratch/archive.capture" -- "$scratch/archive" near _exit >/dev/null 2>&1
"$tool" verify --json "$scratch/archive.capture" >"$scratch/verify.json"
equal "static archive: a fault is found" "out-of-bounds-write beyond" "$(jq -r '.findings[0] | "\(.class) \(.launch.kernel)"' "$scratch/verify.json")"

# CUDA 12's runtime by name, alone and beside CUDA 13's: each library's calls reach the one that it was linked with.
twelve=$PWD/$stub/cudart12
plugin="$nvcc -O2 -g -lineinfo -cudart none -shared -Xcompiler -fPIC tests/programs/breakages/plugin.cu"
$plugin -DNAME=first -o "$scratch/with12.so" -L"$twelve" -lcudart
$plugin -DNAME=second -o "$scratch/with13.so" -L"$B/softgpu" -lcudart
equal "a plug-in needs CUDA 12's runtime" libcudart.so.12 "$(readelf -d "$scratch/with12.so" | grep -o 'libcudart[^]]*')"
for plugins in 12 13 "12 13" "13 12" "12 13 12 13"; do
    # shellcheck disable=SC2046
    MORE_LIBRARIES=$twelve watched softgpu "$programs/breakages/plugin_host" $(printf "$scratch/with%s.so " $plugins)
    equal "libraries with the runtimes of CUDA $plugins" "0 $(printf '63 gone\n%.0s' $plugins)" "$rc $(cat "$scratch/out" "$scratch/err")"
    equal "libraries with the runtimes of CUDA $plugins: all launches are seen" "$(wc -w <<<"$plugins")" "$("$tool" list "$scratch/capture" | grep -c '_kernel')"
done
MORE_LIBRARIES=$twelve watched softgpu "$programs/breakages/plugin_host" "$scratch/with12.so"
"$tool" verify --json "$scratch/capture" >"$scratch/verify.json"
equal "CUDA 12's runtime: verify judges its launches" "0 1" "$? $(jq .coverage.as_written.checked "$scratch/verify.json")"
# cuBLAS of CUDA 12 and 13 in one process.
for version in 12 13; do
    for part in LIBRARY USER; do
        name=$([ $part = LIBRARY ] && echo libcublas || echo libuser)
        echo "$name.so.$version { global: *; };" >"$scratch/$name.map"
        mkdir -p "$scratch/blas"
        gcc -shared -fPIC -O1 -D$part=$version -Wl,--version-script="$scratch/$name.map" -Wl,-soname,$name.so.$version \
            -o "$scratch/blas/$name.so.$version" tests/programs/breakages/blas_versions.c $([ $part = USER ] && echo "$scratch/blas/libcublas.so.$version")
    done
done
gcc -O1 -o "$scratch/blas_versions" tests/programs/breakages/blas_versions.c "$scratch"/blas/libuser.so.1[23] -L"$B/softgpu" -Wl,--no-as-needed -lcuda \
    -Wl,-rpath-link,"$scratch/blas"
for record in "" record; do
    # shellcheck disable=SC2086
    MORE_LIBRARIES=$scratch/blas watched stub "$scratch/blas_versions" $record
    equal "two versions of cuBLAS${record:+, recorded}: each handle reaches its own" "0 13 12 13 12" "$rc $(cat "$scratch/out" "$scratch/err" | xargs)"
done
equal "two versions of cuBLAS: one call of each is recorded" 2 "$("$tool" report --json "$scratch/capture" | jq '[.operators[] | select(.name == "cublasSscal_v2").calls] | add')"
equal "nothing in the shim names a version of the runtime that it needs" "" "$(readelf -V "$shim" | grep -A99 'version needs' | grep -i cudart)"
done_testing
