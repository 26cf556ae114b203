#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The whole machine while gcc builds a real package: configure and make of Debian's bash. Stacks are whole, of all of it.

The source comes once by apt-get and is kept in ${XDG_CACHE_HOME:-~/.cache}/hearth-tests, outside of the tree.
"""
import glob
from collections import Counter

from support import *

PACKAGE = "bash"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "hearth-tests")

def source():
    """The package's archive, from the cache or from Debian; None with a reason when it cannot be fetched."""
    found = glob.glob(os.path.join(cache, f"{PACKAGE}_*.orig.tar.*z"))
    if found:
        return found[0], ""
    lists = os.path.join(cache, "apt", "lists")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    with open(os.path.join(cache, "apt", "sources.list"), "w") as f:
        f.write(f"deb-src [signed-by={KEYRING}] http://deb.debian.org/debian bookworm main\n")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={f.name}", "-o", "Dir::Etc::sourceparts=/dev/null", "-o",
           f"Dir::State::lists={lists}", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=5"]
    for step in (["update"], ["source", "--download-only", PACKAGE]):
        done = run(*apt, *step, cwd=cache)
        if done.returncode:
            return None, f"apt-get {step[0]}: {done.stderr.strip()[-200:]}"
    found = glob.glob(os.path.join(cache, f"{PACKAGE}_*.orig.tar.*z"))
    return (found[0], "") if found else (None, "no archive came")

tap = Tap("build")
need(tap, "gcc", "make", "tar", "xz")
archive, why = source()
if not archive:
    tap.skip("gcc builds a package", f"its source cannot be fetched: {why}")
    tap.finish()
subprocess.run(["tar", "xf", archive, "-C", scratch], check=True)
tree = glob.glob(path(f"{PACKAGE}-*"))[0]
session = start(HEARTH, "record", "-F", 99, "-q", "-o", path("build.pb.gz"), stderr=subprocess.PIPE, text=True)
time.sleep(1)
begin = time.monotonic()

done = run("sh", "-c", "./configure -q && make -s -j2", cwd=tree, timeout=600)
took = time.monotonic() - begin
session.send_signal(2)
said = session.communicate(timeout=120)[1]
tap.ok(done.returncode == 0, f"{os.path.basename(tree)} builds", f"{took:.0f} s {done.stderr[-200:] if done.returncode else ''}")
if not tap.ok(session.returncode == 0, "hearth record ends well", said[-300:]):
    tap.finish()
profile = Profile(path("build.pb.gz"))
user, lost = profile.counter("user_samples"), profile.lost
whole = profile.counter("complete")
rate = 100 * whole / max(user + lost, 1)
said = profile.facts.get("complete_share", "")
tap.ok(said == f"{rate:.2f}%", "the rate is in the comments of the pprof file", f"{said} and {rate:.2f}%")
tap.ok(len(profile.comments) == 2, "which has two comments", profile.comments)
# The file's own samples say the same: kernel threads have no user stack and count as complete there.
not_whole = [s for s in profile.samples if s.end != "complete"]
guessed = [s for s in profile.samples if s.end == "guessed"]
cut = sum(v for k, v in profile.counters.items() if k.startswith("cut_"))
tap.ok(total(guessed) == profile.counter("guessed") and whole + total(guessed) + cut == user, "whole, guessed and cut are all there is",
       f"{whole}, {total(guessed)} ({profile.counter('guessed')} counted), {cut} of {user}")
tap.ok(total(not_whole) == cut + total(guessed), "as many samples are marked so", f"{total(not_whole)} and {cut} + {total(guessed)}")
# What else runs on the machine is not judged: it may be a browser whose compiled JavaScript is only guessed.
BUILDERS = ("cc1", "as", "ld", "collect2", "gcc", "make", "sh", "bash", "dash", "configure", "config.status", "sed", "grep", "cat", "rm", "ar",
            "expr", "mv", "cp", "true", "conftest", "mkbuiltins", "awk", "mawk", "gawk")
own = [s for s in profile.samples if s.labels.get("comm") in BUILDERS]
own_whole = 100 * share([s for s in own if s.end == "complete"], own)
others, others_cut = total(profile.samples) - total(own), total(not_whole) - total([s for s in own if s.end != "complete"])
# 99 % is the aim and what a quiet machine shows; short programs and what else runs move it by some tenths.
tap.ok(own_whole >= 98, "stacks of the build's programs are whole: 99 %, give or take", f"{own_whole:.2f} % of {total(own)}")
tap.note(f"of all that ran: {rate:.2f} % of {user} and {lost} lost; of what is not the build's: {100 * (1 - others_cut / max(others, 1)):.2f} %")
tap.ok(lost <= user / 1000, "next to none are lost", f"{lost} of {user + lost}")
compilers = [s for s in own if s.labels.get("comm") == "cc1"]
tap.ok(share(compilers, own) > 0.2, "the compiler is what ran", f"{100 * share(compilers, own):.1f} % of {total(own)}")
reasons, where = Counter(), Counter()
for s in not_whole:
    reasons[s.end] += s.count
    outermost = next((f"{n} of {os.path.basename(m) or '?'}" for n, m in zip(s.names, s.modules) if not m.startswith("[kernel")), "no user frame")
    where[f"{s.end:<24} {s.labels.get('comm', ''):<16} ends at {outermost}"] += s.count
tap.note("reasons of the rest: " + (", ".join(f"{r} {c}" for r, c in reasons.most_common()) or "none"))
for text, count in where.most_common(12):
    tap.note(f"    {count:5} {text}")
tap.finish()
