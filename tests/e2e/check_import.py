#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth import: files and folders of every format into hearth serve, with the options of profefe's script."""
import re

from collector import *
from support import *

tap = Tap("import")
need(tap, root=False)
os.makedirs(path("in/below"))
stacks = [(["main", "work"], [3, 30]), (["main", "rest"], [1, 10])]


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)


write("in/cpu.pb.gz", pprof(stacks, time_ns=1700000000 * 10**9))
write("in/heap.pprof", pprof(stacks, types=(("inuse_objects", "count"), ("inuse_space", "bytes")), packed=False))
write("in/below/stacks.folded", b"app;main;work 3\napp;main;rest 1\n")
write("in/below/go.trace", b"go 1.22 trace\0\0\0" + bytes(100))
write("in/README", b"no profile\n")
write("mutex.pb.gz", pprof(stacks, types=(("contentions", "count"), ("delay", "nanoseconds"))))
write("empty.pb.gz", pprof([]))
write("quiet.pb.gz", pprof([], types=(("contentions", "count"), ("delay", "nanoseconds"))))
write("cut.pb.gz", pprof(stacks)[:-9])
os.utime(path("in/below/stacks.folded"), (1600000000, 1600000000))
os.symlink(path("in"), path("in/loop"))


def listed(collector, kind, extra=""):
    answer = collector.get(f"/api/0/profiles?service=imp&type={kind}&from=2000-01-01T00:00:00&to=now{extra}")
    return answer.json["body"] if answer.status == 200 else []


with Collector() as collector:
    env = {**os.environ, "PROFEFE_COLLECTOR": collector.url}
    done = hearth("import", "--service", "imp", "--label", "dc=fra", "--label", "x=a,b=c", "--", path("in"), env=env)
    lines = [l for l in done.stdout.splitlines() if re.fullmatch(r".*: (cpu|heap|other|trace) [0-9a-v]{20}", l)]
    tap.ok(done.returncode == 0 and len(lines) == 4, "a folder: four profiles, with type and id", done.stdout + done.stderr)
    tap.ok("4 stored, 0 failed, 1 passed over" in done.stderr, "and one file that is none", done.stderr.strip())
    cpu = listed(collector, "cpu", "&labels=x%3Da%252Cb%253Dc")
    tap.ok(len(cpu) == 1 and cpu[0]["created_at"] == "2023-11-14T22:13:20Z", "labels arrive whole, the profile's own time counts", cpu)
    folded = listed(collector, "other")
    tap.ok(len(folded) == 1 and folded[0]["created_at"] == "2020-09-13T12:26:40Z", "a file without a time has that of its change", folded)
    body = collector.get(f"/api/0/profiles/{folded[0]['id']}").body
    write("back.pb.gz", body)
    tap.ok(sorted((tuple(s.names), s.count) for s in Profile(path("back.pb.gz")).samples) == [(("main", "rest"), 1), (("main", "work"), 3)],
           "what is no pprof is converted")
    tap.ok(len(listed(collector, "trace")) == 1 and collector.get(f"/api/0/profiles/{listed(collector, 'trace')[0]['id']}").body ==
           content(path("in"), "below/go.trace"), "a trace stays as it is")
    done = hearth("import", "--service", "imp", path("in/cpu.pb.gz"), "-q", env=env)
    tap.ok(done.returncode == 0 and not done.stdout and len(listed(collector, "cpu")) == 2, "again: it is another profile")

    done = hearth("import", "--service", "imp", path("mutex.pb.gz"), env=env)
    tap.ok(done.returncode == 1 and "--type" in done.stderr, "block or mutex: has to be said", done.stderr.strip())
    done = hearth("import", "--service", "imp", path("quiet.pb.gz"), path("in/cpu.pb.gz"), env=env)
    tap.ok(done.returncode == 0 and "1 stored, 0 failed, 1 passed over" in done.stderr, "a block profile without samples is no error", done.stderr.strip())
    done = hearth("import", "--service", "imp", "--type", "mutex", path("mutex.pb.gz"), env=env)
    tap.ok(done.returncode == 0 and len(listed(collector, "mutex")) == 1, "--type")
    done = hearth("import", "--service", "imp", path("cut.pb.gz"), path("empty.pb.gz"), path("nowhere"), path("in/README"),
                  path("in/cpu.pb.gz"), env=env)
    tap.ok(done.returncode == 1 and "1 stored, 4 failed" in done.stderr and all(n in done.stderr for n in ("cut.pb.gz", "empty.pb.gz", "nowhere", "README")),
           "bad files are said, the others stored", done.stderr.strip())
    done = hearth("import", "--service", "x" * 3000, path("in/cpu.pb.gz"), env=env)
    tap.ok(done.returncode == 1 and "400" in done.stderr, "a refusal is said with its reason", done.stderr.strip()[-200:])
    piped = subprocess.run(["sh", "-c", f"mkfifo {path('fifo')}; cat {path('in/cpu.pb.gz')} > {path('fifo')} & {HEARTH} import --service imp {path('fifo')}"],
                           capture_output=True, text=True, env=env, timeout=60)
    tap.ok(piped.returncode == 0, "a FIFO", piped.stderr)

for args, what in ((["x"], "no service"), (["--service", "s"], "no file"), (["--service", "s", "--type", "cpus", "x"], "no such type"),
                   (["--service", "s", "--label", "x", path("in/cpu.pb.gz")], "no such label")):
    done = hearth("import", *args)
    tap.ok(done.returncode == 2 and done.stderr, f"usage: {what}", done.stderr.strip())
begin = time.monotonic()
done = hearth("import", "--service", "s", "--push", "127.0.0.1:1", path("in"))
tap.ok(done.returncode == 1 and "does not answer" in done.stderr, "no collector", f"{time.monotonic() - begin:.1f} s")
tap.finish()
