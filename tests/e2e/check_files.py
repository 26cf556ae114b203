#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Profile files of others through convert, merge and report: odd folded text, gzip around any format, merges of unlike files."""
import gzip
import os
import time

from collector import Collector, pprof
from support import Profile, Tap, hearth, path, total

tap = Tap("files")
NOW = (int(time.time()) - 3600) * 10**9


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)
    return path(name)


def converted(source, *options):
    done = hearth("convert", source, "-q", "-o", path("out.pb.gz"), *options)
    return done, Profile(path("out.pb.gz")) if done.returncode == 0 else None


def folded():
    text = b"# made by somebody\n#\n#no count\n\nmain;a 0.4\nmain;b 0.4\nthis line says nothing\nmain;c 0.4\n#main;d 2\nneither this\n"
    done, p = converted(write("odd.folded", text))
    tap.ok(p and sum(s.values[0] for s in p.samples) == 3, "fractions keep their total, a '#' may begin a stack", p and [s.values for s in p.samples])
    tap.ok("line 7: no count" in done.stderr and "2 such lines" in done.stderr, "bad lines are counted, the first is named", done.stderr)
    page = hearth("convert", path("odd.folded"), "-q", "-o", path("out.html"))
    tap.ok(page.returncode == 0 and "line 7" in page.stderr, "and on the way to a page, too", page.stderr)
    many = b"".join(b"main;f%d 0.1\n" % i for i in range(1000))
    p = converted(write("tenths.folded", many))[1]
    tap.ok(sum(s.values[0] for s in p.samples) == 100, "1,000 tenths are 100")
    done, p = converted(write("none.folded", b"nothing\nof this\nis a stack\n"), "--from", "folded")
    tap.ok(done.returncode == 1 and "line 1" in done.stderr, "a file without any stack is an error", done.stderr)
    done, p = converted(write("comment.folded", b"# only a comment\n"))
    tap.ok(done.returncode == 0 and not p.samples, "a file of comments is an empty profile", done.stderr)


def packed():
    body = pprof([(["main", "work"], [3, 30])])
    source = write("plain.pb.gz", body)
    for name in ("t.col", "t.folded", "t.hwin", "t.pb.gz"):
        hearth("convert", source, "-q", "-o", path(name))
        with open(path(name), "rb") as f:
            plain = f.read()
        for file in (write(name + ".gz", gzip.compress(plain)), write("packed.bin", gzip.compress(gzip.compress(plain)) if "pb" not in name else gzip.compress(plain))):
            done, p = converted(file)
            tap.ok(p and total(p.samples) == 3, f"{name} inside gzip is read ({os.path.basename(file)})", done.stderr)
    legacy = b"heap profile: 1: 100 [1: 100] @ heapprofile\n1: 100 [1: 100] @ 0x1000 0x2000\n"
    tap.ok(converted(write("legacy.gz", gzip.compress(legacy)))[1], "a legacy form inside gzip")
    done = hearth("report", write("untyped.pb.gz", gzip.compress(b"\x32\x00")))
    tap.ok(done.returncode == 1 and "it has no sample types" in done.stderr, "a profile without sample types: words", done.stderr)
    done = hearth("report", write("cut.folded.gz", gzip.compress(b"main;a 1\n" * 999)[:-9]))
    tap.ok(done.returncode == 1 and "gzip" in done.stderr, "damaged gzip data is said", done.stderr)
    done = hearth("report", write("bomb.folded.gz", gzip.compress(gzip.compress(b"\0" * (1100 << 20), 9), 9)))
    tap.ok(done.returncode == 1 and "gzip" in done.stderr, "what expands beyond the bound is refused", done.stderr)
    with Collector() as c:
        done = hearth("import", "--service", "i", "--type", "cpu", "--push", c.url, path("t.col.gz"), path("t.folded.gz"))
        tap.ok(done.returncode == 0 and len(c.get("/api/0/profiles?service=i&from=-1h&to=now").json["body"]) == 2, "import reads them, too", done.stderr)
        answer = c.ask("POST", "/ingest?name=zip.cpu", gzip.compress(b"main;a 3\nbad line\n"))
        tap.ok(answer.status == 200 and answer.headers["X-Lines-Left-Out"] == "1", "so does /ingest", answer)


def merges():
    a = write("a.pb.gz", pprof([(["main", "a"], [1, 10])], time_ns=NOW))
    b = write("b.pb.gz", pprof([(["main", "b"], [2, 20])], time_ns=NOW + 60 * 10**9))
    done = hearth("merge", a, b, "-o", path("sum.pb.gz"))
    p = Profile(path("sum.pb.gz"))
    tap.ok(done.returncode == 0 and p.duration_ns == 0 and p.time_ns == NOW, "a merge of files without a duration has none", p.duration_ns)
    c = write("c.pb.gz", pprof([(["main", "c"], [1, 1])], time_ns=NOW + 90 * 10**9, duration_ns=5 * 10**9))
    hearth("merge", a, c, c, "-o", path("sum.pb.gz"))
    tap.ok(Profile(path("sum.pb.gz")).duration_ns == 10 * 10**9, "durations add up", Profile(path("sum.pb.gz")).duration_ns)
    hearth("merge", a, b, "-o", path("sum.hwin"))
    hearth("merge", path("sum.hwin"), c, "-o", path("sum.pb.gz"))
    tap.ok(Profile(path("sum.pb.gz")).duration_ns == 5 * 10**9, "also through a window", Profile(path("sum.pb.gz")).duration_ns)
    other = write("other.pb.gz", pprof([(["main", "d"], [7, 4, 70])], types=(("cpu", "nanoseconds"), ("allocs", "bytes"), ("samples", "count"))))
    done = hearth("merge", a, other, "-o", path("no.pb.gz"))
    tap.ok(done.returncode == 1 and "--compat" in done.stderr, "unlike files: an error that names --compat", done.stderr)
    done = hearth("merge", "--compat", a, other, b, "-o", path("compat.pb.gz"))
    p = Profile(path("compat.pb.gz")) if done.returncode == 0 else None
    tap.ok(p and p.types == [("samples", "count"), ("cpu", "nanoseconds")], "--compat keeps what they share", done.stderr or p.types)
    tap.ok(p and sorted(tuple(s.values) for s in p.samples) == [(1, 10), (2, 20), (70, 7)], "their values in one order", p and [s.values for s in p.samples])
    none = write("none.pb.gz", pprof([(["x"], [1])], types=(("objects", "count"),)))
    done = hearth("merge", "--compat", a, none, "-o", path("no.pb.gz"))
    tap.ok(done.returncode == 1 and "shares no value type" in done.stderr, "nothing shared is an error", done.stderr)
    long = write("long.pb.gz", pprof([(["main", f"function_with_a_long_name_{i:050}"], [1, 10]) for i in range(4000)]))
    done = hearth("merge", a, long, "-o", path("sum.pb.gz"))
    tap.ok(done.returncode == 0 and len(Profile(path("sum.pb.gz")).samples) == 4001, "a small file before a large one", done.stderr)
    with Collector("--retention", "0", "--retention-free", "0") as server:
        for file in (a, b, other):
            server.upload("s", "other", open(file, "rb").read())
        span = "from=1970-01-01T00:00:00&to=now"
        write("server.pb.gz", server.get(f"/api/0/profiles/merge?service=s&type=other&{span}&compat=1").body)
        q = Profile(path("server.pb.gz"))
        tap.ok(q.types == p.types and sorted(tuple(s.values) for s in q.samples) == sorted(tuple(s.values) for s in p.samples),
               "the collector's compat=1 makes the same", q.types)
        tap.ok(q.duration_ns == 0, "and no duration either", q.duration_ns)
        for file in (a, b):
            server.upload("plain", "cpu", open(file, "rb").read())
        write("server.pb.gz", server.get(f"/api/0/profiles/merge?service=plain&type=cpu&{span}").body)
        tap.ok(Profile(path("server.pb.gz")).duration_ns == 0, "nor has the collector's plain merge", Profile(path("server.pb.gz")).duration_ns)


folded()
packed()
merges()
tap.finish()
