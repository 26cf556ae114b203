#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The viewer's API (docs/api.yaml): totals beside those of the store's merge and of go tool pprof, cuts that can be opened,
comparisons, exports, snapshots, signing in, the viewer's files, hostile parameters; on both engines."""
import base64
import gzip
import json
import os
import random
import re
import signal
import socket
import struct
import time
import urllib.parse
import zlib
from concurrent.futures import ThreadPoolExecutor

from collector import Collector, Watchers, message, number, pprof, top
from support import HERE, QUICK, Profile, Tap, cpu_seconds, hearth, path, status_kib

tap = Tap("view_api")
NOW = int(time.time())
LIVE_S = 20
FLAME = "application/vnd.hearth.flame"


def get(c, what):
    answer = c.get("/api/v1/" + what)
    if answer.status != 200:
        raise RuntimeError(f"{what}: {answer.status} {answer.body[:300]}")
    return answer.json


def seed(c):
    """Two services on two hosts over an hour. Stacks at random, so that cuts have something to hide."""
    rng = random.Random(4)
    stacks = [["main"] + [f"f{rng.randrange(40)}" for _ in range(rng.randrange(1, 12))] for _ in range(400)]
    sums = {}
    for service, host, every in (("api", "h1", 60), ("api", "h2", 120), ("web", "h1", 300)):
        for at in range(NOW - 3600, NOW, every):
            samples = [(s, [n, n * 10_000_000]) for s in rng.sample(stacks, 40) for n in [rng.randrange(1, 50)]]
            sums[service] = sums.get(service, 0) + sum(v[1] for _, v in samples)
            answer = c.upload(service, "cpu", pprof(samples, time_ns=at * 10**9), extra=f"&labels=host%3D{host}")
            assert answer.status == 200, answer
    heap = pprof([(["main", "new"], [3, 4096])], types=(("inuse_objects", "count"), ("inuse_space", "bytes")), time_ns=(NOW - 60) * 10**9)
    assert c.upload("api", "heap", heap).status == 200
    return sums


def varint(data, at):
    value = shift = 0
    while True:
        b = data[at]
        at += 1
        value |= (b & 127) << shift
        shift += 7
        if b < 128:
            return value, at


def numbers(data):
    out, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out


def decode(body):
    """The binary form, read without any code of the project. Names are left out but for their count."""
    size = struct.unpack("<I", body[:4])[0]
    meta, data = json.loads(body[4:4 + size]), zlib.decompress(body[4 + size:], -15)
    head, at = [], 0
    for _ in range(7):
        value, at = varint(data, at)
        head.append(value)
    version, flags, frames, _, nodes, _, total = head
    assert version == 1 and flags in (2, 6)
    sizes = []
    for _ in range(16 if flags & 4 else 14):
        value, at = varint(data, at)
        sizes.append(value)
    columns = []
    for size in sizes:
        columns.append(data[at:at + size])
        at += size
    assert at == len(data)
    level, self = [0], numbers(columns[10])
    for pops in numbers(columns[8]):
        level.append(level[-1] + 1 - pops)
    hidden = numbers(columns[13])
    rest = {"base_self": numbers(columns[14]), "base_hidden": numbers(columns[15])} if flags & 4 else {}
    assert len(level) == nodes == len(hidden) == len(self) + 1 and len(columns[4]) == frames
    return {"meta": meta, "level": level, "self": [0] + self, "hidden": hidden, "total": total, **rest}


def adds_up(f, total="total", self="self", hidden="hidden"):
    """Whether every node's total is its self, what is hidden, and its children."""
    below = {}
    for i in reversed(range(len(f["level"]))):
        level = f["level"][i]
        if f[total][i] != f[self][i] + f[hidden][i] + below.pop(level + 1, 0):
            return False
        below[level] = below.get(level, 0) + f[total][i]
    return True


def adds_total(f):
    return f["total"] == sum(f["self"]) + sum(f["hidden"])


def steps(f, node):
    """The call path of a node, as a request names it."""
    out, level = [], f["level"][node] + 1
    for i in reversed(range(node + 1)):
        if f["level"][i] == level - 1 and i:
            level -= 1
            frame = f["frame"][i]
            out.append({"name": f["names"][frame], "kind": f["meta"]["kinds"][f["kind"][frame]], "module": f["modules"][f["module"][frame]]})
    return out[::-1]


def merged(c, service):
    answer = c.get(f"/api/0/profiles/merge?service={service}&type=cpu&from=-2h&to=now")
    with open(path("merge.pb.gz"), "wb") as f:
        f.write(answer.body)
    return path("merge.pb.gz")


def small_services(c):
    """What is folded is a program that costs little, and can be had."""
    at = NOW - 9000
    kinds = {"big": "executable", "tiny": "executable", "(short-lived)": "short-lived", "kernel": "kernel", "unit": "unit", "web-1": "container",
             "pod-1": "pod", "app:a": "application", "named": "rule", "pushed": None, "both": "executable"}
    for service, kind in kinds.items():
        cost = 10**9 if service == "big" else 10**6
        labels = f"&labels=service_kind%3D{kind}" if kind else ""
        answer = c.upload(service, "cpu", pprof([(["main"], [1, cost])], time_ns=at * 10**9), extra=labels)
        assert answer.status == 200, answer
    assert c.upload("both", "cpu", pprof([(["main"], [1, 1])], time_ns=at * 10**9), extra="&labels=service_kind%3Dunit").status == 200
    assert c.upload("tiny", "cpu", pprof([(["main"], [1, 10**9])], time_ns=(at - 3600) * 10**9), extra="&labels=service_kind%3Dexecutable").status == 200
    fold = get(c, f"services?from={at - 60}&to={at + 60}")
    rows = {s["service"]: s for s in fold["services"]}
    tap.ok(set(rows) == set(kinds) - {"tiny", "(short-lived)", "kernel"} and not any("small" in s for s in rows.values()) and
           fold["folded"] == {"services": 3, "total": 3 * 10**6}, "small programs are folded, what has a name of its own is not", sorted(rows))
    tap.ok(rows["both"]["kind"] == "unit" and "kind" not in rows["pushed"] and rows["pod-1"]["kind"] == "pod", "kinds, the most telling one")
    every = get(c, f"services?from={at - 60}&to={at + 60}&small=list")
    tap.ok({s["service"] for s in every["services"] if s.get("small")} == {"tiny", "(short-lived)", "kernel"} and
           len(every["services"]) == len(kinds) and every["folded"]["services"] == 0, "small=list has them")
    before = get(c, f"services?from={at - 60}&to={at + 60}&before=1h")
    tap.ok("tiny" in {s["service"] for s in before["services"]}, "what was large before is not small")
    tap.ok(c.get("/api/v1/services?small=x").status == 400, "small=x is refused")


def many_services(c):
    """More names than have points in one reading: the listed ones have theirs all the same."""
    at = NOW - 9000
    body = pprof([(["main"], [1, 10])], time_ns=at * 10**9)
    for i in range(4200):
        assert c.upload(f"many-{i:04}", "cpu", body).status == 200
    for when, cost in ((at, 3000), (at + 600, 4000)):
        assert c.upload("the-last", "cpu", pprof([(["main"], [1, cost])], time_ns=when * 10**9)).status == 200
    answer = get(c, f"services?from={at - 60}&to={at + 1000}&limit=3&points=10")
    first = answer["services"][0]
    tap.ok(first["service"] == "the-last" and sum(first["points"]) == first["total"] == 7000 and sum(map(bool, first["points"])) == 2 and
           all(sum(s["points"]) == s["total"] for s in answer["services"]) and answer["folded"]["services"] == 4198 and answer["total"] == 7000 + 42000,
           "4,201 services: those that are listed have their points", first)


def totals(c, sums):
    services = get(c, "services?from=-2h")
    rows = {s["service"]: s for s in services["services"]}
    tap.ok({k: v["total"] for k, v in rows.items()} == sums, "services: totals are those that were sent", services)
    tap.ok(services["total"] == sum(sums.values()) and services["services"][0]["service"] == "api" and services["unit"] == "nanoseconds",
           "the largest first, and all together")
    tap.ok(all(sum(s["points"]) == s["total"] and len(s["points"]) == services["points"] for s in rows.values()),
           "sparklines add up to totals")
    tap.ok(rows["api"]["hosts"] == 2 and rows["web"]["hosts"] == 1 and rows["api"]["profiles"] == 90, "hosts and profiles", rows["api"])
    early = c.get("/api/v1/" + f"services?from={NOW - 3600}&to={NOW - 1801}&before=-1").json
    tap.ok(early["code"] == 400, "a negative duration is refused", early)
    late = get(c, f"services?from={NOW - 1800}&to={NOW}&before=30m")
    line = get(c, f"timeline?service=api&from={NOW - 3600}&to={NOW - 1800}")
    tap.ok({s["service"]: s["before"] for s in late["services"]}["api"] == line["total"], "before: the same range earlier", line["total"])
    folded = get(c, "services?from=-2h&limit=1")
    tap.ok(len(folded["services"]) == 1 and folded["folded"] == {"services": 1, "total": sums["web"]}, "what a limit leaves out is said", folded["folded"])
    line = get(c, "timeline?from=-2h&group=host&sample=samples")
    tap.ok({s["value"] for s in line["series"]} == {"h1", "h2"} and line["total"] * 10_000_000 == sum(sums.values()) and
           sum(sum(s["points"]) for s in line["series"]) == line["total"], "timeline by host adds up", line["total"])
    facets = get(c, "labels?service=api&from=-2h")
    tap.ok([(v["value"], v["profiles"]) for v in facets["labels"][0]["values"]] == [("h1", 60), ("h2", 30)] and
           sum(v["total"] for v in facets["labels"][0]["values"]) == sums["api"], "label values with counts and totals", facets)
    types = get(c, "types?service=api&from=-2h")["types"]
    tap.ok([(t["type"], t["default"], [s["sample"] for s in t["samples"]]) for t in types] ==
           [("cpu", "cpu", ["cpu", "samples"]), ("heap", "inuse_space", ["inuse_objects", "inuse_space"])], "types and their columns", types)
    hosts = get(c, "agents?from=-2h")["agents"]
    tap.ok([(h["host"], h["profiles"], h["services"]) for h in hosts] == [("h1", 72, 2), ("h2", 30, 1)], "hosts", hosts)
    end = time.monotonic() + 30  # the store is looked at every some seconds
    while (status := get(c, "status")).get("store", {}).get("profiles") != 103 and time.monotonic() < end:
        time.sleep(0.2)
    tap.ok(status.get("store", {}).get("profiles") == 103 and "pprof" in status["formats"] and "html" in status["formats"] and
           status["scopes"] == ["ingest", "read", "admin"], "status", status)


def covered(engine):
    """CPUs are of the time that has profiles, of whatever service and labels: by how much that is, whatever part is asked for."""
    with Collector("--storage-type", engine) as c:
        now = NOW - 100  # Live's minutes end some seconds ago, and tests take a while
        for service, ago, seconds, count in (("app", 0, 10, 12), ("app", 86400, 250, 12), ("rare", 0, 20, 6)):
            for i in range(count):
                at = now - ago - (i + 1) * seconds
                body = pprof([(["main"], [1, 10 * 10**9])], time_ns=at * 10**9, duration_ns=seconds * 10**9)
                assert c.upload(service, "cpu", body, extra="&labels=host%3Dh1").status == 200
        times = f"from={now - 3600}&to={now}"
        asked = [f"services?{times}", f"services?{times}" + chosen('{host="h1"}'), f"services?{times}&service=app", f"services?{times}&service=rare", f"timeline?{times}&service=app",
                 f"timeline?{times}&service=rare&group=host", f"timeline?{times}" + chosen('{host!="h1"}')]
        told = [get(c, what).get("covered_ms", 0) for what in asked]
        tap.ok(all(119000 <= ms <= 121000 for ms in told), "two minutes of an hour have profiles, whichever part is asked for", told)
        for part in ("", "&service=app", chosen('{host="h1"}')):
            day = get(c, f"services?{times}&before=1d{part}")
            tap.ok(119000 <= day.get("covered_ms", 0) <= 121000 and 2990000 <= day.get("before_covered_ms", 0) <= 3010000 and
                   [(s["total"], s["before"]) for s in day["services"] if s["service"] == "app"] == [(120 * 10**9, 120 * 10**9)],
                   f"50 minutes of the same hour a day ago{part}", day)
        tap.ok("before_covered_ms" not in get(c, f"services?{times}"), "only where it is asked for")
        viewer = Live(c, "service=app&window=5m")
        live_totals = viewer.event("totals")
        viewer.close()
        tap.ok(live_totals and 0 < live_totals.get("covered_ms", 0) <= 121000, "Live of one service has it, too", live_totals)


def units(engine):
    """Sample types of one name are told apart by their units, in every answer and in one profile or two."""
    with Collector("--storage-type", engine) as c:
        two = (("x", "count"), ("x", "bytes"))
        for service, types, values in (("both", two, [1, 2]), ("both", two, [3, 5]), ("apart", two[:1], [4]), ("apart", two[1:], [7]), ("twice", (two[0], two[0]), [4, 7])):
            assert c.upload(service, "other", pprof([(["main"], values)], types=types, time_ns=(NOW - 40) * 10**9)).status == 200
        for service, counts, sizes in (("both", 4, 7), ("apart", 4, 7)):
            told = get(c, f"types?service={service}&from=-1h")["types"][0]
            tap.ok([(s["sample"], s["unit"], s["total"]) for s in told["samples"]] == [("x", "bytes", sizes), ("x", "count", counts)] and told["profiles"] == (2 if service == "both" else 1)
                   and told["default"] in ("x/count", "x/bytes"), f"{service}: two types of one name", told)
            for sample, wanted, unit in (("x/count", counts, "count"), ("x/bytes", sizes, "bytes")):
                query = f"service={service}&type=other&from=-1h&sample={sample.replace('/', '%2F')}"
                flame, side = get(c, "flame?" + query)["meta"], get(c, "compare?" + query + "&base-from=-1h")["meta"]
                got = [flame["total"], get(c, "flame?" + query + "&group=host")["meta"]["total"], get(c, "timeline?" + query)["total"], side["base_total"], side["total"] - side["base_total"],
                       next(s["total"] for s in get(c, "services?" + query)["services"] if s["service"] == service), get(c, "processes?" + query)["total"]]
                tap.ok(got == [wanted] * len(got) and flame["unit"] == unit, f"{service}, {sample}: {wanted}, in every answer", got)
        tap.ok(get(c, "flame?service=both&type=other&from=-1h&sample=x")["meta"]["total"] == 4, "a name alone is the first of them")
        tap.ok(c.get("/api/v1/flame?service=both&type=other&from=-1h&sample=x%2Fseconds").status == 404, "a unit that it has not: 404")
        told = get(c, "types?service=twice&from=-1h")["types"][0]
        tap.ok(told["profiles"] == 1 and [s["total"] for s in told["samples"]] == [4] == [get(c, "flame?service=twice&type=other&from=-1h")["meta"]["total"]] and told["default"] == "x",
               "one type twice in a profile: the first one counts, once", told)


def chosen(selector):
    return "&labels=" + urllib.parse.quote(selector, safe="")


def selectors(c):
    """Labels as a selector in braces, in every request that takes labels: what is meant is what was sent."""
    sent = [({"host": "s1", "zone": "eu"}, 100), ({"host": "s2", "zone": "eu"}, 20), ({"host": "s3", "zone": "us"}, 7), ({"zone": "us", 'odd "name': 'a|b\\'}, 3)]
    for labels, cost in sent:
        pairs = ",".join("=".join(urllib.parse.quote(urllib.parse.quote(part, safe=""), safe="") for part in pair) for pair in labels.items())
        assert c.upload("chosen", "cpu", pprof([(["main"], [1, cost])], time_ns=(NOW - 40) * 10**9), extra="&labels=" + pairs.replace("=", "%3D").replace(",", "%2C")).status == 200
    at = "service=chosen&from=-1h"
    for selector, wanted in (('{host="s1"}', 100), ('{host!="s1"}', 30), ('{host=~"s1|s2"}', 120), ('{host!="s1",host!="s2"}', 10), ('{host!~"s.",zone="us"}', 3),
                             ('{host=""}', 3), ('{host=~"s.*", zone!~"us"}', 120), ('{"odd \\"name"=~"a\\\\|b\\\\\\\\"}', 3), ("{}", 130)):
        query = at + chosen(selector)
        totals = [get(c, f"flame?{query}")["total"][0], get(c, f"timeline?{query}")["total"],
                  sum(s["total"] for s in get(c, f"services?from=-1h{chosen(selector)}")["services"] if s["service"] == "chosen"), get(c, f"processes?{query}")["total"],
                  sum(v["total"] for v in next(label for label in get(c, f"labels?{query}")["labels"] if label["name"] == "zone")["values"]),
                  next(s["total"] for s in get(c, f"types?{query}")["types"][0]["samples"] if s["sample"] == "cpu"),
                  get(c, f"flame?{query}&group=label:zone,host")["total"][0]]
        with open(path("chosen.pb.gz"), "wb") as f:
            f.write(c.get(f"/api/v1/export?{query}&as=pprof").body)
        totals.append(sum(s.values[1] for s in Profile(path("chosen.pb.gz")).samples))
        tap.ok(totals == [wanted] * len(totals), f"{selector}: {wanted}, in every answer", totals)
    both = get(c, "compare?" + at + chosen('{host!="s1"}') + "&base-labels=" + urllib.parse.quote('{host=~"s1|s2"}'))
    tap.ok(both["meta"]["base_total"] == 120 and both["meta"]["total"] == 150, "a comparison has one for each side", both["meta"])
    for selector in ('{host="s1"', "{host}", '{host=~"("}', "{" + ",".join(f'a{i}="b"' for i in range(33)) + "}", '{a=~"' + "x" * 2100 + '"}'):
        answer = c.get(f"/api/v1/flame?{at}{chosen(selector)}")
        tap.ok(answer.status == 400 and "selector" in answer.json["error"], f"{selector[:40]}: 400", answer)
    tap.ok(c.get("/api/0/profiles?service=chosen&type=cpu&from=-1h&to=now" + chosen('{host="s1"}')).status == 404, "profefe's labels are pairs as ever")


def finds(c):
    """Labels and their values by a text."""
    def find(text, more=""):
        return {label["name"]: [v["value"] for v in label["values"]] for label in get(c, f"labels?from=-1h&find={urllib.parse.quote(text)}{more}")["labels"]}

    body = pprof([(["main"], [1, 5])], time_ns=(NOW - 40) * 10**9)
    for i in range(60):
        assert c.upload("found", "cpu", body, extra=f"&labels=Pod%3Dweb-{i:02}%2Cweb-{i:02}%3Dx%2Czone%3Deu").status == 200
    names = find("WEB-1", "&service=found")
    tap.ok(sorted(names) == ["Pod"] + [f"web-{i}" for i in range(10, 20)] and names["Pod"] == [f"web-{i}" for i in range(10, 20)] and names["web-10"] == ["x"],
           "labels are found by name and by value, in either case", names)
    tap.ok(find("pod", "&service=found&limit=100")["Pod"] == [f"web-{i:02}" for i in range(60)], "of a name that has it: all values")
    tap.ok(find("nothing has this") == {} and find("eu", "&service=found&name=zone") == {"zone": ["eu"]} and find("eu", "&service=found&name=Pod") == {}, "nothing; of one label")
    answer = get(c, "labels?service=found&from=-1h&find=pod&limit=7")["labels"][0]
    tap.ok(answer["count"] == 60 and len(answer["values"]) == 7, "a limit counts all the same", answer["count"])
    tap.ok(get(c, "labels?service=found&from=-1h")["count"] == 62, "how many labels there are")
    tap.ok(c.get("/api/v1/labels?find=" + "x" * 257).status == 400 and c.get("/api/v1/labels?find=" + "x" * 256).status == 200, "a text of 257 bytes: 400")


def costly():
    """Expressions that take too long over labels: nothing is answered that only looks whole, and nothing is kept."""
    with Collector("--storage-type", "memory", "--no-access-log") as c:
        body = pprof([(["main"], [1, 5])], time_ns=(NOW - 40) * 10**9)
        for i in range(300):
            assert c.upload("long", "cpu", body, extra=f"&labels=a%3D{i:03}{'a' * 2000}").status == 200
        query = "service=long&from=-1h" + chosen('{a!~"...(a?){900}b"}')
        for what in ("labels", "flame"):
            answer = c.get(f"/api/v1/{what}?{query}")
            tap.ok(answer.status == 429 and "regular expressions" in answer.json["error"], f"{what}: 429", answer)
        tap.ok(get(c, "flame?service=long&from=-1h" + chosen('{a=~"00.a*"}'))["total"][0] == 50, "others are answered")


def flames(c, sums):
    whole = get(c, "flame?service=api&from=-2h&max-nodes=5000000")
    tap.ok(whole["total"][0] == sums["api"] and adds_up(whole) and not any(whole["hidden"]), "a whole flame graph adds up to the service's total")
    p = Profile(merged(c, "api"))
    tap.ok(sum(s.values[1] for s in p.samples) == whole["total"][0], "the same as the merge's")
    status, lines, _ = top(merged(c, "api"), sample_index="cpu")
    shown = [line for line in lines if line.endswith(" total")]
    wanted = [f"of {whole['total'][0] / 1e9 / n:.2f}{unit} total" for n, unit in ((1, "s"), (60, "mins"), (3600, "hrs"))]
    tap.ok(status == 0 and shown and any(shown[0].endswith(w) for w in wanted), "and go tool pprof's", shown)
    cut = get(c, "flame?service=api&from=-2h&max-nodes=100")
    tap.ok(len(cut["level"]) == 100 and cut["total"][0] == sums["api"] and adds_up(cut) and any(cut["hidden"]) and
           cut["meta"]["whole_nodes"] == len(whole["level"]), "a cut one adds up with what it hides", cut["meta"])
    node = max(range(1, 100), key=lambda i: cut["hidden"][i])
    body = json.dumps({"path": steps(cut, node)}).encode()
    opened = c.ask("POST", "/api/v1/flame?service=api&from=-2h&max-nodes=5000000", body)
    opened = json.loads(opened.body)
    tap.ok(opened["total"][0] == cut["total"][node] and opened["self"][0] == cut["self"][node] and adds_up(opened) and not any(opened["hidden"]),
           "a node with hidden children opens to all of them", opened.get("meta"))
    for wanted in ("max-nodes=100", "max-nodes=5000000"):
        answer = c.get(f"/api/v1/flame?service=api&from=-2h&format=bin&{wanted}")
        f, same = decode(answer.body), cut if "100" in wanted else whole
        tap.ok(answer.headers["Content-Type"] == FLAME and f["level"] == same["level"] and f["hidden"] == same["hidden"] and
               f["self"][1:] == same["self"][1:] and f["total"] == same["total"][0] and f["meta"]["nodes"] == len(same["level"]),
               f"the binary form says the same ({wanted}, {len(answer.body)} bytes)")
    every = get(c, "flame?from=-2h")
    tap.ok(every["total"][0] == sum(sums.values()), "without a service: all of them")
    gone = c.ask("POST", "/api/v1/flame?service=api&from=-2h", b'{"path": [{"name": "gone", "kind": "native"}]}')
    tap.ok(gone.status == 404 and "call path" in gone.json["error"], "a path that is gone: 404 in clear words", gone)
    packed = c.get("/api/v1/flame?service=api&from=-2h", **{"Accept-Encoding": "gzip"})
    tap.ok(packed.headers["Content-Encoding"] == "gzip" and json.loads(gzip.decompress(packed.body))["total"] == whole["total"], "gzip for those who take it")


def lined(samples):
    """A profile of (name, line) frames, root first; those with a line are in /src/w.c."""
    places = sorted({place for frames, _ in samples for place in frames})
    strings = ["", "cpu", "nanoseconds", "/src/w.c", *[name for name, _ in places]]
    out = message(1, number(1, 1) + number(2, 2))
    for frames, value in samples:
        out += message(2, b"".join(number(1, places.index(place) + 1) for place in reversed(frames)) + number(2, value))
    for i, (_, line) in enumerate(places, 1):
        out += message(4, number(1, i) + message(4, number(1, i) + (number(2, line) if line else b"")))
        out += message(5, number(1, i) + number(2, i + 3) + number(3, i + 3) + (number(4, 3) if line else b""))
    return out + b"".join(message(6, text.encode()) for text in strings) + number(9, (NOW - 20) * 10**9)


def lines(c):
    """Source lines of one function; recursion counts once, self only at the leaf."""
    work, deep = ("work", 12), ("work", 14)
    main, leaf, other = ("main", 0), ("leaf", 0), ("other", 0)
    c.upload("lined", "cpu", lined([([main, work], 50), ([main, work, leaf], 20), ([main, work, deep, work], 10), ([main, deep], 30), ([main, other], 90)]))
    f = get(c, "flame?service=lined&from=-1h")

    def ask(name, **more):
        at = f["names"].index(name)
        body = {"path": [{"name": name, "kind": f["meta"]["kinds"][f["kind"][at]], "module": f["modules"][f["module"][at]], **more}]}
        return c.ask("POST", "/api/v1/lines?service=lined&from=-1h", json.dumps(body).encode())

    answer = ask("work").json
    rows = [(r["file"], r["line"], r["self"], r["total"]) for r in answer["lines"]]
    tap.ok(rows == [("/src/w.c", 12, 60, 80), ("/src/w.c", 14, 30, 40)] and (answer["self"], answer["total"], answer["count"]) == (90, 110, 2),
           "the lines of a function", answer)
    total = sum(f["total"][i] for i in range(len(f["level"])) if f["frame"][i] < len(f["names"]) and f["names"][f["frame"][i]] == "work" and f["level"][i] == 2)
    tap.ok(total == answer["total"], "their function has the flame graph's total", total)
    plain = ask("main").json
    tap.ok([(r["file"], r["line"]) for r in plain["lines"]] == [("", 0)] and plain["total"] == f["total"][0], "lines that nobody knows", plain)
    tap.ok(ask("work", kind="kernel").status == 404 and ask("work", module="x").status == 404, "another kind or module is another function")
    for body in (b"", b'{"path": []}', b'{"path": [{"name": "a"}, {"name": "b"}]}'):
        tap.ok(c.ask("POST", "/api/v1/lines?service=lined&from=-1h", body).status == 400, f"a body of {len(body)} bytes: 400")
    tap.ok(c.ask("POST", "/api/v1/lines?service=none", b'{"path": [{"name": "a"}]}').status == 404, "nothing stored: 404")


def compares(c):
    c.upload("old", "cpu", pprof([(["main", "a"], [5, 50]), (["main", "gone"], [2, 20])], time_ns=(NOW - 100) * 10**9))
    c.upload("new", "cpu", pprof([(["main", "a"], [7, 70]), (["main", "b", "c"], [1, 10])], time_ns=(NOW - 50) * 10**9))
    answer = c.get("/api/v1/compare?service=new&base-service=old&from=-1h")
    f = json.loads(answer.body)
    rows = {f["names"][f["frame"][i]]: (f["total"][i] - f["base_total"][i], f["base_total"][i]) for i in range(1, len(f["level"]))}
    tap.ok(rows == {"main": (80, 70), "a": (70, 50), "b": (10, 0), "c": (10, 0), "gone": (0, 20)}, "compare: both sides of every path", rows)
    tap.ok(adds_up(f) and adds_up(f, "base_total", "base_self", "base_hidden") and f["meta"]["base_total"] == 70, "both add up", f["meta"])
    b = decode(c.get("/api/v1/compare?service=new&base-service=old&from=-1h&format=bin").body)
    tap.ok(b["base_self"] == f["base_self"] and b["base_hidden"] == f["base_hidden"], "and in the binary form")
    same = get(c, "compare?service=api&from=-2h&max-nodes=50")
    tap.ok(all(2 * b == t for b, t in zip(same["base_total"], same["total"])) and adds_up(same, "base_total", "base_self", "base_hidden"),
           "a selection beside itself is half of each node, cut or not")
    for what, status, words in (("base-service=none", 404, "the base: nothing found"), ("service=none&base-service=old", 404, "nothing found"), ("base-from=x", 400, "the base: bad"),
                                ("base-from=-1h&base-to=-2h", 400, "the base: "), ("base-labels=%25zz%3D1", 400, "the base: bad"), ("base-within=2-1", 400, "the base: "),
                                ("sample=none", 404, "these profiles have no")):
        answer = c.get(f"/api/v1/compare?from=-1h&{'' if what.startswith('service') else 'service=new&'}{what}")
        tap.ok(answer.status == status and words in answer.error and ("the base" in answer.error) == words.startswith("the base"), f"what is wrong, and with which side: {what}", answer.body[:200])
    for version, value, at in (("1", 50, 100), ("2", 60, 90), ("2", 7, 3000)):
        c.upload("labelled", "cpu", pprof([(["main", "a"], [1, value])], time_ns=(NOW - at) * 10**9), f"&labels=v%3D{version}")
    everything = get(c, "flame?from=-1h")["meta"]["total"]
    for what, base in (("labels=v%3D2", 67), ("labels=v%3D2&base-labels=v%3D1", 50), ("labels=v%3D2&base-labels=", 117), ("labels=v%3D2&base-from=-10m", 60),
                       (f"labels=v%3D2&base-from={NOW - 3600}&base-to={NOW - 600}", 7), ("base-labels=v%3D1&base-to=now", 50), ("base-service=", everything), ("labels=v%3D2&base-service=old&base-labels=", 70)):
        meta = get(c, f"compare?service=labelled&from=-1h&{what}")["meta"]
        tap.ok(meta["base_total"] == base and meta["total"] - base == (67 if what.startswith("labels") else 117), f"a base of its own: {what}", meta)
    c.upload("coarse", "cpu", pprof([(["main"], [1, 10])], types=(("samples", "count"), ("cpu", "microseconds")), time_ns=(NOW - 50) * 10**9))
    for form in ("json", "bin"):
        answer = c.get(f"/api/v1/compare?service=new&base-service=coarse&from=-1h&sample=cpu&format={form}")
        tap.ok(answer.status == 409 and b"microseconds" in answer.body, f"a base in another unit: 409 ({form})", answer.body[:100])
    c.upload("plain", "other", pprof([(["main"], [1])], types=(("samples", "count"),), time_ns=(NOW - 50) * 10**9))
    answer = c.get("/api/v1/compare?service=new&base-service=plain&base-type=other&from=-1h&sample=cpu")
    tap.ok(answer.status == 404 and "the base: these profiles have no sample type" in answer.error, "a base without the sample type", answer.body[:100])

def exports(c, sums):
    for name in ("pprof", "folded", "col", "html"):
        answer = c.get(f"/api/v1/export?service=api&from=-2h&as={name}")
        tap.ok(answer.status == 200 and "attachment" in answer.headers["Content-Disposition"] and answer.body, f"export as {name}")
        if name == "pprof":
            with open(path("export.pb.gz"), "wb") as f:
                f.write(answer.body)
            tap.ok(sum(s.values[1] for s in Profile(path("export.pb.gz")).samples) == sums["api"], "read back with an equal total")
    tap.ok(c.get("/api/v1/export?service=api&as=exe").status == 400, "an unknown format: 400")
    with open(path("export.window"), "wb") as f:
        f.write(c.get("/api/v1/export?service=api&from=-2h&as=window").body)
    for name in ("folded", "col"):
        answer = c.get(f"/api/v1/export?service=api&from=-2h&as={name}")
        done = hearth("convert", path("export.window"), "-q", "--from", "window", "-o", path(f"export.{name}"))
        tap.ok(done.returncode == 0 and open(path(f"export.{name}"), "rb").read() == answer.body and answer.headers["Transfer-Encoding"] == "chunked",
               f"export as {name} in pieces: the bytes that convert writes", (len(answer.body), done.stderr[:200]))


def large_exports():
    """Text of deep stacks is many times their profile; it is made while it is taken."""
    rng = random.Random(3)
    names = [f"{n:03}" + "n" * 60 for n in range(500)]
    with Collector("--storage-type", "memory") as c:
        for part in range(4):
            stacks = [(["main", *rng.choices(names, k=90)], [1, 10]) for _ in range(3000)]
            assert c.upload("deep", "cpu", pprof(stacks, time_ns=(NOW - 60 - part) * 10**9)).status == 200
        assert c.get("/api/v1/export?service=deep&from=-1h&as=pprof").status == 200
        before = status_kib(c.process.pid, "VmHWM") << 10
        for name, share in (("col", 0.5), ("folded", 1.3)):
            answer = c.get(f"/api/v1/export?service=deep&from=-1h&as={name}")
            more = (status_kib(c.process.pid, "VmHWM") << 10) - before
            tap.ok(answer.status == 200 and len(answer.body) > 60 << 20 and more < share * len(answer.body),
                   f"{name}: the collector takes less than {share} times the file's size for it", f"{more / len(answer.body):.2f} of {len(answer.body) >> 20} MiB")


def extremes(c):
    """The largest value that a profile can have, twice, takes no graph from anybody."""
    most, at = 2**63 - 1, NOW - 3 * 86400
    span = f"from={at - 60}&to={at + 60}"
    for service, names in (("huge", ["main", "a"]), ("huge", ["main", "b"]), ("small", ["main", "c"])):
        cost = 10 if service == "small" else most
        assert c.upload(service, "cpu", pprof([(names, [1, cost])], time_ns=at * 10**9)).status == 200
    f = get(c, f"flame?{span}")
    shown = {f["names"][f["frame"][i]]: f["total"][i] for i in range(1, len(f["level"]))}
    tap.ok(f["total"][0] == shown["main"] == most and shown["c"] == 10 and adds_up(f), "sums that do not fit saturate, small values stay", shown)
    both = get(c, f"compare?service=huge&{span}&base-service=")
    tap.ok(both["total"][0] == 2 * most and both["base_total"][0] == most, "a comparison has room for both", both["meta"])
    one = {"name": "main", "kind": "native", "module": both["modules"][both["module"][both["names"].index("main")]]}
    answer = c.ask("POST", f"/api/v1/lines?{span}", json.dumps({"path": [one]}).encode())
    tap.ok(answer.status == 200 and answer.json["total"] == most, "source lines saturate, too", answer)


def negatives(c):
    """What is below zero is left out of graphs, and said."""
    at = NOW - 4 * 86400
    span = f"from={at - 60}&to={at + 60}"
    for service, samples in (("differs", ((-5, "a"), (8, "b"))), ("below", ((-3, "a"), (-4, "c")))):
        assert c.upload(service, "cpu", pprof([(["main", name], [n, n * 10**7]) for n, name in samples], time_ns=at * 10**9)).status == 200
    for turn in ("made", "kept"):
        f = get(c, f"flame?service=differs&{span}")
        tap.ok(f["total"][0] == 8 * 10**7 and f["meta"]["negative"] == {"samples": 1, "value": 5 * 10**7}, f"a tree says what is left out ({turn})", f["meta"])
    f = get(c, f"flame?service=below&{span}&sample=samples")
    tap.ok(f["total"] == [0] and f["meta"]["negative"] == {"samples": 2, "value": 7}, "also when that is all", f["meta"])
    both = get(c, f"compare?service=differs&{span}&base-service=below")["meta"]
    tap.ok(both["negative"] == {"samples": 1, "value": 5 * 10**7} and both["base_negative"] == {"samples": 2, "value": 7 * 10**7}, "of either side", both)
    f = get(c, f"flame?service=api&from=-2h")["meta"]
    tap.ok(f["negative"] == {"samples": 0, "value": 0}, "nothing is left out elsewhere", f)


def hostile(c):
    evil = ["<img src=x onerror=alert(1)>", "\u202eevil", "x" * (1 << 20), "\x00\x01</script>"]
    c.upload("evil", "cpu", pprof([(["main", n], [1, 10]) for n in evil] + [(["main", "\udcff\udcfe"], [1, 10])], time_ns=(NOW - 10) * 10**9))
    f = get(c, "flame?service=evil&from=-1h")
    tap.ok(evil[0] in f["names"] and evil[1] in f["names"] and "\ufffd\ufffd" in f["names"], "hostile names are JSON text")
    node = next(i for i in range(1, len(f["level"])) if f["names"][f["frame"][i]] == "\ufffd\ufffd")
    answer = c.ask("POST", "/api/v1/flame?service=evil&from=-1h", json.dumps({"path": steps(f, node)}).encode())
    tap.ok(answer.status == 200 and json.loads(answer.body)["total"][0] == 10, "a name that is no UTF-8 is found by what JSON made of it", answer)
    for what, status in (("flame?from=x", 400), ("flame?from=now&to=0", 400), ("flame?max-nodes=0", 400), ("flame?max-nodes=99999999999", 400),
                         ("flame?format=xml", 400), ("flame?type=nope", 400), ("flame?service=none", 404), ("flame?service=api&sample=nope", 404),
                         ("timeline?points=0", 400), ("timeline?points=1000000000", 400), ("services?points=301", 400), ("services?points=300&limit=10000", 400),
                         ("services?points=105&limit=10000", 400), ("services?points=104&limit=10000", 200), ("services?before=x", 400),
                         ("timeline?from=0&to=9999999999999999999", 200), ("services?from=0", 200), ("labels?from=0&to=9999-12-31T23:59:59", 200),
                         ("services?labels=" + "a" * 3000, 400), ("nope", 404), ("flame?labels=k%3D%25zz", 400)):
        answer = c.get("/api/v1/" + what)
        tap.ok(answer.status == status and (status == 200 or answer.json["error"]), f"{what[:60]}: {status}", answer)
    for body in (b"", b"{", b"[]", b'{"path": 1}', b'{"path": [' + b'{},' * 70000 + b'{}]}', b"\x00" * 100, b"[" * 100000):
        answer = c.ask("POST", "/api/v1/flame?service=api&from=-2h", body)
        tap.ok(answer.status == (200 if not body else 400), f"a body of {len(body)} bytes: {answer.status}", answer.status)
    tap.ok(c.ask("POST", "/api/v1/flame", b"x" * (5 << 20)).status == 413, "a body over 4 MiB: 413")
    tap.ok(c.get("/healthz").status == 200, "the collector lives")


def files(c):
    script = c.get("/ui/app.js")
    tap.ok(script.status == 200 and script.headers["Content-Type"].startswith("text/javascript") and b"decodeProfile" in script.body, "a module", script.status)
    policy = script.headers["Content-Security-Policy"]
    tap.ok("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, "a strict policy", policy)
    again = c.get("/ui/app.js", **{"If-None-Match": script.headers["ETag"]})
    tap.ok(again.status == 304 and not again.body, "its ETag: 304", again)
    packed = c.get("/ui/app.js", **{"Accept-Encoding": "gzip"})
    tap.ok(packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == script.body, "the same as gzip for who takes it", packed.headers)
    for name in ("..%2fapp.js", ".git", "app.js%00", "data.js", "meson.build", "nope.js", "a/b.js"):
        tap.ok(c.get("/ui/" + name).status in (400, 404), f"/ui/{name} is not served", c.get("/ui/" + name))


def groups(c, sums):
    """What stands above the stacks adds up to what it is of."""
    def tops(query):
        f = get(c, "flame?max-nodes=5000000&" + query)
        assert adds_up(f), query
        rows = [(f["meta"]["kinds"][f["kind"][f["frame"][i]]], f["names"][f["frame"][i]], f["total"][i]) for i in range(1, len(f["level"])) if f["level"][i] == 1]
        return f, {name: total for _, name, total in rows}, {kind for kind, _, _ in rows}

    plain, _, _ = tops("service=api&from=-2h")
    f, rows, kinds = tops("service=api&from=-2h&group=host")
    by_host = {h: get(c, f"flame?service=api&from=-2h&labels=host%3D{h}")["total"][0] for h in ("h1", "h2")}
    tap.ok(rows == by_host and kinds == {"host"} and f["total"][0] == sums["api"] and f["meta"]["profiles"] == plain["meta"]["profiles"] and
           f["meta"]["facts"] == plain["meta"]["facts"], "by host: each host's own graph", rows)
    _, rows, kinds = tops("service=api&from=-2h&group=label:host&sample=samples")
    tap.ok({k: v * 10_000_000 for k, v in rows.items()}.keys() == {"host=h1", "host=h2"} and kinds == {"label"}, "by a label of the series", rows)
    _, rows, _ = tops("service=api&from=-2h&group=label:nope")
    tap.ok(rows == {"(no nope)": sums["api"]}, "by one that nobody has", rows)
    at = (NOW - 30) * 10**9
    c.upload("mixed", "cpu", pprof([(["main", "a"], [5, 50], {"thread": "worker", "req": "x"}), (["main", "a"], [2, 20], {"thread": "gc"}), (["main"], [1, 10])], time_ns=at), extra="&labels=env%3Dprod")
    c.upload("mixed", "cpu", pprof([(["main", "a"], [3, 30], {"env": "own"})], time_ns=at), extra="&labels=env%3Dtest")
    c.upload("mixed", "cpu", pprof([(["main", "b"], [4, 40])], time_ns=at))
    _, rows, kinds = tops("service=mixed&group=thread")
    tap.ok(rows == {"worker": 50, "gc": 20, "(no thread)": 80} and kinds == {"thread"}, "by thread", rows)
    _, rows, _ = tops("service=mixed&group=label:req")
    tap.ok(rows == {"req=x": 50, "(no req)": 100}, "by a label that only samples have", rows)
    f, rows, _ = tops("service=mixed&group=label:env,thread")
    second = {f["names"][f["frame"][i]] for i in range(1, len(f["level"])) if f["level"][i] == 2}
    tap.ok(rows == {"env=prod": 80, "env=own": 30, "(no env)": 40} and second == {"worker", "gc", "(no thread)"}, "by two: the first one outermost; a sample's own label wins", (rows, second))
    cut = get(c, "flame?service=api&from=-2h&group=host,thread&max-nodes=100")
    node = max(range(1, 100), key=lambda i: cut["hidden"][i])
    opened = json.loads(c.ask("POST", "/api/v1/flame?service=api&from=-2h&group=host,thread&max-nodes=5000000", json.dumps({"path": steps(cut, node)}).encode()).body)
    tap.ok(opened["total"][0] == cut["total"][node] and not any(opened["hidden"]), "a node below a group opens")
    both = get(c, "compare?service=api&base-service=web&from=-2h&group=host&max-nodes=5000000")
    tap.ok(adds_up(both) and adds_up(both, "base_total", "base_self", "base_hidden") and both["meta"]["base_total"] == sums["web"], "two selections by host")
    for i in range(260):
        c.upload("many", "cpu", pprof([(["main"], [1, 10])], time_ns=at), extra=f"&labels=pod%3Dp{i}")
    _, rows, _ = tops("service=many&group=label:pod")
    tap.ok(len(rows) == 251 and rows["pod=(others)"] == 100 and sum(rows.values()) == 2600, "more than 250: the rest is one", len(rows))
    for what in ("process", "label:", "thread,", ",".join(["thread"] * 9), "label:%25zz"):
        tap.ok(c.get("/api/v1/flame?service=api&from=-2h&group=" + what).status == 400, f"group={what[:30]}: 400")


def keep(c, query, title=None, headers=None):
    return c.ask("POST", "/api/v1/snapshots?" + query, None if title is None else json.dumps({"title": title}).encode(), headers)


def snapshots(c, sums):
    """What is kept says the same as what it was made of, also when that is gone."""
    c.upload("brief", "cpu", pprof([(["main", "a"], [5, 50]), (["main", "b"], [2, 20])], time_ns=(NOW - 100) * 10**9), extra="&labels=host%3Dh1")
    c.upload("brief", "cpu", pprof([(["main", "a"], [1, 10])], time_ns=(NOW - 90) * 10**9), extra="&labels=host%3Dh2")
    made = keep(c, f"service=brief&from={NOW - 600}&to={NOW}", "before <b>the</b> \u202e release")
    row = made.json
    tap.ok(made.status == 201 and len(row["id"]) == 32 and row["title"] == "before <b>the</b> \u202e release" and row["profiles"] == 2 and
           (row["from_ms"], row["to_ms"]) == ((NOW - 600) * 1000, NOW * 1000) and abs(row["created_ms"] / 1000 - time.time()) < 60 and
           row["selection"] == 'cpu{service="brief"}' and [(s["sample"], s["total"]) for s in row["samples"]] == [("samples", 8), ("cpu", 80)],
           "a snapshot is kept", made)
    one = keep(c, f"service=brief&labels=host%3Dh2&from={NOW - 600}&to={NOW}").json
    tap.ok(one["selection"] == 'cpu{service="brief",host="h2"}' and one["title"] == "" and one["profiles"] == 1, "of labels, without a title", one)
    large = keep(c, "service=api&from=-2h&to=now", "all").json
    queries = {row["id"]: f"service=brief&from={NOW - 600}&to={NOW}", large["id"]: "service=api&from=-2h"}
    tree = ("names", "frame", "level", "total", "self", "hidden", "kind", "module", "modules")
    want = {}
    for identity, query in queries.items():
        for more in ("", "&sample=samples", "&max-nodes=100"):
            a, b = get(c, f"flame?{query}{more}"), get(c, f"flame?snapshot={identity}{more}")
            want[identity + more] = b
            tap.ok(all(a[k] == b[k] for k in tree) and a["meta"]["facts"] == b["meta"]["facts"] and a["meta"]["service"] == b["meta"]["service"],
                   f"its flame graph is the selection's ({query}{more})", b["meta"])
    cut = want[large["id"] + "&max-nodes=100"]
    node = max(range(1, 100), key=lambda i: cut["hidden"][i])
    opened = json.loads(c.ask("POST", f"/api/v1/flame?snapshot={large['id']}&max-nodes=5000000", json.dumps({"path": steps(cut, node)}).encode()).body)
    tap.ok(opened["total"][0] == cut["total"][node] and not any(opened["hidden"]), "a node of it opens")
    binary = decode(c.get(f"/api/v1/flame?snapshot={large['id']}&format=bin").body)
    tap.ok(binary["total"] == sums["api"] and adds_total(binary), "the binary form")
    gone = c.ask("DELETE", f"/api/0/profiles?service=brief&from={NOW - 7200}&to=now")
    tap.ok(gone.status == 200 and c.get(f"/api/v1/flame?{queries[row['id']]}").status == 404, "its profiles are gone")
    tap.ok(get(c, f"flame?snapshot={row['id']}") == want[row["id"]] and get(c, f"snapshots/{row['id']}") == row, "it is not, and says the same")
    with open(path("kept.pb.gz"), "wb") as f:
        f.write(c.get(f"/api/v1/export?snapshot={row['id']}&as=pprof").body)
    tap.ok(sum(s.values[1] for s in Profile(path("kept.pb.gz")).samples) == 80, "its export has the total")
    lines = c.ask("POST", f"/api/v1/lines?snapshot={row['id']}", b'{"path": [{"name": "a", "kind": "native"}]}')
    tap.ok(lines.status == 200 and lines.json["total"] == 60, "source lines of it", lines)
    both = json.loads(c.get(f"/api/v1/compare?service=api&from=-2h&base-snapshot={large['id']}&max-nodes=50").body)
    tap.ok(both["meta"]["base_total"] == sums["api"] and adds_up(both, "base_total", "base_self", "base_hidden"), "it can be the base of a comparison")
    turned = json.loads(c.get(f"/api/v1/compare?snapshot={large['id']}&base-service=brief&base-from={NOW - 600}&base-labels=host%3Dh2&sample=cpu").body)
    tap.ok(turned["error"].startswith("the base: nothing found"), "and what is compared with a base", turned)
    for identity in ("0" * 32, "x"):
        answer = c.get(f"/api/v1/compare?service=api&from=-2h&base-snapshot={identity}")
        tap.ok(answer.status == 404 and answer.error.startswith("the base: there is no such snapshot"), f"a base that is gone: {identity[:1]}", answer.body[:100])
    listed = get(c, "snapshots")
    tap.ok([s["id"] for s in listed["snapshots"]] == [large["id"], one["id"], row["id"]] and listed["count"] == 3 and listed["odd"] == 0 and
           listed["bytes"] == sum(s["bytes"] for s in listed["snapshots"]), "the list, newest first")
    tap.ok((c.metric("hearth_snapshots"), c.metric("hearth_snapshots_bytes"), c.metric("hearth_snapshots_max")) == (3, listed["bytes"], 1000), "metrics say how full it is")
    tap.ok(c.ask("DELETE", f"/api/v1/snapshots/{one['id']}").status == 204 and c.ask("DELETE", f"/api/v1/snapshots/{one['id']}").status == 404 and
           c.get(f"/api/v1/flame?snapshot={one['id']}").status == 404, "deleted is gone")
    c.stop(signal.SIGKILL)
    c.start()
    tap.ok(get(c, f"flame?snapshot={row['id']}") == want[row["id"]] and [s["id"] for s in get(c, "snapshots")["snapshots"]] == [large["id"], row["id"]],
           "the others are there after kill -9")
    for what, body, status in (("service=none", b"", 404), ("service=api&from=x", b"", 400), ("service=api&type=x", b"", 400), ("service=api", b"[]", 400), ("service=api", b"{", 400),
                               ("service=api", b'{"title": 1}', 400), ("service=api", json.dumps({"title": "x" * 401}).encode(), 400), ("service=api", b"x" * 70000, 413)):
        answer = c.ask("POST", "/api/v1/snapshots?" + what, body)
        tap.ok(answer.status == status, f"{what} with {len(body)} bytes: {status}", answer)
    for identity in ("", "x", "0" * 32, row["id"].upper(), row["id"] + "0", "..%2f" + row["id"], "../tokens", "%00"):
        answer = c.get(f"/api/v1/snapshots/{identity}" if identity else "/api/v1/snapshots/")
        tap.ok(answer.status in (301, 400, 404), f"no snapshot called {identity[:40]!r}", answer)
    tap.ok("deleted" in c.get("/api/v1/flame?snapshot=" + "0" * 32).error, "a link to one that is gone says so")


def full_of_snapshots():
    """No room is said in clear words, and costs none of those that are there."""
    def kept(c):
        return [s["id"] for s in get(c, "snapshots")["snapshots"]]

    with Collector("--snapshots", "2") as c:
        c.upload("api", "cpu", pprof([(["main", f"f{i}"], [1, 10]) for i in range(500)]))
        ids = [keep(c, "service=api").json["id"] for _ in range(2)]
        third = keep(c, "service=api")
        tap.ok(third.status == 507 and "--snapshots" in third.error and "2 of 2" in third.error and sorted(kept(c)) == sorted(ids), "a third of two: 507, nothing goes", third)
        tap.ok(c.ask("DELETE", f"/api/v1/snapshots/{ids[0]}").status == 204 and keep(c, "service=api").status == 201, "one deleted makes room")
        size = get(c, "snapshots")["bytes"] // 2
        ids = kept(c)
        for options, status, word in ((["--snapshots-size", size * 2 + 10], 507, "bytes"), (["--snapshots-size", 100], 413, "--snapshots-size"), (["--snapshots", 0], 507, "0"),
                                      (["--retention-free", "900000G"], 507, "--retention-free")):
            c.stop()
            c.options = [str(o) for o in options]
            c.start()
            answer = keep(c, "service=api")
            tap.ok(answer.status == status and word in answer.error and kept(c) == ids, f"{options}: {status}", answer)
    with Collector("--storage-type", "memory") as c:
        c.upload("api", "cpu", pprof([(["main"], [1, 10])]))
        tap.ok(keep(c, "service=api").status == 501 and c.get("/api/v1/flame?snapshot=" + "0" * 32).status == 501, "a store in memory takes none, and says so")


class Live:
    """A reader of /api/v1/live."""

    def __init__(self, c, query, **headers):
        self.socket = socket.create_connection(("127.0.0.1", c.port), timeout=10)
        lines = [f"GET /api/v1/live?{query} HTTP/1.1", f"Host: 127.0.0.1:{c.port}", *(f"{name}: {value}" for name, value in headers.items())]
        self.socket.sendall("".join(line + "\r\n" for line in [*lines, ""]).encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() not in (b"\r\n", b""):
            pass
        self.text = b""

    def event(self, kind, seconds=10):
        """The data of the next event of that kind, or None."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while b"\n\n" in self.text:
                event, _, self.text = self.text.partition(b"\n\n")
                fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
                if fields.get(b"event") == kind.encode():
                    return json.loads(fields[b"data"])
            try:
                size = int(self.file.readline().strip() or b"0", 16)
            except (OSError, ValueError):
                return None
            if not size:
                return None
            self.text += self.file.read(size)
            self.file.readline()
        return None

    def close(self):
        self.file.close()
        self.socket.close()


def put_now(c, service, count=1, names=("main", "work")):
    c.upload(service, "cpu", pprof([(list(names), [count, count * 10])], time_ns=int(time.time() * 1e9)))


def live(c):
    tap.ok(c.get("/api/v1/live?window=2h").status == 400 and c.get("/api/v1/live?from=x").status == 400, "live: what is wrong is refused at once")
    put_now(c, "moving", 3)
    viewer = Live(c, "service=moving&window=1m")
    tap.ok(viewer.status == 200 and viewer.event("hello"), "live: hello")
    first = viewer.event("flame")
    f = decode(base64.b64decode(first["bin"]))
    tap.ok(f["total"] == 30 and adds_total(f) and first["meta"]["total"] == 30, "a flame graph of the last minute", first["meta"])
    put_now(c, "moving", 4)
    then = time.monotonic()
    second = viewer.event("flame")
    tap.ok(second and second["meta"]["total"] == 70 and time.monotonic() - then < 5, "what comes is there within 5 s", second and second["meta"]["total"])
    services = viewer.event("totals")
    tap.ok(services and {"moving": 70}.items() <= {s["service"]: s["total"] for s in services["services"]}.items(), "totals of services beside it")
    once = Live(c, "service=moving&window=1m&once=1")
    alone = once.event("flame")
    then = time.monotonic()
    ends = once.event("flame") is None and time.monotonic() - then < 4
    once.close()
    tap.ok(alone and alone["meta"]["total"] == 70 and ends, "live: one picture, and the answer ends", (alone and alone["meta"], ends))
    for _ in range(130):
        put_now(c, "many")
    many = Live(c, "service=many&window=5m")
    seen = many.event("flame")
    many.close()
    tap.ok(seen and seen["meta"]["profiles"] >= 130 and seen["meta"]["total"] == 10 * seen["meta"]["profiles"], "live: the graph is of all profiles of the range", seen and seen["meta"])
    none = Live(c, "service=none&window=10s")
    tap.ok(none.event("empty"), "nothing in the range is an event, too")
    for _ in range(40):
        Live(c, "service=moving&window=1m").close()
    time.sleep(2.5)
    streams = [Live(c, "service=moving&window=1m") for _ in range(50)]
    tap.ok(all(s.event("flame") for s in streams), "50 viewers see it, after 40 that left")
    tap.ok(c.get("/api/v1/services").status == 200, "queries go on beside them")
    tap.ok(c.get("/api/v1/live?max-nodes=5000000").status == 400, "live: a graph of millions of nodes is refused")
    streams += [Live(c, "service=moving&window=1m") for _ in range(80)]
    tap.ok({s.status for s in streams[:126]} == {200} and streams[-1].status == 503, "one address has 128 streams, and leaves room for others",
           [s.status for s in streams].index(503))
    for s in [viewer, none, *streams]:
        s.close()
    end = time.monotonic() + 30
    while c.metric("hearth_http_connections") > 3 and time.monotonic() < end:
        put_now(c, "moving")  # a stream whose reader has gone is noticed when something is said to it
        time.sleep(1)
    tap.ok(c.metric("hearth_http_connections") <= 3, "and all of them go with their readers", c.metric("hearth_http_connections"))


def ask_live(c, query, address="127.0.0.1"):
    """A viewer with a small buffer; what it asked for is not read yet."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20)
    s.bind((address, 0))
    s.connect(("127.0.0.1", c.port))
    s.sendall(f"GET /api/v1/live?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return s


def read_events(s, count):
    """Reads until so many flame graphs have begun. Returns when the last byte was read."""
    seen, end = b"", time.monotonic() + 30
    while seen.count(b"event: flame") < count and time.monotonic() < end:
        seen += s.recv(65536) or b"event: flame" * count
    return time.monotonic()


def slow_live(c):
    """Readers that stop reading cost no worker, and go. Ten never read, two stop after three graphs."""
    put_large(c)
    idle, began = c.metric("hearth_http_connections"), time.monotonic()
    readers = [ask_live(c, "service=large&window=5m") for _ in range(12)]
    with ThreadPoolExecutor(2) as pool:
        stopped_at = min(pool.map(lambda s: read_events(s, 3), readers[:2]))
    then = time.monotonic()
    tap.ok(c.get("/api/v1/services").status == 200 and time.monotonic() - then < 2, "12 viewers that read no more hold no worker",
           f"{time.monotonic() - then:.2f} s")
    took = {}  # how many are left -> when
    while time.monotonic() - stopped_at < 40 and 0 not in took:
        left = int(c.metric("hearth_http_connections") - idle)
        for n in range(max(left, 0), 13):
            took.setdefault(n, time.monotonic())
        time.sleep(0.25)
    never, stop = (took[n] - since if n in took else 99 for n, since in ((2, began), (0, stopped_at)))
    tap.ok(never < 30, "those that never read are dropped within 30 s of their question", f"{never:.1f} s")
    tap.ok(stop < 30, "those that stopped are dropped within 30 s of the last byte that they read", f"{stop:.1f} s")
    for s in readers:
        s.close()
    quiet_live(c)


def quiet_live(c):
    """What fits a reader's buffer is taken by its system: such a viewer is not known to be slow, and costs nothing but its connection."""
    idle = c.metric("hearth_http_connections")
    quiet = [ask_live(c, "service=none&window=10s") for _ in range(12)]
    time.sleep(35)
    left, then = int(c.metric("hearth_http_connections") - idle), time.monotonic()
    tap.ok(c.get("/api/v1/services").status == 200 and time.monotonic() - then < 2, "12 quiet viewers that read nothing hold no worker",
           f"{time.monotonic() - then:.2f} s, after 35 s {left} are there: small events fit their buffers")
    for s in quiet:
        s.close()


def put_large(c):
    """The picture of service large is some MB."""
    rng = random.Random(1)
    for i in range(60):
        put_now(c, "large", i + 1, ["main"] + [rng.randbytes(2250).hex() for _ in range(20)])


def bounded_live():
    """Forty slow readers of forty questions: what waits for them stays within the memory of answers, and is not all of it."""
    budget = 16 << 20
    with Collector("--storage-type", "memory", "--max-answers-memory", budget) as c:
        put_large(c)
        first = ask_live(c, "service=large&window=1h")
        read_events(first, 2)
        first.close()
        before, most = status_kib(c.process.pid, "VmHWM"), 0
        slow = {ask_live(c, f"service=large&window=1h&max-nodes={100000 + i}"): b"" for i in range(40)}
        end, other = time.monotonic() + 14, None
        while time.monotonic() < end or (time.monotonic() < end + 20 and not any(HTTP_FULL in text for text in slow.values())):
            for s in slow:  # 48 KiB a second, three times what has to be taken
                s.settimeout(0.001)
                try:
                    slow[s] += s.recv(24 << 10)
                except TimeoutError:
                    pass
            most = max(most, c.metric("hearth_http_answer_bytes"))
            if not other and time.monotonic() > end - 7:
                other = ask_live(c, "service=large&window=1h", "127.0.0.2")
                with ThreadPoolExecutor(1) as pool:
                    seen = pool.submit(read_events, other, 1).result()
                tap.ok(seen < end, "who comes from another address sees the picture", f"{end - seen:.1f} s before the end")
            time.sleep(0.5)
        peak = status_kib(c.process.pid, "VmHWM") - before
        told = sum(HTTP_FULL in text for text in slow.values())
        tap.ok(1 << 20 < most <= budget, "40 slow readers: what waits for them is counted, and within its budget", f"{most / 2**20:.1f} of {budget >> 20} MiB")
        tap.ok(peak < 6 * budget >> 10, "and so is the collector's memory", f"{before >> 10} MiB, then {peak >> 10} more")
        tap.ok(0 < told < 40 and sum(b"event: flame" in text for text in slow.values()) > 0, "those that wait are told why", f"{told} of 40")
        for s in [*slow, other]:
            s.close()


HTTP_FULL = b"too many large answers wait for their readers"


def watched(queries):
    """The collector's CPU seconds in LIVE_S seconds with two uploads a second and these viewers; pictures that each saw."""
    rng = random.Random(5)
    stacks = [["main"] + [f"f{rng.randrange(200)}" for _ in range(rng.randrange(1, 30))] for _ in range(2000)]
    with Collector("--storage-type", "memory") as c:
        bodies = [[(s, [1, 10_000_000]) for s in rng.sample(stacks, 400)] for _ in range(2 * LIVE_S)]
        c.upload("moving", "cpu", pprof(bodies[0], time_ns=int(time.time() * 1e9)))
        watchers = Watchers(c.port, queries)
        time.sleep(3)
        used, at = cpu_seconds(c.process.pid), time.monotonic()
        for i, body in enumerate(bodies):
            c.upload("moving", "cpu", pprof(body, time_ns=int(time.time() * 1e9)))
            time.sleep(max(0, at + (i + 1) / 2 - time.monotonic()))
        used = cpu_seconds(c.process.pid) - used
        assert watchers.stop() == len(queries)
        return used, watchers.events / max(1, len(queries))


def many_live():
    """50 viewers of one picture cost at most four times what one costs; without viewers is what uploads cost."""
    same = "service=moving&window=1m"
    none, one, fifty = (watched([same] * count) for count in (0, 1, 50))
    figures = f"CPU in {LIVE_S} s: {none[0]:.2f} s without, {one[0]:.2f} s with one, {fifty[0]:.2f} s with 50; pictures each {one[1]:.0f}, {fifty[1]:.0f}"
    tap.ok(one[1] >= LIVE_S / 2 and fifty[1] >= LIVE_S / 2, "each of 50 viewers sees it move", figures)
    tap.ok(fifty[0] - none[0] <= 4 * (one[0] - none[0]), "50 viewers cost at most four times one's CPU", figures)
    each = watched([f"{same}&max-nodes={1000 + i}" for i in range(50)])
    tap.note(f"50 viewers with 50 questions: CPU in {LIVE_S} s: {each[0]:.2f} s, pictures each {each[1]:.0f}")


def stops_live():
    with Collector("--storage-type", "memory") as c:
        put_now(c, "moving", 3)
        viewer = Live(c, "service=moving")
        viewer.event("flame")
        then = time.monotonic()
        c.process.send_signal(signal.SIGTERM)
        tap.ok(viewer.event("bye") is not None and c.process.wait(timeout=20) == 0 and time.monotonic() - then < 4,
               "a server that stops says so and does not wait", f"{time.monotonic() - then:.1f} s")
        viewer.close()


def signs_in(folder):
    secrets = {}
    for scope in ("read", "admin"):
        secrets[scope] = hearth("token", "create", "--data-dir", folder, "--scope", scope).stdout.strip()
    with Collector(folder=folder) as c:
        origin = {"Origin": c.url}
        tap.ok(c.get("/api/v1/services").status == 401 and c.get("/ui/app.js").status == 200, "what files ask needs a token, they do not")
        session = get(c, "session")
        tap.ok(session == {"needs_token": True, "scopes": []}, "the session says so", session)
        wrong = c.ask("POST", "/api/v1/session", b'{"token": "no"}', origin)
        tap.ok(wrong.status == 401 and not wrong.headers["Set-Cookie"], "a wrong token: 401")
        cookies = {}
        for scope, secret in secrets.items():
            answer = c.ask("POST", "/api/v1/session", json.dumps({"token": secret}).encode(), origin)
            text = answer.headers["Set-Cookie"] or ""
            tap.ok(answer.status == 200 and "HttpOnly" in text and "SameSite=Strict" in text and "Path=/" in text, f"signed in ({scope})", text)
            cookies[scope] = {"Cookie": "other=1; " + text.split(";")[0]}
        tap.ok(c.get("/api/v1/services", **cookies["read"]).status == 200, "the cookie reads")
        tap.ok(json.loads(c.get("/api/v1/session", **cookies["read"]).body)["scopes"] == ["read"], "its scopes")
        gone = "/api/0/profiles?service=x&from=-1h&to=now"
        tap.ok(c.ask("DELETE", gone, headers=cookies["admin"]).status == 401, "the cookie changes nothing without an origin")
        tap.ok(c.ask("DELETE", gone, headers={**cookies["admin"], "Origin": "http://evil.example"}).status == 403, "nor from another one")
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            answer = c.ask("DELETE", gone, headers={"Authorization": "Bearer " + secrets["admin"], "Sec-Fetch-Site": site})
            tap.ok(answer.status == status, f"nor when the browser says that the page is elsewhere: {site}", answer.status)
        tap.ok(c.get("/", **{"Sec-Fetch-Site": "cross-site"}).status == 200, "a link from elsewhere opens the page")
        tap.ok(c.ask("DELETE", gone, headers={**cookies["read"], **origin}).status == 403, "nor without the scope admin")
        tap.ok(c.ask("DELETE", gone, headers={**cookies["admin"], **origin}).status == 200, "with both it does")
        token = {"Authorization": "Bearer " + secrets["admin"]}
        c.upload("kept", "cpu", pprof([(["main"], [1, 10])], time_ns=int(time.time() * 1e9)), headers=token)
        answers = [keep(c, "service=kept", headers=h).status for h in ({}, cookies["admin"], {**cookies["admin"], "Origin": "http://evil.example"}, {**cookies["read"], **origin})]
        tap.ok(answers == [401, 401, 403, 403], "nobody keeps a snapshot without a token, an origin, the own one, the scope admin", answers)
        made = keep(c, "service=kept", headers={**cookies["admin"], **origin})
        link = "/api/v1/snapshots/" + made.json["id"]
        tap.ok(made.status == 201 and c.get(link).status == 401 and c.get(link, **cookies["read"]).status == 200 and
               c.get("/api/v1/flame?snapshot=" + made.json["id"], **cookies["read"]).status == 200, "with all of them; whoever may read opens the link")
        tap.ok(c.get("/api/v1/snapshots", **cookies["read"]).status == 403 and c.ask("DELETE", link, headers={**cookies["read"], **origin}).status == 403 and
               c.ask("DELETE", link, headers=cookies["admin"]).status == 401 and c.ask("DELETE", link, headers=token).status == 204, "the list and deleting need admin, too")
        ids = {row["id"]: row for row in c.get("/api/v1/tokens", **token).json["tokens"]}
        watching = Live(c, "service=kept&window=1h", Authorization="Bearer " + secrets["read"])
        tap.ok(watching.event("flame"), "live: whoever may read watches")
        reader = next(i for i, row in ids.items() if row["scopes"] == ["read"])
        tap.ok(c.ask("DELETE", "/api/v1/tokens?id=" + reader, headers=token).status == 200, "the token is deleted")
        c.upload("kept", "cpu", pprof([(["main"], [1, 10])], time_ns=int(time.time() * 1e9)), headers=token)
        bye = watching.event("bye")
        tap.ok(bye and "token" in bye["why"] and not watching.event("flame", 2), "live: a stream ends with its token", bye)
        watching.close()
        out = c.ask("DELETE", "/api/v1/session", headers={**cookies["admin"], **origin})
        tap.ok(out.status == 204 and "Max-Age=0" in out.headers["Set-Cookie"], "signed out")


QUESTIONS = [
    "flame?service=api&type=cpu&format=bin&max-nodes=200", "flame?service=api&type=cpu&format=bin", "flame?service=api&type=cpu&max-nodes=200",
    "flame?service=api&type=cpu&format=bin&sample=samples", "flame?service=api&type=cpu&format=bin&group=host", "flame?type=cpu&format=bin",
    "flame?service=api&type=cpu&format=bin&labels=host%3Dh1", "flame?service=api&type=cpu&format=bin&labels=%7Bhost%21%3D%22h2%22%7D", "flame?service=web&type=cpu", "compare?service=api&base-service=web&type=cpu&format=bin",
    "compare?service=api&base-service=web&type=cpu&max-nodes=50", "flame?service=api&type=heap&format=bin", "flame?service=api&type=cpu&format=bin&process=1",
]


def asked_again(engine):
    """Flame graphs that are kept for the next question: the same bytes as from a collector that keeps none, whatever came or went."""
    def ask(c, question, body=None):
        target = f"/api/v1/{question}&from={NOW - 7200}&to={NOW + 60}"
        return c.ask("POST" if body else "GET", target, body)

    def same(what):
        wanted = [ask(bare, q) for q in QUESTIONS]
        answers = [[ask(c, q) for q in QUESTIONS] for _ in range(3)]
        tap.ok(all([(a.status, a.body, a.headers["X-Profiles-Merged"]) for a in row] == [(a.status, a.body, a.headers["X-Profiles-Merged"]) for a in wanted] for row in answers),
               f"kept for the next question, {what}: the same answers", [(q, a.status, w.status) for row in answers for q, a, w in zip(QUESTIONS, row, wanted) if a.body != w.body])
        return [a.body for a in wanted]

    with Collector("--storage-type", engine) as c, Collector("--storage-type", engine, "--flame-memory", "0") as bare:
        for each in (c, bare):
            seed(each)
        first = same("first")
        hits = c.metric("hearth_flame_cache_hits_total")
        tap.ok(hits >= 2 * len(QUESTIONS) - 4 and 0 < c.metric("hearth_flame_cache_bytes") <= c.metric("hearth_flame_cache_bytes_max") == 32 << 20, "they are there", hits)
        tap.ok(bare.metric("hearth_flame_cache_items") == 0 and bare.metric("hearth_flame_cache_hits_total") == 0, "--flame-memory 0 keeps none")
        opened = [ask(each, QUESTIONS[0], b'{"path": [{"name": "main", "kind": "native"}]}').body for each in (c, c, bare)]
        tap.ok(opened[0] == opened[1] == opened[2] and opened[0] != first[0], "a call path of it")
        for each in (c, bare):
            assert each.upload("api", "cpu", pprof([(["main", "late"], [5, 50_000_000])], time_ns=(NOW - 30) * 10**9), extra="&labels=host%3Dh1").status == 200
        later = same("one profile more")
        tap.ok(all(a != b for q, a, b in zip(QUESTIONS, first, later) if "service=api&type=cpu" in q and "process" not in q), "it is in them")
        for each in (c, bare):
            assert each.ask("DELETE", f"/api/0/profiles?service=api&type=cpu&from={NOW - 31}&to={NOW - 29}").status == 200
        tap.ok(same("deleted again") == first, "as before it came")
        with ThreadPoolExecutor(8) as pool:
            bodies = list(pool.map(lambda i: (i, ask(c, QUESTIONS[i]).body), [i % len(QUESTIONS) for i in range(60)]))
        tap.ok(all(body == first[i] for i, body in bodies), "many ask at once")
    with Collector("--storage-type", engine, "--flame-memory", "100K") as c:
        seed(c)
        most = 0
        for n in range(40):
            ask(c, f"flame?service=api&type=cpu&format=bin&max-nodes={100 + n}")
            most = max(most, c.metric("hearth_flame_cache_bytes"))
        tap.ok(0 < most <= 100 << 10 and c.metric("hearth_flame_cache_misses_total") >= 40, "one user's questions stay in the bound", most)


def documented():
    """Every path and method of the collector below /api/v1 is in docs/api.yaml, and nothing else."""
    root = os.path.join(HERE, "..", "..")
    source = open(os.path.join(root, "src/collector/collector.c"), encoding="utf-8").read()
    routes = {(p.replace("*", "{id}"), m) for p, m in re.findall(r'^\t\{ "(/api/v1/[^"]*)", "(\w+)",', source, re.M)}
    text = open(os.path.join(root, "docs/api.yaml"), encoding="utf-8").read()
    told, at = set(), None
    for line in text[text.index("\npaths:\n"):text.index("\ncomponents:\n")].splitlines():
        if found := re.fullmatch(r"  (/\S+):", line):
            at = found[1]
        elif at and (found := re.fullmatch(r"    (get|post|put|delete|patch):.*", line)):
            told.add((at, found[1].upper()))
    tap.ok(len(routes) > 20 and routes == told, f"docs/api.yaml: {len(told)} requests, those of the collector's routes",
           {"only in the code": sorted(routes - told), "only in the file": sorted(told - routes)})
    scripts = re.search(r"^web_page_modules = files\((.*)\)$", open(os.path.join(root, "web/meson.build"), encoding="utf-8").read(), re.M)[1]
    listed = re.search(r"so that there are (\w+) \((.*?)\)", text)
    tap.ok(set(re.findall(r"[\w]+\.js", scripts)) == set(listed[2].split(", ")) and listed[1] == "five", "docs/api.yaml: the scripts are those of web/meson.build", listed[0])
    parameters = {"base-" + n for n in ("service", "type", "labels", "from", "to", "within", "snapshot")} | {"snapshot", "limit", "within", "process", "thread-name"}
    known = dict(re.findall(r"^    (\w+):(?: \{|\n +)\s*name: ([\w-]+)", text[text.index("\n  parameters:\n"):], re.M))
    used = set(re.findall(r"components/parameters/(\w+)", text))
    tap.ok(used == set(known) and parameters <= set(known.values()), "docs/api.yaml: every parameter is there, and stands somewhere", (used ^ set(known), parameters - set(known.values())))


for engine in ("sqlite", "memory"):
    asked_again(engine)
    covered(engine)
    units(engine)
    with Collector("--storage-type", engine) as collector:
        tap.note(f"engine {engine}")
        sent = seed(collector)
        totals(collector, sent)
        small_services(collector)
        flames(collector, sent)
        lines(collector)
        compares(collector)
        groups(collector, sent)
        selectors(collector)
        finds(collector)
        exports(collector, sent)
        if engine == "sqlite":
            snapshots(collector, sent)
        extremes(collector)
        negatives(collector)
        hostile(collector)
        files(collector)
        live(collector)
        if engine == "sqlite" and not QUICK:
            slow_live(collector)
if not QUICK:
    with Collector("--storage-type", "memory", "--no-access-log") as collector:
        many_services(collector)
    costly()

large_exports()
stops_live()
bounded_live()
if not QUICK:
    many_live()
full_of_snapshots()
documented()
signs_in(path("signed"))
tap.finish()
