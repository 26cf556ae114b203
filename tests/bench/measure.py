# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: commands in a cgroup of their own, what they cost, and the lines of the table."""
import atexit
import glob
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
HEARTH = os.path.abspath(os.environ.get("HEARTH", os.path.join(ROOT, "build", "hearth")))
BUILD = os.path.abspath(os.environ.get("E2E_BUILD", os.path.join(ROOT, "build", "e2e")))
QUICK = "--quick" in sys.argv
CPUS = os.cpu_count() or 1
MIB = 1 << 20
PERF_EVENT = 7  # linux, include/uapi/linux/bpf.h: BPF_PROG_TYPE_PERF_EVENT
os.environ["E2E_BUILD"], os.environ["HEARTH"] = BUILD, HEARTH  # for support.py
scratch = tempfile.mkdtemp(prefix="hearth-bench-", dir=os.environ.get("TMPDIR", "/var/tmp"))
children = []


def argument(name, otherwise):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else otherwise


RUNS = argument("--runs", 2 if QUICK else 5)


def path(name):
    return os.path.join(scratch, name)


def start(*args, **options):
    child = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    children.append(child)
    return child


def stop(processes):
    for p in processes:
        p.kill()
        p.wait()


class Group:
    """A cgroup to run commands in: their CPU seconds with everything they started, and the memory of its processes."""

    def __init__(self):
        self.folder = None
        for tree, usage in (("/sys/fs/cgroup/unified", "cpu.stat"), ("/sys/fs/cgroup", "cpu.stat"),
                            ("/sys/fs/cgroup/cpuacct", "cpuacct.usage")):
            folder = os.path.join(tree, f"hearth-bench-{os.getpid()}")
            if not os.path.exists(os.path.join(tree, "cgroup.procs")):
                continue
            try:
                os.mkdir(folder)
            except OSError:
                continue
            if os.path.exists(os.path.join(folder, usage)):
                self.folder, self.usage = folder, os.path.join(folder, usage)
                break
            os.rmdir(folder)

    def seconds(self):
        with open(self.usage) as f:
            text = f.read()
        if self.usage.endswith("cpu.stat"):
            return int(re.search(r"usage_usec (\d+)", text)[1]) / 1e6
        return int(text) / 1e9

    def pids(self):
        with open(os.path.join(self.folder, "cgroup.procs")) as f:
            return [int(p) for p in f.read().split()]

    def enter(self):
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as f:
            f.write("0")

    def remove(self):
        if self.folder:
            for _ in range(50):
                try:
                    os.rmdir(self.folder)
                    return
                except OSError:
                    time.sleep(0.1)


group = Group()


@atexit.register
def clean_up():
    stop([c for c in children if c.poll() is None])
    group.remove()
    shutil.rmtree(scratch, ignore_errors=True)


class Result:
    def __init__(self):
        self.cpu = self.wall = self.bpf_seconds = 0.0
        self.bpf_runs = self.anonymous = self.maps = self.tick_runs = 0
        self.tick_seconds = 0.0  # of bpf_seconds: the programs that take samples
        self.status = None
        self.began_mono = self.began_wall = self.ended_wall = 0.0


def numbers_of(text, key):
    return [int(n) for n in re.findall(rf"^{key}:\s+(\d+)", text, re.M)]


class Watcher(threading.Thread):
    """Peak of anonymous memory, of BPF maps, and the last run times of BPF programs, from /proc of the group."""

    def __init__(self, bpf):
        super().__init__(daemon=True)
        self.bpf, self.done = bpf, threading.Event()
        self.anonymous = self.maps = 0
        self.programs = {}

    def run(self):
        turn = 0
        while not self.done.wait(0.02):
            self.look(turn)
            turn += 1

    def look(self, turn):
        anonymous, maps = 0, {}
        for pid in group.pids():
            try:
                with open(f"/proc/{pid}/status") as f:
                    anonymous += sum(numbers_of(f.read(), "RssAnon")) * 1024
                if self.bpf and turn % 10 == 0:
                    self.read_descriptors(pid, maps)
            except OSError:
                continue  # it ended
        self.anonymous = max(self.anonymous, anonymous)
        self.maps = max(self.maps, sum(maps.values()))

    def read_descriptors(self, pid, maps):
        programs, sizes = descriptors(pid)
        self.programs.update(programs)
        maps.update(sizes)


def descriptors(pid):
    """What a process holds of BPF: {program id: (is a perf event's, run time in ns, runs)}, {map id: bytes}."""
    programs, maps = {}, {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                text = f.read()
        except OSError:
            continue
        if "prog_id" in text and "run_time_ns" in text:
            programs[numbers_of(text, "prog_id")[0]] = (numbers_of(text, "prog_type") == [PERF_EVENT],
                                                        numbers_of(text, "run_time_ns")[0], numbers_of(text, "run_cnt")[0])
        elif "map_id" in text:
            maps[numbers_of(text, "map_id")[0]] = sum(numbers_of(text, "memlock"))
    return programs, maps


def measure(*steps, bpf=False):
    """Runs commands (lists, or text for the shell) one after the other in the group."""
    result, watcher = Result(), Watcher(bpf)
    before = group.seconds()
    watcher.start()
    result.began_mono, result.began_wall = time.monotonic(), time.time()
    for step in steps:
        is_text = isinstance(step, str)
        done = subprocess.run(step if is_text else [str(s) for s in step], shell=is_text, preexec_fn=group.enter,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
        result.status = done.returncode
        if done.returncode:
            print(f"# {step} ended with {done.returncode}: {done.stderr[-300:].decode(errors='replace')}")
            break
    result.wall, result.ended_wall = time.monotonic() - result.began_mono, time.time()
    watcher.done.set()
    watcher.join()
    result.cpu = group.seconds() - before
    result.anonymous, result.maps = watcher.anonymous, watcher.maps
    programs = watcher.programs.values()
    result.bpf_seconds, result.bpf_runs = sum(p[1] for p in programs) / 1e9, sum(p[2] for p in programs)
    result.tick_seconds, result.tick_runs = sum(p[1] for p in programs if p[0]) / 1e9, sum(p[2] for p in programs if p[0])
    return result


def ticks(pid):
    """Nanoseconds and runs of the programs that take samples."""
    own = [p for p in descriptors(pid)[0].values() if p[0]]
    return sum(p[1] for p in own), sum(p[2] for p in own)


def median(values):
    return statistics.median(values) if values else float("nan")


def row(what, value, unit, ratio="", target=""):
    print(f"{what:<58} {value:>10} {unit:<8} {ratio:>9}  {target}", flush=True)


def ratio_of(a, b):
    return f"{a / b:.2f}" if b else "-"


def conditions():
    with open("/proc/loadavg") as f:
        load = f.read().split()[:3]
    return f"load of all {'/'.join(load)}, {CPUS} CPUs, kernel {os.uname().release}, {time.strftime('%H:%M:%S')}"


def head(title):
    print(f"\n{title}\n# {conditions()}; {RUNS} runs, medians (smallest to largest)")
    print(f"{'':<58} {'value':>10} {'':<8} {'ratio':>9}  target")


def spread(values):
    return f"({min(values):.3f} to {max(values):.3f})" if values else ""


def busy_machine(seconds):
    """Both CPUs busy with different code, and 100 processes that are alive."""
    work = ["many", "cpp", "kernel_heavy", "tree"]
    running = [start(os.path.join(BUILD, w), seconds) for w in work]
    running += [start(os.path.join(BUILD, "spin"), seconds, CPUS), start(os.path.join(BUILD, "asleep"), seconds, 100)]
    time.sleep(1)
    return running


def busy_by_others():
    with open("/proc/stat") as f:
        return sum(map(int, f.readline().split()[1:4])) / os.sysconf("SC_CLK_TCK")


def with_bpf_stats(enabled):
    with open("/proc/sys/kernel/bpf_stats_enabled", "r+") as f:
        before = f.read().strip()
        f.seek(0)
        f.write(enabled)
    return before


class bpf_stats:
    """with bpf_stats(): the kernel counts the run time of BPF programs."""

    def __enter__(self):
        self.before = with_bpf_stats("1")

    def __exit__(self, *_):
        with_bpf_stats(self.before)


class looped:
    """with looped(command, ...): shell commands, each again and again until the end, in groups that can be stopped."""

    def __init__(self, *commands):
        self.commands = commands

    def __enter__(self):
        self.shells = [start("setsid", "sh", "-c", f"while :; do {c}; done") for c in self.commands]
        time.sleep(2)

    def __exit__(self, *_):
        for shell in self.shells:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            shell.wait()


def gcc_load():
    """Compiles some files of this project."""
    files = sorted(glob.glob(os.path.join(ROOT, "src", "codec", "*.c")))[:12]
    return f"cd {ROOT} && for f in {' '.join(files)}; do gcc -std=gnu17 -O2 -D_GNU_SOURCE -I. -Isrc -c -o /dev/null $f; done"


PYTHON_LOAD = f"/usr/bin/python3 {os.path.join(HERE, 'load.py')}"
NODE_LOAD = f"node {os.path.join(HERE, 'load.mjs')}"
GIT_LOAD = f"git -C {ROOT} log -p --stat > /dev/null"


def deep_program():
    """32 functions deep, without frame pointers."""
    out = os.path.join(BUILD, "stacks")
    subprocess.run(["make", "-s", "-C", os.path.join(ROOT, "tests/e2e/workloads/stacks"), f"OUT={out}", os.path.join(out, "many32")],
                   check=True)
    return os.path.join(out, "many32")


def generator(name):
    """A program of tests/bench/meson.build, which the usual build leaves out."""
    folder = os.path.join(ROOT, "build")
    subprocess.run(["ninja", "-C", folder, f"tests/bench/{name}"], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "tests", "bench", name)
