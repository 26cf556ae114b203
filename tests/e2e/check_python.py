#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every Python version: the stacks that hearth takes in BPF are among those the interpreter itself can have.

Each load of python/ runs first under a tracer that records all its stacks, then untraced under hearth at 997 Hz. What is
not in the set is of a class that tracing cannot show (python_oracle.py), flagged by hearth, or wrong.
"""
import contextlib
import json
import signal
from collections import Counter

import python_oracle
from pythons import everything, installed
from python_oracle import GAPS, Load, Oracle, Tally
from support import *

LOADS = ["recursive", "threaded", "generator", "extension", "class", "exec", "async"]
FOLDER = os.path.join(HERE, "python")
QUICK_VERSIONS = ["3.8", "3.12"]
SECONDS = 0.4 if QUICK else 2  # of CPU time for each load: 10,000 samples a version, and some that may be lost
READY_MS = 10  # of running Python code before its frames appear, in the mean of the processes
WANTED = {"3.11": 0.995, "3.12": 0.995}  # otherwise 0.999
HZ = 997
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1"}

tap = Tap("python")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def loads_of(python):
    return [name for name in LOADS if name != "async" or python.number >= (3, 5)]


def launch(python, name, *args, **options):
    command = python.command([HERE, scratch], os.path.join(FOLDER, "loads.py"), name, *args)
    return start(*command, env=ENV, stderr=subprocess.PIPE, text=True, **options)


oracles_of = {}


def recorded(python):
    """The oracle of each load; they run side by side."""
    if python.name not in oracles_of:
        oracles_of[python.name] = record_loads(python)
    return oracles_of[python.name]


def record_loads(python):
    """Threads twice: which one is switched away where differs, and now and then a tracer misses a line."""
    files = {name: [path(f"{python.version}-{python.source}-{name}-{i}.json") for i in range(2 if name == "threaded" else 1)]
             for name in loads_of(python)}
    running = [(name, launch(python, name, "record", file, stdout=subprocess.PIPE)) for name in files for file in files[name]]
    for name, process in running:
        said, complaint = process.communicate(timeout=120)
        if process.returncode or "still new" in said:
            tap.ok(False, f"{python.name}: {name} is recorded", (said + complaint)[-300:])
            files.pop(name, None)
    return {name: Oracle(*some) for name, some in files.items()}


# ---- the oracle itself ----


def check_oracle(python):
    """A sampler that cannot be wrong is found right; its stacks made wrong on purpose are found wrong."""
    oracles = recorded(python)
    files = {name: path(f"watched-{name}.json") for name in oracles}
    running = [launch(python, name, "watch", file) for name, file in files.items()]
    tally, seen, accepted, kinds = Tally(), 0, 0, Counter()
    for process in running:
        stopped(process)
    for name, oracle in oracles.items():
        with open(files[name]) as f:
            watched = json.load(f)
        load = Load(oracle, watched["prefix"])
        stacks = set()
        for frames, count in watched["stacks"]:
            stack = tuple((file, python_oracle.last_part(n), line) for file, n, line in frames)
            tally.add(load.judge(stack, False), count, stack)
            if load.inner(stack):
                stacks.add(load.inner(stack))
        made = python_oracle.accepted_mutants(oracle, sorted(stacks, key=repr))
        seen, accepted, kinds = seen + made[0], accepted + made[1], kinds + made[2]
    # A thread that is switched away while it notes another one's frames notes some of them late.
    tap.ok(tally.judged > 4000 and tally.share("legal") >= 0.995 and tally.counts["wrong"] <= 0.001 * tally.judged,
           f"oracle: {python.name}: what the interpreter says of itself is legal", figures(tally))
    show_wrong(tally)
    tap.ok(seen > 500 and accepted <= 0.05 * seen, f"oracle: {python.name}: stacks made wrong on purpose are found",
           f"{seen - accepted} of {seen}")
    for kind, count in kinds.most_common(4):
        tap.note(f"    passed {count} times {kind}")


def figures(tally):
    gaps = ", ".join(f"{c} {tally.counts[c]}" for c in GAPS if tally.counts[c])
    return (f"{tally.judged} samples, {100 * tally.legal_share:.2f} % legal, of them {100 * tally.gaps / max(tally.judged, 1):.2f} % by rule"
            + (f" ({gaps})" if gaps else "") + f"; {tally.counts['flagged']} flagged, {tally.counts['unlined']} without a line, {tally.counts['no frame']} without a frame, "
            f"{tally.counts['wrong']} wrong")


def show_wrong(tally):
    for stack, count in tally.wrong.most_common(4):
        tap.note(f"    {count} times {stack[-600:]}")
    for end, count in tally.flags.most_common(3):
        tap.note(f"    flagged {count} times {end}")


# ---- hearth ----


def read_once(python):
    """The interpreter's files are read: how long a disk takes for what nobody has read since the machine began is not judged."""
    maps = subprocess.run(python.command([HERE, scratch], "-c", "print(open('/proc/self/maps').read())"), capture_output=True, text=True, timeout=60)
    for file in {line.split()[-1] for line in maps.stdout.splitlines() if "/" in line}:
        with contextlib.suppress(OSError), open((python.root or "") + file, "rb") as f:
            while f.read(1 << 20):
                pass


def sampled(python, oracles):
    """The loads run two at a time under one session. Returns the tally and one of each load."""
    read_once(python)
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", path("python.pb.gz"), stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    ran = {}
    for at in range(0, len(oracles), CPUS):
        some = {name: launch(python, name, "run", SECONDS * len(LOADS) / len(oracles), stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in list(oracles)[at:at + CPUS]}
        for name, process in some.items():
            ready = process.stdout.readline()
            if not ready.startswith("ready "):
                tap.ok(False, f"{python.name}: {name} starts", process.stderr.read()[-300:])
                continue
            ran[name] = (process, Load(oracles[name], json.loads(ready[6:])))
        time.sleep(0.1)  # for hearth to be ready: how long it takes is measured elsewhere
        for process in some.values():
            process.stdin.write("\n")
            process.stdin.flush()
        for process in some.values():
            process.stdout.readline()
    time.sleep(0.3)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    for process, _ in ran.values():
        process.kill()
        process.wait()
    if not tap.ok(recorder.returncode == 0, f"{python.name}: hearth record ends well", f"exit {recorder.returncode} {said[-300:].strip()}"):
        return Tally(), {}
    profile = Profile(path("python.pb.gz"))
    by_load = {name: python_oracle.judge_samples(load, profile.of(process)) for name, (process, load) in ran.items()}
    whole = Tally()
    for tally in by_load.values():
        whole += tally
    return whole, by_load


def row(python, tally):
    cells = [python.name, tally.judged, f"{100 * tally.share('legal'):.2f} %"]
    cells += [tally.counts[c] or "" for c in GAPS] + [tally.counts[c] for c in ("unlined", "no frame", "flagged", "wrong")]
    return "| " + " | ".join(str(c) for c in cells) + " |"


def check(python):
    tally, by_load = sampled(python, recorded(python))
    wanted = WANTED.get(python.version, 0.999)
    enough = tally.judged >= (1500 if QUICK else 10000)
    by_rule = 0.005 + 3 * (0.005 * 0.995 / max(tally.judged, 1)) ** 0.5  # and three standard deviations: a short run has few samples
    fine = tap.ok(enough and tally.legal_share >= wanted and tally.gaps <= by_rule * tally.judged, f"{python.name}: stacks are legal", figures(tally))
    few = 0.35 if QUICK or python.root else 0.15  # of a process that lives for as long; a suite has no compiled library
    tap.ok(tally.counts["native"] + tally.counts["outside"] <= few * tally.judged, f"{python.name}: nearly all is judged",
           f"{tally.counts['outside']} samples of start and end, {tally.counts['native']} native only")
    fine &= tap.ok(not tally.counts["wrong"], f"{python.name}: no wrong stack that is not flagged", tally.counts["wrong"])
    fine &= tap.ok(not tally.names, f"{python.name}: names are those of the interpreter",
                   ", ".join(f"{n}: {c}" for n, c in tally.names.most_common(3)))
    # What was sampled before its process was attached to says so, and is not judged: it has a bound of its own.
    early = tally.counts["not ready"] * 1000 / HZ / max(len(by_load), 1)
    tap.ok(early <= READY_MS, f"{python.name}: ready soon", f"{early:.1f} ms of running Python code without its frames in the mean of {len(by_load)}")
    show_wrong(tally)
    if not fine:
        for name, one in by_load.items():
            tap.note(f"    {name}: {figures(one)}")
    else:
        tap.note(f"    legal but flagged {tally.legal_but_flagged}, outside of the work {tally.counts['outside']}, not ready {tally.counts['not ready']}")
    return row(python, tally)


if QUICK:
    pythons = [p for p in installed() if p.source == "built" and p.version in (only or QUICK_VERSIONS)] or installed()[-1:]
else:
    pythons = everything(tap)
pythons = [p for p in pythons if not only or p.version in only or p.source in only]
if not pythons:
    tap.skip("everything", "no interpreter")
    tap.finish()
check_oracle(pythons[-1])
if "--oracle" in sys.argv:
    for python in pythons[:-1]:
        check_oracle(python)
    tap.finish()
table = [check(python) for python in pythons]
tap.note("| version | samples | in the set | " + " | ".join(GAPS) + " | unlined | no frame | flagged | wrong |")
for line in table:
    tap.note(line)
tap.finish()
