#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""querier.v1.QuerierService as Grafana's data source for Pyroscope asks it: answers beside the profiles that were sent, and beside
/api/0/profiles/merge; with --full by the generated Go client of grafana/pyroscope/api and by npm's connect-node; with
PYROSCOPE naming a binary of Pyroscope's server, beside that one."""
import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from urllib.parse import quote

from collector import Collector, free_port, message, number, pprof
from support import HEARTH, HERE, QUICK, Profile, Tap, path, run, start

sys.path.insert(0, os.path.join(HERE, "check_querier"))
from flamebearer import flame  # noqa: E402  (the folder has to be known before)

tap = Tap("querier")
NOW = int(time.time())
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SERVICE = "/querier.v1.QuerierService/"
TIMES = {"start": str((NOW - 3600) * 1000), "end": str((NOW + 60) * 1000)}
HEAP = (("inuse_objects", "count"), ("inuse_space", "bytes"))
HOSTILE = b"<img onerror>\xff\xe2\x80\xae".decode("utf-8", "surrogateescape")
# service, labels, type, samples, types, age in seconds
SENT = [
    ("shop", {"region": "eu", "pod": "web-1"}, "cpu", [(["main", "handle", "read"], [3, 30]), (["main", "idle"], [2, 20])], None, 600),
    ("shop", {"region": "us", "pod": "web-2"}, "cpu", [(["main", "handle", "read"], [1, 10]), (["main", HOSTILE], [4, 40])], None, 300),
    ("shop", {"region": "eu", "pod": "db-1"}, "cpu", [(["main", "query"], [7, 70], {"span_id": "00f067aa0ba902b7"})], None, 300),
    ("shop", {"region": "eu"}, "heap", [(["main", "alloc"], [5, 4096])], HEAP, 300),
    ("bank", {"k8s.pod/name": "b"}, "cpu", [(["main", "pay"], [1, 100])], None, 30),
    ("bank", {}, "heap", [(["main", "alloc"], [1000])], (("inuse_space", "bytes"),), 30),
]


def send(c):
    for service, labels, kind, samples, types, age in SENT:
        body = pprof(samples, time_ns=(NOW - age) * 10**9, duration_ns=10**10, **({"types": types} if types else {}))
        text = quote(",".join(f"{quote(k)}={quote(v)}" for k, v in labels.items()))
        answer = c.upload(service, kind, body, f"&labels={text}")
        assert answer.status == 200, answer


def ask(c, method, request, **headers):
    """By JSON, without any client's help."""
    return c.ask("POST", SERVICE + method, json.dumps(request).encode(),
                 {"Content-Type": "application/json", "Connect-Protocol-Version": "1", **{k.replace("_", "-"): v for k, v in headers.items()}})


def merge_total(c, service, kind, column, labels=""):
    """What the same selection has by profefe's API."""
    answer = c.get(f"/api/0/profiles/merge?service={service}&type={kind}&from=-2h&to=now&labels={quote(labels)}")
    open(path("m.pb.gz"), "wb").write(answer.body)
    p = Profile(path("m.pb.gz"))
    return sum(s.values[[t for t, _ in p.types].index(column)] for s in p.samples)


def tree_of(graph):
    return flame([[int(v) for v in level["values"]] for level in graph["levels"]], graph["names"])


def stacks_of(c, selector, **more):
    answer = ask(c, "SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": selector, **TIMES, **more})
    return tree_of(answer.json["flamegraph"]) if answer.status == 200 and "flamegraph" in answer.json else answer


def lists(c):
    types = ask(c, "ProfileTypes", TIMES).json["profileTypes"]
    ids = sorted(t["ID"] for t in types)
    tap.ok(ids == ["memory:inuse_objects:count:inuse_space:bytes", "memory:inuse_space:bytes:inuse_space:bytes", CPU,
                   "process_cpu:samples:count:cpu:nanoseconds"], "ProfileTypes", ids)
    one = next(t for t in types if t["ID"] == CPU)
    tap.ok(one == {"ID": CPU, "name": "process_cpu", "sampleType": "cpu", "sampleUnit": "nanoseconds", "periodType": "cpu",
                   "periodUnit": "nanoseconds"}, "one type's parts", one)
    tap.ok(ask(c, "ProfileTypes", {}).json["profileTypes"] == types, "without times: all")
    names = ask(c, "LabelNames", {"matchers": ["{}"], **TIMES}).json["names"]
    tap.ok(names == ["__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__", "k8s_pod_name", "pod",
                     "region", "service_name"], "LabelNames", names)
    names = ask(c, "LabelNames", {"matchers": ['{service_name="shop",__profile_type__="%s"}' % HEAP_ID], **TIMES}).json["names"]
    tap.ok("region" in names and "pod" not in names, "LabelNames of a service and a type", names)
    for name, matchers, want in (
            ("service_name", ["{}"], ["bank", "shop"]), ("service_name", [], ["bank", "shop"]), ("region", ['{service_name="shop"}'], ["eu", "us"]),
            ("region", ['{service_name="bank"}'], None), ("pod", ['{region!~"u.", service_name="shop"}'], ["db-1", "web-1"]),
            ("pod", ['{region="us"}', '{pod=~"db.*"}'], ["db-1", "web-2"]), ("k8s_pod_name", ["{}"], ["b"]),
            ("__profile_type__", ['{service_name="bank"}'], [HEAP_ID, CPU, "process_cpu:samples:count:cpu:nanoseconds"]),
            ("__type__", ['{__name__="memory"}'], ["inuse_objects", "inuse_space"]),
            ("service_name", ['{__profile_type__="memory:inuse_objects:count::"}'], ["shop"])):
        got = ask(c, "LabelValues", {"name": name, "matchers": matchers, **TIMES}).json.get("names")
        tap.ok(got == want, f"LabelValues {name} {matchers}", got)
    sets = ask(c, "Series", {"matchers": ["{}"], "labelNames": ["service_name", "__profile_type__"], **TIMES}).json["labelsSet"]
    got = sorted(tuple(p["value"] for p in s["labels"]) for s in sets)
    tap.ok(got == sorted([("bank", CPU), ("bank", "process_cpu:samples:count:cpu:nanoseconds"), ("bank", HEAP_ID), ("shop", CPU),
                          ("shop", "process_cpu:samples:count:cpu:nanoseconds"), ("shop", HEAP_ID),
                          ("shop", "memory:inuse_objects:count:inuse_space:bytes")]), "Series: services and types", got)
    sets = ask(c, "Series", {"matchers": ['{pod=~".+"}'], "labelNames": ["pod", "region"], **TIMES}).json["labelsSet"]
    got = sorted(tuple(p["value"] for p in s["labels"]) for s in sets)
    tap.ok(got == [("db-1", "eu"), ("web-1", "eu"), ("web-2", "us")], "Series: labels of profiles alone", got)
    everything = ask(c, "Series", {"matchers": ['{service_name="bank",__type__="cpu"}'], **TIMES}).json["labelsSet"]
    got = {p["name"]: p["value"] for p in everything[0]["labels"]}
    tap.ok(len(everything) == 1 and got == {
        "__name__": "process_cpu", "__period_type__": "cpu", "__period_unit__": "nanoseconds", "__profile_type__": CPU, "__type__": "cpu",
        "__unit__": "nanoseconds", "service_name": "bank", "k8s_pod_name": "b"}, "Series: all labels", got)


HEAP_ID = "memory:inuse_space:bytes:inuse_space:bytes"


def selected(selector):
    """Whether a profile of SENT fits, by Python's own regular expressions."""
    def fits(service, labels):
        have = {"service_name": service, **{re.sub(r"[^a-zA-Z0-9_]", "_", k): v for k, v in labels.items()}}
        for name, op, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', selector):
            value = value.replace("\\\\", "\\")
            same = have.get(name, "") == value if op in ("=", "!=") else bool(re.fullmatch(value, have.get(name, ""), re.S))
            if same == op.startswith("!"):
                return False
        return True
    return fits


def merges(c):
    for selector in ("{}", '{service_name="shop"}', '{service_name!="shop"}', '{service_name=~"shop|bank", region="eu"}', '{region=~"e.|x"}',
                     '{region!~"eu"}', '{pod=~"web-\\\\d"}', '{pod=~".*-1", region=~"[a-f]u"}', '{region=""}', '{region!=""}', '{pod!~".+"}',
                     '{k8s_pod_name=~"(a|b){1,2}"}', '{service_name=~"(?i)SHOP", pod!="db-1"}'):
        fits = selected(selector)
        want = {}
        for service, labels, kind, samples, _, _ in SENT:
            if kind == "cpu" and fits(service, labels):
                for names, values, *_ in samples:
                    shown = [n.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for n in names]
                    for depth in range(len(shown) + 1):
                        key = ";".join(["total", *shown[:depth]])
                        total, self_ = want.get(key, (0, 0))
                        want[key] = (total + values[1], self_ + (values[1] if depth == len(shown) else 0))
        got = stacks_of(c, selector)
        if not want:
            tap.ok(not isinstance(got, dict) and got.status == 200 and got.json == {}, f"nothing: {selector}", got)
            continue
        tap.ok(got == want, f"SelectMergeStacktraces {selector}", got)
    tap.ok(stacks_of(c, '{service_name="shop"}')["total"][0] == merge_total(c, "shop", "cpu", "cpu") == 170, "its total is the merge's")
    heap = ask(c, "SelectMergeStacktraces", {"profileTypeID": HEAP_ID, "labelSelector": "{}", **TIMES}).json["flamegraph"]
    tap.ok(int(heap["total"]) == 5096, "profiles of other sample types beside it: the column is added up", heap["total"])
    site = stacks_of(c, '{service_name="shop"}', stackTraceSelector={"callSite": [{"name": "main"}, {"name": "handle"}]})
    tap.ok(site == {"total": (40, 0), "total;main": (40, 0), "total;main;handle": (40, 0), "total;main;handle;read": (40, 40)},
           "a call site: what is below it, in full", site)
    short = stacks_of(c, '{service_name="shop"}', maxNodes="3")
    tap.ok(short["total"] == (170, 0) and sum(s for _, s in short.values()) == 170 and any(k.endswith(";other") for k in short),
           "max_nodes: what is cut is other", short)
    span = ask(c, "SelectMergeSpanProfile", {"profileTypeID": CPU, "labelSelector": "{}", "spanSelector": ["00F067AA0BA902B7"], **TIMES})
    tap.ok(tree_of(span.json["flamegraph"])["total;main;query"] == (70, 70), "SelectMergeSpanProfile: one span's samples", span)
    none = ask(c, "SelectMergeSpanProfile", {"profileTypeID": CPU, "labelSelector": "{}", "spanSelector": ["1"], **TIMES})
    tap.ok(none.status == 200 and none.json == {}, "a span that nobody has", none)


def profiles(c):
    request = {"profileTypeID": CPU, "labelSelector": '{service_name="shop"}', **TIMES}
    whole = ask(c, "SelectMergeProfile", request).json
    texts = whole["stringTable"]
    tap.ok(sum(int(s["value"][0]) for s in whole["sample"]) == 170 and all(len(s["value"]) == 1 for s in whole["sample"]) and
           [texts[int(t["type"])] for t in whole["sampleType"]] == ["cpu"], "SelectMergeProfile: one column", whole["sampleType"])
    inside = ask(c, "SelectMergeStacktraces", {**request, "format": "PROFILE_FORMAT_PPROF"}).json["pprof"]["profile"]
    tap.ok(inside == whole, "SelectMergeStacktraces as pprof is the same")
    start, end = (number(n, v) for n, v in ((3, NOW * 1000 - 3600000), (4, NOW * 1000 + 60000)))
    body = message(1, CPU.encode()) + message(2, b'{service_name="shop"}') + start + end
    answer = c.ask("POST", SERVICE + "SelectMergeProfile", body, {"Content-Type": "application/proto"})
    open(path("q.pb.gz"), "wb").write(gzip.compress(answer.body))
    p = Profile(path("q.pb.gz"))
    tap.ok(sum(s.values[0] for s in p.samples) == 170 and answer.headers["Content-Type"] == "application/proto", "the protobuf form is a pprof file", p)
    packed = c.ask("POST", SERVICE + "SelectMergeProfile", gzip.compress(body),
                   {"Content-Type": "application/proto", "Content-Encoding": "gzip", "Accept-Encoding": "gzip"})
    raw = gzip.decompress(packed.body) if packed.headers.get("Content-Encoding") == "gzip" else packed.body
    tap.ok(raw == answer.body, "gzip both ways", packed.status)


def points_of(answer):
    return {tuple(sorted((p["name"], p["value"]) for p in s.get("labels", []))): [(int(p["timestamp"]), p["value"]) for p in s["points"]]
            for s in answer.json.get("series", [])}


def series(c):
    request = {"profileTypeID": CPU, "labelSelector": "{}", "step": 60, **TIMES}
    got = points_of(ask(c, "SelectSeries", request))
    tap.ok(sum(v for _, v in got[()]) == 270 == merge_total(c, "shop", "cpu", "cpu") + merge_total(c, "bank", "cpu", "cpu"),
           "SelectSeries: the points add up to the merge", got)
    tap.ok([v for _, v in got[()]] == [50, 120, 100] and all(0 <= t - (NOW - age) * 1000 < 60000 for (t, _), age in zip(got[()], (600, 300, 30))),
           "a point at the end of its step", got)
    got = points_of(ask(c, "SelectSeries", {**request, "groupBy": ["region"]}))
    tap.ok({k: sum(v for _, v in p) for k, p in got.items()} == {(): 100, (("region", "eu"),): 120, (("region", "us"),): 50}, "by a label", got)
    got = points_of(ask(c, "SelectSeries", {**request, "groupBy": ["service_name", "pod"], "limit": "2"}))
    tap.ok([sum(v for _, v in p) for p in got.values()] == [100, 70], "the largest two", got)
    got = points_of(ask(c, "SelectSeries", {**request, "labelSelector": '{pod=~".*-.*"}', "aggregation": "TIME_SERIES_AGGREGATION_TYPE_AVERAGE"}))
    tap.ok([v for _, v in got[()]] == [50, 60], "averages", got)


def others(c):
    left = {"profileTypeID": CPU, "labelSelector": '{pod="web-1"}', **TIMES}
    answer = ask(c, "Diff", {"left": left, "right": {**left, "labelSelector": '{pod="web-2"}'}}).json["flamegraph"]
    tap.ok(int(answer["leftTicks"]) == 50 and int(answer["rightTicks"]) == 50 and int(answer["total"]) == 100, "Diff: totals", answer)
    rows = [[int(v) for v in level["values"]] for level in answer["levels"]]
    sides = [flame([[v for i in range(0, len(row), 7) for v in (*row[i + at:i + at + 3], row[i + 6])] for row in rows], answer["names"])
             for at in (0, 3)]
    tap.ok(sides[0].get("total;main;handle;read") == (30, 30) and sides[1].get("total;main;handle;read") == (10, 10) and
           sides[0].get("total;main;idle") == (20, 20) and sides[1].get("total;main;idle", (0, 0)) == (0, 0), "Diff: both sides of a node", sides)
    empty = ask(c, "Diff", {"left": left, "right": {**left, "labelSelector": '{pod="none"}'}}).json["flamegraph"]
    tap.ok(int(empty["leftTicks"]) == 50 and "rightTicks" not in empty, "Diff with nothing on one side", empty)
    stats = ask(c, "GetProfileStats", {}).json
    tap.ok(stats == {"dataIngested": True, "oldestProfileTime": str((NOW - 600) * 1000), "newestProfileTime": str((NOW - 30) * 1000)},
           "GetProfileStats", stats)
    plan = ask(c, "AnalyzeQuery", {"query": CPU + '{service_name="shop"}', **TIMES}).json
    tap.ok(plan["queryScopes"][0]["profileCount"] == "3" and plan["queryImpact"]["totalQueriedSeries"] == "3", "AnalyzeQuery", plan)
    for query, matchers, profiles_of in (('{service_name="shop"}', ['{service_name="shop"}'], "shop"), ("", ["{}"], ""), ("{}", ["{}"], ""),
                                         ('{service_name="shop",__profile_type__="%s"}' % CPU, ['{service_name="shop",__profile_type__="%s"}' % CPU], None)):
        plan = ask(c, "AnalyzeQuery", {"query": query, **TIMES})
        want = len(ask(c, "Series", {"matchers": matchers, **TIMES}).json["labelsSet"])
        count = 3 if profiles_of is None else sum(s.startswith(profiles_of) for s, *_ in SENT)
        tap.ok(plan.status == 200 and plan.json["queryImpact"]["totalQueriedSeries"] == str(want) and
               plan.json["queryScopes"][0]["profileCount"] == str(count), f"AnalyzeQuery without a type: {query or 'nothing'}", plan)
    query, other = (quote(CPU + '{pod=~"%s"}' % p) for p in ("web-1", "web-[2-9]"))
    for where in ("/pyroscope/render", "/render"):
        f = c.get(f"{where}?query={query}").json
        tap.ok(f["flamebearer"]["numTicks"] == 50 and sum(f["timeline"]["samples"]) == 50, f"{where} with a regular expression", f["flamebearer"])
    for where in ("/pyroscope/render-diff", "/render-diff"):
        f = c.get(f"{where}?leftQuery={query}&rightQuery={other}&leftFrom=now-2h&rightFrom=now-1h").json
        names, levels = f["flamebearer"]["names"], f["flamebearer"]["levels"]
        tap.ok(f["metadata"]["format"] == "double" and f["leftTicks"] == f["rightTicks"] == 50 and [names, levels] ==
               [answer["names"], rows], f"{where}: as Diff has it", f["metadata"])
    tap.ok(c.get(f"/render-diff?leftQuery={query}").status == 400, "render-diff without a right side is refused")


def timelines(c):
    """aggregation and groupBy of /render: of the timeline, the graph is the same. Three of shop's profiles have 50, 50 and 70, the last two in one step."""
    query = quote(CPU + '{service_name="shop"}')
    whole = c.get(f"/render?query={query}").json
    points = {}
    for what in ("", "&aggregation=sum", "&aggregation=avg"):
        f = c.get(f"/render?query={query}{what}").json
        points[what] = [v for v in f["timeline"]["samples"] if v]
        tap.ok(f["flamebearer"] == whole["flamebearer"] and f["groups"] is None, f"/render{what or ' as it is'}: the graph, and no groups", f["groups"])
    tap.ok(points[""] == points["&aggregation=sum"] == [50, 120] and points["&aggregation=avg"] == [50, 60], "sums of a step, and their mean", points)
    for label, want in (("region", {"eu": 120, "us": 50}), ("pod", {"web-1": 50, "web-2": 50, "db-1": 70}), ("service_name", {"shop": 170}), ("nobody", {"*": 170})):
        f = c.get(f"/render?query={query}&groupBy={label}").json
        got = {k: sum(g["samples"]) for k, g in f["groups"].items()}
        tap.ok(got == want and sum(f["timeline"]["samples"]) == (170 if len(want) == 1 else 0) and
               all(g["durationDelta"] == whole["timeline"]["durationDelta"] and len(g["samples"]) == len(whole["timeline"]["samples"]) for g in f["groups"].values()),
               f"/render by {label}: timelines of its values; that of all is there while there is one", got)
    mixed = c.get(f"/render?query={quote(CPU + '{}')}&groupBy=pod&aggregation=avg").json["groups"]
    tap.ok({k: sum(g["samples"]) for k, g in mixed.items()} == {"web-1": 50, "web-2": 50, "db-1": 70, "*": 100}, "what has no such label is *", list(mixed))
    for what, word in (("aggregation=mean", "sum or avg"), ("aggregation=AVG", "sum or avg"), ("groupBy=pod&groupBy=region", "one label")):
        answer = c.get(f"/render?query={query}&{what}")
        tap.ok(answer.status == 400 and word in answer.error, f"/render?{what} is refused", answer)


def refusals(c):
    good = {"profileTypeID": CPU, "labelSelector": "{}", **TIMES}
    many = "|".join(f"a{i}" for i in range(400))
    for what, method, request, status, code in (
            ("no type", "SelectMergeStacktraces", {}, 400, "invalid_argument"), ("a query that is no type", "AnalyzeQuery", {"query": "cpu{}"}, 400, "invalid_argument"), ("a bad type", "SelectSeries", {**good, "profileTypeID": "cpu"}, 400, "invalid_argument"),
            ("a bad selector", "SelectMergeStacktraces", {**good, "labelSelector": "{a}"}, 400, "invalid_argument"),
            ("a bad expression", "LabelNames", {"matchers": ['{a=~"("}']}, 400, "invalid_argument"),
            ("an expression that explodes", "LabelNames", {"matchers": ['{a=~"((a{100}){100}){100}"}']}, 400, "invalid_argument"),
            ("an escape", "LabelNames", {"matchers": ['{a=~"\\d"}']}, 400, "invalid_argument"),
            ("times in disorder", "ProfileTypes", {"start": "5", "end": "4"}, 400, "invalid_argument"),
            ("negative times", "ProfileTypes", {"start": "-5"}, 400, "invalid_argument"),
            ("steps too small", "SelectSeries", {**good, "step": 0.01}, 400, "invalid_argument"), ("no step", "SelectSeries", good, 400, "invalid_argument"),
            ("a step that is none", "SelectSeries", {**good, "step": "NaN"}, 400, "invalid_argument"),
            ("a wrong type of member", "ProfileTypes", {"start": []}, 400, "invalid_argument"), ("an enum", "SelectSeries", {**good, "aggregation": "X"}, 400, "invalid_argument"),
            ("too many nodes", "SelectMergeStacktraces", {**good, "maxNodes": "9999999"}, 400, "invalid_argument"),
            ("too many selectors", "LabelNames", {"matchers": ["{}"] * 9}, 413, "resource_exhausted"),
            ("too many matchers", "LabelNames", {"matchers": ["{" + ",".join(['a="b"'] * 40) + "}"]}, 400, "invalid_argument"),
            ("profile ids", "SelectMergeStacktraces", {**good, "profileIdSelector": ["x"]}, 501, "unimplemented"),
            ("dot", "SelectMergeStacktraces", {**good, "format": "PROFILE_FORMAT_DOT"}, 501, "unimplemented"),
            ("exemplars", "SelectSeries", {**good, "step": 60, "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}, 501, "unimplemented"),
            ("a heat map", "SelectHeatmap", good, 501, "unimplemented"), ("an unknown method", "Nope", {}, 501, "unimplemented")):
        answer = ask(c, method, request)
        tap.ok(answer.status == status and answer.json["code"] == code and answer.json["message"], f"refused: {what}", answer)
    tap.ok(ask(c, "SelectSeries", {**good, "step": 60, "exemplarType": "EXEMPLAR_TYPE_NONE"}).status == 200, "no exemplars are fine")
    tap.ok(ask(c, "LabelNames", {"matchers": ['{a=~"%s"}' % many]}).status == 200, "400 alternatives are fine")
    tap.ok(ask(c, "ProfileTypes", {}, Connect_Timeout_Ms="x").status == 400, "a bad deadline")
    for body, kind, status in ((b"{", "application/json", 400), (b"[]", "application/json", 400), (b"\x0a", "application/proto", 400),
                               (b"\x09", "application/proto", 400), (b"", "application/grpc", 415), (b"", "text/plain", 415)):
        answer = c.ask("POST", SERVICE + "ProfileTypes", body, {"Content-Type": kind})
        tap.ok(answer.status == status and answer.json["code"] == "invalid_argument", f"refused: {kind} {body}", answer)
    answer = c.ask("POST", SERVICE + "ProfileTypes", b"x" * 2000000, {"Content-Type": "application/proto"})
    tap.ok(answer.status == 413 and answer.json["code"] == "resource_exhausted" and answer.json["message"], "refused: 2 MB", answer)
    answer = c.get(SERVICE + "ProfileTypes")
    tap.ok(answer.status == 405 and answer.json["code"] == "unimplemented", "GET is refused", answer)


def tokens():
    folder = path("store-querier-token")
    secrets = {s: run(HEARTH, "token", "create", "--data-dir", folder, "--scope", s, check=True).stdout.strip() for s in ("ingest", "read")}
    with Collector(folder=folder) as c:
        for what, headers, status, code in (("no token", {}, 401, "unauthenticated"), ("an ingest token", bearer(secrets["ingest"]), 403, "permission_denied"),
                                            ("a read token", bearer(secrets["read"]), 200, None)):
            answer = ask(c, "ProfileTypes", {}, **headers)
            tap.ok(answer.status == status and answer.json.get("code") == code, f"with {what}", answer)


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def large(c):
    """More than one piece of JSON, and the same as protobuf."""
    samples = [(["main", *[f"f{(i * 7 + d * 13) % 5000}" for d in range(20)], f"leaf{i}"], [1, i + 1]) for i in range(3000)]
    assert c.upload("wide", "cpu", pprof(samples, time_ns=(NOW - 60) * 10**9)).status == 200
    request = {"profileTypeID": CPU, "labelSelector": '{service_name="wide"}', "maxNodes": "1000000", **TIMES}
    answer = ask(c, "SelectMergeStacktraces", request)
    got = tree_of(answer.json["flamegraph"])
    tap.ok(len(answer.body) > 1 << 20 and got["total"][0] == sum(range(3001)) and sum(s for _, s in got.values()) == sum(range(3001)),
           "a large answer comes in pieces, whole", len(answer.body))


# --- Clients of others ---

ASKED = [("ProfileTypes", TIMES), ("ProfileTypes", {}), ("LabelNames", {"matchers": ["{}"], **TIMES}),
         ("LabelValues", {"name": "service_name", "matchers": ["{}"], **TIMES}), ("LabelValues", {"name": "pod", "matchers": ['{region=~"e."}'], **TIMES}),
         ("Series", {"matchers": ["{}"], "labelNames": ["service_name", "__profile_type__"], **TIMES}), ("Series", {"matchers": ["{}"], **TIMES}),
         *[(m, {"profileTypeID": CPU, "labelSelector": s, **TIMES}) for m in ("SelectMergeStacktraces", "SelectMergeProfile")
           for s in ("{}", '{service_name="shop"}', '{pod=~"web-.*",region!~"us"}', '{pod="none"}')],
         ("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": "{}", "maxNodes": "4", **TIMES}),
         ("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": "{}", "format": "PROFILE_FORMAT_PPROF", **TIMES}),
         ("SelectMergeSpanProfile", {"profileTypeID": CPU, "labelSelector": "{}", "spanSelector": ["00f067aa0ba902b7"], **TIMES}),
         ("SelectSeries", {"profileTypeID": CPU, "labelSelector": "{}", "step": 15, "groupBy": ["service_name", "region"], **TIMES}),
         ("Diff", {"left": {"profileTypeID": CPU, "labelSelector": '{region="eu"}', **TIMES}, "right": {"profileTypeID": CPU, "labelSelector": "{}", **TIMES}}),
         ("GetProfileStats", {}), ("AnalyzeQuery", {"query": CPU + "{}", **TIMES}),
         ("SelectMergeStacktraces", {"profileTypeID": "x", **TIMES}), ("SelectHeatmap", {"profileTypeID": CPU, **TIMES})]


def judge(c, name, command, env=None):
    text = "".join(f"{m} {json.dumps(r)}\n" for m, r in ASKED)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **(env or {})})
    lines = done.stdout.splitlines()
    if not tap.ok(done.returncode == 0 and len(lines) == len(ASKED), f"{name}: answers every request", done.stderr[-500:]):
        return
    for (method, request), line in zip(ASKED, lines):
        got, own = json.loads(line), ask(c, method, request)
        what = f"{name}: {method} {request.get('labelSelector') or request.get('name') or request.get('matchers') or ''}".strip()
        if own.status == 200:
            tap.ok(got == own.json, f"{what}: decoded without unknown fields, as our JSON has it", line[:300])
        else:
            tap.ok(got.get("error") == own.json["code"], f"{what}: {own.json['code']}", line[:300])


def clients(c):
    program, source = path("grafana"), os.path.join(HERE, "check_querier")
    built = run("go", "build", "-C", source, "-o", program, ".", timeout=600, env={**os.environ, "GOFLAGS": "-mod=readonly"}) if shutil.which("go") else None
    if not built or built.returncode:
        missing = not built or any(w in built.stderr for w in ("dial tcp", "no such host", "requires go", "toolchain", "flag provided but not defined", "proxy"))
        if tap.ok(missing, "the program with Grafana's client is built", built.stderr[-500:] if built else ""):
            tap.skip("Grafana's client", "needs Go 1.25 and its modules (make setup-extra)")
            tap.skip("a Connect client of npm", "needs the descriptors that the Go program has")
        return
    judge(c, "Go, protobuf", [program, c.url])
    judge(c, "Go, JSON", [program, c.url, "json"])
    descriptors, modules = path("querier.binpb"), os.path.join(HERE, "../web/node_modules")
    run(program, "--descriptors", descriptors, check=True)
    if not shutil.which("node") or not os.path.isdir(os.path.join(modules, "@connectrpc/connect-node")):
        tap.skip("a Connect client of npm", "needs node and @connectrpc/connect-node (make setup-extra)")
        return
    for form in ("proto", "json"):
        judge(c, f"connect-node, {form}", ["node", os.path.join(source, "ask.mjs"), c.url, form, descriptors], {"NODE_MODULES": modules})


# --- The server of others ---

class Pyroscope:
    """The binary that PYROSCOPE names, as one process with its data in the scratch folder; asked as a Collector is."""

    def __init__(self, binary):
        self.port, folder = free_port(), path("pyroscope")
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = start(binary, "-target=all", "-server.http-listen-address=127.0.0.1", f"-server.http-listen-port={self.port}",
                             f"-server.grpc-listen-port={free_port()}", "-storage.backend=filesystem", f"-storage.filesystem.dir={folder}/blocks",
                             f"-pyroscopedb.data-path={folder}/db", "-usage-stats.enabled=false", "-log.level=error",
                             stdout=subprocess.DEVNULL, stderr=open(path("pyroscope.log"), "wb"))

    ask, get = Collector.ask, Collector.get

    def wait(self, what, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if what():
                    return True
            except (OSError, ValueError, LookupError):
                pass
            time.sleep(0.5)
        return False


def send_push(server):
    """The profiles of SENT that have labels which Pyroscope takes, by push.v1."""
    for service, labels, kind, samples, types, age in SENT:
        body = pprof(samples, time_ns=(NOW - age) * 10**9, duration_ns=10**10, **({"types": types} if types else {}))
        names = {"service_name": service, "__name__": {"cpu": "process_cpu", "heap": "memory"}[kind], **{re.sub(r"\W", "_", k): v for k, v in labels.items()}}
        text = json.dumps({"series": [{"labels": [{"name": k, "value": v} for k, v in names.items()],
                                       "samples": [{"rawProfile": base64.b64encode(body).decode(), "ID": str(uuid.uuid4())}]}]})
        sent = server.wait(lambda t=text: server.ask("POST", "/push.v1.PusherService/Push", t.encode(), {"Content-Type": "application/json"}).status == 200)
        assert sent, open(path("pyroscope.log")).read()[-500:]


def what_it_says(c, method, request):
    """An answer as far as both servers have to agree: numbers, names and labels; not how nodes of one level are ordered."""
    if method == "/render":
        f = c.get(f"/pyroscope/render?from={NOW - 3600}&until={NOW + 60}&query={quote(CPU + request['labelSelector'])}{request.get('more', '')}").json
        return {"total": f["flamebearer"]["numTicks"], "timeline": [v for v in f["timeline"]["samples"] if v],
                "groups": {k: [v for v in g["samples"] if v] for k, g in (f["groups"] or {}).items()}}
    answer = ask(c, method, {**request, **TIMES})
    if method == "AnalyzeQuery" or answer.status != 200:
        return answer.status
    if method == "SelectMergeStacktraces":
        return tree_of(answer.json["flamegraph"])
    if method == "SelectSeries":
        return {k: [v for _, v in p if v] for k, p in points_of(answer).items()}
    return sorted(answer.json.get("names") or [t["ID"] for t in answer.json.get("profileTypes", []) if t["name"] == "process_cpu"])


BOTH = [("ProfileTypes", {}), ("LabelValues", {"name": "service_name", "matchers": ["{}"]}), ("LabelValues", {"name": "region", "matchers": ['{service_name="shop"}']}),
        *[("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": s}) for s in ('{service_name="bank"}', '{region="eu"}', '{pod=~"db.*"}')],
        *[("SelectSeries", {"profileTypeID": CPU, "labelSelector": "{}", "step": 15, "groupBy": by}) for by in ([], ["region"], ["service_name", "pod"])],
        *[("/render", {"labelSelector": '{service_name="shop"}', "more": more})
          for more in ("", "&aggregation=sum", "&aggregation=avg", "&groupBy=region", "&groupBy=pod&aggregation=avg")],
        *[("AnalyzeQuery", {"query": q}) for q in (CPU + "{}", '{service_name="shop"}', "", "}")]]


def beside_pyroscope(c):
    binary = os.environ.get("PYROSCOPE")
    if not binary:
        tap.skip("answers beside those of Pyroscope's own server", "PYROSCOPE names no binary of it")
        return
    server = Pyroscope(binary)
    try:
        if not tap.ok(server.wait(lambda: ask(server, "ProfileTypes", TIMES).status == 200), "PYROSCOPE starts", open(path("pyroscope.log")).read()[-500:]):
            return
        send_push(server)
        tap.ok(server.wait(lambda: what_it_says(server, *BOTH[5]) == what_it_says(c, *BOTH[5])), "and has what was sent")
        for method, request in BOTH:
            ours, theirs = what_it_says(c, method, request), what_it_says(server, method, request)
            tap.ok(ours == theirs, f"beside PYROSCOPE: {method} {request.get('labelSelector', '')}{request.get('more', '')}{request.get('groupBy', '')}",
                   "" if ours == theirs else f"{ours} and {theirs}")
    finally:
        server.process.terminate()
        server.process.wait(timeout=30)


with Collector() as c:
    tap.ok(ask(c, "GetProfileStats", {}).json == {} and ask(c, "ProfileTypes", {}).json == {}, "an empty store")
    send(c)
    lists(c)
    merges(c)
    profiles(c)
    series(c)
    others(c)
    timelines(c)
    refusals(c)
    if not QUICK:
        clients(c)
    beside_pyroscope(c)
    large(c)
tokens()
tap.finish()
