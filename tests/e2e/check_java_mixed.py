#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java beside other runtimes: in one process with Python (JPype, from PyPI), which calls it and is called back, and in a process of its own beside
one of Node.js. Their stacks are whole, in call order, judged by Java's bytecode."""
from collections import Counter

from java_loads import *
from java_oracle import *
from python_oracle import is_python, last_part

HZ = 997
SECONDS = 4 if QUICK else 20
WHOLE = 0.995
NODE = "[javascript]"
JPYPE = os.path.join(os.environ.get("HEARTH_CACHE", os.path.expanduser("~/.cache/hearth")), "jpype")
tap = Tap("java_mixed")
need(tap)


def jpype():
    """The folder with the module; None: it cannot be had."""
    done = None if os.path.isdir(f"{JPYPE}/jpype") else run(sys.executable, "-m", "pip", "install", "--quiet", "--target", JPYPE, "JPype1")
    return None if done and done.returncode else JPYPE


def recorded(*processes):
    """The profiles of the windows of a session in which they run, from a while after their start on; None: the recorder failed."""
    file, options = path("mixed.pb.gz"), [o for p in processes for o in ("-p", p.pid)]
    time.sleep(WARM)
    done = hearth("record", "-F", HZ, *options, "-d", SECONDS, "--window", WINDOW, "-q", "-o", file, timeout=SECONDS + 100)
    for process in processes:
        process.kill()
        process.wait()
    if not tap.ok(done.returncode == 0, "hearth record ends well", done.stderr[-300:].strip()):
        return None
    return windows_of(file)


def samples_of(profiles, process):
    return [s for p in profiles for s in p.of(process)]


def judge_java(what, profiles, process, home):
    tally, _, _ = judged(profiles, process, home, folder)
    fine = tap.ok(tally.java >= 20 * SECONDS and reaches(tally, WHOLE), f"{what}: stacks with Java reach their root", tally.figures())
    fine &= tap.ok(tally.early <= HZ, f"{what}: met soon", f"{tally.early} ticks before")
    fine &= tap.ok(tally.wrong == 0, f"{what}: no illegal pair that is not marked", f"{tally.wrong} of {tally.java}")
    if not fine:
        for text, count in tally.illegal.most_common(3) + tally.cuts.most_common(4):
            tap.note(f"    {count} times {text}")


def in_order(names, wanted, is_cut):
    """Of a stack that is cut, what is there."""
    rest = iter(names)
    return all(any(name == want for name in rest) for want in wanted if not is_cut or want in names)


def check_jpype(version, home):
    module, library = jpype(), next(iter(glob.glob(f"{home}/lib/server/libjvm.so") + glob.glob(f"{home}/lib/amd64/server/libjvm.so")), None)
    if not module or not library or os.path.isdir(f"{home}/sid"):
        return tap.skip(f"JPype with {version}", "JPype cannot be had here" if not module else "its libjvm.so wants another C library")
    process = start(sys.executable, os.path.join(SOURCES, "jpype_load.py"), library, folder, 600, env={**os.environ, "PYTHONPATH": module})
    found = recorded(process)
    if not found:
        return None
    judge_java(f"{version} JPype", found, process, home)
    chains, odd = Counter(), Counter()
    for s in samples_of(found, process):
        names = ["py:" + last_part(n) if is_python(m) else "java:" + n.partition("(")[0] if m == MODULE else n for n, m in zip(s.names, s.modules)]
        for leaf, wanted in (("py:innermost", ["py:main", "py:there_and_back", "java:Calls.twice", "java:Calls.once", "py:back", "py:innermost"]),
                             ("java:Load.turn", ["py:main", "py:into_java", "java:Calls.turn", "java:Load.turn"])):
            if leaf in names:
                fine = in_order(names, wanted, s.end.startswith("cut:")) or s.end == "guessed"
                chains[leaf, fine] += s.count
                if not fine:
                    odd[" > ".join(n for n in names if n.startswith(("py:", "java:")))[:300]] += s.count
    for leaf in "py:innermost", "java:Load.turn":
        right, wrong = chains[leaf, True], chains[leaf, False]
        tap.ok(right >= 5 * SECONDS and wrong == 0, f"{version} JPype: what called {leaf.partition(':')[2]} stands before it in order", f"{right} of {right + wrong}")
    for what, count in odd.most_common(3):
        tap.note(f"    {count} times {what}")


def check_node(version, home):
    node = shutil.which("node")
    if not node:
        return tap.skip(f"Node.js beside {version}", "needs node")
    java, other = start(f"{home}/bin/java", "-cp", folder, *LOADS["default"][1]), start(node, os.path.join(HERE, "nodejs", "load.js"), 600)
    found = recorded(java, other)
    if not found:
        return None
    judge_java(f"{version} beside Node.js", found, java, home)
    of_java, of_node = samples_of(found, java), samples_of(found, other)
    mine = [s for s in of_node if NODE in s.modules or s.end not in ("complete", "guessed")]
    all_of_it, whole = total(mine), total([s for s in mine if s.end in ("complete", "guessed")])
    tap.ok(all_of_it >= 20 * SECONDS and at_most(all_of_it - whole, all_of_it, 1 - WHOLE), f"Node.js beside {version}: stacks reach their root", f"{whole} of {all_of_it}")
    tap.ok(not any(MODULE in s.modules for s in of_node) and not any(NODE in s.modules for s in of_java), f"{version} beside Node.js: neither has frames of the other")


if not QUICK:
    jvms.fetch()
folder, found_homes = compiled(), jvms.homes()
if not folder or not found_homes:
    tap.skip("everything", "no JDK")
    tap.finish()
for number in [max(n for n, home in found_homes.items() if home.startswith("/usr"))] if QUICK else some_of(found_homes):
    check_jpype(number, found_homes[number])
    check_node(number, found_homes[number])
tap.finish()
