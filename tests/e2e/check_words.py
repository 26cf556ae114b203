#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What people meet on a terminal: suggestions, versions, help as wide as the terminal, progress, completion, closed pipes."""
import fcntl
import pty
import re
import select
import struct
import termios

from support import *

tap = Tap("words")
need(tap, root=False)


def on_terminal(args, columns=80, timeout=60):
    """What a command writes to a terminal of so many columns, and its status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(HEARTH, [HEARTH] + [str(a) for a in args])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    out, until = b"", time.monotonic() + timeout
    while time.monotonic() < until:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(fd)
    return out.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


for args, want in ((["recrod"], "'record'"), (["conv"], "'convert'"), (["record", "--durations", "3"], "'--duration'"),
                   (["record", "--frequncy=3"], "'--frequency'"), (["record", "--sampler", "bfp"], "'bpf'")):
    done = hearth(*args)
    tap.ok(done.returncode == 2 and f"did you mean {want}?" in done.stderr and done.stderr.count("\n") == 1,
           f"{' '.join(args)}: a suggestion", done.stderr.strip())
for args in (["xyzzy"], ["record", "--xyzzy"], ["record", "-Z"]):
    done = hearth(*args)
    tap.ok(done.returncode == 2 and "did you mean" not in done.stderr, f"{' '.join(args)}: none is like it", done.stderr.strip())
tap.ok(hearth("-V").stdout == hearth("--version").stdout == hearth("version").stdout != "", "-V")
tap.ok(hearth("help", "record").stdout == hearth("record", "--help").stdout != "", "help COMMAND is COMMAND --help")

commands = re.findall(r"^  (\w+) ", hearth("--help").stdout, re.M)
for columns in (60, 100):
    wide = {}
    for command in commands:
        if command != "completion":
            # A terminal's size is set right after the start: the command may have asked before.
            for _ in range(3):
                lines = on_terminal([command, "--help"], columns)[0].replace("\r", "").split("\n")
                prose = [line for line in lines if len(line) >= columns and " " in line.strip() and not re.match(r"^(Usage:|  (sudo |hearth |perf ))", line)]
                if not prose:
                    break
            if prose:
                wide[command] = prose[0]
    tap.ok(not wide, f"help fits {columns} columns", wide)
tap.ok(max(map(len, hearth("record", "--help").stdout.split("\n"))) > 120, "into a pipe help is not wrapped")

for command in ([HEARTH, "--help"], [HEARTH, "record", "--help"], [HEARTH, "completion", "zsh"]):
    done = run("bash", "-c", " ".join(command) + " | true; echo ${PIPESTATUS[0]}")
    tap.ok(done.stdout.strip() == "0" and not done.stderr, f"{' '.join(command[1:])}: quiet on a closed pipe", done.stderr)
with open(path("many.folded"), "w") as f:
    f.writelines(f"main;function_{i};leaf {i + 1}\n" for i in range(200000))
for what in ("report --from folded FILE", "dump --from folded FILE", "convert --from folded FILE -o - --format folded",
             "merge --from folded FILE FILE -o - --format folded"):
    done = run("bash", "-c", f"{HEARTH} {what.replace('FILE', path('many.folded'))} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}")
    tap.ok(done.stdout.strip() == "0" and not done.stderr, f"{what.split()[0]}: quiet on a closed pipe", done.stderr + done.stdout)

# Progress: only on a terminal, with what is left, and gone at the end.
if os.geteuid() == 0:
    said, status = on_terminal(["record", "-d", "4", "-o", path("progress.col")])
    tap.ok(status == 0 and re.search(r"\r\d+ s, \d+ samples, \d+ lost; \d+ s left", said), "record -d tells what is left", said[:120])
    done = hearth("record", "-d", 2, "-o", path("progress.col"))
    tap.ok("left" not in done.stderr, "and only to a terminal", done.stderr)
said, status = on_terminal(["merge", "-o", path("sum.hwin")] + [path("many.folded")] * (12 if QUICK else 24), timeout=200)
tap.ok(status == 0 and re.search(r"\d+ %, about \d+ .* left: ", said), "merge tells what is left", said[:200])
with open(path("large.folded"), "w") as f:
    f.writelines(f"main;a{i % 3001};b{i % 7919};leaf_{i} {i % 9 + 1}\n" for i in range(1500000))
with open(path("larger.folded"), "w") as f:
    f.write(open(path("large.folded")).read() * (1 if QUICK else 4))
for file, out in ("large.folded", "large.pb.gz"), ("large.pb.gz", "large.col"), ("large.col", "large.html"), ("larger.folded", "larger.html"):
    said, status = on_terminal(["convert", path(file), "-o", path(out)], timeout=200)
    tap.ok(status == 0 and re.search(r"\d+ %, about \d+ .* left: reading ", said), f"convert of {file} to {out} tells what is left", said[:200])
    if QUICK:
        break
said, status = on_terminal(["merge", "-q", "-o", path("sum.hwin")] + [path("many.folded")] * 3, timeout=200)
tap.ok(status == 0 and "left" not in said, "--quiet shows none", said[:100])

# Completion is what the shells accept, and knows every option.
for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
    script = hearth("completion", shell)
    with open(path("completion." + shell), "w") as f:
        f.write(script.stdout)
    known = all(f"-l {o}" in script.stdout or f"--{o}" in script.stdout for o in ("off-cpu", "container", "memory-limit", "sampler"))
    tap.ok(script.returncode == 0 and known, f"completion {shell}", script.stderr)
    if not shutil.which(shell):
        tap.skip(f"{shell} reads it", f"needs {shell}")
        continue
    read = run(*check, path("completion." + shell))
    tap.ok(read.returncode == 0 and not read.stderr, f"{shell} reads it", read.stderr[:200])
if shutil.which("fish"):
    found = run("fish", "-c", f"source {path('completion.fish')}; complete -C'hearth re'; complete -C'hearth record --samp'; "
                "complete -C'hearth record --sampler '").stdout
    tap.ok(all(w in found for w in ("record", "report", "--sampler", "recorded")), "fish completes", found[:200])
if shutil.which("zsh"):
    loaded = run("zsh", "-f", "-c", f"autoload -U compinit; compinit -D -u; source {path('completion.zsh')}; print $_comps[hearth]")
    tap.ok(loaded.stdout.strip() == "_hearth", "zsh takes it", loaded.stdout + loaded.stderr[:200])

# Each runtime of the registry has its switch wherever stacks are taken.
with open(os.path.join(ROOT, "src/runtime/registry.h")) as f:
    runtimes = re.findall(r"^\tX\((\w+),", f.read().partition("#define RUNTIMES(")[2].partition("enum ")[0], re.M)
for command in "record", "up", "dump":
    words = hearth(command, "--help").stdout + run(HEARTH, "--man-options", command).stdout
    scripts = [hearth("completion", shell).stdout for shell in ("bash", "zsh", "fish")]
    tap.ok(runtimes and all(len(re.findall(rf"--no-{r} ", words)) == 2 for r in runtimes) and
           all(re.search(rf"(--|-l )(no-)?{r}(?![-\w])", s) for r in runtimes for s in scripts),
           f"{command} has --no-RUNTIME: {' '.join(runtimes)}", words[:200])
done = hearth("dump", "--no-python", path("many.folded"))
tap.ok(done.returncode == 2 and "-p PID" in done.stderr, "for files it makes no difference: a usage error", done.stderr)
done = hearth("completion", "csh")
tap.ok(done.returncode == 2 and "fish" in done.stderr, "another shell is a usage error", done.stderr)
tap.finish()
