#!/bin/sh
# build-page.sh SCDOC INPUT OPTIONS OUTPUT: the prose, with the options and examples where @OPTIONS@ stands (without the
# empty lines at their end).
set -eu
awk -v options="$3" '
	$0 != "@OPTIONS@" { print; next }
	{ while ((getline line < options) > 0) if (line == "") empty++; else { for (; empty; empty--) print ""; print line } }
' "$2" | "$1" >"$4"
