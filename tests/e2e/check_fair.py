#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nobody shuts out anybody: under each attack small uploads of another token, health and metrics stay quick.

Attackers are processes of their own at nice 19 with tokens of their own. Probes (an upload, /healthz, /metrics, each over a new
connection) run one after the other while an attack runs; their 99th percentile is judged. The same probe of a bare socket
server and a synced file beside it says what the machine itself took: what that one is over 5 ms is not the collector's.
A stall of the machine may hit one of them alone: a figure that misses is taken again, twice at most, while the attack goes on.
A collector that lets others wait misses each time.
`check_fair.py KIND...` runs only these attacks.
"""
import gzip
import http.client
import os
import random
import selectors
import socket
import subprocess
import sys
import threading
import time

from collector import Collector, message, pprof, varint
from support import SAMPLED, Tap, hearth, path, rotation, start

UPLOAD_MS, HEALTH_MS = 100, 50  # wanted of the 99th percentile
TRIES = 3
PROBES = 600
CALM_MS = 5
MIB = 1 << 20


# --- attackers: check_fair.py --attack KIND PORT TOKEN... ---


def request(method, target, token, length=None, extra=""):
    text = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{extra}"
    return (text + (f"Content-Length: {length}\r\n" if length is not None else "") + "\r\n").encode()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def forever(work, count):
    """@count threads that call work(number) again and again, whatever happens to their connections."""
    def loop(number):
        while True:
            try:
                work(number)
            except OSError:
                time.sleep(0.05)
    print("ready", flush=True)
    threads = [threading.Thread(target=loop, args=(n,), daemon=True) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def bomb(expanded, seed):
    """A valid profile of about @expanded bytes that gzip makes about 50 times smaller."""
    r = random.Random(seed)
    names = [f"function_{i}_of_a_program" for i in range(64)]
    out = [pprof([(names, [1, 10])], packed=False)]
    size = len(out[0])
    while size < expanded:
        ids = b"".join(varint(r.randrange(64) + 1) for _ in range(30))
        out.append(message(2, message(1, ids) + message(2, varint(1) + varint(10))) * 60)
        size += len(out[-1])
    return gzip.compress(b"".join(out), 1)


def drips(port, tokens, head):
    """Bodies that begin fast and then come byte by byte; begun anew when they are cut."""
    def work(number):
        with connect(port) as s:
            s.sendall(request("POST", "/api/0/profiles?service=drip&type=cpu", tokens[number % len(tokens)], 32 * MIB))
            s.sendall(bytes(head))
            while True:
                time.sleep(1)
                s.sendall(b"x")
    forever(work, 3 if head > MIB else 64)


def bombs(port, tokens, expanded, target="/api/0/profiles?service=bomb&type=cpu", count=20):
    bodies = [bomb(expanded, seed) for seed in range(4)]

    def work(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            connection.request("POST", target, random.choice(bodies), {"Authorization": "Bearer " + tokens[number % len(tokens)]})
            answer = connection.getresponse()
            answer.read()
            if answer.status == 429:
                time.sleep(0.2)
    forever(work, count)


def zeros(port, tokens, target):
    """Bytes that expand 1,000 times and are no profile."""
    body = gzip.compress(bytes(8 * MIB), 9)

    def work(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            headers = {"Authorization": "Bearer " + tokens[number % len(tokens)]}
            if number % 2:
                headers["Content-Encoding"] = "gzip"
            connection.request("POST", target, body, headers)
            connection.getresponse().read()
    forever(work, 20)


def merges(port, tokens):
    def work(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", "/api/0/profiles/merge?service=heavy&type=cpu&from=-1d&to=now%2B1h", headers={"Authorization": "Bearer " + tokens[0]})
        connection.getresponse().read()
    forever(work, 64)


def idle(port, tokens, first, count=1024):
    """Connections that say @first and nothing more; opened again as they are closed."""
    print("ready", flush=True)
    chosen = selectors.DefaultSelector()
    held = 0
    while True:
        while held < count:
            try:
                s = socket.create_connection(("127.0.0.1", port), timeout=1)
                s.sendall(first)
            except OSError:
                break
            s.setblocking(False)
            chosen.register(s, selectors.EVENT_READ)
            held += 1
        for key, _ in chosen.select(0.05):
            try:
                ended = not key.fileobj.recv(65536)
            except OSError:
                ended = True
            if ended:
                chosen.unregister(key.fileobj)
                key.fileobj.close()
                held -= 1


def slow_readers(port, tokens):
    """Large answers that nobody takes."""
    print("ready", flush=True)
    held = []
    while True:
        try:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(5)
            s.connect(("127.0.0.1", port))
            s.sendall(request("GET", "/api/0/profiles/merge?service=heavy&type=cpu&from=-1d&to=now%2B1h", tokens[0]))
            held.append(s)
        except OSError:
            pass
        if len(held) > 400:
            held.pop(0).close()
        time.sleep(0.02)


def cuts(port, tokens):
    """Connections closed in the middle of their bodies."""
    def work(number):
        with connect(port) as s:
            s.sendall(request("POST", "/ingest?name=cut.cpu", tokens[0], 4 * MIB) + bytes(256 << 10))
    forever(work, 16)


def chunks(port, tokens):
    """Chunked bodies, a byte a chunk."""
    def work(number):
        with connect(port) as s:
            s.sendall(request("POST", "/ingest?name=chunk.cpu", tokens[0], extra="Transfer-Encoding: chunked\r\n"))
            while True:
                s.sendall(b"1\r\na\r\n" * 200)
                time.sleep(0.05)
    forever(work, 64)


def pipelines(port, tokens):
    """Many requests in one go, answers unread; HTTP/1.0 among them."""
    def work(number):
        with connect(port) as s:
            s.sendall(request("GET", "/api/0/services", tokens[0]) * 200)
            time.sleep(0.2)
        with connect(port) as s:
            s.sendall(f"GET /api/0/services HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer {tokens[0]}\r\n\r\n".encode() * 50)
            time.sleep(0.2)
    forever(work, 32)


def floods(port, tokens):
    """Small uploads as fast as they go."""
    bombs(port, tokens, 200000, count=64)


INGEST = "/ingest?name=bomb.cpu&format=pprof"
ATTACKS = {
    "drip": ("3 bodies that drip behind 32 MiB", lambda p, t: drips(p, t, 32 * MIB - 600)),
    "drips": ("64 bodies that drip behind 900 KiB", lambda p, t: drips(p, t, 900 << 10)),
    "bombs": ("20 senders of 4 MiB that expanded 50 times", lambda p, t: bombs(p, t, 4 * MIB)),
    "bomb-small": ("20 senders of 900 KiB that expanded 50 times", lambda p, t: bombs(p, t, 900000)),
    "bomb-large": ("20 senders of 40 MiB that expanded 50 times", lambda p, t: bombs(p, t, 40 * MIB)),
    "bomb-ingest": ("the same of 4 MiB to /ingest", lambda p, t: bombs(p, t, 4 * MIB, INGEST)),
    "zeros": ("20 senders of what expands 1,000 times", lambda p, t: zeros(p, t, "/api/0/profiles?service=zero&type=cpu")),
    "zeros-ingest": ("the same to /ingest", lambda p, t: zeros(p, t, "/ingest?name=zero.cpu")),
    "merges": ("64 merges", lambda p, t: merges(p, t)),
    "idle": ("1,024 silent connections", lambda p, t: idle(p, t, b"")),
    "half": ("1,024 halves of a header", lambda p, t: idle(p, t, b"GET /healthz HTTP/1.1\r\nHost: local")),
    "half-tls": ("1,024 half-open handshakes", lambda p, t: idle(p, t, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")),
    "readers": ("400 readers of large answers that take nothing", slow_readers),
    "cuts": ("connections closed in the middle of a body", cuts),
    "chunks": ("chunks of one byte", chunks),
    "pipelines": ("200 requests at once, unread", pipelines),
    "floods": ("64 senders of 200 kB as fast as they go", floods),
}

FIRST_ATTACKS = ["drip", "bombs", "bomb-large", "merges", "idle"]

if "--attack" in sys.argv:
    os.nice(19)
    at = sys.argv.index("--attack")
    ATTACKS[sys.argv[at + 1]][1](int(sys.argv[at + 2]), sys.argv[at + 3:])
    sys.exit(0)


# --- probes ---

tap = Tap("fair")
SMALL = pprof([(["main", f"work_{i}", f"leaf_{i % 7}"], [i, 10 * i]) for i in range(1, 60)])


class Control:
    """What an answer and a synced write take on this machine without the collector."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.file = os.open(path("control"), os.O_CREAT | os.O_WRONLY, 0o600)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            s, _ = self.listener.accept()
            with s:
                s.recv(65536)
                s.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")

    def synced(self):
        os.pwrite(self.file, bytes(4096), 0)
        os.fdatasync(self.file)


def timed(call):
    begin = time.monotonic()
    status = call()
    return (time.monotonic() - begin) * 1000, status


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Probe:
    def __init__(self, port, token, context=None):
        self.port, self.token, self.context = port, token, context
        self.control = Control()

    def ask(self, method, target, body=None, port=None):
        try:
            if self.context and not port:
                connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.context)
            else:
                connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
            connection.request(method, target, body, {"Authorization": "Bearer " + self.token})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status
        except (OSError, http.client.HTTPException) as e:
            return str(e) or type(e).__name__

    def run(self, count, seconds):
        """{what: ([ms], [what was no 200])}"""
        calls = {"upload": lambda: self.ask("POST", "/api/0/profiles?service=small&type=cpu", SMALL),
                 "healthz": lambda: self.ask("GET", "/healthz"),
                 "metrics": lambda: self.ask("GET", "/metrics"),
                 "control": lambda: self.ask("GET", "/", port=self.control.port),
                 "disk": lambda: self.control.synced() or 200}
        out = {name: ([], []) for name in calls}
        end = time.monotonic() + seconds
        for _ in range(count):
            for name, call in calls.items():
                took, status = timed(call)
                out[name][0].append(took)
                if status != 200:
                    out[name][1].append(status)
            if time.monotonic() > end:
                break
            time.sleep(0.005)
        return out


def figures(out):
    """(what is said of them, whether they are as wanted, whether a request failed)"""
    p99 = {name: percentile(ms, 0.99) for name, (ms, _) in out.items()}
    p50 = {name: percentile(ms, 0.5) for name, (ms, _) in out.items()}
    text = ", ".join(f"{name} p50 {p50[name]:.1f} p99 {p99[name]:.1f}" for name in out) + f" ms of {len(out['upload'][0])}"
    own = max(p99["control"] - CALM_MS, 0)
    disk = max(p99["disk"] - CALM_MS, 0)
    failed = [s for name in ("upload", "healthz", "metrics") for s in out[name][1]]
    fine = p99["upload"] - own - disk <= UPLOAD_MS and max(p99["healthz"], p99["metrics"]) - own <= HEALTH_MS
    return text + (f"; failed: {len(failed)} ({failed[0]})" if failed else ""), fine and not failed, bool(failed)


def judge(what, probe, seconds):
    said = []
    for _ in range(TRIES):
        text, fine, failed = figures(probe.run(PROBES, seconds))
        said.append(text)
        if fine or failed:
            break
    tap.ok(fine, what, "; again: ".join(said))


def fill(c, token):
    """Enough of one service that a merge of it takes a while and is large."""
    r = random.Random(1)
    bodies = []
    for _ in range(4):
        samples = [([f"main_{r.randrange(8)}"] + [f"f{r.randrange(1500)}_of_some_module" for _ in range(24)], [1, 10]) for _ in range(400)]
        bodies.append(pprof(samples))
    for i in range(120):
        status = c.ask("POST", "/api/0/profiles?service=heavy&type=cpu", bodies[i % 4], {"Authorization": "Bearer " + token}).status
        assert status == 200, status


def attack(c, probe, kind, tokens):
    what = ATTACKS[kind][0]
    process = start(sys.executable, __file__, "--attack", kind, c.port, *tokens, stdout=subprocess.PIPE)
    process.stdout.readline()  # its bodies are made
    time.sleep(2)
    judge(what, probe, 40)
    process.kill()
    process.wait()
    with open(f"/proc/{c.process.pid}/status") as f:
        rss = next(line for line in f if line.startswith("RssAnon")).split()[1]
    tap.ok(int(rss) < 512 * 1024, f"memory after {what}", f"{int(rss) // 1024} MiB")


def some_attacks():
    """All of them; when sampled the first ones and two others in rotation."""
    others = [kind for kind in ATTACKS if kind not in FIRST_ATTACKS]
    return FIRST_ATTACKS + [others[(2 * rotation() + i) % len(others)] for i in (0, 1)] if SAMPLED else list(ATTACKS)


def main(kinds):
    folder = path("fair")
    os.mkdir(folder)
    tokens = [hearth("token", "create", "--scope", "ingest,read", "--data-dir", folder).stdout.strip() for _ in range(21)]
    with Collector("--log-level", "warn", folder=folder) as c:
        probe = Probe(c.port, tokens[0])
        fill(c, tokens[1])
        judge("nobody attacks", probe, 12)
        for kind in kinds:
            attack(c, probe, kind, tokens[1:])
            end = time.monotonic() + 30
            while probe.ask("GET", "/healthz") != 200 and time.monotonic() < end:
                time.sleep(0.1)
        if c.process.poll() is not None:
            tap.ok(False, "the collector lives", c.process.returncode)


main([a for a in sys.argv[1:] if not a.startswith("-")] or some_attacks())
tap.finish()
