#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PHP's stacks in BPF beside what the program's lines may call (php_oracle.py): every version, opcache's compiler, fibers, the line
that runs, and a worker of php-fpm that has other functions in the same memory with each request."""
import random
from collections import Counter

import parked
import phps
from fpm import request, script, serve
from php_oracle import Judge, Tally, frames_of
from support import *

FOLDER = os.path.join(HERE, "php")
SECONDS = 3 if QUICK else 12  # of wall time for each load
LONG = SECONDS if QUICK else 30  # of these there are 10,000 samples where nothing else runs
WHOLE = 0.995  # native stacks, but those in PCRE
LEAST = 75 if QUICK else 300  # samples that are judged; where nothing else runs there are ten times as many
HZ = 997
SCRIPTS = 40
THREADS = 4

tap = Tap("php")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]
judge = Judge(FOLDER)


def sampled(php, load, jit=None, seconds=SECONDS, options=()):
    """One program under a session of its own."""
    command = php.command([FOLDER], *php.options(jit), os.path.join(FOLDER, load), seconds + 2)
    process = start(*command)
    time.sleep(0.7)
    file = path("php.pb.gz")
    record(tap, seconds, "-F", HZ, "-q", *options, "-p", process.pid, "-o", file)
    process.kill()
    process.wait()
    return Profile(file)


def check_load(php, load, jit=None, legal=0.999, whole=0.97, seconds=SECONDS):
    profile, tally = sampled(php, load, jit, seconds), Tally()
    name = f"{php.name}, {load}" + (f", {jit} compiler" if jit else "")
    for sample in profile.samples:
        tally.add(judge, sample, load)
    few = 1  # one tick between two instructions is nothing to go by
    tap.ok(tally.judged >= LEAST and tally.legal + few >= legal * tally.judged, f"{name}: stacks are whole and legal", tally.figures())
    tap.ok(not tally.wrong, f"{name}: none is wrong that is not flagged", sum(tally.wrong.values()))
    for why, count in tally.wrong.most_common(4):
        tap.note(f"    {count} times {why}")
    if whole:
        ends = tally.native_ends["complete"]
        tap.ok(ends >= whole * tally.judged, f"{name}: native frames in order and whole", f"{100 * ends / max(tally.judged, 1):.2f} %")
        ends, others = ends - tally.in_pcre["complete"], tally.judged - tally.in_pcre.total()
        tap.ok(ends + few >= WHOLE * others, f"{name}: native frames but those in PCRE", f"{100 * ends / max(others, 1):.2f} % of {others}")
    tap.note("    " + ", ".join(f"{end} {count}" for end, count in tally.native_ends.most_common(5)))


def check_outside(php, load):
    """By the sampler remote: what moves between two reads has to say so."""
    tally = Tally()
    clean = 0
    for sample in sampled(php, load, options=["--sampler", "remote"]).samples:
        tally.add(judge, sample, load)
        clean += sample.count * (sample.end == "complete")
    wrong = sum(tally.wrong.values())
    tap.ok(tally.judged >= LEAST / 3 and clean, f"{php.name}, {load}, from outside: stacks", f"{clean} clean; {tally.figures()}; {dict(tally.native_ends)}")
    tap.ok(wrong <= max(1, 0.002 * clean), f"{php.name}, {load}, from outside: clean ones are right", wrong)
    for why, count in tally.wrong.most_common(4):
        tap.note(f"    {count} times {why}")


def check_lines(php):
    """Where the engine wrote nothing down the register has the line; one that hearth does not know it says so (0)."""
    with open(os.path.join(FOLDER, "lines.php")) as f:
        hot = next(i for i, line in enumerate(f, 1) if "// hot" in line)
    lines = Counter()
    for sample in sampled(php, "lines.php").samples:
        frames = frames_of(sample)
        if frames and frames[-1][0] == "hot":
            lines[frames[-1][2]] += sample.count
    known = sum(lines.values()) - lines[0]
    tap.ok(known >= LEAST and lines[hot] >= 0.99 * known and lines[0] <= 0.05 * known, f"{php.name}: the line that runs",
           f"{100 * lines[hot] / max(known, 1):.2f} % of {known}, {lines[0]} not known")


def check_dump(php):
    process = start(*php.command([HERE], *php.options(), os.path.join(parked.FOLDER, "parked.php")), stdout=subprocess.PIPE, text=True)
    parked.check(tap, php.name, process, "php", "PHP", skip=1)  # sleep()
    process.kill()
    process.wait()


# ---- several threads ----


def sampled_threads(program, library, beside, load):
    """Threads of a program with PHP inside, each with requests of its own. Return: the profile."""
    wrapper, file = path("threads.php"), path("threads.pb.gz")
    with open(wrapper, "w") as f:
        f.write(f"<?php\n$argv = [0, 1];\ninclude '{os.path.join(FOLDER, load)}';\n")
    process = start(program, library, wrapper, THREADS, LONG + 4, env={"LD_LIBRARY_PATH": beside})
    time.sleep(1.5)
    record(tap, LONG, "-F", HZ, "-q", "--php-request", "-p", process.pid, "-o", file)
    process.kill()
    process.wait()
    return Profile(file)


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
        for sample in sampled_threads(program, library, beside, load).samples:
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
        tap.ok(tally.judged >= LEAST and tally.legal + 1 >= legal * tally.judged, f"{name}: stacks are whole and legal", tally.figures())
        tap.ok(not tally.wrong, f"{name}: none is wrong that is not flagged", tally.wrong.most_common(3))
        tap.ok(len(of_thread) == THREADS and min(of_thread.values()) >= LEAST / THREADS / 2, f"{name}: of every thread", dict(of_thread))
        tap.ok(set(labels) == {True}, f"{name}: each with its own request", dict(labels))


# ---- php-fpm ----


def check_fpm(options=()):
    what = "php-fpm, from outside" if options else "php-fpm"
    fpm = phps.fpm_of_machine()
    if not fpm:
        tap.skip(what, "not installed")
        return
    process, where = serve(fpm, {f"s{i}.php": script(i) for i in range(SCRIPTS)})
    if not tap.ok(process is not None, f"{what}: it listens"):
        return
    file = path("fpm.pb.gz")
    seconds = 4 if QUICK else 45  # 20,000 frames
    recorder = start(HEARTH, "record", "-F", HZ, "-q", *options, "-d", seconds, "-o", file, stderr=subprocess.PIPE, text=True)
    end, answers, choose = time.monotonic() + seconds + 1, 0, random.Random(1)
    while time.monotonic() < end and recorder.poll() is None:
        answers += b"alpha" not in request(where, path(f"fpm/s{choose.randrange(SCRIPTS)}.php"))
    said = recorder.communicate(timeout=60)[1]
    tap.ok(recorder.returncode == 0, f"{what}: hearth record ends well", said[-200:])
    frames = wrong = stacks = unnamed = 0
    names = Counter()
    text = run(HEARTH, "convert", file, "--format", "col", "-o", "-").stdout
    tap.ok(";appid: php-fpm: shop;" in text, f"{what}: its pool is the application", ", ".join(sorted(set(re.findall("appid: [^;]*", text)))[:4]))
    for sample in Profile(file).samples:
        stack = frames_of(sample)
        mine = [f for f in stack if "/fpm/s" in f[1]]
        unnamed += sample.count * sum(1 for n, m in zip(sample.names, sample.modules) if m == "[php]" and n.startswith("["))
        if not mine:
            continue
        stacks += sample.count
        frames += sample.count * len(mine)
        number = re.search(r"/fpm/s(\d+)\.php", mine[0][1])[1]
        for name, where_is, line, first in mine:
            allowed = {"<main>", f"alpha{number}", f"Beta{number}::work{number}", "{closure}"}
            if name not in allowed or not where_is.endswith(f"/s{number}.php"):
                wrong += sample.count
                names[f"{name} {where_is} in s{number}"] += sample.count
    tap.ok(stacks >= LEAST / (10 if options else 3) and not wrong, f"{what}: no wrong name", f"{wrong} of {frames} frames, {stacks} samples of {answers} requests, {unnamed} without a name")
    # From outside a request may be over when its names are read.
    tap.ok(unnamed <= (0.2 if options else 0.01) * frames, f"{what}: nearly all have names", f"{100 * unnamed / max(frames, 1):.2f} % have none")
    for what, count in names.most_common(4):
        tap.note(f"    {count} times {what}")
    process.terminate()
    process.wait()
    shutil.rmtree(path("fpm"))


versions = phps.of_machine() if QUICK else phps.everything(tap)
versions = [p for p in versions if not only or p.version in only or p.source in only]
if not versions:
    tap.skip("every version", "no interpreter")
for php in versions:
    check_dump(php)
    check_load(php, "load.php", seconds=LONG)
    check_lines(php)
    check_outside(php, "load.php")
    if php.number >= (8, 1):
        check_load(php, "fibers.php", legal=0.99, whole=0)
        check_outside(php, "fibers.php")
    if php.number >= (8, 0):
        for jit in ["tracing"] if QUICK else ["tracing", "function"]:
            check_load(php, "load.php", jit, seconds=LONG)
if not QUICK and (not only or "threads" in only):
    check_threads()
if not only or "fpm" in only:
    check_fpm()
    check_fpm(["--sampler", "remote"])
tap.finish()
