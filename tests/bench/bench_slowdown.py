# SPDX-License-Identifier: Apache-2.0
"""What a Python program pays for being sampled: the CPU time of fixed work, in interleaved pairs with and without hearth.

The work is done by one process that lives for all pairs (tests/e2e/python/loads.py) and says what it took; the two halves
of a pair follow each other at once, in changing order. Pairs are made until the 95 % interval of the mean difference is
narrower than +-0.5 %, 200 at most.
"""
import math
import os
import signal
import statistics
import subprocess
import sys
import time

from measure import HEARTH, QUICK, ROOT, head, path, row

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

PAIRS_MIN, PAIRS_MAX, NARROW = 8, 20 if QUICK else 200, 0.5
WORK_SECONDS = 0.7


class Work:
    def __init__(self, python, name):
        script = os.path.join(ROOT, "tests", "e2e", "python", "loads.py")
        self.command = [*python.command([], script, name, "work"), "ROUNDS"]
        self.process = self.launched(20)
        once = min(self.seconds() for _ in range(3))
        self.close()
        self.process = self.launched(max(1, round(20 * WORK_SECONDS / once)))

    def launched(self, rounds):
        process = subprocess.Popen([*self.command[:-1], str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1"})
        process.stdout.readline()
        return process

    def seconds(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sampled(work):
    session = subprocess.Popen([HEARTH, "record", "-F", "99", "-q", "-o", path("slowdown.pb.gz")])
    time.sleep(0.7)  # its start is no part of what is measured
    taken = work.seconds()
    session.send_signal(signal.SIGINT)
    session.wait()
    time.sleep(0.1)
    return taken


def interval(changes):
    return 1.96 * statistics.stdev(changes) / math.sqrt(len(changes))


def slowdown(work):
    """Per cent of CPU time more, half of the 95 % interval, pairs."""
    changes = []
    while len(changes) < PAIRS_MAX and (len(changes) < PAIRS_MIN or interval(changes) > NARROW):
        if len(changes) % 2:
            bare, under = work.seconds(), sampled(work)
        else:
            under, bare = sampled(work), work.seconds()
        changes.append(100 * math.log(under / bare))
    return statistics.mean(changes), interval(changes), len(changes)


def bench_slowdown():
    from pythons import installed

    head(f"Slowdown of a Python program at 99 Hz: CPU time of fixed work of {WORK_SECONDS} s, interleaved pairs")
    pythons = [p for p in installed() if p.source == "built"] or installed()
    for python in pythons[-1:] if QUICK else [p for p in pythons if p.version in ("3.8", "3.11", "3.13")] or pythons[-1:]:
        for name in ("recursive", "extension"):
            work = Work(python, name)
            work.seconds()
            mean, half, pairs = slowdown(work)
            work.close()
            row(f"{python.name}: {name}", f"{mean:+.2f} +- {half:.2f}", "%", f"{pairs} pairs",
                f"at most {mean + half:.2f}; wanted: at most 1")


PARTS = {"slowdown": bench_slowdown}
