#!/usr/bin/env bash
# Copies and memsets that leave their buffers, whatever the driver makes of them; what is never freed. Each row is a mode of
# tests/programs/order/bounds.cu.
. "$(dirname "$0")/lib/tap.bash"
bounds=$programs/order/bounds

classes() { # classes CAPTURE [OPTION]
    "$tool" report --json ${2:-} "$1" | jq -r '[.findings[].class] | unique | join(" ")'
}
says() { # says NAME CAPTURE PATTERN: the report, on one line
    "$tool" report ${4:-} "$2" | tr -s ' \n' ' ' >"$scratch/text"
    check "$1" grep -q -- "$3" "$scratch/text"
}

while read -r mode wrong; do
    for form in wrong ok; do
        capture=$scratch/$mode-$form
        "$tool" run --device soft --out "$capture" -- "$bounds" "$mode" $form >"$scratch/out" 2>&1
        equal "$mode/$form: exit code" 0 $?
        equal "$mode/$form: finding" "$([ $form = wrong ] && echo "$wrong")" "$(classes "$capture")"
    done
done <<'TABLE'
copy_past    out-of-bounds-write
read_past    out-of-bounds-read
far_past     out-of-bounds-write
negative     out-of-bounds-write
set_past     out-of-bounds-write
start_past   out-of-bounds-write
start_before out-of-bounds-write
rows         out-of-bounds-write
rows_inside  out-of-bounds-write
box          out-of-bounds-write
pinned       out-of-bounds-write
to_array     out-of-bounds-read
freed        use-after-free
host_pointer out-of-bounds-write
stale_free   invalid-free
TABLE
says "bytes, allocation and place" "$scratch/copy_past-wrong" "16 bytes written past the end of allocation 1 (allocated at bounds.cu:[0-9]*) by a copy"
says "a refusal is told" "$scratch/far_past-wrong" "the driver refused it with error 1"
says "before the start" "$scratch/start_before-wrong" "32 bytes would have been written before the start of allocation 1 "
says "a pointer of the host" "$scratch/host_pointer-wrong" "where no device memory was allocated: a pointer of the host?"
says "a free after the context's end" "$scratch/stale_free-wrong" "is freed after its context had ended, and it with that"

for mode in leak leak_reset; do
    for form in wrong ok; do
        capture=$scratch/$mode-$form
        "$tool" run --device soft --out "$capture" -- "$bounds" $mode $form >"$scratch/out" 2>&1
        equal "$mode/$form: exit code" 0 $?
        equal "$mode/$form: no finding unless asked for" "" "$(classes "$capture")"
        equal "$mode/$form: asked for" "$([ $form = wrong ] && echo leak)" "$(classes "$capture" --leak-check)"
    done
done
says "a leak is hinted at" "$scratch/leak-wrong" "2 allocations of 2000 bytes were never freed (report --leak-check says which)"
says "with size, count and place" "$scratch/leak-wrong" "bounds.cu:[0-9]*: 2000 bytes of device memory in 2 allocations were never freed" --leak-check
says "what went with its context" "$scratch/leak_reset-wrong" "1 of them went with its context" --leak-check
"$tool" run --device soft --leak-check on --error-exitcode 7 --out "$scratch/asked" -- "$bounds" leak >"$scratch/out" 2>&1
equal "the run can ask for it" 7 $?
done_testing
