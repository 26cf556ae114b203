#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth profile -T: a server without rights, moving pictures, files of what was sampled so far; who may look, and at what cost."""
import collections
import http.client
import os
import pwd
import signal
import socket
import struct
import threading
import time

from collector import free_port
from support import HEARTH, QUICK, Profile, Tap, cpu_seconds, need, path, run, start, workload

tap = Tap("live")
need(tap)


def begin(port, *options, seconds=60):
    return start(HEARTH, "profile", "-f", "-T", "-R", port, *options, seconds, stderr=open(path("live.log"), "ab"))


def get(port, target, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    # A stream has no end.
    return answer.status, answer.headers, b"" if "multipart" in answer.headers.get("Content-Type", "") else answer.read()


def wait_for(port, target="/api/v1/session", seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if get(port, target)[0] == 200:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def facts(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").partition(":\t")[::2] for line in f if ":\t" in line)


class Stream(threading.Thread):
    """Reads the multipart answer, as an <img> would."""

    def __init__(self, port, target="/", slow=False):
        super().__init__(daemon=True)
        self.port, self.target, self.slow, self.parts, self.bad, self.ends = port, target, slow, 0, [], False
        self.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", self.target, headers={"Accept": "image/avif,image/webp,image/apng,image/*,*/*;q=0.8"})
        answer = connection.getresponse()
        self.type = answer.headers["Content-Type"]
        boundary = b"--" + self.type.partition("boundary=")[2].encode()
        if answer.readline().strip() != boundary:
            self.bad.append("no boundary")
        while not self.ends:
            try:
                head, fields = answer.readline(), {}
                while head.strip():
                    key, _, value = head.decode().partition(":")
                    fields[key.lower()] = value.strip()
                    head = answer.readline()
                if not fields:
                    break
                body = answer.read(int(fields["content-length"]))
                answer.readline()
                if fields["content-type"] != "image/png" or body[:8] != b"\x89PNG\r\n\x1a\n" or body[-8:-4] != b"IEND" or answer.readline().strip() != boundary:
                    self.bad.append(fields)
                self.parts += 1
                if self.slow:
                    time.sleep(3)
            except (OSError, ValueError, http.client.HTTPException):
                break
        connection.close()


class Events(threading.Thread):
    """Reads the page's events."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.socket, self.ends, self.bytes = socket.create_connection(("127.0.0.1", port)), False, 0
        self.socket.sendall(b"GET /api/v1/live?window=start&max-nodes=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.socket.settimeout(0.5)
        self.start()

    def run(self):
        while not self.ends:
            try:
                piece = self.socket.recv(1 << 20)
                self.bytes += len(piece)
                if not piece:
                    break
            except TimeoutError:
                pass
            except OSError:
                break
        self.socket.close()


port = free_port()
spin = start(workload("spin"), "240")
tool = begin(port)
tap.ok(wait_for(port), "it listens on loopback")
said = open(path("live.log")).read()
tap.ok(f"Starting flame graph stream on 'http://localhost:{port}/'." in said, "and says where", said.strip())
pid = children(tool.pid)[0]
server = facts(pid)
tap.ok(server["Uid"].split()[0] != "0" and server["CapEff"] == server["CapPrm"] == "0" * 16 and server["NoNewPrivs"] == "1" and (server["Seccomp"] == "2" or "asan" in HEARTH),
       "the server is another user without capabilities, under a filter", server["Uid"].split()[0])
stream, slow = Stream(port), Stream(port, "/whatever.jpg", slow=True)
time.sleep(8)
tap.ok(stream.parts >= 6 and not stream.bad and stream.type.startswith("multipart/x-mixed-replace"), "moving pictures come one after the other",
       f"{stream.parts} parts in 8 s {stream.bad[:1]}")
tap.ok(0 < slow.parts < stream.parts, "who is slow misses some", f"{slow.parts} and {stream.parts}")
stream.ends = slow.ends = True

status, head, body = get(port, "/snapshot.folded")
folded = collections.Counter()
for line in body.decode("utf-8", "surrogateescape").splitlines():
    folded[line.rsplit(" ", 1)[0]] += int(line.rsplit(" ", 1)[1])
mine = sum(c for s, c in folded.items() if s.endswith(";spin_work") and s.startswith("spin;"))
tap.ok(status == 200 and mine > 50, "snapshot.folded has what was sampled so far", f"{mine} of {sum(folded.values())}")
status, head, body = get(port, "/snapshot.pb.gz")
with open(path("s.pb.gz"), "wb") as f:
    f.write(body)
profile = Profile(path("s.pb.gz"))
tap.ok(status == 200 and sum(s.count for s in profile.samples) >= sum(folded.values()), "snapshot.pb.gz, too", len(profile.samples))
status, head, body = get(port, "/snapshot.svg")
tap.ok(status == 200 and head["Content-Type"] == "image/svg+xml" and b"spin_work" in body, "snapshot.svg, too", len(body))
status, head, body = get(port, "/snapshot.png")
tap.ok(status == 200 and struct.unpack(">II", body[16:24]) == (1024, 800), "snapshot.png, too", len(body))
status, head, body = get(port, "/", Accept="text/html,*/*;q=0.8")
tap.ok(status == 200 and b"<html" in body, "who takes HTML gets the page")
status, head, body = get(port, "/?format=mjpeg", Accept="text/html,*/*;q=0.8")
tap.ok(status == 200 and "multipart" in head["Content-Type"], "unless the address asks for pictures")
for target, headers in (("/", {"Accept": "text/html"}), ("/", {}), ("/snapshot.png", {}), ("/api/v1/live?window=10s", {}), ("/ui/app.js", {})):
    status, _, _ = get(port, target, Host="evil.example", **headers)
    tap.ok(status == 403, f"another Host is refused: {target}", status)
tap.ok(get(port, "/", Origin="http://evil.example")[0] == 403, "so is another Origin")
tap.ok(get(port, "/api/0/profiles?service=profile&type=cpu&from=-1h&to=now", Accept="text/html")[0] == 404, "what the page does not need is not there")
tool.send_signal(signal.SIGINT)
tool.wait(timeout=30)
tap.ok(tool.returncode == 0 and not os.path.exists(f"/proc/{pid}"), "Ctrl-C ends both", tool.returncode)

# Any number of viewers cost one computation.
port = free_port()
tool = begin(port, seconds=300)
wait_for(port)
pid = children(tool.pid)[0]
LENGTH = 12  # s


def cost(kind, viewers):
    readers = [kind(port) for _ in range(viewers)]
    time.sleep(2)
    before = cpu_seconds(pid)
    time.sleep(LENGTH)
    used = cpu_seconds(pid) - before
    for reader in readers:
        reader.ends = True
    time.sleep(3)
    return used / LENGTH


if not QUICK:
    time.sleep(4)
    for name, kind in (("moving pictures", Stream), ("the page's events", Events)):
        # Stacks become more while time passes: nobody is measured before and after.
        nobody, one, twenty, again = cost(kind, 0), cost(kind, 1), cost(kind, 20), cost(kind, 0)
        nobody = (nobody + again) / 2
        tap.ok(one > nobody and twenty - nobody <= 4 * (one - nobody), f"twenty viewers of {name} cost at most four times one",
               f"{100 * nobody:.2f} % of a CPU without, {100 * one:.2f} % with one, {100 * twenty:.2f} % with twenty: {(twenty - nobody) / max(one - nobody, 1e-4):.1f} times")
tool.kill()
tool.wait()
end = time.monotonic() + 10
while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
    time.sleep(0.05)
tap.ok(not os.path.exists(f"/proc/{pid}"), "without the tool the server ends")

# A path of its own.
port = free_port()
tool = begin(port, "-P", "/flame")
wait_for(port, "/flame/api/v1/session")
status, head, _ = get(port, "/flame", Accept="text/html")
tap.ok(status == 303 and head["Location"] == "/flame/" and get(port, "/flame/", Accept="text/html")[0] == 200 and get(port, "/", Accept="text/html")[0] == 404 and
       get(port, "/flame/snapshot.png")[0] == 200, "-P has everything below it", status)
stream = Stream(port, "/flame")
end = time.monotonic() + 20
while stream.parts < 2 and time.monotonic() < end:
    time.sleep(0.1)
tap.ok(stream.parts >= 2 and not stream.bad, "and the stream at it", stream.parts)
stream.ends = True
tool.send_signal(signal.SIGTERM)
tool.wait(timeout=30)
tap.ok(tool.returncode == 0, "SIGTERM ends it", tool.returncode)

# Another address, another user.
port = free_port()
tool = begin(port, "--addr", "127.0.0.2", "--live-user", "daemon")
end = time.monotonic() + 30
status = 0
while status != 200 and time.monotonic() < end:
    time.sleep(0.2)
    try:
        connection = http.client.HTTPConnection("127.0.0.2", port, timeout=20)
        connection.request("GET", "/snapshot.png")
        status = connection.getresponse().status
    except OSError:
        pass
said = open(path("live.log")).read()
tap.ok(status == 200 and f"stream on 'http://127.0.0.2:{port}/'." in said, "--addr 127.0.0.2", (status, said.splitlines()[-1:]))
try:
    get(port, "/snapshot.png")
    tap.ok(False, "and nowhere else")
except ConnectionRefusedError:
    tap.ok(True, "and nowhere else")
server = facts(children(tool.pid)[0])
tap.ok(server["Uid"].split() == [str(pwd.getpwnam("daemon").pw_uid)] * 4, "--live-user is who serves", server["Uid"])
tool.send_signal(signal.SIGTERM)
tool.wait(timeout=30)
done = run(HEARTH, "profile", "-T", "-R", free_port(), "--live-user", "nobody-of-this-name", 1, timeout=30)
tap.ok(done.returncode in (1, 2) and "nobody-of-this-name" in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout,
       "a user that does not exist is refused before sampling", f"{done.returncode} {done.stderr.strip()}")

taken = socket.create_server(("127.0.0.1", 0))
for options, status, words in ((["-R", "0"], 2, "-R"), (["-R", "65536"], 2, "-R"), (["-R", "x"], 2, "-R"), (["-P", "flame"], 2, "-P"), (["-P", "/a?b"], 2, "-P"),
                               (["-R", str(taken.getsockname()[1])], 1, "in use"), (["--addr", "203.0.113.1", "-R", str(free_port())], 1, "203.0.113.1")):
    done = run(HEARTH, "profile", "-T", *options, 1, timeout=30)
    tap.ok(done.returncode == status and words in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, f"{' '.join(options)} is refused before sampling",
           f"{done.returncode} {done.stderr.strip()}")
tap.finish()
