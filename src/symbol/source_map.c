/* SPDX-License-Identifier: Apache-2.0 */
/* "mappings" is a text: a line of the written code ends with ';', its segments with ','. A segment is 1, 4 or 5
 * numbers, each the difference to the last one of its kind, as base64 digits of 5 bits, the sign lowest: column in the
 * written code, number of the source, line and column in that, number of the name. Columns begin anew with each line.
 *
 * Source: ECMA-426, "Source map format" and "Mappings structure". */
#include "symbol/source_map.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "codec/json.h"

#define TEXTS_MAX (1U << 20) /* sources or names of one map */
#define LOOK_AT_CLOCK 65536  /* segments; a place counts as many as it may take time */
#define PLACE_COUNTS 256

struct texts { /* strings as JSON has them */
	struct str *items;
	size_t count, cap;
};

struct source_map {
	struct buf own; /* the text, where it was read here */
	struct str root, mappings;
	struct texts sources, names;
};

/* ---- JSON ---- */

/* As long as a text of @max bytes can be written; what is longer is never shown. */
static bool is_short(struct str value, size_t max)
{
	return value.len <= sizeof("\\u0000") * max + 2;
}

static int read_texts(struct str value, size_t max, struct texts *out)
{
	struct str key, item;
	int r = 0;

	if (!str_starts(value, STR("[")))
		return -EBADMSG;
	while (r == 0 && json_member(&value, &key, &item)) {
		r = array_grow(&out->items, &out->cap, out->count, TEXTS_MAX);
		if (r == 0)
			out->items[out->count++] = is_short(item, max) ? item : STR("");
	}
	return r == -E2BIG ? -EBADMSG : r;
}

/* What is between the quotes of a text without escapes. */
static int plain_text(struct str value, struct str *out)
{
	if (value.len < 2 || value.ptr[0] != '"' || str_find(value, '\\') >= 0)
		return -EBADMSG;
	*out = str_n(value.ptr + 1, value.len - 2);
	return 0;
}

static int take_member(struct source_map *m, struct str key, struct str value)
{
	if (str_eq(key, STR("\"version\"")))
		return str_eq(value, STR("3")) ? 0 : -EBADMSG;
	if (str_eq(key, STR("\"sources\"")) && !m->sources.count)
		return read_texts(value, LINES_FILE_MAX, &m->sources);
	if (str_eq(key, STR("\"names\"")) && !m->names.count)
		return read_texts(value, LINES_FUNCTION_MAX, &m->names);
	if (str_eq(key, STR("\"mappings\"")))
		return plain_text(value, &m->mappings);
	if (str_eq(key, STR("\"sourceRoot\"")) && !str_eq(value, STR("null")))
		m->root = value;
	return is_short(m->root, LINES_FILE_MAX) ? 0 : -EBADMSG;
}

/* Servers put a line in front of JSON that keeps it from being run as a script. */
static struct str without_guard(struct str text)
{
	ptrdiff_t end = str_find(text, '\n');

	return str_starts(text, STR(")]}")) && end >= 0 ? str_skip(text, (size_t)end) : text;
}

static int parse(struct source_map *m, struct str text)
{
	struct str rest = without_guard(text), all, key, value;
	int r = json_value(&rest, &all);

	if (r == 0 && !str_starts(all, STR("{")))
		r = -EBADMSG;
	while (r == 0 && json_member(&all, &key, &value))
		r = take_member(m, key, value);
	return r == 0 && !m->mappings.ptr ? -EBADMSG : r;
}

int source_map_parse(struct str text, struct source_map **out)
{
	struct source_map *m = calloc(1, sizeof(*m));
	int r = m ? parse(m, text) : -ENOMEM;

	if (r == 0)
		*out = m;
	else
		source_map_close(m);
	return r;
}

int source_map_open(int fd, uint64_t deadline_ns, struct source_map **out)
{
	struct buf text = BUF_INIT(SOURCE_MAP_MAX);
	int r = io_read_fd(fd, &text);

	if (r == 0)
		r = source_map_parse(buf_str(&text), out);
	if (r < 0) {
		buf_release(&text);
		return r == -ENOMEM ? r : -EBADMSG;
	}
	(*out)->own = text;
	if (clock_monotonic_ns(&clock_system) <= deadline_ns)
		return 0;
	source_map_close(*out);
	*out = NULL;
	return -ETIMEDOUT;
}

void source_map_close(struct source_map *m)
{
	if (!m)
		return;
	buf_release(&m->own);
	free(m->sources.items);
	free(m->names.items);
	free(m);
}

/* ---- mappings ---- */

struct segment {
	int64_t line, column;
	int64_t source, source_line, name; /* source -1: it comes from nowhere; name -1: it has none */
};

struct decoder {
	const struct source_map *m;
	const char *at, *end;
	struct segment now; /* the numbers that differences count from, and the line */
	bool is_bad_line;   /* its columns went back: from there on nobody can say what lies where */
};

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Adds one difference to *value, which must stay within 32 bits without a sign. */
static int take_number(struct decoder *d, int64_t *value)
{
	uint64_t bits = 0;
	int digit;

	for (int shift = 0;; shift += 5) {
		digit = d->at < d->end ? digit_of(*d->at++) : -1;
		if (digit < 0 || shift > 30)
			return -EBADMSG;
		bits |= (uint64_t)(digit & 31) << shift;
		if (!(digit & 32))
			break;
	}
	*value += bits & 1 ? -(int64_t)(bits >> 1) : (int64_t)(bits >> 1);
	return *value < 0 || *value > UINT32_MAX ? -EBADMSG : 0;
}

static bool ends_here(const struct decoder *d)
{
	return d->at == d->end || *d->at == ',' || *d->at == ';';
}

/* Where a segment comes from, and what that is called. */
static int take_source(struct decoder *d, struct segment *out)
{
	int64_t column = UINT32_MAX / 2; /* of the source: not shown, so its differences are only passed over */
	int r = take_number(d, &d->now.source);

	if (r == 0)
		r = take_number(d, &d->now.source_line);
	if (r == 0)
		r = take_number(d, &column);
	if (r < 0 || (size_t)d->now.source >= d->m->sources.count)
		return -EBADMSG;
	out->source = d->is_bad_line ? -1 : d->now.source;
	out->source_line = d->now.source_line;
	if (ends_here(d))
		return 0;
	r = take_number(d, &d->now.name);
	if (r < 0 || (size_t)d->now.name >= d->m->names.count || !ends_here(d))
		return -EBADMSG;
	out->name = d->now.name;
	return 0;
}

/* The next segment. Return: 1; 0: there is none; -EBADMSG. */
static int take_segment(struct decoder *d, struct segment *out)
{
	int64_t before;
	int r;

	for (; d->at < d->end && (*d->at == ',' || *d->at == ';'); d->at++) {
		if (*d->at == ',')
			continue;
		d->now.line++;
		d->now.column = 0;
		d->is_bad_line = false;
	}
	if (d->at == d->end)
		return 0;
	before = d->now.column;
	r = take_number(d, &d->now.column);
	d->is_bad_line |= d->now.column < before;
	*out = (struct segment){ .line = d->now.line, .column = d->now.column, .source = -1, .name = -1 };
	if (r == 0 && !ends_here(d))
		r = take_source(d, out);
	return r < 0 ? r : 1;
}

/* ---- places ---- */

struct finding {
	const struct source_map *m;
	struct buf file, name;
	struct lines_answer answer;
	lines_visit_fn *visit;
	void *ctx;
};

/* What cannot be a name or a path is left out. Return: 0 or -ENOMEM. */
static int add_text(struct buf *out, struct str value)
{
	size_t before = out->len;

	if (json_text(value, out) < 0 || (out->len > before && memchr(out->ptr + before, 0, out->len - before)))
		out->len = before;
	return out->error == -ENOMEM ? out->error : 0;
}

static int add_file(struct finding *f, int64_t source)
{
	size_t root_len;
	int r = f->m->root.len ? add_text(&f->file, f->m->root) : 0;

	if (f->file.len && f->file.ptr[f->file.len - 1] != '/')
		buf_addc(&f->file, '/');
	root_len = f->file.len;
	if (r == 0)
		r = add_text(&f->file, f->m->sources.items[source]);
	if (f->file.len == root_len) /* a source without a name */
		f->file.len = 0;
	return r;
}

/* @s: the last segment that does not lie behind @place */
static int visit_place(struct finding *f, const struct segment *s, uint64_t place)
{
	bool is_here = source_map_place((uint32_t)s->line, (uint32_t)s->column) == place;
	int r = 0;

	f->answer.depth = 0;
	buf_clear(&f->file);
	buf_clear(&f->name);
	if (s->source >= 0 && (uint64_t)s->line == place >> 32 && s->source_line < UINT32_MAX) {
		r = add_file(f, s->source);
		if (r == 0 && is_here && s->name >= 0)
			r = add_text(&f->name, f->m->names.items[s->name]);
		f->answer.depth = f->file.len && !f->file.error && !f->name.error;
	}
	f->answer.frames[0] = (struct lines_wire_frame){ .function = buf_str(&f->name),
							 .file = buf_str(&f->file),
							 .line = (uint32_t)s->source_line + 1 };
	return r < 0 ? r : f->visit(f->ctx, &f->answer);
}

static bool is_behind(const struct segment *s, uint64_t place)
{
	return s->line > UINT32_MAX || source_map_place((uint32_t)s->line, (uint32_t)s->column) > place;
}

/* Return: is it too late? */
static bool count_work(uint64_t *work, uint64_t more, uint64_t deadline_ns)
{
	*work += more;
	if (*work < LOOK_AT_CLOCK)
		return false;
	*work = 0;
	return clock_monotonic_ns(&clock_system) > deadline_ns;
}

static int find(struct finding *f, const uint64_t *places, size_t count, uint64_t deadline_ns)
{
	struct decoder d = { .m = f->m, .at = f->m->mappings.ptr, .end = f->m->mappings.ptr + f->m->mappings.len };
	struct segment last = { .source = -1, .name = -1 }, next = last;
	uint64_t work = 0;
	size_t done = 0;
	int r = 1;

	while (r > 0 && done < count) {
		r = take_segment(&d, &next);
		if (count_work(&work, 1, deadline_ns))
			return -ETIMEDOUT;
		while (r >= 0 && done < count && (r == 0 || is_behind(&next, places[done]))) {
			int visited = visit_place(f, &last, places[done++]);

			if (visited < 0)
				return visited;
			if (count_work(&work, PLACE_COUNTS, deadline_ns))
				return -ETIMEDOUT;
		}
		if (r > 0)
			last = next;
	}
	return r < 0 ? r : 0;
}

int source_map_find(const struct source_map *m, const uint64_t *places, size_t count, uint64_t deadline_ns,
		    lines_visit_fn *visit, void *ctx)
{
	struct finding f = {
		.m = m,
		.file = BUF_INIT(LINES_FILE_MAX),
		.name = BUF_INIT(LINES_FUNCTION_MAX),
		.visit = visit,
		.ctx = ctx,
	};
	int r = find(&f, places, count, deadline_ns);

	buf_release(&f.file);
	buf_release(&f.name);
	return r;
}
