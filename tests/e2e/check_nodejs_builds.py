#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of Node.js as people run them: builds by TypeScript's compiler and by webpack with its minifier, from exec to exit, and a service made with
fastify under load. Their stacks are whole, functions have names. Arguments: only these versions or programs."""
import http.client
import threading

import nodes as npm
from node_load import *
from support import *

MODULES = 250
HZ = 499
VERSIONS = [20, 26]
SERVICE_SECONDS = 15
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


def judge_stacks(what, found, functions, least):
    stacks, names = Stacks(found.samples, found.lost), names_of(found.samples)
    tap.ok(stacks.javascript >= least, f"{what}: samples", f"{stacks.javascript}")
    stacks.judge(tap, what, WHOLE_PROGRAMS)
    judge_named(tap, what, names)
    seen = names_of(found.samples + found.early)
    tap.ok(set(functions) <= set(seen), f"{what}: its functions", " ".join(f for f in functions if f in seen))


def judge(node, name, make, functions):
    """hearth has the CPU first: names are read a moment after a tick, which is late where many others wait for it."""
    what = f"{node.version}: {name}"
    try:
        command, made = make(node)
    except npm.packages.Unavailable as e:
        tap.skip(what, str(e))
        return
    process = launched(*recording(HZ, "build"), "--", "nice", "-n", "20", *command, first=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = "".join(process.communicate(timeout=300))
    found = Take(process.returncode, said, "build", None)
    if tap.ok(found.ok and os.path.exists(made), f"{what}: it builds, hearth record ends well", said[-300:] if process.returncode else ""):
        judge_stacks(what, found, functions, SAMPLES_LEAST)


def ask(port, until, answers, number):
    """One client, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    count = 0
    while time.monotonic() < until:
        connection.request("GET", f"/{('items', 'render')[count % 2]}/{count}")
        answer = connection.getresponse()
        answers[number] += answer.status == 200 and len(answer.read()) > 1000
        count += 1
    connection.close()


def judge_service(node):
    """fastify under load."""
    what = f"{node.version}: fastify"
    try:
        folder = npm.fastify()
    except npm.packages.Unavailable as e:
        tap.skip(what, str(e))
        return
    process = start(node.program, os.path.join(HERE, "nodejs", "server.js"), folder, stdout=subprocess.PIPE, text=True)
    port = process.stdout.readline().strip()
    if not tap.ok(port.isdigit(), f"{what}: it listens", port):
        return
    answers = [0] * 4
    clients = [threading.Thread(target=ask, args=(int(port), time.monotonic() + SERVICE_SECONDS + 6, answers, i)) for i in range(len(answers))]
    for c in clients:
        c.start()
    time.sleep(2)
    found = take(process, HZ, SERVICE_SECONDS)
    for c in clients:
        c.join()
    process.kill()
    process.wait()
    if tap.ok(found.ok and min(answers) > 0, f"{what}: hearth record ends well, clients are answered", f"{answers} {found.said[-200:]}"):
        judge_stacks(what, found, ["items", "render", "itemsOf", "routeHandler", "parserOnHeadersComplete"], 100)


only = [a for a in sys.argv[1:] if not a.startswith("-")]
nodes = [n for n in npm.everything(tap) if n.major in VERSIONS and (str(n.major) in only or not {str(v) for v in VERSIONS} & set(only))]
programs = [p for p in ("TypeScript", "webpack", "fastify") if p in only or not {"TypeScript", "webpack", "fastify"} & set(only)]
if not nodes:
    tap.skip("programs of Node.js", "no node")
for node in nodes:
    if "TypeScript" in programs:
        judge(node, "TypeScript", typescript, ["checkSourceFile", "bindSourceFile", "emitFiles"])
    if "webpack" in programs:
        judge(node, "webpack", webpack, ["parse"])
    if "fastify" in programs:
        judge_service(node)
tap.finish()
