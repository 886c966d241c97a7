#!/usr/bin/env bash
# libopsptx as others use it: installed, one header, one archive, no names beside ptx_*.
. "$(dirname "$0")/lib/tap.bash"

prefix=$scratch/prefix
check "make install" make -s B="$B" PREFIX="$prefix" install
flags="-I$prefix/include -L$prefix/lib"
libraries=$(sed -n 's/^Libs: -L[^ ]* //p' "$prefix/lib/pkgconfig/opsptx.pc")
check "opsptx.pc names the prefix" grep -qx "prefix=$prefix" "$prefix/lib/pkgconfig/opsptx.pc"
equal "and the version of the tool" "$("$prefix/bin/ops-debug" --version | grep -o '[0-9.]*$')" \
    "$(sed -n 's/^Version: //p' "$prefix/lib/pkgconfig/opsptx.pc")"
# shellcheck disable=SC2086
(cd "$scratch" && cc -std=c11 -Wall -Wextra -Wpedantic -Werror $flags "$OLDPWD/docs/examples/run_kernel.c" -o run_kernel $libraries) \
    >"$scratch/build.log" 2>&1
equal "the example builds with what is installed" "0 " "$? $(cat "$scratch/build.log")"
equal "the example runs, and finds its fault" \
    "x[19] = 38|scale.ptx:18: out of bounds, read of 4 bytes at offset 80 of range 1, thread 20|scale.ptx:20: out of bounds, write of 4 bytes at offset 80 of range 1, thread 20|" \
    "$("$scratch/run_kernel" | tr '\n' '|')"
sed 's/setp.gt.u32/setp.ge.u32/' docs/examples/run_kernel.c >"$scratch/sound.c"
# shellcheck disable=SC2086
check "its sound twin builds" cc $flags "$scratch/sound.c" -o "$scratch/sound" $libraries
equal "and has no fault" "x[19] = 38|" "$("$scratch/sound" | tr '\n' '|')"
printf '%s\n' '#include <opsdebug/opsptx.h>' 'int main() { ptx_module *m; diag d; return ptx_module_load("x", 1, "x", &m, &d) != STATUS_BAD_INPUT; }' >"$scratch/plus.cpp"
# shellcheck disable=SC2086
check "the header and the archive serve C++" sh -c 'c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror '"$flags"' "$0/plus.cpp" -o "$0/plus" '"$libraries"' && "$0/plus"' "$scratch"
equal "no other names are seen from outside" "" \
    "$(nm -g --defined-only "$prefix/lib/libopsptx.a" 2>/dev/null | awk 'NF == 3 && $3 !~ /^ptx_/ { print $3 }' | tr '\n' ' ')"
check "the installed launcher runs" "$prefix/bin/ops-debug" --version
done_testing
