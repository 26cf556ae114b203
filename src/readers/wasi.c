/* SPDX-License-Identifier: Apache-2.0 */
/* What wasi-libc and the page lack: a sort with a context, gzip and zstd. */
#include <stdlib.h>

#include "codec/gzip.h"
#include "codec/perf_data_int.h"

typedef int compare_fn(const void *a, const void *b, void *ctx);

struct sorting {
	char *items;
	size_t size;
	compare_fn *compare;
	void *ctx;
};

static void swap(char *a, char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = a[i];

		a[i] = b[i];
		b[i] = c;
	}
}

static void sift_down(const struct sorting *s, size_t at, size_t count)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		char *larger = s->items + child * s->size, *parent = s->items + at * s->size;

		if (child + 1 < count && s->compare(larger, larger + s->size, s->ctx) < 0) {
			child++;
			larger += s->size;
		}
		if (s->compare(parent, larger, s->ctx) >= 0)
			return;
		swap(parent, larger, s->size);
	}
}

/* Heap sort: no memory of its own, and n log n whatever the input is. Not stable, as glibc's is not promised to be. */
void qsort_r(void *items, size_t count, size_t size, compare_fn *compare, void *ctx);
void qsort_r(void *items, size_t count, size_t size, compare_fn *compare, void *ctx)
{
	const struct sorting s = { items, size, compare, ctx };

	for (size_t at = count / 2; at-- > 0;)
		sift_down(&s, at, count);
	for (size_t end = count; end-- > 1;) {
		swap(s.items, s.items + end * size, size);
		sift_down(&s, 0, end);
	}
}

/* The browser takes gzip off before (web/readers.js), as many layers as hearth convert does. What is packed once more
 * is not read by either. Nothing is written packed. */
int gzip_unpack(struct str bytes, size_t size_max, size_t ratio_max, struct buf *out)
{
	(void)bytes, (void)size_max, (void)ratio_max, (void)out;
	return -EBADMSG;
}

int gzip_pack(struct str bytes, int level, struct buf *out)
{
	(void)bytes, (void)level, (void)out;
	return -ENOMEM;
}

void perf_expander_release(struct perf_expander *e)
{
	(void)e;
}

int perf_data_expand(struct perf_data *d, struct perf_expander *e, struct cur c)
{
	(void)e;
	return perf_data_fail(
		d, c.pos, -ENOTSUP,
		"its records are compressed (perf record -z), which a page cannot expand; hearth convert can");
}
