# SPDX-License-Identifier: Apache-2.0
"""known_outer > known_middle, eight times > known_leaf, where nearly all time goes. Writes a file when the first round is done."""
import sys


def known_leaf():
    total = 0
    for i in range(20000):
        total += i & 7
    return total


def known_middle(depth):
    return known_middle(depth - 1) if depth > 1 else known_leaf()


def known_outer():
    return known_middle(8)


known_outer()
open(sys.argv[1], "w").close()
while known_outer():
    pass
