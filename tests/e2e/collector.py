# SPDX-License-Identifier: Apache-2.0
"""A collector to talk to over a real socket, and profiles to send: shared by the checks of hearth serve."""
import gzip
import http.client
import json
import os
import selectors
import signal
import socket
import subprocess
import threading
import time

from support import HERE, HEARTH, path, run, start


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fill_disk(file):
    """Writes to the end of @file until its disk takes no more."""
    with open(file, "ab", buffering=0) as f:
        try:
            while True:
                f.write(bytes(4096))
        except OSError:
            pass


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json.get("error", "")

    def __repr__(self):
        return f"{self.status} {self.body[:200]}"


class Collector:
    """hearth serve on a free port; use it with `with`. stderr: a descriptor that gets what goes to @log otherwise."""

    def __init__(self, *options, folder=None, port=None, log="serve.log", env=None, user=None, stderr=None):
        self.port = port or free_port()
        self.folder = folder or path(f"store-{self.port}")
        self.log = path(log)
        self.options = [str(o) for o in options]
        self.env, self.user, self.stderr = env, user, stderr
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, wait=True):
        self.process = start(HEARTH, "serve", "--addr", f"127.0.0.1:{self.port}", "--data-dir", self.folder,
                             *(["--user", self.user] if self.user else []), *self.options,
                             stderr=open(self.log, "ab") if self.stderr is None else self.stderr, env=self.env)
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.ask("GET", "/-/ready").status == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        with open(self.log, errors="replace") as f:
            raise RuntimeError(f"the collector does not start: {f.read()[-2000:]}")

    def stop(self, how=signal.SIGTERM):
        """The exit status."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode if self.process else None

    def ask(self, method, target, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, target, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, target, **headers):
        return self.ask("GET", target, headers=headers)

    def upload(self, service, kind, body, extra="", headers=None):
        return self.ask("POST", f"/api/0/profiles?service={service}&type={kind}{extra}", body, headers)

    def raw(self, data, wait=5.0):
        """Bytes in, all bytes that come back until the connection ends or nothing comes for @wait seconds."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            out = b""
            try:
                s.sendall(data)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    out += piece
            except (TimeoutError, ConnectionError):
                pass
            return out

    def metric(self, name):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


# --- pprof, written without any code of the project ---


class Watchers(threading.Thread):
    """Streams of /api/v1/live that are read and thrown away, from now on until stop()."""

    def __init__(self, port, queries):
        super().__init__(daemon=True)
        self.over, self.events, self.bytes, self.all = threading.Event(), 0, 0, selectors.DefaultSelector()
        for query in queries:
            s = socket.create_connection(("127.0.0.1", port))
            s.sendall(f"GET /api/v1/live?{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            self.all.register(s, selectors.EVENT_READ)
        self.start()

    def run(self):
        while not self.over.is_set():
            for key, _ in self.all.select(0.2):
                data = key.fileobj.recv(1 << 20)
                self.bytes += len(data)
                self.events += data.count(b"event: flame")
                if not data:
                    self.all.unregister(key.fileobj)

    def stop(self):
        """How many streams were open until now."""
        self.over.set()
        self.join()
        count = len(self.all.get_map())
        for key in list(self.all.get_map().values()):
            key.fileobj.close()
        return count


def number(field, value):
    return varint(field << 3) + varint(value)


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def pprof(samples, types=(("samples", "count"), ("cpu", "nanoseconds")), time_ns=0, packed=True, duration_ns=0,
          period=10000000, mappings=()):
    """samples: [(names, values[, labels])], names root first, labels texts or numbers by name. mappings: [(start, limit, file)], which no
    location uses. A whole profile; gzip unless packed is False."""
    strings, out = [""], b""

    def text(value):
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    for kind, unit in types:
        out += message(1, number(1, text(kind)) + number(2, text(unit)))
    functions = {}
    for names, values, *labels in samples:
        for name in names:
            functions.setdefault(name, len(functions) + 1)
        ids = b"".join(varint(functions[n]) for n in reversed(names))
        texts = b"".join(message(3, number(1, text(k)) + (number(2, text(v)) if isinstance(v, str) else number(3, v)))
                         for row in labels for k, v in row.items())
        out += message(2, message(1, ids) + message(2, b"".join(varint(v) for v in values)) + texts)
    for i, (start, limit, file) in enumerate(mappings, 1):
        out += message(3, number(1, i) + number(2, start) + number(3, limit) + number(5, text(file)))
    for name, identity in functions.items():
        out += message(4, number(1, identity) + message(4, number(1, identity)))
        out += message(5, number(1, identity) + number(2, text(name)) + number(3, text(name)))
    out += message(11, number(1, text(types[-1][0])) + number(2, text(types[-1][1]))) + number(12, period)
    out += b"".join(message(6, s.encode("utf-8", "surrogateescape")) for s in strings)
    out += number(9, time_ns) if time_ns else b""
    out += number(10, duration_ns) if duration_ns else b""
    return gzip.compress(out, 1) if packed else out


def go_profiles(count):
    """Folders with one profile of each kind of real Go programs; [] when there is no Go."""
    program = path("profiles")
    built = run("go", "build", "-o", program, os.path.join(HERE, "workloads/profiles/profiles.go"), timeout=600,
                env={**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    if built.returncode:
        return []
    folders = []
    for i in range(count):
        folder = path(f"go-{i}")
        os.makedirs(folder, exist_ok=True)
        run(program, folder, i, timeout=60, check=True)
        folders.append(folder)
    return folders


def content(folder, name):
    with open(os.path.join(folder, name), "rb") as f:
        return f.read()


def pprof_raw(*sources):
    """What go tool pprof -raw says of files, or of one file and what else it merges with it."""
    done = run("go", "tool", "pprof", "-raw", *sources, timeout=300, env={**os.environ, "PPROF_TMPDIR": path("pprof-tmp")})
    return done.stdout if done.returncode == 0 else done.stderr


def top(*sources, sample_index=None, nodes=50):
    """What go tool pprof -top says, without the lines that name the source."""
    options = [f"-sample_index={sample_index}"] if sample_index else []
    done = run("go", "tool", "pprof", "-top", f"-nodecount={nodes}", "-unit=auto", *options, *sources, timeout=300,
               env={**os.environ, "PPROF_TMPDIR": path("pprof-tmp")})
    lines = [line for line in done.stdout.splitlines()
             if not line.startswith(("File:", "Build ID:", "Time:", "Duration:"))]
    return done.returncode, lines, done.stderr
