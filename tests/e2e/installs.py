# SPDX-License-Identifier: Apache-2.0
"""Folders that a program is installed into: fresh roots of Debian's suites, and one with next to nothing. Shared by the checks of packages.

Mounts are made in a mount namespace of the driver's own (own_namespace()), so they end with it whatever happens.
"""
import atexit
import os
import shlex
import shutil
import stat
import subprocess
import sys

from support import ROOT, path, run, scratch

MIRROR = "http://deb.debian.org/debian"
CACHE = os.path.join(os.environ.get("HEARTH_CACHE", os.path.expanduser("~/.cache/hearth")), "suites", "fresh")


def own_namespace(network=False):
    """Starts the driver again in a mount namespace of its own, and maybe one of the network; to be called first."""
    if os.geteuid() == 0 and os.environ.get("HEARTH_OWN_MOUNTS") != "yes":
        shutil.rmtree(scratch)
        os.environ["HEARTH_OWN_MOUNTS"] = "yes"
        os.execvp("unshare", ["unshare", "--mount", *(["--net"] if network else []), "--propagation", "private", sys.executable, *sys.argv])


def fetched(suite):
    """The folder that debootstrap made of a suite, once, with essential packages alone; None when it cannot be had."""
    root = os.path.join(CACHE, suite)
    if os.path.isdir(root):
        return root
    if not shutil.which("debootstrap"):
        return None
    partial = f"{root}.{os.getpid()}"
    os.makedirs(CACHE, exist_ok=True)
    done = run("debootstrap", "--variant=minbase", suite, partial, MIRROR, timeout=900)
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        return None
    os.rename(partial, root)
    return root


mounted = []


@atexit.register
def unmount():
    """Runs before support.clean_up(), which removes the folder: it must not go into anything that is mounted there."""
    for place in reversed(mounted):
        subprocess.run(["umount", "--lazy", place], stderr=subprocess.DEVNULL)
    with open("/proc/self/mounts") as f:
        if any(scratch in line for line in f):
            os._exit(1)  # something is still mounted: leave the folder


def mount(kind, place, *options):
    """Only file systems of our own, never a bind of the machine's."""
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-t", kind, *options, kind, place], check=True)
    mounted.append(place)


class Root:
    """A folder to change the root to, with the kernel's file systems and the usual devices."""

    def __init__(self, folder):
        self.folder = folder
        mount("proc", self.at("proc"))
        mount("sysfs", self.at("sys"), "-o", "ro")
        mount("tmpfs", self.at("dev"), "-o", "mode=755,size=16m")
        for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
            os.mknod(self.at("dev/" + name), stat.S_IFCHR | 0o666, os.makedev(1, minor))
            os.chmod(self.at("dev/" + name), 0o666)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.symlink(f"/proc/self/fd/{number}", self.at("dev/" + name))
        os.symlink("/proc/self/fd", self.at("dev/fd"))

    def at(self, name):
        return os.path.join(self.folder, name.lstrip("/"))

    def take(self, file, name):
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        shutil.copy(file, self.at(name))

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        with open(self.at(name), "w") as f:
            f.write(text)

    def command(self, *args):
        return ["chroot", self.folder, *[str(a) for a in args]]

    def run(self, *args, **options):
        options.setdefault("env", {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})
        return run(*self.command(*args), **options)


class Suite(Root):
    """A fresh Debian: what is changed in it lies in a layer above the fetched folder."""

    def __init__(self, name):
        self.suite = name
        lower, folder = fetched(name), path(name)
        for part in ("up", "work", "root"):
            os.makedirs(os.path.join(folder, part))
        merged = os.path.join(folder, "root")
        layers = f"lowerdir={lower},upperdir={folder}/up,workdir={folder}/work"
        mount("overlay", merged, "-o", layers)
        super().__init__(merged)
        for file in ("/etc/resolv.conf", "/etc/hosts"):
            self.take(file, file)

    def apt(self, *words):
        return self.run("apt-get", "-qq", "-o", "Acquire::Retries=5", "-o", "Dpkg::Use-Pty=0", *words, timeout=600)


def bare(*programs):
    """A root with musl's C library, busybox and @programs alone: no glibc, no nsswitch.conf."""
    folder = path("bare")
    os.makedirs(folder + "/bin")
    os.makedirs(folder + "/lib")
    os.makedirs(folder + "/etc")
    os.makedirs(folder + "/tmp")
    root = Root(folder)
    root.take(shutil.which("busybox"), "/bin/busybox")
    for name in ("sh", "ls", "cat", "nslookup"):
        os.symlink("busybox", root.at("/bin/" + name))
    shutil.copy(os.path.realpath("/lib/ld-musl-x86_64.so.1"), root.at("/lib/ld-musl-x86_64.so.1"))
    for program in programs:
        root.take(program, "/bin/" + os.path.basename(program))
    return root


def unit_command(root, unit):
    """The environment and command line of a unit's ExecStart, as systemd makes them: EnvironmentFile over Environment."""
    environment, start = {}, None
    with open(root.at(f"/lib/systemd/system/{unit}.service")) as f:
        for line in f:
            key, _, value = line.strip().partition("=")
            if key == "Environment":
                environment.update(pair.split("=", 1) for pair in shlex.split(value))
            elif key == "EnvironmentFile" and os.path.exists(root.at(value.lstrip("-"))):
                with open(root.at(value.lstrip("-"))) as settings:
                    for setting in settings:
                        if "=" in setting and not setting.startswith("#"):
                            name, _, text = setting.strip().partition("=")
                            environment[name] = " ".join(shlex.split(text))
            elif key == "ExecStart":
                start = value
    words = []
    for word in shlex.split(start):
        words += environment[word[1:]].split() if word.startswith("$") else [word]
    return environment, words


def static_program(tap):
    """The static file of this tree (HEARTH_STATIC names another), built when it is not there or old."""
    named = os.environ.get("HEARTH_STATIC")
    if named:
        return os.path.abspath(named)
    done = subprocess.run(["scripts/static"], cwd=ROOT, capture_output=True, text=True)
    if not tap.ok(done.returncode == 0, "scripts/static", done.stderr[-400:].strip()):
        tap.finish()
    return os.path.join(ROOT, "build-static", "hearth")
