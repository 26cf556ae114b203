# SPDX-License-Identifier: Apache-2.0
"""The Perls that there are: Debian's own, those of other suites in folders of their own, and any that HEARTH_PERLS names (a list of programs)."""
import os
import shutil

from installs import CACHE, MIRROR
from support import run

SUITES = ("bullseye", "trixie", "sid")


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


def own():
    return [Perl("Debian's own", "/usr/bin/perl")] if os.access("/usr/bin/perl", os.X_OK) else []


def named():
    return [Perl(p, p) for p in os.environ.get("HEARTH_PERLS", "").split(":") if p]
