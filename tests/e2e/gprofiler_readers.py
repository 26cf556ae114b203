# SPDX-License-Identifier: Apache-2.0
"""gProfiler's own readers, out of the tree that GPROFILER names (intel/gprofiler; nothing of it is here), and granulate-utils behind a colon.
HEARTH_GPROFILER_PYTHON names a Python that has their requirements; without it, this one."""
import json
import os
import sys

from support import HERE, run

TREES = os.environ.get("GPROFILER", "")
PYTHON = os.environ.get("HEARTH_GPROFILER_PYTHON", sys.executable)
MISSING = "needs the trees of gProfiler and granulate-utils (GPROFILER) and a Python with their requirements (HEARTH_GPROFILER_PYTHON)"


def ask(verb, *words):
    return run(PYTHON, os.path.join(HERE, "check_gprofiler", "readers.py"), verb, *words,
               env={**os.environ, "PYTHONPATH": TREES})


def are_there():
    return bool(TREES) and ask("arguments", "-o", "x").returncode == 0


def read(tap, *files):
    """What they make of .col files; None after a failure, which is told."""
    done = ask("read", *files)
    if not tap.ok(done.returncode == 0, "gProfiler's readers take " + " ".join(map(os.path.basename, files)), done.stderr[-500:]):
        return None
    facts = json.loads(done.stdout.splitlines()[-1])
    tap.ok(not facts["complaints"], "without a word", facts["complaints"][:3])
    return facts
