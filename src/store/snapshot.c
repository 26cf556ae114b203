/* SPDX-License-Identifier: Apache-2.0 */
/* docs/formats/snapshot.md: magic, sizes, a message with what it is, and the window as one zstd frame. */
#include "store/snapshot.h"

#include "base/wire.h"
#include "codec/window_codec.h"
#include "store/pack.h"
#include "store/zigzag.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC "hearth-snapshot\n"
#define VERSION 1
#define FIXED_SIZE 48 /* magic, version, size of the head, its hash, size of the profile, its hash */
#define LEVEL 6

enum field {
	FIELD_CREATED = 1,
	FIELD_FROM,
	FIELD_TO,
	FIELD_PROFILES,
	FIELD_DEFAULT,
	FIELD_TITLE,
	FIELD_SELECTION,
	FIELD_SERVICE,
	FIELD_TYPE,
	FIELD_COLUMN,
};

enum { COLUMN_TYPE = 1, COLUMN_UNIT, COLUMN_TOTAL };

void snapshot_set_columns(const struct model *m, struct snapshot_head *out)
{
	out->column_count = m->value_type_count;
	out->default_column = m->value_type_count ? model_default_value(m) : 0;
	for (size_t c = 0; c < m->value_type_count; c++) {
		struct snapshot_column *column = &out->columns[c];

		*column = (struct snapshot_column){ .type = model_string(m, m->value_types[c].type),
						    .unit = model_string(m, m->value_types[c].unit) };
		for (size_t i = 0; i < m->samples_count; i++)
			column->total = saturating_add(column->total, model_values(m, &m->samples[i])[c]);
	}
}

/* Writing */

static bool fits(const struct snapshot_head *head)
{
	bool fine = head->title.len <= SNAPSHOT_TITLE_MAX && head->selection.len <= SNAPSHOT_TEXT_MAX &&
		    head->service.len <= SNAPSHOT_TEXT_MAX && head->type.len <= SNAPSHOT_TEXT_MAX &&
		    head->column_count <= SNAPSHOT_COLUMNS_MAX;

	for (size_t i = 0; fine && i < head->column_count; i++)
		fine = head->columns[i].type.len <= SNAPSHOT_TEXT_MAX && head->columns[i].unit.len <= SNAPSHOT_TEXT_MAX;
	return fine;
}

static int add_column(const struct snapshot_column *column, struct buf *out)
{
	scoped(buf_release) struct buf row = BUF_INIT(SNAPSHOT_FRONT_MAX);

	wire_add_bytes(&row, COLUMN_TYPE, column->type);
	wire_add_bytes(&row, COLUMN_UNIT, column->unit);
	wire_add_number(&row, COLUMN_TOTAL, zigzag(column->total));
	wire_add_bytes(out, FIELD_COLUMN, buf_str(&row));
	return row.error;
}

static int encode_head(const struct snapshot_head *head, struct buf *out)
{
	int r = fits(head) ? 0 : -E2BIG;

	if (r < 0)
		return r;
	wire_add_number(out, FIELD_CREATED, head->created_ns);
	wire_add_number(out, FIELD_FROM, head->from_ns);
	wire_add_number(out, FIELD_TO, head->to_ns);
	wire_add_number(out, FIELD_PROFILES, head->profiles);
	wire_add_number(out, FIELD_DEFAULT, head->default_column);
	wire_add_bytes(out, FIELD_TITLE, head->title);
	wire_add_bytes(out, FIELD_SELECTION, head->selection);
	wire_add_bytes(out, FIELD_SERVICE, head->service);
	wire_add_bytes(out, FIELD_TYPE, head->type);
	for (size_t i = 0; r == 0 && i < head->column_count; i++)
		r = add_column(&head->columns[i], out);
	return r ? r : out->error;
}

static void add_le(struct buf *out, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_addc(out, (char)(value >> (8 * i)));
}

int snapshot_encode(const struct snapshot_head *head, const struct window *w, struct buf *out)
{
	scoped(buf_release) struct buf front = BUF_INIT(SNAPSHOT_FRONT_MAX - FIXED_SIZE);
	scoped(buf_release) struct buf plain = BUF_INIT(SNAPSHOT_PLAIN_MAX);
	scoped(buf_release) struct buf packed = BUF_INIT(SNAPSHOT_PLAIN_MAX);
	int r = encode_head(head, &front);

	r = r ? r : codec_window.encode(w, &plain);
	r = r ? r : pack_compress(buf_str(&plain), LEVEL, &packed);
	if (r < 0)
		return r;
	if (FIXED_SIZE + front.len + packed.len > SNAPSHOT_FILE_MAX)
		return -E2BIG;
	buf_adds(out, STR(MAGIC));
	add_le(out, VERSION, 4);
	add_le(out, front.len, 4);
	add_le(out, XXH3_64bits(front.ptr, front.len), 8);
	add_le(out, packed.len, 8);
	add_le(out, XXH3_64bits(packed.ptr, packed.len), 8);
	buf_adds(out, buf_str(&front));
	buf_adds(out, buf_str(&packed));
	return out->error;
}

/* Reading */

static void read_column(struct cur c, struct snapshot_head *out, struct cur *outer)
{
	struct snapshot_column column = { .type = STR(""), .unit = STR("") };
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number == COLUMN_TYPE && wire_fits(&c, &f, WIRE_BYTES))
			column.type = wire_str(&f);
		else if (f.number == COLUMN_UNIT && wire_fits(&c, &f, WIRE_BYTES))
			column.unit = wire_str(&f);
		else if (f.number == COLUMN_TOTAL && wire_fits(&c, &f, WIRE_VARINT))
			column.total = unzigzag(f.value);
	}
	outer->bad |= c.bad || out->column_count == SNAPSHOT_COLUMNS_MAX;
	if (!outer->bad)
		out->columns[out->column_count++] = column;
}

static void read_number(const struct wire_field *f, struct snapshot_head *out)
{
	switch (f->number) {
	case FIELD_CREATED:
		out->created_ns = f->value;
		break;
	case FIELD_FROM:
		out->from_ns = f->value;
		break;
	case FIELD_TO:
		out->to_ns = f->value;
		break;
	case FIELD_PROFILES:
		out->profiles = f->value;
		break;
	default:
		out->default_column = (size_t)f->value;
	}
}

static void read_text(const struct wire_field *f, struct snapshot_head *out)
{
	struct str *const to[] = { &out->title, &out->selection, &out->service, &out->type };

	*to[f->number - FIELD_TITLE] = wire_str(f);
}

static int read_head(struct str bytes, struct snapshot_head *out)
{
	struct snapshot_head head = { .title = STR(""), .selection = STR(""), .service = STR(""), .type = STR("") };
	struct cur c = cur_of(bytes.ptr, bytes.len);
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number >= FIELD_CREATED && f.number <= FIELD_DEFAULT && wire_fits(&c, &f, WIRE_VARINT))
			read_number(&f, &head);
		else if (f.number >= FIELD_TITLE && f.number <= FIELD_TYPE && wire_fits(&c, &f, WIRE_BYTES))
			read_text(&f, &head);
		else if (f.number == FIELD_COLUMN && wire_fits(&c, &f, WIRE_BYTES))
			read_column(f.bytes, &head, &c);
	}
	if (c.bad || !fits(&head) || head.default_column > (head.column_count ? head.column_count - 1 : 0))
		return -EBADMSG;
	*out = head;
	return 0;
}

struct packed {
	size_t at;
	uint64_t hash;
};

/* The fixed part, and where the two others are. */
static int read_front(struct str front, uint64_t file_size, struct snapshot_head *out, struct packed *packed)
{
	struct cur c = cur_of(front.ptr, front.len), head;
	const uint8_t *magic = cur_bytes(&c, sizeof(MAGIC) - 1);
	uint32_t version = cur_le32(&c), head_size = cur_le32(&c);
	uint64_t hash = cur_le64(&c), packed_size = cur_le64(&c), packed_hash = cur_le64(&c);

	if (c.bad || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0)
		return -EBADMSG;
	if (version != VERSION)
		return version > VERSION ? -ENOTSUP : -EBADMSG;
	head = cur_sub(&c, head_size);
	if (head.bad || FIXED_SIZE + (uint64_t)head_size > SNAPSHOT_FRONT_MAX ||
	    file_size < FIXED_SIZE + (uint64_t)head_size || file_size - FIXED_SIZE - head_size != packed_size ||
	    XXH3_64bits(head.pos, head_size) != hash)
		return -EBADMSG;
	*packed = (struct packed){ FIXED_SIZE + head_size, packed_hash };
	return read_head(cur_rest(&head), out);
}

int snapshot_decode_head(struct str front, uint64_t file_size, struct snapshot_head *out)
{
	struct packed packed;

	return read_front(front, file_size, out, &packed);
}

int snapshot_decode(struct str file, struct snapshot_head *out, struct window *w)
{
	scoped(buf_release) struct buf plain = BUF_INIT(SNAPSHOT_PLAIN_MAX);
	struct snapshot_head head;
	struct packed packed = { 0 };
	struct str bytes;
	int r = read_front(file, file.len, &head, &packed);

	if (r < 0)
		return r;
	bytes = str_skip(file, packed.at);
	r = XXH3_64bits(bytes.ptr, bytes.len) == packed.hash ? pack_expand(bytes, &plain) : -EBADMSG;
	r = r ? r : codec_window.decode(buf_str(&plain), w, NULL);
	if (r == 0)
		*out = head;
	return r;
}
