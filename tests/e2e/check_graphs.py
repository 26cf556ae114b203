#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Classic flame graphs and differences beside their peers: inferno (INFERNO names the folder of its programs; make setup-extra
puts them into tests/sdks/inferno), flamegraph.pl and difffolded.pl (FLAMEGRAPH_PL names the former; the latter stands beside it),
and go tool pprof -diff_base."""
import json
import random
import xml.etree.ElementTree as ET
from collections import defaultdict

from collector import pprof
from support import *

tap = Tap("graphs")
need(tap, root=False)
SVG = "{http://www.w3.org/2000/svg}"
INFERNO = os.environ.get("INFERNO", os.path.join(ROOT, "tests", "sdks", "inferno", "bin"))
PERL = os.environ.get("FLAMEGRAPH_PL", "")
KNOWN = os.path.join(ROOT, "tests", "golden", "recorded.col")


def tool(name):
    found = os.path.join(INFERNO, name)
    return found if os.access(found, os.X_OK) else None


def write(name, text):
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


def made_up(seed, stacks=400):
    """Folded lines with what readers trip over: names that begin like others, blanks, suffixes, markup, recursion."""
    dice = random.Random(seed)
    names = ["main", "main1", "a", "a b", "a::b", "std::vector<int, a>::push_back", "read_[k]", "java/lang/String.equals_[j]", "f_[i]",
             "-", "--", "operator\"\"s", "x&y", "naïve", "日本語の名前", "z" * 120, "do_syscall_64_[k]", "lib.so.6`malloc", "/app/x.js:12"]
    lines = {}
    for _ in range(stacks):
        stack = ["comm%d" % dice.randrange(4)]
        for _ in range(dice.randrange(1, 12)):
            stack.append(dice.choice(names))
        lines[";".join(stack)] = int(dice.paretovariate(0.6))
    return "".join(f"{stack} {count}\n" for stack, count in sorted(lines.items()))


class Graph:
    """The boxes of an SVG, in px: by depth and title a sorted list of (x, width), and what flamegraph.pl's have besides."""
    def __init__(self, file):
        root = ET.parse(file).getroot()
        width, height = float(root.get("width")), float(root.get("height"))
        self.size = (width, height)
        frames = next(e for e in root.iter() if e.get("id") == "frames")
        self.boxes, self.colours, self.labels = defaultdict(list), {}, defaultdict(list)
        self.fills = defaultdict(list)  # of a difference: equal names have boxes of different colours
        found = []
        for group in frames:
            rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
            title = group.find(f"{SVG}title").text
            x, w = (self.px(rect.get(k), width) for k in ("x", "width"))
            x += 10 if rect.get("x").endswith("%") else 0
            found.append((float(rect.get("y")), title, x, w))
            self.colours[title.rpartition(" (")[0]] = rect.get("fill")
            self.fills[title].append((round(x), rect.get("fill")))
            label = text.text if text is not None and text.text else ""
            if not title.startswith("all ("):
                self.labels[title].append(label)
        base = next(y for y, title, _, _ in found if title.startswith("all ("))
        for y, title, x, w in found:  # inferno leaves other room above and below an icicle graph
            self.boxes[abs(y - base), title].append((x, w))
        for boxes in self.boxes.values():
            boxes.sort()
        for listed in (*self.labels.values(), *self.fills.values()):
            listed.sort()
        self.heading = next((e.text for e in root.iter() if e.get("id") == "title"), None)

    @staticmethod
    def px(text, width):
        return float(text[:-1]) * (width - 20) / 100 if text.endswith("%") else float(text)


def differences(a, b):
    """What tells two graphs apart: rows, titles, places."""
    out = [] if a.size[0] == b.size[0] else [f"width {a.size[0]} and {b.size[0]}"]
    for key in sorted(set(a.boxes) | set(b.boxes)):
        x, y = a.boxes.get(key, []), b.boxes.get(key, [])
        if len(x) != len(y):
            out.append(f"{key}: {len(x)} and {len(y)} boxes")
        elif any(abs(p - q) > 0.2 for one, other in zip(x, y) for p, q in zip(one, other)):
            out.append(f"{key}: {x[:2]} and {y[:2]}")
    return out


def ours(folded, out, *args):
    done = hearth("convert", folded, "-q", "-o", path(out), *args)
    if done.returncode or done.stderr:
        tap.ok(False, "hearth convert " + " ".join(args), done.stderr[-300:])
    return Graph(path(out))


def with_output(out, folded, *command):
    with open(path(out), "wb") as f, open(folded, "rb") as lines:
        done = subprocess.run(command, stdin=lines, stdout=f, stderr=subprocess.PIPE, cwd=scratch)
    return Graph(path(out)) if done.returncode == 0 else done.stderr.decode(errors="replace")


real = path("real.folded")
hearth("convert", KNOWN, "-q", "-o", real)
texts = {"recorded": real, "made up": write("made.folded", made_up(1)), "another": write("other.folded", made_up(2, 3000))}
pairs = path("pairs.folded")
done = hearth("diff", texts["made up"], write("later.folded", made_up(3)), "--format", "folded", "-o", pairs, "-q")
tap.ok(done.returncode == 0, "a folded difference is written", done.stderr[-200:])
dice = random.Random(4)
changes = write("changes.folded", "".join(f"{line.rsplit(' ', 1)[0]} {dice.randrange(50)} {1 + dice.randrange(50)}\n" for line in made_up(1).splitlines()))
SETS = [
    ("as it is", [], [], []),
    ("inverted", ["--inverted"], ["--inverted"], ["--inverted"]),
    ("reversed", ["--reverse"], ["--reverse"], ["--reverse"]),
    ("another size", ["--width", "777", "--height", "20", "--fontsize", "9"], ["--width", "777", "--height", "20", "--fontsize", "9"],
     ["--width=777", "--height=20", "--fontsize=9"]),
    ("narrow frames left out", ["--minwidth", "0.37%"], ["--minwidth", "0.37"], ["--minwidth=0.37%"]),
    ("words", ["--countname", "bytes", "--title", "A <title>", "--factor", "3"], ["--countname", "bytes", "--title", "A <title>", "--factor", "3"],
     ["--countname=bytes", "--title=A &lt;title&gt;", "--factor=3"]),
]
usual_min = str(0.1 / 1180 * 100)
everything = [(name, file, *row) for name, file in texts.items() for row in SETS]
everything += [("difference", changes, *SETS[0]), ("difference", changes, "negated", ["--negate"], ["--negate"], ["--negate"])]
# flamegraph.pl takes stacks that are gone for others that end in the same place: they lose their boxes there.
everything += [("difference with stacks that are gone", pairs, *SETS[0][:-1], None)]
for name, file, what, own, inferno, perl in everything:
    if QUICK and name == "another" and what != "as it is":
        continue
    graph = ours(file, "ours.svg", *own)
    boxes = sum(len(b) for b in graph.boxes.values())
    if tool("inferno-flamegraph"):
        args = inferno if "--width" in inferno else ["--width", "1200"] + inferno
        least = str(0.1 / 757 * 100) if "--width" in inferno else usual_min
        args = args if "--minwidth" in inferno else args + ["--minwidth", least]
        peer = with_output("inferno.svg", file, tool("inferno-flamegraph"), "-q", *args)
        found = differences(graph, peer) if isinstance(peer, Graph) else [peer]
        tap.ok(not found and boxes > 20, f"{name}, {what}: boxes, titles and percentages as inferno", f"{boxes} boxes {found[:3] or ''}")
        tap.ok(isinstance(peer, Graph) and graph.heading == peer.heading, f"{name}, {what}: the same heading", graph.heading)
    else:
        tap.skip(f"{name}, {what}: as inferno", "needs inferno-flamegraph (make setup-extra, or INFERNO)")
    if perl is None:
        continue
    if PERL and shutil.which("perl"):
        peer = with_output("perl.svg", file, "perl", PERL, *perl)
        found = differences(graph, peer) + ([] if graph.size == peer.size else [(graph.size, peer.size)]) if isinstance(peer, Graph) else [peer]
        tap.ok(not found and boxes > 20, f"{name}, {what}: boxes, titles and percentages as flamegraph.pl", f"{boxes} boxes {found[:3] or ''}")
        if isinstance(peer, Graph):
            other = {t: (graph.labels.get(t), l) for t, l in peer.labels.items() if graph.labels.get(t) != l}
            tap.ok(not other, f"{name}, {what}: the same labels", str(list(other.items())[:2] or len(peer.labels)))
    else:
        tap.skip(f"{name}, {what}: as flamegraph.pl", "needs FLAMEGRAPH_PL")
if PERL and shutil.which("perl"):
    for palette in "hot mem io java js perl wakeup red green blue aqua yellow purple orange".split():
        for more in ([], ["--hash"]):
            a = ours(texts["made up"], "ours.svg", "--colors", palette, *more)
            b = with_output("perl.svg", texts["made up"], "perl", PERL, f"--colors={palette}", *more)
            other = {n: (a.colours.get(n), c) for n, c in b.colours.items() if a.colours.get(n) != c}
            tap.ok(not other, f"colours of {palette} {' '.join(more)} as flamegraph.pl", str(list(other.items())[:3] or len(a.colours)))
    a, b = ours(changes, "ours.svg"), with_output("perl.svg", changes, "perl", PERL)
    other = {t: (a.fills.get(t), f) for t, f in b.fills.items() if a.fills.get(t) != f}
    tap.ok(a.fills and not other, "colours of a difference as flamegraph.pl", str(list(other.items())[:2] or len(a.fills)))
else:
    tap.skip("colours as flamegraph.pl", "needs FLAMEGRAPH_PL")
once, again = (open(ours(real, n) and path(n), "rb").read() for n in ("once.svg", "again.svg"))
tap.ok(once == again, "equal input, equal bytes", len(once))
piped = subprocess.run([HEARTH, "convert", "-", "-q", "--from", "folded", "--format", "svg", "-o", "-"], stdin=open(real, "rb"), capture_output=True)
tap.ok(piped.returncode == 0 and piped.stdout == once, "the same through pipes", piped.stderr.decode()[-200:])

# What is wrong is said in one line.
for args, wanted in ((["--minwidth", "x"], "--minwidth: 'x'"), (["--bgcolors", "pink"], "--bgcolors: 'pink'"), (["--factor", "0"], "--factor: '0'"),
                     (["--colors", "pink"], "--colors"), (["--width", "1"], "--width"), (["--fontwidth", "-1"], "--fontwidth: '-1'")):
    done = hearth("convert", real, "-o", path("bad.svg"), *args)
    tap.ok(done.returncode == 2 and wanted in done.stderr and done.stderr.count("\n") == 1, " ".join(args) + " is refused", done.stderr.strip())

# Folded differences
a, b = texts["made up"], path("later.folded")


def two_columns(text):
    return {line.rsplit(" ", 2)[0]: tuple(map(int, line.rsplit(" ", 2)[1:])) for line in text.splitlines()}


for args, name in (([], "as it is"), (["--normalize"], "normalized")):
    mine = two_columns(hearth("diff", a, b, "--format", "folded", "-o", "-", *args).stdout)
    if tool("inferno-diff-folded"):
        theirs = two_columns(run(tool("inferno-diff-folded"), *(["-n"] if args else []), a, b).stdout)
        theirs = {s: v for s, v in theirs.items() if v != (0, 0)}
        mine_too = {s: v for s, v in mine.items() if v != (0, 0)}
        other = {s for s in theirs.keys() | mine_too.keys() if max(abs(x - y) for x, y in zip(theirs.get(s, (0, 0)), mine_too.get(s, (0, 0)))) > bool(args)}
        tap.ok(not other and len(mine) > 100, f"folded difference {name}: as inferno-diff-folded", f"{len(mine)} stacks {list(other)[:2] or ''}")
    else:
        tap.skip(f"folded difference {name}", "needs inferno-diff-folded")
    script = os.path.join(os.path.dirname(PERL), "difffolded.pl")
    if PERL and os.path.exists(script) and shutil.which("perl"):
        theirs = two_columns(run("perl", script, *(["-n"] if args else []), a, b).stdout)
        theirs = {s: v for s, v in theirs.items() if v != (0, 0)}
        tap.ok(theirs == {s: v for s, v in mine.items() if v != (0, 0)}, f"folded difference {name}: as difffolded.pl", len(theirs))
again = hearth("convert", pairs, "-q", "-o", "-", "--format", "folded").stdout
tap.ok(again == open(pairs).read(), "a folded difference is read and written again: the same bytes", len(again))

# Against go tool pprof
for name, file in (("a", a), ("b", b)):
    hearth("convert", file, "-q", "-o", path(name + ".pb.gz"))
x, y = path("a.pb.gz"), path("b.pb.gz")


def top(*args):
    """name -> (flat, cum), the total, of go tool pprof -top."""
    done = run("go", "tool", "pprof", "-symbolize=none", "-top", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000000", *args,
               env={**os.environ, "PPROF_TMPDIR": scratch})
    rows, total = defaultdict(list), re.search(r"of (-?\d+) total", done.stdout)
    for line in done.stdout.splitlines():
        m = re.match(r" *(-?\d+) +\S+% +\S+% +(-?\d+) +\S+%  (.*)$", line)
        if m:
            rows[m[3]].append((int(m[1]), int(m[2])))
    return {k: sorted(v) for k, v in rows.items()}, total and int(total[1])


if shutil.which("go"):
    for args, peer, name in (([], [], "as it is"), (["--normalize"], ["-normalize"], "normalized")):
        done = hearth("diff", x, y, "-q", "-o", path("d.pb.gz"), *args)
        mine, my_total = top(path("d.pb.gz"))
        theirs, their_total = top(*peer, "-diff_base", x, y)
        tap.ok(done.returncode == 0 and len(theirs) > 10 and mine == theirs, f"pprof difference {name}: every row as -diff_base",
               f"{len(mine)} and {len(theirs)} functions {done.stderr[-100:]}")
        tap.ok(my_total == their_total and my_total, f"pprof difference {name}: the same total", f"{my_total}, {their_total}")
    done = hearth("report", "--json", path("d.pb.gz"))
    found = json.loads(done.stdout)["value"]
    tap.ok(found["total"] == their_total, "hearth report has the total of pprof: that of the base", found)
    theirs, base_total = top("-diff_base", x, y)
else:
    tap.skip("as go tool pprof -diff_base", "needs go")
    theirs = None

# The table
table = hearth("diff", x, y, "-n", "1000000", "--from", "pprof")
ROW = re.compile(r"^ *(\d+) +(\d+) +([+-]?\d+) +[+-]?[\d.]+% +([+-]?\d+) +[+-]?[\d.]+% (new |gone|    ) (.*)$")
rows, uneven = {}, []
for line in table.stdout.splitlines():
    m = ROW.match(line)
    if m:
        rows[m[6]] = (int(m[3]), int(m[4]))
        uneven += [line] if int(m[2]) - int(m[1]) != int(m[3]) else []
tap.ok(not uneven, "a row's change is what is now less what was", uneven[:2])
tap.ok(table.returncode == 0 and len(rows) > 10, "hearth diff prints a table", f"{len(rows)} rows {table.stderr[-200:]}")
if theirs:
    plain = {n: v for n, v in theirs.items() if n.isascii() and len(v) == 1}
    other = {n: (v, rows.get(n)) for n, v in plain.items() if v[0] != (0, 0) and v[0] not in (rows.get(n + kind) for kind in ("", "_[k]", "_[j]", "_[i]"))}
    tap.ok(not other, "flat and cum changes as go tool pprof -diff_base", f"{len(plain)} functions {list(other.items())[:3] or ''}")
totals = {k: int(v) for k, v in re.findall(r"^(before|now|change) +\+?(-?\d+)", table.stdout, re.M)}
sums = {n: sum(int(line.rsplit(" ", 1)[1]) for line in open(f)) for n, f in (("before", a), ("now", b))}
tap.ok(totals == {**sums, "change": sums["now"] - sums["before"]}, "totals are those of the files", totals)
one, other = write("one.folded", "p;main;old 10\np;main;same 10\n"), write("two.folded", "p;main;fresh 30\np;main;same 10\n")
text = hearth("diff", one, other).stdout
tap.ok(re.search(r"new +fresh$", text, re.M) and re.search(r"gone +old$", text, re.M) and "1 new, 1 gone" in text, "new and gone functions are named", text)
tap.ok(re.search(r"^ +0 +30 +\+30 +\+75.00% ", text, re.M), "absolute and as a share", text.splitlines()[-1])
same = hearth("diff", one, "-", stdin=open(one))
tap.ok(same.returncode == 0 and re.search(r"^change +0 +\+0.00%", same.stdout, re.M), "a file with itself through a pipe: nothing changed", same.stdout)
for args, status, wanted in (([one], 2, "missing"), (["-", "-"], 2, "standard input"), ([one, path("none")], 1, "none"), ([one, other, "-o", path("x.col")], 2, "x.col"),
                             ([one, other, "--format", "speedscope"], 2, "speedscope"), ([one, other, "--value", "x"], 2, "--value")):
    done = hearth("diff", *args)
    tap.ok(done.returncode == status and wanted in done.stderr and done.stderr.count("\n") == 1, f"hearth diff {' '.join(map(os.path.basename, args))}: {status}",
           done.stderr.strip())
for unit, value in (("microseconds", 1000), ("nanoseconds", 1000000)):
    with open(path(unit), "wb") as f:
        f.write(pprof([(("main",), (value,))], types=(("cpu", unit),)))
for form in ("text", "html", "folded", "svg"):
    done = hearth("diff", path("microseconds"), path("nanoseconds"), "-q", "--format", form, "-o", path("x." + form))
    tap.ok(done.returncode == 1 and "'cpu' is in 'microseconds', that of " in done.stderr, f"units that differ are not compared: {form}", done.stderr.strip())
hearth("diff", one, other, "-q", "-o", path("d.svg"))
graph = Graph(path("d.svg"))
titles = [t for _, t in graph.boxes]
tap.ok(any(t.startswith("fresh (30 samples, 75.00%; +75.00%; before 0, new)") for t in titles) and
       any("stacks that are gone: 1" in t for t in titles), "an SVG says what is new and how much is gone", titles)

# The report for programs
report = hearth("report", "--json", x)
found = json.loads(report.stdout)
tap.ok(report.returncode == 0 and found["version"] == 1 and found["value"]["total"] == sums["before"], "report --json: totals", found["value"])
tap.ok(sum(f["flat"] for f in found["functions"]) == sums["before"] and all(f["cum"] >= f["flat"] for f in found["functions"]), "report --json: flat adds up",
       f"{len(found['functions'])} functions")
if shutil.which("go"):
    theirs, _ = top(x)
    mine = defaultdict(list)
    for f in found["functions"]:
        mine[f["name"]].append((f["flat"], f["cum"]))
    tap.ok({k: v for k, v in theirs.items() if k.isascii()} == {k: sorted(v) for k, v in mine.items() if k.isascii()}, "report --json: flat and cum as go tool pprof -top", len(theirs))
tap.ok(sum(found["ends"].values()) == sums["before"], "report --json: ends add up", found["ends"])
recorded = json.loads(hearth("report", "--json", KNOWN).stdout)
tap.ok(recorded["counters"].get("samples", 0) >= 0 and recorded["processes"], "report --json: counters and processes of a recording", len(recorded["processes"]))
tap.finish()
