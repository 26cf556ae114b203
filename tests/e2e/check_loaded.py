#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A compiler in a loop on every CPU, two more busy programs, and a session that begins when they run: nearly all of the compiler's stacks
are whole.

A compiler's stacks are longer than the copy that travels with a raw sample, so a sample is cut that comes before the kernel knows the rows
of the compiler's huge files, or the mappings of a process that has just begun. rustc has its own process for all of it and starts anew
for each file; g++ starts cc1plus.
"""
from judge import *
from support import *

SECONDS = 12
FUNCTIONS = 30
# Each run is a new process with new mappings, as in a build.
LOOP = 'while [ "$(date +%s)" -lt "$1" ]; do "$2" $3 -o "$4" "$5" 2>/dev/null || exit 1; done'


def rust_source():
    lines = ["use std::collections::HashMap;"]
    for i in range(FUNCTIONS):
        lines.append(f"#[derive(Debug, Clone, PartialEq)] pub struct S{i} {{ a: Vec<u64>, b: HashMap<String, (i32, Option<i8>)> }}")
        lines.append(f"pub fn f{i}(x: &[i64]) -> i64 {{ x.iter().filter(|v| **v % {i + 2} == 0).map(|v| v * {i} + 1)"
                     ".zip(x.iter().rev()).fold(0, |a, (b, c)| a ^ (b + c)) }")
    lines.append("fn main() { let x: Vec<i64> = (0..100).collect();")
    lines += [f'println!("{{}}", f{i}(&x));' for i in range(FUNCTIONS)]
    return "\n".join(lines + ["}"])


CPP_SOURCE = """#include <map>
#include <regex>
#include <string>
int main(int argc, char **argv)
{
	std::map<std::string, int> counts;
	std::regex word("[a-z]+|([0-9]+)-\\\\1");
	for (int i = 1; i < argc; i++)
		if (std::regex_match(argv[i], word))
			counts[argv[i]]++;
	return (int)counts.size();
}
"""


def rustc():
    """The compiler itself: what rustup puts into the PATH only starts it."""
    said = run("rustc", "--print", "sysroot")
    return os.path.join(said.stdout.strip(), "bin", "rustc") if said.returncode == 0 else "rustc"


def prepare(program, options, name, text):
    """Compiles once, so that files are in memory and errors are seen. Return: arguments of LOOP behind the end's time."""
    with open(path(name), "w") as f:
        f.write(text)
    tried = run(program, *options.split(), "-o", path("first"), path(name))
    if not tap.ok(tried.returncode == 0, f"{os.path.basename(program)} compiles the program", tried.stderr[-300:]):
        tap.finish()
    return program, options, path(name)


def judge(comm, program, options, source):
    seen = []

    def whole():
        """The share of the compiler's samples in one session, in percent."""
        end = int(time.time()) + SECONDS + 2
        busy = [start(workload("spin"), SECONDS + 2) for _ in range(2)]
        loops = [start("sh", "-c", LOOP, "loop", end, program, options, path(f"out{i}"), source) for i in range(CPUS)]
        record(tap, SECONDS, "-F", 99, "-q", "-o", path("loaded.pb.gz"))
        failed = [stopped(p) for p in loops]
        for p in busy:
            stopped(p)
        if any(failed):
            tap.ok(False, f"{comm} runs to its end", failed)
        own = [s for s in Profile(path("loaded.pb.gz")).samples if s.labels.get("comm") == comm]
        ends = {}
        for s in own:
            ends[s.end] = ends.get(s.end, 0) + s.count
        tap.note(f"{total(own)} samples of {comm}: " + ", ".join(f"{c} {e}" for e, c in sorted(ends.items(), key=lambda e: -e[1])))
        seen.append(total(own))
        return 100 * share([s for s in own if s.end == "complete"], own)

    verdict = mean_is(whole, least=95, fewest=3, cap=8)
    tap.ok(verdict.well, f"at least 95 % of {comm}'s stacks are whole in a session that begins under load", verdict)
    tap.ok(min(seen) >= 20, f"there are samples of {comm}", seen)


tap = Tap("loaded")
need(tap, "g++")
if shutil.which("rustc"):
    judge("rustc", *prepare(rustc(), "-O --crate-name looped", "a.rs", rust_source()))
else:
    tap.skip("rustc under load", "rustc is not installed")
judge("cc1plus", *prepare("g++", "-O1 -c", "a.cc", CPP_SOURCE))
tap.finish()
