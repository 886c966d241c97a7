#!/usr/bin/env bash
# attribute, export and trace on captures of real programs, and what they say to wrong usage.
. "$(dirname "$0")/lib/tap.bash"

"$tool" run --device soft --out "$scratch/none" -- "$programs/driver_ok" >/dev/null 2>&1
for program in block_nan block_gelu block_tail_write ocean_nan; do
    "$tool" run --device soft --preset deep --out "$scratch/$program" -- "$programs/$program" >/dev/null 2>&1
    "$tool" verify --json "$scratch/$program" >"$scratch/$program.json" 2>/dev/null
done
of() { # of PROGRAM FILTER: of its first finding
    jq -r ".findings[0] | $2" "$scratch/$1.json"
}
line_of() { # line_of PROGRAM FAULT
    fault_line "$(grep -rlE "FAULT: $2 \*/" "tests/programs/${1%%_*}" | head -n 1)" "$2"
}

# ---- attribute

next=$(of block_nan '.next[0]')
equal "a finding's next command is attribute" "ops-debug attribute $scratch/block_nan 1" "$next"
check "it can be run as it stands" bash -c "${next/#ops-debug/$tool}"
"$tool" attribute --json "$scratch/block_nan" 1 >"$scratch/a.json"
equal "attribute of a NaN: exit code" 0 $?
equal "its element is NaN, at the line that made it" "nan $(line_of block_nan nan)" \
    "$(jq -r --argjson o "$(of block_nan .allocation.offset)" '.elements[] | select(.offset == $o) | "\(.device) \(.origin.line)"' "$scratch/a.json")"
equal "the device did what the PTX says" true "$(jq '[.elements[].bits_differ] | any | not' "$scratch/a.json")"
"$tool" attribute --json "$scratch/block_gelu" 1 >"$scratch/a.json"
equal "attribute of an approximation: the worst element is off in fp64, at its line" true \
    "$(jq --argjson o "$(of block_gelu .allocation.offset)" --argjson l "$(line_of block_gelu gelu)" \
        '.elements[] | select(.offset == $o) | .origin.line == $l and (.error_fp64 | fabs) > 1e-3' "$scratch/a.json")"
equal "inputs at the same place are shown" true "$(jq '[.elements[].inputs | length] | all(. > 0)' "$scratch/a.json")"
equal "who stored it is known" true "$(jq '.elements[0].stored_by | .block[0] >= 0 and .line > 0' "$scratch/a.json")"
launch=$(of block_gelu .launch.seq)
allocation=$(of block_gelu .allocation.id)
"$tool" attribute --json "$scratch/block_gelu" --launch "$launch" --allocation "$allocation" --elements 10:13 >"$scratch/a.json"
equal "a range of elements" "10 11 12" "$(jq -r '[.elements[].element] | join(" ")' "$scratch/a.json")"
equal "statistics before and after" true \
    "$(jq --argjson a "$allocation" '.buffers[] | select(.allocation == $a) | .stored and .before.count == .after.count and .after.nan == 0' "$scratch/a.json")"
"$tool" attribute --json "$scratch/block_gelu" --launch "$launch" --allocation "$allocation" --type u32 --elements 0:2 >"$scratch/a.json"
equal "as another type" "u32 null" "$(jq -r '"\(.type) \(.elements[0].fp64)"' "$scratch/a.json")"
check "attribute as text" "$tool" attribute "$scratch/block_tail_write" 1
equal "the last elements before the fault all say who stored them" "12 12" \
    "$("$tool" attribute --json "$scratch/block_tail_write" 1 | jq -r '"\(.elements | length) \([.elements[] | select(.stored_by)] | length)"')"

# The README shows what comes out today; how often sentinels are looked at depends on how busy the machine is.
sed -n '/^\$ ops-debug verify capture$/,/^```$/p' README.md | sed '1d;$d' | sed 's/ [0-9]* looked at/ N looked at/' >"$scratch/shown"
ln -s "$scratch/block_tail_write" "$scratch/capture"
(cd "$scratch" && "$tool" verify capture) | sed 's/ [0-9]* looked at/ N looked at/' >"$scratch/out"
check "the README's report" diff "$scratch/shown" "$scratch/out"

# ---- export

npy=$scratch/one.npy
check "one snapshot to a file" "$tool" export --format npy "$scratch/block_gelu" -o "$npy" --launch "$launch" --allocation "$allocation" --when after
equal "npy: magic and version" "93 4e 55 4d 50 59 01 00" "$(od -An -tx1 -N8 "$npy" | sed 's/^ *//')"
equal "npy: the header ends at a multiple of 64 with a newline" "128 0a" \
    "$((10 + $(od -An -tu2 -j8 -N2 "$npy"))) $(od -An -tx1 -j127 -N1 "$npy" | tr -d ' ')"
elements=$(($(of block_gelu .allocation.bytes) / 4))
check "npy: type and shape" grep -qaF "{'descr': '<f4', 'fortran_order': False, 'shape': ($elements,), }" "$npy"
equal "npy: size" $((128 + 4 * elements)) "$(stat -c %s "$npy")"
first=$("$tool" attribute --json "$scratch/block_gelu" --launch "$launch" --allocation "$allocation" --elements 0:1 | jq '.elements[0].device')
equal "npy: its first element is the device's" "$(printf %.6e "$first")" "$(printf %.6e "$(od -An -tf4 -j128 -N4 "$npy")")"
check "all snapshots to a folder" "$tool" export "$scratch/block_gelu" -o "$scratch/folder" --launch "$launch"
equal "npy: as many files as snapshots" "$("$tool" show --json "$scratch/block_gelu" "$launch" | jq '.snapshots | length')" \
    "$(find "$scratch/folder" -name '*.npy' | wc -l)"
check "npy: the same array among them" \
    cmp "$npy" "$(echo "$scratch"/folder/launch-"$launch"_argument-*_allocation-"$allocation"_after.npy)"

# ---- trace

for program in block_nan ocean_nan; do
    "$tool" trace --json "$scratch/$program" >"$scratch/t.json"
    equal "$program: trace's exit code" 1 $?
    equal "$program: first launch, born at the line" "$(of $program .launch.seq) $(line_of $program nan)" \
        "$(jq -r '.bad[0] | "\(.seq) \(.born.line)"' "$scratch/t.json")"
    equal "$program: with thread and operand" true \
        "$(jq '.bad[0].born | (.thread | length) == 3 and .operands[0] < 0' "$scratch/t.json")"
    equal "$program: it spread from there" true \
        "$(jq '(.bad | length) > 1 and .bad[1].born == null and .bad[1].source_launch == .bad[0].seq' "$scratch/t.json")"
done
last=$("$tool" trace --json "$scratch/ocean_nan" | jq '.bad[-1].seq')
"$tool" trace "$scratch/ocean_nan" --launch "$last" >"$scratch/out"
check "the chain of one launch goes back to the birth" grep -qE '^from +launch' "$scratch/out"
"$tool" trace --full "$scratch/block_tail_write" >"$scratch/out"
equal "no NaN: exit code" 0 $?
check "no NaN: text" grep -q '^0 of' "$scratch/out"

# ---- wrong usage

# usage NAME PATTERN ARGS...: exit code 2 and one line on stderr that matches.
usage() {
    local name=$1 pattern=$2 rc
    shift 2
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err"
    rc=$?
    if [ $rc -eq 2 ] && [ "$(wc -l <"$scratch/err")" -eq 1 ] && grep -qE "$pattern" "$scratch/err" && [ ! -s "$scratch/out" ]; then
        ok "$name: $(cat "$scratch/err")"
    else
        not_ok "$name: exit $rc, $(head -n 1 "$scratch/err")"
    fi
}
good=$scratch/block_gelu
usage "attribute: no capture" 'wants a capture' attribute
findings=$("$tool" report --json "$good" | jq '(.findings | length) + (.notes | length)')
if [ "$findings" = 1 ]; then
    check "attribute without a number takes the only finding" sh -c "'$tool' attribute '$good' 1 >'$scratch/1' && '$tool' attribute '$good' | cmp - '$scratch/1'"
else
    usage "attribute without a number lists the findings" "has $findings findings; .*: 1 [a-z-]* \\(launch" attribute "$good"
fi
usage "attribute without a number, and without findings" 'has no findings' attribute "$scratch/none"
usage "attribute: no such finding" 'no finding 99' attribute "$good" 99
usage "attribute: not a number" 'number of a finding' attribute "$good" x
usage "attribute: no such launch" 'no launch 99999' attribute "$good" --launch 99999
usage "attribute: no such allocation" 'no allocation 99999' attribute "$good" --launch 1 --allocation 99999
usage "attribute: no such type" "is one of" attribute "$good" 1 --type float
usage "attribute: malformed range" 'FROM:TO' attribute "$good" 1 --elements 3-5
usage "attribute: range past the end" 'not among them' attribute "$good" 1 --elements 0:99999999
usage "attribute: no such capture" 'missing' attribute "$scratch/missing" 1
usage "export: nothing said" 'wants a capture' export "$good"
usage "export: another format" 'format is npy' export --format csv "$good" -o "$scratch/x" --launch 1
usage "export: another moment" 'before or after' export --when during "$good" -o "$scratch/x" --launch 1
usage "export: a folder that cannot be made" 'No such file' export "$good" -o "$scratch/no/where" --launch "$launch"
usage "export: no such snapshot" 'no such snapshot' export "$good" -o "$scratch/x" --launch "$launch" --allocation 1
usage "export: several snapshots, one file" 'one snapshot, not' export "$good" -o "$scratch/several.npy" --launch "$launch"
usage "verify: no such launch" 'no launch of .* is chosen' verify "$good" --launch 99999
usage "verify: no such kernel" 'no launch of .* is chosen' verify "$good" --kernel nonsense
usage "trace: no capture" 'wants one capture' trace
usage "trace: threshold" 'not negative' trace --threshold big "$good"
usage "trace: no such launch" 'no launch' trace --launch 99999 "$good"
for command in attribute export trace; do
    check "$command --help" "$tool" $command --help
done
# ---- ptx coverage

"$tool" ptx coverage --json "$programs/block_ok" >"$scratch/p.json"
equal "ptx coverage of a program: exit code" 0 $?
equal "every kernel of it runs" "true" "$(jq '.kernels_total == .kernels_run and .kernels_run > 10 and (.missing | length) == 0' "$scratch/p.json")"
cat >"$scratch/some.ptx" <<'EOF'
.version 9.0
.target sm_75
.address_size 64
.func helper() { not.known; ret; }
.entry one() { ret; }
.entry two() { call helper, (); ret; }
.entry three() { .reg .f32 %f<3>; frob.f32 %f1, %f2; call helper, (); ret; }
EOF
"$tool" ptx coverage --json "$scratch/some.ptx" >"$scratch/p.json"
equal "ptx coverage of a text with gaps: exit code" 1 $?
equal "which kernels run" "one:true two:false three:false" "$(jq -r '[.kernels[] | "\(.kernel):\(.runs)"] | join(" ")' "$scratch/p.json")"
equal "what is missing, with its line" "4 7,4" "$(jq -r '[.kernels[1,2] | [.missing[].line | tostring] | join(",")] | join(" ")' "$scratch/p.json")"
equal "totals, the most frequent first" "2 true" "$(jq -r '.missing[0] | "\(.kernels) \(.text | contains("`not.known`"))"' "$scratch/p.json")"
check "ptx coverage as text" bash -c '"$0" ptx coverage "$1" | grep -q "^1 of 3 kernels run"' "$tool" "$scratch/some.ptx"
# Separately compiled files: linked they are one module, the device runtime is not the program's, and neither is the
# machine code that the device linker made of them a module of its own.
"$tool" ptx coverage --json "$programs/odd/linked" >"$scratch/p.json"
equal "ptx coverage of files linked as device code: exit code" 0 $?
equal "they are one module" "1 0 0 5 5" "$(jq -r '"\(.modules) \(.modules_without_ptx) \(.modules_unreadable) \(.kernels_total) \(.kernels_run)"' "$scratch/p.json")"
# One of them alone, as in an object file, lacks the other, and nothing tells where machine code comes from.
objcopy --dump-section __nv_relfatbin="$scratch/both" --dump-section .nv_fatbin="$scratch/linked" \
    "$programs/odd/linked" "$scratch/copy"
head -c $((16 + $(od -A n -t u8 -j 8 -N 8 "$scratch/both"))) "$scratch/both" >"$scratch/one"
objcopy -I binary -O elf64-x86-64 --rename-section .data=__nv_relfatbin --add-section .nv_fatbin="$scratch/linked" \
    "$scratch/one" "$scratch/one.o"
"$tool" ptx coverage --json "$scratch/one.o" >"$scratch/p.json"
equal "ptx coverage of one such file: exit code" 1 $?
equal "machine code of unknown origin is counted" 1 "$(jq .modules_without_ptx "$scratch/p.json")"
equal "what it misses is in the other file" "true" "$(jq '.kernels_run < .kernels_total and ([.missing[].text | select(contains("not defined in this module"))] | length) > 0' "$scratch/p.json")"
printf '.version 9.0\n.target sm_75\n.address_size 64\n\0.entry one() { ret; }\n' >"$scratch/nul.ptx"
for bad in README.md /bin/true "$scratch" /nonexistent "$scratch/nul.ptx" tests/ptx/errors/bad-number.ptx; do
    "$tool" ptx coverage "$bad" >/dev/null 2>"$scratch/err"
    equal "ptx coverage refuses ${bad##*/}" 2 $?
done
"$tool" ptx nonsense README.md >/dev/null 2>&1
equal "ptx without coverage is a wrong usage" 2 $?

# ---- whatever a report tells to run next runs as it stands, from a folder and a program whose names mean something to a shell
mkdir "$scratch/it's a \$folder" && mkdir "$scratch/bin"
ln -s "$tool" "$scratch/bin/ops-debug"
for program in block_tail_write block_uninit block_nan; do
    capture="$scratch/it's a \$folder/$program"
    cp "$programs/$program" "$scratch/it's a \$folder/a program"
    "$tool" run --device soft --preset deep --out "$capture" -- "$scratch/it's a \$folder/a program" >/dev/null 2>&1
    { "$tool" report --json "$capture"; "$tool" verify --json "$capture"; } 2>/dev/null | jq -r '.findings[].next[]' | sort -u >"$scratch/next"
    "$tool" report "$capture" | sed -n 's/^ *next:* *\(ops-debug .*\)$/\1/p' >>"$scratch/next"
    equal "$program: there is something to run next" true "$([ "$(wc -l <"$scratch/next")" -ge 2 ] && echo true)"
    while read -r next; do
        (cd "$scratch" && PATH="$scratch/bin:$PATH" timeout 100 bash -c "$next" </dev/null >"$scratch/out" 2>&1)
        rc=$?
        equal "$program: '${next//$scratch/}' runs" true "$([ $rc -le 1 ] && echo true || cat "$scratch/out")"
    done <"$scratch/next"
done

done_testing
