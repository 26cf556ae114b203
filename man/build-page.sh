#!/bin/sh
# build-page.sh PROGRAM SCDOC COMMAND INPUT OUTPUT: the prose, then the options and examples from the program's tables.
set -eu
options=$("$1" --man-options "$3")
awk -v options="$options" '$0 == "@OPTIONS@" { print options; next } { print }' "$4" | "$2" >"$5"
