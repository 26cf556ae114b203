# SPDX-License-Identifier: Apache-2.0
"""Functions that are compiled, run and thrown away, thousands a second (Python 2.7 and 3): generated.py SECONDS

Number N lives in a file <gen-N>, its functions are called gen_N and sub_N, and it is called by call_K with K = N mod 251,
which lives for ever: a name kept from a function that lay at the same address before does not fit its caller.
"""
from __future__ import print_function

import sys

import recorder

CALLERS = 251
PADS = 13  # empty lines in front: lines differ, too

TEXT = """def gen_%d(n):
    t = 0
    for i in range(n):
        t += sub_%d(i)
    return t
def sub_%d(n):
    return n * 3 + 1
gen_%d(60)
"""
VALUE = "(lambda n: [i * n for i in range(n)])(90)"

space = {}
exec("\n".join("def call_%d(code, space):\n    exec(code, space)" % i for i in range(CALLERS)), space)
callers = [space["call_%d" % i] for i in range(CALLERS)]


def one(n):
    name, pad = "<gen-%d>" % n, "\n" * (n % PADS)
    if n % 4 == 3:
        return compile(pad + "v = " + VALUE, name, "exec")
    return compile(pad + TEXT % (n, n, n, n), name, "exec")


def work(seconds):
    n = 0
    for _ in recorder.for_seconds(seconds):
        for _ in range(50):
            callers[n % CALLERS](one(n), {})
            n += 1
    return n


if __name__ == "__main__":
    work(0.05)
    recorder.say("ready")
    sys.stdin.readline()
    recorder.say("done %d" % work(float(sys.argv[1])))
    sys.stdin.readline()
