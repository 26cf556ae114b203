#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make static: one file that needs nothing but a kernel. It runs in bullseye, in trixie, and in a folder with musl and busybox alone, and does
there what the built program does: names are resolved, profiles sent by TLS, Python and source lines shown, the pages served."""
import re
import socket
import ssl
import struct
import threading
import urllib.request

from collector import free_port
from installs import Suite, bare, fetched, own_namespace, static_program
from support import *

MAX_BYTES = 12_000_000
START_MS = 250

own_namespace(network=True)
tap = Tap("static")
need(tap, "busybox", "openssl", "ip")
if not os.path.exists("/lib/ld-musl-x86_64.so.1"):
    tap.skip("everything", "needs musl")
    tap.finish()
program = static_program(tap)
run("ip", "link", "set", "lo", "up")  # a network of our own, where port 53 is free

size = os.path.getsize(program)
tap.ok(size <= MAX_BYTES, f"at most {MAX_BYTES / 1e6:.0f} MB", f"{size / 1e6:.2f} MB")
ldd = run("ldd", program)
dynamic = run("readelf", "-dlW", program).stdout
tap.ok("statically linked" in ldd.stdout + ldd.stderr and "NEEDED" not in dynamic and "INTERP" not in dynamic, "ldd finds no library", (ldd.stdout + ldd.stderr).strip())
said = run(program, "--version").stdout.strip()
tap.ok(re.fullmatch(r"hearth \S+ \(commit [0-9a-f]{12}(-dirty)?\)", said), "--version names the commit", said)
leaks = [w for w in (os.path.expanduser("~/.cache"), ROOT, "hearth-tests") if w.encode() in open(program, "rb").read()]
tap.ok(not leaks, "it does not say where it was built", leaks)
parts = program + ".spdx.json"
if os.path.exists(parts):
    names = {p["name"] for p in json.load(open(parts))["packages"]}
    tap.ok({"hearth", "curl", "gnutls28", "libc6-dev", "libmicrohttpd-dev", "libsqlite3-dev", "libdw-dev"} <= names, "hearth.spdx.json names what is in it", " ".join(sorted(names)))

# ---- names, without any configuration of name services ----

HOST, ALIAS = "collector.example", "files.example"


def name_server():
    """Answers A questions for HOST with 127.0.0.1, and that there is nothing else. Return: the names that were asked for."""
    asked, sock = [], socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 53))

    def serve():
        while True:
            data, peer = sock.recvfrom(512)
            at, labels = 12, []
            while data[at]:
                labels.append(data[at + 1:at + 1 + data[at]].decode())
                at += 1 + data[at]
            kind = struct.unpack(">H", data[at + 1:at + 3])[0]
            name, question = ".".join(labels), data[12:at + 5]
            asked.append(name)
            known = name == HOST
            answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1]) if known and kind == 1 else b""
            sock.sendto(data[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, bool(answer), 0, 0) + question + answer, peer)

    threading.Thread(target=serve, daemon=True).start()
    return asked


asked = name_server()
for name in ("ca", "other"):
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", path(name + ".key"), "-out", path(name + ".pem"))
run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}", "-keyout", path("server.key"), "-out", path("server.csr"))
with open(path("names"), "w") as f:
    f.write(f"subjectAltName=DNS:{HOST},DNS:{ALIAS}\n")
run("openssl", "x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", path("names"),
    "-out", path("server.pem"))


class Server:
    """OpenSSL's TLS by Python's ssl, and HTTP of the plainest: notes each request's first line."""

    def __init__(self):
        self.requests, self.sock = [], socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(path("server.pem"), path("server.key"))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            peer, _ = self.sock.accept()
            threading.Thread(target=self.answer, args=(peer,), daemon=True).start()

    def answer(self, peer):
        with contextlib.suppress(OSError), self.context.wrap_socket(peer, server_side=True) as tls, tls.makefile("rb") as stream:
            while first := stream.readline().decode("latin-1").strip():
                length = 0
                while (line := stream.readline().decode("latin-1").strip().lower()):
                    length = int(line.split(":")[1]) if line.startswith("content-length:") else length
                body = stream.read(length)
                self.requests.append((first, body, tls.version()))
                answer = b'{"code": 200, "body": {}}'
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


server = Server()
root = bare(program)
for file in ("ca.pem", "other.pem", "server.pem", "server.key"):
    root.take(path(file), "/etc/" + file)
os.chown(root.at("/etc/server.key"), 65534, 65534)  # the collector becomes nobody, and there is no file of users
root.write("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
root.write("/etc/hosts", f"127.0.0.1 localhost {ALIAS}\n")
environment = {"PATH": "/bin:/usr/sbin:/usr/bin"}
spin = start(workload("spin"), "170", "1")
tap.ok(root.run("/bin/hearth", "--version", env=environment).stdout.strip() == said and not os.path.exists(root.at("/etc/nsswitch.conf"))
      , "musl and busybox alone: it runs")


def push(host, ca="ca.pem"):
    before = len(server.requests)
    done = run(*root.command("/bin/hearth", "record", "-d", "1", "--push", f"https://{host}:{server.port}", "--ca-file", "/etc/" + ca, "--no-spool"), env=environment)
    return done, server.requests[before:]


done, got = push(HOST)
tap.ok(done.returncode == 0 and any("service=spin" in first and body[:2] == b"\x1f\x8b" for first, body, _ in got) and HOST in asked,
       "a name is resolved by DNS, and profiles are sent by TLS", f"{len(got)} by {got[0][2]}" if got else done.stderr[-300:])
done, got = push(ALIAS)
tap.ok(done.returncode == 0 and got and ALIAS not in asked, "a name of /etc/hosts", f"{len(got)} {done.stderr[-200:].strip()}")
done, got = push(HOST, "other.pem")
tap.ok(done.returncode == 1 and not got, "a certificate that nobody vouches for is refused", done.stderr.strip()[-200:])
done, got = push("missing.example")
tap.ok(done.returncode == 1 and not got and "missing.example" in asked and "resolve" in done.stderr, "a name that nobody knows is said", done.stderr.strip()[-200:])


# ---- what it does ----

def recorded(where, *options, seconds=3):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(where.at("/tmp/p.pb.gz"))
    done = run(*where.command("/bin/hearth", "record", "-d", seconds, "-q", "-o", "/tmp/p.pb.gz", *options), env=environment)
    if not tap.ok(done.returncode == 0, f"hearth record {' '.join(options)} ends well", done.stderr[-300:].strip()):
        return None
    return Profile(where.at("/tmp/p.pb.gz"))


with open(path("work.py"), "w") as f:
    f.write("def inner():\n    n = 0\n    while True:\n        n += 1\n\n\ndef outer():\n    inner()\n\n\nouter()\n")
python = start("/usr/bin/python3", path("work.py"))
time.sleep(1)
profile = recorded(root, "--lines")
if profile:
    samples = profile.of(python)
    both = [s for s in samples if {"inner", "outer"} <= {n.split(".")[-1] for n in s.names}]
    tap.ok(total(samples) > 20 and share(both, samples) > 0.9, "Python's functions", f"{total(both)} of {total(samples)}")
    samples = [s for s in profile.of(spin) if "spin_work" in s.names]
    lines = [s for s in samples if any(f.endswith("spin.c") and line for f, line, _ in s.places)]
    tap.ok(total(samples) > 20 and share(lines, samples) > 0.9, "source lines, by libdw inside", f"{total(lines)} of {total(samples)}")

port = free_port()
up = start(*root.command("/bin/hearth", "up", "--no-table", "--addr", f"127.0.0.1:{port}", "--data-dir", "/data", "--window", "1s", "--tls-cert", "/etc/server.pem",
                         "--tls-key", "/etc/server.key"), env=environment, stderr=open(path("up.log"), "wb"))
trusting = ssl.create_default_context(cafile=path("ca.pem"))
trusting.check_hostname = False


def get(where):
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}{where}", context=trusting, timeout=10) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except OSError as e:
        return 0, str(e)


until, services = time.monotonic() + 20, ""
while time.monotonic() < until and '"spin"' not in services:
    time.sleep(0.5)
    services = get("/api/0/services")[1]
tap.ok('"spin"' in services, "hearth up by HTTPS", services[:120].strip() + open(path("up.log")).read()[-300:])
status, page = get("/")
files = re.findall(r'(?:src|href)="(ui/[^"]+)"', page)
answers = {file: get("/" + file) for file in files}
tap.ok(status == 200 and files and all(s == 200 and text for s, text in answers.values()), "the page and its files", " ".join(files))
up.terminate()
tap.ok(stopped(up) == 0, "and it ends well")


# ---- how soon ----

def start_ms():
    """From the start of the process to the end of the 20 ms in which the first sample was taken. Before others: what they take is not its own."""
    begin = time.time_ns()
    done = run("nice", "-n", "-15", program, "record", "-d", "300ms", "-F", "999", "-q", "--sample-times", "-o", path("soon.profile.json"))
    if done.returncode:
        return float("inf")
    with open(path("soon.profile.json"), encoding="utf-8") as f:
        file = json.load(f)
    first = min((t for thread in file["threads"] for t in thread["samples"]["time"]), default=float("inf"))
    return file["meta"]["startTime"] + first + 20 - begin / 1e6


times = sorted(start_ms() for _ in range(3 if QUICK else 7))
figures, waiting = " ".join(f"{t:.0f}" for t in times) + " ms", os.getloadavg()[0]
if times[0] > START_MS and waiting > 2 * CPUS:
    tap.skip(f"the first sample comes within {START_MS} ms of the start", f"others use the machine: load {waiting:.0f}; {figures}")
else:
    tap.ok(times[0] <= START_MS, f"the first sample comes within {START_MS} ms of the start", figures)

# ---- on other systems ----
for suite in () if QUICK else ("bullseye", "trixie"):
    if not fetched(suite):
        tap.skip(suite, "debootstrap is missing or cannot fetch it")
        continue
    other = Suite(suite)
    other.take(program, "/bin/hearth")
    profile = recorded(other, seconds=2)
    if profile:
        tap.ok(any("spin_work" in s.names for s in profile.of(spin)) and profile.of(python), f"{suite}: it runs, and shows programs outside", total(profile.samples))
for process in (spin, python):
    process.terminate()
    stopped(process)
tap.finish()
