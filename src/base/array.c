/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

int array_reserve_(void *items, size_t *cap, size_t want, size_t size)
{
	void *old, *grown;
	size_t bytes;

	if (want <= *cap)
		return 0;
	if (__builtin_mul_overflow(want, size, &bytes))
		return -ENOMEM;
	memcpy(&old, items, sizeof(old));
	grown = realloc(old, bytes);
	if (!grown)
		return -ENOMEM;
	memcpy(items, &grown, sizeof(grown));
	*cap = want;
	return 0;
}

int array_grow_(void *items, size_t *cap, size_t count, size_t size, size_t max)
{
	must(count <= *cap);
	if (count < *cap)
		return 0;
	if (count >= max)
		return -E2BIG;
	return array_reserve_(items, cap, MIN(MAX(*cap + *cap / 2, (size_t)16), max), size);
}

void array_trim_(void *items, size_t *cap, size_t count, size_t size)
{
	void *old, *smaller;

	must(count <= *cap);
	if (!count || count == *cap)
		return;
	memcpy(&old, items, sizeof(old));
	smaller = realloc(old, count * size); /* less than it is: cannot wrap */
	if (!smaller)
		return;
	memcpy(items, &smaller, sizeof(smaller));
	*cap = count;
}
