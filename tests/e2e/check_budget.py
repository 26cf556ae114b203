#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--unwind-memory is never passed: many ELF files take turns, and who is sampled again is whole again within a second.

The files are one program under many build ids: each is a file of its own to the kernel and to hearth. The tables of rows
are counted from outside, by what hearth maps.
"""
import contextlib
import glob
import re
import signal

from known_stacks import is_exact
from support import *

FILES = 150 if QUICK else 300  # 300 have about 27 MB of rows
BUDGET = 8  # MiB
FUNCTIONS = 800
AGAIN = 8 if QUICK else 24
# The constants of the BPF programs are mapped in the same way, and the list of mappings is read in pieces: a table that goes
# and the one that takes its place can both be in it.
SLACK = 128 << 10
KNOWN = [["main", f"function_{FUNCTIONS // 2}", "leaf"]]

tap = Tap("budget")
need(tap, "gcc")
source = path("rotated.c")
sources = os.path.join(HERE, "workloads", "stacks")
with open(source, "w") as f:
    subprocess.run([sys.executable, os.path.join(sources, "rotated.py"), str(FUNCTIONS)], stdout=f, check=True)
subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-fno-stack-protector", "-rdynamic", "-s", "-Wl,--build-id=sha1", "-I", sources, "-o",
                path("rotated"), source], check=True)
with open(path("rotated"), "rb") as f:
    image = f.read()
note = image.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16  # name size, size, NT_GNU_BUILD_ID, name
rows = sum(re.match("[0-9a-f]{16} r", line) is not None for line in run("readelf", "-wF", path("rotated")).stdout.splitlines())
programs = []
for i in range(FILES):
    name = path(f"rotated{i}")
    with open(name, "wb") as f:
        f.write(image[:note] + os.urandom(20) + image[note + 20:])
    os.chmod(name, 0o755)
    programs.append(start(name, 900))
    programs[-1].send_signal(signal.SIGSTOP)


def rows_held(pid):
    """Bytes of all tables of rows a process has in the kernel, and how many: it maps each for reading, behind a page of the
    kernel's own. The ring is mapped twice its size, a power of two, and a page."""
    sizes = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as f:
        for line in f:
            if "bpf-map" in line and " r--s " in line:
                start_, end = (int(x, 16) for x in line.split()[0].split("-"))
                ring = end - start_ - 4096
                if ring < 1 << 17 or ring & (ring - 1):
                    sizes.append(end - start_ + 4096)
    return sum(sizes), len(sizes)


class RowsMeter(threading.Thread):
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.done, self.peak, self.files, self.looks = pid, threading.Event(), 0, 0, 0

    def run(self):
        while not self.done.wait(0.02):
            size, count = rows_held(self.pid)
            self.peak, self.files, self.looks = max(self.peak, size), max(self.files, count), self.looks + 1


def turn(some, seconds):
    """Lets some programs run and stops them again. Returns from when to when."""
    begin = time.time()
    for p in some:
        p.send_signal(signal.SIGCONT)
    time.sleep(seconds)
    for p in some:
        p.send_signal(signal.SIGSTOP)
    return begin, time.time()


recorder = start(HEARTH, "record", "-F", 499, "--window", 1, "--unwind-memory", f"{BUDGET}M", "-o", path("turns.pb.gz"),
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
time.sleep(1.5)
meter = RowsMeter(recorder.pid)
meter.start()
for i in range(0, FILES, 4):
    turn(programs[i:i + 4], 0.4)
again = []
for i in range(0, AGAIN, 2):
    again.append((programs[i:i + 2], *turn(programs[i:i + 2], 3.2)))
meter.done.set()
meter.join()
recorder.send_signal(signal.SIGINT)
said = recorder.communicate(timeout=120)[0]
why = f"exit {recorder.returncode} {said[-300:].strip()}" if recorder.returncode else ""
if not tap.ok(recorder.returncode == 0, "hearth record ends well", why):
    tap.finish()
for p in programs:
    p.kill()
windows = sorted((Profile(f) for f in glob.glob(path("turns_*.pb.gz"))), key=lambda p: p.time_ns)
pids = {p.pid for p in programs}
seen = {s.pid for w in windows for s in w.samples if s.pid in pids}
tap.note(f"{FILES} files of about {rows * 8 / 1e6 * FILES:.1f} MB of rows in all, budget {BUDGET} MiB, {len(windows)} windows")
tap.ok(len(seen) == FILES, "every file's program was sampled", f"{len(seen)} of {FILES}")
tap.ok(meter.files > 8, "rows are in the kernel", f"of at most {meter.files} files at a time, {meter.looks} looks")
tap.ok(meter.peak <= (BUDGET << 20) + SLACK, "the budget is never passed", f"{meter.peak / 2**20:.2f} MiB at most")
last = windows[-1].counters if windows else {}
memory = {k: v for k, v in last.items() if "table" in k or "evict" in k or "unwind" in k}
tap.note(f"the last window says {memory}")
evicted = sum(w.counter("tables_evicted") for w in windows)
tap.ok(evicted >= FILES / 2, "evictions are counted", evicted)
own = [s for w in windows for s in w.samples if s.pid in pids]
tap.note(f"over all turns: {100 * share([s for s in own if s.end == 'complete'], own):.2f} % of {total(own)} stacks are whole")
late = bad = 0
for some, begin, end in again:
    wanted = {p.pid for p in some}
    for w in windows:
        if w.time_ns / 1e9 < begin + 1 or (w.time_ns + w.duration_ns) / 1e9 > end:
            continue
        samples = [s for s in w.samples if s.pid in wanted]
        late += total(samples)
        bad += total([s for s in samples if s.end != "complete" or not is_exact(s, KNOWN)])
tap.ok(late >= 200 and bad <= late / 100, "sampled again after eviction: whole again within 1 s", f"{bad} of {late} are not")
tap.finish()
