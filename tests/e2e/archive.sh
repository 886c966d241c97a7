#!/usr/bin/env bash
# libcudart_static.a and libcudart.so.13 are the same runtime: the same names, and a program linked with the archive runs.
. "$(dirname "$0")/lib/tap.bash"

folder=$B/softgpu
nm -D --defined-only "$folder/libcudart.so.13" | awk '$2 ~ /[TW]/ { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$scratch/shared"
nm -g --defined-only "$folder/libcudart_static.a" 2>/dev/null | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | LC_ALL=C sort >"$scratch/static"
check "the library has hundreds of functions" test "$(wc -l <"$scratch/shared")" -gt 300
equal "names that the library has and the archive has not" "" "$(LC_ALL=C comm -23 "$scratch/shared" "$scratch/static" | tr '\n' ' ')"
equal "names that the archive has and the library has not" "" "$(LC_ALL=C comm -13 "$scratch/shared" "$scratch/static" | tr '\n' ' ')"

cat >"$scratch/program.c" <<'END'
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
    int *p, out = 0;
    if (cudaMalloc((void **)&p, 4) || cudaMemset(p, 1, 4) || cudaMemcpy(&out, p, 4, cudaMemcpyDeviceToHost) || cudaFree(p))
        return 1;
    printf("%x\n", (unsigned)out);
    return cudaMalloc(NULL, 4) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue ? 0 : 2;
}
END
check "a program is linked with the archive" cc -I"${CUDA_HOME:-$(scripts/find-toolkit)}/include" -o "$scratch/program" \
    "$scratch/program.c" "$folder/libcudart_static.a" -ldl -lpthread
LD_LIBRARY_PATH=$folder "$scratch/program" >"$scratch/out"
equal "it runs" "0 1010101" "$? $(cat "$scratch/out")"
equal "it needs no shared runtime" "" "$(readelf -d "$scratch/program" | grep -o 'libcudart[^]]*')"
done_testing
