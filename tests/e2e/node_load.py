# SPDX-License-Identifier: Apache-2.0
"""Programs of Node.js under hearth: their samples from the time on in which hearth has met them, which of their stacks are whole, and a load
whose text says which functions can be called from a line ("//> a b"), and what of a sample cannot be then."""
import contextlib
import os
import re
from collections import Counter

from judge import at_most
from support import HEARTH, path, run, start
from windows import windows_of

COLLECTOR, COMPILER, LOST = "(garbage collector)", "(compiler)", "[Lost Symbol]"
# Whole stacks, at least: of loads A and B, of real programs.
WHOLE, WHOLE_BEFORE_20, WHOLE_CHURN, WHOLE_PROGRAMS = 0.998, 0.995, 0.99, 0.99
NAMED = 0.995  # of the frames
NAMED_CHURN = 0.99  # of functions that live for a moment: docs/node.md, load B
MANY = 3000  # from so many on a share is what was counted
WINDOW_SECONDS = 1


def frames_of(sample):
    """Functions (name, file, executing line), root first; what V8 does for itself is none."""
    return [(n, p[0], p[1]) for n, m, p in zip(sample.names, sample.modules, sample.places)
            if m == "[javascript]" and n not in (COLLECTOR, COMPILER)]


def is_share(bad, count, least):
    """Whether @least of @count are not @bad; of few: whether that can be so (judge.at_most)."""
    return bad <= (1 - least) * count if count >= MANY else at_most(bad, count, 1 - least)


class Take:
    """What hearth saw of a program after it had met it. samples: of all its threads; lost: samples that were counted as lost; early: samples of
    the windows up to the first one with functions; windows: the profiles behind that one; ok: hearth ended well, else said has why not."""

    def __init__(self, code, said, name, pid):
        """What `recording(hz, name)` wrote, how it ended and what it said. @pid: None: all processes."""
        self.ok, self.said, self.samples, self.early, self.windows, self.lost = code == 0, said, [], [], [], 0
        is_met = False
        for profile in windows_of(path(f"{name}.pb.gz")):
            ours = [s for s in profile.samples if pid in (None, s.pid)]
            if is_met:
                profile.samples = ours
                self.windows.append(profile)
                self.samples += ours
                self.lost += profile.lost
            else:
                self.early += ours
                is_met = any(frames_of(s) for s in ours)

    def main(self):
        return [s for s in self.samples if s.labels.get("tid") == s.pid]


def recording(hz, name):
    """The command that take() runs, without what says which processes and how long."""
    return [HEARTH, "record", "-q", "-F", hz, "--window", f"{WINDOW_SECONDS}s", "-o", path(f"{name}.pb.gz")]


def launched(*command, first=False, **options):
    """@first: other programs seldom take its CPU. Where sessions share the CPU (autogroup), nice alone counts within its session."""
    process = start(*(["nice", "-n", "-20"] if first else []), *command, start_new_session=first, **options)
    if first:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/autogroup", "w", encoding="ascii") as f:
            f.write("-20")
    return process


def take(process, hz, seconds, *options):
    """@process runs already; the first window that has functions is left out: it also has what was sampled before hearth had met the process."""
    done = run(*recording(hz, "take"), *options, "-d", f"{seconds}s", "-p", process.pid, timeout=seconds + 120)
    return Take(done.returncode, done.stderr, "take", process.pid)


class Stacks:
    """Of samples, those that are judged: with JavaScript, or not whole. A stack that ends before its first function of JavaScript is one of these,
    one of V8's threads or libuv's that reaches its root is none. @always: this thread is in JavaScript at any time. @lost: as Take.lost."""

    def __init__(self, samples, lost=0, always=None):
        self.bad, self.whole, self.javascript = Counter({"lost": lost} if lost else {}), 0, 0
        for s in samples:
            has = bool(frames_of(s))
            self.javascript += s.count if has else 0
            if s.end != "complete":
                self.bad[f"{s.end or 'no end'}: {' < '.join(f'{n} of {os.path.basename(m)}' for n, m in list(zip(s.names, s.modules))[:-5:-1])}"] += s.count
            elif not has and s.labels.get("tid") == always and any("[" not in m and m for m in s.modules):
                self.bad[f"without JavaScript: {' < '.join(s.names[:-5:-1])}"] += s.count
            elif has:
                self.whole += s.count
        self.count = self.whole + self.bad.total()

    def judge(self, tap, what, least):
        """@least: the share of them that is whole; of few, so much that a larger one is not refuted."""
        fine = tap.ok(self.javascript > 0 and is_share(self.bad.total(), self.count, least), f"{what}: whole stacks", f"{self.whole} of {self.count}")
        for text, count in self.bad.most_common(6):
            tap.note(f"{count} not whole: {text}")
        return fine


def names_of(samples):
    """All frames of functions, by name."""
    names = Counter()
    for s in samples:
        for name, _, _ in frames_of(s):
            names[name] += s.count
    return names


def judge_named(tap, what, names, least=NAMED):
    tap.ok(names.total() > 0 and is_share(names[LOST], names.total(), least), f"{what}: frames with a name", f"{names.total() - names[LOST]} of {names.total()}")


def wrong_of_churn(sample):
    """Only fn_N calls in_N, which calls spin; only work calls what has no number: churn.js. A frame that says that its name is lost is not wrong.
    Return: pairs of frames with another function's name, pairs of which one is right and the frame between them is not there."""
    names, wrong, lacking = [n for n, _, _ in frames_of(sample)], [], []
    for caller, name in zip([""] + names, names):
        kind, _, number = name.partition("_")
        skipped = {"fn": "work", "in": "round", "spin": "fn_", "round": "(anonymous)"}.get(kind)
        right = {"fn": "round", "in": f"fn_{number}", "spin": "in_", "thrown": "work", "regexps": "work", "round": "work"}.get(kind)
        if right and LOST not in (caller, name) and not (caller.startswith(right) if kind == "spin" else caller == right):
            (lacking if skipped and caller.startswith(skipped) else wrong).append(f"{caller} -> {name}")
    return wrong, lacking


class Text:
    """calls: line -> functions that can be called from it; functions: name -> its ranges of lines. A line of a function without a name is one
    that begins it, or is in no function that has one: the script itself has none."""

    BEGINS = re.compile(r"(\t*)(?:return |class |static |async )*(?:function )?(\w+)(?:\([^()]*\))? {$")
    NO_NAMES = {"if", "for", "while", "switch", "catch", "try", "do", "else"}

    def __init__(self, file):
        self.file, self.calls, self.functions = file, {}, {}
        with open(file, encoding="utf-8") as f:
            lines = f.read().splitlines()
        classes = []
        for number, line in enumerate(lines, 1):
            if "//> " in line:
                self.calls[number] = set(line.split("//> ")[1].split())
            begins = self.BEGINS.match(line)
            if not begins or begins[2] in self.NO_NAMES:
                continue
            name, end = begins[2], next(n for n, l in enumerate(lines[number - 1:], number) if l.startswith(begins[1] + "}"))
            if "class " in line:
                classes.append((name, end))
            if name == "constructor":
                name = classes[-1][0]
            self.functions.setdefault(name, []).append((number, end))
        self.without = {n for n, line in enumerate(lines, 1) if "=>" in line or "function (" in line
                        or not any(first <= n <= last for ranges in self.functions.values() for first, last in ranges)}

    def is_line_of(self, name, line):
        if name == "(anonymous)":
            return line in self.without
        return any(first <= line <= last for first, last in self.functions.get(name, []))

    def wrong_of(self, sample):
        """The pairs of frames that the text does not have, and functions at lines that are none of theirs. A built-in function has no file: it
        may call what the line can. A frame that says that its name is lost is not wrong."""
        wrong, caller, allowed = [], None, None
        for name, file, line in frames_of(sample):
            if name != LOST and allowed is not None and name not in allowed:
                wrong.append(f"{caller} -> {name}")
            if file == self.file:
                if name != LOST and not self.is_line_of(name, line):
                    wrong.append(f"{name} at line {line}")
                allowed = self.calls.get(line, set())
            elif name in self.functions and not file:
                wrong.append(f"{name} without its file")
            if name == LOST or file and file != self.file:
                allowed = None
            caller = f"{name}:{line}"
        return wrong

    def judge(self, tap, samples):
        """How many frames they have, and how many of those are wrong; what is wrong mostly is noted."""
        frames, wrong = 0, Counter()
        for s in samples:
            frames += s.count * len(frames_of(s))
            for what in self.wrong_of(s):
                wrong[what] += s.count
        for what, count in wrong.most_common(8):
            tap.note(f"{count} {what}")
        return frames, wrong.total()
