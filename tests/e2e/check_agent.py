#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth agent: gProfiler's cycles, files, lock, log and end. What options mean together: tests/unit/agent_options_test.c."""
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import time

import phps
from support import HEARTH, HERE, QUICK, SAMPLED, Tap, cpu_seconds, need, path, run, start, workload

tap = Tap("agent")
need(tap)
LOCK = "\0\0gprofiler_lock"
LINE = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (DEBUG|INFO|WARNING|ERROR): gprofiler: ")


def words(name, *options):
    return [HEARTH, "agent", "-o", path(name), "--log-file", path(name + ".log"), "--pid-file", path(name + ".pid"), *options]


def agent(name, *options, env=None):
    return subprocess.run(words(name, *options), capture_output=True, text=True, timeout=120, env={**os.environ, **(env or {})})


def profiles(name, suffix=".col"):
    return sorted(f for f in os.listdir(path(name)) if re.fullmatch(r"profile_\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(_\d+)?" + re.escape(suffix), f))


def frames(name, file):
    """{a frame: its samples} and the header of a .col file."""
    with open(os.path.join(path(name), file)) as f:
        head, *lines = f.read().split("\n")
    out = {}
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        for frame in set(stack.split(";")):
            out[frame] = out.get(frame, 0) + int(count)
    return out, json.loads(head[2:])


spin = start(workload("spin"), "1800")  # longer than all that follows; ended with the check

# One cycle.
begin = cpu_seconds(spin.pid)
done = agent("one", "-d", "2", "-f", "49")
used = cpu_seconds(spin.pid) - begin
tap.ok(done.returncode == 0, "one cycle", done.stderr[-300:])
cols, pages = profiles("one"), profiles("one", ".html")
tap.ok(len(cols) == 1 and len(pages) == 1, "leaves two files", os.listdir(path("one")))
tap.ok(os.readlink(os.path.join(path("one"), "last_profile.col")) == cols[0], "and links with the bare names")
tap.ok(os.readlink(os.path.join(path("one"), "last_flamegraph.html")) == pages[0], "of both")
found, head = frames("one", cols[0])
tap.ok(found.get("spin", 0) > 0 and found["spin"] <= 49 * used * 1.2 + 3, "the load is in it", f"{found.get('spin')} samples in {used:.1f} s")
tap.ok(head["metadata"]["run_mode"] in ("k8s", "container", "standalone_executable", "local_python"), "the header is gProfiler's", sorted(head))
tap.ok(head["sampling_frequency"] == 49, "with the rate", head.get("sampling_frequency"))
lines = done.stdout.splitlines()
tap.ok(lines and all(LINE.match(line) for line in lines), "lines as gProfiler's", lines[:3])
tap.ok(any("Running gProfiler" in line for line in lines) and any("Saved collapsed stacks to " + path("one") in line for line in lines)
       and any("Saved flamegraph to " + path("one") in line for line in lines), "that others search", lines)
with open(path("one.log")) as f:
    tap.ok(set(lines) <= set(f.read().splitlines()), "and the file has them, too")
with open(path("one.pid")) as f:
    tap.ok(f.read().isdigit(), "the pid file is digits alone")

# Cycle after cycle; the last one is cut by the signal and kept.
begin_cpu = cpu_seconds(spin.pid)
process = start(*words("many", "-c", "-d", "2", "--no-flamegraph", "--heartbeat-file", path("beat")), stdout=subprocess.DEVNULL)
time.sleep(7.5)
tap.ok(os.path.exists(path("beat")), "the heartbeat file is touched")
second = agent("second", "-d", "1")
tap.ok(second.returncode == 1 and "Could not acquire gProfiler's lock" in second.stderr, "a second one is refused", second.stderr)
used = cpu_seconds(spin.pid) - begin_cpu
begin = time.monotonic()
process.send_signal(signal.SIGTERM)
status = process.wait(timeout=30)
tap.ok(status == 0, "SIGTERM ends it well", f"{status}, after {time.monotonic() - begin:.1f} s")
cols = profiles("many")
tap.ok(4 <= len(cols) <= 5 and not profiles("many", ".html"), "each cycle has its file, the last one too", cols)
cycles = [frames("many", file)[0] for file in cols]
counts = [found.get("spin", 0) for found in cycles]
tap.ok(all(cycles[:3]), "none is empty", counts)
tap.ok(abs(sum(counts) - 11 * used) <= 0.35 * 11 * used + 4, "11 samples a second of a CPU", f"{counts} in {used:.1f} s")

# Only the newest.
process = start(*words("rotating", "-c", "-d", "1", "--rotating-output"), stdout=subprocess.DEVNULL)
time.sleep(4.5)
process.send_signal(signal.SIGINT)
tap.ok(process.wait(timeout=30) == 0, "SIGINT, too")
tap.ok(len(profiles("rotating")) == 1 and len(profiles("rotating", ".html")) == 1, "--rotating-output keeps one pair", os.listdir(path("rotating")))

# Its controller ends.
controller = start("sleep", "2")
begin = time.monotonic()
done = agent("controlled", "-c", "-d", "30", "--controller-pid", str(controller.pid), "--no-flamegraph")
tap.ok(done.returncode == 0 and time.monotonic() - begin < 20, "it ends with its controller", done.stdout[-300:])
tap.ok(len(profiles("controlled")) == 1, "with what it had", profiles("controlled"))
gone = subprocess.run(["true"]) and 4194000
tap.ok(agent("controlled", "--controller-pid", str(gone)).returncode == 1, "one that does not run is an error")

# Processes.
done = agent("pids", "-d", "2", "--pids", f"{spin.pid},{gone}", "--no-flamegraph")
found, _ = frames("pids", profiles("pids")[0])
tap.ok(done.returncode == 0 and "spin" in found and "swapper" not in found, "--pids: only these, the dead are dropped", sorted(found)[:9])
done = agent("nobody", "-d", "1", "--pids", str(gone))
tap.ok(done.returncode == 1 and "aren't any alive" in done.stdout, "none alive is an error", done.stdout)

# From the environment, from a file, and what wins.
with open(path("config.ini"), "w") as f:
    f.write("[profiler]\nprofiling-duration: 1\nno-flamegraph\nprofiling-frequency = 20\n")
done = agent("sources", "--config", path("config.ini"), env={"GPROFILER_PROFILING_FREQUENCY": "30"})
_, head = frames("sources", profiles("sources")[0])
tap.ok(done.returncode == 0 and head["sampling_frequency"] == 30 and not profiles("sources", ".html"),
       "the environment before the file", (done.stderr, head.get("sampling_frequency")))

# What is left out.
done = agent("less", "-d", "1", "--no-flamegraph", "--disable-container-names", "--disable-metrics-collection", "--disable-metadata-collection",
             "--disable-application-identifiers", "--disable-application-metadata")
with open(os.path.join(path("less"), "last_profile.col")) as f:
    head, *lines = f.read().split("\n")
head = json.loads(head[2:])
tap.ok(done.returncode == 0 and set(head["metadata"]) == {"hostname", "profiling_mode"}, "the machine's metadata", head["metadata"])
tap.ok(not head["container_names_enabled"] and not head["application_metadata_enabled"] and head["metrics"]["cpu_avg"] is None, "names, metrics", head)
tap.ok(lines and all(line.startswith(";") for line in lines), "no index, an empty container", lines[:2])
agent("v1", "-d", "1", "--no-flamegraph", "--profile-api-version", "v1")
with open(os.path.join(path("v1"), "last_profile.col")) as f:
    tap.ok(re.match(r"[^;]*;[^;]", f.read().split("\n")[1]), "version 1: the name comes first")

found, _ = (agent("libraries", "-d", "2", "-f", "49", "--no-flamegraph", "--insert-dso-name"), frames("libraries", "last_profile.col"))[1]
tap.ok(any(re.fullmatch(r"main \(/.*/spin\)", frame) for frame in found), "--insert-dso-name", [f for f in found if f.startswith("main")])

# What it used itself.
done = agent("usage", "-d", "1", "-v", "--no-flamegraph", "--log-usage", env={"GPROFILER_IN_CONTAINER": "1"})
tap.ok(done.returncode == 0 and re.search(r"CPU usage this cycle: \d+\.\d{3} seconds \d+\.\d\d% \(\d+ cgroup time\)", done.stdout)
       and re.search(r"Memory usage: \d+\.\d{3} MB \(", done.stdout), "--log-usage", done.stdout[-400:])
tap.ok(agent("usage", "-d", "1", "--log-usage").returncode == 1, "but only in a container")

agent("diagnosed", "-d", "1", "--no-flamegraph", "--diagnostics")
with open(path("diagnosed.log")) as f:
    said = f.read()
tap.ok(f"DEBUG: gprofiler: process (pid={spin.pid}, comm=spin)" in said and "DEBUG: gprofiler: kernel (line=" in said, "--diagnostics", said[-300:])

with open(path("external"), "w") as f:
    json.dump({"static": {"rack": "<7>\u202e"}, "application": {str(spin.pid): {"team": "t"}}}, f)
agent("told", "-d", "2", "-f", "99", "--no-flamegraph", "--external-metadata", path("external"))
with open(os.path.join(path("told"), "last_profile.col")) as f:
    head, *lines = f.read().split("\n")
slot = json.loads(head[2:])["application_metadata"].index({"team": "t"})
tap.ok(any(line.startswith(f"{slot};;spin;") for line in lines), "--external-metadata of a process")
tap.ok(frames("told", "last_profile.col")[1]["metadata"]["external_metadata"] == {"rack": "<7>\u202e"}, "--external-metadata")
os.utime(path("external"), (time.time() - 400,) * 2)
tap.ok(agent("told", "-d", "1", "--external-metadata", path("external")).returncode == 1, "whose writer is gone: an error")
with open(path("external"), "w") as f:
    f.write('{"static": [')
tap.ok(agent("told", "-d", "1", "--external-metadata", path("external")).returncode == 1, "or that is no JSON")

# Of which processes the runtime's frames are shown. The load of one of them sleeps most of the time.
BUSY = """
import time
def turn():
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
def {0}():
    while True:
        turn()
        time.sleep({1})
{0}()
"""


def has(found, name):
    return any(frame.startswith(name) and frame.endswith("_[p]") for frame in found)


def of_which_processes():
    loads = [start("/usr/bin/python3", "-c", BUSY.format(name, pause)) for name, pause in (("many_samples", 0), ("few_samples", 0.1))]
    these = ",".join(str(load.pid) for load in loads)
    time.sleep(3)
    agent("all", "--pids", these, "-d", "3", "-f", "99", "--no-flamegraph")
    found, _ = frames("all", "last_profile.col")
    tap.ok(has(found, "many_samples") and has(found, "few_samples"), "functions of all processes")
    agent("one-process", "--pids", these, "-d", "4", "-f", "99", "--no-flamegraph", "--max-processes-runtime-profiler", "1")
    found, _ = frames("one-process", "last_profile.col")
    tap.ok(has(found, "many_samples") and not has(found, "few_samples") and "python3" in found, "--max-processes-runtime-profiler 1: of the busiest one")
    agent("old", "--pids", these, "-d", "3", "-f", "99", "--no-flamegraph", "--min-duration", "3600")
    found, _ = frames("old", "last_profile.col")
    tap.ok("python3" in found and not any(frame.endswith("_[p]") for frame in found), "--min-duration: the young ones' stacks stay native")
    agent("old", "--pids", these, "-d", "3", "-f", "99", "--no-flamegraph", "--min-duration", "2")
    found, _ = frames("old", "last_profile.col")
    tap.ok(has(found, "many_samples"), "and of old ones they are shown")
    # What is said of them.
    done = agent("said", "-d", "2", "-f", "99", "-v", "--no-flamegraph", "--token", "first-s3cret", "--tok=other-s3cret", "-token", "third-s3cret", "--token", "s3cret", "--pids", f"[{these}]")
    tap.ok(re.search(r" DEBUG: gprofiler: processes left after filtering: 2$", done.stdout, re.M), "how many were left", done.stdout[-500:])
    with open(path("said.log")) as f:
        said = f.read()
    tap.ok(re.search(r'Running gProfiler \(version=\S+, commandline="agent .*--token \*\*\* --tok=\*\*\* -token \*\*\* --token \*\*\* .*"\)', said) and "s3cret" not in said + done.stdout,
           "the command line, without the token", said[:300])
    told = frames("said", "last_profile.col")[1]["metadata"]["run_arguments"]
    tap.ok(told["pids_to_profile"] == [load.pid for load in loads] and "s3cret" not in json.dumps(told) and told["verbose"] is True, "run_arguments, without it", told)
    process = start(*words("spawned", "-c", "-d", "2", "--no-flamegraph", "--profile-spawned-processes"))
    time.sleep(2.5)
    loads.append(start("/usr/bin/python3", "-c", BUSY.format("late", 0)))
    time.sleep(4)
    process.send_signal(signal.SIGTERM)
    tap.ok(process.wait(timeout=30) == 0 and any(has(frames("spawned", file)[0], "late") for file in profiles("spawned")), "one that starts later is there")
    with open(path("spawned.log")) as f:
        said = f.read()
    tap.ok(said.count(f"Profiling spawned process {loads[-1].pid}\n") == 1 and re.search(r"selected \d+ processes to profile", said), "and is told once", said[-500:])
    for load in loads:
        load.kill()


# The header, as the readers of .col files know it. Source: gprofiler/merge.py and the Performance Studio's agent_collector.
with open(os.path.join(path("one"), "last_profile.col")) as f:
    head, line = json.loads(f.readline()[2:]), f.readline()
tap.ok(list(head) == ["containers", "container_names_enabled", "metadata", "metrics", "application_metadata", "application_metadata_enabled", "profiling_mode",
                      "hwmetrics", "htmlblob", "flamegraph_html", "sampling_event", "sampling_mode", "sampling_frequency"], "its keys in order", list(head))
tap.ok(re.fullmatch(r"\d+;[^;]*;[^;]+(;[^;]+)* \d+\n?", line), "a line: index, container, comm, frames, count", line[:200])
meta = head["metadata"]
tap.ok(meta["run_mode"] in ("k8s", "container", "standalone_executable", "local_python") and re.fullmatch(r"\d+\.\d+\.\d+", meta["agent_version"])
       and re.fullmatch(r"([0-9A-F]{2}:){5}[0-9A-F]{2}", meta["mac_address"]) and meta["processors"] > 0 and meta["memory_capacity_mb"] > 0
       and meta["cloud_provider"] in ("aws", "gcp", "azure", "unknown") and isinstance(meta["python_version"], str), "what a Studio takes", meta)
told = meta["run_arguments"]
tap.ok((told["frequency"], told["duration"], told["output_dir"], told["profiling_mode"], told["pids_to_profile"], told["perf_mode"], told["java_mode"],
        told["ruby_mode"], told["collect_metrics"], told["service_name"]) == (49, 2, path("one"), "cpu", None, "fp", "ap", "rbspy", True, None) and len(told) > 80,
       "run_arguments: every option", told)
for variable, mode, kind in (("GPROFILER_IN_K8S", "k8s", "k8s"), ("GPROFILER_IN_CONTAINER", "container", "containers")):
    agent(mode, "-d", "1", "--no-flamegraph", env={variable: "1"})
    meta = frames(mode, "last_profile.col")[1]["metadata"]
    tap.ok((meta["run_mode"], meta["deployment_type"]) == (mode, kind), f"{variable}: where it runs", (meta["run_mode"], meta["deployment_type"]))

# What cannot be sent, and what has no meaning.
done = agent("sent", "-d", "1", "--no-flamegraph", "-u", "--token", "t", "--service-name", "s", "--java-safemode", "hserr", "--java-full-hserr", "--nodejs-mode", "perf")
warned = [line.partition("WARNING: gprofiler: ")[2] for line in done.stdout.splitlines() if " has no meaning: " in line]
tap.ok([line.split()[0] for line in warned] == ["--java-safemode", "--java-full-hserr"], "options of Java that promise what is not done: a warning each", warned or done.stdout)
told = frames("sent", "last_profile.col")[1]["metadata"]["run_arguments"]
tap.ok((told["perf_inject"], told["perf_node_attach"], told["java_safemode"]) == (True, False, "hserr"), "run_arguments: what --nodejs-mode stands for", told)
tap.ok(done.returncode == 0 and "WARNING: gprofiler: --upload-results: nothing is sent yet" in done.stdout, "-u with -o: one warning, and files", done.stdout)


def full_disk():
    """A full disk in the middle of a cycle: that one is lost, and told; the next ones have their files."""
    process = start(*words("full", "-c", "-d", "2", "--no-flamegraph"), stdout=subprocess.PIPE, text=True)

    def wait_for(count):
        end = time.monotonic() + 30
        while time.monotonic() < end and not (os.path.isdir(path("full")) and len(profiles("full")) >= count):
            time.sleep(0.1)
        return len(profiles("full"))

    before = wait_for(1)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    time.sleep(5)
    files = sorted(os.listdir(path("full")))
    tap.ok(len(profiles("full")) <= before + 1 and os.readlink(os.path.join(path("full"), "last_profile.col")) == profiles("full")[-1]
           and not set(files) - set(profiles("full")) - {"last_profile.col"}, "a full disk: nothing half, the link stays", files)
    held = len(profiles("full"))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    tap.ok(wait_for(held + 1) > held, "and it goes on when there is room again")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    tap.ok(process.returncode == 0 and "] ERROR: gprofiler: a cycle's files cannot be written" in out, "and says so", out[-400:])


if not QUICK:
    of_which_processes()
    full_disk()

# Wrong ones.


def lines_of(done):
    return [line for line in done.stderr.splitlines() if "the lock holds in this network namespace only" not in line]


def refused(done, status, *said):
    """One line on stderr says why."""
    lines = lines_of(done)
    return done.returncode == status and len(lines) == 1 and all(text in lines[0] for text in said)


for options, said in ((("--profiling-frequency", "0"), "--profiling-frequency"), (("--nonsense",), "--nonsense"), (("--mode", "x"), "--mode"),
                      (("-u",), "--token"), (("--pids", "x"), "--pids"), (("--perf-event-period", "5"), "--perf-event"),
                      (("--config", "/nonexistent"), "/nonexistent"), (("--config", path("one")), path("one"))):
    done = agent("wrong", *options)
    tap.ok(refused(done, 2, said), f"a usage error: {' '.join(options)}", done.stderr)
with open(path("bad.ini"), "w") as f:
    f.write("continuous\nmystery: 5\n")
done = agent("wrong", "--config", path("bad.ini"))
tap.ok(refused(done, 2, "mystery", "line 2"), "a usage error: in the file", done.stderr)
done = agent("wrong", env={"GPROFILER_CONTINUOUS": "perhaps"})
tap.ok(refused(done, 2, "GPROFILER_CONTINUOUS"), "a usage error: in the environment", done.stderr)
done = run(HEARTH, "agent", "-u", "--token", "t", "--service-name", "s")
tap.ok(refused(done, 1, "--output-dir"), "-u without -o: nothing can be sent", done.stderr)
done = agent("wrong", "--dotnet-mode", "dotnet-trace")
tap.ok(refused(done, 1, "--dotnet-mode"), "what comes later is no usage error", done.stderr)
done = agent("wrong", "-d", "1", "--perf-event", "no-such-event")
tap.ok(refused(done, 2, "no-such-event"), "an event that is not there is one", done.stderr)

done = agent("wrong", "-d", "1", "--rootless")
tap.ok((done.returncode, done.stderr) == (1, "Conflict, running with --rootless and as root, rerun with --rootless or as root (but not both).\n"),
       "--rootless as root", done.stderr)
done = subprocess.run(words("wrong", "-d", "1"), capture_output=True, text=True, timeout=60, user=65534, group=65534)
tap.ok((done.returncode, done.stderr) == (1, "Not running as root, rerun with --rootless or as root.\n"), "not root", done.stderr)
done = agent("wrong", "-d", "1", "--host-root", path("one"))
tap.ok(done.returncode == 1 and done.stderr.startswith("Please run me in the init PID namespace! In Docker, make sure you pass '--pid=host'. In Kubernetes, add "
       "'hostPID: true' in the Pod spec.\n"), "in a pid namespace", done.stderr)

with open(path("wall"), "w"):
    pass
done = agent("wall", "-d", "1")
tap.ok(done.returncode == 1 and re.search(r"^\[.*\] ERROR: gprofiler: --output-dir: .* is no directory$", done.stdout, re.M), "a file in the directory's place", done.stdout + done.stderr)
done = agent("wrong", "-d", "1", "--log-file", path("one"))
tap.ok(refused(done, 1, "--log-file"), "a log file that cannot be written", done.stderr)
done = agent("no-pid", "-d", "1", "--no-flamegraph", "--pid-file", path("wall/pid"))
tap.ok(done.returncode == 0 and "WARNING: gprofiler: the pid file cannot be written" in done.stdout, "a pid file that cannot be written is only told", done.stdout)
tap.ok("no meaning" not in done.stdout, "nothing is said of options that were not given", done.stdout)
os.symlink(path("one.log"), path("link.log"))
done = agent("wrong", "-d", "1", "--log-file", path("link.log"))
tap.ok(refused(done, 1, "links are not followed"), "nor a link to one", done.stderr)
os.mkfifo(path("fifo"))
done = agent("no-pid", "-d", "1", "--no-flamegraph", "--pid-file", path("fifo"))
tap.ok(done.returncode == 0 and "WARNING: gprofiler: the pid file cannot be written" in done.stdout, "a FIFO in its place does not hold it up", done.stdout)
done = subprocess.run(words("open", "-d", "1", "--no-flamegraph", "--log-file", path("logs/of/open")), capture_output=True, timeout=60, umask=0)
modes = [oct(os.stat(path(name)).st_mode & 0o777) for name in ("logs", "logs/of", "logs/of/open", "open")]
tap.ok(done.returncode == 0 and modes == ["0o755", "0o755", "0o644", "0o755"], "whatever the umask, only root writes to its folders", modes)


def close_standard_files():
    for fd in range(3):
        os.close(fd)


process = subprocess.Popen(words("closed", "-d", "2", "--no-flamegraph"), preexec_fn=close_standard_files)
time.sleep(1.5)
files = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)]
tap.ok(process.wait(timeout=60) == 0 and files == ["/dev/null"] * 3, "closed standard files are no file of its own", files)
with socket.socket(socket.AF_UNIX) as held:
    held.bind(LOCK)
    tap.ok(agent("second", "-d", "1").returncode == 1, "gProfiler itself holds the lock: refused")

# As gprofiler.
link = path("gprofiler")
os.symlink(os.path.abspath(HEARTH), link)
version = run(link, "-c", "--version")
tap.ok(version.returncode == 0 and re.fullmatch(r"\d+\.\d+\.\d+\n", version.stdout), "as gprofiler: the version", version.stdout)
tap.ok(refused(run(link), 2, "--output-dir"), "as gprofiler: no sub-command is needed")
done = run(link, "extract-resources", "--resources-dest", path("resources/all"))
tap.ok(done.returncode == 0 and os.path.isdir(path("resources/all")), "extract-resources makes its folder", done.stderr)
tap.ok(refused(run(link, "upload-file", "--file-path", path("wall"), "--token", "t"), 2, "--service-name"), "upload-file has usage errors")
tap.ok(refused(run(link, "upload-file", "--file-path", path("wall"), "--token", "t", "--service-name", "s"), 1, "upload-file"), "upload-file: not there yet")


def readme_lines():
    """The command lines of gProfiler's READMEs, with -o for what cannot be sent yet. Those that go on are ended by a signal."""
    folder = path("readme")
    os.mkdir(folder)
    os.symlink(os.path.abspath(HEARTH), os.path.join(folder, "gprofiler"))
    files = ["--log-file", path("readme.log"), "--pid-file", path("readme.pid"), "-o", path("readme-out")]
    sent = ["--token", "t", "--service-name", "s"]

    def kept():
        return {f for f in os.listdir(path("readme-out")) if f.startswith("profile_")} if os.path.isdir(path("readme-out")) else set()

    for options in ([], ["--disable-pidns-check", "--perf-mode", "none"], ["--python-mode", "pyspy"], ["--python-mode", "pyperf"], ["--no-python"], ["--no-java"],
                    ["--java-mode", "disabled"], ["--no-java-async-profiler-buildids"], ["--no-php"], ["--php-mode", "disabled"], ["--no-ruby"],
                    ["--ruby-mode", "disabled"], ["--nodejs-mode", "none"], ["--perf-mode", "dwarf"], ["--perf-mode", "smart"], ["--perf-mode", "disabled"],
                    ["--dont-send-logs"], ["--disable-metrics-collection", "--disable-metadata-collection"], ["--profiling-frequency", "15"]):
        before = kept()
        done = subprocess.run(["./gprofiler", "-u", *sent, "-d", "1", *files, *options], cwd=folder, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TMPDIR": "/proc/self/cwd", "GPROFILER_DONT_SEND_LOGS": "1"})
        tap.ok(done.returncode == 0 and len(kept() - before) == 2 and not lines_of(done), f"gprofiler -u {' '.join(options)}", done.stdout[-300:] + done.stderr)
    before = kept()
    subprocess.run(["sh", "-c", f"setsid ./gprofiler -cu --token=\"t\" --service-name=\"s\" {' '.join(files)} -d 2 > /dev/null 2>&1 &"], cwd=folder, timeout=30)
    end = time.monotonic() + 30
    while time.monotonic() < end and len(kept() - before) < 4:
        time.sleep(0.2)
    with open(path("readme.pid")) as f:
        pid = int(f.read())
    with open(f"/proc/{pid}/cmdline") as f:
        words_of = f.read().split("\0")
    tap.ok(words_of[:2] == ["./gprofiler", "-cu"] and len(kept() - before) >= 4, "setsid gprofiler -cu ... &: it goes on in the background", words_of[:3])
    os.kill(pid, signal.SIGTERM)
    while time.monotonic() < end + 30 and os.path.exists(f"/proc/{pid}"):
        time.sleep(0.2)
    tap.ok(not os.path.exists(f"/proc/{pid}") and len(kept() - before) % 2 == 0, "and ends with both files of its last cycle", sorted(kept() - before))


def clock_set_back():
    """Cycles go on as they were: each has its file, the link goes to the one that was written last."""
    clock = path("clock.so")
    built = run("cc", "-shared", "-fPIC", "-O2", "-o", clock, os.path.join(os.path.dirname(HERE), "bench/shift_clock.c"), "-ldl")
    process = start(*words("back", "-c", "-d", "1", "--no-flamegraph"), stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "LD_PRELOAD": clock, "SHIFT_CLOCK_S": "-7200", "SHIFT_CLOCK_AFTER_S": "4"})
    time.sleep(8.5)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    cols = profiles("back")
    saved = [line.rpartition("/")[2] for line in out.splitlines() if "Saved collapsed stacks to" in line]
    tap.ok(built.returncode == 0 and process.returncode == 0 and len(cols) == len(saved) >= 7, "a clock that is set back by two hours: no cycle is lost", (cols, built.stderr))
    hours = sorted({name[19:21] for name in cols})
    tap.ok(len(hours) >= 2 and min(cols) != cols[-1] == max(saved) != saved[-1] == os.readlink(os.path.join(path("back"), "last_profile.col")), "the link goes to the newest", saved)
    tap.ok(all(frames("back", name)[0] for name in cols[:-1]), "none is empty")


def resident(pid):
    """KiB in all, and of them those that no file backs."""
    with open(f"/proc/{pid}/status") as f:
        words_of = dict(line.split()[:2] for line in f if line.startswith(("VmRSS", "RssAnon")))
    return int(words_of["VmRSS:"]), int(words_of["RssAnon:"])


def ten_thousand():
    """So many processes stand about: it starts soon, the load is in the file, and memory is bounded."""
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(10000)]
    begin = time.monotonic()
    process = start(*words("crowd", "-c", "-d", "5", "-f", "49", "--no-flamegraph"), stdout=subprocess.PIPE, text=True)
    most = 0
    while time.monotonic() < begin + 40 and not (os.path.isdir(path("crowd")) and len(profiles("crowd")) >= 3):
        time.sleep(0.1)
        most = max(most, resident(process.pid)[1])
    took = time.monotonic() - begin
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    counts = [frames("crowd", file)[0].get("spin", 0) for file in profiles("crowd")]
    tap.ok(process.returncode == 0 and len(counts) >= 3 and all(counts[:3]), "10,000 processes: cycles of 5 s with the load in them", (took, counts, said[-300:]))
    tap.ok(took < 15 + 10 and most < 300 * 1024, "begun soon, in bounded memory", f"three cycles after {took:.1f} s, at most {most} KiB anonymous")
    for sleeper in sleepers:
        sleeper.kill()
    for sleeper in sleepers:
        sleeper.wait()


def ten_minutes():
    """Under load: every cycle has its files, memory stays. A minute's memory is its median: pages of files come and go."""
    loads = [start(workload("spin"), "700") for _ in range(2)]
    begin, seen = time.monotonic(), {3: [], 10: []}
    process = start(*words("long", "-c", "-d", "5"))
    while time.monotonic() < begin + 600:
        time.sleep(2)
        minute = 1 + int((time.monotonic() - begin) // 60)
        if minute in seen:
            seen[minute].append(resident(process.pid))
    process.send_signal(signal.SIGTERM)
    tap.ok(process.wait(timeout=30) == 0, "ten minutes of cycles end well")
    cols, pages = profiles("long"), profiles("long", ".html")
    tap.ok(118 <= len(cols) <= 121 and len(pages) == len(cols), "each has its files", (len(cols), len(pages)))
    empty = [file for file in cols[:-1] if not frames("long", file)[0].get("spin", 0)]
    tap.ok(not empty, "and each of these the load", empty[:5])
    third, tenth = ([statistics.median(column) for column in zip(*seen[minute])] for minute in (3, 10))
    tap.ok(tenth[0] <= 1.05 * third[0], "memory of minute 10 is at most 5 % above that of minute 3",
           f"{third[0]:.0f} and {tenth[0]:.0f} KiB, of them anonymous {third[1]:.0f} and {tenth[1]:.0f}")
    for load in loads:
        load.kill()


def attach_maps():
    """--nodejs-mode attach-maps: said once, not in each cycle, that nothing is attached."""
    process = start(*words("maps", "-c", "-d", "1", "--no-flamegraph", "--nodejs-mode", "attach-maps"))
    time.sleep(3.5)
    process.send_signal(signal.SIGTERM)
    ended = process.wait(timeout=30)
    with open(path("maps.log"), encoding="utf-8") as f:
        said = [line for line in f if "nothing is attached" in line]
    tap.ok(ended == 0 and len(profiles("maps")) >= 2 and len(said) == 1, "--nodejs-mode attach-maps says once that it attaches nothing", f"{len(said)} times in {len(profiles('maps'))} cycles")


attach_maps()


def php_by_default():
    """gProfiler's default for PHP is `disabled`; as hearth's default it leaves the walk on, given explicitly it switches it off."""
    php = next((p.program for p in phps.of_machine()), None)
    if not php:
        tap.skip("PHP by default", "not installed")
        return
    load = start(php, "-n", "-r", "function agent_load() { for ($i = 0, $x = 0; $i < 100000; $i++) $x += $i; } while (true) agent_load();")
    for name, options, want in ("php", [], True), ("php-off", ["--php-mode", "disabled"], False):
        done = agent(name, "-d", "2", "-f", "199", "--no-flamegraph", "--pids", str(load.pid), *options)
        found = frames(name, profiles(name)[0])[0] if done.returncode == 0 else {}
        shown = sum(n for frame, n in found.items() if frame.endswith("_[php]") and frame.startswith("agent_load "))
        native = sum(n for frame, n in found.items() if frame.startswith("execute_ex"))
        tap.ok(shown > 50 if want else not any(f.endswith("_[php]") for f in found) and native > 50, f"PHP with {options or 'no option'}: {'its frames' if want else 'native frames only'}",
               f"{shown} samples with its function, {native} with the interpreter's; {done.stderr[-200:]}")
    load.kill()


php_by_default()
if not QUICK:
    readme_lines()
    clock_set_back()
if not QUICK and not SAMPLED:
    ten_thousand()
    ten_minutes()
spin.kill()
tap.finish()
