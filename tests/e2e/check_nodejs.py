#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node.js: stacks beside what a load can have (nodejs/load.js says it in its text), inlined functions and lines included.

docs/node.md says what is judged, nodes.py where the versions come from. Arguments: only these versions.
"""
import re
from collections import Counter

import nodes as npm
import parked
from judge import at_most
from node_load import *
from nodes import VERSIONS, everything
from support import *

LOAD = os.path.join(HERE, "nodejs", "load.js")
SECONDS = 5 if QUICK else 30
HZ = 499
WRONG = 0.001  # of the frames
WRONG_PEELED = 0.005  # from 26 on where loops call much: V8's own tables (docs/node.md, limits)
FEW = 3  # bad ones that are allowed in any number of samples
LACKING = 1e-5  # of the frames, and one more: their caller is not there. 2 of 1.9 million did (Node.js 16), nobody knows where
FROZEN = 24  # from this version on a thread in Atomics.wait is walked with --freeze only: docs/node.md, limits
POINTS_MOST = 0.03  # between the collector's share and what the program says of its pauses
UNSEEN_MOST = 0.05  # of a second: the main thread neither ran nor waited for longer, so it is not compared
COMPARED_LEAST = 5  # seconds
OF_WASM = ("grind", "wasm-function[0]", "(wasm)", "(js-to-wasm)")
SAMPLES_LEAST = 30 if QUICK else 100
WORKERS, AT_ONCE, WORKER_LEAST = 16, 4, 20
READY_MS = 100  # from an isolate's start until its functions have names, in the mean
# What each function of natives.js spends its time in: files, and a part of a function's name. npm's Node.js has OpenSSL and zlib within.
NATIVES = {"moved": ("libc", ""), "compared": ("libc", ""), "filled": ("libc", ""), "hashed": ("node|libcrypto", "(?i)sha"), "packed": ("node|libz", "(?i)deflate|longest_match|fill_window"),
           "unpacked": ("node", "(?i)json|v8"), "written": ("node", "(?i)json|v8")}
NATIVE_LEAST = 0.6  # of a function's samples have such a leaf

tap = Tap("nodejs")
need(tap)
TEXT = Text(LOAD)


def taken(node, load, *options, first=False, stdout=None, waits=()):
    """A program under a load, with all that its main thread does in JavaScript; None: hearth failed. @waits: hearth's options for them."""
    command = node.command([HERE], *options, load, SECONDS + 4)
    process = launched(*command, stdout=stdout or subprocess.DEVNULL, first=first)
    time.sleep(1.5)
    found = take(process, HZ, SECONDS, *waits)
    process.wait(timeout=60)
    return found if tap.ok(found.ok, f"{node.version}: hearth record ends well", found.said[-300:]) else None, process.pid


def judge_churn(node):
    """Functions that are forgotten while others take their places: none may lend another its name, none may lack its caller."""
    found, pid = taken(node, os.path.join(HERE, "nodejs", "churn.js"))
    if found is None or node.major not in VERSIONS:
        return
    what, stacks, names, wrong = f"{node.version}: churn", Stacks(found.samples, found.lost, always=pid), names_of(found.samples), Counter()
    lacking = Counter()
    for s in found.samples:
        for counter, texts in zip((wrong, lacking), wrong_of_churn(s)):
            for text in texts:
                counter[text] += s.count
    for text, count in (wrong + lacking).most_common(8):
        tap.note(f"{count} {text}")
    tap.ok(stacks.javascript >= SAMPLES_LEAST, f"{what}: samples", f"{stacks.javascript}")
    stacks.judge(tap, what, WHOLE_CHURN)
    judge_named(tap, what, names, NAMED_CHURN)
    tap.ok((names["grind"] and names["wasm-function[0]"]) or node.major < 20, f"{what}: functions of WebAssembly, with and without names", " ".join(f"{names[n]} {n}" for n in OF_WASM))
    phases = {name: total([s for s in found.samples if name in s.names]) for name in (COLLECTOR, COMPILER)}
    if total(found.samples) >= 200:
        tap.ok(all(phases.values()), f"{what}: garbage is collected, code compiled", str(phases))
    else:
        tap.skip(f"{what}: garbage is collected, code compiled", f"others kept the CPU: {total(found.samples)} samples")
    tap.ok(not wrong, f"{what}: no frame has another function's name", f"{wrong.total()} of {names.total()} are wrong")
    tap.ok(lacking.total() <= 1 + LACKING * names.total(), f"{what}: frames that lack their caller", f"{lacking.total()} of {names.total()}")


def pauses_of(text):
    """When the main thread collected garbage, by --trace-gc: [(end, seconds)], in seconds since 1970. @text has when V8 began to count, too."""
    began = float(re.search(r"BEGAN ([\d.]+)", text)[1]) / 1000
    lines = re.finditer(r"^\[\d+:0x[0-9a-f]+\]\s+(\d+) ms: .*?, ([\d.]+) / [\d.]+ ms(?:\s+\(\+ ([\d.]+) ms in)?", text, re.M)
    return [(began + int(found[1]) / 1000, (float(found[2]) + float(found[3] or 0)) / 1000) for found in lines]


def wall_seconds(profile, samples):
    """How long the threads of these samples ran or waited."""
    kinds = [i for i, kind in enumerate(profile.types) if kind in (("cpu", "nanoseconds"), ("off_cpu", "nanoseconds"))]
    return sum(s.values[i] for s in samples for i in kinds) / 1e9


def judge_collector(node, *options):
    """The main thread's share below (garbage collector) is that of its pauses; functions stay above it. A pause is wall time: the thread runs, or waits
    for its helpers (V8 14: also with --single-threaded-gc, as one of them may take up the only job). So seconds are compared in which it ran or
    waited nearly all the time. In others it could not run: other programs had the CPU, or the host of this virtual machine."""
    what = " ".join([f"{node.version}: garbage", *options])
    with open(path("trace"), "w+", encoding="utf-8") as trace:
        found, _ = taken(node, os.path.join(HERE, "nodejs", "garbage.js"), "--trace-gc", *options, stdout=trace, first=True,
                         waits=("--off-cpu", "--off-cpu-min", "20us"))
        trace.seek(0)
        text = trace.read()
    if found is None or node.major not in VERSIONS:
        return
    pauses, seen, inside, said, compared = pauses_of(text), 0, 0, 0, 0
    for window in found.windows:
        ours = [s for s in window.samples if s.labels.get("tid") == s.pid]
        seconds, begin = window.duration_ns / 1e9, window.time_ns / 1e9
        if window.duration_ns and wall_seconds(window, ours) >= (1 - UNSEEN_MOST) * seconds:
            compared += 1
            seen += seconds
            inside += wall_seconds(window, [s for s in ours if COLLECTOR in s.names])
            said += sum(length for end, length in pauses if begin <= end < begin + seconds)
    numbers = f"{inside / (seen or 1):.1%} of the time, {said / (seen or 1):.1%} by --trace-gc, {compared} of {len(found.windows)} seconds"
    if compared < COMPARED_LEAST:
        tap.skip(f"{what}: the collector's share", f"the thread did not run all the time: {numbers}")
    else:
        tap.ok(inside and abs(inside - said) <= POINTS_MOST * seen, f"{what}: the collector's share", numbers)
    whole = [s for s in found.main() if COLLECTOR in s.names and s.end == "complete"]
    within = [s for s in whole if "young" in s.names[:s.names.index(COLLECTOR)]]
    twice = [s for s in found.samples if s.names.count(COLLECTOR) > 1]
    tap.ok(not twice and total(whole) >= SAMPLES_LEAST and total(within) >= 0.5 * total(whole), f"{what}: it stands once, in who allocates", f"{total(within)} of {total(whole)}")


def judge(node, *options):
    version, major = " ".join([node.version, *options]), node.major
    found, pid = taken(node, LOAD, *options)
    if found is None:
        return
    if major not in VERSIONS:
        tap.ok(not found.samples and "is not known" in found.said, f"{version}: refused by name", found.said[-200:])
        return
    stacks = Stacks(found.samples, found.lost, always=pid)
    ours = [s for s in found.samples if frames_of(s)]
    frames, wrong = TEXT.judge(tap, ours)
    tap.ok(stacks.javascript >= SAMPLES_LEAST, f"{version}: samples", f"{stacks.javascript}")
    stacks.judge(tap, version, WHOLE if major >= 20 else WHOLE_BEFORE_20)
    judge_named(tap, version, names_of(ours))
    tap.ok(wrong <= WRONG * frames + (0 if frames * WRONG >= FEW else FEW), f"{version}: names, lines and calls are the load's", f"{wrong} of {frames} are not")
    leaves = {frames_of(s)[-1][0] for s in ours}
    tap.ok({"leaf", "sort"} <= leaves, f"{version}: functions and built-ins", " ".join(sorted(leaves)))
    inner = sum(s.count for s in ours if [n for n, _, _ in frames_of(s)][-2:] == ["small", "leaf"])
    tap.ok(inner > 0, f"{version}: an inlined function stands in its caller", f"{inner}")


def judge_natives(node):
    """What JavaScript calls natively has its callers: the leaf is in libc, in cryptography's own code, in zlib or in V8."""
    found, pid = taken(node, os.path.join(HERE, "nodejs", "natives.js"))
    if found is None or node.major not in VERSIONS:
        return
    what, stacks, of, native = f"{node.version}: natives", Stacks(found.samples, found.lost, always=pid), Counter(), Counter()
    stacks.judge(tap, what, WHOLE if node.major >= 20 else WHOLE_BEFORE_20)
    text = Text(os.path.join(HERE, "nodejs", "natives.js"))
    frames, wrong = text.judge(tap, found.main())
    most = (WRONG if node.major < 26 else WRONG_PEELED) * frames + FEW
    tap.ok(wrong <= most, f"{what}: names, lines and calls are the load's", f"{wrong} of {frames} are not")
    for s in found.main():
        function = next((n for n in s.names if n in NATIVES), None)
        if not function or COLLECTOR in s.names:
            continue
        files, name = NATIVES[function]
        user = [(n, os.path.basename(m)) for n, m in zip(s.names, s.modules) if m and not m.startswith("[kernel")]
        of[function] += s.count
        native[function] += s.count if re.match(files, user[-1][1]) and any(re.search(name, n) for n, m in user[-3:] if m != "[javascript]") else 0
    for function in NATIVES:
        tap.ok(of[function] >= SAMPLES_LEAST / 3 and native[function] >= NATIVE_LEAST * of[function], f"{what}: {function} calls native code", f"{native[function]} of {of[function]}")


def judge_workers(node):
    """Sixteen isolates, most of them later than hearth: what the interpreter runs in each has its name, down to the last caller. A new one has no
    names until hearth has seen it; its code may lie between those of others."""
    found, pid = taken(node, os.path.join(HERE, "nodejs", "workers.js"))
    if found is None:
        return
    met = next((i + 1 for i, w in enumerate(found.windows) if len({s.labels.get("tid") for s in w.samples if "burn" in s.names}) == WORKERS), len(found.windows))
    late, steady = [[s for w in windows for s in w.samples if s.labels.get("tid") != pid] for windows in (found.windows[:met], found.windows[met:])]
    late += [s for s in found.early if s.labels.get("tid") != pid]
    what, right, wrong = f"{node.version}: sixteen workers", Counter(), Counter()
    for s in steady:
        names = [n for n, _, _ in frames_of(s)]
        below = names[:names.index("burn") + 1] if "burn" in names else names
        if names:
            (right if below[-3:] == ["outer", "inner", "burn"] and LOST not in names else wrong)[s.labels.get("tid")] += s.count
    for tid, count in wrong.most_common(8):
        tap.note(f"{tid}: {count} wrong, {right[tid]} right")
    tap.ok(len(right) == WORKERS and min(right.values()) >= WORKER_LEAST, f"{what}: each with its calls", " ".join(str(n) for n in sorted(right.values())))
    tap.ok(wrong.total() <= WRONG * right.total() + FEW, f"{what}: stacks with a name that is lost, or without a call", f"{wrong.total()} of {right.total() + wrong.total()}")
    Stacks(steady, found.lost).judge(tap, what, WHOLE_CHURN)
    ms = 1000 * total([s for s in late if s.end != "complete"]) / HZ / (WORKERS - AT_ONCE)
    tap.ok(ms <= READY_MS, f"{what}: a late one has names", f"after {ms:.0f} ms of its CPU time in the mean")


def judge_workers_stopped(node):
    """The same sixteen, all of them stopped at one moment: dump -p reads the place of the built-in code once."""
    process = start(node.program, os.path.join(HERE, "nodejs", "workers.js"), 600)
    last = time.monotonic() + 60
    shown = []
    while len(shown) < WORKERS and time.monotonic() < last:
        time.sleep(8)
        said = run(HEARTH, "dump", "--freeze", "-p", process.pid, timeout=300).stdout
        shown = [t for t in said.split("\n\n") if re.search(r"^    burn \(.*\n    inner \(.*\n    outer \(", t, re.M)]
    process.kill()
    process.wait()
    tap.ok(len(shown) == WORKERS and not any("[unknown]" in t for t in shown), f"{node.version}: sixteen workers, stopped: each with its calls", f"{len(shown)}")


def judge_module(node):
    """Functions of a module of ECMAScript, as a .col file has them: name, file and line, without a suffix."""
    file, out = os.path.join(HERE, "nodejs", "module.mjs"), path("module.col")
    got = run(HEARTH, "record", "-q", "-F", HZ, "-o", out, "--", node.program, file, 1.5, timeout=90)
    with open(out, encoding="utf-8", errors="replace") as f:
        stacks = [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2])) for line in f if not line.startswith("#")]
    calls, others, unlined = 0, 0, 0
    for frames, count in stacks:
        names = [f.replace(file, "FILE") for f in frames if file in f and not f.startswith("appid:")]
        calls += count if names[-2:] == ["call FILE:11", "inner FILE:3"] else 0
        others += count if any(not re.fullmatch(r"(inner|call|\(anonymous\)) FILE(:\d+)?", n) for n in names) else 0
        unlined += count if any(n.endswith("FILE") for n in names) else 0  # V8 had not made its table yet
    tap.ok(got.returncode == 0 and calls >= SAMPLES_LEAST and not others, f"{node.version}: a module's functions in .col", f"{calls} in a call, {others} of another form")
    tap.ok(unlined <= 0.01 * calls, f"{node.version}: a module's functions in .col have lines", f"{unlined} have none")


def of_cluster(node):
    """Samples in the innermost function by process, those of them without its caller, and what hearth said; None: it failed."""
    seconds = 5 if QUICK else 12
    process = start("unshare", "-m", "-p", "-f", "--mount-proc", node.program, os.path.join(HERE, "nodejs", "cluster.js"), seconds + 4)
    out = path("cluster.pb.gz")
    got = run(HEARTH, "record", "-F", HZ, "-d", f"{seconds}s", "-o", out, timeout=seconds + 60)
    process.wait(timeout=60)
    if not tap.ok(got.returncode == 0, f"{node.version}: cluster: hearth record ends well", got.stderr[-300:]):
        return None
    right, wrong, ends = Counter(), 0, Counter()
    for s in Profile(out).samples:
        names = [n for n, p in zip(s.names, s.places) if p[0].endswith("/nodejs/cluster.js")]
        ends[s.pid, s.labels.get("comm"), s.end] += s.count
        if names[-1:] == ["inner"]:
            right[s.pid] += s.count if names[-2:-1] == ["outer"] else 0
            wrong += s.count if names[-2:-1] != ["outer"] else 0
    return right, wrong, got.stderr, ends


def judge_cluster(node):
    """Four workers and a child that one program started, in namespaces of their own as in a container."""
    found = of_cluster(node)
    if found and len(found[0]) < 5:  # one was not met once, and never again in 16 runs: what was it?
        tap.note(f"{node.version}: cluster: {dict(found[0])} {found[3].most_common(12)} {found[2]}")
        found = of_cluster(node)
    if not found:
        return
    right, wrong, _, _ = found
    if QUICK and right.total() < 100 and not wrong:
        tap.skip(f"{node.version}: cluster: five processes, each with its calls", f"others kept the CPU: {right.total()} samples")
        return
    tap.ok(len(right) == 5 and min(right.values()) >= 5 and not wrong, f"{node.version}: cluster: five processes, each with its calls",
           f"{' '.join(map(str, right.values()))}, {wrong} wrong")


def name_parked(name):
    """V8 says "[s]" of a method that is named by a symbol s; its function has no name."""
    return "(anonymous)" if name.startswith("[") else name


def judge_parked(node):
    """dump -p beside what a program and its worker that wait say of themselves; the innermost frame is the built-in that waits."""
    process = start(node.program, os.path.join(HERE, "nodejs", "parked.js"), stdout=subprocess.PIPE, text=True)
    if node.major >= FROZEN:
        judge_frozen(node, process)
    else:
        parked.check(tap, node.version, process, "nodejs", "Node.js", skip=1, base=name_parked)
    process.kill()
    process.wait()


def judge_frozen(node, process):
    """The same with --freeze alone."""
    want = parked.told(process)
    time.sleep(0.3)
    got, said = parked.shown(process, "nodejs", "--freeze")
    others = [who for who in got if who != "main"]
    for who in ("main", "worker"):
        stack = [(name_parked(n), f, l) for n, f, l in want.get(who, [])]
        rows, remarks, guessed = got.get(who if who in got or len(others) != 1 else others[0], ([], [said], []))
        rows = [(name_parked(n), f, l) for n, f, l in rows[1:]]
        flagged = [r for r in remarks if r.startswith("Node.js frames")]
        tap.ok(len(stack) > 20 and rows == stack and not flagged and not any(guessed), f"{node.version}: dump -p --freeze: {who}",
               " ".join([f"{len(stack)} frames" if rows == stack else parked.difference(rows, stack), *flagged]))


def judge_stripped(node):
    """A program without .symtab, of one isolate."""
    program = path(f"node-stripped-{node.major}")
    if run("strip", "-s", "-o", program, node.program).returncode:
        tap.skip(f"{node.version}: stripped", "strip cannot write it")
        return
    process = start(program, os.path.join(HERE, "nodejs", "parked.js"), "alone", stdout=subprocess.PIPE, text=True)
    want = parked.told(process).get("main", [])
    time.sleep(0.3)
    got, said = parked.shown(process, "nodejs")
    process.kill()
    process.wait()
    rows = got.get("main", ([], [], []))[0]
    tap.ok(len(want) > 20 and rows[-len(want):] == want, f"{node.version}: stripped: dump -p", f"{said} {parked.difference(rows[-len(want):], want)}")


only = [a for a in sys.argv[1:] if not a.startswith("-")]
nodes = [n for n in everything(tap) if not only or str(n.major) in only]
if not nodes:
    tap.skip("stacks of Node.js", "no node")
for node in nodes:
    judge(node)
    judge_churn(node)
    if node.major in VERSIONS:
        judge_module(node)
    if not QUICK:
        judge_natives(node)
        judge_collector(node, "--single-threaded-gc")
        if node in (nodes[0], nodes[-1]):
            judge_collector(node)
        judge_workers(node)
        judge_workers_stopped(node)
if nodes:
    for node in nodes:
        if node.major in VERSIONS:
            judge_parked(node)
    for node in [nodes[-1]] if QUICK else {n.major: n for n in (nodes[0], nodes[-1])}.values():
        judge_cluster(node)
if nodes and not QUICK and not SAMPLED:
    for node in nodes:
        if node.major < FROZEN:
            judge_stripped(node)
if nodes and not QUICK:
    judge(nodes[-1], "--interpreted-frames-native-stack")
    for node in (nodes[0], nodes[-1]):
        judge(node, "--jitless")
    for node in npm.of_suites(tap):
        judge(node)
tap.finish()
