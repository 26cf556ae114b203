#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth doctor says what is so: as root, as nobody, and with CAP_BPF and CAP_PERFMON alone."""
import json

from support import *

tap = Tap("doctor")
need(tap, "setpriv")
program = hearth_for_everybody()
capabilities = "+cap_38,+cap_39"  # CAP_PERFMON, CAP_BPF (linux/capability.h); older setpriv knows only numbers
users = {
    "root": [],
    "nobody": unprivileged(),
    "CAP_BPF and CAP_PERFMON": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"],
}
os.mkdir(path("free"), 0o777)
os.chmod(path("free"), 0o777)
for user, prefix in users.items():
    text = run(*prefix, program, "doctor", cwd=path("free"))
    tap.ok(text.stdout.strip() and text.returncode in (0, 1, 77), f"{user}: doctor answers", f"exit {text.returncode} {text.stderr[:200]}")
    said = run(*prefix, program, "doctor", "--json", cwd=path("free"))
    try:
        answer = json.loads(said.stdout)
    except ValueError as error:
        tap.ok(False, f"{user}: doctor --json is JSON", error)
        continue
    tap.ok(isinstance(answer, dict), f"{user}: doctor --json is JSON", ", ".join(list(answer)[:8]))
    # What it says is right when a session does what it says.
    session = run(*prefix, program, "record", "-d", "1", "-q", "-o", f"{user.split()[0]}.pb.gz", cwd=path("free"))
    works = session.returncode == 0
    tap.ok(works == (user != "nobody"), f"{user}: a session {'works' if user != 'nobody' else 'is refused'}",
           f"exit {session.returncode} {session.stderr[:200]}")
    tap.ok((text.returncode == 0) == works, f"{user}: doctor's exit status says the same", text.returncode)
    if not works:
        tap.ok(session.returncode == 77, f"{user}: refused with exit 77", session.returncode)
        lines = text.stdout.splitlines()
        command = lines[-1].partition(": ")[2]
        tap.ok(command.startswith("sudo setcap ") and program in command.split() and text.stdout.count("setcap") == 1,
               f"{user}: the last line is one command that mends what rights mend", lines[-1])
        tap.ok(answer.get("remedy") == command, f"{user}: it is in the JSON too", answer.get("remedy"))
        if shutil.which("setcap"):
            wrong = {fact["name"] for fact in answer["facts"] if not fact["ok"]}
            done = run("sh", "-c", command.replace("sudo ", ""))
            # A bounding set like anybody's: without it, a program with capabilities of its own does not start.
            after = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", program, "doctor", "--json", cwd=path("free"))
            still = {fact["name"] for fact in json.loads(after.stdout)["facts"] if not fact["ok"]}
            run("setcap", "-r", program)
            said = lines[-1].split()
            tap.ok(after.returncode == 0 and len(wrong - still) == int(said[2]), f"{user}: that command mends as many as it says",
                   f"{lines[-1][:40]}, then still {' '.join(still)} {done.stderr[:200]}")
        # What nobody can do: Python from outside, as it says.
        busy = start(*prefix, "python3", "-c", "import time\nend = time.time() + 20\nwhile time.time() < end: pass")
        outside = run(*prefix, program, "record", "-d", "1", "-q", "-p", busy.pid, "-o", "outside.pb.gz", cwd=path("free"))
        busy.kill()
        busy.wait()
        says = "Python, Ruby, PHP and Perl programs of your own can be sampled from outside" in lines[-2]
        tap.ok(says == (outside.returncode == 0), f"{user}: Python programs of one's own are sampled from outside as it says",
               f"exit {outside.returncode}, {lines[-2]} {outside.stderr[-200:]}")
tap.finish()
