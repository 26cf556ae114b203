/* SPDX-License-Identifier: Apache-2.0 */
/* A chain that runs through code without frame pointers: the libc's qsort calls back. */
#include "work.h"

NOINLINE int compare(const void *x, const void *y)
{
	burn(20000);
	return (*(const int *)x > *(const int *)y) - (*(const int *)x < *(const int *)y);
}

NOINLINE void sorter(int *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), compare);
	STAY;
}

int main(int argc, char **argv)
{
	const double deadline = now_s() + seconds_of(argc, argv, 2);
	static int numbers[4096];

	while (now_s() < deadline) {
		for (size_t i = 0; i < 4096; i++)
			numbers[i] = (int)(i * 2654435761u >> 7);
		sorter(numbers, 4096);
	}
	return 0;
}
