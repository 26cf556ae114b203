#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts over time, and the processes and threads of a host (docs/api.yaml: timeline, processes, and the parameters that name
processes), beside what a loop over all samples that were sent counts; on both engines."""
import collections
import gzip
import random
import time

from collector import Collector, pprof
from support import QUICK, Profile, Tap, path

tap = Tap("view_hosts")
NOW = int(time.time())
DURATION = 60
HOSTS = ("h1", "h2", "h3")
Row = collections.namedtuple("Row", "at host service pid tid comm thread names value")


def get(c, what):
    answer = c.get("/api/v1/" + what)
    if answer.status != 200:
        raise RuntimeError(f"{what}: {answer.status} {answer.body[:300]}")
    return answer.json


def send(c, rows):
    """Rows of one moment, host and service as one profile."""
    first = rows[0]
    samples = [(list(r.names), [1, r.value], {"pid": r.pid, "tid": r.tid, "comm": r.comm, "thread": r.thread}) for r in rows]
    answer = c.upload(first.service, "cpu", pprof(samples, time_ns=first.at * 10**9 + 5, duration_ns=DURATION * 10**9),
                      extra=f"&labels=host%3D{first.host}")
    assert answer.status == 200, answer


def seed(c):
    """Two hours of three hosts by the minute, and a day of the first one by the half hour."""
    rng = random.Random(9)
    sent = []
    programs = [(100 + i, comm) for i, comm in enumerate(("nginx", "nginx", "python3", "postgres", "<img src=x>", "w\udcff"))]
    moments = [(at, h) for at in range(NOW - 7200, NOW - 30, DURATION) for h in HOSTS]
    moments += [(at, "h1") for at in range(NOW - 86400, NOW - 7300, 1800)]
    for at, host in moments:
        for service, mine in (("web", programs[:3]), ("rest", programs[2:])):
            if rng.random() < 0.1:
                continue
            rows = [Row(at, host, service, pid, pid + t, comm, f"{comm}-{t}" if t else comm, ("main", f"{comm}_{rng.randrange(3)}"),
                        rng.randrange(1, 100) * 10**6 * (1 + HOSTS.index(host)))
                    for pid, comm in rng.sample(mine, 2) for t in rng.sample(range(4), 2)]
            send(c, rows)
            sent += rows
    return sent


def shown(text):
    """Text as JSON has it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def cells(sent, answer):
    """Steps of an answer, filled by a loop over the rows."""
    start, step = answer["start_ms"] / 1000, answer["step_ms"] / 1000
    count = len((answer.get("series") or answer["rows"])[0]["points"])
    out = [0] * count
    for r in sent:
        out[int((r.at - start) // step)] += r.value
    return out


def inside(sent, answer):
    return [r for r in sent if answer["from_ms"] / 1000 <= r.at <= answer["to_ms"] / 1000]


def heat(c, sent):
    answer = get(c, "timeline?from=-100m&group=host&steps=round&points=60")
    mine = inside(sent, answer)
    step = answer["step_ms"]
    tap.ok(step >= 100000 and step % (DURATION * 1000) == 0 and answer["start_ms"] % step == 0 and
           0 <= answer["from_ms"] - answer["start_ms"] < step, "steps are round, and whole profiles", (step, answer["start_ms"]))
    tap.ok([s["value"] for s in answer["series"]] == ["h3", "h2", "h1"] and answer["folded"] == 0 and
           all(s["points"] == cells([r for r in mine if r.host == s["value"]], answer) for s in answer["series"]),
           "time by host: each cell is what was sent")
    fine = get(c, "timeline?from=-10m&group=host&steps=round&points=5000")
    tap.ok(fine["step_ms"] == DURATION * 1000, "no step is shorter than the profiles", fine["step_ms"])
    plain = get(c, "timeline?from=-100m&steps=round&points=60")
    tap.ok(plain["series"][0]["points"] == cells(mine, plain) and plain["step_ms"] == step, "the same without groups")
    services = get(c, f"services?from={fine['from_ms']}&to={fine['to_ms']}&steps=round&points=300&small=list")
    tap.ok(services["step_ms"] == fine["step_ms"] and services["start_ms"] == fine["start_ms"] and services["total"] == fine["total"] and
           all(sum(s["points"]) == s["total"] for s in services["services"]), "services in round steps, too: no step is shorter than a profile",
           (services["step_ms"], fine["step_ms"]))
    tap.ok(c.get("/api/v1/services?steps=odd").status == 400, "services in odd steps: 400")
    two = get(c, "timeline?from=-100m&group=host&steps=round&points=60&limit=2")
    other = two["series"][-1]
    tap.ok([s["other"] for s in two["series"]] == [False, False, True] and two["folded"] == 1 and
           other["points"] == cells([r for r in inside(sent, two) if r.host == "h1"], two), "the rest is one row", two["folded"])
    names = get(c, "timeline?from=-100m&group=service&steps=round&points=20")
    tap.ok(all(s["points"] == cells([r for r in inside(sent, names) if r.service == s["value"]], names) for s in names["series"]), "time by service")
    at = max(range(len(two["series"][0]["points"])), key=lambda i: two["series"][0]["points"][i])
    begin = two["start_ms"] + at * two["step_ms"]
    flame = get(c, f"flame?from={begin}&to={begin + two['step_ms'] - 1}999999&labels=host%3D{two['series'][0]['value']}")
    tap.ok(flame["total"][0] == two["series"][0]["points"][at], "a block's flame graph has the block's cost", flame["total"][0])
    for what in ("steps=odd", "limit=0", "limit=1001", "points=5000&limit=1000"):
        tap.ok(c.get("/api/v1/timeline?group=host&" + what).status == 400, f"{what}: 400")


def named(r, by):
    key = {"process": (r.pid, shown(r.comm)), "thread": (r.pid, shown(r.comm), r.tid, shown(r.thread)), "program": (shown(r.comm),)}
    return key[by]


def name_of(row, by):
    key = {"process": ("pid", "program"), "thread": ("pid", "program", "thread", "thread_name"), "program": ("program",)}
    return tuple(row[k] for k in key[by])


def processes(c, sent):
    for by in ("process", "thread", "program"):
        answer = get(c, f"processes?by={by}&from=-100m&labels=host%3Dh2&points=30")
        mine = [r for r in inside(sent, answer) if r.host == "h2"]
        wanted = collections.defaultdict(list)
        for r in mine:
            wanted[named(r, by)].append(r)
        rows = {name_of(row, by): row for row in answer["rows"]}
        tap.ok(rows.keys() == wanted.keys() and all(row["points"] == cells(wanted[key], answer) and sum(row["points"]) == row["total"]
                                                    for key, row in rows.items()), f"by {by}: each cell is what was sent", sorted(rows))
        totals = [row["total"] for row in answer["rows"]]
        tap.ok(totals == sorted(totals, reverse=True) and answer["total"] == sum(totals) == sum(r.value for r in mine) and
               answer["folded"]["rows"] == 0 == answer["folded"]["total"], f"by {by}: dearest first, and nothing is missing")
        services = {key: {r.service for r in list_} for key, list_ in wanted.items()}
        tap.ok(all(({row["service"]} if "service" in row else None) == (services[key] if len(services[key]) == 1 else None)
                   for key, row in rows.items()), f"by {by}: the service, where it is one")
        if by != "thread":
            count = {key: len({r.tid if by == "process" else r.pid for r in list_}) for key, list_ in wanted.items()}
            tap.ok(all(row["threads" if by == "process" else "processes"] == count[key] for key, row in rows.items()), f"by {by}: how many")
        few = get(c, f"processes?by={by}&from=-100m&labels=host%3Dh2&points=30&limit=2")
        rest = [r for r in mine if named(r, by) not in {name_of(row, by) for row in few["rows"]}]
        tap.ok(few["rows"] == answer["rows"][:2] and few["folded"] == {"rows": len(rows) - 2, "total": sum(r.value for r in rest),
                                                                       "points": cells(rest, few)}, f"by {by}: the rest is one row", few["folded"]["rows"])
    day = get(c, "processes?from=-24h&labels=host%3Dh1")
    mine = [r for r in inside(sent, day) if r.host == "h1"]
    tap.ok(day["step_ms"] % 3600000 == 0 and day["start_ms"] % 3600000 == 0 and
           all(row["points"] == cells([r for r in mine if r.pid == row["pid"]], day) for row in day["rows"]), "a day by whole hours", day["step_ms"])
    return day


def snapshots(c, host, total):
    """Kept of one program, or of all and then asked for one."""
    if c.ask("POST", f"/api/v1/snapshots?{host}").status == 501:
        tap.note("this engine keeps no snapshots")
        return
    one = c.ask("POST", f"/api/v1/snapshots?{host}&program=python3").json
    tap.ok(one["selection"] == 'cpu{host="h2",program="python3"}' and get(c, f"flame?snapshot={one['id']}")["total"][0] == total,
           "a snapshot of one program", one)
    whole = c.ask("POST", f"/api/v1/snapshots?{host}").json
    of_it = get(c, f"flame?snapshot={whole['id']}&program=python3")
    tap.ok(of_it["total"][0] == total and "postgres" not in of_it["names"], "one program of a snapshot", of_it["total"][0])
    tap.ok(c.get(f"/api/v1/flame?snapshot={whole['id']}&program=nobody").status == 404, "nobody of a snapshot: 404")
    tap.ok(c.get(f"/api/v1/flame?snapshot={whole['id']}&process=x").status == 400, "a bad process of a snapshot: 400")


def filters(c, sent):
    def value_of(what):
        return get(c, what)["total"][0]

    since = NOW - 6000
    window = f"from={since}&to={NOW}"
    mine = [r for r in sent if since <= r.at <= NOW and r.host == "h2"]
    host = f"{window}&labels=host%3Dh2"
    for row in get(c, f"processes?{host}")["rows"]:
        tap.ok(value_of(f"flame?{host}&process={row['process']}") == row["total"], f"the flame graph of process {row['process']}", row["total"])
    for row in get(c, f"processes?by=thread&{host}")["rows"][:4]:
        tap.ok(value_of(f"flame?{host}&process={row['process']}&thread={row['thread']}") == row["total"], f"of thread {row['thread']}")
    for row in get(c, f"processes?by=program&{host}")["rows"]:
        name = "".join(f"%{b:02x}" for b in row["program"].encode())
        tap.ok(value_of(f"flame?{host}&program={name}") == row["total"], f"of program {row['program']!r}")
    ours = [r for r in mine if r.comm == "python3"]
    one = f"{host}&program=python3"
    line = get(c, f"timeline?{one}&steps=round&points=40")
    tap.ok(line["series"][0]["points"] == cells(ours, line) and line["profiles"] == len({(r.at, r.service) for r in ours}), "its timeline")
    tap.ok({s["service"]: s["total"] for s in get(c, f"services?{one}")["services"]} ==
           {s: sum(r.value for r in ours if r.service == s) for s in {r.service for r in ours}}, "its services")
    total = sum(r.value for r in ours)
    tap.ok(get(c, f"labels?{one}")["labels"][0]["values"][0]["total"] == total and
           get(c, f"types?{one}")["types"][0]["samples"][0]["total"] == total, "its labels and types")
    only = get(c, f"processes?by=thread&{one}")
    tap.ok({r["program"] for r in only["rows"]} == {"python3"} and only["total"] == total, "its threads")
    answer = c.get(f"/api/v1/export?{one}&as=pprof")
    with open(path("python3.pb.gz"), "wb") as f:
        f.write(answer.body)
    tap.ok(sum(s.values[1] for s in Profile(path("python3.pb.gz")).samples) == total and b"postgres" not in
           gzip.decompress(answer.body), "its export has nothing of the others")
    both = get(c, f"compare?{one}&base-labels=host%3Dh3")
    tap.ok(both["base_total"][0] == sum(r.value for r in sent if since <= r.at <= NOW and r.host == "h3" and r.comm == "python3"), "a comparison, both sides")
    snapshots(c, f"from={since}&to={NOW}&labels=host%3Dh2", total)
    tap.ok(c.get(f"/api/v1/flame?{host}&process=1").status == 404 and c.get(f"/api/v1/flame?{host}&process=100-7").status == 404 and
           get(c, f"timeline?{host}&process=1")["total"] == 0 and get(c, f"processes?{host}&process=1")["rows"] == [], "nobody: 404, or nothing")
    for what in ("process=x", "process=1-", "thread=-1", "process=99999999999"):
        for where in ("flame", "timeline", "processes", "services", "export?as=pprof"):
            sign = "&" if "?" in where else "?"
            tap.ok(c.get(f"/api/v1/{where}{sign}{what}").status == 400, f"{where} {what}: 400")
    for what in ("by=host", "points=301", "limit=1001", "limit=0", "from=x"):
        tap.ok(c.get("/api/v1/processes?" + what).status == 400, f"{what}: 400")


def many(c):
    """More processes than rows are kept: who costs most is there with all it has, from its first second on."""
    at = NOW - 300
    send(c, [Row(at, "many", "m", 7, 7, "late", "late", ("main",), 5)])
    for part in range(2):
        send(c, [Row(at + 10 + part, "many", "m", 1000 + i, 1, "cc1", "cc1", ("main",), 10) for i in range(part * 40000, part * 40000 + 40000)])
    send(c, [Row(at + 20, "many", "m", 7, 7, "late", "late", ("main",), 1000)])
    answer = get(c, "processes?from=-1h&labels=host%3Dmany&limit=3")
    tap.ok([(r["pid"], r["total"]) for r in answer["rows"]][0] == (7, 1005) and [r["total"] for r in answer["rows"]] == [1005, 10, 10] and
           answer["total"] == 1005 + 800000 and answer["folded"]["total"] == 800000 - 20, "80,000 processes", (answer["rows"][0]["total"], answer["folded"]["total"]))
    tap.ok(sum(answer["folded"]["points"]) == answer["folded"]["total"], "and what is folded adds up")
    program = get(c, "processes?from=-1h&labels=host%3Dmany&by=program")
    tap.ok([(r["program"], r["total"], r["processes"]) for r in program["rows"]] == [("cc1", 800000, 80000), ("late", 1005, 1)], "by program", program["rows"][:2])


for engine in ("sqlite", "memory"):
    with Collector("--storage-type", engine) as collector:
        tap.note(f"engine {engine}")
        everything = seed(collector)
        heat(collector, everything)
        before = processes(collector, everything)
        filters(collector, everything)
        if engine == "sqlite":
            many(collector)
        if engine == "sqlite" and not QUICK:
            time.sleep(70)  # hours get their sums once a minute
            after = get(collector, f"processes?from={before['from_ms']}&to={before['to_ms']}&labels=host%3Dh1")
            tap.ok({r["process"]: r["points"] for r in after["rows"]} == {r["process"]: r["points"] for r in before["rows"]}, "the same from hours' sums")
tap.finish()
