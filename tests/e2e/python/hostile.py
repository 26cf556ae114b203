# SPDX-License-Identifier: Apache-2.0
"""Processes that a profiler meets on a bad day: hostile.py CASE SECONDS. What they write into their interpreter is put
back before the interpreter sees it. The functions are few: what frames may be called is known."""
import ctypes
import gc
import mmap
import os
import random
import sys
import threading
import time

import recorder

TURNS = 3000000  # of hold_word(): some milliseconds


def spin(n):
    total = 0
    for i in range(n):
        total += i
    return total


def honest(seconds):
    for _ in recorder.for_seconds(seconds):
        spin(20000)


# ---- its own memory ----


def holder():
    hold = ctypes.PyDLL(os.environ["HOLD"]).hold_word
    hold.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    gc.disable()
    return hold


def frame_of(frame):
    """Of PyFrameObject up to 3.10, of _PyInterpreterFrame from 3.11 on: its address, the offsets of its caller and code."""
    if sys.version_info < (3, 11):
        return id(frame), 24, 32
    inner = ctypes.c_void_p.from_address(id(frame) + 24).value
    return (inner, 48, 32) if sys.version_info < (3, 12) else (inner, 8, 0)


def cycles(seconds):
    """Frames that call each other."""
    hold = holder()

    def inner(at, word):
        hold(at, word, TURNS)

    def outer():
        mine, caller, _ = frame_of(sys._getframe())
        theirs = frame_of(sys._getframe(1))[0]
        inner(mine + caller, mine)
        inner(theirs + caller, mine)
        inner(mine + caller, mine + 8)

    for _ in recorder.for_seconds(seconds):
        outer()


def garbage(seconds):
    """Code that is none: numbers, noise, an object full of pointers to itself."""
    hold = holder()
    chance = random.Random(2)
    noise = ctypes.create_string_buffer(8192)
    at = ctypes.addressof(noise)
    for i in range(1024):
        ctypes.c_uint64.from_address(at + 8 * i).value = chance.choice((at + 64, chance.getrandbits(47), chance.getrandbits(64), 1 << 62))

    def inner(where, word):
        hold(where, word, TURNS)

    def outer(word):
        mine, _, code = frame_of(sys._getframe())
        inner(mine + code, word)

    for _ in recorder.for_seconds(seconds):
        for word in (1, at, at + 512, chance.getrandbits(47), (1 << 64) - 8, id(None), id(sys)):
            outer(word)


def lengths(seconds):
    """Strings and line tables that say they are longer than all memory."""
    hold = holder()

    def inner(where, word):
        hold(where, word, TURNS)

    code = inner.__code__
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    for _ in recorder.for_seconds(seconds):
        for what in (code.co_name, code.co_filename, table):
            for word in (1 << 40, (1 << 63) - 1, (1 << 64) - 1, 1 << 20, 300000):
                inner(id(what) + 16, word)


def states(seconds):
    """The list of thread states in a cycle, or leading nowhere."""
    hold = holder()
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    mine = get()

    def inner(where, word):
        hold(where, word, TURNS)

    for _ in recorder.for_seconds(seconds):
        for word in (mine, 8, (1 << 64) - 8, mine + 4):
            inner(mine + 8, word)  # prev, next, interp: 3.7 to 3.13


# ---- too many ----


def threads(seconds):
    threading.stack_size(65536)
    end, many = threading.Event(), []
    for _ in range(5000):
        one = threading.Thread(target=end.wait)
        try:
            one.start()
        except RuntimeError:
            break
        many.append(one)
    honest(seconds)
    end.set()
    for one in many:
        one.join()


def forks(seconds):
    for _ in recorder.for_seconds(seconds):
        pid = os.fork()
        if not pid:
            spin(3000)
            os._exit(0)
        os.waitpid(pid, 0)


def execs(seconds):
    """Becomes another program again and again."""
    until = time.time() + seconds
    code = ("import os, sys, time\ndef spin(n):\n    return sum(range(n))\nspin(100000)\n"
            "if time.time() < float(sys.argv[1]): os.execv(sys.executable, [sys.executable, '-S', '-E', '-c', sys.argv[2], sys.argv[1], sys.argv[2]])\n"
            "print('done'); sys.stdout.flush(); sys.stdin.readline()")
    os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", code, str(until), code])


# ---- files ----


def mapped(seconds):
    """What is mapped as libpython is a file of a terabyte, without an end; and one whose name is a pipe by now."""
    folder = os.environ["FOLDER"]
    with open(os.path.realpath(sys.executable), "rb") as f:
        head = f.read(65536)
    maps = []
    for i, name in enumerate(("libpython3.13.so.1.0", "libpython3.12.so.1.0")):
        path = os.path.join(folder, name)
        with open(path, "w+b") as f:
            f.write(head)
            f.truncate(1 << 40 if i == 0 else 1 << 20)
            f.flush()
            maps.append(mmap.mmap(f.fileno(), 65536, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
        if i:
            os.unlink(path)
            os.mkfifo(path)
    honest(seconds)


CASES = {f.__name__: f for f in (honest, cycles, garbage, lengths, states, threads, forks, execs, mapped)}

if __name__ == "__main__":
    run = CASES[sys.argv[1]]
    recorder.say("ready")
    sys.stdin.readline()
    run(float(sys.argv[2]))
    recorder.say("done")
    sys.stdin.readline()
