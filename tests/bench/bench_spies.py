# SPDX-License-Identifier: Apache-2.0
"""Rows of the table: hearth beside rbspy and phpspy, which read Ruby and PHP from outside.

RBSPY names the program of that name (cargo install rbspy; compared with: 0.55.0), PHPSPY one too (github.com/adsr/phpspy, make; compared
with: 105841b of May 2026). Each runs beside a load whose stacks are known (spied.rb, spied.php), which has the first CPU while the
profiler has the last one. Judged alike:

* legal: the names of a stack are ones that the load can have (tests/e2e/ruby_oracle.py, php_oracle.py). rbspy has no names of C functions: such a
  frame matches any name. It also shows frames that are no functions, as C functions: the first row forgives these, the second one does not.
  A stack that hearth flags counts like every other one.
* caller lines: in legal stacks, the share of calling frames whose line calls the next function. C functions have no line.
* own CPU: hearth's includes the time of its BPF programs, on all CPUs. rbspy and phpspy also sample a target that waits for a CPU, hearth
  does not: where others want that CPU, it has fewer samples, and each costs more.
* stopped: the share of time in which the target neither ran nor waited for a CPU; also right where others want its CPU. held up: wall time of a
  round less its CPU time: stops, and waits for a CPU.

On a busy machine the target often waits for its CPU while it is read, so fewer of the stacks that are read without a stop are torn.
"""
import contextlib
import functools
import itertools
import os
import shutil
import statistics
import struct
import subprocess
import time
from collections import Counter

from measure import *

import php_oracle
import ruby_oracle
from support import Profile, cpu_seconds

RBSPY, PHPSPY = os.environ.get("RBSPY", ""), os.environ.get("PHPSPY", "")
RUBY_LOADS = os.path.join(ROOT, "tests", "e2e", "ruby", "loads.rb")
PHP_FOLDER = os.path.join(ROOT, "tests", "e2e", "php")
RATE = 200
SECONDS = 6 if QUICK else 12
WARM, EARLY = 2, 0.3  # of a session: what it needs to begin; and before its end
ROUND = struct.Struct("=3q")


# --- a session beside a load ---


class Target:
    """A load on the first CPU, until it is closed."""

    def __init__(self, *command):
        self.process = subprocess.Popen(["taskset", "-c", "0", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        children.append(self.process)
        self.process.stdout.readline()
        task = f"/proc/{self.process.pid}/task/{self.process.pid}"
        self.schedstat, self.status = open(f"{task}/schedstat"), open(f"{task}/status")

    def look(self):
        """Seconds: the clock, ran, waited for a CPU; and how often it went to sleep or was stopped. All at one moment, while the target
        runs: the kernel counts a wait for a CPU when it is over."""
        for _ in range(1000):
            began, ran = time.monotonic(), cpu_seconds(self.process.pid)
            self.schedstat.seek(0)
            waited = int(self.schedstat.read().split()[1]) / 1e9
            self.status.seek(0)
            stops = numbers_of(self.status.read(), "voluntary_ctxt_switches")[0]
            ran_then, now = cpu_seconds(self.process.pid), time.monotonic()
            if ran_then > ran and now - began < 0.001:
                break
            time.sleep(0.001)
        return now, ran_then, waited, stops

    def close(self):
        """[(end, wall, CPU)] of its rounds, in nanoseconds."""
        self.process.stdin.close()
        rounds = list(ROUND.iter_unpack(self.process.stdout.read()))
        self.process.wait()
        self.schedstat.close()
        self.status.close()
        return rounds


def spent(pid):
    """CPU seconds of the profiler so far, and those of its BPF programs."""
    bpf = 0
    with contextlib.suppress(OSError):  # it has ended
        bpf = sum(p[1] for p in descriptors(pid)[0].values()) / 1e9
    return group.seconds(), bpf


class Session:
    """A profiler beside a target. @command: of the target's number; None: the target alone. @cpu of the profiler in the middle @seconds,
    @all_cpu from its start to its end; what became of the target in those seconds."""

    def __init__(self, target_command, command=None):
        target = Target(*target_command)
        self.cpu = self.all_cpu = 0
        self.pid = target.process.pid
        before = group.seconds()
        profiler = start("taskset", "-c", CPUS - 1, *command(self.pid), preexec_fn=group.enter) if command else None
        time.sleep(WARM)
        first, own = target.look(), spent(profiler.pid) if profiler else None
        time.sleep(SECONDS - WARM - EARLY)
        last = target.look()
        if profiler:
            then = spent(profiler.pid)
            self.cpu = sum(then) - sum(own)
            if profiler.wait():
                print(f"# {profiler.args[3]} ended with {profiler.returncode}")
            self.all_cpu = group.seconds() - before + then[1]
        self.note(first, last, target.close())

    def note(self, first, last, rounds):
        self.seconds, ran, waited, self.stops = (after - before for before, after in zip(first, last))
        self.stopped = max(0, self.seconds - ran - waited)
        within = [(wall, used) for at, wall, used in rounds if first[0] < at / 1e9 < last[0]] or [(float("nan"),) * 2]
        held = sorted(wall - used for wall, used in within)
        self.held_most, self.held_99 = held[-1] / 1e6, held[len(held) * 99 // 100] / 1e6
        self.round_cpu = statistics.mean(used for _, used in within) / 1e3


def samples_of_hearth(pid):
    return Profile(path("spied.pb.gz")).of(pid) if os.path.exists(path("spied.pb.gz")) else []


def texts_of_peer(between):
    if not os.path.exists(path("spied.txt")):
        return []
    with open(path("spied.txt"), errors="replace") as f:
        return f.read().split(between)


class Shares:
    def __init__(self):
        self.samples = self.legal = self.as_shown = self.callers = self.right = self.outside = self.none = 0
        self.frames = self.named = 0
        self.odd = Counter()


# --- Ruby ---


def with_fewer_gaps(names):
    """Each run of names that are not known as long as it is, and shorter: one is left, or none where a fiber begins."""
    runs = [(name, sum(1 for _ in run)) for name, run in itertools.groupby(names)]
    lengths = [range(n, 0 if i < len(runs) - 1 else -1, -1) if name is None else [n] for i, (name, n) in enumerate(runs)]
    for chosen in itertools.product(*lengths):
        yield tuple(name for (name, _), n in zip(runs, chosen) for _ in range(n))


class RubyNames:
    """What an oracle's stacks say of names alone, and which line calls what. A name that is not known is None."""

    def __init__(self, oracle):
        self.stacks = {tuple(name for name, _, _ in stack) for stack in oracle.stacks}
        pairs = [(caller, callee[0]) for stack in oracle.stacks for callee, caller in zip(stack, stack[1:])]
        self.calls = set(pairs) | {(caller, None) for caller, _ in pairs}
        self.legal = functools.lru_cache(None)(self.legal)

    @functools.lru_cache(None)
    def without(self, size, gaps):
        """Stacks of that many frames, without the names that stand at @gaps."""
        return {tuple(None if i in gaps else name for i, name in enumerate(s)) for s in self.stacks if len(s) == size}

    def has(self, names):
        gaps = tuple(i for i, name in enumerate(names) if name is None)
        return names in (self.without(len(names), gaps) if gaps else self.stacks)

    def has_fewer(self, names):
        return any(self.has(fewer) for fewer in with_fewer_gaps(names))

    def legal(self, names, c_leaves):
        """How many frames at the leaf are none that TracePoint shows (Oracle.judge()'s rules), or None for a stack that cannot be."""
        for has in self.has, self.has_fewer:
            for skip in range(c_leaves + 1):
                if has(names[skip:]):
                    return skip
        entered = (names[c_leaves:] or ("",))[0].startswith(("rescue in ", "ensure in "))
        return c_leaves + 1 if entered and self.has(names[c_leaves + 1:]) else None


def rubies_of_hearth(pid):
    """[(name, file, line)] leaf first, is it in GC, how many."""
    for s in samples_of_hearth(pid):
        frames, gc = ruby_oracle.ruby_frames(s)
        yield tuple((name, os.path.basename(where), line) for name, (where, line, _) in reversed(frames)), gc, s.count


def rubies_of_rbspy():
    """A C function is "(unknown) [c function] - (unknown)"."""
    for line in texts_of_peer("\n"):
        if line:
            stack, _, count = line.rpartition(" ")
            frames = []
            for frame in reversed(stack.split(";")):
                name, _, place = frame.rpartition(" - ")
                where, _, number = place.rpartition(":")
                frames.append((ruby_oracle.base(name), os.path.basename(where), int(number)) if number.isdigit() else (None, "", 0))
            yield tuple(frames), False, int(count)


def is_own(file):
    """Is it a file of Ruby itself? rbspy does not know the names of all."""
    return file.startswith(("<internal:", "unknown"))


def judge_ruby(names, stacks):
    shares = Shares()
    for frames, gc, count in stacks:
        frames = ruby_oracle.inner(frames)
        leaves = next((i for i, f in enumerate(frames) if f[1]), len(frames))
        if not frames:
            shares.none += count
            continue
        if [name for name, file, _ in frames if file and not is_own(file)] == ["<main>"]:
            shares.outside += count  # the load's own loop, and what is Ruby's own
            continue
        called = tuple(name for name, _, _ in frames)
        shares.samples += count
        shares.frames += count * len(called)
        shares.named += count * (len(called) - called.count(None))
        skip = names.legal(called, leaves)
        if skip is None and gc and names.has(called[leaves:]):
            skip = leaves
        if skip is None:
            shares.odd[" < ".join(str(name) for name in called[:8])] += count
            continue
        shares.legal += count
        shares.as_shown += count * names.has(called[skip:])
        for callee, caller in zip(frames[skip:], frames[skip + 1:]):
            if caller[1] and not is_own(caller[1]):
                shares.callers += count
                shares.right += count * ((caller, callee[0]) in names.calls)
    return shares


# --- PHP ---


class PhpNames:
    """What php_oracle says of a stack whose lines are not known. A frame is (name, file, line, first line)."""

    def __init__(self):
        self.judge = php_oracle.Judge(PHP_FOLDER)
        self.judge.programs["spied.php"] = php_oracle.Program(os.path.join(HERE, "spied.php"))
        self.calls_somewhere = functools.lru_cache(None)(self.calls_somewhere)

    def has_lines(self, frame):
        return frame[1] != php_oracle.INTERNAL and "eval()'d code" not in frame[1]

    def calls_somewhere(self, name, file, first, callee):
        """Does any line of that function call it?"""
        frame, last = (name, file, 0, first), first
        if self.has_lines(frame):
            last = self.judge.program(file).ranges[php_oracle.plain(php_oracle.MADE_UP.get(name, name)), first]
        return any(self.judge.may_call((name, file, line, first), (callee, "", 0, 0)) for line in range(first, last + 1))

    def legal(self, stack):
        real = all(self.judge.frame_is_real((n, f, 0, first)) for n, f, _, first in stack)
        root = stack[0][0] == "<main>" and os.path.basename(stack[0][1]) == "spied.php"
        return real and root and all(self.calls_somewhere(n, f, first, callee[0]) for (n, f, _, first), callee in zip(stack, stack[1:]))


def phps_of_hearth(pid):
    """Stack, root first, and how many."""
    for s in samples_of_hearth(pid):
        yield php_oracle.frames_of(s), s.count


def phps_of_phpspy():
    """It has a function's first line, and no other."""
    for text in texts_of_peer("\n\n"):
        stack = []
        for line in reversed(text.splitlines()):
            name, _, place = line.partition(" ")[2].partition(" ")
            where, _, first = place.rpartition(":")
            first = max(0, int(first)) if first.lstrip("-").isdigit() else 0
            stack.append((name, where, first, 1 if name == "<main>" else first))
        if stack:
            yield stack, 1


def judge_php(names, stacks):
    shares = Shares()
    for stack, count in stacks:
        if not stack:
            shares.none += count
            continue
        shares.samples += count
        if not names.legal(stack):
            shares.odd[" > ".join(f[0] for f in stack[-8:])] += count
            continue
        shares.legal += count
        for caller, callee in zip(stack, stack[1:]):
            if names.has_lines(caller):
                shares.callers += count
                shares.right += count * names.judge.may_call(caller, callee)
    return shares


# --- rows ---


def per_cent(part, whole):
    return 100 * part / whole if whole else float("nan")


METRICS = (  # what, unit, of a session and its shares, as a number has them; has the target alone one?
    ("legal stacks", "%", ".2f", lambda s, j: per_cent(j.legal, j.samples), False),
    ("  with as many frames as Ruby shows", "%", ".2f", lambda s, j: per_cent(j.as_shown, j.samples) if j.frames else None, False),
    ("  frames that have a name", "%", ".2f", lambda s, j: per_cent(j.named, j.frames) if j.frames else None, False),
    ("caller lines that are right", "%", ".2f", lambda s, j: per_cent(j.right, j.callers), False),
    ("own CPU, once begun", "%", ".2f", lambda s, j: per_cent(s.cpu, s.seconds), False),
    ("own CPU a sample, once begun", "us", ".0f", lambda s, j: 1e6 * s.cpu / s.seconds * SECONDS / all_of(j), False),
    ("own CPU a sample, start and end too", "us", ".0f", lambda s, j: 1e6 * s.all_cpu / all_of(j), False),
    ("stopped", "%", ".2f", lambda s, j: per_cent(s.stopped, s.seconds), True),
    ("a stop", "us", ".0f", lambda s, j: 1e6 * s.stopped / s.stops if s.stops >= s.seconds * RATE / 10 else None, True),
    ("a round held up, most", "ms", ".2f", lambda s, j: s.held_most, True),
    ("a round held up, 99 % at most", "ms", ".3f", lambda s, j: s.held_99, True),
    ("CPU of a round", "us", ".1f", lambda s, j: s.round_cpu, True),
)


def all_of(shares):
    return shares.samples + shares.outside + shares.none or 1


def compare(target, ways, base):
    """@ways: {name: (command of the process's number, its shares of that number)}; ratios to @base."""
    ran = {name: [] for name in ["alone", *ways]}
    with bpf_stats():
        for _ in range(RUNS):
            ran["alone"].append((Session(target), None))
            for name, (command, judged) in ways.items():
                for file in "spied.pb.gz", "spied.txt":
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path(file))
                session = Session(target, command)
                ran[name].append((session, judged(session.pid)))
    for name in ways:
        shares = [j for _, j in ran[name]]
        print(f"# {name}: {sum(map(all_of, shares))} samples of {RUNS * SECONDS * RATE} looks, {sum(j.outside for j in shares)} in the load's own loop, "
              f"{sum(j.none for j in shares)} without frames")
        for stack, count in sum((j.odd for j in shares), Counter()).most_common(2):
            print(f"#     not legal, {count} times: {stack}")
    for what, unit, form, value, always in METRICS:
        found = {name: [value(*one) for one in ran[name]] for name in ran if always or name != "alone"}
        for name, values in found.items():
            if None not in values:
                row(f"{name}: {what}", f"{median(values):{form}}", unit, "" if name == base or None in found[base] else ratio_of(median(values), median(found[base])), spread(values))


def by_hearth(pid):
    return [HEARTH, "record", "-q", "-F", RATE, "-d", SECONDS, "-p", pid, "-o", path("spied.pb.gz")]


def by_rbspy(*options):
    return lambda pid: [RBSPY, "record", "--silent", "-r", RATE, "-d", SECONDS, "-o", "collapsed", "-f", path("spied.txt"), "--raw-file", path("spied.raw"), *options, "-p", pid]


def by_phpspy(*options):
    return lambda pid: [PHPSPY, "-H", RATE, "-i", 1000 * SECONDS, "-o", path("spied.txt"), *options, "-p", pid]


def bench_rbspy():
    ruby = shutil.which("ruby")
    if not RBSPY or not ruby:
        print("\n# rbspy: " + ("RBSPY names no program: left out" if ruby else "there is no ruby: left out"))
        return
    head(f"Ruby beside rbspy: {SECONDS} s at {RATE} Hz, the load work of tests/e2e/ruby/loads.rb; ratios to rbspy as it is by default")
    recorded = path("spied.json")
    subprocess.run([ruby, RUBY_LOADS, "work", "record", recorded], check=True)
    names = RubyNames(ruby_oracle.Oracle(recorded))
    ours = by_hearth, lambda pid: judge_ruby(names, rubies_of_hearth(pid))
    theirs = lambda _: judge_ruby(names, rubies_of_rbspy())
    compare([ruby, os.path.join(HERE, "spied.rb"), RUBY_LOADS],
            {"hearth": ours, "rbspy": (by_rbspy(), theirs), "rbspy --nonblocking": (by_rbspy("--nonblocking"), theirs)}, "rbspy")


def bench_phpspy():
    php = shutil.which("php")
    if not PHPSPY or not php:
        print("\n# phpspy: " + ("PHPSPY names no program: left out" if php else "there is no php: left out"))
        return
    head(f"PHP beside phpspy: {SECONDS} s at {RATE} Hz, the load tests/e2e/php/load.php; ratios to phpspy as it is by default")
    names = PhpNames()
    ours = by_hearth, lambda pid: judge_php(names, phps_of_hearth(pid))
    theirs = lambda _: judge_php(names, phps_of_phpspy())
    compare([php, os.path.join(HERE, "spied.php"), os.path.join(PHP_FOLDER, "load.php")],
            {"hearth": ours, "phpspy": (by_phpspy(), theirs), "phpspy -S": (by_phpspy("-S"), theirs)}, "phpspy")


PARTS = {"rbspy": bench_rbspy, "phpspy": bench_phpspy}
