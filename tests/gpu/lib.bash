# Sourced by the tests that need a GPU: 77 (skipped) without one, else as tests/e2e/lib/tap.bash.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.bash"
if [ ! -e /dev/nvidiactl ]; then
    echo "1..0 # skip no GPU"
    exit 77
fi
# program NAME SOURCE: $scratch/NAME, brought along (GPU_PROGRAMS, see scripts/gpu-check) or built.
program() {
    if [ -x "${GPU_PROGRAMS:-}/$1" ]; then
        cp "$GPU_PROGRAMS/$1" "$scratch/$1"
    else
        local toolkit
        toolkit=$(scripts/find-toolkit) || exit 77
        "$toolkit/bin/nvcc" -O2 -o "$scratch/$1" "$2" || exit 1
    fi
}
