#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python code objects that live for less than 0.1 ms: thousands a second, at the same addresses, and none is called by
another one's name. python/generated.py says by whom each must have been called."""
import re
import signal

from judge import at_most
from pythons import QUICK_VERSIONS, everything, installed
from python_oracle import PYTHON_ERROR, is_python
from support import *

CALLERS, PADS, TEXT_LINES = 251, 13, 8  # generated.py
WRONG_MOST = 1e-4  # of the frames
SECONDS = 1.5 if QUICK else 5
tap = Tap("python_generated")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def runtime_frames(sample):
    return [(n, p[0], p[1], m) for n, m, p in zip(sample.names, sample.modules, sample.places) if is_python(m) or m == PYTHON_ERROR]


def judged(sample):
    """(frames of generated code, of them named, what is wrong or None)."""
    frames = runtime_frames(sample)
    at = next((i for i, f in enumerate(frames) if re.fullmatch(r"call_\d+", f[0])), None)
    if at is None:
        strays = [f for f in frames if f[1].startswith("<gen-")]
        return len(strays), len(strays), f"without a caller: {strays[0]}" if strays else None
    caller, inner = int(frames[at][0][5:]), frames[at + 1:]
    named = [f for f in inner if is_python(f[3]) and f[1].startswith("<gen-")]
    numbers = {int(f[1][5:-1]) for f in named}
    if len(numbers) > 1 or any(n % CALLERS != caller for n in numbers):
        return len(inner), len(named), f"call_{caller} calls {numbers}"
    for name, file, line, _ in named:
        number = int(file[5:-1])
        own = re.fullmatch(r"(?:gen|sub)_(\d+)", name.rpartition(".")[2])
        if own and int(own[1]) != number:
            return len(inner), len(named), f"{name} in {file}"
        # The first instruction of a module is in line 0 (3.11).
        if not number % PADS < line <= number % PADS + TEXT_LINES and (name.rpartition(".")[2], line) != ("<module>", 0):
            return len(inner), len(named), f"{name} of {file} in line {line}"
    return len(inner), len(named), None


def check(python):
    recorder = start(HEARTH, "record", "-F", 997, "-q", "-o", path("generated.pb.gz"), stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    load = start(*python.command([HERE], os.path.join(HERE, "python", "generated.py"), SECONDS), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    load.stdout.readline()
    load.stdin.write("\n")
    load.stdin.flush()
    made = int(load.stdout.readline().split()[1])
    time.sleep(0.3)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    load.kill()
    load.wait()
    if not tap.ok(recorder.returncode == 0, f"{python.name}: hearth record ends well", said[-300:]):
        return
    frames = named = 0
    wrong, unnamed = {}, {}
    profile = Profile(path("generated.pb.gz"))
    for s in profile.of(load):
        inner, fine, error = judged(s)
        frames, named = frames + inner * s.count, named + fine * s.count
        if error:
            wrong[error] = wrong.get(error, 0) + s.count
        elif fine < inner:
            what = ";".join(f"{f[0]}:{f[1]}:{f[2]}" for f in runtime_frames(s)) + " " + s.end
            unnamed[what] = unnamed.get(what, 0) + s.count
    objects = 3 * made / SECONDS
    tap.ok(objects >= 10000 * 0.5 and frames >= (100 if QUICK else 700), f"{python.name}: code objects come and go", f"{objects:.0f} a second, "
           f"{frames} frames of them in {total(profile.of(load))} samples")
    # The cookie has co_version from 3.12 on. Before, a function can lie where an earlier one lay with all it refers to: 1 of 2,067 frames and 1 of
    # 2,146 were seen with 3.7, none with others (docs/python.md).
    bad = sum(wrong.values())
    fine = tap.ok(not bad or (python.version == "3.7" and at_most(bad, frames, WRONG_MOST)), f"{python.name}: none has another one's name or line", bad)
    fine &= tap.ok(named >= 0.999 * frames, f"{python.name}: they are named", f"{100 * named / max(frames, 1):.2f} %")
    if not fine:
        for what, count in sorted({**wrong, **unnamed}.items(), key=lambda e: -e[1])[:4]:
            tap.note(f"    {count} times {what[-300:]}")


if QUICK:
    pythons = [p for p in installed() if p.version in QUICK_VERSIONS[-1:] and p.source == "built"] or installed()[-1:]
else:
    pythons = everything(tap)
for python in pythons:
    if not only or python.version in only:
        check(python)
tap.finish()
