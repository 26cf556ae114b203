#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of perf: perf.data and perf script's text give the same totals as perf and inferno's collapse-perf; names by build id
and jitdump; damaged files."""
import random
from collections import Counter

from support import *

COLLAPSE = os.path.join(os.environ.get("INFERNO", os.path.join(ROOT, "tests/sdks/inferno/bin")), "inferno-collapse-perf")

tap = Tap("perf")
need(tap, "perf")
seconds = 3 if QUICK else 8


def recorded(name, *args, program=("tree",), time=seconds):
    """perf record of a workload. Return: the file, or None after saying what went wrong."""
    done = run("perf", "record", "-q", *args, "-o", path(name), "--", workload(program[0]), time, *program[1:])
    return path(name) if tap.ok(done.returncode == 0, f"perf record {' '.join(args)}", done.stderr[-200:]) else None


def script(file, *args):
    return run("perf", "script", "-i", file, *args).stdout


def converted(file, *args, text=None):
    """Our reading of it. Return: Profile or None."""
    out = path(os.path.basename(file) + ".pb.gz")
    done = hearth("convert", file, "-q", "-o", out, *args) if text is None else \
        run(HEARTH, "convert", "-", "-q", "-o", out, *args, input=text)
    return Profile(out) if tap.ok(done.returncode == 0, f"hearth reads {os.path.basename(file)}", done.stderr[-300:]) else None


def heads(file, fields="comm,event"):
    """What perf prints of every sample, as words."""
    return [line.split() for line in script(file, "-F", fields, "-G").split("\n") if line.strip()]


def by_function(profile):
    found = Counter()
    for s in profile.samples:
        found[s.leaf] += s.values[0]
    return found


def text_and_data():
    file = recorded("p.data", "-g", "-e", "cpu-clock", "-F", "199", "--sample-cpu", "--buildid-mmap")
    if not file:
        return
    text = script(file)
    with open(path("p.txt"), "w", errors="surrogateescape") as f:
        f.write(text)
    data, words = converted(file), converted(path("p.txt"))
    if not data or not words:
        return
    wanted = heads(file, "comm,period,event")
    periods = sum(int(words[-2]) for words in wanted)
    for what, p in (("perf.data", data), ("perf script", words)):
        tap.ok(total(p.samples) == len(wanted) > 100, f"{what}: as many samples as perf has", f"{total(p.samples)} of {len(wanted)}")
        tap.ok(sum(s.values[1] for s in p.samples) == periods, f"{what}: the sum of all periods", f"{periods} ns")
        tap.ok(p.types[1][1] == "nanoseconds" and p.types[1][0].startswith("cpu-clock"), f"{what}: the column", f"{p.types}")
    chains = [Counter(), Counter()]
    for chain, p in zip(chains, (data, words)):
        for s in p.samples:
            chain[tuple(s.names)] += s.values[0]
    same = sum((chains[0] & chains[1]).values())
    tap.ok(same >= 0.97 * len(wanted), "the same stacks both ways, but for calls that never return and what has no name", f"{same} of {len(wanted)} {list((chains[0] - chains[1]).items())[:2]} {list((chains[1] - chains[0]).items())[:2]}")
    leaves = [by_function(p) for p in (data, words)]
    known = {n for n in leaves[1] if not n.startswith("[")}
    differ = {n: (leaves[0][n], leaves[1][n]) for n in known if leaves[0][n] != leaves[1][n]}
    tap.ok(len(known) > 3 and not differ, "every named function has the same samples both ways", f"{len(known)} functions {differ or ''}")
    tap.ok(abs(share([s for s in data.samples if "c" in s.names], data.samples) -
               share([s for s in words.samples if "c" in s.names], words.samples)) < 0.01, "the known tree's c has the same share")
    tap.ok(any(s.names[-3:] == ["main", "a", "b"] for s in data.samples), "main calls a calls b")
    places = Counter(s.labels.get("cpu", 0) for s in data.samples)
    tap.ok(set(places) <= set(range(CPUS)) and (CPUS == 1 or any(places)), "the CPU is a label", f"{dict(places)}")
    collapse(periods, words.types[1][0])


def collapse(periods, column):
    if not os.access(COLLAPSE, os.X_OK):
        tap.skip("totals as inferno-collapse-perf", "needs make setup-extra with cargo")
        return
    theirs = run(COLLAPSE, path("p.txt"))
    ours = hearth("convert", path("p.txt"), "-q", "-o", "-", "--format", "folded", "--value", column)
    counts = []
    for out in (theirs, ours):
        by_comm, by_leaf = Counter(), Counter()
        for line in out.stdout.splitlines():
            stack, _, count = line.rpartition(" ")
            frames = stack.split(";")
            by_comm[frames[0].replace(" ", "_")] += int(count)
            by_leaf[re.sub(r"_\[[kji]\]$", "", frames[-1])] += int(count)
        counts.append((by_comm, by_leaf))
    tap.ok(sum(counts[0][0].values()) == sum(counts[1][0].values()) == periods, "inferno-collapse-perf: the same total",
           f"{sum(counts[0][0].values())} and {sum(counts[1][0].values())}")
    tap.ok(counts[0][0] == counts[1][0], "and by process", f"{dict(counts[0][0])} {dict(counts[1][0])}")
    plain = {n for n in counts[0][1] if re.fullmatch(r"\w+", n)}  # inferno takes arguments off
    differ = {n: (counts[0][1][n], counts[1][1][n]) for n in plain if counts[0][1][n] != counts[1][1][n]}
    tap.ok(len(plain) > 3 and not differ, "and by function", f"{len(plain)} functions {differ or ''}")


def pipes():
    """perf record into hearth, and what perf says of the same bytes."""
    with open(path("pipe.data"), "wb") as f:
        done = subprocess.run(["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "199", "--buildid-mmap", "-o", "-", "--", workload("tree"), "2"],
                              stdout=f, stderr=subprocess.PIPE)
    if not tap.ok(done.returncode == 0, "perf record into a pipe", done.stderr[-200:]):
        return
    with open(path("pipe.data"), "rb") as f:
        ours = subprocess.run([HEARTH, "convert", "-", "-q", "-o", path("pipe.pb.gz")], stdin=f, capture_output=True)
        f.seek(0)
        theirs = subprocess.run(["perf", "script", "-i", "-", "-F", "comm,time", "-G"], stdin=f, capture_output=True, text=True)
    wanted = len([line for line in theirs.stdout.split("\n") if line.strip()])
    if tap.ok(ours.returncode == 0, "hearth reads the pipe", ours.stderr[-200:]):
        p = Profile(path("pipe.pb.gz"))
        tap.ok(total(p.samples) == wanted > 50, "pipe: as many samples as perf has", f"{total(p.samples)} of {wanted}")
        tap.ok(any(s.names[-3:] == ["main", "a", "b"] for s in p.samples), "pipe: names by the build ids of its mappings")


def layouts():
    """Compressed, several events, without chains, with inlined functions: the totals are perf's."""
    for name, args, fields in (("z.data", ("-z", "-g", "-e", "cpu-clock", "-F", "499"), ()),
                               ("events.data", ("-g", "-F", "99", "-e", "cpu-clock", "-e", "page-faults"), ()),
                               ("plain.data", ("-e", "cpu-clock", "-F", "99"), ()),
                               ("tracepoint.data", ("-e", "sched:sched_switch", "-e", "cpu-clock"), ()),
                               ("pid.data", ("-g", "-e", "task-clock"), ("-F", "+pid"))):
        file = recorded(name, *args, time=2)
        if not file:
            continue
        samples = heads(file, "comm,period,event")
        wanted = Counter()
        for *_, period, event in samples:
            wanted[event] += int(period)
        with open(path("layout.txt"), "w") as f:
            f.write(script(file, *fields))
        for p in (converted(file), converted(path("layout.txt"))):
            if p:
                found = Counter({kind: sum(s.values[i + 1] for s in p.samples) for i, (kind, _) in enumerate(p.types[1:])})
                tap.ok(total(p.samples) == len(samples), f"{name}: as many samples as perf has", f"{total(p.samples)}")
                tap.ok({k.split(":")[0]: v for k, v in found.items() if v} == {k.split(":")[0]: v for k, v in wanted.items()},
                       f"{name}: the periods of each event", f"{dict(found)} {dict(wanted)}")


def jit():
    if os.uname().machine not in ("x86_64", "aarch64"):
        tap.skip("names of a jitdump", "needs x86-64 or aarch64")
        return
    for name, clock in (("jit.data", ("-k", "mono")), ("jit_no_clock.data", ())):
        file = recorded(name, "-g", "-e", "cpu-clock", "-F", "499", *clock, program=("jitdump",), time=3)
        dumps = re.findall(r"/tmp/jit-\d+\.dump", script(file, "--show-mmap-events") if file else "")
        p = converted(file) if file else None
        if p:
            found = Counter()
            for s in p.samples:
                found.update({n: s.values[0] for n in s.names if n.endswith("_loop")})
            every = [n for n in ("first_loop", "second_loop", "moved_loop") if found[n] > 0.05 * total(p.samples)]
            if clock:
                tap.ok(len(every) == 3, "jitdump: each function by its time", f"{dict(found)} of {total(p.samples)}")
                tap.ok(any(pl[:2] == ("/src/moved.js", 42) for s in p.samples for pl in s.places), "jitdump: file and line of moved code")
            else:
                tap.ok(every == ["second_loop", "moved_loop"], "jitdump without its clock: the last function that lay there",
                       f"{dict(found)} of {total(p.samples)}")
        for dump in set(dumps):
            os.unlink(dump)


def other_build():
    """The file has changed since: nothing of it is believed."""
    shutil.copy(workload("spin"), path("spin"))
    done = run("perf", "record", "-q", "-e", "cpu-clock:u", "-N", "-o", path("other.data"), "--", path("spin"), 1)
    if not tap.ok(done.returncode == 0, "perf record of a copy", done.stderr[-200:]):
        return
    with open(path("other.data"), "rb") as f:
        tap.ok(b"spin" in f.read(), "its name is in the recording")
    shutil.copy(workload("nofp"), path("new"))
    os.rename(path("new"), path("spin"))
    done = run(HEARTH, "convert", path("other.data"), "-o", path("other.pb.gz"), env={**os.environ, "HOME": scratch})
    tap.ok(done.returncode == 0 and "not here as they were recorded" in done.stderr, "another build at its path is said", done.stderr[:200])
    if done.returncode == 0:
        p = Profile(path("other.pb.gz"))
        names = Counter(s.leaf for s in p.samples if s.modules and s.modules[-1].endswith("/spin"))
        tap.ok(names and set(names) == {""}, "and its functions are not named after the new one's", f"{dict(names)}")


def damaged():
    """Cut and changed bytes: an answer or one line, never a crash."""
    with open(path("z.data" if os.path.exists(path("z.data")) else "p.data"), "rb") as f:
        whole = f.read()
    chance, worst = random.Random(7), []
    for i in range(20 if QUICK else 200):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 5, 50))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with open(path("bad.data"), "wb") as f:
            f.write(data[:chance.randrange(len(data))] if i % 3 == 0 else data)
        done = hearth("convert", path("bad.data"), "-q", "--from", "perf-data", "-o", path("bad.pb.gz"))
        if done.returncode not in (0, 1) or len(done.stderr.splitlines()) > 3:
            worst.append((i, done.returncode, done.stderr[-200:]))
    tap.ok(not worst, "damaged recordings are read as far as they go, or refused in a line", f"{worst[:2] or ''}")
    with open(path("cut.data"), "wb") as f:
        f.write(whole[:len(whole) // 2])
    done = hearth("convert", path("cut.data"), "-o", path("cut.pb.gz"))
    tap.ok(done.returncode == 0 and "did not end as it should" in done.stderr, "half a recording is read, and that is said", done.stderr[:200])


text_and_data()
pipes()
layouts()
jit()
other_build()
damaged()
tap.finish()
