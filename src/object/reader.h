/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parsers of this folder get their bytes: a callback over pread or over memory. Nothing is mapped, because a
 * stranger can cut a file while it is mapped and the next read would be SIGBUS. */
#pragma once

#include "base/str.h"

struct reader {
	/* Exactly @size bytes from @offset. Return: 0 or -errno; -ENODATA when the source ends before. */
	int (*read)(void *self, void *dst, size_t size, uint64_t offset);
	void *self;
	uint64_t base; /* added to every offset: a reader may be a slice of another */
	uint64_t size; /* offsets at and above are refused without a call */
};

/** reader_of - over bytes in memory, borrowed. */
struct reader reader_of(const void *bytes, size_t size);

/** reader_slice - @size bytes of @in from @offset, cut to what @in has. */
struct reader reader_slice(const struct reader *in, uint64_t offset, uint64_t size);

/** reader_read - Return: 0, -ENODATA outside of the reader, or what the source says. */
int reader_read(const struct reader *in, void *dst, size_t size, uint64_t offset) warn_unused;

/**
 * reader_text - NUL-terminated text at @offset
 * @dst: @size bytes; the text is cut there, at the end of the reader, and always terminated
 *
 * Return: 0 and *out (borrowed from @dst), or -errno.
 */
int reader_text(const struct reader *in, uint64_t offset, char *dst, size_t size, struct str *out) warn_unused;

/* A buffer that slides over a reader, so that many small reads close to each other cost one call. */
struct reader_window {
	struct reader in;
	uint8_t *bytes;
	size_t cap, len;
	uint64_t at; /* where bytes[0] is in the reader */
	int error;   /* the first one; sticks */
};

int reader_window_init(struct reader_window *w, const struct reader *in, size_t cap) warn_unused;
void reader_window_release(struct reader_window *w);

/** reader_window_get - @size (at most cap) bytes at @offset, valid until the next call; NULL after setting w->error. */
const uint8_t *reader_window_get(struct reader_window *w, uint64_t offset, size_t size);
