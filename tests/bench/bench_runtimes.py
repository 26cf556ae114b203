# SPDX-License-Identifier: Apache-2.0
"""What a frame of a language runtime costs in the kernel beside a native one of the same run: BPF time of a tick with 10 and with 110 functions
on the stack, everything warm. Each load is one function that calls itself so deep and then computes for ever."""
import shutil
import subprocess
import time

from measure import *

FEW, MANY = 10, 110
SECONDS = 3
WARM = 2
RATE = 997
C = """
#include <stdlib.h>
__attribute__((noinline, noclone)) static long down(long n) {
    volatile long x = n;
    if (n) x += down(n - 1);
    else for (;;) x = x * 31 + 1;
    return x;
}
int main(int c, char **v) { return c > 1 ? (int)down(atol(v[1])) : 1; }
"""
JAVA = """
public class Deep {
    static volatile long x;
    static long down(int n) {
        if (n > 0) return down(n - 1) + n;
        for (long end = System.nanoTime() + 20_000_000L; System.nanoTime() < end;) for (int i = 0; i < 1000; i++) x = x * 31 + 1;
        return x;
    }
    public static void main(String[] a) { for (;;) down(Integer.parseInt(a[0])); }
}
"""
NODE = """
let x = 1;
function down(n) {
    if (n) return down(n - 1) + n;
    for (const end = Date.now() + 20; Date.now() < end;) for (let i = 0; i < 1000; i++) x = (x * 31 + 1) | 0;
    return x;
}
for (;;) down(+process.argv[2]);
"""
RUBY = """
def down(n)
  return down(n - 1) + n if n > 0
  x = 1
  i = 0
  x = x * 31 % 65_521 while (i += 1) < 1_000_000_000
  x
end
down(ARGV[0].to_i)
"""
PHP = "<?php function down($n) { if ($n) return down($n - 1) + $n; for ($x = 1;;) $x = $x * 31 % 65521; } down((int)$argv[1]);"
PERL = "no warnings; sub down { my ($n) = @_; return down($n - 1) + $n if $n; my $x = 1; $x = $x * 31 % 65521 while 1 } down($ARGV[0]);"
PYTHON = """
import sys
def down(n):
    if n:
        return down(n - 1) + n
    x = 1
    while True:
        x = x * 31 % 65521
down(int(sys.argv[1]))
"""


def written(name, text):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    return path(name)


def loads():
    """(what, how much of a native frame is wanted, command without the depth); the native one first."""
    subprocess.run(["cc", "-O1", "-fomit-frame-pointer", "-o", path("deep"), written("deep.c", C)], check=True)
    yield "native", None, [path("deep")]
    java = shutil.which("java")
    if java and shutil.which("javac") and not subprocess.run(["javac", "-d", scratch, written("Deep.java", JAVA)]).returncode:
        yield "Java, compiled", 1.3, [java, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Deep::down", "-cp", scratch, "Deep"]
        yield "Java, interpreted", None, [java, "-Xint", "-cp", scratch, "Deep"]
    for what, wanted, program, name, text, options in (("JavaScript", 1.3, "node", "deep.js", NODE, ["--stack-size=2000"]), ("Python", None, "/usr/bin/python3", "deep.py", PYTHON, []),
                                                       ("Ruby", None, "ruby", "deep.rb", RUBY, []), ("PHP", 1, "php", "deep.php", PHP, []), ("Perl", 1, "perl", "deep.pl", PERL, [])):
        if shutil.which(program):
            yield what, wanted, [shutil.which(program), *options, written(name, text)]


def spent(load, rate):
    """Nanoseconds of BPF in a while, all ticks, and those that met the load's busiest thread: the others' stacks are none of the load's."""
    from support import busiest_seconds

    session = start(HEARTH, "record", "-F", rate, "-q", "-p", load.pid, "-o", path("runtimes.pb.gz"))
    time.sleep(WARM)
    found = []
    for _ in range(SECONDS):
        before, cpu = ticks(session.pid), busiest_seconds(load.pid)
        time.sleep(2)
        after, met = ticks(session.pid), (busiest_seconds(load.pid) - cpu) * rate
        found.append((after[0] - before[0], after[1] - before[1], met))
    session.send_signal(2)
    session.wait()
    return found


def other_tick():
    """Nanoseconds of a tick that meets a process which nobody asked for."""
    sleeper = start("sleep", 600)
    busy = start("sh", "-c", "while :; do :; done")
    found = spent(sleeper, RATE)
    stop([sleeper, busy])
    return min(ns / runs for ns, runs, _ in found)


def of_tick(command, depth, other):
    """Microseconds of a tick that meets that load; the least of some, as others use the CPUs."""
    load = start(*command, depth)
    time.sleep(WARM)
    found = spent(load, RATE)
    stop([load])
    return min((ns - max(runs - met, 0) * other) / met / 1e3 for ns, runs, met in found if met)


def bench_runtimes():
    head(f"A frame of a runtime, in the kernel: a tick with {MANY} functions less one with {FEW}")
    native = None
    with bpf_stats():
        other = other_tick()
        for what, wanted, command in loads():
            found = [(of_tick(command, FEW, other), of_tick(command, MANY, other)) for _ in range(RUNS)]
            frames = [1000 * (many - few) / (MANY - FEW) for few, many in found]
            cost = median(frames)
            native = native or cost
            row(what, f"{cost:.0f}", "ns", ratio_of(cost, native), f"{'at most ' + str(wanted) if wanted else ''} {spread(frames)}; a tick with {FEW}: {median([f for f, _ in found]):.1f} us")


PARTS = {"runtimes": bench_runtimes}
