#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Off-CPU: programs that say themselves how long they waited, in a sleep, at a lock and at a pipe."""
from support import *

tap = Tap("offcpu")
need(tap)
seconds = 5 if QUICK else 10


def waits(kind, *options, file=None):
    """Records one run. Returns (profile, what the program says it waited, how often)."""
    file = file or path(f"{kind}.pb.gz")
    done = hearth("record", "--off-cpu", *options, "-q", "-o", file, "--", workload("waits"), kind, seconds, timeout=120)
    if not tap.ok(done.returncode == 0, f"{kind}: hearth record --off-cpu ends well", done.stderr[-300:].strip()):
        tap.finish()
    said = done.stdout.split()
    return Profile(file), int(said[0]), int(said[1])


def count_at(profile):
    return profile.types.index(("waits", "count"))


def waited(profile, function):
    """(nanoseconds, times) waited below a function, by the sample types of their own."""
    time_at = profile.types.index(("off_cpu", "nanoseconds"))
    below = [s for s in profile.samples if any(n.split("(")[0] == function for n in s.names)]
    return sum(s.values[time_at] for s in below), sum(s.values[count_at(profile)] for s in below)


for kind in ("sleep", "lock", "pipe"):
    profile, truth, times = waits(kind)
    got, count = waited(profile, f"wait_in_{kind}")
    tap.ok(abs(got / truth - 1) <= 0.05, f"{kind}: time waited within 5 %",
           f"{got / 1e6:.1f} ms, the program says {truth / 1e6:.1f} ms in {times} waits, hearth in {count}: {got / truth:.4f}")
    tap.ok(abs(count - times) <= max(2, times * 0.05), f"{kind}: number of waits", f"{count} and {times}")
    below = [s for s in profile.samples if any(n.split("(")[0] == f"wait_in_{kind}" for n in s.names)]
    whole = sum(s.values[-1] for s in below if s.end == "complete")
    tap.ok(whole >= 0.99 * sum(s.values[-1] for s in below), f"{kind}: the stacks of the waits are whole",
           f"{100 * whole / max(1, sum(s.values[-1] for s in below)):.2f} % of the time")
    tap.ok(below and all(s.leaf.startswith("__schedule") for s in below if s.values[count_at(profile)]),
           f"{kind}: the leaf is the switch itself", sorted({s.leaf for s in below})[:3])
    cpu = [s for s in profile.samples if s.values[0]]
    tap.ok(not [s for s in cpu if s.values[profile.types.index(("off_cpu", "nanoseconds"))]],
           f"{kind}: no sample is both on and off the CPU")

# What is shown: the CPU's time unless --value says otherwise, and what waited, not the scheduler below it.
shown = {}
for value in (None, "cpu", "off_cpu", "waits"):
    choice = ["--value", value] if value else []
    shown[value] = hearth("report", "--no-tree", "--no-processes", *choice, path("sleep.pb.gz")).stdout
tap.ok(shown[None] == shown["cpu"] != shown["off_cpu"], "report shows cpu unless --value says otherwise")
table = [line for line in shown["off_cpu"].split("\n") if "%" in line and ("nanosleep" in line or "schedule" in line)]
tap.ok(table and "do_nanosleep" in table[0] and not any("__schedule" in line for line in table), "what waited is the leaf",
       table[:2])
for command in (["convert", path("sleep.pb.gz")], ["merge", path("sleep.pb.gz"), path("sleep.pb.gz")]):
    factor = 2 if command[0] == "merge" else 1
    for value, index in (("off_cpu", 3), ("waits", 2), ("samples", 0)):
        done = hearth(*command, "--value", value, "--format", "folded", "-o", "-")
        got = sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines())
        want = factor * sum(s.values[index] for s in Profile(path("sleep.pb.gz")).samples)
        tap.ok(done.returncode == 0 and got == want, f"{command[0]} --value {value}", f"{got} of {want}")
    done = hearth(*command, "--value", "nonsense", "-o", path("nonsense.html"))
    tap.ok(done.returncode == 2 and "off_cpu" in done.stderr, f"{command[0]} --value of no value lists them", done.stderr.strip())
done = hearth("record", "-d", 1, "--value", "off_cpu", "-o", path("x.html"))
tap.ok(done.returncode == 2 and "--off-cpu" in done.stderr, "record --value off_cpu needs --off-cpu", done.stderr.strip())
done = hearth("record", "--off-cpu", "--value", "off_cpu", "-o", path("value.pb.gz"), "--", workload("waits"), "sleep", 2)
tap.ok("function (off_cpu)" in done.stdout and "do_nanosleep" in done.stdout, "record's summary lists what --value says",
       done.stdout[-300:])
tap.ok(hearth("report", path("value.pb.gz")).stdout == hearth("report", "--value", "off_cpu", path("value.pb.gz")).stdout,
       "and the file shows it first")

profile, truth, times = waits("sleep", "--off-cpu-min", "100ms", file=path("min.pb.gz"))
tap.ok(waited(profile, "wait_in_sleep") == (0, 0), "waits shorter than --off-cpu-min are left out")
profile, truth, times = waits("sleep", "--off-cpu-share", "50", file=path("share.pb.gz"))
got, count = waited(profile, "wait_in_sleep")
tap.ok(0.4 <= got / truth <= 1.7, "a random share stands for all waits", f"{got / truth:.3f} of the truth in {times} waits")
tap.finish()
