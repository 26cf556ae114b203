#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles beside the Go module of their own messages: it reads our files without an unknown field and with our totals, and
we read the file that it writes."""
import gzip
import json
import os
import shutil
from collections import Counter

from collector import pprof
from support import HERE, Profile, Tap, hearth, path, run

tap = Tap("otlp")
NOW = 1790000000 * 10**9
HOSTILE = b"<img onerror>\xff\xe2\x80\xae;a".decode("utf-8", "surrogateescape")
NAMES = ("main", "handle", "read", HOSTILE, "", "a;b", "x" * 5000, "std::vector<int, std::allocator<int> >::push_back(int&&)")


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)
    return path(name)


def build():
    program, source = path("otlp"), os.path.join(HERE, "check_otlp")
    built = run("go", "build", "-C", source, "-o", program, ".", timeout=600, env={**os.environ, "GOFLAGS": "-mod=readonly"}) if shutil.which("go") else None
    if built and not built.returncode:
        return program
    missing = not built or any(w in built.stderr for w in ("dial tcp", "no such host", "requires go", "toolchain", "flag provided but not defined", "proxy"))
    if tap.ok(missing, "the program with OTLP's messages is built", built.stderr[-500:] if built else ""):
        tap.skip("OTLP's own messages", "needs Go 1.24 and the modules of go.opentelemetry.io/proto/otlp (make setup-extra)")
    return None


def look(program, verb, file):
    done = run(program, verb, file)
    return json.loads(done.stdout) if tap.ok(done.returncode == 0, f"the Go program can {verb} {os.path.basename(file)}", done.stderr[-300:]) else None


def stacks_of(profile, column):
    """Sums by stack, leaf first, as the Go program prints them."""
    sums = Counter()
    for s in profile.samples:
        if s.values[column]:
            sums[";".join(reversed(s.names))] += s.values[column]
    return dict(sums)


def compare(facts, profile, what):
    types = [f"{t}/{u}" for t, u in profile.types]
    tap.ok(sorted(facts["types"]) == sorted(types), f"{what}: value types", sorted(facts["types"]))
    for column, name in enumerate(types):
        found = facts["types"].get(name, {"total": None, "stacks": None})
        want = stacks_of(profile, column)
        tap.ok(found["total"] == sum(s.values[column] for s in profile.samples), f"{what}: total of {name}", found["total"])
        tap.ok(found["stacks"] == want, f"{what}: {len(want)} stacks of {name}", f"{len(found['stacks'] or ())}")


def make():
    """A profile with two columns, hostile names, labels, and kinds."""
    samples = [([NAMES[(i * k) % len(NAMES)] for k in range(1, 2 + i % 9)], [i % 5, i * 1000], {"color": f"c{i % 3}", "trace_id": "0123456789abcdef" * 2,
                "span_id": f"{i:016x}"}) for i in range(1, 400)]
    return pprof(samples, time_ns=NOW, duration_ns=10**10)


def ours(program, source):
    done = hearth("convert", source, "-q", "-o", path("a.otlp"))
    tap.ok(done.returncode == 0, "convert to .otlp", done.stderr)
    tap.ok("not UTF-8" in done.stderr, "what is not UTF-8 is said", done.stderr.strip())
    facts = look(program, "read", path("a.otlp"))
    if not facts:
        return
    tap.ok(facts["unknown"] == 0, "no field is unknown", facts["unknown"])
    tap.ok(not facts["broken"], "no rule of profiles.proto is broken", facts["broken"])
    tap.ok(facts["start"] == NOW and facts["duration"] == 10**10, "time and duration", (facts["start"], facts["duration"]))
    hearth("convert", path("a.otlp"), "-q", "-o", path("again.otlp"))
    tap.ok(open(path("a.otlp"), "rb").read() == open(path("again.otlp"), "rb").read(), "read and written again: the same bytes")
    hearth("convert", path("a.otlp"), "-q", "-o", path("a.pb.gz"))
    compare(facts, Profile(path("a.pb.gz")), "ours")
    before, after = Profile(source), Profile(path("a.pb.gz"))
    tap.ok([sum(s.values[c] for s in before.samples) for c in (0, 1)] == [sum(s.values[c] for s in after.samples) for c in (0, 1)],
           "there and back: the same totals", len(after.samples))
    for name in ("a.otlp.pb", "a.otlp.gz", "a.otlp.pb.gz"):
        done = hearth("convert", source, "-q", "-o", path(name))
        data = open(path(name), "rb").read() if done.returncode == 0 else b""
        plain = gzip.decompress(data) if name.endswith("gz") and data[:2] == b"\x1f\x8b" else data
        tap.ok(plain == open(path("a.otlp"), "rb").read() and (data[:2] == b"\x1f\x8b") == name.endswith("gz"), f"{name} has the same, packed as its name says",
               done.stderr)
        shutil.copy(path(name), path("named.bin"))
        read = hearth("report", path("named.bin"))
        tap.ok(read.returncode == 0, f"{name} is known by its content", read.stderr[-200:])


def theirs(program):
    facts = look(program, "write", path("theirs.otlp"))
    if not facts:
        return
    done = hearth("convert", path("theirs.otlp"), "-q", "-o", path("theirs.pb.gz"))
    if not tap.ok(done.returncode == 0, "a file of the Go module is read", done.stderr):
        return
    tap.ok("original payload (pprof, 11 bytes)" in done.stderr and "lists" in done.stderr, "what is left out is said", done.stderr.strip())
    p = Profile(path("theirs.pb.gz"))
    compare(facts, p, "theirs")
    labels = [s.labels for s in p.samples]
    tap.ok(any(label.get("size") == -5 for label in labels), "a number with a unit", labels[:1])
    for key, value in (("flag", "true"), ("ratio", "0.5"), ("by.index", "indexed"), ("blob", "01ff"), ("os.type", "linux"), ("thread", "worker"),
                       ("container", "0123456789abcdef" * 4), ("trace_id", b"0123456789abcdef".hex())):
        tap.ok(any(label.get(key) == value for label in labels), f"{key} is {value[:20]}")
    report = hearth("report", path("theirs.otlp"))
    tap.ok(report.returncode == 0 and "web-1" in report.stdout, "report says whose it is", report.stderr)
    merged = hearth("merge", path("theirs.otlp"), path("theirs.otlp"), "-q", "-o", path("twice.otlp"))
    twice = look(program, "read", path("twice.otlp")) if tap.ok(merged.returncode == 0, "merge with itself", merged.stderr) else None
    if twice:
        tap.ok({n: t["total"] for n, t in twice["types"].items()} == {n: 2 * t["total"] for n, t in facts["types"].items()}, "counts everything twice")
        tap.ok(twice["unknown"] == 0 and not twice["broken"], "and is right in all", twice["broken"])
        tap.ok(set(twice["frame_types"]) >= {"kernel", "jvm", "cpython", "native"}, "frame types", twice["frame_types"])


def bad(source):
    data = open(path("a.otlp"), "rb").read()
    done = hearth("report", "--from", "otlp", write("cut.otlp", data[:len(data) // 2]))
    tap.ok(done.returncode == 1 and "byte" in done.stderr, "a file that is cut off", done.stderr)
    done = hearth("report", "--from", "otlp", source)
    tap.ok(done.returncode == 1, "a file of another format", done.stderr)
    old = bytes.fromhex("0a0f" "120d" "120b" "0a020801" "1205" "0801120102") + bytes.fromhex("1217" "1200" "1a00" "2a00" "2a0163" "3a00" "3a00" "3200" "3200" "3200" "0a00" "2200")
    done = hearth("report", write("old.otlp", old))
    tap.ok(done.returncode == 1 and "1.9.0" in done.stderr and "1.10.0" in done.stderr, "a file of an older version, by name", done.stderr)


def main():
    program = build()
    source = write("source.pb.gz", make())
    if program:
        ours(program, source)
        theirs(program)
    else:
        hearth("convert", source, "-q", "-o", path("a.otlp"))
    bad(source)
    tap.finish()


main()
