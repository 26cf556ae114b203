#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node.js where it is seldom seen: functions of the module vm's contexts, a native add-on that JavaScript calls and that calls JavaScript,
a large heap that was there before. Arguments: only these versions."""
from collections import Counter

from node_load import *
from nodes import VERSIONS, everything
from support import *

SECONDS = 4  # of CPU
HZ = 499
LARGE = 1200 if QUICK or SAMPLED else 4000  # thousands of objects
SAMPLES_LEAST = 100
RIGHT_LEAST = 0.995
# Of the samples, in contexts: a function that one is made for lives 100 ms, and its name may be gone when it is read. docs/node.md has what was measured.
LOST_MOST = 0.06
LARGE_READY_MS, LARGE_RIGHT = 300, 0.98  # while functions are optimised, code that ran for some ms is gone before it is read, beside other work
# What each innermost function must stand below, root first.
OF_CONTEXTS = {"spin": ["enter", "(anonymous)", "inside", "spin"], "outside": ["enter", "(anonymous)", "inside", "outside"], "kept": ["later", "kept"]}
OF_ADDON = {"native_spin": ["outer", "middle", "native_work", "native_spin"], "called": ["outer", "middle", "native_work", "native_between", "called"]}

tap = Tap("nodejs_odd")
need(tap)


def taken(node, script, *arguments):
    """What hearth saw of a program; None: it failed."""
    process = start(node.program, os.path.join(HERE, "nodejs", script), SECONDS, *arguments)
    time.sleep(1)
    found = take(process, HZ, SECONDS * 10)
    ended = process.wait(timeout=60)
    return found if tap.ok(found.ok and ended == 0, f"{node.version}: {script}: hearth record and the program end well", f"{ended} {found.said[-300:].strip()}") else None


def judge(node, what, found, chains, part_of, lost_most):
    """@part_of: a sample's frames that the chains are made of. What ran before hearth had met the program is check_nodejs_profile.py's."""
    right, wrong, all_of = Counter(), Counter(), Counter()
    Stacks(found.main(), found.lost).judge(tap, f"{node.version}: {what}", WHOLE_CHURN)
    ours = [s for s in found.main() if frames_of(s)]
    lost = total([s for s in ours if LOST in s.names])
    tap.ok(is_share(lost, total(ours), 1 - lost_most), f"{node.version}: {what}: frames have names", f"{lost} of {total(ours)} samples have one without")
    for s in (s for s in ours if LOST not in s.names):  # the others are counted above
        names = part_of(s)
        want = chains.get(names[-1]) if names else None
        if want:
            fine = names[-len(want):] == want and s.end == "complete"
            all_of[names[-1]] += s.count
            right[names[-1]] += s.count if fine else 0
            wrong[f"{s.end} {' '.join(names)}"] += 0 if fine else s.count
    for text, count in (+wrong).most_common(4):
        tap.note(f"{count} {text}")
    for name in chains:
        tap.ok(all_of[name] >= SAMPLES_LEAST and right[name] >= RIGHT_LEAST * all_of[name], f"{node.version}: {what}: {name} with its callers, whole", f"{right[name]} of {all_of[name]}")


def of_script(sample):
    """Functions of the program, without those of Node.js between them."""
    return [n for n, file, _ in frames_of(sample) if file.endswith("/contexts.js") or file.startswith("/inside/")]


def of_addon(sample):
    wanted = {n for chain in OF_ADDON.values() for n in chain}
    return [n for n in sample.names if n in wanted]


def made(node):
    """The add-on, made with the version's own headers; None: said why not."""
    headers = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(node.program))), "include", "node")
    if not os.path.exists(os.path.join(headers, "node_api.h")):
        tap.skip(f"{node.version}: add-on", f"there is no {headers}/node_api.h")
        return None
    out = path(f"addon-{node.version}.node")
    built = run("gcc", "-O2", "-fPIC", "-shared", "-I", headers, "-o", out, os.path.join(HERE, "nodejs", "addon.c"))
    return out if tap.ok(built.returncode == 0, f"{node.version}: add-on: it builds", built.stderr[-300:]) else None


def judge_large(node):
    """It is attached to at once all the same: what says where functions are lies somewhere in the heap."""
    process = start(node.program, "--max-old-space-size=4000", os.path.join(HERE, "nodejs", "large.js"), LARGE, stdout=subprocess.PIPE, text=True)
    said = process.stdout.readline().split()
    found = take(process, HZ, SECONDS + 2)
    process.kill()
    process.wait()
    what = f"{node.version}: a heap of {said[-1] if said else 'no'} MiB"
    if not tap.ok(found.ok and said[:1] == ["ready"], f"{what}: hearth record ends well", found.said[-300:].strip()):
        return
    early = 1000 * total([s for s in found.early if s.labels.get("tid") == s.pid and not frames_of(s)]) / HZ
    tap.ok(early <= LARGE_READY_MS, f"{what}: its functions have names soon", f"after {early:.0f} ms of CPU time")
    samples = [s for s in found.main() if COLLECTOR not in s.names]
    named = [s for s in samples if s.end == "complete" and ["outer", "inner"] == [n for n, file, _ in frames_of(s) if file.endswith("/large.js")][-2:]]
    tap.ok(total(samples) >= SAMPLES_LEAST and total(named) >= LARGE_RIGHT * total(samples), f"{what}: and keep them", f"{total(named)} of {total(samples)}")
    others = Counter()
    for s in samples:
        others[f"{s.end}: {' < '.join(s.names[:-6:-1])}"] += s.count * (s not in named)
    for stack, count in others.most_common(4):
        if count:
            tap.note(f"    {count} times {stack}")


only = [a for a in sys.argv[1:] if not a.startswith("-")]
nodes = [n for n in everything(tap) if n.major in VERSIONS and (not only or str(n.major) in only)]
if not nodes:
    tap.skip("contexts and add-ons of Node.js", "no node")
for node in nodes:
    found = taken(node, "contexts.js")
    if found:
        judge(node, "vm", found, OF_CONTEXTS, of_script, LOST_MOST)
    file = made(node)
    found = taken(node, "addon.js", file) if file else None
    if found:
        judge(node, "add-on", found, OF_ADDON, of_addon, 1 - NAMED)
    judge_large(node)
tap.finish()
