# Sourced after tap.bash by tests of what tools of this kind broke: docs/breakages.md.
folder=$programs/breakages
shim=$PWD/$B/libopsdebug.so

# same NAME PROGRAM...: in all presets the output, messages and exit code of the bare program, in time, and no finding.
same() {
    local name=$1 preset bare_rc rc
    shift
    bare timeout 60 "$@" >"$scratch/bare.out" 2>"$scratch/bare.err"
    bare_rc=$?
    for preset in watch check deep; do
        timeout 60 "$tool" run --force --device soft --preset $preset --out "$scratch/$preset" -- "$@" >"$scratch/out" 2>"$scratch/err"
        rc=$?
        if [ $rc = $bare_rc ] && cmp -s "$scratch/bare.out" "$scratch/out" && cmp -s "$scratch/bare.err" "$scratch/err"; then
            ok "$name, $preset"
        else
            not_ok "$name, $preset: exit $rc, bare $bare_rc"
            diff "$scratch/bare.out" "$scratch/out" | head -n 5 | sed 's/^/# /'
            head -n 3 "$scratch/err" | sed 's/^/# /'
        fi
    done
}
only() { # only CLASSES NAME: what the captures of the last `same` hold findings of
    local preset
    for preset in watch check deep; do
        equal "$2, $preset: findings" "$1" "$("$tool" report --json "$scratch/$preset" | jq -r '[.findings[].class] | unique | join(" ")')"
    done
}

# handed_over WHAT PROGRAM EXPECTED: memory that PROGRAM, in $folder, gives to another process, with the tool in both, in one, in none. EXPECTED is
# the exit code and what the two print, on one line. A redzone in front, which the other process cannot know of, is told.
handed_over() {
    OPSDEBUG_PRESET=deep OPSDEBUG_SENTINELS=both OPSDEBUG_OUT=$scratch/ipc bare timeout 60 "$folder/$2" "$shim" "" >"$scratch/out" 2>&1
    "$tool" report "$scratch/ipc" >"$scratch/report"
    check "$1 with a redzone in front: the report says so" grep -q 'handed to another process' "$scratch/report"
    rm -rf "$scratch/ipc"
    local preset giver taker
    for preset in watch check deep; do
        for giver in "" "$shim"; do
            for taker in "" "$shim"; do
                OPSDEBUG_PRESET=$preset OPSDEBUG_OUT=$scratch/ipc bare timeout 60 "$folder/$2" "$giver" "$taker" >"$scratch/out" 2>&1
                equal "$1, $preset, tool in the giver: ${giver:+yes}, in the taker: ${taker:+yes}" \
                    "$3" "$? $(tr '\n' ' ' <"$scratch/out" | sed 's/ $//')"
                rm -rf "$scratch/ipc"
            done
        done
    done
}
