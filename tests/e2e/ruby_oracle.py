# SPDX-License-Identifier: Apache-2.0
"""Judges Ruby stacks by what TracePoint noted while ruby/loads.rb ran under it: recorded, of a class that TracePoint cannot show and
that a rule recognises, or neither. docs/ruby.md says which classes there are."""
import json
import os

ROOTS = ("work", "thread_work", "ractor_work")
GC = "(garbage collector)"


def base(label):
    """From 3.4 on labels have the class: "block in Array#each"."""
    before, _, last = label.rpartition(" ")
    if last[:1].isupper() and ("#" in last or "." in last):
        last = last.replace(".", "#").rpartition("#")[2]
    return f"{before} {last}" if before else last


def inner(stack):
    """Up to the method that all ways call. A fiber's stack is all its own."""
    for i, frame in enumerate(stack):
        if frame[0] in ROOTS:
            return stack[:i + 1]
    return stack


class Oracle:
    def __init__(self, file):
        with open(file) as f:
            stacks = [tuple((base(n), file, line) for n, file, line in stack) for stack in json.load(f)]
        self.stacks = {inner(s) for s in stacks if s}
        self.fiber_roots = {s[-1][:2] for s in self.stacks if s[-1][0] not in ROOTS and s[-1][0] != "<main>"}
        self.lines = {}
        for stack in self.stacks:
            for name, file, line in stack:
                self.lines.setdefault((name, file), set()).add(line)

    def judge(self, stack, c_leaves, first=0):
        """@c_leaves: so many frames at the leaf are C functions; @first: the first line of the Ruby function behind them."""
        if stack in self.stacks:
            return "exact"
        # That TracePoint does not tell of. What a fiber begins with, too.
        if any(stack[i:] in self.stacks for i in range(1, c_leaves + 1)):
            return "C function"
        callers = stack[c_leaves:]
        if not callers:
            return None
        name, file, line = callers[0]
        if not line and any(((name, file, other),) + callers[1:] in self.stacks for other in self.lines.get((name, file), ())):
            return "line not known"  # its compiled code runs
        known = self.lines.get((name, file), ())
        # Functions of the interpreter's own files have events for some of their lines only.
        inside = file.startswith("<internal:") and first <= line <= max(known, default=0)
        if (line == first or line in known or inside) and any(((name, file, other),) + callers[1:] in self.stacks for other in self.lines.get((name, file), ())):
            return "leaf line"  # of an instruction that is no event
        if name.startswith(("rescue in ", "ensure in ")) and any(((n, f, other),) + callers[2:] in self.stacks for n, f, _ in callers[1:2]
                                                                 for other in self.lines.get((n, f), ())):
            return "rescue"  # which is being entered
        return None


def ruby_frames(sample):
    """The Ruby frames of a sample of hearth, root first: [(name, place)], and is it in GC? C functions have no file."""
    frames = [(base(n), p) for n, m, p in zip(sample.names, sample.modules, sample.places) if m.startswith("[ruby")]  # from 3.3 on there are classes, too
    gc = bool(frames) and frames[-1][0] == GC
    return frames[:-1] if gc else frames, gc


def frames_of(sample):
    """[(name, file, line)], leaf first; C functions have the place of their caller. And how many of them are at the leaf; is
    it in GC? And the first line of the innermost Ruby function."""
    frames, place = [], None
    ruby, gc = ruby_frames(sample)
    leaves = 0
    for name, (file, line, _) in ruby:
        if file:
            place = (os.path.basename(file), line)
        leaves = 0 if file else leaves + 1
        frames.append((name, *(place or ("", 0))))
    frames.reverse()
    first = next((p[2] for _, p in reversed(ruby) if p[0]), 0)
    return tuple(frames), leaves, gc, first
