/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/perf_line.h"

#define NAME_WORDS_MAX 64 /* words of a comm; perf prints 15 bytes, kernel workers have up to 63 */
#define NAME_MAX_BYTES 256
#define ADDRESS_MIN 4 /* digits of an address that stands among the fields: "a" may be anything */
#define RECORD "PERF_RECORD_"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct str drop_front(struct str s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = str_skip(s, 1);
	return s;
}

static struct str drop_blanks(struct str s)
{
	while (s.len && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return drop_front(s);
}

/* The next word; @rest begins with it, and with what follows its blanks afterwards. */
static struct str next_word(struct str *rest)
{
	size_t len = 0;
	struct str word;

	while (len < rest->len && !is_blank(rest->ptr[len]))
		len++;
	word = str_first(*rest, len);
	*rest = drop_front(str_skip(*rest, len));
	return word;
}

/* "123", or "-1" where perf does not know. */
static bool read_id(struct str s, uint64_t *out, bool *known)
{
	bool is_minus = s.len && s.ptr[0] == '-';

	*known = !is_minus;
	return str_to_u64(is_minus ? str_skip(s, 1) : s, 0, UINT32_MAX, out) == 0;
}

/* "TID" or "PID/TID". */
static bool read_ids(struct str word, struct perf_head *h)
{
	ptrdiff_t slash = str_find(word, '/');

	if (slash < 0)
		return read_id(word, &h->tid, &h->has_tid);
	return read_id(str_first(word, (size_t)slash), &h->pid, &h->has_pid) &&
	       read_id(str_skip(word, (size_t)slash + 1), &h->tid, &h->has_tid);
}

static bool read_cpu(struct str word, struct perf_head *h)
{
	if (word.len < 3 || word.ptr[0] != '[' || word.ptr[word.len - 1] != ']')
		return false;
	h->has_cpu = str_to_u64(str_n(word.ptr + 1, word.len - 2), 0, UINT32_MAX, &h->cpu) == 0;
	return h->has_cpu;
}

/* "SECONDS.FRACTION:" with 6 or 9 digits behind the dot. */
static bool read_time(struct str word, struct perf_head *h)
{
	ptrdiff_t dot = str_find(word, '.');
	uint64_t seconds, fraction;
	size_t digits;

	if (dot <= 0 || word.ptr[word.len - 1] != ':')
		return false;
	digits = word.len - (size_t)dot - 2;
	if (!digits || digits > 9 || str_to_u64(str_first(word, (size_t)dot), 0, UINT32_MAX, &seconds) < 0 ||
	    str_to_u64(str_n(word.ptr + dot + 1, digits), 0, NSEC_PER_SEC, &fraction) < 0)
		return false;
	for (; digits < 9; digits++)
		fraction *= 10;
	h->time_ns = seconds * NSEC_PER_SEC + fraction;
	h->has_time = true;
	return true;
}

/* A word with a colon at its end that is no time. "PERF_RECORD_MMAP2" and its like have none. */
static bool read_event(struct str word, struct perf_head *h)
{
	struct perf_head ignored;

	if (word.len < 2 || word.ptr[word.len - 1] != ':' || read_time(word, &ignored))
		return false;
	h->event = str_first(word, word.len - 1);
	return true;
}

/* What may stand behind the fields when no event was printed: the one frame, or a record of another kind. */
static bool is_known_rest(struct str rest)
{
	struct perf_frame frame;
	ptrdiff_t blank = str_find(rest, ' ');

	if (!rest.len || str_starts(rest, STR(RECORD)))
		return true;
	return (blank < 0 || blank >= ADDRESS_MIN) && perf_frame_parse(rest, &frame);
}

/* The fields from @rest on, in the order perf prints them; each may be missing. @with_ids: pid or tid are there. */
static bool read_fields(struct str rest, bool with_ids, struct perf_head *out)
{
	struct perf_head h = { 0 };
	struct str at = rest, word = next_word(&rest);

	if (with_ids) {
		if (!read_ids(word, &h))
			return false;
		at = rest;
		word = next_word(&rest);
	}
	if (read_cpu(word, &h)) {
		at = rest;
		word = next_word(&rest);
	}
	if (word.len && read_time(word, &h)) {
		at = rest;
		word = next_word(&rest);
	}
	if (str_to_u64(word, 0, UINT64_MAX, &h.period) == 0) {
		struct str behind = rest, event = next_word(&behind);

		/* Of a line without an event a number may be an address as well: that has more digits. */
		if (read_event(event, &h) || !rest.len || is_known_rest(rest)) {
			h.has_period = true;
			at = h.event.len ? behind : rest;
		}
	} else if (read_event(word, &h)) {
		at = rest;
	}
	/* The less is there, the less may follow: any text with a colon in it is no sample. */
	if ((!h.event.len || (!with_ids && !h.has_time)) && !is_known_rest(at))
		return false;
	if (!h.event.len && !with_ids && !h.has_time)
		return false;
	h.rest = drop_blanks(at);
	*out = h;
	return true;
}

/* A comm may have blanks and digits in it: the first word from which on all fields fit is taken for the pid. */
static bool read_behind_comm(struct str line, bool with_ids, struct perf_head *out)
{
	struct str start = drop_front(line), rest = start;

	for (int words = 0; rest.len && words < NAME_WORDS_MAX; words++) {
		size_t at = (size_t)(rest.ptr - start.ptr);

		if (at > NAME_MAX_BYTES)
			return false;
		if (at && read_fields(rest, with_ids, out)) {
			out->comm = drop_blanks(str_first(start, at));
			return true;
		}
		ignore(next_word(&rest).len);
	}
	return false;
}

bool perf_head_parse(struct str line, struct perf_head *out)
{
	/* Without a comm the fields begin behind blanks, which fill them up to their width. */
	if (line.len && is_blank(line.ptr[0]) && read_fields(drop_front(line), true, out))
		return true;
	return read_behind_comm(line, true, out) || read_fields(drop_front(line), true, out) ||
	       read_behind_comm(line, false, out) || read_fields(drop_front(line), false, out);
}

/* The parenthesis that the last one closes, with a blank in front: paths may have some of their own. */
static ptrdiff_t find_opening(struct str s)
{
	size_t depth = 0;

	for (size_t i = s.len; i-- > 0;) {
		if (s.ptr[i] == ')')
			depth++;
		else if (s.ptr[i] == '(' && --depth == 0)
			return i == 0 || is_blank(s.ptr[i - 1]) ? (ptrdiff_t)i : -1;
	}
	return -1;
}

/* " (file)" or " (inlined)" at the end. */
static struct str take_parentheses(struct str *s)
{
	struct str inner = STR("");
	ptrdiff_t at;

	if (!s->len || s->ptr[s->len - 1] != ')')
		return inner;
	at = find_opening(*s);
	if (at < 0) { /* the path has one that is never closed */
		for (at = (ptrdiff_t)s->len - 1; at > 0 && !(s->ptr[at] == '(' && is_blank(s->ptr[at - 1])); at--)
			;
		if (s->ptr[at] != '(')
			return inner;
	}
	inner = str_n(s->ptr + at + 1, s->len - (size_t)at - 2);
	*s = drop_blanks(str_first(*s, (size_t)at));
	return inner;
}

/* "name+0x12" without the offset. */
static struct str drop_offset(struct str s)
{
	uint64_t offset;
	ptrdiff_t plus = str_rfind(s, '+');

	if (plus <= 0 || !str_starts(str_skip(s, (size_t)plus), STR("+0x")) ||
	    str_to_hex64(str_skip(s, (size_t)plus + 3), &offset) < 0)
		return s;
	return str_first(s, (size_t)plus);
}

bool perf_frame_parse(struct str text, struct perf_frame *out)
{
	struct perf_frame f = { 0 };
	struct str rest = drop_blanks(text), word = next_word(&rest);

	if (str_to_hex64(word, &f.address) < 0)
		return false;
	f.dso = take_parentheses(&rest);
	if (str_eq(f.dso, STR("inlined"))) {
		f.is_inlined = true;
		f.dso = take_parentheses(&rest);
	}
	f.dso = drop_offset(f.dso);
	f.name = drop_offset(rest);
	*out = f;
	return true;
}

/* "  path:12", and " (inlined)" behind it when the frame above is. */
static bool read_source(struct str line, struct perf_text *out)
{
	struct str s = drop_blanks(line);
	ptrdiff_t colon;

	out->frame.is_inlined = str_ends(s, STR(" (inlined)"));
	if (out->frame.is_inlined)
		s = drop_blanks(str_first(s, s.len - strlen(" (inlined)")));
	colon = str_rfind(s, ':');
	if (colon <= 0 || str_to_u64(str_skip(s, (size_t)colon + 1), 0, INT32_MAX, &out->source_line) < 0)
		return false;
	out->source = str_first(s, (size_t)colon);
	return true;
}

/* Where a comm begins with '#' or ';', or a symbol's name is made to look like fields, all of them must be there. */
static bool is_certain(const struct perf_head *h)
{
	return h->has_tid && h->event.len && (h->has_time || h->has_cpu || h->has_period);
}

static enum perf_line head_kind(const struct perf_head *h)
{
	bool is_record = str_starts(h->rest, STR(RECORD)) || str_starts(h->event, STR(RECORD));

	return is_record ? PERF_LINE_RECORD : PERF_LINE_HEAD;
}

/* perf begins the frames of a chain with a tab; copies of its text may have blanks. */
static enum perf_line parse_indented(struct str line, struct perf_text *out)
{
	struct perf_head head;

	if (line.ptr[0] == ' ' && perf_head_parse(line, &head) && is_certain(&head)) {
		out->head = head;
		return head_kind(&head);
	}
	if (perf_frame_parse(line, &out->frame))
		return PERF_LINE_FRAME;
	if (read_source(line, out))
		return PERF_LINE_SOURCE;
	if (line.ptr[0] == ' ' && perf_head_parse(line, &out->head))
		return head_kind(&out->head);
	return PERF_LINE_OTHER;
}

enum perf_line perf_line_parse(struct str line, struct perf_text *out)
{
	bool is_marked = line.len && (line.ptr[0] == '#' || line.ptr[0] == ';');

	if (!drop_blanks(line).len)
		return PERF_LINE_BLANK;
	if (is_blank(line.ptr[0]))
		return parse_indented(line, out);
	if (perf_head_parse(line, &out->head) && (!is_marked || is_certain(&out->head)))
		return head_kind(&out->head);
	if (is_marked)
		return PERF_LINE_COMMENT;
	out->head = (struct perf_head){ .comm = drop_blanks(line) };
	return PERF_LINE_NAME_ALONE;
}
