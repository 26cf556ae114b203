# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end drivers share: TAP lines, workloads, hearth itself, and an independent reader of pprof files.

Every driver runs alone: ./check_NAME.py [--quick|--sampled]. HEARTH names another program than build/hearth, E2E_BUILD another
folder for the workloads. Workloads end by themselves; what a driver starts, it stops by pid.
"""
import atexit
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HEARTH = os.path.abspath(os.environ.get("HEARTH", os.path.join(ROOT, "build", "hearth")))
BUILD = os.path.abspath(os.environ.get("E2E_BUILD", os.path.join(ROOT, "build", "e2e")))
QUICK = "--quick" in sys.argv
SAMPLED = "--sampled" in sys.argv  # what CI runs of a part: as long as whole, of versions and rounds only some
CPUS = os.cpu_count() or 1
TICK = os.sysconf("SC_CLK_TCK")



def rotation():
    """Which of several turns a sampled run takes: another one each time (scripts/test-extra sets it)."""
    return int(os.environ.get("HEARTH_ROTATION", "0"))


def some_of(versions):
    """What a form takes of a list that begins with the oldest: all, or when sampled the oldest, the newest and one in
    rotation."""
    versions = list(versions)
    if not SAMPLED or len(versions) <= 3:
        return versions
    between = versions[1:-1]
    return [versions[0], between[rotation() % len(between)], versions[-1]]


scratch = tempfile.mkdtemp(prefix="hearth-e2e-")
os.chmod(scratch, 0o755)
started = []
# Whoever started us in the background (nohup, &) ignores these, and a child inherits that: what is tested starts as from a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Tap:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0

    def ok(self, condition, what, figures=""):
        line = f"{self.name}: {what}" + (f": {figures}" if figures != "" else "")
        line = line.replace("\n", " ").replace("#", "")
        self.passed += bool(condition)
        self.failed += not condition
        print(("ok " if condition else "not ok ") + line, flush=True)
        return condition

    def skip(self, what, reason):
        self.skipped += 1
        print(f"ok {self.name}: {what} # SKIP {reason}", flush=True)

    def note(self, text):
        print("# " + text.rstrip().replace("\n", "\n# "), flush=True)

    def finish(self):
        print(f"# {self.name}: {self.passed} ok, {self.failed} not ok, {self.skipped} skipped", flush=True)
        sys.exit(1 if self.failed else 0)


@atexit.register
def clean_up():
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/tmp/perf-{process.pid}.map")
    shutil.rmtree(scratch, ignore_errors=True)


def path(name):
    return os.path.join(scratch, name)


def workload(name):
    return os.path.join(BUILD, name)


def need(tap, *tools, root=True):
    """Builds the workloads; ends the driver with a named skip when something outside the project is missing."""
    if root and os.geteuid() != 0:
        tap.skip("everything", "needs root")
        tap.finish()
    for tool in tools:
        if not shutil.which(tool):
            tap.skip("everything", f"needs {tool}")
            tap.finish()
    built = subprocess.run(["make", "-s", "-C", os.path.join(HERE, "workloads"), f"OUT={BUILD}"],
                           capture_output=True, text=True)
    if built.returncode:
        tap.ok(False, "workloads build", built.stderr[-2000:])
        tap.finish()
    if not os.access(HEARTH, os.X_OK):
        tap.ok(False, "there is a program to test", HEARTH)
        tap.finish()


def start(*args, **options):
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.DEVNULL)
    process = subprocess.Popen([str(a) for a in args], **options)
    started.append(process)
    return process


def run(*args, timeout=300, **options):
    """A finished command with its output as text; bytes that are no UTF-8 come as surrogates."""
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="surrogateescape",
                          timeout=timeout, **options)


def hearth(*args, **options):
    return run(HEARTH, *args, **options)


def record(tap, seconds, *args):
    """A session that has to work. Returns what it said."""
    done = hearth("record", "-d", seconds, *args, timeout=seconds * 2 + 60)
    if not tap.ok(done.returncode == 0, "hearth record ends well", f"exit {done.returncode} {done.stderr[-300:].strip()}"):
        tap.finish()
    return done


def stopped(process):
    """Waits for a workload's own end."""
    try:
        return process.wait(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


# --- pprof, read without any code of the project (profile.proto of github.com/google/pprof) ---


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        elif key & 7 == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Sample:
    __slots__ = ("names", "modules", "places", "values", "labels")

    @property
    def count(self):
        return self.values[0]

    @property
    def leaf(self):
        return self.names[-1] if self.names else ""

    @property
    def pid(self):
        return self.labels.get("pid", 0)

    @property
    def end(self):
        """ "complete", "guessed", "cut:REASON" or "": older files call the second "cut:guessed"."""
        end = self.labels.get("stack_end", "")
        return "guessed" if end == "cut:guessed" else end


def logfmt(text):
    """key=value pairs: names with %XX, values bare or as JSON strings (docs/formats/pprof.md)."""
    for name, value in re.findall(r'([^ =]*)=("(?:[^"\\]|\\.)*"|[^ ]*)', text):
        yield urllib.parse.unquote(name, errors="surrogateescape"), json.loads(value) if value.startswith('"') else value


def window_facts(comments):
    """What hearth says of the window itself -> its facts (texts by key) and its counters (numbers by name)."""
    facts, counters = {}, {}
    for c in comments:
        if c.startswith("hearth facts: "):
            facts.update(logfmt(c.partition(": ")[2]))
        elif c.startswith("hearth counters: "):
            counters.update(logfmt(c.partition(": ")[2]))
    if "complete_share" in counters:
        facts["complete_share"] = counters.pop("complete_share")
    return facts, {k: int(v) for k, v in counters.items()}


class Profile:
    """samples: names, modules and places (file, executing line, first line) are root first; labels hold the last value of
    each key. @system_names: functions by the names that their runtime or linker has."""

    def __init__(self, file, system_names=False):
        with open(file, "rb") as f:
            data = f.read()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        raw = {}
        for number, value in fields(data):
            raw.setdefault(number, []).append(value)
        self.raw_strings = [bytes(s) for s in raw.get(6, [])]
        self.strings = [s.decode("utf-8", "surrogateescape") for s in self.raw_strings]
        self.time_ns = signed(raw.get(9, [0])[-1])
        self.duration_ns = signed(raw.get(10, [0])[-1])
        self.period = signed(raw.get(12, [0])[-1])
        self.comments = [self.strings[i] for value in raw.get(13, []) for i in numbers(value)]
        self.facts, self.counters = window_facts(self.comments)
        self.types = []
        for value in raw.get(1, []):
            pair = dict(fields(value))
            self.types.append((self.strings[pair.get(1, 0)], self.strings[pair.get(2, 0)]))
        self.mappings = {m.get(1): self.strings[m.get(5, 0)] for m in (dict(fields(v)) for v in raw.get(3, []))}
        self.build_ids = {m.get(1): self.strings[m.get(6, 0)] for m in (dict(fields(v)) for v in raw.get(3, []))}
        functions = {f.get(1): (self.strings[(system_names and f.get(3, 0)) or f.get(2, 0)], self.strings[f.get(4, 0)], signed(f.get(5, 0)))
                     for f in (dict(fields(v)) for v in raw.get(5, []))}
        self.locations = {}
        for value in raw.get(4, []):
            identity = mapping = 0
            lines = []
            for number, part in fields(value):
                if number == 1:
                    identity = part
                elif number == 2:
                    mapping = part
                elif number == 4:
                    line = dict(fields(part))
                    name, file, first = functions.get(line.get(1, 0), ("", "", 0))
                    lines.append((name, (file, signed(line.get(2, 0)), first)))
            lines = lines or [("", ("", 0, 0))]
            self.locations[identity] = ([n for n, _ in lines], self.mappings.get(mapping, ""), [p for _, p in lines])
        self.samples = [self.sample(v) for v in raw.get(2, [])]

    def sample(self, data):
        s = Sample()
        s.names, s.modules, s.places, s.values, s.labels = [], [], [], [], {}
        for number, value in fields(data):
            if number == 1:
                for identity in numbers(value):
                    names, module, places = self.locations[identity]
                    s.names += names
                    s.modules += [module] * len(names)
                    s.places += places
            elif number == 2:
                s.values += [signed(n) for n in numbers(value)]
            elif number == 3:
                label = dict(fields(value))
                text = label.get(2, 0)
                s.labels[self.strings[label.get(1, 0)]] = self.strings[text] if text else signed(label.get(3, 0))
        s.names.reverse()
        s.modules.reverse()
        s.places.reverse()
        return s

    def counter(self, name):
        return self.counters.get(name, 0)

    @property
    def lost(self):
        return sum(v for k, v in self.counters.items() if k.startswith("lost_"))

    def of(self, process):
        """Samples of one process: a pid, or what start() returned."""
        pid = process if isinstance(process, int) else process.pid
        return [s for s in self.samples if s.pid == pid]


def total(samples):
    return sum(s.count for s in samples)


def share(part, whole):
    return total(part) / total(whole) if total(whole) else 0.0


# --- the machine ---


def busy_seconds():
    """CPU seconds of /proc/stat without idle, iowait and steal (guest time is part of user)."""
    with open("/proc/stat") as f:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICK


def busiest_seconds(pid):
    """CPU seconds, user and system, of the thread of a process that had most."""
    most = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError, IndexError):  # it has ended
            with open(f"/proc/{pid}/task/{task}/stat") as f:
                parts = f.read().rpartition(")")[2].split()
            most = max(most, (int(parts[11]) + int(parts[12])) / TICK)
    return most


class BusyMeter:
    """Notes busy_seconds() again and again, so that any interval can be looked up afterwards."""

    def __init__(self):
        self.notes, self.stop = [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stop.wait(0.1):
            self.notes.append((time.time(), busy_seconds()))

    def between(self, begin, end):
        self.stop.set()
        self.thread.join()
        return self.at(end) - self.at(begin)

    def at(self, when):
        before = max((n for n in self.notes if n[0] <= when), default=self.notes[0])
        after = min((n for n in self.notes if n[0] >= when), default=self.notes[-1])
        if after[0] == before[0]:
            return before[1]
        return before[1] + (after[1] - before[1]) * (when - before[0]) / (after[0] - before[0])


def status_kib(pid, key):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return 0


def cpu_seconds(pid):
    """What a process and its threads have used so far, ended threads too, to the nanosecond: /proc counts in hundredths, too coarse for
    what costs little. OSError when there is no such process.

    The number of another process's CPU clock is made of its pid: the complement shifted by three, and CPUCLOCK_SCHED.
    Source: linux, include/linux/posix-timers.h, make_process_cpuclock(); man 3 clock_getcpuclockid."""
    return time.clock_gettime(~pid << 3 | 2)


def unprivileged(*args):
    """A command line that runs as nobody without any capability."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
            "--no-new-privs", *args]


def hearth_for_everybody():
    """A copy in a place that other users can reach."""
    copy = path("hearth")
    if not os.path.exists(copy):
        shutil.copy(HEARTH, copy)
        os.chmod(copy, 0o755)
    return copy
