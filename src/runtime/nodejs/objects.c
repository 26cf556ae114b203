/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of V8 in the memory of a process. A collector may move or free them while they are read: what is read is
 * believed only where the caller finds the cookie unchanged afterwards; here it is bounded. */
#include <time.h>

#include "base/array.h"
#include "base/utf8.h"
#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define TEXT_DEPTH_MAX 32  /* strings in strings */
#define TEXT_PIECES_MAX 64 /* of a string that was put together */
#define CHUNK KIB(64)
#define TEXT_LENGTH_MAX (1U << 30) /* characters; V8: String::kMaxLength is less */

int nodejs_read(const struct nodejs_heap *h, void *dst, uint32_t size, uint64_t at)
{
	uint64_t cost = 1 + size / KIB(4);

	if (h->left && *h->left < cost) {
		*h->left = 0;
		return -E2BIG;
	}
	if (h->left)
		*h->left -= cost;
	return h->target->read(h->target->self, dst, size, at);
}

int nodejs_word(const struct nodejs_heap *h, uint64_t at, uint64_t *out)
{
	return nodejs_read(h, out, sizeof(*out), at);
}

/* The word at @offset of an object with a tag. */
static int member(const struct nodejs_heap *h, uint64_t object, int offset, uint64_t *out)
{
	if (!walk_nodejs_is_object(object))
		return -EBADMSG;
	return nodejs_word(h, object - ABI_NODEJS_TAG + (uint64_t)offset, out);
}

int nodejs_type(const struct nodejs_heap *h, uint64_t object)
{
	uint64_t map;
	uint16_t type = 0;
	int r = member(h, object, 0, &map);

	if (r == 0 && !walk_nodejs_is_object(map))
		return -EBADMSG;
	if (r == 0)
		r = nodejs_read(h, &type, sizeof(type), map - ABI_NODEJS_TAG + (uint64_t)h->layout->map_type);
	return r < 0 ? r : type;
}

/* ---- texts ---- */

struct flat { /* characters that lie together */
	uint64_t at;
	uint32_t length;
	bool is_wide; /* two bytes each */
	int type;     /* of the object that has them */
};

struct text { /* an object that is a string */
	uint64_t object;
	uint32_t from, length; /* the part of it that is wanted */
};

static int string_length(const struct nodejs_heap *h, uint64_t object, uint32_t *out)
{
	int r = nodejs_read(h, out, sizeof(*out), object - ABI_NODEJS_TAG + (uint64_t)h->layout->string_length);

	return r == 0 && *out > TEXT_LENGTH_MAX ? -EBADMSG : r;
}

/* Where the characters lie of a string that is neither cons, thin nor sliced. */
static int flat_of(const struct nodejs_heap *h, uint64_t object, int type, uint32_t length, struct flat *out)
{
	const struct nodejs_layout *l = h->layout;
	bool is_wide = (type & l->encoding_mask) != l->one_byte;
	uint64_t at = object - ABI_NODEJS_TAG + (uint64_t)l->string_chars;
	int form = type & l->representation_mask, r = 0;

	if (form == l->tag_external) /* behind the resource V8 keeps where its characters are */
		r = member(h, object, l->string_resource + 8, &at);
	else if (form)
		return -EBADMSG;
	if (r == 0)
		*out = (struct flat){ .at = at, .length = length, .is_wide = is_wide, .type = type };
	return r;
}

/* One step into a string that is made of others. Return: 1 when *t is flat, with *out; 0: it is another one now, and
 * *rest what comes behind it, object 0: nothing; -errno. */
static int step_into(const struct nodejs_heap *h, struct text *t, struct flat *out, struct text *rest)
{
	const struct nodejs_layout *l = h->layout;
	int type = nodejs_type(h, t->object), form = type & l->representation_mask, r;
	uint64_t first, offset;
	uint32_t length;

	rest->object = 0;
	if (type < 0)
		return type;
	if (type >= l->first_nonstring)
		return -EBADMSG;
	r = string_length(h, t->object, &length);
	if (r < 0)
		return r;
	if (t->from > length)
		return -EBADMSG;
	t->length = MIN(t->length, length - t->from);
	if (form == l->tag_thin)
		return member(h, t->object, l->string_actual, &t->object);
	if (form == l->tag_sliced) {
		r = member(h, t->object, l->string_offset, &offset);
		if (r == 0 && (offset >> 32) + t->from > TEXT_LENGTH_MAX)
			r = -EBADMSG;
		t->from += r == 0 ? (uint32_t)(offset >> 32) : 0;
		return r < 0 ? r : member(h, t->object, l->string_parent, &t->object);
	}
	if (form != l->tag_cons) {
		r = flat_of(h, t->object, type, length, out);
		return r < 0 ? r : 1;
	}
	r = member(h, t->object, l->string_first, &first);
	if (r == 0)
		r = walk_nodejs_is_object(first) ? string_length(h, first, &length) : -EBADMSG;
	if (r < 0)
		return r;
	if (t->from >= length) {
		t->from -= length;
		return member(h, t->object, l->string_second, &t->object);
	}
	if (t->length > length - t->from) {
		*rest = (struct text){ .length = t->length - (length - t->from) };
		t->length = length - t->from;
		r = member(h, t->object, l->string_second, &rest->object);
	}
	t->object = first;
	return r;
}

/* @bytes: two a character. */
static void add_wide(struct buf *out, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t unit = (uint32_t)(bytes[2 * i] | bytes[2 * i + 1] << 8), low;

		if (unit >> 10 == 0x36 && i + 1 < count) { /* a pair of surrogates */
			low = (uint32_t)(bytes[2 * i + 2] | bytes[2 * i + 3] << 8);
			if (low >> 10 == 0x37) {
				unit = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
				i++;
			}
		}
		utf8_add(out, unit);
	}
}

#define PART KIB(1)

static int add_flat(const struct nodejs_heap *h, const struct flat *f, const struct text *t, struct buf *out)
{
	uint8_t bytes[PART];
	uint32_t width = f->is_wide ? 2 : 1, size = MIN(t->length, (uint32_t)NODEJS_TEXT_MAX) * width;
	uint64_t at = f->at + (uint64_t)t->from * width;

	for (uint32_t done = 0; done < size; done += PART) {
		uint32_t part = MIN(size - done, (uint32_t)PART);
		int r = nodejs_read(h, bytes, part, at + done);

		if (r < 0)
			return r;
		if (f->is_wide)
			add_wide(out, bytes, part / 2);
		else
			for (uint32_t i = 0; i < part; i++)
				utf8_add(out, bytes[i]);
	}
	return out->error;
}

/* Another string may have come to lie there, whose characters are of another width. Return: 0 or -ESTALE. */
static int check_flat(const struct nodejs_heap *h, const struct flat *f, const struct text *t)
{
	uint32_t length;
	int type = nodejs_type(h, t->object);

	return type == f->type && string_length(h, t->object, &length) == 0 && length == f->length ? 0 : -ESTALE;
}

int nodejs_text(const struct nodejs_heap *h, uint64_t object, struct buf *out, bool *is_cut)
{
	struct text stack[TEXT_DEPTH_MAX] = { { .object = object, .length = NODEJS_TEXT_MAX } };
	size_t depth = 1, start = out->len;
	uint32_t length;
	int r = walk_nodejs_is_object(object) ? string_length(h, object, &length) : -EBADMSG;

	if (r < 0)
		return r;
	*is_cut = length > NODEJS_TEXT_MAX;
	for (size_t steps = 0; depth && r >= 0; steps++) {
		struct text rest, *t = &stack[depth - 1];
		struct flat flat;

		if (steps == TEXT_DEPTH_MAX * TEXT_PIECES_MAX)
			return -EBADMSG;
		r = step_into(h, t, &flat, &rest);
		if (r < 0)
			break;
		if (rest.object) {
			if (depth == TEXT_DEPTH_MAX) {
				*is_cut = true;
				rest.object = 0;
			} else {
				stack[depth] = *t;
				*t = rest;
				depth++;
			}
		}
		if (r == 1) {
			r = add_flat(h, &flat, t, out);
			if (r == 0)
				r = check_flat(h, &flat, t);
			depth--;
		}
	}
	if (r < 0)
		out->len = start;
	return r < 0 ? r : 0;
}

/* ---- lines of scripts ---- */

struct scan { /* of a script's text for its lines' ends */
	struct nodejs_lines *lines;
	size_t cap, max;
	uint32_t at;
	uint64_t size; /* as UTF-8; a half of a surrogate pair is two bytes of four */
	bool was_return;
};

static int add_end(struct scan *s, uint32_t at)
{
	size_t count = s->lines->count;
	int r = array_grow(&s->lines->ends, &s->cap, count, s->max);

	if (r == 0)
		s->lines->ends[s->lines->count++] = at;
	return r;
}

/* Ends of lines are those of ECMA-262, 12.3: a CR and the LF behind it are one. */
static int scan_unit(struct scan *s, uint32_t unit)
{
	int r = 0;

	if (s->was_return && unit != '\n')
		r = add_end(s, s->at - 1);
	s->was_return = unit == '\r';
	if (unit == '\n' || unit == 0x2028 || unit == 0x2029)
		r = r < 0 ? r : add_end(s, s->at);
	s->size += 1 + (unit >= 0x80) + (unit >= 0x800 && unit >> 11 != 0x1b);
	s->at++;
	return r;
}

static int scan_text(const struct nodejs_heap *h, const struct flat *f, struct scan *s)
{
	scoped(freep) uint8_t *bytes = malloc(CHUNK);
	uint64_t width = f->is_wide ? 2 : 1, size = f->length * width;
	int r = bytes ? 0 : -ENOMEM;

	for (uint64_t done = 0; r == 0 && done < size; done += CHUNK) {
		uint32_t part = (uint32_t)MIN(size - done, (uint64_t)CHUNK);

		r = h->target->read(h->target->self, bytes, part, f->at + done); /* nodejs_take_scan() has counted it */
		for (uint32_t i = 0; r == 0 && i < part; i += (uint32_t)width)
			r = scan_unit(s, f->is_wide ? (uint32_t)(bytes[i] | bytes[i + 1] << 8) : bytes[i]);
	}
	if (r == 0 && s->was_return)
		r = add_end(s, s->at - 1);
	return r;
}

static _Atomic uint64_t kept_bytes; /* of line tables, of all processes */

static void drop(struct nodejs_process *p, size_t i)
{
	p->line_count -= p->scripts[i].count;
	kept_bytes -= p->scripts[i].count * sizeof(uint32_t);
	free(p->scripts[i].ends);
	p->scripts[i] = p->scripts[--p->script_count];
}

static void drop_oldest(struct nodejs_process *p)
{
	size_t oldest = 0;

	for (size_t i = 1; i < p->script_count; i++)
		if (p->scripts[i].used < p->scripts[oldest].used)
			oldest = i;
	drop(p, oldest);
}

void nodejs_scripts_drop(struct nodejs_process *p)
{
	while (p->script_count)
		drop(p, p->script_count - 1);
}

bool nodejs_take_scan(struct nodejs_process *p, uint32_t length)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((uint64_t)now.tv_sec != p->second) {
		p->second = (uint64_t)now.tv_sec;
		p->scanned = 0;
	}
	if (p->scanned + length > NODEJS_SCAN_PER_S)
		return false;
	p->scanned += length;
	return true;
}

/* The characters of a script's source, where they lie together. */
static int source_of(const struct nodejs_heap *h, uint64_t source, struct flat *out)
{
	struct text t = { .object = source, .length = TEXT_LENGTH_MAX }, rest;
	int r = 0;

	for (int depth = 0; r == 0 && depth < 4; depth++) {
		r = step_into(h, &t, out, &rest);
		if (r >= 0 && (t.from || rest.object))
			return -ENOTSUP;
	}
	return r == 1 ? 0 : r < 0 ? r : -ENOTSUP;
}

/* Return: 0; -EAGAIN: not now, too much was read in this second; -errno. */
static int read_lines(const struct nodejs_heap *h, uint64_t script, uint64_t source, struct nodejs_lines *out)
{
	struct scan scan = { .lines = out, .max = NODEJS_LINES_MAX };
	struct flat flat;
	uint64_t again;
	int r = source_of(h, source, &flat);

	if (r == 0 && flat.length > NODEJS_SOURCE_MAX / 2)
		r = -E2BIG;
	if (r == 0 && !nodejs_take_scan(h->process, flat.length))
		r = -EAGAIN;
	if (r == 0)
		r = scan_text(h, &flat, &scan);
	if (r == 0)
		r = member(h, script, h->layout->script_source, &again);
	if (r == 0 && again != source)
		r = -ESTALE;
	if (r == 0)
		array_trim(&out->ends, &scan.cap, out->count);
	out->script = script;
	out->source = source;
	out->size = scan.size;
	out->length = r == 0 ? flat.length : 0;
	return r;
}

static bool has_room(const struct nodejs_process *p, uint32_t count)
{
	return p->line_count + count <= NODEJS_LINES_MAX &&
	       kept_bytes + count * sizeof(uint32_t) <= NODEJS_LINES_BYTES_MAX;
}

struct nodejs_lines *nodejs_script_lines(const struct nodejs_heap *h, uint64_t script)
{
	struct nodejs_process *p = h->process;
	struct nodejs_lines lines = { 0 };
	uint64_t source;
	uint32_t length;
	int r;

	if (!p || nodejs_type(h, script) != h->layout->type_script ||
	    member(h, script, h->layout->script_source, &source) < 0 || !walk_nodejs_is_object(source) ||
	    string_length(h, source, &length) < 0)
		return NULL;
	p->clock++;
	for (size_t i = 0; i < p->script_count; i++) {
		if (p->scripts[i].script != script)
			continue;
		if (p->scripts[i].source == source && p->scripts[i].source_length == length) {
			p->scripts[i].used = p->clock;
			return &p->scripts[i];
		}
		drop(p, i);
		break;
	}
	r = read_lines(h, script, source, &lines);
	lines.source_length = length;
	if (r < 0) { /* kept without lines: not tried for each name */
		free(lines.ends);
		lines.ends = NULL;
		lines.count = 0;
	}
	if (r == -EAGAIN || (r < 0 && h->left && !*h->left)) /* another name may find them */
		return NULL;
	while (p->script_count && (p->script_count == NODEJS_SCRIPTS_MAX || !has_room(p, lines.count)))
		drop_oldest(p);
	if (!has_room(p, lines.count)) { /* others have it all */
		free(lines.ends);
		return NULL;
	}
	lines.used = p->clock;
	p->line_count += lines.count;
	kept_bytes += lines.count * sizeof(uint32_t);
	p->scripts[p->script_count] = lines;
	return &p->scripts[p->script_count++];
}

struct nodejs_place nodejs_place_of(const struct nodejs_lines *lines, uint32_t position)
{
	size_t low = 0, high;

	if (!lines || position > lines->length || !lines->length)
		return (struct nodejs_place){ 0 };
	high = lines->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines->ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return (struct nodejs_place){ .line = (int32_t)low + 1,
				      .column = (int32_t)(position - (low ? lines->ends[low - 1] + 1 : 0)) + 1 };
}

/* ---- functions ---- */

#define SCOPE_WORDS 10         /* looked at behind the local variables, of which it may have fewer */
#define PAGE KIB(4)            /* at least: what is mapped ends at a multiple of it */
#define SCOPE_LOCALS_INLINE 75 /* from V8 10 on more have their names in a table: V8, src/objects/scope-info.h */
#define SCOPE_LOCALS_MAX (1U << 20)

static bool is_small(uint64_t word)
{
	return !(word & 0xffffffff);
}

/* Can an object of @type stand where a function's name would be, if it has none? Up to V8 12 its characters do; later
 * the scope around it, or the next object's map. What was a string and is another object now is none of them. */
static bool is_behind_names(const struct nodejs_layout *l, int type)
{
	return l->version.scope_start && (type == l->type_scope || type == l->type_map || !l->type_map);
}

/* What stands behind the local variables: [name, index of its variable] [inferred name] [first, last character]; each
 * of them may be missing. @words: SCOPE_WORDS of it. Nothing is added when it has no name. Return: 0 or -errno: one
 * that is just being moved, or gone, is not known, which is not the same as having none. */
static int scope_name(const struct nodejs_heap *h, const uint64_t *words, struct buf *room, bool *is_cut)
{
	size_t before = room->len;
	int type = 0, r = 0;

	for (int i = 0; i < 4 && r == 0 && room->len == before; i++) {
		if (is_small(words[i]))
			continue;
		type = nodejs_type(h, words[i]);
		if (type >= h->layout->first_nonstring)
			return i || is_behind_names(h->layout, type) ? 0 : -ESTALE;
		r = type < 0 ? type : nodejs_text(h, words[i], room, is_cut);
	}
	return r;
}

/* The first character, where it stands behind the names. */
static int64_t scope_first(const uint64_t *words)
{
	int i = 0;

	if (!is_small(words[0]) && is_small(words[1]) && (!is_small(words[2]) || is_small(words[3])))
		i = 2; /* a name and its variable */
	if (!is_small(words[i]))
		i++; /* the inferred one */
	if (is_small(words[i]) && is_small(words[i + 1]) && words[i] <= words[i + 1])
		return (int64_t)(words[i] >> 32);
	return -1;
}

/* SCOPE_WORDS from @at on. The scope may be the last object of what is mapped: then its own map stands for all that is
 * behind, where another object's would begin. */
static int scope_words(const struct nodejs_heap *h, uint64_t scope, uint64_t at, uint64_t *words)
{
	uint32_t mapped = (uint32_t)((PAGE - at % PAGE) % PAGE) / 8;
	uint64_t map;
	int r = nodejs_read(h, words, SCOPE_WORDS * 8, at);

	if (r != -EFAULT || mapped >= SCOPE_WORDS)
		return r;
	r = nodejs_read(h, words, mapped * 8, at);
	if (r == 0)
		r = member(h, scope, 0, &map);
	for (uint32_t i = mapped; r == 0 && i < SCOPE_WORDS; i++)
		words[i] = map;
	return r;
}

/* Words of the local variables: a name and a property each, or all names in a table. */
static uint64_t words_of_locals(const struct nodejs_layout *l, uint64_t count)
{
	bool is_table = l->version.major >= 10 && count >= SCOPE_LOCALS_INLINE;

	return is_table ? 1 + count : 2 * count;
}

static int scope_read(const struct nodejs_heap *h, uint64_t scope, struct buf *room, struct nodejs_function *out,
		      int64_t *first)
{
	const struct nodejs_layout *l = h->layout;
	uint64_t words[SCOPE_WORDS], locals, at;
	int r = member(h, scope, l->version.scope_words + l->scope_locals * 8, &locals);

	*first = -1;
	if (r < 0)
		return r;
	if (!is_small(locals) || locals >> 32 > SCOPE_LOCALS_MAX)
		return -EBADMSG;
	at = (uint64_t)l->scope_first + words_of_locals(l, locals >> 32);
	r = scope_words(h, scope, scope - ABI_NODEJS_TAG + l->version.scope_words + at * 8, words);
	if (r < 0)
		return r;
	r = scope_name(h, words, room, &out->is_cut);
	if (r < 0)
		return r;
	if (!l->version.scope_start) {
		*first = scope_first(words);
		return 0;
	}
	r = member(h, scope, l->version.scope_words + l->version.scope_start * 8, &at);
	if (r == 0 && is_small(at))
		*first = (int64_t)(at >> 32);
	return r;
}

static int name_read(const struct nodejs_heap *h, uint64_t name, struct buf *room, struct nodejs_function *out,
		     int64_t *first)
{
	int type = nodejs_type(h, name);

	*first = -1;
	if (type < 0)
		return type;
	if (type < h->layout->first_nonstring)
		return nodejs_text(h, name, room, &out->is_cut);
	return type == h->layout->type_scope ? scope_read(h, name, room, out, first) : -EBADMSG;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* %XX in front of @rest's end. Return: the byte; -1: it is none that a path of a module may have. */
static int escaped(struct str rest)
{
	int high = rest.len > 2 ? hex_digit(rest.ptr[1]) : -1, low = high < 0 ? -1 : hex_digit(rest.ptr[2]);
	int byte = low < 0 ? -1 : high << 4 | low;

	return byte == 0 || byte == '/' ? -1 : byte;
}

void nodejs_path_of_url(struct buf *text, size_t at)
{
	static const char scheme[] = "file://";
	size_t len = sizeof(scheme) - 1;
	struct buf path = BUF_INIT(NODEJS_PATH_MAX);
	struct str url = str_n(text->ptr + at, text->len - at);

	if (text->error || !str_starts(url, STR("file:///")))
		return;
	for (url = str_skip(url, len); url.len && url.ptr[0] != '?' && url.ptr[0] != '#';) {
		int byte = url.ptr[0] == '%' ? escaped(url) : (uint8_t)url.ptr[0];

		if (byte < 0)
			break;
		buf_addc(&path, (char)byte);
		url = str_skip(url, url.ptr[0] == '%' ? 3 : 1);
	}
	if (path.error || (url.len && url.ptr[0] == '%') || !utf8_valid(buf_str(&path))) {
		memmove(text->ptr + at, text->ptr + at + len, text->len - at - len); /* as it is written */
		text->len -= len;
	} else {
		memcpy(text->ptr + at, path.ptr, path.len);
		text->len = at + path.len;
	}
	buf_release(&path);
}

/* ES modules are named by a URL. */
static int file_read(const struct nodejs_heap *h, uint64_t script, struct buf *room, struct nodejs_function *out)
{
	size_t at = room->len;
	uint64_t name;
	int r = member(h, script, h->layout->script_name, &name), type = r < 0 ? r : nodejs_type(h, name);

	if (type < 0)
		return type;
	if (type >= h->layout->first_nonstring) /* undefined: code that was made of a string */
		return 0;
	r = nodejs_text(h, name, room, &out->is_cut);
	if (r == 0)
		nodejs_path_of_url(room, at);
	return r;
}

/* The characters of @script in front of @position, NODEJS_BEFORE at most. Return: how many, or -errno. */
static int text_before(const struct nodejs_heap *h, uint64_t script, uint32_t position, uint16_t units[NODEJS_BEFORE])
{
	uint8_t *bytes = (uint8_t *)units;
	uint32_t count = MIN(position, (uint32_t)NODEJS_BEFORE);
	struct flat flat;
	uint64_t source;
	int r = member(h, script, h->layout->script_source, &source);

	if (r == 0)
		r = source_of(h, source, &flat);
	if (r == 0 && position > flat.length)
		r = -EBADMSG;
	if (r < 0)
		return r;
	if (flat.is_wide)
		r = nodejs_read(h, units, 2 * count, flat.at + 2 * (uint64_t)(position - count));
	else
		r = nodejs_read(h, bytes, count, flat.at + position - count);
	for (uint32_t i = flat.is_wide ? 0 : count; r == 0 && i-- > 0;)
		units[i] = bytes[i];
	return r < 0 ? r : (int)count;
}

/* Where a function begins; and where a source map is asked for its name. */
static void find_place(const struct nodejs_heap *h, int64_t first, struct str file, struct str name,
		       struct nodejs_function *f)
{
	struct nodejs_lines *lines = nodejs_script_lines(h, f->script);
	uint16_t units[NODEJS_BEFORE];
	int count;

	f->lacks_lines = h->process && !lines;
	if (first >= 0)
		f->first = nodejs_place_of(lines, (uint32_t)first);
	if (lines && lines->length)
		f->map_id = nodejs_source_map(h->target, lines, file);
	if (!f->map_id || !f->first.line)
		return;
	count = text_before(h, f->script, (uint32_t)first, units);
	if (count > 0)
		f->name_column = f->first.column - (int32_t)nodejs_name_before(units, (size_t)count, name);
	if (f->name_column == f->first.column || f->name_column <= 0)
		f->name_column = 0;
}

int nodejs_function_read(const struct nodejs_heap *h, const __u64 *words, struct buf *room, struct nodejs_function *out)
{
	const struct nodejs_layout *l = h->layout;
	uint64_t script = words[l->sfi_script / 8 & 7], name = words[l->sfi_name / 8 & 7];
	struct nodejs_function f = { .data = words[l->version.sfi_data / 8 & 7], .file_at = room->len };
	int64_t first;
	int r = 0;

	if (walk_nodejs_is_object(script) && nodejs_type(h, script) == l->type_script) {
		f.script = script;
		r = file_read(h, script, room, &f);
	}
	f.file_len = room->len - f.file_at;
	f.name_at = room->len;
	if (r == 0 && !is_small(name)) /* 0: it has none */
		r = name_read(h, name, room, &f, &first);
	else
		first = -1;
	if (r < 0)
		return r;
	if (room->len == f.name_at)
		buf_adds(room, STR(NODEJS_ANONYMOUS));
	f.name_len = room->len - f.name_at;
	if (f.script)
		find_place(h, first, str_n(room->ptr + f.file_at, f.file_len), str_n(room->ptr + f.name_at, f.name_len),
			   &f);
	*out = f;
	return room->error;
}

int nodejs_bytecode(const struct nodejs_heap *h, uint64_t bytecode, struct buf *out)
{
	uint64_t at = bytecode - ABI_NODEJS_TAG, length;
	uint8_t *bytes;
	int r = nodejs_word(h, at + (uint64_t)h->layout->array_length, &length);

	if (r == 0 && ((uint32_t)length || length >> 32 > NODEJS_LINES_TABLE_MAX))
		r = -E2BIG;
	length >>= 32;
	if (r < 0 || !length)
		return r;
	bytes = buf_reserve(out, length);
	if (!bytes)
		return out->error;
	r = nodejs_read(h, bytes, (uint32_t)length, at + (uint64_t)h->layout->bytecode_data);
	if (r == 0)
		buf_commit(out, length);
	return r;
}

int nodejs_bytes(const struct nodejs_heap *h, uint64_t object, size_t max, struct buf *out)
{
	const struct nodejs_layout *l = h->layout;
	int type = nodejs_type(h, object), r;
	uint64_t length;
	uint8_t *bytes;

	if (type < 0)
		return type;
	if (type != l->type_bytes && (!l->type_trusted_bytes || type != l->type_trusted_bytes))
		return -ENODATA;
	r = member(h, object, l->array_length, &length);
	if (r < 0)
		return r;
	if (!is_small(length) || length >> 32 > max)
		return -E2BIG;
	length >>= 32;
	if (!length)
		return 0;
	bytes = buf_reserve(out, length);
	if (!bytes)
		return out->error;
	r = nodejs_read(h, bytes, (uint32_t)length, object - ABI_NODEJS_TAG + (uint64_t)l->array_data);
	if (r == 0)
		buf_commit(out, length);
	return r;
}
