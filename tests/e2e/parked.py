# SPDX-License-Identifier: Apache-2.0
"""`hearth dump -p` beside what a program that waits says of its own threads: parked/ has one for each interpreter."""
import json
import os
import select
import time

from support import HEARTH, HERE, run

FOLDER = os.path.join(HERE, "parked")


def told(process, seconds=60):
    """What the program says: {thread: [(name, file, line)]}, innermost first; @process has a pipe. Nothing of a thread: the first one's."""
    stacks, end = {}, time.monotonic() + seconds
    while time.monotonic() < end and select.select([process.stdout], [], [], 2 if stacks else seconds)[0]:
        line = process.stdout.readline()
        if not line:
            break
        if line.startswith("STACKS "):
            found = json.loads(line[7:])
            stacks.update(found if isinstance(found, dict) else {"main": found})
    return {who: [(name, os.path.basename(file), line) for name, file, line in stack] for who, stack in stacks.items()}


def shown(process, kind, *options):
    """What hearth says: {thread: (frames of the runtime, what it remarks)}; the first thread is "main". And how it ended."""
    done = run(HEARTH, "dump", "--json", *options, "-p", process.pid)
    if done.returncode:
        return {}, done.stderr
    dump = json.loads(done.stdout)
    out = {}
    for thread in dump["threads"]:
        rows, place = [], ("", 0)
        for f in reversed(thread["frames"]):
            if f["kind"] != kind:
                continue
            place = (os.path.basename(f["file"]), f.get("line", 0)) if f.get("file") else place
            rows.append((f.get("name", ""), *place))
        rows.reverse()
        if not rows and thread["tid"] != process.pid:  # several have the name of one that has some
            continue
        out["main" if thread["tid"] == process.pid else thread["name"]] = (rows, thread["remarks"], [f.get("guessed") for f in thread["frames"] if f["kind"] == kind])
    return out, dump.get("remark", "")


def difference(got, want):
    for i, (a, b) in enumerate(zip(got, want)):
        if a != b:
            return f"frame {i} is {a} and not {b}"
    return f"{len(got)} frames and not {len(want)}: {(got or want)[min(len(got), len(want)):][:3]}"


def check(tap, name, process, kind, title, skip=0, base=lambda label: label):
    """@skip: so many innermost frames hearth shows beyond what is told."""
    want = told(process)
    if not tap.ok(want, f"{name}: the program says where it waits"):
        return
    time.sleep(0.3)
    for options in ([], ["--freeze"]):
        got, said = shown(process, kind, *options)
        for who, stack in want.items():
            stack = [(base(n), f, l) for n, f, l in stack]
            others = [w for w in got if w != "main"]
            rows, remarks, guessed = got.get(who if who in got or len(others) != 1 else others[0], ([], [said], []))
            rows = [(base(n), f, l) for n, f, l in rows]
            flagged = [r for r in remarks if r.startswith(f"{title} frames")]
            tap.ok(rows[skip:] == stack and not flagged and not any(guessed), f"{name}: dump -p {' '.join(options)}: {who}",
                   " ".join([f"{len(stack)} frames" if rows[skip:] == stack else difference(rows[skip:], stack), *flagged]))
