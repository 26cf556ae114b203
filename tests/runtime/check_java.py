#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads live JVMs by java_tool and compares with what the JDK's own tools, or a second reader, say.

check_java.py JAVA_TOOL: TAP. JVMs are those that jvms.py finds; versions that are not there are skipped by name. HEARTH_FORM=quick (make
test): the oldest and the newest alone; sampled: another one in rotation, too.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

from java_classes import SOURCES, class_files, judge, split, starts
from java_tables import Tables
from jvms import homes

VERSIONS = (8, 11, 17, 21, 25, 26)
tool = sys.argv[1]
scratch = tempfile.mkdtemp(prefix="hearth-java-")
failed = 0


def say(good, what):
    global failed
    failed += not good
    print(("ok " if good else "not ok ") + f"java: {what}", flush=True)


def skip(what, reason):
    print(f"ok java: {what} # SKIP {reason}", flush=True)


def ask(pid, *command, text=""):
    r = subprocess.run([tool, str(pid), *command], input=text, capture_output=True, text=True)
    return r.stdout if r.returncode == 0 else f"failed: {r.stderr}"


def check_tables(version, pid):
    t = Tables(pid)
    lines = [f"F {f[0]}\t{f[1]}" for f in t.fields] + [f"T {name}" for name, _ in t.types] + \
        [f"C {name}" for name, _ in t.ints + t.longs]
    want = [f"{f[2]}|{1 if f[3] else 0}|{f[4]}|{(f[5] - t.bias) % 2 ** 64}" for f in t.fields] + \
        [str(size) for _, size in t.types] + [str(v) for _, v in t.ints + t.longs]
    first = {}
    for line, answer in zip(lines, want):
        first.setdefault(line, answer)  # what is there twice is found once
    got = ask(pid, "tables", text="".join(f"{line}\n" for line in first)).splitlines()
    wrong = [line for line, answer in zip(first, got) if first[line] != answer]
    say(len(got) == len(first) and not wrong, f"{version}: {len(first)} entries of the tables {wrong[:3] or ''}")
    layout = ask(pid, "layout").split()
    say(layout[:2] == ["version", str(version)], f"{version}: layout {' '.join(layout)}")


def start(home, *options, name="Load", arguments=("100",)):
    p = subprocess.Popen([f"{home}/bin/java", *options, "-cp", scratch, name, *arguments], stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    return p


def codes_of(pid):
    """What java_tool says of compiled methods: (compile id, level, name, file, first line), and its chains of frames, leaf
    first, as (name, file, index, line)."""
    codes, chains = [], []
    for line in ask(pid, "codes").splitlines():
        part = line.split("\t")
        if part[0].startswith("N "):
            name, file, first = part[1].rsplit("|", 2)
            codes.append((int(part[0].split()[2]), int(part[0].split()[3]), name, file, int(first)))
        elif part[0] == "P":
            chains.append((codes[-1], [(f[0], f[1], int(f[2]), int(f[3])) for f in (p.rsplit("|", 3) for p in part[1:])]))
        else:
            codes.append((0, 0, line, "", 0))
    return codes, chains


def jcmd_codes(pid):
    jcmd = next(iter(glob.glob("/usr/lib/jvm/*/bin/jcmd")), None)
    if not jcmd:
        return None
    text = subprocess.run([jcmd, str(pid), "Compiler.codelist"], capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines()[1:]:
        part = line.split()
        if len(part) > 3:
            found[int(part[0])] = (int(part[1]), part[3])
    return found or None  # 8 has no such command


def readable(name):
    head, bracket, rest = name.partition("(")
    return head.replace("/", ".") + bracket + rest


def masked(name):
    """As jcmd writes hidden classes: with an address that is left out here."""
    return "0x" in name or "Lambda" in name or "Accessor" in name


def check_codes(version, home, pid):
    codes, chains = codes_of(pid)
    listed = jcmd_codes(pid)
    if listed is None:
        skip(f"{version}: codelist", "jcmd has none")
    else:
        common = [c for c in codes if c[0] in listed and not masked(listed[c[0]][1])]
        wrong = [(c, listed[c[0]]) for c in common if (c[1], readable(c[2])) != listed[c[0]]]
        say(len(common) > 150 and len(common) > 0.7 * len(listed) and not wrong,
            f"{version}: {len(common)} of {len(codes)} compiled methods are called as jcmd calls them {wrong[:2] or ''}")
    classes = class_files(home, scratch, {split(f[0])[0] for _, chain in chains for f in chain} | {split(c[2])[0] for c in codes})
    judge_lines(version, codes, chains, classes)
    judge_pairs(version, chains, classes)


def judge_lines(version, codes, chains, classes):
    wrong, count = [], 0
    for name, file, first in {(c[2], c[3], c[4]) for c in codes}:
        owner, method, descriptor = split(name)
        m = classes[owner].methods.get((method, descriptor)) if owner in classes else None
        if m:
            count += 1
            if (file, first) != (classes[owner].source, m.first_line()):
                wrong.append((name, file, first, classes[owner].source, m.first_line()))
    for f in {f for _, chain in chains for f in chain}:
        owner, method, descriptor = split(f[0])
        m = classes[owner].methods.get((method, descriptor)) if owner in classes else None
        if not m:
            continue
        count += 1
        if f[2] >= 0 and (f[2] not in starts(m.code) or f[3] != m.line(f[2]) or f[1] != classes[owner].source):
            wrong.append((f, m.line(f[2])))
    say(count > 700 and not wrong, f"{version}: {count} places have the line of their class file {wrong[:3] or ''}")


def judge_pairs(version, chains, classes):
    """Frames that were inlined: each is called by the bytecode of the next."""
    pairs = {(caller[0], caller[2], callee[0]) for _, chain in chains for callee, caller in zip(chain, chain[1:])}
    verdicts = {}
    for pair in pairs:
        verdicts.setdefault(judge(*pair, classes), []).append(pair)
    counts = {v: len(p) for v, p in verdicts.items()}
    outer = [c for c, chain in chains if chain[-1][0] != c[2]]
    say(counts.get("legal", 0) > 150 and not verdicts.get("illegal") and not outer,
        f"{version}: inlined pairs {counts} {verdicts.get('illegal', [])[:3] or ''} {outer[:2] or ''}")


def check_perf(version, pid):
    names = ("java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses", "sun.os.hrt.frequency", "no.such")
    jcmd = next(iter(glob.glob("/usr/lib/jvm/*/bin/jcmd")), None)
    text = subprocess.run([jcmd, str(pid), "PerfCounter.print"], capture_output=True, text=True).stdout if jcmd else ""
    want = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    got = ask(pid, "perf", text="".join(f"{n}\n" for n in names)).splitlines()
    say(got == [want.get(n, "none") for n in names], f"{version}: performance counters {got}")


FLAG = re.compile(r"\s*(\w+)\s+(\w+)\s+:?=\s*(.*?)\s*((?:\{[^}]*\}\s*)+)$")


def check_metadata(version, pid):
    """Flags as jcmd has them, but texts and those that can be set from outside; and those that are locked, which jcmd of 26 has, too."""
    jcmd = next(iter(glob.glob("/usr/lib/jvm/*/bin/jcmd")), None)
    if not jcmd:
        skip(f"{version}: flags", "no jcmd")
        return
    want = []
    for line in subprocess.run([jcmd, str(pid), "VM.flags", "-all"], capture_output=True, text=True).stdout.splitlines():
        m = FLAG.match(line)
        if not m or m[1].startswith("ccstr"):
            continue
        kinds, origin = (re.findall(r"\{([^}]*)\}", m[4]) + [None])[:2]  # 8 has none
        if "manageable" not in kinds:
            want.append({"name": m[2], "type": m[1], "value": m[3], "origin": origin, "kind": sorted(kinds.split())})
    want = [f for f in want if not {"diagnostic", "experimental"} & set(f["kind"])]
    got = json.loads(ask(pid, "metadata", "all"))
    origins = {f["name"]: f["origin"] for f in got["jvm_flags"]}
    for f in want:
        f["origin"] = f["origin"] or origins.get(f["name"])
    say(len(want) > 300 and got["jvm_flags"] == sorted(want, key=lambda f: f["name"]),
        f"{version}: {len(want)} flags are as jcmd has them")
    got = json.loads(ask(pid, "metadata", "default"))
    want = [f for f in want if f["origin"] != "default" and "pd" not in f["kind"]]
    say(got["jvm_flags"] == sorted(want, key=lambda f: f["name"]) and want and "VM (" in got["java_version"] and
        got["libjvm_elfid"].startswith(("buildid:", "sha1:")) and got["arch"] == "x86_64",
        f"{version}: metadata {got['java_version'][:60]}, {got['libjvm_elfid']}, {[f['name'] for f in got['jvm_flags']]}")


def some_of(versions):
    """What this form takes of versions, the oldest first."""
    form, between = os.environ.get("HEARTH_FORM"), versions[1:-1]
    if form not in ("quick", "sampled") or not between:
        return versions
    turn = int(os.environ.get("HEARTH_ROTATION", "0")) % len(between)
    return [versions[0], *(between[turn:turn + 1] if form == "sampled" else []), versions[-1]]


THREADS = ["short", "a name of more than fifteen bytes", "caf\u00e9, in Latin-1, and longer", "\u65e5\u672c\u8a9e \U0001f600 in UTF-16"]


def check_threads(version, home):
    """Names of threads, whatever references and headers of objects look like."""
    ways = [[], ["-XX:-UseCompressedOops"], ["-Xmx6g"]]
    if version in (17, 21):
        ways.append(["-XX:+UseZGC", "-Xmx64m"])
    if version >= 25:
        ways.append(["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"])
    if os.environ.get("HEARTH_FORM") in ("quick", "sampled"):
        ways = ways[-1:]
    for options in ways:
        p = start(home, *options, name="Names", arguments=())
        try:
            names = [line.partition(" ")[2] for line in ask(p.pid, "threads").splitlines()]
            tids = {line.partition(" ")[0] for line in ask(p.pid, "threads").splitlines()}
            lost = [n for n in THREADS + ["main", "Finalizer"] if names.count(n) != 1]
            say(not lost and tids <= set(os.listdir(f"/proc/{p.pid}/task")), f"{version} {' '.join(options)}: {len(names)} names of threads {lost or ''}")
        finally:
            p.kill()
            p.wait()


def check_agents(version, home):
    """An agent that may retransform classes and not redefine them changes methods all the same, and the JVM says so as it does of the other kind.
    From 25 on it says so without an agent, too."""
    jar = f"{scratch}/retransform.jar"
    with zipfile.ZipFile(jar, "w") as z:
        z.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: Retransform\nCan-Retransform-Classes: true\n")
        z.write(f"{scratch}/Retransform.class", "Retransform.class")
    for options, name, want in ([], "Names", "0"), ([f"-javaagent:{jar}"], "Retransform", "1"):
        p = start(home, *options, name=name)
        try:
            if options and p.poll() is not None:
                skip(f"{version}: an agent that retransforms", "this JVM has no module for it")
                continue
            said = ask(p.pid, "redefines").strip()
            say(said == want or version >= 25 and said == "1", f"{version}: {name}: classes may be redefined: {said}")
        finally:
            p.kill()
            p.wait()


def main():
    found = homes()
    compiler = next((f"{h}/bin/javac" for v, h in sorted(found.items()) if os.path.exists(f"{h}/bin/javac")), None)
    if not compiler:
        skip("all", "no JDK")
        return
    # For 8, with the modules that Classes does not look at there.
    subprocess.run([compiler, "-source", "8", "-target", "8", "-g", "-d", scratch, *glob.glob(f"{SOURCES}/*.java")], check=True, stderr=subprocess.DEVNULL)
    for version in sorted(set(VERSIONS) - set(found)):
        skip(str(version), "not here")
    for version in some_of([v for v in VERSIONS if v in found]):
        p = start(found[version], arguments=("6000",))
        try:
            check_tables(version, p.pid)
            check_codes(version, found[version], p.pid)
            check_perf(version, p.pid)
            check_metadata(version, p.pid)
        finally:
            p.kill()
            p.wait()
        check_threads(version, found[version])
        check_agents(version, found[version])


if __name__ == "__main__":
    try:
        main()
    finally:
        subprocess.run(["rm", "-rf", scratch])
    sys.exit(failed > 0)
