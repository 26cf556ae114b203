# SPDX-License-Identifier: Apache-2.0
"""Loads that scripts/picture and scripts/demonstration start beside a profile, and end with it."""
import os
import shlex
import signal
import subprocess
import textwrap
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def write(path, text, **values):
    """Writes @text to @path, each name in @values replaced by its value."""
    text = textwrap.dedent(text)
    for name, value in values.items():
        text = text.replace(name, str(value))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def group_is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


class Load:
    """Everything that is started here, and ends with it. @prefix comes before each command. Temporary files go to @folder, too: a
    compiler that is killed leaves its own behind."""

    def __init__(self, folder, prefix=()):
        self.folder, self.prefix = folder, prefix
        self.started = []

    def start(self, *command, **options):
        process = subprocess.Popen([*self.prefix, *command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ, TMPDIR=self.folder), **options)
        self.started.append(process)
        return process

    def loop(self, command, seconds):
        """Runs a line of sh again and again, until it fails; it ends after @seconds even when nobody stops it."""
        return self.start("timeout", "-k", "1", str(seconds), "sh", "-c", f"while {command}; do :; done")

    def compiler(self, seconds):
        root = shlex.quote(ROOT)
        return self.loop(f'for f in {root}/src/model/*.c; do cc -std=gnu17 -D_GNU_SOURCE -O2 -I{root}/src -I{root} -c -o out.o "$f" || exit; done',
                         seconds)

    def stop(self):
        """Ends all of it, and waits until nothing of it is left that could write to the folder: for 3 s, where even SIGKILL takes its time."""
        begin = time.monotonic()
        for number, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 3)):
            for process in reversed(self.started):
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    pass
            while time.monotonic() < begin + seconds:
                for process in self.started:
                    process.poll()
                if all(group_is_gone(process.pid) for process in self.started):
                    return
                time.sleep(0.01)
