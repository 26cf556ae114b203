#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Uploads and requests that lie: 4xx with the reason, nothing stored, memory within its budget, the next one served."""
import gzip
import json
import os
import socket
import struct
import threading
import time
import zlib

from judge import best_of
from collector import Collector, message, number, pprof, varint
from support import Profile, QUICK, Tap, path, status_kib

tap = Tap("hostile")
GOOD = pprof([(["main", "work"], [1, 10])])
SECONDS = 10**9
MEMORY_MAX_KIB = 250 * 1024  # a body of 32 MiB, 64 MiB expanded twice at a time, and what a server has anyway


def bomb(size, level=9):
    """gzip of @size zeros, made in pieces."""
    c = zlib.compressobj(level, zlib.DEFLATED, 31)
    piece = bytes(1 << 20)
    return b"".join([c.compress(piece) for _ in range(size >> 20)] + [c.flush()])


def lying_length(plain):
    """A gzip whose trailer promises another size."""
    packed = gzip.compress(plain)
    return packed[:-4] + struct.pack("<I", 0xFFFFFF00)


def deep(levels):
    data = b"x"
    for _ in range(levels):
        data = message(2, data)
        if len(data) > 1 << 20:
            break
    return data


def many_values():
    """Samples whose values fit no type."""
    return gzip.compress(message(1, number(1, 0)) + message(2, message(2, b"\x01" * 100000)) + message(6, b""))


def documents():
    plain = gzip.decompress(GOOD)
    yield "cut at every tenth byte", [plain[:i] for i in range(1, len(plain), 10)], {400}
    yield "cut gzip", [GOOD[:i] for i in range(1, len(GOOD), 7)], {400}
    yield "gzip with rubbish behind", [GOOD + b"rubbish"], {400}
    yield "gzip that lies about its length", [lying_length(plain)], {400}
    yield "a zip bomb, 200 MiB of zeros", [bomb(200 << 20)], {413, 400}
    yield "a zip bomb in a zip bomb", [gzip.compress(bomb(64 << 20), 9)], {413, 400}
    yield "many members", [gzip.compress(bytes(1 << 20), 9) * 100], {413, 400}
    yield "nested messages", [deep(100000)], {400}
    yield "a length of 2^63", [b"\x12" + varint(1 << 63) + b"abc", b"\x0a" + b"\xff" * 9 + b"\x01"], {400}
    yield "values without types", [many_values()], {400}
    yield "strings that are not there", [gzip.compress(message(1, number(1, 999) + number(2, 10**12)) + message(6, b""))], {400}
    yield "locations that are not there", [gzip.compress(message(1, number(1, 0)) + message(2, message(1, varint(77)) + message(2, varint(1)))
                                                         + message(6, b""))], {400}
    yield "no string table", [gzip.compress(message(2, message(2, varint(1))))], {400}
    yield "other formats", [b"\x7fELF" + bytes(500), b"%PDF-1.4", b"PK\x03\x04" + bytes(100), b'{"a":1}', b"PERFILE2" + bytes(200), os.urandom(5000)], {400}
    yield "a page", [b"<html>" + b"a" * 100000], {400}


def uploads(c):
    peak = 0
    for what, bodies, allowed in documents():
        answers = [c.upload("bad", "cpu", body) for body in bodies]
        good = all(a.status in allowed and a.json["code"] == a.status and a.error for a in answers)
        tap.ok(good, what, "" if good else [a for a in answers if a.status not in allowed][:2] or answers[:1])
        peak = max(peak, status_kib(c.process.pid, "VmRSS"))
    wrapped = c.upload("bad", "cpu", gzip.compress(bomb(100 << 20)), headers={"Content-Encoding": "gzip"})
    tap.ok(wrapped.status in (400, 413), "both layers of gzip share one budget", wrapped)
    labels = "&labels=" + "%2C".join(f"k{i}%3Dv" for i in range(33))
    tap.ok(c.upload("bad", "cpu", GOOD, labels).status == 400, "33 labels are too many")
    tap.ok(c.upload("b" * 2049, "cpu", GOOD).status == 400, "a service of 2,049 bytes")
    tap.ok(c.upload("bad", "cpu", GOOD, headers={"Idempotency-Key": "k" * 300}).status == 400, "a key of 300 bytes")
    tap.ok(c.upload("bad", "cpu", pprof([(["main"], [1, 1])], time_ns=5 * 10**18)).status == 400, "a time in 2128")
    big = c.ask("POST", "/api/0/profiles?service=bad&type=cpu", bytes(33 << 20))
    tap.ok(big.status == 413 and big.error, "a body over the limit", big)
    tap.ok(c.get("/api/0/services").status == 404, "nothing of all that is stored")
    tap.ok(peak < MEMORY_MAX_KIB, "memory stays within its budget", f"{peak} KiB")
    tap.ok(c.upload("good", "cpu", GOOD).status == 200, "the next good one is")


def table(*samples, extra=b"", strings=(b"", b"t", b"main")):
    """A plain profile with one sample type and location 1."""
    return (message(1, number(1, 1) + number(2, 1)) + b"".join(message(2, s) for s in samples) + message(4, number(1, 1) + message(4, number(1, 1)))
            + message(5, number(1, 1) + number(2, 2)) + extra + b"".join(message(6, s) for s in strings))


def sample(ids, label=b""):
    return message(1, ids) + message(2, varint(1)) + label


def pack(plain):
    """gzip without repetitions: at most 8:1, so that no limit of the ratio is met first."""
    c = zlib.compressobj(6, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return c.compress(plain) + c.flush()


def many_paths():
    """60,000 stacks of 1,000 frames that share nothing but their root."""
    out = [table()]
    for i in range(60000):
        one = bytes([1 + (i >> 12 & 15)] + [1 + (i >> 8 & 15)] + [1 + (i >> 4 & 15)] + [1 + (i & 15)]) + bytes([2]) * 996
        out.append(message(2, sample(one[::-1])))
    for i in range(2, 18):
        out.append(message(4, number(1, i) + number(3, i)))
    return pack(b"".join(out))


def greedy():
    """What is small, well formed and dear: (name, body, allowed statuses)."""
    yield "a sample of 10 million locations", pack(table(sample(b"\x01" * 10_000_000))), {200}
    yield "60 million stack nodes", many_paths(), {413}
    yield "16 million samples", pack(table() + message(2, message(2, b"\x01")) * (1 << 23)), {413}
    yield "4 million locations", pack(table(sample(b"\x01")) + b"".join(message(4, number(1, i) + number(3, i)) for i in range(2, 4_000_000))), {200, 413}
    yield "20 million lines", pack(table(sample(b"\x01")) + b"".join(
        message(4, number(1, i) + number(3, i) + message(4, number(1, 1)) * 60000) for i in range(2, 170))), {413}
    yield "20 million empty strings", pack(table(sample(b"\x01")) + b"2\x00" * 20_000_000), {413}


def peak_of(c, work):
    """KiB: the most that the collector took during @work, and what @work returned."""
    with open(f"/proc/{c.process.pid}/clear_refs", "w") as f:
        f.write("5")
    done = work()
    return status_kib(c.process.pid, "VmHWM"), done


def greed(c):
    deep_id = None
    for what, body, allowed in greedy():
        if len(body) > 30 << 20:
            raise RuntimeError(f"{what}: {len(body)} bytes")
        peak, answer = peak_of(c, lambda: c.upload("greedy", "cpu", body))
        deep_id = deep_id or answer.json["body"]["id"]
        tap.ok(answer.status in allowed and (answer.status == 200 or answer.error), what, answer)
        tap.ok(peak < MEMORY_MAX_KIB, f"{what}: memory stays within its budget", f"{peak} KiB for {len(body) >> 10} KiB")
    folded = b";".join([b"f"] * 10_000_000) + b";leaf 5\n"
    peak, answer = peak_of(c, lambda: c.ask("POST", "/ingest?name=folded.cpu", folded))
    tap.ok(answer.status == 200 and peak < MEMORY_MAX_KIB, "a folded stack of 10 million frames", f"{answer.status}, {peak} KiB")
    folded = b"".join(b"%x;" % i + b"g;" * 1000 + b"leaf 1\n" for i in range(15000))
    peak, answer = peak_of(c, lambda: c.ask("POST", "/ingest?name=greedy.cpu", folded))
    tap.ok(answer.status == 413 and peak < MEMORY_MAX_KIB, "15 million nodes of folded stacks", f"{answer.status}, {peak} KiB")
    tap.ok(c.metric("hearth_stacks_cut_total") == 2, "stacks that were cut are counted", c.metric("hearth_stacks_cut_total"))
    for target, leaf in ((f"/api/0/profiles/{deep_id}", "main"), ("/api/0/profiles/merge?service=folded&type=cpu&from=-1h&to=now", "leaf")):
        with open(path("cut.pb.gz"), "wb") as f:
            f.write(c.get(target).body)
        found = Profile(path("cut.pb.gz")).samples
        tap.ok([(len(s.names), s.names[-1], s.labels.get("stack_end")) for s in found] == [(1024, leaf, "cut:frame-limit")],
               "to the 1,024 frames next to the leaf, which the sample says", [(len(s.names), s.labels) for s in found[:3]])
    long_name = pprof([(["main", "n" * 50000], [1, 1])])
    answer = c.upload("long", "cpu", long_name)
    with open(path("long.pb.gz"), "wb") as f:
        f.write(c.get(f"/api/0/profiles/{answer.json['body']['id']}").body)
    names = Profile(path("long.pb.gz")).samples[0].names
    tap.ok([len(n) for n in names] == [4, 16384], "a symbol of 50,000 bytes is cut to 16 KiB", [len(n) for n in names])


def requests(c):
    """Bytes that are hardly HTTP."""
    host = b"Host: localhost\r\n"
    rows = [
        (b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"400"),  # no Host
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b"400"),
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Content-Length: -5\r\n\r\n", b"400"),
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n", b"4"),
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Transfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"501"),
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"501"),
        (b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + host + b"".join(b"X-%d: y\r\n" % i for i in range(150)) + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 40000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 400000 + b"\r\n\r\n", b"4"),
        (b"GET relative HTTP/1.1\r\n" + host + b"\r\n", b"4"),
        (b"GET /api/0/profiles?" + b"a=b&" * 100 + b" HTTP/1.1\r\n" + host + b"\r\n", b"400"),
        (b"GET /api/0/profiles/%zz HTTP/1.1\r\n" + host + b"\r\n", b"404"),
        (b"GET /api/0/services?%00=%00 HTTP/1.1\r\n" + host + b"\r\n", b"200"),
        (b"GET /" + b"../" * 50 + b"etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b"301"),
    ]
    for data, want in rows:
        answer = c.raw(data, wait=1.0)
        status = answer.split(b" ")[1] if answer.startswith(b"HTTP/1.1 ") else b"none"
        tap.ok(status.startswith(want) or (want == b"4" and status == b"none"), f"{data[:50]!r} is {want.decode()}", status)
    coded = c.raw(b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip\r\n\r\nhello", wait=1.0)
    tap.ok(json.loads(coded.split(b"\r\n\r\n")[1])["code"] == 501 and b"Connection: close" in coded, "a transfer coding nobody knows: an envelope, and the end", coded)
    for data in (b"", b"\0" * 100, b"GET", os.urandom(3000), b"\x16\x03\x01\x02\0\x01\0\x01\xfc", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        c.raw(data, wait=0.3)
    tap.ok(c.get("/healthz").status == 200, "rubbish harms nobody")


def slow(port):
    """Connections that send next to nothing are ended; those that wait on them are not."""
    with Collector("--header-timeout", "1s", "--idle-timeout", "2s", port=port) as c:
        held = [socket.create_connection(("127.0.0.1", c.port)) for _ in range(200)]
        for i, s in enumerate(held):
            if i % 2:
                s.sendall(b"GET / HT")
        begin = time.monotonic()

        def answered():
            asked = time.monotonic()
            status = c.get("/healthz").status
            return time.monotonic() - asked if status == 200 else 99

        soon, tries = best_of(answered, 1, cap=3)
        tap.ok(soon, "200 silent connections delay nobody", f"{[round(t, 3) for t in tries]} s")
        ended = 0
        for s in held:
            s.settimeout(8)
            try:
                ended += s.recv(100) == b""
            except OSError:
                pass
            s.close()
        tap.ok(ended == len(held) and time.monotonic() - begin < 8, "and are ended", f"{ended} in {time.monotonic() - begin:.1f} s")


def leaves_while_asking(c):
    """Clients that go away in the middle of everything."""
    for i in range(50):
        s = socket.create_connection(("127.0.0.1", c.port))
        s.sendall(b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + bytes(i * 100))
        s.close()
    threads = [threading.Thread(target=lambda: [c.upload("good", "cpu", GOOD) for _ in range(20)]) for _ in range(8)]
    for t in threads:
        t.start()
    for _ in range(100):
        s = socket.create_connection(("127.0.0.1", c.port))
        s.sendall(b"GET /api/0/profiles/merge?service=good&type=cpu&from=-1h&to=now HTTP/1.1\r\nHost: localhost\r\n\r\n")
        s.close()
    for t in threads:
        t.join()
    time.sleep(3.5)
    tap.ok(c.metric("hearth_http_body_bytes") == 0, "no body is kept of those that left", c.metric("hearth_http_body_bytes"))
    tap.ok(c.metric("hearth_http_connections") < 5, "nor their connections", c.metric("hearth_http_connections"))
    tap.ok(c.metric("hearth_queries_cancelled_total") > 0, "their queries stopped", c.metric("hearth_queries_cancelled_total"))
    listed = c.get("/api/0/profiles?service=good&from=-1h&to=now").headers["X-Total-Count"]
    tap.ok(listed == str(161), "what was sent meanwhile is there", listed)


def graceful():
    """An upload under way when the end is asked for is finished; one that never ends is not waited for long."""
    head = b"POST /api/0/profiles?service=x&type=cpu HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
    c = Collector("--exit-timeout", "5s")
    c.start()
    s = socket.create_connection(("127.0.0.1", c.port))
    s.sendall(head + GOOD[:20])
    time.sleep(0.3)
    c.process.terminate()
    time.sleep(0.5)
    alive = c.process.poll() is None
    s.sendall(GOOD[20:])
    s.settimeout(5)
    answer = s.recv(4096)
    tap.ok(alive and b" 200 " in answer.split(b"\r\n")[0], "an upload under way is finished after SIGTERM", answer[:60])
    tap.ok(c.process.wait(timeout=10) == 0, "and then it ends well")
    c = Collector("--exit-timeout", "1s", folder=c.folder)
    c.start()
    tap.ok(c.get("/api/0/profiles?service=x&from=-1h&to=now").headers["X-Total-Count"] == "1", "what it acknowledged is there")
    s = socket.create_connection(("127.0.0.1", c.port))
    s.sendall(head + GOOD[:20])
    time.sleep(0.3)
    begin = time.monotonic()
    tap.ok(c.stop() == 0 and time.monotonic() - begin < 4, "one that never ends is not waited for", f"{time.monotonic() - begin:.1f} s")
    s.close()


def memory_of_bodies():
    """Many large uploads at once: what does not fit gets 503 and comes again."""
    with Collector("--max-uploads-memory", "16M") as c:
        body = b"\x1f\x8b" + os.urandom(7 << 20)
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(c.upload("x", "cpu", body).status)) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        tap.ok(set(statuses) <= {400, 503} and len(statuses) == 8, "uploads beyond the memory of bodies get 503", sorted(statuses))
        tap.ok(c.upload("x", "cpu", GOOD).status == 200, "and later ones are taken")


with Collector() as c:
    uploads(c)
    requests(c)
    leaves_while_asking(c)
    greed(c)
    tap.ok(c.stop() == 0, "it ends well after all that")
slow(None)
graceful()
memory_of_bodies()
tap.finish()
