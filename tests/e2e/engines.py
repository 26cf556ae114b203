# SPDX-License-Identifier: Apache-2.0
"""What checks with container engines share."""
import contextlib

from support import *


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
