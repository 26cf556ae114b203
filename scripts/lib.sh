# Shared by scripts/test and scripts/test-extra: counts results and prints the closing line.
# A step is a Meson test run (its testlog.json is counted, one test program each), a TAP script (its ok lines are
# counted), or a plain command (one result).
passed=0 failed=0 skipped=0
results=$(mktemp)
trap 'rm -f "$results"' EXIT

add_results() { # file with ok / not ok lines
	passed=$((passed + $(grep -E '^ok' "$1" | grep -cvi '# skip')))
	failed=$((failed + $(grep -cE '^not ok' "$1")))
	skipped=$((skipped + $(grep -E '^ok' "$1" | grep -ci '# skip')))
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
	meson test -C "$folder" --no-rebuild --print-errorlogs "$@" || true
	python3 - "$folder/meson-logs/testlog.json" >"$results" <<-'PYTHON'
		import json, sys
		for line in open(sys.argv[1]):
		    test = json.loads(line)
		    result = test["result"]
		    if result == "SKIP":
		        print("ok", test["name"], "# SKIP")
		    elif result in ("OK", "EXPECTEDFAIL"):
		        print("ok", test["name"])
		    else:
		        print("not ok", test["name"], result)
	PYTHON
	grep -E '^not ok' "$results" || true
	add_results "$results"
}

tap() { # name command...
	name=$1
	shift
	echo "== $name"
	if ! "$@" >"$results" 2>&1 && ! grep -qE '^not ok' "$results"; then
		echo "not ok $name ended with an error" >>"$results"
	fi
	cat "$results"
	grep -qE '^(not )?ok' "$results" || echo "not ok $name printed no result" | tee -a "$results"
	add_results "$results"
}

closing_line() {
	echo
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
