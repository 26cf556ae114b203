#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth up: two processes, what runs here is stored as services and served, the end loses nothing."""
import codecs
import fcntl
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

from collector import fill_disk, free_port
from support import CPUS, HEARTH, QUICK, Profile, Tap, cpu_seconds, hearth, hearth_for_everybody, need, path, run, start, workload

tap = Tap("up")
need(tap)


def get(port, target):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", target)
    answer = connection.getresponse()
    return answer.status, answer.read()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def facts(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").partition(":\t")[::2] for line in f if ":\t" in line)


def begin(port, folder, *options):
    process = start(HEARTH, "up", "--addr", f"127.0.0.1:{port}", "--data-dir", folder, "--window", "2s", *options,
                    stdout=subprocess.PIPE, stderr=open(path("up.log"), "ab"), text=True)
    return process, process.stdout.readline().strip()


port, folder = free_port(), path("up")
spin = start(workload("spin"), "60")
up, url = begin(port, folder)
tap.ok(url == f"http://127.0.0.1:{port}", "the URL is printed", url or open(path("up.log")).read()[-500:])
if not url:
    tap.finish()
collector = children(up.pid)[0]
agent, server = facts(up.pid), facts(collector)
tap.ok(server["Uid"].split()[0] != "0" and agent["Uid"].split()[0] == "0", "the collector is another user", server["Uid"])
tap.ok(server["CapEff"] == server["CapPrm"] == "0" * 16 and server["NoNewPrivs"] == "1", "without capabilities", server["CapEff"])
tap.ok(server["Seccomp"] == "2" or "asan" in HEARTH, "under a filter of system calls", server["Seccomp"])
listed, end = [], time.monotonic() + 40
while len(listed) < 2 and time.monotonic() < end:
    time.sleep(0.5)
    status, body = get(port, "/api/0/profiles?service=spin&type=cpu&from=-1h&to=now")
    listed = json.loads(body).get("body", []) if status == 200 else []
status, body = get(port, "/api/0/services")
services = json.loads(body).get("body", [])
tap.ok(status == 200 and "spin" in services, "what runs is a service", services[:20])
tap.ok(len(listed) >= 2 and {"host"} <= {label["key"] for p in listed for label in p["labels"]}, "a profile each window, labelled by host", len(listed))
# An hour of which some seconds have profiles: the page divides by these.
status, body = get(port, "/api/v1/services?type=cpu&from=-1h&to=now")
told = json.loads(body) if status == 200 else {}
took = sum(s["total"] for s in told.get("services", []) if s["service"] == "spin") / 1e6 / told.get("covered_ms", 1e99)
tap.ok(3000 <= told.get("covered_ms", 0) <= 60000 and 0.02 < took < CPUS + 0.5, "the first seconds of an hour: what had profiles is said",
       f"{told.get('covered_ms')} ms, spin took {took:.2f} CPUs of it")
status, body = get(port, "/api/v1/agents?from=-1h&to=now")
quality = json.loads(body)["agents"][0]["quality"] if status == 200 else {}
tap.ok(quality.get("whole", 0) > 0, "which stacks of the machine are whole is said", quality)
before = len(listed)
up.send_signal(signal.SIGINT)
os.kill(collector, signal.SIGINT)  # as a terminal does
up.wait(timeout=30)
tap.ok(up.returncode == 0, "Ctrl-C ends both well", up.returncode)
tap.ok(not os.path.exists(f"/proc/{collector}"), "the collector is gone")
done = hearth("store", "export", "--data-dir", folder, "--service", "spin", "-o", folder)
files = [f for f in os.listdir(folder) if f.startswith("cpu-")]
tap.ok(len(files) > before, "the last window is stored", f"{len(files)} profiles, {before} before the end")
samples = [s for f in files for s in Profile(os.path.join(folder, f)).samples]
mine = sum(s.count for s in samples if any("spin" in m for m in s.modules))
tap.ok(samples and mine > 0.8 * sum(s.count for s in samples), "a service's profiles are of its program", mine)

up, url = begin(port, folder)
collector = children(up.pid)[0]
second = hearth("up", "--addr", f"127.0.0.1:{port}", "--data-dir", path("up2"), timeout=30)
tap.ok(second.returncode == 1 and "in use" in second.stderr, "a port that is taken is said", second.stderr.strip())
os.kill(collector, signal.SIGKILL)
up.wait(timeout=30)
tap.ok(up.returncode == 1, "without its collector the agent ends and says so", up.returncode)
up, url = begin(port, folder, "--duration", "3s")
collector = children(up.pid)[0]
os.kill(up.pid, signal.SIGKILL)
end = time.monotonic() + 10
while os.path.exists(f"/proc/{collector}") and time.monotonic() < end:
    time.sleep(0.05)
tap.ok(not os.path.exists(f"/proc/{collector}"), "without its agent the collector ends")

# On a terminal: a table that is written anew, log lines above it.


class Terminal:
    """As much of one as is needed to see what hearth up leaves on it: lines, cursor up, erase below."""

    def __init__(self, columns, rows):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.lines, self.row, self.odd = [""], 0, []
        self.decoder, self.rest = codecs.getincrementaldecoder("utf-8")(), ""

    def read(self, seconds):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            self.take(self.decoder.decode(os.read(self.master, 65536)))

    def take(self, text):
        text, self.rest = self.rest + text, ""
        unfinished = re.search(r"\033(\[[0-9;?]*)?$", text)
        if unfinished:
            text, self.rest = text[:unfinished.start()], unfinished[0]
        for piece in re.findall(r"\033\[[0-9;?]*[A-Za-z]|[\r\n]|[^\033\r\n]+|\033", text):
            if piece == "\n":
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif piece.startswith("\033[") and piece.endswith("A"):
                self.row -= int(piece[2:-1])
                if self.row < 0:
                    self.odd.append("above the first line")
                    self.row = 0
            elif piece == "\033[J":
                del self.lines[self.row + 1:]
                self.lines[self.row] = ""
            elif piece.startswith("\033"):
                self.odd.append(piece)
            elif piece != "\r":
                self.lines[self.row] += piece


screen, port = Terminal(90, 30), free_port()
up = start(HEARTH, "up", "--addr", f"127.0.0.1:{port}", "--data-dir", path("shown"), "--window", "2s", stdin=screen.slave, stdout=screen.slave,
           stderr=screen.slave, env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
end = time.monotonic() + 40
while time.monotonic() < end and not any(line.startswith("spin ") for line in screen.lines):
    screen.read(0.5)
tap.ok(any(line == f"http://127.0.0.1:{port}" for line in screen.lines), "a terminal has the URL", screen.lines[:5])
rows = [line for line in screen.lines if line.startswith("spin ")]
figures = re.search(r"executable +([0-9.]+) +([0-9.]+) % ", rows[0]) if rows else None
tap.ok(figures and float(figures[1]) > 0.2 and float(figures[2]) <= 100, "and services by cost, in cores and as a share", screen.lines)
os.kill(up.pid, signal.SIGHUP)
connection = get(port, "/healthz")
screen.read(5)
tap.ok(sum(line.startswith("SERVICE ") for line in screen.lines) == 1 and sum(line.startswith("spin ") for line in screen.lines) == 1 and
       not screen.odd, "written anew in its place", screen.lines)
head = [i for i, line in enumerate(screen.lines) if line.startswith("SERVICE ")]
said = [i for i, line in enumerate(screen.lines) if line.startswith("hearth: ")]
tap.ok(head and said and max(said) < head[0] and len(said) >= 1, "log lines pass above it", screen.lines)
tap.ok(not any("/healthz" in line for line in screen.lines), "requests are not logged there")
up.send_signal(signal.SIGINT)
end = time.monotonic() + 30
while up.poll() is None and time.monotonic() < end:
    screen.read(0.2)
screen.read(0.5)
tap.ok(up.returncode == 0 and screen.lines[-1] == "" and any(line.startswith("spin ") for line in screen.lines),
       "Ctrl-C leaves the last table", (up.returncode, screen.lines))
tap.ok(not screen.odd and [sum(line.startswith(what) for line in screen.lines) for what in ("http://", "SERVICE ", "hearth: info: listening", "hearth: info: reloaded")]
       == [1, 1, 1, 1], "and everything that was said, once", (screen.odd, screen.lines))


def on_terminal(*options, wait=40, **how):
    """hearth up on the terminal once more, until its table is there."""
    screen.lines, screen.row, screen.odd = [""], 0, []
    process = start(HEARTH, "up", "--addr", f"127.0.0.1:{free_port()}", "--data-dir", path("shown"), "--window", "1s", *options,
                    **{"stdin": screen.slave, "stdout": screen.slave, "stderr": screen.slave, "env": {**os.environ, "TERM": "xterm", "LC_ALL": "C"}, **how})
    end = time.monotonic() + wait
    while time.monotonic() < end and not any(line.startswith("SERVICE ") for line in screen.lines):
        screen.read(0.3)
    return process


def ends(process, seconds):
    end = time.monotonic() + seconds
    process.send_signal(signal.SIGTERM)
    while process.poll() is None and time.monotonic() < end:
        screen.read(0.2)
    return process.returncode


up = on_terminal()
os.kill(up.pid, signal.SIGSTOP)
screen.read(0.5)
os.write(screen.slave, b"a shell's line\nand its prompt\n")
screen.read(0.3)
os.kill(up.pid, signal.SIGCONT)
screen.read(4)
tap.ok(screen.lines.count("a shell's line") == 1 and screen.lines.count("and its prompt") == 1 and screen.lines.index("and its prompt") <
       max(i for i, line in enumerate(screen.lines) if line.startswith("SERVICE ")), "what others wrote while it was stopped stays", screen.lines)
full = os.open(os.ttyname(screen.slave), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
try:
    while True:
        os.write(full, b"x" * 1000 + b"\n")
except BlockingIOError:
    pass
time.sleep(3)  # nobody reads, and more windows come
os.kill(up.pid, signal.SIGHUP)
time.sleep(1)
up.send_signal(signal.SIGTERM)
try:
    up.wait(timeout=20)
except subprocess.TimeoutExpired:
    pass
tap.ok(up.returncode == 0, "a terminal that nobody reads does not keep it from ending", up.returncode)
screen.read(0.5)
log = path("beside.log")
up = on_terminal(stderr=open(log, "ab"))
get(int(next(line for line in screen.lines if line.startswith("http://")).rsplit(":", 1)[1]), "/healthz?mine")
tap.ok(ends(up, 30) == 0 and "/healthz?mine" in open(log).read() and not any(line.startswith("hearth: ") for line in screen.lines),
       "a log in a file has the requests", open(log).read()[-300:])
master, slave = pty.openpty()
up = on_terminal(stdin=slave, stdout=slave, stderr=slave, wait=0)
os.close(slave)
seen, end = b"", time.monotonic() + 40
while b"SERVICE " not in seen and time.monotonic() < end:
    seen += os.read(master, 65536) if select.select([master], [], [], 1)[0] else b""
os.close(master)  # the window is closed
up.send_signal(signal.SIGHUP)
try:
    up.wait(timeout=30)
except subprocess.TimeoutExpired:
    up.kill()
tap.ok(b"SERVICE " in seen and up.returncode == 0, "closing the terminal of the table ends it", up.returncode)
dumb = start(HEARTH, "up", "--addr", f"127.0.0.1:{free_port()}", "--data-dir", path("shown"), "--window", "1s", "--duration", "3s", stdout=screen.slave,
             stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"})
screen.lines, screen.row = [""], 0
end = time.monotonic() + 30
while dumb.poll() is None and time.monotonic() < end:
    screen.read(0.2)
screen.read(0.2)
tap.ok(len(screen.lines) == 2 and screen.lines[0].startswith("http://"), "a terminal that cannot move its cursor has the URL alone", screen.lines)

# make run with a DURATION.
os.mkdir(path("tree"))
os.symlink(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"), path("tree/scripts"))
os.mkdir(path("tree/build"))
done = run("scripts/run", cwd=path("tree"), env={**os.environ, "HEARTH": HEARTH, "DURATION": "3", "ADDR": f"127.0.0.1:{free_port()}", "DEMO": "no"})
tap.ok(done.returncode == 0 and done.stdout.startswith("http://"), "make run with a DURATION ends by itself", done)
tap.ok(os.path.getsize(path("tree/build/run/flamegraph.html")) > 1000 and Profile(path("tree/build/run/profile.pb.gz")).samples,
       "and leaves a flame graph and a profile", done.stdout)

# A program with file capabilities has them as any user; ambient ones are the same to it.


def on_a_full_disk():
    """What the store does not take is not called stored."""
    mount = path("small")
    os.makedirs(mount, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0755", "hearth-up", mount], capture_output=True, check=False).returncode:
        tap.skip("hearth up on a full disk", "it takes root to mount one")
        return
    try:
        load = start(workload("spin"), "30")
        up, _ = begin(free_port(), os.path.join(mount, "data"), "--retention-free", "0", "--retention-size", "0", "--window", "1s", "--no-table")
        time.sleep(3)
        fill_disk(os.path.join(mount, "others"))
        time.sleep(4)
        up.send_signal(signal.SIGTERM)
        up.wait(timeout=40)
        load.kill()
        with open(path("up.log")) as f:
            last = f.read()[-600:]
        tap.ok(up.returncode == 1 and "could not be stored whole" in last, "a full disk: it says what is not stored, and exits 1", (up.returncode, last[-300:]))
    finally:
        subprocess.run(["umount", "-l", mount], capture_output=True, check=False)


def live():
    """The last 10 s, with windows of 10 s as they are without an option: never empty once there is one, and 10 s of the load."""
    spin.kill()
    load = start(workload("spin"), "90")
    up, url = begin(port, path("live"), "--window", "10s", "--no-table")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/api/v1/live?window=10s&service=spin&max-nodes=1000")
    answer, seen, event, begun = connection.getresponse(), [], "", cpu_seconds(load.pid)
    begun_s = time.monotonic()
    end = begun_s + 50
    while time.monotonic() < end:
        line = answer.readline().decode()
        event = line.split()[1] if line.startswith("event: ") else event
        if line.startswith("data: ") and event in ("flame", "empty"):
            seen.append((event, json.loads(line[6:])["meta"]["total"] / 1e9 if event == "flame" else 0, cpu_seconds(load.pid) - begun, time.monotonic()))
    first = next((i for i, row in enumerate(seen) if row[0] == "flame"), len(seen))
    tap.ok(first < len(seen) and all(row[0] == "flame" for row in seen[first:]), "live, of 10 s: something is there from the first window on", seen)
    took = seen[-1][2] / max(1, seen[-1][3] - begun_s) * 10 if seen else 0
    shown = {row[1] for row in seen[first:]}
    tap.ok(shown and abs(sum(shown) / len(shown) - took) < 0.4 * took, "and it is 10 s of the load, not more windows and not less", f"{shown} of {took:.1f} s")
    up.send_signal(signal.SIGINT)
    up.wait(timeout=60)
    load.kill()


on_a_full_disk()
if not QUICK:
    live()
if shutil.which("setpriv"):
    program, port, folder = hearth_for_everybody(), free_port(), path("theirs")
    os.mkdir(folder, 0o700)
    os.chown(folder, 65534, 65534)
    rights = "+cap_38,+cap_39"  # CAP_PERFMON, CAP_BPF (linux/capability.h); older setpriv knows only numbers
    up = start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={rights}", f"--ambient-caps={rights}",
               program, "up", "--addr", f"127.0.0.1:{port}", "--data-dir", folder, stdout=subprocess.PIPE, stderr=open(path("up.log"), "ab"), text=True)
    url = up.stdout.readline().strip()
    server = facts(children(up.pid)[0]) if url else {}
    tap.ok(url and {server[kind] for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16} and int(facts(up.pid)["CapEff"], 16),
           "the collector of an agent that is not root has none of its capabilities", server.get("CapPrm", open(path("up.log")).read()[-500:]))
    up.send_signal(signal.SIGINT)
    up.wait(timeout=30)
else:
    tap.skip("an agent that is not root", "needs setpriv")
tap.finish()
