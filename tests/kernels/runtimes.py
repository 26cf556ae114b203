# SPDX-License-Identifier: Apache-2.0
"""A guest with the interpreters of the kernel's own Debian suite, each with a load of known stacks (loads/), and the judge of what
hearth saw of them there.

hearth and its libraries come from here, so it has a loader of its own in the guest. Nothing is installed: the suite's packages are
unpacked, and packed as an initramfs once.
"""
import glob
import os
import re
import shutil
import tempfile
from collections import Counter

import guest
import packages

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 24
BOOT_TIMEOUT_S = 900
MEMORY_MIB = 3072
LEAST_SAMPLES = 40
EXACT_SHARE = 0.95
WHOLE_SHARE = 0.85  # of a process's samples, other functions of the load and the runtime's own threads among them
DEPTH = 8  # of known_middle
CHAIN = ("known_outer", *["known_middle"] * DEPTH, "known_leaf")
# Runtime: its package, and the command to which the file to write is added; {} is the version, {debian} the architecture.
RUNTIMES = {
    "Python": ("python{}", "python{} /hearth/loads.d/python.py"),
    "Perl": ("perl", "perl /hearth/loads.d/perl.pl"),
    "Ruby": ("ruby{}", "ruby{} /hearth/loads.d/ruby.rb"),
    "PHP": ("php{}-cli", "php{} /hearth/loads.d/php.php"),
    "Node.js": ("nodejs", "/usr/bin/node /hearth/loads.d/nodejs.js"),
    "Java": ("openjdk-{}-jre-headless", "/usr/lib/jvm/java-{}-openjdk-{debian}/bin/java -Xmx64m -XX:+UseSerialGC -XX:CompileCommand=dontinline,Java.known_leaf -cp /hearth/loads.d Java"),
}
# Kernel: its suite, and the versions that this has; on aarch64 those of runtimes whose own code is walked by rules of its own.
SUITES = {
    "arm64-6.1": ("bookworm", {"Java": "17"}),
    "5.10": ("bullseye", {"Python": "3.9", "Perl": "5.32", "Ruby": "2.7", "PHP": "7.4", "Node.js": "12", "Java": "11"}),
    "6.1": ("bookworm", {"Python": "3.11", "Perl": "5.36", "Ruby": "3.1", "PHP": "8.2", "Node.js": "18", "Java": "17"}),
    "6.12": ("trixie", {"Python": "3.13", "Perl": "5.40", "Ruby": "3.3", "PHP": "8.4", "Node.js": "20", "Java": "21"}),
}
# What no interpreter reads.
LEFT_OUT = ["./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info", "./usr/share/lintian", "./.archives"]


def loads_of(kernel):
    """By name ("Python 3.9"): the package and the command."""
    _, versions = SUITES[kernel]
    debian = "arm64" if kernel.startswith("arm64") else "amd64"
    return {f"{runtime} {version}": tuple(text.format(version, debian=debian) for text in RUNTIMES[runtime]) for runtime, version in versions.items()}


def key(name):
    """A load's name as one word."""
    return name.replace(" ", "_")


def suite_image(suite, debian, names):
    """The suite's packages as an initramfs, packed once. Raises packages.Unavailable."""
    files = packages.Suite(suite, debian).fetch(["libc6", *names], with_dependencies=True)
    root = packages.unpacked(f"roots/{suite}-runtimes" if debian == "amd64" else f"roots/{suite}-{debian}-runtimes", files)
    for name in ("bin", "sbin", "lib", "lib64"):  # what base-files would have made
        if os.path.isdir(f"{root}/usr/{name}") and not os.path.lexists(f"{root}/{name}"):
            os.symlink(f"usr/{name}", f"{root}/{name}")
    image = f"{root}.img"
    if not os.path.exists(image) or os.path.getmtime(image) < os.path.getmtime(f"{root}/.archives"):
        pruned = " -o ".join(f"-path {name}" for name in LEFT_OUT)
        guest.run("sh", "-c", f"find . \\( {pruned} \\) -prune -o -print | cpio -o -H newc --quiet >{image}.new", cwd=root)
        os.rename(f"{image}.new", image)
    return image


def loads_folder(root):
    folder = f"{root}/hearth/loads.d"
    os.makedirs(folder)
    for file in glob.glob(f"{HERE}/loads/*"):
        shutil.copy(file, folder)
    guest.run("javac", "--release", "8", "-nowarn", "-d", folder, f"{HERE}/loads/Java.java")


def initramfs(machine, kernel, scratch):
    """Path of the packed image: the suite's files, and behind them ours. Raises packages.Unavailable, RuntimeError."""
    suite, loads = SUITES[kernel][0], loads_of(kernel)
    missing = [tool for tool in ("patchelf", "javac") if not shutil.which(tool)]
    if missing:
        raise packages.Unavailable("needs " + ", ".join(missing) + " (make setup-extra)")
    with packages.Lock():
        base = suite_image(suite, machine.debian, [package for package, _ in loads.values()])
    root = tempfile.mkdtemp(dir=scratch)
    guest.own_files(machine, root, "start-runtimes", SECONDS)
    for place, file in machine.libraries(machine.hearth).items():
        guest.put(root, "/hearth/lib/" + os.path.basename(place), file)
    guest.run("patchelf", "--set-interpreter", f"/hearth/lib/{machine.loader}", "--force-rpath", "--set-rpath", "/hearth/lib",
              f"{root}/hearth/bin/hearth")
    loads_folder(root)
    with open(f"{root}/hearth/loads", "w") as f:
        f.writelines(f"{key(name)} {command}\n" for name, (_, command) in loads.items())
    own = guest.packed(root, f"{root}.own")
    image = f"{root}.img"
    with open(image, "wb") as out:  # several archives, one behind the other, are one initramfs
        for part in (base, own):
            with open(part, "rb") as f:
                shutil.copyfileobj(f, out)
            out.write(bytes(-out.tell() % 4))
    return image


def known(names):
    """The load's own functions of a stack, by their bare names: "Java.known_leaf", "main::known_leaf", "Object#known_leaf"."""
    found = (re.search(r"(?:^|[.:#])(known_\w+)$", name) for name in names)
    return tuple(m[1] for m in found if m)


def check(tap, kernel, console, profile):
    """@profile: what hearth wrote in this guest."""
    said = console.sections.get("loads", "")
    for name, (_, command) in loads_of(kernel).items():
        program = os.path.basename(command.split()[0])
        mine = [s for s in profile.samples if s.labels.get("comm") == program]
        stacks = Counter()
        for s in mine:
            chain = known(s.names)
            if chain and chain[-1] == "known_leaf":
                stacks[chain, s.end] += s.count
        total = sum(stacks.values())
        if not tap.ok(total >= LEAST_SAMPLES, f"{kernel}: {name}: has samples in known_leaf", f"{total} of {sum(s.count for s in mine)}"):
            tap.note(said)
            for s in sorted(mine, key=lambda s: -s.count)[:3]:
                tap.note(f"{s.count} times {s.end}: {';'.join(s.names)}")
            continue
        whole, all_of_it = stacks[CHAIN, "complete"], sum(s.count for s in mine)
        tap.ok(whole / all_of_it >= WHOLE_SHARE, f"{kernel}: {name}: at least {WHOLE_SHARE:.0%} of all its samples are so",
               f"{100 * whole / all_of_it:.1f} % of {all_of_it}")
        tap.ok(whole / total >= EXACT_SHARE, f"{kernel}: {name}: at least {EXACT_SHARE:.0%} are the known stack, whole, with names",
               f"{100 * whole / total:.1f} % of {total}")
        for (chain, how), n in stacks.most_common(4):
            if (chain, how) != (CHAIN, "complete"):
                tap.note(f"{n} times {how}: {';'.join(chain)}")
