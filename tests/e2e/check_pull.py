#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A Go program of the standard library alone pushes as profefe's agent does, and is scraped by hearth serve and hearth pull:
differences of cumulative profiles equal those of raw scrapes, restarts are seen, and the guard holds."""
import json
import re
import signal
import urllib.request

from collector import *
from support import *

tap = Tap("pull")
need(tap, root=False)
program = path("service")
if not shutil.which("go"):
    tap.skip("everything", "needs go")
    tap.finish()
built = run("go", "build", "-o", program, os.path.join(HERE, "workloads/service/service.go"), timeout=600,
            env={**os.environ, "GO111MODULE": "off"})
if built.returncode:
    tap.ok(False, "the Go program builds", built.stderr[-500:])
    tap.finish()


def service():
    process = start(program, "-seconds", 240, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def raw(address, kind):
    file = path(f"raw-{kind}.pb.gz")
    with urllib.request.urlopen(f"http://{address}/debug/pprof/{kind}", timeout=20) as answer, open(file, "wb") as f:
        f.write(answer.read())
    return Profile(file)


def sums(profile, columns, function):
    """Totals of the columns over stacks that have the function in them."""
    indexes = [i for i, (name, _) in enumerate(profile.types) if name in columns]
    picked = [s for s in profile.samples if any(function in n for n in s.names)]
    return [sum(s.values[i] for s in picked) for i in indexes]


def merged(collector, kind, name, labels=""):
    answer = collector.get(f"/api/0/profiles/merge?service={name}&type={kind}&from=-1h&to=now{labels}")
    if answer.status != 200:
        return None
    file = path("merged.pb.gz")
    with open(file, "wb") as f:
        f.write(answer.body)
    return Profile(file)


def stored(collector, kind, name):
    answer = collector.get(f"/api/0/profiles?service={name}&type={kind}&from=-1h&to=now")
    return answer.json["body"] if answer.status == 200 else []


def targets_file(name, groups):
    file = path(name)
    with open(file, "w") as f:
        json.dump(groups, f)
    os.chmod(file, 0o644)
    return file


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False


KINDS = {"mutex": (["contentions", "delay"], "contend"), "heap": (["alloc_objects", "alloc_space"], "allocateSome"),
         "block": (["contentions", "delay"], "contend")}
app, address = service()
group = {"targets": [address], "service": "scraped", "labels": {"env": "test"}, "interval": "1s", "jitter": "100ms", "timeout": "5s",
         "cpu_seconds": 1, "profiles": ["heap", "block", "mutex", "goroutine", "cpu"]}
guarded = [{"targets": [address + "/away"], "service": "redirected", "interval": "1s", "jitter": 0,
            "profiles": ["heap"]},
           {"targets": ["169.254.169.254:80"], "service": "metadata", "interval": "1s", "jitter": 0, "profiles": ["heap"]},
           {"targets": ["0x7f000001:" + address.split(":")[1]], "service": "hidden", "interval": "1s", "jitter": 0,
            "profiles": ["heap"]}]
named = {"targets": ["localhost:" + address.split(":")[1]], "service": "named", "interval": "1s", "jitter": 0, "profiles": ["goroutine"]}
file = targets_file("targets.json", [group, named] + guarded)

# A push in profefe's way.
with Collector("--targets", file) as collector:
    done = run(program, "-push", collector.url, timeout=60)
    tap.ok(done.returncode == 0, "a program of the standard library pushes", done.stderr)
    answer = collector.get("/api/0/profiles?service=go-service&type=cpu&from=-1h&to=now&labels=team%3Da%252Cb")
    tap.ok(answer.status == 200 and len(answer.json["body"]) == 1, "and its profile is found by its label", answer)
    pushed = merged(collector, "cpu", "go-service")
    tap.ok(pushed and any("main.spin" in s.names for s in pushed.samples), "with its function in it")

    # Differences, over scrapes of the server itself.
    tap.ok(wait_for(lambda: stored(collector, "goroutine", "scraped")), "the program is scraped")
    time.sleep(1)
    before = {kind: raw(address, kind) for kind in KINDS}
    base = {kind: merged(collector, kind, "scraped") for kind in KINDS}
    for _ in range(3):
        urllib.request.urlopen(f"http://{address}/work", timeout=20).read()
        time.sleep(0.7)
    scraped = len(stored(collector, "goroutine", "scraped"))
    wait_for(lambda: len(stored(collector, "goroutine", "scraped")) >= scraped + 3)
    after = {kind: raw(address, kind) for kind in KINDS}
    for kind, (columns, function) in KINDS.items():
        want = [b - a for a, b in zip(sums(before[kind], columns, function), sums(after[kind], columns, function))]
        pulled = merged(collector, kind, "scraped")
        got = sums(pulled, columns, function) if pulled else [0, 0]
        if base[kind]:
            got = [g - b for g, b in zip(got, sums(base[kind], columns, function))]
        tap.ok(got == want and want[0] > 0, f"{kind}: the sum of what was pulled is the difference of two raw scrapes",
               f"{columns}: {got} and {want}")
    raw_heap, pulled_heap = after["heap"], merged(collector, "heap", "scraped")
    tap.ok([t for t, _ in pulled_heap.types] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"],
           "heap: what is in use is there too", pulled_heap.types)
    tap.ok(stored(collector, "cpu", "scraped"), "CPU profiles come")
    tap.ok(stored(collector, "goroutine", "named"), "a target by its name")
    one = stored(collector, "goroutine", "scraped")[0]
    labels = {l["key"]: l["value"] for l in one["labels"]}
    tap.ok(labels == {"env": "test", "instance": address}, "labels", labels)

    # The guard.
    log = open(collector.log, errors="replace").read()
    for name, reason in (("redirected", "redirects are not followed"), ("169.254.169.254", "not allowed"), ("0x7f000001", "not allowed")):
        lines = [l for l in log.splitlines() if name.replace("redirected", "/away") in l and "scrape failed" in l]
        tap.ok(len(lines) == 1 and reason in lines[0], f"{name}: refused, and said once", lines[:2] or log[-300:])
    services = collector.get("/api/0/services").json["body"]
    tap.ok(not {"redirected", "metadata", "hidden"} & set(services), "nothing of these is stored", services)

    # A reload: another program, the first one is left alone; a broken file changes nothing.
    second, second_address = service()
    targets_file("targets.json", [{**group, "targets": [second_address], "service": "second"}])
    collector.process.send_signal(signal.SIGHUP)
    tap.ok(wait_for(lambda: stored(collector, "goroutine", "second")), "SIGHUP: a new target is scraped")
    count = len(stored(collector, "goroutine", "scraped"))
    with open(file, "w") as f:
        f.write("[{")
    collector.process.send_signal(signal.SIGHUP)
    time.sleep(2.5)
    tap.ok(len(stored(collector, "goroutine", "scraped")) == count, "an old one is not")
    tap.ok(wait_for(lambda: len(stored(collector, "goroutine", "second")) > 1), "a broken file leaves the targets as they were")
    tap.ok("line 1" in open(collector.log, errors="replace").read(), "and is said")
    second.kill()
    collector.stop()
    tap.ok(collector.process.returncode == 0, "the collector ends well", collector.process.returncode)

# hearth pull, and a target that restarts on the same port.
with Collector() as collector:
    file = targets_file("pull.json", [{**group, "profiles": ["mutex"], "interval": "1s"}])
    urllib.request.urlopen(f"http://{address}/work", timeout=20).read()
    puller = start(HEARTH, "pull", "--targets", file, "--push", collector.url, "--label", "site=x", "--spool-dir", path("pull-spool"),
                   stdout=subprocess.PIPE, text=True)
    time.sleep(2.5)
    urllib.request.urlopen(f"http://{address}/work", timeout=20).read()
    tap.ok(wait_for(lambda: stored(collector, "mutex", "scraped")), "hearth pull sends what it scrapes")
    labels = {l["key"]: l["value"] for l in stored(collector, "mutex", "scraped")[0]["labels"]}
    tap.ok(labels.get("site") == "x" and labels.get("instance") == address, "with labels of file and command", labels)
    puller.send_signal(signal.SIGTERM)
    said = puller.communicate(timeout=30)[0]
    tap.ok(puller.returncode == 0 and " 0 failed" in said and "Pushed to" in said, "hearth pull ends well", said)
    tap.ok(re.search(r"[1-9]\d* without anything new", said), "a profile of nothing is not sent")
for text, reason in (("{}", "list of groups"), ('[{"targets":["a:1"]}]', "service"), ('[{"targets":["a:1"],"service":"s","intervall":1}]', "intervall"),
                     ('[{"targets":["a b"],"service":"s"}]', "HOST:PORT"), ('[{"targets":["a:1"],"service":"s","profiles":["cpus"]}]', "cpus")):
    with open(path("bad.json"), "w") as f:
        f.write(text)
    done = hearth("pull", "--targets", path("bad.json"), "--push", "127.0.0.1:1", "--no-spool")
    tap.ok(done.returncode == 1 and "bad.json" in done.stderr and (reason in done.stderr or "profiles" in done.stderr),
           f"bad targets: {text[:40]}", done.stderr.strip())
tap.finish()
