#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node.js: an ES module in a folder whose name is escaped in its URL, with a source map beside it, whose functions have names of a megabyte
and names that are hostile to formats; functions of WebAssembly, with and without names. Arguments: only these versions."""
import re
from collections import Counter

from node_load import frames_of
from nodes import VERSIONS, everything
from support import *

SECONDS = 3
HZ = 499
SAMPLES_LEAST = 60
SHARE_LEAST = 0.08  # of five functions that do the same
TEXT_MOST = 4096  # characters of a name: src/runtime/nodejs/nodejs_int.h, NODEJS_TEXT_MAX
FOLDER = "a b%20\u00e9#?x"
ORIGIN = "made of this.ts"
# Beginnings of names, as pprof has them: it keeps what UTF-8 can say.
LONG, WIDE = "L" * (1 << 20), "W\u6f22" * (1 << 19)
NAMES = ["L" * 100, "W\u6f22" * 50, "semi;colon\nline\ttab", "half\ufffdpair", "plain"]

tap = Tap("nodejs_names")
need(tap)


def vlq(value):
    out, value = "", value << 1
    while value >= 32:
        out += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[value & 31 | 32]
        value >>= 5
    return out + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[value]


def lay_out(folder, mapped):
    """The module in a folder of its own; @mapped: with a map that has each line 100 lines further down."""
    os.makedirs(folder)
    file = os.path.join(folder, "names.mjs")
    with open(os.path.join(HERE, "nodejs", "names.mjs"), encoding="utf-8") as f:
        text = f.read()
    count = len(text.splitlines())
    with open(file, "w", encoding="utf-8") as f:
        f.write(text.replace("  LONG(", f"  {LONG}(").replace("  WIDE(", f"  {WIDE}("))
    if mapped:
        mappings = ";".join(["AA" + vlq(100) + "A"] + ["AACA"] * (count - 1))
        with open(file + ".map", "w", encoding="utf-8") as f:
            json.dump({"version": 3, "sources": [ORIGIN], "names": [], "mappings": mappings}, f)
    return file


def take(node, file, *how):
    process = start(node.program, file, SECONDS + 4)
    time.sleep(1.2)
    out = path("names.pb.gz")
    got = run(HEARTH, "record", "-q", "-F", HZ, "-d", f"{SECONDS}s", "-p", process.pid, "-o", out, *how, timeout=SECONDS + 60)
    process.kill()
    process.wait(timeout=60)
    if not tap.ok(got.returncode == 0, f"{node.version}: hearth record ends well", got.stderr[-300:]):
        return None
    return Profile(out).of(process)


def judge(node, mapped):
    folder = os.path.join(path(f"{node.major}-{int(mapped)}"), FOLDER)
    file = lay_out(folder, mapped)
    samples = take(node, file)
    if samples is None:
        return
    want = os.path.join(folder, ORIGIN) if mapped else file
    leaves = [frames_of(s)[-1] + (s.count,) for s in samples if frames_of(s) and any(n == "spin" for n, _, _ in frames_of(s))]
    what, all_of = f"{node.version}, {'with' if mapped else 'without'} a source map", sum(leaf[3] for leaf in leaves)
    if not tap.ok(all_of >= SAMPLES_LEAST, f"{what}: samples", f"{all_of}"):
        return
    right = sum(count for _, f, _, count in leaves if f == want)
    tap.ok(right >= 0.98 * all_of, f"{what}: the file is the path", f"{right} of {all_of}: {sorted({f for _, f, _, _ in leaves})[:3]}")
    low, high = (100, 140) if mapped else (1, 40)
    inside = sum(count for _, f, line, count in leaves if f == want and low < line < high)
    tap.ok(inside >= 0.98 * right, f"{what}: lines are the file's", f"{inside} of {right}")
    for name in NAMES:
        count = sum(leaf[3] for leaf in leaves if leaf[0].startswith(name))
        tap.ok(count >= SHARE_LEAST * all_of, f"{what}: {name[:12]!r} has its share", f"{count} of {all_of}")
    longest = max(len(re.sub(r":\d+:\d+$", "", leaf[0])) for leaf in leaves)  # one that begins far behind in a line has its place
    tap.ok(1000 <= longest <= TEXT_MOST, f"{what}: long names are cut", f"{longest} characters")


def judge_wasm(node, *how):
    """In 12 and 14 V8 does not say where it keeps them: docs/node.md. An exported function is one of JavaScript called "1". Two modules take turns: a
    frame that was read later than its tick is the other one's. @how: hearth's options."""
    samples = take(node, os.path.join(HERE, "nodejs", "wasm.js"), *how)
    if samples is None:
        return
    inside = [([n for n, _, _ in frames_of(s) if n not in ("(js-to-wasm)", "1")], s.count) for s in samples if s.end == "complete"]
    for caller, functions in (("viaNamed", ["outer", "inner"]), ("viaBare", ["wasm-function[1]", "wasm-function[0]"])):
        of_caller = [(names[names.index(caller) + 1:], count) for names, count in inside if caller in names[:-1]]
        if node.major < 16:
            functions = ["(wasm)", "(wasm)"]
        all_of = sum(count for _, count in of_caller)
        others = Counter()
        for names, count in of_caller:
            if names not in (functions, functions[:1]):  # the compiler may inline
                others[" > ".join(names)] += count
        right = all_of - sum(others.values())
        tap.ok(all_of >= SAMPLES_LEAST and right >= 0.99 * all_of, f"{' '.join([node.version, *how])}: WebAssembly below {caller}",
               f"{right} of {all_of}, {of_caller[:1]}, others: {others.most_common(4)}")


only = [a for a in sys.argv[1:] if not a.startswith("-")]
nodes = [n for n in everything(tap) if n.major in VERSIONS and (not only or str(n.major) in only)]
if not nodes:
    tap.skip("names and paths of ES modules", "no node")
for node in nodes:
    for mapped in (False, True):
        judge(node, mapped)
    judge_wasm(node)
    judge_wasm(node, "--sampler", "perf")
tap.finish()
