#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files for other viewers: their stacks are added up again by the rules of each format, and read by the viewers' own programs."""
from collections import Counter

from support import *

tap = Tap("viewers")
need(tap, root=False)
FOLDED = """\
web server;main 1
web server;main;serve 20
web server;main;serve;parse;serve;parse 300
web server;main;read;sys_read_[k];vfs_read_[k] 4000
web server;main;handle (/srv/app.py:12)_[p];json.loads (/usr/lib/python3.11/json/__init__.py:299 [standard-library==3.11.2])_[p] 50000
db;start;main;<img src=x>"quoted"\\back 600
db;start;main;na\u00efve \u2603 \U0001f525 7
db 8
"""
with open(path("known.folded"), "w") as f:
    f.write(FOLDED)
SUFFIX = {"kernel": "_[k]", "python": "_[p]", "python-error": "_[pe]"}


def counts(text):
    return Counter({line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in text.splitlines()})


def convert(source, target, *options):
    done = hearth("convert", source, "-q", *options, "-o", target)
    return tap.ok(done.returncode == 0, f"convert {os.path.basename(source)} to {os.path.basename(target)}", done.stderr[:300])


def folded_of(source, *options):
    done = hearth("convert", source, "-q", *options, "--format", "folded", "-o", "-")
    return counts(done.stdout) if done.returncode == 0 else done.stderr


def load(name):
    with (gzip.open if name.endswith(".gz") else open)(path(name), "rt", encoding="utf-8") as f:
        return json.load(f)


def of_speedscope(data, index=0):
    """Name, unit and stacks of a profile, by src/lib/file-format-spec.ts of speedscope."""
    frames, profile, stacks = data["shared"]["frames"], data["profiles"][index], Counter()
    assert profile["type"] == "sampled" and len(profile["samples"]) == len(profile["weights"])
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
    for sample, weight in zip(profile["samples"], profile["weights"]):
        stacks[";".join(frames[i]["name"] for i in sample)] += weight
    return profile["name"], profile["unit"], stacks


def of_firefox(data):
    """Stacks by src/types/profile.ts of the Firefox Profiler: stack, frame, function, string; the process in front."""
    shared = data["shared"]
    stacks, frames, funcs, strings = (shared[k] for k in ("stackTable", "frameTable", "funcTable", "stringArray"))
    categories = [c["name"] for c in data["meta"]["categories"]]
    for table in (stacks, frames, funcs, shared["resourceTable"], shared["sources"]):
        assert all(len(column) == table["length"] for column in table.values() if isinstance(column, list))
    names = []
    for frame, offset in zip(stacks["frame"], stacks["prefixOffset"]):
        name = strings[funcs["name"][frames["func"][frame]]]
        own = name + SUFFIX.get(categories[frames["category"][frame]], "")
        names.append((names[len(names) - offset] + ";" if offset else "") + own)
    out = Counter()
    for thread in data["threads"]:
        samples = thread["samples"]
        assert len(samples["stack"]) == len(samples["time"]) == len(samples["weight"]) == samples["length"]
        assert samples["time"] == sorted(samples["time"])
        for stack, weight in zip(samples["stack"], samples["weight"]):
            out[f"{thread['processName']};{names[stack]}"] += weight
    return out


def bare(stacks):
    """Without what folded text says of a frame behind its name; a stack of the process alone has a function without a name."""
    out = Counter()
    for stack, count in stacks.items():
        out[";".join(re.sub(r" \(/[^;]*\)(?=_\[)", "", frame) for frame in stack.split(";"))] += count
    return out


def without_kinds(stacks):
    return Counter({re.sub(r"_\[\w+\](?=;|$)", "", stack): count for stack, count in stacks.items()})


wanted = counts(FOLDED)
# speedscope
if convert(path("known.folded"), path("a.speedscope.json"), "--title", "a title"):
    data = load("a.speedscope.json")
    name, unit, stacks = of_speedscope(data)
    tap.ok((data["name"], name, unit) == ("a title", "samples", "none"), "speedscope: title, value type and unit")
    tap.ok(stacks == without_kinds(bare(wanted)), "speedscope: the stacks of the file", f"{sum(stacks.values())} of {sum(wanted.values())}")
    tap.ok(folded_of(path("a.speedscope.json")) == wanted, "speedscope: comes back with kinds, files and lines")
    convert(path("a.speedscope.json"), path("b.speedscope.json.gz"))
    with open(path("a.speedscope.json"), "rb") as a, gzip.open(path("b.speedscope.json.gz")) as b:
        tap.ok(a.read() == b.read(), "speedscope: written, read and written again, packed: the same bytes")
    with open(path("a.speedscope.json")) as a:
        piped = run(HEARTH, "convert", "-", "-q", "--from", "speedscope", "--format", "speedscope", "-o", "-", stdin=a)
    tap.ok(piped.returncode == 0 and json.loads(piped.stdout) == data, "speedscope: from a pipe to a pipe", piped.stderr[:200])
    merged = hearth("merge", path("a.speedscope.json"), path("b.speedscope.json.gz"), "-o", path("sum.pb.gz"))
    tap.ok(merged.returncode == 0 and folded_of(path("sum.pb.gz")) == Counter({k: 2 * v for k, v in wanted.items()}),
           "speedscope: merge counts everything twice", merged.stderr[:200])
    said = [hearth(command, path("a.speedscope.json")) for command in ("report", "dump")]
    tap.ok(all(s.returncode == 0 and "vfs_read" in s.stdout for s in said), "speedscope: report and dump", said[0].stderr[:200])
EVENTED = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}, {"name": "f"}]},
           "profiles": [{"type": "evented", "name": "thread 1", "unit": "milliseconds", "startValue": 0, "endValue": 10, "events": [
               {"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 2.5}, {"type": "C", "frame": 1, "at": 4}, {"type": "C", "frame": 0, "at": 10}]},
               {"type": "sampled", "name": "thread 2", "unit": "seconds", "startValue": 0, "endValue": 1, "samples": [[0]], "weights": [0.25]}]}
with open(path("evented.json"), "w") as f:
    json.dump(EVENTED, f)
tap.ok(folded_of(path("evented.json")) == Counter({"main": 258500000, "main;f": 1500000}), "speedscope: evented and sampled threads, in nanoseconds",
       folded_of(path("evented.json")))
with open(path("cut.speedscope.json"), "w") as f:
    f.write(json.dumps(EVENTED)[:300])
cut = hearth("convert", path("cut.speedscope.json"), "-q", "-o", path("x.folded"))
tap.ok(cut.returncode == 1 and re.search(r"byte 29\d: the JSON", cut.stderr) and cut.stderr.count("\n") == 1, "speedscope: a file that is cut off: one line with the place", cut.stderr)

# The Firefox Profiler
if convert(path("known.folded"), path("a.profile.json")) and convert(path("known.folded"), path("a.profile.json.gz")):
    data = load("a.profile.json")
    tap.ok(data == load("a.profile.json.gz"), "firefox: packed, the same")
    stacks = of_firefox(data)
    plain = bare(wanted)
    plain["db;[unknown]"] = plain.pop("db")
    tap.ok(stacks == plain, "firefox: the stacks of the file", f"{sum(stacks.values())} of {sum(wanted.values())}")
    tap.ok({t["processName"]: t["isMainThread"] for t in data["threads"]} == {"web server": True, "db": True}, "firefox: a thread for each process")
    files = [data["shared"]["stringArray"][i] for i in data["shared"]["sources"]["filename"]]
    tap.ok(sorted(files) == ["/srv/app.py", "/usr/lib/python3.11/json/__init__.py"], "firefox: source files", files)
    back = hearth("convert", path("a.profile.json"), "-o", path("x.folded"))
    tap.ok(back.returncode == 1 and "writes firefox files but does not read them" in back.stderr, "firefox: reading one is refused in words", back.stderr)
convert(path("evented.json"), path("times.profile.json"))
weights = [w for t in load("times.profile.json")["threads"] for w in t["samples"]["weight"]]
tap.ok(sum(weights) == 260 and 1.5 in weights, "firefox: nanoseconds are milliseconds", weights)
with open(path("two.folded"), "w") as f:
    f.write("a;b 1 5\na;c 2 6\n")
two = hearth("convert", path("two.folded"), "-q", "--value", "before", "-o", path("two.profile.json"))
tap.ok(two.returncode == 0 and "'before' is written" in two.stderr and sum(of_firefox(load("two.profile.json")).values()) == 3,
       "firefox: one value type, and the other is said to be left out", two.stderr)

# The application's own code, as its command line has it.
module = os.path.join(os.environ.get("VIEWER_NODE_MODULES", os.path.join(ROOT, "tests", "web", "node_modules")), "@firefox-devtools", "profiler-cli",
                      "dist", "profiler-cli.js")
environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": path("pq"), "HOME": scratch}


def profiler(*args):
    return run("node", module, *args, env=environment, timeout=60)


def functions(thread):
    """name -> (self, total), as it counts them."""
    done = profiler("thread", "functions", "--json", "--limit", "1000", "--include-idle", "--thread", thread)
    found = json.loads(done.stdout)
    return {f["nameWithLibrary"].rpartition("!")[2] if "nameWithLibrary" in f else f["name"]: (f["selfSamples"], f["totalSamples"]) for f in found["functions"]}


def counted(stacks, process):
    out = {}
    for stack, count in stacks.items():
        head, *frames = without_kinds(bare(Counter({stack: count}))).most_common()[0][0].split(";")
        if head != process:
            continue
        for name in set(frames or ["[unknown]"]):
            own, total = out.get(name, (0, 0))
            out[name] = (own + (count if (frames or ["[unknown]"])[-1] == name else 0), total + count)
    return out


def beside_the_application():
    opened = profiler("load", path("a.profile.json"))
    if not tap.ok(opened.returncode == 0, "firefox: npm's profiler-cli opens the file", (opened.stdout + opened.stderr)[-300:]):
        return
    for handle, process in (("t-0", "web server"), ("t-1", "db")):
        found, want = functions(handle), counted(wanted, process)
        tap.ok(found == want, f"firefox: profiler-cli counts self and total of each function of {process} as the file says",
               f"{found} {want}" if found != want else len(want))


node = run("node", "--version").stdout if shutil.which("node") else ""
if not os.path.exists(module):
    tap.skip("firefox: read by npm's profiler-cli", "it is not installed (make setup-extra)")
elif not re.match(r"v(2\d|[3-9]\d)\.", node):
    tap.skip("firefox: read by npm's profiler-cli", f"needs Node.js 20, there is {node.strip() or 'none'}")
else:
    try:
        beside_the_application()
    finally:
        profiler("stop", "--all")  # it leaves a process that keeps the file
tap.finish()
