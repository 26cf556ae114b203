/* SPDX-License-Identifier: Apache-2.0 */
#include "store/columns.h"

#include "base/cur.h"
#include "base/divisor.h"
#include "base/wire.h"
#include "store/zigzag.h"

/* How a column of values is written. */
enum column_form {
	COLUMN_PLAIN,    /* one varint a row, none negative */
	COLUMN_SIGNED,   /* one zigzag varint a row */
	COLUMN_MULTIPLE, /* varint column, zigzag factor: that earlier column times the factor */
	COLUMN_SAME,     /* zigzag value: in every row */
	COLUMN_FORMS,
};

/* In front of the rows: no rows, which have times. Nothing else begins so. */
#define TIMES_IN_STEPS 1

void columns_release(struct columns *c)
{
	free(c->keys);
	free(c->times);
	free(c->values);
	*c = (struct columns){ 0 };
}

static int room(void *items, size_t *cap, size_t count, size_t size)
{
	void **at = items;
	void *grown;

	if (*at && *cap >= count)
		return 0;
	count = MAX(count, (size_t)16);
	grown = malloc(count * size); /* bounded by COLUMNS_ROWS_MAX; the old content is not kept */
	if (!grown)
		return -ENOMEM;
	free(*at);
	*at = grown;
	*cap = count;
	return 0;
}

int columns_room(struct columns *c, size_t count, size_t width)
{
	int r;

	if (count > COLUMNS_ROWS_MAX || width > MODEL_VALUE_TYPES_MAX || count * width > COLUMNS_ROWS_MAX)
		return -E2BIG;
	r = room(&c->keys, &c->keys_cap, count, sizeof(*c->keys));
	r = r ? r : room(&c->times, &c->times_cap, count, sizeof(*c->times));
	r = r ? r : room(&c->values, &c->values_cap, count * width, sizeof(*c->values));
	if (r < 0)
		return r;
	c->count = count;
	c->width = width;
	c->has_times = false;
	return 0;
}

/* Sorting: pairs of key and row number in one word, so that equal keys keep their order. */

static int word_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void permute(const struct columns *from, const uint64_t *order, struct columns *to)
{
	for (size_t i = 0; i < from->count; i++) {
		size_t row = (uint32_t)order[i];

		to->keys[i] = from->keys[row];
		to->times[i] = from->has_times ? from->times[row] : 0;
		for (size_t column = 0; column < from->width; column++)
			to->values[column * from->count + i] = from->values[column * from->count + row];
	}
}

int columns_sort(struct columns *c)
{
	scoped(columns_release) struct columns sorted = { 0 };
	scoped(freep) uint64_t *order = NULL;
	bool is_sorted = true;
	struct columns swap;
	int r;

	for (size_t i = 1; i < c->count && is_sorted; i++)
		is_sorted = c->keys[i - 1] <= c->keys[i];
	if (is_sorted)
		return 0;
	order = malloc(c->count * sizeof(*order));
	if (!order)
		return -ENOMEM;
	r = columns_room(&sorted, c->count, c->width);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->count; i++)
		order[i] = (uint64_t)c->keys[i] << 32 | i;
	qsort(order, c->count, sizeof(*order), word_order);
	permute(c, order, &sorted);
	sorted.has_times = c->has_times;
	swap = *c;
	*c = sorted;
	sorted = swap;
	return 0;
}

/* Writing */

static void add_varints(struct buf *out, const uint64_t *values, size_t count)
{
	uint8_t *start = buf_reserve(out, count * WIRE_VARINT_MAX), *at = start;

	if (!start)
		return;
	for (size_t i = 0; i < count; i++)
		at = wire_put_varint(at, values[i]);
	buf_commit(out, (size_t)(at - start));
}

static bool all_same(const int64_t *values, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (values[i] != values[0])
			return false;
	return true;
}

/* Whether @values are those of @base times one factor. */
static bool is_multiple(const int64_t *values, const int64_t *base, size_t count, int64_t *factor)
{
	size_t first = 0;
	int64_t product;

	while (first < count && !base[first])
		first++;
	if (first == count || (base[first] == -1 && values[first] == INT64_MIN) || values[first] % base[first])
		return false;
	*factor = values[first] / base[first];
	for (size_t i = 0; i < count; i++)
		if (__builtin_mul_overflow(base[i], *factor, &product) || product != values[i])
			return false;
	return true;
}

static bool add_as_multiple(const struct columns *c, size_t column, struct buf *out)
{
	const int64_t *values = c->values + column * c->count;
	int64_t factor = 0;

	for (size_t base = 0; base < column; base++) {
		if (!is_multiple(values, c->values + base * c->count, c->count, &factor))
			continue;
		buf_addc(out, COLUMN_MULTIPLE);
		wire_add_varint(out, base);
		wire_add_varint(out, zigzag(factor));
		return true;
	}
	return false;
}

static void add_column(const struct columns *c, size_t column, uint64_t *scratch, struct buf *out)
{
	const int64_t *values = c->values + column * c->count;
	bool is_signed = false;

	if (all_same(values, c->count)) {
		buf_addc(out, COLUMN_SAME);
		wire_add_varint(out, zigzag(values[0]));
		return;
	}
	if (add_as_multiple(c, column, out))
		return;
	for (size_t i = 0; i < c->count; i++)
		is_signed |= values[i] < 0;
	buf_addc(out, is_signed ? COLUMN_SIGNED : COLUMN_PLAIN);
	for (size_t i = 0; i < c->count; i++)
		scratch[i] = is_signed ? zigzag(values[i]) : (uint64_t)values[i];
	add_varints(out, scratch, c->count);
}

/* How many ns all times are multiples of; 0: a key's times are not in order, so that they cannot be written as steps.
 */
static uint64_t time_step(const struct columns *c)
{
	uint64_t step = 0, last = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (i && c->keys[i] != c->keys[i - 1])
			last = 0;
		if (c->times[i] == MODEL_NO_TIME)
			continue;
		if (c->times[i] < last)
			return 0;
		last = c->times[i];
		step = greatest_divisor(last, step);
	}
	return MAX(step, UINT64_C(1));
}

/* Each as what it is more than the one before it of its key. High parts, which are nearly all 0, and low bytes stand
 * apart: a sixth less once it is compressed. */
static void add_steps(const struct columns *c, uint64_t step, uint64_t *scratch, struct buf *out)
{
	uint64_t last = 0;
	uint8_t *low;

	wire_add_varint(out, step);
	for (size_t i = 0; i < c->count; i++) {
		uint64_t at = c->times[i] / step;

		if (i && c->keys[i] != c->keys[i - 1])
			last = 0;
		scratch[i] = 0;
		if (c->times[i] == MODEL_NO_TIME)
			continue;
		scratch[i] = at - last + 1;
		last = at;
	}
	low = buf_reserve(out, c->count);
	if (!low)
		return;
	for (size_t i = 0; i < c->count; i++) {
		low[i] = (uint8_t)scratch[i];
		scratch[i] >>= 8;
	}
	buf_commit(out, c->count);
	add_varints(out, scratch, c->count);
}

void columns_encode(const struct columns *c, struct buf *out)
{
	scoped(freep) uint64_t *scratch = malloc(MAX(c->count, (size_t)1) * sizeof(*scratch));
	uint64_t step = c->has_times ? time_step(c) : 0;
	uint32_t last = 0;

	if (c->count && step)
		wire_add_varint(out, TIMES_IN_STEPS);
	wire_add_varint(out, (uint64_t)c->count << 1 | c->has_times);
	if (!c->count)
		return;
	if (!scratch) {
		out->error = out->error ? out->error : -ENOMEM;
		return;
	}
	for (size_t i = 0; i < c->count; last = c->keys[i++]) {
		must(c->keys[i] >= last); /* columns_sort() comes first */
		scratch[i] = c->keys[i] - last;
	}
	add_varints(out, scratch, c->count);
	for (size_t i = 0; i < c->count && c->has_times && !step; i++)
		scratch[i] = c->times[i] + 1; /* MODEL_NO_TIME becomes 0 */
	if (step)
		add_steps(c, step, scratch, out);
	else if (c->has_times)
		add_varints(out, scratch, c->count);
	for (size_t column = 0; column < c->width; column++)
		add_column(c, column, scratch, out);
}

/* Reading */

static int read_keys(struct cur *in, size_t key_count, struct columns *c)
{
	uint64_t key = 0;

	for (size_t i = 0; i < c->count; i++) {
		uint64_t step = wire_varint(in);

		if (in->bad || step >= key_count || (key += step) >= key_count)
			return -EBADMSG;
		c->keys[i] = (uint32_t)key;
	}
	return 0;
}

static int read_multiple(struct cur *in, struct columns *c, size_t column)
{
	uint64_t base = wire_varint(in);
	int64_t factor = unzigzag(wire_varint(in)), *values = c->values + column * c->count;
	const int64_t *from;

	if (in->bad || base >= column)
		return -EBADMSG;
	from = c->values + base * c->count;
	for (size_t i = 0; i < c->count; i++)
		if (__builtin_mul_overflow(from[i], factor, &values[i]))
			return -EBADMSG;
	return 0;
}

static int read_column(struct cur *in, struct columns *c, size_t column)
{
	int64_t *values = c->values + column * c->count, value;
	uint8_t form = cur_u8(in);

	if (in->bad || form >= COLUMN_FORMS)
		return -EBADMSG;
	if (form == COLUMN_MULTIPLE)
		return read_multiple(in, c, column);
	if (form == COLUMN_SAME) {
		value = unzigzag(wire_varint(in));
		for (size_t i = 0; i < c->count; i++)
			values[i] = value;
	} else if (form == COLUMN_SIGNED) {
		for (size_t i = 0; i < c->count; i++)
			values[i] = unzigzag(wire_varint(in));
	} else {
		for (size_t i = 0; i < c->count; i++)
			values[i] = (int64_t)wire_varint(in);
	}
	return in->bad ? -EBADMSG : 0;
}

static int read_times(struct cur *in, struct columns *c)
{
	for (size_t i = 0; i < c->count; i++)
		c->times[i] = wire_varint(in) - 1; /* 0 becomes MODEL_NO_TIME */
	return in->bad ? -EBADMSG : 0;
}

static int read_steps(struct cur *in, struct columns *c)
{
	uint64_t step = wire_varint(in), last = 0;
	const uint8_t *low = cur_bytes(in, c->count);

	if (in->bad || !step)
		return -EBADMSG;
	for (size_t i = 0; i < c->count; i++) {
		uint64_t high = wire_varint(in), more;

		if (i && c->keys[i] != c->keys[i - 1])
			last = 0;
		if (in->bad || high > UINT64_MAX >> 8)
			return -EBADMSG;
		more = high << 8 | low[i];
		c->times[i] = MODEL_NO_TIME;
		if (!more)
			continue;
		if (__builtin_add_overflow(last, more - 1, &last) || __builtin_mul_overflow(last, step, &c->times[i]) ||
		    c->times[i] == MODEL_NO_TIME)
			return -EBADMSG;
	}
	return 0;
}

int columns_decode(struct str bytes, size_t key_count, size_t width, struct columns *c)
{
	struct cur in = cur_of(bytes.ptr, bytes.len);
	uint64_t head = wire_varint(&in);
	bool steps = head == TIMES_IN_STEPS;
	int r;

	if (steps)
		head = wire_varint(&in);
	if (in.bad || head >> 1 > cur_left(&in)) /* a row takes at least the byte of its key */
		return -EBADMSG;
	r = columns_room(c, head >> 1, width);
	if (r < 0 || !c->count)
		return r;
	c->has_times = head & 1;
	r = read_keys(&in, key_count, c);
	if (r == 0 && c->has_times)
		r = steps ? read_steps(&in, c) : read_times(&in, c);
	for (size_t column = 0; r == 0 && column < width; column++)
		r = read_column(&in, c, column);
	return r == 0 && (in.bad || cur_left(&in)) ? -EBADMSG : r;
}
