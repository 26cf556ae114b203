#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two sessions at different rates at the same time do not disturb each other; filters choose what they should."""
from support import *

tap = Tap("two")
need(tap)
seconds = 5 if QUICK else 15
load = [start(workload("spin"), seconds + 20, 1), start(workload("many"), seconds + 20)]
time.sleep(0.3)
slow = start(HEARTH, "record", "-d", seconds, "-q", "-F", 49, "-o", path("slow.pb.gz"), stderr=subprocess.PIPE, text=True)
meter = BusyMeter()
record(tap, seconds, "-q", "-F", 199, "-p", load[0].pid, "-o", path("fast.pb.gz"))
tap.ok(slow.wait(timeout=60) == 0, "the other session ends well", slow.stderr.read()[:200])
time.sleep(0.3)


def cpu_of(profile):
    return meter.between(profile.time_ns / 1e9, (profile.time_ns + profile.duration_ns) / 1e9)


slow, fast = Profile(path("slow.pb.gz")), Profile(path("fast.pb.gz"))
busy = cpu_of(slow)
rate = total([s for s in slow.samples if s.pid]) / busy
tap.ok(abs(rate / 49 - 1) < 0.08, "49 Hz over all",
       f"{rate:.2f} samples per busy second, {busy:.2f} of them in {slow.duration_ns / 1e9:.2f} s")
others = [s for s in fast.samples if s.pid != load[0].pid]
tap.ok(not others, "-p: nothing but that process", f"{total(others)} others")
in_slow, in_fast = total(slow.of(load[0])), total(fast.samples)
ratio = in_fast / max(in_slow, 1) / (199 / 49) / (fast.duration_ns / slow.duration_ns)
room = 0.05 + 3 * (1 / max(in_slow, 1) + 1 / max(in_fast, 1)) ** 0.5  # three standard deviations of the two counts
tap.ok(abs(ratio - 1) < room, "the same process in both, in proportion to the rates",
       f"{in_slow} and {in_fast}: {ratio:.3f} (within {room:.2f})")

# Windows of one session: nothing lost or counted twice between them.
done = hearth("record", "-d", 4, "--window", 1, "-q", "-F", 99, "-p", load[0].pid, "-o", path("window.pb.gz"))
files = sorted(f for f in os.listdir(scratch) if f.startswith("window"))
if tap.ok(done.returncode == 0 and len(files) >= 4, "--window cuts the session into files", f"{len(files)} {done.stderr[:200]}"):
    parts = sorted((Profile(path(f)) for f in files), key=lambda p: p.time_ns)
    gaps = [b.time_ns - (a.time_ns + a.duration_ns) for a, b in zip(parts, parts[1:])]
    tap.ok(all(abs(g) < 5_000_000 for g in gaps), "one begins where the other ends", [g // 1000 for g in gaps])
    per_second = [total(p.samples) / (p.duration_ns / 1e9) for p in parts if p.duration_ns > 5e8]
    tap.note(f"samples per second by window: {[round(n) for n in per_second]}")

# A cgroup of the second hierarchy, where there is one.
mount = next((l.split()[1] for l in open("/proc/mounts") if l.split()[2] == "cgroup2"), None)
group = os.path.join(mount, "hearth-e2e") if mount else None
try:
    os.mkdir(group)
except (OSError, TypeError) as error:
    tap.skip("--cgroup", f"no cgroup of version 2 can be made: {error}")
else:
    inside = start(workload("spin"), 6)
    with open(os.path.join(group, "cgroup.procs"), "w") as f:
        f.write(str(inside.pid))
    used = cpu_seconds(inside.pid)
    done = hearth("record", "-d", 2, "-q", "-F", 199, "--cgroup", group, "-o", path("group.pb.gz"))
    used = cpu_seconds(inside.pid) - used
    if tap.ok(done.returncode == 0, "--cgroup", done.stderr[:200]):
        p = Profile(path("group.pb.gz"))
        tap.ok(total(p.of(inside)) and total(p.of(inside)) == total(p.samples), "only what is in the cgroup",
               f"{total(p.of(inside))} of {total(p.samples)}")
        # It ran a little before and after the session; more samples than that time has there cannot be.
        tap.ok(100 * used < total(p.samples) < 199 * used * 1.05 + 10, "and all of that",
               f"{total(p.samples)} of a process that used {used:.2f} s")
    inside.kill()
    inside.wait()
    os.rmdir(group)
for process in load:
    process.kill()
tap.finish()
