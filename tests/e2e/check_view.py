#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth view: what it serves beside the files and go tool pprof -top, who gets it, the browser, files that cannot be read, the end."""
import collections
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import quote, urlsplit

from collector import free_port, go_profiles, pprof
from support import HEARTH, QUICK, Tap, hearth, need, path, run, start

tap = Tap("view")
need(tap, root=False)
PPROF = shutil.which("go")
TEN = "/0123456789abcdef0123456789abcdef/"  # of the right form


class View:
    """hearth view; use it with `with`. url is what it printed."""
    count = 0

    def __init__(self, *args, env=None, stdin=subprocess.DEVNULL):
        View.count += 1
        self.errors = path(f"view-{View.count}.log")
        plain = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.process = start(HEARTH, "view", *args, stdout=subprocess.PIPE, stderr=open(self.errors, "wb"), text=True, stdin=stdin,
                             env={**plain, **(env or {})})
        self.line = self.process.stdout.readline()
        self.url = self.line.strip()
        parts = urlsplit(self.url)
        self.host, self.port, self.base = parts.hostname, parts.port, parts.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def said(self):
        with open(self.errors, errors="surrogateescape") as f:
            return f.read()

    def end(self, how=signal.SIGINT):
        """The exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def ask(self, target, method="GET", headers=None, body=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.request(method, target, headers=headers or {}, body=body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def status(self, target, method="GET", **headers):
        return self.ask(target, method, headers)[0]

    def get(self, what, **params):
        query = "&".join(f"{k.replace('_', '-')}={quote(str(v), safe='')}" for k, v in params.items())
        status, _, body = self.ask(f"{self.base}api/v1/{what}?{query}")
        if status != 200:
            raise RuntimeError(f"{what}?{query}: {status} {body[:300]}")
        return json.loads(body)

    @property
    def shown(self):
        return self.get("session")["shown"]

    def flame(self, sample="", what="flame", **params):
        shown = self.shown
        given = {"service": shown["service"], "type": shown["type"], "sample": sample, "from": shown["at_ms"], "to": shown["at_ms"],
                 "max_nodes": 5000000, **params}
        return self.get(what, **given)


def functions(flame):
    """name -> (self, total) of an answer that nothing is hidden in; total counts a stack once."""
    flat, cum, way = collections.Counter(), collections.Counter(), []
    for level, frame, own in zip(flame["level"][1:], flame["frame"][1:], flame["self"][1:]):
        del way[level - 1:]
        way.append(flame["names"][frame])
        flat[way[-1]] += own
        for name in set(way):
            cum[name] += own
    return {name: (flat[name], value) for name, value in cum.items() if value}


def top(files, sample, unit):
    """The same by go tool pprof -top, and its total."""
    done = run("go", "tool", "pprof", "-top", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000000", f"-unit={unit}",
               f"-sample_index={sample}", *files, timeout=300, env={**os.environ, "PPROF_TMPDIR": path("pprof-tmp")})
    number = r"(-?[\d.]+)\w*"
    rows = re.findall(rf"^ *{number} +\S+% +\S+% +{number} +\S+%  (.*)$", done.stdout, re.M)
    total = re.search(rf"of {number} total", done.stdout)
    return {name.removesuffix(" (inline)").removesuffix(" (partial-inline)"): (float(flat), float(cum)) for flat, cum, name in rows}, \
        float(total[1]) if total else 0.0


def write(name, samples, **options):
    with open(path(name), "wb") as f:
        f.write(pprof(samples, **options))
    return path(name)


def stacks_of(seed, count):
    rng = random.Random(seed)
    return [(["main"] + [f"f{rng.randrange(60)}" for _ in range(rng.randrange(1, 12))], [n, n * 10_000_000])
            for _ in range(count) for n in [rng.randrange(1, 50)]]


def sum_of(samples, column=1):
    return sum(values[column] for _, values in samples)


# One file.
one, two = stacks_of(1, 300), stacks_of(2, 200)
a, b = write("a.pb.gz", one), write("b.pb.gz", two)
with View(a) as v:
    tap.ok(re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/\n", v.line), "the address is printed in one line", repr(v.line))
    status, headers, body = v.ask(v.base)
    tap.ok(status == 200 and b"<!doctype html>" in body and "default-src 'none'" in headers["Content-Security-Policy"] and
           headers["Referrer-Policy"] == "no-referrer", "the page is there, and tells nobody its address", status)
    missing = [name for name in ("ui/app.js", "ui/page.html", "ui/pages.css", "ui/worker.js") if v.status(v.base + name) != 200]
    tap.ok(not missing, "and what it is made of", missing)
    tap.ok(v.ask(v.base + "ui/first.js")[::2] == (200, b""), "nothing is asked for before the page knows its files", v.ask(v.base + "ui/first.js"))
    tap.ok(v.shown["service"] == "a.pb.gz" and "base" not in v.shown, "its name is the file's", v.shown)
    flame = v.flame()
    tap.ok(flame["meta"]["total"] == sum_of(one) and flame["meta"]["sample"] == "cpu", "the total", flame["meta"]["total"])
    tap.ok(v.flame("samples")["meta"]["total"] == sum_of(one, 0), "and of the other sample type")
    if PPROF:
        for sample, unit in (("cpu", "nanoseconds"), ("samples", "count")):
            theirs, total = top([a], sample, unit)
            ours = functions(v.flame(sample))
            tap.ok(ours == theirs and total and len(ours) > 50, f"{sample}: every function has what go tool pprof -top says", len(theirs))
    else:
        tap.skip("go tool pprof -top", "needs go")
    exported = v.ask(f"{v.base}api/v1/export?as=pprof&service=a.pb.gz&type=cpu&from={v.shown['at_ms']}&to={v.shown['at_ms']}")[2]
    with open(path("exported.pb.gz"), "wb") as f:
        f.write(exported)
    with View(path("exported.pb.gz")) as again:
        tap.ok(functions(again.flame()) == functions(flame), "what is exported is the same profile")
    lines = v.ask(f"{v.base}api/v1/lines?service=a.pb.gz&type=cpu&from={v.shown['at_ms']}&to={v.shown['at_ms']}", "POST",
                  body=json.dumps({"path": [{"name": "main", "kind": "native", "module": ""}]}))
    tap.ok(lines[0] in (200, 404), "a call path can be asked for", lines[0])

    # Who gets it.
    tap.ok(v.status("/") == v.status(TEN) == v.status(TEN + "ui/app.js") == v.status("/ui/app.js") == 404, "without the key there is nothing")
    tap.ok(v.status(v.base[:-2] + "/") == v.status(v.base.upper()) == v.status("/" + v.base) == 404, "nor with a part of it")
    for host in ("evil.example", f"evil.example:{v.port}", "127.0.0.1.evil.example"):
        tap.ok(v.status(v.base, Host=host) == v.status(v.base + "api/v1/flame", Host=host) == 403, f"no name that leads here: Host: {host}")
    tap.ok(v.status(v.base + "api/v1/session", Host=f"localhost:{v.port}") == 200, "but localhost")
    tap.ok(v.status(v.base + "api/v1/session", Origin="http://evil.example") == 403, "no page of a stranger")
    said = {m: v.status(v.base + p, m) for m, p in (("PUT", "ui/app.js"), ("DELETE", "api/v1/flame"), ("POST", "api/v1/export"))}
    tap.ok(set(said.values()) == {405}, "nothing can be written", said)
    closed = ["ingest", "api/0/profiles", "api/0/services", "metrics", "debug/pprof", "api/v1/live", "api/v1/status", "healthz",
              "push.v1.PusherService/Push", "ui/../metrics", "ui/%2e%2e/metrics"]
    found = {p: s for p in closed for m in ("GET", "POST") for s in [v.status(v.base + p, m)] if s not in (400, 404, 405)}
    tap.ok(not found, "nothing else of the collector is there", found)
    connections = [socket.create_connection((v.host, v.port)) for _ in range(50)]
    tap.ok(v.status(v.base) == 200, "connections that say nothing keep nobody out")
    for c in connections:
        c.close()
    inodes = set()
    for fd in os.listdir(f"/proc/{v.process.pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{v.process.pid}/fd/{fd}").removeprefix("socket:[").rstrip("]"))
        except OSError:
            pass
    with open("/proc/net/tcp") as f:
        listening = [line.split()[1] for line in f if line.split()[3] == "0A" and line.split()[9] in inodes]
    tap.ok([x.split(":")[0] for x in listening] == ["0100007F"], "it listens on loopback alone", listening)
    with open(f"/proc/{v.process.pid}/status") as f:
        filtered = re.search(r"^Seccomp:\t(\d)", f.read(), re.M)[1]
    tap.ok(filtered == "2" or "asan" in HEARTH, "under a filter of system calls", filtered)
    begin = time.monotonic()
    status = v.end()
    tap.ok(status == 0 and v.said == "" and time.monotonic() - begin < 3, "Ctrl-C ends it well and at once", f"{status} {v.said!r}")
with View(a) as v, View(a) as w:
    tap.ok(v.base != w.base, "every start has a key of its own")
    tap.ok(w.status(v.base) == 404, "which opens no other")
    tap.ok(v.end(signal.SIGTERM) == 0 and w.end(signal.SIGHUP) == 0, "SIGTERM and SIGHUP end it well, too")

# Two files, three files.
with View(a, b) as v:
    tap.ok(v.shown["service"] == "b.pb.gz" and v.shown["base"] == "a.pb.gz", "two files: the first is the base", v.shown)
    both = v.flame(what="compare", base_service="a.pb.gz")
    meta = both["meta"]
    tap.ok(meta["base_total"] == sum_of(one) and meta["total"] == sum_of(one) + sum_of(two), "both totals", (meta["base_total"], meta["total"]))
    mine = functions({**both, "self": both["base_self"]})
    tap.ok(mine == functions(v.flame(service="a.pb.gz")), "the base's part is the base's profile")
    tap.ok(functions(v.flame()) == functions(v.flame(service="b.pb.gz")) != mine, "each can be looked at alone")
with View("--base", a, b, b) as v:
    tap.ok("2 files are shown as one" in v.said and v.said.count("\n") == 1, "with a base the others are one, and it is said", v.said)
    meta = v.flame(what="compare", base_service=v.shown["base"])["meta"]
    tap.ok(meta["total"] - meta["base_total"] == 2 * sum_of(two), "which has the sum", meta["total"])
with View(a, b, a) as v:
    tap.ok("3 files are shown as one" in v.said and v.said.count("\n") == 1, "three files are one, and it is said", v.said)
    tap.ok("base" not in v.shown and v.flame()["meta"]["total"] == 2 * sum_of(one) + sum_of(two), "with the sum")
    if PPROF:
        theirs, _ = top([a, b, a], "cpu", "nanoseconds")
        tap.ok(functions(v.flame()) == theirs, "as go tool pprof adds them up")
os.makedirs(path("monday"))
os.makedirs(path("tuesday"))
shutil.copy(a, path("monday/a.pb.gz"))
shutil.copy(b, path("tuesday/a.pb.gz"))
with View(path("monday/a.pb.gz"), path("tuesday/a.pb.gz")) as v:
    tap.ok(v.shown["base"].endswith("monday/a.pb.gz") and v.shown["service"].endswith("tuesday/a.pb.gz"), "equal names have their folders")
with View(a, a) as v:
    tap.ok(v.shown["base"] == v.shown["service"] + " (base)", "one file twice", v.shown)
    meta = v.flame(what="compare", base_service=v.shown["base"])["meta"]
    tap.ok(2 * meta["base_total"] == meta["total"] == 2 * sum_of(one), "is as much as itself")
shutil.copy(a, path("<img onerror=1>\u202e.pb.gz"))
with open(os.fsencode(path("")) + b"\xff\x1b[31m.pb.gz", "wb") as f:
    f.write(open(a, "rb").read())
for name in (os.fsencode(path("<img onerror=1>\u202e.pb.gz")), os.fsencode(path("")) + b"\xff\x1b[31m.pb.gz"):
    with View(os.fsdecode(name)) as v:
        tap.ok(v.flame()["meta"]["total"] == sum_of(one), "a hostile name", ascii(v.shown["service"]))

# Sample types that differ.
heap = write("heap.pb.gz", [(["main", "new"], [3, 4096])], types=(("inuse_objects", "count"), ("inuse_space", "bytes")))
half = write("half.pb.gz", [(["main", "f1"], [7])], types=(("samples", "count"),))
with View(a, half) as v:
    tap.ok(v.flame(what="compare", base_service="a.pb.gz")["meta"]["sample"] == "samples", "two files are compared by what both have")
with View("--compat", a, b, half) as v:
    tap.ok(v.flame()["meta"]["total"] == sum_of(one, 0) + sum_of(two, 0) + 7, "--compat adds up what all have")
with View("--value", "samples", a) as v:
    tap.ok(v.flame()["meta"]["sample"] == "samples", "--value is shown first")
if PPROF:
    for folder in go_profiles(1):
        for name in ("cpu", "heap", "allocs", "mutex", "block", "goroutine", "threadcreate", "empty_block"):
            file = os.path.join(folder, name + ".pb.gz")
            with View(file) as v:
                samples = [s for t in v.get("types", service=v.shown["service"], **{"from": v.shown["at_ms"], "to": v.shown["at_ms"]})["types"]
                           for s in t["samples"]]
                wrong = []
                for s in samples:
                    ours = v.flame(s["sample"])["meta"]["total"]
                    theirs = top([file], s["sample"], s["unit"])[1]
                    if abs(ours - theirs) > 0.5 or s["total"] != ours:
                        wrong.append((s, ours, theirs))
                tap.ok(samples and not wrong, f"Go's {name}: totals as go tool pprof -top says", wrong or len(samples))
                if name == "cpu":
                    tap.ok(functions(v.flame("cpu")) == top([file], "cpu", "nanoseconds")[0], "and every function")

# Other formats, standard input.
formats = {}
for suffix in ("col", "folded", "hwin"):
    formats[suffix] = path("as." + suffix)
    hearth("convert", "-q", a, "-o", formats[suffix])
for suffix, file in formats.items():
    with View(file) as v:
        total = v.flame()["meta"]["total"]
        tap.ok(total in (sum_of(one), sum_of(one, 0)), f"a file of format {suffix}", total)
with open(a, "rb") as f, View("-", stdin=f) as v:
    tap.ok(v.shown["service"] == "standard input" and v.flame()["meta"]["total"] == sum_of(one), "standard input", v.shown)
with open(a, "rb") as f, View("--base", b, "-", stdin=f) as v:
    tap.ok(v.shown["base"] == "b.pb.gz" and v.flame()["meta"]["total"] == sum_of(one), "and beside a file")

# What cannot be read.
bad = {"damaged": open(a, "rb").read()[:-30], "empty": b"", "noise": bytes(range(256)) * 8}
for name, data in bad.items():
    with open(path(name), "wb") as f:
        f.write(data)
for args in (*([path(n)] for n in bad), [path("nowhere")], [path("monday")], [a, path("nowhere")], [path("nowhere"), a], ["--base", path("empty"), a],
             [a, b, path("damaged")], [a, b, heap], ["--compat", a, b, heap], [a, heap]):
    done = hearth("view", *args, timeout=60)
    tap.ok(done.returncode == 1 and done.stdout == "" and done.stderr.startswith("hearth view: ") and done.stderr.count("\n") == 1,
           f"view {' '.join(os.path.basename(x) for x in args)}: one line and no address", done.stderr.strip()[:150])
for args in ([], ["--addr", "nonsense", a], ["--addr", "127.0.0.1:99999", a], ["--value", "nothing", a], ["--from", "nothing", a], ["--nonsense", a]):
    done = hearth("view", *args, timeout=60)
    tap.ok(done.returncode == 2 and done.stdout == "", f"usage: view {' '.join(args[:2])}", done.stderr.strip()[:100])
port = free_port()
with View("--addr", f"127.0.0.1:{port}", a) as v:
    tap.ok(v.port == port and v.status(v.base) == 200, "--addr")
    done = hearth("view", "--addr", f"127.0.0.1:{port}", a, timeout=60)
    tap.ok(done.returncode == 1 and done.stdout == "" and "in use" in done.stderr, "a port that is taken is said", done.stderr.strip())
if os.path.exists("/proc/net/if_inet6"):
    with View("--addr", "[::1]:0", a) as v:
        tap.ok(v.url.startswith("http://[::1]:") and v.status(v.base) == 200, "an IPv6 address", v.url)
with View("--addr", ":0", a) as v:
    tap.ok(v.url.startswith("http://localhost:") and v.status("/") == 404 and v.status(v.base) == 200, "every address", v.url)
done = subprocess.run([HEARTH, "view", a], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True, timeout=60)
tap.ok(done.returncode == 1 and "cannot print" in done.stderr, "an address that nobody can read ends it", done.stderr.strip())

# The browser: a program that says how it was started.
os.makedirs(path("bin"))
with open(path("bin/xdg-open"), "w") as f:
    f.write(f"""#!{sys.executable}
import os, resource, signal, sys, time
with open({path('opened.tmp')!r}, "w") as f:
    print(sys.argv[1:], os.getsid(0) != os.getsid(os.getppid()), resource.getrlimit(resource.RLIMIT_DATA)[0],
          signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, []) == set(), os.getpid(), sep="\\n", file=f)
os.rename({path('opened.tmp')!r}, {path('opened')!r})
time.sleep(20)
""")
os.chmod(path("bin/xdg-open"), 0o755)
PATH = path("bin") + ":" + os.environ["PATH"]


def opened(seconds=5):
    end = time.monotonic() + seconds
    while not os.path.exists(path("opened")) and time.monotonic() < end:
        time.sleep(0.05)
    if not os.path.exists(path("opened")):
        return None
    with open(path("opened")) as f:
        said = f.read().splitlines()
    os.unlink(path("opened"))
    return said


with View(a, env={"DISPLAY": ":7", "PATH": PATH}) as v:
    said = opened()
    tap.ok(said, "where there is a display, xdg-open is started")
    link = eval(said[0])[0] if said else v.url  # a list of texts that our own program wrote
    browser = int(said[5]) if said else 0
    tap.ok(said and said[1:5] == ["True", str(resource.getrlimit(resource.RLIMIT_DATA)[0]), "True", "True"], "with its own session, limits and signals", said)
    tap.ok(v.base.strip("/") not in link and link.startswith(f"http://127.0.0.1:{v.port}/"), "its command line has not the key", link != v.url)
    status, headers, _ = v.ask(urlsplit(link).path)
    tap.ok(status == 303 and headers["Location"] == v.base and headers["Cache-Control"] == "no-store", "but a link that leads there", status)
    status, headers, body = v.ask(urlsplit(link).path)
    tap.ok(status == 403 and v.base not in body.decode() and not headers["Location"], "once", body.decode().strip())
    tap.ok(v.status(v.base) == 200, "the printed address stays")
    tap.ok(v.end() == 0 and os.path.exists(f"/proc/{browser}"), "the browser outlives it")
    if browser:
        os.kill(browser, signal.SIGKILL)
for what, args, env in (("--no-browser", ["--no-browser"], {"DISPLAY": ":7"}), ("no display", [], {}), ("an empty DISPLAY", [], {"DISPLAY": ""})):
    with View(*args, a, env={**env, "PATH": PATH}) as v:
        tap.ok(v.status(v.base) == 200 and opened(0.7) is None, f"{what}: no browser")
with View(a, env={"WAYLAND_DISPLAY": "wayland-0", "PATH": PATH}) as v:
    said = opened()
    tap.ok(said, "Wayland is a display")
    if said:
        os.kill(int(said[5]), signal.SIGKILL)
with View(a, env={"DISPLAY": ":7", "PATH": path("monday")}) as v:
    time.sleep(0.3)
    tap.ok(v.status(v.base) == 200 and v.end() == 0 and v.said == "", "that there is no xdg-open is no error", v.said)

# Large files: the same totals, bounded memory.
LINES = 330_000
rng = random.Random(1)
total, stacks = 0, set()
with open(path("large.folded"), "w") as f:
    for i in range(LINES):
        n = rng.randrange(1, 90)
        total += n
        frames = [f"fn_{int(rng.random() ** 2 * 3000)}" for _ in range(rng.randrange(1, 6))]
        for depth in range(len(frames)):
            stacks.add((i % 997, *frames[:depth + 1]))
        f.write(f"main;mod{i % 997};{';'.join(frames)} {n}\n")
nodes = len(stacks) + 997 + 2  # main, and the root
with View(path("large.folded")) as v:
    begin = time.monotonic()
    meta = v.flame(max_nodes=100000)["meta"]
    took = time.monotonic() - begin
    tap.ok(meta["whole_total"] == total and meta["whole_nodes"] == nodes, f"{nodes} call paths: the total, and all of them", f"{took:.2f} s")
    whole = v.flame()
    tap.ok(len(whole["level"]) == meta["whole_nodes"] and sum(whole["self"]) == total, "without a cut")
    with open(f"/proc/{v.process.pid}/status") as f:
        peak = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) >> 10
    tap.ok(peak < 600 or "asan" in HEARTH, "memory", f"{peak} MiB")
sanitized = b"__asan_init" in open(HEARTH, "rb").read()
done = hearth("view", "--memory-limit", "16M", path("large.folded"), timeout=60) if not sanitized else None
tap.ok(sanitized or (done.returncode == 1 and done.stdout == "" and "--memory-limit" in done.stderr and done.stderr.count("\n") == 1),
       "more than the memory that may be used is refused in one line", done and done.stderr.strip())
tap.finish()
