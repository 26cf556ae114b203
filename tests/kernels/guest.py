# SPDX-License-Identifier: Apache-2.0
"""One emulated machine: an initramfs with hearth and what it shall see, a boot, and what was written on its console.

All files of ours are in the guest's folder /hearth; what it runs starts by /hearth/start: start-programs with the static programs,
start-runtimes with a suite's interpreters (runtimes.py).
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

import packages

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = sorted(os.path.basename(f)[:-2] for f in glob.glob(f"{HERE}/programs/*.c"))
PROGRAM_FLAGS = ["-D_GNU_SOURCE", "-std=gnu17", "-O2", "-static", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-Wall",
                 "-Wextra", "-pthread"]
CONSOLE_MAX = 8 << 20
# What the arm64 build links, and the guest's shell.
SYSROOT = ["busybox-static", "libbpf-dev", "libc6-dev", "libcmocka-dev", "libcurl4-gnutls-dev", "libdeflate-dev", "libdw-dev", "libelf-dev", "libgnutls28-dev",
           "libiberty-dev", "libjansson-dev", "liblzma-dev", "libmicrohttpd-dev", "libseccomp-dev", "libxxhash-dev", "nettle-dev", "libsqlite3-dev", "libzstd-dev", "zlib1g-dev"]


def run(*args, **options):
    """A command that has to work; its error output is the reason when it does not."""
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="replace", **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, args[:3]))}: {(done.stderr or done.stdout)[-1500:]}")
    return done.stdout


class X86:
    name, compiler, build, flags = "x86_64", "gcc", os.path.join(ROOT, "build"), []
    debian, loader = "amd64", "ld-linux-x86-64.so.2"
    tools = ["qemu-system-x86_64", "cpio", "gcc"]
    # Without cmpxchg16b, with which the kernel allocates memory: as qemu 7.2 on a busy host emulates it, 6.12 died in it
    # at one boot of four. One guest CPU is enough and starts sooner.
    qemu = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max,cx16=off", "-smp", "1"]
    console = "ttyS0"

    def prepare(self):
        self.busybox = shutil.which("busybox")
        if not self.busybox:
            raise packages.Unavailable("needs busybox (package busybox-static)")
        self.hearth = os.path.abspath(os.environ.get("HEARTH", os.path.join(self.build, "hearth")))

    def libraries(self, program):
        """Where each library is in the guest -> its file here."""
        return {path: path for path in re.findall(r"(?:=> )?(/\S+) \(0x", run("ldd", program))}


class Arm64:
    name, compiler, build = "aarch64", "aarch64-linux-gnu-gcc", os.path.join(ROOT, "build-aarch64")
    debian, loader = "arm64", "ld-linux-aarch64.so.1"
    tools = ["qemu-system-aarch64", "qemu-aarch64-static", "cpio", "aarch64-linux-gnu-gcc"]
    qemu = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72", "-smp", "2"]
    console = "ttyAMA0"

    def prepare(self):
        """The sysroot, and the build against it."""
        suite = packages.Suite("bookworm", "arm64")
        self.sysroot = packages.unpacked("sysroot-arm64", suite.fetch(SYSROOT, with_dependencies=True))
        self.busybox = f"{self.sysroot}/bin/busybox"
        self.hearth = os.path.join(self.build, "hearth")
        # One C library for hearth, the programs and verify, not also the one that may come with the cross compiler.
        self.flags = [f"--sysroot={self.sysroot}"]
        constants = f"{self.sysroot}.ini"
        with open(constants, "w") as f:
            f.write(f"[constants]\nsysroot = '{self.sysroot}'\n")
        if not os.path.exists(f"{self.build}/build.ninja"):
            run("meson", "setup", self.build, "-Dwerror=true", "--cross-file", constants, "--cross-file", f"{HERE}/aarch64.ini", cwd=ROOT)
        run("ninja", "-C", self.build, cwd=ROOT)

    def libraries(self, program):
        found, todo = {}, [program]
        where = [f"{self.sysroot}/lib/aarch64-linux-gnu", f"{self.sysroot}/usr/lib/aarch64-linux-gnu", f"{self.sysroot}/lib"]
        while todo:
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", todo.pop())):
                file = next((f"{d}/{name}" for d in where if os.path.exists(f"{d}/{name}")), None)
                if not file:
                    raise RuntimeError(f"{name} is not in the sysroot")
                if file not in found.values():
                    todo.append(file)
                    found["/lib/" + ("" if name.startswith("ld-") else "aarch64-linux-gnu/") + name] = file
        return found


def put(root, path, file):
    os.makedirs(root + os.path.dirname(path), exist_ok=True)
    shutil.copy(file, root + path)


def packed(root, image):
    """The folder as an initramfs."""
    run("sh", "-c", f"find . | cpio -o -H newc --quiet | gzip -1 >{image}", cwd=root)
    return image


def own_files(machine, root, start, seconds):
    """What every guest has: its shell, hearth, and how it starts."""
    put(root, "/hearth/bin/busybox", machine.busybox)
    put(root, "/hearth/bin/hearth", machine.hearth)
    put(root, "/hearth/init", f"{HERE}/guest-init")
    put(root, "/hearth/start", f"{HERE}/{start}")
    with open(f"{root}/hearth/seconds", "w") as f:
        f.write(f"{seconds}\n")


def initramfs(machine, seconds, scratch):
    """Path of the packed image of a guest with the static programs."""
    root = tempfile.mkdtemp(dir=scratch)
    own_files(machine, root, "start-programs", seconds)
    for name in PROGRAMS:
        os.makedirs(f"{root}/hearth/programs", exist_ok=True)
        run(machine.compiler, *machine.flags, *PROGRAM_FLAGS, "-o", f"{root}/hearth/programs/{name}", f"{HERE}/programs/{name}.c")
    run(machine.compiler, *machine.flags, "-O1", "-o", f"{root}/hearth/bin/verify", f"{HERE}/verify.c", "-lbpf")
    put(root, "/hearth/sampler.bpf.o", f"{machine.build}/bpf/sampler.bpf.o")
    put(root, "/hearth/python_seed.bpf.o", f"{machine.build}/tests/bpf/python_seed.bpf.o")
    put(root, "/hearth/nodejs_seed.bpf.o", f"{machine.build}/tests/bpf/nodejs_seed.bpf.o")
    for path, file in machine.libraries(machine.hearth).items():
        put(root, path, file)
    return packed(root, f"{root}.img")


class Console:
    """sections: name -> text; done: whether the guest came to its end."""

    def __init__(self, text):
        text = text.replace("\r", "")
        self.text, self.done = text, "\n@@ done" in text
        self.sections = {name: body.strip("\n") for name, body in
                         re.findall(r"^@@ begin (\w+)\n(.*?)^@@ end \1$", text, re.M | re.S)}

    def tail(self):
        return " | ".join(line for line in self.text.splitlines()[-12:] if line.strip())


def boot(machine, image, initrd, timeout_s, memory_mib=768):
    """Starts the machine and waits until it goes off; at the latest after timeout_s it is stopped. no_timer_check: on a
    busy host the emulated timer is too late for the kernel's look at it."""
    command = machine.qemu + ["-m", str(memory_mib), "-nographic", "-no-reboot", "-net", "none", "-kernel", image, "-initrd", initrd,
                              "-append", f"console={machine.console} rdinit=/hearth/init quiet panic=-1 no_timer_check"]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        out.seek(0)
        return Console(out.read(CONSOLE_MAX).decode("utf-8", "replace"))
