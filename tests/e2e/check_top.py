#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth top in tmux: a known function's share, sorting, filter, callers, and the terminal as it was before."""
import os
import re
import shutil
import signal
import subprocess
import time

from support import CPUS, HEARTH, QUICK, Tap, busy_seconds, cpu_seconds, hearth, need, path, run, start, workload

tap = Tap("top")
need(tap, "tmux")
OVER = 5 if QUICK else 10
ROW = re.compile(r" *([0-9.]+)% +([0-9.]+)% (.*)")


class Tmux:
    def __init__(self, columns=80, rows=24):
        self.socket = path("tmux")
        self.do("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "env PS1='ready$ ' sh")
        self.wait(lambda lines: any("ready$" in line for line in lines))

    def do(self, *args):
        return run("tmux", "-S", self.socket, *args, timeout=30)

    def send(self, *keys):
        self.do("send-keys", *keys)

    def lines(self):
        return self.do("capture-pane", "-p").stdout.split("\n")

    def wait(self, test, seconds=20):
        end = time.monotonic() + seconds
        while True:
            lines = self.lines()
            if test(lines) or time.monotonic() > end:
                return lines
            time.sleep(0.2)

    def shell(self, command):
        """What a command of the pane's shell says."""
        out = path("said")
        self.send(f"{command} > {out} 2>&1; echo done >> {out}", "Enter")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if os.path.exists(out) and open(out).read().endswith("done\n"):
                break
            time.sleep(0.1)
        text = open(out).read()
        os.unlink(out)
        return text[:-5]


def rows(lines):
    return [ROW.match(line) for line in lines if ROW.match(line)]


tmux = Tmux()
# A name of its own: programs of one name are one row.
name = f"hot{os.getpid()}"
shutil.copy(workload("spin"), path(name))
spin = start("nice", "-n", "-10", path(name), "160")  # hot, whatever else runs
before = tmux.shell("stty -a")
tmux.send(f"{HEARTH} top --over {OVER}s; echo status $?", "Enter")
tmux.wait(lambda lines: any(f"last {OVER} s" in line for line in lines), 60)

# The range is of whole windows that end a moment before they are drawn: the figures of the kernel are taken over the same stretch of time.
shares, wanted = [], []
for _ in range(2 if QUICK else 4):
    of_spin, of_all = cpu_seconds(spin.pid), busy_seconds()
    time.sleep(OVER)
    of_spin, of_all = cpu_seconds(spin.pid) - of_spin, busy_seconds() - of_all
    time.sleep(0.5)
    hot = [r for r in rows(tmux.lines()) if "spin_work" in r[3] and f"{name} {spin.pid}" in r[3]]
    shares.append(float(hot[0][1]) if hot else -1)
    wanted.append(100 * of_spin / of_all)
off = sum(abs(a - b) for a, b in zip(shares, wanted)) / len(shares)
tap.ok(min(shares) > 0 and off <= 3, f"the hot function's share over {OVER} s is within 3 points of the kernel's account",
       " ".join(f"{a:.1f}/{b:.1f}" for a, b in zip(shares, wanted)))
lines = tmux.lines()
tap.ok(all(len(line) <= 80 for line in lines) and len(lines) <= 25 and "SELFv" in lines[2] and lines[23].startswith("q: quit"),
       "80 columns and 24 lines are enough", lines[0])


def sorts(key, title, column, descending):
    tmux.send(key)
    seen = tmux.wait(lambda lines: title in lines[2], 5)
    values = [float(r[column]) if column < 3 else r[3].split()[0] for r in rows(seen)]
    return len(values) > 5 and title in seen[2] and values == sorted(values, reverse=descending)


tap.ok(sorts("t", "TOTALv", 2, True), "t sorts by total")
tap.ok(sorts("t", "TOTAL^", 2, False), "once more: the other way round")
tap.ok(sorts("s", "SELFv", 1, True), "s sorts by self")
tap.ok(sorts("p", "PROCESSv", 3, False), "p sorts by process")
tmux.send("s", "/", "spin_work", "Enter")
seen = tmux.wait(lambda lines: len(rows(lines)) and all("spin_work" in r[3] for r in rows(lines)), 5)
tap.ok(rows(seen) and all("spin_work" in r[3] for r in rows(seen)) and "filter: spin_work" in seen[1], "a filter leaves only what has its text", seen[1])
# Another check's program may have a function of this name.
at = next((i for i, r in enumerate(rows(seen)) if f"{name} {spin.pid}" in r[3]), None)
for _ in range(at or 0):
    tmux.send("Down")
tmux.send("Enter")
seen = tmux.wait(lambda lines: "callers of spin_work" in lines[1] and any("< main" in line for line in lines), 5)
shown = rows(seen)
tap.ok(at is not None and "callers of spin_work" in seen[1] and len(shown) > 2 and "< main" in shown[1][3] and float(shown[1][1]) > 95,
       "Enter shows the callers", [r[0] for r in shown[:4]])
tmux.send("Escape")
tmux.wait(lambda lines: "SELFv" in lines[2], 5)
tmux.send("Escape")
seen = tmux.wait(lambda lines: len(rows(lines)) > 5, 5)
tap.ok(len(rows(seen)) > 5 and not seen[1].strip(), "Esc goes back, and takes the filter away")
tmux.do("resize-window", "-x", "60", "-y", "15")
seen = tmux.wait(lambda lines: lines[14].startswith("q: quit"), 5)
tap.ok(seen[14].startswith("q: quit") and all(len(line) <= 60 for line in seen), "it follows the terminal's size", seen[14])
tmux.do("resize-window", "-x", "80", "-y", "24")
tmux.wait(lambda lines: lines[23].startswith("q: quit"), 5)

tmux.send("C-z")
seen = tmux.wait(lambda lines: any("topped" in line for line in lines), 5)
tap.ok(any("topped" in line for line in seen) and tmux.shell("stty -a") == before, "Ctrl-Z gives the terminal back", "".join(seen[:4])[-80:])
tmux.send("clear; fg; echo status $?", "Enter")
seen = tmux.wait(lambda lines: lines[23].startswith("q: quit"), 10)
tap.ok(seen[23].startswith("q: quit"), "fg takes it again")
tmux.send("q")
seen = tmux.wait(lambda lines: any("status 0" in line for line in lines), 15)
tap.ok(any(line.endswith("status 0") for line in seen) and not any("SELF" in line for line in seen), "q ends it", "".join(seen[:6])[-60:])
tap.ok(tmux.shell("stty -a") == before, "the terminal is as it was")

tmux.send("clear; " + HEARTH + " top; echo status $?", "Enter")
tmux.wait(lambda lines: lines[23].startswith("q: quit"), 30)
panes = tmux.do("list-panes", "-F", "#{pane_pid}").stdout.split()
shell = panes[0]
with open(f"/proc/{shell}/task/{shell}/children") as f:
    mine = [int(p) for p in f.read().split()]
for pid in mine:
    os.kill(pid, signal.SIGTERM)
seen = tmux.wait(lambda lines: any("status 0" in line for line in lines), 15)
tap.ok(mine and any("status 0" in line for line in seen) and tmux.shell("stty -a") == before, "SIGTERM restores it, too", seen[:3])

# Its own cost: on a machine that is otherwise busy, with the drawing.
tmux.send("clear; " + HEARTH + " top", "Enter")
tmux.wait(lambda lines: lines[23].startswith("q: quit"), 30)
with open(f"/proc/{shell}/task/{shell}/children") as f:
    pid = int(f.read().split()[0])
time.sleep(4)
begin, at = cpu_seconds(pid), time.monotonic()
time.sleep(4 if QUICK else 10)
cost = (cpu_seconds(pid) - begin) / (time.monotonic() - at)
tap.note(f"hearth top itself takes {100 * cost:.1f} % of one CPU")
tap.ok(cost < 0.15, "it is cheap itself", f"{100 * cost:.1f} % of one CPU")
tmux.send("q")

done = hearth("top", "--refresh", "1s", "--over", "2s", "-n", "3", "--rows", "4", "--sort", "total", timeout=60)
tables = done.stdout.strip().split("\n\n")
tap.ok(done.returncode == 0 and len(tables) == 3 and all(len(rows(t.split("\n"))) == 4 and "TOTALv" in t for t in tables) and "\033" not in done.stdout,
       "without a terminal: a table at each refresh", done.stdout[:200] + done.stderr)
done = hearth("top", "-d", "2", "-p", spin.pid, "--refresh", "500ms", "--over", "1s", timeout=60)
last = rows(done.stdout.strip().split("\n\n")[-1].split("\n"))
tap.ok(done.returncode == 0 and last and "spin_work" in last[0][3] and float(last[0][1]) > 80, "of one process, for two seconds", done.stdout[-300:])
for options, words in ((["--over", "1s", "--refresh", "2s"], "--over"), (["--sort", "no"], "--sort"), (["--rows", "0"], "--rows"), (["-p", "99999999"], "")):
    done = hearth("top", *options, timeout=30)
    tap.ok(done.returncode in (1, 2) and words in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, f"{' '.join(options)} is refused", done.stderr.strip())
subprocess.run(["tmux", "-S", tmux.socket, "kill-server"], capture_output=True)
tap.finish()
