#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs are stopped at random instants: the walker by unwind rows finds the stack that libdw finds in the same
stop, also over a copy of the top of the stack; and what gdb or eu-stack print of a tenth of the stops."""
import re

from support import *

tap = Tap("stops")
need(tap)
stops = os.path.join(os.path.dirname(HEARTH), "tests", "walk", "stops")
if not os.access(stops, os.X_OK):
    tap.skip("everything", "needs libdw-dev, and x86-64, when tests are built")
    tap.finish()
here = os.path.join(ROOT, "tests", "walk")
COUNT = 40 if QUICK else 200
SECONDS = 20 if QUICK else 90  # of one program
debugger = "gdb" if shutil.which("gdb") and not QUICK else "eu-stack" if shutil.which("eu-stack") else None


def repository():
    """1,000 commits that each change some of 40 files."""
    folder = path("repository")
    run("git", "init", "-q", folder)
    lines = [f"line {i} {i * 7919 % 1009}" for i in range(400)]
    out = []
    for commit in range(1000):
        out.append(f"commit refs/heads/main\ncommitter a <a@example.com> {1700000000 + commit} +0000\n"
                   f"data <<E\ncommit {commit}\nE\n")
        for file in range(commit % 7, 40, 7):
            lines[(commit * 31 + file * 17) % 400] = f"changed {commit} {file}"
            text = "\n".join(lines[file:] + lines[:file]) + "\n"
            out.append(f"M 644 inline f{file}.txt\ndata {len(text)}\n{text}\n")
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input="".join(out).encode(), check=True)
    return folder


def big_source():
    """C functions enough for the compiler to be busy for a while."""
    name = path("big.c")
    with open(name, "w") as f:
        f.write("extern int g(int); struct s { int a[16]; struct s *next; };\n")
        for i in range(1500):
            f.write(f"int f{i}(struct s *p, int n) {{ int r = {i}; for (int i = 0; i < n; i++) {{ "
                    f"switch ((p->a[i & 15] + r) % 7) {{ case 0: r += g(i); break; case 1: r ^= p->a[{i % 16}]; break; "
                    f"case 2: p = p->next; break; case 3: r *= {i + 3}; break; default: r -= f{max(i - 1, 0)}(p, i / 2); }} }} "
                    f"return r; }}\n")
    return name


def compiler():
    name = run("gcc", "-print-prog-name=cc1").stdout.strip() if shutil.which("gcc") else ""
    return name if os.path.isabs(name) else None


def programs():
    """name, what must be there, command; made only when it is its turn."""
    yield "perl", "perl", lambda: ["perl", "-e", "my $s = join ' ', map { \"foo$_ bar\" . $_ * 7 } 1 .. 2000; my $n = 0;"
                                   "while (1) { while ($s =~ /(\\w+?)(\\d+)\\s+(b[a-z]*)(\\d*)\\b/g) { $n += length $1 } }"]
    yield "git", "git", lambda: ["git", "-C", repository(), "log", "-p", "--stat", "-M", "-C", "--find-copies-harder", "main"]
    # Its frames begin at what rax says: no row can hold that.
    yield "aes-gcm", "openssl", lambda: ["openssl", "speed", "-evp", "aes-128-gcm", "-bytes", "16384", "-seconds", "60"]
    if QUICK:
        return
    yield "cc1", compiler() or "cc1", lambda: [compiler(), "-quiet", "-O2", big_source(), "-o", "/dev/null"]
    yield "gdb", "gdb", lambda: ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", HEARTH] + \
        ["-ex", "maintenance expand-symtabs", "-ex", "info functions zzz", "-ex", "info types zzz", "-ex", "file", "-ex",
         f"file {HEARTH}"] * 20
    yield "node", "node", lambda: ["node", os.path.join(here, "loop.js")]
    yield "java", "java", lambda: ["java", os.path.join(here, "Loop.java")]


def figures(text):
    last = text.strip().rsplit("\n", 1)[-1]
    return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", last)}


only = [a for a in sys.argv[1:] if not a.startswith("-")]
for name, needs, command in programs():
    if only and name not in only:
        continue
    if not shutil.which(needs):
        tap.skip(name, f"needs {needs}")
        continue
    words, sums, shown, end = command(), {}, "", time.monotonic() + SECONDS
    while sums.get("stops", 0) < COUNT and time.monotonic() < end:
        process = start(*words, stdin=subprocess.DEVNULL)
        time.sleep(0.5 if name == "java" else 0.05)
        left = max(1, int(end - time.monotonic()))
        done = run(stops, process.pid, COUNT - sums.get("stops", 0), left, *([debugger] if debugger else []),
                   timeout=left + 120)
        process.kill()
        process.wait()
        if done.returncode == 2 and re.search("not permitted|denied", done.stderr):
            break
        for key, value in figures(done.stdout).items():
            sums[key] = sums.get(key, 0) + (value * figures(done.stdout)["stops"] if key == "ns_per_frame" else value)
        shown += done.stdout.rsplit("stops=", 1)[0] + done.stderr
    if not sums.get("stops"):
        tap.skip(name, f"could not be stopped: {shown[-200:].strip()}")
        continue
    tap.ok(sums["stops"] >= COUNT // 2 and sums["equal"] >= 0.97 * sums["stops"], f"{name}: stacks are libdw's",
           f"{sums['equal']} of {sums['stops']}, {sums['frames']} frames, {sums['complete']} complete, {sums['guessed']} with "
           f"a guess, {sums['jit_tops']} in JIT code, {sums['ns_per_frame'] // sums['stops']} ns a frame")
    tap.ok(sums["copies"] >= sums["stops"] // 2 and sums["copies_equal"] == sums["copies"], f"{name}: and those of a copied stack",
           f"{sums['copies_equal']} of {sums['copies']} long enough")
    if not sums["texts"]:
        tap.skip(f"{name}: the text of a debugger", "neither gdb nor eu-stack could attach")
    else:
        tap.ok(sums["texts_equal"] >= 0.97 * sums["texts"] - 1, f"{name}: and what {debugger} prints",
               f"{sums['texts_equal']} of {sums['texts']}")
    if shown:
        tap.note(shown)
tap.finish()
