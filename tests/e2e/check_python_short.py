#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python3 -c ... that lives for less than 300 ms: its samples have named Python stacks almost from the start."""
import signal
from collections import Counter

from pythons import QUICK_VERSIONS, installed
from python_oracle import LOOP, is_python
from support import *

HZ = 997
RUNS = 20 if QUICK else 100
CODE = ("def leaf(n):\n t = 0\n for i in range(n):\n  t += i * n\n return t\n"
        "def outer():\n for i in range(90):\n  leaf(20000)\nouter()")
NAMES = {"<module>", "outer", "leaf"}

tap = Tap("python_short")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def python_frames(sample):
    return [(n, p[0]) for n, m, p in zip(sample.names, sample.modules, sample.places) if is_python(m)]


def ran_python(sample):
    """The thread was in the interpreter's loop, even if hearth could not see it."""
    return bool(python_frames(sample)) or any(n.startswith(LOOP) for n in sample.names)


def is_named(sample):
    frames = python_frames(sample)
    return bool(frames) and all(name and file for name, file in frames)


def check(python):
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", path("short.pb.gz"), stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    programs, lives = [], []
    for _ in range(RUNS):
        begin = time.monotonic()
        programs.append(start(*python.command([], "-c", CODE)))
        stopped(programs[-1])
        lives.append(time.monotonic() - begin)
    time.sleep(0.5)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    if not tap.ok(recorder.returncode == 0, f"{python.name}: hearth record ends well", said[-300:]):
        return
    profile = Profile(path("short.pb.gz"))
    ran = named = samples = 0
    before, others, misnamed = [], Counter(), Counter()
    for program in programs:
        mine = profile.of(program)
        running = [s for s in mine if ran_python(s)]
        samples += total(mine)
        ran += total(running)
        named += total([s for s in running if is_named(s)])
        # Ticks in the loop before the walker was ready: that many times 1/HZ of CPU time.
        before.append(sum(s.count for s in running if not python_frames(s)) * 1000 / HZ)
        for s in running:
            if not is_named(s):
                others[f"{s.end} {';'.join(s.names)[-200:]}"] += s.count
            strange = [n for n, file in python_frames(s) if file == "<string>" and n not in NAMES]
            misnamed.update({n: s.count for n in strange})
    tap.ok(samples >= RUNS * 30, f"{python.name}: {RUNS} processes are sampled",
           f"{samples} samples, life {1000 * sum(lives) / RUNS:.0f} ms in the mean, {1000 * max(lives):.0f} at most")
    if not tap.ok(named >= 0.96 * ran > 0, f"{python.name}: stacks are named", f"{100 * named / max(ran, 1):.1f} % of {ran} while Python ran"):
        for text, count in others.most_common(4):
            tap.note(f"    {count} times {text}")
    tap.ok(not misnamed, f"{python.name}: no name is wrong", dict(misnamed) or "")
    tap.ok(sum(before) / RUNS <= 10, f"{python.name}: ready soon", f"{sum(before) / RUNS:.1f} ms of running Python code without its frames in the "
           f"mean, {max(before):.0f} at most")


VERSIONS = QUICK_VERSIONS[-1:] if QUICK else ("2.7", "3.8", "3.11", "3.12", "3.13")
pythons = [p for p in installed() if p.source == "built" and p.version in VERSIONS] or installed()[-1:]
pythons = some_of(pythons)
for python in pythons:
    if not only or python.version in only:
        check(python)
tap.finish()
