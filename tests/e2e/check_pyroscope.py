#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's /ingest, push.v1 and /pyroscope/render: folded stacks, pprof, multipart, sample labels; with --full its own
SDKs for Node, Python and Rust."""
import base64
import gzip
import json
import os
import shutil
import sys
import time
from urllib.parse import quote

from collector import Collector, message, pprof
from support import HERE, QUICK, Profile, Tap, path, run

sys.path.insert(0, os.path.join(HERE, "check_querier"))
from flamebearer import flame  # noqa: E402  (the folder has to be known before)

tap = Tap("pyroscope")
FOLDED = b"main;handle;read 3\nmain;handle;write 5\nmain;idle 2\n"
NOW = int(time.time())


def form(parts):
    boundary = "XXboundaryXX"
    body = b"".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{n}"; filename="{n}"\r\n\r\n'.encode() + d + b"\r\n"
                    for n, d in parts) + f"--{boundary}--\r\n".encode()
    return body, {"Content-Type": f'multipart/form-data; boundary="{boundary}"'}


def merged(c, service, kind, labels=""):
    answer = c.get(f"/api/0/profiles/merge?service={service}&type={kind}&from=-2h&to=now%2B1h&labels={quote(labels)}")
    if answer.status != 200:
        return {}, answer
    open(path("m.pb.gz"), "wb").write(answer.body)
    p = Profile(path("m.pb.gz"))
    stacks = {}
    for s in p.samples:
        key = ";".join(s.names)
        stacks[key] = [a + b for a, b in zip(stacks.get(key, [0] * len(s.values)), s.values)]
    return stacks, p


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


def request(*series):
    """A push.v1.PushRequest: series are (labels, [pprof, ...])."""
    return b"".join(message(1, b"".join(message(1, message(1, k.encode()) + message(2, v.encode())) for k, v in labels.items()) +
                            b"".join(message(2, message(1, p) + message(2, b"%d" % i)) for i, p in enumerate(profiles)))
                    for labels, profiles in series)


def push(c, body, kind="application/proto", **headers):
    return c.ask("POST", "/push.v1.PusherService/Push", body, {"Content-Type": kind, "Connect-Protocol-Version": "1",
                                                               **{k.replace("_", "-"): v for k, v in headers.items()}})


def pushes(c):
    work = pprof([(["main", "work"], [3, 30])], time_ns=NOW * 10**9)
    labels = {"__name__": "process_cpu", "service_name": "pushed", "otel.scope.name": "com.example/rust", "__session_id__": "7"}
    answer = push(c, request((labels, [work])))
    tap.ok(answer.status == 200 and not answer.body and answer.headers["Content-Type"] == "application/proto", "push.v1: protobuf", answer)
    tap.ok(push(c, gzip.compress(request((labels, [work]))), Content_Encoding="gzip").status == 200, "push.v1: gzip around it")
    text = json.dumps({"series": [{"labels": [{"name": k, "value": v} for k, v in labels.items()],
                                   "samples": [{"rawProfile": base64.b64encode(work).decode(), "ID": "1"}], "annotations": []}]})
    answer = push(c, text.encode(), "application/json; charset=utf-8")
    tap.ok(answer.status == 200 and answer.body == b"{}" and answer.headers["Content-Type"] == "application/json", "push.v1: JSON", answer)
    tap.ok(merged(c, "pushed", "cpu", "otel_scope_name=com.example/rust")[0] == {"main;work": [9, 90]}, "all of it is found by label",
           merged(c, "pushed", "cpu")[0])
    both = request(({**labels, "service_name": "first"}, [work]), ({"__name__": "memory"}, [pprof(
        [(["main"], [1, 4096])], types=(("inuse_objects", "count"), ("inuse_space", "bytes")), time_ns=NOW * 10**9)]))
    tap.ok(push(c, both).status == 200 and merged(c, "first", "cpu")[0] and merged(c, "unknown_service", "heap")[0] == {"main": [1, 4096]},
           "two series of one request, one without a service")
    large = pprof([(["main", "x" * 9000 + str(i)], [1, 1]) for i in range(600)], time_ns=NOW * 10**9)
    nameless = message(1, message(1, message(1, b"service_name") + message(2, b"large")) + message(2, message(1, work)) +
                       message(2, message(1, large)))
    answer = push(c, nameless)
    tap.ok(answer.status == 200 and sum(v[0] for v in merged(c, "large", "cpu")[0].values()) == 603,
           "a large profile behind a small one: each is stored once", answer)
    before = c.metric("hearth_store_profiles")
    tap.ok(push(c, both).status == 200 and c.metric("hearth_store_profiles") == before, "the same ids again store nothing")
    late = pprof([(["main"], [1, 1])], time_ns=(NOW - 8 * 86400) * 10**9)
    mixed = push(c, request((labels, [b"rubbish", work])))
    tap.ok(mixed.status == 400 and mixed.json["code"] == "invalid_argument" and merged(c, "pushed", "cpu")[0] == {"main;work": [12, 120]},
           "a bad profile is told, the good one beside it is kept", mixed)
    for what, body, kind, status, code in (
            ("a text", b"{", "application/json", 400, "invalid_argument"), ("an array", b"[]", "application/json", 400, "invalid_argument"),
            ("bad base64", b'{"series":[{"samples":[{"rawProfile":"*"}]}]}', "application/json", 400, "invalid_argument"),
            ("cut protobuf", request((labels, [work]))[:-9], "application/proto", 400, "invalid_argument"),
            ("nothing", b"", "application/proto", 400, "invalid_argument"), ("gRPC", work, "application/grpc", 415, "invalid_argument"),
            ("an old profile", request((labels, [late])), "application/proto", 400, "invalid_argument"),
            ("300 profiles", request((labels, [work] * 300)), "application/proto", 413, "resource_exhausted")):
        answer = push(c, body, kind)
        tap.ok(answer.status == status and answer.json["code"] == code and answer.json["message"], f"push.v1 refuses {what}", answer)
    tap.ok(push(c, b"junk", Content_Encoding="gzip").json["code"] == "invalid_argument", "and what is not the gzip data it says")
    tap.ok(c.get("/push.v1.PusherService/Push").status == 405, "GET is not allowed")


def sample_labels(c):
    samples = [(["main", "work"], [3, 30], {"order": "large", "region": "us"}), (["main", "work"], [1, 10], {"order": "small"}),
               (["main", "rest"], [2, 20]), (["main", "work"], [4, 40], {"order": "large", "span_id": "1f"})]
    body = pprof(samples, time_ns=NOW * 10**9, duration_ns=10**10)
    tap.ok(ingest(c, "name=" + quote("tagged.cpu{region=eu}") + "&format=pprof", body).status == 200, "a profile with sample labels")
    tap.ok(merged(c, "tagged", "cpu", "order=large")[0] == {"main;work": [7, 70]}, "selected by a sample's label",
           merged(c, "tagged", "cpu", "order=large")[0])
    tap.ok(merged(c, "tagged", "cpu", "order=small,region=eu")[0] == {"main;work": [1, 10]}, "and by the series' label beside it")
    tap.ok(merged(c, "tagged", "cpu", "region=us")[1].status == 404, "the series' label wins over the sample's")
    everything, p = merged(c, "tagged", "cpu")
    tap.ok(everything == {"main;work": [8, 80], "main;rest": [2, 20]} and len(p.samples) == 4,
           "all of it, with the labels on the samples", everything)
    tap.ok(p.duration_ns == 10**10, "took as long as the one profile", p.duration_ns)
    query = quote('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="tagged", order="large"}')
    f = c.get(f"/pyroscope/render?query={query}").json
    tap.ok(f["flamebearer"]["numTicks"] == 70 and sum(f["timeline"]["samples"]) == 70, "render: tree and timeline of a label", f)
    many = pprof([(["main"], [1, 1], {"request": str(i)}) for i in range(200)], time_ns=NOW * 10**9)
    tap.ok(ingest(c, "name=many&format=pprof", many).status == 200 and merged(c, "many", "cpu", "request=5")[0] == {"main": [1, 1]} and
           sum(s.values[0] for s in merged(c, "many", "cpu")[1].samples) == 200, "200 values of a label: none is lost")
    stored = c.get("/api/0/profiles?service=many&type=cpu&from=-2h&to=now%2B1h&limit=1000").json["body"]
    tap.ok(len(stored) == 64, "and they are at most 64 profiles", len(stored))
    before = c.metric("hearth_store_profiles")
    answers = [push(c, request(({"service_name": "crowd", "__name__": "process_cpu"}, [many] * 20))) for _ in range(2)]
    rows, shown = c.metric("hearth_store_profiles") - before, merged(c, "crowd", "cpu")[1]
    tap.ok([a.status for a in answers] == [200, 200] and rows == 20 + 512 and sum(s.values[0] for s in shown.samples) == 20 * 200,
           "a request makes at most 512 profiles more than it has, none twice, and no sample is lost", rows)
    headers = {"Idempotency-Key": "k1"}
    for _ in range(2):
        ingest(c, "name=twice&format=pprof", body, headers)
    tap.ok(sum(s.values[0] for s in merged(c, "twice", "cpu")[1].samples) == 10, "an Idempotency-Key holds for all parts")
    locals_ = pprof([(["main"], [1, 1], {"thread": "io", "comm": "shop"})], time_ns=NOW * 10**9)
    ingest(c, "name=named&format=pprof", locals_)
    tap.ok(merged(c, "named", "cpu", "thread=io,comm=shop")[0] == {"main": [1, 1]}, "labels with a meaning of ours are selected, too")


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
    shown = c.get("/pyroscope/render?query=" + quote('cpu{service_name=~"sho.|x", region!="us", host!~"h[2-9]"}')).json["flamebearer"]
    tap.ok(shown["numTicks"] == 200000000, "selectors with !=, =~ and !~", shown)
    for query, status in (("nope{}", 400), ('cpu{a="b"}', 404), ('cpu{a=~"("}', 400), ('cpu{a="b"', 400), ("", 400), ('cpu{service_name="none"}', 404)):
        tap.ok(c.get(f"/pyroscope/render?query={quote(query)}").status == status, f"render {query or 'nothing'} is {status}")


def sent_by(c, name, command, env, service, kinds=("cpu",)):
    """Runs a program under an SDK, and looks at what came: by service and by the label every SDK gave."""
    done = run(*command, timeout=120, env={**os.environ, **env})
    tap.ok(done.returncode == 0 and "rejected" not in done.stderr, f"Pyroscope's SDK for {name} sends", done.stderr[-300:] if done.returncode else "")
    services = c.get("/api/0/services").json.get("body", [])
    tap.ok(services == [service], f"{name}: its service", services)
    for kind in kinds:
        tap.ok(merged(c, service, kind, "region=eu")[0], f"{name}: its {kind} profiles are found by label")


def share(stacks, name):
    whole = sum(v[-1] for v in stacks.values())
    return sum(v[-1] for k, v in stacks.items() if name in k) / whole if whole else 0


def tags_of(c, name, service):
    """Both programs spend three times as long on a large order."""
    large, small = (merged(c, service, "cpu", f"order={size}")[0] for size in ("large", "small"))
    a, b = (sum(v[-1] for v in stacks.values()) for stacks in (large, small))
    tap.ok(a and b and 1.5 < a / b < 6, f"{name}: tag_wrapper's tags are selectable", f"large {a}, small {b}")
    tap.ok(share(large, "known_leaf") > 0.8, f"{name}: the time is where it was spent", f"{share(large, 'known_leaf'):.0%}")


def sdk_node():
    modules = os.path.join(HERE, "../web/node_modules")
    if not shutil.which("node") or not os.path.isdir(os.path.join(modules, "@pyroscope/nodejs")):
        tap.skip("Pyroscope's SDK for Node", "needs node and @pyroscope/nodejs (make setup-extra)")
        return
    with Collector() as c:
        command = ("node", os.path.join(HERE, "workloads/profiles/pyroscope.cjs"), c.url, 5)
        sent_by(c, "Node", command, {"NODE_PATH": modules, "DEBUG": "pyroscope*"}, "node.shop", ("wall", "heap"))
        inside = share(merged(c, "node.shop", "wall")[0], "knownLeaf")
        tap.ok(inside > 0.5, "Node: most of the time is where it was spent", f"{inside:.0%}")
        orders = [merged(c, "node.shop", "wall", f"order={size}")[0] for size in ("large", "small")]
        tap.ok(all(orders), "Node: its labels are selectable", [len(o) for o in orders])


def sdk_python():
    python = os.path.join(HERE, "../sdks/python/bin/python3")
    if not os.access(python, os.X_OK) or run(python, "-c", "import pyroscope").returncode:
        tap.skip("Pyroscope's SDK for Python", "needs pyroscope-io (make setup-extra, which needs PyPI)")
        return
    with Collector() as c:
        command = (python, os.path.join(HERE, "workloads/profiles/pyroscope_sdk.py"), c.url, 7)
        sent_by(c, "Python", command, {}, "python.shop")
        tags_of(c, "Python", "python.shop")


def sdk_rust():
    source = os.path.join(HERE, "workloads/pyroscope_rust")
    target = os.path.join(HERE, "../sdks/rust")
    if not shutil.which("cargo"):
        tap.skip("Pyroscope's agent for Rust", "needs cargo")
        return
    built = run("cargo", "build", "--quiet", "--manifest-path", os.path.join(source, "Cargo.toml"), "--target-dir", target, timeout=900)
    if built.returncode and any(w in built.stderr for w in ("failed to download", "Could not resolve", "failed to get", "unable to update")):
        tap.skip("Pyroscope's agent for Rust", "crates.io cannot be reached")
        return
    if not tap.ok(built.returncode == 0, "the program with Pyroscope's agent for Rust is built", built.stderr[-500:] if built.returncode else ""):
        return
    with Collector() as c:
        sent_by(c, "Rust", (os.path.join(target, "debug/pyroscope_rust"), c.url, 23), {}, "rust.shop")
        tags_of(c, "Rust", "rust.shop")


with Collector() as c:
    folded(c)
    documents(c)
    pushes(c)
    sample_labels(c)
    refusals(c)
    render(c)
if not QUICK:
    sdk_node()
    sdk_python()
    sdk_rust()
tap.finish()
