# Sourced by detect.sh and by scripts/detection-table: runs tests/programs/detect in one mode and says what the report knows.
detect_source=tests/programs/detect/detect.cu
detect_victim=$(grep -n '/\* VICTIM \*/' $detect_source | cut -d: -f1)

# The class that an error of this name must get.
detect_class() {
    case $1 in
    write | atomic) echo out-of-bounds-write ;;
    read) echo out-of-bounds-read ;;
    stale-*) echo use-after-free ;;
    free-twice) echo double-free ;;
    free-*) echo invalid-free ;;
    esac
}
# detect_run FOLDER OPTIONS -- ARGUMENTS: a capture, then FOLDER/report.json. OPTIONS may hold the word `verify`.
detect_run() {
    local folder=$1 options=() command=report
    shift
    while [ "$1" != -- ]; do
        if [ "$1" = verify ]; then command=verify; else options+=("$1"); fi
        shift
    done
    shift
    rm -rf "$folder"
    "$tool" run --device soft "${options[@]}" --out "$folder" -- "$programs/detect" "$@" >"$folder.out" 2>&1
    detect_status=$?
    "$tool" $command --json "$folder" >"$folder/report.json" 2>"$folder/report.err"
}
# detect_words FOLDER ERROR: "CLASS LAUNCH ALLOCATION INSTRUCTION", each yes, no or -, for the finding of the expected class.
detect_words() {
    local class line
    class=$(detect_class "$2")
    line=$(fault_line $detect_source "${2#stale-}")
    jq -r --arg class "$class" --arg line "$line" --arg victim "detect.cu:$detect_victim" --arg free "${2%%-*}" '
        def word(x): if x then "yes" else "no" end;
        ([.findings[] | select(.class == $class)] | sort_by(.launch.seq != 8)) as $f
        | if $f == [] then "no - - -" else $f[0]
        | "yes \(if $free == "free" then "-" else word(.launch.seq == 8 and (.launch.window_last // 0) == 0) end)"
          + " \(word((.allocation.stack // []) | any(endswith($victim))))"
          + " \(word("\(.where.line)" == $line))" end' "$1/report.json"
}
# Classes found, for the sound ones and for what is found beside the error.
detect_classes() {
    jq -r '[.findings[] | select(.severity != "note") | .class] | unique | join(",")' "$1/report.json"
}
