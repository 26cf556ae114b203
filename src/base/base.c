/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdio.h>
#include <unistd.h>

void must_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "hearth: bug at %s:%d: %s\n", file, line, condition);
	abort();
}

void freep(void *pointer_to_pointer)
{
	void *p;

	memcpy(&p, pointer_to_pointer, sizeof(p));
	free(p);
}

void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
