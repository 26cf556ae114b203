# SPDX-License-Identifier: Apache-2.0
"""Native code between Python functions (Python 2.7 and 3): mixed.py SECONDS

Each way in calls back from C: a sort's key, the function of a substitution, libc's qsort through ctypes, map, a metaclass'
__call__. The innermost function computes, or is in the kernel.
"""
from __future__ import print_function

import ctypes
import os
import re
import sys

import recorder

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
QSORT = ctypes.CDLL(None).qsort
QSORT.restype = None
ZERO = os.open("/dev/zero", os.O_RDONLY)


def computing():
    t = 0
    for i in range(300):
        t += i
    return t


def reading():
    return len(os.read(ZERO, 1 << 18))


def innermost(n):
    return reading() if n % 2 else computing()


def key(n):
    return innermost(n)


def replace(match):
    return str(innermost(int(match.group(0))))


def compare(a, b):
    return innermost(a[0])


def by_sort():
    return sorted(range(8), key=key)


def by_substitution():
    return re.sub("[0-9]", replace, "0 1 2 3 4 5 6 7")


def by_qsort():
    values = (ctypes.c_int * 4)(3, 1, 2, 0)
    QSORT(values, len(values), ctypes.sizeof(ctypes.c_int), CALLBACK)
    return values[0]


CALLBACK = COMPARE(compare)


def by_both():
    return sorted(range(2), key=lambda n: by_qsort())


def by_map():
    return list(map(key, range(8)))


WAYS = (by_sort, by_substitution, by_qsort, by_both, by_map)


def work(seconds):
    for _ in recorder.for_seconds(seconds):
        for way in WAYS:
            way()


if __name__ == "__main__":
    work(0.05)
    recorder.say("ready")
    sys.stdin.readline()
    work(float(sys.argv[1]))
    recorder.say("done")
    sys.stdin.readline()
