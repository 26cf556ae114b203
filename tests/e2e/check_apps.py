#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Application ids of Node.js, Ruby and Java programs, and metadata of Node.js, Ruby, PHP, Go and Java programs, in .col files: gProfiler's strings, by real programs."""
import glob
import json

import phps
from support import *

tap = Tap("apps")
need(tap)
LIFE = 240  # more than every compiler takes on a machine with other work; all are ended when the check is
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


def php():
    programs_of = phps.of_machine()
    if not programs_of:
        return tap.skip("PHP", "needs php")
    program = programs_of[-1].program
    write("shop.php", f"<?php\n$t = microtime(true) + {LIFE}; $x = 1;\nwhile (microtime(true) < $t) {{ $x = ($x * 31 + 1) % 1000003; }}\n")
    begin(os.path.basename(program), start(program, "shop.php", cwd=folder), None)


# So many that their metadata is longer than 4 KiB.
OWN_FLAGS = {"UseSerialGC": "true", "DisableExplicitGC": "true", "AlwaysPreTouch": "true", "MaxTenuringThreshold": 7, "NewSize": 8 << 20, "SurvivorRatio": 6, "MetaspaceSize": 16 << 20,
             "MaxMetaspaceSize": 96 << 20, "MaxInlineLevel": 12, "MaxInlineSize": 30, "StringTableSize": 65537, "SoftRefLRUPolicyMSPerMB": 500, "AutoBoxCacheMax": 500,
             "MaxJavaStackTraceDepth": 256, "MaxDirectMemorySize": 32 << 20, "TypeProfileMajorReceiverPercent": 80, "TargetSurvivorRatio": 60, "InitialSurvivorRatio": 6,
             "PerMethodRecompilationCutoff": 300, "PerBytecodeRecompilationCutoff": 150, "Tier3InvocationThreshold": 300, "Tier3MinInvocationThreshold": 90,
             "Tier3CompileThreshold": 1900, "Tier3BackEdgeThreshold": 50000, "Tier3DelayOn": 4, "Tier3LoadFeedback": 4, "Tier4InvocationThreshold": 4000,
             "Tier4MinInvocationThreshold": 500, "Tier4CompileThreshold": 14000, "Tier4BackEdgeThreshold": 39000, "Tier4LoadFeedback": 4}


def java():
    write("com/acme/Main.java", "package com.acme; public class Main { public static void main(String[] a) { long x = 1; "
          f"long end = System.nanoTime() + {LIFE}000000000L; while (System.nanoTime() < end) x = x * 31 + 1 | 1; if (x == 0) System.out.println(x); }} }}\n")
    if not shutil.which("javac") or run("javac", "-d", f"{folder}/classes", f"{folder}/com/acme/Main.java").returncode:
        return tap.skip("Java", "needs a JDK")
    begin("java", start("java", "-Xmx64m", *(f"-XX:{'+' if v == 'true' else ''}{n}" + ("" if v == "true" else f"={v}") for n, v in OWN_FLAGS.items()), "-Dapp.name=shop", "-cp", f"{folder}/classes", "com.acme.Main", "-Dapp.none=1", cwd=folder), "java: com.acme.Main (-Dapp.name=shop)")


GO = """package main

import ("os"; "time"; "net")

func work() int { x := 1; for i := 0; i < 1<<22; i++ { x = x*31 + 1 }; return x }

func main() {
	if len(os.Args) > 5 { net.LookupHost("localhost") }
	for end := time.Now().Add(%d * time.Second); time.Now().Before(end); { work() }
}
"""
go_programs = {}


def build_id(file):
    return "buildid:" + re.search(r"Build ID: (\w+)", run("readelf", "-n", file).stdout)[1]


def interpreter_metadata(name, seen):
    """What an interpreter says of itself, of its file and of its library."""
    if name == "node":
        program, execfn = os.path.realpath(shutil.which("node")), shutil.which("node")
        loader = re.search(r"program interpreter: (\S+)\]", run("readelf", "-lW", program).stdout)
        want = {"node_version": run("node", "--version").stdout.strip(), "link": "dynamic" if loader else "static",
                "libc": ("musl" if "musl" in loader[1] else "glibc") if loader else None}
    elif name == "ruby":
        program, library = os.path.realpath(shutil.which("ruby")), mapped("libruby")
        want = {"ruby_version": run("ruby", "--version").stdout.strip(), "exe_elfid": build_id(program), "libruby_elfid": library and build_id(library)}
        execfn = shutil.which("ruby")
    else:
        program = execfn = phps.of_machine()[-1].program
        want = {"php_version": run(program, "-r", "echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION, '.', PHP_RELEASE_VERSION;").stdout, "exe_elfid": build_id(program),
                "libphp_elfid": None}
    want |= {"exe": program, "execfn": execfn, "arch": os.uname().machine}
    own = [metadata[i] for i, _ in seen]
    tap.ok(own and all(m and list(m.items()) == list(want.items()) for m in own), f"{name}: metadata", [own, want])


def mapped(library):
    return next((f for f in sorted(glob.glob(f"/usr/lib/*/{library}*.so.*")) if not os.path.islink(f)), None)


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


node(), ruby(), php(), java(), go()
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
    elif name in ("node", "ruby") or name.startswith("php"):
        interpreter_metadata(name, seen)
    elif name == "java":
        flags = [{f["name"]: (f["value"], f["origin"]) for f in metadata[i].get("jvm_flags", [])} for i, _ in seen if isinstance(metadata[i].get("jvm_flags"), list)]
        lacking = [n for n, v in OWN_FLAGS.items() if not flags or flags[0].get(n) != (str(v), "command line")]
        longest = max(len(json.dumps(metadata[i])) for i, _ in seen)
        tap.ok(len(flags) == len(seen) == 1 and not lacking and longest > 4096, f"java: metadata of {longest} bytes has each of {len(OWN_FLAGS)} flags that it was started with, and {len(flags[0]) - len(OWN_FLAGS) if flags else 0} more",
               [lacking, [str(metadata[i])[:300] for i, _ in seen]])
    elif name == "spin":
        tap.ok({i for i, _ in seen} == {0}, "a native program has no metadata, as with gProfiler", sorted(map(str, seen)))


# --- flags of a JVM, as --java-collect-jvm-flags says ---

def flags_of_java(pid, which):
    """jvm_flags of its .col file, and what the log warns of."""
    log = path("flags.log")
    done = hearth("agent", "-d", 6, "-o", path("flags"), "--no-flamegraph", "--pids", pid, "--java-collect-jvm-flags", which, "--log-file", log, "--pid-file", path("agent.pid"))
    header = json.loads(open(path("flags/last_profile.col")).readline()[2:]) if done.returncode == 0 else {}
    found = [m["jvm_flags"] for m in header.get("application_metadata", []) if m and "jvm_flags" in m]
    warnings = [line for line in open(log) if "--java-collect-jvm-flags" in line and "WARNING" in line]
    os.unlink(log)
    return found[0] if len(found) == 1 else [done.stderr[-200:], found], warnings


def jvm_flags():
    pid = next((pid for pid, (name, _) in programs.items() if name == "java"), None)
    jcmd = shutil.which("jcmd")
    if not pid or not jcmd:
        return tap.skip("flags of Java", "needs a JDK")
    text = run(jcmd, str(pid), "VM.flags", "-all").stdout
    listed = {m[2] for m in re.finditer(r"^\s*(\w+)\s+(\w+)\s+:?=.*?\{([^}]*)\}", text, re.M) if not m[1].startswith("ccstr") and not {"manageable", "diagnostic", "experimental"} & set(m[3].split())}
    got, warnings = flags_of_java(pid, "all")
    names = {f["name"] for f in got if isinstance(f, dict)}
    tap.ok(len(listed) > 300 and names == listed and not warnings, f"java: with all, the metadata has the {len(listed)} flags that jcmd has, {len(json.dumps(got)) // 1024} KiB",
           [len(names), sorted(listed ^ names)[:9], str(got)[:200] if not names else "", warnings])
    got, warnings = flags_of_java(pid, "UseSerialGC,NoSuchFlag,MaxHeapSize,HeapDumpPath")
    tap.ok([(f["name"], f["value"]) for f in got if isinstance(f, dict)] == [("MaxHeapSize", str(64 << 20)), ("UseSerialGC", "true")], "java: flags that are listed by name", str(got)[:300])
    tap.ok(len(warnings) == 1 and "NoSuchFlag, HeapDumpPath" in warnings[0] and "UseSerialGC" not in warnings[0], "those of the list that it does not tell are a warning of the log", warnings)
    got, warnings = flags_of_java(pid, "none")
    tap.ok(got == [] and not warnings, "java: none", [str(got)[:200], warnings])


jvm_flags()


# --- gProfiler's own words for the same processes ---

THEIRS = """
import json, sys
from psutil import Process
from gprofiler.metadata import application_identifiers as ids
from granulate_utils.golang import get_process_golang_version, is_golang_process
from granulate_utils.linux.elf import elf_arch_to_uname_arch, elf_is_stripped, get_elf_arch, is_statically_linked
out = {}
for pid in map(int, sys.argv[1:]):
    p, name = Process(pid), Process(pid).name()
    exe = f"/proc/{pid}/exe"
    kind = {"node": ids._NodeModuleApplicationIdentifier, "ruby": ids._RubyModuleApplicationIdentifier}.get(name)
    go = {"golang_version": get_process_golang_version(p), "stripped": elf_is_stripped(exe), "link": "static" if is_statically_linked(exe) else "dynamic",
          "arch": elf_arch_to_uname_arch(get_elf_arch(exe))} if is_golang_process(p) else None
    out[name] = (kind().get_app_id(p) if kind else None, go)
print(json.dumps(out))
"""


def compare():
    trees = os.environ.get("GPROFILER")
    if not trees:
        return tap.skip("gProfiler's own functions", "GPROFILER names no tree of it (with granulate-utils, separated by a colon)")
    done = run(os.environ.get("HEARTH_GPROFILER_PYTHON", sys.executable), "-c", THEIRS, *programs, env={**os.environ, "PYTHONPATH": trees})
    if not tap.ok(done.returncode == 0, "gProfiler's own functions", done.stderr[-300:]):
        return
    for name, (appid, go) in json.loads(done.stdout).items():
        ours = [(a, metadata[i]) for i, a in found.get(name, ())]
        if name in ("node", "ruby"):
            tap.ok([a for a, _ in ours] == [appid], f"{name}: gProfiler's application id", appid)
        if name in go_programs or go:
            tap.ok(go and all(m and all(m[k] == v for k, v in go.items()) for _, m in ours), f"{name}: gProfiler's metadata", go)


compare()
done = hearth("agent", "-d", 1, "-o", out, "--app-id-args-filter", "(", "--log-file", path("agent.log"), "--pid-file", path("agent.pid"))
tap.ok(done.returncode == 2 and "--app-id-args-filter" in done.stderr, "a filter that is no expression: a usage error", f"{done.returncode} {done.stderr[-200:]}")
tap.finish()
