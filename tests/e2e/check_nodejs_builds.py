#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds by programs of Node.js as people run them, from exec to exit: TypeScript's compiler, webpack with its minifier. Their stacks are whole, functions have names."""
import nodes as npm
from support import *

MODULES = 250
HZ = 499
WHOLE, NAMED = 0.99, 0.995
VERSIONS = [20, 26]
# Names are read late where others have the CPU: of webpack's 20 had 99.47 % and 26 99.26 % beside other tests, 99.86 and 99.70 % alone.
NAMED_OF = {(20, "webpack"): 0.99, (26, "webpack"): 0.99}
LOST = "[Lost Symbol]"
SAMPLES_LEAST = 300

tap = Tap("nodejs_builds")
need(tap)


def typescript_of(i):
    """Module @i of a program: types that the compiler has to think about, and code."""
    others = [n for n in (i - 1, i - 7, i // 2) if 0 <= n < i]
    imports = "".join(f"import {{ Shape{n}, Store{n} }} from './m{n}';\n" for n in dict.fromkeys(others))
    fields = "\n".join(f"    f{k}: {'number' if k % 3 else 'string'};" for k in range(12))
    uses = "\n".join(f"export type Joined{n} = Shape{n} & Pick<Shape{i}, 'f{n % 12}' | 'kind'>;\nexport function join{n}(s: Store{n}<Shape{n}>, t: Shape{i}): Partial<Joined{n}>[] {{\n"
                     f"    return s.all().filter(x => x.kind !== t.kind || x.f1 > {n}).map(x => ({{ ...x, f{n % 12}: t.f{n % 12} }}));\n}}" for n in dict.fromkeys(others))
    return f"""{imports}export interface Shape{i} {{
    kind: 'a{i}' | 'b{i}' | string;
{fields}
}}
export class Store{i}<T extends Shape{i}> {{
    private readonly items = new Map<string, T>();
    add<K extends keyof T>(item: T, key: K): this {{
        this.items.set(String(item[key]) + item.kind, item);
        return this;
    }}
    all(): T[] {{
        return [...this.items.values()].sort((a, b) => a.f1 - b.f1 || a.f3.localeCompare(b.f3));
    }}
    count<K extends keyof T>(by: (item: T) => T[K]): Map<T[K], number> {{
        const counts = new Map<T[K], number>();
        for (const item of this.all())
            counts.set(by(item), (counts.get(by(item)) ?? 0) + 1);
        return counts;
    }}
}}
{uses}
"""


def script_of(i):
    others = [n for n in (i - 1, i - 7, i // 2) if 0 <= n < i]
    imports = "".join(f"import {{ value{n}, compute{n} }} from './m{n}.js';\n" for n in dict.fromkeys(others))
    body = "".join(f"    total += compute{n}(value{n} + number) * {n + 1};\n" for n in dict.fromkeys(others))
    lines = "".join(f"    if (number % {k + 3} === {k}) {{ const {'abcdefgh'[k % 8]}{k} = [number, total].map(x => x * {k} + text.length); total += {'abcdefgh'[k % 8]}{k}.reduce((a, b) => a + b, 0); }}\n"
                    for k in range(20))
    return f"{imports}export const value{i} = {i};\nexport function compute{i}(number) {{\n    const text = `module {i} of ${{number}}`;\n    let total = 0;\n    if (number > 100)\n        return text.length;\n{body}{lines}    return total;\n}}\n"


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def typescript(node):
    folder = path(f"ts-{node.version}")
    compiler = npm.of_packages("typescript@5.9.3", "typescript/lib/tsc.js")
    for i in range(MODULES):
        write(folder, f"m{i}.ts", typescript_of(i))
    write(folder, "tsconfig.json", json.dumps({"compilerOptions": {"strict": True, "target": "es2020", "module": "commonjs", "outDir": "out", "declaration": True, "types": []}}))
    return [node.program, compiler, "-p", folder], os.path.join(folder, "out", f"m{MODULES - 1}.js")


def webpack(node):
    folder = path(f"webpack-{node.version}")
    package = npm.of_packages("webpack@5.113.0", "webpack/lib/index.js")
    for i in range(MODULES):
        write(folder, f"m{i}.js", script_of(i))
    write(folder, "index.js", "".join(f"import {{ compute{i} }} from './m{i}.js';\nconsole.log(compute{i}(Number(process.argv[2])));\n" for i in range(MODULES)))
    return [node.program, os.path.join(HERE, "nodejs", "bundle.js"), os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(package)))), folder,
            os.path.join(folder, "out")], os.path.join(folder, "out", "main.js")


def judge(node, name, make, functions):
    what = f"{node.version}: {name}"
    try:
        command, made = make(node)
    except npm.packages.Unavailable as e:
        tap.skip(what, str(e))
        return
    out = path("build.pb.gz")
    got = run(HEARTH, "record", "-q", "-F", HZ, "-o", out, "--", *command, timeout=300)
    if not tap.ok(got.returncode == 0 and os.path.exists(made), f"{what}: it builds, hearth record ends well", (got.stderr + got.stdout)[-300:] if got.returncode else ""):
        return
    ours, frames, lost = [], 0, 0
    seen = set()
    ends = {}
    for s in Profile(out).samples:
        names = [n for n, m in zip(s.names, s.modules) if m == "[javascript]"]
        if not names:
            continue
        ours.append(s)
        ends[s.end] = ends.get(s.end, 0) + s.count
        frames += len(names) * s.count
        lost += names.count(LOST) * s.count
        seen.update(names)
    whole = total([s for s in ours if s.end == "complete"])
    tap.note(f"{what}: {ends}")
    tap.ok(total(ours) >= SAMPLES_LEAST and whole >= WHOLE * total(ours), f"{what}: whole stacks", f"{whole} of {total(ours)}")
    tap.ok(frames - lost >= NAMED_OF.get((node.major, name), NAMED) * frames, f"{what}: frames with a name", f"{frames - lost} of {frames}")
    tap.ok(set(functions) <= seen, f"{what}: its functions", " ".join(f for f in functions if f in seen))


nodes = [n for n in npm.everything(tap) if n.major in VERSIONS]
if not nodes:
    tap.skip("builds by Node.js", "no node")
for node in nodes:
    judge(node, "TypeScript", typescript, ["checkSourceFile", "bindSourceFile", "emitFiles"])
    judge(node, "webpack", webpack, ["parse"])
tap.finish()
