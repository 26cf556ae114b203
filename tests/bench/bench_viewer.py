# SPDX-License-Identifier: Apache-2.0
"""Rows of the table: the viewer in Chromium on a collector's pages, and many that watch it live.

A day of a service in a store of 30 days, from the click to the graph; flame graphs of 1 and 5 million nodes, cut by the server
and whole, made anew and kept; the collector's CPU with one and with 50 live viewers. Needs tests/web/node_modules (make setup-extra).
--only day, 1M, 5M or live: that part. MONTH=FOLDER: the store of 30 days is made there, or is there and is used.
"""
import os
import re
import shutil
import subprocess
import sys
import time

from measure import *
from collector import Watchers
from bench_collector import Run, Served, pairs, program, wait_for_quiet

LIVE_S = 10 if QUICK else 30
LIVE_SERVICES = 5
LIVE_RATE = 2  # uploads a second of all services


def only(part):
    return "--only" not in sys.argv or sys.argv[sys.argv.index("--only") + 1] == part


def in_browser(*arguments, runs=RUNS):
    """What tests/web/page_bench.mjs says: a line for each page."""
    modules = os.environ.get("VIEWER_NODE_MODULES", os.path.join(ROOT, "tests", "web", "node_modules"))
    script = os.path.join(ROOT, "tests", "web", "page_bench.mjs")
    done = subprocess.run(["node", script, *arguments], capture_output=True, text=True, env=dict(os.environ, VIEWER_NODE_MODULES=modules, RUNS=str(runs)))
    return done.stdout.strip() or done.stderr[-500:]


def figures(line):
    """{"full": 812.0, ...} of "... full 812.0 ms   zoom 3.1 ms ..."."""
    return {name: float(value) for name, value in re.findall(r"([a-z]+(?: [a-z]+)*) ([\d.]+) ms", line)}


def month():
    days, end = 3 if QUICK else 30, int(time.time())
    folder = os.environ.get("MONTH") or path("month")
    if os.path.isdir(folder):
        with open(folder + ".end") as f:
            end = int(f.read())
    else:
        with open(folder + ".end", "w") as f:
            f.write(str(end))
        made = pairs(subprocess.run([program("bench_month"), folder, str(end), str(days)], capture_output=True, text=True, check=True).stdout)
        row(f"a store of {made['days']:.0f} days, 10 services, {made['profiles']:.0f} profiles", f"{made['seconds']:.0f}", "s", "", f"{made['bytes'] / 1e6:.0f} MB")
    midnight = end // 86400 * 86400
    ranges = [("the last 24 hours", f"from={(end - 86400) * 1000}&to={end * 1000}"),
              ("a day that is closed", f"from={(midnight - 2 * 86400) * 1000}&to={(midnight - 86400) * 1000 - 1}")]
    with Served(folder, user="root") as c:
        time.sleep(3)
        for what, chosen in ranges:
            line = in_browser("--click", f"{c.url}/#/services?{chosen}", "service-0")
            row(f"{what} of a service, from the click to its graph", f"{figures(line).get('drawn', 0):.0f}", "ms", "", "at most 500")
            print(f"# {line}")


def graphs():
    limits = ["--max-body", "1G", "--max-expanded", "2G", "--max-uploads-memory", "4G", "--max-samples", "5000000"]
    for nodes, options, most in (("1M", ["-l", "190000", "-d", "35", "-b", "8"], 700), ("5M", ["-l", "440000"], 1500)):
        if not only(nodes) or (QUICK and nodes != "1M"):
            continue
        folded, pprof = path("graph.folded"), path("graph.pb.gz")
        with open(folded, "wb") as f:
            subprocess.run([generator("gen_folded"), *options], stdout=f, check=True)
        subprocess.run([HEARTH, "convert", folded, "-q", "-o", pprof], check=True)
        for memory, kept in (("0", "made anew"), ("32M", "kept from the question before")):
            graph(nodes, most, pprof, kept, *limits, "--flame-memory", memory)


def graph(nodes, most, pprof, kept, *options):
    """@most: ms until the whole graph is drawn."""
    with Served(f"graph-{nodes}-{len(kept)}", *options) as c, open(pprof, "rb") as f:
        now = int(time.time())
        answer = c.upload("large", "cpu", f.read(), extra=f"&created_at={now - 60}")
        if answer.status != 200:
            print(f"# {nodes} nodes: the collector refuses them: {answer.body[:200]}")
            return
        page = f"{c.url}/#/profile?service=large&from={(now - 3600) * 1000}&to={now * 1000}"
        for what, arguments, bound in (("cut by the server", [], 300), ("whole", ["--whole"], most)):
            line = in_browser(*arguments, page, runs=min(RUNS, 5 if nodes == "1M" else 3))
            seen = figures(line)
            row(f"{nodes} nodes, {what}, {kept}: drawn", f"{seen.get('full', 0):.0f}", "ms", "", f"at most {bound}, since navigation began")
            row("  of it between question and first byte, last byte", f"{seen.get('answered', 0) - seen.get('asked', 0):.0f}", "ms",
                f"{seen.get('came', 0) - seen.get('answered', 0):.0f} ms")
            row("  script per frame, p95, zooming and scrolling", f"{max(seen.get('zoom', 0), seen.get('scroll', 0)):.1f}", "ms", "", "at most 12")
            if nodes == "1M":
                row("  the inverted view: the page's longest task", f"{seen.get('blocked', 0):.0f}", "ms", f"{seen.get('inverted', 0):.0f} ms", "at most 50; until it is drawn")
            print(f"# {line}")


def live():
    cpu = {}
    for viewers in (0, 1, 50):
        with Served(f"live-{viewers}") as c:
            run = Run(c.port, LIVE_SERVICES, 2, LIVE_RATE, LIVE_S, "live")
            wait_for_quiet()
            watching = Watchers(c.port, ["service=live-0&window=1m&max-nodes=10000"] * viewers)
            run.go(c.process.pid)
            watching.stop()
            cpu[viewers] = run.server_cpu
            row(f"{viewers} live viewers, {LIVE_RATE} uploads a second: the collector", f"{100 * run.server_cpu / LIVE_S:.1f}", "% CPU", "",
                f"{watching.events / max(1, viewers) / LIVE_S:.2f} pictures a second each, {watching.bytes / LIVE_S / 1e6:.2f} MB/s; others {run.others:.0f} %")
    row("50 viewers beside one, less what no viewer costs", ratio_of(cpu[50] - cpu[0], cpu[1] - cpu[0]), "", "", "at most 4")


def bench_viewer():
    head("The viewer on a collector")
    os.chmod(scratch, 0o755)  # the collector is another user
    modules = os.environ.get("VIEWER_NODE_MODULES", os.path.join(ROOT, "tests", "web", "node_modules"))
    if only("live"):
        live()
    if not os.path.isdir(os.path.join(modules, "playwright-core")) or not shutil.which("node"):
        print("# playwright-core is not there (make setup-extra): what is measured in Chromium is left out")
        return
    if only("day"):
        month()
    graphs()


PARTS = {"viewer": bench_viewer}
