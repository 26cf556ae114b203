#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Application ids of Node.js, Ruby and Java programs, and metadata of Go programs, in .col files: gProfiler's strings, by real programs."""
import json

from support import *

tap = Tap("apps")
need(tap)
LIFE = 120
folder = os.path.realpath(path("srv"))
os.makedirs(f"{folder}/com/acme")
programs = {}  # comm -> (process, application id or None, metadata or None)


def write(name, text):
    with open(f"{folder}/{name}", "w") as f:
        f.write(text)


def begin(name, process, appid):
    programs[process.pid] = (name, appid)


def node():
    if not shutil.which("node"):
        return tap.skip("Node.js", "needs node")
    write("server.js", f"const end = Date.now() + {LIFE}000; let x = 1; while (Date.now() < end) x = (x * 31 + 1) | 1;\n")
    write("hook.js", "1;\n")
    begin("node", start("node", "-r", "./hook.js", "server.js", cwd=folder), f"nodejs: server.js ({folder}/server.js)")


def ruby():
    if not shutil.which("ruby"):
        return tap.skip("Ruby", "needs ruby")
    write("job.rb", f"t = Time.now + {LIFE}\nx = 1\nwhile Time.now < t\n  x = (x * 31 + 1) % 1000003\nend\n")
    begin("ruby", start("ruby", "-rset", "job.rb", cwd=folder), f"ruby: job.rb ({folder}/job.rb)")


def java():
    write("com/acme/Main.java", "package com.acme; public class Main { public static void main(String[] a) { long x = 1; "
          f"long end = System.nanoTime() + {LIFE}000000000L; while (System.nanoTime() < end) x = x * 31 + 1 | 1; if (x == 0) System.out.println(x); }} }}\n")
    if not shutil.which("javac") or run("javac", "-d", f"{folder}/classes", f"{folder}/com/acme/Main.java").returncode:
        return tap.skip("Java", "needs a JDK")
    begin("java", start("java", "-Xmx64m", "-Dapp.name=shop", "-cp", f"{folder}/classes", "com.acme.Main", "-Dapp.none=1", cwd=folder), "java: com.acme.Main (-Dapp.name=shop)")


GO = """package main

import ("os"; "time"; "net")

func work() int { x := 1; for i := 0; i < 1<<22; i++ { x = x*31 + 1 }; return x }

func main() {
	if len(os.Args) > 5 { net.LookupHost("localhost") }
	for end := time.Now().Add(%d * time.Second); time.Now().Before(end); { work() }
}
"""
go_programs = {}


def go():
    if not shutil.which("go"):
        return tap.skip("Go", "needs go")
    write("fib.go", GO % LIFE)
    version = run("go", "env", "GOVERSION", cwd=folder).stdout.strip()
    for name, cgo, flags, stripped in (("gostatic", "0", "", False), ("gostrip", "0", "-s -w", True), ("godyn", "1", "", False)):
        built = run("go", "build", "-ldflags", flags, "-o", f"{folder}/{name}", "fib.go", cwd=folder, env={**os.environ, "CGO_ENABLED": cgo, "GOFLAGS": "", "GO111MODULE": "off"})
        if built.returncode:
            tap.skip(f"Go: {name}", "it does not build here: " + built.stderr[-100:])
            continue
        dynamic = name == "godyn"
        process = start(f"./{name}", cwd=folder)
        go_programs[name] = {"golang_version": None if stripped else version, "stripped": stripped, "link": "dynamic" if dynamic else "static",
                             "libc": "glibc" if dynamic else None, "exe": f"{folder}/{name}", "execfn": f"./{name}", "arch": os.uname().machine}
        begin(name, process, None)


node(), ruby(), java(), go()
native = start(workload("spin"), LIFE, cwd=folder)
begin("spin", native, None)
out = path("out")
done = hearth("agent", "-d", 6, "-o", out, "--no-flamegraph", "--pids", ",".join(str(p) for p in programs), "--app-id-args-filter", r"^-Dapp\.", "--app-id-args-filter",
              "nothing", "--log-file", path("agent.log"), "--pid-file", path("agent.pid"))
if not tap.ok(done.returncode == 0, "hearth agent ends well", (done.stdout + done.stderr)[-300:] if done.returncode else ""):
    tap.finish()
head, *lines = open(f"{out}/last_profile.col").read().split("\n")
metadata = json.loads(head[2:])["application_metadata"]
found = {}
for line in lines:
    index, _, comm, *frames = line.rpartition(" ")[0].split(";")
    found.setdefault(comm, set()).add((int(index), frames[0][7:] if frames[0].startswith("appid: ") else None))
for name, appid in programs.values():
    seen = found.get(name, set())
    tap.ok({a for _, a in seen} == {appid}, f"{name}: application id", sorted(map(str, seen)))
    if name in go_programs:
        own = [metadata[i] for i, _ in seen]
        tap.ok(own and all(m == go_programs[name] for m in own), f"{name}: metadata", own)
    elif name == "spin":
        tap.ok({i for i, _ in seen} == {0}, "a native program has no metadata, as with gProfiler", sorted(map(str, seen)))
done = hearth("agent", "-d", 1, "-o", out, "--app-id-args-filter", "(", "--log-file", path("agent.log"), "--pid-file", path("agent.pid"))
tap.ok(done.returncode == 2 and "--app-id-args-filter" in done.stderr, "a filter that is no expression: a usage error", f"{done.returncode} {done.stderr[-200:]}")
tap.finish()
