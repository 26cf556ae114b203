#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby: the stacks that hearth takes in BPF are among those that the interpreter itself can have.

The loads of ruby/loads.rb run first under TracePoint, which notes the stack at each of its events, then untraced under hearth
at 997 Hz. A sample is in the set, or of a class that TracePoint cannot show and that a rule recognises, or flagged by hearth,
or wrong (ruby_oracle.py).
"""
import signal
from collections import Counter

import parked
from rubies import everything, installed
from ruby_oracle import ROOTS, Oracle, base, frames_of, inner
from support import *

LOAD = os.path.join(HERE, "ruby", "loads.rb")
LOADS = ["work", "threads", "ractors", "many"]
FIRST = {"ractors": (3, 3), "many": (3, 3)}  # the first version that has it as it is tried here
SECONDS = {"work": 3 if QUICK else 12, "threads": 2 if QUICK else 4, "ractors": 2 if QUICK else 4, "many": 2 if QUICK else 4}
HZ = 997
OUTSIDE_HZ = 499
LEGAL = 0.999
YJIT = ["--yjit", "--yjit-call-threshold=2"]
BY_RULE = 0.03
CUT_COMPILED = 0.01
LOST = "[Lost Symbol]"

tap = Tap("ruby")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def launch(ruby, *args, options=(), **more):
    return start(*ruby.command([HERE, scratch], *options, LOAD, *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def loads_of(ruby):
    return [name for name in LOADS if ruby.number >= FIRST.get(name, (0,))]


def environment(name):
    """"many": the threads of one Ractor on few native threads, as those of other Ractors always are."""
    return {**os.environ, "RUBY_MN_THREADS": "1"} if name == "many" else None


def sampled(ruby, oracles, options=()):
    """In BPF: {load: samples}. @options: the interpreter's own."""
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", path("ruby.pb.gz"), stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    ran = launched(ruby, options)
    time.sleep(0.5)
    return judged(ruby, oracles, ran, recorder, judge_compiled if options else judge)


def sampled_outside(ruby, oracles):
    """By the sampler remote."""
    ran = launched(ruby)
    pids = [o for p in ran.values() for o in ("-p", p.pid)]
    recorder = start(HEARTH, "record", "--sampler", "remote", "-F", OUTSIDE_HZ, "-q", "-o", path("ruby.pb.gz"), *pids, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    return judged(ruby, oracles, ran, recorder, judge_outside)


def launched(ruby, options=()):
    ran = {}
    for name in loads_of(ruby):
        process = launch(ruby, name, "run", SECONDS[name], options=options, env=environment(name))
        if process.stdout.readline().strip() != "ready":
            tap.ok(False, f"{ruby.name}: {name} starts", process.stderr.read()[-300:])
            continue
        ran[name] = process
    return ran


def judged(ruby, oracles, ran, recorder, judge_load):
    for process in ran.values():
        process.stdin.write("\n")
        process.stdin.flush()
    for process in ran.values():
        process.stdout.readline()
    time.sleep(0.3)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    for process in ran.values():
        process.stdin.write("\n")
        process.stdin.flush()
        process.wait(timeout=30)
    if not tap.ok(recorder.returncode == 0, f"{ruby.name}: hearth record ends well", f"exit {recorder.returncode} {said[-300:].strip()}"):
        return
    profile = Profile(path("ruby.pb.gz"))
    for name, process in ran.items():
        judge_load(ruby, name, oracles[name], profile.of(process))


def text_of(stack):
    return " < ".join(f"{n} {f}:{l}" for n, f, l in stack[:6])


def judge_compiled(ruby, name, oracle, samples):
    judge(ruby, f"{name}, YJIT", oracle, samples, compiled=True)


def judge(ruby, name, oracle, samples, compiled=False):
    counts, wrong, odd, ends, topped, outside = Counter(), Counter(), Counter(), Counter(), Counter(), 0
    for s in samples:
        stack, leaves, gc, first = frames_of(s)
        own = inner(stack)
        if not own or (own[-1][0] not in ROOTS and own[-1][:2] not in oracle.fiber_roots):
            outside += s.count  # start and end of the process, its loop
            continue
        if not leaves and not own[0][2]:  # its line is not known: YJIT's code runs
            topped[s.end in ("complete", "guessed")] += s.count
        flagged = s.end != "complete"
        found = oracle.judge(own, leaves, first)
        if gc and not found:
            found = oracle.judge(own[leaves:], 0, first)
        if any(n == LOST for n, _, _ in own):
            counts["name lost"] += s.count  # its strings were being moved: GC.compact
        elif found:
            counts[found] += s.count
            if found == "leaf line":
                odd["by its line: " + text_of(own)] += s.count
            counts["gc"] += s.count * gc
            counts["legal, cut"] += s.count * flagged
            ends[s.end] += s.count * flagged
        elif flagged:
            counts["flagged"] += s.count
            odd[f"flagged {s.end}: " + text_of(own)] += s.count
            ends[s.end] += s.count
        else:
            counts["wrong"] += s.count
            wrong[text_of(own)] += s.count
    rules = sum(counts[c] for c in ("C function", "leaf line", "rescue"))
    unlined = counts["line not known"]
    judged = counts["exact"] + rules + unlined + counts["flagged"] + counts["wrong"] + counts["name lost"]
    legal = counts["exact"] + rules + unlined
    figures = (f"{judged} samples, {100 * legal / max(judged, 1):.2f} % legal, by rule {100 * rules / max(judged, 1):.2f} % ({dict(counts)}), "
               f"{outside} outside")
    enough = judged >= SECONDS[name.partition(",")[0]] * HZ * 0.5
    # Up to 2.7 and under YJIT the leaf can be what lay there before, in a frame that is not filled in yet: one in 5,000 is not seen to be so.
    # What a run of this length has of them at 99 %.
    expected = 0.0002 * judged if compiled or ruby.number < (3, 0) else 0
    bound = expected + 2.33 * expected ** 0.5
    tap.ok(enough and legal >= LEGAL * judged and rules <= BY_RULE * judged, f"{ruby.name}: {name}: stacks are legal", figures)
    tap.ok(bool(unlined) == compiled, f"{ruby.name}: {name}: the line is not known where compiled code runs, and only there", unlined)
    tap.ok(counts["wrong"] <= bound, f"{ruby.name}: {name}: no wrong stack that is not flagged", counts["wrong"])
    if compiled:
        cut = ends.total() - ends["guessed"]
        tap.ok(cut <= CUT_COMPILED * judged, f"{ruby.name}: {name}: stacks are whole through compiled code", f"{judged - cut} of {judged}, {ends['guessed']} guessed")
        few = 2.33 * (CUT_COMPILED * topped.total()) ** 0.5
        tap.ok(topped[False] <= CUT_COMPILED * topped.total() + few, f"{ruby.name}: {name}: and those whose innermost frame it is", f"{topped[True]} of {topped.total()}")
    for stack, count in wrong.most_common(6):
        tap.note(f"    {count} times {stack}")
    for stack, count in odd.most_common(6):
        tap.note(f"    {count} times {stack}")
    for end, count in ends.most_common(4):
        if count:
            tap.note(f"    {count} times {end}")


def judge_outside(ruby, name, oracle, samples):
    """What moves between two reads has to say so."""
    clean, legal, flagged, wrong, ends = 0, 0, 0, Counter(), Counter()
    for s in samples:
        stack, leaves, gc, first = frames_of(s)
        own = inner(stack)
        if not own or (own[-1][0] not in ROOTS and own[-1][:2] not in oracle.fiber_roots):
            continue
        found = oracle.judge(own, leaves, first) or (gc and oracle.judge(own[leaves:], 0, first))
        ends[s.end] += s.count
        if s.end == "complete":
            clean += s.count
            if not found and not any(n == LOST for n, _, _ in own):
                wrong[text_of(own)] += s.count
        else:
            flagged += s.count
            legal += s.count * bool(found)
    figures = f"{clean} clean, {flagged} flagged, {legal} of those legal; {dict(ends)}"
    tap.ok(clean + flagged > 20 and clean, f"{ruby.name}: {name}, from outside: stacks", figures)
    tap.ok(sum(wrong.values()) <= max(1, 0.002 * clean), f"{ruby.name}: {name}, from outside: clean ones are right", sum(wrong.values()))
    for stack, count in wrong.most_common(4):
        tap.note(f"    {count} times {stack}")


def check_dump(ruby):
    """Threads that wait, told by another one of them."""
    process = start(*ruby.command([HERE], os.path.join(parked.FOLDER, "parked.rb")), stdout=subprocess.PIPE, text=True)
    parked.check(tap, ruby.name, process, "ruby", "Ruby", base=base)
    process.kill()
    process.wait()


def check_classes(ruby):
    """Whose methods they are, from 3.3 on: what Ruby's own backtraces say from 3.4 on."""
    load = os.path.join(HERE, "ruby", "classes.rb")
    with open(load) as f:
        want = [line[3:].strip() for line in f if line.startswith("#= ")]
    process = start(*ruby.command([HERE], load), stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    out = path("classes.pb.gz")
    found = Counter()
    for _ in range(5):  # where others run, too, it seldom does
        done = run(HEARTH, "record", "-q", "-F", 499, "-d", "3s", "-p", process.pid, "-o", out)
        for s in Profile(out).samples:
            if s.end == "complete":
                found[tuple(n for n, m in zip(s.names, s.modules) if m.startswith("[ruby"))[:len(want)]] += s.count
        if sum(found.values()) >= 20:
            break
    most = found.most_common(1)[0][0] if found else ()
    want = want if ruby.number >= (3, 3) else [base(n) for n in want]
    tap.ok(list(most) == want, f"{ruby.name}: classes in names", most if list(most) != want else f"{sum(found.values())} samples {done.stderr.strip()}")
    col = run(HEARTH, "convert", out, "--format", "col", "-o", "-").stdout
    tap.ok(";block in each_item - " in col and "Cart" not in col.replace("<class:Cart>", ""), f"{ruby.name}: .col has the bare names", col[-300:])
    process.kill()
    process.wait()


def check(ruby):
    check_dump(ruby)
    check_classes(ruby)
    oracles = {}
    for name in loads_of(ruby):
        process = launch(ruby, name, "record", path(f"{name}.json"), env=environment(name))
        said = process.communicate(timeout=300)
        if not tap.ok(process.returncode == 0, f"{ruby.name}: {name} is recorded", said[1][-300:]):
            return
        oracles[name] = Oracle(path(f"{name}.json"))
    sampled(ruby, oracles)
    if ruby.asked("print RubyVM::YJIT.enabled?", "--yjit") == "true":  # Debian 12's; 11 and 13 are built without
        sampled(ruby, oracles, YJIT)
    sampled_outside(ruby, oracles)


rubies = installed() if QUICK else everything(tap)
rubies = [r for r in rubies if not only or ".".join(map(str, r.number)) in only]
if not rubies:
    tap.skip("everything", "no interpreter")
for one in rubies:
    check(one)
tap.finish()
