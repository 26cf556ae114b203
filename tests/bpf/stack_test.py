#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""stack_test.py OBJECT...: the stacks of functions that call each other are 512 bytes at most, as kernels up to 6.12 have it for
all of them together (kernel/bpf/verifier.c, check_max_stack_depth). Newer ones give each function its own, so that the
kernel that runs the tests may accept what Debian 12's refuses. What the verifier counts is read from llvm-objdump: what
lies below r10 in each function, rounded up to 32 bytes, with what it calls.
"""
import os
import re
import subprocess
import sys

MOST = 512
STACK = re.compile(r"\(r10 - (0x[0-9a-f]+|\d+)\)")
MOVED = re.compile(r"\b(r\d) = r10\b")
BELOW = re.compile(r"\b(r\d) \+= -(0x[0-9a-f]+|\d+)\b")
SET = re.compile(r"\b[rw](\d) [^ ]*=")
CALL = re.compile(r"\s*(\d+):\s+call (-?(?:0x[0-9a-f]+|\d+))")
HEAD = re.compile(r"([0-9a-f]+) <(.*)>:")


class Function:
    def __init__(self):
        self.bytes, self.calls = 0, []

    def uses(self, size):
        self.bytes = max(self.bytes, int(size, 0))


def read(path):
    """Functions by (section, first instruction's number), and the section of each symbol that a call may name."""
    text = subprocess.run(["llvm-objdump", "-d", "-r", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    functions, names, section, one, moved, call = {}, {}, "", None, set(), None
    for line in text.splitlines():
        if line.startswith("Disassembly of section "):
            section = line.split()[-1].rstrip(":")
        elif (head := HEAD.match(line)) and not head[2].startswith("LBB"):
            one = functions[section, int(head[1], 16) // 8] = Function()
            one.name = head[2]
            names[head[2]] = one
        elif one:
            # moved: the registers that are r10 now
            for size in STACK.findall(line):
                one.uses(size)
            if (below := BELOW.search(line)) and below[1] in moved:
                one.uses(below[2])
            if m := SET.search(line):
                moved.discard("r" + m[1])
            if m := MOVED.search(line):
                moved.add(m[1])
            if m := CALL.match(line):
                call = (section, int(m[1]), int(m[2], 0))
            elif "R_BPF_64_32" in line:
                one.calls.append((line.split()[-1], *call))
    return functions, names


def deepest(functions, names, one):
    below = (0, [])
    for symbol, _, _, distance in one.calls:
        called = names.get(symbol) or functions[symbol, distance + 1]  # a static function: the section, and how far in
        below = max(below, deepest(functions, names, called))
    own = (max(one.bytes, 1) + 31) // 32 * 32
    return own + below[0], [f"{one.name} {own}", *below[1]]


failed = 0
for number, path in enumerate(sys.argv[1:], 1):
    functions, names = read(path)
    depth, chain = max(deepest(functions, names, one) for one in functions.values())
    fine = depth <= MOST and any(len(one.calls) > 3 for one in functions.values())
    failed += not fine
    print(f"{'ok' if fine else 'not ok'} {number} {os.path.basename(path)}: functions that call each other use {depth} bytes of stack, at most {MOST}: {', '.join(chain)}")
print(f"1..{len(sys.argv) - 1}")
sys.exit(1 if failed else 0)
