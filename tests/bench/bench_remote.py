# SPDX-License-Identifier: Apache-2.0
"""Rows of the table: Python read from outside, beside py-spy.

PY_SPY names the program of that name (pip install --target DIR py-spy: DIR/bin/py-spy; compared with: 0.4.3).
"""
import os
import sys
import time

from measure import *

PY_SPY = os.environ.get("PY_SPY", "")
PYTHON = os.environ.get("BENCH_PYTHON", sys.executable)
DEEP = """
import threading
def down(n):
    if n:
        return down(n - 1)
    while True:
        sum(range(50))
for _ in range(%d):
    threading.Thread(target=down, args=(%d,), daemon=True).start()
down(%d)
"""


def program(threads, frames):
    """Runs on the first CPU; its reader runs on the last one."""
    return start("taskset", "-c", "0", PYTHON, "-c", DEEP % (threads - 1, frames - 4, frames - 4))


def pinned(*command):
    return ["taskset", "-c", str((os.cpu_count() or 1) - 1), *command]


def samples_of(folded):
    if not os.path.exists(folded):
        return 0
    with open(folded, errors="replace") as f:
        return sum(int(line.rpartition(" ")[2]) for line in f if line.rpartition(" ")[2].strip().isdigit())


def per_look(command, out, looks):
    """CPU time for a look, and samples. Where the program does not have its CPU for itself, hearth takes fewer samples than it looks;
    py-spy takes one at each look."""
    found, samples = [], 0
    for _ in range(RUNS):
        if os.path.exists(out):
            os.unlink(out)
        measured = measure(pinned(*command))
        found.append(1e6 * measured.cpu / looks)
        samples = samples_of(out)
    print(f"# {os.path.basename(command[0])}: {samples} samples of {looks} looks")
    return found


def bench_remote():
    seconds = 4 if QUICK else 10
    head(f"Python from outside: {seconds} s at 500 Hz, one thread of 20 frames, CPU time for a look")
    target = program(1, 20)
    time.sleep(0.5)
    out = path("remote.folded")
    ours = per_look([HEARTH, "record", "--sampler", "remote", "-q", "-F", 500, "-d", seconds, "-p", target.pid, "-o", out], out, 500 * seconds)
    base = 0
    for name, options in ("py-spy", []), ("py-spy --nonblocking", ["--nonblocking"]):
        if not PY_SPY:
            print(f"# {name}: PY_SPY names no program")
            continue
        theirs = per_look([PY_SPY, "record", "-r", 500, "-d", seconds, "-f", "raw", "-o", path("spy.raw"), "-p", target.pid, *options],
                          path("spy.raw"), 500 * seconds)
        base = base or median(theirs)
        row(name, f"{median(theirs):.0f}", "us", "", spread(theirs))
    row("hearth record --sampler remote", f"{median(ours):.0f}", "us", ratio_of(median(ours), base), "at most 0.33 of py-spy " + spread(ours))
    stop([target])
    bench_threads(seconds)


def bench_threads(seconds):
    head(f"Python from outside: {seconds} s at 99 Hz, 20 threads of 10 frames that want to run")
    target = program(20, 10)
    time.sleep(0.5)
    for name, options in ("those that run", []), ("all 20 at each look (--idle)", ["--idle"]):
        command = [HEARTH, "record", "--sampler", "remote", "-q", "-F", 99, "-d", seconds, "-p", target.pid, "-o", path("threads.folded"), *options]
        share = [100 * measure(pinned(*command)).cpu / seconds for _ in range(RUNS)]
        row(name, f"{median(share):.2f}", "% CPU", f"{median(share) / 5:.2f}", "at most 5 % of a CPU " + spread(share))
    stop([target])


PARTS = {"remote": bench_remote}
