#!/usr/bin/env bash
# Work of two streams on one buffer: told where nothing orders it, silence where something does; each row of the table is a mode of
# tests/programs/order/order.cu. `no` in the column `wrong`: the mode has a sound form only.
. "$(dirname "$0")/lib/tap.bash"
order=$programs/order/order

classes() { # classes COMMAND CAPTURE: what it finds, each once
    "$tool" "$1" --json ${3:-} "$2" | jq -r '[.findings[].class] | unique | join(" ")'
}

# mode, what is found in the wrong form, does `report` alone find it
while read -r mode wrong alone; do
    for form in wrong ok; do
        [ "$form $wrong" = "wrong no" ] && continue
        expected=$([ $form = wrong ] && echo "$wrong")
        capture=$scratch/$mode-$form
        "$tool" run --device soft --preset deep --out "$capture" -- "$order" "$mode" $form >"$scratch/out" 2>&1
        equal "$mode/$form: exit code" 0 $?
        equal "$mode/$form: report" "$([ "$alone" = yes ] && echo "$expected")" "$(classes report "$capture")"
        # a launch that waits for another one cannot be executed again alone
        equal "$mode/$form: verify" "$expected" "$(classes verify "$capture" --budget=20)"
    done
done <<'TABLE'
kernels          stream-race    no
event_early      stream-race    no
event_late       stream-race    no
event_again      stream-race    no
copy_in          stream-race    no
copy_in_pageable stream-race    no
copy_out         stream-race    no
copies           stream-race    yes
host_buffer      stream-race    yes
default_stream   stream-race    no
thread_stream    stream-race    no
plain_memset     stream-race    no
plain_copy       stream-race    no
free_async       use-after-free no
alloc_async      stream-race    no
columns          stream-race    yes
interleaved      stream-race    no
batch            stream-race    no
host_function    no
host_functions   no
elapsed          no
flag             no
host_flag        no
counters         no
same_value       no
pageable_out     no
graph            no
threads          no
freed            no
chain            no
TABLE
# What the report says of a pair.
"$tool" report "$scratch/event_early-wrong" | tr -s ' \n' ' ' >"$scratch/text"
check "both sides are named" grep -q "issued first launch 1, fill .*issued later launch 2, add " "$scratch/text"
check "with their streams" grep -q "in stream [0-9]* (non-blocking): writes these bytes .*in stream [0-9]* (non-blocking): reads these bytes" "$scratch/text"
check "the event that came too early is named" grep -q "waits for event 1, but that was recorded in stream .* before the earlier work" "$scratch/text"
check "the bytes are named" grep -q "reads bytes 0 to 16383 of allocation 1 " "$scratch/text"
"$tool" report "$scratch/event_late-wrong" | tr -s ' \n' ' ' >"$scratch/text"
check "an event that was never recorded is named" grep -q "when it began to wait nobody had recorded that" "$scratch/text"
"$tool" report "$scratch/free_async-wrong" | tr -s ' \n' ' ' >"$scratch/text"
check "a free is told as a use after free" grep -q "is freed in another stream while launch 1, fill .* may still use it" "$scratch/text"
done_testing
