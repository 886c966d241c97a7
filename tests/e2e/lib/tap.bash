# Sourced by every end-to-end test: TAP output, scratch folder, short names for the tools. B names the build folder.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
B=${B:-build}
tool=$PWD/scripts/ops-debug
export OPSDEBUG_BUILD=$PWD/$B
programs=$B/programs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tap_count=0
tap_failed=0

ok() { # ok NAME
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $*"
}
not_ok() { # not_ok NAME [DETAIL LINES on stdin is not read; give a file as last argument to show it]
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $*"
}
# check NAME COMMAND...: the command must succeed.
check() {
    local name=$1
    shift
    if "$@" >"$scratch/check.out" 2>&1; then
        ok "$name"
    else
        not_ok "$name"
        sed 's/^/# /' "$scratch/check.out" | head -n 20
    fi
}
# equal NAME EXPECTED ACTUAL
equal() {
    if [ "$2" = "$3" ]; then
        ok "$1"
    else
        not_ok "$1"
        printf '# expected: %s\n# actual:   %s\n' "$2" "$3"
    fi
}
done_testing() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
    exit
}
# The bare program on softgpu.
bare() {
    LD_LIBRARY_PATH=$PWD/$B/softgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}
# start_watched OUT [NAME=VALUE...] PROGRAM [ARGUMENTS]: under the shim on softgpu, in the background; $child is the program itself.
# To be killed: a launcher that is killed may leave a child of its own behind, which makes the folder when nobody expects it.
start_watched() {
    env "LD_LIBRARY_PATH=$PWD/$B/softgpu" "LD_PRELOAD=$PWD/$B/libopsdebug.so" "OPSDEBUG_OUT=$1" "${@:2}" >/dev/null 2>&1 &
    child=$!
}
# The line of the one statement marked "FAULT: NAME" in a source file.
fault_line() { # fault_line FILE NAME
    grep -n "FAULT: $2 \*/" "$1" | head -n 1 | cut -d: -f1
}
