# SPDX-License-Identifier: Apache-2.0
"""JVMs at work, from their start, for hearth to record."""
import glob

import windows
from java_oracle import SOURCES, judge_samples
from support import *

WARM = 4
WINDOW = 4  # seconds
# Name: options of the JVM, and the program with its arguments.
SORT, MIXED = ("Load", 600000), ("Mixed", 600000, scratch)
LOADS = {
    "default": ([], SORT),
    "mixed": ([], MIXED),
    "interpreted": (["-Xint"], SORT),
    "C1": (["-XX:TieredStopAtLevel=1"], MIXED),
    "ZGC": (["-XX:+UseZGC"], SORT),
    "Parallel": (["-XX:+UseParallelGC", "-Xmx48m"], MIXED),
    "search": ([], ("Search",)),
}
LACKS = {(8, "ZGC")}
VIRTUAL = 21  # the first version with virtual threads
EXPERIMENTAL = {(11, "ZGC"): ["-XX:+UnlockExperimentalVMOptions"]}


def options_of(version, load):
    return EXPERIMENTAL.get((version, load), []) + (LOADS[load][0] if load in LOADS else [])


def loads_of(version):
    return [load for load in LOADS if (version, load) not in LACKS]


def compiled():
    """Folder with the programs; None: there is no compiler."""
    compiler = next(iter(sorted(glob.glob("/usr/lib/jvm/*/bin/javac"))), None)
    if not compiler:
        return None
    folder = path("classes")
    # 8's class files: all can read them, and Classes looks at no modules there.
    done = run(compiler, "-source", "8", "-target", "8", "-g", "-d", folder, *glob.glob(f"{SOURCES}/*.java"))
    return folder if done.returncode == 0 else None


def windows_of(file):
    """As windows.windows_of(), with the VM's names."""
    return windows.windows_of(file, system_names=True)


def judged(profiles, process, home, folder):
    """What judge_samples() says of one process."""
    return judge_samples([p.of(process) for p in profiles], home, folder, sum(p.lost for p in profiles))


def sampled(home, folder, options, program, rates, wait, *flags):
    """Runs @program from its start under a recorder for each of @rates (Hz), as long as wait(process) takes; @flags: of the recorders. Returns
    the process, and for each rate the profiles of its windows, None when the recorder failed, and what it said."""
    command = [f"{home}/bin/java", *options, "-cp", folder, *program]
    files = [path(f"java-{rate}.pb.gz") for rate in rates]
    recorders = [start(HEARTH, "record", "-F", rate, "--window", WINDOW, *flags, "-q", "-o", file, stderr=subprocess.PIPE, text=True) for rate, file in zip(rates, files)]
    # Another JVM first: until hearth has the tables of a file of 20 MB, native frames of it are cut. How long that takes is measured elsewhere.
    for waits in (lambda _: time.sleep(WARM)), wait:
        process = start(*command)
        waits(process)
        process.kill()
        process.wait()
    for recorder in recorders:
        recorder.send_signal(signal.SIGINT)
    said = [recorder.communicate(timeout=300)[1] for recorder in recorders]
    return process, [(None if recorder.returncode else windows_of(file), text) for recorder, file, text in zip(recorders, files, said)]
