#!/bin/sh
# source.sh CLANG OUTPUT ARGUMENTS...: the sampler's program after the preprocessor, as a string of C.
set -eu
clang=$1 output=$2
shift 2
{
	printf 'extern const char sampler_source[];\nconst char sampler_source[] =\n'
	"$clang" -E -P "$@" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/'
	printf ';\n'
} >"$output.tmp"
mv "$output.tmp" "$output"
