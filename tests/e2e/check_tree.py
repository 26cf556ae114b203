#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A known call tree comes out exactly, and a chain that meets code without frame pointers is marked cut."""
from collections import Counter

from support import *

EXPECTED = {
    "c": ["main", "a", "b", "c"], "b": ["main", "a", "b"], "a": ["main", "a"],
    "e": ["main", "d", "e"], "d": ["main", "d"], "main": ["main"],
    "inner": ["thread_main", "outer", "inner"], "outer": ["thread_main", "outer"], "thread_main": ["thread_main"],
}
SHARES = {"c": 50, "b": 20, "e": 30}  # of the main thread, percent

tap = Tap("tree")
need(tap)
seconds = 4 if QUICK else 20
programs = {"frame pointers": start(workload("tree"), seconds + 4),
            "frame pointers, leaves without": start(workload("tree_plain"), seconds + 4)}
nofp = start(workload("nofp"), seconds + 4)
record(tap, seconds, "-F", 499, "-o", path("tree.pb.gz"), "-q")
profile = Profile(path("tree.pb.gz"))


def check(what, samples):
    own = exact = 0
    wrong, leaves = Counter(), Counter()
    for s in samples:
        if not s.names or not s.modules[-1].startswith(BUILD) or s.leaf not in EXPECTED:
            continue
        own += s.count
        first = next((i for i, n in enumerate(s.names) if n in ("main", "thread_main")), None)
        if first is not None and s.names[first:] == EXPECTED[s.leaf]:
            exact += s.count
            leaves[s.leaf] += s.count
        else:
            wrong[";".join(s.names)] += s.count
    tap.ok(own > 100, f"{what}: samples in the program's own code", own)
    tap.ok(own and exact / own >= 0.99, f"{what}: exactly the known tree in at least 99 %", f"{100 * exact / max(own, 1):.2f} % of {own}")
    for stack, count in wrong.most_common(5):
        tap.note(f"{count} times: {stack}")
    main_thread = sum(leaves[name] for name in SHARES)
    for name, percent in SHARES.items():
        found = 100 * leaves[name] / max(main_thread, 1)
        # Four standard deviations of a binomial share, and a point for the interrupts of a busy machine.
        room = 1 + 400 * (percent / 100 * (1 - percent / 100) / max(main_thread, 1)) ** 0.5
        tap.ok(abs(found - percent) <= room, f"{what}: {name} has about {percent} % of the main thread", f"{found:.1f} % (within {room:.1f})")
    names = {s.labels.get("thread") for s in samples if "inner" in s.names}
    tap.ok(names == {"tree-one", "tree-two"}, f"{what}: threads by name", sorted(map(str, names)))


for what, process in programs.items():
    check(what, profile.of(process))

through_libc = [s for s in profile.of(nofp) if "compare" in s.names or (s.modules and "libc" in s.modules[-1])]
# main -> sorter -> qsort -> ... -> compare: a stack without qsort's frames is not whole.
whole = [s for s in through_libc if s.end == "complete" and not any("sort" in n and n != "sorter" for n in s.names)]
tap.ok(total(through_libc) > 50, "samples above or in qsort", total(through_libc))
tap.ok(not whole, "a chain through the libc is never called complete", f"{total(whole)} of {total(through_libc)}")
unmarked = [s for s in profile.samples if s.names and not s.end]
tap.ok(not unmarked, "every stack says how it ended", f"{total(unmarked)} do not")
reasons = Counter()
for s in profile.samples:
    reasons[s.end] += s.count
tap.note("ends: " + ", ".join(f"{k} {v}" for k, v in reasons.most_common()))
text = hearth("report", path("tree.pb.gz"))
tap.ok(text.returncode == 0 and "thread_main" in text.stdout, "hearth report shows the tree")
tap.finish()
