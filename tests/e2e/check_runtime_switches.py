#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A runtime that is switched off has no frames, and those of the others stay. Debian's own interpreters; check_perl.py, check_java_options.py and
check_python_smoke.py do so for theirs."""
from support import *

HZ = 499
CPU_SECONDS = 0.4 if QUICK else 1.5  # of each: a busy machine only makes it last longer
LEAST = HZ * CPU_SECONDS / 4  # samples of each: the recorder begins after a while
# Name of the options: where its frames are, the program, and arguments with a function leaf().
RUNTIMES = {
    "ruby": ("[ruby]", "/usr/bin/ruby", "-e", "def leaf(n)\n  s = 0\n  n.times { |i| s += i * 7 }\n  s\nend\nstop = Time.now + 600\nleaf(2000) while Time.now < stop"),
    "php": ("[php]", "/usr/bin/php", "-r", "function leaf($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s += $i * 7; return $s; } $stop = time() + 600; while (time() < $stop) leaf(2000);"),
    "nodejs": ("[javascript]", "/usr/bin/node", "-e", "function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s += i * 7 % 11; return s; } for (const stop = Date.now() + 600e3; Date.now() < stop;) leaf(2000);"),
}
tap = Tap("runtime_switches")
need(tap)


def recorded(*options):
    """The profile of all once each has had its time; None, and a result line: the recorder failed."""
    file, used = path("switched.pb.gz"), {p: cpu_seconds(p.pid) for p in processes.values()}
    recorder = start(HEARTH, "record", "-F", HZ, *options, *[a for p in used for a in ("-p", p.pid)], "-q", "-o", file, stderr=subprocess.PIPE, text=True)
    stop = time.monotonic() + 60
    while any(cpu_seconds(p.pid) < begin + CPU_SECONDS for p, begin in used.items()) and time.monotonic() < stop:
        time.sleep(0.1)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    fine = tap.ok(recorder.returncode == 0 and not said, f"{' '.join(options) or 'by default'}: hearth record ends well", said[-300:].strip())
    return Profile(file) if fine else None


def check(off, *options):
    """One recording of all: @off is the runtime that has no frames."""
    profile, what = recorded(*options), " ".join(options) or "by default"
    if not profile:
        return
    for name, process in processes.items():
        samples, module = profile.of(process), RUNTIMES[name][0]
        there = [s for s in samples if module in s.modules]
        named = [s for s in there if any(m == module and n.rpartition("#")[2].endswith("leaf") for n, m in zip(s.names, s.modules))]
        figures = f"{total(there)} of {total(samples)} with frames of it, {total(named)} in leaf"
        if name == off:
            tap.ok(total(samples) >= LEAST and not there, f"{what}: {name} has no frames", figures)
        else:  # all but the first ones, until hearth has met the process
            tap.ok(total(samples) >= LEAST and share(named, samples) >= 0.5, f"{what}: {name} has its frames", figures)


processes = {}
for name, (_, program, *arguments) in RUNTIMES.items():
    if os.access(program, os.X_OK):
        processes[name] = start(program, *arguments)
    else:
        tap.skip(name, f"needs {program}")
if processes:
    time.sleep(1)
    check(None)
for name in processes:
    check(name, f"--no-{name}")
    check(name, f"--{name}-mode", "disabled")
tap.finish()
