/* SPDX-License-Identifier: Apache-2.0 */
/* Frames whose size nobody knows before they run. */
#include <alloca.h>
#include <string.h>

#include "burn.h"

NOINLINE void alloca_leaf(char *bytes, size_t size)
{
	memset(bytes, 1, size);
	burn();
	STAY;
}

NOINLINE void alloca_inner(size_t size)
{
	char *bytes = alloca(size);

	alloca_leaf(bytes, size);
	STAY;
}

NOINLINE void alloca_outer(size_t size)
{
	char *bytes = alloca(size);

	memset(bytes, 2, size);
	alloca_inner(size / 2);
	STAY;
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv, 5);

	for (size_t size = 100; before(end); size = size * 7 % 3001 + 100)
		alloca_outer(size);
	return 0;
}
