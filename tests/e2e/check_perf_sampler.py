#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--sampler perf: the known call tree as with bpf, by frame pointers, copied stacks and both; other events than time, under real load;
whose samples they are; a jitdump writer's functions; short programs; without rights."""
import glob
import signal
from collections import Counter

from support import *

EXPECTED = {
    "c": ["main", "a", "b", "c"], "b": ["main", "a", "b"], "a": ["main", "a"],
    "e": ["main", "d", "e"], "d": ["main", "d"], "main": ["main"],
    "inner": ["thread_main", "outer", "inner"], "outer": ["thread_main", "outer"], "thread_main": ["thread_main"],
}
SHARES = {"c": 50, "b": 20, "e": 30}  # of the main thread, percent
MODES = {
    "bpf": ["--sampler", "bpf"],
    "frame pointers": ["--sampler", "perf", "--unwind", "fp"],
    "copied stacks": ["--sampler", "perf"],
    "both": ["--sampler", "perf", "--perf-mode", "smart"],
}

tap = Tap("perf_sampler")
need(tap)


def known(samples):
    """The program's own stacks, from main or the thread's first function on -> how often; and how many were not known."""
    found, wrong = Counter(), Counter()
    for s in samples:
        if not s.names or not s.modules[-1].startswith(BUILD) or s.leaf not in EXPECTED:
            continue
        first = next((i for i, n in enumerate(s.names) if n in ("main", "thread_main")), None)
        stack = tuple(s.names[first:]) if first is not None else ()
        if list(stack) == EXPECTED[s.leaf]:
            found[stack] += s.count
        else:
            wrong[";".join(s.names)] += s.count
    return found, wrong


# ---- the tree ----

def check_tree():
    seconds = 3 if QUICK else 12
    trees = {}
    for what, options in MODES.items():
        # Frame pointers alone miss the caller of a function that has no frame: tree's leaves.
        tree = start(workload("tree_frames" if what == "frame pointers" else "tree"), seconds + 60)
        time.sleep(0.3)
        name = what.replace(" ", "_") + ".pb.gz"
        record(tap, seconds, *options, "-F", 499, "-p", tree.pid, "-o", path(name), "-q")
        tree.kill()
        profile = Profile(path(name))
        samples = profile.of(tree)
        found, wrong = known(samples)
        all_known, all_wrong = sum(found.values()), sum(wrong.values())
        tap.ok(all_known > 100, f"{what}: samples in the program's own code", all_known)
        tap.ok(all_known / max(all_known + all_wrong, 1) >= 0.99, f"{what}: exactly the known tree in at least 99 %",
               f"{100 * all_known / max(all_known + all_wrong, 1):.2f} % of {all_known + all_wrong}")
        for stack, count in wrong.most_common(3):
            tap.note(f"{count} times: {stack}")
        main_thread = sum(found[tuple(EXPECTED[leaf])] for leaf in SHARES)
        for leaf, percent in SHARES.items():
            seen = 100 * found[tuple(EXPECTED[leaf])] / max(main_thread, 1)
            room = 1 + 400 * (percent / 100 * (1 - percent / 100) / max(main_thread, 1)) ** 0.5
            tap.ok(abs(seen - percent) <= room, f"{what}: {leaf} has about {percent} % of the main thread", f"{seen:.1f} % (within {room:.1f})")
        names = {s.labels.get("thread") for s in samples if "inner" in s.names}
        tap.ok(names == {"tree-one", "tree-two"}, f"{what}: threads by name", sorted(map(str, names)))
        tap.ok(not profile.lost, f"{what}: nothing is lost", profile.lost)
        tap.ok(profile.facts.get("sampler") == ("bpf" if what == "bpf" else "perf"), f"{what}: the file says by which sampler", profile.facts.get("sampler"))
        trees[what] = {stack for stack, count in found.items() if count >= 0.01 * all_known}
        if what in ("bpf", "copied stacks", "both"):
            whole = [s for s in samples if s.end == "complete"]
            tap.ok(share(whole, samples) >= 0.98, f"{what}: whole stacks", f"{100 * share(whole, samples):.1f} % of {total(samples)}")
    for what, tree in trees.items():
        tap.ok(tree == trees["bpf"], f"{what}: the same tree as with bpf", f"{len(tree)} stacks: {sorted(tree ^ trees['bpf'])[:3]}")
    # qsort's frames have no frame pointers: only its tables know them.
    nofp = start(workload("nofp"), seconds + 30)
    record(tap, seconds, "--sampler", "perf", "-F", 499, "-p", nofp.pid, "-o", path("nofp.pb.gz"), "-q")
    nofp.kill()
    through = [s for s in Profile(path("nofp.pb.gz")).of(nofp) if "compare" in s.names]
    whole = [s for s in through if s.end == "complete" and "main" in s.names and "sorter" in s.names]
    tap.ok(total(through) > 50 and share(whole, through) >= 0.98, "copied stacks: through a libc without frame pointers",
           f"{100 * share(whole, through):.1f} % of {total(through)}")


# ---- who ----

def by_process(profile):
    """Process id -> how many samples it has."""
    counts = Counter()
    for s in profile.samples:
        counts[s.pid] += s.count
    return counts


def check_who():
    one, two = start(workload("spin"), 60), start(workload("spin"), 60)
    time.sleep(0.3)
    said = record(tap, 4, "--sampler", "perf", "-F", 199, "--no-php", "-p", one.pid, "-o", path("one.pb.gz"), "-q").stderr
    tap.ok(said.count("fewer samples") == 1 and 'runtimes="Python, Ruby, Perl" rate=50 asked=199' in said, "which runtimes are read at another rate is said once", said)
    profile = Profile(path("one.pb.gz"))
    tap.ok(total(profile.of(one)) and {s.pid for s in profile.samples} == {one.pid}, "-p: this process and no other",
           by_process(profile))
    record(tap, 4, "--sampler", "perf", "-F", 199, "-o", path("all.pb.gz"), "-q")
    profile = Profile(path("all.pb.gz"))
    tap.ok(total(profile.of(one)) and total(profile.of(two)), "without -p: both", (total(profile.of(one)), total(profile.of(two))))
    tap.ok(profile.counter("ticks") and not profile.counter("lost_rejected"), "every record is understood", profile.counter("lost_rejected"))
    for folder in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.path.exists(os.path.join(folder, "cgroup.controllers")):
            group = os.path.join(folder, f"hearth-perf-{os.getpid()}")
            os.mkdir(group)
            try:
                with open(os.path.join(group, "cgroup.procs"), "w") as f:
                    f.write(str(two.pid))
                record(tap, 4, "--sampler", "perf", "-F", 999, "--cgroup", group, "-o", path("group.pb.gz"), "-q")
                seen = by_process(Profile(path("group.pb.gz")))
                # 4 s at 999 Hz, beside a second program that spins and whatever else this machine does.
                tap.ok(seen[two.pid] > 400 and set(seen) == {two.pid}, "--cgroup: its processes and no other", seen)
            finally:
                two.kill()
                two.wait()
                time.sleep(0.2)
                os.rmdir(group)
            break
    else:
        tap.skip("--cgroup", "no cgroup v2 is mounted")
    one.kill()
    # A command and what it starts: programs of 200 ms, which are gone when the window ends.
    runs = 5 if QUICK else 25
    done = hearth("record", "--sampler", "perf", "-F", 199, "-q", "-o", path("short.pb.gz"), "--", "sh", "-c",
                  f"for i in $(seq {runs}); do {workload('short')}; done", timeout=120)
    tap.ok(done.returncode == 0, "a command", done.stderr[-200:])
    samples = [s for s in Profile(path("short.pb.gz")).samples if s.labels.get("comm") == "short"]
    named = [s for s in samples if "short_lived_work" in s.names and "main" in s.names]
    pids = {s.pid for s in named}
    tap.ok(len(pids) == runs and share(named, samples) >= 0.75, "short programs that a command starts have names",
           f"{len(pids)} of {runs} programs, {100 * share(named, samples):.1f} % of {total(samples)} samples")


# ---- code of a JIT compiler ----

def check_jitdump():
    for what in ("bpf", "copied stacks", "frame pointers"):
        done = hearth("record", *MODES[what], "--window", 1, "-F", 199, "-q", "-o", path("jit.folded"), "--", workload("jitdump"), 6, timeout=60)
        text = "".join(open(f).read() for f in glob.glob(path("jit*.folded")))
        for f in glob.glob(path("jit*.folded")) + glob.glob("/tmp/jit-*.dump"):
            os.unlink(f)
        made = Counter()
        for line in text.splitlines():
            stack, _, count = line.rpartition(" ")
            frames = stack.split(";")
            if "run_made_code" in frames and frames[-1] != "run_made_code":
                made[frames[frames.index("run_made_code") + 1]] += int(count)
        named = sum(made[f"{name}_[j]"] for name in ("first_loop", "second_loop", "moved_loop"))
        tap.ok(done.returncode == 0 and all(made[f"{name}_[j]"] for name in ("first_loop", "second_loop", "moved_loop"))
               and named >= 0.98 * sum(made.values()), f"{what}: a jitdump writer's functions are named", made.most_common(4))


# ---- other events ----

def events_file(event, seconds, *options):
    done = hearth("agent", "-d", seconds, "-o", path("events"), "--perf-event", event, *options, timeout=seconds + 60)
    files = sorted(glob.glob(path("events/profile_*.col")), key=os.path.getmtime)
    if done.returncode or not files:
        return done, {}, []
    with open(files[-1], errors="replace") as f:
        head, *lines = f.read().splitlines()
    return done, json.loads(head[2:]), [line.rpartition(" ") for line in lines]


def check_events():
    os.mkdir(path("events"))
    switcher = start("sh", "-c", f"while :; do {sys.executable} -c 'import time; [time.sleep(0.001) for _ in range(2000)]'; done", preexec_fn=os.setsid)
    faulter = start(sys.executable, "-c", "import mmap\nwhile True:\n m = mmap.mmap(-1, 1 << 22)\n for i in range(0, 1 << 22, 4096): m[i] = 1\n m.close()\n")
    time.sleep(0.5)
    seconds = 2 if QUICK else 5
    try:
        rate = ("-f", 99)
        for event, options, leaf in (("context-switches", rate, "sched"), ("page-faults", rate, None), ("sched:sched_switch", rate, "sched"),
                                     ("context-switches", ("--perf-event-period", 1), "sched"), ("page-faults", ("--perf-event-period", 100), None),
                                     ("sched:sched_switch", ("--perf-event-period", 1), "sched")):
            what = f"--perf-event {event} {options[0]} {options[1]}"
            done, head, lines = events_file(event, seconds, *options)
            if not tap.ok(done.returncode == 0 and lines, f"{what}: a cycle", (done.stdout + done.stderr)[-300:]):
                continue
            way = (("period", head.get("sampling_period")) if options != rate else ("frequency", head.get("sampling_frequency"))) + (options[1],)
            tap.ok(head["sampling_event"] == event and head["sampling_mode"] == way[0] and way[1] == way[2], f"{what}: its header",
                   {k: v for k, v in head.items() if k.startswith("sampling")})
            tap.ok(head["metadata"].get("sampling_event") == event and head["metadata"].get("sampling_mode") == way[0], f"{what}: its metadata",
                   {k: v for k, v in head["metadata"].items() if k.startswith("sampling")})
            by_python = sum(int(count) for stack, _, count in lines if any("python" in name for name in stack.split(";")[:3]))
            everything = sum(int(count) for _, _, count in lines)
            if options == rate:  # the kernel follows bursts with a period that may skip much
                tap.ok(everything >= 3, f"{what}: samples", everything)
            else:
                tap.ok(by_python >= 0.05 * everything and by_python >= 10, f"{what}: what does it is seen", f"{by_python} of {everything}")
            if leaf:
                with_leaf = sum(int(count) for stack, _, count in lines if any(leaf in frame for frame in stack.split(";")[-8:]))
                tap.ok(with_leaf >= 0.9 * everything, f"{what}: its stacks end where it happens", f"{with_leaf} of {everything}")
        record(tap, 2, "-e", "page-faults", "-c", 100, "-o", path("faults.pb.gz"), "-q")
        profile = Profile(path("faults.pb.gz"))
        tap.ok(profile.types == [("samples", "count"), ("page-faults", "count")] and profile.period == 100, "a period is counted in events, not in time",
               (profile.types, profile.period))
        tap.ok(all(s.values[1] == 100 * s.values[0] for s in profile.samples), "each sample stands for its period")
        record(tap, 2, "-e", "page-faults", "-o", path("faults.pb.gz"), "-q")
        profile = Profile(path("faults.pb.gz"))
        tap.ok(profile.types == [("samples", "count")] and not profile.period, "by rate nobody knows what a sample stands for", profile.types)
    finally:
        os.killpg(switcher.pid, signal.SIGKILL)
        faulter.kill()
    for event, status, says in (("nonsense", 2, "is no event"), ("uncore_imc/x/", 2, "no process"), ("sched:nothing_such", 2, "no tracepoint")):
        done = hearth("agent", "-d", 1, "-o", path("events"), "--perf-event", event)
        tap.ok(done.returncode == status and says in done.stderr and done.stderr.strip().count("\n") <= 1, f"--perf-event {event}: one line, exit {status}",
               (done.returncode, done.stderr[-200:]))
    if not glob.glob("/sys/bus/event_source/devices/cpu*"):
        done = hearth("record", "-d", 1, "-e", "cycles")
        tap.ok(done.returncode == 77 and "no counter on this machine" in done.stderr and done.stderr.count("\n") == 1, "no counters: it says so", done.stderr)
    else:
        tap.skip("no counters", "this machine has them")


# ---- without rights ----

def check_rights():
    with open("/proc/sys/kernel/perf_event_paranoid") as f:
        paranoid = int(f.read())
    if paranoid > 2 or not shutil.which("setpriv"):
        tap.skip("without rights", f"needs setpriv, and kernel.perf_event_paranoid of 2 or less: {paranoid}")
        return
    program, folder = hearth_for_everybody(), path("free")
    os.makedirs(folder, 0o777, exist_ok=True)
    os.chmod(folder, 0o777)
    tree = path("tree-for-all")
    shutil.copy(workload("tree"), tree)
    os.chmod(tree, 0o755)
    done = run(*unprivileged(program, "record", "-F", 499, "-q", "-d", 5, "-o", os.path.join(folder, "own.pb.gz"), "--", tree, "60"), cwd=folder)
    if tap.ok(done.returncode == 0, "nobody: a command of one's own", done.stderr[-300:]):
        profile = Profile(os.path.join(folder, "own.pb.gz"))
        tap.ok(profile.facts.get("sampler") == "perf", "nobody: auto takes perf", profile.facts.get("sampler"))
        own = [s for s in profile.samples if s.leaf in EXPECTED]
        right = [s for s in own if s.names[-len(EXPECTED[s.leaf]):] == EXPECTED[s.leaf]]
        tap.ok(total(right) > 10 and share(right, own) >= 0.98, "nobody: the known tree", f"{total(right)} of {total(own)}")
        if paranoid > 1:
            tap.ok("time in the kernel is left out" in done.stderr, "nobody: what is left out is said", done.stderr[-200:])
    done = run(*unprivileged(program, "record", "--sampler", "perf", "-d", 1, "-q"), cwd=folder)
    tap.ok(done.returncode == 77 and "named" in done.stderr and done.stderr.count("\n") == 1 or paranoid <= 0, "nobody: not the whole machine",
           (done.returncode, done.stderr[-300:]))
    done = run(*unprivileged(program, "record", "--sampler", "perf", "-d", 1, "-q", "-p", 1), cwd=folder)
    tap.ok(done.returncode == 77 and done.stderr.count("\n") == 1, "nobody: not a process of somebody else's", (done.returncode, done.stderr[-300:]))


check_tree()
check_who()
check_jitdump()
check_events()
check_rights()
tap.finish()
