#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java: stacks of live JVMs, to their root, with names, judged by bytecode.

JVMs are those that tests/runtime/jvms.py finds and fetches. --quick: the newest that is here, two loads. --sampled: oldest, newest, one in
rotation. Arguments: only these versions or loads.
"""
import ctypes
import glob
import struct
import zipfile
from collections import Counter

from java_loads import *
from java_oracle import *
from parked import difference as parked_difference
from support import *

HZ = 997
SECONDS = 4 if QUICK else 12
RAW = 0.0005  # of the samples of a JVM that runs: their walk was left to the host
RAW_VIRTUAL = 0.002  # while the VM freezes or thaws frames of virtual threads (docs/java.md)
tap = Tap("java")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def raw_of(process):
    """(samples whose walk was left to the host, those of them that met a file whose rows were not loaded, those in code without names; all samples) of a
    JVM from its start. The profile counts the first two of all processes together, so a recorder of this one alone is beside; what it has to load first
    is in its first window, which is left out."""
    done = hearth("record", "-F", HZ, "-p", process.pid, "--window", f"{SECONDS / 3:.1f}", "-d", SECONDS, "-q", "-o", path("raw.pb.gz"), timeout=SECONDS + 120)
    if done.returncode:
        tap.note(f"the recorder beside: {done.stderr[-300:].strip()}")
        return 0, 0, 0, 0
    windows = windows_of(path("raw.pb.gz"))[1:]
    nameless = [s for w in windows for s in w.of(process) if has_jit(s)]
    return sum(w.counter("raw") for w in windows), sum(w.counter("rows_missed") for w in windows), total(nameless), sum(total(w.of(process)) for w in windows)


def check(version, home, load, options, program, whole=EACH, unknown=UNKNOWN):
    raw = []
    process, [(profiles, said)] = sampled(home, folder, options, program, [HZ], lambda p: raw.append(raw_of(p)))
    if not tap.ok(profiles, f"{version} {load}: hearth record ends well", said[-300:].strip()):
        return None
    tally, chains, classes = judged(profiles, process, home, folder)
    name = f"{version} {load}"
    judge_tally(tap, name, tally, 10 * SECONDS + 1, HZ, whole, unknown=unknown)
    left, missed, nameless, ran = raw[0]
    most = RAW if load in LOADS else RAW_VIRTUAL
    figures = f"{left} and {nameless} in code without names of {ran} samples, {100 * most:g} % at most; {missed} for want of rows"
    tap.ok(ran >= 5 * SECONDS and at_most(left + nameless, ran, most), f"{name}: few walks are left to the host", figures)
    return tally, chains, classes


missing = jvms.fetch() if not QUICK and not only else []
folder, found = compiled(), jvms.homes()
WAITS = 200 if QUICK else 1000


def check_waits(version, home):
    """A thread that waits has its callers, whole."""
    file = path("waits.pb.gz")
    process = start(f"{home}/bin/java", "-cp", folder, "Waits")
    time.sleep(WARM)
    done = hearth("record", "--off-cpu", "-p", process.pid, "-d", 6 if QUICK else 15, "-q", "-o", file, timeout=120)
    process.kill()
    process.wait()
    if not tap.ok(done.returncode == 0, f"{version} waits: hearth record ends well", done.stderr[-300:].strip()):
        return
    profile = Profile(file, system_names=True)
    at = profile.types.index(("waits", "count"))
    count, whole, ways = 0, 0, Counter()
    odd = Counter()
    for s in profile.of(process):
        if not s.values[at] or not any(n.startswith("Waits.caller(") for n in s.names):
            odd[s.end] += s.values[at]
            continue
        count += s.values[at]
        chain = [n.partition("(")[0] for n, m in zip(s.names, s.modules) if m == MODULE and n.startswith("Waits.")]
        fine = s.end == "complete" and chain[-3:-1] == ["Waits.caller", "Waits.middle"]
        whole += s.values[at] if fine else 0
        ways[chain[-1]] += s.values[at] if fine else 0
    tap.ok(count >= WAITS and whole >= 0.995 * count and set(ways) == {"Waits.park", "Waits.object", "Waits.sleep"},
           f"{version} waits: whole, with their callers", f"{whole} of {count}, {dict(ways)}; others {dict(odd)}")


THREADS = [f"request-handler-pool-{i}" for i in range(1, 5)] + ["caf\u00e9; [x] \u65e5\u672c\u8a9e tid=7]", "main"]
ROW = re.compile(r"successor in a row of many \d+$")


def check_threads(version, home):
    """Threads that compute are called what Java calls them: in pprof, and as frames of the agent's .col."""
    seconds = 6 if QUICK else 12
    process = start(f"{home}/bin/java", "-cp", folder, "Threads", stdout=subprocess.DEVNULL)
    time.sleep(WARM)
    done = hearth("record", "-F", HZ, "-p", process.pid, "-d", seconds, "-q", "-o", path("threads.pb.gz"), timeout=120)
    if tap.ok(done.returncode == 0, f"{version} threads: hearth record ends well", done.stderr[-300:].strip()):
        judge_threads(version, Profile(path("threads.pb.gz"), system_names=True).of(process))
    options = ["--pids", process.pid, "-d", seconds, "-f", HZ, "--no-flamegraph", "--log-file", path("agent.log"), "--pid-file", path("agent.pid")]
    for flags in ["--java-collect-thread-names"], []:
        out = path(f"out-{version}-{len(flags)}")
        done = hearth("agent", *options, *flags, "-o", out, timeout=120)
        files = glob.glob(f"{out}/profile_*.col")
        if tap.ok(done.returncode == 0 and len(files) == 1, f"{version} threads: hearth agent ends well", done.stderr[-300:].strip()):
            judge_thread_frames(version, files[0], bool(flags))
    process.kill()
    process.wait()


def judge_threads(version, samples):
    by_name, row, renamed, wrong = Counter(), Counter(), Counter(), Counter()
    for s in samples:
        name, methods = s.labels.get("thread", ""), {n.partition("(")[0] for n in s.names}
        if "Threads.steady" in methods:
            by_name[name] += s.count
        elif "Threads.successor" in methods or any(m.startswith("Threads.lambda$successor") for m in methods):
            row[bool(ROW.match(name))] += s.count
        for method, mine, others in ("Threads.even", "evenly", "oddly"), ("Threads.odd", "oddly", "evenly"):
            if method in methods:
                renamed[name == f"{mine} renamed again and again"] += s.count
                wrong[name] += s.count if name.startswith(others) and len(name) > 15 else 0
    all_named = sum(by_name[name] for name in THREADS)
    tap.ok(all_named >= 0.995 * sum(by_name.values()) and all(by_name[name] for name in THREADS), f"{version} threads: have their whole names", dict(by_name))
    tap.ok(renamed[True] >= 0.9 * renamed.total() > 0, f"{version} threads: those that are renamed, too", f"{dict(renamed)}")
    tap.ok(wrong.total() <= 0.002 * renamed.total(), f"{version} threads: none has the name that it had before", dict(+wrong))
    tap.ok(row[True] > 0, f"{version} threads: some that live a second", dict(row))


def judge_thread_frames(version, file, wanted):
    count = right = 0
    names = Counter()
    with open(file, encoding="utf-8") as f:
        for line in list(f)[1:]:
            stack, _, number = line.rpartition(" ")
            if "Threads.steady()" not in stack:
                continue
            frames = stack.split(";")[3:]
            frames = frames[1:] if frames[0].startswith("appid: ") else frames
            told = re.match(r"\[(.+) tid=(\d+)\]$", frames[0])
            count += int(number)
            if told:
                names[told[1]] += int(number)
                right += int(number) if told[1] in [name.replace(";", "|") for name in THREADS] else 0
    what = f"{version} threads: stacks of .col begin with theirs" if wanted else f"{version} threads: stacks of .col do not, unless asked for"
    tap.ok(count > 0 and (len(names) == len(THREADS) and right >= 0.995 * count if wanted else not names), what, f"{right} of {count}, {dict(names)}")


def jstack(home, process):
    """What the JVM says of its threads: {tid: (name, [(function, file, line)])}, innermost first; file "" and line 0: not told."""
    threads, rows = {}, None
    for line in run(f"{home}/bin/jstack", process.pid).stdout.splitlines():
        head = re.match(r'"(.*)" (?:#|.*os_prio).*nid=(0x[0-9a-f]+|\d+)', line)
        frame = re.match(r"\s+at (.+)\((?:[^()/]*/)*([^()]*)\)$", line)
        if head:
            rows = []
            threads[int(head[2], 0)] = (head[1], rows)
        elif frame and rows is not None:
            file, _, number = frame[2].partition(":")
            # What differs from run to run hearth leaves out.
            name = re.sub(r"(\$\$Lambda|GeneratedMethodAccessor|LambdaForm\$\w+)[^.]*", r"\1", frame[1].rpartition("/")[2] if "//" in frame[1] else frame[1])
            rows.append((name, "" if " " in file else file, int(number or 0)))
    return threads


def check_parked(version, home):
    """dump -p shows of each thread that waits what jstack shows."""
    process = start(f"{home}/bin/java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames", "-cp", folder, "Parked", stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    want = jstack(home, process)
    for options in ([], ["--freeze"]):
        done = hearth("dump", "--json", *options, "-p", process.pid)
        threads = {t["tid"]: t for t in json.loads(done.stdout)["threads"]} if done.returncode == 0 else {}
        parked = same = unknown = frames = 0
        odd = []
        for tid, (name, rows) in want.items():
            if not name.startswith("parked-") and name != "main":
                continue
            parked += 1
            got = threads.get(tid, {"name": "", "frames": []})
            shown = [(f["name"], f.get("file", "") if "line" in f else "", f.get("line", 0)) for f in got["frames"] if f["kind"] == "java"]
            frames += len(rows)
            rows = [(n, file if line else "", line) for n, file, line in rows]
            fine = shown == rows and got["name"] == name
            # Only a stopped thread's registers are all known: what reads a pipe may need another one at once.
            excused = not options and not fine and any("--freeze" in r for r in got.get("remarks", []))
            same += fine
            unknown += excused
            if not fine and len(odd) < 3:
                odd.append((name, got["name"], parked_difference(shown, rows), got.get("remarks")))
        tap.ok(parked == 50 and same + unknown == 50 and unknown <= 1, f"{version} parked: dump -p {' '.join(options)} shows what jstack does",
               f"{same} of {parked} threads, {frames} frames {done.stderr[-200:].strip()} {odd or ''}")
    process.kill()
    process.wait()


def agent():
    """The agent that can redefine classes, in a file of its own."""
    file = path("redefine.jar")
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: Redefine\nCan-Redefine-Classes: true\n")
        for name in glob.glob(f"{folder}/Redefine*.class"):
            z.write(name, os.path.basename(name))
    return f"-javaagent:{file}"


# Truth.tN, of a class that stays, is called by method mN of the class that is redefined, or of Unload$TN_NUMBER, which comes and goes. Six frames of
# Digits, which stays too, say NUMBER above that one: so the name of any other such class is found.
TRUTH = re.compile(r"(Redefine|Unload)\$Truth\.t(\d)\(")
DIGIT = re.compile(r"Unload\$Digits\.d(\d)\(")
LOADING = ("Unload$Loader.loadClass(", "java/")  # below mN, which meets Truth for the first time
NEXT = "Unload$Digits.next("  # which calls a digit, or the class's method, and not itself
OWN = re.compile(r"(Unload\$T\d_)(\d{6})(\..*)")
RATES = {"classes loaded": 2000, "unloaded": 2000, "redefined": 100}  # a second


HOT = 17  # Unload: each such class is called often enough to be compiled, and inlined where it is called


def called_by(number):
    """Patterns of what comes below the six frames of @number."""
    n = int(number) % 8
    own = rf"Unload\$T{n}_{number}\."
    return [own + r"applyAsInt\(I\)I$", own + rf"m{n}\(I\)I$", rf"Unload\$Truth\.t{n}\(", r"Unload\$Truth\.work\("]


def is_ahead(frames):
    """Whether these are of one class that may be inlined in its caller, which runs. Compiled code says at safepoints only what is inlined, and the next
    one counts (docs/java.md): the method of the class that is expected stands there already while the code asks whether it is that class."""
    found = OWN.match(frames[0])
    return bool(found) and int(found[2]) % HOT == 0 and not judge_changing(frames, called_by(found[2]))


def changing_frames(java, end):
    """Of the names of a stack's Java frames: those behind the last one that tells what comes, and a pattern for each that may come. None: nothing tells."""
    digits = [i for i, n in enumerate(java) if DIGIT.match(n)]
    truth = next((i for i, n in enumerate(java) if TRUTH.match(n)), None)
    if len(digits) == 6:
        number = "".join(DIGIT.match(java[i])[1] for i in digits)
        below = [n for n in java[digits[5] + 1:] if not n.startswith("Unload$Digits.next(")]
        return below, called_by(number)
    if not truth:
        return None
    load, n = TRUTH.match(java[truth]).groups()
    if load == "Redefine":
        call = next((i for i, name in enumerate(java) if name.startswith("Redefine.call(")), truth - 2)
        return java[call + 1:], [rf"Redefine\$Target\.m{n}\(I\)I$", rf"Redefine\$Truth\.t{n}\("]
    if end == "complete" and all("(" in name for name in java):
        return None
    return java[truth - 1:], [rf"Unload\$T{n}_\d{{6}}\.m{n}\(I\)I$", rf"Unload\$Truth\.t{n}\("]


def judge_changing(frames, wanted):
    """ "wrong": one has the name of another method; "missing": one that must be there is not. What has no name can stand for what was inlined, too."""
    at, any_number = 0, False
    for name in frames:
        if at == len(wanted) or name.startswith(LOADING) and (at == 2 or any_number):
            break
        if "(" not in name:
            any_number = True
            continue
        found = next((i for i in range(at, len(wanted)) if re.match(wanted[i], name)), None)
        if found is None or found > at and not any_number:
            return "wrong" if found is None else "missing"
        at, any_number = found + 1, False
    return None


def another(name):
    """A frame of a class that comes and goes, by the name of the eighth class after it, whose methods have the same names."""
    return OWN.sub(lambda m: f"{m[1]}{(int(m[2]) + 8) % 1000000:06}{m[3]}", name)


def last_counts(file):
    """What such a program has said last: {what: (ms, count)}."""
    out = {}
    with open(file) as f:
        for ms, rest in re.findall(r"^(\d+) ms: (.*)\n", f.read(), re.M):
            out |= {what: (int(ms), int(count)) for what, count in re.findall(r"(classes loaded|unloaded|redefined) (\d+)", rest)}
    return out


def check_changing(version, home, what, options, *program, least=10):
    """Methods lie where others have lain: whoever is called by a name has that one."""
    file, said = path("changing.pb.gz"), path("changing.txt")
    with open(said, "w") as out:
        process = start(f"{home}/bin/java", *options, "-cp", folder, *program, stdout=out)
    time.sleep(WARM)
    before, used = last_counts(said), cpu_seconds(process.pid)
    done = hearth("record", "-F", HZ, "-p", process.pid, "-d", SECONDS, "-q", "-o", file, timeout=120)
    after, used = last_counts(said), cpu_seconds(process.pid) - used
    process.kill()
    process.wait()
    name = f"{version} {what} {' '.join(o for o in options if not o.startswith('-javaagent'))}".strip()
    if not tap.ok(done.returncode == 0, f"{name}: hearth record ends well", done.stderr[-300:].strip()):
        return
    wanted = [k for k in RATES if (k == "redefined") == (what == "redefined") or " and " in what]
    rates = {k: 1000 * (after[k][1] - before[k][1]) / max(after[k][0] - before[k][0], 1) for k in wanted if k in before}
    # Beside others the JVM gets little time, and half as often in that is enough.
    enough = min(1, 0.5 * used / SECONDS)
    tap.ok(len(rates) == len(wanted) and all(rate >= enough * RATES[k] for k, rate in rates.items()), f"{name}: as often as is wanted",
           ", ".join(f"{rate:.0f} {k} a second" for k, rate in rates.items()) + f", {used / SECONDS:.2f} CPUs")
    count = named = frames = frames_named = tried = found = 0
    verdicts, odd = Counter(), Counter()
    for s in Profile(file, system_names=True).of(process):
        java = [n for n, m in zip(s.names, s.modules) if m == MODULE]
        frames += s.count * len(java)
        frames_named += s.count * sum("(" in n for n in java)
        there = changing_frames(java, s.end)
        if any(a.startswith(NEXT) and b.startswith(NEXT) for a, b in zip(java, java[1:])):
            count, verdict = count + s.count, "illegal"
        elif there:
            count += s.count if there[0] else 0
            named += s.count if there[0] and all("(" in n for n in there[0]) else 0
            verdict = judge_changing(*there)
            verdict = "ahead" if verdict == "wrong" and is_ahead(there[0]) else verdict
            renamed = [n for n in there[0] if len(there[1]) == 4 and not verdict and another(n) != n]
            tried += len(renamed)
            found += sum(judge_changing([another(n) if n == r else n for n in there[0]], there[1]) == "wrong" for r in renamed)
        else:
            verdict = "missing" if s.end == "complete" and all("(" in n for n in java) and any("$Truth." in n for n in java) else None
            count += s.count if verdict else 0
        verdicts[verdict] += s.count
        if verdict:
            odd[f"{verdict}: {' > '.join(java[-9:])}"] += s.count
    wrong, missing, illegal, ahead = (verdicts[verdict] for verdict in ("wrong", "missing", "illegal", "ahead"))
    tap.ok(count >= least and named >= 0.95 * count, f"{name}: methods have names", f"{named} of {count}; of all frames {frames_named} of {frames}")
    tap.ok(wrong == 0, f"{name}: no method has the name of another one", f"{wrong} of {count}")
    tap.ok(ahead <= max(1, 0.0005 * count), f"{name}: few are of the next safepoint", f"{ahead} of {count}")
    tap.ok(missing <= max(1, 0.0005 * count), f"{name}: no method is missing", f"{missing} of {count}")
    tap.ok(illegal <= max(1, 0.0005 * count), f"{name}: nobody calls whom he does not call", f"{illegal} of {count}")
    if what.startswith("unloaded"):
        tap.ok(found == tried > 0, f"{name}: a name of another class would be found", f"{found} of {tried}")
    for text, times in odd.most_common(3):
        tap.note(f"    {times} times {text}")


STARTS = 50
EARLY = 0.005
READY_MS = 30  # in the mean
CODE_WAIT = 20  # seconds


def bpf(command, attributes):
    """A system call of BPF, 321 on x86-64; @attributes are written to. Returns its value. Source: linux, man 2 bpf."""
    return ctypes.CDLL(None, use_errno=True).syscall(321, command, ctypes.byref(attributes), ctypes.sizeof(attributes))


def map_of(recorder, name):
    """(descriptor, size of a value) of a map of a running recorder; None: it has none of that name. Source: linux, uapi/linux/bpf.h, struct bpf_map_info."""
    ids = set()
    for fd in os.listdir(f"/proc/{recorder.pid}/fdinfo"):
        with contextlib.suppress(OSError), open(f"/proc/{recorder.pid}/fdinfo/{fd}") as f:
            ids |= {int(number) for number in re.findall(r"^map_id:\s*(\d+)$", f.read(), re.M)}
    for number in sorted(ids):
        fd = bpf(14, ctypes.create_string_buffer(struct.pack("=IIII", number, 0, 0, 0), 16))  # BPF_MAP_GET_FD_BY_ID
        if fd < 0:
            continue
        info = ctypes.create_string_buffer(64)
        asked = ctypes.create_string_buffer(struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)), 16)
        if bpf(15, asked) == 0 and info.raw[24:40].rstrip(b"\0") == name:  # BPF_OBJ_GET_INFO_BY_FD
            return fd, int.from_bytes(info.raw[12:16], "little")
        os.close(fd)
    return None


def map_has(found_map, pid):
    key, value = ctypes.c_uint32(pid), ctypes.create_string_buffer(found_map[1])
    attributes = struct.pack("=IIQQQ", found_map[0], 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    return bpf(1, ctypes.create_string_buffer(attributes, len(attributes))) == 0  # BPF_MAP_LOOKUP_ELEM


def libjvm_of(pid):
    """Where its libjvm.so lies; 0: it is not there yet."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as f:
        return next((int(line.partition("-")[0], 16) for line in f if line.endswith("/libjvm.so\n")), 0)
    return 0


def wait_until(value, process):
    """The first of value()'s answers that is not 0, asked for again and again; 0: it never came."""
    end = time.monotonic() + CODE_WAIT
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            answer = value()
            if answer:
                return answer
        time.sleep(0.0005)
    return 0


def code_place(tool, home):
    """Where in libjvm.so AbstractInterpreter::_code lies, from its start on, as a JVM that runs says in its tables; 0: it does not."""
    process = start(f"{home}/bin/java", "-cp", folder, *SORT)
    wait_until(lambda: libjvm_of(process.pid), process)
    time.sleep(1)
    said = run(tool, process.pid, "tables", input="F AbstractInterpreter\t_code\n").stdout.strip().split("|")
    place = int(said[3]) if len(said) == 4 else 0
    process.kill()
    process.wait()
    return place


def ready_after(known, process, place):
    """ms from the moment in which a JVM has an interpreter until the kernel's walker knows the process; None: one of both never came."""
    base = wait_until(lambda: libjvm_of(process.pid), process)
    with contextlib.suppress(OSError), open(f"/proc/{process.pid}/mem", "rb", 0) as memory:
        if base and wait_until(lambda: any(os.pread(memory.fileno(), 8, base + place)), process):
            begin = time.monotonic()
            return 1000 * (time.monotonic() - begin) if wait_until(lambda: map_has(known, process.pid), process) else None
    return None


def check_starts():
    """JVMs that start one after the other, each with its second and a half of CPU: what runs before hearth has met one shows as code without names.
    Nobody tells when a JVM can be read: how soon it is, once it has an interpreter, is measured beside."""
    tool = os.path.join(os.path.dirname(HEARTH), "tests", "runtime", "java_tool")
    if not os.access(tool, os.X_OK):
        return tap.skip("starts", "needs java_tool of the same build")
    places = {version: code_place(tool, home) for version, home in found.items()}
    if not tap.ok(all(places.values()), "starts: each JVM's tables say where its interpreter is", places):
        return None
    file, ran = path("starts.pb.gz"), []
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", file, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    known, times = map_of(recorder, b"javas"), {version: [] for version in found}
    if not tap.ok(known, "starts: the recorder has a map of JVMs"):
        return None
    for i in range(STARTS + len(found)):
        version = list(found)[i % len(found)]
        process, end = start(f"{found[version]}/bin/java", "-cp", folder, *LOADS["default"][1]), time.monotonic() + 1.5
        took = ready_after(known, process, places[version])
        time.sleep(max(0, end - time.monotonic()))
        process.kill()
        process.wait()
        if i >= len(found):  # what it must know of a file is read once
            ran.append((version, process))
            times[version].append(took)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=90)[1]
    if tap.ok(recorder.returncode == 0, "starts: hearth record ends well", said[-300:].strip()):
        judge_starts(Profile(file), ran, times)
    return None


def judge_starts(profile, ran, times):
    ticks, early, never = 0, Counter(), []
    for version, process in ran:
        samples = profile.of(process)
        ticks += total(samples)
        early[version] += total([s for s in samples if s.names and s.names[-1].startswith("[jit+") and MODULE not in s.modules])
        if not any(MODULE in s.modules for s in samples):
            never.append(version)
    every = [ms for row in times.values() for ms in row]
    tap.ok(not never and None not in every, "starts: each JVM is met", f"{len(ran)} starts, not met {never}, not known to the walker {every.count(None)}")
    tap.ok(early.total() <= EARLY * ticks, f"starts: at most {100 * EARLY:g} % of the ticks are in code of a JVM that is not met yet",
           f"{early.total()} of {ticks}, {1000 * early.total() / HZ / len(ran):.1f} ms a start; {dict(+early)}")
    if every and None not in every:
        tap.ok(sum(every) / len(every) <= READY_MS, f"starts: {READY_MS} ms in the mean from when a JVM has an interpreter until it is known",
               f"{sum(every) / len(every):.1f} ms of {len(every)}, {max(every):.1f} the longest; " + ", ".join(f"{v} {sum(row) / len(row):.1f}" for v, row in times.items() if row))


if not folder or not found:
    tap.skip("everything", "no JDK")
    tap.finish()
for version in missing:
    tap.skip(f"JDK {version}", "cannot be had here")
versions = [v for v in found if str(v) in only] or (some_of(found) if not QUICK else [max(found)])
loads = [] if {"waits", "parked", "virtual", "redefined", "unloaded", "threads", "starts"} & set(only) else [name for name in LOADS if name in only] or (("default", "interpreted") if QUICK else LOADS)
last = None
for version in versions:
    tallies = []
    for load in loads:
        if (version, load) not in LACKS:
            result = check(version, found[version], load, options_of(version, load), LOADS[load][1], INTERPRETED if load == "interpreted" else EACH)
            last = result or last
            tallies += [result[0]] if result else []
    if len(tallies) > 1:
        wanted, whole = sum(t.judged for t in tallies), sum(t.complete for t in tallies)
        tap.ok(at_most(wanted - whole, wanted, 1 - POOLED), f"{version}: stacks of all loads reach their root", f"{whole} of {wanted}, {100 * POOLED:g} % wanted")
    if version >= VIRTUAL and (not only or "virtual" in only):
        check(version, found[version], "virtual", [], ("Virtual",), WHOLE_VIRTUAL, UNKNOWN_VIRTUAL)
    for options in [["-Xint"], []] if not only or {"redefined", "unloaded"} & set(only) else []:
        if not only or "redefined" in only:  # asked for a little more often than RATES want
            check_changing(version, found[version], "redefined", [*options, agent()], "Redefine", 110)
        if not only or "unloaded" in only:  # classes, each with a name of its own
            check_changing(version, found[version], "unloaded", [*options, "-Xmx64m"], "Unload", 2200, 110, least=10 * SECONDS)
            if not QUICK:
                check_changing(version, found[version], "unloaded and redefined", [*options, "-Xmx64m", agent()], "Unload", 2200, 110, least=10 * SECONDS)
    if not only or "waits" in only:
        check_waits(version, found[version])
    if not only or "threads" in only:
        check_threads(version, found[version])
if "starts" in only or not (QUICK or only):
    check_starts()
# Runtimes without tools have no jstack.
told = [v for v in (versions if "parked" in only else found) if os.path.exists(f"{found[v]}/bin/jstack")]
for version in told[-1:] if QUICK else told:
    if not only or "parked" in only:
        check_parked(version, found[version])
if last:
    check_oracle(tap, "the last load", *last[1:])
tap.finish()
