#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rate: samples against the busy time of /proc/stat; shares: the hottest functions of the load against perf over the same time."""
import re
from collections import Counter

from support import *

HZ = 99
tap = Tap("rate")
need(tap)
seconds = 10 if QUICK else 60
has_perf = shutil.which("perf") is not None
meter = BusyMeter()
load = [start(workload("many"), seconds + 8), start(workload("cpp"), seconds + 8),
        start(workload("kernel_heavy"), seconds + 8), start(workload("spin"), seconds + 8, CPUS)]
time.sleep(0.5)
if has_perf:
    perf = start("perf", "record", "-q", "-e", "cpu-clock", "-g", "-F", HZ, "-a", "-o", path("perf.data"), "--",
                 "sleep", seconds)
record(tap, seconds, "-F", HZ, "-o", path("rate.pb.gz"), "-q")
if has_perf:
    stopped(perf)
time.sleep(0.5)
profile = Profile(path("rate.pb.gz"))
begin, end = profile.time_ns / 1e9, (profile.time_ns + profile.duration_ns) / 1e9
busy = meter.between(begin, end)
for process in load:
    process.kill()
    process.wait()

# An idle CPU may or may not tick; it is not busy time either.
awake = [s for s in profile.samples if s.pid and not str(s.labels.get("comm", "")).startswith("swapper")]
ratio = total(awake) / (HZ * busy)
tolerance = 0.05 if QUICK else 0.03
tap.ok(abs(profile.duration_ns / 1e9 - seconds) < 0.5, "the window is as long as asked", f"{profile.duration_ns / 1e9:.3f} s")
tap.ok(busy > 0.9 * CPUS * seconds, "the CPUs were busy", f"{busy:.2f} CPU seconds in {seconds} s on {CPUS} CPUs")
tap.ok(abs(ratio - 1) <= tolerance, f"samples / ({HZ} x busy seconds) within {1 - tolerance:.2f} to {1 + tolerance:.2f}",
       f"{ratio:.4f} ({total(awake)} samples)")
tap.ok(profile.period == 10**9 // HZ, "period", profile.period)
wrong = [s for s in profile.samples if s.values[1] != s.values[0] * profile.period]
tap.ok(not wrong, "cpu time is samples times period")

if not has_perf:
    tap.skip("hottest functions as perf sees them", "needs perf")
    tap.finish()
report = run("perf", "report", "-i", path("perf.data"), "--stdio", "--no-children", "-g", "none", "-s", "comm,sym",
             "-F", "sample,comm,sym", "-t", "|")
# Of the load only: what else runs on a shared machine need not be there in both windows, whose ends differ a little.
comms = tuple(os.path.basename(process.args[0]) for process in load)
theirs, ours = Counter(), Counter()
for line in report.stdout.splitlines():
    cells = [c.strip() for c in line.split("|")]
    if len(cells) == 3 and cells[0].isdigit() and cells[1].startswith(comms):
        theirs[re.sub(r"^\[[^]]*\] ", "", cells[2])] += int(cells[0])
for s in awake:
    if str(s.labels.get("comm", "")).startswith(comms):
        ours[s.leaf] += s.count


def plain(name):
    """perf and hearth may print the arguments of a C++ function differently."""
    name = name.replace("(anonymous namespace)", "{anonymous}")
    return re.sub(r"(?<!operator)\(.*", "", re.sub(r"\.(constprop|isra|part|cold)\.?\d*", "", name)).replace(" ", "") or name


theirs_plain, ours_plain = Counter(), Counter()
for counter, into in ((theirs, theirs_plain), (ours, ours_plain)):
    for name, count in counter.items():
        into[plain(name)] += count
sum_theirs, sum_ours = sum(theirs.values()), sum(ours.values())
worst, apart = 0.0, []
for name, count in theirs_plain.most_common(20):
    a, b = count / sum_theirs, ours_plain[name] / max(sum_ours, 1)
    worst = max(worst, 100 * abs(a - b))
    # Two shares of some 2,000 samples differ by chance alone: three standard deviations more in the short run.
    chance = 300 * (a * (1 - a) * (1 / sum_theirs + 1 / max(sum_ours, 1))) ** 0.5 if QUICK else 0
    if 100 * abs(a - b) > 3.0 + chance:
        apart.append(name)
    tap.note(f"{100 * a:6.2f} % perf {100 * b:6.2f} % hearth  {name}")
tap.ok(len(theirs_plain) >= 20 and not apart, "the 20 hottest functions within 3 points of perf report",
       f"largest difference {worst:.2f} points, {sum_theirs} and {sum_ours} samples {' '.join(apart)}")
tap.finish()
