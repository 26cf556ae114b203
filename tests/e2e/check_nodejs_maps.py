#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that a minifier or a compiler wrote: their frames are those of the text they were made of where a source map lies beside the script, and
tell functions of one line apart where none does. Arguments: only these versions."""
import re
import shutil

import nodes as npm
from node_load import Text, frames_of
from support import *

HZ = 499
SECONDS = 3 if QUICK else 8
WRONG = 0.001  # of the frames
FEW = 3
SAMPLES_LEAST = 100
VERSIONS = [12, 20, 26]

tap = Tap("nodejs_maps")
need(tap)


def made(node, name):
    """A folder with src/ and dist/."""
    folder = path(f"{name}-{node.version}")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("src", "dist"):
        os.makedirs(os.path.join(folder, part))
    return folder


def minified(node, name="load.js"):
    """A program in one line, its functions with names of a letter. Return: the script, what it was made of."""
    folder = made(node, f"minified-{name}")
    terser = npm.of_packages("terser@5.44.1", "terser/bin/terser")
    shutil.copy(os.path.join(HERE, "nodejs", name), os.path.join(folder, "src"))
    got = run(newest.program, terser, f"../src/{name}", "--mangle", "toplevel", "--source-map", f"url={name}.map", "-o", name, cwd=os.path.join(folder, "dist"))
    tap.ok(got.returncode == 0, f"{node.version}: terser makes the script of {name}", got.stderr[-300:])
    return os.path.join(folder, "dist", name), os.path.join(folder, "src", name)


def compiled(node):
    """The same load behind types that are not in the script: all of its lines are others."""
    folder = made(node, "compiled")
    compiler = npm.of_packages("typescript@5.9.3", "typescript/lib/tsc.js")
    with open(os.path.join(HERE, "nodejs", "load.js"), encoding="utf-8") as f:
        text = f.read()
    types = "".join(f"interface Shape{i} {{\n\tname: string;\n\tsize: number;\n}}\n\n" for i in range(20))
    with open(os.path.join(folder, "src", "load.ts"), "w", encoding="utf-8") as f:
        f.write(f"declare const process: {{ argv: string[] }};\n{types}{text}")
    got = run(newest.program, compiler, "--target", "es2019", "--sourceMap", "--outDir", "dist", "src/load.ts", cwd=folder)
    script = os.path.join(folder, "dist", "load.js")
    tap.ok(os.path.exists(script), f"{node.version}: TypeScript makes the script", (got.stdout + got.stderr)[-300:] if not os.path.exists(script) else "")
    return script, os.path.join(folder, "src", "load.ts")


def take(node, script, after_start=lambda: None):
    """Samples of the program with a frame of JavaScript; None: it failed."""
    process = start(node.program, script, SECONDS + 3)
    time.sleep(1)
    after_start()
    out = path("node.pb.gz")
    got = run(HEARTH, "record", "-q", "-F", HZ, "-d", f"{SECONDS}s", "-p", process.pid, "-o", out, timeout=SECONDS + 60)
    process.wait(timeout=60)
    if not tap.ok(got.returncode == 0, f"{node.version}: hearth record ends well", got.stderr[-300:]):
        return None
    return [s for s in Profile(out).of(process) if frames_of(s)]


def judge(node, what, script, source):
    """Names, lines and calls are those of the source; no frame is of the script."""
    samples = take(node, script)
    if samples is None:
        return
    files = {}
    for s in samples:
        for _, file, _ in frames_of(s):
            files[file] = files.get(file, 0) + s.count
    frames, wrong = Text(source).judge(tap, samples)
    of_script, of_source = files.get(script, 0), files.get(source, 0)
    tap.ok(total(samples) >= SAMPLES_LEAST and of_source >= total(samples), f"{node.version}: {what}: frames of the source", f"{of_source} in {total(samples)} samples")
    tap.ok(of_script <= WRONG * of_source + FEW, f"{node.version}: {what}: no frames of the script", f"{of_script}")
    tap.ok(wrong <= WRONG * frames + FEW, f"{node.version}: {what}: names, lines and calls are the source's", f"{wrong} of {frames} are not")
    functions = {name for s in samples for name, _, _ in frames_of(s)}
    want = {"leaf", "small", "middle", "mapped", "deep", "caught", "texts", "round", "work"}
    tap.ok(want <= functions, f"{node.version}: {what}: its functions", " ".join(sorted(want & functions)))


def judge_shapes(node):
    """No function has the name of what stands in front of it."""
    script, source = minified(node, "shapes.js")
    samples = take(node, script)
    if samples is None:
        return
    names = {name for s in samples for name, file, _ in frames_of(s) if file == source}
    own = {"run", "stop", "open", "arrow", "each", "called", "turn", "(anonymous)", "Shop", "neighbour"}
    wrong = total([s for s in samples if any(file == source and (name not in own or name in ("Shop", "neighbour") and i + 1 < len(frames_of(s)))
                                             for i, (name, file, _) in enumerate(frames_of(s)))])
    tap.ok(wrong <= FEW and {"run", "stop", "open", "arrow", "each", "called", "turn"} <= names, f"{node.version}: functions of many shapes have their own names",
           f"{wrong} of {total(samples)} samples have another's: {' '.join(sorted(names))}")


def judge_without(node, script):
    """No map, or one of a script that is another by now: what runs is shown, a function with its place in the one line."""
    def replace():
        with open(script, "a", encoding="utf-8") as f:
            f.write("\n// another one\n")

    for what, after_start in (("a script that was replaced", replace), ("no map", lambda: None)):
        if what == "no map":
            os.unlink(f"{script}.map")
        samples = take(node, script, after_start)
        if samples is None:
            return
        names = {name for s in samples for name, file, _ in frames_of(s) if file == script}
        others = {file for s in samples for _, file, _ in frames_of(s) if file.endswith("/src/load.js")}
        placed = {name for name in names if re.fullmatch(r".+:1:\d+", name)}
        tap.ok(not others and len(placed) >= 6, f"{node.version}: {what}: the script's own frames", " ".join(sorted(names)))


every = npm.everything(tap)
newest = max(every, key=lambda n: n.major, default=None)
chosen = [n for n in every if n.major in ([int(a) for a in sys.argv[1:] if not a.startswith("-")] or VERSIONS)]
if not chosen:
    tap.skip("scripts that were made of others", "no node")
for one in chosen:
    for name, make in (("minified", minified), ("compiled", compiled)):
        try:
            own_script, own_source = make(one)
        except npm.packages.Unavailable as e:
            tap.skip(f"{one.version}: {name}", str(e))
            continue
        judge(one, name, own_script, own_source)
        if name == "minified":
            judge_without(one, own_script)
            judge_shapes(one)
tap.finish()
