#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby methods that live for a millisecond, 1,000 a second: who calls one says its number, in its file's name; the method says it
in its own. A frame that bears another number has the name of code that lay there before or later."""
import re
import signal
from collections import Counter

from judge import share_interval
from rubies import everything, installed
from support import *

SECONDS = 5 if QUICK else 20 if SAMPLED else 50
LEAST = 50 if QUICK else 500 if SAMPLED else 1500  # frames of such methods, in one version; in the quick form other checks have the CPU, too
LEAST_IN_ALL = 0 if QUICK or SAMPLED else 5000  # of three versions, so that one wrong name in 1,000 would be seen
RATE = 1000
HZ = 1997 if QUICK or SAMPLED else 3997  # a fast machine spends little time in them

tap = Tap("ruby_generated")
seen = []  # frames of each version
need(tap)


def check(ruby):
    """Whether a process is met at all is judged by the check ruby. One of 40 was not, on a busy machine: that is told, and it is done once more."""
    made, samples, said = recorded(ruby)
    if not any(m.startswith("[ruby") for s in samples for m in s.modules):
        tap.note(f"{ruby.name}: its process was not met: {len(samples)} stacks, {dict(Counter(s.end for s in samples))}; {said[-600:].strip()}")
        made, samples, said = recorded(ruby)
    judge(ruby, made, samples)


def recorded(ruby):
    recorder = start(HEARTH, "record", "-F", HZ, "-o", path("made.pb.gz"), stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    load = start(*ruby.command([HERE, scratch], os.path.join(HERE, "ruby", "generated.rb"), SECONDS, RATE), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, text=True)
    load.stdout.readline()
    time.sleep(0.5)
    load.stdin.write("\n")
    load.stdin.flush()
    made = int(load.stdout.readline())
    load.wait(timeout=30)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    return made, list(Profile(path("made.pb.gz")).of(load)), said


def judge(ruby, made, samples):
    named = unnamed = wrong = 0
    for s in samples:
        ruby_frames = [(n, os.path.basename(p[0])) for n, m, p in zip(s.names, s.modules, s.places) if m.startswith("[ruby")]
        for (caller, file), (name, own) in zip(ruby_frames, ruby_frames[1:]):
            caller, name = (n.rpartition("#")[2] for n in (caller, name))  # from 3.3 on with the class
            if caller != "call_it" or name == "(garbage collector)":
                continue
            called = re.fullmatch(r"made_(\d+)", name)
            by_file = re.fullmatch(r"call_(\d+)\.rb", file)
            if not called or not by_file or not own:
                unnamed += s.count
                tap.note(f"    unnamed: {caller} {file} {name} {own} {s.end}")
            elif called[1] != by_file[1] or own != file:
                wrong += s.count
                tap.note(f"    {name} of {own}, called in {file}")
            else:
                named += s.count
        unnamed += s.count * any(n.startswith("[Lost") for n, _ in ruby_frames)
    everyone = named + unnamed + wrong
    seen.append(everyone)
    tap.ok(everyone >= LEAST and wrong == 0, f"{ruby.name}: no wrong name", f"{wrong} of {everyone} frames of {made} methods")
    # A short run has 600 frames: there the bound fails when the share cannot be 99.9 %.
    tap.ok((share_interval(named, everyone)[1] if QUICK or SAMPLED else named / max(everyone, 1)) >= 0.999, f"{ruby.name}: they are named", f"{named} of {everyone}")


rubies = installed() if QUICK else everything(tap)
if not rubies:
    tap.skip("everything", "no interpreter")
for one in rubies:
    check(one)
if len(rubies) >= 3:
    tap.ok(sum(seen) >= LEAST_IN_ALL, "frames of all versions", sum(seen))
tap.finish()
