# SPDX-License-Identifier: Apache-2.0
"""The Perls that there are: Debian's own, those of other suites in folders of their own, one without threads that is built from Debian's
source, and any that HEARTH_PERLS names (a list of programs)."""
import glob
import os
import shutil
import subprocess
import sys

from installs import CACHE, MIRROR
from support import ROOT, run

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import packages  # noqa: E402

SUITES = ("bullseye", "trixie", "sid")
PLAIN_SUITE = "bookworm"
EXTENSIONS = "List/Util Time/HiRes Fcntl File/Glob IO POSIX Cwd re mro attributes B Data/Dumper Hash/Util Socket Storable Sys/Hostname"  # what the loads and the installation need
NOT_SERVED = "5.28, 5.30, 5.34 and 5.38"  # by any suite


class Perl:
    def __init__(self, name, program, root=None):
        self.name, self.program, self.root = name, program, root

    def command(self, script, *arguments):
        """Runs a file of this folder. It is copied to where a chrooted interpreter can read it."""
        if not self.root:
            return [self.program, script, *map(str, arguments)]
        shutil.copy(script, os.path.join(self.root, "tmp"))
        return ["chroot", self.root, self.program, os.path.join("/tmp", os.path.basename(script)), *map(str, arguments)]

    def version(self):
        command = ["chroot", self.root] if self.root else []
        return run(*command, self.program, "-e", "printf '%vd', $^V").stdout

    def has_threads(self):
        command = ["chroot", self.root] if self.root else []
        return run(*command, self.program, "-MConfig", "-e", "print $Config{usethreads} ? 1 : 0").stdout == "1"


def suite(name):
    """None: it cannot be had here."""
    root = os.path.join(os.path.dirname(CACHE), "perl", name)
    if not os.path.isdir(root):
        if not shutil.which("debootstrap"):
            return None
        partial = f"{root}.{os.getpid()}"
        os.makedirs(os.path.dirname(root), exist_ok=True)
        if run("debootstrap", "--variant=minbase", "--include=perl", name, partial, MIRROR, timeout=900).returncode:
            shutil.rmtree(partial, ignore_errors=True)
            return None
        os.rename(partial, root)
    return Perl(name, "perl", root)


def built(folder, *commands):
    """Runs commands in a folder. Raises packages.Unavailable."""
    for command in commands:
        done = run("nice", *command, cwd=folder, timeout=1800, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise packages.Unavailable(f"{' '.join(command[:2])}: {done.stderr.strip()[-200:]}")


def plain():
    """Without threads: Debian has none such, so it is built once, which takes some minutes. Raises packages.Unavailable."""
    root = os.path.join(os.path.dirname(CACHE), "perl", f"{PLAIN_SUITE}-plain")
    if not os.path.isdir(root):
        build = f"{root}.{os.getpid()}"
        with packages.Lock():
            packages.Sources(PLAIN_SUITE).unpack("perl", build)
        sources = [os.path.dirname(f) for f in glob.glob(f"{build}/perl-5*/Configure")]
        if not sources:
            raise packages.Unavailable(f"perl's source of {PLAIN_SUITE} has no Configure")
        built(sources[0], ["sh", "./Configure", "-des", "-Uusethreads", f"-Dprefix={root}", "-Dman1dir=none", "-Dman3dir=none", "-Dcc=cc",
                           f"-Donlyextensions={EXTENSIONS}"], ["make", f"-j{os.cpu_count()}"], ["make", "install.perl", f"DESTDIR={build}/out"])
        os.rename(f"{build}/out{root}", root)
        shutil.rmtree(build)
    return Perl("without threads", os.path.join(root, "bin", "perl"))


def own():
    return [Perl("Debian's own", "/usr/bin/perl")] if os.access("/usr/bin/perl", os.X_OK) else []


def named():
    return [Perl(p, p) for p in os.environ.get("HEARTH_PERLS", "").split(":") if p]
