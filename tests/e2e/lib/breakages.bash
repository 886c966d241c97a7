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
