# SPDX-License-Identifier: Apache-2.0
"""Records, inside the process, every Python stack that a load can have (Python 2.7 and 3).

A tracer sees each instruction (each line before 3.7) before it runs and notes the stack of that moment: function, file and
line of every frame, as the interpreter itself says it. Lines come from f_lasti and the line table where a traced frame's
f_lineno is that of its last line event (up to 3.9).

The file is JSON: codes [file, name, qualified name, first line, lines, last line, flags], frames [code, line], stacks
[frames, root first]. Stacks of the main thread begin with work(); others with their thread's first frame.
"""
from __future__ import print_function

import bisect
import dis
import json
import sys
import threading
import time

GENERATOR = 0x20 | 0x80 | 0x100 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR
NO_LINE, IS_GENERATOR = 1, 2
BY_TABLE = sys.version_info < (3, 10)
BY_OPCODE = sys.version_info >= (3, 7)
ENOUGH = 3  # rounds in a row without a new stack
ROUNDS_MAX = 60

thread_rounds = [400]  # few while tracing makes everything slow
THIS_FILE = (lambda: None).__code__.co_filename


class Codes(object):
    """Code objects and frames by number; equal ones have the same. Keeps every code object: its address must not become
    another one's."""

    def __init__(self):
        self.numbers, self.kept, self.rows, self.starts, self.by_row = {}, [], [], [], {}
        self.frames, self.frame_rows = {}, []

    def code(self, code):
        number = self.numbers.get(id(code))
        if number is None:
            self.kept.append(code)
            number = self.numbers[id(code)] = self.add(code)
        return number

    def add(self, code):
        starts = [s for s in dis.findlinestarts(code) if s[1] is not None]
        flags = (IS_GENERATOR if code.co_flags & GENERATOR else 0) | (NO_LINE if has_no_line(code) else 0)
        row = [code.co_filename, code.co_name, getattr(code, "co_qualname", None), code.co_firstlineno, sorted(set(s[1] for s in starts)),
               starts[-1][1] if starts else code.co_firstlineno, flags]
        text = repr((row, starts))
        if text not in self.by_row:
            self.by_row[text] = len(self.rows)
            self.rows.append(row)
            self.starts.append(([s[0] for s in starts], [s[1] for s in starts]))
        return self.by_row[text]

    def line(self, frame, number):
        code = frame.f_code
        if not BY_TABLE:
            line = frame.f_lineno
            return code.co_firstlineno if line is None else line
        at, lines = self.starts[number]
        index = bisect.bisect_right(at, frame.f_lasti) - 1
        return lines[index] if index >= 0 and frame.f_lasti >= 0 else code.co_firstlineno

    def frame(self, frame):
        number = self.code(frame.f_code)
        key = (number, self.line(frame, number))
        found = self.frames.get(key)
        if found is None:
            found = self.frames[key] = len(self.frame_rows)
            self.frame_rows.append(list(key))
        return found

    def stack(self, frame, outside):
        out = []
        while frame is not None and frame is not outside:
            out.append(self.frame(frame))
            frame = frame.f_back
        return tuple(reversed(out))


def has_no_line(code):
    return hasattr(code, "co_lines") and any(line is None for _, _, line in code.co_lines())


class Recorder(object):
    def __init__(self, outside):
        self.codes, self.stacks, self.outside, self.kinds = Codes(), set(), outside, set()

    def trace(self, frame, event, _):
        if frame.f_code.co_filename == THIS_FILE:
            return None
        if event == "call" and BY_OPCODE:
            frame.f_trace_opcodes = True
        self.kinds.add(event)
        self.stacks.add(self.codes.stack(frame, self.outside))
        return self.trace

    def write(self, file):
        rows = {"version": list(sys.version_info[:3]), "codes": self.codes.rows, "frames": self.codes.frame_rows,
                "stacks": sorted(self.stacks), "events": sorted(self.kinds)}
        with open(file, "w") as f:
            json.dump(rows, f)


def record(work, one_round, file):
    thread_rounds[0] = 3
    recorder = Recorder(sys._getframe())
    quiet = rounds = 0
    while quiet < ENOUGH and rounds < ROUNDS_MAX:
        before = len(recorder.stacks)
        threading.settrace(recorder.trace)
        sys.settrace(recorder.trace)
        work(one_round, range(2))
        sys.settrace(None)
        threading.settrace(None)
        quiet = quiet + 1 if len(recorder.stacks) == before else 0
        rounds += 1
    recorder.write(file)
    print("recorded", len(recorder.stacks), "rounds", rounds, "still new" if quiet < ENOUGH else "")


# ---- the pass that is sampled ----


def cpu_seconds():
    return time.process_time() if hasattr(time, "process_time") else time.clock()


def for_seconds(seconds):
    end = cpu_seconds() + seconds
    while cpu_seconds() < end:
        yield None


def say(*what):
    print(*what)
    sys.stdout.flush()


def frames_of(frame):
    out = []
    while frame is not None:
        code, line = frame.f_code, frame.f_lineno
        out.append([code.co_filename, getattr(code, "co_qualname", code.co_name), code.co_firstlineno if line is None else line])
        frame = frame.f_back
    return out[::-1]


def asking():
    """Says which frames lie outside of work(); waits for a line; no round is run."""
    say("ready", json.dumps(frames_of(sys._getframe().f_back.f_back)))
    sys.stdin.readline()
    return
    yield


def waiting(work, one_round, seconds):
    for steps in (asking(), for_seconds(seconds)):
        work(one_round, steps)
    say("done")
    sys.stdin.readline()


# ---- fixed work ----


def pace(work, one_round):
    """CPU seconds of the fastest of a few rounds: how fast the machine is at this moment. A sample reaches one of them at most."""
    best = 1.0
    for _ in range(5):
        begin = cpu_seconds()
        work(one_round, (None,))
        best = min(best, cpu_seconds() - begin)
    return best


def repeat(work, one_round, rounds, piece_seconds=0.001):
    """For each line that comes the same work; says the CPU seconds it took, and how many paces that was: on a machine shared
    with others the seconds of equal work differ by tenths, the paces by hundredths."""
    work(one_round, range(max(1, rounds // 4)))
    at_once = max(10, int(piece_seconds / pace(work, one_round)))
    say("ready")
    while sys.stdin.readline().strip():
        seconds = paces = 0.0
        before = pace(work, one_round)
        for first in range(0, rounds, at_once):
            begin = cpu_seconds()
            work(one_round, range(min(at_once, rounds - first)))
            taken, after = cpu_seconds() - begin, pace(work, one_round)
            seconds += taken
            paces += 2 * taken / (before + after)
            before = after
        say("%.6f %.3f" % (seconds, paces))


# ---- a sampler that cannot be wrong: the interpreter's own list of frames, while it holds the GIL ----


def watch(work, one_round, file, samples=1500):
    # Long enough for the watcher to note a stack before another thread goes on.
    if hasattr(sys, "setswitchinterval"):
        sys.setswitchinterval(0.01)
    else:
        sys.setcheckinterval(5000)
    counts, stop = {}, [False]
    mine, prefix = [], []

    def look():
        while not prefix:
            time.sleep(0.001)
        mine.append(threading.current_thread().ident)
        taken = 0
        while taken < samples:
            time.sleep(0.0005)
            for thread, frame in sys._current_frames().items():
                if thread not in mine:
                    stack = tuple(tuple(f) for f in frames_of(frame))
                    counts[stack] = counts.get(stack, 0) + 1
                    taken += 1
        stop[0] = True

    def steps():
        prefix.append(frames_of(sys._getframe().f_back.f_back))
        while not stop[0]:
            yield None

    watcher = threading.Thread(target=look)
    watcher.start()
    work(one_round, steps())
    watcher.join()
    with open(file, "w") as f:
        json.dump({"prefix": prefix[0], "stacks": [[list(stack), count] for stack, count in counts.items()]}, f)
