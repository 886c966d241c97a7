# Sourced by the tests that need a GPU: 77 (skipped) without one, else as tests/e2e/lib/tap.bash.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.bash"
if [ ! -e /dev/nvidiactl ]; then
    echo "1..0 # skip no GPU"
    exit 77
fi
nvcc=$(scripts/find-toolkit)/bin/nvcc || exit 77
