#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fork and exec: nothing is left of 10,000 short programs, and no name of the old program after an exec."""
import json

from support import *

tap = Tap("exec")
need(tap)
forks = 3000 if QUICK else 10000
SAMPLED_KIB = 2  # of a process that was sampled: its row, its metadata, its stacks


def map_entries(pid):
    """Entries of the hash maps and tries a process holds, by name; None without bpftool."""
    if not shutil.which("bpftool"):
        return None
    held = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                held |= {int(line.split()[1]) for line in f if line.startswith("map_id:")}
        except OSError:
            continue  # closed meanwhile
    entries = {}
    for identity in held:
        shown = run("bpftool", "-j", "map", "show", "id", identity)
        if shown.returncode:
            continue
        m = json.loads(shown.stdout)
        if "hash" not in m["type"] and "trie" not in m["type"]:
            continue
        dump = run("bpftool", "-j", "map", "dump", "id", identity)
        if dump.returncode == 0:
            entries[m.get("name", str(identity))] = len(json.loads(dump.stdout))
    return entries


def state(pid):
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")), "memory": status_kib(pid, "RssAnon"),
            "threads": status_kib(pid, "Threads"), "entries": map_entries(pid)}


def fork(count):
    """Forks under the shell that is watched. Returns the forker's exit status."""
    shell.stdin.write(f"'{workload('forker')}' {count} '{workload('nothing')}'; echo $?\n")
    shell.stdin.flush()
    return int(shell.stdout.readline() or -1)


# Only what this shell starts is watched: what else the machine runs meanwhile says nothing about our forks.
shell = start("sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
recorder = start(HEARTH, "record", "-q", "-F", 99, "-p", shell.pid, "--children", "-o", path("forks.pb.gz"),
                 stderr=subprocess.PIPE, text=True)
time.sleep(1.5)
fork(forks)  # tables grow once, to what as many forks need
time.sleep(2)
before = state(recorder.pid)
begin = time.monotonic()
status = fork(forks)
took = time.monotonic() - begin
time.sleep(3)
after = state(recorder.pid)
tap.ok(status == 0, f"{forks} times fork and exec", f"{took:.1f} s")
tap.note(f"before {before}")
tap.note(f"after  {after}")
tap.ok(after["descriptors"] <= before["descriptors"] + 8, "descriptors as before",
       f"{before['descriptors']} and {after['descriptors']}")
tap.ok(after["threads"] == before["threads"], "threads as before", after["threads"])
if before["entries"] is None or after["entries"] is None:
    tap.skip("entries of BPF maps as before", "needs bpftool")
else:
    grown = {k: (before["entries"].get(k, 0), v) for k, v in after["entries"].items() if v > before["entries"].get(k, 0) + 64}
    tap.ok(not grown, "entries of BPF maps as before", grown or after["entries"])
recorder.send_signal(2)
said = recorder.communicate(timeout=60)[1]
tap.ok(recorder.returncode == 0, "the session ends well", said[-200:])
shell.stdin.close()
stopped(shell)
watched = Profile(path("forks.pb.gz")).samples
tap.ok(any(s.labels.get("comm") == "forker" for s in watched) and len({s.pid for s in watched}) > 20,
       "the forks are what was watched", f"{total(watched)} samples of {len({s.pid for s in watched})} processes")
# What was sampled is kept until the end: of the second half of the forks as of the first. The faster they are, the fewer.
room = 256 + SAMPLED_KIB * len({s.pid for s in watched}) / 2
tap.ok(after["memory"] - before["memory"] <= room, f"memory as before ({room:.0f} KiB for what was sampled)", f"{before['memory']} and {after['memory']} KiB")

program = start(workload("exec_before"), 2, workload("exec_after"))
record(tap, 4, "-F", 499, "-q", "-o", path("exec.pb.gz"))
stopped(program)
samples = Profile(path("exec.pb.gz")).of(program)
old = [s for s in samples if s.labels.get("comm") == "exec_before"]
new = [s for s in samples if s.labels.get("comm") == "exec_after"]
tap.ok(total(old) > 50 and total(new) > 50, "samples before and after the exec", f"{total(old)} and {total(new)}")
tap.ok(not any("before_exec" in n for s in new for n in s.names), "no name of the old program after the exec")
tap.ok(not any("after_exec" in n for s in old for n in s.names), "no name of the new program before it")
found = [s for s in new if "after_exec" in s.names]
tap.ok(share(found, new) > 0.9, "the new program's names after it", f"{100 * share(found, new):.1f} %")
tap.finish()
