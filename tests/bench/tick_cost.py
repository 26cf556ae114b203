#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""BPF time of a tick for several builds at once: tick_cost.py [--runs N] [--load NAME] HEARTH...

All builds sample the same load at 99 Hz at the same time, so what the load does and what the machine's neighbours do is
the same for each. The order in which they start changes from run to run. Loads: mixed, gcc, python, node, deep. Needs root.
"""
import os
import subprocess
import sys
import time

from measure import *
from bench_peer import mixed_load

SECONDS = 10
SETTLE = 4  # until rows are loaded
LOADS = {"mixed": lambda: mixed_load(), "gcc": lambda: [gcc_load()] * CPUS, "python": lambda: [PYTHON_LOAD] * CPUS,
         "node": lambda: [NODE_LOAD] * CPUS, "deep": lambda: [f"{deep_program()} 60"] * CPUS}


def together(programs):
    """One run: microseconds of a tick of each."""
    started = []
    for number, program in enumerate(programs):
        started.append(start(program, "record", "-F", 99, "-q", "-o", path(f"{number}.pb.gz")))
        time.sleep(0.31)  # their ticks do not come together
    time.sleep(SETTLE)
    before = [ticks(p.pid) for p in started]
    time.sleep(SECONDS)
    after = [ticks(p.pid) for p in started]
    for p in started:
        p.send_signal(2)
        p.wait()
    return {program: (b[0] - a[0]) / max(b[1] - a[1], 1) / 1e3 for program, a, b in zip(programs, before, after)}


def main():
    load = sys.argv[sys.argv.index("--load") + 1] if "--load" in sys.argv else "mixed"
    programs = [a for a in sys.argv[1:] if os.access(a, os.X_OK)]
    if not programs or load not in LOADS:
        print(__doc__)
        return 2
    found = {p: [] for p in programs}
    with bpf_stats(), looped(*LOADS[load]()):
        for turn in range(RUNS):
            for program, us in together(programs if turn % 2 == 0 else programs[::-1]).items():
                found[program].append(us)
    head(f"BPF time of a tick, {load}, all at once")
    for program, us in found.items():
        row(program[-58:], f"{median(us):.1f}", "us", ratio_of(median(us), median(found[programs[0]])), spread(us))
    return 0


sys.exit(main())
