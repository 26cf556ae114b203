#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java switched off, and JVMs that are started or end in odd ways: without perf counters, in namespaces of their own, killed while they are recorded,
with classes from an archive.

The newest JVM, and 8 in the long form; archives of 17 and, in the long form, 25. Arguments: only these versions."""
from java_loads import *
from java_oracle import *

HZ = 499
CPU_SECONDS = 0.8 if QUICK else 6  # of the JVM: a busy machine only makes it last longer
WHOLE = 0.97 if QUICK else 0.985
LEAST = HZ * CPU_SECONDS / 8  # stacks with Java: the recorder begins after a while, and compilers have a part
tap = Tap("java_options")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def jvm(home, *options, command=()):
    return start(*command, f"{home}/bin/java", *options, "-cp", folder, *SORT)


def recorded(pid, *options, end=None):
    """The recorder's exit status, what it said, and the samples of a process; @end: called instead of SIGINT. Status None: it did not end."""
    file, used = path("options.pb.gz"), cpu_seconds(pid)
    recorder = start(HEARTH, "record", "-F", HZ, "-p", pid, *options, "-o", file, stderr=subprocess.PIPE, text=True)
    stop = time.monotonic() + 60
    while cpu_seconds(pid) < used + CPU_SECONDS and time.monotonic() < stop:
        time.sleep(0.1)
    if end:
        end()
    else:
        recorder.send_signal(signal.SIGINT)
    try:
        said = recorder.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        recorder.kill()
        return None, recorder.communicate()[1], []
    return recorder.returncode, said, Profile(file, system_names=True).of(pid) if recorder.returncode == 0 else []


def java_frames(samples):
    return sum(s.count for s in samples if MODULE in s.modules)


def judge(what, home, pid, end=None, named=0.99):
    status, said, samples = recorded(pid, end=end)
    if tap.ok(status == 0, f"{what}: hearth record ends well", f"exit {status} {said[-300:].strip()}" if status != 0 else ""):
        judge_tally(tap, what, judge_samples(samples, home, folder)[0], LEAST, WHOLE, named=named)


def check_off(version, process):
    """The control is judge(), of the same process."""
    for options in ["--no-java"], ["--java-mode", "disabled"]:
        status, said, samples = recorded(process.pid, *options)
        what = f"{version} {' '.join(options)}"
        tap.ok(status == 0 and total(samples) >= LEAST and not java_frames(samples), f"{what}: no frames of Java", f"{java_frames(samples)} of {total(samples)}")
        tap.ok(not re.search(r"warning|error|refused|cannot|\[java\]", said, re.I), f"{what}: nothing is said to be wrong", said[-600:])
    shown = hearth("dump", "-p", process.pid, "--json", "--no-java")
    kinds = {f["kind"] for t in json.loads(shown.stdout)["threads"] for f in t["frames"]} if shown.returncode == 0 else {"failed"}
    tap.ok("native" in kinds and "java" not in kinds, f"{version} --no-java: nor in hearth dump -p", kinds)


def check_killed(version, home):
    """SIGKILL leaves the JVM no moment, and hearth nothing to read: it ends by itself, with what was gathered. What ran first just then has no name."""
    process = jvm(home)
    time.sleep(WARM)
    judge(f"{version} killed", home, process.pid, end=lambda: (process.kill(), process.wait()), named=0.95)


def check_namespaces(version, home):
    """Its files have another path than on the host, where there is none of that name, and it numbers itself 1."""
    inside = path("inside")
    os.makedirs(inside, exist_ok=True)
    bind = 'mount -t tmpfs tmpfs "$0" && mkdir "$0/jvm" && mount --bind "$1" "$0/jvm" && shift && exec "$0/jvm/bin/java" "$@"'
    outer = start("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", bind, inside, home, "-cp", folder, *SORT)
    time.sleep(WARM)
    with open(f"/proc/{outer.pid}/task/{outer.pid}/children") as f:
        inner = next(iter(f.read().split()), "")
    if not tap.ok(inner and os.path.exists(f"/proc/{inner}/root{inside}/jvm/bin/java") and not os.path.exists(f"{inside}/jvm"), f"{version} in namespaces: it runs", inner):
        return
    judge(f"{version} in namespaces of its own", home, int(inner))
    outer.kill()
    outer.wait()


def check_archive(version, home):
    """Classes mapped from a file that an earlier run has written; of 25 with what was linked and profiled then, an AOT cache."""
    archive, jar, jars = path(f"archive-{version}"), path("load.jar"), sorted(glob.glob("/usr/lib/jvm/*/bin/jar"))
    make, use = ("AOTCacheOutput", "AOTCache") if version >= 25 else ("ArchiveClassesAtExit", "SharedArchiveFile")
    done = run(jars[0], "cf", jar, "-C", folder, ".") if jars else None
    made = run(f"{home}/bin/java", f"-XX:{make}={archive}", "-cp", jar, SORT[0], 1000, timeout=100) if done and done.returncode == 0 else None
    if not made:
        return tap.skip(f"{version} -XX:{use}", "needs jar")
    if not tap.ok(os.path.exists(archive), f"{version} -XX:{make}: it is written", made.stderr[-300:].strip()):
        return None
    process = start(f"{home}/bin/java", f"-XX:{use}={archive}", "-Xlog:class+load:file=" + path("classes.log"), "-cp", jar, *SORT)
    time.sleep(WARM)
    judge(f"{version} -XX:{use}", home, process.pid)
    process.kill()
    process.wait()
    with open(path("classes.log")) as f:
        tap.ok(re.search(r"Load source: shared objects file \(top\)" if version < 25 else r"Load source: shared objects file", f.read()), f"{version} -XX:{use}: Load is from there")
    return None


folder, found = compiled(), jvms.homes()
if not folder or not found:
    tap.skip("everything", "no JDK")
    tap.finish()
for version in [v for v in found if str(v) in only] or [v for v in found if v == max(found) or v == 8 and not QUICK]:
    home = found[version]
    process = jvm(home)
    time.sleep(WARM)
    judge(f"{version} by itself", home, process.pid)
    check_off(version, process)
    process.kill()
    process.wait()
    process = jvm(home, "-XX:-UsePerfData")
    time.sleep(WARM)
    judge(f"{version} -XX:-UsePerfData", home, process.pid)
    process.kill()
    process.wait()
    check_killed(version, home)
    check_namespaces(version, home)
for version in [v for v in (17, 25) if v in found and (not only or str(v) in only)][:1 if QUICK else 2]:
    check_archive(version, found[version])
tap.finish()
