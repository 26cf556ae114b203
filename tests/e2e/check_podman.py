#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A busy container of podman shows its name, which podman's own service tells. Images and containers lie in a folder of the check."""
import json

from engines import *
from support import *

NAME = "hearth-e2e-pod"
BOX = "hearth-pod-box"  # the program
tap = Tap("podman")
need(tap, "podman", "runc")
socket = path("podman.sock")
TAG = "hearth-e2e-podman:1"
failed = podman_image(TAG, BOX)
tap.ok(not failed, "an image with one static program", failed)
service = None
try:
    box = podman_run(TAG, NAME, f"/{BOX}", "100", "1")
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
    if service:
        service.terminate()
        stopped(service)
    podman_remove(NAME)
tap.finish()
