/* SPDX-License-Identifier: Apache-2.0 */
/* Names and lines of functions that the interpreter or baseline code runs, and of built-ins. The worker makes lines of
 * source positions, because a script's lines are found in its text. */
#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define TABLE_MAX NODEJS_LINES_TABLE_MAX

void nodejs_varint_add(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_addc(out, (char)(value | 0x80));
	buf_addc(out, (char)value);
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

void nodejs_line_add(struct nodejs_line_writer *w, int64_t offset, struct nodejs_place place)
{
	bool is_same = place.line == w->place.line && place.column == w->place.column;

	if (!place.line || is_same || offset < w->offset || w->is_full)
		return;
	w->is_full = w->out->len >= TABLE_MAX;
	if (w->is_full)
		return;
	nodejs_varint_add(w->out, (uint64_t)(offset - w->offset));
	nodejs_varint_add(w->out, zigzag((int64_t)place.line - w->place.line));
	nodejs_varint_add(w->out, zigzag((int64_t)place.column - w->place.column));
	w->offset = offset;
	w->place = place;
}

static int add_lines(const struct nodejs_version *version, struct cur table, const struct nodejs_lines *lines,
		     struct buf *out)
{
	struct nodejs_line_writer writer = { .out = out };
	struct nodejs_positions p;

	nodejs_positions_init(&p, version, table);
	while (nodejs_positions_next(&p) && !writer.is_full) {
		int64_t position = NODEJS_POSITION((uint64_t)p.position);

		if (position >= 0)
			nodejs_line_add(&writer, p.offset, nodejs_place_of(lines, (uint32_t)position));
	}
	return writer.is_full ? -E2BIG : p.in.bad ? -EBADMSG : 0;
}

/* The bytecode of a function, tagged, whatever it is compiled to. 0: it has none. */
static uint64_t bytecode_of(const struct nodejs_heap *h, uint64_t data)
{
	const struct nodejs_layout *l = h->layout;

	for (int turn = 0; turn < 3; turn++) {
		int type = data & ABI_NODEJS_TAG ? nodejs_type(h, data) : -ENOENT, at;

		if (type < 0)
			return 0;
		if (type == l->type_bytecode)
			return data;
		if (type == l->type_code)
			at = l->version.code_deopt;
		else if (type == l->type_interpreter_data)
			at = 8;
		else if (l->version.baseline_pair && !turn)
			at = 16;
		else
			return 0;
		if (nodejs_word(h, data - ABI_NODEJS_TAG + (uint64_t)at, &data) < 0)
			return 0;
	}
	return 0;
}

/* @code: the function's baseline code, tagged, or in V8 9 the pair that has it. */
static int add_baseline(const struct nodejs_heap *h, uint64_t code, uint64_t bytecode, struct cur positions,
			const struct nodejs_lines *lines, struct buf *out)
{
	scoped(buf_release) struct buf lengths = BUF_INIT(TABLE_MAX), bytes = BUF_INIT(TABLE_MAX);
	uint64_t table = 0;
	int r = h->layout->version.baseline_pair ? nodejs_word(h, code - ABI_NODEJS_TAG + 8, &code) : 0;

	if (r == 0 && nodejs_type(h, code) != h->layout->type_code)
		r = -EBADMSG;
	if (r == 0)
		r = nodejs_word(h, code - ABI_NODEJS_TAG + h->layout->version.code_positions, &table);
	if (r == 0)
		r = nodejs_bytes(h, table, TABLE_MAX, &lengths);
	if (r == 0)
		r = nodejs_bytecode(h, bytecode, &bytes);
	if (r == 0)
		r = nodejs_baseline_lines(h->layout, cur_of(bytes.ptr, bytes.len), cur_of(lengths.ptr, lengths.len),
					  positions, lines, out);
	return r;
}

/* V8 can make a function's table when it is first asked for; Node.js has each isolate make all of them at once (V8:
 * CpuProfiler::UseDetailedSourcePositionsForProfiling()), another program that contains V8 may not. Return: 0 with all
 * lines; -EAGAIN: they may be had later; -E2BIG: those of its first instructions; other errors: there are none. */
static int find_lines(const struct nodejs_heap *h, const struct nodejs_function *f, uint64_t code, struct buf *out)
{
	scoped(buf_release) struct buf table = BUF_INIT(TABLE_MAX);
	uint64_t bytecode = bytecode_of(h, f->data), positions;
	const struct nodejs_lines *ends;
	int r;

	if (!bytecode ||
	    nodejs_word(h, bytecode - ABI_NODEJS_TAG + h->layout->version.bytecode_positions, &positions) < 0)
		return -EAGAIN;
	r = positions & ABI_NODEJS_TAG ? nodejs_bytes(h, positions, TABLE_MAX, &table) : -EAGAIN;
	if (r < 0)
		return r == -E2BIG ? -ENOTSUP : -EAGAIN;
	ends = nodejs_script_lines(h, f->script);
	if (!ends)
		return -EAGAIN;
	if (!ends->length)
		return -ENODATA;
	return code ? add_baseline(h, code, bytecode, cur_of(table.ptr, table.len), ends, out)
		    : add_lines(&h->layout->version, cur_of(table.ptr, table.len), ends, out);
}

/* @code: as there; 0: the interpreter runs it. *is_short: some or all lines are not there; *may_come: not yet. */
static int read_lines(const struct nodejs_heap *h, const struct nodejs_function *f, uint64_t code, struct buf *room,
		      bool *is_short, bool *may_come)
{
	scoped(buf_release) struct buf lines = BUF_INIT(TABLE_MAX + 32);
	int r = f->script ? find_lines(h, f, code, &lines) : 0; /* a built-in function has none */

	if (r == 0 || r == -E2BIG)
		buf_add(room, lines.ptr, lines.len);
	*is_short = r < 0;
	*may_come = r == -EAGAIN;
	return room->error;
}

bool nodejs_is_sfi(const struct runtime_target *t, const struct abi_nodejs *info, uint64_t map)
{
	uint16_t type = 0;

	if (map == info->sfi_map)
		return true;
	return info->type_sfi && walk_nodejs_is_object(map) &&
	       t->read(t->self, &type, sizeof(type), map - ABI_NODEJS_TAG + ABI_NODEJS_MAP_TYPE) == 0 &&
	       type == info->type_sfi;
}

uint64_t nodejs_guard(const struct runtime_target *t, const struct abi_nodejs *info, const __u64 *words)
{
	__u64 at = walk_nodejs_id_at(info, words), id = 0;

	if (at && t->read(t->self, &id, sizeof(id), at) < 0)
		id = 0;
	return walk_nodejs_guard(info, words, id);
}

/* @key: of the SharedFunctionInfo; tagged, when its baseline code runs, whose address then goes to *code. */
static int check(const struct runtime_target *t, const struct abi_nodejs *info, uint64_t key, uint64_t cookie,
		 __u64 words[ABI_NODEJS_SFI_WORDS], uint64_t *code)
{
	int r = t->read(t->self, words, ABI_NODEJS_SFI_BYTES, key & ~(uint64_t)ABI_NODEJS_TAG);

	if (r < 0)
		return r;
	*code = key & ABI_NODEJS_TAG ? words[info->sfi_data / 8 & 7] : 0;
	return nodejs_is_sfi(t, info, words[0]) && walk_nodejs_cookie(nodejs_guard(t, info, words), *code) == cookie
		       ? 0
		       : -ESTALE;
}

static int read_plain(uint64_t key, struct buf *room, struct runtime_function *out)
{
	size_t at = room->len;

	if (key != ABI_NODEJS_REGEXP)
		return -ENOENT;
	buf_adds(room, STR(NODEJS_REGEXP));
	if (room->error)
		return room->error;
	*out = (struct runtime_function){ .name = str_n(room->ptr + at, room->len - at) };
	return 0;
}

int nodejs_read_name(const struct runtime_target *target, const void *info_bytes, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out)
{
	struct nodejs_process *process = target->of_process;
	const struct abi_nodejs *info = info_bytes;
	uint64_t left = NODEJS_READS_MAX;
	struct nodejs_heap h = { .target = target, .process = process, .left = &left };
	__u64 words[ABI_NODEJS_SFI_WORDS] = { 0 }, again[ABI_NODEJS_SFI_WORDS] = { 0 };
	struct nodejs_function f;
	bool is_short = false, may_come = false;
	size_t lines_at;
	uint64_t code;
	int r;

	if (key < ABI_NODEJS_PLAIN_MAX)
		return read_plain(key, room, out);
	if (!process)
		return -ENOMEM;
	h.layout = &process->layout;
	r = check(target, info, key, cookie, words, &code);
	if (r == 0)
		r = nodejs_function_read(&h, words, room, &f);
	lines_at = room->len;
	if (r == 0)
		r = read_lines(&h, &f, code, room, &is_short, &may_come);
	if (r == 0 && !left) /* what is there may lack something */
		r = -E2BIG;
	if (r == 0)
		r = check(target, info, key, cookie, again, &code);
	if (r < 0)
		return r;
	*out = (struct runtime_function){
		.file = str_n(room->ptr + f.file_at, f.file_len),
		.name = str_n(room->ptr + f.name_at, f.name_len),
		.first_line = f.first.line,
		.first_column = f.first.column,
		.map_id = f.map_id,
		.name_column = f.name_column,
		.is_cut = f.is_cut,
		.lacks_lines = may_come || f.lacks_lines,
		.lines = { (const uint8_t *)room->ptr + lines_at, (uint32_t)(room->len - lines_at) },
		.lines_whole = (uint32_t)(room->len - lines_at) + is_short,
		.version_major = (uint8_t)info->version_major,
		.version_minor = (uint8_t)info->version_minor,
	};
	return 0;
}

/* A difference with its sign in the lowest bit, added to *value, which then is from 1 on. */
static bool take_change(struct cur *in, int64_t *value)
{
	uint64_t change;

	if (cur_uvarint(in, &change) < 0 || change > UINT32_MAX)
		return false;
	*value += (int64_t)(change >> 1) ^ -(int64_t)(change & 1);
	return *value > 0 && *value <= INT32_MAX;
}

/* In front of the first place of a table is the function's start, behind the last one of a table that goes on nobody
 * knows. */
static struct nodejs_place place_at(const struct runtime_function *function, uint32_t position)
{
	struct cur in = cur_of(function->lines.bytes, function->lines.size);
	struct nodejs_place found = { function->first_line, function->first_column };
	uint64_t at = 0, step;
	int64_t line = 0, column = 0;

	if (position == ABI_NODEJS_NOWHERE)
		return found;
	while (in.pos < in.end) {
		if (cur_uvarint(&in, &step) < 0 || step > UINT32_MAX || at + step > position)
			return found;
		at += step;
		if (!take_change(&in, &line) || !take_change(&in, &column))
			return found;
		found = (struct nodejs_place){ (int32_t)line, (int32_t)column };
	}
	return function->lines.size < function->lines_whole ? (struct nodejs_place){ 0 } : found;
}

int32_t nodejs_line(const struct runtime_function *function, uint32_t position)
{
	return place_at(function, position).line;
}

int32_t nodejs_column(const struct runtime_function *function, uint32_t position)
{
	return place_at(function, position).column;
}
