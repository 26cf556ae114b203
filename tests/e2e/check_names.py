#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Function names of every kind of program, of libraries that come late or go, and names that want to break a format."""
import json

from support import *

tap = Tap("names")
need(tap)
seconds = 8 if QUICK else 20
more = seconds + 4
patience = 40  # more seconds for node, which compiles the hot function only after some CPU time of its own
enough = 0.5   # seconds of CPU time: 0.1 to 0.2 of them is node 18's start
for copy in ("replaced.so", "replacement.so", "removed.so"):
    shutil.copy(workload("late_other.so" if copy == "replacement.so" else "late_lib.so"), path(copy))
os.chmod(path("replaced.so"), 0o755)

# What runs, and the name most of its own time has to be under.
programs = {
    "C++": ([workload("cpp"), more], ["shop::cart::Matrix<double, 40>::multiply", "(anonymous namespace)::hidden_work",
                                     "shop::cart::Total::operator()"]),
    "kernel": ([workload("kernel_heavy"), more], ["call_kernel"]),
    "library loaded late": ([workload("dlopen_late"), seconds, workload("late_lib.so")], ["late_library_work"]),
    "library replaced on disk": ([workload("dlopen_late"), seconds, path("replaced.so"), path("replacement.so")],
                                 ["late_library_work"]),
    "library removed from disk": ([workload("dlopen_late"), seconds, path("removed.so"), "-"], ["late_library_work"]),
}
if os.path.exists(workload("rs")):
    programs["Rust"] = ([workload("rs"), more], ["engine::burn"])
else:
    tap.skip("Rust", "needs rustc")
if os.path.exists(workload("go_stripped")):
    programs["Go, stripped"] = ([workload("go_stripped"), more], ["main.(*Engine).Turn"])
    programs["Go, stripped and position independent"] = ([workload("go_pie"), more], ["main.(*Engine).Turn"])
else:
    tap.skip("Go", "needs go")
if shutil.which("node"):
    programs["node --perf-basic-prof"] = (["node", "--perf-basic-prof", os.path.join(HERE, "workloads", "node.js"),
                                           more + patience], ["hotLoopOfNode"])
else:
    tap.skip("node", "needs node")

processes = {name: start(*command, cwd=scratch) for name, (command, _) in programs.items()}
hostile = start(workload("names_hostile"), more)
outputs = ["all.pb.gz", "all.col", "all.folded", "all.html", "all.hwin"]
recorder = start(HEARTH, "record", "-F", 499, "-q", *[a for o in outputs for a in ("-o", path(o))],
                 stderr=subprocess.PIPE, text=True)
begin = time.monotonic()
time.sleep(2)
short = []
for _ in range(6):
    short.append(start(workload("short")))
    stopped(short[-1])
node = processes.get("node --perf-basic-prof")
while time.monotonic() < begin + seconds or (
        node and node.poll() is None and cpu_seconds(node.pid) < enough and time.monotonic() < begin + seconds + patience):
    time.sleep(0.2)
node_ran = cpu_seconds(node.pid) if node and node.poll() is None else 0
recorder.send_signal(2)
said = recorder.communicate(timeout=90)[1]
if not tap.ok(recorder.returncode == 0, "hearth record ends well", f"exit {recorder.returncode} {said[-300:].strip()}"):
    tap.finish()
profile = Profile(path("all.pb.gz"))

for name, (_, wanted) in programs.items():
    samples = profile.of(processes[name])
    tap.ok(total(samples) >= 20, f"{name}: has samples", total(samples))
    if processes[name] is node and node.poll() is None and node_ran < enough:
        tap.skip(f"{name}: {wanted[0]}", f"the machine left node {node_ran:.2f} s of CPU time, hardly more than its start")
        continue
    for function in wanted:
        found = [s for s in samples if any(function in n for n in s.names)]
        tap.ok(found, f"{name}: {function}", f"{100 * share(found, samples):.1f} % of {total(samples)}")
late = [s for name in programs if name.startswith("library") for s in profile.of(processes[name])]
tap.ok(not any("other_library_work" in n for s in late for n in s.names), "no name of the file that took a library's place")
of_short = [s for p in short for s in profile.of(p) if s.modules and s.modules[-1].endswith("/short")]
in_short = [s for s in of_short if "short_lived_work" in s.names]
tap.ok(share(in_short, of_short) > 0.9, "programs that lived 200 ms have their names", f"{total(in_short)} of {total(of_short)} samples")
kernel = profile.of(processes["kernel"])
in_kernel = [s for s in kernel if "call_kernel" in s.names and s.leaf != "call_kernel"]
tap.ok(share(in_kernel, kernel) > 0.3, "kernel frames stand on the user's", f"{100 * share(in_kernel, kernel):.1f} %")
unnamed = [s for s in profile.samples if any(n in ("", "[unknown]") for n in s.names)]
tap.ok(share(unnamed, profile.samples) < 0.02, "hardly a frame without name or module", f"{100 * share(unnamed, profile.samples):.2f} %")

# A JIT compiler's code without names: one line says what gives them.
ADVICE = "JIT code without names: start it with --perf-basic-prof"
if shutil.which("node"):
    for option, walk in (("--perf-basic-prof", "--no-nodejs"), (None, "--no-nodejs"), (None, "--nodejs")):
        # The stack is deep enough in JIT code once the hot function is compiled; the interpreter's frames lie in node's file.
        silent = start("node", *([option] if option else []), os.path.join(HERE, "workloads", "node.js"), 60, cwd=scratch)
        waited = time.monotonic() + 40
        while silent.poll() is None and cpu_seconds(silent.pid) < 2 * enough and time.monotonic() < waited:
            time.sleep(0.2)
        if cpu_seconds(silent.pid) < 2 * enough:
            tap.skip(f"node {option or 'without a perf map'}", "the machine left node hardly more CPU time than its start")
            silent.kill()
            silent.wait()
            continue
        done = run(HEARTH, "record", walk, "-F", 199, "-d", 3, "-p", silent.pid, "-o", path("jit.pb.gz"), "-o", path("jit.html"), timeout=90)
        silent.kill()
        silent.wait()
        report = run(HEARTH, "report", path("jit.pb.gz")).stdout
        with open(path("jit.html"), encoding="utf-8") as f:
            texts = (done.stderr + done.stdout, report, f.read())
        if option or walk == "--nodejs":
            tap.ok(done.returncode == 0 and not any("JIT code without" in t for t in texts), f"node {'with a perf map' if option else 'that is walked'}: no advice is given",
                   done.stderr[-200:])
        else:
            tap.ok(done.returncode == 0 and all(t.count(ADVICE) == 1 for t in texts), "node without a perf map: one line says what gives names",
                   f"{[t.count(ADVICE) for t in texts]} {done.stderr[-600:]}")
            tap.ok(all(" guessed, " in t for t in texts[:2]) and "guessed stacks" in texts[2], "guessed stacks have a share of their own",
                   report[:400])
            samples = Profile(path("jit.pb.gz")).samples
            guesses = [s for s in samples if s.end == "guessed"]
            tap.ok(not any(s.labels.get("stack_end") == "cut:guessed" for s in samples), "no guess is a cut",
                   f"{100 * share(guesses, samples):.1f} % of {total(samples)} are guessed")

# Hostile names.
samples = profile.of(hostile)
names = {n for s in samples for n in s.names if n.startswith("jit;")}
threads = {s.labels.get("thread") for s in samples}
tap.ok(len(names) >= 5, "functions of the hostile perf map", sorted(ascii(n) for n in names))
tap.ok("semi;colon" in threads and any("new\nline" == t for t in threads), "thread names keep ; and line breaks in pprof",
       sorted(ascii(t) for t in threads))
tap.ok(all(s.decode("utf-8", "replace").encode() == s for s in profile.raw_strings), "every string of the pprof file is UTF-8")
for name in ("all.col", "all.folded"):
    with open(path(name), "rb") as f:
        data = f.read()
    lines = data.decode("utf-8").split("\n")  # raises when it is not UTF-8
    lines = [l for l in lines if l]
    if name == "all.col":
        head = json.loads(lines.pop(0).removeprefix("# "))
        tap.ok("metadata" in head, ".col begins with its JSON line")
    bad = [l for l in lines if not l.rpartition(" ")[2].isdigit() or any(ord(c) < 32 or ord(c) == 127 for c in l)]
    tap.ok(lines and not bad, f"{name}: every line is a stack and a count", f"{len(bad)} of {len(lines)} are not")
    counted = sum(int(l.rpartition(" ")[2]) for l in lines if l.rpartition(" ")[2].isdigit())
    tap.ok(counted == total(profile.samples), f"{name}: as many samples as pprof", f"{counted} and {total(profile.samples)}")
with open(path("all.html"), "rb") as f:
    page = f.read()
tap.ok(b"\x1b" not in page and b"http://" not in page.replace(b"http://www.w3.org/", b""), "the page has no escape bytes and names no server")
try:
    for descriptor in os.openpty():
        os.close(descriptor)
    missing = None if shutil.which("script") else "needs script"
except OSError as error:
    missing = f"needs pseudo terminals (/dev/pts): {error.strerror}"
for command in ("report", "dump"):
    what = f"hearth {command} lets no escape sequence out to a terminal"
    if missing:
        tap.skip(what, missing)
        continue
    said = run("script", "-qec", f"{HEARTH} {command} {path('all.pb.gz')}", "/dev/null")
    tap.ok(said.returncode == 0 and "\x1b[31m" not in said.stdout, what, f"exit {said.returncode} {said.stderr[-200:]}".strip())
tap.finish()
