#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel on native on Python on native on Python, in call order: native code that calls back (python/mixed.py).

By default the interpreter's own frames are folded away and those of other libraries stay; with
--native-interpreter-frames all stay, and no native frame is missing beside a session without Python frames.
"""
import re
import signal
from collections import Counter

from pythons import QUICK_VERSIONS, everything, installed
from python_oracle import LOOP, PYTHON_ERROR, is_python, last_part
from support import *

SECONDS = 1 if QUICK else 2
# function that calls into C: what is called back (in the frames of re there are Python functions in between)
CALLS_BACK = {"by_sort": "key", "by_qsort": "compare", "by_map": "key", "by_substitution": "replace", "by_both": "<lambda>"}
PASSES_ON = {"sub", "_subx", "<module>"}
LEAVES = ("computing", "reading")
NAMELESS = re.compile(r"\+0x[0-9a-f]+\]$")

tap = Tap("python_mixed")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


class Frame:
    def __init__(self, name, module, file):
        self.name, self.module, self.file = last_part(name) if is_python(module) else name, module, file
        self.kind = "P" if is_python(module) or module == PYTHON_ERROR else "K" if module.startswith("[kernel") else "N"


def frames_of(sample):
    return [Frame(n, m, p[0]) for n, m, p in zip(sample.names, sample.modules, sample.places)]


def session(python, *options):
    recorder = start(HEARTH, "record", "-F", 997, "-q", "-o", path("mixed.pb.gz"), *options, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    load = start(*python.command([HERE], os.path.join(HERE, "python", "mixed.py"), SECONDS), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    load.stdout.readline()
    time.sleep(0.1)
    load.stdin.write("\n")
    load.stdin.flush()
    load.stdout.readline()
    time.sleep(0.3)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    load.kill()
    load.wait()
    if not tap.ok(recorder.returncode == 0, f"{python.name}: hearth record {' '.join(options)} ends well", said[-300:]):
        return []
    return [s for s in Profile(path("mixed.pb.gz")).of(load) if s.end != "cut:runtime-not-ready"]


def of_work(samples):
    return [s for s in samples if any(is_python(m) and last_part(n) == "work" for n, m in zip(s.names, s.modules))]


def of_native_work(samples):
    """The same without Python frames: the loop ran at least three times, and not to import or to start up."""
    return [s for s in samples if sum(n.startswith(LOOP) for n in s.names) >= 3
            and not any("import" in n.lower() or "init_interp" in n or "init_from" in n for n in s.names)]


def wrong_order(frames, folded):
    """What contradicts the order of calls; None: nothing."""
    kinds = "".join(f.kind for f in frames)
    if "K" in kinds.rstrip("K"):
        return "kernel frames below others"
    python = [i for i, f in enumerate(frames) if f.kind == "P"]
    for here, following in zip(python, python[1:]):
        name, called = frames[here].name, frames[following].name
        between = frames[here + 1:following]
        if name in CALLS_BACK and called == CALLS_BACK[name]:
            if not folded and not between:
                return f"no native frame between {name} and {called}"
            if name == "by_qsort" and not any("libc" in f.module for f in between):
                return "no frame of qsort between by_qsort and compare"
        elif name in CALLS_BACK and called not in PASSES_ON and called != "__call__" and name != "by_substitution":
            return f"{name} calls {called}"
        elif (name, called) in (("key", "innermost"), ("replace", "innermost"), ("compare", "innermost"), ("innermost", "reading")) and folded and between:
            return f"{between[0].name} between {name} and {called}"
    if kinds.endswith("K") and frames[python[-1]].name in LEAVES and "computing" not in frames[python[-1]].name:
        return None if frames[python[-1]].name == "reading" else f"kernel on {frames[python[-1]].name}"
    return None


def judge(python, what, samples, folded):
    work, wrong, both = of_work(samples), Counter(), 0
    for s in work:
        frames = frames_of(s)
        error = wrong_order(frames, folded)
        kinds = "".join(f.kind for f in frames)
        in_kernel = kinds.endswith("K")
        both += s.count * (in_kernel and "PNP" in "".join(k for i, k in enumerate(kinds) if not i or kinds[i - 1] != k))
        if error:
            wrong[f"{s.end} {error}: " + ";".join(f"{f.kind}:{f.name}" for f in frames[-14:])] += s.count
    unflagged = sum(c for w, c in wrong.items() if w.startswith("complete"))
    fine = tap.ok(total(work) >= 500 * SECONDS and not unflagged and sum(wrong.values()) <= 0.005 * total(work),
                  f"{python.name}: {what}: frames are in call order",
                  f"{total(work)} samples, {sum(wrong.values())} out of order, {unflagged} of them not flagged")
    tap.ok(both >= 20, f"{python.name}: {what}: kernel on Python on native on Python", both)
    if not fine:
        for text, count in wrong.most_common(4):
            tap.note(f"    {count} times {text[-700:]}")


def calls(sample):
    """Pairs of user functions that call each other, Python's left out; the interpreter's loop is in both kinds of session.
    Where there is no symbol every address has a name of its own: there the file is all that can be compared."""
    names = [NAMELESS.sub("]", f.name) for f in frames_of(sample) if f.kind == "N"]
    return set(zip(names, names[1:]))


def check_losses(python, kept, bare):
    """In the session with Python frames no native function calls one that it does not call in the session without."""
    known = set().union(*[calls(s) for s in bare if s.end == "complete"])
    whole = [s for s in kept if s.end == "complete"]
    strange = Counter()
    for s in whole:
        if calls(s) - known:
            strange[" ".join(">".join(c) for c in sorted(calls(s) - known))] += s.count
    depth = [sum(sum(f.kind == "N" for f in frames_of(s)) * s.count for s in some) / max(total(some), 1) for some in (whole, bare)]
    common = 1 - sum(strange.values()) / max(total(whole), 1)
    # What is seldom called may be called in one of the two only.
    if not tap.ok(common >= 0.9 and abs(depth[0] - depth[1]) < 0.03 * depth[1], f"{python.name}: no native frame is lost",
                  f"{100 * common:.2f} % of {total(whole)} native stacks have only calls of a session without Python; mean depth {depth[0]:.2f} and {depth[1]:.2f}"):
        for text, count in strange.most_common(6):
            tap.note(f"    {count} times {text[-500:]}")


def check(python):
    judge(python, "folded", session(python), True)
    kept = session(python, "--native-interpreter-frames")
    judge(python, "whole", kept, False)
    bare = of_native_work(session(python, "--python-mode", "disabled"))
    tap.ok(not any(is_python(m) for s in bare for m in s.modules), f"{python.name}: --python-mode disabled has no Python frames")
    if python.source != "built" and total(bare) < 100:
        # Distributions strip all but dynamic symbols: in Debian's 3.14.x of late the loop is mostly a part without one.
        tap.skip(f"{python.name}: no native frame is lost", "the interpreter's loop has no name in this build")
    else:
        check_losses(python, of_native_work(kept), bare)


if QUICK:
    pythons = [p for p in installed() if p.version in QUICK_VERSIONS[-1:] and p.source == "built"] or installed()[-1:]
else:
    pythons = everything(tap)
for python in pythons:
    if not only or python.version in only:
        check(python)
tap.finish()
