#!/usr/bin/env bash
# Rules of the project that a test can see.
. "$(dirname "$0")/lib/tap.bash"

# No check may know the names of the test programs' kernels.
names=$(grep -rhoE '__global__ [^;{]*\b[a-z_0-9]+\(' tests/programs/block tests/programs/ocean |
    grep -oE '[a-z_0-9]+\($' | tr -d '(' | sort -u | awk 'length >= 8')
check "there are kernel names to look for" test -n "$names"
found=$(git grep -lwF -f <(printf "%s\n" "$names") -- . ":!tests" ":!docs" ":!README.md" ":!CHANGELOG.md" | head)
equal "no kernel name of the programs outside tests and docs" "" "$found"

equal "the shim needs libc only" "libc.so.6" \
    "$(readelf -d "$B/libopsdebug.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort -u | tr '\n' ' ' | sed 's/ $//')"
equal "every file stays below 800 lines (tables and generated data apart)" "" \
    "$(git ls-files '*.c' '*.h' '*.cu' '*.sh' | grep -v corpus | xargs wc -l | awk '$1 > 800 && $2 != "total" { print $2 }' | tr '\n' ' ')"
check "every document that the README names exists" \
    bash -c 'grep -oE "\]\((docs|tests|bench)/[^)#]*" README.md | cut -c3- | while read -r f; do test -e "$f" || { echo "$f"; exit 1; }; done'
check "docs/ptx-instructions.md is up to date (make docs)" bash -c 'scripts/make-instruction-table | diff docs/ptx-instructions.md -'

check "scripts/setup --help" bash -c 'scripts/setup --help | grep -q -e --toolkit'
scripts/setup --nonsense >"$scratch/out" 2>&1
equal "scripts/setup refuses what it does not know" "2 1" "$? $(wc -l <"$scratch/out")"
include=${CUDA_HOME:-$(scripts/find-toolkit)}/include

# A machine without a toolkit gets one from wheels: each CUDA header that is included must come with one of them. Which wheel has
# which header is known where the toolkit itself came as wheels.
records=$(find -L "${include%/include}" -maxdepth 3 -path '*dist-info/RECORD' 2>/dev/null)
if [ -n "$records" ]; then
    without=$(git grep -hoE '^ *# *include <(cu|nv)[A-Za-z0-9_]+\.h>' -- '*.c' '*.h' '*.cu' '*.cuh' | sed 's/.*<\(.*\)>/\1/' | sort -u | while read -r header; do
        # shellcheck disable=SC2086
        wheel=$(grep -l "/include/$header," $records | sed -n '1s|.*/\(.*\)-[0-9].*|\1|p' | tr _ -)
        grep -q "${wheel:-no wheel}==" scripts/setup || echo "$header (${wheel:-no wheel})"
    done)
    equal "scripts/setup --toolkit brings every header" "" "$without"
else
    ok "scripts/setup --toolkit brings every header # skip: this toolkit is not of wheels"
fi

# The map of CUDA's interfaces is of one version of the headers, and of the libraries of cuBLAS and CUPTI that are built from them.
version=$(sed -nE 's/^#define CUDA_VERSION +([0-9]+).*/\1/p' "$include/cuda.h")
not_built=$(git ls-files 'tests/unit/test_softgpu*.c' | while read -r f; do [ -e "$B/obj/${f%.c}.o" ] || echo "$f"; done)
if [ -n "$not_built" ]; then
    ok "every function of softgpu that works has a test # skip: not all unit tests are built (make check)"
    ok "docs/compatibility.md is up to date # skip"
    done_testing
    exit
fi
check "every function of softgpu that works has a test" bash -c 'scripts/make-compatibility-map "$1" "$2" >"$3"' - "$B" "$include" "$scratch/map"
if grep -q "headers of CUDA $version," docs/compatibility.md; then
    check "docs/compatibility.md is up to date (make docs)" diff docs/compatibility.md "$scratch/map"
else
    ok "docs/compatibility.md is up to date # skip: it is of other headers than CUDA $version"
fi
done_testing
