#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attaches to live interpreters and compares the stack that is read with the one that the program must have.

check_attach.py ATTACH_TOOL [--extra]: one TAP line per interpreter. Those of ~/.pyenv/versions (HEARTH_PYTHONS names another
folder) and of the system; with --extra also those of other Debian suites, which debootstrap fetches into
~/.cache/hearth/suites/roots, programs linked statically and stripped, and uwsgi. What is not there is skipped by name.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = os.environ.get("HEARTH_PYTHONS", os.path.expanduser("~/.pyenv/versions"))
ROOTS = os.path.join(os.environ.get("HEARTH_CACHE", os.path.expanduser("~/.cache/hearth")), "suites", "roots")
SUITES = (("bullseye", "3.9"), ("trixie", "3.13"), ("sid", "3.14"))
MIRROR = "http://deb.debian.org/debian"
PROGRAM = """class A(object):
    def __init__(self, n):
        self.m(n)
    def m(self, n):
        if n:
            return self.m(n - 1)
        while True:
            pass
def main():
    A(2)
main()
"""
# Function and line; the class is told from 3.11 on.
STACK = (("m", (7, 8)), ("m", (6,)), ("m", (6,)), ("__init__", (3,)), ("main", (10,)), ("<module>", (11,)))
MAIN = {
    2: "#include <Python.h>\nint main(int c, char **v) { return Py_Main(c, v); }\n",
    3: """#include <Python.h>
int main(int c, char **v)
{
	wchar_t **w = calloc((size_t)c + 1, sizeof(*w));
	for (int i = 0; i < c; i++)
		w[i] = Py_DecodeLocale(v[i], 0);
	return Py_Main(c, w);
}
""",
}
tool, extra = sys.argv[1], "--extra" in sys.argv
scratch = tempfile.mkdtemp(prefix="hearth-attach-")
failed = 0


def say(good, what):
    global failed
    failed += not good
    print(("ok " if good else "not ok ") + f"attach: {what}", flush=True)


def skip(what, reason):
    print(f"ok attach: {what} # SKIP {reason}", flush=True)


def read_stacks(pid):
    out = subprocess.run([tool, "--stacks", str(pid)], capture_output=True, text=True, timeout=60, check=False).stdout
    frames = re.findall(r"^    (\S+) \(.*:(-?\d+)\)", out, re.M)
    return out, [(f.rsplit(".", 1)[-1], int(line)) for f, line in frames]


def is_right(frames):
    return len(frames) == len(STACK) and all(f[0] == s[0] and f[1] in s[1] for f, s in zip(frames, STACK))


def check(name, command, **options):
    """It may take a while to come to its main loop; the stack it then has is the only one that counts."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    out, frames = "", []
    try:
        for _ in range(60):
            time.sleep(0.25)
            out, frames = read_stacks(child.pid)
            if is_right(frames):
                break
    finally:
        child.kill()
        child.wait()
    good = is_right(frames)
    version = re.search(r"version (\S+)", out)
    loops = re.findall(r" loop \S+\+(\d+)", out)
    say(good and loops, f"{name}: {version[1] if version else '?'}, loop of {' and '.join(loops)} bytes"
        + ("" if good else f", wrong stack {frames}"))


def debian(suite, version):
    root = os.path.join(ROOTS, suite)
    if not os.path.isdir(root) and shutil.which("debootstrap") and os.geteuid() == 0:
        partial = f"{root}.{os.getpid()}"
        os.makedirs(ROOTS, exist_ok=True)
        done = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3", suite, partial, MIRROR],
                              capture_output=True, check=False)
        if done.returncode == 0:
            os.rename(partial, root)
    if not os.path.exists(os.path.join(root, "usr", "bin", "python3")):
        skip(f"Debian {suite} ({version})", "debootstrap has not fetched it")
        return
    shutil.copy(program, os.path.join(root, "tmp", "hearth-attach.py"))
    check(f"Debian {suite}", ["chroot", root, "python3", "/tmp/hearth-attach.py"])


def static(folder):
    """The same interpreter, linked from its static library without its names."""
    name = os.path.basename(folder)
    major, minor = name.split(".")[:2]
    libraries = glob.glob(os.path.join(folder, "lib", "python*", "config*", "libpython*.a"))
    headers = glob.glob(os.path.join(folder, "include", "python*"))
    if not libraries or not headers or not shutil.which("cc"):
        skip(f"{name}, static", "no static library or no compiler")
        return
    source, built = os.path.join(scratch, "main.c"), os.path.join(scratch, "embedded")
    with open(source, "w", encoding="utf-8") as f:
        f.write(MAIN[int(major)])
    done = subprocess.run(["cc", "-O1", "-w", "-I", headers[0], source, "-o", built, libraries[0], "-lpthread", "-ldl",
                           "-lm", "-lutil", "-s"], capture_output=True, text=True, check=False)
    if done.returncode:
        skip(f"{name}, static", "cannot be linked")
        return
    library = os.path.join(folder, "lib", f"python{major}.{minor}")
    check(f"{name}, static and stripped", [built, "-S", program], env={"PYTHONPATH": library})


def uwsgi():
    server = shutil.which("uwsgi_python3")
    if not server:
        skip("uwsgi", "needs uwsgi-plugin-python3")
        return
    check("uwsgi", [server, "--socket", os.path.join(scratch, "socket"), "--pyrun", program])


program = os.path.join(scratch, "program.py")
with open(program, "w", encoding="utf-8") as out_file:
    out_file.write(PROGRAM)
interpreters = sorted(glob.glob(os.path.join(FOLDER, "[23].*")))
try:
    for path in [] if extra else interpreters:
        check(os.path.basename(path), [os.path.join(path, "bin", "python"), program])
    if not interpreters:
        skip("other versions", f"no interpreters in {FOLDER}")
    if extra:
        for path in interpreters:
            static(path)
        for debian_suite in SUITES:
            debian(*debian_suite)
        uwsgi()
    elif os.path.exists("/usr/bin/python3"):
        check("/usr/bin/python3", ["/usr/bin/python3", program])
finally:
    shutil.rmtree(scratch)
sys.exit(failed > 0)
