/* SPDX-License-Identifier: Apache-2.0 */
#include "object/reader.h"

static int read_bytes(void *self, void *dst, size_t size, uint64_t offset)
{
	memcpy(dst, (const uint8_t *)self + offset, size); /* reader_read() has checked the bounds */
	return 0;
}

struct reader reader_of(const void *bytes, size_t size)
{
	return (struct reader){ .read = read_bytes, .self = (void *)(uintptr_t)bytes, .size = bytes ? size : 0 };
}

struct reader reader_slice(const struct reader *in, uint64_t offset, uint64_t size)
{
	struct reader slice = *in;

	offset = MIN(offset, in->size);
	slice.base += offset; /* cannot wrap: reader sizes come from real files, base + size <= their size */
	slice.size = MIN(size, in->size - offset);
	return slice;
}

int reader_read(const struct reader *in, void *dst, size_t size, uint64_t offset)
{
	if (offset > in->size || size > in->size - offset)
		return -ENODATA;
	return size ? in->read(in->self, dst, size, in->base + offset) : 0;
}

int reader_text(const struct reader *in, uint64_t offset, char *dst, size_t size, struct str *out)
{
	size_t have = 0, want = 128;

	must(size > 0);
	if (offset >= in->size)
		return -ENODATA;
	/* Most names are short: a small read first, then larger ones. */
	for (;;) {
		size_t limit = (size_t)MIN(in->size - offset, (uint64_t)size - 1);
		size_t end = MIN(have + want, limit);
		const char *nul;
		int r = reader_read(in, dst + have, end - have, offset + have);

		if (r < 0)
			return r;
		nul = memchr(dst + have, 0, end - have);
		have = end;
		if (nul || have == limit) {
			size_t len = nul ? (size_t)(nul - dst) : have;

			dst[len] = 0;
			*out = str_n(dst, len);
			return 0;
		}
		want *= 8;
	}
}

int reader_window_init(struct reader_window *w, const struct reader *in, size_t cap)
{
	uint8_t *bytes = malloc(cap);

	if (!bytes)
		return -ENOMEM;
	*w = (struct reader_window){ .in = *in, .bytes = bytes, .cap = cap };
	return 0;
}

void reader_window_release(struct reader_window *w)
{
	free(w->bytes);
	*w = (struct reader_window){ 0 };
}

const uint8_t *reader_window_get(struct reader_window *w, uint64_t offset, size_t size)
{
	int r;

	if (w->error)
		return NULL;
	if (offset >= w->at && offset - w->at <= w->len && size <= w->len - (size_t)(offset - w->at))
		return w->bytes + (size_t)(offset - w->at);
	if (size > w->cap || offset > w->in.size || size > w->in.size - offset) {
		w->error = -ENODATA;
		return NULL;
	}
	w->at = offset;
	w->len = (size_t)MIN((uint64_t)w->cap, w->in.size - offset);
	r = reader_read(&w->in, w->bytes, w->len, offset);
	if (r < 0) {
		w->len = 0;
		w->error = r;
		return NULL;
	}
	return w->bytes;
}
