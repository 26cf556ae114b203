#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the administration page asks and does: who may change something, tokens, what is kept, deleting a service; over a
real socket, through restarts and kill -9."""
import http.client
import json
import os
import signal
import subprocess
import threading
import time
import urllib.parse

from collector import Collector, fill_disk, pprof
from support import QUICK, Tap, hearth, path

tap = Tap("admin")
NOW = int(time.time())
DAY = 86400
DOOMED = "a-doomed-service"
HOSTILE = ["<img src=x onerror=window.__hit=1>", "\u202egpj.exe", "a\nb; DROP TABLE service", "%00%ff&service=api", "ü" * 900]
CHANGES = [("DELETE", "/api/v1/services?service=api", None), ("DELETE", "/api/v1/tokens?id=0011223344556677", None),
           ("POST", "/api/v1/tokens", b'{"name": "x", "scopes": ["admin"]}'),
           ("DELETE", "/api/0/profiles?service=api&from=0&to=now", None)]


def quoted(text):
    return urllib.parse.quote(text, safe="")


def put(c, service, at, names=("main", "work"), headers=None):
    return c.upload(quoted(service), "cpu", pprof([(list(names), [1, 10**7])], time_ns=at * 10**9), headers=headers)


def seed(c, headers=None, services=("api", "web")):
    """A profile of each service on each of five days, and two today."""
    for day in range(5):
        for service in services:
            for i in range(2 if day == 0 else 1):
                answer = put(c, service, NOW - day * DAY - i, ("main", "only_" + service), headers)
                assert answer.status == 200, answer
    return 6


def count(c, service, headers=None):
    answer = c.ask("GET", f"/api/0/profiles?service={quoted(service)}&type=cpu&from=0&to=now&limit=100000", headers=headers)
    return len(answer.json["body"]) if answer.status == 200 else 0


def make_token(folder, scope):
    return hearth("token", "create", "--data-dir", folder, "--scope", scope, "--name", "the " + scope).stdout.strip()


def bearer(secret, **more):
    return {"Authorization": "Bearer " + secret, **more}


def files_with(folder, text):
    """Files of a data directory that hold a text."""
    found = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        found += [name] * (text.encode() in data)
    return found


def without_tokens():
    """Loopback, as it starts: everybody reads and sends, nobody changes how it is run."""
    with Collector() as c:
        n = seed(c)
        for method, target, body in CHANGES[:3]:
            answer = c.ask(method, target, body)
            tap.ok(answer.status == 403 and "hearth token create --scope admin" in answer.error, f"no tokens: {method} {target.split('?')[0]} is refused, with what to do", answer)
            page = c.ask(method, target, body, {"Origin": c.url, "Sec-Fetch-Site": "same-origin"})
            tap.ok(page.status == 403, "from the page as well", page)
        tap.ok(count(c, "api") == n and not os.path.exists(os.path.join(c.folder, "tokens")), "nothing has changed")
        tokens = c.get("/api/v1/tokens").json
        tap.ok(tokens["asked_for"] is False and tokens["possible"] is True and tokens["tokens"] == [], "there are no tokens, but could be", tokens)
        tap.ok(c.get("/api/v1/storage").status == 200, "what is kept is shown")
    with Collector("--insecure-no-auth") as c:
        tokens = c.get("/api/v1/tokens").json
        tap.ok(tokens["possible"] is False and c.ask(*CHANGES[0][:2]).status == 403, "--insecure-no-auth: nothing can be changed", tokens)


def who_may(folder):
    secrets = {scope: make_token(folder, scope) for scope in ("ingest", "read", "admin")}
    with Collector("--cors-origin", "http://dashboard.example", folder=folder) as c:
        n = seed(c, bearer(secrets["ingest"]))
        for method, target, body in CHANGES:
            what = f"{method} {target.split('?')[0]}"
            answer = c.ask(method, target, body)
            tap.ok(answer.status == 401 and "token" in answer.error and answer.headers["WWW-Authenticate"], f"{what} without a token: 401", answer)
            answer = c.ask(method, target, body, bearer("hearth_" + "0" * 64))
            tap.ok(answer.status == 401, f"{what} with a wrong token: 401", answer)
            for scope in ("ingest", "read"):
                answer = c.ask(method, target, body, bearer(secrets[scope]))
                tap.ok(answer.status == 403 and "scope" in answer.error, f"{what} with the scope {scope}: 403", answer)
            for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://localhost:{c.port + 1}"}, {"Sec-Fetch-Site": "cross-site"},
                            {"Sec-Fetch-Site": "same-site"}, {"Origin": c.url, "Sec-Fetch-Site": "cross-site"}):
                answer = c.ask(method, target, body, bearer(secrets["admin"], **headers))
                tap.ok(answer.status == 403 and "origin" in answer.error, f"{what} from a page elsewhere ({headers}): 403", answer)
        for method, target, body in CHANGES[:3]:
            answer = c.ask(method, target, body, bearer(secrets["admin"], Origin="http://dashboard.example"))
            tap.ok(answer.status == 403, f"{method} {target.split('?')[0]} from a page that --cors-origin names: 403", answer)
        sign_in = c.ask("POST", "/api/v1/session", json.dumps({"token": secrets["admin"]}).encode(), {"Origin": c.url})
        cookie = {"Cookie": sign_in.headers["Set-Cookie"].split(";")[0]}
        tap.ok(c.ask(*CHANGES[0], headers=cookie).status == 401, "the cookie alone, without an origin, changes nothing")
        tap.ok(c.ask(*CHANGES[0], headers={**cookie, "Origin": "http://evil.example"}).status == 403, "nor from elsewhere")
        tap.ok(count(c, "api", bearer(secrets["read"])) == n and len(c.get("/api/v1/tokens", **bearer(secrets["admin"])).json["tokens"]) == 3, "nothing has changed")
        for method in ("PUT", "PATCH"):
            tap.ok(c.ask(method, "/api/v1/tokens", b"{}", bearer(secrets["admin"])).status == 405, f"{method} is no way")
        link = c.get("/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        tap.ok(link.status == 200, "a link from elsewhere still opens the page", link.status)
    return secrets


def tokens(folder, secrets):
    admin = bearer(secrets["admin"])
    with Collector(folder=folder) as c:
        tap.ok(c.get("/api/v1/tokens", **bearer(secrets["read"])).status == 403, "the list takes the scope admin")
        listed = c.get("/api/v1/tokens", **admin)
        rows = {row["name"]: row for row in listed.json["tokens"]}
        tap.ok(set(rows) == {"the ingest", "the read", "the admin"} and rows["the admin"]["own"] and not rows["the read"]["own"] and
               rows["the read"]["scopes"] == ["read"] and listed.json["writable"], "names, scopes, which one is ours", listed)
        tap.ok(not any(s in listed.body.decode() for s in secrets.values()) and "hash" not in listed.body.decode(), "no secret, no hash")
        tap.ok(listed.headers["Cache-Control"] == "no-store", "kept by no cache")
        for body in (b"", b"{", b"[]", b'{"name": "x"}', b'{"scopes": []}', b'{"scopes": ["root"]}', b'{"scopes": "read"}', b'{"name": 1, "scopes": ["read"]}',
                     json.dumps({"name": "x" * 65, "scopes": ["read"]}).encode()):
            tap.ok(c.ask("POST", "/api/v1/tokens", body, admin).status == 400, "a request that is none: 400", body[:40])
        tap.ok(c.ask("POST", "/api/v1/tokens", b" " * (1 << 20), admin).status == 413, "a large one: 413")
        odd = "\u202e<img src=x onerror=1>\nhearth_ fake"
        answer = c.ask("POST", "/api/v1/tokens", json.dumps({"name": odd, "scopes": ["read"]}).encode(), admin)
        made = answer.json
        tap.ok(answer.status == 200 and made["token"].startswith("hearth_") and len(made["token"]) == 71 and answer.headers["Cache-Control"] == "no-store",
               "a token is made, its secret is in the answer", answer.status)
        tap.ok(c.get("/api/v1/services", **bearer(made["token"])).status == 200, "it holds at once")
        again = c.get("/api/v1/tokens", **admin)
        row = next(r for r in again.json["tokens"] if r["id"] == made["id"])
        tap.ok(made["token"] not in again.body.decode() and len(again.json["tokens"]) == 4 and row["name"] == odd.replace("\n", "?"), "and is never shown again", row)
        with open(os.path.join(folder, "tokens")) as f:
            text = f.read()
        tap.ok(made["token"] not in text and made["id"] in text and oct(os.stat(os.path.join(folder, "tokens")).st_mode & 0o777) == "0o600", "the file has its hash, for its owner only")
        with open(c.log, errors="replace") as f:
            log = f.read()
        tap.ok("a token was made" in log and made["token"] not in log and made["id"] in log, "the log says who made it, not the secret")
        tap.ok(c.ask("DELETE", "/api/v1/tokens?id=nobody", headers=admin).status == 404, "revoking what is not there: 404")
        # The command changes the same file meanwhile: neither undoes the other.
        names = [f"t{i}" for i in range(4 if QUICK else 12)]
        command = threading.Thread(target=lambda: [hearth("token", "create", "--data-dir", folder, "--scope", "read", "--name", f"cli-{n}") for n in names])
        command.start()
        for name in names:
            while True:
                answer = c.ask("POST", "/api/v1/tokens", json.dumps({"name": "http-" + name, "scopes": ["read"]}).encode(), admin)
                if answer.status != 503:
                    break
            assert answer.status == 200, answer
        command.join()
        time.sleep(1.2)
        listed = {r["name"] for r in c.get("/api/v1/tokens", **admin).json["tokens"]}
        tap.ok(all(f"{kind}-{n}" in listed for kind in ("cli", "http") for n in names), "the command and the page at once: none is lost", len(listed))
        gone = c.ask("DELETE", f"/api/v1/tokens?id={made['id']}", headers=admin)
        tap.ok(gone.status == 200 and gone.json["id"] == made["id"] and c.get("/api/v1/services", **bearer(made["token"])).status == 401, "revoked: refused at once", gone)
        c.stop(signal.SIGKILL)
        c.start()
        tap.ok(c.get("/api/v1/services", **bearer(made["token"])).status == 401 and c.get("/api/v1/services", **bearer(secrets["read"])).status == 200,
               "and after kill -9, too; the others hold")


def storage(folder, secrets):
    read = bearer(secrets["read"])
    with Collector("--retention", "3d", "--retention-size", "1G", "--retention-free", "0", folder=folder) as c:
        s = c.get("/api/v1/storage", **read).json
        dates = [time.strftime("%Y-%m-%d", time.gmtime(NOW - day * DAY)) for day in reversed(range(5))]
        days = {d["day"]: d["profiles"] for d in s["days"] if d["profiles"]}  # towards midnight the next one is there, too, empty
        tap.ok(list(days) == dates and list(days.values()) == [2, 2, 2, 2, 4] and s["profiles"] == 12, "days with their profiles", s["days"])
        tap.ok(s["services"] == ["api", "web"] and s["service_count"] == 2 and s["bytes"] == sum(d["bytes"] for d in s["days"]), "services, bytes", s["bytes"])
        tap.ok(s["retention"] == {"age_ms": 3 * DAY * 1000, "daily_age_ms": 400 * DAY * 1000, "size": 1 << 30, "free_auto": False, "free": 0}, "the limits", s["retention"])
        newest = min(d["newest_ms"] for d in s["days"] if d["profiles"])
        tap.ok(s["next"]["not_before_ms"] >= newest + 3 * DAY * 1000 and s["next"]["day"] in dates and not any("goes" in d for d in s["days"]), "what goes next, and when", s["next"])
        weighed = c.get("/api/v1/storage/service?service=api", **read).json
        tap.ok(weighed["profiles"] == 6 and weighed["files"] in (5, 6) and weighed["bytes"] > 100, "what a service has", weighed)
        for query, status in (("", 400), ("?service=", 400), ("?service=nobody", 404), ("?service=api&from=0", 400), ("?service=" + "x" * 2049, 400)):
            tap.ok(c.get("/api/v1/storage/service" + query, **read).status == status, f"storage/service{query[:20]}: {status}")
        tap.ok(c.get("/api/v1/storage").status == 401, "it takes a token")
    with Collector("--retention-size", "1", folder=folder) as c:
        s = c.get("/api/v1/storage", **read).json
        goes = [d.get("goes") for d in s["days"] if d["profiles"]]  # some may have gone already
        tap.ok(set(goes[:-1]) <= {"size"} and goes[-1] is None and s["over"], "what a smaller limit will delete is said before", goes)


def deletes(folder, secrets):
    """One service of three: it goes, for good; the others stay; it may come again."""
    admin, read = bearer(secrets["admin"]), bearer(secrets["read"])
    with Collector(folder=folder) as c:
        n = seed(c, admin, (DOOMED, "web"))
        put(c, "worker", NOW, ("main", "only_worker"), admin)
        for target, status in (("", 400), ("?service=", 400), ("?service=nobody", 404), (f"?service={DOOMED}&type=cpu", 400), ("?service=" + "x" * 3000, 400)):
            tap.ok(c.ask("DELETE", "/api/v1/services" + target, headers=admin).status == status, f"DELETE services{target[:24]}: {status}")
        merged = {s: c.get(f"/api/0/profiles/merge?service={s}&type=cpu&from=0&to=now", **read).status for s in (DOOMED, "web")}
        assert merged == {DOOMED: 200, "web": 200}, merged
        weighed = c.get("/api/v1/storage/service?service=" + DOOMED, **read).json
        gone = c.ask("DELETE", "/api/v1/services?service=" + DOOMED, headers=admin)
        tap.ok(gone.status == 200 and gone.json["profiles"] == weighed["profiles"] == n and gone.json["aside"] == 0, "a service is deleted, all that was said before", gone)
        tap.ok(count(c, DOOMED, read) == 0 and count(c, "web", read) == n and count(c, "worker", read) == 1, "it has gone, the others are whole")
        tap.ok(c.get("/api/0/profiles/merge?service=" + DOOMED + "&type=cpu&from=0&to=now", **read).status == 404, "no merge has it")
        tap.ok(c.get("/api/v1/storage", **read).json["services"] == ["web", "worker"], "no list has it")
        metric = c.get("/metrics", **read).body.decode()
        tap.ok("hearth_services_deleted_total 1" in metric and f"hearth_profiles_deleted_total {n}" in metric, "metrics count it")
        with open(c.log, errors="replace") as f:
            log = f.read()
        tap.ok("a service was deleted" in log and "the admin" in log, "the log says who")
        c.stop()
        tap.ok(files_with(folder, DOOMED) == [] and files_with(folder, "web") != [], "no file has its name", files_with(folder, DOOMED))
        c.start()
        tap.ok(count(c, DOOMED, read) == 0 and count(c, "web", read) == n, "after a restart, too")
        answer = put(c, DOOMED, NOW - 5, headers=admin)
        tap.ok(answer.status == 200 and count(c, DOOMED, read) == 1, "new uploads of it are taken again", answer)
        for day in range(5):
            put(c, DOOMED, NOW - day * DAY - 7, headers=admin)
        c.stop(signal.SIGKILL)
        c.start()
        tap.ok(count(c, DOOMED, read) == 6 and count(c, "web", read) == n and count(c, "worker", read) == 1, "and stay after kill -9")
        for name in HOSTILE:
            assert put(c, name, NOW - 9, headers=admin).status == 200
        names = c.get("/api/v1/storage", **read)
        tap.ok(names.json["services"] == sorted(HOSTILE + [DOOMED, "web", "worker"], key=lambda s: s.encode()) and names.headers["Content-Type"].startswith("application/json") and
               names.headers["X-Content-Type-Options"] == "nosniff", "hostile names are text", names.json["service_count"])
        for name in HOSTILE:
            answer = c.ask("DELETE", f"/api/v1/services?service={quoted(name)}", headers=admin)
            tap.ok(answer.status == 200 and answer.json["service"] == name and answer.json["profiles"] == 1, "a hostile name is deleted", name[:20])
        tap.ok(count(c, "web", read) == n and c.get("/api/v1/storage", **read).json["services"] == [DOOMED, "web", "worker"], "and nothing else")
    check = hearth("store", "check", "--data-dir", folder)
    tap.ok(check.returncode == 0, "hearth store check finds nothing", check.stdout[-300:] + check.stderr[-300:])


def deletes_and_dies(rounds):
    """kill -9 while a service is deleted and others are sent: it is done or not, never half, and what was acknowledged is there."""
    folder = path("dies")
    admin = bearer(make_token(folder, "ingest,read,admin"))
    c = Collector(folder=folder, log="dies.log")
    c.start()
    whole, sent = 0, 0
    for turn in range(rounds):
        for day in range(4):
            for i in range(12):
                assert put(c, "doomed", NOW - day * DAY - i, headers=admin).status == 200
        stop, acknowledged = threading.Event(), []

        def send():
            while not stop.is_set():
                try:
                    if put(c, "kept", NOW - len(acknowledged) % 4 * DAY, headers=admin).status == 200:
                        acknowledged.append(1)
                except (OSError, http.client.HTTPException):
                    return
        sender = threading.Thread(target=send)
        sender.start()
        answers = []

        def delete():
            try:
                answers.append(c.ask("DELETE", "/api/v1/services?service=doomed", headers=admin).status)
            except (OSError, http.client.HTTPException):
                pass
        deleter = threading.Thread(target=delete)
        deleter.start()
        time.sleep(0.004 * turn)
        c.stop(signal.SIGKILL)
        deleter.join()
        stop.set()
        sender.join()
        sent += len(acknowledged)
        c.start()
        left, kept = count(c, "doomed", admin), count(c, "kept", admin)
        whole += left == 0
        if left not in (0, 48) or (answers == [200] and left):
            tap.ok(False, f"round {turn}: {left} of 48 are there, the answer was {answers}")
        if kept < sent:
            tap.ok(False, f"round {turn}: {sent} were acknowledged, {kept} are there")
        sent = kept  # what was stored without an answer counts from now on
        merge = c.get("/api/0/profiles/merge?service=kept&type=cpu&from=0&to=now", **admin)
        if merge.status != (200 if kept else 404):
            tap.ok(False, f"round {turn}: no merge", merge)
        rest = c.ask("DELETE", "/api/v1/services?service=doomed", headers=admin)
        if rest.status not in (200, 404) or count(c, "doomed", admin) or count(c, "kept", admin) != kept:
            tap.ok(False, f"round {turn}: the same request again", rest)
    c.stop()
    tap.ok(True, f"{rounds} times kill -9 while a service was deleted", f"deleted whole in {whole}, {sent} others kept")
    check = hearth("store", "check", "--data-dir", folder)
    tap.ok(check.returncode == 0, "hearth store check finds nothing", check.stdout[-300:] + check.stderr[-300:])


def deletes_at_once():
    """Who deletes waits for nobody, and holds no worker that others need: one at a time, the others are told."""
    folder = path("at-once")
    admin = bearer(make_token(folder, "ingest,read,admin"))
    services = [f"one-of-{i}" for i in range(8)]
    with Collector(folder=folder) as c:
        n = seed(c, admin, [*services, "web"])
        answers = {}

        def delete(service):
            answers[service] = c.ask("DELETE", "/api/v1/services?service=" + service, headers=admin)
        threads = [threading.Thread(target=delete, args=(service,)) for service in services]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = [service for service in services if answers[service].status == 200]
        told = [service for service in services if answers[service].status == 503 and answers[service].headers["Retry-After"] and "another service" in answers[service].error]
        tap.ok(len(done) + len(told) == 8 and done, "eight deletions at once: done, or told to come again", {s: a.status for s, a in answers.items()})
        tap.ok(all(count(c, service, admin) == (0 if service in done else n) for service in services), "what was refused is whole")
        for service in told:
            assert c.ask("DELETE", "/api/v1/services?service=" + service, headers=admin).status == 200
        tap.ok(c.get("/api/v1/storage", **admin).json["services"] == ["web"] and count(c, "web", admin) == n, "in the end all have gone, and no other")


def on_a_full_disk():
    """What stays is written anew beside the old file: where that does not fit, nothing goes, and it says so."""
    mount = path("small")
    os.makedirs(mount, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0755", "hearth-small", mount], capture_output=True, check=False)
    if done.returncode:
        tap.skip("a full disk", "it takes root to mount one")
        return
    try:
        folder = os.path.join(mount, "data")
        admin = bearer(make_token(folder, "ingest,read,admin"))
        with Collector("--retention-free", "0", "--retention-size", "0", folder=folder, log="full.log") as c:
            n = seed(c, admin)
            size = os.statvfs(mount)
            with open(os.path.join(mount, "others"), "wb") as f:
                f.write(bytes(max(0, size.f_bavail * size.f_frsize - 16384)))
            answer = c.ask("DELETE", "/api/v1/services?service=api", headers=admin)
            left = count(c, "api", admin)
            tap.ok(answer.status == 507 and answer.headers["Retry-After"] and "nothing was deleted" in answer.error and left == n, "a full disk: 507, and nothing is deleted", answer)
            tap.ok(count(c, "web", admin) == n, "the others are whole")
            before = c.get("/api/v1/tokens", **admin).json["tokens"]
            fill_disk(os.path.join(mount, "others"))
            answer = c.ask("POST", "/api/v1/tokens", b'{"name": "x", "scopes": ["read"]}', admin)
            tap.ok(answer.status == 507 and c.get("/api/v1/tokens", **admin).json["tokens"] == before, "the tokens are as they were", answer)
            os.unlink(os.path.join(mount, "others"))
            answer = c.ask("DELETE", "/api/v1/services?service=api", headers=admin)
            tap.ok(answer.status == 200 and answer.json["profiles"] == left and count(c, "api", admin) == 0 and count(c, "web", admin) == n, "with room again it goes", answer)
    finally:
        subprocess.run(["umount", "-l", mount], check=False)


def in_memory():
    folder = path("memory")
    admin = bearer(make_token(folder, "ingest,read,admin"))
    with Collector("--storage-type", "memory", folder=folder) as c:
        n = seed(c, admin)
        s = c.get("/api/v1/storage", **admin).json
        tap.ok(s["engine"] == "memory" and s["profiles"] == 12 and s["services"] == ["api", "web"] and "disk" not in s, "the memory engine is shown", s["services"])
        gone = c.ask("DELETE", "/api/v1/services?service=api", headers=admin)
        tap.ok(gone.status == 200 and gone.json["profiles"] == n and count(c, "web", admin) == n and count(c, "api", admin) == 0, "and deletes", gone)


without_tokens()
home = path("home")
made = who_may(home)
storage(home, made)
tokens(home, made)
other = path("other")
deletes(other, {scope: make_token(other, "ingest,read,admin" if scope == "admin" else scope) for scope in ("read", "admin")})
deletes_at_once()
deletes_and_dies(4 if QUICK else 40)
on_a_full_disk()
in_memory()
tap.finish()
