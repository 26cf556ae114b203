#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PHP's stacks in BPF beside what the program's lines may call (php_oracle.py): every version, opcache's compiler, fibers, the line
that runs, and a worker of php-fpm that has other functions in the same memory with each request."""
import glob
import random
from collections import Counter

import parked
import phps
from fpm import chains, request, script, serve
from judge import at_most
from php_oracle import Judge, Tally, count_without, frames_of, is_flagged, plain
from support import *
from windows import windows_of

FOLDER = os.path.join(HERE, "php")
SECONDS = 3 if QUICK else 12  # of wall time for each load
LONG = SECONDS if QUICK or SAMPLED else 25
ROUNDS = 1 if QUICK or SAMPLED else 4  # of that long, until there are as many samples as are wanted
WHOLE = 0.995  # native stacks, but those in PCRE
LEAST = 75 if QUICK else 300  # samples that are judged; where nothing else runs there are ten times as many
MANY = LEAST if QUICK else 1000 if SAMPLED else 10000
MANY_FRAMES = 300 if QUICK else 3000 if SAMPLED else 20000  # of php-fpm
HZ = 997
FEW = 1  # a tick between two instructions is nothing to go by
SCRIPTS = 40
THREADS = 4

tap = Tap("php")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]
judge = Judge(FOLDER)


def begin(seconds, name, *options):
    """A session of so many seconds behind its first one, which written() takes off. In it, until a session knows a process that was there before it, ticks
    have no frames of PHP and say that they are cut, or guessed where compiled code ran that nobody knew of yet."""
    return start(HEARTH, "record", "-F", HZ, "-q", "--window", "1s", "-d", seconds + 1, *options, "-o", path(f"{name}.pb.gz"), stderr=subprocess.PIPE, text=True)


def written(session, name):
    """The profiles of its windows, which lie on a grid, but those that begin in its first second. None: it ended badly."""
    said = session.communicate(timeout=120)[1]
    if not tap.ok(session.returncode == 0, "hearth record ends well", f"exit {session.returncode} {said[-300:].strip()}"):
        return None
    shutil.copyfile(max(glob.glob(path(f"{name}_*.pb.gz")), key=os.path.getsize), path(f"{name}.pb.gz"))  # one of them, to be converted
    profiles = windows_of(path(f"{name}.pb.gz"))
    return [p for p in profiles if p.time_ns >= profiles[0].time_ns + 10**9]


def samples_of(session, name):
    profiles = written(session, name)
    return [s for p in profiles for s in p.samples] if profiles is not None else tap.finish()


def sampled(php, load, jit=None, seconds=SECONDS, options=(), has_rival=False):
    """The samples of one program under a session of its own. @has_rival: another one wants its CPU, so that it stands still at times."""
    command = php.command([FOLDER], *php.options(jit), os.path.join(FOLDER, load), seconds + 3)
    processes = [start(*command)]
    if has_rival:
        processes.append(start("sh", "-c", "while :; do :; done"))
        for p in processes:
            os.sched_setaffinity(p.pid, {min(os.sched_getaffinity(0))})
    time.sleep(0.7)
    samples = samples_of(begin(seconds, "php", *options, "-p", processes[0].pid), "php")
    for p in processes:
        p.kill()
        p.wait()
    return samples


def sampled_until(many, count, add, take):
    """add() each sample of as many sessions as it takes until count() says @many."""
    for _ in range(ROUNDS):
        for sample in take():
            add(sample)
        if count() >= many:
            break


def check_load(php, load, jit=None, legal=0.999, whole=0.97):
    tally = Tally()
    name = f"{php.name}, {load}" + (f", {jit} compiler" if jit else "")
    sampled_until(MANY, lambda: tally.judged, lambda sample: tally.add(judge, sample, load), lambda: sampled(php, load, jit, LONG))
    tap.ok(tally.judged >= MANY and tally.legal + FEW >= legal * tally.judged, f"{name}: stacks are whole and legal", tally.figures())
    tap.ok(not tally.wrong, f"{name}: none is wrong that is not flagged", sum(tally.wrong.values()))
    for why, count in tally.wrong.most_common(4):
        tap.note(f"    {count} times {why}")
    if whole:
        ends, judged = tally.native_ends["complete"], tally.judged
        tap.ok(ends >= whole * judged, f"{name}: native frames in order and whole", f"{100 * ends / max(judged, 1):.2f} %")
        ends, others = ends - tally.in_pcre["complete"], judged - tally.in_pcre.total()
        tap.ok(ends + FEW >= WHOLE * others, f"{name}: native frames but those in PCRE", f"{100 * ends / max(others, 1):.2f} % of {others}")
    tap.note("    " + ", ".join(f"{end} {count}" for end, count in tally.native_ends.most_common(5)))


FIBER_ROOT, ROOT = "make_fcontext", "_start"  # what a fiber's native stack begins in, and that of the program


def check_fiber_ends(php):
    """In a fiber the native part is the fiber's own: it never seems to be called by what the program's stack has, and where
    it does not reach the fiber's root it says so. In code without unwind rows it may."""
    inside, odd, marked = 0, Counter(), 0
    for sample in sampled(php, "fibers.php", options=["--native-interpreter-frames"]):
        names = [f[0] for f in frames_of(sample)]
        if "within" not in names:
            continue
        native = [n for n, m in zip(sample.names, sample.modules) if m != "[php]"]
        inside += sample.count
        marked += sample.count * (sample.end == "guessed" or sample.end.startswith("cut:"))
        if ROOT in native or (sample.end == "complete" and native[:1] != [FIBER_ROOT]):
            odd[f"{sample.end}: {native[:3]}"] += sample.count
    tap.ok(inside >= LEAST and odd.total() <= 1, f"{php.name}, fibers.php: the native part is the fiber's own, or cut and marked", f"{inside} samples, {marked} marked; {dict(odd)}")


def check_outside(php, load):
    """By the sampler remote: what moves between two reads has to say so."""
    tally = Tally()
    clean = 0
    for sample in sampled(php, load, options=["--sampler", "remote"], has_rival=True):
        tally.add(judge, sample, load)
        clean += sample.count * (sample.end == "complete")
    wrong = sum(tally.wrong.values())
    tap.ok(tally.judged >= LEAST / 3 and clean, f"{php.name}, {load}, from outside: stacks", f"{clean} clean; {tally.figures()}; {dict(tally.native_ends)}")
    tap.ok(wrong <= max(1, 0.002 * clean), f"{php.name}, {load}, from outside: clean ones are right", wrong)
    for why, count in tally.wrong.most_common(4):
        tap.note(f"    {count} times {why}")


def check_lines(php):
    """Where the engine wrote nothing down the register has the line; one that is not known (0) counts as wrong."""
    with open(os.path.join(FOLDER, "lines.php")) as f:
        hot = next(i for i, line in enumerate(f, 1) if "// hot" in line)
    lines = Counter()

    def add(sample):
        frames = frames_of(sample)
        if frames and frames[-1][0] == "hot":
            lines[frames[-1][2]] += sample.count

    sampled_until(MANY, lines.total, add, lambda: sampled(php, "lines.php", seconds=LONG))
    tap.ok(lines.total() >= MANY and lines[hot] >= 0.99 * lines.total(), f"{php.name}: the line that runs",
           f"{100 * lines[hot] / max(lines.total(), 1):.2f} % of {lines.total()}, {lines[0]} not known, {dict(lines)}")


def check_dump(php):
    process = start(*php.command([HERE], *php.options(), os.path.join(parked.FOLDER, "parked.php")), stdout=subprocess.PIPE, text=True)
    parked.check(tap, php.name, process, "php", "PHP", skip=1)  # sleep()
    process.kill()
    process.wait()


# ---- several threads ----


def sampled_threads(program, library, beside, load):
    """Threads of a program with PHP inside, each with requests of its own. Return: the samples."""
    wrapper = path("threads.php")
    with open(wrapper, "w") as f:
        f.write(f"<?php\n$argv = [0, 1];\ninclude '{os.path.join(FOLDER, load)}';\n")
    seconds = LONG if QUICK or SAMPLED else 35
    process = start(program, library, wrapper, THREADS, seconds + 5, env={"LD_LIBRARY_PATH": beside})
    time.sleep(1.5)
    samples = samples_of(begin(seconds, "threads", "--php-request", "-p", process.pid), "threads")
    process.kill()
    process.wait()
    return samples


def check_threads():
    try:
        library, beside = phps.threaded()
    except phps.packages.Unavailable as e:
        tap.skip("PHP for threads", str(e))
        return
    program = path("threads")
    built = run("cc", "-O1", "-g", "-o", program, os.path.join(FOLDER, "threads.c"), "-ldl", "-pthread")
    if not tap.ok(built.returncode == 0, "threads: the program is built", built.stderr[:300]):
        return
    for load, legal in ("load.php", 0.999), ("fibers.php", 0.99):
        tally, of_thread, labels = Tally(), Counter(), Counter()
        for sample in sampled_threads(program, library, beside, load):
            if frames_of(sample)[:1] and frames_of(sample)[0][1] == path("threads.php"):
                at = sample.modules.index("[php]")
                del sample.names[at], sample.modules[at], sample.places[at]
            tally.add(judge, sample, load)
            name = sample.labels.get("thread", "")
            if frames_of(sample):
                of_thread[name] += sample.count
                mine = f"/srv/thread{name[4:]}.php", f"/thread/{name[4:]}"
                labels[(sample.labels.get("php_script"), sample.labels.get("php_path")) == mine] += sample.count
        name = f"8.4 for threads, {load}"
        tap.ok(tally.judged >= MANY and tally.legal + FEW >= legal * tally.judged, f"{name}: stacks are whole and legal", tally.figures())
        tap.ok(not tally.wrong, f"{name}: none is wrong that is not flagged", tally.wrong.most_common(3))
        tap.ok(len(of_thread) == THREADS and min(of_thread.values()) >= LEAST / THREADS / 2, f"{name}: of every thread", dict(of_thread))
        tap.ok(set(labels) == {True}, f"{name}: each with its own request", dict(labels))


# ---- php-fpm ----


def worker_of(process):
    """The pid of the one worker."""
    for _ in range(100):
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
            children = f.read().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    return -1


class Served:
    """What is seen of a worker of php-fpm, whose script the outermost frame tells."""

    def __init__(self):
        self.frames = self.wrong = self.stacks = self.whole = self.flagged = self.unnamed = self.outside = self.answers = 0
        self.missing, self.faults = Counter(), Counter()

    def add(self, sample):
        stack = frames_of(sample)
        self.unnamed += sample.count * sum(1 for n, m in zip(sample.names, sample.modules) if m == "[php]" and n.startswith("["))
        if not stack:
            before = self.outside
            count_without(self, sample)
            if self.outside == before and sample.end != "cut:runtime-not-ready":
                self.faults[f"no frame of PHP ({sample.end}): {' < '.join([*sample.names[:-7:-1], '..', *sample.names[:3][::-1]])}"] += sample.count
            return
        self.stacks += sample.count
        self.frames += sample.count * len(stack)
        number = re.search(r"/fpm/s(\d+)\.php$", stack[0][1])
        number = number and number[1]
        allowed = chains(number)
        names = {name for chain in allowed for name in chain}
        odd = sum(1 for name, file, *_ in stack if plain(name) not in names or not file.endswith(f"/s{number}.php"))
        self.wrong += sample.count * odd
        if tuple(plain(f[0]) for f in stack) in allowed and not odd and not is_flagged(sample):
            self.whole += sample.count
        else:
            self.flagged += sample.count * is_flagged(sample)
            self.faults[" > ".join(f"{f[0]} {os.path.basename(f[1])}" for f in stack) + f" ({sample.end})"] += sample.count


def under_requests(where, seconds, options, served, choose):
    session = begin(seconds, "fpm", *options)
    end = time.monotonic() + seconds + 2
    while time.monotonic() < end and session.poll() is None:
        served.answers += b"alpha" not in request(where, path(f"fpm/s{choose.randrange(SCRIPTS)}.php"))
    return written(session, "fpm")


def has_compiled(pid):
    """Does opcache's compiler have memory for code there?"""
    with open(f"/proc/{pid}/maps") as f:
        return any("xs " in line and "/dev/zero" in line for line in f)


def check_fpm(fpm, jit=None, options=()):
    what = f"php-fpm of {fpm.name}" + (f", {jit} compiler" if jit else "") + (", from outside" if options else "")
    compiler = ["-d", "zend_extension=opcache", "-d", "opcache.file_update_protection=0", "-d", f"opcache.jit={jit}", "-d", "opcache.jit_buffer_size=32M"]
    if fpm.root:
        compiler = ["-d", f"extension_dir={fpm.extensions()}", *compiler]
    process, where = serve(fpm, {f"s{i}.php": script(i) for i in range(SCRIPTS)}, 1, compiler if jit else [])
    if not tap.ok(process is not None, f"{what}: it listens"):
        shutil.rmtree(path("fpm"))
        return
    worker, served, choose = worker_of(process), Served(), random.Random(1)
    seconds, least = 4 if QUICK else 20, MANY_FRAMES // 100 if options else MANY_FRAMES
    for _ in range(1 if options else ROUNDS):
        profiles = under_requests(where, seconds, options, served, choose)
        if profiles is None:
            break
        for profile in profiles:
            for sample in profile.of(worker):
                served.add(sample)
        if served.frames >= least:
            break
    text = run(HEARTH, "convert", path("fpm.pb.gz"), "--format", "col", "-o", "-").stdout
    tap.ok(";appid: php-fpm: shop;" in text, f"{what}: its pool is the application", ", ".join(sorted(set(re.findall("appid: [^;]*", text)))[:4]))
    if jit:
        tap.ok(has_compiled(worker), f"{what}: there is compiled code")
    tap.ok(served.frames >= least and not served.wrong, f"{what}: no wrong name",
           f"{served.wrong} of {served.frames} frames, {served.stacks} samples of {served.answers} requests, {served.unnamed} without a name")
    # From outside a request may be over when its names are read.
    tap.ok(served.unnamed <= (0.2 if options else 0.01) * served.frames, f"{what}: nearly all have names", f"{100 * served.unnamed / max(served.frames, 1):.2f} % have none")
    if not options:
        judged = served.stacks + served.missing.total()
        # While a request ends there is no frame for some instructions: 2 ns of each, 1 in 11,000 samples where requests do little.
        tap.ok(judged and at_most(judged - served.whole, judged, 0.001), f"{what}: chains are whole",
               f"{100 * served.whole / max(judged, 1):.2f} % of {judged}, {served.flagged} flagged, {dict(served.missing)} without their frames, {served.outside} outside of PHP")
    for fault, count in served.faults.most_common(4):
        tap.note(f"    {count} times {fault[:300]}")
    process.terminate()
    process.wait()
    shutil.rmtree(path("fpm"))


def fpms():
    """Of the machine, and of the other suites."""
    machine = phps.fpm_of_machine()
    if not machine:
        tap.skip("php-fpm", "not installed")
    out = [machine] if machine else []
    for suite in () if QUICK else some_of(phps.SUITES):
        try:
            out.append(phps.fpm_of_suite(suite))
        except phps.packages.Unavailable as e:
            tap.skip(f"php-fpm of {suite}", str(e))
    return out


versions = phps.of_machine() if QUICK else phps.everything(tap)
versions = [] if "fpm" in only else [p for p in versions if not only or p.version in only or p.source in only]
if not versions and not only:
    tap.skip("every version", "no interpreter")
for php in versions:
    check_dump(php)
    check_load(php, "load.php")
    check_lines(php)
    check_outside(php, "load.php")
    if php.number >= (8, 1):
        check_load(php, "fibers.php", legal=0.99, whole=0)
        check_fiber_ends(php)
        check_outside(php, "fibers.php")
    if php.number >= (8, 0):
        for jit in ["tracing"] if QUICK else ["tracing", "function"]:
            check_load(php, "load.php", jit)
if not QUICK and (not only or "threads" in only):
    check_threads()
if not only or "fpm" in only:  # "fpm 8.4": that of one version
    for fpm in [f for f in fpms() if only in ([], ["fpm"]) or f.version in only]:
        check_fpm(fpm)
        if fpm.number >= (8, 0):
            check_fpm(fpm, "tracing")
        if not fpm.root:
            check_fpm(fpm, options=["--sampler", "remote"])
tap.finish()
