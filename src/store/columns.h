/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one profile as packed columns: key, optional time offset, values. docs/formats/store.md. A pure codec:
 * what it reads may come from a damaged file. */
#pragma once

#include "base/buf.h"
#include "model/model.h"

struct columns {
	size_t count, width;
	bool has_times;
	uint32_t *keys;  /* rows of the dictionary's keys, ascending; the same key may come twice */
	uint64_t *times; /* valid when has_times */
	int64_t *values; /* column after column: values[column * count + row] */
	size_t keys_cap, times_cap, values_cap;
};

#define COLUMNS_ROWS_MAX ((size_t)1 << 26)

void columns_release(struct columns *c); /* a zeroed one is fine */
/** columns_room - make room for @count rows of @width values; the content is undefined. Return: 0, -ENOMEM, -E2BIG. */
int columns_room(struct columns *c, size_t count, size_t width) warn_unused;

/** columns_sort - rows by key, equal keys as they were. Return: 0 or -ENOMEM. */
int columns_sort(struct columns *c) warn_unused;

/** columns_encode - append the packed form. Errors stick to @out. */
void columns_encode(const struct columns *c, struct buf *out);

/**
 * columns_decode - read the packed form
 * @key_count: keys are below this
 * @width: columns of values expected
 * @c: its memory is used again
 *
 * Return: 0, -EBADMSG, -E2BIG, -ENOMEM; on failure the content of @c is undefined.
 */
int columns_decode(struct str bytes, size_t key_count, size_t width, struct columns *c) warn_unused;
