#!/usr/bin/env bash
# Memory errors one by one (tests/programs/detect): found or not, launch, allocation and line right; sound twins silent.
# `detect.sh --table` goes through all of them, twins too, and prints the tables of docs/detection.md (about 10 minutes).
. "$(dirname "$0")/lib/tap.bash"
. "$(dirname "$0")/lib/detect.bash"
kinds="plain pitched managed async pool mapped host"
distances="1 4 256 8192 1048576 1073741824"

# letter FOLDER ERROR: its initial, large when launch, allocation and line are right, or a dot when nothing was found.
letter() {
    local words initial=${2:0:1}
    words=$(detect_words "$1" "$2")
    case $words in
    "yes yes yes yes") tr a-z A-Z <<<"$initial" ;;
    yes*) echo "$initial" ;;
    *) echo . ;;
    esac
}
# table TITLE OPTIONS...: one row per kind and side.
table() {
    local title=$1 alarms=0 twins=0 kind side distance error cell
    shift
    printf '\n### %s\n\n| allocation | side | 1 B | 4 B | 256 B | 8 KiB | 1 MiB | 1 GiB |\n|---|---|---|---|---|---|---|---|\n' "$title"
    for kind in $kinds; do
        for side in past before; do
            printf '| %s | %s |' "$kind" "$side"
            for distance in $distances; do
                cell=
                for error in write read atomic; do
                    detect_run "$scratch/c" "$@" -- "$kind" $error $side "$distance"
                    cell="$cell $(letter "$scratch/c" $error)"
                    [ "$distance" = 1 ] || continue # the sound access is the same for all
                    detect_run "$scratch/c" "$@" -- "$kind" $error $side "$distance" sound
                    twins=$((twins + 1))
                    [ -z "$(detect_classes "$scratch/c")" ] || alarms=$((alarms + 1))
                done
                printf '%s |' "$cell"
            done
            echo
        done
    done
    printf '\nSound twins: %d runs, %d with a finding.\n' $twins $alarms
}
if [ "${1:-}" = --table ]; then
    table '`watch`, report only' --preset watch
    table '`check` (the default), then `verify`' verify
    table '`check --guard all`, then `verify`' --guard all verify
    table '`check --guard all,side=under`, then `verify`' --guard all,side=under verify
    table '`deep`, then `verify`' --preset deep verify
    exit
fi

# found NAME EXPECTED WORDS ERROR: the words of detect_words, and nothing of another class.
found() {
    equal "$1" "$2 $(detect_class "$3")" "$(detect_words "$scratch/c" "$3") $(detect_classes "$scratch/c")"
}
silent() {
    equal "$1: the sound twin" "0 " "$detect_status $(detect_classes "$scratch/c")"
}
everything="yes yes yes yes"

# Re-execution knows every access of a launch with its inputs, whatever the kind of memory.
while read -r kind error side distance; do
    detect_run "$scratch/c" --preset deep verify -- $kind $error $side $distance
    found "deep: $kind $error $distance $side" "$everything" $error
    detect_run "$scratch/c" --preset deep verify -- $kind $error $side $distance sound
    silent "deep: $kind $error"
done <<'CASES'
plain atomic past 1
pitched read before 1048576
managed write past 8192
async read past 4
pool atomic before 256
mapped read past 1
host write before 1
plain stale-write past 40
managed stale-read past 40
async stale-atomic past 40
pool stale-write past 40
host stale-read past 40
CASES

# Without snapshots: redzones alone. The allocation is known, the launch is one of a window.
for kind in plain pitched managed async pool host; do
    detect_run "$scratch/c" --preset watch -- $kind write past 4
    found "watch: $kind" "yes no yes no" write
    equal "watch: $kind: the window holds the launch" true \
        "$(jq '.findings[0].launch | .seq <= 8 and 8 <= (.window_last // .seq)' "$scratch/c/report.json")"
    detect_run "$scratch/c" --preset watch -- $kind write past 4 sound
    silent "watch: $kind"
done
detect_run "$scratch/c" --preset watch -- host write past 4
equal "host memory: it may have been the host" true \
    "$(jq '.findings[0].evidence | any(.kind == "host-or-launch")' "$scratch/c/report.json")"
# Another stream did it, and nothing else runs in the one that owns the memory.
detect_run "$scratch/c" --preset watch -- pool write past 4 aside
found "watch: pool, written by another stream" "yes no yes no" write

# Writes after the free, without snapshots: the memory is held back and compared.
for kind in plain pitched managed host; do
    detect_run "$scratch/c" --preset watch --quarantine 64M -- $kind stale-write past 40
    found "quarantine: $kind" "yes yes yes no" stale-write
    detect_run "$scratch/c" --preset watch --quarantine 64M -- $kind stale-write past 40 sound
    silent "quarantine: $kind"
done

# More allocations than a look takes: those that the launch was given first, the rest in turn, all of them at exit.
for side in past before; do
    detect_run "$scratch/c" --preset watch --check exit --stacks off --times off -- plain write $side 4 crowd
    equal "6000 allocations: written $side" "out-of-bounds-write" "$(detect_classes "$scratch/c")"
done
detect_run "$scratch/c" --preset watch --stacks off --times off -- plain write past 4 crowd
equal "6000 allocations: the window holds the launch" true \
    "$(jq '.findings[0].launch | .seq <= 8 and 8 <= (.window_last // .seq)' "$scratch/c/report.json")"

# Guard pages: the device stops at the access, and the report says why.
guard() { # guard OPTION ARGUMENTS
    local option=$1
    shift
    detect_run "$scratch/c" --guard "$option" verify -- "$@"
    found "guard $option: $*" "$everything" "$2"
    equal "guard $option: $*: stopped by a guard page" "3 true" \
        "$detect_status $(jq '.findings[0].evidence | any(.kind == "guard-page" and (.text | test("device stopped")))' "$scratch/c/report.json")"
    detect_run "$scratch/c" --guard "$option" verify -- "$@" sound
    silent "guard $option: $*"
}
guard all plain write past 8192
guard all,reach=2G plain read past 1073741824
guard all,side=under plain atomic before 1
guard call=Pitch,min=4k,max=8k pitched read past 1
guard order=4 plain stale-read past 40
guard sample=1/1,seed=7,budget=16M plain write past 8192
detect_run "$scratch/c" --guard order=5 verify -- plain write past 8192
found "only the chosen one has guard pages" "$everything" write
equal "so nothing stopped the device" 0 "$detect_status"
equal "one guarded allocation" 1 "$(jq .coverage.guarded "$scratch/c/report.json")"
detect_run "$scratch/c" --preset watch --guard order=4 -- plain write past 8192
equal "without snapshots: the launches, the allocation and how to go on" "failed-launch true true" \
    "$(jq -r '.findings[0] | "\(.class) \(.evidence | any(.kind == "guard-page" and (.text | test("launch 8 points to allocation 4"))))" +
        " \(.next | any(test("--preset deep --guard order=4")))"' "$scratch/c/report.json")"

# Wrong frees (an unmapping is one, too): the class, the line, and the stacks that tell the story.
for kind in plain pitched managed async pool host; do
    while read -r error stacks text; do
        detect_run "$scratch/c" --preset check -- $kind $error past 1
        equal "$kind $error" "1 $(detect_class $error) $(fault_line $detect_source $error) $stacks true" \
            "$(jq -r --arg victim "detect.cu:$detect_victim" --arg text "$text" '.findings[0] as $f
                | "\(.findings | length) \($f.class) \($f.where.line) "
                    + ([($f.allocation.stack // [] | any(endswith($victim))), ($f.allocation.free_stack // [] | length > 0),
                        ($f.stack | length > 0)] | map(if . then "1" else "0" end) | join(""))
                    + " \($f.text | test($text))"' "$scratch/c/report.json")"
    done <<'FREES'
free-twice 111 allocation 4 .* is freed a second time
free-inside 111 256 bytes inside allocation 4
free-other 111 allocation 4 .* freed in another way
free-host 001 memory of the host that CUDA did not allocate
free-nowhere 001 where no allocation starts
FREES
    detect_run "$scratch/c" --preset check -- $kind free-twice past 1 sound
    silent "$kind: frees"
done
for error in free-twice free-inside free-nowhere; do
    detect_run "$scratch/c" --preset check -- mapped $error past 1
    equal "mapped $error" "1 $(detect_class $error)" "$(jq -r '"\(.findings | length) \(.findings[0].class)"' "$scratch/c/report.json")"
done

# What a look had no turn for is looked at before it is freed.
for count in 3000 6000; do
    "$tool" run --device soft --preset check --check launch --snapshots none --health off --out "$scratch/crowded" --force -- "$programs/crowded" $count >/dev/null 2>&1
    equal "$count allocations: ten that were freed right after the damage" "0 10" \
        "$? $("$tool" report "$scratch/crowded" | grep -oE '[0-9]+ found damaged' | cut -d' ' -f1)"
done

# The program notices nothing of all this.
bare "$programs/unnoticed" >"$scratch/bare"
for options in "--preset watch" "--preset check" "--guard all" "--guard all,side=under --sentinels both --poison on"; do
    "$tool" run --device soft $options --out "$scratch/u" --force -- "$programs/unnoticed" >"$scratch/out" 2>&1
    check "what a program can ask about its memory, $options" diff "$scratch/bare" "$scratch/out"
done
bare "$programs/unnoticed" ipc >"$scratch/bare"
"$tool" run --device soft --guard all,careful --out "$scratch/u" --force -- "$programs/unnoticed" ipc >"$scratch/out" 2>&1
check "careful: nothing is guarded in a program that could export its memory" diff "$scratch/bare" "$scratch/out"
equal "that is: nothing" 0 "$("$tool" report --json "$scratch/u" | jq .coverage.guarded)"
done_testing
