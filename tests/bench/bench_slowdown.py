# SPDX-License-Identifier: Apache-2.0
"""What a Python program pays for being sampled: the CPU time of fixed work, in interleaved pairs with and without hearth.

The work is done by one process that lives for all pairs (tests/e2e/python/loads.py) and says what it took; the two halves
of a pair follow each other at once, in changing order. Where cores are shared with strangers, the CPU seconds of equal work
differ by a tenth from one second to the next (no hardware counters here that would tell instructions from waiting). So
each millisecond of work is counted in paces: the CPU time of the fastest of five pieces of 10 us made right before and after
it, which a sample does not reach. Pairs are made until the 95 % interval of the mean difference in paces is narrower than
+-0.5 %, 200 at most; that in seconds is printed beside.
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

PAIRS_MIN, PAIRS_MAX, NARROW = 20, 20 if QUICK else 200, 0.5
WORK_SECONDS = 1.0


class Work:
    def __init__(self, python, name):
        script = os.path.join(ROOT, "tests", "e2e", "python", "loads.py")
        self.command = [*python.command([], script, name, "work"), "ROUNDS"]
        self.process = self.launched(20)
        once = min(self.once()[0] for _ in range(3))
        self.close()
        self.process = self.launched(max(1, round(20 * WORK_SECONDS / once)))

    def launched(self, rounds):
        process = subprocess.Popen([*self.command[:-1], str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1"})
        process.stdout.readline()
        return process

    def once(self):
        """CPU seconds, paces."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sampled(work):
    session = subprocess.Popen([HEARTH, "record", "-F", "99", "-q", "-o", path("slowdown.pb.gz")])
    time.sleep(0.7)  # its start is no part of what is measured
    taken = work.once()
    session.send_signal(signal.SIGINT)
    session.wait()
    time.sleep(0.1)
    return taken


def interval(changes):
    return 1.96 * statistics.stdev(changes) / math.sqrt(len(changes))


def slowdown(work):
    """Per cent more of each pair: in seconds, in paces."""
    seconds, paces = [], []
    while len(paces) < PAIRS_MAX and (len(paces) < PAIRS_MIN or interval(paces) > NARROW):
        if len(paces) % 2:
            bare, under = work.once(), sampled(work)
        else:
            under, bare = sampled(work), work.once()
        seconds.append(100 * math.log(under[0] / bare[0]))
        paces.append(100 * math.log(under[1] / bare[1]))
    return seconds, paces


def bench_slowdown():
    from pythons import installed

    head(f"Slowdown of a Python program at 99 Hz: CPU time of fixed work of {WORK_SECONDS} s, interleaved pairs")
    pythons = [p for p in installed() if p.source == "built"] or installed()
    for python in pythons[-1:] if QUICK else [p for p in pythons if p.version in ("3.8", "3.11", "3.13")] or pythons[-1:]:
        for name in ("recursive", "extension"):
            work = Work(python, name)
            work.once()
            seconds, paces = slowdown(work)
            work.close()
            mean, half = statistics.mean(paces), interval(paces)
            row(f"{python.name}: {name}", f"{mean:+.2f} +- {half:.2f}", "%", f"{len(paces)} pairs",
                f"at most {mean + half:.2f}; wanted: at most 1. In seconds {statistics.mean(seconds):+.2f} +- {interval(seconds):.2f}")


PARTS = {"slowdown": bench_slowdown}
