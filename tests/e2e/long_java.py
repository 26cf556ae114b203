#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The long form of check_java.py's loads: each of them on each JVM, at least 5,000 Java stacks at 99 and at 997 Hz, a minute a load.

Arguments: only these versions or loads. What was measured is kept beside the JVMs until the programs of this folder's hearth differ, so
that a run which was broken off goes on; --again forgets it. Prints TAP, and the table for docs/java.md.
"""
from collections import Counter

from java_loads import *
from java_oracle import *
from long_form import RATES, cells, judge, measured, wait_for

STACKS = 5000
CPU_SECONDS = 1.04 * STACKS / min(RATES)  # of the busiest thread
FIGURES = "java", "judged", "complete", "guessed", "wrong", "frames", "named", "early", "lost", "pairs"
PROGRAMS = {**{load: program for load, (_, program) in LOADS.items()}, "virtual": ("Virtual",)}
LEAST = {"interpreted": INTERPRETED, "virtual": WHOLE_VIRTUAL}
KEPT = os.path.join(os.path.dirname(jvms.FOLDER), "long-java.json")
tap = Tap("long_java")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def measure(version, load):
    """{rate: figures}, or why there are none."""
    home = found[version]
    process, results = sampled(home, folder, options_of(version, load), PROGRAMS[load], RATES, lambda process: wait_for(process, CPU_SECONDS))
    out = {}
    for rate, (profiles, said) in zip(RATES, results):
        if not profiles:
            return said[-300:].strip()
        tally, chains, classes = judged(profiles, process, home, folder)
        check_oracle(tap, f"{version} {load} {rate} Hz", chains, classes)
        out[str(rate)] = {name: getattr(tally, name) for name in FIGURES}
        out[str(rate)]["odd"] = [f"{count} times {what}" for what, count in
                                 tally.illegal.most_common(3) + tally.cuts.most_common(4) + (+tally.unnamed).most_common(2)]
    return out


def rows_of(f, load):
    java, wanted, pairs, least = max(f["java"], 1), max(f["judged"], 1), max(sum(f["pairs"].values()), 1), LEAST.get(load, EACH)
    unknown, loose = (f["pairs"].get(verdict, 0) for verdict in ("unknown", "loose"))
    return [(f["java"] >= STACKS, "so many stacks", f["java"]),
            (f["complete"] >= least * wanted, f"{100 * least:g} % reach a proven root",
             f"{f['complete']} of {wanted}: {100 * f['complete'] / wanted:.2f} %, {f['early']} before the process was met, {f['lost']} lost"),
            (f["guessed"] <= GUESSED * java, f"at most {100 * GUESSED:g} % with a guess", f["guessed"]),
            (f["wrong"] <= WRONG * java, f"at most {100 * WRONG:g} % with an unmarked illegal pair", f["wrong"]),
            (f["named"] >= NAMED * f["frames"], f"{100 * NAMED:g} % of frames have names", f"{f['named']} of {f['frames']}"),
            (unknown <= (UNKNOWN_VIRTUAL if load == "virtual" else UNKNOWN) * pairs and loose <= LOOSE * pairs, "pairs can be judged", f["pairs"])]


def table(rows):
    """Markdown: a row for each JVM and load."""
    print("| JDK | load | stacks at 99, 997 Hz | to a root | with a guess | illegal | named | pairs |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        both = [row[str(rate)] for rate in RATES]
        share = cells(row, (("complete", "judged", 2), ("guessed", "java", 2), ("wrong", "java", 3), ("named", "frames", 2)))
        version, load = name.split()
        pairs = Counter(both[0]["pairs"]) + Counter(both[1]["pairs"])
        kinds = ", ".join(f"{100 * count / pairs.total():.2f} % {verdict}" for verdict, count in sorted(pairs.items()))
        print(f"| {version} | {load} | {both[0]['java']:,}, {both[1]['java']:,} | {' | '.join(share)} | {kinds} |")


missing = jvms.fetch()
folder, found = compiled(), jvms.homes()
if not folder or not found:
    tap.skip("everything", "no JDK")
    tap.finish()
for version in missing:
    tap.skip(f"JDK {version}", "cannot be had here")
versions = [v for v in found if str(v) in only] or list(found)
jobs = [(v, load) for v in versions for load in loads_of(v) + ["virtual"] * (v >= VIRTUAL) if load in only or not set(PROGRAMS) & set(only)]
done = {}
for name, version, load, result in measured(tap, KEPT, FIGURES, jobs, measure):
    done[name] = result
    for rate in RATES:
        judge(tap, f"{name} {rate} Hz", result[str(rate)], rows_of(result[str(rate)], load))
for version in versions:
    for rate in RATES:
        mine = [row[str(rate)] for name, row in done.items() if name.split()[0] == str(version) and name.split()[1] in LOADS]
        wanted, complete = (sum(f[what] for f in mine) for what in ("judged", "complete"))
        if mine:
            tap.ok(complete >= POOLED * wanted, f"{version} {rate} Hz: {100 * POOLED:g} % of all loads' reach a proven root",
                   f"{complete} of {wanted}: {100 * complete / max(wanted, 1):.2f} %")
table(done)
tap.finish()
