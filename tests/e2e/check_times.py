#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples with times: of a program that burns CPU in the second half of each second, in files and in the store."""
import ctypes
import glob
import json
import os
import signal
import sqlite3
import sys
import time

from collector import free_port
from support import HEARTH, QUICK, Profile, Tap, need, path, record, run, start, total, varint

SECONDS = 4 if QUICK else 12
STEP_NS = 20_000_000
SECOND_NS = 1_000_000_000
HALVES = """
import time

end = time.time() + 120
while time.time() < end:
    now = time.time()
    if now % 1 < 0.5:
        time.sleep(0.5 - now % 1)
    while time.time() % 1 >= 0.5:
        pass
"""

tap = Tap("times")
need(tap)


# --- the store's files, read without any code of the project (docs/formats/store.md) ---


def expanded(blob):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = zstd.ZSTD_getFrameContentSize(blob, ctypes.c_size_t(len(blob)))
    out = ctypes.create_string_buffer(max(size, 1))
    if zstd.ZSTD_decompress(out, ctypes.c_size_t(size), blob, ctypes.c_size_t(len(blob))) != size:
        raise ValueError("a frame of another size")
    return out.raw[:size]


def numbers(data, at, count):
    out = []
    for _ in range(count):
        value, at = varint(data, at)
        out.append(value)
    return out, at


def packed(data):
    """[(time in ns or None, first column's value)] of a packed profile."""
    head, at = varint(data, 0)
    steps = head == 1
    if steps:
        head, at = varint(data, at)
    rows = head >> 1
    keys, at = numbers(data, at, rows)
    times = [None] * rows
    if steps:
        step, at = varint(data, at)
        low, at = data[at:at + rows], at + rows
        high, at = numbers(data, at, rows)
        last = 0
        for i in range(rows):
            last = 0 if keys[i] else last
            more = high[i] << 8 | low[i]
            if more:
                last += more - 1
                times[i] = last * step
    elif head & 1:
        raw, at = numbers(data, at, rows)
        times = [t - 1 if t else None for t in raw]
    form, at = data[at], at + 1
    if form == 3:
        value, at = varint(data, at)
        return [(t, value >> 1) for t in times]
    if form:
        raise ValueError(f"a first column of form {form}")
    values, at = numbers(data, at, rows)
    return list(zip(times, values))


def stored(folder, service):
    """[(window's start, its rows)]: of all open days."""
    out = []
    for file in glob.glob(os.path.join(folder, "[0-9]*.db")):
        with sqlite3.connect(file) as db:
            out += [(start, packed(expanded(data))) for start, data in db.execute(
                "SELECT profile.t, profile.data FROM profile JOIN series ON series.id = profile.series "
                "JOIN service ON service.id = series.service WHERE service.name = ? AND profile.form = 0", (service.encode(),))]
    return out


# --- what is judged ---


def judge(what, moments):
    """@moments: [(ns since 1970 or None, samples)]. A step begins up to 20 ms before its samples."""
    count = sum(n for _, n in moments)
    late = sum(n for t, n in moments if t is not None and (t + STEP_NS) % SECOND_NS >= SECOND_NS // 2)
    steps = {t // SECOND_NS for t, _ in moments if t is not None}
    tap.ok(count and late >= 0.95 * count, f"{what}: at least 95 % lie in the second half of their seconds",
           f"{late} of {count}")
    tap.ok(len(steps) >= SECONDS - 1, f"{what}: in all seconds", len(steps))


script = path("halves.py")
with open(script, "w", encoding="utf-8") as f:
    f.write(HALVES)
load = start(sys.executable, script)
time.sleep(0.5)

# Files
timeline, plain = path("a.profile.json"), path("a.pb.gz")
record(tap, SECONDS, "-p", load.pid, "-q", "--sample-times", "-o", timeline, "-o", plain)
with open(timeline, encoding="utf-8") as f:
    firefox = json.load(f)
begin = firefox["meta"]["startTime"] * 1e6
moments = []
for thread in firefox["threads"]:
    samples = thread["samples"]
    moments += [(round(begin + t * 1e6), round(w / 1000 * 99)) for t, w in zip(samples["time"], samples["weight"])]
judge("the Firefox Profiler's file", moments)
profile = Profile(plain)
tap.ok(sum(n for _, n in moments) == total(profile.samples), "pprof has as many samples", total(profile.samples))
tap.ok(len(profile.samples) <= len(moments), "and no row for each moment",
       f"{len(profile.samples)} rows, {len(moments)} moments")
tap.ok(profile.counters.get("untimed_samples") == 0, "no sample is without its time", profile.counters.get("untimed_samples"))

# The store
for options, timed in ((), True), (("--no-sample-times",), False):
    folder = path("up-timed" if timed else "up-plain")
    up = start(HEARTH, "up", "--addr", f"127.0.0.1:{free_port()}", "--data-dir", folder, "--window", "2s", "--no-table",
               "--duration", f"{SECONDS if timed else 3}s", *options, stderr=open(path("up.log"), "ab"))
    up.wait(timeout=SECONDS + 60)
    tap.ok(up.returncode == 0, f"hearth up {' '.join(options)} ends well", up.returncode)
    profiles = stored(folder, "halves.py")
    tap.ok(len(profiles) >= 1, "has profiles of the program", len(profiles))
    if timed:
        judge("the store", [(None if t is None else at + t, n) for at, rows in profiles for t, n in rows])
    else:
        tap.ok(all(t is None for _, rows in profiles for t, _ in rows), "its samples have no times")
    exported = run(HEARTH, "store", "export", "--data-dir", folder, "--service", "halves.py", "-o", folder)
    files = glob.glob(os.path.join(folder, "cpu-*"))
    tap.ok(exported.returncode == 0 and sum(total(Profile(f).samples) for f in files) ==
           sum(n for _, rows in profiles for _, n in rows), "exported files have the same totals", len(files))
load.send_signal(signal.SIGKILL)
tap.finish()
