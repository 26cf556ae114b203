#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python where it is seldom seen: subinterpreters, greenlets, generators in threads, fork without exec, other pid
namespaces, names of all scripts, programs with Python inside, uwsgi, and a process that writes into its own interpreter."""
import re
import signal
import socket
import urllib.request
from collections import Counter

import pythons
from python_oracle import LOOP, is_flagged, is_python, last_part
from support import *

SECONDS = 1 if QUICK else 2
FOLDER = os.path.join(HERE, "python")
SCRIPT = os.path.join(FOLDER, "odd.py")
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

tap = Tap("python_odd")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


class Session:
    """hearth on the whole machine while the block runs; .profile after it."""

    def __init__(self, what, *options):
        self.what, self.options, self.profile = what, options, None

    def __enter__(self):
        self.recorder = start(HEARTH, "record", "-F", 499, "-q", "-o", path("odd.pb.gz"), *self.options, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        return self

    def __exit__(self, kind, *_):
        time.sleep(0.3)
        self.recorder.send_signal(signal.SIGINT)
        said = self.recorder.communicate(timeout=90)[1]
        if tap.ok(self.recorder.returncode == 0 and kind is None, f"{self.what}: hearth record ends well",
                  f"exit {self.recorder.returncode} {said[-300:].strip()}"):
            self.profile = Profile(path("odd.pb.gz"))

    def of(self, process):
        return [s for s in self.profile.of(process) if s.end != "cut:runtime-not-ready"] if self.profile else []

    def work_of(self, process):
        """Without start and end: nothing but native frames and no interpreter's loop, or none of the script's functions."""
        return [s for s in self.of(process) if works(s)]


def names_of(sample):
    return [last_part(n) for n, m in zip(sample.names, sample.modules) if is_python(m)]


def works(sample):
    """A stack in the loop without any Python frame counts as work: it is one that hearth could not show."""
    ours = [last_part(n) for n, p in zip(sample.names, sample.places) if p[0] == SCRIPT or p[0].startswith("<thread-")]
    python = any(is_python(m) for m in sample.modules)
    return any(n != "<module>" for n in ours) if python else any(n.startswith(LOOP) for n in sample.names)


def finish_load(load):
    """From "ready" to "done" of odd.py."""
    fine = load.stdout.readline().strip() == "ready"
    time.sleep(0.1)
    if fine:
        load.stdin.write("\n")
        load.stdin.flush()
        fine = load.stdout.readline().strip() == "done"
    load.kill()
    load.wait()
    return fine


def run_case(python, case, env=ENV, prefix=(), seconds=SECONDS):
    what = f"{python.name}: {case}"
    with Session(what) as session:
        load = start(*prefix, *python.command([HERE, scratch], os.path.join(FOLDER, "odd.py"), case, seconds), env=env, stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        fine = finish_load(load)
    if not fine:
        tap.ok(False, f"{what}: the load runs", load.stderr.read()[-300:])
    return session, load


def verdict(what, samples, wrong, named, least=0.97):
    """@wrong: text -> samples, not flagged; @named: samples that show what they should."""
    few = total(samples) < 100 * SECONDS
    ok = tap.ok(not few and not wrong and named >= least * total(samples), what,
                f"{total(samples)} samples, {100 * named / max(total(samples), 1):.1f} % as expected, "
                f"{total([s for s in samples if is_flagged(s)])} flagged, {sum(wrong.values())} wrong")
    if not ok:
        for text, count in wrong.most_common(4):
            tap.note(f"    wrong {count} times {text[-500:]}")
        ends = Counter()
        for s in samples:
            ends[f"{s.end} {';'.join(names_of(s)) or '(native) ' + ';'.join(s.names[-6:])}"] += s.count
        for text, count in ends.most_common(4):
            tap.note(f"    {count} times {text[-400:]}")
    return ok


def check_subinterpreter(python):
    if python.number < (3,):
        return tap.skip(f"{python.name}: subinterpreter", "no module makes one")
    session, load = run_case(python, "subinterpreter")
    samples, wrong, named = session.of(load), Counter(), 0
    for s in samples:
        names = names_of(s)
        sub = [i for i, n in enumerate(names) if n.startswith("sub_")]
        named += s.count * (bool(sub) and sub[-1] == len(names) - 1)
        if sub and "subinterpreter" in names[sub[0]:]:
            wrong[";".join(names)] += s.count
    verdict(f"{python.name}: a subinterpreter's own stack is shown", samples, wrong, named, 0.6)


def check_greenlets(python):
    folder = path(f"greenlet-{python.version}")
    done = run(python.program, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", folder, "greenlet")
    if done.returncode:
        return tap.skip(f"{python.name}: greenlets", "greenlet cannot be installed: " + done.stderr.strip()[-100:].replace("\n", " "))
    session, load = run_case(python, "greenlets", {**ENV, "PYTHONPATH": folder})
    samples, wrong, named = session.work_of(load), Counter(), 0
    for s in samples:
        own = [n for n in names_of(s) if re.fullmatch(r"(main|deep|spin)_[ab]", n)]
        sides = {n[-1] for n in own}
        named += s.count * bool(own)
        # With the frames of the one that started it, a stack may have both: then in that order.
        if own and own != sorted(own, key=lambda n: n[-1] != own[0][-1]) or own.count("deep_a") > 6 or own.count("deep_b") > 10:
            wrong[";".join(names_of(s))] += s.count
        elif len(sides) == 1 and own[-1].startswith("spin") and own.count("deep_" + own[-1][-1]) != {"a": 6, "b": 10}[own[-1][-1]] and not is_flagged(s):
            wrong["depth: " + ";".join(names_of(s))] += s.count
    return verdict(f"{python.name}: greenlets keep their stacks apart", samples, wrong, named)


def check_threads(python):
    session, load = run_case(python, "threads")
    samples, wrong, named = session.work_of(load), Counter(), 0
    for s in samples:
        own = [n for n in names_of(s) if re.fullmatch(r"(main|doubled|numbers|inner)_\d", n)]
        named += s.count * bool(own)
        if len({n[-1] for n in own}) > 1:
            wrong[";".join(names_of(s))] += s.count
    verdict(f"{python.name}: generators in threads", samples, wrong, named)


def check_forked(python):
    session, load = run_case(python, "forked")
    if not session.profile:
        return
    mine = session.work_of(load)
    others = [s for s in session.profile.samples if s.pid != load.pid and any(p[0] == SCRIPT for p in s.places)]
    wrong, named = Counter(), total([s for s in mine if "parent_leaf" in names_of(s)])
    for s in mine:
        if "child_leaf" in names_of(s):
            wrong["in the parent: " + ";".join(names_of(s))] += s.count
    for s in others:
        names = names_of(s)
        named += s.count * ("child_leaf" in names)
        if "parent_leaf" in names:
            wrong["in a child: " + ";".join(names)] += s.count
    tap.ok(total(others) >= 0.3 * total(mine), f"{python.name}: children without exec are seen", total(others))
    verdict(f"{python.name}: fork without exec", mine + others, wrong, named, 0.9)


NAMES = {"größe": "/tmp/café.py", "名前": "/tmp/ファイル.py", "f\U00020000": "/tmp/\U0001f600.py"}


def check_names(python):
    session, load = run_case(python, "names")
    found = Counter()
    for s in session.of(load):
        for name, module, place in zip(s.names, s.modules, s.places):
            if is_python(module):
                found[last_part(name), place[0]] += s.count
    if python.number < (3,):
        tap.ok(("plain_name", "/tmp/café.py") in found, f"{python.name}: bytes of a file name are UTF-8", sorted(f for _, f in found if f.startswith("/tmp"))[:3])
        return
    missing = [f"{n} {f}" for n, f in NAMES.items() if (n, f) not in found]
    tap.ok(not missing, f"{python.name}: names of all scripts", " ".join(missing) + (f" but {sorted(found)}" if missing else ""))
    long = [n for n, _ in found if n.startswith("nnnn")]
    tap.ok(long and all(set(n.rstrip("…")) <= {"n", "."} for n in long), f"{python.name}: a name of 1,000 letters", [len(n) for n in long])
    tap.ok(("semi", "/tmp/a;b\n\x1b[2J.py") in found, f"{python.name}: a file name with control characters comes as it is",
           [f for n, f in found if n == "semi"])


KNOWN = {"<module>", "corrupted", "once", "held_outer", "held_leaf"}


def check_corrupted(python):
    library = path("hold.so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, os.path.join(FOLDER, "hold.c")], check=True)
    session, load = run_case(python, "corrupted", {**ENV, "HOLD": library}, seconds=3 * SECONDS)
    samples, wrong, whole, short = session.of(load), Counter(), 0, 0
    for s in samples:
        names = names_of(s)
        if names[-1:] != ["held_leaf"] or is_flagged(s):
            continue
        # A chain that was made shorter cannot be told from one that is; a name that nobody gave can.
        if [n for n in names if n not in KNOWN]:
            wrong["name: " + ";".join(names)] += s.count
        elif names[-4:] == ["corrupted", "once", "held_outer", "held_leaf"] and names[0] == "<module>":
            whole += s.count
        else:
            short += s.count
    tap.note(f"    {python.name}: of {total(samples)} samples {whole} are whole, {short} shorter and not flagged")
    verdict(f"{python.name}: a process that writes into its frames", samples, wrong, total(samples))


def check_namespace(python):
    session, load = run_case(python, "burn", prefix=["unshare", "-p", "-f", "--mount-proc"])
    if not session.profile:
        return
    samples = [s for s in session.profile.samples if "burn" in names_of(s)]
    all_of = [s for s in session.profile.samples if s.pid in {t.pid for t in samples} and s.end != "cut:runtime-not-ready"]
    verdict(f"{python.name}: in a pid namespace of its own", all_of, Counter(), total(samples), 0.8)


def config_of(python):
    tool = f"{python.program}-config"
    if not os.access(tool, os.X_OK):
        return None
    embed = ["--embed"] if python.number >= (3, 8) else []
    flags = run(tool, "--includes").stdout.split(), run(tool, "--ldflags", *embed).stdout.split()
    return flags if os.path.exists(os.path.join(flags[0][0][2:], "Python.h")) else None


def check_embedded(python):
    flags = config_of(python)
    if not flags:
        return tap.skip(f"{python.name}: embedded", "no headers")
    program = path(f"embed-{python.version}")
    prefix = os.path.dirname(os.path.dirname(python.program))
    built = run("cc", "-O1", "-fno-optimize-sibling-calls", "-o", program, os.path.join(FOLDER, "embed.c"), *flags[0], *flags[1],
                f"-Wl,-rpath,{prefix}/lib")
    if not tap.ok(built.returncode == 0, f"{python.name}: embed.c builds", built.stderr[-300:]):
        return None
    with Session(f"{python.name}: embedded") as session:
        load = start(program, SECONDS, env={**ENV, "PYTHONHOME": prefix})
        stopped(load)
    samples, wrong, named = session.of(load), Counter(), 0
    for s in samples:
        names = names_of(s)
        fine = names[:2] in (["py_outer"], ["py_outer", "py_leaf"])
        named += s.count * fine
        at = s.names.index("py_outer") if "py_outer" in s.names else -1
        below = [n for n in s.names[:max(at, 0)] if n in ("main", "c_outer", "c_inner")]
        if fine and below != ["main", "c_outer", "c_inner"] and not is_flagged(s):
            wrong[";".join(s.names)] += s.count
    return verdict(f"{python.name}: a program with Python inside", samples, wrong, named, 0.9)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def check_uwsgi():
    plugins = "/usr/lib/uwsgi/plugins"
    plugin = next((f[:-10] for f in sorted(os.listdir(plugins)) if re.fullmatch(r"python3\d*_plugin\.so", f)), None) if os.path.isdir(plugins) else None
    program = shutil.which("uwsgi-core") or shutil.which("uwsgi")
    if not plugin or not program:
        return tap.skip("uwsgi", "uwsgi-core and uwsgi-plugin-python3 are not installed")
    port = free_port()
    with Session("uwsgi") as session:
        server = start(program, "--plugins-dir", plugins, "--plugin", plugin, "--http-socket", f"127.0.0.1:{port}", "--wsgi-file",
                       os.path.join(FOLDER, "wsgi.py"), "--master", "--processes", 2, "--die-on-term", env=ENV)
        end = time.monotonic() + 90
        answers = 0
        while time.monotonic() < end and answers < 10 * SECONDS:
            with contextlib.suppress(OSError):
                answers += urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read() == b"done\n"
                continue
            time.sleep(0.1)
        server.terminate()
        stopped(server)
    tap.ok(answers >= 10 * SECONDS, "uwsgi: answers", answers)
    if not session.profile:
        return None
    samples = [s for s in session.profile.samples if s.labels.get("comm", "").startswith("uwsgi") and "wsgi_work" in names_of(s)]
    wrong = Counter()
    for s in samples:
        if names_of(s)[:2] != ["application", "wsgi_work"] and not is_flagged(s):
            wrong[";".join(names_of(s))] += s.count
    tap.ok(total(samples) >= 0.8 * answers * 0.1 * 499, "uwsgi: its requests have Python frames", total(samples))
    return verdict("uwsgi: stacks of requests", samples, wrong, total(samples))


CASES = {"subinterpreter": check_subinterpreter, "greenlets": check_greenlets, "threads": check_threads, "forked": check_forked,
         "names": check_names, "corrupted": check_corrupted, "namespace": check_namespace, "embedded": check_embedded}
QUICK_CASES = {"3.8": ["corrupted"], "3.12": ["corrupted", "embedded"], "3.13": ["subinterpreter", "forked", "names"]}
FEW_VERSIONS = {"greenlets": ("3.8", "3.11", "3.12", "3.13")}  # a package from the network for each

every = [p for p in pythons.installed() if p.source == "built"] or pythons.installed()
for python in every if only else some_of(every):
    for name, case in CASES.items():
        if only and not {name, python.version} >= set(only) & (set(CASES) | set(pythons.VERSIONS)):
            continue
        if (not QUICK or name in QUICK_CASES.get(python.version, ())) and python.version in FEW_VERSIONS.get(name, (python.version,)):
            case(python)
if "uwsgi" in only or (not QUICK and not only):
    check_uwsgi()
tap.finish()
