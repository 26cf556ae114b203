#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What stands still holds up nobody: a stderr that nobody reads, a collector that was stopped. And what logs and processes keep
from strangers: passwords, capabilities, control characters."""
import os
import signal
import subprocess
import time

from collector import Collector, free_port, pprof
from support import HEARTH, Tap, hearth, path, start, workload

tap = Tap("stall")
GOOD = pprof([(["main", "work"], [1, 10])])


def ended(process, seconds):
    """The exit status and how long it took; None: it still runs."""
    begin = time.monotonic()
    try:
        status = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        status = None
    return status, time.monotonic() - begin


def unread_stderr():
    """A collector with an access log into a pipe of which nobody takes a byte."""
    read, write = os.pipe()
    with Collector(stderr=write) as c:
        os.close(write)
        begin = time.monotonic()
        fine = 0
        for i in range(400):  # a line of 2 kB each: more than the pipe and the queue hold
            fine += c.ask("GET", "/api/0/version?" + "x" * 2000, timeout=10).status == 200
        took = time.monotonic() - begin
        tap.ok(fine == 400 and c.upload("still", "cpu", GOOD).status == 200, "a stderr that nobody reads stops no request", f"{fine} in {took:.1f} s")
        dropped = c.metric("hearth_log_dropped_total")
        tap.ok(dropped is not None and dropped > 0, "lines that were dropped are counted", dropped)
        c.process.send_signal(signal.SIGTERM)
        status, took = ended(c.process, 20)
        tap.ok(status == 0 and took < 10, "SIGTERM ends it", f"status {status} after {took:.1f} s")
        os.close(read)


def reported():
    """Once somebody reads again the log says how many lines are missing."""
    read, write = os.pipe()
    with Collector(stderr=write) as c:
        os.close(write)
        for i in range(400):
            c.ask("GET", "/api/0/version?" + "x" * 2000)
        os.set_blocking(read, False)
        text, end = b"", time.monotonic() + 20
        while b"were dropped" not in text and time.monotonic() < end:
            try:
                text += os.read(read, 65536)
            except BlockingIOError:
                time.sleep(0.01)
        tap.ok(b"lines of this log were dropped" in text, "the log says what it lacks", text[-200:])
        os.close(read)


def unread_record(seconds):
    """record with progress and summary into a pipe nobody reads ends in time."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, bytes(4096))
    except BlockingIOError:
        os.set_blocking(write, True)
    process = start(HEARTH, "record", "-d", "60", "-o", "-", "--format", "folded", stderr=write)
    os.close(write)
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    status, took = ended(process, 30)
    tap.ok(status == 0 and took < 20, "hearth record ends at SIGTERM although nobody reads its stderr", f"status {status} after {took:.1f} s")
    os.close(read)


def up(seconds):
    port, folder = free_port(), path("up-store")
    log = open(path("up.log"), "wb")
    process = start(HEARTH, "up", "--addr", f"127.0.0.1:{port}", "--data-dir", folder, "--window", "1s", "--access-log=false",
                    stdout=subprocess.PIPE, stderr=log)
    process.stdout.readline()
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
        child = int(f.read().split()[0])
    time.sleep(1)
    bounds = []
    for pid in (process.pid, child):
        with open(f"/proc/{pid}/status") as f:
            bounds.append(int(next(line for line in f if line.startswith("CapBnd")).split()[1], 16))
    agent_may = 1 << 6 | 1 << 7 | 1 << 8  # to become another user, in the child that reads debug information
    tap.ok(bounds[0] & ~agent_may == 0 and bounds[1] == 0, "the bounding sets are empty but for changing the user", [hex(b) for b in bounds])
    time.sleep(seconds)
    os.kill(child, signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    status, took = ended(process, 60)
    log.close()
    with open(path("up.log"), errors="replace") as f:
        text = f.read()
    lost = [line for line in text.splitlines() if "windows are lost" in line]
    tap.ok(status == 1 and took < 20, "hearth up ends although its collector is stopped", f"status {status} after {took:.1f} s")
    tap.ok(len(lost) == 1 and " 0 windows are lost" not in lost[0], "and says what is lost", lost or text[-300:])
    gone = not os.path.exists(f"/proc/{child}")
    tap.ok(gone, "nothing is left behind")
    if not gone:
        os.kill(child, signal.SIGKILL)


def strange_text():
    with Collector("--log-format", "json", log="json.log") as c:
        c.ask("GET", "/api/0/version", headers={"X-Request-Id": "a"})
        c.raw("GET /api/0/version HTTP/1.1\r\nHost: a\u202e\u009bb\r\nConnection: close\r\n\r\n".encode(), wait=2)
    with Collector(log="console.log") as c:
        c.raw("GET /api/0/version?\u202e\u009b\u200b HTTP/1.1\r\nHost: a\u202e\u009bb\r\nConnection: close\r\n\r\n".encode(), wait=2)
    for name in ("json.log", "console.log"):
        with open(path(name), encoding="utf-8", errors="surrogateescape") as f:
            text = f.read()
        tap.ok("\\u202e" in text and not any(c in text for c in "\u202e\u009b\u200b"), f"no direction or control characters in {name}", text[-200:] if "\u202e" in text else "")


def passwords():
    done = hearth("record", "-d", "1", "--push", "file:///etc/passwd")
    lines = done.stderr.strip().splitlines()
    tap.ok(done.returncode == 2 and len(lines) == 1, "--push file:// is refused with one line", (done.returncode, lines))
    env = {**os.environ, "http_proxy": "bad://user:s3cret@localhost:1"}
    for what, url, more in (("of --push", f"http://user:s3cret@127.0.0.1:{free_port()}", None), ("of a proxy", "http://192.0.2.1:1", env)):
        load = start(workload("spin"), 20)  # an idle machine has no profile to push
        done = hearth("record", "-d", "1", "--push", url, "--no-spool", env=more or {**os.environ, "no_proxy": "*"}, timeout=120)
        load.terminate()
        load.wait()
        text = done.stdout + done.stderr
        tap.ok("s3cret" not in text and "push" in text, f"no password {what} is shown", text[-300:])
    targets = path("targets.json")
    with open(targets, "w") as f:
        f.write('[{"service": "a", "targets": ["x" "http://user:s3cret@host:1"]}]')
    done = hearth("serve", "--addr", f"127.0.0.1:{free_port()}", "--data-dir", path("t"), "--targets", targets, timeout=60)
    tap.ok(done.returncode == 1 and "s3cret" not in done.stderr, "nor one of --targets", done.stderr[-200:])


unread_stderr()
reported()
strange_text()
if os.geteuid() == 0:
    unread_record(2)
    up(3)
    passwords()
else:
    tap.skip("hearth record and up", "needs root")
tap.finish()
