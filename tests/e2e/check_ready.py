#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon the frames of an interpreter are there: after exec, and in a process that was forked from one that is known.

What is sampled before has native frames only. It is told by the function of the interpreter that runs a program: before and
after that one nothing of the program does.
"""
import signal

import perls
import phps
import rubies
from support import *

HZ = 997
ROUNDS = 3 if QUICK else 12
READY_MS = 10  # in the mean
LEAST_MS = 100  # of ticks in each process, which takes 300 ms of CPU
BURN = {
    "ruby": "def burn(s) e = Process.clock_gettime(2) + s; i = 0; i += 1 while i % 1000 != 0 || Process.clock_gettime(2) < e end\n"
            "burn(0.3); pid = fork { burn(0.3) }; puts pid; Process.wait pid",
    "php": "function cpu() { $r = getrusage(); return $r['ru_utime.tv_sec'] + $r['ru_utime.tv_usec'] / 1e6; }"
           "function burn($s) { $e = cpu() + $s; $i = 0; while (cpu() < $e) { for ($k = 0; $k < 1000; $k++) $i += $k; } }"
           "burn(0.3); $pid = pcntl_fork(); if (!$pid) { burn(0.3); exit(0); } echo $pid, \"\\n\"; pcntl_waitpid($pid, $status);",
    "perl": "sub burn { my $e = (times)[0] + shift; my $i = 0; while ((times)[0] < $e) { $i += $_ for 1..1000 } }"
            "burn(0.3); my $pid = fork; if (!$pid) { burn(0.3); exit 0 } print \"$pid\\n\"; waitpid $pid, 0;",
}
RUNS = {"ruby": "ruby_run_node", "php": "execute_ex", "perl": "perl_run"}

tap = Tap("ready")
need(tap)


def early_of(samples, kind):
    """Ticks of a process that runs a program and has no frame of it, and all of its ticks."""
    return total([s for s in samples if RUNS[kind] in s.names and not any(m.startswith(f"[{kind}") for m in s.modules)]), total(samples)


def recorded(kind, program, option, rounds, *options):
    """{pid: samples}, and the pids: (started, forked) of each round. None: it failed."""
    file = path("ready.pb.gz")
    recorder = start(HEARTH, "record", "-F", HZ, "-q", *options, "-o", file, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    pids = []
    for _ in range(rounds):
        process = start(program, option, BURN[kind], stdout=subprocess.PIPE, text=True)
        child = process.communicate(timeout=60)[0].strip()
        pids.append((process.pid, int(child) if child.isdigit() else -1))
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    if not tap.ok(recorder.returncode == 0, f"{kind}: hearth record ends well", said[-300:]):
        return None
    by_pid = {}
    for s in Profile(file).samples:
        by_pid.setdefault(s.pid, []).append(s)
    return by_pid, pids


def check_marker(kind, program, option):
    """Without its frames all of a program is early: what tells it can be seen."""
    found = recorded(kind, program, option, 1, f"--no-{kind}")
    if found:
        early, ticks = early_of(found[0].get(found[1][0][0], []), kind)
        tap.ok(early >= 0.5 * ticks > 0, f"{kind}: without its frames", f"{early} of {ticks} ticks are in {RUNS[kind]}")


def check(kind, program, option):
    check_marker(kind, program, option)
    found = recorded(kind, program, option, ROUNDS + 1)
    if not found:
        return
    by_pid, pids = found
    for which, what in enumerate(("exec", "fork")):
        found = [early_of(by_pid.get(pair[which], []), kind) for pair in pids]
        worst = max(found[1:])
        mean = sum(early for early, _ in found[1:]) * 1000 / HZ / ROUNDS
        least = min(ticks for _, ticks in found)
        tap.ok(least >= LEAST_MS * HZ / 1000 and mean <= READY_MS, f"{kind}: frames soon after {what}",
               f"{mean:.1f} ms in the mean of {ROUNDS}, the most {worst[0]} of {worst[1]} ticks, the first {found[0][0]}; each has {least} ticks")


for kind, found in ("ruby", rubies.installed()), ("php", phps.of_machine()), ("perl", perls.own()):
    if found:
        check(kind, found[0].program, "-r" if kind == "php" else "-e")
    else:
        tap.skip(f"{kind}: frames soon after exec and fork", "not installed")
tap.finish()
