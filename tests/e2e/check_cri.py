#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Containers of Kubernetes have gProfiler's names: a containerd of its own, a pod and its container made through CRI."""
import json

import cri
from engines import host_with
from support import *

tap = Tap("cri")
need(tap, *cri.TOOLS)


def names_of(file):
    return sorted({l.split(";")[1] for l in open(path(file)).read().split("\n")[1:] if l.split(";")[2:3] == [cri.BOX]})


def check(sandbox):
    pod = cri.run_container(tap, sandbox, cri.container("api", cri.LABELS, {"io.kubernetes.container.restartCount": "3"}))
    plain = cri.run_container(tap, sandbox, cri.container("lonely", {}, {}))
    if not tap.ok(pod and plain, "two containers run"):
        return
    record(tap, 4, "-q", "--container-socket", cri.socket, "-o", path("pod.col"), "-o", path("pod.pb.gz"))
    tap.ok(names_of("pod.col") == sorted((cri.NAME, "lonely")), "k8s_CONTAINER_POD_NAMESPACE_UID_RESTARTS is the second frame", names_of("pod.col"))
    head = json.loads(open(path("pod.col")).readline()[2:])
    tap.ok({cri.NAME, "lonely"} <= set(head["containers"]), "and in the list of the first line", head["containers"])
    samples = [s for s in Profile(path("pod.pb.gz")).samples if s.labels.get("container") == cri.NAME]
    tap.ok(total(samples) > 20, "and a label in pprof", total(samples))
    record(tap, 2, "-q", "--container-socket", cri.socket, "--container", cri.NAME, "-o", path("only.col"))
    tap.ok(names_of("only.col") == [cri.NAME], "--container takes its name", names_of("only.col"))
    record(tap, 2, "-q", "--container-socket", cri.socket, "--pod", "shop-*", "-o", path("of_pod.col"))
    tap.ok(names_of("of_pod.col") == [cri.NAME], "--pod takes the pod's, and nothing else", names_of("of_pod.col"))
    host = host_with(("proc", "sys"), {"run/engine.sock": cri.socket})
    record(tap, 2, "-q", "--host-root", host, "--container-socket", "/run/engine.sock", "-o", path("mounted.col"))
    tap.ok(names_of("mounted.col") == sorted((cri.NAME, "lonely")), "the socket lies below --host-root", names_of("mounted.col"))
    record(tap, 2, "-q", "--container-socket", path("no.sock"), "-o", path("mute.col"))
    tap.ok(names_of("mute.col") == sorted((pod[:12], plain[:12])), "short ids when no engine answers", names_of("mute.col"))


with cri.pod(tap) as made:
    if made:
        check(made)
tap.finish()
