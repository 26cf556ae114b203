#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A busy container shows its name in the second frame of its .col lines. Starts a Docker daemon of its own."""
import json

from engines import sweep_groups
from support import *

NAME = "hearth-e2e-box"
tap = Tap("docker")
need(tap, "dockerd", "docker")
socket = path("docker.sock")
# Folders that the engine always makes outside its own; those that were not there before are removed at the end.
made = [f for f in ("/run/docker/plugins", "/run/docker", "/run/containerd/s", "/run/containerd") if not os.path.exists(f)]
with open(path("dockerd.log"), "w") as log:
    daemon = start("dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--data-root", path("data"), "--exec-root",
                   path("exec"), "-H", "unix://" + socket, "--pidfile", path("docker.pid"), stdout=log, stderr=log)


def docker(*args, **options):
    return run("docker", "-H", "unix://" + socket, *args, **options)


try:
    until = time.monotonic() + 30
    while docker("info").returncode and time.monotonic() < until and daemon.poll() is None:
        time.sleep(0.3)
    if docker("info").returncode:
        tap.skip("everything", "dockerd does not start: " + open(path("dockerd.log")).read()[-200:].replace("\n", " "))
        tap.finish()
    os.mkdir(path("image"))
    built = run("cc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-static", "-o", path("image/spin"),
                os.path.join(HERE, "workloads", "spin.c"), "-pthread")
    imported = subprocess.run(f"tar -C {path('image')} -c . | docker -H unix://{socket} import - hearth-e2e:1", shell=True,
                              capture_output=True, text=True)
    tap.ok(built.returncode == 0 and imported.returncode == 0, "an image with one static program", imported.stderr[-200:])
    box = docker("run", "-d", "--network", "none", "--name", NAME, "hearth-e2e:1", "/spin", "60", "1")
    tap.ok(box.returncode == 0, "a container runs", box.stderr[-200:])
    identity = box.stdout.strip()
    pid = int(docker("inspect", "-f", "{{.State.Pid}}", NAME).stdout)
    record(tap, 4, "-q", "--container-socket", socket, "-o", path("box.col"), "-o", path("box.pb.gz"))
    lines = open(path("box.col")).read().split("\n")
    head = json.loads(lines[0][2:])
    own = [l for l in lines[1:] if l.split(";")[2:3] == ["spin"]]
    tap.ok(own and all(l.split(";")[1] == NAME for l in own), "the name is the second frame of its .col lines",
           own[0][:100] if own else "no line")
    tap.ok(head["containers"] == [NAME], "and in the list of the first line", head["containers"])
    samples = Profile(path("box.pb.gz")).of(pid)
    tap.ok(total(samples) > 100 and all(s.labels.get("container") == NAME for s in samples), "and a label in pprof", total(samples))
    tap.ok(any("spin_work" in s.names for s in samples), "function names from the container's own file system")
    record(tap, 2, "-q", "--container-socket", socket, "--container", NAME, "-o", path("only.pb.gz"))
    only = Profile(path("only.pb.gz")).samples
    tap.ok(only and all(s.labels.get("container") == NAME for s in only), "--container NAME takes nothing else", total(only))
    done = hearth("record", "-d", 1, "--container-socket", socket, "--container", NAME[:-1], "-o", path("none.pb.gz"))
    tap.ok(done.returncode == 1 and f"did you mean '{NAME}'" in done.stderr and not os.path.exists(path("none.pb.gz")),
           "--container with a name that nothing has: an error", f"{done.returncode} {done.stderr.strip()}")
    record(tap, 2, "-q", "--container-socket", path("no.sock"), "--container", identity[:12], "-o", path("by_id.pb.gz"))
    tap.ok(total(Profile(path("by_id.pb.gz")).samples) > 50, "--container with an id needs no engine")
    done = hearth("profile", "-f", "--container", identity[:12], 2)
    names = {l.split(";")[0] for l in done.stdout.splitlines()}
    tap.ok(done.returncode == 0 and names and names <= {"spin", "spin-0"}, "hearth profile --container ID takes nothing else", (names, done.stderr))
    done = hearth("profile", "-f", "--container-socket", socket, "--container", NAME, 2)
    names = {l.split(";")[0] for l in done.stdout.splitlines()}
    tap.ok(done.returncode == 0 and names and names <= {"spin", "spin-0"}, "hearth profile --container NAME, too", (names, done.stderr))
    done = hearth("profile", "-f", "--container-socket", socket, "--container", NAME[:-1], 1)
    tap.ok(done.returncode == 1 and not done.stdout and f"did you mean '{NAME}'" in done.stderr and done.stderr.count("\n") == 1,
           "hearth profile says in one line that a container is not there", f"{done.returncode} {done.stderr.strip()}")
    record(tap, 2, "-q", "--container-socket", path("no.sock"), "-o", path("mute.col"))
    own = [l.split(";")[1] for l in open(path("mute.col")).read().split("\n")[1:] if l.split(";")[2:3] == ["spin"]]
    tap.ok(own and set(own) == {identity[:12]}, "the short id when the engine does not answer", sorted(set(own)))
finally:
    docker("rm", "-f", NAME)
    daemon.terminate()
    stopped(daemon)
    for folder in made:
        try:
            os.rmdir(folder)
        except OSError:
            pass  # not made this time, or in use by another engine
    sweep_groups("docker")
tap.finish()
