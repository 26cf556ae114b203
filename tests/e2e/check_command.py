#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""record -- COMMAND: the status is the command's; what ends early, and what could not be started, is said."""
import signal
import textwrap

from support import *

tap = Tap("command")
need(tap)


def command(*words, options=(), **more):
    """One run with a file of its own. Returns what it said and whether the file was written."""
    file = path("command.pb.gz")
    if os.path.exists(file):
        os.unlink(file)
    done = hearth("record", "-q", *options, "-o", file, "--", *words, **more)
    return done, os.path.exists(file)


# The command's own status.
for status in (0, 1, 2, 3, 77, 125, 126, 127, 255):
    done, written = command("sh", "-c", f"exit {status}")
    tap.ok(done.returncode == status and written, f"exit {status} is passed on", f"{done.returncode}, written {written}")
for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT):
    done, written = command("sh", "-c", f"kill -{int(number)} $$")
    tap.ok(done.returncode == 128 + number and written, f"{number.name} becomes {128 + number}", done.returncode)
done, written = command("sh", "-c", "exit 3",
                        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
tap.ok(done.returncode == 3, "also where SIGCHLD was ignored", done.returncode)

# What cannot be started.
with open(path("no-program"), "w") as f:
    f.write("x")
for words, status in ((["/no/such/program"], 127), (["no-such-program-at-all"], 127), ([path("no-program")], 126),
                      ([scratch], 126)):
    done, written = command(*words)
    tap.ok(done.returncode == status and not written, f"{os.path.basename(words[0])}: {status}, and nothing is written",
           f"{done.returncode}, written {written}: {done.stderr.strip()[:200]}")
    tap.ok(len(done.stderr.strip().split("\n")) == 1 and words[0] in done.stderr, "in one line that names it",
           repr(done.stderr[:200]))

# What is hearth's own failure keeps its status, and the command is not started.
marker = path("started")
touch = ["sh", "-c", f"touch {marker}; exit 9"]
for options, status in ((["--frequency", "0"], 2), (["--all"], 2), (["--container", "no-such-container"], 1)):
    done, written = command(*touch, options=options)
    tap.ok(done.returncode == status and not os.path.exists(marker), f"{' '.join(options)}: {status}, not started",
           f"{done.returncode}, started {os.path.exists(marker)}: {done.stderr.strip()[:200]}")
done = hearth("record", "-q", "-o", path("nowhere/x.col"), "--", *touch)
tap.ok(done.returncode == 1 and not os.path.exists(marker), "no folder to write to: 1, not started", done.returncode)
if os.path.exists("/dev/full"):
    done = run("sh", "-c", f"exec {HEARTH} record -q -o - --format col -- sh -c 'exit 9' >/dev/full", timeout=60)
    tap.ok(done.returncode == 1, "a file that could not be written: 1, whatever the command said", done.returncode)

# The end of -d: SIGTERM, in one line, exit 0.
begin = time.monotonic()
done, written = command("sleep", "60", options=["-d", "1"])
tap.ok(done.returncode == 0 and written, "the end of -d: exit 0", f"{done.returncode} {done.stderr[:200]!r}")
tap.ok(done.stderr.count("\n") == 1 and "SIGTERM" in done.stderr and "sleep" in done.stderr, "said in one line",
       repr(done.stderr))
tap.ok(time.monotonic() - begin < 20, "and the command does not outlive it", f"{time.monotonic() - begin:.1f} s")
done, written = command("sh", "-c", f"trap 'echo told >{path('told')}; exit 4' TERM; while :; do sleep 0.1; done",
                        options=["-d", "1"])
tap.ok(done.returncode == 0 and os.path.exists(path("told")), "a command that tidies up can", repr(done.stderr))
done, written = command("sh", "-c", f"echo $$ >{path('stubborn')}; trap '' TERM; exec sleep 30", options=["-d", "1"])
tap.ok(done.returncode == 0 and "still runs" in done.stderr, "one that does not listen is not waited for", repr(done.stderr))
with contextlib.suppress(OSError, ValueError):
    os.kill(int(open(path("stubborn")).read()), signal.SIGKILL)
done, written = command("sh", "-c", "sleep 0.3; exit 5", options=["-d", "30"])
tap.ok(done.returncode == 5, "a command that ends before -d: its status", done.returncode)


def signalled(number, words, group=False):
    """Starts a session of a command, sends a signal once the command runs. Returns (status, stderr)."""
    ready = path("ready")
    if os.path.exists(ready):
        os.unlink(ready)
    script = f"echo $$ >{ready}.new; mv {ready}.new {ready}; {words}"
    process = start(HEARTH, "record", "-q", "-o", path("signalled.pb.gz"), "--", "sh", "-c", script,
                    stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 30
    while not os.path.exists(ready) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    (os.killpg if group else os.kill)(process.pid, number)
    said = process.communicate(timeout=60)[1]
    child = int(open(ready).read())
    return process.returncode, said, child


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    status, said, child = signalled(number, "exec sleep 60")
    tap.ok(status == 128 + number and os.path.exists(path("signalled.pb.gz")),
           f"{number.name}: {128 + number}, and what was gathered is written", f"{status} {said!r}")
    tap.ok(not lives(child), f"{number.name}: the command gets it, too")
status, said, child = signalled(signal.SIGINT, "trap 'exit 0' INT; while :; do sleep 0.1; done", group=True)
tap.ok(status == 130, "Ctrl-C is 130 also when the command takes it well", f"{status} {said!r}")

# Ctrl-C of a real terminal.
program = textwrap.dedent(f"""
    import os, pty, signal, sys, time
    pid, fd = pty.fork()
    if pid == 0:
        os.execv({HEARTH!r}, ["hearth", "record", "-o", {path("pty.pb.gz")!r}, "--", "sleep", "60"])
    time.sleep(3)
    os.write(fd, b"\\x03")
    while True:
        try:
            if not os.read(fd, 4096):
                break
        except OSError:
            break
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """)
done = run(sys.executable, "-c", program, timeout=60)
tap.ok(done.returncode == 130, "Ctrl-C of a terminal: 130", f"{done.returncode} {done.stderr[-200:]}")
tap.finish()
