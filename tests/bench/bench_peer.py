# SPDX-License-Identifier: Apache-2.0
"""Rows of the table: hearth beside OpenTelemetry's eBPF profiler, under the same loads in turns.

OTEL_PROFILER names a build of the Go module go.opentelemetry.io/ebpf-profiler (compared with: v0.0.202633; where
RLIMIT_MEMLOCK cannot be raised its rlimit.MaximizeMemlock has to tolerate that). Needs root, node and tracefs, which is
mounted for the time of the run where it is not.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import otlp_profiles
from measure import *
from support import Profile, total

TRACEFS = "/sys/kernel/tracing"
PYTHON_SHORT = "/usr/bin/python3 -S -c 0"
OURS = {"hearth_rows", "walks", "tables", "mappings", "spaces", "seen", "ring", "misses", "pids", "cgroups", "counters", "waits", "waiting",
        "sampler_.rodata", "sampler_.bss", "sampler_bpf.rod", "sampler_bpf.bss"}
PEER = os.environ.get("OTEL_PROFILER", "")


@contextlib.contextmanager
def tracefs():
    mounted = os.path.exists(os.path.join(TRACEFS, "events"))
    if not mounted:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], check=True)
    try:
        yield
    finally:
        if not mounted:
            subprocess.run(["umount", TRACEFS], check=False)


def resident(pid):
    """Bytes of resident memory without pages of BPF maps, and the size of the tables of rows among those: hearth maps each
    of them for reading, behind a page of the kernel's own; the ring is mapped twice its size, a power of two, and a page."""
    kib = rows = size = 0
    is_map = False
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            if re.match("[0-9a-f]+-", line):
                is_map = "bpf-map" in line or "bpf_ring" in line
                size = -int.__sub__(*(int(x, 16) for x in line.split()[0].split("-")))
                ring = size - 4096
                if is_map and " r--s " in line and (ring < 1 << 17 or ring & (ring - 1)):
                    rows += size + 4096
            elif line.startswith("Rss:") and not is_map:
                kib += int(line.split()[1])
    return kib * 1024, rows


def peer_maps():
    """Maps of the peer: {id: bytes}. Its inner maps need no descriptor, so descriptors do not show all; everything that is not
    called like a map of ours is its."""
    shown = subprocess.run(["bpftool", "-j", "map", "show"], capture_output=True, text=True)
    return {m["id"]: m.get("bytes_memlock", 0) for m in json.loads(shown.stdout or "[]") if m.get("name", "") not in OURS}


class Tool:
    """One profiler in the group: what it has used at any time."""

    def __init__(self, command, **options):
        self.maps_before = peer_maps()
        self.base = group.seconds()
        self.begin = time.monotonic()
        self.began_wall = time.time()
        self.programs = {}
        self.log = open(path("tool.log"), "w")
        self.process = subprocess.Popen([str(c) for c in command], preexec_fn=group.enter, stdout=self.log, stderr=subprocess.STDOUT,
                                        **options)
        children.append(self.process)

    def wait_until(self, seconds):
        time.sleep(max(0, self.begin + seconds - time.monotonic()))

    def look(self):
        """(CPU seconds, BPF seconds, seconds and runs of the sampling programs) so far."""
        with contextlib.suppress(OSError):
            self.programs.update(descriptors(self.process.pid)[0])
        every = self.programs.values()
        return (group.seconds() - self.base, sum(p[1] for p in every) / 1e9, sum(p[1] for p in every if p[0]) / 1e9,
                sum(p[2] for p in every if p[0]))

    def memory(self, is_peer):
        pages, rows = resident(self.process.pid)
        if is_peer:
            return pages, sum(size for number, size in peer_maps().items() if number not in self.maps_before)
        return pages, rows + sum(descriptors(self.process.pid)[1].values())

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        if self.process.returncode not in (0, -signal.SIGINT):
            with open(path("tool.log")) as f:
                print(f"# ended with {self.process.returncode}: {f.read()[-400:]}")


def hearth_command(hz):
    # The peer reports every 5 s, too. What was met for the first time is named in the first windows.
    return [HEARTH, "record", "-F", hz, "-q", "--window", "5s", "-o", path("peer.pb.gz")]


class Receiver:
    """Where the peer sends to. Outside of the group: it is no part of the peer."""

    def __enter__(self):
        self.file = path("peer.otlp")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.file)
        self.node = subprocess.Popen(["node", os.path.join(HERE, "otlp_receiver.mjs"), self.file], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        children.append(self.node)
        self.port = int(self.node.stdout.readline())
        return self

    def command(self, hz):
        return [PEER, "-collection-agent", f"127.0.0.1:{self.port}", "-disable-tls", "-no-kernel-version-check", "-samples-per-second", hz,
                "-send-error-frames"]

    def __exit__(self, *_):
        self.node.stdin.close()
        self.node.wait()


class Run:
    """What one tool used: in its first 10 s, from then on, and what it saw."""


def observe(command, seconds):
    r = Run()
    tool = Tool(command)
    tool.wait_until(10)
    first = tool.look()
    tool.wait_until(10 + seconds)
    last = tool.look()
    r.resident, r.maps = tool.memory(command[0] == PEER)
    tool.end()
    r.first, r.began = first[0], tool.began_wall
    r.steady, r.bpf = last[0] - first[0], last[1] - first[1]
    r.us = 1e6 * (last[2] - first[2]) / max(last[3] - first[3], 1)
    r.ticks = last[3]
    return r


def hearth_windows():
    folder = scratch
    files = [os.path.join(folder, f) for f in os.listdir(folder) if f.startswith("peer_") and f.endswith(".pb.gz")]
    profiles = [Profile(f) for f in files]
    for f in files:
        os.unlink(f)
    return profiles


def hearth_stacks(profiles):
    """[(comm, count, whole, guessed, proven root)] over all windows."""
    found = []
    for p in profiles:
        for s in p.samples:
            guessed = s.end == "guessed"
            found.append((s.labels.get("comm", ""), s.count, s.end == "complete", guessed, guessed or s.end == "complete"))
    return found


def peer_stacks():
    """The same of the peer, and the seconds between its first and last sample."""
    samples = otlp_profiles.read(path("peer.otlp")) if os.path.exists(path("peer.otlp")) else []
    times = [t for s in samples for t in s.times]
    span = (max(times) - min(times)) / 1e9 if times else 0
    return [(s.executable or s.comm, len(s.times), s.whole, False, s.whole) for s in samples], span


KINDS = {"gcc": ("cc1", "as", "gcc", "x86_64-linux-gn"), "python": ("python3", "python3.11"), "node": ("node",), "32-deep": ("many32",)}


# Of hearth's stacks, guessed ones are no whole ones. In all: of the load's programs together.
TARGETS = {"node": "at least 99 %", "in all": "at least 99.7 %, and not below the peer's"}


def whole_rows(what, stacks):
    """Returns the share of whole stacks in all, in percent; None: there are no samples."""
    share = None
    for kind, comms in {**KINDS, "in all": [c for comms in KINDS.values() for c in comms]}.items():
        own = [s for s in stacks if s[0] in comms]
        count = sum(s[1] for s in own)
        if not count:
            print(f"# {what}: no sample of {kind}")
            continue
        whole, guessed, roots = (sum(s[1] for s in own if s[i]) for i in (2, 3, 4))
        share = 100 * whole / count
        target = f"{TARGETS.get(kind, 'at least 99.9 %')} " if what == "hearth" else ""
        row(f"{what}: {kind}, whole", f"{share:.2f}", "%", "", f"{target}of {count}; guessed {100 * guessed / count:.2f} %; "
            f"at a proven root, guessed frames or not, {100 * roots / count:.2f} %")
    return share


def ratio_rows(ours, theirs, what, pick, unit, limit, scale=1.0):
    a, b = median([pick(r) * scale for r in ours]), median([pick(r) * scale for r in theirs])
    row(f"{what}: peer", f"{b:.2f}", unit, "", spread([pick(r) * scale for r in theirs]))
    row(f"{what}: hearth", f"{a:.2f}", unit, ratio_of(a, b), f"at most {limit} {spread([pick(r) * scale for r in ours])}")


def samples_rows(ours, theirs, hz):
    """Between its first and its last sample a tool should have one for each tick of a busy CPU."""
    for what, r in (("peer", theirs), ("hearth", ours)):
        expected = r.span * hz * CPUS
        row(f"samples of {what}, beside all ticks of busy CPUs", str(r.samples), "", ratio_of(r.samples, expected),
            f"{expected:.0f} in {r.span:.1f} s; {r.lost} lost and counted")


def mixed_load():
    return (gcc_load(), PYTHON_LOAD, NODE_LOAD, f"{deep_program()} 60")


def compare(hz, seconds, runs):
    """Both tools in turns under what runs already, or hearth alone where there is no peer. Returns their runs and the last stacks of each."""
    ours, theirs, windows, stacks = [], [], [], []
    for _ in range(runs):
        hearth_windows()
        ours.append(observe(hearth_command(hz), seconds))
        windows = hearth_windows()
        ours[-1].samples = sum(total(p.samples) for p in windows)
        ours[-1].lost, ours[-1].span = sum(p.lost for p in windows), sum(p.duration_ns for p in windows) / 1e9
        if not PEER:
            continue
        with Receiver() as receiver:
            theirs.append(observe(receiver.command(hz), seconds))
            time.sleep(1)
        stacks, theirs[-1].span = peer_stacks()
        theirs[-1].samples, theirs[-1].lost = sum(s[1] for s in stacks), 0
    return ours, theirs, windows, stacks


def missing():
    if PEER and not os.access(PEER, os.X_OK):
        return "OTEL_PROFILER names no program"
    for tool in ("node", "bpftool", "python3"):
        if not shutil.which(tool):
            return f"{tool} is not there"
    return None


def bench_peer():
    seconds = 8 if QUICK else 30
    runs = max(1, min(RUNS, 3))
    head(f"Beside OpenTelemetry's eBPF profiler: 10 s and {seconds} s of steady load, CPUs busy, 100 sleepers")
    if missing():
        print(f"# {missing()}: left out")
        return
    sleepers = [start(os.path.join(BUILD, "asleep"), 3000, 100)]
    try:
        with tracefs(), bpf_stats():
            with looped(*mixed_load()):
                ours, theirs, windows, stacks = compare(99, seconds, runs)
            if not PEER:
                print("# OTEL_PROFILER is not set: hearth alone")
                whole_rows("hearth", hearth_stacks(windows))
                return
            ratio_rows(ours, theirs, f"{seconds} s steady, user + system", lambda r: r.steady, "CPU s", 0.33)
            ratio_rows(ours, theirs, "first 10 s, user + system", lambda r: r.first, "CPU s", 0.33)
            ratio_rows(ours, theirs, "BPF time of a tick", lambda r: r.us, "us", 0.7)
            ratio_rows(ours, theirs, "resident memory + BPF maps", lambda r: r.resident + r.maps, "MiB", 0.5, 1 / MIB)
            ratio_rows(ours, theirs, "  of it BPF maps", lambda r: r.maps, "MiB", "-", 1 / MIB)
            samples_rows(ours[-1], theirs[-1], 99)
            shares = whole_rows("hearth", hearth_stacks(windows)), whole_rows("peer", stacks)
            if None not in shares:
                row("whole in all, beside the peer", f"{shares[0] - shares[1]:+.2f}", "points", "", "at least 0")
            bench_churn(seconds, runs)
    finally:
        stop(sleepers)


def bench_churn(seconds, runs):
    """About 65 processes end each second; 20 Hz."""
    nothing = os.path.join(BUILD, "nothing")
    churn = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do {nothing}; sleep 0.015; done; for i in 1 2 3 4; do {PYTHON_SHORT}; done"
    exits = exits_counted()
    with looped(churn, f"{deep_program()} 60", f"{deep_program()} 60"):
        begin = time.monotonic()
        ours, theirs, windows, _ = compare(20, seconds, runs)
        took = time.monotonic() - begin
    rate = (exits_counted() - exits) / took
    print(f"# churn: {rate:.0f} forks a second")
    ratio_rows(ours, theirs, f"churn at 20 Hz, {seconds} s, user + system", lambda r: r.steady, "CPU s", 0.33)
    samples_rows(ours[-1], theirs[-1], 20)


def exits_counted():
    with open("/proc/stat") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("processes"))


PARTS = {"peer": bench_peer}
