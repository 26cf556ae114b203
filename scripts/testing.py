# SPDX-License-Identifier: Apache-2.0
"""Runs steps of make test and make test-extra, counts what they came to, and adds it up in one closing line.

A step is a build, a run of Meson tests (each case counts), a TAP program (its ok lines count), or a plain command (one
result). A step that fails is counted and the next one runs.
"""
import json
import os
import re
import shlex
import subprocess
import time

from parts import ROOT

CMOCKA = re.compile(r"^\[\s+(RUN|OK|FAILED|SKIPPED|ERROR)\s+\] (\S+)$")
FAILURES_SHOWN, FAILURE_CHARACTERS = 20, 400
TAP = re.compile(r"^( *)(not )?ok\b[ \d]*(?:- )?(.*)$")
TOOK = re.compile(r"^# (\S+) took (\d+\.\d) s$")  # a check that ended: tests/e2e/run
SLOWEST_SHOWN = 30


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []  # their lines
        self.checks = []  # (seconds, name) of each that ended

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.checks += other.checks
        return self

    def add_line(self, line):
        """Counts a result line of TAP, or notes how long a check took; any other line is none."""
        found = TOOK.match(line)
        if found:
            self.checks.append((float(found[2]), found[1]))
            return
        found = TAP.match(line)
        if not found or found[1]:
            return
        if found[2]:
            self.failed += 1
            self.failures.append(line.strip())
        elif "# SKIP" in line:
            self.skipped += 1
        else:
            self.passed += 1

    @property
    def results(self):
        return self.passed + self.failed + self.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def say(text):
    print(text, flush=True)


# ---- the cases of a program that Meson ran ----


def cmocka_cases(text):
    """What each case came to, in order; one that began and never ended is lost with its program."""
    cases, reason = {}, ""
    for line in text.splitlines():
        found = CMOCKA.match(line)
        if found and found[1] == "RUN":
            cases[found[2]], reason = None, ""
        elif found and found[2] in cases and cases[found[2]] is None:
            cases[found[2]] = {"OK": "", "SKIPPED": "# SKIP " + reason}.get(found[1], "not ok")
        elif "SKIP: " in line:
            reason = line.split("SKIP: ", 1)[1]
    return cases


def tap_cases(text):
    """(is it well, name) of each case; a group, whose line follows those of its members, stands only for itself when it
    failed and none of them did."""
    cases = []
    for found in filter(None, map(TAP.match, text.splitlines())):
        depth, good, first = len(found[1]), not found[2], len(cases)
        while first and cases[first - 1][0] > depth:
            first -= 1
        members = [(depth, *case[1:]) for case in cases[first:]]
        if not members or (not good and all(case[1] for case in members)):
            members.append((depth, good, found[3]))
        cases[first:] = members
    return [case[1:] for case in cases]


def case_lines(test):
    """TAP lines of an entry of Meson's testlog.json: of each case, or of a program that tells none one for itself."""
    name = test["name"].split(" / ")[-1]
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    result = test["result"]
    cases = cmocka_cases(text)
    if cases:
        out = [(state not in (None, "not ok"), f"{name}: {case} {state or ''}") for case, state in cases.items()]
    else:
        out = [(good, f"{name}: {case}") for good, case in tap_cases(test.get("stdout", ""))]
    if result in ("OK", "EXPECTEDFAIL"):
        out = out or [(True, name)]
    elif result == "SKIP":
        reasons = [line.split("SKIP: ", 1)[1] for line in text.splitlines() if "SKIP: " in line]
        out = [(True, f"{name} # SKIP {reasons[-1] if reasons else 'no reason given'}")]
    elif all(well for well, _ in out):
        out.append((False, f"{name}: the program ended with {result} {test.get('returncode', '')}"))
    return [("ok " if good else "not ok ") + what.strip() for good, what in out]


# ---- steps; each returns its counts ----


def plain(name, command, environment=None):
    say(f"== {name}")
    counts = Counts()
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})})
    line = f"not ok {name}: ended with status {done.returncode}" if done.returncode else "ok"
    counts.add_line(line)
    if done.returncode:
        say(line)
    return counts


def configure(folder, options, environment):
    """Makes a build folder, or gives one that is there these options."""
    made = os.path.exists(os.path.join(ROOT, folder, "build.ninja"))
    command = ["meson", *(["configure"] if made else ["setup"]), folder, *options]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        say(done.stdout[-4000:] + done.stderr[-4000:])
    return done.returncode == 0


def build(name, row):
    """A row of [builds]: folder, options, environment."""
    counts = Counts()
    say(f"== build {name} in {row['folder']}")
    if configure(row["folder"], row["options"], row.get("environment", {})):
        return plain(f"build {name}", ["ninja", "-C", row["folder"], "--quiet"])
    line = f"not ok build {name} is configured"
    say(line)
    counts.add_line(line)
    return counts


def meson(folder, arguments, environment=None):
    what = f"meson test in {folder} {' '.join(arguments)}"
    say(f"== {what}")
    counts = Counts()
    log = os.path.join(ROOT, folder, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", *arguments], cwd=ROOT,
                   env={**os.environ, **(environment or {})})
    try:
        with open(log) as f:
            lines = [line for entry in f for line in case_lines(json.loads(entry))]
    except (OSError, ValueError) as e:
        lines = [f"not ok {what} left no log that can be read: {e}"]
    for line in lines or [f"not ok {what} ran nothing"]:
        counts.add_line(line)
        if line.startswith("not ok") or "# SKIP" in line:
            say(line)
    return counts


def tap(name, command, environment=None):
    """A program that prints TAP; its lines are shown as they come."""
    say(f"== {name}")
    counts = Counts()
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in process.stdout:
        print(line, end="", flush=True)
        counts.add_line(line)
    extra = None
    if process.wait() and not counts.failed:
        extra = f"not ok {name} ended with status {process.returncode}"
    elif not counts.results:
        extra = f"not ok {name} printed no result"
    if extra:
        say(extra)
        counts.add_line(extra)
    return counts


def step_name(row):
    """What a row of a list of steps is called."""
    return row.get("name") or next(row[kind] for kind in ("plain", "meson", "tap") if kind in row)


def step(row, table, form):
    """A row of a list of steps in tests/parts.toml: one of plain, meson and tap with a command line; {form} stands for the
    option of the form (--quick, --sampled, --full). Its environment has the form, too: HEARTH_FORM=quick, sampled or full."""
    environment = {"HEARTH_FORM": form.lstrip("-"), **row.get("environment", {})}
    for kind in ("plain", "meson", "tap"):
        if kind in row:
            words = [form if word == "{form}" else word for word in shlex.split(row[kind])]
            break
    else:
        raise ValueError(f"a step of no known kind: {row}")
    if kind == "meson":
        return meson(table.builds[words[0]]["folder"], words[1:], environment)
    return {"plain": plain, "tap": tap}[kind](row.get("name", row[kind]), words, environment)


class Watch:
    """What took how long."""

    def __init__(self):
        self.rows, self.begin = [], time.monotonic()

    def lap(self, name, counts, why=""):
        now = time.monotonic()
        self.rows.append((name, now - self.begin, counts, why))
        self.begin = now

    def show(self):
        for name, seconds, counts, why in self.rows:
            say(f"# {seconds:7.1f} s  {name}: {counts}" + (f" ({why})" if why else ""))
        slowest = sorted((check for *_, counts, _ in self.rows for check in counts.checks if check[0] >= 1), reverse=True)[:SLOWEST_SHOWN]
        if slowest:
            say("# slowest checks: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in slowest))


def closing_line(counts):
    """What failed once more, for readers of the end alone, and the sums. Return: the exit status."""
    for line in counts.failures[:FAILURES_SHOWN]:
        say(line[:FAILURE_CHARACTERS])
    say(f"\n{counts}")
    return 1 if counts.failed else 0
