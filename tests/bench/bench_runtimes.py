# SPDX-License-Identifier: Apache-2.0
"""What a frame of a language runtime costs in the kernel beside a native one of the same run: BPF time of a tick with 10 and with 110 functions
on the stack. Once everything is warm, a function that calls itself so deep; once nothing is, for the functions differ and 32 MiB are
read between ticks, as it is at 99 Hz in a program with much to do. And what a walk of Ruby's is made of: how much it takes at all, a frame of
a function that was met in the walk before, and the first frame of a function, from 3.3 on with its class."""
import os
import shutil
import subprocess
import time

import deep_programs as programs
from measure import *

FEW, MANY = 10, 110
SECONDS = 3
WARM = 2
COMPILED = 5  # seconds until a chain's functions are compiled
RATE = 997
COLD_RATE = 199


def written(name, text):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    return path(name)


def native(name, text):
    subprocess.run(["cc", "-O1", "-fomit-frame-pointer", "-o", path(name), written(name + ".c", text)], check=True)
    return [path(name)]


def java_class(folder, name, text):
    """The options that run it, or None."""
    if shutil.which("java") and shutil.which("javac"):
        os.mkdir(path(folder))
        if not subprocess.run(["javac", "-d", path(folder), written(f"{folder}/{name}.java", text)]).returncode:
            return ["-cp", path(folder), name]
    return None


INTERPRETED = (("Python", None, "/usr/bin/python3", "py", programs.PYTHON, programs.python_chain), ("Ruby", None, "ruby", "rb", programs.RUBY, programs.ruby_chain),
               ("PHP", 1, "php", "php", programs.PHP, programs.php_chain), ("Perl", 1, "perl", "pl", programs.PERL, programs.perl_chain))


def deep_loads():
    """(what, how much of a native frame is wanted, command for each depth) of functions that call themselves; the native one first."""
    def each(*command):
        return {depth: [*command, depth] for depth in (FEW, MANY)}

    yield "native", None, each(*native("deep", programs.C))
    java = java_class("deep_java", "Deep", programs.JAVA)
    if java:
        yield "Java, compiled", 1.3, each("java", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Deep::down", *java)
        yield "Java, interpreted", None, each("java", "-Xint", *java)
    if shutil.which("node"):
        yield "JavaScript", 1.3, each("node", "--stack-size=2000", written("deep.js", programs.NODE))
    for what, wanted, program, ending, text, _ in INTERPRETED:
        if shutil.which(program):
            yield what, wanted, each(program, written(f"deep.{ending}", text))


def chain_loads():
    """The same of chains of different functions."""
    def each(command_of):
        return {depth: command_of(depth) for depth in (FEW, MANY)}

    yield "native", None, each(lambda depth: native(f"chain{depth}", programs.c_chain(depth)))
    java = {depth: java_class(f"java{depth}", "Chain", programs.java_chain(depth)) for depth in (FEW, MANY)}
    if all(java.values()):
        yield "Java, compiled", 1.3, each(lambda depth: ["java", "-XX:-Inline", *java[depth]])
        yield "Java, interpreted", None, each(lambda depth: ["java", "-Xint", *java[depth]])
    if shutil.which("node"):
        yield "JavaScript", 1.3, each(lambda depth: ["node", "--no-turbo-inlining", "--no-maglev-inlining", written(f"chain{depth}.js", programs.node_chain(depth))])
    for what, wanted, program, ending, _, text_of in INTERPRETED:
        if shutil.which(program):
            yield what, wanted, each(lambda depth: [program, written(f"chain{depth}.{ending}", text_of(depth))])


def spent(load, rate, *options):
    """Nanoseconds of BPF in a while, all ticks, and those that met the load's busiest thread: the others' stacks are none of the load's."""
    from support import busiest_seconds

    session = start(HEARTH, "record", "-F", rate, "-q", *options, "-p", load.pid, "-o", path("runtimes.pb.gz"))
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


def other_tick(rate):
    """Nanoseconds of a tick that meets a process which nobody asked for."""
    sleeper = start("sleep", 600)
    busy = start("sh", "-c", "while :; do :; done")
    found = spent(sleeper, rate)
    stop([sleeper, busy])
    return min(ns / runs for ns, runs, _ in found)


def of_tick(command, warm, rate, other, *options):
    """Microseconds of a tick that meets that load; the least of some, as others use the CPUs."""
    load = start(*command)
    time.sleep(warm)
    found = spent(load, rate, *options)
    stop([load])
    return min((ns - max(runs - met, 0) * other) / met / 1e3 for ns, runs, met in found if met)


def frames_of(title, loads, warm, rate):
    head(f"A frame of a runtime, in the kernel, {title}, {rate} Hz: a tick with {MANY} functions less one with {FEW}")
    first = None
    with bpf_stats():
        other = other_tick(rate)
        for what, wanted, commands in loads:
            found = [[of_tick(commands[depth], warm, rate, other) for depth in (FEW, MANY)] for _ in range(RUNS)]
            frames = [1000 * (many - few) / (MANY - FEW) for few, many in found]
            cost = median(frames)
            first = first or cost
            row(what, f"{cost:.0f}", "ns", ratio_of(cost, first), f"{'at most ' + str(wanted) if wanted else ''} {spread(frames)}; a tick with {FEW}: {median([f for f, _ in found]):.1f} us")


def rubies():
    """This machine's and Debian 13's, which has classes in names."""
    from rubies import installed, of_suite, packages

    found = installed()
    try:
        found.append(of_suite("trixie"))
    except packages.Unavailable as e:
        print(f"# no Ruby of Debian 13: {e}")
    return found


def ruby_walks():
    head(f"A walk of Ruby's frames, in the kernel, warm, {RATE} Hz; each function in a class of its own")
    texts = {"same": programs.RUBY_CLASS, **{str(n): programs.ruby_classes(n) for n in (FEW, MANY)}}
    with bpf_stats():
        other = other_tick(RATE)
        for ruby in rubies():
            folder = path(f"ruby{ruby.version}")
            os.mkdir(folder)
            files = {name: written(f"ruby{ruby.version}/{name}.rb", text) for name, text in texts.items()}
            found = []
            for _ in range(RUNS):
                same = [of_tick(ruby.command([scratch], files["same"], depth), WARM, RATE, other) for depth in (FEW, MANY)]
                native = of_tick(ruby.command([scratch], files["same"], FEW), WARM, RATE, other, "--no-ruby")
                chains = [of_tick(ruby.command([scratch], files[str(depth)]), WARM, RATE, other) for depth in (FEW, MANY)]
                frame = (same[1] - same[0]) / (2 * (MANY - FEW))  # "new" is one, too
                distinct = (chains[1] - chains[0] - (same[1] - same[0])) / (MANY - FEW)
                found.append((same[0] - native - 2 * FEW * frame, frame, distinct))
            for what, place, wanted in (("a walk", 0, 1000), ("a frame of a function met before", 1, 60), ("the first frame of a function", 2, 100)):
                ns = [1000 * f[place] for f in found]
                row(f"{ruby.version}: {what}", f"{median(ns):.0f}", "ns", "", f"at most {wanted}; {spread(ns)}")


def bench_runtimes():
    frames_of("warm, a function that calls itself", deep_loads(), WARM, RATE)
    frames_of("cold, different functions", chain_loads(), COMPILED, COLD_RATE)
    ruby_walks()


PARTS = {"runtimes": bench_runtimes, "ruby": ruby_walks}
