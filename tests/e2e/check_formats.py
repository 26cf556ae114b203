#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pprof reads our files with the same numbers, and each format comes back to the same bytes."""
import re
from collections import Counter

from support import *

tap = Tap("formats")
need(tap)
seconds = 4 if QUICK else 10
load = [start(workload(name), seconds + 3) for name in ("tree", "cpp", "kernel_heavy", "names_hostile", "nofp")]
record(tap, seconds, "-F", 199, "-q", "-o", path("a.pb.gz"))
for process in load:
    process.kill()
    process.wait()
ROW = re.compile(r"^ *(\S+) +(\S+)% +(\S+)% +(\S+) +(\S+)%  (.*)$")
KINDS = re.compile(r"_\[(k|p|pn|pe|j|i|1|0|rb|php|net|perl)\]$")


# Of a function of Python, Ruby, PHP, or Node.js: we tell functions of one name apart.
PLACE = re.compile(r" \((?:[^()]|\([^()]*\))*\)_\[p\]$| - \S.*:\d+_\[rb\]$| (?:/|<internal>)\S*:-?\d+_\[php\]$| (?:/|node:|file:)\S*:\d+$")


def rows(text):
    """Lists of (flat, cum) by name of a table as pprof -top and hearth report print it, and the names of functions that have a place."""
    numbers, of_python = {}, set()
    for line in text.split("\n"):
        m = ROW.match(line)
        if m and m[1].lstrip("-").isdigit() and m[4].lstrip("-").isdigit():
            bare = PLACE.sub("", m[6])
            name = KINDS.sub("", bare.removesuffix(" (inline)").removesuffix(" (partial-inline)"))
            if bare != m[6]:
                of_python.add(name)
            numbers.setdefault(name, []).append((int(m[1]), int(m[4])))
    return numbers, of_python


def agree(theirs, ours, several):
    """Of a name that several of our functions have, pprof makes one: flat adds up, cum counts a stack once."""
    if not ours or not several:
        return theirs == ours
    cums = [cum for _, cum in ours]
    return len(theirs) == 1 and theirs[0][0] == sum(flat for flat, _ in ours) and max(cums) <= theirs[0][1] <= sum(cums)


def all_numbers(rows_by_name, without):
    return Counter(pair for name, pairs in rows_by_name.items() if name not in without for pair in pairs)


COLUMN = re.compile(r":(-?\d+):-?\d+ s=")
SAMPLE = re.compile(r"^( *-?\d+ .*: )((?:\d+ )*)$")


def spelled_out(text):
    """A dump for comparing with a pprof from before columns (Go 1.19 has one), which numbers locations and mappings anew
    in the order of their use and leaves out samples without a location: no columns, no such samples, and in each stack
    the location's text with its mapping's in place of numbers."""
    head, _, rest = COLUMN.sub(r":\1 s=", text).partition("\nSamples:\n")
    samples, _, rest = rest.partition("\nLocations\n")
    locations, _, mappings = rest.partition("\nMappings\n")
    by_number = []
    for section in (mappings, locations):
        found, number = {}, ""
        for line in section.split("\n"):
            m = re.match(r" *(\d+): (.*)$", line)
            number = m[1] if m else number
            found[number] = m[2] if m else found.get(number, "") + "\n" + line  # inlined functions
        by_number.append({k: v.strip() for k, v in found.items()})
    mapping_of, location_of = by_number
    places = {k: re.sub(r" M=(\d+) ", lambda m: f" M={mapping_of[m[1]]} ", v, count=1) for k, v in location_of.items()}
    out, keep = [], True
    for line in samples.split("\n"):
        m = SAMPLE.match(line)
        keep = bool(m[2]) if m else keep  # lines of labels follow their sample
        if keep:
            out.append(m[1] + "|".join(places[number] for number in m[2].split()) if m else line)
    return head, out, sorted(places.values()), sorted(mapping_of.values())


if shutil.which("go"):
    theirs = run("go", "tool", "pprof", "-symbolize=none", "-top", "-nodefraction=0", "-nodecount=1000000",
                 "-sample_index=samples", path("a.pb.gz"), env={**os.environ, "PPROF_TMPDIR": scratch})
    ours = hearth("report", "--value", "samples", "--top", 1000000, "--no-tree", "--no-processes", path("a.pb.gz"))
    if tap.ok(theirs.returncode == 0 and ours.returncode == 0, "both read the file", (theirs.stderr + ours.stderr)[-300:]):
        a, _ = rows(theirs.stdout)
        b, of_python = rows(ours.stdout)
        a_numbers, b_numbers = all_numbers(a, of_python), all_numbers(b, of_python)
        # Names that a terminal must not see are escaped by us and not by pprof: compare those by their numbers only.
        printable = {n for n in a if n.isascii() and n.isprintable()}
        different = {n: (a[n], b.get(n)) for n in printable if not agree(a[n], b.get(n), n in of_python)}
        tap.ok(len(a) > 20 and not different, "flat and cum of every function agree with go tool pprof -top",
               f"{len(printable)} functions, {len(different)} differ {dict(list(different.items())[:3]) or ''}")
        tap.ok(a_numbers == b_numbers, "and so do the numbers of all rows", f"{sum(a_numbers.values())} and {sum(b_numbers.values())}")
    raw = run("go", "tool", "pprof", "-symbolize=none", "-raw", path("a.pb.gz"), env={**os.environ, "PPROF_TMPDIR": scratch})
    dump = hearth("dump", path("a.pb.gz"))
    is_older = raw.returncode == 0 and not COLUMN.search(raw.stdout)
    a, b = (spelled_out(t) if is_older else t for t in (raw.stdout, dump.stdout))
    tap.ok(raw.returncode == 0 and dump.returncode == 0 and a == b,
           "hearth dump equals go tool pprof -raw" + (", an older one: but for numbering and columns" if is_older else ""),
           f"{len(raw.stdout)} and {len(dump.stdout)} characters")
else:
    tap.skip("numbers as go tool pprof -top", "needs go")
if shutil.which("protoc"):
    with open(path("a.pb.gz"), "rb") as f:
        plain = gzip.decompress(f.read())
    decoded = subprocess.run(["protoc", "--decode_raw"], input=plain, capture_output=True)
    tap.ok(decoded.returncode == 0, "protoc reads the file")

original = Profile(path("a.pb.gz"))
for suffix in ("pb.gz", "hwin", "col", "folded", "otlp"):
    files = [path(f"{i}.{suffix}") for i in "xyz"]
    sources = [path("a.pb.gz")] + files[:-1]
    said = [hearth("convert", source, "-q", "-o", target) for source, target in zip(sources, files)]
    if not tap.ok(all(s.returncode == 0 for s in said), f"convert to {suffix}, and again, and again",
                  " ".join(s.stderr for s in said)[:300]):
        continue
    contents = [open(f, "rb").read() for f in files]
    tap.ok(contents[0] == contents[1] == contents[2] and contents[0], f"{suffix}: written, read and written again: the same bytes",
           f"{len(contents[0])}, {len(contents[1])}, {len(contents[2])}")
    back = hearth("convert", files[0], "-q", "-o", path("back.pb.gz"))
    if tap.ok(back.returncode == 0, f"{suffix} back to pprof", back.stderr[:200]):
        found = total(Profile(path("back.pb.gz")).samples)
        tap.ok(found == total(original.samples), f"{suffix}: no sample lost on the way", f"{found} of {total(original.samples)}")
html = [hearth("convert", path("a.pb.gz"), "-q", "-o", path(f"{i}.html")) for i in "xy"]
tap.ok(all(h.returncode == 0 for h in html) and open(path("x.html"), "rb").read() == open(path("y.html"), "rb").read(),
       "html: equal input, equal bytes")
merged = hearth("merge", path("a.pb.gz"), path("a.pb.gz"), "-o", path("twice.pb.gz"))
if tap.ok(merged.returncode == 0, "merge with itself", merged.stderr[:200]):
    tap.ok(total(Profile(path("twice.pb.gz")).samples) == 2 * total(original.samples), "counts everything twice")
tap.finish()
