#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's /ingest and /pyroscope/render: folded stacks, pprof, multipart; with --full its own SDK for Node."""
import gzip
import os
import shutil
import time
from urllib.parse import quote

from collector import Collector, pprof
from support import HERE, QUICK, Profile, Tap, path, run

tap = Tap("pyroscope")
FOLDED = b"main;handle;read 3\nmain;handle;write 5\nmain;idle 2\n"
NOW = int(time.time())


def form(parts):
    boundary = "XXboundaryXX"
    body = b"".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{n}"; filename="{n}"\r\n\r\n'.encode() + d + b"\r\n"
                    for n, d in parts) + f"--{boundary}--\r\n".encode()
    return body, {"Content-Type": f'multipart/form-data; boundary="{boundary}"'}


def merged(c, service, kind):
    answer = c.get(f"/api/0/profiles/merge?service={service}&type={kind}&from=-2h&to=now%2B1h")
    if answer.status != 200:
        return {}, answer
    open(path("m.pb.gz"), "wb").write(answer.body)
    p = Profile(path("m.pb.gz"))
    return {";".join(s.names): s.values for s in p.samples}, p


def ingest(c, query, body, headers=None, where="/ingest"):
    return c.ask("POST", f"{where}?{query}", body, headers or {})


def folded(c):
    name = quote("shop.cpu{region=eu, host = h1}")
    answer = ingest(c, f"name={name}&from={NOW - 10}&until={NOW}&sampleRate=50&spyName=gospy", FOLDED)
    tap.ok(answer.status == 200 and not answer.body, "folded stacks: 200 with an empty body", answer)
    stacks, p = merged(c, "shop", "cpu")
    tap.ok(stacks == {"main;handle;read": [3, 60000000], "main;handle;write": [5, 100000000], "main;idle": [2, 40000000]},
           "counts become nanoseconds by the rate", stacks)
    tap.ok(p.types == [("samples", "count"), ("cpu", "nanoseconds")], "their types", p.types)
    listed = c.get("/api/0/profiles?service=shop&from=-1h&to=now").json["body"][0]
    tap.ok(listed["labels"] == [{"key": "host", "value": "h1"}, {"key": "region", "value": "eu"}], "the labels of the name", listed)
    ingest(c, "name=plain&format=lines", b"a;b\na;b\na;c\n", where="/pyroscope/ingest")
    tap.ok(merged(c, "plain", "cpu")[0] == {"a;b": [2, 20000000], "a;c": [1, 10000000]}, "format=lines counts lines, 100 Hz",
           merged(c, "plain", "cpu")[0])
    ingest(c, "name=mem.inuse_space&units=bytes", b"a;b 4096\n")
    stacks, p = merged(c, "mem", "heap")
    tap.ok(stacks == {"a;b": [4096]} and p.types == [("inuse_space", "bytes")], "another suffix, another type", p)
    ingest(c, "name=" + quote("app.x.cpu{service_name=real,__session_id__=1}"), FOLDED)
    labels = c.get("/api/0/profiles?service=real&from=-1h&to=now").json["body"][0]["labels"]
    tap.ok(labels == [{"key": "app_name", "value": "app.x"}], "service_name names the service, __x__ is not stored", labels)


def documents(c):
    body = pprof([(["main", "work"], [3, 30])], time_ns=NOW * 10**9)
    tap.ok(ingest(c, "name=raw&format=pprof", body).status == 200 and merged(c, "raw", "cpu")[0] == {"main;work": [3, 30]}, "raw pprof")
    tap.ok(ingest(c, "name=bare", body).status == 200 and merged(c, "bare", "cpu")[0] == {"main;work": [3, 30]}, "gzip without a format")
    data, headers = form([("profile", body), ("sample_type_config", b'{"cpu":{"units":"samples"}}')])
    tap.ok(ingest(c, f"name=multi&from={NOW}&until={NOW + 1}", data, headers).status == 200 and
           merged(c, "multi", "cpu")[0] == {"main;work": [3, 30]}, "multipart")
    tap.ok(ingest(c, "name=zipped&format=pprof", gzip.compress(gzip.decompress(body)), {"Content-Encoding": "gzip"}).status == 200,
           "Content-Encoding: gzip")
    old = pprof([(["main"], [1, 1])], time_ns=NOW * 1000)  # microseconds sent as nanoseconds
    ingest(c, f"name=old&format=pprof&from={NOW - 5}", old)
    created = c.get("/api/0/profiles?service=old&from=-1h&to=now").json["body"][0]["created_at"]
    tap.ok(created == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - 5)), "a time in 1970 is replaced by from", created)
    tap.ok(ingest(c, "name=empty&format=pprof", pprof([])).status == 200, "an empty profile is no error")
    locks = pprof([(["main"], [1, 1])], types=(("contentions", "count"), ("delay", "nanoseconds")), time_ns=NOW * 10**9)
    data, headers = form([("profile", locks), ("sample_type_config", b'{"contentions":{"display-name":"mutex_count"}}')])
    ingest(c, "name=locks", data, headers)
    tap.ok(merged(c, "locks", "mutex")[0] == {"main": [1, 1]}, "sample_type_config tells mutex from block")


def refusals(c):
    good = pprof([(["main"], [1, 1])], time_ns=NOW * 10**9)
    late = pprof([(["main"], [1, 1])], time_ns=(NOW - 8 * 86400) * 10**9)
    ahead = pprof([(["main"], [1, 1])], time_ns=(NOW + 3600) * 10**9)
    before = c.metric("hearth_store_profiles")
    rows = [("", FOLDED, None, 400, 'missing "name"'), ("name=x", b"", None, 400, "empty"), ("name=x", b"no count here\n", None, 400, "line 1"),
            ("name=x&format=pprof", b"rubbish", None, 400, "malformed"), ("name=x&format=trie", FOLDED, None, 415, "trie"),
            ("name=x&format=jfr", FOLDED, None, 415, "jfr"), ("name=x&format=pprof", late, None, 422, "7 days"),
            ("name=x&format=pprof", ahead, None, 422, "10 minutes"), ("name=x&from=yesterday", FOLDED, None, 400, "from"),
            ("name=x", b"--b\r\n", {"Content-Type": "multipart/form-data; boundary=b"}, 400, "multipart"),
            ("name=x", b"--b--\r\n", {"Content-Type": "multipart/form-data; boundary=b"}, 400, 'part "profile"'),
            ("name=x", b"--b--\r\n", {"Content-Type": "multipart/form-data"}, 400, "multipart"),
            ("name=x", *form([("profile", good), ("prev_profile", good)]), 422, "prev_profile"),
            ("name=x", *form([("profile", good), ("sample_type_config", b"[1")]), 400, "sample_type_config")]
    for query, body, headers, status, why in rows:
        answer = ingest(c, query, body, headers)
        tap.ok(answer.status == status and why in answer.error, f"refused: {query or 'nothing'} {why}", answer)
    tap.ok(c.metric("hearth_store_profiles") == before, "and nothing of it is stored")
    tap.ok(c.get("/ingest").status == 405, "GET /ingest is not allowed")


def flame(levels, names):
    """{path: (total, self)} of a flamebearer, by geometry alone."""
    found, above = {}, [(0, levels[0][1], "")]
    for depth, row in enumerate(levels):
        here, x = [], 0
        for i in range(0, len(row), 4):
            x += row[i]
            total, self_, name = row[i + 1], row[i + 2], names[row[i + 3]]
            parents = [p for b, e, p in above if b <= x and x + total <= e] if depth else [""]
            assert len(parents) == 1, (depth, i, parents)
            key = f"{parents[0]};{name}" if depth else name
            found[key] = (total, self_)
            here.append((x, x + total, key))
            x += total
        above = here
    return found


def render(c):
    query = quote('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop", region="eu"}')
    answer = c.get(f"/pyroscope/render?query={query}&from=now-1h&until=now&format=json").json
    f = answer["flamebearer"]
    got = flame(f["levels"], f["names"])
    want = {"total": (200000000, 0), "total;main": (200000000, 0), "total;main;handle": (160000000, 0),
            "total;main;handle;read": (60000000, 60000000), "total;main;handle;write": (100000000, 100000000),
            "total;main;idle": (40000000, 40000000)}
    tap.ok(got == want and f["numTicks"] == 200000000 and f["maxSelf"] == 100000000, "render: the tree", got)
    tap.ok(answer["version"] == 1 and answer["metadata"]["format"] == "single" and sum(answer["timeline"]["samples"]) == 200000000,
           "its metadata and timeline", answer["metadata"])
    short = c.get("/pyroscope/render?query=" + quote("shop.cpu{}") + "&max-nodes=4").json["flamebearer"]
    cut = flame(short["levels"], short["names"])
    tap.ok(cut["total"] == (200000000, 0) and any(k.endswith(";other") for k in cut) and
           sum(s for _, s in cut.values()) == 200000000, "max-nodes: what is cut is other, nothing is lost", cut)
    for query, status in (("nope{}", 400), ('cpu{a!="b"}', 400), ('cpu{a=~"b"}', 400), ('cpu{a="b"', 400), ("", 400), ('cpu{service_name="none"}', 404)):
        tap.ok(c.get(f"/pyroscope/render?query={quote(query)}").status == status, f"render {query or 'nothing'} is {status}")


def sdk():
    modules = os.path.join(HERE, "../web/node_modules")
    if not shutil.which("node") or not os.path.isdir(os.path.join(modules, "@pyroscope/nodejs")):
        tap.skip("Pyroscope's SDK for Node", "needs node and @pyroscope/nodejs (make setup-extra)")
        return
    with Collector() as c:
        done = run("node", os.path.join(HERE, "workloads/profiles/pyroscope.cjs"), c.url, 5, timeout=60,
                   env={**os.environ, "NODE_PATH": modules, "DEBUG": "pyroscope*"})
        tap.ok(done.returncode == 0 and "rejected" not in done.stderr, "Pyroscope's SDK for Node sends", done.stderr[-300:] if done.returncode else "")
        services = c.get("/api/0/services").json.get("body", [])
        tap.ok(services == ["node.shop"], "its service", services)
        for kind in ("wall", "heap"):
            stacks, _ = merged(c, "node.shop", kind)
            tap.ok(stacks, f"its {kind} profiles are served", len(stacks))
            if kind == "wall":
                inside = sum(v[-1] for k, v in stacks.items() if "knownLeaf" in k)
                whole = sum(v[-1] for v in stacks.values())
                tap.ok(whole and inside > 0.5 * whole, "most of the time is where it was spent", f"{inside} of {whole}")


with Collector() as c:
    folded(c)
    documents(c)
    refusals(c)
    render(c)
if not QUICK:
    sdk()
tap.finish()
