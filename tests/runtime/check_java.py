#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads live JVMs by java_tool and compares with what the JDK's own tools, or a second reader, say.

check_java.py JAVA_TOOL: TAP. JVMs are those of /usr/lib/jvm and of HEARTH_JVMS (homes, separated by colons); versions that
are not there are skipped by name.
"""
import glob
import os
import subprocess
import sys
import tempfile

from java_tables import Tables

VERSIONS = (11, 17, 21, 25, 26)
tool = sys.argv[1]
scratch = tempfile.mkdtemp(prefix="hearth-java-")
failed = 0


def say(good, what):
    global failed
    failed += not good
    print(("ok " if good else "not ok ") + f"java: {what}", flush=True)


def skip(what, reason):
    print(f"ok java: {what} # SKIP {reason}", flush=True)


def homes():
    """Feature release -> home of a JVM."""
    found = {}
    for home in sorted(glob.glob("/usr/lib/jvm/*")) + os.environ.get("HEARTH_JVMS", "").split(":"):
        if not os.path.exists(f"{home}/release") or not os.path.exists(f"{home}/bin/java"):
            continue
        with open(f"{home}/release") as f:
            line = next((line for line in f if line.startswith("JAVA_VERSION=")), "")
        found.setdefault(int(line.split('"')[1].split(".")[0]), home)
    return found


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


PROGRAM = """public class Sleep {
    public static void main(String[] a) throws Exception { System.out.println("up"); Thread.sleep(Long.parseLong(a[0])); }
}
"""


def start(home, *options, name="Sleep", arguments=("60000",)):
    p = subprocess.Popen([f"{home}/bin/java", *options, "-cp", scratch, name, *arguments], stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    return p


def main():
    found = homes()
    compiler = next((f"{h}/bin/javac" for v, h in sorted(found.items()) if os.path.exists(f"{h}/bin/javac")), None)
    if not compiler:
        skip("all", "no JDK")
        return
    with open(f"{scratch}/Sleep.java", "w") as f:
        f.write(PROGRAM)
    subprocess.run([compiler, "--release", "11", "-d", scratch, f"{scratch}/Sleep.java"], check=True, stderr=subprocess.DEVNULL)
    for version in VERSIONS:
        if version not in found:
            skip(str(version), "not here")
            continue
        p = start(found[version])
        try:
            check_tables(version, p.pid)
        finally:
            p.kill()
            p.wait()


if __name__ == "__main__":
    try:
        main()
    finally:
        subprocess.run(["rm", "-rf", scratch])
    sys.exit(failed > 0)
