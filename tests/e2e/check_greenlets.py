#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Greenlets, gevent and eventlet: a stack that is called whole belongs to one greenlet, from its entry on, with Python
frames and without; and nearly every one is whole. check_greenlets.py [--quick] [VERSION...]"""
import re
import signal
from collections import Counter

import pythons
from judge import share_interval
from python_oracle import is_python, last_part
from support import *

SECONDS = 2 if QUICK else 4
SCRIPT = os.path.join(HERE, "python", "greenlets.py")
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
VERSIONS = ["3.11"] if QUICK else ["2.7", "3.6", "3.8", "3.11", "3.12", "3.13"]
OLDER = {"3.8": ["greenlet==0.4.17", "greenlet==1.1.3", "greenlet==2.0.2"], "3.11": ["greenlet==2.0.2", "greenlet==3.0.3"]}
LEAST = 0.98
NATIVE = {"a": ("functools_reduce",), "b": ("min_max", "builtin_min"), "main": ("list_sort", "listsort", "builtin_sorted")}
ENTRIES = ("greenlet::UserGreenlet::inner_bootstrap", "g_initialstub")

tap = Tap("greenlets")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def packages_of(python, *wanted):
    folder = path(f"{python.version}-{'-'.join(wanted)}")
    if not os.path.isdir(folder):
        done = run(python.program, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", folder, *wanted)
        if done.returncode:
            tap.skip(f"{python.name}: {' '.join(wanted)}", "cannot be installed: " + done.stderr.strip()[-100:].replace("\n", " "))
            shutil.rmtree(folder, ignore_errors=True)
            return None
    return folder


def take(python, folder, case, *options):
    """Samples of a load, without its start: stacks that began before it was asked to."""
    load = start(python.program, SCRIPT, case, SECONDS, env={**ENV, "PYTHONPATH": folder}, stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    fine = load.stdout.readline().strip() == "ready"
    recorder = start(HEARTH, "record", "-F", 499, "-q", "-p", load.pid, "-o", path("out.pb.gz"), *options)
    time.sleep(1)
    if fine:
        load.stdin.write("\n")
        load.stdin.flush()
        fine = load.stdout.readline().strip() == "done"
    recorder.send_signal(signal.SIGINT)
    stopped(recorder)
    load.kill()
    said = load.communicate()[1]
    if not fine or recorder.returncode:
        tap.ok(False, f"{python.name}: {case} runs under hearth record", f"exit {recorder.returncode} {said[-300:]}")
        return []
    return [s for s in Profile(path("out.pb.gz")).of(load) if s.end != "cut:runtime-not-ready" and not is_start(s)]


def is_start(sample):
    """Imports, from the interpreter's start or from within the load."""
    return any("_find_and_load" in n or n.startswith(("PyImport_", "import_name", "_dl_open", "_PyImport_")) for n in sample.names)


def owners(sample):
    """Whose frames a stack has, from the root to the leaf, without repetitions."""
    out = []
    for name, module in zip(sample.names, sample.modules):
        if is_python(module):
            found = re.match(r"(main|a|b)_", last_part(name))
            owner = found and found.group(1)
        else:
            owner = next((o for o, names in NATIVE.items() if name.startswith(names)), None)
        if owner and out[-1:] != [owner]:
            out.append(owner)
    return out


def is_wrong(sample, with_python):
    """Called whole, but with frames of two stacks or not from its beginning on. What the interpreter's end runs has no owner."""
    own = owners(sample)
    if len(own) > 1:
        return True
    if not own:
        return False
    frames = [last_part(n) for n, m in zip(sample.names, sample.modules) if is_python(m)]
    if own == ["main"]:
        return frames[:1] != ["<module>"] if with_python else sample.names[0] != "_start"
    return frames[:1] != [own[0] + "_run"] if with_python else not sample.names[0].startswith(ENTRIES)


def judge(what, samples, with_python, least, least_count=100 * SECONDS):
    whole = [s for s in samples if s.end == "complete"]
    wrong = [s for s in whole if is_wrong(s, with_python)]
    ends = Counter()
    for s in samples:
        ends[s.end] += s.count
    best = share_interval(total(whole), total(samples))[1] if QUICK or SAMPLED else share(whole, samples)  # few samples refute less
    ok = tap.ok(not wrong and total(samples) >= least_count and best >= least, what,
                f"{total(samples)} samples, {100 * share(whole, samples):.2f} % whole, {total(wrong)} wrong and called whole; "
                + " ".join(f"{e} {n}" for e, n in ends.most_common(4) if e != "complete"))
    for s in sorted(wrong, key=lambda s: -s.count)[:0 if ok else 3]:
        tap.note(f"    wrong {s.count} times {';'.join(s.names)[-700:]}")


def check_lineage(python, *wanted):
    folder = packages_of(python, *wanted)
    for options in [["--no-python"], []] if folder else []:
        what = f"{python.name} {' '.join([*wanted, *options])}: a whole stack belongs to one greenlet"
        judge(what, take(python, folder, "lineage", *options), not options, LEAST)


def check_from_outside(python):
    """The sampler that reads the interpreter's memory: it sees Python's frames alone, of the greenlet that runs. With a CPU of its own
    the program changes its stack while it is read, nearly each time: then no stack is whole, and none may be wrong."""
    folder = packages_of(python, "greenlet")
    if folder:
        judge(f"{python.name} greenlet --sampler remote: a whole stack belongs to one greenlet",
              take(python, folder, "lineage", "--sampler", "remote"), True, 0, 10 * SECONDS)


def check_loads(python):
    """As programs use it. Pure switches are the worst case: the instant between two stacks is never whole."""
    folder = packages_of(python, "greenlet", "gevent", "eventlet")
    for case, least in {"gevent_pool": LEAST, "gevent_server": LEAST, "eventlet_pool": LEAST, "switches": 0}.items() if folder else []:
        for options in [["--no-python"], []]:
            judge(f"{python.name} {' '.join([case, *options])}: stacks are whole", take(python, folder, case, *options), not options, least)


for python in some_of(pythons.everything(tap, only or VERSIONS)):
    check_lineage(python, "greenlet")
    if not QUICK or python.version == "3.11":
        check_from_outside(python)
    for wanted in OLDER.get(python.version, []) if not QUICK else []:
        check_lineage(python, wanted)
    if not QUICK and python.version in ("3.8", "3.11", "3.13"):
        check_loads(python)
tap.finish()
