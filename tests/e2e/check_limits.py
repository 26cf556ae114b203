#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The collector's limits, row by row (docs/collector.md): what is over one is refused or cut, said, and counted."""
import base64
import os
import threading
import time

from collector import Collector, pprof
from support import Tap, hearth, path, status_kib

tap = Tap("limits")
GOOD = pprof([(["main", "work"], [1, 10])])
DAY = 86400 * 10**9


def labels_of(answer):
    return {l["key"]: l["value"] for l in answer.json["body"].get("labels", [])}


def names(c):
    def label(key, value):
        return c.upload("names", "cpu", GOOD, f"&labels={key}%3D{value}").status

    rows = [("32 labels", c.upload("names", "cpu", GOOD, "&labels=" + "%2C".join(f"k{i}%3Dv" for i in range(32))).status, 200),
            ("33 labels", c.upload("names", "cpu", GOOD, "&labels=" + "%2C".join(f"k{i}%3Dv" for i in range(33))).status, 400),
            ("a label's name of 256 bytes", label("k" * 256, "v"), 200), ("of 257", label("k" * 257, "v"), 400),
            ("a label's value of 2,048 bytes", label("k", "v" * 2048), 200), ("of 2,049", label("k", "v" * 2049), 400),
            ("a service of 2,048 bytes", c.upload("s" * 2048, "cpu", GOOD).status, 200), ("of 2,049", c.upload("s" * 2049, "cpu", GOOD).status, 400),
            ("an Idempotency-Key of 256 bytes", c.upload("names", "cpu", GOOD, headers={"Idempotency-Key": "k" * 256}).status, 200),
            ("of 257", c.upload("names", "cpu", GOOD, headers={"Idempotency-Key": "k" * 257}).status, 400)]
    for what, status, want in rows:
        tap.ok(status == want, f"{what}: {want}", status)


def times(c):
    before = c.metric("hearth_profiles_out_of_time_total")
    now = int(time.time())
    rows = [(-7 * 86400 + 60, 200), (-7 * 86400 - 60, 422), (540, 200), (660, 422)]
    for offset, want in rows:
        answer = c.ask("POST", f"/ingest?name=times.cpu&from={now + offset}", b"a;b 1\n")
        tap.ok(answer.status == want, f"a push {offset} s from now: {want}", answer)
    tap.ok(c.metric("hearth_profiles_out_of_time_total") - before == 2, "counted", c.metric("hearth_profiles_out_of_time_total"))


def series():
    with Collector("--max-series", "20") as c:
        for i in range(20):
            c.upload("many", "cpu", GOOD, f"&labels=id%3D{i}")
        tap.ok(c.metric("hearth_series_active") == 20, "20 series", c.metric("hearth_series_active"))
        over = [c.upload("many", "cpu", GOOD, f"&labels=id%3D{i}") for i in range(20, 60)]
        tap.ok({a.status for a in over} == {200} and all(labels_of(a) == {"__overflow__": "true"} for a in over),
               "series over --max-series lose their labels", labels_of(over[0]))
        again = c.upload("many", "cpu", GOOD, "&labels=id%3D7")
        tap.ok(labels_of(again) == {"id": "7"}, "those that were there go on", labels_of(again))
        services = [c.upload(f"s{i}", "cpu", GOOD).json["body"]["service"] for i in range(10)]
        tap.ok(set(services[3:]) == {"__overflow__"}, "and then their service", services)
        tap.ok(c.ask("POST", "/ingest?name=pushed.cpu", b"a;b 1\n").status == 200, "by /ingest, too")
        found = c.get("/api/0/profiles?service=many&from=-1h&to=now&labels=__overflow__%3Dtrue").headers["X-Total-Count"]
        tap.ok(found == "40", "nothing is lost", found)
        folded = c.metric("hearth_profiles_overflowed_total")
        said = open(c.log).read().count("too many series")
        tap.ok(folded == 51 and said == 1, "counted, and said once", f"{folded}, {said}")


def rate():
    folder = path("rate")
    os.mkdir(folder)
    tokens = [hearth("token", "create", "--scope", "ingest", "--data-dir", folder).stdout.strip() for _ in range(2)]
    read = hearth("token", "create", "--scope", "read", "--data-dir", folder).stdout.strip()
    body = pprof([(["main", os.urandom(200000).hex()], [1, 10])])
    with Collector("--max-rate", "100K", folder=folder) as c:
        def send(token):
            return c.upload("fast", "cpu", body, headers={"Authorization": f"Bearer {token}"})

        answers = [send(tokens[0]) for _ in range(6)]
        statuses = [a.status for a in answers]
        tap.ok(statuses[0] == 200 and 429 in statuses and set(statuses) <= {200, 429}, "over its bytes a second a sender gets 429", statuses)
        late = next(a for a in answers if a.status == 429)
        wait = int(late.headers["Retry-After"])
        tap.ok(1 <= wait < 60 and "bytes a second" in late.error, "with Retry-After and the reason", (wait, late.error))
        users = [c.upload("fast", "cpu", body, headers={"Authorization": "Basic " + base64.b64encode(f"x{i}:{tokens[0]}".encode()).decode()}).status for i in range(3)]
        tap.ok(set(users) == {429}, "nor does it get more under other user names", users)
        statuses += users
        tap.ok(send(tokens[1]).status == 200, "another sender does not")
        metrics = c.ask("GET", "/metrics", headers={"Authorization": f"Bearer {read}"})
        tap.ok(metrics.status == 200 and f"hearth_rate_limited_total {statuses.count(429)}" in metrics.body.decode(), "reading is not limited, and it is counted")
        time.sleep(wait)
        tap.ok(send(tokens[0]).status == 200, "after that it may go on")
    with Collector("--max-rate", "100K") as c:
        statuses = {c.upload("fast", "cpu", body).status for _ in range(6)}
        tap.ok(statuses == {200}, "programs of this machine need no token and have no limit", statuses)


def days():
    """An import of years: few files are open, all is there."""
    count = 200
    with Collector("--retention", "0", "--retention-free", "0", "--max-past", "0") as c:
        before = len(os.listdir(f"/proc/{c.process.pid}/task"))
        statuses = [c.upload("old", "cpu", pprof([(["main"], [1, 1])], time_ns=(6000 + i) * DAY)).status for i in range(count)]
        tap.ok(set(statuses) == {200}, f"profiles of {count} days", set(statuses))
        threads, files = len(os.listdir(f"/proc/{c.process.pid}/task")) - before, len(os.listdir(f"/proc/{c.process.pid}/fd"))
        tap.ok(threads <= 70 and files <= 900, "do not keep a thread and five files each", f"{threads} threads, {files} files, {status_kib(c.process.pid, 'VmRSS')} KiB")
        listed = c.get("/api/0/profiles?service=old&from=0&to=now").headers["X-Total-Count"]
        merged = c.get("/api/0/profiles/merge?service=old&type=cpu&from=0&to=now").headers["X-Profiles-Merged"]
        tap.ok(listed == merged == str(count), "all are there", (listed, merged))
        late = c.upload("old", "cpu", pprof([(["main"], [1, 1])], time_ns=6000 * DAY))
        tap.ok(late.status == 200, "a day that was closed takes more", late)
        tap.ok(c.stop() == 0, "it ends well")
    done = hearth("store", "check", "--data-dir", c.folder)
    tap.ok(done.returncode == 0 and ": 0 problems" in done.stdout, "hearth store check finds nothing", done.stdout.strip() + done.stderr)


def slow_readers():
    """200 clients ask for 8 MiB each and take nothing."""
    import socket
    with Collector("--max-answers-memory", "32M") as c:
        for _ in range(8):
            c.upload("large", "cpu", pprof([([os.urandom(8000).hex()], [1, 1]) for _ in range(128)]))
        query = "/api/0/profiles/merge?service=large&type=cpu&from=-1h&to=now"
        size = len(c.get(query).body)
        before, held = status_kib(c.process.pid, "VmRSS"), []
        for _ in range(200):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", c.port))
            s.settimeout(30)
            s.sendall(f"GET {query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            held.append(s)
        begin, statuses, peak = time.monotonic(), [], 0
        for s in held:
            statuses.append(s.recv(12).split(b" ")[1].decode())
            peak = max(peak, status_kib(c.process.pid, "VmRSS"))
        took = time.monotonic() - begin
        tap.ok(set(statuses) == {"200", "503"} and statuses.count("200") <= 200, f"200 slow readers of {size >> 20} MiB: beyond the memory of answers 503",
               f"{statuses.count('200')} of 200 in {took:.1f} s")
        tap.ok(peak < before + 180 * 1024, "memory stays bounded", f"{before} to {peak} KiB")
        waiting, refused = c.metric("hearth_http_answer_bytes"), c.metric("hearth_http_refused_answers_total")
        tap.ok(0 < waiting <= 32 << 20 and refused == statuses.count("503"), "what waits and what was refused is counted", (waiting, refused))
        tap.ok(c.get("/healthz").status == 200 and c.upload("small", "cpu", GOOD).status == 200, "everything small goes on")
        late = c.get(query)
        tap.ok(late.status == 503 and late.headers["Retry-After"] and "wait" in late.error, "the next one is told when to come again", late)
        end = time.monotonic() + 60
        while c.metric("hearth_http_answer_bytes") and time.monotonic() < end:
            time.sleep(0.5)
        tap.ok(c.metric("hearth_http_answer_bytes") == 0 and c.get(query).status == 200, "readers that take nothing are ended", f"after {time.monotonic() - begin:.0f} s")
        for s in held:
            s.close()


def connections():
    import socket
    with Collector("--max-connections", "20") as c:
        held = []
        for _ in range(40):
            s = socket.create_connection(("127.0.0.1", c.port), timeout=0.5)
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            held.append(s)
        answered = 0
        for s in held:
            try:
                answered += s.recv(100).startswith(b"HTTP/1.1 200")
            except OSError:
                pass
        for s in held:
            s.close()
        tap.ok(answered >= 36, "above four fifths of --max-connections an idle one makes room for each new one", answered)
        time.sleep(0.5)
        made, now = c.metric("hearth_http_made_room_total"), c.metric("hearth_http_connections")
        tap.ok(made >= 20 and now <= 20, "and that is counted", (made, now))


def leavers():
    """Who leaves in the middle of a body is let go of at once."""
    import socket
    start = f"POST /ingest?name=left.cpu HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 20}\r\n\r\n".encode()
    with Collector() as c:
        for _ in range(400):
            with socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
                s.sendall(start + b"main 1\n" * 4000)
        end = time.monotonic() + 0.8  # after a second the clock would end them
        held = least = c.metric("hearth_http_connections")
        while least > 80 and time.monotonic() < end:
            time.sleep(0.02)
            least = min(least, c.metric("hearth_http_connections"))
        tap.ok(least <= 80, "connections whose senders left in the middle of a body do not stay", f"{held}, then {least}")


def stopping():
    """Uploads under way at the end are not refused: their sender would give them up."""
    body = b"".join(b"main;f%d;g%d;h%d 1\n" % (i % 997, i, i // 3) for i in range(200000))  # decoded for about a second
    with Collector("--exit-timeout", "100ms") as c:
        answers = []

        def send():
            try:
                answers.append(c.ask("POST", "/ingest?name=late.cpu", body))
            except OSError:
                pass  # ended before it was answered: it is sent again, too

        sender = threading.Thread(target=send)
        sender.start()
        time.sleep(0.2)
        status = c.stop()
        sender.join()
    fine = [a.status == 200 or (a.status == 503 and a.headers["Retry-After"]) for a in answers]
    tap.ok(status == 0 and all(fine), "an upload under way when the collector stops is told to come again", answers)


with Collector() as c:
    names(c)
    times(c)
series()
rate()
days()
slow_readers()
connections()
leavers()
stopping()
tap.finish()
