#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth agent says which cloud the machine is of: real HTTP servers at 169.254.169.254 of network namespaces of their own, also hanging and
hostile ones; and the platform for big data, by files below --host-root."""
import json

from support import *

tap = Tap("cloud")
need(tap, "unshare", "ip")

SERVER = r'''
import http.server, json, os, sys, threading, time
mode, log = sys.argv[1], sys.argv[2]
AWS = {"accountId": "1234", "availabilityZone": "eu-west-1b", "imageId": "ami-5", "instanceId": "i-7", "instanceType": "m5.large", "region": "eu-west-1"}
GCP = {"id": 912345678901234, "image": "projects/x/images/y", "machineType": "projects/1/machineTypes/e2-small", "name": "vm", "preempted": "FALSE",
       "scheduling": {"preemptible": "TRUE"}, "zone": "projects/1/zones/us-a"}
AZURE = {"location": "weu", "name": "vm", "resourceGroupName": "g", "resourceId": "/r", "subscriptionId": "s", "vmId": "v", "vmSize": "D2", "zone": "1"}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, status=200):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        with open(log, "a") as f:
            f.write("PUT " + self.path + "\n")
        if mode == "aws" and self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"] == "120":
            return self.answer("the-token")
        if mode == "hostile":
            return self.answer(b"tok\r\nX-Other: en" + b"\0" * 10)
        self.answer("", 404)

    def do_GET(self):
        with open(log, "a") as f:
            f.write("GET " + self.path + "\n")
        if mode == "hang":
            time.sleep(60)
        if mode == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b'{"instanceId": "' + b"x" * 65536)
            except OSError:
                return
        if mode == "hostile":
            return self.answer("[" * 60000 if "compute" in self.path else '{"instanceId": {"zone": "\\ud800"}, "vmId": 5}')
        if mode == "redirect":
            self.send_response(302)
            self.send_header("Location", "/latest/elsewhere")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        is_known = self.headers["X-aws-ec2-metadata-token"] == "the-token" if mode == "aws" else mode == "aws1"
        if is_known and self.path == "/latest/dynamic/instance-identity/document":
            return self.answer(json.dumps(AWS))
        if is_known and self.path == "/latest/meta-data/instance-life-cycle":
            return self.answer("spot\n")
        if mode == "gcp" and self.path == "/computeMetadata/v1/instance/?recursive=true" and self.headers["Metadata-Flavor"] == "Google":
            return self.answer(json.dumps(GCP))
        if mode == "azure" and self.path == "/metadata/instance/compute/?api-version=2019-08-15" and self.headers["Metadata"] == "true":
            return self.answer(json.dumps(AZURE))
        if mode == "fargate" and self.path == "/v4/here":
            return self.answer(json.dumps({"ContainerARN": "arn:aws:ecs:1"}))
        self.answer("", 404)

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(("169.254.169.254", 80), Handler).serve_forever()
'''
with open(path("server.py"), "w") as f:
    f.write(SERVER)


def agent(mode, *options, env=None):
    """The metadata of one cycle of two seconds, in namespaces with that server; requests; seconds it took."""
    folder, log = path(f"out-{mode}"), path(f"log-{mode}")
    script = f"""
ip link set lo up
{'' if mode == 'nobody' else 'ip addr add 169.254.169.254/32 dev lo'}
{'' if mode in ('nobody', 'closed') else f'{sys.executable} {path("server.py")} {mode} {log} & sleep 2'}
exec {HEARTH} agent -d 2 -o {folder} --no-flamegraph --disable-pidns-check --log-file {path('agent.log')} --pid-file {path('agent.pid')} {' '.join(options)}
"""
    begin = time.monotonic()
    done = run("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, env={**os.environ, **(env or {})})
    took = time.monotonic() - begin
    if not tap.ok(done.returncode == 0, f"{mode}: the agent ends well", f"exit {done.returncode} {(done.stderr + done.stdout)[-300:].strip() if done.returncode else ''}"):
        return {}, [], took
    head = json.loads(open(f"{folder}/last_profile.col").readline()[2:])
    return head["metadata"], open(log).read().split("\n")[:-1] if os.path.exists(log) else [], took


WANTED = {
    "aws": ("aws", {"provider": "aws", "region": "eu-west-1", "zone": "eu-west-1b", "instance_type": "m5.large", "life_cycle": "spot", "account_id": "1234",
                    "image_id": "ami-5", "instance_id": "i-7"}),
    "gcp": ("gcp", {"provider": "gcp", "zone": "us-a", "instance_type": "e2-small", "preempted": False, "preemptible": True, "instance_id": "912345678901234",
                    "image_id": "projects/x/images/y", "name": "vm"}),
    "azure": ("azure", {"provider": "azure", "instance_type": "D2", "zone": "1", "region": "weu", "subscription_id": "s", "resource_group_name": "g",
                        "resource_id": "/r", "instance_id": "v", "name": "vm", "image_info": None}),
}
WANTED["aws1"] = WANTED["aws"]
for mode, (provider, info) in WANTED.items():
    found, requests, _ = agent(mode)
    tap.ok((found.get("cloud_provider"), found.get("cloud_info")) == (provider, info), f"{mode}: cloud_provider and cloud_info", (found.get("cloud_provider"), found.get("cloud_info")))
    tap.ok(len(requests) == len(set(requests)), f"{mode}: nothing is asked twice", requests)
    keys = list(found)
    tap.ok(keys[:1] == ["cloud_provider"] and keys[keys.index("cloud_info") - 1] == "spawn_uptime_ms" if "cloud_info" in keys else False, f"{mode}: both at their places")
found, requests, _ = agent("fargate", env={"AWS_EXECUTION_ENV": "AWS_ECS_FARGATE", "ECS_CONTAINER_METADATA_URI_V4": "http://169.254.169.254/v4/here", "AWS_REGION": "eu-1"})
if found:
    tap.ok(found.get("cloud_info") == {"provider": "aws", "execution_env": "AWS_ECS_FARGATE", "region": "eu-1", "container_arn": "arn:aws:ecs:1"}, "fargate", found.get("cloud_info"))
    tap.ok(requests == ["GET /v4/here"], "fargate: nobody else is asked", requests)
for mode in ("hang", "endless", "hostile", "redirect", "closed", "nobody"):
    found, requests, took = agent(mode)
    tap.ok(found.get("cloud_provider") == "unknown" and "cloud_info" not in found, f"{mode}: unknown", found.get("cloud_provider"))
    tap.ok(took < 20, f"{mode}: nobody waits for it", f"{took:.1f} s")
_, requests, _ = agent("aws", "--disable-metadata-collection")
tap.ok(requests.count("PUT /latest/api/token") == 1, "--disable-metadata-collection asks nobody", requests)

PLATFORMS = (
    ("emr", "mnt/var/lib/info/extraInstanceData.json", '{"a": 1, "releaseLabel": "emr-6.1"}', {"provider": "emr", "provider_version": "emr-6.1"}),
    ("databricks", "databricks/DBR_VERSION", "11.3\n", {"provider": "databricks", "provider_version": "11.3"}),
    ("databricks without a version", "databricks/spark/conf/metrics.properties", "x", {"provider": "databricks", "provider_version": "unknown"}),
    ("dataproc", "etc/environment", "PATH=/bin\nDATAPROC_IMAGE_VERSION=2.0\n", {"provider": "dataproc", "provider_version": "2.0"}),
    ("cloudera", "opt/cloudera/cm-agent/cm_version.properties", "x=1\nversion=7.4\n", {"provider": "cloudera", "provider_version": "7.4"}),
    ("broken JSON", "mnt/var/lib/info/extraInstanceData.json", '{"releaseLabel": ', {}),
    ("none", "etc/nothing", "", {}),
)
for n, (name, file, text, want) in enumerate(PLATFORMS):
    root = path(f"host{n}")
    os.makedirs(os.path.dirname(f"{root}/{file}"))
    with open(f"{root}/{file}", "w") as f:
        f.write(text)
    os.makedirs(f"{root}/proc")
    os.makedirs(f"{root}/sys")
    # What the first process of the host has counts before what lies below --host-root.
    over = f"mount --bind {root}/{file} /{file} &&" if os.path.exists("/" + file) else ""
    done = run("unshare", "--mount", "sh", "-c", f"{over} mount --rbind /sys {root}/sys && mount --rbind /proc {root}/proc && "
               f"exec {HEARTH} record -d 1 -q --host-root {root} -o {path(f'{n}.col')}")
    found = json.loads(open(path(f"{n}.col")).readline()[2:])["metadata"]["big_data"] if done.returncode == 0 else done.stderr[-200:]
    tap.ok(found == want, f"big data: {name}", found)
tap.finish()
