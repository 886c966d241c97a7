#!/usr/bin/env bash
# Calls of cuBLAS and cuBLASLt are operators with a meaning, and what they write is known.
. "$(dirname "$0")/lib/tap.bash"
if [ ! -x "$programs/blas" ]; then
    ok "programs/blas # skip the toolkit has no cuBLAS"
    done_testing
    exit
fi

"$tool" run --device soft --preset deep --out "$scratch/blas" -- "$programs/blas" >"$scratch/out" 2>&1
equal "blas: exit code" 0 $?
"$tool" list --json "$scratch/blas" >"$scratch/list.json"
op() { # op NAME: the first call of it
    jq -c --arg name "$1" '[.operators[] | select(.name == $name)][0]' "$scratch/list.json"
}
equal "a fused product of cuBLASLt" "gemm N,N 53x29x37 f32 (ReLU, bias) 32F 1 0" \
    "$(op cublasLtMatmul | jq -r '[.kind, .what, .arguments.compute_type, .arguments.alpha, .arguments.beta] | join(" ")')"
equal "its bias and its result are buffers of the program" "read written" \
    "$(op cublasLtMatmul | jq -r '[.operands[] | select(.allocation and (.name == "bias" or .name == "D")) | if .written then "written" else "read" end] | sort | join(" ")')"
equal "halves with sums in single precision" "N,N 24x16x40 f16*f16->f32 32F" \
    "$(op cublasGemmEx | jq -r '[.what, .arguments.computeType] | join(" ")')"
equal "a batch with strides, its scalars on the device" "N,N 7x9x5 x 4 f32 device 35" \
    "$(op cublasSgemmStridedBatched | jq -r '[.what, .arguments.pointer_mode, .arguments.strideA] | map(tostring) | join(" ")')"
equal "streams are those of the handles" 3 "$(jq '[.operators[] | select(.kind == "gemm") | .stream] | unique | length' "$scratch/list.json")"
equal "what is called inside is not counted again" 9 "$(jq '[.operators[] | select(.kind != "setup")] | length' "$scratch/list.json")"
"$tool" report "$scratch/blas" >"$scratch/report"
equal "the report lists them" 1 "$(grep -c '^cublasLtMatmul  *gemm  *N,N 53x29x37 f32 (ReLU, bias)  *1 ' "$scratch/report")"
equal "and counts them" 1 "$(grep -c 'operators: 9 library calls, 9 of them with their meaning' "$scratch/report")"
number=$(op cublasSgemm_v2 | jq .operator)
equal "show prints one" 1 "$("$tool" show "$scratch/blas" "op$number" | grep -c '^  C  *f32  *11x29  *11  *may be written  *allocation')"
"$tool" show "$scratch/blas" op99 >"$scratch/out" 2>"$scratch/err"
equal "a call that is not there: one error, exit 2" "2 1 0" "$? $(wc -l <"$scratch/err") $(wc -l <"$scratch/out")"

for variant in ok uninit; do
    "$tool" run --device soft --preset deep --out "$scratch/$variant" -- "$programs/columns_$variant" >/dev/null 2>&1
    "$tool" verify --json "$scratch/$variant" >"$scratch/$variant.json" 2>/dev/null
done
equal "columns_ok: what a product wrote counts as written" 0 "$(jq '.findings | length' "$scratch/ok.json")"
equal "columns_uninit: what it did not write does not" "uninitialised-read 3840" \
    "$(jq -r '.findings[0] | "\(.class) \(.allocation.offset)"' "$scratch/uninit.json")"
done_testing
