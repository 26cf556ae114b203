# SPDX-License-Identifier: Apache-2.0
"""A containerd of its own, with pods and containers that are made through CRI as Kubernetes does it."""
import contextlib
import hashlib
import io
import json
import struct
import tarfile

from engines import sweep_groups
from support import *

IMAGE = "docker.io/library/hearth-e2e-cri:1"
UID = "0f3c2a1e-1111-2222-3333-444455556666"
NAME = f"k8s_api_shop-7d9_prod_{UID}_3"
BOX = "hearth-cri-box"  # the program
TOOLS = ("containerd", "ctr", "runc", "curl")
socket = path("containerd.sock")

# --- protobuf and gRPC, without any code of the project ---


def number(value):
    out = b""
    while value > 0x7F:
        out, value = out + bytes((value & 0x7F | 0x80,)), value >> 7
    return out + bytes((value,))


def message(*items):
    """(field, value): texts, bytes, numbers; dicts are maps."""
    out = b""
    for field, value in items:
        if isinstance(value, int):
            out += number(field << 3) + number(value)
        elif isinstance(value, dict):
            out += b"".join(message((field, message((1, k), (2, v)))) for k, v in value.items())
        else:
            data = value.encode() if isinstance(value, str) else value
            out += number(field << 3 | 2) + number(len(data)) + data
    return out


def call(tap, method, request=b"", service="runtime.v1.RuntimeService"):
    """The answer's fields; None after an error, which is noted."""
    with open(path("request"), "wb") as f:
        f.write(struct.pack(">BI", 0, len(request)) + request)
    done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "--unix-socket", socket, "-H", "Content-Type: application/grpc", "-H", "TE: trailers",
                           "-D", path("headers"), "--data-binary", "@" + path("request"), f"http://localhost/{service}/{method}"],
                          capture_output=True, timeout=120)
    headers = open(path("headers"), errors="replace").read() if os.path.exists(path("headers")) else ""
    if done.returncode or "grpc-status: 0" not in headers:
        said = re.search(r"grpc-message: (.*)", headers)
        tap.note(f"{method}: {urllib.parse.unquote(said[1]) if said else done.stderr[-300:]}")
        return None
    return list(fields(done.stdout[5:]))


def first(answer, field=1):
    return next(v.decode() for f, v in answer if f == field)


# --- an image, without an engine ---


def write_image(name, **programs):
    def tar_of(entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for entry, data, mode in entries:
                info = tarfile.TarInfo(entry)
                info.size, info.mode = len(data), mode
                tar.addfile(info, io.BytesIO(data))
        return out.getvalue()

    layer = tar_of([(program, open(file, "rb").read(), 0o755) for program, file in programs.items()])
    config = json.dumps({"architecture": "amd64" if os.uname().machine == "x86_64" else "arm64", "os": "linux", "config": {"Cmd": ["/pause"]},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]).encode()
    with open(name, "wb") as f:
        f.write(tar_of([("layer.tar", layer, 0o644), ("config.json", config, 0o644), ("manifest.json", manifest, 0o644)]))


def configure():
    with open(path("config.toml"), "w") as f:
        f.write(f"""version = 2
root = "{path('root')}"
state = "{path('state')}"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{path('cni')}"
    conf_dir = "{path('cni')}"
""")


NODE = 2
SANDBOX = message((1, message((1, "shop-7d9"), (2, UID), (3, "prod"), (4, 0))), (3, path("logs")),
                  (8, message((2, message((1, message((1, NODE), (3, NODE))))))))
LABELS = {"io.kubernetes.container.name": "api", "io.kubernetes.pod.name": "shop-7d9", "io.kubernetes.pod.namespace": "prod", "io.kubernetes.pod.uid": UID}


def container(name, labels, annotations):
    return message((1, message((1, name), (2, 0))), (2, message((1, IMAGE))), (3, "/" + BOX), (4, "100"), (4, "1"), (9, labels), (10, annotations), (11, name + ".log"),
                   (15, message((2, message((3, message((1, NODE), (3, NODE))))))))


def run_container(tap, sandbox, config):
    created = call(tap, "CreateContainer", message((1, sandbox), (2, config), (3, SANDBOX)))
    identity = first(created) if created else None
    if identity and call(tap, "StartContainer", message((1, identity))) is None:
        return None
    return identity


def build_image(tap):
    with open(path("pause.c"), "w") as f:
        f.write("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")  # a pod lives as long as it
    for program, source in (("pause", path("pause.c")), (BOX, os.path.join(HERE, "workloads", "spin.c"))):
        built = run("cc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-static", "-o", path(program), source, "-pthread")
        tap.ok(built.returncode == 0, f"a static program {program} is built", built.stderr[-200:])
    write_image(path("cri-image.tar"), **{BOX: path(BOX), "pause": path("pause")})


def start_engine():
    """Return: the daemon, and why it does not take the image, or "" when all is well."""
    configure()
    for folder in ("cni", "logs"):
        os.mkdir(path(folder))
    with open(path("containerd.log"), "w") as log:
        daemon = start("containerd", "-c", path("config.toml"), stdout=log, stderr=log)
    until = time.monotonic() + 30
    while run("ctr", "-a", socket, "version").returncode and time.monotonic() < until and daemon.poll() is None:
        time.sleep(0.3)
    imported = run("ctr", "-a", socket, "-n", "k8s.io", "images", "import", path("cri-image.tar"))
    return daemon, (imported.stderr + open(path("containerd.log")).read())[-300:].replace("\n", " ") if imported.returncode else ""


@contextlib.contextmanager
def pod(tap):
    """A pod without containers. Gives its sandbox; None where containerd does not start, which is said."""
    made = [f for f in ("/run/containerd/s", "/run/containerd") if not os.path.exists(f)]
    build_image(tap)
    daemon, why = start_engine()
    sandbox = None
    try:
        if why:
            tap.skip("a pod", "containerd does not start: " + why)
        else:
            tap.ok(call(tap, "Version") is not None, "the CRI answers")
            ran = call(tap, "RunPodSandbox", message((1, SANDBOX)))
            sandbox = first(ran) if tap.ok(ran is not None, "a pod runs") else None
        yield sandbox
    finally:
        if sandbox:
            call(tap, "StopPodSandbox", message((1, sandbox)))
            call(tap, "RemovePodSandbox", message((1, sandbox)))
        daemon.terminate()
        stopped(daemon)
        for folder in made:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # unless another engine uses it
        sweep_groups("k8s.io")
