#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of the JDK's Flight Recorder, made here, beside what the JDK's own jfr says of them: totals, threads, and every stack
with its lines and kinds of frames."""
import glob
import json
import os
import re
from collections import Counter

from support import HERE, QUICK, Profile, Tap, hearth, path, run

tap = Tap("jfr")
SECONDS = 4 if QUICK else 10
# event -> the column that counts it, the column of its weight, the weight's field
COLUMNS = {
    "jdk.ExecutionSample": ("samples", None, None),
    "jdk.NativeMethodSample": ("native_samples", None, None),
    "jdk.CPUTimeSample": ("cpu_time_samples", None, None),
    "jdk.ObjectAllocationInNewTLAB": ("alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes", "tlabSize"),
    "jdk.ObjectAllocationOutsideTLAB": ("alloc_outside_tlab_objects", "alloc_outside_tlab_bytes", "allocationSize"),
    "jdk.ObjectAllocationSample": ("alloc_sample_objects", "alloc_sample_bytes", "weight"),
}
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0"><event name="jdk.ObjectAllocationInNewTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationOutsideTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationSample"><setting name="enabled">true</setting><setting name="throttle">300/s</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ExecutionSample"><setting name="enabled">true</setting><setting name="period">10 ms</setting></event>
<event name="jdk.NativeMethodSample"><setting name="enabled">true</setting><setting name="period">20 ms</setting></event>
<event name="jdk.CPUTimeSample"><setting name="enabled">true</setting><setting name="throttle">10 ms</setting></event>
<event name="jdk.JVMInformation"><setting name="enabled">true</setting><setting name="period">beginChunk</setting></event>
<event name="jdk.CPULoad"><setting name="enabled">true</setting><setting name="period">1 s</setting></event></configuration>
"""


def jdks():
    """Folders of JDKs with java, javac and jfr, by version."""
    found = {}
    for java in sorted({os.path.realpath(p) for p in glob.glob("/usr/lib/jvm/*/bin/java")}):
        home = os.path.dirname(os.path.dirname(java))
        if all(os.access(os.path.join(home, "bin", tool), os.X_OK) for tool in ("javac", "jfr")):
            version = run(java, "-version").stderr.split('"')[1].partition(".")[0]
            found[version] = home
    return found


def frame(f):
    method = f["method"]
    name = method["type"]["name"].replace("/", ".")
    return (f"{name}.{method['name']}" if name else method["name"], max(f["lineNumber"], 0))


def printed(home, file, names):
    """Each event as (type, thread, stack, truncated, weight), from jfr print."""
    events = []
    for event in json.loads(run(os.path.join(home, "bin/jfr"), "print", "--json", "--stack-depth", "4096", "--events", ",".join(names), file,
                                timeout=600, env={**os.environ, "JAVA_TOOL_OPTIONS": "-Dstdout.encoding=UTF-8 -Dfile.encoding=UTF-8"}).stdout)["recording"]["events"]:
        values = event["values"]
        stack = values["stackTrace"] or {"frames": [], "truncated": False}
        thread = values.get("sampledThread") or values.get("eventThread") or {}
        weight = COLUMNS[event["type"]][2]
        events.append((event["type"], thread.get("javaName") or thread.get("osName") or "", tuple(frame(f) for f in stack["frames"]), stack["truncated"],
                       values[weight] if weight else 1))
    return events


def read(file):
    done = hearth("convert", file, "-q", "-o", path("out.pb.gz"))
    if not tap.ok(done.returncode == 0, f"{os.path.basename(file)} is read", done.stderr):
        return None
    tap.ok(re.search(r"\d+ events that are no samples are left out", done.stderr), "what is left out is counted", done.stderr.strip())
    return Profile(path("out.pb.gz"))


def summary(home, file):
    """Counts of events by type, and the version, of jfr summary."""
    text = run(os.path.join(home, "bin/jfr"), "summary", file).stdout
    return {m[1]: int(m[2]) for m in re.finditer(r"^ (\S+) +(\d+) +\d+$", text, re.M)}, re.search(r"Version: (\S+)", text)[1]


def compare(what, home, file):
    profile = read(file)
    if not profile:
        return
    counts, version = summary(home, file)
    names = [t for t, _ in profile.types]
    sums = {n: sum(s.values[i] for s in profile.samples) for i, n in enumerate(names)}
    for event, (count, _, _) in COLUMNS.items():
        tap.ok(counts.get(event, 0) == sums.get(count, 0), f"{what} ({version}): as many {event} as jfr summary", sums.get(count, 0))
    events = printed(home, file, [name for name in COLUMNS if counts.get(name)])
    for event, (count, weight, _) in COLUMNS.items():
        theirs, ours = Counter(), Counter()
        for name, thread, stack, truncated, _ in events:
            if name == event:
                theirs[thread, stack, truncated] += 1
        if count not in names:
            tap.ok(not theirs, f"{what}: no {event}")
            continue
        column = names.index(count)
        for s in profile.samples:
            if s.values[column]:
                stack = tuple((n, p[1]) for n, p in zip(reversed(s.names), reversed(s.places)))
                ours[s.labels.get("thread", ""), stack, s.end == "cut:jfr-stack-depth"] += s.values[column]
        different = (theirs - ours) + (ours - theirs)
        tap.ok(theirs == ours, f"{what}: every stack of {event}, with lines, thread and whether it is cut, as jfr print",
               f"{sum(theirs.values())} in {len(theirs)}, {sum(different.values())} differ {list(different)[:1] or ''}"[:600])
        if weight:
            want = sum(e[4] for e in events if e[0] == event)
            tap.ok(sums[weight] == want, f"{what}: {weight}", want)
    leaves = Counter(e[2][0][0] for e in events if e[0] == "jdk.ExecutionSample" and e[2])
    report = hearth("report", "--value", "samples", "--top", 5, "--no-tree", "--no-processes", file)
    tap.ok(leaves and leaves.most_common(1)[0][0] in report.stdout, f"{what}: report has the hottest method", leaves.most_common(2))
    tap.ok(any(s.end == "cut:jfr-stack-depth" for s in profile.samples), f"{what}: deep stacks are said to be cut")
    tap.ok(any("Größe" in n for s in profile.samples for n in s.names) and any(s.labels.get("thread") == "tief 深い" for s in profile.samples),
           f"{what}: names beyond ASCII")


def otlp(file):
    done = hearth("convert", file, "-q", "-o", path("out.otlp"))
    done2 = hearth("convert", path("out.otlp"), "-q", "-o", path("back.pb.gz"))
    if tap.ok(done.returncode == 0 and done2.returncode == 0, "to OTLP and back", done.stderr + done2.stderr):
        a, b = Profile(path("out.pb.gz")), Profile(path("back.pb.gz"))
        tap.ok(a.types == b.types and [sum(s.values[i] for s in a.samples) for i in range(len(a.types))] ==
               [sum(s.values[i] for s in b.samples) for i in range(len(b.types))], "with the same totals", len(b.samples))


def bad(file):
    data = open(file, "rb").read()
    for what, name, content, word in (("cut off", "cut.jfr", data[:-1000], "cut off"), ("of another version", "old.jfr", data[:5] + b"\x01" + data[6:], "JDK 8"),
                                      ("that is being written", "busy.jfr", data[:8] + bytes(8) + data[16:], "still being written")):
        with open(path(name), "wb") as f:
            f.write(content)
        done = hearth("report", path(name))
        tap.ok(done.returncode == 1 and word in done.stderr, f"a recording {what} is refused", done.stderr.strip())


def main():
    found = jdks()
    if not found:
        tap.skip("everything", "needs a JDK with jfr (Debian's openjdk-17-jdk-headless)")
        tap.finish()
    with open(path("settings.jfc"), "w") as f:
        f.write(SETTINGS)
    for version, home in list(found.items())[:1 if QUICK else None]:
        classes, file = path(f"classes{version}"), path(f"jdk{version}.jfr")
        compiled = run(os.path.join(home, "bin/javac"), "-encoding", "UTF-8", "-g", "-d", classes, os.path.join(HERE, "check_jfr/Work.java"))
        done = run(os.path.join(home, "bin/java"), "-Xmx300m", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8",
                   f"-XX:StartFlightRecording=filename={file},settings={path('settings.jfc')},dumponexit=true", "-cp", classes, "Work", SECONDS, timeout=120,
                   env={**os.environ, "LC_ALL": "C.UTF-8"})
        if not tap.ok(compiled.returncode == 0 and done.returncode == 0 and os.path.exists(file), f"JDK {version} records", (compiled.stderr + done.stderr)[-400:]):
            continue
        compare(f"JDK {version}", home, file)
        otlp(file)
        bad(file)
        two = path("two.jfr")
        with open(two, "wb") as out:
            out.write(open(file, "rb").read() * 2)
        done, twice = hearth("convert", two, "-q", "-o", path("two.pb.gz")), None
        if tap.ok(done.returncode == 0, "two chunks one behind the other", done.stderr):
            once, twice = Profile(path("out.pb.gz")), Profile(path("two.pb.gz"))
            tap.ok(len(twice.samples) == 2 * len(once.samples), "are read both", len(twice.samples))
    tap.finish()


main()
