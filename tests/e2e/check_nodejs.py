#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node.js: stacks beside what a load can have (nodejs/load.js says it in its text), inlined functions and lines included.

docs/node.md says what is judged, nodes.py where the versions come from.
"""
import http.client
import re
import threading
from collections import Counter

import nodes as npm
import parked
from node_load import COLLECTOR, COMPILER, Text, frames_of
from nodes import VERSIONS, everything
from support import *

LOAD = os.path.join(HERE, "nodejs", "load.js")
SECONDS = 4 if QUICK else 30
HZ = 499
LOST = "[Lost Symbol]"
WHOLE, WHOLE_BEFORE_20, WHOLE_CHURN = 0.998, 0.995, 0.99
WRONG = 0.001  # of the frames
FEW = 3  # bad ones that are allowed in any number of samples
FROZEN = 24  # from this version on a thread in Atomics.wait is walked with --freeze only: docs/node.md, limits
POINTS_MOST = 0.03  # between the collector's share and what the program says of its pauses
UNSEEN_MOST = 0.2  # of the time in which the main thread had no samples, else it is not judged
SERVICE_SECONDS = 15
LACKING_MOST = 0.0002  # of the frames of functions that live for a moment: callers that are not there
OF_WASM = ("grind", "wasm-function[0]", "(wasm)", "(js-to-wasm)")
LOST_MOST = 0.005  # of the same: names that are gone when they are read
SAMPLES_LEAST = 30 if QUICK else 100
# WORKERS_WRONG: until hearth has seen a new isolate, whose code may lie between those of others.
WORKERS, WORKER_LEAST, WORKERS_WRONG = 16, 20, 0.02

tap = Tap("nodejs")
need(tap)
TEXT = Text(LOAD)


def take(node, load, *options, stdout=None, first=False):
    """Samples of a program under a load, and what hearth said; None: it failed. @first: other programs seldom take its CPU."""
    command = node.command([HERE], *options, load, SECONDS + 4)
    process = start(*(["nice", "-n", "-20"] if first else []), *command, stdout=stdout, start_new_session=first)
    if first:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/autogroup", "w", encoding="ascii") as f:
            f.write("-20")
    time.sleep(1.5)
    out = path("node.pb.gz")
    got = run(HEARTH, "record", "-q", "-F", HZ, "-d", f"{SECONDS}s", "-p", process.pid, "-o", out, timeout=SECONDS + 60)
    process.wait(timeout=60)
    if not tap.ok(got.returncode == 0, f"{node.version}: hearth record ends well", got.stderr[-300:]):
        return None, got
    return Profile(out).of(process), got


def wrong_of_churn(sample):
    """Only fn_N calls in_N, which calls spin: churn.js. A frame that says that its name is lost is not wrong."""
    names, wrong = [n for n, _, _ in frames_of(sample)], []
    for caller, name in zip(names, names[1:]):
        kind, _, number = name.partition("_")
        right = {"fn": "round", "in": f"fn_{number}", "spin": "in_"}.get(kind)
        if right and LOST not in (caller, name) and not (caller.startswith(right) if kind == "spin" else caller == right):
            wrong.append(f"{caller} -> {name}")
    return wrong


def is_share(part, count, least):
    return part + FEW >= least * count


def judge_churn_whole(node, ours, whole, names):
    tap.ok(is_share(whole, total(ours), WHOLE_CHURN), f"{node.version}: churn: whole stacks", f"{whole} of {total(ours)}")
    tap.ok(names[LOST] <= max(LOST_MOST * names.total(), 20), f"{node.version}: churn: frames with a name", f"{names.total() - names[LOST]} of {names.total()}")


def judge_churn(node):
    """Functions that are forgotten while others take their places: none may lend another its name."""
    samples, _ = take(node, os.path.join(HERE, "nodejs", "churn.js"))
    if samples is None or node.major not in VERSIONS:
        return
    ours = [s for s in samples if frames_of(s)]
    names = Counter()
    wrong = Counter()
    for s in ours:
        for name, _, _ in frames_of(s):
            names[name] += s.count
        for what in wrong_of_churn(s):
            wrong[what] += s.count
    for what, count in wrong.most_common(8):
        tap.note(f"{count} {what}")
    whole = total([s for s in ours if s.end == "complete"])
    tap.ok(total(ours) >= SAMPLES_LEAST, f"{node.version}: churn: samples", f"{total(ours)}")
    judge_churn_whole(node, ours, whole, names)
    tap.ok((names["grind"] and names["wasm-function[0]"]) or node.major < 20, f"{node.version}: churn: functions of WebAssembly, with and without names",
           " ".join(f"{names[n]} {n}" for n in OF_WASM))
    phases = {name: total([s for s in samples if name in s.names]) for name in (COLLECTOR, COMPILER)}
    if total(samples) >= 200:
        tap.ok(all(phases.values()), f"{node.version}: churn: garbage is collected, code compiled", str(phases))
    else:
        tap.skip(f"{node.version}: churn: garbage is collected, code compiled", f"others kept the CPU: {total(samples)} samples")
    lent = sum(count for what, count in wrong.items() if not re.fullmatch(r"round -> (in_\d+|spin)|fn_\d+ -> spin", what))
    tap.ok(not lent, f"{node.version}: churn: no frame has another function's name", f"{lent} of {names.total()} have")
    lacking = wrong.total() - lent
    tap.ok(lacking <= max(LACKING_MOST * names.total(), 1), f"{node.version}: churn: callers are there", f"{lacking} of {names.total()} lack theirs")  # docs/node.md, limits


def pauses_of(text):
    """Share of the time from 1.5 s on in which the main thread collected garbage, by --trace-gc."""
    sum_ms = last = 0
    for line in text.splitlines():
        found = re.match(r"\[\d+:0x[0-9a-f]+\]\s+(\d+) ms: .*?, ([\d.]+) / [\d.]+ ms(?:\s+\(\+ ([\d.]+) ms in)?", line)
        if found and int(found[1]) >= 1500:
            last = int(found[1])
            sum_ms += float(found[2]) + float(found[3] or 0)
    return sum_ms / (last - 1500) if last > 1500 else 0


def judge_collector(node):
    """The main thread's share below (garbage collector) is that of its pauses; functions stay above it. A pause is wall time: what it has more may be
    time in which the thread had no samples. Others had the CPU then, or the host of this virtual machine, which provides memory at the first write."""
    with open(path("trace"), "w+", encoding="utf-8") as trace:
        # --trace-gc tells wall time, samples are CPU time: other programs may not interrupt a pause. Where sessions share the CPU (autogroup),
        # nice alone counts within its session.
        samples, _ = take(node, os.path.join(HERE, "nodejs", "garbage.js"), "--trace-gc", "--single-threaded-gc", stdout=trace, first=True)
        trace.seek(0)
        said = pauses_of(trace.read())
    if samples is None or node.major not in VERSIONS:
        return
    main = [s for s in samples if s.labels.get("tid") == s.pid]
    inside = [s for s in main if COLLECTOR in s.names]
    share, unseen = total(inside) / (HZ * SECONDS), max(0, 1 - total(main) / (HZ * SECONDS))
    twice = [s for s in samples if s.names.count(COLLECTOR) > 1]
    whole = [s for s in inside if s.end == "complete"]
    within = [s for s in whole if "young" in s.names[:s.names.index(COLLECTOR)]]
    what, numbers = f"{node.version}: share of the garbage collector", f"{share:.1%} of the time, {unseen:.1%} without samples, {said:.1%} by --trace-gc"
    if unseen > UNSEEN_MOST:
        tap.skip(what, numbers)
    else:
        tap.ok(share - POINTS_MOST <= said <= share + unseen + POINTS_MOST, what, numbers)
    tap.ok(not twice and total(whole) >= SAMPLES_LEAST and total(within) >= 0.5 * total(whole), f"{node.version}: it stands once, in who allocates", f"{total(within)} of {total(whole)}")


def judge(node, *options):
    version, major = " ".join([node.version, *options]), node.major
    samples, got = take(node, LOAD, *options)
    if samples is None:
        return
    ours = [s for s in samples if frames_of(s)]
    if major not in VERSIONS:
        tap.ok(not ours and "is not known" in got.stderr, f"{version}: refused by name", got.stderr[-200:])
        return
    whole = total([s for s in ours if s.end == "complete"])
    lost = sum(s.count * sum(name == LOST for name, _, _ in frames_of(s)) for s in ours)
    frames, wrong = TEXT.judge(tap, ours)
    tap.ok(total(ours) >= SAMPLES_LEAST, f"{version}: samples", f"{total(ours)}")
    tap.ok(is_share(whole, total(ours), WHOLE if major >= 20 else WHOLE_BEFORE_20), f"{version}: whole stacks", f"{whole} of {total(ours)}")
    tap.ok(lost <= max(0.005 * frames, 8), f"{version}: frames with a name", f"{frames - lost} of {frames}")
    tap.ok(is_share(frames - wrong, frames, 1 - WRONG), f"{version}: names, lines and calls are the load's", f"{wrong} of {frames} are not")
    leaves = {frames_of(s)[-1][0] for s in ours}
    tap.ok({"leaf", "sort"} <= leaves, f"{version}: functions and built-ins", " ".join(sorted(leaves)))
    inner = sum(s.count for s in ours if [n for n, _, _ in frames_of(s)][-2:] == ["small", "leaf"])
    tap.ok(inner > 0, f"{version}: an inlined function stands in its caller", f"{inner}")


def judge_workers(node):
    """Sixteen isolates, most of them later than hearth: what the interpreter runs in each has its name, down to the last caller."""
    samples, _ = take(node, os.path.join(HERE, "nodejs", "workers.js"))
    if samples is None:
        return
    right, wrong = Counter(), Counter()
    for s in samples:
        names = [n for n, _, _ in frames_of(s)]
        below = names[:names.index("burn") + 1] if "burn" in names else names
        if "burn" in names or LOST in names:
            (right if below[-3:] == ["outer", "inner", "burn"] and LOST not in names else wrong)[s.labels.get("tid")] += s.count
    for tid, count in wrong.most_common(8):
        tap.note(f"{tid}: {count} wrong, {right[tid]} right")
    tap.ok(len(right) == WORKERS and min(right.values()) >= WORKER_LEAST, f"{node.version}: sixteen workers: each with its calls", " ".join(str(n) for n in sorted(right.values())))
    tap.ok(wrong.total() <= WORKERS_WRONG * right.total(), f"{node.version}: sixteen workers: stacks with a name that is lost, or a call", f"{wrong.total()} of {right.total() + wrong.total()}")


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


def ask(port, until, answers, number):
    """One client, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    count = 0
    while time.monotonic() < until:
        connection.request("GET", f"/{('items', 'render')[count % 2]}/{count}")
        answer = connection.getresponse()
        answers[number] += answer.status == 200 and len(answer.read()) > 1000
        count += 1
    connection.close()


def judge_service(node):
    """fastify under load: stacks are whole, functions have names."""
    what = f"{node.version}: fastify"
    try:
        folder = npm.fastify()
    except npm.packages.Unavailable as e:
        tap.skip(what, str(e))
        return
    process = start(node.program, os.path.join(HERE, "nodejs", "server.js"), folder, stdout=subprocess.PIPE, text=True)
    port = process.stdout.readline().strip()
    if not tap.ok(port.isdigit(), f"{what}: it listens", port):
        return
    answers = [0] * 4
    clients = [threading.Thread(target=ask, args=(int(port), time.monotonic() + SERVICE_SECONDS + 6, answers, i)) for i in range(len(answers))]
    for c in clients:
        c.start()
    time.sleep(2)
    out = path("service.pb.gz")
    got = run(HEARTH, "record", "-q", "-F", HZ, "-d", f"{SERVICE_SECONDS}s", "-p", process.pid, "-o", out, timeout=SERVICE_SECONDS + 60)
    for c in clients:
        c.join()
    process.kill()
    process.wait()
    if not tap.ok(got.returncode == 0 and min(answers) > 0, f"{what}: hearth record ends well, clients are answered", f"{answers} {got.stderr[-200:]}"):
        return
    samples = Profile(out).of(process)
    ours = [s for s in samples if frames_of(s)]
    names = Counter()
    for s in ours:
        for name, _, _ in frames_of(s):
            names[name] += s.count
    whole = total([s for s in ours if s.end == "complete"])
    tap.ok(total(ours) >= SAMPLES_LEAST and whole >= 0.99 * total(ours), f"{what}: whole stacks", f"{whole} of {total(ours)}")
    tap.ok(names[LOST] <= 0.005 * names.total(), f"{what}: frames with a name", f"{names.total() - names[LOST]} of {names.total()}")
    seen = [n for n in ("items", "render", "itemsOf", "routeHandler", "parserOnHeadersComplete") if n in names]
    tap.ok({"items", "render"} <= set(seen), f"{what}: its handlers", " ".join(seen))


nodes = everything(tap)
if not nodes:
    tap.skip("stacks of Node.js", "no node")
for node in nodes:
    judge(node)
    judge_churn(node)
    if not QUICK:
        judge_collector(node)
        judge_workers(node)
        judge_workers_stopped(node)
if nodes:
    for node in nodes:
        if node.major in VERSIONS:
            judge_parked(node)
    judge_cluster(nodes[-1])
if nodes and not QUICK and not SAMPLED:
    judge_service(next((n for n in nodes if n.major == 20), nodes[-1]))
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
