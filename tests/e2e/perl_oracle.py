# SPDX-License-Identifier: Apache-2.0
"""Which stacks a Perl load can have, told by its text: a line that calls says whom behind "#>"; a sub begins with "sub NAME {" and ends with "}",
each in the first column."""
import os
import re

MODULE = "[perl]"
EVAL, PROGRAM = "(eval)", "(main program)"
MADE = re.compile(r"^main::made_\d+$")
NUMBERED = re.compile(r"^Made::N(\d+)::(outer|inner)_(\d+)$")


def frames_of(sample):
    """The Perl frames, root first: (name, file without folders, line)."""
    return [(n, os.path.basename(p[0]), p[1]) for n, m, p in zip(sample.names, sample.modules, sample.places) if m == MODULE]


class Load:
    def __init__(self, file):
        self.name = os.path.basename(file)
        self.calls, self.subs = {}, {}
        package, sub = "main", None
        with open(file, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if "#>" in line:
                    self.calls[number] = set(line.split("#>")[1].strip().split(","))
                if match := re.match(r"package (\w+);", line):
                    package = match[1]
                elif match := re.match(r"sub (\w+) \{", line):
                    sub = f"{package}::{match[1]}"
                    first = number
                elif line == "}\n" and sub:
                    self.subs[sub] = (first, number)
                    sub = None

    def wrong_place(self, frame):
        name, file, line = frame
        if file != self.name:
            return None if file == EVAL and (name == EVAL or MADE.match(name)) else "file"
        if name in self.subs and not self.subs[name][0] <= line <= self.subs[name][1]:
            return "line of another sub"
        return None

    def wrong_call(self, caller, callee):
        name, file, line = caller
        if file == EVAL:
            legal = callee[0] == "main::burn" if MADE.match(name) else MADE.match(callee[0])
        else:
            legal = callee[0] in self.calls.get(line, ())
        return None if legal else "call"

    def wrong(self, frames, threads=False):
        """Why a stack cannot be; None: it can."""
        if not frames:
            return "no frames"
        if frames[0][0] != PROGRAM and not (threads and [f[0] for f in frames[:2]] == [EVAL, "main::work"]):
            return "root"
        for frame in frames if frames[0][0] == PROGRAM else frames[1:]:
            if why := self.wrong_place(frame):
                return f"{why}: {frame}"
        for caller, callee in zip(frames, frames[1:]):
            if caller[2] == 0 and caller[0] == EVAL:
                continue  # the root of a thread
            if why := self.wrong_call(caller, callee):
                return f"{why}: {caller} {callee}"
        return None


def wrong_number(frames):
    """evals.pl: frames of different subs in one stack, or a name of two numbers."""
    numbers = set()
    for name, _, _ in frames:
        if match := NUMBERED.match(name):
            numbers |= {match[1], match[3]}
    return len(numbers) > 1
