/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that were read, written again and read again are the same fields. */
#include "fuzz.h"

#include "codec/wire.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(buf_release) struct buf copy = BUF_INIT(MIB(1));
	struct cur c = cur_of(data, size), d;
	struct wire_field f, g;

	if (size > KIB(64))
		return 0;
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
