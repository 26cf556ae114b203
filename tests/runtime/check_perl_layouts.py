#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table of src/runtime/perl/versions/layouts.c and the numbers of abi/perl.h beside what the headers of installed Perls say: Debian's own,
and those of other suites where their folders are (tests/e2e/perls.py), with threads and without. Prints TAP."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SUITES = os.path.join(os.environ.get("HEARTH_CACHE", os.path.expanduser("~/.cache/hearth")), "suites", "perl")
WITH_THREADS = re.compile(r"^#define\s+(USE_ITHREADS|MULTIPLICITY|PERL_IMPLICIT_CONTEXT|USE_REENTRANT_API|USE_THREAD_SAFE_LOCALE)\b.*$", re.M)
failed = 0


def say(good, what):
    global failed
    failed += not good
    print(("ok " if good else "not ok ") + what, flush=True)


def rows():
    """Version -> name -> number."""
    with open(os.path.join(ROOT, "src/runtime/perl/versions/layouts.c"), encoding="utf-8") as f:
        text = f.read()
    found = {}
    for row in re.findall(r"\{\s*\.first = .*?\}\s*\}", text, re.S):
        numbers = {name: int(value) for name, value in re.findall(r"\.(\w+) = (\d+)", row)}
        for version in range(numbers["first"], numbers["last"] + 1, 2):
            found[version] = numbers
    return found


def constants():
    with open(os.path.join(ROOT, "abi/perl.h"), encoding="utf-8") as f:
        return {name: int(value, 0) for name, value in re.findall(r"^#define ABI_PERL_(\w+) (0x[0-9a-f]+|\d+)U?\b", f.read(), re.M)}


def folders():
    """(version, its CORE folder)"""
    for root in [""] + [os.path.join(SUITES, s) for s in (sorted(os.listdir(SUITES)) if os.path.isdir(SUITES) else [])]:
        base = f"{root}/usr/lib/x86_64-linux-gnu/perl"
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
            if re.fullmatch(r"5\.\d+", name) and os.path.exists(f"{base}/{name}/CORE/perl.h"):
                yield int(name[2:]), f"{base}/{name}/CORE"


def measured(core, threads, scratch):
    folder = os.path.join(scratch, "include")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(core, folder, ignore=lambda _, names: [n for n in names if not n.endswith(".h")])
    if not threads:
        with open(os.path.join(folder, "config.h"), encoding="utf-8") as f:
            text = WITH_THREADS.sub("", f.read())
        with open(os.path.join(folder, "config.h"), "w", encoding="utf-8") as f:
            f.write(text)
    program = os.path.join(scratch, "layout")
    built = subprocess.run(["cc", "-w", "-O2", "-ffunction-sections", "-Wl,--gc-sections", "-D_GNU_SOURCE", f"-I{folder}", "-o", program,
                            os.path.join(HERE, "perl_layout.c")], capture_output=True, text=True)
    if built.returncode:
        return None
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split("\n")
    return [(name, int(number)) for name, number in (line.split() for line in lines if line)]


known, fixed, count = rows(), constants(), 0
with tempfile.TemporaryDirectory() as scratch:
    for version, core in folders():
        for threads in (True, False):
            what = f"5.{version}, {'with' if threads else 'without'} threads"
            numbers = measured(core, threads, scratch)
            if numbers is None:
                print(f"ok {what} # SKIP its headers do not compile so")
                continue
            count += 1
            wrong = [(name, number) for name, number in numbers if (fixed if name.isupper() else known.get(version, {})).get(name) != number]
            say(not wrong, f"{what}: {len(numbers)} numbers{': ' + str(wrong) if wrong else ''}")
if not count:
    print("ok Perl's layouts # SKIP no headers of Perl are installed")
sys.exit(1 if failed else 0)
