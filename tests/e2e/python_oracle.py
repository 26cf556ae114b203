# SPDX-License-Identifier: Apache-2.0
"""Judges Python stacks by what python/recorder.py recorded: in the set, of a class that tracing cannot show, or wrong.

A frame is (file, name, line); name is the last part of the qualified name. What a class accepts is written at its rule;
each is counted apart. Sources: CPython, Objects/codeobject.c (line tables), Python/ceval.c, Python/sysmodule.c.
"""
import json
import os
import random
import sys
from collections import Counter

NO_LINE, IS_GENERATOR = 1, 2  # recorder.py
PYTHON_ERROR = "[python-error]"  # mapping of such frames in pprof
LOOP = ("_PyEval_EvalFrame", "PyEval_EvalFrame")  # the interpreter's own
STARTERS = ("_bootstrap", "__bootstrap")  # a thread's first function
# What runs when an object dies: tracing keeps objects alive for longer (2.7 to 3.12 through f_locals), and the collector
# comes when it likes.
AT_DEATH = ("__del__", "on_dead", "_remove", "remove")

GAPS = ("creates", "no line", "returns", "line only", "at death", "thread start")
# not ready: Python ran before hearth had attached to its process, and the sample says so
# unlined: a line that hearth says it does not know (0), and otherwise in the set
CLASSES = ("legal",) + GAPS + ("unlined", "outside", "native", "no frame", "not ready", "flagged", "wrong")


def last_part(name):
    return name.rpartition(".")[2]


def is_python(module):
    """Is that the mapping of Python frames in pprof? With a distribution it is "[python:requests==2.31.0]"."""
    return module == "[python]" or module.startswith("[python:")


def frames_of(sample):
    """The Python frames of a sample of hearth, root first."""
    return tuple((p[0], last_part(n), p[1]) for n, m, p in zip(sample.names, sample.modules, sample.places) if is_python(m))


def is_flagged(sample):
    return sample.end != "complete" or PYTHON_ERROR in sample.modules


class Oracle:
    def __init__(self, *files):
        """What one recording has not met another one of the same load may have."""
        self.stacks, self.codes, self.qualified = set(), {}, {}
        for file in files:
            self.add(file)
        self.shapes = {tuple(f[:2] for f in stack): [] for stack in self.stacks}
        for stack in self.stacks:
            self.shapes[tuple(f[:2] for f in stack)].append(stack)
        self.called = {(stack[:-1], stack[-1][:2]) for stack in self.stacks}
        self.tails = {stack[i:] for stack in self.stacks for i, frame in enumerate(stack) if frame[1] in AT_DEATH}

    def add(self, file):
        with open(file) as f:
            rows = json.load(f)
        self.version = tuple(rows["version"][:2])
        codes = [(row[0], row[1], *row[2:]) for row in rows["codes"]]
        frames = [(codes[c][0], codes[c][1], line) for c, line in rows["frames"]]
        self.stacks |= {tuple(frames[f] for f in stack) for stack in rows["stacks"]}
        for file, name, qualified, first, lines, last, flags in codes:
            self.codes.setdefault((file, name), []).append((first, set(lines), last, flags))
            self.qualified.setdefault((file, name, first), set()).add(qualified)

    def judge(self, stack):
        """The class of a stack: root first, without the frames outside of work()."""
        if stack in self.stacks:
            return "legal"
        if any(f[2] == 0 for f in stack):
            return self.line_rule(stack)
        return self.leaf_rule(stack) or self.death_rule(stack) or self.start_rule(stack) or "wrong"

    def line_rule(self, stack):
        same = self.shapes.get(tuple(f[:2] for f in stack), ())
        fits = any(all(f[2] in (0, g[2]) for f, g in zip(stack, one)) for one in same)
        return "unlined" if fits else "wrong"

    def leaf_rule(self, stack):
        """Everything but the innermost line is in the set."""
        if not stack:
            return None
        callers, (file, name, line) = stack[:-1], stack[-1]
        rows = self.codes.get((file, name), ())
        # 3.11: a call of a generator function makes a frame only to create the generator, at the line of its def. The
        # tracer is not told.
        if self.version >= (3, 11) and callers in self.stacks and any(r[3] & IS_GENERATOR and line == r[0] for r in rows):
            return "creates"
        if (callers, (file, name)) not in self.called:
            return None
        # 3.11: instructions that make cells and set generators up have no line.
        if self.version >= (3, 11) and any(r[3] & NO_LINE and line == r[0] for r in rows):
            return "no line"
        # Up to 3.9: falling off the end is an instruction of the last line.
        if self.version < (3, 10) and any(line == r[2] for r in rows):
            return "returns"
        # Before 3.7 there are no events of instructions: a jump into the middle of a line is not seen.
        if self.version < (3, 7) and any(line in r[1] for r in rows):
            return "line only"
        return None

    def death_rule(self, stack):
        """A destructor or callback, itself as recorded, on top of a place where none was recorded."""
        for i, frame in enumerate(stack):
            if i and frame[1] in AT_DEATH and (stack[i:] in self.tails or self.leaf_of_tail(stack[i:])):
                head = stack[:i]
                if head in self.stacks or self.line_of_known(head) or self.leaf_rule(head):
                    return "at death"
        return None

    def line_of_known(self, stack):
        file, name, line = stack[-1]
        return (stack[:-1], (file, name)) in self.called and any(line in r[1] for r in self.codes[file, name])

    def leaf_of_tail(self, tail):
        """The same exceptions of the innermost line, for the frames of a destructor."""
        known = {t[:-1] + (t[-1][:2],) for t in self.tails}
        file, name, line = tail[-1]
        return tail[:-1] + ((file, name),) in known and any(
            (line == r[0] and r[3] & NO_LINE) or (line == r[2] and self.version < (3, 10)) or (line in r[1] and self.version < (3, 7))
            for r in self.codes[file, name])

    def start_rule(self, stack):
        """A thread traces from the middle of its first functions on."""
        if stack and stack[0][1] in STARTERS and all(f[0].endswith(("threading.py", "_weakrefset.py")) for f in stack):
            return "thread start"
        return None

    def named_wrong(self, file, name, first):
        """Is the qualified name, which may come with the path of its module, another one than the interpreter's?"""
        known = self.qualified.get((file, last_part(name), first))
        return bool(known) and None not in known and not any(name == q or name.endswith("." + q) for q in known)


class Load:
    """One process that runs a load: its oracle and the frames in which work() was called."""

    def __init__(self, oracle, prefix):
        self.oracle = oracle
        self.prefix = tuple((file, last_part(name), line) for file, name, line in prefix)
        self.script = self.prefix[0][0]

    def inner(self, stack):
        """The frames from work() on; other threads whole; None: not part of the work."""
        size = len(self.prefix)
        if stack[:size] == self.prefix and len(stack) > size and stack[size][1] == "work":
            inner = stack[size:]
            return None if len(inner) > 1 and inner[1][0] == self.prefix[-1][0] else inner
        return None if self.is_outside(stack) else stack

    def is_outside(self, stack):
        """Start-up and waiting: from a root that the work does not have, and without any function of it; or the test
        itself, before exec."""
        files = {f[0] for f in stack}
        if stack[0][0] == os.path.abspath(sys.argv[0]):
            return True
        if stack[0][:2] == (self.script, "<module>") and stack[0][2] != self.prefix[0][2]:
            return True  # still making its functions
        if stack[0][:2] in self.oracle.codes and stack[0][:2] != (self.script, "<module>"):
            return False
        ours = {file for file in files if os.path.dirname(file) == os.path.dirname(self.script)}
        return not any(f[:2] in self.oracle.codes for f in stack if f[0] in ours)

    def judge(self, stack, flagged):
        if not stack:
            return "flagged" if flagged else "no frame"
        inner = self.inner(stack)
        if inner is None:
            return "outside"
        found = self.oracle.judge(inner)
        return "flagged" if found == "wrong" and flagged else found


class Tally:
    def __init__(self):
        self.counts, self.wrong, self.names, self.legal_but_flagged = Counter(), Counter(), Counter(), 0
        self.flags, self.ends = Counter(), Counter()  # how stacks ended: those flagged and not legal, all that were judged

    def add(self, found, count, stack=(), flagged=False, end="", native=()):
        self.counts[found] += count
        if found not in ("outside", "native", "not ready"):
            self.ends[end] += count
        self.legal_but_flagged += count * (found == "legal" and flagged)
        if found == "flagged":
            self.flags[f"{end}: " + ";".join(f"{n}:{line}" for _, n, line in stack[-12:]) + f" of {len(stack)}, native {';'.join(native[-6:])} of {len(native)}"] += count
        if found in ("wrong", "no frame"):
            where = sorted({f[0] for f in stack}) or ";".join(native)
            self.wrong[f"{found}, {end}: " + ";".join(f"{n}:{line}" for _, n, line in stack) + f" of {where}"] += count

    def __iadd__(self, other):
        self.counts += other.counts
        self.wrong += other.wrong
        self.names += other.names
        self.flags += other.flags
        self.ends += other.ends
        self.legal_but_flagged += other.legal_but_flagged
        return self

    @property
    def judged(self):
        return sum(n for c, n in self.counts.items() if c not in ("outside", "native", "not ready"))

    def outside_share(self):
        return self.counts["outside"] / max(self.judged, 1)

    @property
    def gaps(self):
        return sum(self.counts[c] for c in GAPS)

    def share(self, *classes):
        return sum(self.counts[c] for c in classes) / self.judged if self.judged else 0.0

    @property
    def legal_share(self):
        return self.share("legal", *GAPS)


def judge_samples(load, samples):
    """The tally of one process's samples as hearth wrote them."""
    tally = Tally()
    for s in samples:
        stack, flagged = frames_of(s), is_flagged(s)
        if not stack and not any(n.startswith(LOOP) for n in s.names):
            tally.add("native", s.count)  # start and end of processes and threads
            continue
        if not stack and s.end == "cut:runtime-not-ready":
            tally.add("not ready", s.count)
            continue
        loops = sum(n.startswith(LOOP) for n in s.names)
        # A thread's first function has just been called, or has just ended.
        found = "thread start" if not stack and not flagged and loops == 1 else load.judge(stack, flagged)
        tally.add(found, s.count, stack, flagged, s.end, s.names)
        for name, module, place in zip(s.names, s.modules, s.places):
            if is_python(module) and load.oracle.named_wrong(place[0], name, place[2]):
                tally.names[f"{name} ({place[0]}:{place[2]})"] += s.count
    return tally


# ---- stacks made wrong on purpose: the oracle has to see them ----


def mutants(stack, others, chance):
    """(what, stack) of what walkers do wrong."""
    at = chance.randrange(len(stack))
    file, name, line = stack[at]
    yield "another line", stack[:at] + ((file, name, line + chance.choice((-3, -2, -1, 1, 2, 3))),) + stack[at + 1:]
    yield "another name", stack[:at] + ((file, chance.choice(others)[-1][1], line),) + stack[at + 1:]
    yield "a frame less", stack[:at] + stack[at + 1:]
    yield "no roots", stack[chance.randrange(1, len(stack)):] if len(stack) > 1 else ()
    yield "cut leaf", stack[:at]
    yield "a frame twice", stack[:at] + stack[at:at + 1] + stack[at:]
    other = chance.choice(others)
    yield "another's leaf", stack[:at] + other[chance.randrange(len(other)):]
    yield "another's root", other[:chance.randrange(len(other))] + stack[at:]


def accepted_mutants(oracle, stacks, seed=1):
    """Of mutants that no legal stack equals: (all, accepted, by class and kind)."""
    chance, seen, accepted, kinds = random.Random(seed), 0, 0, Counter()
    stacks = [s for s in stacks if s]
    for stack in stacks:
        for what, mutant in mutants(stack, stacks, chance):
            if mutant in oracle.stacks or not mutant:
                continue
            seen += 1
            found = oracle.judge(mutant)
            if found != "wrong":
                accepted += 1
                kinds[f"{what}: {found}"] += 1
    return seen, accepted, kinds
