#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What was acknowledged stays, snapshots too: kill -9 under load, a full disk, a damaged partition. 5 rounds with --quick, 59 with --sampled, else 200."""
import glob
import http.client
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from collector import Collector, fill_disk, pprof
from judge import rounds_to_show
from support import QUICK, SAMPLED, Profile, Tap, hearth, path

tap = Tap("crash")
# Sampled: as many rounds as show, when none loses anything, that a kill loses something with a chance of at most 5 %.
ROUNDS = 5 if QUICK else rounds_to_show(0.05) if SAMPLED else 200
SENDERS = 8
seed = int(next((a.split("=")[1] for a in sys.argv if a.startswith("--seed=")), time.time_ns() % 10**6))
tap.note(f"seed {seed}")
chance = random.Random(seed)


def body(number):
    """A profile that tells its number in a frame's name."""
    names = [f"f{(number * 7 + i) % 97}" for i in range(20)]
    return pprof([(["main", *names[:i]], [i, 10 * i]) for i in range(1, 20)] + [(["main", f"number_{number}"], [1, number + 1])])


class Sender(threading.Thread):
    """Uploads one after the other on one connection until it breaks; notes what was acknowledged."""

    def __init__(self, port, numbers, noted):
        super().__init__()
        self.port, self.numbers, self.noted = port, numbers, noted

    def run(self):
        import json
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for n in self.numbers:
            try:
                connection.request("POST", f"/api/0/profiles?service=s{n % 5}&type=cpu", body(n))
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException):
                break
            if answer.status == 200:
                self.noted[json.loads(text)["body"]["id"]] = n
        connection.close()


def content_is(c, identity, number):
    answer = c.get(f"/api/0/profiles/{identity}")
    if answer.status != 200:
        return False
    open(path("one.pb.gz"), "wb").write(answer.body)
    found = {s.names[-1]: s.values for s in Profile(path("one.pb.gz")).samples}
    return found.get(f"number_{number}") == [1, number + 1] and len(found) >= 19


def rounds():
    noted, lost, wrong, slowest, next_number = {}, 0, 0, 0.0, 0
    c = Collector()
    c.start()
    for _ in range(ROUNDS):
        fresh = {}
        senders = [Sender(c.port, range(next_number + i, next_number + 100000, SENDERS), fresh) for i in range(SENDERS)]
        for s in senders:
            s.start()
        time.sleep(chance.uniform(0.05, 0.6))
        c.stop(signal.SIGKILL)
        for s in senders:
            s.join()
        next_number += 100000
        noted.update(fresh)
        begin = time.monotonic()
        c.start()
        slowest = max(slowest, time.monotonic() - begin)
        listed = set()
        for service in range(5):
            answer = c.get(f"/api/0/profiles?service=s{service}&from=-1d&to=now&limit=100000")
            listed |= {p["id"] for p in answer.json.get("body", [])}
        lost += len(set(fresh) - listed)
        some = chance.sample(sorted(fresh), min(20, len(fresh)))
        wrong += sum(not content_is(c, i, fresh[i]) for i in some)
    missing = len(set(noted) - listed)
    tap.ok(noted and lost == 0 and missing == 0, f"{ROUNDS} times kill -9: nothing acknowledged is lost",
           f"{len(noted)} acknowledged, {lost + missing} lost")
    tap.ok(wrong == 0, "what is read back is what was sent", wrong)
    tap.ok(slowest < 10, "it serves again soon", f"at most {slowest:.2f} s")
    merged = c.get("/api/0/profiles/merge?service=s0&type=cpu&from=-1d&to=now")
    tap.ok(merged.status == 200 and int(merged.headers["X-Profiles-Merged"]) >= sum(n % 5 == 0 for n in noted.values()), "and merges all",
           merged.headers["X-Profiles-Merged"])
    c.stop()
    done = hearth("store", "check", "--data-dir", c.folder)
    tap.ok(done.returncode == 0 and ": 0 problems" in done.stdout, "hearth store check finds nothing", done.stdout.strip() + done.stderr)


class Keeper(threading.Thread):
    """Keeps snapshots until the collector is gone; notes those that were acknowledged."""

    def __init__(self, c, noted):
        super().__init__()
        self.c, self.noted = c, noted

    def run(self):
        while True:
            try:
                answer = self.c.ask("POST", "/api/v1/snapshots?service=kept", b'{"title": "kept"}')
            except (OSError, http.client.HTTPException):
                return
            if answer.status == 201:
                self.noted.append(answer.json["id"])


def snapshots():
    count, odd, half, noted, lost = 3 if QUICK else 20, 0, 0, [], 0
    c = Collector("--snapshots", "60000", log="snapshots.log")
    c.start()
    c.upload("kept", "cpu", body(1))
    for _ in range(count):
        keepers = [Keeper(c, noted) for _ in range(4)]
        for keeper in keepers:
            keeper.start()
        time.sleep(chance.uniform(0.1, 0.5))
        c.stop(signal.SIGKILL)
        for keeper in keepers:
            keeper.join()
        c.start()
        listed = c.get("/api/v1/snapshots").json
        odd += listed["odd"]
        half += len(glob.glob(os.path.join(c.folder, "snapshot-*.tmp")))
        lost += len(set(noted) - {s["id"] for s in listed["snapshots"]})
    tap.ok(noted and lost == 0 and odd == 0 and half == 0, f"{count} times kill -9 while snapshots are kept: none is lost, none is half",
           f"{len(noted)} acknowledged, {lost} lost, {odd} odd, {half} temporary files")
    some = [c.get(f"/api/v1/flame?snapshot={i}&sample=cpu").json["total"][0] for i in chance.sample(noted, min(50, len(noted)))]
    tap.ok(set(some) == {sum(10 * i for i in range(1, 20)) + 2}, "what is read back is what was kept", set(some))
    c.stop()
    done = hearth("store", "check", "--data-dir", c.folder)
    tap.ok(done.returncode == 0 and " snapshots: 0 problems" in done.stdout, "hearth store check reads them all", done.stdout.strip() + done.stderr)


def disk_full():
    if os.geteuid() != 0:
        tap.skip("a full disk", "needs root")
        return
    folder = path("small")
    os.mkdir(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], capture_output=True).returncode:
        tap.skip("a full disk", "cannot mount a tmpfs")
        return
    try:
        with Collector("--retention-free", "0", folder=folder) as c:
            first = c.upload("full", "cpu", body(1))
            fill_disk(os.path.join(folder, "filler"))
            statuses = [c.upload("full", "cpu", pprof([([f"{i}_{j}" for j in range(200)], [1, 1])])).status for i in range(60)]
            tap.ok(507 in statuses and set(statuses) <= {200, 507}, "a full disk is 507", sorted(set(statuses)))
            answer = c.upload("full", "cpu", pprof([(["x" * 5000 + str(i) for i in range(200)], [1, 1])]))
            tap.ok(answer.status == 507 and "full" in answer.error and answer.headers["Retry-After"], "with the reason", answer)
            acknowledged = 1 + statuses.count(200)
            read = c.get(f"/api/0/profiles/{first.json['body']['id']}")
            merged = c.get("/api/0/profiles/merge?service=full&type=cpu&from=-1h&to=now")
            tap.ok(read.status == 200 and merged.headers["X-Profiles-Merged"] == str(acknowledged), "reads go on",
                   merged.headers["X-Profiles-Merged"])
            os.unlink(os.path.join(folder, "filler"))
            again = [c.upload("full", "cpu", body(i)).status for i in range(5)]
            tap.ok(again == [200] * 5, "with room again it takes uploads by itself", again)
            total = c.get("/api/0/profiles?service=full&from=-1h&to=now").headers["X-Total-Count"]
            tap.ok(total == str(acknowledged + 5), "all that was acknowledged is there", total)
            tap.ok(c.stop() == 0, "and it ends well")
        done = hearth("store", "check", "--data-dir", folder)
        tap.ok(": 0 problems" in done.stdout, "hearth store check finds nothing", done.stdout.strip() + done.stderr)
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True)


def disk_fails():
    """Every sync fails with EIO for a while: strace puts that in front of the kernel."""
    if not shutil.which("strace"):
        tap.skip("a failing disk", "needs strace")
        return
    with Collector() as c:
        kept = [c.upload("eio", "cpu", body(i)).json["body"]["id"] for i in range(3)]
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e",
                                   "inject=fdatasync,fsync:error=EIO", "-p", str(c.process.pid)], stderr=subprocess.DEVNULL)
        time.sleep(2)
        failed = [c.upload("eio", "cpu", body(i)) for i in range(3, 9)] if tracer.poll() is None else []
        read = c.get(f"/api/0/profiles/{kept[0]}").status
        tracer.terminate()
        tracer.wait()
        if not failed:
            tap.skip("a failing disk", "strace cannot attach")
            return
        tap.ok({a.status for a in failed} == {500} and "the disk failed" in failed[0].error, "what cannot be synced is 500 with the reason", failed[0])
        tap.ok(read == 200, "reads go on", read)
        time.sleep(0.5)
        again = [c.upload("eio", "cpu", body(i)) for i in range(9, 12)]
        tap.ok([a.status for a in again] == [200] * 3, "once the disk works it takes uploads by itself", again)
        kept += [a.json["body"]["id"] for a in again]
        c.stop(signal.SIGKILL)
        c.start()
        listed = {p["id"] for p in c.get("/api/0/profiles?service=eio&from=-1h&to=now").json["body"]}
        tap.ok(set(kept) <= listed, "all that was acknowledged is there", f"{len(listed)} of {len(kept)}")


def damage():
    """Two days; one file is overwritten while nobody runs, and once while it is in use."""
    days = [1709208000, 1709208000 + 86400]
    with Collector("--retention", "0", "--retention-free", "0") as c:
        ids = [c.upload("two", "cpu", pprof([(["main"], [1, 1])], time_ns=d * 10**9)).json["body"]["id"] for d in days]
        c.stop()
        files = sorted(glob.glob(os.path.join(c.folder, "2024-*.db")))
        tap.ok(len(files) == 2, "a file for each day", [os.path.basename(f) for f in files])
        for leftover in glob.glob(files[0] + "-*"):
            os.unlink(leftover)
        with open(files[0], "r+b") as f:
            f.write(os.urandom(os.path.getsize(files[0])))
        c.start()
        one, other = c.get(f"/api/0/profiles/{ids[0]}").status, c.get(f"/api/0/profiles/{ids[1]}").status
        tap.ok((one, other) == (404, 200), "a damaged file costs its own day only", (one, other))
        tap.ok(c.metric("hearth_store_partitions_damaged") == 1 and glob.glob(os.path.join(c.folder, "*.damaged")), "it is set aside and said",
               os.listdir(c.folder))
        later = c.upload("two", "cpu", pprof([(["main"], [1, 1])], time_ns=days[0] * 10**9))
        tap.ok(later.status == 200 and c.get(f"/api/0/profiles/{later.json['body']['id']}").status == 200, "its day takes uploads again", later)


rounds()
snapshots()
disk_full()
disk_fails()
damage()
tap.finish()
