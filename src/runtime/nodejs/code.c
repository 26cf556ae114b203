/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code: which code object an address lies in, and which functions the compiler inlined there. What one address
 * says is read at its first sight and kept as two lists, for the address as a return address and as the top frame's:
 *
 *	count, then for each function, leaf first: line and column, first line and column, number of the source map,
 *	column of the name, sizes of file and name (varints), their bytes
 *
 * Source: V8, src/codegen/source-position.h, src/objects/code.h, src/objects/deoptimization-data.h. */
#include <inttypes.h>

#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define SEARCH_MAX KIB(512) /* bytes in front of an address that are searched for its code object */
#define SEARCH_PART KIB(2)
#define CODE_ALIGNMENT 32
#define TABLE_MAX MIB(1)
#define INLINED_MAX 4096

struct code {
	uint64_t at; /* the Code, no tag */
	uint64_t start, size;
	uint32_t flags;
	uint64_t deopt, positions;
};

static int read_u32(const struct nodejs_heap *h, uint64_t at, uint32_t *out)
{
	return nodejs_read(h, out, sizeof(*out), at);
}

/* The code object that lies at @at, if it has @pc. Return: 0; -ENOENT: it is none. */
static int code_at(const struct nodejs_heap *h, uint64_t at, uint64_t pc, struct code *out)
{
	const struct nodejs_version *v = &h->layout->version;
	struct code c = { .at = at, .start = at + (uint64_t)h->layout->stream_start };
	uint64_t tagged;
	uint32_t size;

	if (v->stream_code) {
		if (nodejs_word(h, at + v->stream_code, &tagged) < 0 || !walk_nodejs_is_object(tagged))
			return -ENOENT;
		c.at = tagged - ABI_NODEJS_TAG;
		if (nodejs_type(h, tagged) != h->layout->type_code ||
		    nodejs_word(h, c.at + v->code_start, &c.start) < 0)
			return -ENOENT;
	}
	if (read_u32(h, c.at + v->code_size, &size) < 0 || pc - c.start >= size)
		return -ENOENT;
	c.size = size;
	if (read_u32(h, c.at + v->code_flags, &c.flags) < 0 || nodejs_word(h, c.at + v->code_deopt, &c.deopt) < 0 ||
	    nodejs_word(h, c.at + v->code_positions, &c.positions) < 0)
		return -ENOENT;
	*out = c;
	return 0;
}

/* The map of another isolate is known by what it says, and by its own map, which is its own map. */
static bool is_other_code_map(const struct nodejs_heap *h, uint64_t map)
{
	uint64_t meta, again;
	uint16_t type;

	return nodejs_read(h, &type, sizeof(type), map - ABI_NODEJS_TAG + ABI_NODEJS_MAP_TYPE) == 0 &&
	       type == h->layout->type_code && nodejs_word(h, map - ABI_NODEJS_TAG, &meta) == 0 &&
	       walk_nodejs_is_object(meta) && nodejs_word(h, meta - ABI_NODEJS_TAG, &again) == 0 && again == meta;
}

/* Does @word, which lies at @at, begin compiled code? V8: kCodeAlignment */
static bool is_code_map(const struct nodejs_heap *h, const struct abi_nodejs *info, uint64_t word, uint64_t at)
{
	if (word == info->code_map)
		return true;
	return info->type_sfi && at % CODE_ALIGNMENT == 0 && walk_nodejs_is_object(word) && is_other_code_map(h, word);
}

static int find_code(const struct nodejs_heap *h, const struct abi_nodejs *info, uint64_t pc, struct code *out)
{
	uint64_t words[SEARCH_PART / 8], end = pc & ~7ULL;

	for (uint64_t done = 0; done < SEARCH_MAX; done += SEARCH_PART) {
		uint64_t start = (end - 1) & ~(uint64_t)(SEARCH_PART - 1);
		size_t count = (size_t)(end - start) / 8;

		if (end < WALK_USER_MIN)
			return -ENOENT;
		if (nodejs_read(h, words, (uint32_t)(count * 8), start) < 0)
			return -ENOENT;
		for (size_t i = count; i-- > 0;)
			if (is_code_map(h, info, words[i], start + i * 8) && code_at(h, start + i * 8, pc, out) == 0)
				return 0;
		end = start;
	}
	return -ENOENT;
}

/* ---- arrays ---- */

static int array_word(const struct nodejs_heap *h, uint64_t array, uint64_t index, uint64_t *out)
{
	const struct nodejs_layout *l = h->layout;
	uint64_t at = array - ABI_NODEJS_TAG, length;
	int r;

	if (!walk_nodejs_is_object(array))
		return -EBADMSG;
	r = nodejs_word(h, at + (uint64_t)l->array_length, &length);
	if (r == 0 && ((uint32_t)length || index >= length >> 32))
		r = -EBADMSG;
	return r < 0 ? r : nodejs_word(h, at + (uint64_t)l->array_data + index * 8, out);
}

static bool is_array(const struct nodejs_heap *h, uint64_t array)
{
	const struct nodejs_layout *l = h->layout;
	int type = nodejs_type(h, array);

	return type > 0 && (type == l->type_array || type == l->type_trusted_array || type == l->type_protected_array);
}

/* ---- functions ---- */

struct reading {
	const struct nodejs_heap *heap;
	const struct abi_nodejs *info;
	uint64_t literals, inlining, sfi; /* tagged */
	uint64_t inlined_count;
	uint32_t call_count; /* that were inlined; a function may be more than once */
	bool lacks_lines;    /* of a script; they may be read later */
	struct buf *out;
};

/* Some versions have it in an object of its own. */
static int unwrap(const struct nodejs_heap *h, uint64_t *sfi)
{
	int wrapper = h->layout->type_sfi_wrapper;

	if (!walk_nodejs_is_object(*sfi))
		return -EBADMSG;
	if (wrapper && nodejs_type(h, *sfi) == wrapper &&
	    (nodejs_word(h, *sfi - ABI_NODEJS_TAG + 8, sfi) < 0 || !walk_nodejs_is_object(*sfi)))
		return -EBADMSG;
	return 0;
}

static int read_sfi(const struct nodejs_heap *h, const struct abi_nodejs *info, uint64_t sfi, struct buf *text,
		    struct nodejs_function *out)
{
	__u64 words[ABI_NODEJS_SFI_WORDS] = { 0 };
	int r;

	r = unwrap(h, &sfi);
	if (r == 0)
		r = nodejs_read(h, words, ABI_NODEJS_SFI_BYTES, sfi - ABI_NODEJS_TAG);
	if (r == 0 && !nodejs_is_sfi(h->target, info, words[0]))
		r = -EBADMSG;
	return r < 0 ? r : nodejs_function_read(h, words, text, out);
}

static void add_place(struct buf *out, struct nodejs_place place)
{
	nodejs_varint_add(out, (uint32_t)place.line);
	nodejs_varint_add(out, (uint32_t)place.column);
}

#define AT_START (-2) /* for add_function(): in front of the first place of its table */

/* One function of the list, at character @position of its script; -1: not known; AT_START */
static int add_function(struct reading *rd, uint64_t sfi, int64_t position)
{
	scoped(buf_release) struct buf text = BUF_INIT(4 * NODEJS_TEXT_MAX + 64);
	struct nodejs_function f;
	struct nodejs_place place = { 0 };
	int r = read_sfi(rd->heap, rd->info, sfi, &text, &f);

	if (r < 0)
		return r;
	if (f.script && position >= 0)
		place = nodejs_place_of(nodejs_script_lines(rd->heap, f.script), (uint32_t)position);
	if (position == AT_START)
		place = f.first;
	rd->lacks_lines |= f.lacks_lines;
	add_place(rd->out, place);
	add_place(rd->out, f.first);
	nodejs_varint_add(rd->out, f.map_id);
	nodejs_varint_add(rd->out, (uint32_t)f.name_column);
	nodejs_varint_add(rd->out, f.file_len);
	nodejs_varint_add(rd->out, f.name_len);
	buf_add(rd->out, text.ptr + f.file_at, f.file_len);
	buf_add(rd->out, text.ptr + f.name_at, f.name_len);
	return rd->out->error;
}

#define NOT_AMONG_LITERALS UINT32_MAX /* V8: DeoptimizationData::GetInlinedFunction() */

/* {position, index of the function among the literals}: 16 bytes each. The function that was compiled is none of the
 * literals: where it is inlined into itself, it has no index. */
static int read_inlining(const struct reading *rd, uint32_t id, uint64_t *position, uint64_t *sfi)
{
	const struct nodejs_layout *l = rd->heap->layout;
	uint64_t words[2], length;
	uint64_t at = rd->inlining - ABI_NODEJS_TAG;
	int r = walk_nodejs_is_object(rd->inlining) ? nodejs_word(rd->heap, at + (uint64_t)l->array_length, &length)
						    : -EBADMSG;

	if (r == 0 && ((uint32_t)length || (id + 1) * 16ULL > length >> 32))
		r = -EBADMSG;
	if (r == 0)
		r = nodejs_read(rd->heap, words, sizeof(words), at + (uint64_t)l->array_data + id * 16ULL);
	if (r < 0)
		return r;
	if ((uint32_t)words[1] >= rd->inlined_count && (uint32_t)words[1] != NOT_AMONG_LITERALS)
		return -EBADMSG;
	*position = words[0];
	*sfi = rd->sfi;
	if ((uint32_t)words[1] == NOT_AMONG_LITERALS)
		return 0;
	return array_word(rd->heap, rd->literals, (uint32_t)words[1], sfi);
}

static int add_list(struct reading *rd, struct cur table, int64_t offset)
{
	uint64_t position = 0, sfi;
	size_t count_at = rd->out->len, count = 0;
	bool known = nodejs_position_at(&rd->heap->layout->version, table, offset, &position);
	int64_t unknown = table.pos < table.end ? AT_START : -1;
	int r = 0;

	buf_addc(rd->out, 0);
	while (known && NODEJS_INLINING(position) >= 0 && count + 1 < RUNTIME_EXPAND_MAX) {
		uint64_t outer;

		r = read_inlining(rd, (uint32_t)NODEJS_INLINING(position), &outer, &sfi);
		if (r == 0)
			r = add_function(rd, sfi, NODEJS_POSITION(position));
		if (r < 0)
			return r;
		count++;
		position = outer;
	}
	r = add_function(rd, rd->sfi, known ? NODEJS_POSITION(position) : unknown);
	if (r < 0)
		return r;
	rd->out->ptr[count_at] = (char)(count + 1);
	return 0;
}

/* How many calls were inlined: 16 bytes each. */
static int count_inlining(struct reading *rd)
{
	const struct nodejs_layout *l = rd->heap->layout;
	int type = nodejs_type(rd->heap, rd->inlining), r;
	uint64_t length;

	if (type < 0 || (type != l->type_bytes && (!l->type_trusted_bytes || type != l->type_trusted_bytes)))
		return -EBADMSG;
	r = nodejs_word(rd->heap, rd->inlining - ABI_NODEJS_TAG + (uint64_t)l->array_length, &length);
	if (r == 0 && ((uint32_t)length || (length >> 32) % 16))
		r = -EBADMSG;
	if (r == 0)
		rd->call_count = (uint32_t)(length >> 36);
	return r;
}

static int open_deopt(struct reading *rd, uint64_t deopt)
{
	const struct nodejs_version *v = &rd->heap->layout->version;
	uint64_t count;
	int r = is_array(rd->heap, deopt) ? 0 : -EBADMSG;

	if (r == 0)
		r = array_word(rd->heap, deopt, v->deopt_inlined_count, &count);
	if (r == 0)
		r = array_word(rd->heap, deopt, v->deopt_literals, &rd->literals);
	if (r == 0)
		r = array_word(rd->heap, deopt, v->deopt_sfi, &rd->sfi);
	if (r == 0)
		r = array_word(rd->heap, deopt, v->deopt_inlining, &rd->inlining);
	if (r == 0 && ((uint32_t)count || count >> 32 > INLINED_MAX))
		r = -EBADMSG;
	rd->inlined_count = r == 0 ? count >> 32 : 0;
	return r < 0 ? r : count_inlining(rd);
}

/* Of code that exported functions share: the frame is one's, and the code does not say whose. */
#define TO_WASM UINT64_MAX

/* Is this the code that the tick saw, and the same function's? @shared: where that lies; 0: it saw none;
 * ABI_NODEJS_WASM; or TO_WASM: any function's */
static int check(const struct reading *rd, uint64_t pc, uint64_t cookie, uint64_t shared)
{
	const struct runtime_target *t = rd->heap->target;
	__u64 words[WALK_NODEJS_CODE_COOKIE], sfi[ABI_NODEJS_SFI_WORDS] = { 0 }, guard = 0;
	int r = t->read(t->self, words, sizeof(words), pc - WALK_NODEJS_CODE_BEFORE);

	if (r == 0 && shared == TO_WASM)
		return walk_nodejs_same_code(words, cookie) ? 0 : -ESTALE;
	if (r == 0 && shared >= ABI_NODEJS_PLAIN_MAX) {
		r = t->read(t->self, sfi, ABI_NODEJS_SFI_BYTES, shared);
		if (r == 0 && !nodejs_is_sfi(t, rd->info, sfi[0]))
			r = -ESTALE;
		if (r == 0)
			guard = nodejs_guard(t, rd->info, sfi);
	}
	return r < 0 ? r : walk_nodejs_code_cookie(words, shared, guard) == cookie ? 0 : -ESTALE;
}

/* Both lists of code that is one function, of which no line is known. */
static int add_one(struct buf *out, struct str file, struct str name)
{
	for (int lists = 0; lists < 2; lists++) {
		buf_addc(out, 1);
		for (int i = 0; i < 2; i++)
			add_place(out, (struct nodejs_place){ 0 });
		nodejs_varint_add(out, 0); /* no source map, ... */
		nodejs_varint_add(out, 0); /* ... and no name in it */
		nodejs_varint_add(out, file.len);
		nodejs_varint_add(out, name.len);
		buf_adds(out, file);
		buf_adds(out, name);
	}
	return out->error;
}

/* A frame of WebAssembly. A module without a name is known by how long it is. */
static int add_wasm(const struct nodejs_heap *h, uint64_t pc, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(4 * NODEJS_TEXT_MAX), file = BUF_INIT(2 * NODEJS_TEXT_MAX),
				       name = BUF_INIT(2 * NODEJS_TEXT_MAX);
	struct nodejs_wasm_names names;
	uint32_t index = 0;
	uint64_t size = 0;
	int r = nodejs_wasm_read(h, pc, &text, &names, &index, &size);

	if (r < 0)
		return r;
	if (names.module.len)
		buf_adds(&file, STR("wasm://wasm/"));
	else
		buf_addf(&file, "wasm://wasm/%" PRIu64 "-bytes", size);
	buf_add(&file, text.ptr + names.module.at, names.module.len);
	if (!names.function.len)
		buf_addf(&name, "wasm-function[%" PRIu32 "]", index);
	buf_add(&name, text.ptr + names.function.at, names.function.len);
	r = file.error ? file.error : name.error;
	return r < 0 ? r : add_one(out, buf_str(&file), buf_str(&name));
}

/* *shared: where the SharedFunctionInfo lies that the code was compiled for; 0: it is no function's; or TO_WASM */
static int read_lists(struct reading *rd, uint64_t pc, uint64_t *shared)
{
	scoped(buf_release) struct buf table = BUF_INIT(TABLE_MAX);
	const struct nodejs_version *v = &rd->heap->layout->version;
	struct code code;
	int r = find_code(rd->heap, rd->info, pc, &code), kind;

	if (r < 0)
		return r;
	kind = code.flags >> v->kind_shift & v->kind_mask;
	*shared = 0;
	if (kind == v->kind_regexp) /* up to V8 10 their frames do not say what they are */
		return add_one(rd->out, STR(""), STR(NODEJS_REGEXP));
	if (kind == v->kind_js_to_wasm) {
		*shared = TO_WASM;
		return add_one(rd->out, STR(""), STR(NODEJS_TO_WASM));
	}
	if (kind != v->kind_maglev && kind != v->kind_turbofan)
		return -ENOTSUP;
	r = open_deopt(rd, code.deopt);
	if (r == 0)
		r = unwrap(rd->heap, &rd->sfi);
	if (r < 0)
		return r;
	*shared = rd->sfi - ABI_NODEJS_TAG;
	r = nodejs_bytes(rd->heap, code.positions, TABLE_MAX, &table);
	if (r < 0 && rd->call_count) /* any of the calls may be the one that runs */
		return r == -ENODATA ? -EBADMSG : r;
	if (r < 0)
		buf_clear(&table);
	if (!nodejs_code_positions_fit(v, cur_of(table.ptr, table.len), code.size, rd->call_count))
		return -EBADMSG;
	r = add_list(rd, cur_of(table.ptr, table.len), (int64_t)(pc - 1 - code.start));
	return r < 0 ? r : add_list(rd, cur_of(table.ptr, table.len), (int64_t)(pc - code.start));
}

/* A frame that says that it is WebAssembly's. */
static int read_wasm(struct reading *rd, uint64_t pc, uint64_t *shared)
{
	int r = add_wasm(rd->heap, pc, rd->out);

	*shared = ABI_NODEJS_WASM;
	return r < 0 && r != -ENOMEM ? add_one(rd->out, STR(""), STR(NODEJS_WASM)) : r;
}

/* ---- what was read ---- */

static bool take_number(struct cur *c, int32_t *out)
{
	uint64_t value;

	if (cur_uvarint(c, &value) < 0 || value > INT32_MAX)
		return false;
	*out = (int32_t)value;
	return true;
}

static bool take_function(struct cur *c, struct runtime_shown *out)
{
	struct runtime_function *f = &out->function;
	uint64_t file = 0, name = 0;
	struct cur text;

	*out = (struct runtime_shown){ 0 };
	if (!take_number(c, &out->line) || !take_number(c, &out->column) || !take_number(c, &f->first_line) ||
	    !take_number(c, &f->first_column) || cur_uvarint(c, &f->map_id) < 0 || !take_number(c, &f->name_column) ||
	    cur_uvarint(c, &file) < 0 || cur_uvarint(c, &name) < 0)
		return false;
	text = cur_sub(c, file);
	f->file = cur_rest(&text);
	text = cur_sub(c, name);
	f->name = cur_rest(&text);
	return !c->bad;
}

size_t nodejs_expand(const struct runtime_function *code, uint32_t position, bool is_return,
		     struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	struct cur c = cur_of(code->lines.bytes, code->lines.size);

	if (position)
		return 0;
	for (int list = is_return ? 0 : 1; list >= 0; list--) {
		size_t count = cur_u8(&c);

		if (c.bad || count > RUNTIME_EXPAND_MAX)
			return 0;
		for (size_t i = 0; i < count; i++)
			if (!take_function(&c, &out[i]))
				return 0;
		if (!list)
			return count;
	}
	return 0;
}

/* The function that was compiled: the last one of a list. */
static bool take_outermost(const struct runtime_function *code, struct runtime_shown *out)
{
	struct cur c = cur_of(code->lines.bytes, code->lines.size);
	size_t count = cur_u8(&c);

	for (size_t i = 0; i < count; i++)
		if (!take_function(&c, out))
			return false;
	return count && !c.bad;
}

/* Compiled code of this process is laid out in another way than the version's, as far as is known. */
static bool is_refused(const struct nodejs_process *p)
{
	return p->codes_wrong >= NODEJS_CODES_FEW && !p->codes_right;
}

/* Count a piece of code that is unchanged in memory and whose tables contradict each other. */
static void code_is_wrong(const struct runtime_target *target, struct nodejs_process *p, uint64_t key)
{
	bool was_refused = is_refused(p);

	if (key == p->code_wrong)
		return;
	p->code_wrong = key;
	p->codes_wrong++;
	if (target->remark && !was_refused && is_refused(p))
		snprintf(target->remark, RUNTIME_WHY_MAX,
			 "has compiled code that is not laid out as its version's: compiled functions have no names");
}

int nodejs_read_code(const struct runtime_target *target, const void *info_bytes, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out)
{
	struct nodejs_process *process = target->of_process;
	uint64_t left = NODEJS_READS_MAX;
	const struct nodejs_heap h = {
		.target = target, .layout = process ? &process->layout : NULL, .process = process, .left = &left
	};
	struct reading rd = { .heap = &h, .info = info_bytes, .out = room };
	struct runtime_shown outermost;
	size_t start = room->len;
	uint64_t shared = 0;
	bool is_wasm = false;
	int r = process ? 0 : -ENOMEM;

	if (r == 0 && is_refused(process) && ++process->codes_left % NODEJS_CODES_TRIED)
		return -ENOTSUP;
	if (r == 0 && check(&rd, key, cookie, ABI_NODEJS_WASM) == 0)
		r = read_wasm(&rd, key, &shared);
	else if (r == 0)
		r = read_lists(&rd, key, &shared);
	is_wasm = r == -ENOENT;
	if (is_wasm) { /* at WebAssembly's first and last instructions nothing says whose they are */
		room->len = start;
		r = add_wasm(&h, key, room);
	}

	if (r == -EBADMSG && !is_wasm && left && check(&rd, key, cookie, TO_WASM) == 0)
		code_is_wrong(target, process, key);
	if (r == 0 && !left) /* what is there may lack something */
		r = -E2BIG;
	if (r == 0)
		r = check(&rd, key, cookie, shared);
	if (r < 0)
		return r;
	process->codes_right += shared >= ABI_NODEJS_PLAIN_MAX && shared != TO_WASM;
	*out = (struct runtime_function){
		.lines = { (const uint8_t *)room->ptr + start, (uint32_t)(room->len - start) },
		.lines_whole = (uint32_t)(room->len - start),
		.lacks_lines = rd.lacks_lines,
	};
	if (!take_outermost(out, &outermost))
		return -EBADMSG;
	out->file = outermost.function.file;
	out->name = outermost.function.name;
	out->first_line = outermost.function.first_line;
	out->first_column = outermost.function.first_column;
	out->map_id = outermost.function.map_id;
	out->name_column = outermost.function.name_column;
	return 0;
}
