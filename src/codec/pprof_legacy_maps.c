/* SPDX-License-Identifier: Apache-2.0 */
/* The memory map at the end of a legacy profile, and which mapping each address lies in.
 *
 *	55d0c0000000-55d0c0001000 r-xp 00001000 fe:01 1234  /usr/bin/example      as /proc/PID/maps has it
 *	0x400000-0x401000: /usr/bin/example (@1000) 0123abcd                      the brief form
 *	build=/usr/bin                                                            $build in later lines stands for
 * /usr/bin
 */
#include "base/array.h"
#include "base/ascii.h"
#include "codec/pprof_legacy_int.h"

#define VARIABLES_MAX 64
#define FIXES_MAX 16 /* mappings whose first part is missing */

struct variable {
	struct legacy_text name, value;
};

struct map_reader {
	struct legacy *in;
	struct variable variables[VARIABLES_MAX];
	size_t variables_count;
	struct buf line; /* the one being read, variables put in */
};

static void map_reader_release(struct map_reader *mr)
{
	buf_release(&mr->line);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Programs that log their maps put "... file.cc:12] " in front. */
static struct str without_log_prefix(struct str line)
{
	ptrdiff_t end = str_find(line, ']'), open = str_find(line, '[');
	size_t at;

	if (end < 1 || (open >= 0 && open < end) || (size_t)end + 1 >= line.len || !is_blank(line.ptr[end + 1]))
		return line;
	for (at = (size_t)end; at && ascii_is_digit(line.ptr[at - 1]);)
		at--;
	if (at == (size_t)end || at < 2 || line.ptr[at - 1] != ':')
		return line;
	return str_skip(line, (size_t)end + 2);
}

static int keep_text(struct legacy *in, struct str text, struct legacy_text *out)
{
	size_t at = in->text.len;

	buf_adds(&in->text, text);
	if (in->text.error)
		return legacy_failed(in, in->text.error);
	*out = (struct legacy_text){ at, text.len };
	return 0;
}

/* Puts values in for $names; of several that fit, the one given first. Return: 0, -ENOMEM, -E2BIG. */
static int put_variables_in(struct map_reader *mr, struct str line)
{
	buf_clear(&mr->line);
	while (line.len && !mr->line.error) {
		struct variable *found = NULL;

		for (size_t i = 0; line.ptr[0] == '$' && i < mr->variables_count && !found; i++)
			if (str_starts(str_skip(line, 1), legacy_str(mr->in, mr->variables[i].name)))
				found = &mr->variables[i];
		if (found)
			buf_adds(&mr->line, legacy_str(mr->in, found->value));
		else
			buf_addc(&mr->line, line.ptr[0]);
		line = str_skip(line, found ? 1 + found->name.len : 1);
	}
	return legacy_failed(mr->in, mr->line.error);
}

static int set_variable(struct map_reader *mr, struct str line, ptrdiff_t equals)
{
	struct variable added = { 0 };
	int r;

	if (mr->variables_count == VARIABLES_MAX)
		return 0; /* later ones stay as they are written */
	r = keep_text(mr->in, str_trim(str_first(line, (size_t)equals)), &added.name);
	r = r ? r : keep_text(mr->in, str_trim(str_skip(line, (size_t)equals + 1)), &added.value);
	if (r == 0)
		mr->variables[mr->variables_count++] = added;
	return r;
}

/* Cuts the next word off the front of @s. Return: false at the end. */
static bool next_word(struct str *s, struct str *out)
{
	size_t len = 0;

	while (s->len && is_blank(s->ptr[0]))
		*s = str_skip(*s, 1);
	while (len < s->len && !is_blank(s->ptr[len]))
		len++;
	*out = str_first(*s, len);
	*s = str_skip(*s, len);
	return len > 0;
}

static bool to_hex(struct str s, uint64_t *out)
{
	if (str_starts(s, STR("0x")))
		s = str_skip(s, 2);
	return str_to_hex64(s, out) == 0;
}

/* "start-end", or the two as words, with or without a colon behind. */
static bool take_range(struct str *s, struct legacy_mapping *out)
{
	struct str word, end;
	ptrdiff_t dash;

	if (!next_word(s, &word))
		return false;
	dash = str_find(word, '-');
	end = dash < 0 ? STR("") : str_skip(word, (size_t)dash + 1);
	if (!end.len && !next_word(s, &end))
		return false;
	if (str_ends(end, STR(":")))
		end.len--;
	return to_hex(dash < 0 ? word : str_first(word, (size_t)dash), &out->start) && to_hex(end, &out->limit);
}

static bool is_permissions(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): NUL is none of them */
		if (!memchr("-rwxps", s.ptr[i], 6))
			return false;
	return s.len > 0;
}

static bool is_device(struct str s)
{
	ptrdiff_t colon = str_find(s, ':');
	uint64_t part;

	return colon > 0 && str_to_hex64(str_first(s, (size_t)colon), &part) == 0 &&
	       str_to_hex64(str_skip(s, (size_t)colon + 1), &part) == 0;
}

/* What follows the permissions in /proc/PID/maps: [offset] device inode [path]. */
static bool take_kernel_form(struct str s, uint64_t *offset, struct str *file)
{
	struct str word;
	uint64_t inode;

	if (!next_word(&s, &word))
		return false;
	if (!is_device(word) && (str_to_hex64(word, offset) < 0 || !next_word(&s, &word) || !is_device(word)))
		return false;
	if (!next_word(&s, &word) || str_to_u64(word, 0, UINT64_MAX, &inode) < 0)
		return false;
	*file = str_trim(s);
	if (str_ends(*file, STR(" (deleted)")))
		file->len -= strlen(" (deleted)");
	return true;
}

/* [path] [(@offset)] [build id] */
static void take_brief_form(struct str s, uint64_t *offset, struct str *file, struct str *build_id)
{
	struct str rest = s, word;
	uint64_t number;

	if (next_word(&rest, &word) && !str_starts(word, STR("(@"))) {
		*file = word;
		s = rest;
	}
	rest = s;
	if (next_word(&rest, &word) && str_starts(word, STR("(@")) && str_ends(word, STR(")"))) {
		ignore(str_to_hex64(str_n(word.ptr + 2, word.len - 3), offset)); /* otherwise it stays 0 */
		s = rest;
	}
	if (next_word(&s, &word) && str_to_hex64(str_first(word, 16), &number) == 0)
		*build_id = word;
}

/* Return: 1 for a mapping, executable or not, 0 for another line, or -errno. */
static int read_mapping(struct map_reader *mr, struct str line)
{
	struct legacy *in = mr->in;
	struct legacy_mapping row = { 0 };
	struct str file = STR(""), build_id = STR(""), word, rest;
	int r;

	if (!take_range(&line, &row))
		return 0;
	rest = line;
	if (next_word(&rest, &word) && is_permissions(word)) {
		if (!memchr(word.ptr, 'x', word.len))
			return 1;
		line = rest;
	}
	if (!take_kernel_form(line, &row.offset, &file)) {
		row.offset = 0;
		take_brief_form(line, &row.offset, &file, &build_id);
	}
	r = keep_text(in, file, &row.file);
	r = r ? r : keep_text(in, build_id, &row.build_id);
	r = r ? r
	      : legacy_failed(in,
			      array_grow(&in->mappings, &in->mappings_cap, in->mappings_count, LEGACY_MAPPINGS_MAX));
	if (r < 0)
		return r;
	in->mappings[in->mappings_count++] = row;
	return 1;
}

static int read_line(struct map_reader *mr, struct str raw)
{
	int r = put_variables_in(mr, without_log_prefix(raw));
	struct str line;
	ptrdiff_t equals;

	if (r < 0)
		return r;
	line = buf_str(&mr->line);
	r = read_mapping(mr, line);
	if (r != 0)
		return MIN(r, 0);
	equals = str_find(line, '=');
	return equals < 0 ? 0 : set_variable(mr, line, equals);
}

/* Corrections */

static bool same_where_known(const struct legacy *in, struct legacy_text a, struct legacy_text b)
{
	return !a.len || !b.len || str_eq(legacy_str(in, a), legacy_str(in, b));
}

static bool continues(const struct legacy *in, const struct legacy_mapping *a, const struct legacy_mapping *b)
{
	if (!same_where_known(in, a->file, b->file) || !same_where_known(in, a->build_id, b->build_id) ||
	    a->limit != b->start)
		return false;
	return !a->offset || !b->offset || a->offset + (a->limit - a->start) == b->offset;
}

static void join_neighbours(struct legacy *in)
{
	size_t kept = 0;

	for (size_t i = 0; i < in->mappings_count; i++) {
		const struct legacy_mapping *row = &in->mappings[i];
		struct legacy_mapping *last = kept ? &in->mappings[kept - 1] : NULL;

		if (!last || !continues(in, last, row)) {
			in->mappings[kept++] = *row;
			continue;
		}
		last->limit = row->limit;
		if (row->file.len)
			last->file = row->file;
		if (row->build_id.len)
			last->build_id = row->build_id;
	}
	in->mappings_count = kept;
}

/* "libx.so" and "libx.so.6", not "x.sound". */
static bool is_library(struct str file)
{
	if (str_ends(file, STR(".so")))
		return true;
	for (ptrdiff_t at; (at = str_search(file, STR(".so"))) >= 0;) {
		file = str_skip(file, (size_t)at + 3);
		if (file.len > 1 && (file.ptr[0] == '.' || file.ptr[0] == '_') && ascii_is_digit(file.ptr[1]))
			return true;
	}
	return false;
}

/* pprof takes the first mapping for the main binary. */
static void main_binary_first(struct legacy *in)
{
	for (size_t i = 0; i < in->mappings_count; i++) {
		struct legacy_mapping row = in->mappings[i];
		struct str file = str_trim(legacy_str(in, row.file));

		if (!file.len || file.ptr[0] == '[' || is_library(file))
			continue;
		in->mappings[i] = in->mappings[0];
		in->mappings[0] = row;
		return;
	}
}

/* Some handlers give wrong ranges for a main binary whose text was moved to huge pages, or count its start from the
 * text. */
static void mend_main_binary(struct legacy *in)
{
	struct legacy_mapping *rows = in->mappings;

	if (in->mappings_count > 1 && str_starts(legacy_str(in, rows[0].file), STR("/anon_hugepage")) &&
	    rows[0].limit == rows[1].start)
		memmove(rows, rows + 1, --in->mappings_count * sizeof(*rows));
	if (in->mappings_count && rows[0].start - rows[0].offset == 0x400000) {
		rows[0].start = 0x400000;
		rows[0].offset = 0;
	}
}

int legacy_read_map(struct legacy *in, struct legacy_line *line)
{
	scoped(map_reader_release) struct map_reader mr = { .in = in, .line = BUF_INIT(LEGACY_LINE_MAX) };
	int r;

	while ((r = legacy_next_line(in, line)) > 0) {
		r = read_line(&mr, line->text);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	join_neighbours(in);
	main_binary_first(in);
	mend_main_binary(in);
	return 0;
}

/* Addresses to mappings. Mappings may overlap, then the first one given wins: the address space is cut at every border
 * and each piece has its owner. */
struct pieces {
	uint64_t *starts;
	uint32_t *owners; /* mapping + 1, or 0 */
	size_t count;
};

static void pieces_release(struct pieces *p)
{
	free(p->starts);
	free(p->owners);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The last piece that starts at or below @address, which is not below the first. */
static size_t piece_at(const struct pieces *p, uint64_t address)
{
	size_t low = 0, high = p->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (p->starts[middle] <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int cut_pieces(const struct legacy *in, struct pieces *out)
{
	scoped(pieces_release) struct pieces p = { .count = 2 * in->mappings_count + 1 };

	p.starts = calloc(p.count, sizeof(*p.starts)); /* the first piece starts at 0 */
	p.owners = calloc(p.count, sizeof(*p.owners));
	if (!p.starts || !p.owners)
		return -ENOMEM;
	for (size_t i = 0; i < in->mappings_count; i++) {
		p.starts[2 * i + 1] = in->mappings[i].start;
		p.starts[2 * i + 2] = in->mappings[i].limit;
	}
	qsort(p.starts, p.count, sizeof(*p.starts), by_value);
	for (uint32_t i = 0; i < in->mappings_count; i++) {
		const struct legacy_mapping *row = &in->mappings[i];
		size_t at = row->start ? piece_at(&p, row->start - 1) : 0;

		for (; at < p.count && p.starts[at] < row->limit; at++)
			if (p.starts[at] >= row->start && !p.owners[at])
				p.owners[at] = i + 1;
	}
	pieces_release(out);
	*out = p;
	p = (struct pieces){ 0 }; /* moved out */
	return 0;
}

/* A handler may leave the first part of a mapping out. Return: mapping + 1 whose start moved down to cover @address. */
static uint32_t extend_mapping(struct legacy *in, uint64_t address)
{
	for (uint32_t i = 0; i < in->mappings_count; i++) {
		struct legacy_mapping *row = &in->mappings[i];

		if (!row->offset || row->start - row->offset > address || address >= row->start)
			continue;
		row->start -= row->offset;
		row->offset = 0;
		return i + 1;
	}
	return 0;
}

static int add_catch_all(struct legacy *in, uint32_t *out)
{
	int r = array_grow(&in->mappings, &in->mappings_cap, in->mappings_count, LEGACY_MAPPINGS_MAX + 1);

	if (r < 0)
		return r;
	in->mappings[in->mappings_count++] = (struct legacy_mapping){ .limit = UINT64_MAX };
	*out = (uint32_t)in->mappings_count;
	return 0;
}

static int place_one(struct legacy *in, struct pieces *p, struct legacy_place *place, uint32_t *catch_all,
		     size_t *fixes)
{
	uint32_t owner = p->owners[piece_at(p, place->address)];
	int r = 0;

	if (!owner && !*catch_all && *fixes < FIXES_MAX) {
		owner = extend_mapping(in, place->address);
		if (owner && ++*fixes)
			r = cut_pieces(in, p);
	}
	if (!owner && !*catch_all)
		r = add_catch_all(in, catch_all);
	place->mapping = owner ? owner : *catch_all;
	return r;
}

int legacy_place_all(struct legacy *in)
{
	scoped(pieces_release) struct pieces p = { 0 };
	uint32_t catch_all = 0;
	size_t fixes = 0;
	int r = cut_pieces(in, &p);

	for (size_t i = 0; r == 0 && i < in->samples_count; i++) {
		const struct legacy_sample *s = &in->samples[i];

		for (size_t at = 0; r == 0 && at < s->frame_count; at++) {
			struct legacy_place *place = &in->places[in->frames[s->first_frame + at]];

			if (!place->seen && place->address)
				r = place_one(in, &p, place, &catch_all, &fixes);
			place->seen = true;
		}
	}
	return legacy_failed(in, r);
}
