# SPDX-License-Identifier: Apache-2.0
"""Rows of the table: what walking stacks by unwind rows costs, alone and beside perf's copied stacks."""
import glob
import os
import shutil
import subprocess
import time

from measure import *
from support import Profile, total


def profile_of(seconds, hz, *options):
    """One session over the whole machine. Returns what it cost and its profile."""
    result = measure([HEARTH, "record", "-d", seconds, "-F", hz, "-q", "-o", path("u.pb.gz"), *options], bpf=True)
    return result, Profile(path("u.pb.gz")) if not result.status else None


def shape(profile):
    """Of an average sample with a user stack: user frames, kernel frames, share that was in the kernel, whole, raw."""
    samples = user = kernel = in_kernel = whole = 0
    for s in profile.samples:
        k = sum(m.startswith("[kernel") for m in s.modules)
        samples += s.count
        user += s.count * (len(s.names) - k)
        kernel += s.count * k
        in_kernel += s.count * (k > 0)
        whole += s.count * (s.end == "complete")
    n = max(samples, 1)
    return user / n, kernel / n, 100 * in_kernel / n, 100 * whole / n, 100 * profile.counter("raw") / n


def ticks_row(what, results, limit, target):
    """BPF time of the sampling programs for each sample. Ticks of the idle task cost next to nothing and count nothing."""
    found = []
    for result, profile in results:
        if profile and total(profile.samples):
            found.append((1e6 * result.tick_seconds / total(profile.samples), *shape(profile)))
    if not found:
        return
    us, user, kernel, in_kernel, whole, raw = (median([f[i] for f in found]) for i in range(6))
    row(what, f"{us:.1f}", "us", f"{us / limit(user):.2f}", f"{target} = {limit(user):.1f} us {spread([f[0] for f in found])}")
    print(f"#   user frames {user:.1f}, whole {whole:.2f} %, raw {raw:.2f} %; with a kernel stack {in_kernel:.1f} %, of {kernel:.1f} frames on average")


def bench_ticks():
    seconds = 5 if QUICK else 20
    head(f"BPF time of a sample, {seconds} s each, all CPUs with the same load")
    deep, runs = deep_program(), max(1, min(RUNS, 3))
    cold = {"python3": (PYTHON_LOAD,), "cc1": (gcc_load(),), "git": (GIT_LOAD,)}
    with bpf_stats():
        with looped(*[f"{deep} 60"] * CPUS):
            warm = [profile_of(seconds, 999) for _ in range(runs)]
            ticks_row("warm: 32 frames without frame pointers, 999 Hz", warm, lambda frames: 10, "at most 10 us")
            slow = [profile_of(seconds, 99) for _ in range(runs)]
            ticks_row("cold: the same at 99 Hz", slow, lambda frames: 4 + 1.2 * frames, "at most 4 + 1.2 a frame")
        for name, commands in cold.items():
            with looped(*commands * CPUS):
                found = [profile_of(seconds, 99) for _ in range(runs)]
            ticks_row(f"cold: {name}, 99 Hz", found, lambda frames: 4 + 1.2 * frames, "at most 4 + 1.2 a frame")
    print("# The kernel's stack is part of the figures: read them beside the share of samples that have one.")


def first_of(*patterns):
    return next((f for p in patterns for f in sorted(glob.glob(p))), None)


def bench_tables():
    head("Unwind rows of a file: from the file to the walker")
    files = {
        "libc": first_of("/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/*/libc.so.6"),
        "libjvm": first_of("/usr/lib/jvm/*/lib/server/libjvm.so", "/opt/*/lib/server/libjvm.so"),
        "cc1": first_of("/usr/lib/gcc/*/*/cc1"),
        "libLLVM": first_of("/usr/lib/x86_64-linux-gnu/libLLVM-*.so*", "/usr/lib/llvm-*/lib/libLLVM*.so*"),
    }
    program = generator("load_table")
    for name, file in files.items():
        if not file:
            print(f"# {name} is not there: left out")
            continue
        ours, theirs, ready, rows, size = [], [], [], 0, 0
        for _ in range(RUNS):
            said = subprocess.run([program, file], capture_output=True, text=True)
            if said.returncode:
                print(f"# {name}: {said.stderr.strip()}")
                break
            cpu, wall, rows, size = map(int, said.stdout.split())
            ours.append(cpu / 1e3)
            ready.append(wall / 1e3)
            theirs.append(1000 * measure(f"readelf -wF {file} > /dev/null 2>&1; true").cpu)
        if not ours:
            continue
        row(f"{name}: readelf -wF", f"{median(theirs):.0f}", "CPU ms")
        row("  its rows into the kernel, thread CPU time", f"{median(ours):.1f}", "CPU ms", f"{median(ours) / median(theirs):.3f}",
            f"{rows} rows, {size / MIB:.1f} MiB {spread(ours)}")
        row("  until they can be walked by", f"{median(ready):.1f}", "ms", f"{median(ready) / median(theirs):.3f}", spread(ready))
    bench_ready()


def bench_ready():
    """Samples that travelled raw because the program's tables were not there yet, as time on its CPU."""
    hz = 999
    for name, command in {"32-deep program": [deep_program(), 3], "python3": ["sh", "-c", f"exec timeout 3 {PYTHON_LOAD}"],
                          "clang": ["sh", "-c", f"cd {ROOT}; for i in 1 2 3; do clang -O2 -D_GNU_SOURCE -I. -Isrc -c -o /dev/null src/model/merge.c; done"],
                          "java": ["java", "-Xint", "-version"]}.items():
        if not shutil.which(command[0]) or (name == "clang" and not shutil.which("clang")):
            print(f"# {name} is not there: left out")
            continue
        found = []
        for _ in range(RUNS):
            # A fresh session knows no file yet.
            result, profile = profile_of(4, hz, "--", *command)
            if profile:
                found.append(1000 * profile.counter("raw") / hz)
        row(f"ready to sample: {name}, CPU time sampled raw before", f"{median(found):.0f}", "ms", "", spread(found))


def bench_dwarf():
    seconds = 10 if QUICK else 60
    head(f"Whole stacks beside perf's copied ones: {seconds} s at 99 Hz, both from the start to names")
    perf_record = ["perf", "record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf", "-F", "99", "-a", "-o", path("perf.data"), "--",
                   "sleep", seconds]
    perf_script = f"perf script --no-inline -i {path('perf.data')} 2>/dev/null > {path('perf.txt')}"
    ours = [HEARTH, "record", "-d", seconds, "-F", 99, "-q", "-o", path("dwarf.folded"), "-o", path("dwarf.pb.gz")]
    if not shutil.which("perf"):
        print("# perf is not there: left out")
        return
    found = {"hearth": [], "perf": []}
    runs = max(1, min(RUNS, 3))
    with bpf_stats():
        for _ in range(runs):
            with looped(gcc_load(), PYTHON_LOAD, f"{deep_program()} 60"):
                found["hearth"].append(measure(ours, bpf=True))
                found["perf"].append(measure(perf_record, perf_script))
            profile = Profile(path("dwarf.pb.gz"))
            with open(path("perf.txt"), errors="replace") as f:
                samples = f.read().split("\n\n")
            stacks = [s for s in samples if s.strip()]
            print(f"# hearth: {total(profile.samples)} samples, {profile.facts.get('complete_share', '?')} of the user stacks whole; "
                  f"perf: {len(stacks)} samples, {os.stat(path('perf.data')).st_size / 1e6:.0f} MB, "
                  f"{100 * sum('_start+' in s or 'clone' in s or 'ret_from_fork' in s for s in stacks) / max(len(stacks), 1):.1f} % reach a root")
    base = median([r.cpu for r in found["perf"]])
    without, cost = [r.cpu for r in found["hearth"]], [r.cpu + r.bpf_seconds for r in found["hearth"]]
    row("perf record --call-graph dwarf + script --no-inline", f"{base:.2f}", "CPU s", "", spread([r.cpu for r in found["perf"]]))
    row("hearth, user + system + BPF", f"{median(cost):.3f}", "CPU s", f"{median(cost) / base:.3f}", f"at most 0.25 {spread(cost)}")
    row("  of it user + system", f"{median(without):.3f}", "CPU s", f"{median(without) / base:.3f}", f"at most 0.20 {spread(without)}")
    memory = [(r.anonymous + r.maps) / MIB for r in found["hearth"]]
    row("  anonymous memory + BPF maps, without rows", f"{median(memory):.1f}", "MiB", "", f"at most 60 {spread(memory)}")
    row("  of it BPF maps", f"{median([r.maps / MIB for r in found['hearth']]):.1f}", "MiB")
    row("perf: anonymous memory, peak", f"{median([r.anonymous / MIB for r in found['perf']]):.1f}", "MiB")


PARTS = {"ticks": bench_ticks, "tables": bench_tables, "dwarf": bench_dwarf}
