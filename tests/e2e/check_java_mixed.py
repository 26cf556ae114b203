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
WHOLE = 0.98 if QUICK else 0.995
WRONG = 0.0005
NODE = "[javascript]"
JPYPE = os.path.join(os.environ.get("HEARTH_CACHE", os.path.expanduser("~/.cache/hearth")), "jpype")
tap = Tap("java_mixed")
need(tap)


def jpype():
    """The folder with the module; None: it cannot be had."""
    done = None if os.path.isdir(f"{JPYPE}/jpype") else run(sys.executable, "-m", "pip", "install", "--quiet", "--target", JPYPE, "JPype1")
    return None if done and done.returncode else JPYPE


def recorded(*processes):
    """The samples of each once they have run for a while; None: the recorder failed."""
    file, options = path("mixed.pb.gz"), [o for p in processes for o in ("-p", p.pid)]
    time.sleep(WARM)
    done = hearth("record", "-F", HZ, *options, "-d", SECONDS, "-q", "-o", file, timeout=SECONDS + 100)
    for process in processes:
        process.kill()
        process.wait()
    if not tap.ok(done.returncode == 0, "hearth record ends well", done.stderr[-300:].strip()):
        return None
    profile = Profile(file, system_names=True)
    return [profile.of(process) for process in processes]


def judge_java(what, samples, home):
    tally, _, _ = judge_samples(samples, home, folder)
    fine = tap.ok(tally.java >= 20 * SECONDS and tally.whole_share >= WHOLE, f"{what}: stacks with Java reach their root", tally.figures())
    fine &= tap.ok(tally.wrong <= max(1, WRONG * tally.java), f"{what}: no illegal pair that is not marked", tally.wrong)
    if not fine:
        for text, count in tally.illegal.most_common(3) + tally.cuts.most_common(4):
            tap.note(f"    {count} times {text}")


def in_order(names, wanted):
    rest = iter(names)
    return all(any(name == want for name in rest) for want in wanted)


def check_jpype(version, home):
    module, library = jpype(), next(iter(glob.glob(f"{home}/lib/server/libjvm.so") + glob.glob(f"{home}/lib/amd64/server/libjvm.so")), None)
    if not module or not library or os.path.isdir(f"{home}/sid"):
        return tap.skip(f"JPype with {version}", "JPype cannot be had here" if not module else "its libjvm.so wants another C library")
    process = start(sys.executable, os.path.join(SOURCES, "jpype_load.py"), library, folder, 600, env={**os.environ, "PYTHONPATH": module})
    found = recorded(process)
    if not found:
        return None
    judge_java(f"{version} JPype", found[0], home)
    chains, odd = Counter(), Counter()
    for s in found[0]:
        names = ["py:" + last_part(n) if is_python(m) else "java:" + n.partition("(")[0] if m == MODULE else n for n, m in zip(s.names, s.modules)]
        for leaf, wanted in (("py:innermost", ["py:main", "py:there_and_back", "java:Calls.twice", "java:Calls.once", "py:back", "py:innermost"]),
                             ("java:Load.turn", ["py:main", "py:into_java", "java:Calls.turn", "java:Load.turn"])):
            if leaf in names:
                fine = in_order(names, wanted) or s.end.startswith("cut:")
                chains[leaf, fine] += s.count
                if not fine:
                    odd[" > ".join(n for n in names if n.startswith(("py:", "java:")))[:300]] += s.count
    for leaf in "py:innermost", "java:Load.turn":
        right, wrong = chains[leaf, True], chains[leaf, False]
        tap.ok(right >= 5 * SECONDS and wrong <= 0.005 * (right + wrong), f"{version} JPype: what called {leaf.partition(':')[2]} stands before it in order", f"{right} of {right + wrong}")
    for what, count in odd.most_common(3):
        tap.note(f"    {count} times {what}")


def check_node(version, home):
    node = shutil.which("node")
    if not node:
        return tap.skip(f"Node.js beside {version}", "needs node")
    java = start(f"{home}/bin/java", "-cp", folder, *LOADS["default"][1])
    found = recorded(java, start(node, os.path.join(HERE, "nodejs", "load.js"), 600))
    if not found:
        return None
    judge_java(f"{version} beside Node.js", found[0], home)
    mine = [s for s in found[1] if NODE in s.modules]
    all_of_it, whole = sum(s.count for s in mine), sum(s.count for s in mine if s.end in ("complete", "guessed"))
    tap.ok(all_of_it >= 20 * SECONDS and whole >= WHOLE * all_of_it, f"Node.js beside {version}: stacks reach their root", f"{whole} of {all_of_it}")
    tap.ok(not any(MODULE in s.modules for s in found[1]) and not any(NODE in s.modules for s in found[0]), f"{version} beside Node.js: neither has frames of the other")


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
