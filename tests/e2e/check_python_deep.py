#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Deep recursion: a record keeps as many Python frames in versions with native frames for each of them as in those without."""
import pythons
from support import *

VERSIONS = ["3.8"] if QUICK else ["2.7", "3.6", "3.8", "3.10", "3.11", "3.12", "3.13"]
LEAST = 990  # 1,024 frames of a record, less the innermost native and kernel frames
LOAD = """
import sys, threading, time
sys.setrecursionlimit(20000)
threading.stack_size(512 << 20)
def down(n):
    if n:
        return down(n - 1)
    end = time.time() + 30
    print("ready"); sys.stdout.flush()
    while time.time() < end:
        sum([i for i in range(1000)])
t = threading.Thread(target=down, args=(5000,))
t.start()
t.join()
"""

tap = Tap("python_deep")
need(tap)
for python in pythons.everything(tap, VERSIONS):
    load = start(python.program, "-c", LOAD, stdout=subprocess.PIPE, text=True)
    load.stdout.readline()
    record(tap, 3, "-q", "-F", 99, "-p", load.pid, "-o", path("deep.pb.gz"))
    load.kill()
    samples = [s for s in Profile(path("deep.pb.gz")).of(load) if s.end != "cut:runtime-not-ready"]
    frames = sorted(n for s in samples for n in [sum(name.endswith("down") for name in s.names)] * s.count)
    tap.ok(len(frames) >= 15 and frames[len(frames) // 20] >= LEAST, f"{python.name}: a recursion 5,000 deep keeps {LEAST} Python frames",
           f"{len(frames)} samples, {frames[len(frames) // 20] if frames else 0} at the twentieth")
    tap.ok(all(s.end != "complete" for s in samples), f"{python.name}: and says that it is cut")
tap.finish()
