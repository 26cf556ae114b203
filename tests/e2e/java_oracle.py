# SPDX-License-Identifier: Apache-2.0
"""Java stacks, judged by bytecode: of two Java frames that follow each other, the outer one has a call of the inner one's name and
signature on the line that it was on. What a native frame stands between, class initialisers, method handles and generated classes
are not judged."""
import math
import os
import sys
from collections import Counter

from judge import ERROR
from support import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "runtime"))
import jvms  # noqa: E402,F401
from java_classes import SOURCES, class_files, judge_line, split  # noqa: E402,F401

MODULE = "[java]"
GUESSED, WRONG = 0.01, 0.0005  # shares of the stacks with Java, at most


class Tally:
    def __init__(self):
        self.early = 0  # before hearth had met the process
        self.samples = self.java = self.complete = self.guessed = self.cut = self.frames = self.named = 0
        self.wrong = 0  # stacks that say nothing of a guess and have an illegal pair
        self.pairs, self.ends, self.illegal, self.unnamed, self.cuts = (Counter() for _ in range(5))

    @property
    def whole_share(self):
        return self.complete / self.java if self.java else 0

    def figures(self):
        return (f"{self.java} Java stacks of {self.samples}, {100 * self.whole_share:.2f} % to a root, {self.guessed} of them guessed; "
                f"{self.named} of {self.frames} frames named; pairs {dict(self.pairs)}; {self.wrong} stacks with an unmarked illegal pair; "
                f"ends {dict(self.ends)}; {self.early} before the process was met")


def chain(sample):
    """(is Java, the VM's name, line), root first."""
    return [(module == MODULE, name, place[1]) for name, module, place in zip(sample.names, sample.modules, sample.places)]


def classes_of(chains):
    return {split(frame[1])[0] for frames in chains for frame in frames if frame[0] and "(" in frame[1]}


def judge_chain(frames, classes, tally, count):
    """Pairs of one stack. Returns whether one is illegal."""
    illegal = False
    for outer, inner in zip(frames, frames[1:]):
        if not outer[0] or not inner[0]:
            continue
        verdict = judge_line(outer[1], outer[2], inner[1], classes)
        tally.pairs[verdict] += count
        if verdict == "illegal":
            illegal = True
            tally.illegal[f"{outer[1]}:{outer[2]} -> {inner[1]}"] += count
    return illegal


def judge_samples(samples, home, folder):
    """Of a profile with system names; @folder: where the compiled SOURCES are."""
    tally = Tally()
    chains = [chain(s) for s in samples]
    classes = class_files(home, folder, classes_of(chains))
    for sample, frames in zip(samples, chains):
        count = sample.count
        tally.samples += count
        if not any(f[0] for f in frames):
            continue
        if sample.end == "cut:no-process":  # it had just been started
            tally.early += count
            continue
        tally.java += count
        tally.ends[sample.end] += count
        if sample.end not in ("complete", "guessed"):
            tally.cuts[f"{sample.end}: " + " < ".join(n for n in reversed(sample.names[:4]))] += count
        tally.complete += count if sample.end in ("complete", "guessed") else 0
        tally.guessed += count if sample.end == "guessed" else 0
        for f in frames:
            if f[0]:
                tally.frames += count
                tally.named += count if "(" in f[1] else 0
                tally.unnamed[f[1]] += count if "(" not in f[1] else 0
        if judge_chain(frames, classes, tally, count) and sample.end == "complete":
            tally.wrong += count
    return tally, chains, classes


def at_most(hits, count, most):
    """Whether @hits of @count can be where the true share is @most: not when so many or more come with a chance below ERROR (binomial)."""
    if hits > count:
        return False
    chances = (math.exp(math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * math.log(most) + (count - k) * math.log1p(-most)) for k in range(hits))
    return 1 - sum(chances) >= ERROR


def judge_tally(tap, name, tally, least, whole, guessed=GUESSED, named=0.99):
    """@least: Java stacks; @whole, @guessed: shares of them, at least and at most; @named: share of the frames."""
    fine = tap.ok(tally.java >= least and tally.whole_share >= whole, f"{name}: stacks reach their root", tally.figures())
    fine &= tap.ok(at_most(tally.wrong, tally.java, WRONG), f"{name}: no illegal pair that is not marked", f"{tally.wrong} of {tally.java}, {100 * WRONG:g} % at most")
    fine &= tap.ok(tally.named >= named * tally.frames, f"{name}: frames have names", f"{tally.named} of {tally.frames}")
    fine &= tap.ok(at_most(tally.guessed, tally.java, guessed), f"{name}: few guesses", f"{tally.guessed} of {tally.java}, {100 * guessed:g} % at most")
    if not fine or tally.illegal:
        for what, count in tally.illegal.most_common(5) + tally.cuts.most_common(6) + (+tally.unnamed).most_common(3):
            tap.note(f"    {count} times {what}")
