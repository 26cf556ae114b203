# SPDX-License-Identifier: Apache-2.0
"""A load of Node.js whose text says which functions can be called from a line ("//> a b"), and what of a sample cannot be then."""
from collections import Counter

COLLECTOR, COMPILER = "(garbage collector)", "(compiler)"


def frames_of(sample):
    """Functions (name, file, executing line), root first; what V8 does for itself is none."""
    return [(n, p[0], p[1]) for n, m, p in zip(sample.names, sample.modules, sample.places)
            if m == "[javascript]" and n not in (COLLECTOR, COMPILER)]


class Text:
    """calls: line -> functions that can be called from it; functions: name -> first and last line."""

    def __init__(self, file):
        self.file, self.calls, self.functions, name = file, {}, {}, None
        with open(file, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if "//> " in line:
                    self.calls[number] = set(line.split("//> ")[1].split())
                if line.startswith("function "):
                    name = line.split()[1].split("(")[0]
                    self.functions[name] = (number, number)
                elif name:
                    self.functions[name] = (self.functions[name][0], number)
                    name = None if line.startswith("}") else name

    def wrong_of(self, sample):
        """The pairs of frames that the text does not have, and lines outside of their function."""
        frames, wrong = frames_of(sample), []
        for i, (name, file, line) in enumerate(frames):
            if file != self.file:
                continue
            first, last = self.functions.get(name, (1, 1 << 30))
            if not first <= line <= last:
                wrong.append(f"{name} at line {line}")
            if i + 1 < len(frames) and frames[i + 1][0] not in self.calls.get(line, set()):
                wrong.append(f"{name}:{line} -> {frames[i + 1][0]}")
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
