# SPDX-License-Identifier: Apache-2.0
"""Java stacks, judged by bytecode: of two Java frames that follow each other, the outer one has a call of the inner one's name and
signature on the line that it was on. What a native frame stands between, class initialisers, method handles and generated classes
are not judged."""
import os
import sys
from collections import Counter

from judge import at_most
from support import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "runtime"))
import jvms  # noqa: E402,F401
from java_classes import SOURCES, class_files, judge_line, split  # noqa: E402,F401

MODULE = "[java]"
# Shares, at least: of the samples that reach a proven root, guessed frames included, in one load, in one of -Xint, and in all loads of a JVM
# together; and of the frames with names.
EACH, INTERPRETED, POOLED, NAMED = 0.996, 0.999, 0.998, 0.999
WHOLE_VIRTUAL = 0.995  # of virtual threads
GUESSED, WRONG = 0.01, 0.0005  # shares of the stacks with Java, at most
# Shares of the pairs that bytecode cannot judge, at most: more would hide what is wrong. Generated classes have no class file; virtual threads (8 % measured)
# and real programs (Lucene 5 %) have more of them than the loads (1 to 2 %, 3.5 % of 25 with an AOT cache).
UNKNOWN, UNKNOWN_VIRTUAL, UNKNOWN_PROGRAM, LOOSE = 0.05, 0.12, 0.25, 0.1


class Tally:
    def __init__(self):
        self.early = 0  # before hearth had met the process
        self.lost = 0  # samples
        self.judged = 0  # samples of which a whole stack is wanted: all but whole ones without Java, and early ones
        self.samples = self.java = self.complete = self.guessed = self.frames = self.named = 0
        self.nameless = 0.0  # sum of the stacks' shares of frames of Java without a name
        self.wrong = 0  # stacks that say nothing of a guess and have an illegal pair
        self.pairs, self.ends, self.illegal, self.unnamed, self.cuts = (Counter() for _ in range(5))

    @property
    def whole_share(self):
        return self.complete / self.judged if self.judged else 0

    def part(self, verdict):
        """Share of the pairs."""
        return self.pairs[verdict] / max(self.pairs.total(), 1)

    def figures(self):
        return (f"{self.java} Java stacks of {self.samples}, {self.complete} of {self.judged} ({100 * self.whole_share:.2f} %) to a root, {self.guessed} of them guessed; "
                f"{self.named} of {self.frames} frames named; pairs {dict(self.pairs)}; {self.wrong} stacks with an unmarked illegal pair; "
                f"ends {dict(self.ends)}; {self.early} before the process was met, {self.lost} lost")


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


def has_jit(sample):
    """A frame of code that is nobody's."""
    return any(name.startswith("[jit+") for name in sample.names)


def judge_samples(windows, home, folder, lost=0):
    """Of profiles with system names, one after the other: the samples of one JVM in each. @folder: where the compiled SOURCES are; @lost: samples
    that were. Until a window ends that has frames of Java, what ran before hearth had met the process is counted apart."""
    tally, met = Tally(), False
    tally.lost = tally.judged = lost
    everything = [s for samples in windows for s in samples]
    chains = [chain(s) for s in everything]
    classes = class_files(home, folder, classes_of(chains))
    for samples in windows:
        for sample in samples:
            judge_sample(sample, classes, tally, met)
        met = met or any(MODULE in s.modules for s in samples)
    return tally, chains, classes


def judge_sample(sample, classes, tally, met):
    count, frames = sample.count, chain(sample)
    has_java = MODULE in sample.modules
    is_whole = sample.end in ("complete", "guessed") and (has_java or not has_jit(sample))
    tally.samples += count
    if is_whole and not has_java:
        return
    if not met and (sample.end == "cut:no-process" or not has_java and has_jit(sample)):
        tally.early += count
        return
    tally.judged += count
    tally.complete += count if is_whole else 0
    tally.ends[sample.end] += count
    if not is_whole:
        tally.cuts[f"{sample.end}: " + " < ".join(n for n in reversed(sample.names[:4] if has_java else sample.names[-4:]))] += count
    if not has_java:
        return
    tally.java += count
    tally.guessed += count if sample.end == "guessed" else 0
    java = [f[1] for f in frames if f[0]]
    nameless = [name for name in java if "(" not in name]
    tally.frames += count * len(java)
    tally.named += count * (len(java) - len(nameless))
    tally.nameless += count * len(nameless) / len(java)
    for name in nameless:
        tally.unnamed[name] += count
    if judge_chain(frames, classes, tally, count) and sample.end != "guessed":
        tally.wrong += count


def reaches(tally, whole):
    """Whether as many reach a root, widened to the 99 % limit."""
    return at_most(tally.judged - tally.complete, tally.judged, 1 - whole)


def are_named(tally, named):
    """Frames of one stack have names together, or on 25 and 26 none when the host walked it, be it a hundred deep: so stacks are what is counted, each
    by the share of its frames that has none."""
    return at_most(round(tally.nameless), tally.java, 1 - named)


def judge_tally(tap, name, tally, least, early, whole=EACH, named=NAMED, unknown=UNKNOWN):
    """@least: Java stacks; @early: ticks before the process was met, at most; @whole: share, at least; @named: of the frames, None: any, and any pair may be
    unknown; @unknown: of the pairs, at most."""
    fine = tap.ok(tally.java >= least and reaches(tally, whole), f"{name}: stacks reach their root", f"{tally.figures()}; {100 * whole:g} % wanted")
    fine &= tap.ok(tally.early <= early, f"{name}: met soon", f"{tally.early} ticks before, {early:g} at most")
    fine &= tap.ok(at_most(tally.wrong, tally.java, WRONG), f"{name}: no illegal pair that is not marked", f"{tally.wrong} of {tally.java}, {100 * WRONG:g} % at most")
    if named:
        fine &= tap.ok(tally.part("unknown") <= unknown and tally.part("loose") <= LOOSE, f"{name}: pairs can be judged",
                       f"{100 * tally.part('unknown'):.2f} % unknown, {100 * tally.part('loose'):.2f} % loose, {100 * unknown:g} and {100 * LOOSE:g} % at most")
        fine &= tap.ok(are_named(tally, named), f"{name}: frames have names", f"{tally.named} of {tally.frames}, {100 * named:g} % wanted")
    fine &= tap.ok(at_most(tally.guessed, tally.java, GUESSED), f"{name}: few guesses", f"{tally.guessed} of {tally.java}, {100 * GUESSED:g} % at most")
    if not fine or tally.illegal:
        for what, count in tally.illegal.most_common(5) + tally.cuts.most_common(6) + (+tally.unnamed).most_common(3):
            tap.note(f"    {count} times {what}")


def check_oracle(tap, name, chains, classes):
    """Stacks with a frame taken out of their middle must be found wrong, mostly: a method that may call its callee's callee is rare.
    A method that calls itself may, and the caller of one that calls the next by its own name (the nodes of a regular expression): their frames are not
    taken out."""
    judged = found = 0
    for frames in chains:
        java = [f for f in frames if f[0]]
        if len(java) < 4 or any("(" not in f[1] for f in java):
            continue
        tally = Tally()
        at = len(java) // 2
        broken = java[:at] + java[at + 1:]
        outer, inner = broken[at - 1], broken[at]
        if java[at][1] == outer[1] or split(java[at][1])[1:] == split(inner[1])[1:] or judge_line(outer[1], outer[2], inner[1], classes) in ("unknown", "loose"):
            continue
        judged += 1
        found += judge_chain(broken, classes, tally, 1)
    tap.ok(judged > 20 and found >= 0.8 * judged, f"{name}: stacks that lack a frame are found wrong", f"{found} of {judged}")
