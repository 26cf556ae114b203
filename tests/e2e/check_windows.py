#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of a session: they end at multiples of their length from the start on, and no empty file comes last."""
from support import *

WINDOWS = 3 if QUICK else 10

tap = Tap("windows")
need(tap)


def check(what, seconds, wanted):
    folder = path(what.replace(" ", "-"))
    os.mkdir(folder)
    load = start(workload("spin"), seconds + 20)
    record(tap, seconds, "-q", "--window", 1, "-o", os.path.join(folder, "w.pb.gz"))
    load.kill()
    profiles = sorted((Profile(os.path.join(folder, f)) for f in os.listdir(folder)), key=lambda p: p.time_ns)
    lengths = [p.duration_ns / 1e9 for p in profiles]
    grid = [(p.time_ns - profiles[0].time_ns) / 1e9 for p in profiles]
    tap.ok(len(profiles) == wanted, f"{what}: as many files as windows", f"{len(profiles)} of {wanted}")
    tap.ok(all(p.samples for p in profiles), f"{what}: none is empty", [total(p.samples) for p in profiles])
    tap.ok(all(t == round(t) for t in grid) and all(n == round(n) for n in lengths[:-1]), f"{what}: they lie on a grid",
           f"begin {grid}, last {' '.join(f'{n:.3f}' for n in lengths)}")


check("their length divides the session's", WINDOWS, WINDOWS)
check("it does not", WINDOWS + 0.5, WINDOWS + 1)
tap.finish()
