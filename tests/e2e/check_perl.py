#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Perl's stacks beside what a load can have (perl/load.pl says it in its text), threads too, and subs that live for a moment
(perl/evals.pl): a name tells its number, and all of one stack have the same. docs/perl.md says what is judged how."""
from collections import Counter

import parked
import perl_oracle
import perls
from support import *

TICKS = 600 if QUICK else 3000 if SAMPLED else 10000
HZ = 997
OUTSIDE = ["--sampler", "remote"]
ONE_CPU = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
SECONDS_MAX = 12 if QUICK else 120
# An instant at the end of a sub is enough for a wrong line: 1 to 5 of 10,000 samples (docs/perl.md).
WRONG_MAX = 0.005 if QUICK else 0.001
LEAST = TICKS // 10 if QUICK else TICKS
EVALS_LEAST = 50 if QUICK else 500 if SAMPLED else 5000

only = [a for a in sys.argv[1:] if not a.startswith("-")]  # names, as perls.py has them

tap = Tap("perl")
need(tap)
load = perl_oracle.Load(os.path.join(HERE, "perl", "load.pl"))


def recorded(perl, script, *arguments, options=(), pinned=()):
    """The samples of a run, but those before hearth had attached; of so long a time as @TICKS want on a machine that others use.
    @pinned: a command before both: the program's and hearth's."""
    done = []
    left = SECONDS_MAX
    while weight(done) < TICKS and left > 0:
        seconds = min(left, 4 if QUICK else 30)
        left -= seconds
        process = start(*pinned, *perl.command(os.path.join(HERE, "perl", script), seconds + 2, *arguments))
        time.sleep(1)
        out = path("perl.pb.gz")
        got = run(*pinned, HEARTH, "record", "-q", "-F", HZ, *options, "-d", f"{seconds}s", "-p", process.pid, "-o", out, timeout=seconds + 60)
        process.wait(timeout=60)
        if got.returncode:
            tap.ok(False, f"{perl.name}: hearth record ends well", got.stderr[-300:])
            return []
        done += [s for s in Profile(out).samples if s.end != "cut:runtime-not-ready" and (options or runs_perl(s))]
    return done


def runs_perl(sample):
    """Not the start and the end of a program or thread: there its interpreter is made, or taken apart by another one, and runs nothing. A
    stack that is not whole counts: nobody knows what it would have."""
    if "perl_destruct" in sample.names:
        return False
    return bool(perl_oracle.frames_of(sample) or "Perl_runops_standard" in sample.names or sample.end not in ("complete", "guessed"))


def weight(samples):
    return sum(s.values[0] for s in samples)


def judge_load(perl, threads):
    what = f"{perl.name} {perl.version()}{', threads' if threads else ''}"
    samples = recorded(perl, "load.pl", *([threads] if threads else []))
    wrong, flagged = Counter(), 0
    for s in samples:
        why = load.wrong(perl_oracle.frames_of(s), bool(threads))
        if s.end.startswith("cut:runtime"):
            flagged += s.values[0]
        elif why:
            wrong[why] += s.values[0]
    for why, count in wrong.most_common(8):
        tap.note(f"{count} {why}")
    total = weight(samples)
    bad = sum(wrong.values()) + flagged
    tap.ok(total >= LEAST, f"{what}: samples", total)
    tap.ok(bad <= max(1, WRONG_MAX * total), f"{what}: legal and whole", f"{total - bad} of {total}, {flagged} flagged")


def judge_outside(perl, threads, pinned=()):
    """By the sampler remote: what moves between two reads has to say so. On a CPU of its own a program moves nearly always;
    @pinned to hearth's it stands while it is read."""
    what = f"{perl.name} {perl.version()}{', threads' if threads else ''}, from outside{', on the same CPU' if pinned else ''}"
    clean, flagged, legal, wrong = 0, 0, 0, Counter()
    for s in recorded(perl, "load.pl", *([threads] if threads else []), options=OUTSIDE, pinned=pinned):
        frames = perl_oracle.frames_of(s)
        why = load.wrong(frames, bool(threads)) if frames else "no frames"
        if s.end == "complete" and frames:
            clean += s.values[0]
            if why:
                wrong[why] += s.values[0]
        elif s.end != "complete":
            flagged += s.values[0]
            legal += s.values[0] * (not why)
    bad = sum(wrong.values())
    least = flagged if pinned else 0
    tap.ok(clean + flagged >= TICKS / 30 and clean >= least, f"{what}: stacks", f"{clean} clean, {flagged} flagged, {legal} of those legal")
    tap.ok(bad <= max(1, 2 * WRONG_MAX * clean), f"{what}: clean ones are right", bad)
    for why, count in wrong.most_common(4):
        tap.note(f"    {count} times {why}")


def judge_evals(perl, options=(), pinned=()):
    """None has another one's name. From outside (@options) the program runs on while it is read: a stack that says it is cut may, and one clean one."""
    samples = recorded(perl, "evals.pl", options=options, pinned=pinned)
    where = ", from outside" if options else ""
    numbered, wrong = 0, Counter()
    for s in samples:
        frames = perl_oracle.frames_of(s)
        numbered += sum(bool(perl_oracle.NUMBERED.match(f[0])) for f in frames)
        wrong[s.end] += perl_oracle.wrong_number(frames)
    bad = max(0, wrong["complete"] - 1) if options else wrong.total()
    tap.ok(numbered >= EVALS_LEAST, f"{perl.name}{where}: frames of subs that live for a moment", numbered)
    tap.ok(not bad, f"{perl.name}{where}: none has another one's name", f"{wrong.total()} {dict(+wrong)}")


def judge_oracle():
    """Stacks made wrong on purpose are found."""
    root, sub, leaf = (perl_oracle.PROGRAM, "load.pl", max(load.calls)), "main::work", ("main::burn", "load.pl", load.subs["main::burn"][0] + 3)
    line = next(n for n, names in load.calls.items() if "main::looping" in names)
    stack = [root, (sub, "load.pl", next(n for n, names in load.calls.items() if names == {"main::round"})), ("main::round", "load.pl", line),
             ("main::looping", "load.pl", load.subs["main::looping"][1] - 4), leaf]
    tap.ok(load.wrong(stack) is None, "the oracle: a right stack", load.wrong(stack) or "")
    others = [stack[1:], stack[:2] + stack[3:], stack[:-1] + [("main::burn", "load.pl", 1)], stack[:-1] + [("main::weigh", "load.pl", leaf[2])],
              stack[:2] + [stack[2]] + stack[2:], stack[:-1] + [("main::burn", "other.pl", leaf[2])], []]
    tap.ok(all(load.wrong(o) for o in others), "the oracle: wrong ones", [bool(load.wrong(o)) for o in others])


def judge_dump(perl):
    process = start(*perl.command(os.path.join(parked.FOLDER, "parked.pl")), stdout=subprocess.PIPE, text=True)
    parked.check(tap, f"{perl.name} {perl.version()}", process, "perl", "Perl")
    process.kill()
    process.wait()


def switched_off(perl):
    process = start(*perl.command(os.path.join(HERE, "perl", "load.pl"), 60))
    time.sleep(1)
    for option in ("--no-perl", "--perl-mode=disabled"):
        out = path("off.pb.gz")
        run(HEARTH, "record", "-q", "-F", HZ, "-d", "1s", option, "-p", process.pid, "-o", out)
        samples = Profile(out).samples
        tap.ok(samples and not any(perl_oracle.frames_of(s) for s in samples), f"{option}: no frames of Perl", len(samples))
    process.kill()


judge_oracle()
found = perls.own()
if not found:
    tap.skip("Perl", "there is none")
    tap.finish()
switched_off(found[0])
for name in [] if QUICK else some_of(perls.SUITES):
    one = perls.suite(name)
    if one:
        found.append(one)
    else:
        tap.skip(name, "debootstrap is missing or cannot fetch it")
if not QUICK and not SAMPLED:
    try:
        found.append(perls.plain())
    except perls.packages.Unavailable as e:
        tap.skip("Perl without threads", str(e))
    if not perls.named():
        tap.skip(f"Perl {perls.NOT_SERVED}", "no suite has them, and HEARTH_PERLS names none")
found += perls.named()
for one in [f for f in found if not only or f.name in only]:
    judge_dump(one)
    judge_load(one, 0)
    if one.has_threads() and (not QUICK or one is found[0]):
        judge_load(one, 3)
    judge_evals(one)
    judge_outside(one, 0, ONE_CPU)
    if one.has_threads() and (not QUICK or one is found[0]):
        judge_outside(one, 3)
    judge_evals(one, OUTSIDE, ONE_CPU)
tap.finish()
