#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby, PHP and Perl beyond ticks in BPF: off the CPU, in a function that says itself how long it waited; and by the sampler perf, without
BPF, in a load of which every frame is known (interpreters/load.*). docs/ruby.md, docs/php.md and docs/perl.md have what came of it."""
from collections import Counter

from support import *

FOLDER = os.path.join(HERE, "interpreters")
SECONDS = 4 if QUICK else 15
HZ = 199
CHAINS = (["outer", "middle", "wait_here"], ["outer", "middle", "burn"], ["outer", "now"], ["now"])
# Name, program, ending, module, what the outermost frame is called.
LANGUAGES = (("Ruby", "ruby", "rb", "[ruby", "<main>"), ("PHP", "php", "php", "[php", "<main>"), ("Perl", "perl", "pl", "[perl", "(main program)"))

tap = Tap("interpreters")
need(tap)


def own(sample, module):
    """The interpreter's frames, root first, without package; and where each one is."""
    return [(n.rpartition("::")[2], os.path.basename(p[0]), p[1]) for n, m, p in zip(sample.names, sample.modules, sample.places) if m.startswith(module)]


def lines_of(ending):
    """Function -> first and last line of it in the load; the outermost one has the lines behind them all."""
    found, name = {}, None
    with open(os.path.join(FOLDER, f"load.{ending}"), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if match := re.match(r"(?:def|sub|function) (\w+)", line):
                name = match[1]
                found[name] = (number, number)
            elif name and (line[:1].isspace() or line[:1] in "{}" or line.startswith("end")):
                found[name] = (found[name][0], number)
            elif line.strip():
                name = None
    return found


def why_wrong(frames, root, ending, lines, vague=False):
    """None: it is the beginning of a chain that the load has, each frame in its function's lines. Functions of the interpreter may be called at
    its end. @vague: the innermost line may be not known."""
    names = [n for n, _, _ in frames]
    own = [n for n in names if n in lines]
    if names[:1] != [root] or names[1:1 + len(own)] != own:
        return f"frames {names}"
    if not any(chain[:len(own)] == own for chain in CHAINS):
        return f"chain {own}"
    for i, (name, file, line) in enumerate(frames):
        if vague and i == len(frames) - 1 and not line:
            continue
        if name in lines and (file != f"load.{ending}" or not lines[name][0] <= line <= lines[name][1]):
            return f"{name} {file}:{line}"
    return None


def off_cpu(title, program, ending, module, root):
    file = path(f"{ending}.pb.gz")
    done = hearth("record", "--off-cpu", "-q", "-o", file, "--", program, os.path.join(FOLDER, f"load.{ending}"), "sleep", SECONDS, timeout=120)
    if not tap.ok(done.returncode == 0, f"{title}: hearth record --off-cpu ends well", done.stderr[-300:].strip()):
        return
    said = done.stdout.split()
    if not tap.ok(len(said) >= 2 and int(said[0]) > 0, f"{title}: the program says how long it waited", done.stdout[:100]):
        return
    truth, times = map(int, said[:2])
    profile = Profile(file)
    time_at, count_at = profile.types.index(("off_cpu", "nanoseconds")), profile.types.index(("waits", "count"))
    lines, below, bad = lines_of(ending), [], Counter()
    for s in profile.samples:
        frames = own(s, module)
        if not s.values[time_at] or not any(n == "wait_here" for n, _, _ in frames):
            continue
        below.append(s)
        why = f"{s.end}" if s.end != "complete" else why_wrong(frames, root, ending, lines)
        if why:
            bad[why] += s.values[time_at]
    got, count = sum(s.values[time_at] for s in below), sum(s.values[count_at] for s in below)
    tap.ok(abs(got / truth - 1) <= 0.05, f"{title}: time waited in the function within 5 %", f"{got / 1e6:.1f} of {truth / 1e6:.1f} ms, {count} waits of {times}")
    tap.ok(abs(count - times) <= max(3, 0.05 * times), f"{title}: number of waits", f"{count} of {times}")
    tap.ok(below and sum(bad.values()) <= 0.01 * got, f"{title}: whole, and its chain of functions and lines, 99 % of that time", f"{sum(bad.values()) / 1e6:.1f} ms other")
    for why, ns in bad.most_common(4):
        tap.note(f"    {ns / 1e6:.1f} ms {why}")


def by_perf(title, program, ending, module, root):
    process = start(program, os.path.join(FOLDER, f"load.{ending}"), "work", SECONDS + 30)
    rival = start("sh", "-c", "while :; do :; done")
    for both in process, rival:  # on one CPU: what waits for it stands still while it is read
        os.sched_setaffinity(both.pid, {min(os.sched_getaffinity(0))})
    time.sleep(0.5)
    file = path(f"{ending}-perf.pb.gz")
    done = hearth("record", "--sampler", "perf", "-q", "-F", HZ, "-d", SECONDS, "-p", process.pid, "-o", file, timeout=SECONDS + 60)
    for both in process, rival:
        both.kill()
        both.wait()
    if not tap.ok(done.returncode == 0, f"{title}, sampler perf: hearth record ends well", done.stderr[-300:].strip()):
        return
    profile = Profile(file)
    lines, ends, bad, clean, flagged, burning, without = lines_of(ending), Counter(), Counter(), 0, 0, 0, 0
    for s in profile.of(process):
        frames = own(s, module)
        ends[s.end] += s.count
        burning += s.count * any(n == "burn" for n, _, _ in frames)
        if not frames:
            without += s.count
            continue
        if s.end != "complete":
            flagged += s.count
            continue
        clean += s.count
        why = why_wrong(frames, root, ending, lines, vague=title == "PHP")  # docs/php.md, Limits
        if why:
            bad[why] += s.count
    tap.ok(profile.facts.get("sampler") == "perf", f"{title}, sampler perf: the file says so", profile.facts.get("sampler"))
    tap.ok(clean >= 20 and clean + flagged >= (100 if QUICK else 400) and without <= 0.01 * (clean + flagged), f"{title}, sampler perf: its stacks", f"{clean} clean, {flagged} flagged, {without} without frames; {dict(ends)}")
    tap.ok(burning >= 0.9 * (clean + flagged), f"{title}, sampler perf: they are where its time goes", f"{burning} of {clean + flagged}")
    tap.ok(sum(bad.values()) <= 0.002 * clean, f"{title}, sampler perf: clean ones are right", f"{sum(bad.values())} of {clean}")
    for why, count in bad.most_common(4):
        tap.note(f"    {count} times {why}")


for title, program, ending, module, root in LANGUAGES:
    if not shutil.which(program):
        tap.skip(title, f"needs {program}")
        continue
    off_cpu(title, program, ending, module, root)
    by_perf(title, program, ending, module, root)
tap.finish()
