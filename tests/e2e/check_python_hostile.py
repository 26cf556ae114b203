#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python processes that write into their own interpreter, are very many, or are none at all: hearth ends well, within
bounds of time and memory, shows no name that is not theirs, and an honest process beside them has its stacks."""
import functools
import re
import signal
from collections import Counter

from pythons import installed
from python_oracle import is_flagged, is_python, last_part
from support import *

HZ = 499
SECONDS = 1 if QUICK else 2
FULL = ("3.8", "3.10", "3.11", "3.12", "3.13")
FOLDER = os.path.join(HERE, "python")
SCRIPT = os.path.join(FOLDER, "hostile.py")
CASES = ["cycles", "garbage", "lengths", "states", "threads", "forks", "execs", "mapped"]
FAKES = 2 if QUICK else 8
MEMORY_MAX_KIB = 400 * 1024
CPU_MAX = 0.5  # of one CPU, in the mean of a session with storms of forks and execs
INVENTED = re.compile(r"<(module|lambda|listcomp|genexpr|setcomp|dictcomp)>")

tap = Tap("python_hostile")
need(tap, "cc")
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def built(name, source, *flags):
    out = path(name)
    subprocess.run(["cc", "-O1", "-o", out, os.path.join(FOLDER, source), *flags], check=True)
    return out


LIBRARY = built("hold.so", "hold.c", "-shared", "-fPIC")
FAKE = built("fake", "fake.c", "-rdynamic")
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOLD": LIBRARY}


def launch(program, case, seconds, **env):
    return start(program, SCRIPT, case, seconds, env={**ENV, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finished(load):
    """From "ready" to "done"."""
    fine = load.stdout.readline().strip() == "ready"
    if fine:
        load.stdin.write("\n")
        load.stdin.flush()
        fine = load.stdout.readline().strip() == "done"
    return fine


def gone_program(python):
    """A copy of the interpreter that is deleted while it runs."""
    copy = path(f"gone-{python.version}")
    shutil.copy(python.program, copy)
    prefix = os.path.dirname(os.path.dirname(python.program))
    load = launch(copy, "honest", SECONDS, PYTHONHOME=prefix, LD_LIBRARY_PATH=f"{prefix}/lib")
    while f"gone-{python.version}" not in os.readlink(f"/proc/{load.pid}/exe") and load.poll() is None:
        time.sleep(0.01)
    time.sleep(0.05)  # its libraries
    os.unlink(copy)
    return load


texts = {}


@functools.lru_cache(maxsize=None)
def is_named_right(name, file):
    """Does the text of @file have a function of that name? What lies in no file can only be told apart by its form."""
    name = last_part(name)
    if INVENTED.fullmatch(name):
        return True
    if file not in texts:
        with contextlib.suppress(OSError, ValueError):
            with open(file, errors="replace") as f:
                texts[file] = f.read()
    if file in texts:
        return re.search(rf"\b(def|class)\s+{re.escape(name)}\b", texts[file]) is not None
    return (re.fullmatch(r"<(frozen [\w.]+|string)>", file) or file.endswith(".py")) is not None and name.isidentifier()


def session(python):
    """The cases two at a time, an honest process beside them. Returns the profile, the loads by name, what hearth took."""
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", path("hostile.pb.gz"), stderr=subprocess.PIPE, text=True)
    begin = time.monotonic()
    time.sleep(1)
    honest = launch(python.program, "honest", SECONDS * 2)
    honest.stdout.readline()
    honest.stdin.write("\n")
    honest.stdin.flush()
    loads = {"honest": honest}
    for case in CASES:
        folder = path(f"mapped-{python.version}-{python.source}")
        os.makedirs(folder, exist_ok=True)
        loads[case] = launch(python.program, case, SECONDS, FOLDER=folder)
        if not finished(loads[case]):
            tap.ok(False, f"{python.name}: {case} runs", f"exit {loads[case].poll()}")
    loads["gone"] = gone_program(python)
    tap.ok(finished(loads["gone"]), f"{python.name}: a program that is deleted runs")
    fakes = [start(FAKE, seed, 1) for seed in range(FAKES)]
    for fake in fakes:
        stopped(fake)
    loads.update({f"fake {i}": fake for i, fake in enumerate(fakes)})
    done = honest.stdout.readline().strip()
    tap.ok(done == "done", f"{python.name}: the honest process ends its work", done)
    used = cpu_seconds(recorder.pid) / (time.monotonic() - begin), status_kib(recorder.pid, "VmHWM")
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    for load in loads.values():
        load.kill()
        load.wait()
    if not tap.ok(recorder.returncode == 0, f"{python.name}: hearth record ends well", f"exit {recorder.returncode} {said[-300:].strip()}"):
        return None, {}, used
    return Profile(path("hostile.pb.gz")), loads, used


def own(profile, load):
    """Without what the test itself was, in that process, before exec."""
    return [s for s in profile.of(load) if not any(p[0] == os.path.abspath(__file__) for p in s.places)]


def check_names(python, profile, loads):
    # All fakes together have to be seen; what one of them is given beside 5,000 threads is little.
    of_fakes = sum(total(own(profile, load)) for case, load in loads.items() if case.startswith("fake"))
    for case, load in loads.items():
        samples, strange = own(profile, load), Counter()
        for s in samples:
            for name, module, place in zip(s.names, s.modules, s.places):
                if is_python(module) and not is_named_right(name, place[0]):
                    strange[f"{s.end}: {name[:80]} ({place[0][:80]})"] += s.count
        with_python = total([s for s in samples if any(is_python(m) for m in s.modules)])
        right = not strange and (not case.startswith("fake") or not with_python)
        if case.startswith("fake"):
            enough = of_fakes >= FAKES
        else:
            enough = total(samples) >= (1 if case in ("forks", "execs") else 0.2 * HZ * SECONDS)
        tap.ok(right and enough, f"{python.name}: {case}: no name that is not there",
               f"{total(samples)} samples, {with_python} with Python, {total([s for s in samples if is_flagged(s)])} flagged")
        for text, count in strange.most_common(3):
            tap.note(f"    {count} times {text}")


def check(python):
    profile, loads, (cpu, kib) = session(python)
    tap.ok(cpu <= CPU_MAX, f"{python.name}: CPU time is bounded", f"{100 * cpu:.0f} % of one CPU")
    tap.ok(kib <= MEMORY_MAX_KIB, f"{python.name}: memory is bounded", f"{kib // 1024} MiB at most")
    if not profile:
        return
    check_names(python, profile, loads)
    samples = [s for s in profile.of(loads["honest"]) if s.end != "cut:runtime-not-ready"]
    shown = [s for s in samples if "honest" in [last_part(n) for n in s.names] and not is_flagged(s)]
    tap.ok(total(samples) >= 0.7 * HZ * SECONDS * 2 and total(shown) >= 0.9 * total(samples), f"{python.name}: the honest process has its stacks",
           f"{total(shown)} of {total(samples)} samples, start included")


pythons = some_of(p for p in installed() if p.number >= (3, 7) and p.version in FULL)
if QUICK:
    pythons = [p for p in pythons if p.version == "3.12" and p.source == "built"] or pythons[-1:]
for python in pythons:
    if not only or python.version in only or python.source in only:
        check(python)
tap.finish()
