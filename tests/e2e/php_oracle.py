# SPDX-License-Identifier: Apache-2.0
"""Judges PHP stacks by what the lines of a program may call (php/load.php): whole and legal, flagged, or wrong.

A frame is (name, file, line, first line); an extension's function has the file "<internal>" and no line.
"""
import os
import re
from collections import Counter

# What functions of extensions call back.
CALLS_BACK = {"array_map": {"{closure}"}, "usort": {"{closure}"}, "preg_replace_callback": {"{closure}"}, "count": {"Node::count"},
              "Fiber::start": {"within", "leaf"}, "Fiber::resume": {"leaf", "within", "Fiber::suspend"}}
ANYWHERE = {"Node::__destruct"}  # when the last reference is gone
INTERNAL = "<internal>"
# A method that is not there has a function of its own for a moment, by whose name __call or __callStatic is called.
MADE_UP = {"Node::anything": "Node::__call", "Node::nothing": "Node::__callStatic"}
KEYWORDS = {"if", "for", "foreach", "while", "switch", "catch", "function", "return", "array", "isset", "unset", "float", "int"}


def plain(name):
    """8.4 says in a closure's name where it stands."""
    return "{closure}" if name.startswith("{closure:") else name


class Program:
    """One source file: which lines each function has, and what they may call."""

    def __init__(self, file):
        self.file, self.calls, self.ranges = file, {}, {}
        with open(file) as f:
            self.lines = f.read().split("\n")
        owner = None
        depth, open_functions = 0, []
        for number, line in enumerate(self.lines, 1):
            code, _, mark = line.partition("// calls ")
            function = re.search(r"function (\w*)\s*\(", code)
            declared = {function[1]} if function else set()
            self.calls[number] = set(re.findall(r"(\w+)\s*\(", code)) - KEYWORDS - declared | set(mark.split())
            named = re.match(r"class (\w+)", code)
            if named:
                owner = named[1]
            if function:
                name = function[1] or "{closure}"
                if owner and function[1] and line.startswith("    "):
                    name = f"{owner}::{name}"
                open_functions.append((name, number, depth))
            # Braces inside of texts are none of the loads'.
            depth += code.count("{") - code.count("}")
            while open_functions and "}" in code and depth <= open_functions[-1][2]:
                name, first, _ = open_functions.pop()
                self.ranges[name, first] = number
            if owner and depth == 0 and "}" in code:
                owner = None
        self.ranges["<main>", 1] = len(self.lines)


class Judge:
    def __init__(self, folder):
        self.programs = {name: Program(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".php")}

    def program(self, file):
        return self.programs.get(os.path.basename(file))

    def frame_is_real(self, frame):
        name, file, line, first = frame
        if file == INTERNAL:
            return line == 0
        if "eval()'d code" in file:
            return plain(name) == "<main>" and line in (0, 1)
        program = self.program(file)
        name = MADE_UP.get(name, name)
        last = program.ranges.get((plain(name), first)) if program else None
        return last is not None and (line == 0 or first <= line <= last)

    def may_call(self, caller, callee):
        name, file, line, _ = caller
        callee_name = MADE_UP.get(callee[0], plain(callee[0]))
        if callee_name in ANYWHERE:
            return True
        if file == INTERNAL:
            return callee_name in CALLS_BACK.get(plain(name), ())
        if "eval()'d code" in file:
            return callee_name == "spin"
        allowed = self.program(file).calls.get(line, ())
        return callee_name in allowed

    def why_not(self, stack, root):
        """The first thing that is wrong with a stack, root first; "" for a legal one."""
        for frame in stack:
            if not self.frame_is_real(frame):
                return f"no such frame: {frame}"
        if stack[0][0] != "<main>" or os.path.basename(stack[0][1]) != root:
            return f"begins at {stack[0]}"
        for caller, callee in zip(stack, stack[1:]):
            if not self.may_call(caller, callee):
                return f"{caller} calls {callee}"
        return ""


def frames_of(sample):
    """The PHP frames of a sample of hearth, root first."""
    return [(n, p[0], p[1], p[2]) for n, m, p in zip(sample.names, sample.modules, sample.places) if m == "[php]" and not n.startswith("[")]


def is_flagged(sample):
    """Does hearth say that frames of PHP may be missing?"""
    return sample.end.startswith("cut:runtime-") or any(n.startswith("[") and m == "[php]" for n, m in zip(sample.names, sample.modules))


LOOP = "execute_ex"


def is_outside(sample, loops=(LOOP,)):
    """Of a sample without frames of the interpreter: does its thread execute nothing, as in start-up, compiling and waiting? Its native
    stack reaches its root and has neither the interpreter's loop nor compiled code. Any other one should have a chain."""
    return sample.end == "complete" and not any(n in loops or n.startswith("[jit+") for n in sample.names)


def count_without(tally, sample):
    """Into @tally a sample without frames of PHP."""
    if is_outside(sample):
        tally.outside += sample.count
    else:
        tally.missing[sample.end] += sample.count


class Tally:
    def __init__(self):
        self.legal = self.flagged = self.outside = self.frames = self.unlined = 0
        self.wrong, self.native_ends = Counter(), Counter()
        self.missing = Counter()  # no frame of PHP where there should be some
        self.in_pcre = Counter()  # of the native ends: PCRE's own compiled code has no unwind rows

    @property
    def judged(self):
        return self.legal + self.flagged + sum(self.wrong.values()) + self.missing.total()

    def add(self, judge, sample, root):
        stack = frames_of(sample)
        if not stack:
            count_without(self, sample)
            return
        self.frames += sample.count * len(stack)
        self.native_ends[sample.end] += sample.count
        if stack[-1][0].startswith("preg_"):
            self.in_pcre[sample.end] += sample.count
        self.unlined += sample.count * sum(1 for f in stack if f[2] == 0 and f[1] != INTERNAL)
        why = judge.why_not(stack, root)
        if not why:
            self.legal += sample.count
        elif is_flagged(sample):
            self.flagged += sample.count
        else:
            self.wrong[why] += sample.count

    def figures(self):
        wrong = sum(self.wrong.values())
        return (f"{self.judged} samples, {100 * self.legal / max(self.judged, 1):.2f} % whole and legal, {self.flagged} flagged, {wrong} wrong, "
                f"{dict(self.missing)} without their frames, {self.outside} outside of PHP, {self.unlined} of {self.frames} frames without a line")
