#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of a live HotSpot, read one word at a time: what java_tool must find too, and small recordings of them.

java_tables.py PID --image FILE   writes what fuzz_java_tables.c and java_tables_test.c read: the entries that
                                  src/runtime/java/layout.c asks for, laid out anew behind each other:
    u64 base, u64 symbols[20] in the order of JAVA_SYMBOLS, then the memory from base on
"""
import re
import struct
import subprocess
import sys

SYMBOLS = re.findall(r'X\(\w+, +"(gHotSpot\w+)"\)', open(__file__.rsplit("/tests/", 1)[0] + "/src/runtime/java/tables.h").read())


def library(pid):
    """Path and load address of libjvm.so."""
    for line in open(f"/proc/{pid}/maps"):
        part = line.split()
        if len(part) > 5 and part[5].endswith("/libjvm.so"):
            return part[5], int(part[0].split("-")[0], 16)
    raise LookupError(f"{pid} has no libjvm.so")


class Tables:
    def __init__(self, pid):
        path, self.bias = library(pid)
        listing = subprocess.run(["nm", "-D", f"/proc/{pid}/root{path}"], capture_output=True, text=True, check=True).stdout
        self.memory = open(f"/proc/{pid}/mem", "rb", 0)
        self.symbols = {}
        for line in listing.splitlines():
            part = line.split()
            if len(part) == 3 and part[2].split("@")[0] in SYMBOLS:
                self.symbols[part[2].split("@")[0]] = int(part[0], 16)
        word = lambda name: self.u64(self.symbols[name] + self.bias)
        struct_ = [word(f"gHotSpotVMStructEntry{m}Offset") for m in
                   ("TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address")]
        self.fields = [(self.text(a + struct_[0]), self.text(a + struct_[1]), self.text(a + struct_[2]), self.u32(a + struct_[3]),
                        self.u64(a + struct_[4]), self.u64(a + struct_[5]))
                       for a in self.entries("Structs", "Struct", struct_[0])]
        self.types = self.values("Types", "Type", "TypeName", "Size", self.u64)
        self.ints = self.values("IntConstants", "IntConstant", "Name", "Value", self.i32)
        self.longs = self.values("LongConstants", "LongConstant", "Name", "Value", self.u64)

    def read(self, at, size):
        self.memory.seek(at)
        return self.memory.read(size)

    def u64(self, at):
        return struct.unpack("<Q", self.read(at, 8))[0]

    def u32(self, at):
        return struct.unpack("<I", self.read(at, 4))[0]

    def i32(self, at):
        return struct.unpack("<i", self.read(at, 4))[0]

    def text(self, at):
        at = self.u64(at)
        return self.read(at, 256).split(b"\0")[0].decode() if at else ""

    def entries(self, table, entry, name_at):
        at = self.u64(self.symbols[f"gHotSpotVM{table}"] + self.bias)
        stride = self.u64(self.symbols[f"gHotSpotVM{entry}EntryArrayStride"] + self.bias)
        while self.u64(at + name_at):
            yield at
            at += stride

    def values(self, table, entry, name, value, read):
        name_at, value_at = (self.u64(self.symbols[f"gHotSpotVM{entry}Entry{m}Offset"] + self.bias) for m in (name, value))
        return [(self.text(a + name_at), read(a + value_at)) for a in self.entries(table, entry, name_at)]


def wanted():
    source = open(__file__.rsplit("/tests/", 1)[0] + "/src/runtime/java/layout.c").read()
    return set(re.findall(r'"([^"]+)", *\n? *"([^"]*)"', source))


def image(t):
    """Entries in the form that OpenJDK 17 has, whatever the version: members lie where the words say."""
    base = 0x10000
    keep = wanted()
    types = {a for a, _ in keep}
    fields = [f for f in t.fields if f[:2] in keep]
    kinds = [v for v in t.types if v[0] in types]
    ints = [v for v in t.ints if "has_linenumber_table" in v[0] or v[0].startswith("CodeBlobKind")]
    longs = t.longs[:1]
    members = {"StructEntryTypeName": 0, "StructEntryFieldName": 8, "StructEntryTypeString": 16, "StructEntryIsStatic": 24,
               "StructEntryOffset": 32, "StructEntryAddress": 40, "TypeEntryTypeName": 0, "TypeEntrySize": 32,
               "IntConstantEntryName": 0, "IntConstantEntryValue": 8, "LongConstantEntryName": 0, "LongConstantEntryValue": 8}
    strides = {"Struct": 48, "Type": 40, "IntConstant": 16, "LongConstant": 16}
    words_at = base
    tables_at = {"Structs": words_at + 8 * len(SYMBOLS)}
    tables_at["Types"] = tables_at["Structs"] + 48 * (len(fields) + 1)
    tables_at["IntConstants"] = tables_at["Types"] + 40 * (len(kinds) + 1)
    tables_at["LongConstants"] = tables_at["IntConstants"] + 16 * (len(ints) + 1)
    statics_at = tables_at["LongConstants"] + 16 * (len(longs) + 1)
    texts_at = statics_at + 8 * len(fields)
    texts, places = b"", {"": 0}

    def place(text):
        nonlocal texts
        if text not in places:
            places[text] = texts_at + len(texts)
            texts += text.encode() + b"\0"
        return places[text]

    def word(symbol):
        name = symbol.removeprefix("gHotSpotVM")
        if name in tables_at:
            return tables_at[name]
        if name.endswith("EntryArrayStride"):
            return strides[name.removesuffix("EntryArrayStride")]
        return members[name.removesuffix("Offset")]

    out = b"".join(struct.pack("<Q", word(s)) for s in SYMBOLS)
    statics = b""
    for i, (kind, field, string, is_static, offset, address) in enumerate(fields):
        out += struct.pack("<QQQIIQQ", place(kind), place(field), place(string), is_static, 0, offset, statics_at + 8 * i if is_static else 0)
        statics += struct.pack("<Q", t.u64(address) if is_static else 0)
    out += bytes(48)
    for name, size in kinds:
        out += struct.pack("<QQQQQ", place(name), 0, 0, 0, size)
    out += bytes(40)
    for name, value in ints:
        out += struct.pack("<Qq", place(name), value)
    out += bytes(16)
    for name, value in longs:
        out += struct.pack("<QQ", place(name), value)
    out += bytes(16) + statics + texts
    return struct.pack("<Q", base) + b"".join(struct.pack("<Q", words_at + 8 * i) for i in range(len(SYMBOLS))) + out


if __name__ == "__main__":
    with open(sys.argv[3], "wb") as f:
        f.write(image(Tables(int(sys.argv[1]))))
