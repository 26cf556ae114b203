/* SPDX-License-Identifier: Apache-2.0 */
/* All that attaching to one CPython process read, so that it can be done again without the process: attach_tool
 *--record writes it, fuzz_python_attach.c and python_attach_test.c read it.
 *
 *	u64 number[17]   what probing had found, in the order of the fields below, and the bias
 *	then per read    u64 address, u16 size, bytes */
#pragma once

#include "base/cur.h"
#include "runtime/python/python_int.h"

#define RECORDING_NUMBERS 17

static inline void recording_numbers(const struct python_binary *b, uint64_t bias, uint64_t out[RECORDING_NUMBERS])
{
	const uint64_t numbers[RECORDING_NUMBERS] = {
		b->major,      (uint64_t)b->key.kind, b->minor,     b->micro, b->runtime,   b->current, b->interp_head,
		b->key.at,     (uint64_t)b->tls.kind, b->tls.value, b->none,  b->none_slot, b->cleanup, b->code_type,
		b->data_start, b->data_end,           bias,
	};

	memcpy(out, numbers, sizeof(numbers));
}

struct recording {
	struct python_binary binary;
	uint64_t bias;
	struct cur pieces;
	size_t reads;
};

/* Return: false when it is cut off before the pieces. */
static inline bool recording_open(struct cur in, uint16_t machine, struct recording *out)
{
	struct python_binary *b = &out->binary;
	uint64_t n[RECORDING_NUMBERS];

	for (size_t i = 0; i < RECORDING_NUMBERS; i++)
		n[i] = cur_le64(&in);
	*out = (struct recording){ .pieces = in, .bias = n[16] };
	b->machine = machine;
	b->major = (uint8_t)n[0];
	b->key.kind = n[1] % 3;
	b->minor = (uint8_t)n[2];
	b->micro = (uint8_t)n[3];
	b->runtime = n[4];
	b->current = n[5];
	b->interp_head = n[6];
	b->key.at = n[7];
	b->tls.kind = n[8] % 4;
	b->tls.value = n[9];
	b->none = n[10];
	b->none_slot = n[11];
	b->cleanup = n[12];
	b->code_type = n[13];
	b->data_start = n[14];
	b->data_end = n[15];
	b->is_stripped = !b->runtime && b->major == 3 && b->minor >= 7;
	b->version = python_version_find(b->major, b->minor, b->micro);
	return !in.bad;
}

/* As struct runtime_target wants it: what was read then, and nothing else. */
static inline int recording_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct recording *r = self;
	struct cur c = r->pieces;

	r->reads++;
	while (cur_left(&c)) {
		uint64_t start = cur_le64(&c);
		uint16_t length = cur_le16(&c);
		const uint8_t *bytes = cur_bytes(&c, length);

		if (!bytes || at < start || at - start > length || size > length - (at - start))
			continue;
		memcpy(dst, bytes + (at - start), size);
		return 0;
	}
	return -EFAULT;
}
