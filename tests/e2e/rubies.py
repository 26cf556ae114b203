# SPDX-License-Identifier: Apache-2.0
"""The Ruby interpreters that tests run on: that of this machine, and those of other Debian suites. RUBY_ROOTS names folders
(separated by colons) that have a suite with its ruby installed already."""
import contextlib
import os
import shutil
import subprocess
import sys

from pythons import command, prepare
from support import ROOT, some_of

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import packages  # noqa: E402

SUITES = ["bullseye", "trixie"]


class Ruby:
    """An interpreter: its version ("3.1"), where it comes from, and how it is started."""

    def __init__(self, source, program, root=None):
        self.source, self.program, self.root = source, program, root
        self.version = self.asked("print RUBY_VERSION")
        self.number = tuple(int(n) for n in self.version.split(".")[:2]) if self.version else ()
        self.name = f"{self.version} {source}"
        self.collected = {}  # what a load says of itself: CPU seconds, and how many of them in the garbage collector

    def command(self, folders, *args):
        """A command line that runs with @folders (of this machine) readable and writable under their own names."""
        return command(self.program, self.root, folders, args)

    def asked(self, code, *options):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(self.command([], *options, "-e", code), capture_output=True, text=True, timeout=60)
            return done.stdout.strip() if done.returncode == 0 else ""
        return ""


def installed():
    program = shutil.which("ruby")
    found = [Ruby("packaged", os.path.realpath(program))] if program else []
    return [r for r in found if r.number]


def of_suite(suite):
    """The suite's ruby in a folder of its own. Raises packages.Unavailable."""
    for root in os.environ.get("RUBY_ROOTS", "").split(":"):
        if root and os.path.basename(root) == suite:
            return Ruby(suite, "/usr/bin/ruby", root)
    with packages.Lock():
        files = packages.Suite(suite, "amd64").fetch(["ruby"], with_dependencies=True)
        root = packages.unpacked(f"roots/{suite}-ruby", files)
        prepare(root)
    return Ruby(suite, "/usr/bin/ruby", root)


def everything(tap):
    """All that are installed and those of other suites (sampled: some_of() them), one of each version."""
    out = installed()
    for suite in some_of(SUITES):
        try:
            ruby = of_suite(suite)
        except packages.Unavailable as e:
            tap.skip(f"the ruby of {suite}", str(e))
            continue
        if ruby.number and ruby.version not in [r.version for r in out]:
            out.append(ruby)
    return sorted(out, key=lambda r: r.number)
