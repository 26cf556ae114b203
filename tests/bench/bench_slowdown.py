# SPDX-License-Identifier: Apache-2.0
"""What a program in Python, Java or JavaScript pays for being sampled: the CPU time of fixed work, in interleaved pairs with and without hearth;
Java also with async-profiler, where ASYNC_PROFILER names its library and there is a jcmd.

The work is done by one process that lives for all pairs (tests/e2e/python/loads.py, Work.java, work.mjs) and says what it took on its main thread
(Node.js: in all); the two halves of a pair follow each other at once, in changing order. Where cores are shared with strangers, the CPU seconds of equal work
differ by a tenth from one second to the next (no hardware counters here that would tell instructions from waiting). So
each millisecond of work is counted in paces: the CPU time of the fastest of five pieces of 10 us made right before and after
it, which a sample does not reach. Pairs are made until the 95 % interval of the mean difference in paces is narrower than
+-0.5 %, 200 at most; that in seconds is printed beside.
"""
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

from measure import HEARTH, HERE, QUICK, ROOT, head, path, row, scratch

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

PAIRS_MIN, PAIRS_MAX, NARROW = 20, 20 if QUICK else 200, 0.5
WORK_SECONDS = 1.0


class Work:
    def __init__(self, command, few):
        """@command: without the number of rounds at its end; @few: rounds enough to time them."""
        self.command = command
        self.process = self.launched(few)
        once = min(self.once()[0] for _ in range(3))
        self.close()
        self.process = self.launched(max(1, round(few * WORK_SECONDS / once)))

    def launched(self, rounds):
        process = subprocess.Popen([*self.command, str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
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


def by_hearth(work):
    session = subprocess.Popen([HEARTH, "record", "-F", "99", "-q", "-o", path("slowdown.pb.gz")])
    time.sleep(0.7)  # its start is no part of what is measured
    taken = work.once()
    session.send_signal(signal.SIGINT)
    session.wait()
    time.sleep(0.1)
    return taken


def by_async_profiler(work):
    def asked(what):
        subprocess.run(["jcmd", str(work.process.pid), "JVMTI.agent_load", os.environ["ASYNC_PROFILER"], what], check=True, capture_output=True)

    asked("start,event=ctimer,interval=10101us")
    taken = work.once()
    asked(f"stop,collapsed,file={path('slowdown.collapsed')}")
    time.sleep(0.1)
    return taken


def interval(changes):
    return 1.96 * statistics.stdev(changes) / math.sqrt(len(changes))


def slowdown(work, sampled):
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


def works():
    """(what, command without the number of rounds, some rounds)."""
    from pythons import installed

    script = os.path.join(ROOT, "tests", "e2e", "python", "loads.py")
    pythons = [p for p in installed() if p.source == "built"] or installed()
    for python in pythons[-1:] if QUICK else [p for p in pythons if p.version in ("3.8", "3.11", "3.13")] or pythons[-1:]:
        for name in ("recursive", "extension"):
            yield f"{python.name}: {name}", python.command([], script, name, "work"), 20
    if shutil.which("javac") and not subprocess.run(["javac", "-d", scratch, os.path.join(HERE, "Work.java")]).returncode:
        yield "Java", ["java", "-cp", scratch, "Work"], 20000
        yield "Java, interpreted", ["java", "-Xint", "-cp", scratch, "Work"], 500
    if shutil.which("node"):
        yield "Node.js", ["node", os.path.join(HERE, "work.mjs")], 20000


def bench_slowdown():
    head(f"Slowdown at 99 Hz: CPU time of fixed work of {WORK_SECONDS} s, interleaved pairs")
    for what, command, few in works():
        peers = [("async-profiler", by_async_profiler)] if what.startswith("Java") and os.environ.get("ASYNC_PROFILER") and shutil.which("jcmd") else []
        work = Work(command, few)
        work.once()
        for who, sampled in [("hearth", by_hearth), *peers]:
            seconds, paces = slowdown(work, sampled)
            mean, half = statistics.mean(paces), interval(paces)
            row(f"{what}: {who}", f"{mean:+.2f} +- {half:.2f}", "%", f"{len(paces)} pairs",
                f"at most {mean + half:.2f}; {'wanted: at most 1. ' if who == 'hearth' else ''}In seconds {statistics.mean(seconds):+.2f} +- {interval(seconds):.2f}")
        work.close()


PARTS = {"slowdown": bench_slowdown}
