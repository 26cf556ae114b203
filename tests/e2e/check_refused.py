#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A runtime that is not known is refused: each command that samples says so once, at its end, and the stacks are native ones."""
from support import *

SECONDS = 2
tap = Tap("refused")
need(tap)
FILES = {"libj9vm29.so": "void j9_spin(void) { for (volatile unsigned int i = 0;; i++); }", "spin": "void j9_spin(void);\nint main(void) { j9_spin(); }"}
folder = path("j9")
os.mkdir(folder)
for name, text in FILES.items():  # OpenJ9 is told by its library's name
    with open(f"{folder}/{name}.c", "w", encoding="utf-8") as f:
        f.write(text)
    options = ["-shared", "-fPIC"] if name.endswith(".so") else [f"{folder}/libj9vm29.so", f"-Wl,-rpath,{folder}"]
    done = run("cc", "-g", "-fno-omit-frame-pointer", "-o", f"{folder}/{name}", f"{folder}/{name}.c", *options)
    if not tap.ok(done.returncode == 0, f"{name} is built", done.stderr[-200:]):
        tap.finish()
program = start(f"{folder}/spin")
said = "libj9vm29.so: java is OpenJ9, whose frames are not known; its stacks stay native"
for command in (["record", "-d", SECONDS, "-o", path("refused.folded")], ["profile", SECONDS], ["profile", "-f", SECONDS], ["top", "--plain", "-d", SECONDS]):
    done = hearth(*command, "-p", program.pid, timeout=60)
    where = done.stdout if command[0] == "record" else done.stderr
    name = " ".join(str(word) for word in command[:2])
    tap.ok(done.returncode == 0 and where.count(said) == 1, f"{name}: it is said once", where[-300:])
    tap.ok("j9_spin" in done.stdout, f"{name}: native functions are there", done.stdout[-200:])
done = hearth("record", "-q", "-d", SECONDS, "-p", program.pid, "-o", path("quiet.folded"), timeout=60)
tap.ok(done.returncode == 0 and not done.stdout + done.stderr, "record -q says nothing", done.stdout + done.stderr)
tap.finish()
