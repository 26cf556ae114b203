# SPDX-License-Identifier: Apache-2.0
"""The Python interpreters that tests run on: those of this machine and those of other Debian suites."""
import contextlib
import glob
import os
import shutil
import subprocess
import sys

from support import ROOT, path, some_of

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import packages  # noqa: E402

VERSIONS = ["2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
SUITES = ["bullseye", "trixie", "sid"]
QUICK_VERSIONS = ["3.8", "3.11", "3.12", "3.13"]
INSIDE = "/hearth-test"  # where a suite's folder has the folders of a test


def command(program, root, folders, args):
    """A command line of a program, which has @root for its root folder when that is not None, with @folders (of this machine) readable
    and writable under their own names."""
    args = [str(a) for a in args]
    if not root:
        return [program, *args]
    script = 'root=$1; shift; mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"; '
    for folder in folders:
        script += f'mkdir -p "$root{folder}"; mount --bind "{folder}" "$root{folder}"; '
    # Not a child: the pid is the interpreter's.
    return ["unshare", "-m", "sh", "-c", script + 'exec chroot "$root" "$@"', "sh", root, program, *args]


class Python:
    """An interpreter: its version ("3.11"), where it comes from, and how it is started."""

    def __init__(self, version, source, program, root=None):
        self.version, self.source, self.program, self.root = version, source, program, root
        self.number = tuple(int(n) for n in version.split("."))
        self.name = f"{version} {source}"

    def command(self, folders, *args):
        """A command line that runs with @folders (of this machine) readable and writable under their own names."""
        return command(self.program, self.root, folders, args)


def asked(program, code, env=None):
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, timeout=30, env=env)
        return done.stdout.strip() if done.returncode == 0 else None
    return None


def candidates():
    """Real binaries: a version manager's shims are shell scripts."""
    home = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for folder in sorted(glob.glob(os.path.join(home, "versions", "*", "bin"))):
        for file in sorted(glob.glob(os.path.join(folder, "python[23].[0-9]*"))):
            if file.rpartition("python")[2].replace(".", "").isdigit():
                yield "built", file
    for folder in ["/usr/bin", "/usr/local/bin"]:
        for file in sorted(glob.glob(os.path.join(folder, "python[23].[0-9]*"))):
            if file.rpartition("python")[2].replace(".", "").isdigit():
                yield "packaged", file


def installed():
    """One of each version and source; those of a version manager come first."""
    found = {}
    for source, file in candidates():
        with open(file, "rb") as f:
            if f.read(4) != b"\x7fELF":
                continue
        version = asked(file, "import sys; print('%d.%d' % sys.version_info[:2])")
        if version and (version, source) not in found:
            found[version, source] = Python(version, source, os.path.realpath(file))
    return sorted(found.values(), key=lambda p: (p.number, p.source))


def of_suite(suite, extra=()):
    """The suite's python3 in a folder of its own. Raises packages.Unavailable."""
    if not shutil.which("unshare"):
        raise packages.Unavailable("needs unshare")
    with packages.Lock():
        files = packages.Suite(suite, "amd64").fetch(["python3", *extra], with_dependencies=True)
        root = packages.unpacked(f"roots/{'-'.join([suite, 'python3', *extra])}", files)
        prepare(root)
    programs = [f for f in glob.glob(f"{root}/usr/bin/python3.[0-9]*") if f.rpartition(".")[2].isdigit()]
    link = os.readlink(f"{root}/usr/bin/python3")
    version = link.removeprefix("python")
    if f"{root}/usr/bin/{link}" not in programs:
        raise packages.Unavailable(f"{suite} has no usr/bin/{link}")
    return Python(version, suite, f"/usr/bin/{link}", root)


def prepare(root):
    """What package scripts would have done."""
    for name in ("bin", "sbin", "lib", "lib64"):
        there, want = f"{root}/{name}", f"usr/{name}"
        if os.path.islink(there) or not os.path.isdir(f"{root}/usr/{name}"):
            continue
        if not os.path.exists(there):
            os.symlink(want, there)
    # A suite from before the folders were merged: its loader's path must exist.
    loader = f"{root}/lib64/ld-linux-x86-64.so.2"
    if not os.path.lexists(loader):
        raise packages.Unavailable(f"no loader in {root}")
    for name in ("proc", "dev", "tmp"):
        os.makedirs(f"{root}/{name}", exist_ok=True)


def everything(tap, versions=None):
    """All that are installed and those of other suites (sampled: some_of() them). What is missing is skipped by name; the newest that is
    installed stands in for a suite."""
    out = [p for p in installed() if versions is None or p.version in versions]
    for version in versions or VERSIONS[:-1]:
        if not any(p.version == version and p.source == "built" for p in out):
            tap.skip(f"Python {version}", "not installed")
    if versions is not None:
        return [p for p in out if p.source == "built"]
    chosen, newest = [], out[-1:]
    for one in some_of([*out, *SUITES]):
        if isinstance(one, Python):
            chosen.append(one)
            continue
        try:
            chosen.append(of_suite(one))
        except packages.Unavailable as e:
            tap.skip(f"Python of {one}", str(e))
            chosen += [p for p in newest if p not in chosen]
    return chosen


assert path
