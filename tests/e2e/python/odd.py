# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What is seldom seen: odd.py CASE SECONDS (Python 2.7 and 3). Every function says in its name where it may appear."""
from __future__ import print_function

import ctypes
import gc
import os
import random
import sys
import threading

import recorder


def burn(seconds):
    t = 0
    for _ in recorder.for_seconds(seconds):
        for i in range(2000):
            t += i
    return t


# ---- another interpreter in the same thread ----

SUB = """
def sub_leaf(n):
    t = 0
    for i in range(n):
        t += i
    return t

def sub_outer():
    for _ in range(300):
        sub_leaf(20000)

sub_outer()
"""


def subinterpreter(seconds):
    def runs_sub():
        try:
            from _testcapi import run_in_subinterp
        except ImportError:
            import _interpreters  # 3.13
            one = _interpreters.create()
            _interpreters.run_string(one, SUB)
            _interpreters.destroy(one)
        else:
            run_in_subinterp(SUB)

    for _ in recorder.for_seconds(seconds):
        runs_sub()


# ---- greenlets: stacks that are swapped under one thread ----


def greenlets(seconds):
    from greenlet import greenlet

    def spin_a(n):
        return sum([i for i in range(n)])

    def spin_b(n):
        return sum([i for i in range(n)])

    def deep_a(n):
        if n:
            return deep_a(n - 1)
        spin_a(300)
        two.switch()
        return spin_a(300)

    def deep_b(n):
        if n:
            return deep_b(n - 1)
        spin_b(300)
        one.switch()
        return spin_b(300)

    def main_a():
        for _ in recorder.for_seconds(seconds):
            deep_a(5)

    def main_b():
        while True:
            deep_b(9)

    one, two = greenlet(main_a), greenlet(main_b)
    one.switch()


# ---- generators that threads share the interpreter with ----

THREAD = """
def numbers_{0}(n):
    for i in range(n):
        yield inner_{0}(i)

def inner_{0}(i):
    t = 0
    for k in range(40):
        t += k * i
    return t

def doubled_{0}(source):
    for x in source:
        yield x * 2

def main_{0}(steps):
    for _ in steps:
        sum(doubled_{0}(numbers_{0}(20 + {0})))
"""


def threads(seconds):
    space = {}
    for i in range(4):
        exec(compile(THREAD.format(i), "<thread-%d>" % i, "exec"), space)
    running = [threading.Thread(target=space["main_%d" % i], args=(recorder.for_seconds(seconds),)) for i in range(4)]
    for t in running:
        t.start()
    for t in running:
        t.join()


# ---- fork without exec ----


def forked(seconds):
    def child_leaf():
        burn(seconds / 4)

    def child_main():
        child_leaf()

    def parent_leaf():
        burn(seconds / 4)

    import multiprocessing

    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            child_main()
            os._exit(0)
        parent_leaf()
        os.waitpid(pid, 0)
    make = multiprocessing.get_context("fork") if hasattr(multiprocessing, "get_context") else multiprocessing
    process = make.Process(target=child_main)
    process.start()
    process.join()


# ---- names ----


def names(seconds):
    if sys.version_info < (3,):
        text = "def latin_%s():\n    burn(S)\nlatin_%s()\n" % ("\xe9", "\xe9")
        space = {"burn": burn, "S": seconds / 3}
        exec(compile("def plain_name():\n    burn(S)\nplain_name()\n", "/tmp/caf\xc3\xa9.py", "exec"), space)
        return text
    space = {"burn": burn, "S": seconds / 6}
    for name, file in ((u"gr\u00f6\u00dfe", "/tmp/caf\u00e9.py"), (u"\u540d\u524d", u"/tmp/\u30d5\u30a1\u30a4\u30eb.py"),
                       (u"f\U00020000", u"/tmp/\U0001f600.py"), ("n" * 1000, "/tmp/" + "d" * 300 + ".py"),
                       ("semi", "/tmp/a;b\n\x1b[2J.py")):
        exec(compile(u"def %s():\n    burn(S)\n%s()\n" % (name, name), file, "exec"), space)
    return None


# ---- a process that writes into its own interpreter ----


def frame_address(frame):
    """Of PyFrameObject up to 3.10, of _PyInterpreterFrame from 3.11 on (its third pointer), with the offsets of its caller
    and its code."""
    if sys.version_info < (3, 11):
        return id(frame), 24, 32
    inner = ctypes.c_void_p.from_address(id(frame) + 24).value
    return (inner, 48, 32) if sys.version_info < (3, 12) else (inner, 8, 0)


def fake_code(fake, text, chance):
    """A code object full of pointers to a string with a length of its own."""
    address = ctypes.addressof(text)
    ctypes.c_int64.from_address(address + 16).value = chance.choice((-1, 1 << 62, 300, 1 << 31, 0))
    ctypes.c_uint32.from_address(address + 32).value = chance.getrandbits(32)
    for i in range(512):
        ctypes.c_uint64.from_address(ctypes.addressof(fake) + 8 * i).value = address


def hostile_words(at, right, is_code, fake, text, chance):
    # Near a code object may be another one, which nobody can tell from the right one.
    near = [] if is_code else [right + chance.randrange(-512, 512) for _ in range(3)]
    return ([0, 1, 8, at, at + 8, right + 8, 0xdeadbeef000, 0xffffffff81000000, 0x8000000000000000, (1 << 64) - 1,
             ctypes.addressof(fake), ctypes.addressof(text), id(sys), id(None), id("a" * 70)]
            + [chance.getrandbits(47) for _ in range(3)] + near)


def corrupted(seconds):
    """Pointers of the frames are changed while native code runs: nothing of Python sees it."""
    hold = ctypes.PyDLL(os.environ["HOLD"]).hold_word
    hold.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    gc.disable()
    chance = random.Random(1)
    fake, text = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(b"\xff" * 512)

    def held_leaf(at, word):
        hold(at, word, 6000000)

    def held_outer(frame, at, word):
        held_leaf(at, word)

    def once(frame, offset):
        at = frame_address(frame)[0] + offset
        for word in hostile_words(at, ctypes.c_uint64.from_address(at).value, offset == code, fake, text, chance):
            fake_code(fake, text, chance)
            held_outer(frame, at, word)

    _, caller, code = frame_address(sys._getframe())
    for _ in recorder.for_seconds(seconds):
        for frame in (sys._getframe(), sys._getframe(1)):
            for offset in (caller, code):
                once(frame, offset)


CASES = {"subinterpreter": subinterpreter, "greenlets": greenlets, "threads": threads, "forked": forked, "names": names,
         "corrupted": corrupted, "burn": burn}

if __name__ == "__main__":
    case = CASES[sys.argv[1]]
    recorder.say("ready")
    sys.stdin.readline()
    case(float(sys.argv[2]))
    recorder.say("done")
    sys.stdin.readline()
