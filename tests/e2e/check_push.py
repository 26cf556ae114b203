#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth record --push into hearth serve: a profile per service and window, none lost while the collector is down, killed or
asks for a token, spool bounded. --full stops the collector for 60 s."""
import re
import signal
from urllib.parse import quote

from collector import *
from support import *

tap = Tap("push")
need(tap)
DOWN = 5 if QUICK else 60
spool = path("spool")


def listed(collector, service, labels=""):
    answer = collector.get(f"/api/0/profiles?service={quote(service)}&type=cpu&from=-1h&to=now&limit=100000{labels}")
    return answer.json["body"] if answer.status == 200 else []


def merged(collector, service, kind="cpu"):
    answer = collector.get(f"/api/0/profiles/merge?service={quote(service)}&type={kind}&from=-1h&to=now")
    file = path("merged.pb.gz")
    with open(file, "wb") as f:
        f.write(answer.body)
    return Profile(file) if answer.status == 200 else None


def spooled():
    return sorted(n for n in os.listdir(spool)) if os.path.isdir(spool) else []


def push(collector, seconds, *args, **options):
    return hearth("record", "-d", seconds, "--window", "1s", "--push", collector.url, "--spool-dir", spool, *args, timeout=seconds + 120,
                  **options)


# A name of its own: the service has only its samples, whatever else runs.
NAME = f"push-load-{os.getpid()}"
shutil.copy(workload("spin"), path(NAME))
load = start(path(NAME), 600, 1)

# What arrives is what was sampled.
with Collector() as collector:
    done = push(collector, 4, "--label", "env=a,b", "--service-name", "g", "-o", path("whole.pb.gz"))
    tap.ok(done.returncode == 0 and "Pushed" in done.stdout, "record --push", done.stderr[-300:] + done.stdout[-100:])
    tap.ok(not spooled(), "nothing stays in the spool", spooled())
    windows = [Profile(path(n)) for n in sorted(os.listdir(scratch)) if n.startswith("whole")]
    sampled = sum(total(w.of(load)) for w in windows)
    p = merged(collector, NAME)
    tap.ok(p and total(p.of(load)) == sampled and total(p.samples) == sampled, "its service has the samples of the load, all of them",
           f"{total(p.samples) if p else None} of {sampled}")
    one = listed(collector, NAME, "&labels=env%3Da%252Cb")
    labels = {l["key"]: l["value"] for l in one[0]["labels"]} if one else {}
    tap.ok(len(one) >= 4 and labels == {"env": "a,b", "group": "g", "host": os.uname().nodename, "service_kind": "executable"}, "a profile per window, with its labels",
           f"{len(one)} {labels}")
    services = collector.get("/api/0/services").json["body"]
    everything = sum(total(merged(collector, s).samples) for s in services)
    tap.ok(everything == sum(total(w.samples) for w in windows), "the services add up to the machine", f"{everything} in {len(services)}")

    # Waits are profiles of their own.
    done = push(collector, 2, "--off-cpu")
    # On a quiet machine the load itself never waits, and who does has no service yet.
    services = collector.get("/api/0/services").json["body"]
    waits = next(filter(None, (merged(collector, s, "offcpu") for s in services)), None)
    types = [t for t, _ in waits.types] if waits else None
    tap.ok(done.returncode == 0 and types == ["waits", "off_cpu"], "--off-cpu: type offcpu", f"{types} {services}")

# The collector is down for a while, and killed.
with Collector(folder=path("down")) as collector:
    seconds = DOWN + 8
    recorder = start(HEARTH, "record", "-d", seconds, "--window", "1s", "--push", collector.url, "--spool-dir", spool, "-p", load.pid,
                     "-o", path("down.pb.gz"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    collector.stop(signal.SIGKILL)
    time.sleep(DOWN)
    waiting = len(spooled())
    collector.start()
    out, err = recorder.communicate(timeout=seconds + 120)
    got = listed(collector, NAME)
    tap.ok(waiting >= DOWN * 0.7, f"down for {DOWN} s: windows wait on disk", waiting)
    tap.ok(recorder.returncode == 0 and "do not" not in err and err.count("does not take profiles now") == 1, "said once", err[-300:])
    windows = [Profile(path(n)) for n in sorted(os.listdir(scratch)) if n.startswith("down_")]
    sampled = [total(w.samples) for w in windows if w.samples]  # on a busy machine there are windows without any
    tap.ok(len(windows) >= seconds - 2 and len(got) == len(sampled), f"no window of {seconds} s is lost, none is there twice",
           f"{len(got)} of {len(sampled)} with samples, {len(windows)} in all")
    tap.ok(not spooled(), "nothing stays in the spool", spooled())
    p = merged(collector, NAME)
    tap.ok(total(p.samples) == sum(sampled), "nor is a sample", f"{total(p.samples)} of {sum(sampled)}")

    # It is down when the session ends: what is left waits for the next one.
    before = len(got)
    collector.stop()
    begin = time.monotonic()
    done = push(collector, 3, "-p", load.pid)
    took = time.monotonic() - begin
    left = len(spooled())
    tap.ok(done.returncode == 0 and left >= 3 and f"{left} wait in {spool}" in done.stdout, "what is left is said", done.stdout[-200:])
    tap.ok(took < 16, "and not waited for long", f"{took:.1f} s")
    collector.start()
    done = push(collector, 2, "-p", load.pid)
    tap.ok(done.returncode == 0 and not spooled(), "the next run sends it", done.stdout[-200:])
    tap.ok(before + left + 2 <= len(listed(collector, NAME)) <= before + left + 3, "all of it", f"{before}+{left} {len(listed(collector, NAME))}")

    # Killed while it sends: nothing is lost, nothing is there twice.
    collector.stop()
    recorder = start(HEARTH, "record", "--window", "1s", "--push", collector.url, "--spool-dir", spool, "-p", load.pid)
    time.sleep(4)
    recorder.kill()
    recorder.wait()
    left = len(spooled())
    collector.start()
    count = len(listed(collector, NAME))
    done = push(collector, 1, "-p", load.pid)
    tap.ok(left >= 2 and not spooled() and len(listed(collector, NAME)) >= count + left, "a killed recorder's windows are sent by the next",
           f"{left} left, {len(listed(collector, NAME)) - count} came")

# Tokens.
folder = path("tokens")
os.mkdir(folder)
token = hearth("token", "create", "--scope", "ingest", "--data-dir", folder).stdout.strip().split("\n")[-1].split()[-1]
with Collector(folder=folder) as collector:
    done = push(collector, 1, "-p", load.pid)
    tap.ok(done.returncode == 1 and "401" in done.stderr and "refused" in done.stderr, "without the token: refused, exit 1", done.stderr[-300:])
    left = len(spooled())
    tap.ok(left >= 1 and done.stderr.count("--token-file") == 1, "what was gathered is kept, and the remedy said once", f"{left}, {done.stderr[-300:]}")
    done = push(collector, 1, "-p", load.pid, env={**os.environ, "HEARTH_TOKEN": token})
    tap.ok(done.returncode == 0, "HEARTH_TOKEN", done.stderr[-300:])
    count = int(re.search(r"Pushed to .*: (\d+) profiles", done.stdout)[1])
    tap.ok(count > left and not spooled(), "the next run with a right token sends what was kept, too", f"{count} of {left} and its own")
    with open(path("token"), "w") as f:
        f.write(token + "\n")
    done = push(collector, 1, "-p", load.pid, "--token-file", path("token"))
    tap.ok(done.returncode == 0, "--token-file", done.stderr[-300:])
    tap.ok(token not in open(collector.log).read(), "the token is in no log")

# TLS: a certificate that nobody vouches for is refused.
if QUICK:
    tap.note("TLS and the full disk: in the long form")
elif shutil.which("openssl"):
    made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2, "-keyout", path("key.pem"),
               "-out", path("cert.pem"), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    os.chmod(path("key.pem"), 0o644)
    port = free_port()
    server = start(HEARTH, "serve", "--addr", f"127.0.0.1:{port}", "--data-dir", path("tls"), "--tls-cert", path("cert.pem"),
                   "--tls-key", path("key.pem"), stderr=open(path("tls.log"), "w"))
    for _ in range(100):
        if "listening" in open(path("tls.log")).read():
            break
        time.sleep(0.1)
    url = f"https://localhost:{port}"
    base = ("record", "-d", 1, "-p", load.pid, "--window", "1s", "--spool-dir", path("tls-spool"), "--push")
    done = hearth(*base, url)
    tap.ok(done.returncode == 0 and "certificate" in done.stdout + done.stderr and "wait in" in done.stdout, "TLS: an unknown certificate, nothing is sent",
           done.stdout[-200:])
    done = hearth(*base, url, "--ca-file", path("cert.pem"))
    tap.ok(done.returncode == 0 and "wait in" not in done.stdout, "TLS: --ca-file", done.stdout[-200:])
    done = hearth(*base, f"https://127.0.0.1:{port}", "--ca-file", path("cert.pem"))
    tap.ok("wait in" in done.stdout, "TLS: another name than the certificate's", done.stdout[-200:])
    done = hearth(*base, f"https://127.0.0.1:{port}", "--insecure")
    tap.ok(done.returncode == 0 and "wait in" not in done.stdout, "TLS: --insecure", done.stdout[-200:])
    server.terminate()
else:
    tap.skip("TLS", "needs openssl")

# A full disk: the newest are kept, and what is dropped is said.
full = path("full")
os.mkdir(full)
if QUICK:
    pass
elif subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "none", full]).returncode == 0:
    done = hearth("record", "-d", 10, "--window", "1s", "--push", "127.0.0.1:1", "--spool-dir", full, timeout=120)
    left = len([n for n in os.listdir(full) if n.endswith(".profile")])
    subprocess.run(["umount", full])
    tap.ok(done.returncode == 1 and left >= 1 and "dropped" in done.stderr, "disk full: the oldest are dropped, counted, said",
           f"{left} left; {done.stderr[-200:]}")
else:
    tap.skip("disk full", "cannot mount a tmpfs")

# What cannot work is said at the start.
for args, reason in ((["--label", "x"], "KEY=VALUE"), (["--token-file", path("nowhere")], "nowhere"), (["--spool-dir", "/proc/x"], "/proc/x")):
    done = hearth("record", "-d", 1, "--push", "127.0.0.1:1", *args)
    tap.ok(done.returncode in (1, 2) and reason in done.stderr, f"record --push {args[0]}: says what is wrong", done.stderr.strip())
tap.finish()
