#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A busy container of podman shows its name, which podman's own service tells. Images and containers lie in a folder of the check."""
import json

from support import *

NAME = "hearth-e2e-pod"
BOX = "hearth-pod-box"  # the program
tap = Tap("podman")
need(tap, "podman", "runc")
socket = path("podman.sock")
PODMAN = ("podman", "--root", path("root"), "--runroot", path("runroot"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
          "--runtime", shutil.which("runc"))


def podman(*args):
    return run(*PODMAN, *args)


os.mkdir(path("image"))
built = run("cc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-static", "-o", path(f"image/{BOX}"), os.path.join(HERE, "workloads", "spin.c"), "-pthread")
tar = run("tar", "-C", path("image"), "-cf", path("image.tar"), ".")
imported = podman("import", path("image.tar"), "hearth-e2e-podman:1")
tap.ok(built.returncode == 0 and tar.returncode == 0 and imported.returncode == 0, "an image with one static program", imported.stderr[-200:] if imported.returncode else "")
service = None
try:
    box = podman("run", "-d", "--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--name", NAME, "hearth-e2e-podman:1", f"/{BOX}", "100", "1")
    if box.returncode:
        tap.skip("everything", "podman runs no container here: " + box.stderr[-200:].replace("\n", " "))
        tap.finish()
    identity = box.stdout.strip()
    service = start(*PODMAN, "system", "service", "--time", "0", "unix://" + socket)
    until = time.monotonic() + 20
    while not os.path.exists(socket) and time.monotonic() < until:
        time.sleep(0.2)
    record(tap, 4, "-q", "--container-socket", socket, "-o", path("box.col"))
    head, *lines = open(path("box.col")).read().split("\n")
    own = [l for l in lines if l.split(";")[2:3] == [BOX]]
    tap.ok(own and all(l.split(";")[1] == NAME for l in own), "the name is the second frame of its .col lines", own[0][:80] if own else "no line")
    tap.ok(NAME in json.loads(head[2:])["containers"], "and in the list of the first line")
    record(tap, 2, "-q", "--container-socket", socket, "--container", NAME[:-1] + "*", "-o", path("only.pb.gz"))
    only = Profile(path("only.pb.gz")).samples
    tap.ok(only and all(s.labels.get("container") == NAME for s in only), "--container with a pattern takes nothing else", total(only))
    record(tap, 2, "-q", "--container-socket", path("no.sock"), "-o", path("mute.col"))
    own = {l.split(";")[1] for l in open(path("mute.col")).read().split("\n")[1:] if l.split(";")[2:3] == [BOX]}
    tap.ok(own == {identity[:12]}, "the short id when the engine does not answer", sorted(own))
finally:
    podman("rm", "-f", "-t", "1", NAME)
    if service:
        service.terminate()
        stopped(service)
    for tree, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
        if "/libpod_parent" in tree:
            with contextlib.suppress(OSError):
                os.rmdir(tree)  # other containers use it
tap.finish()
