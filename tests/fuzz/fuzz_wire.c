/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that were read, written again and read again are the same fields; numbers read many at once are those that are
 * read one by one. */
#include "fuzz.h"

#include "base/wire.h"

static void copy_field(struct buf *out, const struct wire_field *f)
{
	wire_add_varint(out, f->number << 3 | f->type);
	if (f->type == WIRE_VARINT)
		wire_add_varint(out, f->value);
	else if (f->type == WIRE_BYTES) {
		wire_add_varint(out, wire_str(f).len);
		buf_adds(out, wire_str(f));
	} else {
		for (size_t i = 0; i < (f->type == WIRE_FIXED64 ? 8 : 4); i++)
			buf_addc(out, (char)(f->value >> (8 * i)));
	}
}

static void check_numbers(struct cur c, unsigned int last)
{
	uint64_t at_once[16] = { 0 }, one_by_one[16] = { 0 };
	struct wire_field f = { 0 }, g = { 0 };
	struct cur d = c;
	bool more = true;

	while (more) {
		wire_numbers(&c, at_once, last);
		while (d.pos < c.pos) {
			must(wire_next(&d, &g) && g.type == WIRE_VARINT && g.number <= last);
			one_by_one[g.number] = g.value;
		}
		must(d.pos == c.pos);
		more = wire_next(&c, &f);
		must(more == wire_next(&d, &g) && c.bad == d.bad);
	}
	must(!memcmp(at_once, one_by_one, sizeof(at_once)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf copy = BUF_INIT(MIB(1));
	struct cur c = cur_of(data, size), d;
	struct wire_field f, g;

	if (size > KIB(64))
		return 0;
	for (unsigned int last = 1; last < 16; last += 7)
		check_numbers(c, last);
	while (wire_next(&c, &f))
		copy_field(&copy, &f);
	must(!copy.error && copy.len <= size + 16); /* ten-byte tags lose bits, never grow */
	c = cur_of(data, size);
	d = cur_of(copy.ptr, copy.len);
	while (wire_next(&c, &f)) {
		must(wire_next(&d, &g));
		must(f.number == g.number && f.type == g.type && f.value == g.value);
		must(f.type != WIRE_BYTES || str_eq(wire_str(&f), wire_str(&g)));
		must(f.type != WIRE_VARINT || wire_varint_size(f.value) <= WIRE_VARINT_MAX);
	}
	must(!wire_next(&d, &g) && !d.bad);
	return 0;
}
