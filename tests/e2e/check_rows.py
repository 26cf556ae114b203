#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth dump --unwind against readelf -wF: where the frame begins, the frame register and the return address, at every
row's address and one byte behind it. Full: every ELF file below /usr/bin and /usr/lib; --quick: a few of them.

Where readelf says only that there is an expression, the expression's own text (readelf -wf) is evaluated here. What
remains is told apart by kind in docs/unwind-rows.md; a disagreement of no known kind fails the test.
"""
import mmap
import multiprocessing
import re
import zlib
from collections import Counter

from support import *

MACHINES = {62: ("rbp", "rsp"), 183: ("x29", "sp")}  # e_machine: frame register, stack pointer
QUICK_FILES = ["/usr/bin/bash", "/usr/bin/git", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libc.so.6",
               "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"]
ROUNDS = 2  # a row's address and the byte behind it
SHARE_MAX = 0.0001
# docs/unwind-rows.md
EXPLAINED = ("indexed expression", "popped, proven root", "coroutine's root",
             "greenlet: stacks take turns", "Go: root or signal frame", "Go: switch of stacks", "Go: more is known")


def machine_of(file):
    """e_machine of a 64-bit little-endian program or library, or None."""
    try:
        if os.path.islink(file) or not os.path.isfile(file):
            return None
        with open(file, "rb") as f:
            head = f.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:6] != b"\x7fELF\x02\x01" or head[16] not in (2, 3):
        return None
    return int.from_bytes(head[18:20], "little")


def lines_of(*args):
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               errors="surrogateescape", env={**os.environ, "LC_ALL": "C"})
    yield from process.stdout
    process.wait()


FUNCTION = re.compile(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)")
REGISTER_CELL = re.compile(r"\br\d+ \((\w+)\)")  # "r8 (r8)", the value is in another register
COMMON = re.compile(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE(?: \"([^\"]*)\")?")


class Function:
    __slots__ = ("start", "end", "rows", "signal", "is_debug")


def functions_of(file, fp):
    """Every FDE, in the order of the file, with rows [address, CFA, frame register, return address]."""
    cies, functions, current, cie_key = {}, [], None, None
    columns = (1, None, 2)
    section = ""
    for line in lines_of("readelf", "-wNF", file):
        cells = (REGISTER_CELL.sub(r"\1", line) if "(" in line else line).split()
        if not cells:
            continue
        if cells[0] == "Contents":
            section = cells[3]
        elif len(cells) > 3 and (cells[3] == "FDE" or cells[3] == "CIE"):
            match = FUNCTION.match(line) if cells[3] == "FDE" else COMMON.match(line)
            if not match:
                continue
            if cells[3] == "CIE":
                cie_key = (section, match[1])
                cies[cie_key] = [["rsp+0", "u", "u"], "S" in (match[2] or "")]
                current = None
                continue
            current = Function()
            cie = cies.get((section, match[1])) or [["?", "u", "u"], False]
            current.start, current.end, current.rows = int(match[2], 16), int(match[3], 16), []
            current.signal = cie[1]
            current.is_debug = section == ".debug_frame"
            current.rows.append((current.start, *cie[0]))
            functions.append(current)
        elif cells[0] == "LOC":
            columns = (1, cells.index(fp) if fp in cells else None, cells.index("ra") if "ra" in cells else None)
        elif len(cells) > 1 and len(cells[0]) == 16:
            row = (cells[1], cells[columns[1]] if columns[1] else "u", cells[columns[2]] if columns[2] else "u")
            if current is None:
                cies[cie_key][0] = row
            else:
                address = int(cells[0], 16)
                if address == current.rows[-1][0]:
                    current.rows[-1] = (address, *row)
                else:
                    current.rows.append((address, *row))
    return functions


def ours_of(file):
    """Sorted [(address, text)]."""
    rows = []
    for line in lines_of(HEARTH, "dump", "--unwind", file):
        address, _, text = line.rstrip("\n").partition(" ")
        rows.append((int(address, 16), text))
    return rows


OPERATION = re.compile(r"DW_OP_(\w+)(?: \(\w+\))?(?:: (-?\w+))?")
REGISTER = re.compile(r"DW_OP_breg(\d+) \((\w+)\): (-?\d+)")


def evaluate(text, start):
    """The text of an expression as ours are written: "reg+n" or "*(reg+n)+m"; None: something else."""
    stack = [start] if start else []  # [is memory, register, offset, added] or a number
    for part in text.split("; "):
        register = REGISTER.match(part)
        match = OPERATION.match(part)
        name = match[1] if match else ""
        if register:
            stack.append([False, register[2], int(register[3]), 0])
        elif name == "deref" and stack and isinstance(stack[-1], list) and not stack[-1][0]:
            stack[-1][0] = True
        elif name.startswith("lit"):
            stack.append(int(name[3:]))
        elif name.startswith("const"):
            stack.append(int(match[2], 0))
        elif name == "plus_uconst" and stack and isinstance(stack[-1], list):
            stack[-1][3 if stack[-1][0] else 2] += int(match[2], 0)
        elif name in ("plus", "minus") and len(stack) > 1 and isinstance(stack[-1], int) and isinstance(stack[-2], list):
            stack[-2][3 if stack[-2][0] else 2] += stack[-1] if name == "plus" else -stack[-1]
            stack.pop()
        else:
            return None
    if not stack or not isinstance(stack[-1], list):
        return None
    is_memory, register, offset, added = stack[-1]
    return f"*({register}{offset:+d}){added:+d}" if is_memory else f"{register}{offset:+d}"


PLT = re.compile(r"DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+); DW_OP_ge; "
                 r"DW_OP_lit3; DW_OP_shl; DW_OP_plus$")


def cfa_of(text):
    match = PLT.match(text)
    return f"plt:{match[1]}" if match else evaluate(text, None) or "unsupported"


def saved_of(text, is_value):
    found = evaluate(text, [False, "c", 0, 0])
    if found is None or (found.startswith("*") and not (is_value and found.endswith("+0"))):
        return "u"
    if found.startswith("*"):
        found = found[2:-3]
        return found if found.startswith("c") else "@" + found
    if is_value:
        return "=" + found
    return found if found.startswith("c") else "@" + found


def expressions_of(file, fp):
    """{start of the function: {address: (CFA, frame register, return address)}}, cells without expression None."""
    number = {"rbp": "r6", "x29": "r29"}[fp]
    out, start, at, now, saved = {}, None, 0, [None, None, None], []
    for line in lines_of("readelf", "-wNf", file):
        match = FUNCTION.match(line)
        if match:
            start = at = int(match[2], 16)
            now, saved = [None, None, None], []
            continue
        if COMMON.match(line):
            start = None
        if start is None:
            continue
        text = line.strip()
        if text.startswith("DW_CFA_advance_loc") or text.startswith("DW_CFA_set_loc"):
            at = int(text.split()[-1], 16)
            continue
        if text == "DW_CFA_remember_state":
            saved.append(list(now))
        elif text == "DW_CFA_restore_state" and saved:
            now = saved.pop()
        elif text.startswith("DW_CFA_def_cfa_expression"):
            now[0] = cfa_of(text[27:-1])
        elif text.startswith("DW_CFA_def_cfa"):
            now[0] = None
        elif text.startswith(("DW_CFA_expression", "DW_CFA_val_expression")):
            name, _, rest = text.partition(": ")
            register, _, rest = rest.partition(" ")
            cell = {number: 1, "r16": 2, "r30": 2}.get(register)
            if cell:
                now[cell] = saved_of(rest[rest.index("(", 1) + 1:-1], "val" in name)
        else:
            continue
        if any(now) or start in out:
            out.setdefault(start, {})[at] = tuple(now)
    return out


def same_register(theirs, ours, expression):
    if theirs == "u":  # readelf writes both: undefined, and never said
        return ours in ("u", "s")
    if theirs in ("exp", "vexp"):
        return ours == expression
    if theirs.startswith("v"):
        return ours == "=c" + theirs[1:]
    if theirs == ours:
        return True
    return ours == f"={theirs}+0"


def is_go(file):
    with open(file, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"\xff Go buildinf:") >= 0


# mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je; call: glibc's __start_context.
CONTEXT = bytes.fromhex("4889dc488b3c244885ff7408e8")


def is_greenlet(file):
    """Whether it is greenlet's extension module, whose functions do not all return to where they were called."""
    if "greenlet" not in os.path.basename(file):
        return False
    with open(file, "rb") as f:
        return b"\0PyInit__greenlet\0" in f.read()


def has_context(file, function):
    """Whether the function's bytes, by the program headers, hold the code that a coroutine of glibc returns to."""
    with open(file, "rb") as f:
        head = f.read(64)
        at, size, count = int.from_bytes(head[32:40], "little"), head[54], int.from_bytes(head[56:58], "little")
        f.seek(at)
        table = f.read(size * count)
        for entry in (table[i:i + size] for i in range(0, len(table), size)):
            offset, address, length = (int.from_bytes(entry[i:i + 8], "little") for i in (8, 16, 32))
            if entry[0] == 1 and address <= function.start < address + length:
                f.seek(function.start - address + offset)
                return CONTEXT in f.read(function.end - function.start)
    return False


class Comparison:
    def __init__(self, file, fp, sp):
        self.file, self.fp, self.sp, self.is_go = file, fp, sp, is_go(file)
        self.rows = 0
        self.kinds = Counter()
        self.examples = {}
        self.expressions = None

    def expression_at(self, function, address):
        if self.expressions is None:
            self.expressions = expressions_of(self.file, self.fp)
        found = (None, None, None)
        for at, cells in sorted(self.expressions.get(function.start, {}).items()):
            if at <= address:
                found = cells
        return found

    def judge_go(self, function, address, row, ours):
        """Go's linker derives .debug_frame from the table that we read, and leaves out what it cannot say there."""
        kind = self.judge(function, address, row, ours)
        cells = ours.split(" ")
        if not kind or not function.is_debug:
            return kind
        if ours in ("stop", "signal"):
            return "Go: root or signal frame"
        if ours in ("frame-record", "unsupported") or cells[0].startswith(self.fp):
            return "Go: switch of stacks"
        if cells[0] != row[0]:
            return kind
        if row[1] == "u" and cells[2] in (row[2], "c" + cells[0][len(self.sp):].replace("+", "-")):
            return None if row[2] != "u" else "Go: more is known"
        return kind

    def judge(self, function, address, row, ours):
        """None when equal, otherwise the kind of the disagreement."""
        cfa, fp, ra = row
        if function.signal:
            return None if ours == "signal" else "signal"
        if ra == "u" and not (self.fp == "x29" and ours.endswith(" s")):
            return None if ours == "stop" else "return address undefined"
        cells = ours.split(" ")
        wanted = (None, None, None)
        if "exp" in (cfa, fp, ra) or "vexp" in (fp, ra):
            wanted = self.expression_at(function, address)
        if cfa == "exp":
            cfa = wanted[0]
        if ours in ("moving", "moved", "stop") and is_greenlet(self.file):
            return "greenlet: stacks take turns"
        if ours == "stop" and cfa.startswith(self.sp) and int(cfa[len(self.sp):]) < 8:
            return "popped, proven root"
        if ours == "stop" and cfa == f"{self.sp}+8" and has_context(self.file, function):
            return "coroutine's root"
        if ours == "unsupported":
            return "indexed expression" if wanted[0] == "unsupported" else "unsupported"
        if len(cells) != 3:
            return "no row"
        if cells[0] != cfa:
            return "CFA"
        if not same_register(fp, cells[1], wanted[1]):
            return "frame register"
        if ra == "u" or same_register(ra, cells[2], wanted[2]):  # aarch64: in x30, not said
            return None
        return "return address"

    def note(self, kind, address, row, ours):
        self.kinds[kind] += 1
        self.examples.setdefault(kind, f"{self.file} {address:x}: readelf {' '.join(row)}, ours {ours}")

    def run(self):
        functions = functions_of(self.file, self.fp)
        functions.sort(key=lambda f: f.start)  # stable: of two the first in the file counts
        ours = ours_of(self.file)
        at, covered, count = -1, 0, len(ours)
        for function in functions:
            rows = function.rows
            for i, (begin, *row) in enumerate(rows):
                end = rows[i + 1][0] if i + 1 < len(rows) else function.end
                begin = max(begin, covered)
                for address in (begin, begin + 1):
                    if address >= end:
                        break
                    while at + 1 < count and ours[at + 1][0] <= address:
                        at += 1
                    text = ours[at][1] if at >= 0 else "none"
                    kind = (self.judge_go if self.is_go else self.judge)(function, address, row, text)
                    self.rows += 1
                    if kind:
                        self.note(kind, address, row, text)
            covered = max(covered, function.end)
        return self


def compare(file):
    names = MACHINES[machine_of(file)]
    done = Comparison(file, *names).run()
    return file, done.rows, done.kinds, done.examples


def files_of_machine():
    """All of them; when sampled a quarter, which one is in rotation."""
    for top in ("/usr/bin", "/usr/lib"):
        for folder, _, names in os.walk(top):
            for name in sorted(names):
                if not SAMPLED or zlib.crc32(name.encode()) % 4 == rotation() % 4:
                    yield os.path.join(folder, name)


def main():
    tap = Tap("rows")
    need(tap, "readelf", root=False)
    named = [a for a in sys.argv[1:] if not a.startswith("-")]
    files = named or (QUICK_FILES if QUICK else [*QUICK_FILES, *files_of_machine()])
    files = sorted({f for f in map(os.path.realpath, files) if machine_of(f) in MACHINES})
    rows, compared, kinds, examples = 0, 0, Counter(), {}
    with multiprocessing.Pool(CPUS) as pool:
        for file, count, found, shown in pool.imap_unordered(compare, files, chunksize=1):
            compared += count > 0
            rows += count
            kinds.update(found)
            for kind, text in shown.items():
                examples.setdefault(kind, []).append((found[kind], text))
    tap.note(f"{compared} files with rows, {rows} places compared, {sum(kinds.values())} disagreements")
    for kind, count in kinds.most_common():
        tap.note(f"{count} {kind}")
        for number, text in sorted(examples[kind], reverse=True)[:8 if not QUICK else 3]:
            tap.note(f"    {number}: {text}")
    unexplained = sum(count for kind, count in kinds.items() if kind not in EXPLAINED)
    tap.ok(rows > 100000 or named, "there are rows to compare", rows)
    tap.ok(unexplained == 0, "every disagreement is of a kind that docs/unwind-rows.md explains", unexplained)
    if not named:
        tap.ok(sum(kinds.values()) <= SHARE_MAX * rows, "disagreements below 0.01 % of all places",
               f"{sum(kinds.values())} of {rows}")
    tap.finish()


if __name__ == "__main__":
    main()
