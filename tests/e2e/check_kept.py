#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing kept is dropped: snapshots, small and full disks, wrong clocks, odd files in the data directory, folders that are refused."""
import glob
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import time

from collector import Collector, pprof
from support import HERE, QUICK, Tap, hearth, path, run

tap = Tap("kept")
DAY = 86400
SECOND = 10**9


def at(days_ago, number=1):
    """A small profile of a moment so many days ago (below 0: ahead)."""
    return pprof([(["main", f"number_{number}"], [1, 10])], time_ns=int(time.time() - days_ago * DAY) * SECOND)


def large(days_ago):
    """One that takes half a MiB of disk: names that do not repeat."""
    return pprof([([os.urandom(8000).hex()], [1, 1]) for _ in range(64)], time_ns=int(time.time() - days_ago * DAY) * SECOND)


def day_of(days_ago):
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() - days_ago * DAY))


def days_of(folder):
    return sorted({os.path.basename(f)[:10] for f in glob.glob(os.path.join(folder, "2*.db")) if os.path.getsize(f)})


def total(c):
    """Profiles that can be read: the list asks every file."""
    return int(c.get("/api/0/profiles?service=kept&from=0&to=4102444800&limit=100000").headers["X-Total-Count"])


def log_of(c):
    with open(c.log, errors="replace") as f:
        return f.read()


class Mounted:
    """A file system of its own, of @mib MiB."""

    def __init__(self, name, mib):
        self.folder, self.mib = path(name), mib

    def __enter__(self):
        os.mkdir(self.folder)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.mib}m", "tmpfs", self.folder], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], capture_output=True)

    def fill(self, leave=0):
        """Up to @leave bytes; the filler is no name of hearth's."""
        name = os.path.join(self.folder, "filler")
        with open(name, "ab", buffering=0) as f:
            try:
                while leave == 0 or self.free() > leave:
                    f.write(bytes(min(1 << 16, self.free() - leave if leave else 1 << 16) or 4096))
            except OSError:
                pass
            try:
                while leave == 0:
                    f.write(bytes(4096))
            except OSError:
                pass

    def free(self):
        s = os.statvfs(self.folder)
        return s.f_bavail * s.f_frsize


def put_days(c, each):
    """Profiles of four days, of tomorrow and of today, uploaded in that order. Return: how many."""
    for days_ago in (3, 2, 1, -0.99, 0):
        statuses = {c.upload("kept", "cpu", large(days_ago)).status for _ in range(each)}
        if statuses != {200}:
            raise RuntimeError(f"uploads: {statuses}")
    return 5 * each


def small_disk():
    each = 8 if QUICK else 16
    with Mounted("small", 300) as disk:
        c = Collector(folder=disk.folder, log="small.log", user="root")
        c.start()
        count = put_days(c, each)
        kept = days_of(disk.folder)
        c.stop()
        c.start()
        time.sleep(1)
        tap.ok(days_of(disk.folder) == kept and total(c) == count, "300 MB, a goal of 1 GiB that can never be reached: all days stay",
               f"{len(kept)} days, {total(c)} of {count}")
        c.stop()
        disk.fill(leave=12 << 20)
        c.start()
        time.sleep(1)
        left, free = days_of(disk.folder), disk.free()
        lines = [line for line in log_of(c).splitlines() if "a day is removed" in line]
        gone = [d for d in kept if d not in left]
        tap.ok(gone == kept[:len(gone)] and 1 <= len(gone) <= 2 and free >= 15 << 20, "below 5 %: as few days as are needed go, the oldest uploads first",
               f"gone {gone}, free {free >> 20} MiB")
        tap.ok(len(lines) == len(gone) and all(f"day={d}" in "".join(lines) for d in gone) and all("bytes=" in x and "reason=free" in x for x in lines),
               "a log line for each: day, bytes, reason", lines)
        tap.ok(day_of(0) in left, "today stays", left)
        c.stop()
        full_disk(disk, each)


def full_disk(disk, each):
    """507 while reads go on; the same after every way to start again; then room is made."""
    keep = ["--retention-free", "0"]
    c = Collector(*keep, folder=disk.folder, log="full.log", user="root")
    c.start()
    count = total(c)
    disk.fill()
    refused = c.upload("kept", "cpu", large(0))
    merged = c.get("/api/0/profiles/merge?service=kept&type=cpu&from=0&to=4102444800")
    tap.ok(refused.status == 507 and "full" in refused.error and refused.headers["Retry-After"] and total(c) == count and merged.status == 200,
           "at ENOSPC uploads get 507 and reads go on", (refused, total(c), merged.status))
    for how, name in ((signal.SIGTERM, "after an orderly end"), (signal.SIGKILL, "after kill -9"), (signal.SIGTERM, "and once more")):
        c.stop(how)
        for leftover in glob.glob(os.path.join(disk.folder, "*-shm")):
            os.unlink(leftover)
        disk.fill()
        try:
            c.start()
        except RuntimeError as e:
            tap.ok(False, f"a start on a full disk {name}", e)
            return
        tap.ok(total(c) == count and c.upload("kept", "cpu", large(0)).status == 507, f"a start on a full disk {name} serves reads",
               f"{total(c)} of {count}, {disk.free()} bytes free")
    c.stop()
    disk.fill()
    before = days_of(disk.folder)
    c.options = []
    c.start()
    end = time.monotonic() + 20
    while time.monotonic() < end and c.upload("kept", "cpu", at(0)).status != 200:
        time.sleep(0.5)
    left = days_of(disk.folder)
    again = c.upload("kept", "cpu", at(0)).status
    tap.ok(again == 200 and day_of(0) in left and left != before and len(left) >= len(before) - 2,
           "with a goal it makes room when it starts on a full disk, and takes uploads", (before, left, again))
    tap.ok(c.stop() == 0, "it ends well")
    done = hearth("store", "check", "--data-dir", disk.folder)
    tap.ok(done.returncode == 0 and ": 0 problems" in done.stdout, "hearth store check finds nothing", done.stdout + done.stderr)


def snapshots():
    """They outlive the profiles that they were made of; what is odd stays as it is."""
    c = Collector("--retention-free", "0", log="snapshots.log")
    c.start()
    c.upload("kept", "cpu", at(3))
    c.upload("kept", "cpu", at(0))
    then = int(time.time() - 3 * DAY)
    query = f"service=kept&from={then - 60}&to={then + 60}"
    made = c.ask("POST", f"/api/v1/snapshots?{query}", b'{"title": "three days ago"}').json
    before = c.get(f"/api/v1/flame?snapshot={made['id']}").body
    c.stop()
    names = [os.path.join(c.folder, "snapshot-" + digit * 32) for digit in "1234"]
    os.mkfifo(names[0])
    os.symlink("/etc/passwd", names[1])
    with open(names[2], "wb") as f:
        f.write(b"no snapshot, but somebody's work")
    os.mkdir(names[3])
    with open(os.path.join(c.folder, "snapshot-notes.tmp"), "w") as f:
        f.write("mine")
    was = [signature(n) for n in names[:3]]
    c.options += ["--retention-size", "1"]
    c.start()
    end = time.monotonic() + 10
    while time.monotonic() < end and day_of(3) in days_of(c.folder):
        time.sleep(0.1)
    tap.ok(day_of(3) not in days_of(c.folder) and c.get(f"/api/v1/flame?{query}").status == 404, "a day goes for its size", days_of(c.folder))
    tap.ok(c.get(f"/api/v1/flame?snapshot={made['id']}").body == before and c.get(f"/api/v1/snapshots/{made['id']}").json == made, "a snapshot of it stays, letter by letter")
    listed = c.get("/api/v1/snapshots").json
    log = log_of(c)
    tap.ok(listed["count"] == 1 and listed["odd"] == 4 and all(f"file={os.path.basename(n)}" in log for n in names), "odd files are out of service and named in the log", listed)
    c.stop()
    done = hearth("store", "check", "--data-dir", c.folder)
    tap.ok(done.returncode == 1 and all(os.path.basename(n) in done.stdout for n in names) and "1 snapshots: 4 problems" in done.stdout, "hearth store check lists them", done.stdout)
    tap.ok([signature(n) for n in names[:3]] == was and open(os.path.join(c.folder, "snapshot-notes.tmp")).read() == "mine", "they are as they were, and so is what only looks like one")


def snapshots_on_a_full_disk():
    with Mounted("snapshots", 24) as disk:
        c = Collector("--retention-free", "0", folder=disk.folder, log="full-snapshots.log", user="root")
        c.start()
        for _ in range(4):
            c.upload("kept", "cpu", large(0))
        made = c.ask("POST", "/api/v1/snapshots?service=kept&from=-1d").json
        disk.fill()
        before = sorted(os.listdir(disk.folder))
        refused = c.ask("POST", "/api/v1/snapshots?service=kept&from=-1d")
        kept = c.get(f"/api/v1/flame?snapshot={made['id']}")
        tap.ok(refused.status == 507 and "room" in refused.error and kept.status == 200 and sorted(os.listdir(disk.folder)) == before,
               "a full disk: 507, nothing half is left, what is kept is served", (refused, kept.status))
        os.unlink(os.path.join(disk.folder, "filler"))
        tap.ok(c.ask("POST", "/api/v1/snapshots?service=kept&from=-1d").status == 201, "with room again one is kept")
        c.stop()


def wrong_clock():
    library = path("shift.so")
    if run("cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, os.path.join(HERE, "../bench/shift_clock.c"), "-ldl").returncode:
        tap.skip("a wrong clock", "needs a C compiler")
        return
    ahead = {**os.environ, "LD_PRELOAD": library, "SHIFT_CLOCK_S": str(100 * DAY)}
    c = Collector("--retention-free", "0", log="clock.log")
    c.start()
    for days_ago in range(9, -1, -1):
        c.upload("kept", "cpu", at(days_ago))
    c.stop()
    kept = days_of(c.folder)
    for _ in range(4):
        c.env = ahead
        c.start()
        time.sleep(0.5)
        c.stop()
    c.env = None
    c.start()
    time.sleep(0.5)
    left = [day for day in days_of(c.folder) if day in kept]  # in a day's last hour the next one's file is made
    lines = [line for line in log_of(c).splitlines() if "a day is removed" in line]
    tap.ok(len(kept) == 10 and len(left) >= 9 and total(c) >= 9, "a clock 100 days ahead, over four starts: at most one day goes", f"{len(left)} of {len(kept)} days")
    tap.ok(len(lines) == len(kept) - len(left) and all("reason=age" in x for x in lines), "which is said", lines)
    c.stop()


def make_newer(name):
    with sqlite3.connect(name) as db:
        db.executescript("CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID; INSERT INTO meta VALUES('version', 7);"
                         "CREATE TABLE tomorrow(x); INSERT INTO tomorrow VALUES('precious')")
    db.close()


def signature(name):
    s = os.lstat(name)
    content = open(name, "rb").read() if stat.S_ISREG(s.st_mode) else os.readlink(name) if stat.S_ISLNK(s.st_mode) else b""
    return s.st_mode, s.st_uid, s.st_ino, content


def odd_files():
    nobody = pwd.getpwnam("nobody")
    c = Collector(log="odd.log", user="nobody")
    c.start()
    whole = c.upload("kept", "cpu", at(20)).json["body"]["id"]
    c.stop()
    names, makers = {}, {
        "FIFO": lambda n: os.mkfifo(n),
        "link": lambda n: os.symlink("/nowhere/at/all", n),
        "folder": lambda n: os.mkdir(n),
        "socket": lambda n: socket.socket(socket.AF_UNIX).bind(n),
        "owner": lambda n: (open(n, "w").write("root's"), os.chmod(n, 0o600)),
        "mode": lambda n: (open(n, "w").write("closed"), os.chown(n, nobody.pw_uid, nobody.pw_gid), os.chmod(n, 0)),
        "newer version": lambda n: (make_newer(n), os.chown(n, nobody.pw_uid, nobody.pw_gid)),
    }
    for days_ago, (kind, make) in enumerate(makers.items()):  # today's is the FIFO
        names[kind] = os.path.join(c.folder, day_of(days_ago) + ".db")
        make(names[kind])
    beside = os.path.join(c.folder, day_of(8) + ".db-wal")
    os.mkfifo(beside)
    garbage = os.path.join(c.folder, day_of(9) + ".db")
    with open(garbage, "wb") as f:
        f.write(b"no database, but somebody's work\n" * 1000)
    os.chown(garbage, nobody.pw_uid, nobody.pw_gid)
    catalog = os.path.join(c.folder, "catalog.db")
    lock = os.path.join(c.folder, "lock")
    for own in (catalog, lock):
        os.unlink(own)
        os.mkfifo(own)
    before = {kind: signature(name) for kind, name in names.items()}
    work = open(garbage, "rb").read()
    try:
        c.start()
    except RuntimeError as e:
        tap.ok(False, "odd files in the data directory keep it from starting", e)
        return
    days = list(range(len(makers))) + [8, 9]
    put = [c.upload("kept", "cpu", at(d, d)) for d in days]
    tap.ok({a.status for a in put} == {200}, "odd files: their days take uploads", {a.status for a in put})
    ids = [a.json["body"]["id"] for a in put] + [whole]
    tap.ok({c.get(f"/api/0/profiles/{i}").status for i in ids} == {200} and total(c) == len(ids), "which are read, as all others", total(c))
    log = log_of(c)
    named = [kind for kind, name in list(names.items()) + [("catalog", catalog), ("lock", lock)] if f"file={os.path.basename(name)}" in log]
    tap.ok(len(named) == len(names) + 2, "each is named in the log", named)
    tap.ok(c.metric("hearth_store_files_odd") == len(names) + 2, "and counted", c.metric("hearth_store_files_odd"))
    second = hearth("serve", "--addr", "127.0.0.1:0", "--data-dir", c.folder, "--user", "nobody", timeout=20)
    tap.ok(second.returncode == 1 and "in use" in second.stderr, "a second collector is refused all the same", second.stderr.strip())
    c.stop()
    c.start()
    tap.ok(total(c) == len(ids), "the same after a restart", total(c))
    c.stop()
    done = hearth("store", "check", "--data-dir", c.folder)
    listed = [kind for kind, name in names.items() if os.path.basename(name) in done.stdout]
    tap.ok(done.returncode == 1 and ": 0 problems" not in done.stdout, "hearth store check fails", done.returncode)
    # As root it can read what has another owner or mode: those two are other people's business only to the collector.
    tap.ok(set(listed) >= set(names) - {"owner", "mode"} and "set aside" in done.stdout, "and lists them", listed)
    tap.ok({kind: signature(name) for kind, name in names.items()} == before, "they are as they were")
    aside = glob.glob(garbage + ".damaged*")
    tap.ok(len(aside) == 1 and open(aside[0], "rb").read() == work, "garbage is set aside with all of its bytes", aside)
    tap.ok(stat.S_ISFIFO(os.lstat(beside).st_mode) and stat.S_ISFIFO(os.lstat(catalog).st_mode), "nor is a FIFO beside a day, or in the catalog's place")
    os.unlink(lock)


def comes_back():
    """A file that was out of reach while its day was closed is not taken for one that was replaced."""
    nobody = pwd.getpwnam("nobody")
    c = Collector("--retention", "0", "--retention-free", "0", log="back.log", user="nobody")
    c.start()
    first = [c.upload("kept", "cpu", at(5, i)).json["body"]["id"] for i in range(3)]
    c.stop()
    name = os.path.join(c.folder, day_of(5) + ".db")
    os.chown(name, 0, 0)
    os.chmod(name, 0o600)
    c.start()
    late = [c.upload("kept", "cpu", at(5, i)).json["body"]["id"] for i in range(3, 5)]
    out = total(c)
    c.stop()
    os.chmod(c.folder, 0o700)
    done = hearth("store", "compact", "--data-dir", c.folder)
    closed = sorted(os.path.basename(f) for f in glob.glob(os.path.join(c.folder, day_of(5) + "*.db")))
    owners = {pwd.getpwuid(os.lstat(f).st_uid).pw_name for f in glob.glob(os.path.join(c.folder, "*")) if f != name}
    os.chown(name, nobody.pw_uid, nobody.pw_gid)
    c.start()
    found = {c.get(f"/api/0/profiles/{i}").status for i in first + late}
    tap.ok(out == 2 and done.returncode == 0 and len(closed) == 2 and found == {200} and total(c) == 5,
           "a file that was out of reach while its day was closed is there again", (out, done.stdout, closed, found, total(c)))
    tap.ok(owners == {"nobody"}, "what root compacts stays the collector's", owners)
    c.stop()


def bad_rows():
    c = Collector("--retention", "0", "--retention-free", "0", log="rows.log")
    c.start()
    for i in range(6):
        c.upload("kept", "cpu", at(4, i))
    c.stop()
    name = os.path.join(c.folder, day_of(4) + ".db")
    with sqlite3.connect(name) as db:
        db.execute("UPDATE profile SET data = X'00112233' WHERE id IN (2, 4)")
        db.commit()
    db.close()
    done = hearth("store", "compact", "--data-dir", c.folder)
    aside = glob.glob(name + ".damaged")
    rows = 0
    if aside:
        with sqlite3.connect(aside[0]) as db:
            rows = db.execute("SELECT count(*) FROM profile WHERE data = X'00112233'").fetchone()[0]
        db.close()
    tap.ok("profiles=2" in done.stderr and os.path.basename(name) in done.stderr, "rows that closing a day cannot read are counted and logged", done.stderr)
    tap.ok(rows == 2, "and kept: their file is set aside", (aside, rows))
    c.start()
    tap.ok(total(c) == 4, "the others are served", total(c))
    c.stop()


def far_times():
    folder = path("far")
    os.mkdir(folder)
    admin = hearth("token", "create", "--scope", "admin", "--data-dir", folder).stdout.strip()
    ingest = hearth("token", "create", "--scope", "ingest", "--data-dir", folder).stdout.strip()
    with Collector(folder=folder, log="far.log") as c:
        def put(days_ago, token):
            return c.upload("kept", "cpu", at(days_ago), headers={"Authorization": f"Bearer {token}"})

        rows = [(3640, ingest, 200), (3660, ingest, 422), (3660, admin, 200), (-0.9, ingest, 200), (-2, ingest, 422), (-2, admin, 200)]
        found = [(ago, put(ago, token).status, want) for ago, token, want in rows]
        tap.ok(all(status == want for _, status, want in found), "a profile of ten years ago is taken, an older one by admin only; the same a day ahead", found)
        answer = put(4000, ingest)
        tap.ok("--max-past" in answer.error, "it says which option", answer.error)
        with open(path("old.pb.gz"), "wb") as f:
            f.write(at(5000))
        done = hearth("import", "--service", "kept", "--push", c.url, "--token-file", path_with(admin), path("old.pb.gz"))
        tap.ok(done.returncode == 0, "hearth import with an admin's token stores profiles of any time", done.stderr)
    with Collector("--max-past", "0", "--max-ahead", "2h", log="far2.log") as c:
        tap.ok((c.upload("kept", "cpu", at(9000)).status, c.upload("kept", "cpu", at(-0.2)).status) == (200, 422), "both are options")


def path_with(text):
    with open(path("token"), "w") as f:
        f.write(text + "\n")
    return path("token")


def own_files_only():
    """Names that nearly are hearth's, and those of others."""
    c = Collector(log="own.log", user="root")
    c.start()
    c.upload("kept", "cpu", at(3))
    c.stop()
    others = ["notes.tmp", "2024-01-05.db.tmp", "2024-01-05.3.db.tmp", "a.db.tmp", ".tmp", "backup.db", day_of(3) + ".db.tmp", "2024-1-5.db", "x.damaged"]
    for name in others:
        with open(os.path.join(c.folder, name), "w") as f:
            f.write("mine")
    for name in ("2024-01-06.2.db", "2024-01-06.2.db.tmp"):  # what a crash while a day is closed leaves
        with open(os.path.join(c.folder, name), "w") as f:
            f.write("half" if name.endswith("tmp") else "")
    c.start()
    c.stop()
    hearth("store", "compact", "--data-dir", c.folder)
    lost = [n for n in others if not os.path.exists(os.path.join(c.folder, n)) or open(os.path.join(c.folder, n)).read() != "mine"]
    tap.ok(not lost, "files of others in the data directory stay, also .tmp", lost)
    tap.ok(not glob.glob(os.path.join(c.folder, "2024-01-06*")), "what a crash left of hearth's own goes")


def creates_nothing():
    rows = [("token", "revoke"), ("token", "revoke", "0123456789abcdef"), ("token", "create", "--scope", "all"), ("token", "create", "x"),
            ("token", "list"), ("store", "check"), ("serve", "--user", "no-such-user"), ("serve", "--addr", "0.0.0.0:0"), ("serve", "--tls-cert", "x")]
    made = []
    for row in rows:
        folder = path("nothing")
        hearth(*row, "--data-dir", folder, timeout=20)
        if os.path.lexists(folder):
            made.append(row)
            shutil.rmtree(folder)
    tap.ok(not made, "a usage error or a refusal makes no folder", made)
    other = path("other")
    os.mkdir(other)
    with open(os.path.join(other, "thesis.txt"), "w") as f:
        f.write("x")
    done = hearth("store", "stats", "--data-dir", other)
    tap.ok(done.returncode == 1 and os.listdir(other) == ["thesis.txt"], "hearth store makes nothing in a folder without a store", os.listdir(other))


def refused_folders():
    closed = path("closed")
    os.mkdir(closed, 0o700)  # root's: nobody may not go through
    mine = os.path.join(closed, "mine")
    os.mkdir(mine, 0o755)
    new = os.path.join(closed, "a/b/c")
    wide = path("database")
    os.mkdir(wide)
    with open(os.path.join(wide, "customers.db"), "w") as f:
        f.write("x")
    link = path("link")
    os.symlink(mine, link)
    rows = []
    for folder in (mine, new, wide, mine + "/", link):
        done = hearth("serve", "--addr", "127.0.0.1:0", "--user", "nobody", "--data-dir", folder, timeout=20)
        rows.append((done.returncode, done.stderr.strip()[-80:]))
    tap.ok([r[0] for r in rows] == [1] * 5, "folders that cannot be the user's are refused", rows)
    tap.ok(os.stat(mine).st_uid == 0 and not os.path.exists(os.path.join(closed, "a")) and os.listdir(mine) == [], "they are neither made nor given away",
           (os.stat(mine).st_uid, os.listdir(closed)))
    fine = path("fine")
    os.mkdir(fine, 0o700)
    with Collector(folder=fine + "/", log="fine.log", user="nobody") as c:
        tap.ok(c.upload("kept", "cpu", at(0)).status == 200 and os.stat(fine).st_uid == pwd.getpwnam("nobody").pw_uid, "an empty folder of root's is given away, also with a slash behind it")
    tap.ok(os.stat(wide).st_uid == 0 and os.stat(os.path.join(wide, "customers.db")).st_uid == 0, "nor is one with a database of others", os.listdir(wide))


checks = [snapshots, wrong_clock, bad_rows, far_times]
if os.geteuid() == 0:
    checks += [odd_files, comes_back, own_files_only, creates_nothing, refused_folders, snapshots_on_a_full_disk, small_disk]
else:
    tap.skip("disks, owners, folders", "needs root")
for check in checks:
    try:
        check()
    except (RuntimeError, OSError, subprocess.SubprocessError) as e:
        tap.ok(False, check.__name__, e)
tap.finish()
