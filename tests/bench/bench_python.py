# SPDX-License-Identifier: Apache-2.0
"""Rows of the table: what the walk of Python frames costs at a tick, its names included."""
import os
import re
import subprocess

from measure import *

TARGET = os.path.join(ROOT, "tests", "walk", "python_target.py")
VERSIONS = ["2.7", "3.8", "3.11", "3.13"]
LINE = re.compile(r"(\S+) frames (\S+) ticks (\d+) median (\d+) mean (\d+) p5 (\d+) p95 (\d+)")


def ticks(load, hz, seconds):
    """Median in us and frames, one for each version; what a read takes."""
    done = subprocess.run([generator("python_ticks"), TARGET, load, str(hz), str(seconds), *VERSIONS], capture_output=True, text=True)
    read = re.search(r"^read (\S+)", done.stdout, re.M)
    return [(v, float(frames), int(median) / 1e3, int(p95) / 1e3)
            for v, frames, count, median, mean, p5, p95 in LINE.findall(done.stdout)], float(read[1]) if read else None


def rows(load, depths, hz, seconds, limit, target):
    for depth in depths:
        found, read = ticks(f"{load}{depth}", hz, seconds)
        for version, frames, us, p95 in found:
            row(f"{load}: {version}, {frames:.0f} frames, {hz} Hz", f"{us:.1f}", "us", f"{us / limit(frames):.2f}",
                f"{target} = {limit(frames):.1f} us (95 %: {p95:.1f})")
        if read:
            print(f"#   one read of a process takes {read:.0f} ns here; a frame needs two, but what lies near each other shares one")


def bench_python():
    seconds = 2 if QUICK else 10
    head("BPF time of the walk of Python frames alone, functions all different, names included: medians")
    rows("warm", [5, 20, 60, 120], 999, seconds, lambda n: 1 + 0.08 * n, "at most 1 + 0.08 a frame")
    # Code objects of one module lie near each other, those of others do not.
    rows("far", [20, 60], 999, seconds, lambda n: 1 + 0.08 * n, "at most 1 + 0.08 a frame")
    rows("cold", [20, 60], 99, 2 * seconds, lambda n: 12 + 0.2 * n, "at most 12 + 0.2 a frame")


PARTS = {"python": bench_python}
