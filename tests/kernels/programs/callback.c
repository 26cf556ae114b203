/* SPDX-License-Identifier: Apache-2.0 */
/* The C library in the middle: qsort calls back. Two elements: one comparison, one shape of stack. */
#include "burn.h"

NOINLINE int callback_leaf(int a, int b)
{
	burn();
	STAY;
	return a < b ? -1 : a > b;
}

NOINLINE int callback_compare(const void *a, const void *b)
{
	int r = callback_leaf(*(const int *)a, *(const int *)b);

	STAY;
	return r;
}

NOINLINE void callback_sort(int *numbers)
{
	qsort(numbers, 2, sizeof(*numbers), callback_compare);
	STAY;
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv, 5);

	while (before(end)) {
		int numbers[2] = { 2, 1 };

		callback_sort(numbers);
		if (numbers[0] != 1)
			return 1;
	}
	return 0;
}
