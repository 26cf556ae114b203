/* SPDX-License-Identifier: Apache-2.0 */
/* For WebAssembly: the page's crypto.getRandomValues(), at most 256 bytes at once. */
#pragma once

#include <sys/types.h>
#include <unistd.h>

#define GRND_NONBLOCK 1

static inline ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	(void)flags;
	return getentropy(bytes, size) ? -1 : (ssize_t)size;
}
