#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table of ratios: hearth beside its peers, measured in the same run, medians of repeated runs.

bench.py [--quick] [--runs N] [NAME...]     (no name: all; bench.py --help lists them)

Never asserts. CPU time is that of a cgroup of its own, so that helpers (perf starts addr2line) count. The time the
kernel spends in BPF programs is charged to the interrupted thread and is added from the programs' run_time_ns.
HEARTH names another program, INFERNO_FLAMEGRAPH, FLAMEGRAPH_PL, OTEL_PROFILER, PY_SPY, RBSPY and PHPSPY more peers. Most parts need root.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from measure import *

import bench_collector
import bench_java
import bench_python
import bench_remote
import bench_runtimes
import bench_slowdown
import bench_spies
import bench_unwind
import bench_verified
import bench_peer
import bench_viewer

# --- a session beside perf ---


def bench_session():
    seconds = 8 if QUICK else 30
    head(f"Session: {seconds} s at 99 Hz, the whole machine, CPUs busy, 100 processes alive")
    fold = path("fold_perf")
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", fold, os.path.join(HERE, "fold_perf.c")], check=True)
    perf_record = ["perf", "record", "-q", "-e", "cpu-clock", "-g", "-F", "99", "-a", "-o", path("perf.data"), "--", "sleep",
                   seconds]
    perf_fold = f"perf script --no-inline -i {path('perf.data')} 2>/dev/null | {fold} > {path('perf.folded')}"
    ours = [HEARTH, "record", "-d", seconds, "-F", 99, "-q", "-o", path("ours.folded")]
    three = [HEARTH, "record", "-d", seconds, "-F", 99, "-q", "-o", path("a.html"), "-o", path("a.col"), "-o", path("a.pb.gz")]
    found = {"hearth": [], "three": [], "perf": []}
    before = with_bpf_stats("1")
    try:
        for _ in range(RUNS):
            load = busy_machine(seconds * 3 + 60)
            found["hearth"].append(measure(ours, bpf=True))
            found["three"].append(measure(three, bpf=True))
            if shutil.which("perf"):
                found["perf"].append(measure(perf_record, perf_fold))
            stop(load)
    finally:
        with_bpf_stats(before)
    cost = {k: [r.cpu + r.bpf_seconds for r in v] for k, v in found.items()}
    base = median(cost["perf"])
    one = found["hearth"]
    row("perf record + script --no-inline + folding", f"{base:.3f}", "CPU s", "", spread(cost["perf"]))
    row("hearth to folded, user + system + BPF", f"{median(cost['hearth']):.3f}", "CPU s", ratio_of(median(cost["hearth"]), base),
        "at most 0.33 of perf " + spread(cost["hearth"]))
    row("  of it user + system", f"{median([r.cpu for r in one]):.3f}", "CPU s")
    row("  of it BPF programs", f"{median([r.bpf_seconds for r in one]):.3f}", "CPU s",
        f"{1e6 * median([r.bpf_seconds / max(r.bpf_runs, 1) for r in one]):.1f} us", "a run")
    row("hearth to html, col and pprof", f"{median(cost['three']):.3f}", "CPU s", ratio_of(median(cost["three"]), base), spread(cost["three"]))
    memory = [(r.anonymous + r.maps) / MIB for r in found["three"]]
    row("hearth: anonymous memory + BPF maps, peak", f"{median(memory):.1f}", "MiB", "", "at most 40 " + spread(memory))
    row("  of it BPF maps", f"{median([r.maps / MIB for r in found['three']]):.1f}", "MiB")
    if found["perf"]:
        row("perf: anonymous memory, peak", f"{median([r.anonymous / MIB for r in found['perf']]):.1f}", "MiB")


def bench_start():
    """Start and end of a session: how long until it samples, and until its files are there."""
    from support import Profile, total

    head("Start and end of a session, CPUs busy")
    load = busy_machine(60 + 12 * RUNS)
    first, written, perf_first = [], [], []
    for _ in range(RUNS):
        outputs = [path("s.pb.gz"), path("s.html"), path("s.col")]
        begin = time.time()
        done = subprocess.run([HEARTH, "record", "-d", "3", "-F", "999", "-q", *[a for o in outputs for a in ("-o", o)]])
        if done.returncode:
            print(f"# hearth record ended with {done.returncode}")
            break
        p = Profile(outputs[0])
        end = (p.time_ns + p.duration_ns) / 1e9
        # What was not sampled of a window with all CPUs busy is the part before the first tick.
        unsampled = max(0.0, p.duration_ns / 1e9 - total(p.samples) / 999 / CPUS)
        first.append(1000 * (p.time_ns / 1e9 - begin + unsampled))
        written.append(1000 * (max(os.stat(o).st_mtime for o in outputs) - end))
        if shutil.which("perf"):
            begin_mono = time.clock_gettime(time.CLOCK_MONOTONIC)
            subprocess.run(["perf", "record", "-q", "-k", "mono", "-e", "cpu-clock", "-g", "-F", "999", "-a", "-o", path("s.data"), "--",
                            "sleep", "1"], stderr=subprocess.DEVNULL)
            script = subprocess.Popen(["perf", "script", "--no-inline", "-F", "time", "-i", path("s.data")], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
            times = [float(l.strip().rstrip(":")) for l in script.stdout if l.strip()]
            script.wait()
            if times:
                perf_first.append(1000 * (min(times) - begin_mono))
    stop(load)
    row("hearth: start to first sample", f"{median(first):.0f}", "ms", ratio_of(median(first), median(perf_first)), "at most 300")
    row("perf record: start to first sample", f"{median(perf_first):.0f}", "ms")
    row("hearth: end of the session to the last file", f"{median(written):.0f}", "ms", "", "at most 1000")


# --- files ---


def repeat(what, command):
    results = [measure(command) for _ in range(RUNS)]
    return None if any(r.status for r in results) else results


def bench_html():
    head("HTML of a folded file" + (" (100,000 lines)" if QUICK else " (1,000,000 distinct lines)"))
    program = generator("gen_folded")
    big = path("big.folded")
    with open(big, "wb") as f:
        subprocess.run([program] + (["-l", "100000"] if QUICK else []), stdout=f, check=True)
    row("the file", f"{os.stat(big).st_size / 1e6:.0f}", "MB")
    sort = repeat("sort", f"LC_ALL=C sort -T {scratch} {big} > /dev/null")
    ours = repeat("hearth", [HEARTH, "convert", big, "-q", "-o", path("big.html")])
    base = median([r.cpu for r in sort])
    row("LC_ALL=C sort", f"{base:.2f}", "CPU s", "", f"wall {median([r.wall for r in sort]):.2f} s")
    if ours:
        cpu = median([r.cpu for r in ours])
        row("hearth convert to html", f"{cpu:.2f}", "CPU s", ratio_of(cpu, base), f"at most 1.5 of sort, wall {median([r.wall for r in ours]):.2f} s")
        row("  anonymous memory, peak", f"{max(r.anonymous for r in ours) / MIB:.0f}", "MiB", "", "at most 700")
        size = os.stat(path("big.html")).st_size
        row("  the page", f"{size / 1e6:.1f}", "MB", "", "at most 15")
        packed = int(subprocess.run(f"gzip -6 < {big} | wc -c", shell=True, capture_output=True, text=True).stdout)
        row("  beside gzip -6 of the folded text", f"{packed / 1e6:.1f}", "MB", ratio_of(size, packed), "at most 0.20")
    for variable, fit in (("INFERNO_FLAMEGRAPH", 0.8), ("FLAMEGRAPH_PL", None)):
        peer = os.environ.get(variable)
        if not peer:
            print(f"# {variable} is not set: left out")
            continue
        theirs = repeat(variable, f"{peer} {big} > {path('peer.svg')}")
        if theirs and ours:
            their_cpu = median([r.cpu for r in theirs])
            row(os.path.basename(peer.split()[-1]), f"{their_cpu:.2f}", "CPU s")
            row("  hearth beside it", f"{median([r.cpu for r in ours]):.2f}", "CPU s", ratio_of(median([r.cpu for r in ours]), their_cpu),
                f"at most {fit}" if fit else "")


def bench_pprof():
    head("pprof, about 100 MB expanded: read it and write it again")
    program = generator("gen_pprof")
    big = path("big.pb")
    subprocess.run([program, "1", "10" if QUICK else "100", big], check=True)
    row("the file, not packed", f"{os.stat(big).st_size / 1e6:.0f}", "MB")
    ours = repeat("hearth", [HEARTH, "convert", big, "-q", "-o", path("again.pb.gz")])
    theirs = repeat("go", f"go tool pprof -symbolize=none -proto -output={path('go.pb.gz')} {big}") if shutil.which("go") else None
    for name, results in (("go tool pprof -proto", theirs), ("hearth convert", ours)):
        if results:
            base = median([r.cpu for r in theirs]) if theirs else 0
            row(name, f"{median([r.cpu for r in results]):.2f}", "CPU s", ratio_of(median([r.cpu for r in results]), base),
                f"wall {median([r.wall for r in results]):.2f} s, anonymous memory {max(r.anonymous for r in results) / MIB:.0f} MiB")


def bench_store():
    head("The store: profiles of a day put by four threads, merged, closed")
    program = generator("bench_store")
    # Services, profiles each: what is asked of the bytes on disk is at most 1/20 and 1/15 of the uploads.
    for services, profiles in ((1, 240), (10, 10)) if QUICK else ((1, 1440), (50, 30)):
        print(f"# load {os.getloadavg()[0]:.1f}", flush=True)
        subprocess.run([program, path(f"store-{services}"), str(services), str(profiles), "4"], check=True)
    print("# at most: sum of 1,000 profiles 100 ms, of a day by hours 50 ms")


def bench_page():
    """The page in Chromium: what people wait for, medians of five fresh browsers (tests/web/page_bench.mjs)."""
    head("The flame graph page in Chromium")
    modules = os.environ.get("VIEWER_NODE_MODULES", os.path.join(ROOT, "tests", "web", "node_modules"))
    if not os.path.isdir(os.path.join(modules, "playwright-core")) or not shutil.which("node"):
        print("# playwright-core is not there (make setup-extra): left out")
        return
    program, pages = generator("gen_folded"), []
    # Lines that share as much of their stacks as real profiles do: about a million and five million call paths.
    for nodes, options in (("1 M", ["-l", "190000", "-d", "35", "-b", "8"]), ("5 M", ["-l", "440000"])):
        folded, page = path("page.folded"), path(f"page-{nodes.replace(' ', '')}.html")
        with open(folded, "wb") as f:
            subprocess.run([program, *options], stdout=f, check=True)
        subprocess.run([HEARTH, "convert", folded, "-q", "-o", page], check=True)
        packed = int(subprocess.run(f"gzip -6 < {folded} | wc -c", shell=True, capture_output=True, text=True).stdout)
        row(f"{nodes} nodes: the page", f"{os.stat(page).st_size / 1e6:.2f}", "MB", ratio_of(os.stat(page).st_size, packed),
            "at most 0.20 of gzip -6 of the folded text")
        pages.append(page)
        if QUICK:
            break
    script = os.path.join(ROOT, "tests", "web", "page_bench.mjs")
    subprocess.run(["node", script, *pages], env=dict(os.environ, VIEWER_NODE_MODULES=modules))
    print("# at most: overview 400 ms; full 700 ms at 1 M, 1,500 ms at 5 M; zoom and scroll 12 ms")


def main():
    parts = {"session": bench_session, "start": bench_start, "html": bench_html, "pprof": bench_pprof, "store": bench_store, "page": bench_page,
             **bench_collector.PARTS, **bench_unwind.PARTS, **bench_python.PARTS, **bench_remote.PARTS, **bench_spies.PARTS, **bench_runtimes.PARTS, **bench_java.PARTS, **bench_slowdown.PARTS, **bench_peer.PARTS, **bench_verified.PARTS, **bench_viewer.PARTS}
    if "--help" in sys.argv:
        sys.exit(f"bench.py [--quick] [--runs N] [NAME...]: {' '.join(parts)}")
    wanted = [a for a in sys.argv[1:] if a in parts] or list(parts)
    if not os.access(HEARTH, os.X_OK):
        sys.exit(f"bench.py: there is no {HEARTH}: make build")
    if not group.folder:
        sys.exit("bench.py: no cgroup can be made: run it as root")
    built = subprocess.run(["make", "-s", "-C", os.path.join(ROOT, "tests/e2e/workloads"), f"OUT={BUILD}"], capture_output=True, text=True)
    if built.returncode:
        sys.exit("bench.py: the workloads do not build:\n" + built.stderr)
    print(subprocess.run([HEARTH, "--version"], capture_output=True, text=True).stdout.strip())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what follows is undone
    for name in wanted:
        parts[name]()


if __name__ == "__main__":
    main()
