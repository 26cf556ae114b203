#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which processes a session is about: --comm, --user, --unit, --cgroup, alone and together with -p, also of what starts later."""
from support import *

tap = Tap("selection")
need(tap)
SECONDS = 2 if QUICK else 4
LIFE = 300
MINE = f"s{os.getpid()}-"  # what our programs' names begin with
UNIT = f"hearth-select-{os.getpid()}"
groups = []
os.mkdir(path("bin"))
os.chmod(path("bin"), 0o755)


def copy_of(name):
    shutil.copy(workload("spin"), path(f"bin/{name}"))
    return path(f"bin/{name}")


def group(name, *roots):
    for root in roots:
        if os.path.exists(f"{root}/cgroup.procs"):
            try:
                os.makedirs(f"{root}/{name}", exist_ok=True)
            except OSError:
                continue
            groups.append(f"{root}/{name}")
            return groups[-1]
    return None


def inside(*where):
    def move():
        for folder in where:
            with open(f"{folder}/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))
    return move


def seen(file):
    """Processes with samples, hearth's own left out."""
    return {s.labels["pid"] for s in Profile(path(file)).samples}


def only(what, wanted, *options, late=None):
    """Starts @late in the middle of the session."""
    if late:
        timer = threading.Timer(SECONDS / 2, lambda: late.append(start(*late.pop(0), **late.pop(0))))
        timer.start()
    record(tap, SECONDS, "-q", *options, "-o", path("some.pb.gz"))
    found = seen("some.pb.gz")
    wanted = {p.pid for p in wanted} | ({late[0].pid} if late else set())
    tap.ok(found == wanted, what, f"{sorted(found)}, wanted {sorted(wanted)}")


spin, tool, other = copy_of(f"{MINE}spin"), copy_of(f"{MINE}tool"), copy_of(f"{MINE}other")
systemd = group(f"system.slice/{UNIT}.service", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup", "/sys/fs/cgroup/unified")
unified = group(f"{UNIT}-box", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
a = start(spin, LIFE)
b = start(tool, LIFE, user="nobody", group="nogroup", extra_groups=[])
c = start(other, LIFE, preexec_fn=inside(*(g for g in (systemd, unified) if g)))
try:
    only("--comm", [a], "--comm", f"{MINE}spin")
    only("--comm with a pattern", [a, b, c], "--comm", f"{MINE}*", "--no-self")
    only("--comm twice", [a, c], "--comm", f"{MINE}spin", "--comm", f"{MINE}other")
    only("--user by name", [b], "--user", "nobody", "--comm", f"{MINE}*")
    only("--user by number", [b], "--user", "65534", "--comm", f"{MINE}*")
    only("--user and --comm together", [a, c], "--user", "root", "--comm", f"{MINE}*", "--no-self")
    only("-p and --comm together", [a], "-p", f"{a.pid},{b.pid}", "--comm", f"{MINE}spin")
    only("-p and --user that do not meet", [], "-p", a.pid, "--user", "nobody")
    only("a process that starts later is in", [a], "--comm", f"{MINE}spin", late=[[spin, SECONDS * 4], {}])
    only("also by its user", [b], "--user", "nobody", "--comm", f"{MINE}*",
         late=[[spin, SECONDS * 4], {"user": "nobody", "group": "nogroup", "extra_groups": []}])
    if systemd:
        only("--unit", [c], "--unit", UNIT)
        only("--unit with its suffix and a pattern", [c], "--unit", UNIT[:-1] + "*.service")
        only("a process that starts later in the unit", [c], "--unit", UNIT, late=[[tool, SECONDS * 4], {"preexec_fn": inside(systemd)}])
    else:
        tap.skip("--unit", "no cgroup can be made here")
    if unified:
        only("--cgroup and --comm together", [c], "--cgroup", unified, "--comm", f"{MINE}*")
    else:
        tap.skip("--cgroup", "no cgroup v2 can be made here")
    done = hearth("record", "-d", 1, "--user", "nobody-of-that-name", "-o", path("none.pb.gz"))
    tap.ok(done.returncode == 2 and "there is no user 'nobody-of-that-name'" in done.stderr and not os.path.exists(path("none.pb.gz")),
           "a user that there is not: a usage error", f"{done.returncode} {done.stderr.strip()}")
    os.makedirs(path("host/etc"))
    with open(path("host/etc/passwd"), "w") as f:
        f.write("guest:x:65534:65534::/:/bin/false\nbroken\nworse:x:notanumber\n")
    for folder in ("proc", "sys"):
        os.symlink(f"/{folder}", path(f"host/{folder}"))
    only("--user by the names of --host-root", [b], "--user", "guest", "--comm", f"{MINE}*", "--host-root", path("host"))
    folder = path("agent")
    done = hearth("agent", "-d", SECONDS, "-o", folder, "--no-flamegraph", "--comm", f"{MINE}tool", "--log-file", path("agent.log"), "--pid-file", path("agent.pid"))
    if done.returncode and "lock" in done.stderr:
        tap.skip("hearth agent --comm", "another agent runs")
    else:
        comms = {l.split(";")[2] for l in open(f"{folder}/last_profile.col").read().split("\n")[1:]}
        tap.ok(comms == {f"{MINE}tool"}, "hearth agent --comm", sorted(comms))
finally:
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
    for folder in groups:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
tap.finish()
