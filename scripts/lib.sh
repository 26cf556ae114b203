# shellcheck shell=sh
# Shared by scripts/test and scripts/test-extra: counts results and prints the closing line.
# A step is a Meson test run (each case counts, scripts/count-tests), a TAP script (its ok lines are counted), or a plain
# command (one result). A step that fails is counted and the next one runs; the closing line decides the exit status.
# Tests of a Meson run that fail, three at most, are run once more: what a busy machine missed is not a fault. Both runs are printed.
passed=0 failed=0 skipped=0
results=$(mktemp)
trap 'rm -f "$results"' EXIT

count() { # prints how many lines of the results match an expression and do not match another one
	awk -v with="$1" -v without="${2:-^$}" '$0 ~ with && $0 !~ without { n++ } END { print n + 0 }' "$results"
}

add_results() {
	passed=$((passed + $(count '^ok' '# SKIP')))
	failed=$((failed + $(count '^not ok')))
	skipped=$((skipped + $(count '^ok.*# SKIP')))
}

plain() { # name command...
	name=$1
	shift
	echo "== $name"
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "not ok $name"
	fi
}

configure() { # build folder, meson options...
	folder=$1
	shift
	if [ -f "$folder/build.ninja" ]; then
		meson configure "$folder" "$@" >/dev/null
	else
		meson setup "$folder" "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
		rm -f "$folder.log"
	fi
}

meson_tests() { # build folder, arguments of meson test...
	folder=$1
	shift
	echo "== meson test in $folder $*"
	log=$folder/meson-logs/testlog.json
	rm -f "$log"
	meson test -C "$folder" --no-rebuild --print-errorlogs "$@" || echo "meson test in $folder ended with $?"
	cp "$log" "$log.first" || :
	again=$(scripts/count-tests --failed "$log" | tr '\n' ' ')
	[ "$(echo "$again" | wc -w)" -le 3 ] || again=
	if [ -n "$again" ]; then
		echo "== run once more: $again"
		# shellcheck disable=SC2086 # names of tests have no blanks
		meson test -C "$folder" --no-rebuild --print-errorlogs "$@" $again || echo "meson test in $folder ended with $?"
	fi
	scripts/count-tests "$log.first" ${again:+"$log"} >"$results" || echo "not ok meson test in $folder $* left no readable log" >>"$results"
	[ -s "$results" ] || echo "not ok meson test in $folder $* ran nothing" >>"$results"
	awk '/^not ok|# SKIP|^#/' "$results"
	add_results
}

tap() { # name command...
	name=$1
	shift
	echo "== $name"
	{ "$@" 2>&1 || echo "# $name ended with status $?"; } | tee "$results"
	if [ "$(count '^# .* ended with status')" != 0 ] && [ "$(count '^not ok')" = 0 ]; then
		echo "not ok $name ended with an error" | tee -a "$results"
	fi
	[ "$(count '^(not )?ok')" != 0 ] || echo "not ok $name printed no result" | tee -a "$results"
	add_results
}

tap_again() { # name command...: as tap; a run that fails is made once more, and both are printed
	name=$1
	shift
	echo "== $name"
	{ "$@" 2>&1 || echo "# $name ended with status $?"; } >"$results"
	if [ "$(count '^(not ok|# .* ended with status)')" != 0 ]; then
		sed 's/^/# first run: /' "$results"
		tap "$name, once more" "$@"
	else
		cat "$results"
		add_results
	fi
}

closing_line() {
	echo
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
