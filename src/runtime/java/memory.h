/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process as the readers of HotSpot want it. It is hostile: every count and length that comes out of it
 * has a maximum where it is read. */
#pragma once

#include "base/base.h"

struct java_memory {
	/* Return: 0 when all @size bytes were read, -errno. As struct runtime_target's. */
	int (*read)(void *self, void *dst, uint32_t size, uint64_t at);
	void *self;
};

static inline int java_read(const struct java_memory *m, void *dst, uint32_t size, uint64_t at)
{
	return at ? m->read(m->self, dst, size, at) : -EFAULT;
}

static inline int java_read_word(const struct java_memory *m, uint64_t at, uint64_t *out)
{
	return java_read(m, out, sizeof(*out), at);
}

static inline uint16_t java_u16(const void *bytes, size_t at)
{
	uint16_t v;

	memcpy(&v, (const uint8_t *)bytes + at, sizeof(v));
	return v;
}

static inline uint32_t java_u32(const void *bytes, size_t at)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)bytes + at, sizeof(v));
	return v;
}

static inline uint64_t java_u64(const void *bytes, size_t at)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)bytes + at, sizeof(v));
	return v;
}
