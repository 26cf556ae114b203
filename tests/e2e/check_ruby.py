#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby: the stacks that hearth takes in BPF are among those that the interpreter itself can have.

The loads of ruby/loads.rb run first under TracePoint, which notes the stack at each of its events, then untraced under hearth
at 997 Hz. A sample is in the set, or of a class that TracePoint cannot show and that a rule recognises, or flagged by hearth,
or wrong (ruby_oracle.py). What is not of the load's own functions is outside of it by a rule (outside_of()), or has no chain and is as
bad as a wrong one.
"""
import signal
from collections import Counter

import parked
from judge import at_most
from rubies import everything, installed
from ruby_oracle import ROOTS, Oracle, base, frames_of, inner
from support import *

LOAD = os.path.join(HERE, "ruby", "loads.rb")
LOADS = ["work", "threads", "ractors", "many"]
FIRST = {"ractors": (3, 3), "many": (3, 3)}  # the first version that has it as it is tried here
SHORT = QUICK or SAMPLED
SECONDS = {"work": 3 if QUICK else 12, "threads": 2 if QUICK else 14, "ractors": 2 if QUICK else 5, "many": 2 if QUICK else 5}
SECONDS_COMPILED = {"work": 3 if QUICK else 20, "threads": 2 if QUICK else 16}
HZ = 997
TICKS = {"work": 10000, "threads": 10000, "ractors": 3000, "many": 3000}  # at least, in the whole form
OUTSIDE_HZ = 499
LEGAL = 0.999
YJIT = ["--yjit", "--yjit-call-threshold=2"]
BY_RULE = 0.03
CUT_COMPILED = 0.01
TOPPED = 1000
# Threads that begin and end make and give back their memory.
ALONE = {"work": 0.01, "threads": 0.15, "ractors": 0.15, "many": 0.15}
LOADS_THAT_COLLECT = ("work", "threads")  # ractors: each in its own
LOST = "[Lost Symbol]"
WHOLE = ("complete", "guessed")
NOT_READY = "hearth had not attached"
NOT_READY_MAX = (0.030 if SHORT else 0.010) * HZ * CPUS  # check_ready.py has how soon it does
LOOPS = {"vm_exec", "rb_vm_exec", "vm_exec_core"}

tap = Tap("ruby")
need(tap)
tops = {}  # load -> {is it whole: samples whose innermost frame compiled code runs}
legals = {}  # load -> (samples whose stacks are legal, all that were judged)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def launch(ruby, *args, options=(), **more):
    return start(*ruby.command([HERE, scratch], *options, LOAD, *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def loads_of(ruby):
    return [name for name in LOADS if ruby.number >= FIRST.get(name, (0,))]


def environment(name):
    """"many": the threads of one Ractor on few native threads, as those of other Ractors always are."""
    return {**os.environ, "RUBY_MN_THREADS": "1"} if name == "many" else None


def sampled(ruby, oracles, options=()):
    """In BPF. @options: the interpreter's own. The programs wait until hearth has attached: how soon that is, is check_ready.py's."""
    tops.clear()
    legals.clear()
    ran = launched(ruby, options)
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", path("ruby.pb.gz"), stderr=subprocess.PIPE, text=True)
    other = None
    if options:
        pids = [o for p in ran.values() for o in ("-p", p.pid)]
        other = start(HEARTH, "record", "-F", HZ, "-q", "--no-ruby", "-o", path("native.pb.gz"), *pids, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    judged(ruby, oracles, ran, recorder, judge_compiled if options else judge, other)
    legal, count = map(sum, zip(*legals.values())) if legals else (0, 0)
    enough = at_most(count - legal, count, 1 - LEGAL) if SHORT else legal >= LEGAL * count
    tap.ok(count and enough, f"{ruby.name}: {'YJIT' if options else 'all loads'}: stacks are legal", f"{legal} of {count}")
    if other and tops:
        judge_tops(ruby, ran, other.returncode)


def sampled_outside(ruby, oracles):
    """By the sampler remote."""
    ran = launched(ruby)
    pids = [o for p in ran.values() for o in ("-p", p.pid)]
    recorder = start(HEARTH, "record", "--sampler", "remote", "-F", OUTSIDE_HZ, "-q", "-o", path("ruby.pb.gz"), *pids, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    return judged(ruby, oracles, ran, recorder, judge_outside)


def launched(ruby, options=()):
    ran, seconds = {}, SECONDS_COMPILED if options else SECONDS
    for name in seconds if options else loads_of(ruby):
        process = launch(ruby, name, "run", seconds[name], options=options, env=environment(name))
        if process.stdout.readline().strip() != "ready":
            tap.ok(False, f"{ruby.name}: {name} starts", process.stderr.read()[-300:])
            continue
        ran[name] = process
    return ran


def judged(ruby, oracles, ran, recorder, judge_load, other=None):
    for process in ran.values():
        process.stdin.write("\n")
        process.stdin.flush()
    for name, process in ran.items():
        ruby.collected[name] = [float(n) for n in process.stdout.readline().split()[1:]]
    time.sleep(0.3)
    for one in filter(None, (recorder, other)):
        one.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    if other:
        other.communicate(timeout=90)
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


def in_compiled(s):
    """Is code that no file has the innermost one, but for the kernel's?"""
    own = [m for m in s.modules if not m.startswith("[kernel")]
    return bool(own) and own[-1] == "//anon"


def judge_compiled(ruby, name, oracle, samples):
    judge(ruby, f"{name}, YJIT", oracle, samples, compiled=True)


def outside_of(s, stack):
    """By which rule a sample is none of the load's functions, or None: the chain that it should have is not there.

    A whole stack is proven down to its native root, and hearth pairs the activations of the loop in it with Ruby's frames: one
    without Ruby's frames that has none runs in C alone, before a thread's first frame, behind its last one, or in a thread of Ruby's own.
    A process is attached to when it is first met: the first milliseconds of a load that waited say so.
    """
    if s.end == "cut:runtime-not-ready":
        return NOT_READY
    if s.end not in WHOLE:
        return None
    if not stack:
        return None if LOOPS & set(s.names) else "native alone"
    name, file, _ = stack[-1]
    if name == "<main>" or name.startswith("<internal:") or file.startswith("<internal:"):
        return "the program around it"
    if file == "loads.rb" and name.startswith("block ") and name.rpartition(" in ")[2] in ("threads_run", "ractors_run"):
        return "a thread around it"
    return None


def judge(ruby, name, oracle, samples, compiled=False):
    counts, wrong, odd, ends, topped, outside, chainless, natives = (Counter() for _ in range(8))
    collecting = 0
    for s in samples:
        stack, leaves, gc, first = frames_of(s)
        own = inner(stack)
        collecting += s.count * gc
        if not own or (own[-1][0] not in ROOTS and own[-1][:2] not in oracle.fiber_roots):
            rule = outside_of(s, own)
            natives[" ".join(s.names[-3:])] += s.count * (rule == "native alone")
            (outside if rule else chainless)[rule or f"{s.end}: {text_of(own)} | {' '.join(s.names[:3])} .. {' '.join(s.names[-3:])}"] += s.count
            continue
        if not leaves and not own[0][2]:  # its line is not known: YJIT's code runs
            topped[s.end in WHOLE] += s.count
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
    judged = counts["exact"] + rules + unlined + counts["flagged"] + counts["wrong"] + counts["name lost"] + chainless.total()
    legal = counts["exact"] + rules + unlined
    figures = (f"{judged} samples, {100 * legal / max(judged, 1):.2f} % legal, by rule {100 * rules / max(judged, 1):.2f} % ({dict(counts)}), "
               f"{chainless.total()} without a chain, outside {dict(outside)}")
    load = name.partition(",")[0]
    seconds = (SECONDS_COMPILED if compiled else SECONDS)[load]
    least = min(seconds * HZ * 0.6, TICKS[load]) if SHORT else TICKS[load]  # others may have the CPU, too
    tap.ok(judged >= least, f"{ruby.name}: {name}: samples", f"{judged} of {least:.0f}")
    # Where 10,000 are judged the share is what is wanted; of fewer, chance has a part in it.
    enough = at_most(judged - legal, judged, 1 - LEGAL) if SHORT or TICKS[load] < 10000 else legal >= LEGAL * judged
    legals[load] = legal, judged
    tap.ok(judged and enough and rules <= BY_RULE * judged, f"{ruby.name}: {name}: stacks are legal", figures)
    tap.ok(bool(unlined) == compiled, f"{ruby.name}: {name}: the line is not known where compiled code runs, and only there", unlined)
    # Up to 2.7 the leaf can be what lay there before, in a frame that is not filled in yet: one in 5,000 is not seen to be so.
    tap.ok(at_most(counts["wrong"], judged, 0.0002) if ruby.number < (3, 0) else not counts["wrong"], f"{ruby.name}: {name}: no wrong stack that is not flagged", counts["wrong"])
    spent, collected = ruby.collected[load]
    if load in LOADS_THAT_COLLECT:
        shown, own = collecting / HZ / spent, collected / spent
        tap.ok(collecting and abs(shown - own) <= 0.1 * own + 3 * (own / (spent * HZ)) ** 0.5, f"{ruby.name}: {name}: ticks in the garbage collector, as Ruby says",
               f"{100 * shown:.2f} % of its time, {100 * own:.2f} %")
    alone = outside["native alone"] / max(judged + outside.total(), 1)
    tap.ok(alone <= ALONE[load], f"{ruby.name}: {name}: few stacks have no frame of Ruby", f"{100 * alone:.2f} %: {natives.most_common(3)}")
    tap.ok(outside[NOT_READY] <= NOT_READY_MAX, f"{ruby.name}: {name}: hearth has attached soon", outside[NOT_READY])
    if compiled:
        cut = ends.total() - ends["guessed"]
        tap.ok(cut <= CUT_COMPILED * judged, f"{ruby.name}: {name}: stacks are whole through compiled code", f"{judged - cut} of {judged}, {ends['guessed']} guessed")
        tops[load] = topped
    for stack, count in wrong.most_common(6):
        tap.note(f"    {count} times {stack}")
    for stack, count in chainless.most_common(8):
        tap.note(f"    no chain: {count} times {stack}")
    for stack, count in odd.most_common(6):
        tap.note(f"    {count} times {stack}")
    for end, count in ends.most_common(4):
        if count:
            tap.note(f"    {count} times {end}")


def judge_tops(ruby, ran, status):
    """Of both loads together. That compiled code runs is said by a line that is not known; how often another session has it, which knows
    nothing of Ruby and shows that code by its address, is told beside it and not judged."""
    whole, every = sum(t[True] for t in tops.values()), sum(t.total() for t in tops.values())
    tap.ok(every >= (100 if SHORT else TOPPED) and whole >= (1 - CUT_COMPILED) * every, f"{ruby.name}: YJIT: whole where the innermost frame is compiled code's", f"{whole} of {every}")
    if not tap.ok(status == 0, f"{ruby.name}: YJIT: hearth record --no-ruby ends well", f"exit {status}"):
        return
    profile = Profile(path("native.pb.gz"))
    for name, process in ran.items():
        samples = profile.of(process)
        plain = sum(s.count for s in samples if in_compiled(s))
        tap.note(f"{ruby.name}: {name}, YJIT: {tops.get(name, Counter()).total()} have it by their line, {plain} in a session without Ruby")


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
