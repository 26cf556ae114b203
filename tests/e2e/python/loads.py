# SPDX-License-Identifier: Apache-2.0
"""Programs whose every Python stack is known (Python 2.7 and 3).

loads.py NAME record FILE     runs rounds under a tracer and writes every stack that can be (recorder.py)
loads.py NAME run SECONDS     says "ready", waits for a line, uses that much CPU time, says "done", waits for the end
loads.py NAME watch FILE      runs rounds while a thread of the same process notes its stacks: a faithful sampler
loads.py NAME work ROUNDS     for each line on stdin the same work again; prints the CPU time it took and its paces

Both passes call a round at the same lines, so that a stack has the same numbers in both.
"""
from __future__ import print_function

import ctypes
import gc
import json
import re
import sys
import threading
import weakref
import zlib

import recorder

# ---- recursive: 40 frames of two functions that call each other ----


def even(n, acc):
    if n <= 0:
        total = 0
        for i in range(60):
            total += i * n + acc
            acc = (acc * 3 + total) % 1009
        return acc
    acc += n
    return odd(
        n - 1,
        acc)


def odd(n, acc):
    acc = acc * 2 % 10007
    value = even(n - 1, acc)
    value += n
    return value


def round_recursive():
    for depth in (40, 12, 3):
        even(depth, 1)


# ---- threads: four at once, over and over; each waits for a lock now and then ----


class Workers(object):
    def __init__(self):
        self.lock = threading.Lock()
        self.sum = 0

    def spin(self, n):
        total = 0
        for i in range(n):
            total += i ^ n
        return total

    def step(self, number):
        part = self.spin(150 + number)
        with self.lock:
            self.sum += part
        return self.deeper(number)

    def deeper(self, number):
        if number:
            return self.deeper(number - 1) + 1
        return self.spin(80)

    def body(self, number, rounds):
        for _ in range(rounds):
            self.step(number)


def thread_main(workers, number, rounds):
    workers.body(number, rounds)


def round_threaded():
    workers = Workers()
    threads = [threading.Thread(target=thread_main, args=(workers, n, recorder.thread_rounds[0])) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


# ---- generators: chains of them, sends, throws, closes, expressions ----


def numbers(n):
    i = 0
    try:
        while i < n:
            got = yield i
            if got:
                i += got
            i += 1
    finally:
        i = -1


def doubled(source):
    for x in source:
        yield x * 2


def filtered(source, by):
    for x in source:
        if x % by:
            yield x


def taking(source):
    total = 0
    for x in source:
        total += work_a_bit(x)
    return total


def work_a_bit(x):
    for i in range(4):
        x ^= i
    return x


class Iterator(object):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration
        return self.n

    next = __next__


def sending(n):
    g = numbers(n)
    next(g)
    total = 0
    try:
        while True:
            total += g.send(2)
    except StopIteration:
        return total


def thrown():
    g = numbers(10)
    next(g)
    try:
        g.throw(ValueError("x"))
    except ValueError:
        return 1
    return 0


def round_generator():
    taking(filtered(doubled(numbers(60)), 3))
    taking(x + 1 for x in doubled(Iterator(40)))
    taking([y for y in filtered(range(50), 7)])
    sum(work_a_bit(x) for x in numbers(30))
    sending(60)
    thrown()
    g = doubled(numbers(9))
    next(g)
    g.close()
    dict((k, v) for k, v in zip(doubled(range(20)), numbers(20)))
    closure(5)


def closure(n):
    def inner():
        for i in range(n):
            yield i + n

    return list(inner()) + [work_a_bit(n) for _ in (lambda: range(n))()]


# ---- C extensions: native code that calls back ----


TEXT = " ".join("word%d=%d;" % (i, i * 7919 % 1009) for i in range(60))
DOCUMENT = {"list": list(range(50)), "nested": {"k%d" % i: {"a": [i, str(i)], "b": None} for i in range(12)}}
WORD = re.compile(r"(\w+?)(\d+)=(\d+)")
BYTES = TEXT.encode("ascii") * 4


def by_remainder(x):
    return x * 7919 % 1009


def replace(match):
    number = int(match.group(3))
    return match.group(1) + str(number + 1)


def as_pairs(pairs):
    return dict(pairs)


def unknown(value):
    return {"set": sorted(value)}


def compare(a, b):
    return a[0] - b[0]


def c_sort():
    return sorted(range(120), key=by_remainder)


def c_json():
    text = json.dumps(DOCUMENT)
    first = json.loads(text)
    second = json.loads(text, object_pairs_hook=as_pairs)
    text = json.dumps({"s": frozenset((3, 1, 2))}, default=unknown, indent=1)
    return len(first) + len(second) + len(text)


def c_re():
    return len(WORD.sub(replace, TEXT)) + len(WORD.findall(TEXT))


def c_zlib():
    packed = zlib.compress(BYTES, 6)
    return len(zlib.decompress(packed))


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
QSORT = ctypes.CDLL(None).qsort
QSORT.restype = None


def c_qsort():
    values = (ctypes.c_int * 24)(*[by_remainder(i) for i in range(24)])
    QSORT(values, len(values), ctypes.sizeof(ctypes.c_int), COMPARE(compare))
    return values[0]


def c_map():
    return sum(map(by_remainder, range(40))) + max(range(40), key=lambda x: x * 31 % 17)


def round_extension():
    c_sort()
    c_json()
    c_re()
    c_zlib()
    c_qsort()
    c_map()


# ---- classes: what runs without being called by name ----


class Base(object):
    made = 0

    def __init__(self, value):
        self.value = value
        Base.made += 1

    def __repr__(self):
        return "Base(%d)" % self.value

    def __lt__(self, other):
        return self.value < other.value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def __add__(self, other):
        return type(self)(self.value + other.value)

    def __getitem__(self, index):
        if index > 5:
            raise IndexError(index)
        return self.value + index

    def __contains__(self, value):
        return value == self.value

    def __call__(self, n):
        return self.method(n)

    def method(self, n):
        for i in range(n):
            self.value += i
        self.value %= 1000
        return self.value

    @property
    def doubled(self):
        return self.value * 2

    @doubled.setter
    def doubled(self, value):
        self.value = value // 2

    @staticmethod
    def fixed(n):
        return n * 3

    @classmethod
    def make(cls, n):
        return cls(n)


class Derived(Base):
    def __new__(cls, value):
        self = super(Derived, cls).__new__(cls)
        self.extra = value
        return self

    def __init__(self, value):
        super(Derived, self).__init__(value)
        self.extra += 1

    def __getattr__(self, name):
        if name.startswith("made_"):
            return len(name)
        raise AttributeError(name)

    def method(self, n):
        return super(Derived, self).method(n) + self.made_up


class Descriptor(object):
    def __get__(self, instance, owner):
        return Base.fixed(4)

    def __set__(self, instance, value):
        Base.fixed(value)


class Holder(object):
    field = Descriptor()

    def __enter__(self):
        self.entered = True
        return self

    def __exit__(self, *exception):
        self.entered = False
        return False


class Mortal(object):
    """Dies by its last reference, or by the collector when it is in a ring."""

    def __init__(self, ring):
        self.other = self if ring else None

    def __del__(self):
        self.last = sum(range(20))


def on_dead(_):
    return sum(range(25))


def mortals(n):
    watched = []
    for _ in range(n):
        watched.append(weakref.ref(Mortal(False), on_dead))
    m = Mortal(False)
    watched.append(weakref.ref(m, on_dead))
    del m
    # Both are recorded at least here: when they run while the tracer does, nobody sees them.
    on_dead(None)
    Mortal(True).__del__()
    return len(watched)


def rings(n):
    for _ in range(n):
        Mortal(True)
    gc.collect(0)


def round_class():
    objects = [Base.make(i * 7919 % 101) for i in range(20)] + [Derived(i) for i in range(20)]
    objects.sort()
    made = objects[0] + objects[1]
    for o in objects:
        o(5)
        o.doubled = o.doubled + 2
    total = 0
    for x in made:
        total += x
    repr(objects[:10])
    len(set(objects))
    3 in objects[4]
    with Holder() as h:
        h.field = h.field
    try:
        made.missing
    except AttributeError:
        total += 1
    mortals(6)
    rings(4)


# ---- exec and eval: functions that are compiled and thrown away; the text is always the same here ----


SOURCE = """
def outer(n):
    total = 0
    for i in range(n):
        total += inner(i)
    return total

def inner(i):
    return (i * 3 +
            i % 7)

RESULT = outer(30)
"""


def round_exec():
    for _ in range(3):
        space = {}
        exec(compile(SOURCE, "<made>", "exec"), space)
        eval(compile("sum([f(i) for i in range(20)])", "<value>", "eval"), {"f": space["inner"]})
        space["outer"](12)


ROUNDS = {"recursive": round_recursive, "threaded": round_threaded, "generator": round_generator,
          "extension": round_extension, "class": round_class, "exec": round_exec}
if sys.version_info >= (3, 5):
    import loads_async

    ROUNDS["async"] = loads_async.round_async


# ---- passes ----


def work(one_round, steps):
    for _ in steps:
        one_round()


def main(name, mode, argument):
    one_round = ROUNDS[name]
    if mode == "record":
        recorder.record(work, one_round, argument)
    elif mode == "watch":
        recorder.watch(work, one_round, argument)
    elif mode == "work":
        recorder.repeat(work, one_round, int(argument))
    else:
        recorder.waiting(work, one_round, float(argument))


if __name__ == "__main__":
    main(*sys.argv[1:])
