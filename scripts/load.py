# SPDX-License-Identifier: Apache-2.0
"""Loads that scripts/picture and scripts/demonstration start beside a profile, and end with it."""
import os
import shlex
import signal
import subprocess
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def write(path, text, **values):
    """Writes @text to @path, each name in @values replaced by its value."""
    text = textwrap.dedent(text)
    for name, value in values.items():
        text = text.replace(name, str(value))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


class Load:
    """Everything that is started here, and ends with it. @prefix comes before each command."""

    def __init__(self, folder, prefix=()):
        self.folder, self.prefix = folder, prefix
        self.started = []

    def start(self, *command, **options):
        process = subprocess.Popen([*self.prefix, *command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, **options)
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
        for process in reversed(self.started):
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for process in self.started:
            process.wait()
