#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is said in one line with the right exit status, and what was sampled is kept."""
import contextlib
import re
import signal

from judge import best_of
from support import *

tap = Tap("faults")
need(tap)


def one_line(done, status, what, *wanted):
    lines = done.stderr.strip("\n").split("\n")
    tap.ok(done.returncode == status, f"{what}: exit {status}", f"exit {done.returncode}: {done.stderr[:200]!r}")
    tap.ok(len(lines) == 1 and lines[0] and all(w in lines[0] for w in wanted), f"{what}: one line that names {wanted}",
           repr(done.stderr[:300]))


def has_position(text):
    return any(w in text for w in ("line", "byte", "offset"))


load = start(workload("spin"), 600 if not QUICK else 120, 1)
record(tap, 2, "-q", "-F", 99, *[a for s in ("pb.gz", "col", "folded", "hwin") for a in ("-o", path("good." + s))])

# Bad input.
with open(path("good.pb.gz"), "rb") as f:
    plain = gzip.decompress(f.read())
bad = {
    "truncated.pb.gz": open(path("good.pb.gz"), "rb").read()[:-20],
    "broken.pb.gz": gzip.compress(plain[: len(plain) // 2] + b"\xff" * 40),
    "header.col": b"# {not json\n0;;a;b 1\n",
    "count.col": open(path("good.col"), "rb").read().rstrip(b"\n") + b"\n0;;a;b twelve\n",
    "count.folded": b"a;b\na;b twelve\n",
    "short.hwin": open(path("good.hwin"), "rb").read()[:100],
    "noise": bytes(range(256)) * 16,
    "empty": b"",
}
commands = (["report"], ["dump"], ["convert", "-o", path("out.folded")], ["merge", "-o", path("out.pb.gz")], ["view", "--no-browser"])
for name, data in bad.items():
    with open(path(name), "wb") as f:
        f.write(data)
    for command in commands:
        done = hearth(command[0], path(name), *command[1:], timeout=60)
        one_line(done, 1, f"{command[0]} {name}", name)
        if name in ("truncated.pb.gz", "broken.pb.gz", "count.col", "count.folded", "short.hwin"):
            tap.ok(has_position(done.stderr), f"{command[0]} {name}: says where", repr(done.stderr[:200]))
for command in commands:
    one_line(hearth(command[0], path("nowhere"), *command[1:], timeout=60), 1, f"{command[0]} of no file", "nowhere")
    one_line(hearth(command[0], scratch, *command[1:], timeout=60), 1, f"{command[0]} of a folder", scratch)
tap.ok(not os.path.exists(path("out.folded")) and not os.path.exists(path("out.pb.gz")), "bad input leaves no output")

# A pipe by its name (<(command) of a shell, /dev/stdin), whose writer takes its time, and a redirected /dev/stdout.
slow = subprocess.run(["sh", "-c", f"(sleep 1; cat {path('good.folded')}) | {HEARTH} report /dev/stdin --from folded"],
                      capture_output=True, text=True, errors="surrogateescape")
tap.ok(slow.returncode == 0 and "Functions" in slow.stdout, "report of a slow pipe", slow.stderr[:200])
os.mkfifo(path("fifo"))
writer = start("sh", "-c", f"sleep 1; cat {path('good.folded')} > {path('fifo')}")
done = hearth("report", path("fifo"), "--from", "folded")
tap.ok(done.returncode == 0 and "Functions" in done.stdout, "report of a FIFO", done.stderr[:200])
tap.ok(stopped(writer) == 0, "and its writer could write")
with open(path("redirected"), "wb") as f:
    done = subprocess.run([HEARTH, "convert", path("good.folded"), "-o", "/proc/self/fd/1", "--format", "folded"], stdout=f,
                          stderr=subprocess.PIPE)
tap.ok(done.returncode == 0 and os.path.getsize(path("redirected")) > 0, "-o into a redirected descriptor", done.stderr[:200])

# Usage.
for args in (["nonsense"], ["record", "--nonsense"], ["record", "-F", "0"], ["record", "-F", "ten"], ["record", "-F", "-1"],
             ["record", "-d", "1x"], ["record", "-p", "0"], ["record", "-p", "abc"], ["record", "--format", "nonsense"],
             ["record", "-d", "1", "-o", path("x.nonsense")], ["report"], ["report", "a", "b"], ["convert", path("good.col")],
             ["dump"], ["merge"]):
    done = hearth(*args)
    tap.ok(done.returncode == 2 and done.stderr, f"usage: {' '.join(args).replace(scratch, '')}",
           f"exit {done.returncode} {done.stderr[:100]!r}")
one_line(hearth("record", "-d", 60, "-o", path("nowhere/x.html")), 1, "record into a folder that is not there", "nowhere")
one_line(hearth("record", "-d", 1, "-p", 4194304, "-o", path("x.pb.gz")), 1, "record of a process that is not there", "4194304")
one_line(hearth("record", "-d", 1, "-o", path("x.pb.gz"), "--", "/no/such/program"), 127, "record of no program", "/no/such/program")

# Not permitted.
if shutil.which("setpriv"):
    done = run(*unprivileged(hearth_for_everybody(), "record", "-d", "1", "-o", "/dev/null", "--format", "pprof"), cwd=scratch)
    tap.ok(done.returncode == 77, "record without privileges: exit 77", f"exit {done.returncode} {done.stderr[:400]!r}")
    tap.ok("sudo" in done.stderr or "setcap" in done.stderr, "and the command that grants them")
else:
    tap.skip("record without privileges", "needs setpriv")

# The disk is full. The good file beside it is written all the same.
os.mkdir(path("full"))
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", path("full")]).returncode == 0:
    done = hearth("record", "-d", 2, "-q", "-o", path("full/a.html"), "-o", path("beside.pb.gz"))
    left = os.listdir(path("full"))
    subprocess.run(["umount", path("full")])
    one_line(done, 1, "disk full", "a.html", "space")
    tap.ok(not left, "disk full: nothing half-written is left", left)
    tap.ok(os.path.exists(path("beside.pb.gz")) and total(Profile(path("beside.pb.gz")).samples) > 50,
           "disk full: the other output is whole")
else:
    tap.skip("disk full", "cannot mount a tmpfs")

done = run("sh", "-c", f"ulimit -f 1; exec {HEARTH} record -d 1 -q -o {path('limited.html')}")
one_line(done, 1, "ulimit -f", "limited.html", "large")
tap.ok(not [n for n in os.listdir(scratch) if n.startswith("limited")], "ulimit -f: nothing half-written is left")

# The folder goes while the session runs.
os.mkdir(path("gone"))
recorder = start(HEARTH, "record", "-d", 2, "-q", "-o", path("gone/a.pb.gz"), "-o", path("stays.pb.gz"),
                 stderr=subprocess.PIPE, text=True)
time.sleep(1.2)
os.rmdir(path("gone"))
said = recorder.communicate(timeout=60)[1]
tap.ok(recorder.returncode == 1 and "gone/a.pb.gz" in said, "output folder removed", f"exit {recorder.returncode} {said[:200]!r}")
tap.ok(os.path.exists(path("stays.pb.gz")), "output folder removed: the other output is written")

# A signal ends a session with everything gathered and the true end.
def ended_by(number):
    """One session. Return: the later of how long it took to end and how far its end is from the true one, each in shares of its bound."""
    file = path(f"signal{int(number)}.pb.gz")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)
    recorder = start(HEARTH, "record", "-d", 60, "-q", "-o", file, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    before, until = cpu_seconds(load.pid), time.monotonic() + 40
    while cpu_seconds(load.pid) - before < 1.5 and time.monotonic() < until:
        time.sleep(0.2)
    used = cpu_seconds(load.pid) - before
    recorder.send_signal(number)
    sent = time.time()
    said = recorder.communicate(timeout=60)[1]
    took = time.time() - sent
    tap.ok(recorder.returncode == 0 and os.path.exists(file), f"{number.name} keeps what was gathered", said[:200])
    late = took / 2
    if os.path.exists(file):
        p = Profile(file)
        late = max(late, abs((p.time_ns + p.duration_ns) / 1e9 - sent) / 0.4)
        tap.ok(total(p.of(load)) > 99 * used * 0.9 - 3 * (99 * used) ** 0.5, f"{number.name}: the samples are there",
               f"{total(p.of(load))} of a process that used {used:.2f} s meanwhile, within three standard deviations of nine tenths")
    return late


for number in (signal.SIGINT, signal.SIGTERM):
    soon, tries = best_of(lambda: ended_by(number), 1, cap=4)
    tap.ok(soon, f"{number.name}: written within 2 s, and the end is the true one within 0.4 s", f"{[round(t, 2) for t in tries]} of that")

# Few descriptors: what is cached leaves some for reading what is new.
done = run("sh", "-c", f"ulimit -n 64; exec {HEARTH} record -d 2 -q -p {load.pid} -o {path('few.folded')}")
named = sum("unknown" not in line for line in open(path("few.folded"))) if os.path.exists(path("few.folded")) else 0
tap.ok(done.returncode == 0 and named, "64 descriptors: frames have names", f"exit {done.returncode} {named} {done.stderr[:200]}")


def unnamed_with(limit):
    """Percent of the machine's frames without a name, in a session with this limit of descriptors. None: no session."""
    run("sh", "-c", f"ulimit -n {limit}; exec {HEARTH} record -d 2 -q -o {path('few.hwin')} -o {path('few.col')}")
    found = re.search(r"^unnamed +([0-9.]+)%", hearth("report", path("few.hwin")).stdout, re.M)
    return float(found[1]) if found else None


# What else runs here may have code without names: the same machine without the limit says how much. It was two thirds of all when
# the caches took every descriptor.
few, many = unnamed_with(64), unnamed_with(4096)
tap.ok(None not in (few, many) and few - many < 20, "64 descriptors: the frames of the machine too", f"{few} % without a name, {many} % with 4096")

done = run("sh", "-c", f"ulimit -n 48; exec {HEARTH} record -d 1 -q -o {path('fewer.folded')}")
one_line(done, 0, "48 descriptors", "ulimit -n")

# Stopped and continued, as by Ctrl-Z and fg.
recorder = start(HEARTH, "record", "-d", 4, "-q", "-o", path("stopped.pb.gz"), stderr=subprocess.PIPE, text=True)
time.sleep(1)
recorder.send_signal(signal.SIGSTOP)
time.sleep(1)
recorder.send_signal(signal.SIGCONT)
said = recorder.communicate(timeout=60)[1]
p = Profile(path("stopped.pb.gz")) if os.path.exists(path("stopped.pb.gz")) else None
tap.ok(recorder.returncode == 0 and p and abs(p.duration_ns / 1e9 - 4) < 0.5, "stopped and continued: the session goes on",
       f"exit {recorder.returncode} {p and p.duration_ns / 1e9} s {said[:200]}")

# Signals that come together (a terminal that closes, systemd) are one.
recorder = start(HEARTH, "record", "-d", 60, "-q", "-o", path("signals.pb.gz"), stderr=subprocess.PIPE, text=True)
time.sleep(2)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    recorder.send_signal(number)
said = recorder.communicate(timeout=60)[1]
tap.ok(recorder.returncode == 0 and os.path.exists(path("signals.pb.gz")), "three signals at once keep what was gathered",
       f"exit {recorder.returncode} {said[:200]}")

# A target that ends, and one that is killed while it is read.
target = start(workload("spin"), 2)
ended = []
reaper = threading.Thread(target=lambda: ended.append(os.wait4(target.pid, 0)[2]))
reaper.start()
done = hearth("record", "-d", 20, "-q", "-p", target.pid, "-o", path("ended.pb.gz"))
reaper.join()
target.returncode = 0  # wait4() has reaped it
found = total(Profile(path("ended.pb.gz")).of(target)) if os.path.exists(path("ended.pb.gz")) else 0
used = ended[0].ru_utime + ended[0].ru_stime
tap.ok(done.returncode == 0 and found > 99 * used * 0.2, "the target ends: its samples are kept",
       f"{found} samples of a process that used {used:.2f} s {done.stderr[:200]}")


def ends_with_target():
    """Seconds from the target's end to that of its session."""
    target = start(workload("spin"), 2)
    recorder = start(HEARTH, "record", "-d", 20, "-q", "-p", target.pid, "-o", path("ends.pb.gz"))
    target.wait()
    begin = time.monotonic()
    recorder.wait(timeout=60)
    return time.monotonic() - begin


soon, tries = best_of(ends_with_target, 3)
tap.ok(soon, "the target ends: so does the session within 3 s", f"{[round(t, 2) for t in tries]} s")
recorder = start(HEARTH, "record", "-d", 3, "-q", "-F", 499, "-o", path("killed.pb.gz"), stderr=subprocess.PIPE, text=True)
until = time.monotonic() + 2.5
while time.monotonic() < until:
    victim = start(workload("tree"), 5)
    time.sleep(0.05)
    victim.kill()
    victim.wait()
said = recorder.communicate(timeout=60)[1]
tap.ok(recorder.returncode == 0, "programs killed all the time", said[:200])

# A command's own exit and its children.
done = hearth("record", "-q", "-o", path("command.pb.gz"), "--", "sh", "-c", f"{workload('short')}; {workload('short')}")
p = Profile(path("command.pb.gz")) if os.path.exists(path("command.pb.gz")) else None
tap.ok(done.returncode == 0 and p and any("short_lived_work" in s.names for s in p.samples), "-- COMMAND is watched with its children",
       done.stderr[:200])
tap.ok(p and not p.of(load), "and nothing else is")
load.kill()
tap.finish()
