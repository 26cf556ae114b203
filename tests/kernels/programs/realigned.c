/* SPDX-License-Identifier: Apache-2.0 */
/* A stack re-aligned by the function itself, with arguments on the stack, so that gcc on x86-64 needs a register beside
 * the frame pointer to find them (CFA by an expression), and the plain form above it. */
#include <alloca.h>

#include "burn.h"

struct line {
	_Alignas(64) volatile long cells[8];
};

NOINLINE void realigned_leaf(struct line *line)
{
	line->cells[0] += 1;
	burn();
	STAY;
}

NOINLINE long realigned_many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	struct line line = { .cells = { a, b, c, d, e, f, g, h } };
	volatile char *bytes = alloca((size_t)(i + j));

	bytes[0] = 1;
	realigned_leaf(&line);
	STAY;
	return line.cells[0] + i + j + bytes[0];
}

NOINLINE long realigned_plain(long n)
{
	struct line line = { .cells = { n } };
	long sum;

	sum = realigned_many(n, 2, 3, 4, 5, 6, 7, 8, n + 9, 10);
	line.cells[1] = sum;
	STAY;
	return line.cells[0] + line.cells[1];
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv, 5);
	long sum = 0;

	while (before(end))
		sum += realigned_plain(argc);
	return sum == 0;
}
