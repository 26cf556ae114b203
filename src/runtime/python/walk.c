/* SPDX-License-Identifier: Apache-2.0 */
/* walk/walk_python.h, compiled for the host. */
#include "runtime/python/python_int.h"
#include "walk/walk_python.h"

enum walk_next python_walk_start(struct walk *w, const void *info)
{
	return walk_python_start(w, info, 0);
}

enum walk_next python_walk_step(struct walk *w, const void *info)
{
	(void)info; /* it has a copy */
	return walk_python_step(w);
}
