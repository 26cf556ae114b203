#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make deb: the packages of a commit, whose bytes do not depend on the folder; lintian and systemd find nothing; installed in fresh folders of
bookworm and trixie they work, an upgrade keeps data and settings, and a purge leaves nothing."""
import glob
import urllib.request

from collector import free_port
from installs import Suite, fetched, own_namespace, unit_command
from support import *

own_namespace()
tap = Tap("deb")
need(tap, "dpkg-buildpackage", "git")
commit = run("git", "-C", ROOT, "rev-parse", "--short=12", "HEAD").stdout.strip()


def build(tree, out):
    done = run(f"{tree}/scripts/deb", env={**os.environ, "OUT": out}, timeout=1200)
    if not tap.ok(done.returncode == 0, f"scripts/deb in {'this tree' if tree == ROOT else 'another folder'}", done.stderr[-600:].strip()):
        tap.finish()
    return {os.path.basename(f): f for f in glob.glob(out + "/*.deb")}


if os.environ.get("HEARTH_DEBS"):
    debs = {os.path.basename(f): f for f in glob.glob(os.environ["HEARTH_DEBS"] + "/*.deb")}
    tap.skip("two builds from different folders", "HEARTH_DEBS names the packages")
else:
    debs = build(ROOT, path("one"))
    if QUICK:
        tap.skip("two builds from different folders", "the quick form builds one")
    else:
        other = path("a/longer folder/with a space")
        run("git", "clone", "-q", "--no-hardlinks", ROOT, other, timeout=120)
        again = build(other, path("two/out"))
        differ = [n for n in debs if n not in again or open(debs[n], "rb").read() != open(again[n], "rb").read()]
        tap.ok(debs.keys() == again.keys() and not differ, "two builds from different folders are the same bytes", differ or len(debs))
outs = [path("dist-one"), path("dist-two")]
run("git", "clone", "-q", ROOT, path("clone for dist"), timeout=120)
done = [run(f"{tree}/scripts/dist", env={**os.environ, "OUT": out}) for tree, out in zip((ROOT, path("clone for dist")), outs)]
tars = [glob.glob(out + "/hearth-*.tar.gz") for out in outs]
tap.ok(all(map(len, tars)) and open(tars[0][0], "rb").read() == open(tars[1][0], "rb").read(), "make dist: the same bytes from two folders", done[0].stderr or tars[0])
run("tar", "-xf", tars[0][0], "-C", path(""))
source = path(os.path.basename(tars[0][0])[:-len(".tar.gz")])
told = run(f"{source}/scripts/build-info", source, "").stdout
tap.ok(f'HEARTH_COMMIT "{commit}"' in told and not os.path.exists(source + "/.git"), "make dist: the tarball knows its commit without git", told.splitlines()[1])

main = next(f for n, f in debs.items() if n.startswith("hearth_"))
library = next(f for n, f in debs.items() if n.startswith("libhearth0_"))
version = run("dpkg-deb", "-f", main, "Version").stdout.strip()

if shutil.which("lintian"):
    done = run("lintian", "--allow-root", "--display-info", "--show-overrides", *debs.values(), timeout=300)
    found = [l for l in done.stdout.splitlines() if l[:2] in ("E:", "W:", "I:")]
    tap.ok(done.returncode == 0 and not found, "lintian finds nothing", found or f"{done.stdout.count('O: ')} overrides, each with its reason")
else:
    tap.skip("lintian", "needs lintian")

parts = json.load(open(os.path.join(os.path.dirname(main), "hearth.spdx.json")))
names = {p["name"] for p in parts["packages"]}
tap.ok(parts["spdxVersion"] == "SPDX-2.3" and {"hearth", "libc6", "libbpf1", "meson", "clang"} <= names, "hearth.spdx.json names dependencies and build tools", len(names))


def spin():
    return start(workload("spin"), "60", "1")


def run_unit(root):
    """hearth up by the unit's own command line, on a free port, for some seconds. Return: the services it then shows."""
    port = free_port()
    root.write("/etc/default/hearth", f'HEARTH_UP_OPTIONS="--addr 127.0.0.1:{port} --window 1s"\n')
    environment, words = unit_command(root, "hearth")
    up = start(*root.command(*words), env={"PATH": "/usr/sbin:/usr/bin", **environment}, stderr=open(path("up.log"), "ab"))
    until, services = time.monotonic() + 30, b""
    while time.monotonic() < until and b"spin" not in services:
        time.sleep(0.5)
        services = fetch_services(port)
    owner = os.stat(root.at("/var/lib/hearth")).st_uid
    children = run("ps", "-o", "uid=", "--ppid", up.pid).stdout.split()
    up.terminate()
    status = stopped(up)
    tap.ok(b"spin" in services and status == 0, f"{root.suite}: hearth up by the unit's command line stores and shows", f"{services[:80].decode()} {status}")
    return owner, children


def fetch_services(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/0/services", timeout=5) as answer:
            return answer.read()
    except OSError:
        return b""


def left_behind(root):
    """Files with our name, but for what apt and dpkg log."""
    found = run("find", root.folder, "-xdev", "-name", "*hearth*", "-o", "-xdev", "-name", "*gprofiler*").stdout.split("\n")
    return [f[len(root.folder):] for f in found if f and "/tmp/" not in f and "/var/cache/" not in f and "/var/lib/systemd/deb-systemd-helper-" not in f]


def previous(root):
    """The package as an older version: the same files and scripts."""
    folder = path("previous-" + root.suite)
    run("dpkg-deb", "-R", main, folder)
    control = open(folder + "/DEBIAN/control").read().replace(f"Version: {version}", "Version: 0.0.9")
    with open(folder + "/DEBIAN/control", "w") as f:
        f.write(control)
    run("dpkg-deb", "--root-owner-group", "-Znone", "-b", folder, root.at("/tmp/previous.deb"))


def check(suite):
    if not fetched(suite):
        tap.skip(f"{suite}: installation", "debootstrap is missing or cannot fetch it")
        return
    root = Suite(suite)
    if root.apt("update").returncode:
        tap.skip(f"{suite}: installation", "apt cannot reach its mirror")
        return
    root.take(main, "/tmp/new.deb")
    root.take(library, "/tmp/library.deb")
    previous(root)
    done = root.apt("install", "--no-install-recommends", "/tmp/previous.deb")
    tap.ok(done.returncode == 0, f"{suite}: the package is installed with what it depends on", done.stderr[-300:].strip())
    said = root.run("hearth", "--version").stdout.strip()
    named = version.rpartition(".")[2] if "~" in version else commit  # HEARTH_DEBS may be of another commit
    tap.ok(said == f"hearth {version.split('~')[0]} (commit {named})", f"{suite}: --version names the commit", said)
    busy = spin()
    root.run("rm", "-f", "/tmp/p.pb.gz")
    done = root.run("hearth", "record", "-d", "2", "-q", "-o", "/tmp/p.pb.gz")
    samples = Profile(root.at("/tmp/p.pb.gz")).of(busy) if done.returncode == 0 else []
    tap.ok(total(samples) > 20 and any("spin_work" in s.names for s in samples), f"{suite}: hearth record -d 2 works there", f"{total(samples)} {done.stderr[-200:]}")
    for name in ("gprofiler", "profile"):
        command = {"gprofiler": "agent"}.get(name, name)
        if root.run("hearth", command, "--help").returncode:
            tap.skip(f"{suite}: the alternative {name}", f"there is no hearth {command} yet")
            continue
        links = root.run("update-alternatives", "--query", name).stdout
        tap.ok("Value: /usr/bin/hearth" in links and root.run(name, "--help").returncode == 0, f"{suite}: {name} is hearth", os.readlink(root.at("/usr/bin/" + name)))
    done = root.run("gprofiler", "-d", "1", "-o", "/tmp/cycle", "--pid-file", "/tmp/pid", "--log-file", "/tmp/g.log")
    tap.ok(done.returncode == 0 and glob.glob(root.at("/tmp/cycle/profile_*.col")), f"{suite}: gprofiler -d 1 -o DIR writes its files", done.stdout[-200:].strip())
    owner, children = run_unit(root)
    user = root.run("getent", "passwd", "hearth").stdout.split(":")
    tap.ok(len(user) == 7 and int(user[2]) == owner != 65534, f"{suite}: the data belongs to the system user hearth, who is nobody else", owner)
    tap.ok(str(owner) in children, f"{suite}: and the collector runs as that user", children)
    stored = sorted(os.listdir(root.at("/var/lib/hearth")))
    settings = open(root.at("/etc/default/hearth")).read()
    done = root.apt("install", "--no-install-recommends", "/tmp/new.deb", "/tmp/library.deb")
    tap.ok(done.returncode == 0 and root.run("dpkg-query", "-W", "-f", "${Version}", "hearth").stdout == version, f"{suite}: an upgrade", done.stderr[-300:].strip())
    tap.ok(open(root.at("/etc/default/hearth")).read() == settings and sorted(os.listdir(root.at("/var/lib/hearth"))) == stored,
           f"{suite}: keeps data and settings", " ".join(stored))
    run_unit(root)
    stop_and_remove(root, suite)
    busy.terminate()
    stopped(busy)


def stop_and_remove(root, suite):
    root.apt("remove", "hearth")
    tap.ok(os.path.exists(root.at("/etc/default/hearth")) and os.listdir(root.at("/var/lib/hearth")) and not os.path.lexists(root.at("/usr/bin/gprofiler")),
           f"{suite}: removed, settings and data are still there")
    for folder in ("/var/lib/hearth-agent", "/var/log/hearth-agent", "/var/spool/hearth"):
        os.makedirs(root.at(folder), exist_ok=True)
    done = root.apt("purge", "hearth", "libhearth0")
    left = left_behind(root)
    tap.ok(done.returncode == 0 and not left, f"{suite}: purged, nothing is left", left or done.stderr[-200:])
    tap.ok(root.run("getent", "passwd", "hearth").returncode != 0, f"{suite}: nor the user")


def verify_units():
    if not shutil.which("systemd-analyze"):
        tap.skip("systemd-analyze verify", "needs systemd-analyze")
        return
    folder = path("units")
    run("dpkg-deb", "-x", main, folder)
    units = glob.glob(folder + "/lib/systemd/system/*.service")
    for unit in units:  # the program and the pages are where the package is unpacked
        text = open(unit).read().replace("/usr/bin/hearth", folder + "/usr/bin/hearth")
        with open(unit, "w") as f:
            f.write(text)
    manual = {**os.environ, "MANPATH": folder + "/usr/share/man:"}
    done = run("systemd-analyze", "verify", *([] if shutil.which("man") else ["--man=no"]), *units, env=manual)
    tap.ok(done.returncode == 0 and not done.stderr.strip() and len(units) == 2, "systemd-analyze verify", done.stderr[:400] or len(units))


verify_units()
for name in ("bookworm",) if QUICK else ("bookworm", "trixie"):
    check(name)
tap.finish()
