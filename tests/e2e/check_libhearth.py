#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""libhearth as it is installed: found by pkg-config, linked both ways, and examples/hotapp.c sends its profile to hearth serve."""
import re
from collections import Counter

from collector import *
from support import *

FOLDER = os.environ.get("INSTALL_FROM", os.path.join(ROOT, "build"))
FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror"]
NAMED = """
#include <hearth.h>
#include <ctime>
namespace shop { struct Cart { template <typename T> __attribute__((noinline)) T sum(T n) { volatile T s = 0; for (T i = 1; i < n; i++) s = s + 1 / i; return s; } }; }
int main(int, char **argv)
{
	struct hearth_options o = HEARTH_OPTIONS_INIT;
	o.collector = argv[1];
	o.service = "named";
	o.jitter_ms = 1;
	o.cpu_ms = 500;
	o.round_ms = 100;
	if (hearth_start(&o) < 0)
		return 1;
	for (std::clock_t end = std::clock() + 2 * CLOCKS_PER_SEC; std::clock() < end;)
		shop::Cart().sum<double>(100000);
	hearth_stop();
}
"""
tap = Tap("libhearth")
need(tap, "meson", "pkg-config", "cc", root=False)
done = run("meson", "install", "-C", FOLDER, "--no-rebuild", "--quiet", "--destdir", path("root"))
tap.ok(done.returncode == 0, "meson install into a folder", done.stderr[-300:])
pc = run("find", path("root"), "-name", "libhearth.pc").stdout.strip()
prefix = path("root") + re.search(r"^prefix=(.*)$", open(pc).read(), re.M)[1]
libraries = os.path.dirname(os.path.dirname(pc))


def config(*args):
    done = run("pkg-config", f"--define-variable=prefix={prefix}", *args, "libhearth", env={**os.environ, "PKG_CONFIG_PATH": os.path.dirname(pc)})
    return done.stdout.split()


def build(source, output, *libs):
    done = run("cc", *FLAGS, source, *libs, "-pthread", "-lm", "-o", path(output))
    tap.ok(done.returncode == 0, f"{output} builds", done.stderr[-600:])
    return path(output)


tap.ok(config("--modversion") and any(f.startswith("-I") for f in config("--cflags")), "pkg-config knows it", config("--cflags", "--libs"))
hotapp = build(os.path.join(ROOT, "examples/hotapp.c"), "hotapp", *config("--cflags", "--libs"))
selfish = build(os.path.join(HERE, "workloads/selfish.c"), "selfish", *config("--cflags", "--libs"))
private = ["-liberty"] + run("pkg-config", "--libs", "libcurl", "jansson", "libdeflate", "libxxhash", "zlib", "liblzma", "libzstd").stdout.split()
static = build(os.path.join(HERE, "workloads/selfish.c"), "selfish-static", *config("--cflags"), os.path.join(libraries, "libhearth.a"), *private)
tap.ok("-liberty" in config("--static", "--libs"), "pkg-config names what a static program needs", config("--static", "--libs"))
named = path("named")
with open(path("named.cpp"), "w") as f:
    f.write(NAMED)
done = run("c++", "-std=c++17", *FLAGS, *config("--cflags"), path("named.cpp"), *config("--libs"), "-pthread", "-o", named)
tap.ok(done.returncode == 0, "a C++ program builds", done.stderr[-600:])
cpp = run("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc++", *config("--cflags"), "-", input="#include <hearth.h>\nint main() { struct hearth_options o = HEARTH_OPTIONS_INIT; return hearth_start(&o); }\n")
tap.ok(cpp.returncode == 0, "the header is C++ too", cpp.stderr[-300:])
for file, options in ((os.path.join(libraries, "libhearth.so"), ["-D"]), (os.path.join(libraries, "libhearth.a"), ["-g"])):
    names = [line.split()[-1] for line in run("nm", *options, "--defined-only", file).stdout.splitlines() if len(line.split()) == 3]
    tap.ok(names and all(n.startswith("hearth_") for n in names), f"{os.path.basename(file)}: only hearth_* can be seen", " ".join(names))
env = {**os.environ, "LD_LIBRARY_PATH": libraries, "HOTAPP_QUICK": "1"}


def merged(collector, service, kind="cpu"):
    answer = collector.get(f"/api/0/profiles/merge?service={service}&type={kind}&from=-1h&to=now")
    file = path("merged.pb.gz")
    with open(file, "wb") as f:
        f.write(answer.body)
    return Profile(file) if answer.status == 200 else None


with Collector() as collector:
    done = run(hotapp, 4, collector.url, env=env, timeout=60)
    tap.ok(done.returncode == 0 and not done.stderr, "hotapp runs", done.stdout + done.stderr)
    p = merged(collector, "hotapp")
    tap.ok(p is not None, "and its profile arrives")
    if p:
        whole = total(p.samples)
        chains = [s for s in p.samples if s.names[-3:-1] == ["worker", "work"] and s.names[-1] in ("collatz", "sum_of_roots")]
        tap.ok(total(chains) >= 0.9 * whole, "stacks: worker, work, collatz or sum_of_roots", f"{total(chains)} of {whole}")
        used = p.counter("process_cpu_ns") / 1e9
        tap.ok(whole and all(s.end == "guessed" or s.end.startswith("cut:") for s in p.samples), "no stack of guesses is called whole")
        tap.ok(any(len(b) == 40 for b in p.build_ids.values()), "mappings have build ids")
        one = collector.get("/api/0/profiles?service=hotapp&type=cpu&from=-1h&to=now").json["body"]
        labels = {l["key"]: l["value"] for l in one[0]["labels"]}
        tap.ok(labels == {"example": "yes"}, "labels", labels)
        first = path("first.pb.gz")
        with open(first, "wb") as f:
            f.write(collector.get(f"/api/0/profiles/{one[0]['id']}").body)
        q = Profile(first)
        used = q.counter("process_cpu_ns") / 1e9
        tap.ok(0.7 < total(q.samples) * 0.01 / used < 1.3, "samples are the CPU time of the process",
               f"{total(q.samples) * 0.01:.2f} s of {used:.2f} s")
    done = run(named, collector.url, env=env, timeout=60)
    p = merged(collector, "named")
    tap.ok(done.returncode == 0 and p, "the C++ program's profile arrives", done.stderr)
    names = Counter(s.names[-1] for s in p.samples) if p else {}
    tap.ok("double shop::Cart::sum<double>(double)" in names, "C++ names are readable", names)
    tap.ok(p and b"_ZN4shop4Cart3sumIdEET_S2_" in p.raw_strings, "and the linker's name is kept")
    file = path("heap.pb.gz")
    with open(file, "wb") as f:
        f.write(pprof([(["main", "allocate"], [3, 300])], types=(("inuse_objects", "count"), ("inuse_space", "bytes"))))
    for program in (selfish, static):
        name = os.path.basename(program)
        done = run(program, collector.url, file, env=env, timeout=120)
        tap.ok(done.returncode == 0, f"{name}: ends well", f"{done.returncode} {done.stderr[-300:]}")
        for line in done.stdout.splitlines():
            tap.ok(line.startswith("ok "), f"{name}: {line.split(' ', 1)[1] if line.startswith('ok ') else line[7:]}")
        tap.ok(len(done.stdout.splitlines()) == 14, f"{name}: everything was tried", len(done.stdout.splitlines()))
    p = merged(collector, "selfish")
    names = [n for s in p.samples for n in s.names]
    for name in ("burn_early", "burn_late", "burn_deep"):
        tap.ok(name in names, f"threads: {name} is in the profile")
    deep = [s for s in p.samples if "burn_deep" in s.names]
    tap.ok(deep and max(len(s.names) for s in deep) > 200 and any(s.end == "cut:frame-limit" for s in deep), "a deep stack is cut, and says so",
           max(len(s.names) for s in deep))
    p = merged(collector, "selfish", "heap")
    tap.ok(p and any("allocate" in s.names for s in p.samples), "hearth_send: the profile handed over arrives")
    p = merged(collector, "child")
    tap.ok(p and p.samples, "the child's profile arrives")
tap.finish()
