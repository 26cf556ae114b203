#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A Python program's functions in the outputs: name, file, first and executing line, in call order with what is native."""
import json
import re
import subprocess
import sys

import support
from support import Profile, Tap, hearth, path, share, total

PYTHON = "/usr/bin/python3"
SOURCE = """\
import json
import zlib

DATA = bytes(range(256)) * 4000


class Worker:
    def crunch(self, turns):
        for _ in range(turns):
            zlib.compress(DATA, 1)

    def talk(self, turns):
        return [json.loads(json.dumps({"turn": turn})) for turn in range(turns)]


def spin(turns):
    total = 0
    for i in range(turns):
        total += i * i
    return total


def main():
    worker = Worker()
    for _ in range(60):
        spin(150000)
        worker.crunch(6)
        worker.talk(1500)


main()
"""
LINES = {name: 1 + SOURCE.splitlines().index(text) for name, text in {
    "Worker.crunch": "    def crunch(self, turns):", "Worker.talk": "    def talk(self, turns):",
    "spin": "def spin(turns):", "main": "def main():"}.items()}
tap = Tap("python_smoke")
support.need(tap, PYTHON)
program = path("smoke.py")
with open(program, "w", encoding="ascii") as f:
    f.write(SOURCE)
pprof, folded, other = path("smoke.pb.gz"), path("smoke.folded"), path("other.pb.gz")
done = hearth("record", "-F", "499", "-o", pprof, "-o", folded, "--", PYTHON, program)
tap.ok(done.returncode == 0, "records", done.stderr.strip())
profile = Profile(pprof)


def chain(sample):
    """The program's own functions, root first."""
    return [n for n, p in zip(sample.names, sample.places) if p[0] == program]


def having(name):
    return [s for s in profile.samples if name in chain(s)]


python = [s for s in profile.samples if any(m.startswith("[python") for m in s.modules)]
tap.ok(total(python) > 100, "there are Python stacks", total(python))
for name, callers in (("spin", []), ("Worker.crunch", []), ("Worker.talk", [])):
    samples = having(name)
    good = [s for s in samples if chain(s)[:3] == ["<module>", "main", name]]
    tap.ok(samples and share(good, samples) >= 0.99, f"{name} is called by main, and that by the module",
           f"{total(good)} of {total(samples)}")
places = {(n, p) for s in python for n, p in zip(s.names, s.places) if p[0] == program}
first = {n: {p[2] for m, p in places if m == n} for n in LINES}
tap.ok(all(first[n] == {LINES[n]} for n in LINES), "first lines", first)
wanted = {"spin": {1, 2, 3, 4}, "Worker.crunch": {1, 2}, "main": {3, 4, 5}, "Worker.talk": {1}}
executing = {n: {p[1] - LINES[n] for m, p in places if m == n} for n in LINES}
tap.ok(all(executing[n] <= wanted[n] | {0} for n in LINES) and executing["main"] >= {3, 4, 5}, "executing lines", executing)


def behind(sample, name):
    """Modules of the frames that this function called."""
    return sample.modules[len(sample.names) - sample.names[::-1].index(name):]


crunching = having("Worker.crunch")
native = [s for s in crunching if any("zlib" in m or "libz." in m for m in behind(s, "Worker.crunch"))]
tap.ok(share(native, crunching) > 0.9, "native code that Python calls lies behind it", f"{share(native, crunching):.3f}")
interpreter = [s for s in python if any(m.startswith("/usr/bin/python3") for m in s.modules)]
tap.ok(not interpreter, "the interpreter's own frames are folded away", total(interpreter))
library = [s for s in python if any(n == "json.dumps" or n.startswith("json.encoder.") for n in s.names)]
tap.ok(library and all(any(re.fullmatch(r"\[python:standard-library==3\.\d+\.\d+.*\]", m) for m in s.modules)
                       for s in library), "the standard library is told by its version", total(library))
whole = [s for s in python if s.end == "complete"]
tap.ok(share(whole, python) >= 0.98, "stacks are whole", f"{share(whole, python):.4f}")
with open(folded, encoding="utf-8") as f:
    text = f.read()
line = f"spin ({program}:{LINES['spin']})_[p]"
tap.ok(re.search(rf"^python3;.*<module> \({re.escape(program)}:1\)_\[p\];main [^;]*;{re.escape(line)}(;[^;]*)* \d+$",
                 text, re.M), "folded text has files and lines", line)

done = hearth("record", "-F", "499", "--native-interpreter-frames", "-o", other, "--", PYTHON, program)
tap.ok(done.returncode == 0, "records with the interpreter's frames", done.stderr.strip())
profile = Profile(other)
spin = having("spin")
kept = [s for s in spin if chain(s)[:3] == ["<module>", "main", "spin"] and
        any(m.startswith("/usr/bin/python3") for m in s.modules)]
tap.ok(spin and share(kept, spin) >= 0.99, "asked for, they stay, and Python's order is the same",
       f"{total(kept)} of {total(spin)}")
done = hearth("record", "-F", "499", "--no-python", "-o", other, "--", PYTHON, program)
profile = Profile(other)
tap.ok(profile.samples and not having("spin"), "not asked for, Python stays native")

# The stacks of a live process: the frames are called by their runtime, which can be switched off here, too.
sleeper = subprocess.Popen([PYTHON, "-c", "import time\ndef waits():\n    print(1, flush=True)\n    time.sleep(600)\nwaits()"], stdout=subprocess.PIPE)
sleeper.stdout.readline()
shown = json.loads(hearth("dump", "-p", sleeper.pid, "--json").stdout)
named = [f["name"] for t in shown["threads"] for f in t["frames"] if f["kind"] == "python"]
tap.ok(named == ["waits", "<module>"] and re.fullmatch(r"3\.[0-9.]+", shown["python"]), "dump -p shows them", shown)
shown = json.loads(hearth("dump", "-p", sleeper.pid, "--json", "--no-python").stdout)
kinds = {f["kind"] for t in shown["threads"] for f in t["frames"]}
tap.ok("native" in kinds and "python" not in kinds and "python" not in shown and not any("Python" in r for t in shown["threads"] for r in t["remarks"]),
       "dump -p --no-python does not", shown)
sleeper.kill()
sleeper.wait()
tap.finish()
sys.exit(0)
