#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python read from outside: stacks against what the interpreter itself can have, who counts, and what it takes.

The loads of check_python.py run one at a time on one CPU, hearth reads them from another at 500 Hz without stopping them.
"""
import json
import signal
import sysconfig

import java_loads
import python_oracle
from pythons import installed
from python_oracle import Load, Oracle, Tally
from support import *

LOADS = ["recursive", "threaded", "generator", "extension", "class", "async"]
FOLDER = os.path.join(HERE, "python")
VERSIONS = [["3.12", "3.8"][rotation() % 2]] if QUICK else ["2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]
SECONDS = 1.0 if QUICK else 3.0
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1"}

tap = Tap("remote")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]
pythons = [p for p in installed() if p.source == "built" and p.version in (only or VERSIONS)] or installed()[-1:]
pythons = pythons if only else some_of(pythons)


def pinned(cpu, *command):
    return ["taskset", "-c", str(cpu % (os.cpu_count() or 1)), *[str(c) for c in command]]


def launch(python, name, *args, cpu=0, **options):
    command = python.command([HERE, scratch], os.path.join(FOLDER, "loads.py"), name, *args)
    return start(*pinned(cpu, *command), env=ENV, stderr=subprocess.PIPE, text=True, **options)


def recorded(python, name):
    """Recorded twice: which thread is switched away where differs, and now and then a tracer misses a line."""
    files = [path(f"{python.version}-{name}-{cpu}.json") for cpu in range(2)]
    processes = [launch(python, name, "record", file, cpu=cpu, stdout=subprocess.PIPE) for cpu, file in enumerate(files)]
    for process in processes:
        said, complaint = process.communicate(timeout=120)
        if process.returncode or "still new" in said:
            tap.ok(False, f"{python.name}: {name} is recorded", (said + complaint)[-300:])
            return None
    return Oracle(*files)


def read_load(python, name, oracle):
    """One load under hearth. Return: its tally and the counters of the summary."""
    process = launch(python, name, "run", SECONDS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    load = Load(oracle, json.loads(process.stdout.readline()[6:]))
    out = path("remote.pb.gz")
    recorder = start(*pinned(1, HEARTH, "record", "--sampler", "remote", "-F", 500, "-o", out, "-p", process.pid),
                     stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.1)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    process.kill()
    process.wait()
    if not tap.ok(recorder.returncode == 0, f"{python.name}: {name}: hearth ends well", said[-300:].strip()):
        return Tally()
    return python_oracle.judge_samples(load, Profile(out).of(process))


def check_stacks(python):
    tally, by_load = Tally(), {}
    for name in LOADS:
        if name == "async" and python.number < (3, 5):
            continue
        oracle = recorded(python, name)
        if oracle:
            by_load[name] = read_load(python, name, oracle)
            tally += by_load[name]
    flagged = tally.legal_but_flagged + tally.counts["flagged"]
    clean = tally.judged - flagged
    wrong = tally.counts["wrong"] + tally.counts["no frame"]
    figures = (f"{tally.judged} samples, {100 * tally.legal_share:.2f} % legal; {100 * clean / max(tally.judged, 1):.1f} % clean, "
               f"{wrong} of them wrong; {100 * cut_share(by_load.values()):.1f} % cut")
    tap.ok(tally.judged > 200 and tally.legal_share >= 0.97, f"{python.name}: stacks are legal, clean or not", figures)
    tap.ok(wrong <= most_of(clean, 0.001), f"{python.name}: clean stacks are right", figures)
    worst = max(by_load, key=lambda name: cut_share([by_load[name]]), default="")
    tap.ok(worst and cut_share([by_load[worst]]) <= 0.5, f"{python.name}: most stacks of each load are whole",
           f"cut: {100 * cut_share([by_load[worst]]):.1f} % of {worst}" if worst else "")
    for stack, count in tally.wrong.most_common(4):
        tap.note(f"    {count} times {stack[-300:]}")
    for name, one in by_load.items():
        tap.note(f"    {name}: {one.judged} samples, {100 * one.legal_share:.2f} % legal, "
                 f"{100 * (one.judged - one.legal_but_flagged - one.counts['flagged']) / max(one.judged, 1):.1f} % clean, "
                 f"{100 * cut_share([one]):.1f} % cut, {one.counts['flagged']} flagged and not legal, {one.counts['wrong']} wrong; "
                 f"{dict(one.flags.most_common(3))}")


def cut_share(tallies):
    """Of the stacks: those whose innermost frames were left out."""
    return sum(t.ends["cut:runtime-gap"] for t in tallies) / max(sum(t.judged for t in tallies), 1)


def most_of(count, share):
    """How many of @count there are at most in 19 of 20 runs when each is one with probability @share."""
    most, chance = 0, (1 - share) ** count
    total_chance = chance
    while total_chance < 0.95:
        most += 1
        chance *= (count - most + 1) / most * share / (1 - share)
        total_chance += chance
    return most


# ---- who counts ----

IDLE = """
import threading, time
def sleeper():
    time.sleep(60)
def burner():
    while True:
        pass
for f in (sleeper, sleeper, burner):
    threading.Thread(target=f, daemon=True).start()
time.sleep(60)
"""


def functions(profile, process):
    return {name.rpartition(".")[2] for s in profile.of(process) for name in s.names}


def check_who_counts(python):
    process = start(*python.command([scratch], "-c", IDLE), env=ENV)
    time.sleep(0.5)
    out = path("idle.pb.gz")
    said = hearth("record", "--sampler", "remote", "-d", 2, "-o", out, "-p", process.pid)
    names = functions(Profile(out), process)
    tap.ok(said.returncode == 0 and "burner" in names and "sleeper" not in names, f"{python.name}: only threads that run count", sorted(names)[:6])
    used = cpu_seconds(process.pid)
    before = time.monotonic()
    hearth("record", "--sampler", "remote", "-d", 2, "-o", out, "-p", process.pid)
    used, took = cpu_seconds(process.pid) - used, time.monotonic() - before
    counted = total(Profile(out).of(process)) / 99
    tap.ok(abs(counted - used * 2 / took) < 0.25 * max(used, 0.2), f"{python.name}: as many samples as CPU time",
           f"{counted:.2f} s counted, {used:.2f} s used in {took:.2f} s")
    hearth("record", "--sampler", "remote", "--idle", "-d", 1, "-o", out, "-p", process.pid)
    names = functions(Profile(out), process)
    tap.ok({"burner", "sleeper"} <= names, f"{python.name}: --idle adds the others", sorted(names)[:6])
    process.kill()
    process.wait()


# ---- rights, namespaces, processes that end ----

def spin(seconds):
    return f"import time\nend = time.time() + {seconds}\ndef spin():\n    n = 0\n    while n < 10**5: n += 1\nwhile time.time() < end: spin()"


def check_rights(program):
    out = os.path.join("/tmp", f"remote-nobody-{os.getpid()}.col")
    own = hearth_for_everybody()
    said = run(*unprivileged(own, "record", "-o", out, "--", program, "-c", spin(2)), timeout=60, cwd="/")
    text = open(out).read() if os.path.exists(out) else ""
    tap.ok(said.returncode == 0 and "spin (" in text and ("native stacks cannot be sampled" in said.stderr or "time in the kernel is left out" in said.stderr), "nobody: a command's Python stacks",
           said.stderr[-200:].strip())
    target = start(*unprivileged(program, "-c", spin(60)))
    time.sleep(0.5)
    said = run(*unprivileged(own, "record", "-d", 1, "-o", out, "-p", target.pid), timeout=60, cwd="/")
    text = open(out).read() if os.path.exists(out) else ""
    tap.ok(said.returncode == 0 and "spin (" in text, "nobody: a process of the same user", said.stderr[-200:].strip())
    target.kill()
    target.wait()
    said = run(*unprivileged(own, "record", "--sampler", "remote", "-d", 1, "-p", 1), timeout=60, cwd="/tmp")
    tap.ok(said.returncode == 77 and "as root" in said.stderr, "nobody: another user's process: the remedy", said.stderr.strip()[-200:])
    if os.path.exists(out):
        os.unlink(out)


def check_namespace(program):
    outer = start("unshare", "-p", "-f", "--mount-proc", program, "-c", spin(60))
    time.sleep(1)
    with open(f"/proc/{outer.pid}/task/{outer.pid}/children" if os.path.exists(f"/proc/{outer.pid}/task/{outer.pid}/children") else os.devnull) as f:
        pids = f.read().split()
    pids = pids or [p for p in filter(str.isdigit, os.listdir("/proc")) if parent_of(p) == outer.pid]
    out = path("namespace.col")
    said = hearth("record", "--sampler", "remote", "-d", 1, "-o", out, "-p", pids[0]) if pids else None
    tap.ok(said and said.returncode == 0 and "spin (" in open(out).read(), "a process in its own pid namespace", said and said.stderr[-200:].strip())
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
    outer.wait()


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def check_death(program):
    out = path("death.col")
    said = hearth("record", "--sampler", "remote", "-o", out, "--", program, "-c", "import time, os\nx = 0\ne = time.time() + 0.5\n"
                  "while time.time() < e: x += 1\nos.kill(os.getpid(), 9)")
    tap.ok(said.returncode == 137 and "<module> (" in open(out).read(), "a process that is killed ends the session well", said.stderr[-200:].strip())


def check_late():
    """A server that loads Python when somebody asks for it, long after it was met."""
    library = os.path.join(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
    if not library.endswith((".so", ".so.1.0")) or not os.path.exists(library):
        return tap.skip("Python that is loaded late", "needs a shared libpython")
    program, out = path("late"), path("late.col")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-o", program, os.path.join(FOLDER, "late.c"), "-ldl"], check=True)
    said = hearth("record", "--sampler", "remote", "-o", out, "--", program, 3, library, spin(7))
    lines = [l for l in open(out).read().splitlines() if "spin (" in l]
    return tap.ok(said.returncode == 0 and sum(int(l.split()[-1]) for l in lines) > 150, "Python that is loaded late", said.stderr[-200:].strip())


def check_modes(program):
    """pyspy: the total of the process is that of the sampler beside it, and its native frames are gone."""
    out = path("modes.col")
    said = hearth("record", "--python-mode", "pyspy", "-o", out, "--", program, "-c", spin(2))
    lines = [l for l in open(out).read().splitlines()[1:] if "spin (" in l]
    wrong = [l for l in lines if "_PyEval" in l or "_start" in l]
    tap.ok(said.returncode == 0 and lines and not wrong, "pyspy: Python's stacks take the place of native ones", (wrong or [said.stderr[-200:]])[0][:200])
    said = hearth("record", "--perf-mode", "disabled", "-o", out, "--", program, "-c", spin(2))
    lines = open(out).read().splitlines()[1:]
    tap.ok(said.returncode == 0 and lines and all("_[p]" in l for l in lines) and not any("_[k]" in l for l in lines),
           "--perf-mode disabled: nothing but Python", next((l for l in lines if "_[p]" not in l or "_[k]" in l), said.stderr[-200:])[:200])


def check_others():
    """Runtimes that are not read from outside are named; they used a CPU all the same."""
    node, java = shutil.which("node"), shutil.which("java")
    check_other("nodejs", "Node.js", [node, "-e", "for (;;);"] if node else None)
    folder = java_loads.compiled() if java else None
    check_other("java", "Java", [java, "-cp", folder, *java_loads.SORT] if folder else None)


def check_other(kind, title, command):
    if not command:
        return tap.skip(f"a program of {title}", "needs one that runs it")
    process = start(*command)
    time.sleep(1)
    said = hearth("record", "--sampler", "remote", "-p", process.pid, "-d", 1, "-o", path("others.pb.gz"))
    process.kill()
    process.wait()
    text = said.stdout + said.stderr
    tap.ok(said.returncode == 0 and f": {kind} is not read by this sampler; its samples are left out" in text, f"a program of {title}: that it is not read", text[-300:])
    tap.ok("samples without frames of a language runtime" in text and "used a CPU" not in text, f"a program of {title}: that it was busy", text[-300:])
    return None


if pythons:
    for python in pythons:
        check_stacks(python)
    check_who_counts(pythons[-1])
    if "--one" not in sys.argv:
        check_rights("/usr/bin/python3")
        check_namespace("/usr/bin/python3")
        check_death("/usr/bin/python3")
        if not QUICK:
            check_late()
        check_modes("/usr/bin/python3")
        check_others()
else:
    tap.skip("everything", "no interpreter")
tap.finish()
