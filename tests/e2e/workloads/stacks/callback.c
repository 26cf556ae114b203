/* SPDX-License-Identifier: Apache-2.0 */
/* The libc's qsort in the middle of the stack. */
#include "stacks.h"

NOINLINE int compare(const void *x, const void *y)
{
	leaf();
	return *(const int *)x - *(const int *)y;
}

NOINLINE void sorter(int *numbers)
{
	qsort(numbers, 2, sizeof(*numbers), compare);
	STAY;
}

int main(int argc, char **argv)
{
	int numbers[2] = { argc, 1 };

	deadline(argc, argv);
	for (;;)
		sorter(numbers);
}
