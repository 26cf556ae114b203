#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Class files, as far as stacks are judged by them: which method a bytecode calls, and its line. Source: JVM
specification 17, chapters 4 and 6."""
import os
import struct
import subprocess

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e", "java")

# Bytes behind an opcode; switches and wide are found by hand.
LENGTHS = [0] * 256
for op in [16, 18, 188] + list(range(21, 26)) + list(range(54, 59)) + [169]:
    LENGTHS[op] = 1
for op in [17, 19, 20, 132] + list(range(153, 169)) + list(range(178, 185)) + [187, 189, 192, 193, 198, 199]:
    LENGTHS[op] = 2
LENGTHS[197] = 3
for op in (185, 186, 200, 201):
    LENGTHS[op] = 4
INVOKES = (182, 183, 184, 185, 186)


class Method:
    def __init__(self, flags, name, descriptor):
        self.flags, self.name, self.descriptor = flags, name, descriptor
        self.code, self.lines = b"", []

    def line(self, index):
        """Of the last entry at or before a bytecode; 0: none."""
        best = None
        for start, line in self.lines:
            if start == index:
                return line
            if start < index and (best is None or start >= best[0]):
                best = (start, line)
        return best[1] if best else 0

    def first_line(self):
        return min(self.lines)[1] if self.lines else 0


class ClassFile:
    def __init__(self, data):
        self.data, self.at = data, 8
        self.pool = [None]
        count = self.u2()
        while len(self.pool) < count:
            self.entry()
        self.at += 2
        self.name = self.pool[self.pool[self.u2()]]
        self.at += 2
        count = self.u2()
        self.at += 2 * count
        for _ in range(self.u2()):  # fields
            self.at += 6
            self.attributes()
        self.methods = {}
        for _ in range(self.u2()):
            flags, name, descriptor = self.u2(), self.pool[self.u2()], self.pool[self.u2()]
            m = Method(flags, name, descriptor)
            for kind, start, _ in self.attributes():
                if kind == "Code":
                    self.code(m, start)
            self.methods[name, descriptor] = m
        self.source = ""
        for kind, start, _ in self.attributes():
            if kind == "SourceFile":
                self.source = self.pool[struct.unpack_from(">H", data, start)[0]]

    def u2(self):
        self.at += 2
        return struct.unpack_from(">H", self.data, self.at - 2)[0]

    def u4(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def entry(self):
        tag = self.data[self.at]
        self.at += 1
        if tag == 1:
            size = self.u2()
            self.pool.append(self.data[self.at:self.at + size].replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass"))
            self.at += size
        elif tag in (5, 6):
            self.at += 8
            self.pool += [None, None]
        elif tag in (7, 8, 16, 19, 20):
            self.pool.append(self.u2())
        elif tag in (3, 4):
            self.at += 4
            self.pool.append(None)
        elif tag == 15:
            self.at += 3
            self.pool.append(None)
        else:
            self.pool.append((self.u2(), self.u2()))

    def attributes(self):
        found = []
        for _ in range(self.u2()):
            kind, size = self.pool[self.u2()], self.u4()
            found.append((kind, self.at, size))
            self.at += size
        return found

    def code(self, method, start):
        back, self.at = self.at, start + 4
        size = self.u4()
        method.code = self.data[self.at:self.at + size]
        self.at += size
        count = self.u2()
        self.at += 8 * count
        for kind, at, _ in self.attributes():
            if kind == "LineNumberTable":
                count = struct.unpack_from(">H", self.data, at)[0]
                method.lines += struct.iter_unpack(">HH", self.data[at + 2:at + 2 + 4 * count])
        self.at = back

    def called(self, method, index):
        """(opcode, class or None, name, descriptor) of an invoke at a bytecode, or None."""
        code = method.code
        if index + 2 >= len(code) or code[index] not in INVOKES:
            return None
        owner, name_and_type = self.pool[struct.unpack_from(">H", code, index + 1)[0]]
        name, descriptor = self.pool[name_and_type]
        return code[index], None if code[index] == 186 else self.pool[self.pool[owner]], self.pool[name], self.pool[descriptor]


def starts(code):
    """Where the instructions begin."""
    at, found = 0, set()
    while at < len(code):
        found.add(at)
        op = code[at]
        if op in (170, 171):
            base = (at + 4) & ~3
            if op == 170:
                low, high = struct.unpack_from(">ii", code, base + 4)
                at = base + 12 + 4 * (high - low + 1)
            else:
                at = base + 8 + 8 * struct.unpack_from(">i", code, base + 4)[0]
        elif op == 196:
            at += 6 if code[at + 1] == 132 else 4
        else:
            at += 1 + LENGTHS[op]
    return found


def split(text):
    """"com/acme/Db.get(I)V" as class, name, descriptor."""
    head, bracket, rest = text.partition("(")
    owner, _, name = head.rpartition(".")
    return owner, name, bracket + rest


# Compiled code without bytecode: what begins a virtual thread. 21 may show none of it.
ENTER_SPECIAL, ENTER = "jdk/internal/vm/Continuation.enterSpecial(", "jdk/internal/vm/Continuation.enter("
CONTINUATION_RUN = "jdk/internal/vm/Continuation.run("
LOOSE_CLASSES = ("java/lang/invoke/", "jdk/internal/reflect/")


def is_cut(text):
    """The kernel sends the first bytes of a long name, which stay when the method is gone before the rest is read."""
    return text.endswith("...")


def judge_call(c, call, callee):
    """One invoke of a class: may it call that?"""
    owner, name, descriptor = split(callee)
    if name == "<clinit>" or call[0] == 186 or call[1] in ("java/lang/invoke/MethodHandle", "java/lang/invoke/VarHandle"):
        return "loose"
    if call[2] == name and (call[3] == descriptor or is_cut(descriptor) and call[3].startswith(descriptor[:-3])):
        return "legal"
    return "loose" if owner.startswith(LOOSE_CLASSES) else "illegal"


def judge_line(caller, line, callee, classes):
    """The same by the line of the call, as profiles have it; 0: any line."""
    owner, name, descriptor = split(caller)
    c = classes.get(owner)
    method = c.methods.get((name, descriptor)) if c else None
    if not method or not split(callee)[2]:
        return "unknown"
    if caller.startswith((ENTER_SPECIAL, CONTINUATION_RUN)) and callee.startswith(ENTER):
        return "legal"
    found = {judge_call(c, c.called(method, at), callee) for at in starts(method.code)
             if c.called(method, at) and (not line or method.line(at) == line)}
    if split(callee)[1] == "<clinit>":
        return "loose"
    return "legal" if "legal" in found else "loose" if "loose" in found else "illegal"


def judge(caller, index, callee, classes):
    """Whether a bytecode of the caller may call the callee: "legal", "loose" (cannot be judged by the bytecode alone),
    "unknown" (no class file), or "illegal"."""
    owner, name, descriptor = split(caller)
    c = classes.get(owner)
    method = c.methods.get((name, descriptor)) if c else None
    if not method:
        return "unknown"
    if split(callee)[1] == "<clinit>":
        return "loose"
    call = c.called(method, index)
    return judge_call(c, call, callee) if call else "illegal"


def class_files(home, folder, names):
    """Name -> class file, of those that are not generated; @folder: where the compiled SOURCES are."""
    names = sorted(names)
    out = subprocess.run([f"{home}/bin/java", "-cp", folder, "Classes"], input="".join(f"{n}\n" for n in names).encode(),
                         capture_output=True, check=True).stdout
    found, at = {}, 0
    for name in names:
        size = int.from_bytes(out[at:at + 4], "big")
        if size:
            found[name] = ClassFile(out[at + 4:at + 4 + size])
        at += 4 + size
    return found
