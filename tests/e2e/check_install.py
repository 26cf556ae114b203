#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make install: the program, a man page for every command with every option of its help, and bash completion that works."""
import re

from support import *

FOLDER = os.environ.get("INSTALL_FROM", os.path.join(ROOT, "build"))
tap = Tap("install")
need(tap, "meson", root=False)
done = run("meson", "install", "-C", FOLDER, "--no-rebuild", "--quiet", "--destdir", path("root"))
tap.ok(done.returncode == 0, "meson install into a folder", done.stderr[-300:])
prefix = path("root/usr/local")
program = f"{prefix}/bin/hearth"
tap.ok(run(program, "--version").returncode == 0, "the installed program runs")
commands = re.findall(r"^  (\w+) ", run(program, "--help").stdout, re.M)
commands = [c for c in commands if c not in ("help", "version", "completion")]
tap.ok("record" in commands and len(commands) >= 6, "commands", " ".join(commands))
for command in [""] + commands:
    name = "hearth" + (command and "-" + command)
    page = f"{prefix}/share/man/man1/{name}.1"
    if not tap.ok(os.path.exists(page), f"man page {name}"):
        continue
    if not shutil.which("man"):
        tap.skip(f"{name} as man shows it", "needs man")
        continue
    shown = run("man", "-l", page, env={**os.environ, "MANWIDTH": "120", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-ww"})
    text = re.sub(".\b", "", shown.stdout)
    tap.ok(shown.returncode == 0 and not shown.stderr and "@OPTIONS@" not in text, f"{name}: man finds nothing wrong",
           shown.stderr[:200])
    options = re.findall(r"^\s+(?:-\w, )?(--[\w-]+)", run(program, command, "--help").stdout, re.M) if command else []
    missing = [o for o in options if o not in text]
    tap.ok(not missing and (options or not command), f"{name}: every option of the help is in it", missing or len(options))

completion = f"{prefix}/share/bash-completion/completions/hearth"


def complete(*words):
    """What bash offers for the last word, file names left to bash itself."""
    script = f". {completion}; COMP_WORDS=(hearth \"$@\"); COMP_CWORD=$#; _hearth; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return run("bash", "-euc", script, "bash", *words).stdout.split()


tap.ok(set(commands) <= set(complete("")), "completion of commands")
tap.ok(complete("rec") == ["record"], "a command half typed", complete("rec"))
tap.ok(complete("record", "--dur") == ["--duration"], "an option half typed", complete("record", "--dur"))
tap.ok(set(complete("record", "--sampler", "")) == {"auto", "bpf", "perf", "remote", "recorded"}, "the choices of an option",
       complete("record", "--sampler", ""))
tap.ok(complete("report", "--no-t") == ["--no-tree"], "what turns a flag off", complete("report", "--no-t"))
tap.ok(complete("report", "prof") == [], "file names are left to bash")
for command in commands:
    words = set(complete(command, "-"))
    options = set(re.findall(r"^\s+(?:-\w, )?(--[\w-]+)", run(program, command, "--help").stdout, re.M))
    tap.ok(options and options <= words, f"{command}: every option is completed", sorted(options - words) or len(options))
tap.finish()
