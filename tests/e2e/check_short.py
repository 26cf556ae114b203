#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that live for 200 ms appear whole and named, and a library that was replaced in place is read again."""
from known_stacks import is_exact
from support import *

OUT = os.path.join(BUILD, "stacks")
BRIEF = [["main", "brief_outer", "brief_inner", "leaf"]]
FIRST = [["main", "user", "library_entry", "library_inner", "called_back", "leaf"]]
SECOND = [["main", "user", "library_entry", "library_second", "called_back", "leaf"]]

tap = Tap("short")
need(tap)
built = run("make", "-s", "-j2", "-C", os.path.join(HERE, "workloads", "stacks"), f"OUT={OUT}",
            *[os.path.join(OUT, n) for n in ("brief", "loader", "library.so", "second.so")])
if not tap.ok(built.returncode == 0, "the programs build", built.stderr[-2000:]):
    tap.finish()


def recorder(name, hz):
    process = start(HEARTH, "record", "-F", hz, "-q", "-o", path(name), stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    return process


def finished(process, name):
    time.sleep(0.5)
    process.send_signal(2)
    said = process.communicate(timeout=90)[1]
    if not tap.ok(process.returncode == 0, "hearth record ends well", f"exit {process.returncode} {said[-300:].strip()}"):
        tap.finish()
    return Profile(path(name))


# ---- 200 ms at 99 Hz ----
runs = 20 if QUICK else 100
session = recorder("short.pb.gz", 99)
programs = []
for _ in range(runs):
    programs.append(start(os.path.join(OUT, "brief")))
    stopped(programs[-1])
profile = finished(session, "short.pb.gz")
whole, ends = 0, {}
for program in programs:
    samples = profile.of(program)
    # The kernel's exec and the loader come first: a stack that has no function of the program yet counts too, when whole.
    named = [s for s in samples if is_exact(s, BRIEF)]
    complete = [s for s in samples if s.end == "complete"]
    fine = share(named, samples) >= 0.75 and total(complete) == total(samples) > 0
    whole += fine
    for s in samples:
        if not fine:
            ends[f"{s.end} {';'.join(s.names)}"] = ends.get(f"{s.end} {';'.join(s.names)}", 0) + s.count
tap.ok(whole * 100 >= 95 * runs, "programs of 200 ms appear whole and named", f"{whole} of {runs}")
for text, count in sorted(ends.items(), key=lambda e: -e[1])[:5]:
    tap.note(f"    in the others {count} times {text}")
tap.note(f"    without any sample: {sum(not profile.of(p) for p in programs)}")

# ---- a library replaced ----
library, other = path("library.so"), path("other.so")
seconds = 2 if QUICK else 4


def one_run():
    program = start(os.path.join(OUT, "loader"), 60, library)
    time.sleep(seconds)
    program.kill()
    program.wait()
    return program


session = recorder("replaced.pb.gz", 499)
shutil.copy(os.path.join(OUT, "library.so"), library)
before = one_run()
inode = os.stat(library).st_ino
with open(os.path.join(OUT, "second.so"), "rb") as source, open(library, "r+b") as target:
    target.truncate(0)
    target.write(source.read())
tap.ok(os.stat(library).st_ino == inode, "the library is rewritten, not a new file")
rewritten = one_run()
shutil.copy(os.path.join(OUT, "library.so"), other)
still = start(os.path.join(OUT, "loader"), 60, library)  # keeps the file that loses its name
time.sleep(0.5)
os.rename(other, library)
renamed = one_run()
time.sleep(0.2)
still.kill()
still.wait()
profile = finished(session, "replaced.pb.gz")
for what, process, chains in (("before", before, FIRST), ("rewritten in place", rewritten, SECOND),
                              ("another file renamed over it", renamed, FIRST), ("the file that lost its name", still, SECOND)):
    samples = profile.of(process)
    if process is before:
        # Names are read at the end of the window, when those bytes are gone: none is right, another would be wrong.
        for s in samples:
            at = [i for i, n in enumerate(s.names) if n.startswith("[library.so+")]
            for i, name in zip(at, ("library_entry", "library_inner")):
                s.names[i] = name
    exact = [s for s in samples if is_exact(s, chains)]
    complete = [s for s in samples if s.end == "complete"]
    tap.ok(total(samples) > 100 and share(exact, samples) >= 0.97 and share(complete, samples) >= 0.97, f"a library, {what}: stacks are exact",
           f"{100 * share(exact, samples):.1f} % exact, {100 * share(complete, samples):.1f} % complete of {total(samples)}")
    if share(exact, samples) < 0.97:
        for s in sorted((s for s in samples if not is_exact(s, chains)), key=lambda s: -s.count)[:3]:
            tap.note(f"    {s.count} times {s.end} {';'.join(s.names)}")
tap.finish()
