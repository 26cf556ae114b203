#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""rotated.py FUNCTIONS > rotated.c: a program with many functions, each with a frame of its own; one of them runs.

check_budget.py compiles it once and makes many files of it that differ in their build id.
"""
import sys

count = int(sys.argv[1])
print('/* Made by rotated.py. */\n#include "stacks.h"\n\nlong outside(long a, long b);')
for i in range(count):
    work = "leaf();" if i == count // 2 else "STAY;"
    print(f"""NOINLINE long function_{i}(long a, long b, long c, long d)
{{
	char room[{16 + i * 8 % 240}];
	long e = outside(a, b), f = outside(c, d), g;

	KEEP(room);
	{work}
	g = outside(e, a);
	if (g > {i})
		return outside(g, b) + a * b * c * d * e * f;
	return (outside(a, b) + g * c) * d + e + f;
}}
""")
print(f"""NOINLINE long outside(long a, long b)
{{
	STAY;
	return a ^ b;
}}

int main(int argc, char **argv)
{{
	deadline(argc, argv);
	for (long x = 1;; x++)
		KEEP(function_{count // 2}(x, x, x, x));
}}""")
