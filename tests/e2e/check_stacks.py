#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose every possible stack is known come out exactly, unwound in the kernel and from copied stacks.

Each program of workloads/stacks burns its time under known functions. A sample is exact when its frames from main (or
the thread's first function) on are the beginning of a known chain, and what lies outside of that is the way in from a
root. Kernel frames on top are left aside: an interrupt can hit anywhere.
"""
import contextlib
import signal
from collections import Counter

from known_stacks import LIBC, is_exact
from support import *

COPIES = ["--unwind", "copy"]  # every walk is left to user space


def way(*names):
    return list(names)


LEAF_CHAIN = [way("main", "one", "two", "three", "leaf")]
PLT = [way("main", "caller", "tiny"), way("main", "caller", "tiny@plt")]
GO = [way("main.main.func1", "main.one", "main.two", "main.three", "main.leaf")]
# program: its known chains, root first
KNOWN = {
    **{f"chain_{how}": LEAF_CHAIN for how in (
        "O0", "O1", "O2", "O3", "Os", "clang_O0", "clang_O2", "clang_O3", "nopie", "static", "staticpie", "musl", "muslstat",
        "debugfr", "nohdr", "gold")},
    **{name: [way("main", *[f"deep_{n}" for n in range(1, 31)], "leaf")] for name in ("many32", "many32_clang")},
    **{name: [way("main", *["recurse"] * 60, "leaf")] for name in ("recursion", "recursion_clang")},
    # The frame between is the code a handler returns to.
    **{name: [way("main", "caller", "faulting", LIBC, "handler", "leaf")] for name in ("signal_same", "signal_alt")},
    "vforked": [way("main", "spawner", "child", "leaf")],
    **{name: PLT for name in ("plt_lazy", "plt_now", "plt_cet")},
    **{name: [way("main", "caller", "varying", "leaf")] for name in ("alloca", "alloca_clang")},
    **{name: [way("main", "caller", "outer", "inner", "leaf")] for name in ("realign", "realign_clang")},
    "tailcall": [way("main", "third", "leaf")],
    "cpp_catch": [way("main", "catcher", "handle", "leaf")],
    "cpp_cleanup": [way("main", "catcher", "middle", "clean_up", "leaf")],
    "cpp_clean_O0": [way("main", "catcher", "middle", "guard::~guard", "clean_up", "leaf")],
    "threads": [way("thread_main", "inner", "leaf")],
    "callback": [way("main", "sorter", LIBC, "compare", "leaf")],
    "longjump": [way("main", "jumper", "leaf")],
    "bigframe": [way("main", "caller", "big", "leaf")],
    "noreturn": [way("main", "caller", "endless", "leaf")],
    "loader": [way("main", "user", "library_entry", "library_inner", "called_back", "leaf")],
    "by_hand": [way("main", "caller", "by_hand", "by_hand_inner")],
    "registers": [way("main", "caller", "by_rax", "keeps_rax"), way("main", "caller", "by_rbx", "saves_rbx", "leaf"),
                  way("main", "caller", "by_expression", "leaf")],
    "registers_lie": [way("main", "caller", "by_lie", "changes_rax")],
    **{name: [way("coroutine", "inner", "leaf")] for name in ("ucontext", "ucontext_st", "fcontext")},
    **{name: GO for name in ("gostack", "gostack_strip", "gostack_pie")},
}
FEW = ["chain_clang_O2", "chain_musl", "many32", "signal_same", "plt_lazy", "realign", "cpp_cleanup", "registers", "registers_lie",
       "ucontext", "fcontext", "gostack_strip"]
NEEDS = {"clang": "clang", "musl": "musl-gcc", "gostack": "go"}
ENOUGH_S = 0.5 if QUICK else 1.5  # of CPU time for each program
AT_ONCE = 4 * CPUS  # more would only compete with hearth for the CPUs
OUT = os.path.join(BUILD, "stacks")

tap = Tap("stacks")
need(tap)


def missing(name):
    if name == "fcontext" and not os.path.exists("/usr/include/boost/context"):
        return "libboost-context-dev"
    return next((tool for part, tool in NEEDS.items() if part in name and not shutil.which(tool)), None)


names = [n for n in (FEW if QUICK else KNOWN) if not missing(n)]
for name in FEW if QUICK else KNOWN:
    if missing(name):
        tap.skip(name, f"needs {missing(name)}")
built = run("make", "-s", "-j2", "-C", os.path.join(HERE, "workloads", "stacks"), f"OUT={OUT}",
            *[os.path.join(OUT, n) for n in names + ["library.so"]])
if not tap.ok(built.returncode == 0, "the programs build", built.stderr[-2000:]):
    tap.finish()


def compiler(name):
    if name.startswith("gostack"):
        return "go"
    return "clang" if "clang" in name else "musl-gcc" if "musl" in name else "gcc"


def is_idle(sample, name):
    """What is not the program's own burning: its start in the loader, the waiting parts of a runtime."""
    return name.startswith("gostack") and not any(n.startswith("main.") for n in sample.names)


# 16 KiB of stack travel: where a frame is larger, or the handler's stack is another than the one it interrupted, the walk
# has to say that the copy ended.
BEYOND_COPY = ("bigframe", "signal_alt")
ENDS_OF_COPY = {"cut:copied-stack-end", "cut:read-failed"}
# Nobody can follow what is no longer true: what counts is that a stack is whole only when it is right.
UNTRUE = ("registers_lie",)
# musl comes without unwind tables: main stands on the function that calls exit, whose name a stripped file does not have.
OTHER_ROOT = ("chain_musl", "chain_muslstat")


def wrong_ones(samples, name, ends):
    wrong = Counter()
    for s in samples:
        if s.end not in ends or not exact_one(s, name):
            wrong[f"{s.end}  {';'.join(s.names)}"] += s.count
    for stack, count in wrong.most_common(3):
        tap.note(f"    {count} times {stack}")


def exact_one(sample, name):
    return is_exact(sample, KNOWN[name], roots=None) if name in OTHER_ROOT else is_exact(sample, KNOWN[name])


def judge(mode, name, samples):
    exact = [s for s in samples if exact_one(s, name)]
    complete = [s for s in samples if s.end == "complete"]
    figures = f"{compiler(name):<8} {total(samples):>6} {100 * share(exact, samples):6.2f} % {100 * share(complete, samples):6.2f} %"
    enough, ends = total(samples) >= (100 if QUICK else 400), {"complete"}
    if mode == "from copies" and name in BEYOND_COPY:
        cut = [s for s in samples if s.end in ENDS_OF_COPY]
        fine = tap.ok(enough and share(cut, samples) >= 0.99, f"{mode}: {name:<15} says that the copy ended", figures)
        ends = ENDS_OF_COPY
    elif name in UNTRUE:
        wrong = [s for s in complete if not exact_one(s, name)]
        fine = tap.ok(enough and not wrong, f"{mode}: {name:<15} is whole only where it is right", figures)
        ends = {s.end for s in samples}
    else:
        fine = tap.ok(enough and share(exact, samples) >= 0.99 and share(complete, samples) >= 0.99, f"{mode}: {name:<15}", figures)
    if not fine:
        wrong_ones(samples, name, ends)


def was_walked(sample, mode, name):
    """In the mode's own way: at first all samples are copied, and copies are dropped when the machine leaves hearth no time
    to walk them. Both are counted."""
    if mode == "in BPF":
        return not (name in BEYOND_COPY and sample.end in ENDS_OF_COPY)
    return sample.end != "cut:no-process" or any(not m.startswith("[kernel") for m in sample.modules)


def show(mode, some, profile):
    left_out = 0
    for name in some:
        samples = [s for s in profile.samples if s.labels.get("comm") == name[:15] and not is_idle(s, name)]
        walked = [s for s in samples if was_walked(s, mode, name)]
        left_out += total(samples) - total(walked)
        judge(mode, name, walked)
    tap.ok(left_out <= (profile.counter("raw_dropped") if mode == "from copies" else profile.counter("raw")),
           f"{mode}: what was not walked in this way is counted", left_out)
    tap.note(f"{mode}: {profile.counter('raw')} of {profile.counter('samples')} samples travelled raw, {profile.lost} lost")


def children_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(c) for c in f.read().split()]
    return []


def used(process):
    """CPU seconds of a program and the child of vforked."""
    return sum(cpu_seconds(pid) for pid in [process.pid, *children_of(process.pid)])


def session(mode, *options):
    """Until each program has had its CPU time: what else runs on the machine takes part of it."""
    tap.note(f"{mode}: program, compiler, samples, exact, complete")
    for at in range(0, len(names), AT_ONCE):
        some = names[at:at + AT_ONCE]
        programs = [start(os.path.join(OUT, n), 200, os.path.join(OUT, "library.so"), env={**os.environ, "GOMAXPROCS": "1"},
                          start_new_session=True) for n in some]
        time.sleep(0.5)
        before = [used(p) for p in programs]
        recorder = start(HEARTH, "record", "-F", 499, "-q", "-o", path("stacks.pb.gz"), *options, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while time.monotonic() < end and any(used(p) - b < ENOUGH_S for p, b in zip(programs, before)):
            time.sleep(0.2)
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=90)[1]
        for program in programs:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        if not tap.ok(recorder.returncode == 0, "hearth record ends well", f"exit {recorder.returncode} {said[-300:].strip()}"):
            tap.finish()
        show(mode, some, Profile(path("stacks.pb.gz")))


session("in BPF")
session("from copies", *COPIES)
tap.finish()
