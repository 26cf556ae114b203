#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""profefe's HTTP API over a real socket, row by row, and merges against go tool pprof over the same files."""
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import quote

from collector import Collector, content, free_port, go_profiles, pprof, pprof_raw, top
from support import HERE, QUICK, ROOT, Profile, Tap, hearth, path, run

tap = Tap("api")
DAY = 1709208000  # 2024-02-29T12:00:00Z
PROFILE = pprof([(["main", "work"], [3, 30]), (["main", "idle"], [1, 10])])


def at(seconds, kind="cpu", samples=None, **options):
    return pprof(samples or [(["main", f"f{seconds % 7}"], [1, 10])], time_ns=(DAY + seconds) * 10**9, **options)


def expect(answer, status, error=None, what=""):
    good = answer.status == status
    if status not in (200, 204, 301) and good:
        envelope = answer.json
        good = envelope["code"] == status and answer.headers["Content-Type"] == "application/json"
        good = good and "body" not in envelope and "Content-Disposition" not in answer.headers
        good = good and answer.body.endswith(b"\n")
        if error is not None:
            good = good and error in envelope["error"]
    tap.ok(good, what or f"{status} {error or ''}", answer)


def parameters(c):
    """Section 2.4: the checks in their order."""
    up, ls, mg = "/api/0/profiles?", "/api/0/profiles?", "/api/0/profiles/merge?"
    rows = [
        ("POST", up + "type=cpu", 'bad request: missing "service"'),
        ("POST", up + "service=&type=cpu", 'bad request: missing "service"'),
        ("POST", up + "service=s&type=cpu&labels=k%3D%25zz", 'bad request: bad "labels" "k=%zz"'),
        ("POST", up + "service=s&labels=%25z&type=nope", 'bad "labels"'),
        ("POST", up + "service=s&type=cpu&created_at=yesterday",
         'bad request: bad "created_at" "yesterday": time in unsupported format "yesterday"'),
        ("POST", up + "service=s&type=cpu&created_at=0001-01-01T00:00:00", 'bad "created_at"'),
        ("POST", up + "service=s&type=nope", "bad request: unknown profile type"),
        ("POST", up + "service=s", "bad request: unknown profile type"),
        ("GET", ls + "service=s", 'bad request: missing "from"'),
        ("GET", ls + "service=s&from=x", 'bad request: bad "from" timestamp "x": time in unsupported format "x"'),
        ("GET", ls + "service=s&from=2024-02-29T00:00:00", 'bad request: missing "to"'),
        ("GET", ls + "service=s&from=2024-02-29T00:00:00&to=2024-02-30T00:00:00", 'bad request: bad "to" timestamp'),
        ("GET", ls + "service=s&from=2024-02-29T00:00:00&to=2024-02-29T01:00:00&limit=x",
         'bad request: bad "limit" "x"'),
        ("GET", ls + "service=s&from=2024-02-29T00:00:00&to=2024-02-29T01:00:00&limit=-x", 'bad "limit" "-x"'),
        ("GET", ls + "service=s&from=2024-02-29T02:00:00&to=2024-02-29T01:00:00",
         "bad request: CreatedAtMin after CreatedAtMax"),
        ("GET", ls + "service=s&from=2024-02-29T00:00:00&to=2024-02-29T01:00:00&type=nope", "unknown profile type"),
        ("GET", ls + "from=2024-02-29T00:00:00&to=2024-02-29T01:00:00", 'missing "service"'),
        ("GET", mg + "service=s&type=cpu", 'bad request: missing "from"'),
        ("GET", mg + "type=nope", 'missing "service"'),
    ]
    for method, target, error in rows:
        expect(c.ask(method, target, PROFILE if method == "POST" else None), 400, error, f"{method} {target}")
    tap.ok(c.get("/api/0/services").status == 404, "nothing was stored by refused uploads")
    expect(c.get("/api/0/profiles?service=s&service=t&from=2024-02-29T00:00:00&to=2024-02-29T00:00:00&instance_id=1"),
           404, "nothing found", "the first of repeated keys counts, unknown keys do nothing, from may equal to")


def uploads(c):
    """Section 2.5, 3, 4, 5."""
    labels = quote("b=2,a=1,,=x,only,team=a%2Cb")
    answer = c.upload("shop%20api", "cpu", PROFILE, f"&labels={labels}&created_at=2024-02-29T12:00:05",
                      {"Content-Type": "text/whatever"})
    body = answer.json.get("body", {})
    tap.ok(answer.status == 200 and answer.json["code"] == 200 and answer.headers["Content-Type"] == "application/json",
           "an upload answers with the envelope", answer)
    tap.ok(set(body) == {"id", "type", "service", "labels", "created_at"}, "the profile object's fields", body)
    tap.ok(body.get("labels") == [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}, {"key": "only", "value": ""},
                                  {"key": "team", "value": "a,b"}], "labels: sorted, twice decoded", body.get("labels"))
    tap.ok(body.get("created_at") == "2024-02-29T12:00:05Z" and body.get("service") == "shop api", "created_at, service")
    tap.ok(len(body.get("id", "")) == 20 and set(body["id"]) <= set("0123456789abcdefghijklmnopqrstuv"), "the id's form",
           body.get("id"))
    wins = c.upload("t", "cpu", at(0), "&created_at=2020-01-01T00:00:00")
    tap.ok(wins.json["body"]["created_at"] == "2024-02-29T12:00:00Z", "a profile's own time wins", wins)
    now = c.upload("t", "other", PROFILE).json["body"]["created_at"]
    tap.ok(abs(time.time() - time.mktime(time.strptime(now, "%Y-%m-%dT%H:%M:%SZ")) + time.timezone) < 60,
           "without any time it is now", now)
    for text, want in (("2024-02-29T12:00:05.123", "2024-02-29T12:00:05Z"), ("2024-02-29T13:00:05%2B01:00", "2024-02-29T12:00:05Z"),
                       ("1709208005", "2024-02-29T12:00:05Z"), ("1709208005123", "2024-02-29T12:00:05Z"),
                       ("1709208005123456789", "2024-02-29T12:00:05Z")):
        got = c.upload("times", "cpu", PROFILE, f"&created_at={text}")
        tap.ok(got.status == 200 and got.json["body"]["created_at"] == want, f"created_at={text}", got)
    for kind in ("cpu", "heap", "block", "mutex", "goroutine", "threadcreate", "other", "allocs", "wall", "offcpu",
                 "exceptions"):
        got = c.upload("kinds", kind, PROFILE)
        tap.ok(got.status == 200 and got.json["body"]["type"] == kind and "labels" not in got.json["body"],
               f"type {kind}", got)
    tap.ok(c.upload("kinds", "%20cpu%20", PROFILE).status == 200, "blanks around a type")
    tap.ok(c.upload("kinds", "auto", PROFILE).json["body"]["type"] == "cpu", "type=auto finds cpu")
    for types, want in (((("wall", "nanoseconds"),), "wall"), ((("waits", "count"), ("off_cpu", "nanoseconds")), "offcpu"),
                        ((("inuse_space", "bytes"),), "heap"), ((("goroutine", "count"),), "goroutine"), ((("x", "y"),), "other")):
        got = c.upload("kinds", "auto", pprof([(["main"], [1] * len(types))], types=types))
        tap.ok(got.json["body"]["type"] == want, f"type=auto finds {want}", got)
    empty = pprof([])
    for kind in ("block", "mutex"):
        answer = c.upload("kinds", kind, empty)
        tap.ok(answer.status == 204 and not answer.body, f"an empty {kind} profile is no error", answer)
    tap.ok(c.metric("hearth_profiles_empty_total") == 2, "and is counted")
    expect(c.upload("kinds", "cpu", empty), 400,
           "malformed profile (could not parse pprof profile: profile is empty: no samples)")
    for name, bytes_ in (("nothing", b""), ("text", b"hello"), ("cut gzip", PROFILE[:-5]), ("cut", gzip.decompress(PROFILE)[:-3]),
                         ("html", b"<html>"), ("zeros", bytes(1000))):
        expect(c.upload("kinds", "cpu", bytes_), 400, "malformed profile (could not parse pprof profile: ", name)
    for name in ("heap_v2", "cpu64le", "contention"):
        with open(os.path.join(ROOT, "tests/corpus/legacy", name), "rb") as f:
            legacy = f.read()
        for form, body in (("bare", legacy), ("gzip", gzip.compress(legacy))):
            answer = c.upload("legacy", "other", body, f"&labels=of%3D{name}{form}")
            tap.ok(answer.status == 200, f"legacy {name}, {form}", answer)
    wrapped = c.upload("wrapped", "cpu", gzip.compress(PROFILE), headers={"Content-Encoding": "gzip"})
    raw = c.upload("wrapped", "cpu", gzip.compress(gzip.decompress(PROFILE)), headers={"Content-Encoding": "gzip"})
    tap.ok(wrapped.status == 200 and raw.status == 200, "Content-Encoding: gzip around both forms", (wrapped, raw))
    expect(c.upload("wrapped", "cpu", PROFILE[1:], headers={"Content-Encoding": "gzip"}), 400, "gzip")
    expect(c.upload("wrapped", "cpu", PROFILE, headers={"Content-Encoding": "br"}), 415)


def keys(c):
    first = c.upload("keys", "cpu", PROFILE, headers={"Idempotency-Key": "k1"}).json["body"]["id"]
    again = c.upload("keys", "cpu", PROFILE, headers={"Idempotency-Key": "k1"}).json["body"]["id"]
    twice = [c.upload("keys", "cpu", PROFILE, headers={"X-Request-Id": "r1"}).json["body"]["id"] for _ in range(2)]
    listed = c.get("/api/0/profiles?service=keys&from=-1h&to=now").json["body"]
    tap.ok(first == again and len(set(twice)) == 2 and len(listed) == 3, "Idempotency-Key stores once, X-Request-Id does not")
    found = []
    threads = [threading.Thread(target=lambda: found.append(
        c.upload("same", "cpu", PROFILE, headers={"Idempotency-Key": "k2"}).json["body"]["id"])) for _ in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    c.stop(signal.SIGKILL)
    c.start()
    found.append(c.upload("same", "cpu", PROFILE, headers={"Idempotency-Key": "k2"}).json["body"]["id"])
    listed = c.get("/api/0/profiles?service=same&from=-1h&to=now").json["body"]
    tap.ok(len(found) == 25 and len(set(found)) == 1 and len(listed) == 1, "24 at once and one after kill -9: stored once", set(found))


def lists(c):
    ids = [c.upload("list", "cpu" if i % 2 else "heap", at(i), "&labels=" + quote(f"n={i},all=yes,all=si")).json["body"]["id"]
           for i in (4, 0, 2, 1, 3)]
    span = "from=2024-02-29T12:00:00&to=2024-02-29T12:00:04"
    answer = c.get(f"/api/0/profiles?service=list&{span}")
    times = [p["created_at"][-3:-1] for p in answer.json["body"]]
    tap.ok(times == ["00", "01", "02", "03", "04"] and answer.headers["X-Total-Count"] == "5",
           "sorted by time, both ends included", times)
    tap.ok(sorted(p["id"] for p in answer.json["body"]) == sorted(ids), "with the ids of the uploads")
    rows = [("limit=2", ["03", "04"]), ("type=cpu", ["01", "03"]), ("labels=n%3D2", ["02"]),
            ("labels=all%3Dyes", ["00", "01", "02", "03", "04"]), ("labels=all%3Dsi,n%3D1", ["01"]), ("limit=0", times),
            ("before=2024-02-29T12:00:02", ["00", "01"]), ("type=", times)]
    for extra, want in rows:
        got = c.get(f"/api/0/profiles?service=list&{span}&{extra}")
        tap.ok(got.status == 200 and [p["created_at"][-3:-1] for p in got.json["body"]] == want, f"list {extra}", got)
    expect(c.get(f"/api/0/profiles?service=list&{span}&labels=n%3D9"), 404, "nothing found")
    expect(c.get(f"/api/0/profiles?service=lis&{span}"), 404, "nothing found", "a prefix of a service is another service")
    same = [c.upload("pages", "cpu", at(9)).json["body"]["id"] for _ in range(7)]
    seen, before = [], ""
    for _ in range(5):
        page = c.get(f"/api/0/profiles?service=pages&from=2024-02-29T00:00:00&to=now&limit=3{before}")
        if page.status != 200:
            break
        seen = [p["id"] for p in page.json["body"]] + seen
        if "X-Next-Before" not in page.headers:
            break
        before = "&before=" + page.headers["X-Next-Before"]
    tap.ok(sorted(seen) == sorted(same) and len(seen) == 7, "pages of profiles of one moment have each once", len(seen))
    tap.ok(c.get("/api/0/profiles/?service=list&" + span).status == 200, "a slash at the end means the same")


def merges(c):
    span = "from=2024-02-29T12:00:00&to=2024-02-29T13:00:00"
    ids = []
    for i in range(3):
        body = at(i, samples=[(["main", "shared"], [1, 10]), (["main", f"own{i}"], [2, 20])])
        ids.append(c.upload("merge", "cpu", body).json["body"]["id"])
    answer = c.get(f"/api/0/profiles/merge?service=merge&type=cpu&{span}")
    open(path("merged.pb.gz"), "wb").write(answer.body)
    found = {s.names[-1]: s.values for s in Profile(path("merged.pb.gz")).samples}
    tap.ok(found == {"shared": [3, 30], "own0": [2, 20], "own1": [2, 20], "own2": [2, 20]}, "a merge adds up", found)
    tap.ok(answer.headers["Content-Type"] == "application/octet-stream" and answer.body[:2] == b"\x1f\x8b" and
           answer.headers["Content-Disposition"] == 'attachment; filename="merge-cpu.pb.gz"' and
           answer.headers["X-Profiles-Merged"] == "3", "its headers", dict(answer.headers))
    last = c.get(f"/api/0/profiles/merge?service=merge&type=cpu&{span}&limit=1")
    tap.ok(last.headers["X-Profiles-Merged"] == "1", "limit takes the most recent ones")
    for kind, error in (("", "unknown type"), ("nope", "unknown type"), ("trace", "trace type")):
        expect(c.get(f"/api/0/profiles/merge?service=merge&type={kind}&{span}"), 405, f"can't merge profiles of {error}")
    expect(c.get(f"/api/0/profiles/merge?service=nobody&type=cpu&{span}"), 404, "nothing found")
    tap.ok(c.ask("HEAD", f"/api/0/profiles/merge?service=merge&type=cpu&{span}").body == b"", "HEAD of a merge has no body")
    c.upload("mixed", "other", at(0))
    other = c.upload("mixed", "other", at(1, samples=[(["main"], [5, 7])], types=(("samples", "count"), ("wall", "nanoseconds"))))
    expect(c.get(f"/api/0/profiles/merge?service=mixed&type=other&{span}"), 409, "samples/count,wall/nanoseconds")
    compat = c.get(f"/api/0/profiles/merge?service=mixed&type=other&{span}&compat=1")
    open(path("compat.pb.gz"), "wb").write(compat.body)
    reduced = Profile(path("compat.pb.gz"))
    tap.ok(reduced.types == [("samples", "count")] and sum(s.count for s in reduced.samples) == 6,
           "compat=1 merges what they share", reduced.types)
    c.upload("twice", "other", at(0, samples=[(["main"], [1] * 30 + [2])], types=(("samples", "count"),) * 30 + (("wall", "nanoseconds"),)))
    c.upload("twice", "other", at(1, samples=[(["main"], [5])], types=(("samples", "count"),)))
    compat = c.get(f"/api/0/profiles/merge?service=twice&type=other&{span}&compat=1")
    open(path("compat.pb.gz"), "wb").write(compat.body)
    reduced = Profile(path("compat.pb.gz"))
    tap.ok(reduced.types == [("samples", "count")] and sum(s.count for s in reduced.samples) == 6,
           "of columns with one name the first one", reduced.types)
    # Section 2.8
    one = c.get(f"/api/0/profiles/{ids[0]}")
    open(path("one.pb.gz"), "wb").write(one.body)
    tap.ok(one.status == 200 and {s.names[-1]: s.values for s in Profile(path("one.pb.gz")).samples} ==
           {"shared": [1, 10], "own0": [2, 20]} and ids[0] in one.headers["Content-Disposition"], "one by its id", one)
    for plus in ("+", "%2B", "%252B"):
        both = c.get(f"/api/0/profiles/{ids[0]}{plus}{ids[1]}")
        open(path("both.pb.gz"), "wb").write(both.body)
        tap.ok({s.names[-1]: s.values for s in Profile(path("both.pb.gz")).samples}["shared"] == [2, 20], f"two ids with {plus}")
    double = c.get(f"/api/0/profiles/{ids[0]}+{ids[0]}")
    open(path("double.pb.gz"), "wb").write(double.body)
    tap.ok({s.names[-1]: s.values for s in Profile(path("double.pb.gz")).samples}["own0"] == [4, 40], "an id twice counts twice")
    unknown = "00000000000000000000"
    skipped = c.get(f"/api/0/profiles/{ids[0]}+{unknown}+bad.id")
    tap.ok(skipped.status == 200 and skipped.headers["X-Profiles-Skipped"] == f"{unknown}+bad.id", "unknown ids are skipped and named",
           dict(skipped.headers))
    for target, status, error in ((unknown, 404, "nothing found"), ("not-an-id", 404, "nothing found"),
                                  ("P0.shop/1/9bsv0s3ipt32jfck6kt0,dc=fra", 404, "nothing found"),
                                  (f"{unknown}+{unknown}", 404, "nothing found"), (f"{ids[0]}++{ids[1]}", 400, "empty id"),
                                  (f"{ids[0]}+", 400, "empty id"), (f"{ids[0]}+{other.json['body']['id']}", 409, "types")):
        expect(c.get(f"/api/0/profiles/{target}"), status, error, f"download {target}")
    trace = b"go 1.22 trace\0\0\0" + os.urandom(500)
    stored = c.upload("traces", "trace", trace).json["body"]["id"]
    tap.ok(c.get(f"/api/0/profiles/{stored}").body == trace, "a trace comes back as it was")
    tap.ok(c.upload("traces", "auto", trace).json["body"]["type"] == "trace", "type=auto finds a trace")
    expect(c.get(f"/api/0/profiles/{ids[0]}+{stored}"), 405, "trace")


def profefe_agent(c):
    """profefe's own agent: from the Go proxy, or from the folder PROFEFE_SOURCE."""
    folder, source = path("profefe_agent"), os.environ.get("PROFEFE_SOURCE")
    shutil.copytree(os.path.join(HERE, "workloads/profefe_agent"), folder)
    env = {**os.environ, "GOFLAGS": "-mod=mod"}
    if source:
        run("go", "mod", "edit", f"-replace=github.com/profefe/profefe={source}", "-require=github.com/profefe/profefe@v0.0.0",
            cwd=folder, env=env, check=True)
    else:
        fetched = run("go", "get", "github.com/profefe/profefe@latest", cwd=folder, env=env)
        if fetched.returncode:
            tap.skip("profefe's agent", f"cannot be fetched: {fetched.stderr.strip().splitlines()[-1].strip()}")
            return
    built = run("go", "build", "-o", "agent", ".", cwd=folder, env=env)
    if not tap.ok(built.returncode == 0, "a program with profefe's agent is built", built.stderr[-300:]):
        return
    for url in (c.url, c.url + "/"):
        done = run(os.path.join(folder, "agent"), url, 14, timeout=60)
        tap.ok(done.returncode == 0, f"profefe's agent sends to {url}", done.stderr)
    answer = c.get("/api/0/profiles?service=go.shop&type=cpu&labels=region%3Deu,path%3Da%252Cb%253Dc&from=-1h&to=now&limit=-1")
    tap.ok(answer.status == 200 and len(answer.json["body"]) >= 2, "its profiles are found by its labels", answer)


def profefe_clients():
    """What profefe answers beyond its manual: slashes at both ends of a path, any method, a negative limit."""
    with Collector("--retention", "0", "--retention-free", "0") as c:
        for target in ("/api/0/profiles", "/api/0/profiles/", "//api/0/profiles", "//api/0/profiles/"):
            answer = c.ask("POST", f"{target}?service=s&type=cpu", PROFILE)
            tap.ok(answer.status == 200, f"POST {target}", answer)
        for target in ("/api/0/profiles/", "//api/0/profiles/"):
            answer = c.get(f"{target}?service=s&type=cpu&from=1970-01-01T00:00:00&to=now&limit=-1")
            tap.ok(answer.status == 200 and len(answer.json["body"]) == 4, f"GET {target} with limit=-1 lists all", answer)
        answer = c.get(f"/api/0/profiles/merge/?service=s&type=cpu&from=1970-01-01T00:00:00&to=now&limit=-1")
        tap.ok(answer.status == 200 and answer.headers["X-Profiles-Merged"] == "4", "merge/ with limit=-1 merges all", answer)
        identity = c.get("/api/0/profiles?service=s&from=1970-01-01T00:00:00&to=now").json["body"][0]["id"]
        tap.ok(c.get(f"/api/0/profiles/{identity}/").status == 200, "a download's path may end in a slash")
        for body in (b"", b"service=other"):
            answer = c.ask("POST", "/api/0/profiles/merge?service=s&type=cpu&from=1970-01-01T00:00:00&to=now", body)
            tap.ok(answer.status == 200 and answer.headers["X-Profiles-Merged"] == "4", f"POST merge, body {body}", answer)
            tap.ok(c.ask("POST", "/api/0/services/", body).json.get("body") == ["s"], f"POST services, body {body}")
        tap.ok(c.get("/api/0/services/").json.get("body") == ["s"], "GET services/")
        if not QUICK and shutil.which("go"):
            profefe_agent(c)


def routes(c):
    """Section 2.3, 2.9, 2.10."""
    services = c.get("/api/0/services").json["body"]
    tap.ok(services == sorted(services, key=str.encode) and "shop api" in services and len(set(services)) == len(services),
           "services: distinct, sorted bytewise", services)
    version = c.get("/api/0/version").json["body"]
    in_git = os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.git"))
    tap.ok({"version", "commit", "build_time"} <= set(version) and all(isinstance(v, str) and (v or not in_git) for v in version.values()),
           "version", version)
    for target in ("/api/0/", "/api/0/nope", "/api/0/profilesX", "/api/0", "/favicon.ico"):
        expect(c.get(target), 404, "nothing found", f"GET {target}")
    for method, target, allow in (("PUT", "/api/0/profiles", "POST, GET, HEAD, DELETE"), ("PUT", "/api/0/services", "GET, HEAD, POST"),
                                  ("PUT", "/api/0/profiles/merge", "GET, HEAD, POST"), ("PATCH", "/api/0/profiles/x", "GET, HEAD")):
        answer = c.ask(method, target, b"")
        expect(answer, 405, "method not allowed", f"{method} {target}")
        tap.ok(answer.headers["Allow"] == allow, f"{method} {target} says Allow", answer.headers["Allow"])
    for raw, clean in (("/api//0/services", "/api/0/services"), ("/api/0/x/../services?a=b", "/api/0/services?a=b"),
                       ("/./api/0/version", "/api/0/version")):
        answer = c.get(raw)
        tap.ok(answer.status == 301 and answer.headers["Location"] == clean, f"{raw} moves", answer.headers["Location"])
    answer = c.ask("POST", "/api/0/x/../profiles", b"")
    tap.ok(answer.status == 308, "a POST that moves stays a POST", answer)
    head, get = c.ask("HEAD", "/api/0/services"), c.get("/api/0/services")
    tap.ok(head.status == 200 and not head.body and head.headers["Content-Length"] == str(len(get.body)), "HEAD is GET without a body")
    answer = c.ask("POST", "/api/0/profiles/symbolz", b"0x1234+0x5678")
    tap.ok(answer.status == 200 and answer.body.startswith(b"num_symbols: "), "symbolz is answered", answer)
    for target in ("/healthz", "/-/healthy", "/-/ready", "/readyz"):
        tap.ok(c.get(target).status == 200, f"GET {target}")
    expect(c.get("/debug/pprof/heap"), 404, "not implemented")
    text = c.get("/metrics").body.decode()
    tap.ok('profefe_api_requests_total{method="POST",path="/api/0/profiles",code="200"}' in text and
           'path="/api/0/profiles/__pid__"' in text and "profefe_api_request_duration_seconds_bucket" in text and
           "profefe_api_request_size_bytes_sum" in text, "profefe's metrics have profefe's names")
    answer = c.get("/healthz", **{"X-Request-Id": "abc-123"})
    made = c.get("/healthz").headers["X-Request-Id"]
    tap.ok(answer.headers["X-Request-Id"] == "abc-123" and len(made) == 32 and int(made, 16) >= 0, "X-Request-Id comes back, or is made")
    log = open(c.log).read()
    tap.ok("rid=abc-123" in log and "code=200" in log and "method=GET" in log, "the access log has the request's id")
    c.upload("going", "cpu", at(0))
    removed = c.ask("DELETE", "/api/0/profiles?service=going&from=0&to=now")
    tap.ok(removed.json["body"] == {"deleted": 1} and "going" not in c.get("/api/0/services").json["body"], "deletion of a service", removed)


def same_samples(raw):
    """pprof -raw with each location id in a sample replaced by the location, in the order of the text: the order of samples, which the
    ids follow, means nothing. Mappings stay as they are."""
    head, _, rest = raw.partition("Samples:\n")
    rows, _, rest = rest.partition("Locations\n")
    places, _, mappings = rest.partition("Mappings\n")
    locations = {}
    for line in places.splitlines():
        identity, colon, place = line.partition(": ")
        if colon and identity.strip().isdigit():
            now = locations.setdefault(identity.strip(), [])
            line = place
        now.append(line.strip())
    samples = []
    for line in rows.splitlines()[1:]:
        values, colon, ids = line.partition(": ")
        if colon and set(values) <= set("0123456789 "):
            samples.append([values, *(tuple(locations[i]) for i in ids.split())])
        else:
            samples[-1].append(line)
    return head, rows.splitlines()[0], sorted(samples, key=str), sorted(locations.values()), mappings


def raw_is_the_same(c, kind, folders):
    """What was sent and what is downloaded are the same to go tool pprof -raw, and merges are what it makes of the files."""
    files = [os.path.join(f, f"{kind}.pb.gz") for f in folders]
    listed = c.get(f"/api/0/profiles?service=real&type={kind}&from=-1h&to=now").json["body"]
    back = []
    for row in listed:
        back.append(path("back.pb.gz"))
        with open(back[-1], "wb") as f:
            f.write(c.get("/api/0/profiles/" + row["id"]).body)
        back[-1] = pprof_raw(back[-1])
    sent = [pprof_raw(f) for f in files]
    missing = [text for text in sent if same_samples(text) not in [same_samples(b) for b in back]]
    tap.ok(len(back) == len(sent) and not missing, f"pprof -raw of what is downloaded says the same ({kind})", missing[:1] and (missing[0][-1500:], back))
    with open(path("merged.pb.gz"), "wb") as f:
        f.write(c.get(f"/api/0/profiles/merge?service=real&type={kind}&from=-1h&to=now").body)
    want, ours = pprof_raw(*files), pprof_raw(path("merged.pb.gz"))
    tap.ok(want == ours, f"and of a merge, letter by letter ({kind})", want == ours or (want[-1500:], ours[-1500:]))
    done = hearth("merge", "-o", path("merged.pb.gz"), *files)
    ours = pprof_raw(path("merged.pb.gz"))
    tap.ok(done.returncode == 0 and want == ours, f"so it is of hearth merge ({kind})", want == ours or (want[-1500:], ours[-1500:]))


def unused_mappings():
    """The first mapping is the main program: it stays first in a sum, used or not; others that nothing uses are left out."""
    first = pprof([(["main", "a"], [1, 10]), (["main", "none"], [0, 0])], mappings=[(0x1000, 0x2000, "/bin/program"), (0x5000, 0x6000, "/lib/none.so")])
    second = pprof([(["main", "b"], [2, 20])], mappings=[(0x8000, 0x9000, "/lib/other.so")])
    files = [path("first.pb.gz"), path("second.pb.gz")]
    for file, data in zip(files, (first, second)):
        with open(file, "wb") as f:
            f.write(data)
    with Collector() as c:
        for data in (first, second):
            c.upload("unused", "cpu", data)
        with open(path("merged.pb.gz"), "wb") as f:
            f.write(c.get("/api/0/profiles/merge?service=unused&type=cpu&from=-1h&to=now").body)
        served = pprof_raw(path("merged.pb.gz"))
    done = hearth("merge", "-o", path("merged.pb.gz"), *files)
    want, ours = pprof_raw(*files), pprof_raw(path("merged.pb.gz"))
    tap.ok("/bin/program" in want and "none.so" not in want and served == want, "a sum has the first mapping, and no other that nothing uses", (want, served))
    tap.ok(done.returncode == 0 and ours == want, "so has hearth merge's", (want, ours))


def real_merges():
    """go tool pprof says of a merge URL what it says of the files."""
    if not shutil.which("go"):
        tap.skip("merges of real profiles", "needs go")
        return
    folders = go_profiles(2 if QUICK else 4)
    kinds = [("cpu", None), ("heap", "inuse_space"), ("allocs", "alloc_space"), ("mutex", None), ("block", None), ("goroutine", None),
             ("threadcreate", None)]
    with Collector() as c:
        for folder in folders:
            for kind, _ in kinds:
                answer = c.upload("real", kind, content(folder, f"{kind}.pb.gz"))
                if answer.status != 200:
                    tap.ok(False, f"{kind} of a Go program is stored", answer)
            empty = c.upload("real", "block", content(folder, "empty_block.pb.gz"))
            trace = c.upload("real", "trace", content(folder, "trace.out"))
            back = c.get("/api/0/profiles/" + trace.json["body"]["id"]).body
            tap.ok(empty.status == 204 and back == content(folder, "trace.out"), "Go's empty block profile; Go's trace comes back", empty)
        for kind, index in kinds:
            url = f"{c.url}/api/0/profiles/merge?service=real&type={kind}&from=-1h&to=now"
            status, ours, error = top(url, sample_index=index)
            _, theirs, _ = top(*[os.path.join(f, f"{kind}.pb.gz") for f in folders], sample_index=index)
            tap.ok(status == 0 and ours == theirs and len(ours) > 1, f"go tool pprof -top of a merge of {kind}", (ours[:6], theirs[:6], error[-200:])
                   if ours != theirs else f"{len(ours)} lines")
            raw_is_the_same(c, kind, folders)
        ids = [p["id"] for p in c.get("/api/0/profiles?service=real&type=cpu&from=-1h&to=now").json["body"]]
        _, ours, _ = top(f"{c.url}/api/0/profiles/" + "+".join(ids))
        _, theirs, _ = top(*[os.path.join(f, "cpu.pb.gz") for f in folders])
        tap.ok(ours == theirs, "and of a list of ids", len(ours))
    unused_mappings()


def busy():
    """Whoever watches the collector gets an answer while every reader has work."""
    with Collector() as c:
        deep = pprof([([f"f{i}", *["main"] * 1000], [1, 10]) for i in range(1000)])
        tap.ok(c.upload("deep", "cpu", deep).status == 200, "a thousand deep stacks that share nothing")
        askers = [threading.Thread(target=c.get, args=("/api/0/profiles/merge?service=deep&type=cpu&from=-1h&to=now",))
                  for _ in range(8)]
        begin = time.monotonic()
        for asker in askers:
            asker.start()
        time.sleep(0.1)
        asked = time.monotonic()
        good = all(c.get(p).status == 200 for p in ("/healthz", "/-/ready"))
        took = time.monotonic() - asked
        still = sum(asker.is_alive() for asker in askers)
        for asker in askers:
            asker.join()
        tap.ok(good and still > 4, "health is answered before queries that wait",
               f"{took:.3f} s, {still} of 8 queries still open, all done after {time.monotonic() - begin:.1f} s")
        begin = time.monotonic()
        c.get("/api/0/profiles/merge?service=deep&type=cpu&from=-1h&to=now")
        alone = time.monotonic() - begin
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", c.port)) as s:
                s.sendall(b"GET /api/0/profiles/merge?service=deep&type=cpu&from=-1h&to=now HTTP/1.1\r\nHost: localhost\r\n\r\n")
        begin = time.monotonic()
        good = c.get("/api/0/version").status == 200
        took = time.monotonic() - begin
        tap.ok(good and took < 12 * alone + 1.5, "queries whose client left while they waited are not run",
               f"60 of {alone:.2f} s each, the next answer after {took:.1f} s")


def hands():
    """What root gives to the collector's user, and links which that user may put in root's way."""
    if os.geteuid() != 0:
        tap.skip("what changes hands", "needs root")
        return
    full, wide, linked = path("store-full"), path("store-wide"), path("store-linked")
    for folder in (full, wide, linked):
        os.mkdir(folder)
    open(os.path.join(full, "notes.txt"), "w").close()
    open(os.path.join(wide, "2024-02-29.db"), "w").close()
    os.chmod(wide, 0o1777)
    for folder in (full, wide):
        done = hearth("serve", "--addr", "127.0.0.1:0", "--data-dir", folder, timeout=20)
        tap.ok(done.returncode == 1 and "another user's" in done.stderr and os.stat(folder).st_uid == 0,
               "a folder with other things, or open to all, is not given away", done.stderr.strip())
    disk = path("store-disk")
    os.makedirs(os.path.join(disk, "lost+found"))
    with Collector(folder=disk):
        tap.ok(os.stat(disk).st_uid != 0 and os.stat(os.path.join(disk, "lost+found")).st_uid == 0, "the top of a disk is")
    roots = path("roots-file")
    with open(roots, "w") as f:
        f.write("# of root\n")
    os.symlink(roots, os.path.join(linked, "tokens"))
    os.chown(linked, 65534, 65534)
    done = hearth("token", "create", "--data-dir", linked)
    tap.ok(done.returncode == 1 and os.stat(roots).st_uid == 0 and open(roots).read() == "# of root\n",
           "token create does not write through links of the collector's user", done.stderr.strip())
    os.unlink(os.path.join(linked, "tokens"))
    done = hearth("token", "create", "--data-dir", linked)
    tap.ok(done.returncode == 0 and os.stat(os.path.join(linked, "tokens")).st_uid == 65534, "the file is the folder's owner's",
           done.stderr.strip())


def access():
    """Tokens, origins, hosts, where it listens."""
    folder = path("store-token")
    secrets = {s: hearth("token", "create", "--data-dir", folder, "--scope", s).stdout.strip() for s in ("ingest", "read", "admin")}
    listed = hearth("token", "list", "--data-dir", folder).stdout.split("\n")
    file = os.path.join(folder, "tokens")
    tap.ok(os.stat(file).st_mode & 0o777 == 0o600 and not any(s in open(file).read() for s in secrets.values()),
           "tokens are kept hashed and for one user")
    with Collector("--cors-origin", "https://good.example", folder=folder) as c:
        def auth(scope):
            return {"Authorization": f"Bearer {secrets[scope]}"} if scope else {}
        c.upload("a", "cpu", PROFILE, headers=auth("admin"))
        rows = [(None, 401, 401, 401), ("ingest", 200, 403, 403), ("read", 403, 200, 403), ("admin", 200, 200, 200)]
        for scope, up, ls, rm in rows:
            got = (c.upload("a", "cpu", PROFILE, headers=auth(scope)).status,
                   c.ask("GET", "/api/0/services", headers=auth(scope)).status,
                   c.ask("DELETE", "/api/0/profiles?service=a&from=0&to=0", headers=auth(scope)).status)
            tap.ok(got == (up, ls, rm), f"scope {scope}: upload, list, delete", got)
        tap.ok(c.get("/healthz").status == 200 and c.get("/metrics").status == 401, "health needs no token, metrics do")
        answer = c.get("/api/0/services")
        tap.ok("Basic" in answer.headers["WWW-Authenticate"], "401 says how")
        bad = c.get("/api/0/services", Authorization="Bearer " + secrets["read"][:-1] + "x")
        tap.ok(bad.status == 401 and c.get("/api/0/services", Authorization="Basic ???").status == 401, "wrong tokens")
        if shutil.which("go"):
            url = f"http://any:{secrets['read']}@127.0.0.1:{c.port}/api/0/profiles/merge?service=a&type=cpu&from=-1h&to=now"
            tap.ok(top(url)[0] == 0, "go tool pprof with a token as password", top(url)[2][-300:])
        tap.ok(c.ask("GET", "/api/0/services", headers={**auth("read"), "Host": "proxy.example"}).status == 200,
               "with tokens any host name is fine: a proxy may stand in front")
        revoked = listed[0].split()[0]
        hearth("token", "revoke", "--data-dir", folder, revoked)
        time.sleep(1.2)
        tap.ok(c.upload("a", "cpu", PROFILE, headers=auth("ingest")).status == 401, "a revoked token ends within a second")
        read = auth("read")
        good = c.ask("GET", "/api/0/services", headers={**read, "Origin": "https://good.example"})
        tap.ok(good.status == 200 and good.headers["Access-Control-Allow-Origin"] == "https://good.example", "an allowed origin")
        exposed = {h.strip() for h in good.headers["Access-Control-Expose-Headers"].lower().split(",")}
        tap.ok({"x-total-count", "x-next-before", "x-profiles-merged", "x-profiles-skipped", "x-profiles-damaged", "x-untimed", "x-lines-left-out"} <= exposed,
               "a page from there may read what headers say of an answer", exposed)
        flight = c.ask("OPTIONS", "/api/0/services", headers={"Origin": "https://good.example", "Access-Control-Request-Method": "GET"})
        allowed = {h.strip() for h in flight.headers["Access-Control-Allow-Headers"].lower().split(",")}
        tap.ok({"authorization", "content-type", "connect-protocol-version", "connect-timeout-ms"} <= allowed,
               "its preflight allows what a Connect client in a browser sends", allowed)
        tap.ok(flight.status == 204 and "GET" in flight.headers["Access-Control-Allow-Methods"], "its preflight", flight)
        tap.ok(c.ask("GET", "/api/0/services", headers={**read, "Origin": "https://bad.example"}).status == 403, "another origin")
        for line in listed[1:]:
            if line:
                hearth("token", "revoke", "--data-dir", folder, line.split()[0])
        time.sleep(1.2)
        closed = [c.get("/api/0/services").status, c.upload("a", "cpu", PROFILE).status]
        c.stop()
        c.start()
        closed += [c.get("/api/0/services").status, c.upload("a", "cpu", PROFILE).status]
        tap.ok(closed == [401] * 4, "revoking the last token opens nothing, also after a restart", closed)
    with Collector() as c:
        for host, want in ((f"localhost:{c.port}", 200), (f"127.0.0.1:{c.port}", 200), ("[::1]:5", 200), ("evil.example", 403),
                           ("127.0.0.1.evil.example", 403), ("localhost.evil.example:80", 403)):
            tap.ok(c.get("/api/0/version", Host=host).status == want, f"Host: {host} on loopback is {want}")
    done = hearth("serve", "--addr", ":0", "--data-dir", path("store-open"), timeout=20)
    tap.ok(done.returncode == 1 and "hearth token create" in done.stderr, "open to all without a token: refused with the remedy",
           done.stderr.strip())
    port = free_port()
    with Collector("--addr", f":{port}", "--insecure-no-auth", port=port) as c:
        tap.ok(c.get("/api/0/version", Host="any.example").status == 200, "unless --insecure-no-auth says so")


def tls():
    """A certificate, and another one while it runs."""
    if not shutil.which("openssl"):
        tap.skip("TLS", "needs openssl")
        return
    import ssl
    import socket
    cert, key = path("cert.pem"), path("key.pem")

    def make(name):
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", check=True)
        os.chmod(key, 0o644)

    def name_seen(port):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10)) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := s.recv(4096):
                answer += piece
            der = s.getpeercert(True)
        shown = subprocess.run(["openssl", "x509", "-inform", "der", "-noout", "-subject"], input=der, capture_output=True).stdout
        return shown.decode().strip(), answer[:12]

    make("first")
    c = Collector("--tls-cert", cert, "--tls-key", key)
    c.start(wait=False)
    for _ in range(100):
        try:
            seen = name_seen(c.port)
            break
        except OSError:
            time.sleep(0.05)
    tap.ok("first" in seen[0] and seen[1] == b"HTTP/1.1 200", "HTTPS", seen)
    make("second")
    c.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    tap.ok("second" in name_seen(c.port)[0], "SIGHUP takes the new certificate", name_seen(c.port))
    open(cert, "w").write("rubbish")
    c.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    tap.ok("second" in name_seen(c.port)[0], "a bad one changes nothing")
    tap.ok(c.stop() == 0, "ends well")


def options():
    """profefe's flags, and what ends at once."""
    folder = path("store-flags")
    with Collector("-log.level", "debug", "-log.format=console", "-badger.dir", folder, "-badger.data-ttl=120h", "-badger.gc-interval", "5m",
                   "-storage-type=badger", "-exit-timeout=2s", "-profefe.agent.enable-heap-profile=true", folder=folder) as c:
        tap.ok(c.get("/api/0/version").status == 200, "profefe's flags are understood")
    for flag, value in (("-storage-type", "s3"), ("-s3.bucket", "b"), ("-gcs.bucket", "b"), ("-clickhouse.dsn", "tcp://h"), ("-storage-type", "auto,gcs")):
        done = hearth("serve", flag, value, timeout=20)
        tap.ok(done.returncode == 1 and "not supported" in done.stderr, f"{flag} {value} fails clearly", done.stderr.strip())
    tap.ok(hearth("serve", "-version").returncode == 0, "-version ends with 0")
    for bad in (["--addr", "nowhere"], ["--tls-cert", "x"], ["--retention", "x"]):
        tap.ok(hearth("serve", *bad, timeout=20).returncode == 2, f"{' '.join(bad)} is a usage error")
    with open(path("serve.conf"), "w") as f:
        f.write("# a comment\nlist-limit = 1\nlog-format = json\n")
    with Collector("--config", path("serve.conf"), log="json.log") as c:
        for i in range(3):
            c.upload("e", "cpu", at(i))
        tap.ok(len(c.get("/api/0/profiles?service=e&from=0&to=now").json["body"]) == 1, "an option from a file")
        c.get("/api/0/profiles?service=%22%0a%ff&x=\\\"")
    lines = [json.loads(line) for line in open(path("json.log"), "rb")]
    tap.ok(any(line["msg"] == "request" and line["code"] == 200 and line["method"] == "POST" and line["rid"] for line in lines) and
           all(line["ts"] and line["level"] for line in lines), "log lines are JSON objects when asked for", len(lines))
    with Collector(env={**os.environ, "HEARTH_LIST_LIMIT": "2"}) as c:
        for i in range(3):
            c.upload("e", "cpu", at(i))
        tap.ok(len(c.get("/api/0/profiles?service=e&from=0&to=now").json["body"]) == 2, "an option from the environment")
        with Collector("--query-timeout", "1ns", folder=path("store-short")) as short:
            short.upload("e", "cpu", at(0))
            expect(short.get("/api/0/profiles/merge?service=e&type=cpu&from=0&to=now"), 504, "took too long")
        second = hearth("serve", "--addr", "127.0.0.1:0", "--data-dir", c.folder, timeout=20)
        tap.ok(second.returncode == 1 and "in use" in second.stderr, "one collector for a data directory", second.stderr.strip())
        status = open(f"/proc/{c.process.pid}/status").read()
        uid = [line.split()[1] for line in status.splitlines() if line.startswith("Uid:")][0]
        if os.geteuid() == 0:
            tap.ok(uid != "0" and "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status, "root's rights are gone", uid)
        if QUICK or not shutil.which("gdb"):
            tap.skip("what the filter refuses", "needs gdb and --full")
            return
        calls = {"a process": "(int)fork()", "a socket": "(int)socket(2,1,0)", "a program": '(int)execve("/bin/true",0,0)',
                 "another's memory": "(int)ptrace(16,1,0,0)"}
        for what, call in calls.items():
            said = run("gdb", "-p", c.process.pid, "-batch", "-ex", f"print {call}", "-ex", "print *(int*)__errno_location()").stdout
            tap.ok("$1 = -1\n$2 = 1\n" in said, f"{what} is refused", said[-60:])


with Collector("--retention", "0", "--retention-free", "0") as c:
    parameters(c)
    uploads(c)
    keys(c)
    lists(c)
    merges(c)
    routes(c)
    tap.ok(c.stop() == 0, "SIGTERM ends it well")
real_merges()
profefe_clients()
access()
hands()
busy()
tls()
options()
tap.finish()
