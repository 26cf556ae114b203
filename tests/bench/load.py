#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python as it is used: objects, text, sorting, regular expressions, C extensions. Runs for about 10 s."""
import json
import re
import time
import zlib


class Order:
    def __init__(self, number):
        self.number, self.lines = number, [(f"item {i % 17}", i * 3 % 11) for i in range(40)]

    def sum(self):
        return sum(count for _, count in self.lines)


def text_of(orders):
    return json.dumps([{"number": o.number, "lines": o.lines, "sum": o.sum()} for o in orders])


def count_words(text):
    words = {}
    for word in re.findall(r"[a-z]+ \d+", text):
        words[word] = words.get(word, 0) + 1
    return sorted(words.items(), key=lambda pair: -pair[1])


def turn(seed):
    text = text_of([Order(seed * 7 + i) for i in range(100)])
    json.loads(text)
    return count_words(text), zlib.crc32(zlib.compress(text.encode()))


end = time.monotonic() + 10
seed = 0
while time.monotonic() < end:
    turn(seed)
    seed += 1
