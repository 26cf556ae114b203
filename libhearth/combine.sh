#!/bin/sh
# combine.sh CC OBJCOPY AR OUTPUT LIBRARY DEPENDENCIES...: one archive of one object that holds LIBRARY and what it needs
# of the DEPENDENCIES, in which only hearth_* can be seen: a program may have a buf_add() of its own.
# CC is the command of the compiler, which may be several words ("ccache cc").
set -eu
cc=$1 objcopy=$2 ar=$3 output=$4 library=$5
shift 5
object=$output.o
# shellcheck disable=SC2086
$cc -r -nostdlib -o "$object" -Wl,--whole-archive "$library" -Wl,--no-whole-archive -Wl,--start-group "$@" -Wl,--end-group
"$objcopy" --wildcard --keep-global-symbol='hearth_*' "$object"
rm -f "$output"
"$ar" rcs "$output" "$object"
rm -f "$object"
