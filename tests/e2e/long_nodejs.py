#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The long form of check_nodejs.py's loads: each of them on each Node.js, at least 3,000 stacks at 99 and at 997 Hz, about 40 s a load.

Arguments: only these versions or loads. What was measured is kept beside the Node.js of npm until the programs of this folder's hearth differ, so
that a run which was broken off goes on; --again forgets it. Prints TAP, and the table for docs/node.md.
"""
import nodes as npm
from long_form import RATES, cells, judge, measured, wait_for
from node_load import *
from support import *

STACKS = 3000
CPU_SECONDS = 1.15 * STACKS / min(RATES) + 3  # of the main thread
# calls: each function's callers can be told; A: much that compilers inline; B: functions that live for a moment, of many kinds.
LOADS = {"calls": "load.js", "A": "inlined.js", "B": "churn.js"}
FRAMES_LEAST = 20000  # of B, none of them wrong
WRONG = 0.001
FIGURES = "javascript", "count", "whole", "frames", "named", "wrong"
KEPT = os.path.join(npm.packages.CACHE, "long-nodejs.json")
tap = Tap("long_nodejs")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def figures_of(found, load, pid):
    stacks, names = Stacks(found.samples, found.lost, always=pid), names_of(found.samples)
    text, wrong = Text(os.path.join(HERE, "nodejs", LOADS[load])), Counter()
    for s in found.samples:
        for what in sum(wrong_of_churn(s), []) if load == "B" else text.wrong_of(s):
            wrong[what] += s.count
    values = stacks.javascript, stacks.count, stacks.whole, names.total(), names.total() - names[LOST], wrong.total()
    odd = [f"{count} times {what}" for what, count in stacks.bad.most_common(4) + wrong.most_common(4)]
    return {**dict(zip(FIGURES, values)), "odd": odd}


def measure(version, load):
    """{rate: figures}, or why there are none."""
    process = launched(found[version].program, os.path.join(HERE, "nodejs", LOADS[load]), 600)
    time.sleep(1.5)
    recorders = [start(*recording(rate, f"long-{rate}"), "-p", process.pid, stderr=subprocess.PIPE, text=True) for rate in RATES]
    wait_for(process, CPU_SECONDS)
    for recorder in recorders:
        recorder.send_signal(signal.SIGINT)
    said = [recorder.communicate(timeout=300)[1] for recorder in recorders]
    process.kill()
    process.wait()
    takes = [Take(recorder.returncode, text, f"long-{rate}", process.pid) for rate, recorder, text in zip(RATES, recorders, said)]
    failed = [t.said[-300:].strip() or "no message" for t in takes if not t.ok]
    return failed[0] if failed else {str(rate): figures_of(t, load, process.pid) for rate, t in zip(RATES, takes)}


def rows_of(major, load, rate, f):
    least = WHOLE_CHURN if load == "B" else WHOLE if major >= 20 else WHOLE_BEFORE_20
    named = NAMED_CHURN if load == "B" else NAMED
    if load == "B":
        names = (not f["wrong"] and (f["frames"] >= FRAMES_LEAST or rate != max(RATES)), "no frame is wrong", f"{f['wrong']} of {f['frames']}")
    else:
        names = (f["wrong"] <= WRONG * f["frames"], "names, lines and calls are the load's", f"{f['wrong']} of {f['frames']} are not")
    return [(f["javascript"] >= STACKS, "so many stacks", f["javascript"]),
            (f["whole"] >= least * f["count"], f"{100 * least:g} % are whole", f"{f['whole']} of {f['count']}"),
            (f["named"] >= named * f["frames"], f"{100 * named:g} % of frames have names", f"{f['named']} of {f['frames']}"), names]


def table(rows):
    print("| Node.js | load | stacks at 99, 997 Hz | whole | with a name | wrong frames |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        version, load = name.split()
        stacks, wrong = [", ".join(f"{row[str(rate)][what]:,}" for rate in RATES) for what in ("count", "wrong")]
        print(f"| {found[int(version)].version} | {load} | {stacks} | {' | '.join(cells(row, (('whole', 'count', 2), ('named', 'frames', 2))))} | {wrong} |")


found = {n.major: n for n in npm.everything(tap) if n.major in npm.VERSIONS}
if not found:
    tap.skip("everything", "no node")
versions = [v for v in found if str(v) in only] or list(found)
jobs = [(v, load) for v in versions for load in LOADS if load in only or not set(LOADS) & set(only)]
done = {}
for name, version, load, result in measured(tap, KEPT, FIGURES, jobs, measure):
    done[name] = result
    for rate in RATES:
        judge(tap, f"{name} {rate} Hz", result[str(rate)], rows_of(version, load, rate, result[str(rate)]))
table(done)
tap.finish()
