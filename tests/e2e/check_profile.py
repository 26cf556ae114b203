#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth profile, the drop-in for bcc's profile: every option against the real sampler, the commands of bcc's example file,
and side by side with profile-bpfcc on a load with frame pointers. One parser reads both tools' output."""
import collections
import contextlib
import fcntl
import glob
import gzip
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import time

from support import CPUS, HEARTH, QUICK, Tap, cpu_seconds, hearth, hearth_for_everybody, need, path, run, start, stopped, unprivileged, workload

tap = Tap("profile")
need(tap)
EXAMPLES = "/usr/share/doc/bpfcc-tools/examples/doc/profile_example.txt"
HEADER = re.compile(r"Sampling at (\d+ Hertz|every \d+ events) of (all threads|PID \[[\d, ]+\]|TID \[[\d, ]+\]) "
                    r"by (user|kernel|user \+ kernel) stack( on CPU#[\d,-]+)?( for \d+ secs\.|\.\.\. Hit Ctrl-C to end\.)\n")
FRAME = re.compile(r"    (0x[0-9a-f]+ *|  {18})?(\S.*?)(_\[k\])?(\+0x[0-9a-f]+)?( \[[^\[\]]+\])?")
OWNER = re.compile(r"    -                (.*) \((\d+)\)")
links = [path("profile"), path("profile-bpfcc")]
for link in links:
    os.symlink(HEARTH, link)


def hot(*args, **options):
    """A load that gets its time, whatever else runs."""
    return start("nice", "-n", "-10", *args, **options)


def folded(text):
    """[(comm, frames root first, count)]; every line has to be one."""
    rows = []
    for line in text.splitlines():
        match = re.fullmatch(r"([^;]*)((?:;[^;]+)*) (\d+)", line)
        assert match, line
        rows.append((match[1], tuple(match[2].split(";")[1:]), int(match[3])))
    assert [r[2] for r in rows] == sorted(r[2] for r in rows), "ascending"
    return rows


def blocks(text):
    """(header, [(lines of the stack leaf first, comm, pid, count)]); every byte has to belong to one."""
    head = HEADER.match(text)
    assert head, text[:200]
    rows = []
    rest = text[head.end():]
    assert not rest or rest[0] == "\n", rest[:50]
    for block in rest[1:].split("\n\n")[:-1]:
        *stack, owner, count = block.split("\n")
        assert re.fullmatch(r"        \d+", count), block
        match = OWNER.fullmatch(owner)
        assert match, owner
        for line in stack:
            assert line in ("    --", "    [Missed User Stack]", "    [Missed Kernel Stack]") or FRAME.fullmatch(line), line
        rows.append((stack, match[1], int(match[2]), int(count)))
    assert [r[3] for r in rows] == sorted(r[3] for r in rows), "ascending"
    return head, rows


def ours(*options, seconds=2, program=HEARTH):
    args = ["profile", *options] if program == HEARTH else options
    done = run(program, *args, *([seconds] if seconds else []), timeout=120)
    if done.returncode:
        tap.ok(False, f"{shlex.join(str(o) for o in options)} ends well", f"{done.returncode} {done.stderr[-200:]}")
    return done


def count_of(rows):
    return sum(r[-1] for r in rows)


def check_usage():
    """The messages of argparse, and status 2."""
    for options, want in (
            (["-F", "x"], "argument -F/--frequency: must be an integer"), (["-F", "-1"], "argument -F/--frequency: must be positive"),
            (["-F", "0"], "must be nonzero"), (["-F", "99999999"], "kernel.perf_event_max_sample_rate"),
            (["-c", "x"], "argument -c/--count: must be an integer"), (["-c", "-5"], "must be positive"), (["-c", "0"], "must be nonzero"),
            (["-p", "1,x"], "argument -p/--pid: must be an integer"), (["-p", "-3"], "argument -p/--pid: must be positive"),
            (["-L", "1.5"], "argument -L/--tid: must be an integer"), (["-L", "5,-1"], "argument -L/--tid: must be positive"),
            (["--stack-storage-size", "0"], "argument --stack-storage-size: must be nonzero"),
            (["--stack-storage-size", "-1"], "must be positive"), (["--hash-storage-size", "0"], "argument --hash-storage-size: must be nonzero"),
            (["--hash-storage-size", "many"], "must be an integer"), (["0"], "argument duration: must be nonzero"),
            (["soon"], "argument duration: must be an integer"), (["1", "2"], "Unrecognized positional argument: 2"),
            (["-p", "1", "-L", "1"], "not allowed with argument"), (["-U", "-K"], "not allowed with argument"),
            (["-F", "9", "-c", "9"], "not allowed with argument"), (["-C", "x"], "argument -C/--cpu: must be"),
            (["-C", "4000"], "is not online; these are: "), (["--interval", "0"], "must be nonzero"), (["--nothing"], "nothing")):
        done = hearth("profile", *options, timeout=20)
        tap.ok(done.returncode == 2 and want in done.stderr and not done.stdout and done.stderr.count("\n") == 1,
               f"{' '.join(options)} is wrong usage", f"{done.returncode} {done.stderr.strip()[:150]}")


def check_help():
    for link in links:
        done = run(link, "-h")
        options = "-p -L -U -K -F -c -d -a -I -f -C -A".split() + ["--stack-storage-size", "--hash-storage-size", "--cgroupmap", "--mntnsmap"]
        tap.ok(done.returncode == 0 and all(o in done.stdout for o in options), f"{os.path.basename(link)} -h tells of all options")
        tap.ok(run(link, "-V").stdout.startswith("profile "), f"{os.path.basename(link)} -V")
    done = run(links[0], "--ebpf")
    tap.ok(done.returncode == 0 and "sample_tick" in done.stdout, "--ebpf prints the program", f"{len(done.stdout)} bytes")


def check_forms(load):
    """Multi-line and folded, with -d, -a, -A, -U, -K."""
    me = f"PID [{load.pid}]"
    head, rows = blocks(ours("-p", load.pid, "-F", 199).stdout)
    tap.ok(head[0] == f"Sampling at 199 Hertz of {me} by user + kernel stack for 2 secs.\n", "the header", head[0])
    hot = [r for r in rows if r[0] and r[0][0].startswith("    inner+0x")]
    tap.ok(hot and all(re.fullmatch(r"    outer\+0x[0-9a-f]+ \[tree_frames\]", r[0][1]) for r in hot), "frames leaf first, name+offset [file]",
           hot and hot[-1][0][:2])
    tap.ok({r[2] for r in rows} == {load.pid} and {"tree-one", "tree-two", "tree_frames"} <= {r[1] for r in rows}, "threads are rows", "")
    rows = folded(ours("-f", "-p", load.pid).stdout)
    names = collections.Counter()
    for comm, frames, n in rows:
        names[comm, frames[-1] if frames else ""] += n
    tap.ok(("tree-one", "inner") in names and len(rows) == len({r[:2] for r in rows}), "folded: root first, equal lines are added", len(rows))
    loose = folded(ours("-f", "-p", load.pid, "--no-aggregate").stdout)
    tap.ok(len(loose) > len({r[:2] for r in loose}), "--no-aggregate keeps them apart", f"{len(loose)} of {len({r[:2] for r in loose})}")
    _, rows = blocks(ours("-A", "-p", load.pid).stdout)
    maps = [line.split() for line in open(f"/proc/{load.pid}/maps")]
    ranges = [[int(x, 16) for x in m[0].split("-")] for m in maps if m[-1].endswith("tree_frames")]
    seen = [re.match(r"    0x([0-9a-f]{16}) inner\+0x", line) for r in rows for line in r[0]]
    seen = [int(m[1], 16) for m in seen if m]
    tap.ok(seen and all(any(a <= x < b for a, b in ranges) for x in seen), "-A: addresses lie where the program is mapped", len(seen))
    base = min(a for a, _ in ranges)
    table = {}
    for line in run("nm", workload("tree_frames")).stdout.splitlines():
        part = line.split()
        if len(part) == 3:
            table[part[2]] = int(part[0], 16)
    exact = [m for r in rows for m in (re.match(r"    0x([0-9a-f]{16}) (\w+)\+0x([0-9a-f]+) \[tree_frames\]", line) for line in r[0]) if m]
    tap.ok(exact and all(base + table[m[2]] + int(m[3], 16) == int(m[1], 16) for m in exact), "-A: address = symbol + offset, of callers too",
           len(exact))
    done = ours("-U", "-p", load.pid)
    head, rows = blocks(done.stdout)
    tap.ok(" by user stack for" in head[0] and rows and not any("[kernel]" in line for r in rows for line in r[0]), "-U has no kernel frames")


def check_kernel(busy):
    head, rows = blocks(ours("-K", "-p", busy.pid, "-F", 199).stdout)
    lines = [line for r in rows for line in r[0]]
    tap.ok(" by kernel stack for" in head[0] and lines and all(line.endswith("]") for line in lines), "-K has kernel frames alone", len(lines))
    _, rows = blocks(ours("-da", "-p", busy.pid, "-F", 199).stdout)
    both = [r[0] for r in rows if "    --" in r[0]]
    tap.ok(both and all("_[k]" in line for s in both for line in s[:s.index("    --")]) and
           not any("_[k]" in line for s in both for line in s[s.index("    --"):]), "-d and -a in blocks", len(both))
    rows = folded(ours("-adf", "-p", busy.pid, "-F", 199).stdout)
    both = [r[1] for r in rows if "-" in r[1]]
    tap.ok(both and all(f.endswith("_[k]") for s in both for f in s[s.index("-") + 1:]) and
           not any(f.endswith("_[k]") for s in both for f in s[:s.index("-")]), "-adf in bundled letters", both[-1:] and both[-1])
    _, rows = blocks(ours("-A", "-K", "-p", busy.pid, "-F", 199).stdout)
    symbols = {}
    for line in open("/proc/kallsyms"):
        part = line.split()
        symbols.setdefault(part[2], set()).add(int(part[0], 16))
    found = [m for r in rows for m in (re.match(r"    0x([0-9a-f]{1,16}) {1,16}([\w.]+)\+0x([0-9a-f]+) \[kernel\]", line) for line in r[0]) if m]
    tap.ok(found and all(int(m[1], 16) - int(m[3], 16) in symbols.get(m[2], ()) for m in found), "-A of the kernel is kallsyms' address",
           len(found))


def check_rates(load):
    """Samples a second of CPU time that the load says it got."""
    for options, rate in ((["-F", "199"], 199), (["--frequency=199"], 199), (["-frequency", "199"], 199), ([], 49), (["-c", "5000000"], 200)):
        before = cpu_seconds(load.pid)
        done = ours("-f", "-p", load.pid, *options, seconds=4)
        took = cpu_seconds(load.pid) - before
        n = count_of(folded(done.stdout))
        # before and after hold the tool's start and end, too: an upper bound only
        tap.ok(took * rate * 0.4 <= n <= took * rate * 1.1, f"{options or 'nothing'}: {rate} samples a CPU second", f"{n} in {took:.1f} s")
    done = ours("-c", "5000000", "-p", load.pid, seconds=1)
    tap.ok(blocks(done.stdout)[0][1] == "every 5000000 events", "the header of -c", done.stdout[:60])
    if not os.path.exists("/sys/bus/event_source/devices/cpu"):
        tap.ok("-c counts nanoseconds of CPU time" in done.stderr, "-c says that no counter is here", done.stderr.strip())


def check_filters(load):
    threads = {open(f"/proc/{load.pid}/task/{t}/comm").read().strip(): int(t) for t in os.listdir(f"/proc/{load.pid}/task")}
    head, rows = blocks(ours("-L", threads["tree-one"]).stdout)
    tap.ok(head[2] == f"TID [{threads['tree-one']}]" and {r[1] for r in rows} == {"tree-one"}, "-L of one thread", {r[1] for r in rows})
    both = f"{threads['tree-one']},{threads['tree-two']}"
    head, rows = blocks(ours(f"-L={both}").stdout)
    tap.ok({r[1] for r in rows} == {"tree-one", "tree-two"} and "TID [" in head[0], "-L=a,b", head[0].strip())
    done = hearth("profile", "-f", "-p", "4194303", "1")
    tap.ok(done.returncode == 1 and "no such process: 4194303" in done.stderr, "a process that does not exist", done.stderr.strip())
    done = hearth("profile", "-f", "-L", "4194303", "1")
    tap.ok(done.returncode == 1 and "no such process: 4194303" in done.stderr, "a thread that does not exist", done.stderr.strip())
    rows = folded(ours("-f", "-p", f"4194303,{load.pid}").stdout)
    tap.ok(count_of(rows) > 10, "one of two exists", count_of(rows))
    for cpus in ["0"] + (["1", "0-1", "0,1"] if CPUS > 1 else []):
        head, rows = blocks(ours("-C", cpus, seconds=1).stdout)
        tap.ok(head[4] == f" on CPU#{cpus}", f"-C {cpus}", f"{count_of(rows)} samples")
    pinned = hot("taskset", "-c", "0", workload("spin"), 30)
    time.sleep(0.3)
    tap.ok(count_of(folded(ours("-f", "-C", "0", "-p", pinned.pid).stdout)) > 5, "-C 0 has what runs there")
    if CPUS > 1:
        tap.ok(not folded(ours("-f", "-C", "1", "-p", pinned.pid).stdout), "-C 1 has it not")
    pinned.kill()


def check_namespace():
    """In a pid namespace of its own, as in a container: its numbers are meant, and nothing else is seen."""
    script = f"""{workload('spin')} 30 & load=$!; sleep 0.5; echo $load
{HEARTH} profile -p $load 2; {HEARTH} profile -f 2 > {path('apart.folded')} 2> {path('apart.err')}; {HEARTH} doctor > {path('apart.doctor')}; kill $load"""
    done = run("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, timeout=60)
    pid, _, report = done.stdout.partition("\n")
    _, rows = blocks(report)
    tap.ok(rows and {(r[1], r[2]) for r in rows} == {("spin", int(pid))} and count_of(rows) > 20 and any("spin_work" in line for r in rows for line in r[0]),
           "in a pid namespace -p is one of its processes", ({(r[1], r[2]) for r in rows}, count_of(rows)))
    with open(path("apart.folded")) as f, open(path("apart.err")) as said, open(path("apart.doctor")) as told:
        rows = folded(f.read())
        tap.ok(rows and {r[0] for r in rows} <= {"spin", "hearth", "sh"} and any("spin_work" in r[1] for r in rows), "other namespaces are not seen", {r[0] for r in rows})
        tap.ok("by perf's own rings: this pid namespace" in said.read(), "which is said")
        tap.ok(any(line.split()[:2] == ["missing", "pid-namespace"] and "its own" in line for line in told), "by hearth doctor, too")
    done = run("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", HEARTH, "record", "--sampler", "bpf", "-d", "1", "-o", path("apart.col"))
    tap.ok(done.returncode == 77 and len(done.stderr.splitlines()) == 1 and "--pid=host" in done.stderr, "record --sampler bpf is refused there", done.stderr)


def check_python():
    """Functions of the interpreter have names, in both forms."""
    with open(path("named.py"), "w") as f:
        f.write("def hearth_leaf(n):\n    while n:\n        n -= 1\n\n\ndef hearth_caller():\n    while True:\n        hearth_leaf(200000)\n\n\nhearth_caller()\n")
    load = hot("/usr/bin/python3", path("named.py"))
    time.sleep(1)
    rows = folded(ours("-f", "-F", 99, "-p", load.pid, seconds=3).stdout)
    named = count_of([r for r in rows if any(a.endswith("hearth_caller") and b.endswith("hearth_leaf") for a, b in zip(r[1], r[1][1:]))])
    tap.ok(named >= 0.9 * count_of(rows) > 20, "functions of Python by name, caller before callee", f"{named} of {count_of(rows)}")
    _, rows = blocks(ours("-F", 99, "-p", load.pid).stdout)
    named = [r for r in rows if any("hearth_leaf" in line for line in r[0]) and any("hearth_caller" in line for line in r[0])]
    tap.ok(count_of(named) >= 0.9 * count_of(rows) > 10, "in blocks too", f"{count_of(named)} of {count_of(rows)}")
    load.kill()


def check_thread_end():
    """A thread of -L that ends, of a process that goes on."""
    with open(path("threads.py"), "w") as f:
        f.write("""import sys, threading, time
def burn():
    while not told:
        pass
told = []
t = threading.Thread(target=burn)
t.start()
print(t.native_id, flush=True)
sys.stdin.readline()
told.append(1)
time.sleep(120)
""")
    load = hot("/usr/bin/python3", path("threads.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tool = start(HEARTH, "profile", "-L", load.stdout.readline().strip(), 60, stdout=subprocess.PIPE, text=True)
    header = tool.stdout.readline()  # it samples from now on
    time.sleep(3)
    load.stdin.write("\n")
    load.stdin.flush()
    begin = time.monotonic()
    text = tool.communicate(timeout=120)[0]
    took = time.monotonic() - begin
    tap.ok(tool.returncode == 0 and took < 40 and load.poll() is None and any("burn" in line for r in blocks(header + text)[1] for line in r[0]),
           "ends with the thread of -L, with names; its process lives", f"{took:.1f} s")
    load.kill()


def check_interval():
    """A report has no sample of those before: one program runs, then another."""
    for name in ("phase-a", "phase-b"):
        shutil.copy(workload("spin"), path(name))
    tool = start(HEARTH, "profile", "--interval", 1, 12, stdout=subprocess.PIPE, text=True)
    header = tool.stdout.readline()  # it samples from now on
    time.sleep(1.5)
    stopped(hot(path("phase-a"), 3))
    load = hot(path("phase-b"), 60)
    text = header + tool.communicate(timeout=120)[0]
    load.kill()
    head, *rest = re.split(r"\n(\d\d:\d\d:\d\d)\n\n", text)
    reports = [blocks(head + "\n" + part)[1] for part in rest[1::2]]
    a, b = [[sum(r[3] for r in rows if r[1] == name) for rows in reports] for name in ("phase-a", "phase-b")]
    whole = [n for n in a + b if n]
    tap.ok(len(reports) >= 8 and sum(map(bool, a)) in (3, 4, 5) and any(b) and b[-1] and not a[-1] and not any(b[:a.index(max(a))]) and max(whole) <= 49 * 1.5,
           "--interval: a report has its own second alone", (a, b))


def told(text):
    """Lines that it says, but for those on what else runs on this machine."""
    return [line for line in text.splitlines() if "stay native" not in line and not line.startswith("process ")]


def check_pipe():
    for command in (f"{HEARTH} profile", f"{HEARTH} profile --interval 1", f"{HEARTH} profile -f --interval 1"):
        begin = time.monotonic()
        done = run("bash", "-c", f"{command} | head -1 > /dev/null; echo ${{PIPESTATUS[0]}}", timeout=60)
        took = time.monotonic() - begin
        tap.ok(done.stdout.strip() in ("0", "141") and not told(done.stderr) and took < 20, f"{command.partition(' ')[2]} | head -1 ends by itself, quietly",
               f"{done.stdout.strip()} after {took:.1f} s {done.stderr.strip()}")


def check_spellings(load):
    """What go-profile's flags look like; -v says what is counted."""
    head, rows = blocks(ours("-d=true", "-F=99", "-stack-storage-size", 16384, "-hash-storage-size", 40960, "-p", load.pid, seconds=1).stdout)
    tap.ok(head[1] == "99 Hertz" and rows, "-d=true, -F=99, -stack-storage-size N", head[1])
    plain, rows = blocks(ours("-d=false", "-frequency", 99, "-pid", load.pid, seconds=1).stdout)
    tap.ok(plain[1] == "99 Hertz" and rows and not any("    --" in r[0] for r in rows), "-d=false is without it")
    for options, want in ((["-F", 199], "sampling the CPU's clock 199 times a second"), ([], "sampling the CPU's clock 49 times a second"),
                          (["-c", 5000000], "-c counts ")):
        done = ours("-f", "-v", "-p", load.pid, *options, seconds=1)
        tap.ok(want in done.stderr, f"-v {shlex.join(str(o) for o in options)} says what is sampled", done.stderr.strip()[:100])


def check_without_bpf(load):
    """The reason is the one that is, and what only BPF has is refused by name."""
    os.makedirs(path("no-btf"), exist_ok=True)

    def without(*options):
        return run("unshare", "-m", "sh", "-c", f"mount --bind {path('no-btf')} /sys/kernel/btf && exec {HEARTH} profile {shlex.join(str(o) for o in options)}", timeout=60)
    done = without("-f", "-p", load.pid, 2)
    tap.ok(done.returncode == 0 and count_of(folded(done.stdout)) > 10 and any("inner" in r[1] for r in folded(done.stdout)) and done.stderr.count("\n") == 1 and
           "by perf's own rings: /sys/kernel/btf/vmlinux" in done.stderr and "CAP_" not in done.stderr, "without BTF: a report by perf's rings, and one line that names it",
           done.stderr.strip())
    done = run("setarch", "--uname-2.6", HEARTH, "profile", "-f", "-p", load.pid, 2)
    tap.ok(done.returncode == 0 and any("inner" in r[1] for r in folded(done.stdout)) and done.stderr.count("\n") == 1 and
           "is too old: BPF sampling needs" in done.stderr, "a kernel that says it is too old: the same", done.stderr.strip())
    for option in (["-L", load.pid], ["-C", 0], ["-I"], ["-U"], ["-K"], ["--cgroupmap", "/none"], ["--mntnsmap", "/none"]):
        done = without("-f", *option, 1)
        tap.ok(done.returncode == 77 and not done.stdout and done.stderr.count("\n") == 1 and f" {option[0]} needs BPF: /sys/kernel/btf" in done.stderr,
               f"without BTF {option[0]} is refused by name", f"{done.returncode} {done.stderr.strip()}")
        done = run("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", HEARTH, "profile", "-f", option[0], *([1] if option[0] == "-L" else option[1:]), 1)
        tap.ok(done.returncode == 77 and not done.stdout and done.stderr.count("\n") == 1 and f" {option[0]} needs BPF: this pid namespace" in done.stderr,
               f"in a pid namespace, too: {option[0]}", f"{done.returncode} {done.stderr.strip()}")
    done = without("-f", "-U", "-C", 0, 1)
    tap.ok("-C, -U need BPF" in done.stderr and done.stderr.count("\n") == 1, "two of them in one line", done.stderr.strip())


def check_hidden(busy):
    """Kernel addresses that may not be seen: one warning, and only where kernel frames are wanted."""
    less = ["setpriv", "--bounding-set=-syslog", "--inh-caps=-syslog", HEARTH, "profile"]
    hidden = not any(line[:16].strip("0") for line in run(*less[:-2], "grep", "-m1", " _text$", "/proc/kallsyms").stdout.splitlines())
    if hidden:
        done = run(*less, "-K", "-p", busy.pid, 2)
        lines = [line for r in blocks(done.stdout)[1] for line in r[0]]
        tap.ok(done.returncode == 0 and lines and all("[unknown]" in line for line in lines) and done.stderr.count("\n") == 1 and
               "CAP_SYSLOG is missing" in done.stderr, "without CAP_SYSLOG: kernel frames without names, one warning", (done.stderr.strip(), lines[:2]))
        done = run(*less, "-f", "-U", "-p", busy.pid, 1)
        tap.ok(done.returncode == 0 and not done.stderr, "none with -U", done.stderr.strip())
    else:
        tap.skip("without CAP_SYSLOG", "the kernel shows addresses to everybody")
    with open(path("two"), "w") as f:
        f.write("2\n")
    done = run("unshare", "-m", "sh", "-c", f"mount --bind {path('two')} /proc/sys/kernel/kptr_restrict && exec {HEARTH} profile -f -p {busy.pid} 1")
    tap.ok(done.returncode == 0 and folded(done.stdout) and done.stderr.count("\n") == 1 and "kernel.kptr_restrict is 2" in done.stderr,
           "kptr_restrict 2 is told of, and how to mend it", done.stderr.strip())
    done = ours("-f", "-p", busy.pid, seconds=1)
    if open("/proc/sys/kernel/kptr_restrict").read().strip() != "2":
        tap.ok(not done.stderr, "no warning where nothing is hidden", done.stderr.strip())


def check_idle():
    rows = folded(ours("-f", "-I", "-F", "199").stdout)
    idle = sum(n for comm, _, n in rows if comm.startswith("swapper/"))
    without = folded(ours("-f").stdout)
    tap.ok(not any(r[0].startswith("swapper/") for r in without), "no idle task without -I")
    quiet = count_of(rows) < 199 * 2 * CPUS * 0.95
    if idle or not quiet:
        tap.ok(all(re.fullmatch(r"swapper/\d+", r[0]) for r in rows if r[0].startswith("swapper")), "-I has swapper/CPU", f"{idle} samples")
    _, rows = blocks(ours("-I", "-F", "199").stdout)
    tap.ok(all(r[2] == 0 for r in rows if r[1].startswith("swapper/")), "as process 0", sum(r[3] for r in rows if r[2] == 0))


@contextlib.contextmanager
def bpffs():
    where = path("bpffs")
    os.makedirs(where, exist_ok=True)
    if run("mount", "-t", "bpf", "none", where).returncode:
        yield None
        return
    try:
        yield where
    finally:
        run("umount", where)


def pin(name, value_size, key_size=8, kind="hash"):
    return run("bpftool", "map", "create", name, "type", kind, "key", key_size, "value", value_size, "entries", 16, "name", "mine")


def put(name, key, value_size):
    return run("bpftool", "map", "update", "pinned", name, "key", "hex", *struct.pack("Q", key).hex(" ").split(),
               "value", "hex", *["00"] * value_size)


def check_maps(load):
    """Maps that bpftool pins, as the worked example has it."""
    if not shutil.which("bpftool"):
        return tap.skip("pinned maps", "needs bpftool")
    tree = next((d for d in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(d + "/cgroup.procs") and
                 os.path.exists(d + "/cgroup.controllers")), None)
    with bpffs() as where:
        if not where:
            return tap.skip("pinned maps", "needs a bpf file system")
        mounts = os.path.join(where, "mounts")
        pin(mounts, 4)
        tap.ok(not folded(ours("-f", "--mntnsmap", mounts, seconds=1).stdout), "--mntnsmap of an empty map: nothing matches")
        apart = start("unshare", "-m", "sh", "-c", f"exec {workload('spin')} 40")
        time.sleep(0.5)
        put(mounts, os.stat(f"/proc/{apart.pid}/ns/mnt").st_ino, 4)
        rows = folded(ours("-f", "--mntnsmap", mounts).stdout)
        tap.ok({r[0] for r in rows} == {"spin"}, "--mntnsmap: one namespace", {r[0] for r in rows})
        if tree:
            group = os.path.join(tree, f"hearth-profile-{os.getpid()}")
            os.mkdir(group)
            try:
                with open(group + "/cgroup.procs", "w") as f:
                    f.write(str(apart.pid))
                groups = os.path.join(where, "groups")
                pin(groups, 8)
                put(groups, os.stat(group).st_ino, 8)
                rows = folded(ours("-f", "--cgroupmap", groups).stdout)
                tap.ok({r[0] for r in rows} == {"spin"}, "--cgroupmap: one cgroup", {r[0] for r in rows})
                rows = folded(ours("-f", "--cgroup", group).stdout)
                tap.ok({r[0] for r in rows} == {"spin"}, "--cgroup: the same without a map", {r[0] for r in rows})
                late = start(HEARTH, "profile", "--cgroupmap", groups, 6, stdout=subprocess.PIPE, text=True)
                header = late.stdout.readline()  # it samples from now on
                time.sleep(3)
                run("bpftool", "map", "delete", "pinned", groups, "key", "hex", *struct.pack("Q", os.stat(group).st_ino).hex(" ").split())
                n = count_of(blocks(header + late.communicate(timeout=60)[0])[1])
                tap.ok(0 < n < 49 * 4, "keys may go while it runs", n)
            finally:
                apart.kill()
                apart.wait()
                time.sleep(0.2)
                os.rmdir(group)
        else:
            tap.skip("--cgroupmap", "needs cgroup v2")
            apart.kill()
        small = os.path.join(where, "small")
        pin(small, 4, key_size=4)
        for option in ("--cgroupmap", "--mntnsmap"):
            for bad in (small, path("no-such-map"), "/etc/hostname"):
                done = hearth("profile", "-f", option, bad, 1)
                tap.ok(done.returncode == 1 and bad in done.stderr and done.stderr.count("\n") == 1 and not os.path.exists(path("no-such-map")),
                       f"{option} of what is no such map", f"{done.returncode} {done.stderr.strip()}")


def check_sizes(load):
    done = ours("-f", "--stack-storage-size", 1, "-F", 199)
    rows = folded(done.stdout)
    missed = sum(f.startswith("[Missed ") for r in rows for f in r[1])
    match = re.search(r"WARNING: (\d+) stack traces could not be displayed\. Consider increasing --stack-storage-size\.", done.stderr)
    tap.ok(match and missed and int(match[1]) >= missed, "--stack-storage-size: [Missed User Stack] and a warning", done.stderr.strip())
    done = ours("-f", "--hash-storage-size", 1, "-F", 199, "-p", load.pid)
    tap.ok(len(folded(done.stdout)) == 1 and "WARNING: hash table full. Consider increasing --hash-storage-size." in done.stderr,
           "--hash-storage-size: rows and a warning", done.stderr.strip())
    done = ours("-f", "--stack-storage-size", 16384, "--hash-storage-size", 40960)
    tap.ok("Consider" not in done.stderr, "bcc's usual sizes are enough", done.stderr.strip())
    rows = folded(ours("-f", "-p", load.pid, "--perf-max-stack-depth", 1).stdout)
    tap.ok(rows and all(len(r[1]) <= 2 for r in rows), "--perf-max-stack-depth 1", rows[-1:])
    done = ours("-f", "-v")
    tap.ok(re.search(r"\d+ samples \(\d+ lost, \d+ left out\)", done.stderr), "-v has the counters of losses", done.stderr.strip()[-150:])


def check_unwind():
    """nofp has no frame pointers: whole by tables, short by frame pointers."""
    load = hot(workload("nofp"), 30)
    time.sleep(0.5)

    def whole(mode):
        rows = folded(ours("-f", "-p", load.pid, "--unwind", mode).stdout)
        return sum(n for _, frames, n in rows if "main" in frames), count_of(rows)
    for mode in ("auto", "dwarf"):
        good, all_of = whole(mode)
        tap.ok(all_of and good >= 0.95 * all_of, f"--unwind {mode}: stacks of code without frame pointers reach main", f"{good} of {all_of}")
    good, all_of = whole("fp")
    tap.ok(all_of and good < 0.95 * all_of, "--unwind fp: they do not", f"{good} of {all_of}")
    load.kill()


def check_ends(load):
    tool = start(HEARTH, "profile", "-p", load.pid, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    tool.send_signal(signal.SIGINT)
    text, errors = tool.communicate(timeout=60)
    tap.ok(tool.returncode == 0 and blocks(text)[0][5] == "... Hit Ctrl-C to end." and blocks(text)[1], "Ctrl-C prints, status 0", errors.strip())
    tool = start(HEARTH, "profile", "-f", "-p", load.pid, stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    tool.terminate()
    tap.ok(folded(tool.communicate(timeout=60)[0]) and tool.returncode == 0, "so does SIGTERM")
    short = hot(workload("spin"), 6)
    begin = time.monotonic()
    done = ours("-f", "-p", short.pid, seconds=30)
    tap.ok(time.monotonic() - begin < 15 and any("spin_work" in r[1] for r in folded(done.stdout)), "ends with the process of -p, with names",
           f"{time.monotonic() - begin:.1f} s")
    reader, writer = os.pipe()
    tool = start(HEARTH, "profile", 2, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    os.close(reader)
    errors = tool.communicate(timeout=60)[1]
    tap.ok(not errors, "nobody reads: it ends quietly", f"{tool.returncode} {errors.strip()}")
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    tool = start(HEARTH, "profile", "-F", 199, stdout=writer, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    tool.send_signal(signal.SIGINT)
    time.sleep(3)
    waits = tool.poll() is None
    tool.send_signal(signal.SIGINT)
    tool.communicate(timeout=30)
    os.close(writer)
    os.close(reader)
    tap.ok(waits and tool.returncode == 130, "a second Ctrl-C while it prints", tool.returncode)
    done = ours("-p", load.pid, "--interval", 1, seconds=3)
    times = re.findall(r"(?m)^\d\d:\d\d:\d\d$", done.stdout)
    tap.ok(len(times) >= 3, "--interval 1: a report each second", times)
    rows = folded(ours("2", "-f", "-p", load.pid, seconds=None).stdout)
    tap.ok(rows, "options behind the duration")
    full = run("sh", "-c", f"{HEARTH} profile -f 1 > /dev/full")
    tap.ok(full.returncode == 1 and len(told(full.stderr)) == 1, "a full disk is told", f"{full.returncode} {full.stderr.strip()}")


def check_rights():
    program = hearth_for_everybody()
    done = run(*unprivileged(program, "profile", "-f", 1))
    limits = [open(f"/proc/sys/kernel/{name}").read().strip() for name in ("unprivileged_bpf_disabled", "perf_event_paranoid")]
    want = "CAP_BPF and CAP_PERFMON are missing (or CAP_SYS_ADMIN); kernel.unprivileged_bpf_disabled is {}, kernel.perf_event_paranoid is {}"
    if int(limits[1]) > 0:
        tap.ok(done.returncode == 77 and want.format(*limits) in done.stderr and not done.stdout and done.stderr.count("\n") == 1,
               "not permitted: one line, 77", f"{done.returncode} {done.stderr.strip()}")
    if int(limits[1]) <= 2:
        spin = path("spin")
        shutil.copy(workload("spin"), spin)
        load = start(*unprivileged(spin, 20))
        time.sleep(0.5)
        done = run(*unprivileged(program, "profile", "-f", "-p", load.pid, 2))
        tap.ok(done.returncode == 0 and count_of([r for r in folded(done.stdout) if "spin_work" in r[1]]) > 5 and
               "without BPF, by perf's own rings" in done.stderr, "an own process by perf, without rights", f"{done.returncode} {done.stderr.strip()}")
        done = run(*unprivileged(program, "profile", "-f", "-U", "-p", load.pid, 1))
        tap.ok(done.returncode == 77 and not done.stdout and done.stderr.count("\n") == 1 and "-U needs BPF: CAP_BPF" in done.stderr,
               "without rights -U is refused by name", f"{done.returncode} {done.stderr.strip()}")
        load.kill()


def check_hostile():
    load = start(workload("names_hostile"), 15)
    time.sleep(1)
    rows = folded(ours("-f", "-p", load.pid, seconds=3).stdout)
    tap.ok({"semi:colon", "new?line", "a 12 3"} <= {r[0] for r in rows}, "hostile names stay in their lines", sorted({r[0] for r in rows}))
    _, rows = blocks(ours("-p", load.pid).stdout)
    tap.ok({"semi;colon", "new?line"} <= {r[1] for r in rows} and not any("\u202e" in r[1] or "\x1b" in r[1] for r in rows), "in blocks too")
    load.kill()


# --- the commands of bcc's example file ---


def with_pid(wanted, args):
    """A process with this very number, or None where it cannot be had."""
    for _ in range(5):
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(wanted - 1))
        process = start(*args)
        if process.pid == wanted:
            return process
        process.kill()
        process.wait()
    return None


def check_examples():
    if not os.path.exists(EXAMPLES) and not os.path.exists(EXAMPLES + ".gz"):
        return tap.skip("bcc's examples", "needs bpfcc-tools")
    opened = open(EXAMPLES) if os.path.exists(EXAMPLES) else gzip.open(EXAMPLES + ".gz", "rt")
    with opened as f:
        text = f.read()
    commands = re.findall(r"(?m)^# (\./profile.*)$", text) + re.findall(r"(?m)^    (\./profile.*?)(?: +#.*)?$", text)
    commands = list(dict.fromkeys(commands))
    func_ab = path("func_ab")
    shutil.copy(workload("tree_frames"), func_ab)
    start(func_ab, 240)
    start("dd", "if=/dev/zero", "of=/dev/null")
    for pid in (25036, 2040, 185):
        if not with_pid(pid, ["dd", "if=/dev/zero", "of=/dev/null"]) and not os.path.exists(f"/proc/{pid}"):
            tap.note(f"process {pid} cannot be had")
    group = "/sys/fs/bpf"
    mounted = not os.path.ismount(group) and run("mount", "-t", "bpf", "none", group).returncode == 0
    maps = ["/sys/fs/bpf/test01"]
    if shutil.which("bpftool") and not os.path.exists(maps[0]):
        pin(maps[0], 8)
    os.chdir(path(""))
    for command in commands:
        if "mappath" in command:
            continue  # a placeholder of the text
        tool = start("sh", "-c", "exec " + command.replace("./profile", links[0]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     start_new_session=True)
        try:
            said, errors = tool.communicate(timeout=20 if re.search(r" \d+( >.*)?$", command) and " -p 185" not in command else 2.5)
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGINT)
            said, errors = tool.communicate(timeout=60)
        absent = re.search(r"-C (\d+)", command)
        if absent and int(absent[1]) >= CPUS:
            tap.ok(tool.returncode == 2 and "not online" in errors, f"{command}: that CPU is not here", errors.strip())
            continue
        if "> out.profile" in command:
            with open("out.profile") as f:
                said = f.read()
        good = tool.returncode == 0
        if " -h" in command:
            good = good and "--stack-storage-size" in said
        elif re.search(r" -\w*f", command):
            good = good and folded(said)
        else:
            good = good and (blocks(said)[1] or "cgroupmap" in command or "-L 185" in command or "-p 185" in command)
        tap.ok(good, f"the example {command}", f"{tool.returncode} {errors.strip()[:150]}")
    if shutil.which("bpftool"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(maps[0])
    if mounted:
        run("umount", group)


# --- side by side ---

LEAST = 1  # per cent: 30 samples of 30 s; of fewer, one tool may well have none


def headers():
    arch, common = glob.glob("/usr/src/linux-headers-*-amd64"), glob.glob("/usr/src/linux-headers-*-common")
    return (arch[0], common[0]) if arch and common else None


def beside(*options):
    """profile-bpfcc in a mount namespace with links to the headers; started, and sampling."""
    arch, common = headers()
    release = os.uname().release
    script = f"""mkdir -p /lib/modules && mount -t tmpfs none /lib/modules && mkdir /lib/modules/{release} &&
ln -s {arch} /lib/modules/{release}/build && ln -s {common} /lib/modules/{release}/source
mount -t tracefs none /sys/kernel/tracing 2>/dev/null; mount -t debugfs none /sys/kernel/debug 2>/dev/null
exec profile-bpfcc {shlex.join(str(o) for o in options)}"""
    tool = start("unshare", "-m", "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and tool.poll() is None:
        if "do_perf_event" in run("bpftool", "prog", "show").stdout:
            return tool
        time.sleep(0.05)
    return tool


def shares_of(rows, comms):
    total = collections.Counter()
    for comm, frames, n in rows:
        if comm in comms:
            total[(comm, *frames)] += n
    whole = sum(total.values())
    return {k: 100 * n / whole for k, n in total.items()}, whole


def check_beside():
    missing = [t for t in ("profile-bpfcc", "bpftool") if not shutil.which(t)]
    if missing or not headers():
        return tap.skip("side by side with profile-bpfcc", f"needs {' '.join(missing) or 'linux-headers-amd64'}")
    seconds = 30
    load = start(workload("tree_frames"), seconds + 60)
    bcc = beside("-F", 99, "-f", seconds)
    mine = ours("--unwind", "fp", "-F", 99, "-f", seconds=seconds)
    text, errors = bcc.communicate(timeout=120)
    load.kill()
    if not tap.ok(bcc.returncode == 0, "profile-bpfcc ends well", errors.strip()[-200:]):
        return
    comms = {"tree_frames", "tree-one", "tree-two"}
    their, there = shares_of(folded(text), comms)
    here, count = shares_of(folded(mine.stdout), comms)
    big = {k for k, v in their.items() if v >= LEAST} | {k for k, v in here.items() if v >= LEAST}
    lost = {k for k in their if any(f.startswith("[Missed ") for f in k)}  # two stacks met in bcc's table: it shows neither
    big -= lost
    tap.note(f"samples of the load: bcc {there}, ours {count}; without a stack by bcc: {sum(their[k] for k in lost):.2f} %")
    compare(big, their, here)
    tap.ok(len(big) >= 5, "there were stacks to compare", len(big))


def compare(big, their, here):
    for stack in sorted(big):
        a, b = their.get(stack), here.get(stack)
        tap.ok(a is not None and b is not None and abs(a - b) <= 3, f"{';'.join(stack)} in both", f"bcc {a and round(a, 2)} %, ours {b and round(b, 2)} %")


def named(text):
    """Blocks of the kernel's part as folded() has its rows: root first, names alone."""
    return [(comm, tuple(FRAME.fullmatch(line)[2] for line in reversed(lines)), n) for lines, comm, _, n in blocks(text)[1]]


def once(rows):
    """bcc may have the innermost kernel frame twice."""
    return [(comm, frames[:-1] if frames[-1:] == frames[-2:-1] else frames, n) for comm, frames, n in rows]


def check_kernel_beside():
    """The kernel's stacks of a reader of /dev/zero, in both forms of text."""
    if any(not shutil.which(t) for t in ("profile-bpfcc", "bpftool")) or not headers():
        return tap.skip("kernel stacks side by side with profile-bpfcc", "needs profile-bpfcc bpftool linux-headers-amd64")
    seconds = 30
    shutil.copy(shutil.which("dd"), path("dd-load"))
    load = hot(path("dd-load"), "if=/dev/zero", "of=/dev/null", "bs=1M")
    for options, read in ((["-K", "-adf", "-F", 99], folded), (["-K", "-d", "-F", 99], named)):
        bcc = beside(*options, seconds)
        mine = ours(*options, seconds=seconds)
        text, errors = bcc.communicate(timeout=120)
        if not tap.ok(bcc.returncode == 0, f"profile-bpfcc {shlex.join(str(o) for o in options)} ends well", errors.strip()[-200:]):
            continue
        (their, there), (here, count) = (shares_of(once(read(t)), {"dd-load"}) for t in (text, mine.stdout))
        tap.note(f"samples of dd: bcc {there}, ours {count}")
        big = {k for k, v in their.items() if v >= LEAST} | {k for k, v in here.items() if v >= LEAST}
        compare(big, their, here)
        tap.ok(big and count > 100, "there were kernel stacks to compare", len(big))
    load.kill()


check_usage()
check_help()
check_rights()
tree = start(workload("tree_frames"), 600)
time.sleep(0.5)
check_forms(tree)
check_filters(tree)
check_pipe()
check_hostile()
if not QUICK:
    dd = start("dd", "if=/dev/zero", "of=/dev/null", "bs=64k")
    time.sleep(0.5)
    check_kernel(dd)
    check_rates(tree)
    check_sizes(tree)
    check_ends(tree)
    check_interval()
    check_spellings(tree)
    check_thread_end()
    check_without_bpf(tree)
    check_hidden(dd)
    dd.kill()
    check_maps(tree)
    tree.kill()
    check_unwind()
    check_python()
    check_namespace()
    check_idle()
    check_beside()
    check_kernel_beside()
    check_examples()
tap.finish()
