# SPDX-License-Identifier: Apache-2.0
"""python_target.py LOAD SECONDS: an interpreter of any version from 2.7 on that tells what a walker has to know of it.

The first line of its output: struct abi_python in hexadecimal, start time and exec id zero, pthread_self() of the main thread, pid.
Then it runs a load whose stacks are known until the time is over or its input ends.
Offsets: debug information of CPython 2.7.18, 3.6.15 ... 3.13.0; _Py_DebugOffsets from 3.13 on.
"""
import ctypes
import os
import struct
import sys
import threading
import time

NONE = 0xffff
API = ctypes.pythonapi
VERSION = sys.version_info[:2]
KEYS = 784  # of glibc's struct pthread on x86-64: the first block of keys, 16 bytes each, the value behind 8

#          thread: next frame cframe previous id native; interpreter: next threads; frame: back code last entry size
#          code: file name qualname line lines bytes; str: length state ascii compact; bytes: length data; unit entry value
LAYOUTS = {
    (2, 7): (0, 16, NONE, NONE, 144, NONE, 0, 8, 24, 32, 120, 0, 128, 80, 88, NONE, 96, 104, NONE, 16, 0, 36, 36, 16, 36, 1, 1, 0),
    (3, 6): (8, 24, NONE, NONE, 152, NONE, 0, 8, 24, 32, 120, 0, 128, 96, 104, NONE, 36, 112, NONE, 16, 32, 48, 72, 16, 32, 1, 1, 0),
    (3, 7): (8, 24, NONE, NONE, 176, NONE, 0, 8, 24, 32, 104, 0, 128, 96, 104, NONE, 36, 112, NONE, 16, 32, 48, 72, 16, 32, 1, 1, 0),
    (3, 8): (8, 24, NONE, NONE, 176, NONE, 0, 8, 24, 32, 104, 0, 128, 104, 112, NONE, 40, 120, NONE, 16, 32, 48, 72, 16, 32, 1, 1, 0),
    (3, 9): (8, 24, NONE, NONE, 176, NONE, 0, 8, 24, 32, 104, 0, 128, 104, 112, NONE, 40, 120, NONE, 16, 32, 48, 72, 16, 32, 1, 1, 0),
    (3, 10): (8, 24, NONE, NONE, 176, NONE, 0, 8, 24, 32, 96, 0, 128, 104, 112, NONE, 40, 120, NONE, 16, 32, 48, 72, 16, 32, 2, 1, 0),
    (3, 11): (8, 56, 8, 16, 152, 160, 0, 16, 48, 32, 56, 68, 80, 112, 120, 128, 72, 136, 184, 16, 32, 48, 72, 16, 32, 0, 2, 0),
    (3, 12): (8, 56, 0, 8, 136, 144, 0, 72, 8, 0, 56, 70, 80, 112, 120, 128, 68, 136, 192, 16, 32, 40, 56, 16, 32, 0, 3, 3),
    (3, 13): (8, 72, NONE, NONE, 152, 160, 7264, 7344, 8, 0, 56, 70, 80, 112, 120, 128, 68, 136, 200, 16, 32, 40, 56, 16, 32, 0, 3, 3),
}
# _PyRuntime: holder of the GIL, head of the interpreters, key
RUNTIMES = {(3, 7): (1480, 24, 1504), (3, 8): (1368, 32, 1392), (3, 9): (568, 32, 584), (3, 10): (568, 32, 584),
            (3, 11): (576, 40, 592), (3, 12): (0, 40, 1544), (3, 13): (0, 632, 2160)}


def address(name):
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(API, name))
    except ValueError:
        return 0


def self_description():
    ways, holder, interpreters, key = 0, 0, 0, 0
    if VERSION in RUNTIMES:
        runtime = address("_PyRuntime")
        holder_at, interpreters, key_at = RUNTIMES[VERSION]
        interpreters += runtime
        key = ctypes.c_int.from_address(runtime + key_at + 4).value
        holder = holder_at and runtime + holder_at
        ways = 2 | (1 if holder else 0)
    else:
        holder, ways = address("_PyThreadState_Current"), 1
        API.PyInterpreterState_Head.restype = ctypes.c_void_p
        global head  # of the list; where CPython has it nobody tells
        head = ctypes.c_void_p(API.PyInterpreterState_Head())
        interpreters = ctypes.addressof(head)
    flags = 4 if VERSION < (3,) else 0
    none, cleanup = (id(None), address("_Py_InitCleanup")) if VERSION >= (3, 13) else (0, 0)
    layout = LAYOUTS[VERSION]
    code_type = id(type((lambda: 0).__code__))
    packed = struct.pack("<QIBBHQQQQQQqqIi", 0, 0, ways, flags, 0, holder, interpreters, none, cleanup, code_type, 0, KEYS + 16 * key + 8, 0, 0, 0)
    packed += struct.pack("<25H", *layout[:25])
    return packed + struct.pack("<BBBBBBxx6x", layout[25], layout[26], layout[27], VERSION[1], VERSION[0], 2)


def identity():
    try:
        return threading.get_ident()
    except AttributeError:
        return threading.current_thread().ident


deadline = [0]


def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def down(depth):
    return leaf(300) if depth == 0 else down(depth - 1)


class Outer(object):
    def method(self):
        return sorted([3, 1, 2], key=self.key)

    def key(self, x):
        return leaf(100) + x


def numbers(n):
    for i in range(n):
        yield leaf(20) + i


def chain(n):
    for x in numbers(n):
        yield x


def recursive():
    down(20)


def classes():
    Outer().method()


def generators():
    sum(chain(30))


def imported():
    exec(compile("def made(x):\n  return x + 1\nfor i in range(50): made(i)\n", "<made %d>" % id(object()), "exec"), {})


def greenlets():
    """Two stacks that hand over to each other; needs the module greenlet."""
    import greenlet

    def run(other):
        while time.time() < deadline[0]:
            leaf(300)
            pair[other].switch()

    def deeper(n, other):
        return deeper(n - 1, other) if n else run(other)

    pair = [greenlet.greenlet(lambda: deeper(5, 1)), greenlet.greenlet(lambda: deeper(7, 0))]
    pair[0].switch()


LOADS = {"recursive": recursive, "classes": classes, "generators": generators, "made": imported, "greenlets": greenlets}


def deep(depth, load):
    if depth:
        return deep(depth - 1, load)
    while time.time() < deadline[0]:
        for _ in range(50):
            load()


def distinct(depth, load, apart=0):
    """A chain of functions that are all different, the last one runs @load. So many others lie between two of them."""
    names = {"load": load, "deadline": deadline, "time": time}
    exec("def f0():\n  while time.time() < deadline[0]:\n    for _ in range(50): load()\n", names)
    for i in range(1, depth):
        for j in range(apart):
            exec("def other%d_%d(a):\n  return [a, %d, %d]\n" % (i, j, i, j), names)
        exec("def f%d():\n  a = %d\n  return f%d() or a\n" % (i, i, i - 1), names)
    names["f%d" % (depth - 1)]()


def main(load, seconds):
    text = "".join("%02x" % b for b in bytearray(self_description()))
    sys.stdout.write("%s %x %d\n" % (text, identity(), os.getpid()))
    sys.stdout.flush()
    deadline[0] = time.time() + float(seconds)
    if load == "threads":
        threads = [threading.Thread(target=deep, args=(3, classes)) for _ in range(4)]
        for t in threads:
            t.daemon = True
            t.start()
        for t in threads:
            t.join()
    elif load.startswith("deep"):
        sys.setrecursionlimit(100000)
        deep(int(load[4:]), lambda: leaf(1000))
    elif load.startswith("warm"):
        distinct(int(load[4:]), lambda: leaf(1000))
    elif load.startswith("far"):
        distinct(int(load[3:]), lambda: leaf(1000), 20)
    elif load.startswith("cold"):  # what it touches in between is larger than the caches
        numbers = list(range(600000))
        distinct(int(load[4:]), lambda: sum(numbers))
    elif load == "fork":
        deadline[0] = time.time() + 0.5
        deep(3, recursive)
        fork_on(time.time() + float(seconds))
    elif load == "sleep":
        deep(3, lambda: time.sleep(0.0005))
    else:
        deep(3, LOADS[load])


def fork_on(end):
    while time.time() < end:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            continue
        deadline[0] = time.time() + 0.2
        deep(3, recursive)
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
