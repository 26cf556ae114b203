# SPDX-License-Identifier: Apache-2.0
"""Java beside async-profiler, in the same processes at the same time, and many JVMs at once.

ASYNC_PROFILER names its library (Maven's tools.profiler:async-profiler has it): the JVM loads it as it starts.
"""
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter

from measure import *

HZ = 499
SECONDS = 15 if QUICK else 40
LARGE, NEAR = 2, 3  # per cent: which methods are compared, and how near they are wanted
METHOD = re.compile(r"(?:[\w$]+/)*[A-Z][\w$.+]*(?:/0x[0-9a-f]+)?\.[\w$<>]+")  # com/acme/Db.get; no libz.so.1, no stub
JVMS = argument("--jvms", 30 if QUICK else 300)
TICKS_HZ = 99


def masked(name):
    """Without what tells hidden classes of one run from those of another."""
    return re.sub(r"\.0x[0-9a-f]+|/0x[0-9a-f]+|(?<=Lambda)[$/]\d+", "", name)


def of_async_profiler(file):
    """{method: samples in which it is the leaf}. What the JVM and libraries do has no method of Java at its leaf, nor has what it does not know."""
    leaves = Counter()
    with open(file, encoding="utf-8") as f:
        for line in f:
            stack, _, count = line.rpartition(" ")
            leaf = stack.rpartition(";")[2]
            if METHOD.fullmatch(leaf):
                leaves[masked(leaf.replace("/", "."))] += int(count)
    return leaves


def of_hearth(file, pid):
    """The same. What the kernel does is its caller's: async-profiler's clock sees no kernel."""
    from support import Profile

    leaves = Counter()
    for s in Profile(file).samples:
        user = [(n, m) for n, m in zip(s.names, s.modules) if "kernel" not in m] if s.pid == pid else []
        if user and user[-1][1] == "[java]":
            leaves[masked(user[-1][0].partition("(")[0])] += s.count
    return leaves


def compare(version, home, load, options, program, folder):
    theirs, ours = path("theirs.collapsed"), path("ours.pb.gz")
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", ours)
    time.sleep(1)
    agent = f"-agentpath:{os.environ['ASYNC_PROFILER']}=start,event=ctimer,interval={10**9 // HZ},file={theirs},collapsed,timeout={SECONDS}"
    process = start(f"{home}/bin/java", agent, "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints", *options, "-cp", folder, *program)
    time.sleep(SECONDS)
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    time.sleep(1)
    stop([process])
    if not os.path.exists(theirs):
        row(f"{version} {load}", "-", "", "", "async-profiler wrote nothing")
        return
    theirs, ours = of_async_profiler(theirs), of_hearth(ours, process.pid)
    shares = {name: (100 * ours[name] / max(ours.total(), 1), 100 * theirs[name] / max(theirs.total(), 1)) for name in ours | theirs}
    large = {name: pair for name, pair in shares.items() if max(pair) > LARGE}
    near = [name for name, (a, b) in large.items() if abs(a - b) <= NEAR]
    row(f"{version} {load}: methods above {LARGE} %, within {NEAR} points", f"{100 * len(near) / max(len(large), 1):.0f}", "%", f"{len(near)}/{len(large)}",
        f"at least 85; {ours.total()} samples, theirs {theirs.total()}")
    for name in sorted(set(large) - set(near), key=lambda n: -max(large[n])):
        print(f"#   {name}: {large[name][0]:.1f} %, theirs {large[name][1]:.1f} %")


def bench_java_peer():
    if not os.environ.get("ASYNC_PROFILER"):
        print("\n# java_peer: left out, ASYNC_PROFILER names no library of async-profiler")
        return
    from java_loads import LOADS, compiled, options_of
    from java_oracle import jvms

    head(f"Java beside async-profiler: self shares, both at {HZ} Hz in the same process for {SECONDS} s")
    folder = compiled()
    for version, home in list(jvms.homes().items())[-1:] if QUICK else jvms.homes().items():
        for load in ("default", "mixed"):
            compare(version, home, load, options_of(version, load), LOADS[load][1], folder)


def has_work(part):
    """Work.java is compiled."""
    if shutil.which("javac") and not subprocess.run(["javac", "-d", scratch, os.path.join(HERE, "Work.java")]).returncode:
        return True
    print(f"\n# {part}: left out, there is no javac")
    return False


def bench_java_many():
    """So many JVMs under one recorder: what it holds, what it sent again."""
    from support import Profile

    if not has_work("java_many"):
        return
    head(f"{JVMS} JVMs under one recorder at {TICKS_HZ} Hz")
    recorder = start(HEARTH, "record", "-F", TICKS_HZ, "-q", "-o", path("many.pb.gz"))
    time.sleep(1)
    running = [subprocess.Popen(["java", "-Xmx24m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", scratch, "Work", "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(JVMS)]
    children.extend(running)
    for process in running:
        process.stdout.readline()  # it computed for 3 s of its own CPU
    for process in running:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in running:
        process.stdout.readline()
    with open(f"/proc/{recorder.pid}/status") as f:
        anonymous = numbers_of(f.read(), "RssAnon")[0] * 1024
    maps = sum(descriptors(recorder.pid)[1].values())
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    stop(running)
    profile = Profile(path("many.pb.gz"))
    pids = {process.pid for process in running}
    met, stacks, named, frames = set(), 0, 0, 0
    for s in profile.samples:
        java = [n for n, m in zip(s.names, s.modules) if m == "[java]"]
        if s.pid in pids and java:
            met.add(s.pid)
            stacks += s.count
            frames += len(java) * s.count
            named += sum(not n.startswith("[") for n in java) * s.count
    row("anonymous memory of the recorder", f"{anonymous / MIB:.0f}", "MiB", "", "at most 150")
    row("its BPF maps, the kernel's memory", f"{maps / MIB:.0f}", "MiB")
    row("JVMs with Java frames", len(met), "", f"{len(met) / JVMS:.2f}")
    sent = profile.counter("names")
    row("names that the kernel sent again", profile.counter("names_again"), "", f"{profile.counter('names_again') / max(sent, 1):.3f}", f"of {sent}")
    row("frames with a name", f"{100 * named / max(frames, 1):.2f}", "%", "", f"{frames} in {stacks} stacks")


STORM = """import subprocess, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(2000)]
    for child in children:
        child.kill()
    for child in children:
        child.wait()
"""


def bench_java_storm():
    """A JVM that starts beside a program that starts processes all the time: what hearth pays, whether the JVM's functions have their names."""
    from support import Profile, cpu_seconds

    if not has_work("java_storm"):
        return
    seconds = 10 if QUICK else 30
    head(f"A JVM beside a program that starts processes all the time, {TICKS_HZ} Hz, {seconds} s")
    storm = start("python3", "-c", STORM, seconds + 5)
    ours = start(HEARTH, "record", "-F", TICKS_HZ, "-q", "-o", path("storm.pb.gz"))
    theirs = start("perf", "record", "-q", "-e", "cpu-clock", "-g", "-F", TICKS_HZ, "-a", "-o", path("storm.data")) if shutil.which("perf") else None
    time.sleep(2)
    programs, processes = [p for p in (ours, theirs) if p], processes_started()
    before = [cpu_seconds(p.pid) for p in programs]
    jvm = start("java", "-cp", scratch, "Work", "1000000", stdin=subprocess.PIPE)
    jvm.stdin.write(b"go\n" * 10)  # after its 3 s at the start 10 s of work each
    jvm.stdin.flush()
    time.sleep(seconds)
    paid = [100 * (cpu_seconds(p.pid) - b) / seconds for p, b in zip(programs, before)]
    row("processes that were started", f"{(processes_started() - processes) / seconds:.0f}", "a second")
    for program in programs:
        program.send_signal(signal.SIGINT)
        program.wait()
    stop([jvm, storm])
    frames = named = 0
    for s in Profile(path("storm.pb.gz")).of(jvm):
        java = [n for n, m in zip(s.names, s.modules) if m == "[java]"]
        frames += len(java) * s.count
        named += sum(not n.startswith("[") for n in java) * s.count
    row("CPU of hearth record, without its BPF programs", f"{paid[0]:.1f}", "% of one", ratio_of(*paid) if theirs else "", "beside perf record -g, which looks at processes when it ends")
    row("frames of the JVM with a name", f"{100 * named / max(frames, 1):.2f}", "%", "", f"{frames} frames")


def processes_started():
    with open("/proc/stat") as f:
        return int(re.search(r"^processes (\d+)", f.read(), re.M)[1])


PARTS = {"java_peer": bench_java_peer, "java_many": bench_java_many, "java_storm": bench_java_storm}
