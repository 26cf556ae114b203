# SPDX-License-Identifier: Apache-2.0
"""Debian packages of other suites and architectures, unpacked into a cache folder: nothing is installed.

Each suite has an apt of its own: own lists, own archive folder, an empty dpkg status. Only the mirror's address and the
proxy come from the machine. HEARTH_CACHE names another folder than ~/.cache/hearth.
"""
import fcntl
import glob
import os
import re
import subprocess
import time

CACHE = os.path.abspath(os.environ.get("HEARTH_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hearth"))
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_DAYS = 7
DEFAULT_MIRROR = "http://deb.debian.org/debian"


class Unavailable(Exception):
    """Something outside the project cannot be fetched; the text says what."""


def mirror():
    """The first Debian mirror that the machine itself uses."""
    for file in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")) + ["/etc/apt/sources.list"]:
        try:
            with open(file) as f:
                text = f.read()
        except OSError:
            continue
        found = re.search(r"^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(\S+/debian/?)\s*(?:$|\s+\w)", text, re.M)
        if found:
            return found[1]
    return DEFAULT_MIRROR


class Suite:
    kind = "deb"

    def __init__(self, name, architecture):
        self.name, self.architecture = name, architecture
        self.folder = os.path.join(CACHE, "suites", f"{name}-{architecture}")

    def apt(self, *args, cwd=None):
        options = {
            "Dir::State": f"{self.folder}/state", "Dir::State::status": f"{self.folder}/status",
            "Dir::Cache": f"{self.folder}/cache", "Dir::Etc::SourceList": f"{self.folder}/sources.list",
            "Dir::Etc::SourceParts": "/dev/null", "Dir::Etc::Preferences": "/dev/null", "Dir::Etc::PreferencesParts": "/dev/null",
            "APT::Architecture": self.architecture, "APT::Architectures": self.architecture,
            "Acquire::Languages": "none", "APT::Sandbox::User": "", "Acquire::Retries": "5",
        }
        command = [args[0]]
        for key, value in options.items():
            command += ["-o", f"{key}={value}"]
        try:
            done = subprocess.run(command + list(args[1:]), capture_output=True, text=True, timeout=600, cwd=cwd)
        except FileNotFoundError:
            raise Unavailable(f"there is no {args[0]}: Debian's packages are needed")
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{args[0]} {args[1]} for {self.name} took more than ten minutes")
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise Unavailable(f"{args[0]} {args[1]} for {self.name} {self.architecture}: {last}")
        return done.stdout

    def update(self):
        """The suite's lists, fetched when they are missing or old."""
        stamp = f"{self.folder}/updated"
        if os.path.exists(stamp) and time.time() - os.path.getmtime(stamp) < LISTS_DAYS * 86400:
            return
        for part in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(f"{self.folder}/{part}", exist_ok=True)
        if not os.path.exists(KEYRING):
            raise Unavailable(f"{KEYRING} (package debian-archive-keyring) is missing")
        with open(f"{self.folder}/sources.list", "w") as f:
            f.write(f"{self.kind} [signed-by={KEYRING}] {mirror()} {self.name} main\n")
        open(f"{self.folder}/status", "w").close()
        self.apt("apt-get", "update", "-qq")
        open(stamp, "w").close()

    def fetch(self, names, with_dependencies):
        """Archives of the packages, and of what they depend on. Returns their paths."""
        self.update()
        if not with_dependencies:
            return [self.download(name) for name in names]
        self.apt("apt-get", "install", "-qq", "-y", "--download-only", "--no-install-recommends", *names)
        lines = self.apt("apt-get", "install", "-qq", "-y", "-s", "--no-install-recommends", *names).splitlines()
        wanted = {found[1] for found in (re.match(r"Inst (\S+) ", line) for line in lines) if found}
        return [file for file in sorted(glob.glob(f"{self.folder}/cache/archives/*.deb"))
                if os.path.basename(file).partition("_")[0] in wanted]

    def download(self, name):
        """The archive of one package, fetched unless it is there."""
        version = re.search(r"^Version: (\S+)", self.apt("apt-cache", "show", "--no-all-versions", name), re.M)
        archives = f"{self.folder}/cache/archives"
        file = f"{archives}/{name}_{version[1].replace(':', '%3a')}_{self.architecture}.deb"
        if not os.path.exists(file):
            self.apt("apt-get", "download", "-qq", name, cwd=archives)
        return file

    def kernel_package(self, meta):
        """The package that a kernel's meta package stands for now."""
        self.update()
        found = re.search(r"^Depends: (linux-image-\S+?-\S+?)(?:[ ,(]|$)", self.apt("apt-cache", "show", "--no-all-versions", meta), re.M)
        if not found:
            raise Unavailable(f"{meta} of {self.name} names no kernel")
        return found[1]


class Sources(Suite):
    """The source packages of a suite."""
    kind = "deb-src"

    def __init__(self, name):
        super().__init__(name, "amd64")
        self.folder = os.path.join(CACHE, "suites", f"{name}-source")

    def unpack(self, package, folder):
        """Fetches a package and unpacks its original sources below @folder, without Debian's changes. Returns the archives."""
        self.update()
        os.makedirs(folder, exist_ok=True)
        self.apt("apt-get", "source", "-qq", "--download-only", package, cwd=folder)
        archives = sorted(glob.glob(f"{folder}/{package}_*.orig.tar.*"))
        for archive in archives:
            subprocess.run(["tar", "-C", folder, "-xf", archive], check=True)
        return archives


def unpacked(name, files):
    """A folder with the contents of the archives; unpacked anew when the list of files is another one."""
    folder = os.path.join(CACHE, name)
    mark, want = os.path.join(folder, ".archives"), "\n".join(os.path.basename(f) for f in files)
    if os.path.exists(mark):
        with open(mark) as f:
            if f.read() == want:
                return folder
        subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(folder, exist_ok=True)
    for file in files:
        subprocess.run(["dpkg-deb", "-x", file, folder], check=True)
    with open(mark, "w") as f:
        f.write(want)
    return folder


def kernel(suite, architecture, meta):
    """Path of a kernel image of the suite, and its version."""
    source = Suite(suite, architecture)
    package = source.kernel_package(meta)
    folder = unpacked(f"kernels/{suite}-{architecture}", source.fetch([package], with_dependencies=False))
    images = glob.glob(f"{folder}/boot/vmlinuz-*")
    if not images:
        raise Unavailable(f"{package} of {suite} has no /boot/vmlinuz-*")
    return images[0], os.path.basename(images[0]).removeprefix("vmlinuz-")


class Lock:
    """Two runs at once take turns at the cache."""

    def __enter__(self):
        os.makedirs(CACHE, exist_ok=True)
        self.file = open(os.path.join(CACHE, "lock"), "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()
