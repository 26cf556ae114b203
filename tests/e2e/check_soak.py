#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small uploads by the hundred thousand keep the collector's memory flat: 50,000; another number with --uploads=N.

20 services, 10 different bodies each, 16 connections. What counts is anonymous memory (RssAnon): the largest of the last
tenth of the run against the largest of the second twentieth (the first fills caches and arenas). Ctrl-C ends the run and
judges what was measured.
"""
import os
import subprocess
import sys
import time

from collector import Collector
from support import HERE, QUICK, Tap, path, start, status_kib

SHARE = 10  # percent that the end may lie above the beginning
FLOOR_MIB = 2  # differences below are pages of the allocator
BOUND_MIB = 200
uploads = int(next((a.split("=")[1] for a in sys.argv if a.startswith("--uploads=")), 5000 if QUICK else 50000))
tap = Tap("soak")
folder = os.environ.get("SOAK_BUILD", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))


class Watch:
    """(uploads stored, anonymous MiB) again and again, with a line of progress."""

    def __init__(self, c):
        self.c, self.notes, self.begin, self.shown = c, [], time.monotonic(), 0.0

    def look(self):
        stored = int(self.c.metric("hearth_store_puts_total") or 0)
        self.notes.append((stored, status_kib(self.c.process.pid, "RssAnon") / 1024))
        now = time.monotonic()
        if now - self.shown >= (1 if sys.stderr.isatty() else 20):
            self.shown = now
            print(f"# {self.line()}", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)

    def line(self):
        stored, mib = self.notes[-1]
        return f"{stored:,} of {uploads:,} uploads, {stored / (time.monotonic() - self.begin):.0f}/s, anonymous memory {mib:.1f} MiB"

    def most(self, first, last):
        """The largest between two shares of what was stored in the end."""
        end = self.notes[-1][0]
        return max((m for n, m in self.notes if first * end <= n <= last * end), default=0.0)


def client(c):
    built = subprocess.run(["ninja", "-C", folder, "tests/bench/bench_http"], capture_output=True, text=True)
    if built.returncode:
        tap.ok(False, "the client builds", built.stdout[-1000:])
        tap.finish()
    return start(os.path.join(folder, "tests/bench/bench_http"), c.port, 20, 16, 0, 86400, 1, "soak", "--count", uploads, "--bodies", 10, "--stacks", 200, "--share",
                 10, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, text=True)


def send(c):
    sender = client(c)
    sender.stdout.readline()
    watch, stopped = Watch(c), False
    sender.stdin.write("\n")
    sender.stdin.close()
    try:
        while sender.poll() is None:
            watch.look()
            time.sleep(max(0.1, uploads / 500000))
    except KeyboardInterrupt:
        stopped = True
        sender.kill()
        sender.wait()
    watch.look()
    said = sender.stdout.read().split()
    return watch, stopped, dict(zip(said[::2], said[1::2]))


def main():
    with Collector("--no-access-log", "--retention-free", "0", folder=path("soak")) as c:
        watch, stopped, said = send(c)
        tap.note(watch.line())
        if said:
            tap.note("the client: " + ", ".join(f"{k} {v}" for k, v in said.items()))
        if not stopped:
            tap.ok(said.get("done") == str(uploads) and said.get("failed") == "0", f"{uploads:,} small uploads are acknowledged", said)
        early, late, most = watch.most(0.05, 0.1), watch.most(0.9, 1), watch.most(0, 1)
        allowed = early * (1 + SHARE / 100) + FLOOR_MIB
        tap.ok(0 < late <= allowed, f"{watch.notes[-1][0]:,} small uploads keep memory flat",
               f"anonymous memory {early:.1f} MiB after a twentieth, {late:.1f} at the end, at most {allowed:.1f} allowed")
        tap.ok(most <= BOUND_MIB, "and within its bound", f"at most {most:.1f} MiB of {BOUND_MIB}")
        answer = c.get("/api/0/profiles/merge?service=soak-0&type=cpu&from=-7d&to=now")
        merged = int(answer.headers.get("X-Profiles-Merged", 0))
        tap.ok(merged >= watch.notes[-1][0] // 20 - 16, "all of a service's are merged", f"{answer.status}, {merged}")
        tap.ok(c.stop() == 0, "it ends well")
    tap.finish()


main()
