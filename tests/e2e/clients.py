# SPDX-License-Identifier: Apache-2.0
"""Clients that ask a server for as long as hearth records it."""
import http.client
import random
import threading
from collections import Counter


def under_clients(recorder, ask, count, seconds):
    """@ask(dice): one request of one of @count clients, each with dice of its own; whether, or with which status, it was answered. An
    exception of the connection is no answer. Waits for the end of @recorder, @seconds at most.
    Return: (what the recorder said, good answers, Counter of the others)."""
    good, other = [0] * count, Counter()

    def client(number):
        dice = random.Random(number)
        while recorder.poll() is None:
            try:
                status = ask(dice)
            except (OSError, http.client.HTTPException) as e:
                status = type(e).__name__
            is_good = status in (True, 200)
            good[number] += is_good
            other[status] += not is_good

    threads = [threading.Thread(target=client, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    said = recorder.communicate(timeout=seconds)[1]
    for t in threads:
        t.join()
    return said, sum(good), +other
