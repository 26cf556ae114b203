# SPDX-License-Identifier: Apache-2.0
"""in_line_target.py LOAD SECONDS: python_target.py with one load more: Python calls code made at run time (walk_fake.h), which
calls Python again. ctypes gives the GIL up around the made code, as extensions that run code of their own do."""
import ctypes
import mmap
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "walk"))
import python_target  # noqa: E402

# As fake_program.c has them.
PLACE, CODE_BYTES, SLOTS, FRAME_BYTES, MAGIC, SPINS = 0x6a0000000000, 64, 4, 56, 0x5ca1ab1e00000000, 400
MAP_FIXED_NOREPLACE = 0x100000
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
MADE = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, FUNCTION)


def code(address):
    return (b"\x48\x83\xec\x38" b"\x48\x89\x6c\x24\x10"  # sub $56,%rsp; mov %rbp,16(%rsp)
            b"\x48\xb8" + struct.pack("<Q", address) + b"\x48\x89\x04\x24"  # mov $function,%rax; mov %rax,(%rsp)
            b"\x48\xb8" + struct.pack("<Q", MAGIC ^ FRAME_BYTES) + b"\x48\x89\x44\x24\x08"  # mov $size,%rax; mov %rax,8(%rsp)
            b"\xbd\x34\x12\x00\x00" b"\xb9" + struct.pack("<I", SPINS) +  # mov $0x1234,%ebp; mov $spins,%ecx
            b"\xff\xc9" b"\x75\xfc" b"\xff\xd6"  # dec %ecx; jnz to it; call *%rsi
            b"\x48\x8b\x6c\x24\x10" b"\x48\x83\xc4\x38" b"\xc3")  # mov 16(%rsp),%rbp; add $56,%rsp; ret


def make():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    if libc.mmap(PLACE, 4096, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != PLACE:
        raise OSError("no room for the code")
    for slot in range(SLOTS):
        ctypes.memmove(PLACE + slot * CODE_BYTES, code(PLACE + slot * CODE_BYTES), CODE_BYTES)
    if libc.mprotect(PLACE, 4096, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError("the code cannot be run")
    return MADE(PLACE)


@FUNCTION
def back(x):
    return called(x)


def called(x):
    return python_target.leaf(100) + x & 0xffff


def in_line():
    made(1, back)


made = make()
python_target.LOADS["in_line"] = in_line
python_target.main(sys.argv[1], sys.argv[2])
