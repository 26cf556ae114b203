#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--lines against addr2line -i -f: every inlined level of random code addresses, from a made-up recording, so that it
needs no rights. The name of the real function is the symbol table's (src/agent/build_window.c); a difference from DWARF's
is explained when both are symbols of one address, or when the compiler cut a part off and named it NAME.SOMETHING.

binutils 2.40 errs in three ways: an innermost inlined function without linkage name gets the name of the symbol around
it (bfd/dwarf2.c, _bfd_dwarf2_find_nearest_line_with_alt); inlined functions whose ranges clang wrote in DWARF 5's
.debug_rnglists are not found; and a DWARF 5 line sequence that begins in file 1 without saying so, gcc's habit in split
sections, is given another file (line 2107 of a source of 40 lines). So a second reader, llvm-symbolizer, is asked about every disagreement: it is explained
when that one agrees with us at every level."""
import random
import re

from support import *

PER_PROGRAM = 200 if QUICK else 1000
BASE = 0x400000000000
RECORDER = os.path.join(os.path.dirname(HEARTH), "tests", "e2e", "make_recording")

tap = Tap("lines")
need(tap, "addr2line", "readelf", "nm", "objcopy", "llvm-symbolizer", "gcc", "g++", root=False)
SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
tap.note(f"SEED={SEED}")
chance = random.Random(SEED)


def tool(*args, **options):
    done = run(*args, **options)
    if done.returncode:
        tap.ok(False, f"{args[0]} works", done.stderr[-300:])
        tap.finish()
    return done.stdout


# --- programs ---


class Program:
    """A file with debug information in @oracle, asked about as @path."""

    def __init__(self, name, file, oracle=None):
        self.name, self.path, self.oracle = name, os.path.realpath(file), oracle or file
        self.segments = []  # of code: address, offset, size
        for line in tool("readelf", "-lW", file).splitlines():
            cells = line.split()
            if cells[:1] == ["LOAD"] and "E" in "".join(cells[6:-1]):
                self.segments.append((int(cells[2], 16), int(cells[1], 16), int(cells[4], 16)))
        self.symbols = {}  # name -> starts
        self.functions = []
        for line in tool("nm", "-S", self.oracle).splitlines():
            cells = line.split()
            if len(cells) == 4 and cells[2] in "tTwWi" and int(cells[1], 16):
                self.functions.append((int(cells[0], 16), int(cells[1], 16)))
            if len(cells) >= 3:
                self.symbols.setdefault(cells[-1].split("@")[0], set()).add(int(cells[0], 16))
        sizes = [size for _, size in self.functions]
        found = {start + chance.randrange(size) for start, size in
                 chance.choices(self.functions, sizes, k=3 * PER_PROGRAM)}
        found = [a for a in found if self.offset(a) is not None]
        chance.shuffle(found)
        self.addresses = sorted(found[:PER_PROGRAM])

    def offset(self, address):
        for start, offset, size in self.segments:
            if start <= address < start + size:
                return address - start + offset
        return None

    def records(self, base):
        """As make_recording.c reads them."""
        maps = [f"map {base + (start & ~4095):x} {base + (start + size + 4095 & ~4095):x} {offset & ~4095:x} {self.path}"
                for start, offset, size in self.segments]
        return maps + [f"at {base + a:x}" for a in self.addresses]

    def ask(self, addresses, *command):
        """address -> [(function, file, line)], innermost first; unknown is "" and 0."""
        out, frames, function = {}, None, None
        done = run(*command, input="".join(f"{a:#x}\n" for a in addresses))
        for line in done.stdout.splitlines():
            if re.fullmatch("0x[0-9a-f]+", line):
                frames = out.setdefault(int(line, 16), [])
                function = None
            elif function is None:
                function = line
            else:
                file, _, number = line.partition(" (disc")[0].rpartition(":")
                number = int(number) if number.isdigit() else 0
                if not number and "/" not in file:
                    file = ""  # ?? or, where there is no debug information, the symbol table's name of the object file
                frames.append((function.replace("??", ""), file, number))
                function = None
        return out

    def addr2line(self):
        return self.ask(self.addresses, "addr2line", "-a", "-i", "-f", "-e", self.oracle)

    def llvm(self, addresses):
        return self.ask(addresses, "llvm-symbolizer", "--output-style=GNU", "--addresses", "--inlines",
                        "--functions=linkage", "--no-demangle", "--obj=" + self.oracle)


CXX = r"""
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>
namespace shop {
template <typename T, int N> struct Matrix {
  T cells[N][N];
  T trace() const { T sum{}; for (int i = 0; i < N; i++) sum += cells[i][i]; return sum; }
  Matrix operator*(const Matrix &o) const {
    Matrix r{};
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) for (int k = 0; k < N; k++)
      r.cells[i][j] += cells[i][k] * o.cells[k][j];
    return r;
  }
};
static std::map<std::string, int> count(const std::vector<std::string> &words) {
  std::map<std::string, int> m;
  for (auto &w : words) m[w]++;
  return m;
}
}
int main(int argc, char **argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (int i = 0; i < 100; i++) words.push_back(std::to_string(i * argc % 17));
  std::sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  shop::Matrix<double, 9> m{}; shop::Matrix<int, 4> n{};
  for (int i = 0; i < argc; i++) { m = m * m; n = n * n; }
  auto c = shop::count(words);
  return (int)(m.trace() + n.trace()) + std::accumulate(c.begin(), c.end(), 0, [](int s, auto &p) { return s + p.second; });
}
"""


def compile_cxx(name, compiler, *flags):
    out = path(name)
    with open(path("shop.cc"), "w") as f:
        f.write(CXX)
    tool(compiler, "-O2", "-o", out, path("shop.cc"), *flags)
    return out


def programs():
    yield Program("hearth", HEARTH)
    yield Program("C++, gcc, DWARF 5", compile_cxx("gcc5", "g++", "-gdwarf-5"))
    yield Program("C++, gcc, DWARF 4, compressed", compile_cxx("gcc4", "g++", "-gdwarf-4", "-gz"))
    yield Program("C++, gcc -O3 -flto", compile_cxx("lto", "g++", "-g", "-O3", "-flto"))
    if shutil.which("clang++"):
        yield Program("C++, clang, DWARF 5", compile_cxx("clang5", "clang++", "-gdwarf-5"))
        yield Program("C++, clang, DWARF 4", compile_cxx("clang4", "clang++", "-gdwarf-4"))
    else:
        tap.skip("clang", "needs clang++")
    whole = compile_cxx("whole", "g++", "-g")
    stripped = path("apart")
    tool("objcopy", "--only-keep-debug", whole, stripped + ".debug")
    tool("objcopy", "--strip-all", whole, stripped)
    tool("objcopy", "--add-gnu-debuglink=" + stripped + ".debug", stripped)
    yield Program("C++, debug file apart", stripped, whole)
    if shutil.which("dwz"):
        shared = [compile_cxx(f"dwz{i}", "g++", "-g", f"-DPART={i}") for i in (1, 2)]
        tool("dwz", "-m", path("shared.dwz"), "-M", path("shared.dwz"), *shared)
        yield Program("C++, dwz with a shared part", shared[0], whole)
    else:
        tap.skip("dwz", "needs dwz")
    libc = next((line.split()[2] for line in tool("ldd", HEARTH).splitlines() if "libc.so" in line), "")
    identity = re.search("Build ID: (..)(.+)", tool("readelf", "-n", libc)) if libc else None
    debug = f"/usr/lib/debug/.build-id/{identity[1]}/{identity[2]}.debug" if identity else ""
    if os.path.exists(debug):
        yield Program("libc, the distribution's debug file", libc, debug)
    else:
        tap.skip("libc", "needs libc6-dbg")
    for language in ("rs", "go_pie"):
        if os.path.exists(workload(language)) and ".debug_info" in tool("readelf", "-SW", workload(language)):
            yield Program(language, workload(language))


def described(profile):
    """(module, file offset) -> [(function, file, line)] of a pprof file."""
    with open(profile, "rb") as f:
        raw = {}
        for number, value in fields(gzip.decompress(f.read())):
            raw.setdefault(number, []).append(value)
    strings = [bytes(s).decode("utf-8", "surrogateescape") for s in raw[6]]
    modules = {m[1]: strings[m.get(5, 0)] for m in (dict(fields(v)) for v in raw[3])}
    functions = {f[1]: (strings[f.get(3, 0)], strings[f.get(4, 0)]) for f in (dict(fields(v)) for v in raw[5])}
    out = {}
    for value in raw[4]:
        cells = dict(fields(value))
        lines = [dict(fields(v)) for number, v in fields(value) if number == 4]
        out[modules.get(cells.get(2, 0), ""), cells.get(3, 0)] = [(*functions[l[1]], l.get(2, 0)) for l in lines]
    return out


def same_function(program, ours, theirs):
    """Equal, one address's other name, or a part that the compiler cut off."""
    ours, theirs = ours.partition("@")[0], theirs.partition("@")[0]
    starts = program.symbols.get(ours, set()) & program.symbols.get(theirs, set())
    return ours == theirs or ours.split(".")[0] == theirs.split(".")[0] or starts


everything = list(programs())
lines = [line for i, program in enumerate(everything) for line in program.records(BASE + (i << 36))]
tool(RECORDER, path("made.rec"), input="\n".join(lines) + "\n")
begin = time.monotonic()
done = hearth("record", "--sampler", "recorded", "--recording", path("made.rec"), "--lines", "-o", path("made.pb.gz"))
tap.ok(done.returncode == 0, "hearth record --lines ends well", f"exit {done.returncode} {done.stderr[-300:].strip()}")
tap.note(f"{sum(len(p.addresses) for p in everything)} addresses took {time.monotonic() - begin:.2f} s")
found = described(path("made.pb.gz"))
def agrees(program, ours, theirs):
    return (len(ours) == len(theirs) and ours[:-1] == theirs[:-1] and ours and ours[-1][1:] == theirs[-1][1:]
            and same_function(program, ours[-1][0], theirs[-1][0]))


asked = disagreed = unexplained = 0
for program in everything:
    truth = program.addr2line()
    ours = {a: found.get((program.path, program.offset(a)), []) for a in program.addresses}
    other = [a for a in program.addresses if not agrees(program, ours[a], truth.get(a, []))]
    second = program.llvm(other) if other else {}
    wrong = [a for a in other if not agrees(program, ours[a], second.get(a, []))]
    renamed = sum(ours[a][-1][0] != truth[a][-1][0] for a in program.addresses if a not in set(other))
    levels = [len(t) for t in truth.values()]
    tap.ok(not wrong and sum(levels) >= len(program.addresses) > 0, f"{program.name}: as addr2line -i -f",
           f"{len(other)} of {len(program.addresses)} addresses disagree, llvm-symbolizer agrees on all but {len(wrong)}; "
           f"{sum(levels)} levels, up to {max(levels)}; {renamed} functions under another name")
    for a in wrong[:3]:
        tap.note(f"{a:#x}: {ours[a]}, not {truth.get(a)} nor {second.get(a)}")
    asked, disagreed, unexplained = asked + len(truth), disagreed + len(other), unexplained + len(wrong)
tap.note(f"{disagreed} of {asked} addresses disagree with addr2line, {unexplained} of them unexplained")
plain = hearth("record", "-q", "--sampler", "recorded", "--recording", path("made.rec"), "-o", path("plain.pb.gz"))
without = described(path("plain.pb.gz"))
tap.ok(plain.returncode == 0 and without and all(len(l) == 1 and not l[0][1] and not l[0][2] for l in without.values()),
       "without --lines there are none")
renamed = [k for k, lines in without.items() if lines[-1][0] != found[k][-1][0] and not lines[-1][0].startswith("[")]
tap.ok(not renamed, "real functions have the same names with and without --lines", len(renamed))
tap.finish()
