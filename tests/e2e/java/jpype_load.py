# SPDX-License-Identifier: Apache-2.0
"""A Python program with a JVM inside: jpype_load.py LIBJVM CLASSES SECONDS. Python calls Java, which calls Python back."""
import sys
import time

import jpype

jpype.startJVM(sys.argv[1], "-Xmx64m", classpath=[sys.argv[2]])
Calls = jpype.JClass("Calls")


@jpype.JImplements("Calls$Back")
class Back:
    @jpype.JOverride
    def back(self, n):
        return innermost(n)


def innermost(n):
    total = 0
    for i in range(n % 300):
        total += i * i % 7
    return total


def into_java(n):
    return Calls.turn(n)


def there_and_back(back, n):
    return Calls.twice(back, n)


def main(seconds):
    end, back, n = time.monotonic() + seconds, Back(), 0
    while time.monotonic() < end:
        n += 1
        into_java(n)
        for i in range(20):
            there_and_back(back, n + i)


main(float(sys.argv[3]))
