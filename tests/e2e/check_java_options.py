#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java switched off, and JVMs that are started or end in odd ways: without perf counters, in namespaces of their own, killed while they are recorded,
with classes from an archive; collectors and layouts of objects that no other check has; stacks that are copied; what the agent writes on demand.

The newest JVM, and 8 in the long form; archives of 17 and, in the long form, 25. Arguments: only these versions."""
import glob

from java_loads import *
from java_oracle import *

HZ = 499
CPU_SECONDS = 0.8 if QUICK else 6  # of the JVM: a busy machine only makes it last longer
COPIED = 0.995  # of copied stacks reach a root
STACK = "65528"  # bytes of it that the sampler perf copies: compilers use more than 8 KiB
# What no load of check_java.py has: one JVM each.
OTHERS = [
    (8, ["-XX:+UseSerialGC"]),
    (11, ["-XX:-UseCompressedOops"]),
    (17, ["-XX:+UseShenandoahGC"]),
    (21, ["-XX:+UseZGC", "-XX:+ZGenerational"]),
    (25, ["-XX:+UseCompactObjectHeaders"]),
    (26, ["-XX:+UseCompactObjectHeaders"]),
]
LEAST = HZ * CPU_SECONDS / 8  # stacks with Java: the recorder begins after a while, and compilers have a part
tap = Tap("java_options")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def jvm(home, *options, command=(), program=SORT):
    return start(*command, f"{home}/bin/java", *options, "-cp", folder, *program)


def recorded(pid, *options, end=None):
    """The recorder's exit status, what it said, and the profiles of its windows; @end: called instead of SIGINT. Status None: it did not end."""
    file, used = path("options.pb.gz"), cpu_seconds(pid)
    recorder = start(HEARTH, "record", "-F", HZ, "--window", WINDOW, "-p", pid, *options, "-o", file, stderr=subprocess.PIPE, text=True)
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
    return recorder.returncode, said, windows_of(file)


def java_frames(samples):
    return sum(s.count for s in samples if MODULE in s.modules)


def judge(what, home, pid, *options, end=None, whole=EACH, named=NAMED):
    status, said, profiles = recorded(pid, *options, end=end)
    if tap.ok(status == 0, f"{what}: hearth record ends well", f"exit {status} {said[-300:].strip()}" if status != 0 else ""):
        judge_tally(tap, what, judged(profiles, pid, home, folder)[0], LEAST, HZ / 2, whole, named)


def check_off(version, process):
    """The control is judge(), of the same process."""
    for options in ["--no-java"], ["--java-mode", "disabled"]:
        status, said, profiles = recorded(process.pid, *options)
        samples = [s for p in profiles for s in p.of(process)]
        what = f"{version} {' '.join(options)}"
        tap.ok(status == 0 and total(samples) >= LEAST and not java_frames(samples), f"{what}: no frames of Java", f"{java_frames(samples)} of {total(samples)}")
        tap.ok(not re.search(r"warning|error|refused|cannot|\[java\]", said, re.I), f"{what}: nothing is said to be wrong", said[-600:])
    shown = hearth("dump", "-p", process.pid, "--json", "--no-java")
    kinds = {f["kind"] for t in json.loads(shown.stdout)["threads"] for f in t["frames"]} if shown.returncode == 0 else {"failed"}
    tap.ok("native" in kinds and "java" not in kinds, f"{version} --no-java: nor in hearth dump -p", kinds)


def check_frame_pointers(version, process):
    """No rule of the JVM's is a frame pointer's, so there are no names; it is said."""
    done = hearth("record", "-F", HZ, "-p", process.pid, "--unwind", "fp", "-d", 3, "-o", path("fp.pb.gz"), timeout=60)
    samples = Profile(path("fp.pb.gz"), system_names=True).of(process) if done.returncode == 0 else []
    tap.ok(total(samples) > HZ and not java_frames(samples), f"{version} --unwind fp: no frames of Java", f"{java_frames(samples)} of {total(samples)}")
    tap.ok("java is not walked by frame pointers" in done.stdout, f"{version} --unwind fp: that is said", done.stdout[-300:].strip())


def check_killed(version, home):
    """SIGKILL leaves the JVM no moment, and hearth nothing to read: it ends by itself, with what was gathered. What ran first just then has no name."""
    process = jvm(home)
    time.sleep(WARM)
    judge(f"{version} killed", home, process.pid, end=lambda: (process.kill(), process.wait()))


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


def check_others(version, home, options):
    process = jvm(home, *options, program=MIXED)
    time.sleep(WARM)
    if tap.ok(process.poll() is None, f"{version} {' '.join(options)}: it runs"):
        judge(f"{version} {' '.join(options)}", home, process.pid)
    process.kill()
    process.wait()


def check_copied(version, home):
    """All stacks come as copies, and are walked on the host. Where classes were unloaded their interpreted methods have no names (docs/java.md)."""
    process = jvm(home, program=MIXED)
    time.sleep(WARM)
    for options in ["--sampler", "perf", "--perf-dwarf-stack-size", STACK], ["--unwind", "copy"]:
        judge(f"{version} {' '.join(options)}", home, process.pid, *options, whole=COPIED, named=None)
    process.kill()
    process.wait()


# Bits of a method's flags, in the order in which they are written. Source: JVM specification 17, 4.6.
MODIFIERS = {0x1: "public", 0x2: "private", 0x4: "protected", 0x400: "abstract", 0x8: "static", 0x10: "final", 0x20: "synchronized", 0x100: "native"}


def written(pid, *options):
    """{a frame of Java as the agent's .col has it, without its suffix: samples}; None: it failed."""
    out, frames = path("written"), {}
    shutil.rmtree(out, ignore_errors=True)
    done = hearth("agent", "--pids", pid, "-d", 4, "-f", HZ, "--no-flamegraph", "--log-file", path("agent.log"), "--pid-file", path("agent.pid"), *options, "-o", out, timeout=120)
    files = glob.glob(f"{out}/profile_*.col")
    if done.returncode or len(files) != 1:
        return None
    with open(files[0], encoding="utf-8") as f:
        for line in list(f)[1:]:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            for frame in stack.split(";"):
                if re.search(r"_\[[j01i]\]$", frame):
                    frames[frame[:-4]] = frames.get(frame[:-4], 0) + int(count)
    return frames


def check_written(version, home):
    """Modifiers and first lines that .col has on demand are those of the class files; otherwise there are none."""
    process = jvm(home, program=MIXED)
    time.sleep(WARM)
    for modifiers, lines in (False, False), (True, False), (False, True), (True, True):
        options = ["--java-include-method-modifiers"] * modifiers + (["--java-line-numbers", "line-of-function"] if lines else [])
        frames = written(process.pid, *options)
        what = f"{version} .col {' '.join(options) or 'without options'}"
        if not tap.ok(frames, f"{what}: hearth agent ends well"):
            continue
        texts = {frame: re.fullmatch(r"((?:[a-z]+ )*)([^ (:]+)(?::(\d+))?(\(.*)", frame) for frame in frames}
        classes = class_files(home, folder, {m[2].rpartition(".")[0] for m in texts.values() if m})
        right, wrong = 0, []
        for frame, m in texts.items():
            owner, _, name = m[2].rpartition(".") if m else ("", "", "")
            method = classes[owner].methods.get((name, m[4].replace("|", ";"))) if owner in classes else None
            if not method:
                continue
            want = "".join(f"{word} " for bit, word in MODIFIERS.items() if modifiers and method.flags & bit)
            line = str(method.first_line()) if lines and method.first_line() else None
            right += (m[1], m[3]) == (want, line)
            wrong += [] if (m[1], m[3]) == (want, line) else [(frame, want, line)]
        tap.ok(right >= 20 and not wrong, f"{what}: as the class files say", f"{right} of {right + len(wrong)} methods {wrong[:3] or ''}")
    process.kill()
    process.wait()


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
    check_frame_pointers(version, process)
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
for version, options in some_of([row for row in OTHERS if row[0] in found and (not only or str(row[0]) in only)]):
    check_others(version, found[version], options)
ends = [v for v in (min(found), max(found)) if not only or str(v) in only]
for version in [ends[rotation() % len(ends)]] if SAMPLED and ends else ends[-1:] if QUICK else ends:
    check_copied(version, found[version])
    check_written(version, found[version])
tap.finish()
