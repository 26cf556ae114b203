# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Greenlets: greenlets.py CASE SECONDS (Python 2.7 and 3). A stack of `lineage` says to whom each of its frames belongs:

    main      list.sort or sorted (native), main_..
    greenlet a   functools.reduce (native), a_..
    greenlet b   min (native), b_..

All of them start and go on at changing depths, so the stack above a greenlet's entry is mostly somebody else's."""
from __future__ import print_function

import functools
import os
import random
import sys
import time

reduce = functools.reduce
chance = random.Random(1)


def spin(n=4000):
    t = 0
    for i in range(n):
        t += i
    return t


def until(seconds):
    # CPU time, not the clock's: on a busy machine a load gets a tenth of a CPU, and has to give as many samples.
    def used():
        return sum(os.times()[:2])

    begin, end = used(), time.time() + 15 * seconds
    while used() - begin < seconds and time.time() < end:
        yield None


# ---- whose frames are whose ----


def lineage(seconds):
    from greenlet import getcurrent, greenlet

    main = getcurrent()
    others = []

    def a_spin(*_):
        spin()
        if chance.random() < 0.3:
            others[chance.randrange(len(others))].switch()
        return spin()

    def a_deep(n):
        return a_deep(n - 1) if n else reduce(a_spin, range(4), 0)

    def a_run():
        while chance.random() < 0.95:
            reduce(lambda *_: a_deep(chance.randrange(12)), range(3), 0)
            main.switch()

    def b_spin(i):
        spin()
        if chance.random() < 0.3:
            others[chance.randrange(len(others))].switch()
        spin()
        return i

    def b_deep(n):
        return b_deep(n - 1) if n else min(range(4), key=b_spin)

    def b_run():
        while chance.random() < 0.95:
            min(range(3), key=lambda i: b_deep(chance.randrange(25)) or i)
            main.switch()

    def main_key(i):
        spin()
        if chance.random() < 0.5:
            while len(others) < 6:
                others.append(greenlet(chance.choice([a_run, b_run]), parent=main))
            others[chance.randrange(len(others))].switch()
            others[:] = [g for g in others if not g.dead]
        spin()
        return i

    def main_deep(n):
        return main_deep(n - 1) if n else sorted(range(4), key=main_key)

    while len(others) < 6:
        others.append(greenlet(chance.choice([a_run, b_run]), parent=main))
    for _ in until(seconds):
        sorted(range(3), key=lambda i: main_deep(chance.randrange(40)) and i)
        others[:] = [g for g in others if not g.dead]
        while len(others) < 6:
            others.append(greenlet(chance.choice([a_run, b_run]), parent=main))


# ---- nothing but switches ----


def switches(seconds):
    from greenlet import getcurrent, greenlet

    main = getcurrent()

    def ping():
        while True:
            main.switch()

    def deep_ping(n):
        return deep_ping(n - 1) if n else ping()

    one, two = greenlet(ping), greenlet(lambda: deep_ping(20))
    for _ in until(seconds):
        for _ in range(200):
            one.switch()
            two.switch()


# ---- as programs have them ----


def gevent_pool(seconds):
    import gevent
    import gevent.event
    import gevent.pool
    import gevent.queue

    jobs = gevent.queue.Queue(8)

    def produce():
        for i in until(seconds):
            jobs.put(spin(500))

    def consume():
        while True:
            jobs.get()
            spin(2000)
            gevent.sleep(0)

    def spawned():
        for _ in until(seconds):
            gevent.joinall([gevent.spawn(spin, 1500) for _ in range(5)])

    pool = gevent.pool.Pool(16)
    work = [pool.spawn(produce), pool.spawn(produce), pool.spawn(spawned)]
    for _ in range(8):
        pool.spawn(consume)
    gevent.joinall(work)


def gevent_server(seconds):
    from gevent import monkey

    monkey.patch_all()
    import socket

    import gevent
    from gevent.server import StreamServer

    def answer(connection, _address):
        file = connection.makefile("rwb")
        for line in file:
            spin(1500)
            file.write(line)
            file.flush()

    server = StreamServer(("127.0.0.1", 0), answer)
    server.start()

    def ask():
        with_it = socket.create_connection(("127.0.0.1", server.server_port))
        file = with_it.makefile("rwb")
        for _ in until(seconds):
            file.write(b"x" * 50 + b"\n")
            file.flush()
            file.readline()
            spin(500)

    gevent.joinall([gevent.spawn(ask) for _ in range(6)])


def eventlet_pool(seconds):
    import eventlet

    def consume(n):
        for _ in until(seconds):
            spin(1500)
            eventlet.sleep(0)

    pool = eventlet.GreenPool(8)
    for i in range(8):
        pool.spawn_n(consume, i)
    pool.waitall()


CASES = {"lineage": lineage, "switches": switches, "gevent_pool": gevent_pool, "gevent_server": gevent_server, "eventlet_pool": eventlet_pool}

if __name__ == "__main__":
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    CASES[sys.argv[1]](float(sys.argv[2]))
    print("done")
    sys.stdout.flush()
