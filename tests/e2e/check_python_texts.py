#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What Python frames are called in files: a program with an installed package, in every style, from a live process.

With PY_SPY naming a py-spy its own words are compared, too: from 3.11 on newer ones write qualified names, gProfiler's
does not; their last part is compared then.
"""
import json
import re

from pythons import asked, everything
from support import *

VERSIONS = ["3.8", "3.12"]
SECONDS = 2
APP = """import json, sys, time
import fake.mod
class Worker(object):
    def run(self, end):
        while time.time() < end:
            fake.mod.Thing().spin(1000)
            self.dump()
    def dump(self):
        return [json.dumps({"a": i}) for i in range(50)]
if __name__ == "__main__":
    Worker().run(time.time() + float(sys.argv[1]))
"""
MOD = """class Thing(object):
    def spin(self, n):
        return max(map(lambda i: i * i, range(n)))
"""

tap = Tap("python_texts")
need(tap)
folder = path("it's a (folder) [1]")
SITE = f"{folder}/site-packages"
os.makedirs(f"{SITE}/fake")
os.makedirs(f"{SITE}/fake-1.2.dist-info")
for name, text in {f"{folder}/app.py": APP, f"{SITE}/fake/__init__.py": "", f"{SITE}/fake/mod.py": MOD,
                   f"{SITE}/fake-1.2.dist-info/METADATA": "Name: Fake\nVersion: 1.2\n",
                   f"{SITE}/fake-1.2.dist-info/RECORD": "fake/__init__.py,,\nfake/mod.py,,\n"}.items():
    with open(name, "w") as f:
        f.write(text)


def frames(text):
    """The Python frames of a .col or folded file."""
    lines = text.split("\n")[1:] if text.startswith("# {") else text.split("\n")
    return {f for line in lines for f in line.rpartition(" ")[0].split(";") if f.endswith("_[p]")}


def expected(python, style, line, versions=True):
    """What must be there: of each function its names, and where it is."""
    file = asked_in(python, "import json; print(json.__file__.replace('.pyc', '.py'))")
    first = asked_in(python, "import json; print(json.dumps.__code__.co_firstlineno)")
    full = asked_in(python, "import sys; print('%d.%d.%d' % sys.version_info[:3])")
    qualified = python.number >= (3, 11) and style == "package"
    package = "fake.mod." if style == "package" else ""
    library = "json." if style == "package" else ""
    of_fake, of_library = (" [Fake==1.2]", f" [standard-library=={full}]") if versions else ("", "")
    run = {"first": [4], "executing": [6, 7]}[line]
    out = [{f"{'Worker.' * qualified}run ({folder}/app.py:{n})_[p]" for n in run},
           {f"{package}{'Thing.' * qualified}spin ({SITE}/fake/mod.py:{2 if line == 'first' else 3}{of_fake})_[p]"},
           {f"<module> ({folder}/app.py:{1 if line == 'first' else 11})_[p]"}]
    if line == "first":
        out.append({f"{library}dumps ({file}:{first}{of_library})_[p]"})
    return out


def asked_in(python, code):
    if not python.root:
        return asked(python.program, code)
    return run(*python.command([], "-c", code)).stdout.strip()


def convert(source, *args):
    return hearth("convert", source, "-o", "-", *args).stdout


def check_styles(python, source):
    for style, line, versions, form in (("package", "first", True, "col"), ("pyspy", "first", True, "col"),
                                        ("pyspy", "executing", False, "folded"), ("package", "first", False, "folded")):
        text = convert(source, "--format", form, "--python-style", style, "--python-lines", line,
                       *(["--no-python-versions"] if not versions else []))
        have = frames(text)
        missing = [sorted(e) for e in expected(python, style, line, versions) if not e & have]
        if not tap.ok(not missing, f"{python.name}: {form}, {style}, {line} lines" + ", no versions" * (not versions),
                      f"missing: {missing}" if missing else f"{len(have)} frames"):
            tap.note("\n".join(sorted(have)[:20]))
        tap.ok(bool(re.search(r"_\[pn\](;|$| )", text)) == (form == "col" and style == "package"),
               f"{python.name}: native frames beside Python's are marked in .col of the package style only")


def check_col(python, text):
    header = json.loads(text.partition("\n")[0][2:])
    lines = [line.split(";") for line in text.split("\n")[1:]]
    wanted = f"appid: python: {folder}/app.py ({folder}/app.py)"
    tap.ok(lines and all(line[3].rpartition(" ")[0] == wanted or line[3] == wanted for line in lines),
           f"{python.name}: application id", lines[0][:4])
    data = header["application_metadata"][int(lines[0][0])] or {}
    full = asked_in(python, "import sys; print('%d.%d.%d' % sys.version_info[:3])")
    tap.ok(data.get("python_version") == f"Python {full}" and not any(str(v).startswith("error") for v in data.values()),
           f"{python.name}: metadata", data)


def check_pyspy(python, process):
    words = path("pyspy.raw")
    done = run(os.environ["PY_SPY"], "record", "-r", "50", "-d", str(SECONDS), "--nonblocking", "--format", "raw", "-F",
               "--output", words, "-p", str(process.pid), "--full-filenames", "--gil")
    if done.returncode:
        tap.skip(f"{python.name}: py-spy's words", done.stderr.strip()[-100:])
        return
    col = path("beside.col")
    record(tap, SECONDS, "-p", str(process.pid), "--python-mode", "pyspy", "--no-python-versions", "-F", "50", "-o", col)
    with open(words) as f:
        theirs = {frame for line in f for frame in line.rstrip("\n").rpartition(" ")[0].split(";")}
    if python.number >= (3, 11):
        theirs = {re.sub(r"^.*?([^.]+ \()", r"\1", frame) for frame in theirs}
    with open(col) as f:
        ours = {frame.removesuffix("_[p]") for frame in frames(f.read())}
    common = ours & theirs
    tap.ok(len(common) >= 4 and not {f for f in ours - theirs if "(<" not in f and "/json/" not in f},
           f"{python.name}: py-spy says the same", f"{len(common)} in common, only here: {sorted(ours - theirs)[:5]}")


def check_waits(python, process):
    """Two samplers whose windows are merged, in a session that says what threads wait for, too."""
    file = path("waits.pb.gz")
    done = record(tap, SECONDS, "-p", str(process.pid), "--python-mode", "pyspy", "-F", "50", "--off-cpu", "-o", file)
    profile = Profile(file) if os.path.exists(file) else None
    counted = sum("fake/mod.py" in str(s.places) for s in profile.samples) if profile else 0
    tap.ok(counted > 0 and "lost     0 samples" in done.stderr + done.stdout, f"{python.name}: py-spy's way with waits beside",
           f"{counted} stacks with Python frames")


def check(python):
    source = path("out.hwin")
    col = path("out.col")
    env = dict(os.environ, PYTHONPATH=SITE, PYTHONDONTWRITEBYTECODE="1")
    process = start(*python.command([folder], f"{folder}/app.py", 4 * SECONDS + 20), env=env)
    time.sleep(0.5)
    record(tap, SECONDS, "-p", str(process.pid), "-o", source, "-o", col)
    check_styles(python, source)
    with open(col) as f:
        check_col(python, f.read())
    if "PY_SPY" in os.environ and not python.root:
        check_pyspy(python, process)
    if python.number[:2] == (3, 12):
        check_waits(python, process)
    process.kill()
    process.wait()


for python in everything(tap, VERSIONS if QUICK else None):
    check(python)
tap.finish()
