# SPDX-License-Identifier: Apache-2.0
"""A request that takes 0.1 s of CPU time."""
import time


def wsgi_leaf(n):
    t = 0
    for i in range(n):
        t += i
    return t


def wsgi_work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        wsgi_leaf(3000)


def application(environ, start_response):
    wsgi_work(0.1)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
