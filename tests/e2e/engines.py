# SPDX-License-Identifier: Apache-2.0
"""What checks with container engines share."""
import contextlib

from support import *

# Images and containers lie in a folder of the check.
PODMAN = ("podman", "--root", path("root"), "--runroot", path("runroot"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
          "--runtime", shutil.which("runc") or "runc")


def podman(*args):
    return run(*PODMAN, *args)


def podman_image(tag, program):
    """Makes an image with one static program, the spinning one under this name. Returns what failed, or ""."""
    os.mkdir(path("image"))
    for command in (("cc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-static", "-o", path(f"image/{program}"),
                     os.path.join(HERE, "workloads", "spin.c"), "-pthread"),
                    ("tar", "-C", path("image"), "-cf", path("image.tar"), "."), (*PODMAN, "import", path("image.tar"), tag)):
        done = run(*command)
        if done.returncode:
            return done.stderr[-200:] or command[0]
    return ""


def podman_run(tag, name, *command):
    return podman("run", "-d", "--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--name", name, tag, *command)


def podman_remove(name):
    """The container, and the cgroups that podman leaves behind, unless others use them."""
    podman("rm", "-f", "-t", "1", name)
    for tree, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
        if "/libpod_parent" in tree:
            with contextlib.suppress(OSError):
                os.rmdir(tree)


def host_with(folders, sockets):
    """A root of a host: folders of the real one, and sockets at these places ({a place below it: the socket, or None for none})."""
    os.makedirs(path("host"))
    for folder in folders:
        os.symlink(f"/{folder}", path(f"host/{folder}"))
    for place, socket in sockets.items():
        if socket:
            os.makedirs(os.path.dirname(path(f"host/{place}")), exist_ok=True)
            os.link(socket, path(f"host/{place}"))
    return path("host")


def sweep_groups(name):
    """Removes the cgroups of this name that an engine leaves behind, unless others use them."""
    for tree, folders, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(tree) == name:
            with contextlib.suppress(OSError):
                os.rmdir(tree)
            folders[:] = []
