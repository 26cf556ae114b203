#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gProfiler's own program judges hearth agent: its readers and its merge take our files, its parser our command lines."""
import contextlib
import json

import cri
import gprofiler_readers as gprofiler
from engines import host_with, sweep_groups
from support import *

tap = Tap("gprofiler")
if not gprofiler.are_there():
    tap.skip("everything", gprofiler.MISSING)
    tap.finish()
need(tap)
BOX = "hearth-e2e-gprofiler"
BUSY_PYTHON = "def busy_function():\n    while True:\n        sum(range(1000))\nbusy_function()\n"
BUSY_JAVA = """public class Busy {
    static long turn(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i * i ^ n; return sum; }
    public static void main(String[] a) { long end = System.nanoTime() + 120_000_000_000L, sum = 0; while (System.nanoTime() < end) sum += turn(1000); System.exit((int) sum & 1); }
}
"""


def agent(name, *options):
    return run(HEARTH, "agent", "-o", path(name), "--log-file", path(name + ".log"), "--pid-file", path(name + ".pid"), *options)


@contextlib.contextmanager
def container():
    """A busy one, of an engine of our own. Gives its socket; None where there is no engine."""
    if not shutil.which("dockerd") or not shutil.which("docker"):
        yield None
        return
    socket = path("docker.sock")
    daemon = start("dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--data-root", path("data"), "--exec-root", path("exec"),
                   "-H", "unix://" + socket, "--pidfile", path("docker.pid"))

    def docker(*args):
        return run("docker", "-H", "unix://" + socket, *args)

    until = time.monotonic() + 60
    while docker("info").returncode and time.monotonic() < until and daemon.poll() is None:
        time.sleep(0.3)
    os.mkdir(path("image"))
    run("cc", "-D_GNU_SOURCE", "-O1", "-g", "-static", "-o", path("image/spin"), os.path.join(HERE, "workloads", "spin.c"), "-pthread")
    packed = run("tar", "-C", path("image"), "-cf", path("image.tar"), ".")
    docker("import", path("image.tar"), "hearth-e2e:2")
    box = docker("run", "-d", "--network", "none", "--name", BOX, "hearth-e2e:2", "/spin", "120", "1")
    tap.ok(packed.returncode == 0 and box.returncode == 0, "a container runs", box.stderr[-200:])
    try:
        yield socket
    finally:
        docker("rm", "-f", BOX)
        daemon.terminate()
        stopped(daemon)
        sweep_groups("docker")


@contextlib.contextmanager
def pod():
    """A busy container of a pod of Kubernetes. Gives whether there is one."""
    missing = [tool for tool in cri.TOOLS if not shutil.which(tool)]
    if missing:
        tap.skip("a pod", "needs " + " ".join(missing))
        yield False
        return
    with cri.pod(tap) as sandbox:
        yield sandbox and tap.ok(cri.run_container(tap, sandbox, cri.container("api", cri.LABELS, {"io.kubernetes.container.restartCount": "3"})), "a container of it runs")


def start_java():
    if not shutil.which("javac") or not shutil.which("java"):
        tap.skip("a Java program", "needs javac and java")
        return False
    with open(path("Busy.java"), "w") as f:
        f.write(BUSY_JAVA)
    built = run("javac", "-d", scratch, path("Busy.java"))
    tap.ok(built.returncode == 0, "a Java program", built.stderr[-200:])
    start("java", "-cp", scratch, "Busy")
    return True


def sums(file):
    """Independent of their reader and of our codecs."""
    with open(file, encoding="utf-8") as f:
        lines = f.read().split("\n")[1:]
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def of_a_machine():
    start(workload("spin"), "120")
    start("/usr/bin/python3", "-c", BUSY_PYTHON)
    has_java = start_java()
    with container() as socket, pod() as has_pod:
        if not socket:
            tap.skip("a container", "needs dockerd and docker")
        time.sleep(2)
        # The engines answer at their usual places.
        host = host_with(("proc", "sys", "etc", "usr", "lib", "lib64"), {"var/run/docker.sock": socket, "run/containerd/containerd.sock": has_pod and cri.socket})
        done = agent("machine", "-c", "-d", "4", "-f", "49", "--no-flamegraph", "--controller-pid", str(start("sleep", "14").pid), "--host-root", host)
    cols = [os.path.join(path("machine"), f) for f in sorted(os.listdir(path("machine"))) if f.startswith("profile_") and f.endswith(".col")]
    if not tap.ok(done.returncode == 0 and len(cols) >= 2, "a machine is profiled", done.stderr[-300:] + done.stdout[-300:]):
        return
    facts = gprofiler.read(tap, *cols)
    if not facts:
        return
    for file, found in zip(cols, facts["files"]):
        hearth("convert", file, "-q", "-o", path("one.pb.gz"))
        name, ours = os.path.basename(file), (sums(file), total(Profile(path("one.pb.gz")).samples))
        tap.ok(found["total"] > 0 and (found["total"],) * 2 == ours, f"{name}: the same total", f"{found['total']} in {found['stacks']} stacks, ours {ours}")
        tap.ok(found["upload"] == found["whole"] == found["merged"] == found["total"], f"{name}: read for upload, and through their merge", found["merged"])
        tap.ok(found["scaled_pids"] > 0 and found["scaled"] == found["total"] and found["named"] > 0,
               f"{name}: merged with stacks of a runtime by their rule", f"{found['scaled']}, {found['named']} with names")
    stacks = facts["stacks"]
    for name in [BOX] * bool(socket) + [cri.NAME] * bool(has_pod):
        tap.ok(any(name in found["containers"] for found in facts["files"]), f"{name} is in them", facts["files"][0]["containers"])
    for comm, frame in [("spin", "spin_work"), ("python3", "busy_function")] + [("java", "")] * has_java:
        tap.ok(any(stack.split(";")[2] == comm and frame in stack for stack in stacks), f"{comm} is in them, {frame or 'its stacks'}")
    merged = hearth("merge", *cols, "-q", "-o", path("merged.col"))
    theirs = gprofiler.read(tap, path("merged.col")) if tap.ok(merged.returncode == 0, "hearth merge", merged.stderr) else None

    def without_index(found):  # of each file's own list of metadata
        out = {}
        for stack, count in found.items():
            out[stack.split(";", 1)[1]] = out.get(stack.split(";", 1)[1], 0) + count
        return out

    tap.ok(theirs and without_index(theirs["stacks"]) == without_index(stacks), "hearth merge gives what their readers add up", theirs and theirs["total"])


def hostile_names():
    """Nothing in a name makes a line that they read otherwise."""
    names = ["plain", "a b 7", "x;y", "\u2028sep 5", "nel\x85 3", "par\u2029 9", "vt\x0b 2", "fs\x1c 1", "# hash", "é\u00a0ü", "\u202e"]
    samples = "".join(f"comm;{name};leaf {i + 1}\n" for i, name in enumerate(names))
    with open(path("odd.folded"), "w", encoding="utf-8", newline="\n") as f:
        f.write(samples)
    done = hearth("convert", path("odd.folded"), "-q", "-o", path("odd.col"))
    with open(path("odd.col")) as f:
        head, _, lines = f.read().partition("\n")
    with open(path("odd.col"), "w") as f:  # their merge wants what only an agent knows
        f.write("# " + json.dumps({**json.loads(head[2:]), "metadata": {"profiling_mode": "cpu"}, "metrics": {"cpu_avg": None, "mem_avg": None}}) + "\n" + lines)
    facts = gprofiler.read(tap, path("odd.col")) if tap.ok(done.returncode == 0, "hostile names", done.stderr) else None
    tap.ok(facts and facts["total"] == facts["files"][0]["upload"] == sum(range(1, len(names) + 1)) and len(facts["stacks"]) == len(names),
           "hostile names: every line is read as it was meant", facts and (facts["total"], len(facts["stacks"])))


ABSENT = 4194000  # ends both programs early, but not for their parsers
COMMANDS = [
    "", "-u", "-u --token t", "-u --token t --service-name s", "-f 0 -o x", "-f 11 -o x", "-f x -o x", "-d 0 -o x", "-d 1.5 -o x", "-o x -c --rotating-output",
    "-o x --mode none", "-o x --mode memory", "-o x --alloc-interval 2mb", "-o x --mode allocation -f 3", "-o x --pids 1,2", "-o x --pids a", "-o x --pids 1 --pids 2",
    "-o x --pids 1 --profile-spawned-processes", "-o x --max-processes-runtime-profiler 0", "-o x --skip-system-profilers-above 0", "-o x --min-duration 0",
    "-o x --perf-mode smart -f 100", "-o x --perf-mode smart -f 101", "-o x --perf-mode fp -f 101", "-o x --perf-mode none", "-o x --perf-mode lbr",
    "-o x --perf-dwarf-stack-size 65528", "-o x --perf-dwarf-stack-size 65529", "-o x --no-perf", "-o x --python-mode pyspy", "-o x --python-mode py-spy",
    "-o x --python-mode pyperf", "-o x --python-mode x", "-o x --no-python", "-o x --java-mode jfr", "-o x --no-java --no-ruby", "-o x --php-mode phpspy --no-php",
    "-o x --dotnet-mode none", "-o x --nodejs-mode none", "-o x --perf-mode dwarf --nodejs-mode perf", "-o x --no-perf --nodejs-mode attach-maps",
    "-o x --java-async-profiler-mode wall", "-o x --java-async-profiler-safemode 63", "-o x --java-async-profiler-safemode 64", "-o x --java-safemode",
    "-o x --java-safemode hserr", "-o x --java-async-profiler-mcache 255", "-o x --java-async-profiler-mcache 256", "-o x --java-jattach-timeout 0",
    "-o x --java-async-profiler-features probesp,x", "-o x --java-line-numbers all", "-o x --perf-event-period 5", "-o x --hw-events-file f",
    "-o x --enable-heartbeat-server", "-o x --heartbeat-interval 0", "-o x --profile-api-version v1", "-o x --profile-api-version v2", "-o x --log-rotate-max-size 0",
    "-o x --log-rotate-backup-count 0", "-o x --server-upload-timeout 0", "-o x --spark-sample-period 5", "-o x --collect-spark-metrics", "-o x --nonsense",
    "-o x --perfspect-duration 0", "-o x --app-id-args-filter a --app-id-args-filter b", "-o x --glogger-server http://a", "-o x --no-verify", "-cvo x",
    "-o x --profiling-dur 5", "-o x --profiling 5", "-o x --pyperf-user-stacks-pages 0", "-o x --pyperf-user-stacks-pages -1", "-o x --python-pyspy-process 1,2",
    "-o x --java-safemode hserr,profiled-oom", "-o x --java-safemode all --no-java", "-o x --nodejs-mode perf --perf-mode smart", "-o x --nodejs-mode attach-maps --perf-mode disabled",
    "upload-file", "upload-file --file-path f --token t", "extract-resources",
]


def what_is_refused():
    other = []
    for command in COMMANDS:
        theirs = gprofiler.ask("arguments", *command.split())
        ours = run(HEARTH, "agent", "--controller-pid", ABSENT, "--log-file", path("refused.log"), "--pid-file", path("refused.pid"), *command.split(), cwd=scratch) \
            if "upload-file" not in command and "extract" not in command else run(HEARTH, "agent", *command.split(), cwd=scratch)
        if (theirs.returncode == 2) != (ours.returncode == 2):
            other.append((command, theirs.returncode, ours.returncode, ours.stderr[-100:]))
    tap.ok(not other, "its parser and ours refuse the same command lines", other or len(COMMANDS))


def arguments():
    words = ["-d", "1", "-f", "19", "--no-flamegraph", "--insert-dso-name", "--token", "s3cret", "--app-id-args-filter", "a", "--pids", str(os.getpid()),
             "--java-mode", "disabled", "--no-ruby", "--disable-metrics-collection", "--profile-api-version", "v1", "--perf-mode", "smart"]
    for more in (["--no-nodejs"], ["--nodejs-mode", "perf"], ["--nodejs-mode", "attach-maps"], ["--nodejs-mode", "none"]):
        same_arguments(" ".join(more), words + ["--php-mode", "phpspy"] + more)


def same_arguments(name, words):
    done = agent("args", *words)
    if not tap.ok(done.returncode == 0, f"a run with many options, {name}", done.stderr[-300:] + done.stdout[-300:]):
        return
    with open(os.path.join(path("args"), "last_profile.col")) as f:
        ours = json.loads(f.readline()[2:])["metadata"]["run_arguments"]
    theirs = json.loads(gprofiler.ask("arguments", "-o", path("args"), "--log-file", path("args.log"), "--pid-file", path("args.pid"), *words).stdout)
    other = {k: (v, ours.get(k)) for k, v in theirs.items() if k not in ("server_token", "config") and (k not in ours or ours[k] != v)}
    tap.ok(not other and len(theirs) > 80, f"{name}: run_arguments is what it would write, but for the token and the name of a file", other or len(theirs))


hostile_names()
arguments()
what_is_refused()
of_a_machine()
tap.finish()
