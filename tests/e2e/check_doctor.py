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
        tap.ok("sudo" in text.stdout or "setcap" in text.stdout, f"{user}: doctor names the command that helps")
tap.finish()
