# SPDX-License-Identifier: Apache-2.0
"""The PHP interpreters that tests run on: that of this machine and those of other Debian suites."""
import glob
import os
import re
import shutil
import subprocess

import pythons
from pythons import packages
from support import some_of

SUITES = {"bullseye": "7.4", "trixie": "8.4"}


class Php(pythons.Python):
    """An interpreter: its version ("8.2"), where it comes from, and how it is started."""

    def options(self, jit=None):
        """Extensions that the loads use, where no package script has switched them on; opcache with its compiler."""
        out = []
        if self.root:
            out += ["-d", f"extension_dir={self.extensions()}"]
            if self.number < (8, 0):
                out += ["-d", "extension=json"]
        if jit:
            opcache = ["-d", "zend_extension=opcache"] if self.root else []
            out += [*opcache, "-d", "opcache.enable_cli=1", "-d", f"opcache.jit={jit}", "-d", "opcache.jit_buffer_size=32M"]
        return out

    def extensions(self):
        return glob.glob(f"{self.root}/usr/lib/php/2*")[0].removeprefix(self.root)


def of_machine():
    programs = sorted(f for f in glob.glob("/usr/bin/php[78].[0-9]") if os.access(f, os.X_OK))
    return [Php(re.search(r"php([0-9.]+)$", f)[1], "packaged", f) for f in programs]


def fpm_of_machine():
    found = sorted(glob.glob("/usr/sbin/php-fpm[78].[0-9]"))
    return Php(re.search(r"php-fpm([0-9.]+)$", found[-1])[1], "packaged", found[-1]) if found else None


def add_nobody(root):
    """The user that php-fpm's workers run as, where no package script has added any."""
    for name, text in ("passwd", "nobody:x:65534:65534::/:/bin/false\n"), ("group", "nogroup:x:65534:\n"):
        if not os.path.exists(f"{root}/etc/{name}"):
            with open(f"{root}/etc/{name}", "w") as f:
                f.write(text)


def fpm_of_suite(suite):
    """Its php-fpm. Raises packages.Unavailable."""
    if not shutil.which("unshare"):
        raise packages.Unavailable("needs unshare")
    version = SUITES[suite]
    with packages.Lock():
        files = packages.Suite(suite, "amd64").fetch([f"php{version}-fpm"], with_dependencies=True)
        root = packages.unpacked(f"roots/{suite}-php{version}-fpm", files)
        pythons.prepare(root)
        add_nobody(root)
    return Php(version, suite, f"/usr/sbin/php-fpm{version}", root)


def of_suite(suite):
    if not shutil.which("unshare"):
        raise packages.Unavailable("needs unshare")
    version = SUITES[suite]
    names = [f"php{version}-cli", f"php{version}-opcache"] + ([f"php{version}-json"] if version < "8" else [])
    with packages.Lock():
        files = packages.Suite(suite, "amd64").fetch(names, with_dependencies=True)
        root = packages.unpacked(f"roots/{suite}-php{version}", files)
        pythons.prepare(root)
    return Php(version, suite, f"/usr/bin/php{version}", root)


def threaded():
    """A library built for threads (ZTS, 8.4), and the folder of a library that it needs. Raises packages.Unavailable."""
    package, folder = "@platformatic/php-node", os.path.join(packages.CACHE, "php-zts")
    library = os.path.join(folder, "node_modules", package, "npm", "linux-x64-gnu", "libphp.so")
    if not shutil.which("npm"):
        raise packages.Unavailable("there is no npm")
    with packages.Lock():
        if not os.path.exists(library):
            os.makedirs(folder, exist_ok=True)
            try:
                done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", folder,
                                       f"{package}@1.4.0"], capture_output=True, text=True, timeout=600)
            except subprocess.TimeoutExpired:
                raise packages.Unavailable("npm took more than ten minutes")
            if done.returncode or not os.path.exists(library):
                raise packages.Unavailable((done.stderr.strip() or "no message").splitlines()[-1])
        beside = packages.unpacked("roots/bookworm-libzip", packages.Suite("bookworm", "amd64").fetch(["libzip4"], with_dependencies=False))
    return library, f"{beside}/usr/lib/x86_64-linux-gnu"


def everything(tap):
    """All that are installed and those of other suites (sampled: some_of() them). What is missing is skipped by name."""
    out = of_machine()
    for suite in some_of(SUITES):
        try:
            out.append(of_suite(suite))
        except packages.Unavailable as e:
            tap.skip(f"PHP of {suite}", str(e))
    return sorted(out, key=lambda p: p.number)
