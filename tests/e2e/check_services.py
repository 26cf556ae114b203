#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Services have the names people know: a unit, a container, gunicorn, Java, Node, a daemon, a build of short programs, rules; in up and by push.

check_services.py [SECONDS]: up goes on for so long (600 is ten minutes), and lines and shares of the last minute are judged again. Not quick:
lines are judged 20 s after the start and shares over a minute; quick: both when the loads have used some CPU, with room for the few samples."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

from collector import Collector, free_port
from engines import podman, podman_image, podman_remove, podman_run
from support import HEARTH, QUICK, SAMPLED, TICK, Tap, busy_seconds, cpu_seconds, hearth, need, path, run, start, workload

tap = Tap("services")
need(tap, "gcc")
SECONDS = 20
PATIENCE = 120 if QUICK else 240
LONG = 0 if SAMPLED else next((float(a) for a in sys.argv[1:] if not a.startswith("--")), 0)
ALIVE = PATIENCE * 2 + LONG
ENOUGH = 6  # CPU seconds of our loads: what shares are judged by when quick
MINUTE = 60
POINTS = 0.03  # how far a share may be from what /proc says
LINES = 12
QUIET = 0.03  # of what the CPUs did, by programs of others: then each line of the page counts, and short programs are the build's
ID = "5e" * 32
UNIT = f"hearth-check-{os.getpid()}"
groups = []


# --- loads ---


def group(name):
    """A cgroup of ours in systemd's hierarchy or the only one; None where there can be none."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"):
        if not os.path.exists(f"{root}/cgroup.procs"):
            continue
        try:
            os.makedirs(f"{root}/{name}", exist_ok=True)
        except OSError:
            continue
        groups.append(f"{root}/{name}")
        return f"{root}/{name}"
    return None


def inside(where):
    def move():
        with open(f"{where}/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))
    return move


def copy_of(name):
    os.makedirs(path("bin"), exist_ok=True)
    shutil.copy(workload("spin"), path(f"bin/{name}"))
    return path(f"bin/{name}")


def python_load():
    packages = path("packages")
    done = run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", packages, "gunicorn", "flask")
    if done.returncode:
        tap.skip("a Flask application under gunicorn", "needs gunicorn from PyPI")
        return None
    with open(path("shop.py"), "w") as f:
        f.write("import threading\nfrom flask import Flask\napp = Flask(__name__)\ndef work():\n    while True:\n        sum(range(10000))\n"
                "threading.Thread(target=work, daemon=True).start()\n")
    return start(sys.executable, f"{packages}/bin/gunicorn", "--chdir", path(""), "-b", f"127.0.0.1:{free_port()}", "shop:app",
                 env={**os.environ, "PYTHONPATH": packages})


def java_load():
    os.makedirs(path("com/acme"), exist_ok=True)
    with open(path("com/acme/Main.java"), "w") as f:
        f.write("package com.acme; public class Main { public static void main(String[] a) { long x = 1; while (x != 0) { x = x * 31 + 1 | 1; } } }\n")
    if not shutil.which("javac") or run("javac", "-d", path("classes"), path("com/acme/Main.java")).returncode:
        tap.skip("a Java program", "needs a JDK")
        return None
    return start("java", "-Xmx64m", "-cp", path("classes"), "com.acme.Main")


def node_load():
    if not shutil.which("node"):
        tap.skip("a Node program", "needs node")
        return None
    with open(path("server.js"), "w") as f:
        f.write("let x = 1; for (;;) x = (x * 31 + 1) | 1;\n")
    return start("node", path("server.js"))


def grouped_load(program, where, what):
    where = group(where)
    if not where:
        tap.skip(what, "no cgroup can be made here")
        return None
    return start(copy_of(program), ALIVE, preexec_fn=inside(where))


class Box:
    """A container of podman as a load; its process is a child of podman's."""

    def __init__(self, tag):
        self.name = f"{UNIT}-box"
        self.made = podman_run(tag, self.name, "/container-program", str(int(ALIVE)))
        self.service = self.made.stdout.strip()[:12]
        self.pid = 0 if self.made.returncode else int(podman("inspect", "-f", "{{.State.Pid}}", self.name).stdout)

    def terminate(self):
        podman_remove(self.name)

    def wait(self, timeout):
        pass


def container_load():
    """(service, load): a real container where podman can run one, else a group with a container's name."""
    why = "quick" if QUICK else "podman or runc is not there"
    if not QUICK and shutil.which("podman") and shutil.which("runc"):
        why = podman_image("hearth-e2e-services:1", "container-program")
        box = None if why else Box("hearth-e2e-services:1")
        if box and box.pid:
            tap.note("the container is podman's")
            return box.service, box
        why = why or box.made.stderr[-200:].replace("\n", " ")
    tap.note(f"the container is a group with a container's name: {why}")
    return ID[:12], grouped_load("container-program", f"system.slice/docker-{ID}.scope", "a container")


def build_load():
    """Hundreds of programs that live for a moment, as a build has them."""
    with open(path("x.c"), "w") as f:
        f.write("#include <stdio.h>\n" + "".join(f"int f{i}(int a) {{ return a * {i} + printf(\"%d\", a); }}\n" for i in range(60)))
    with open(path("build.sh"), "w") as f:
        f.write(f"#!/bin/sh\nwhile :; do\n gcc -O1 -c {path('x.c')} -o {path('x.o')}; mkdir -p {path('d')}; rm -f {path('x.o')}; true; {workload('short')}\ndone\n")
    return start("sh", path("build.sh"))


BUILD = {"(short-lived)", "build.sh", "sh", "dash", "gcc", "x86_64-linux-gnu-gcc-12", "cc1", "as", "x86_64-linux-gnu-as", "mkdir", "rm", "short"}
BUILD |= {os.path.basename(os.path.realpath(shutil.which(tool))) for tool in ("sh", "gcc", "as", "mkdir", "rm")}
container, box = container_load()
loads = {  # service -> kind, load
    UNIT: ("unit", grouped_load("unit-program", f"system.slice/{UNIT}.service/workers", "a systemd unit")),
    container: ("container", box),
    "acme-daemon": ("executable", start(copy_of("acme-daemon"), ALIVE)),
    "front desk": ("rule", start(copy_of("desk"), ALIVE, 0, "--front")),
    "gunicorn: shop:app": ("application", python_load()),
    "java: com.acme.Main": ("application", java_load()),
    "server.js": ("application", node_load()),
}
loads = {name: (kind, load) for name, (kind, load) in loads.items() if load}
build = build_load()


def family_seconds(load):
    """Of a process, its living children, and those that it has waited for: these /proc alone has (proc(5), stat, fields 16 and 17)."""
    seconds, todo = 0.0, [load.pid]
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                todo += [int(p) for p in f.read().split()]
            seconds += cpu_seconds(pid) + (int(fields[13]) + int(fields[14])) / TICK
        except OSError:
            continue
    return seconds


def costs():
    return {**{name: family_seconds(load) for name, (_, load) in loads.items()}, "build": family_seconds(build)}


class Ours(threading.Thread):
    """Pids of all processes that our loads are made of, seen every fifth of a second: what lives shorter is a short program of the build.
    The machine may have other work; which lines are its own cannot be told by names alone."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pids = set()
        self.start()

    def run(self):
        while True:
            todo = [build.pid, *(load.pid for _, load in loads.values())]
            while todo:
                pid = todo.pop()
                self.pids.add(pid)
                try:
                    for task in os.listdir(f"/proc/{pid}/task"):
                        with open(f"/proc/{pid}/task/{task}/children") as f:
                            todo += [int(p) for p in f.read().split()]
                except OSError:
                    pass
            time.sleep(0.2)


# --- what up says ---


def get(port, target):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", target)
    answer = connection.getresponse()
    return json.loads(answer.read())


def services(port, **options):
    return get(port, "/api/v1/services?" + urllib.parse.urlencode({"from": "now-1h", **options}))


with open(path("rules"), "w") as rules:
    rules.write("# ours\ncommand *--front* -> front desk\n")
with open(path("bad"), "w") as rules:
    rules.write("exe a -> b\nprogram a -> b\n")
bad = hearth("up", "--service-rules", path("bad"), "--data-dir", path("none"))
tap.ok(bad.returncode == 1 and "line 2" in bad.stderr and not os.path.exists(path("none")), "a bad file of rules is said before anything starts", bad.stderr.strip())

port = free_port()
up = start(HEARTH, "up", "--addr", f"127.0.0.1:{port}", "--data-dir", path("up"), "--window", "5s", "-F", "499", "--service-rules", path("rules"),
           stdout=subprocess.PIPE, stderr=open(path("up.log"), "ab"), text=True)
url = up.stdout.readline()
tap.ok(url.startswith("http://"), "up begins", url.strip() or open(path("up.log")).read()[-500:])


class Interval:
    """What our loads, up, this check and the machine use from now on; others: the share of the CPUs' work that was none of these."""

    def __init__(self):
        self.start_s, self.busy, self.own, self.before = time.time(), busy_seconds(), self.own_seconds(), costs()

    @staticmethod
    def own_seconds():
        return cpu_seconds(up.pid) + time.process_time()

    def end(self):
        now = costs()
        self.end_s = time.time()
        self.used = {name: seconds - self.before[name] for name, seconds in now.items()}
        busy = busy_seconds() - self.busy
        self.others = max(0, busy - sum(self.used.values()) - (self.own_seconds() - self.own)) / busy
        return self


began, start_of_up, ours = time.monotonic(), Interval(), Ours()
at_20 = None
while True:
    time.sleep(1)
    passed = time.monotonic() - began
    if at_20 is None and passed > SECONDS:
        answer = services(port)
        if not QUICK or any(s["service"] in loads for s in answer["services"]):  # quick: later on a busy machine
            at_20, to_20 = answer, start_of_up.end().others
    if at_20 and (not QUICK or sum(start_of_up.end().used.values()) > ENOUGH or passed > PATIENCE):
        break
    if passed > PATIENCE:
        break
with Collector() as c:
    by_push = {}
    for _ in range(8):  # on a busy machine three seconds may go by without a sample of one of them
        done = hearth("record", "-d", 3, "--push", f"http://127.0.0.1:{c.port}", "--service-rules", path("rules"), "-q", "-o", path("x.hwin"))
        by_push = {s["service"]: s for s in json.loads(c.ask("GET", "/api/v1/services?from=now-1h&small=list").body)["services"]}
        if done.returncode or not {*loads, "(short-lived)"} - set(by_push):
            break
    tap.ok(done.returncode == 0, "record with --push ends well", done.stderr[-300:])
since_start = start_of_up.end()
used = since_start.used
time.sleep(7)  # what they used is stored
answer, whole = services(port), services(port, small="list")
rows = {s["service"]: s for s in whole["services"]}



def pids_of(service):
    rows = get(port, "/api/v1/processes?" + urllib.parse.urlencode({"from": "now-1h", "service": service, "by": "process", "limit": 1000}))["rows"]
    return {row.get("pid") for row in rows}


def not_judged(what, others):
    """What needs the machine for itself: a named skip, which the part does not allow; quick: a note."""
    why = f"others took {others:.1%} of the CPUs"
    tap.note(f"{what}: not judged, {why}") if QUICK else tap.skip(what, f"{why}, at most {QUIET:.0%}")


def judge_lines(answer, when, others):
    """At most 12 lines, and all our loads among them. What others on the machine run counts where they did next to nothing: @others, a share."""
    lines = [s["service"] for s in answer["services"]]
    mine = [name for name in lines if name in loads or name == "(short-lived)" or ours.pids & pids_of(name)]
    if not QUICK:
        tap.ok(set(loads) <= set(mine), f"after {when} each load has a line", f"{mine}, without {sorted(set(loads) - set(lines))}")
    tap.ok(mine and len(mine) + bool(answer["folded"]["services"]) <= LINES, f"after {when} at most {LINES} lines are ours", mine)
    what, figures = f"after {when} at most {LINES} lines in all", f"{len(lines)} and folded {answer['folded']}: {lines}"
    if QUICK or others > QUIET:
        not_judged(what, others)
    else:
        tap.ok(len(lines) + bool(answer["folded"]["services"]) <= LINES, what, figures)


def judge_shares(rows, used, when, others):
    """Each load's share, and the build's by all its names: within three points; quick: and two standard deviations of the few samples."""
    costs = {name: rows.get(name, {"total": 0})["total"] for name in loads}
    costs["build"] = sum(rows[name]["total"] for name in BUILD if name in rows)
    if others > QUIET:
        del costs["build"]
        not_judged(f"the build: its share {when}", others)
    mine, used_mine = sum(costs.values()) or 1, sum(used[name] for name in costs) or 1
    for name in costs:
        share, want = costs[name] / mine, used[name] / used_mine
        spare = 2 * (want * (1 - want) / max(1, mine / 1e9 * 499)) ** 0.5 if QUICK else 0
        tap.ok(abs(share - want) < POINTS + spare, f"{name}: its share {when}", f"{share:.3f}, by /proc {want:.3f}")


def judge_minute(when):
    """The shares of the minute that comes. Returns what others took of the CPUs."""
    minute = Interval()
    time.sleep(MINUTE)
    minute.end()
    time.sleep(7)  # its last window is stored
    rows = services(port, **{"from": int(minute.start_s * 1000), "to": int(minute.end_s * 1000), "small": "list"})["services"]
    judge_shares({s["service"]: s for s in rows}, minute.used, when, minute.others)
    return minute.others


judge_lines(at_20 or answer, f"{SECONDS} s", to_20 if at_20 else 1)
if QUICK:
    judge_shares(rows, used, "since the start", since_start.others)
else:
    judge_minute("of a minute")
for name, (kind, _) in loads.items():
    tap.ok(rows.get(name, {}).get("kind") == kind, f"{name} is a service", f"kind {rows.get(name, {}).get('kind')}")
    tap.ok(by_push.get(name, {}).get("kind") == kind, f"{name}: the same by push", by_push.get(name, {}).get("kind"))
found = sum(rows[n]["total"] for n in BUILD if n in rows) / 1e9  # others on the machine may build too
# Beside what is stored of the other loads: samples begin a moment after the page, and the last window is stored when its end is over.
stored = min(1, sum(rows[name]["total"] for name in loads if name in rows) / 1e9 / sum(used[name] for name in loads))
tap.ok(stored > (0.85 if QUICK else 0.95), "the loads: what they used is stored", f"{stored:.3f}")
tap.ok(found > 0.9 * stored * used["build"] - 0.2, "the build: nothing of it is missing", f"{found:.2f} s, by /proc {used['build']:.2f} s")
tap.ok(rows.get("(short-lived)", {}).get("kind") == "short-lived" and "(short-lived)" in by_push, "short programs are one service",
       {n: round(rows[n]["total"] / 1e9, 2) for n in BUILD if n in rows})
names = get(port, "/api/v1/flame?" + urllib.parse.urlencode({"service": "(short-lived)", "from": "now-1h"}))["names"]
tap.ok("short" in names, "inside, each has its own name", [n for n in names if n in BUILD])
facet = get(port, "/api/v1/labels?from=now-1h&name=service_kind")["labels"][0]["values"]
tap.ok({"executable", "rule", "short-lived"} <= {v["value"] for v in facet}, "the kind is a label", facet)
tap.ok(sum(s["total"] for s in answer["services"]) + answer["folded"]["total"] == answer["total"], "folded and shown add up", answer["folded"])
folded = [s for s in whole["services"] if s.get("small")]
tap.ok(not any(s.get("small") for s in answer["services"]) and all(s["kind"] in ("executable", "short-lived", "kernel") for s in folded) and
       all(s["total"] < whole["total"] / 200 for s in folded), "only small programs are folded", [s["service"] for s in folded][:20])
if LONG:
    time.sleep(max(0, began + LONG - MINUTE - time.monotonic()))
    others = judge_minute("of the last minute")
    judge_lines(services(port), f"{LONG:.0f} s", others)
up.send_signal(signal.SIGINT)
tap.ok(up.wait(timeout=60) == 0, "up ends well", f"{up.returncode} {open(path('up.log')).read()[-500:]}")
for load in [build, *(load for _, load in loads.values())]:
    load.terminate()
    load.wait(timeout=60)
for where in groups:
    for folder in (where, os.path.dirname(where)):
        if UNIT in folder or ID in folder:
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.05)
tap.finish()
