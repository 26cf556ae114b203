/* SPDX-License-Identifier: Apache-2.0 */
/* The window's own facts as two pprof comments, one of facts and one of counters, in logfmt: other tools show them, we
 * read them back. Up to 0.1 each fact was a comment of its own, "hearth: key=value": still read. A fact is taken back
 * only when writing it again gives the same text, so nothing that a stranger wrote is changed. */
#include <inttypes.h>
#include <stddef.h>

#include "codec/pprof_int.h"

#define FACTS "hearth facts:"
#define COUNTERS "hearth counters:"
#define SHARE "complete_share"
#define OLD_PREFIX "hearth: "
#define FACT_MAX KIB(64) /* a longer one is left out */
#define LINE_MAX MIB(80) /* more than all labels or counters of a window take */
#define LINE_FACTS_MAX 2048

struct text_field {
	const char *key;
	size_t at;
};

struct number_field {
	const char *key;
	size_t at, size;
};

static const struct text_field texts[] = {
	{ "agent_version", offsetof(struct window, agent_version) },
	{ "host", offsetof(struct window, host) },
	{ "os_name", offsetof(struct window, os_name) },
	{ "kernel_release", offsetof(struct window, kernel_release) },
	{ "sampler", offsetof(struct window, sampler) },
	{ "unwinder", offsetof(struct window, unwinder) },
	{ "command", offsetof(struct window, command) },
};

static const struct number_field numbers[] = {
	{ "frequency_hz", offsetof(struct window, frequency_hz), 4 },
	{ "cpu_count", offsetof(struct window, cpu_count), 4 },
	{ "busy_ns", offsetof(struct window, busy_ns), 8 },
	{ "cycle_id", offsetof(struct window, cycle_id), 8 },
	{ "run_id_high", offsetof(struct window, run_id[0]), 8 },
	{ "run_id_low", offsetof(struct window, run_id[1]), 8 },
};

static const struct text_field averages[] = {
	{ "cpu_average", offsetof(struct window, cpu_average) },
	{ "memory_average", offsetof(struct window, memory_average) },
};

static char **text_at(struct window *w, const struct text_field *f)
{
	return (char **)(void *)((char *)w + f->at);
}

static uint64_t number_get(const struct window *w, const struct number_field *f)
{
	uint32_t small;
	uint64_t large;

	if (f->size == sizeof(small)) {
		memcpy(&small, (const char *)w + f->at, sizeof(small));
		return small;
	}
	memcpy(&large, (const char *)w + f->at, sizeof(large));
	return large;
}

static void number_set(struct window *w, const struct number_field *f, uint64_t value)
{
	uint32_t small = (uint32_t)value;

	if (f->size == sizeof(small))
		memcpy((char *)w + f->at, &small, sizeof(small));
	else
		memcpy((char *)w + f->at, &value, sizeof(value));
}

static double average_get(const struct window *w, const struct text_field *f)
{
	double value;

	memcpy(&value, (const char *)w + f->at, sizeof(value));
	return value;
}

/* Writing */

struct line_writer {
	struct buf line, fact;
	int (*emit)(void *ctx, struct str text);
	void *ctx;
};

static void writer_release(struct line_writer *lw)
{
	buf_release(&lw->line);
	buf_release(&lw->fact);
}

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

/* What would end or split a key is %XX; in the old form, a line for each, only '=' and '%' were. */
static void add_name(struct buf *out, struct str name, bool old)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (c == '=' || c == '%' || (!old && (is_control(c) || c == ' ' || c == '"')))
			buf_addf(out, "%%%02X", (unsigned int)(unsigned char)c);
		else
			buf_addc(out, c);
	}
}

static bool is_bare(struct str value)
{
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] <= ' ' || value.ptr[i] == 0x7f || strchr("\"\\=", value.ptr[i]))
			return false; /* also bytes from 0x80 on, where char has a sign */
	return value.len > 0;
}

/* Bare, or in quotes with JSON's escapes. */
static void add_value(struct buf *out, struct str value)
{
	if (is_bare(value)) {
		buf_adds(out, value);
		return;
	}
	buf_addc(out, '"');
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];

		if (is_control(c)) {
			buf_addf(out, "\\u%04x", (unsigned int)c);
			continue;
		}
		if (c == '"' || c == '\\')
			buf_addc(out, '\\');
		buf_addc(out, c);
	}
	buf_addc(out, '"');
}

static void begin(struct line_writer *lw, struct str prefix)
{
	buf_clear(&lw->line);
	buf_adds(&lw->line, prefix);
}

static int add_fact(struct line_writer *lw, struct str group, const char *name, struct str value)
{
	buf_clear(&lw->fact);
	buf_addc(&lw->fact, ' ');
	buf_adds(&lw->fact, group);
	add_name(&lw->fact, str_of(name), false);
	buf_addc(&lw->fact, '=');
	add_value(&lw->fact, value);
	if (lw->fact.error == -E2BIG)
		return 0;
	if (lw->fact.error == 0)
		buf_adds(&lw->line, buf_str(&lw->fact));
	return lw->fact.error ? lw->fact.error : lw->line.error;
}

static int add_number(struct line_writer *lw, const char *name, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value); /* fits */
	return add_fact(lw, STR(""), name, str_of(text));
}

static int end(struct line_writer *lw, struct str prefix)
{
	return lw->line.len == prefix.len ? 0 : lw->emit(lw->ctx, buf_str(&lw->line));
}

static int add_facts(const struct window *w, struct line_writer *lw)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++) {
		const char *text = *text_at((struct window *)w, &texts[i]);

		if (text && *text)
			r = add_fact(lw, STR(""), texts[i].key, str_of(text));
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++)
		if (number_get(w, &numbers[i]))
			r = add_number(lw, numbers[i].key, number_get(w, &numbers[i]));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(averages); i++) {
		double value = average_get(w, &averages[i]);
		char text[32];

		if (!(value >= 0 && value < 1e9))
			continue;
		(void)snprintf(text, sizeof(text), "%.2f", value); /* below 1e9: fits */
		r = add_fact(lw, STR(""), averages[i].key, str_of(text));
	}
	for (size_t i = 0; r == 0 && i < w->label_count; i++)
		r = add_fact(lw, STR("label."), w->labels[i].key, str_of(w->labels[i].value));
	return r;
}

/* "98.70%": what follows from the counters, for people. Return: empty when no user sample was counted. */
static struct str share_text(const struct window *w, char text[static 32])
{
	double share = window_complete_share(w);

	if (share < 0)
		return STR("");
	(void)snprintf(text, 32, "%.2f%%", share * 100); /* cut: not read back */
	return str_of(text);
}

static int add_counters(const struct window *w, struct line_writer *lw)
{
	char text[32];
	struct str share = share_text(w, text);
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->counter_count; i++)
		r = add_number(lw, w->counters[i].name, w->counters[i].value);
	return r || !share.len ? r : add_fact(lw, STR(""), SHARE, share);
}

int pprof_comments_each(const struct window *w, int (*line)(void *ctx, struct str text), void *ctx)
{
	scoped(writer_release) struct line_writer lw = {
		.line = BUF_INIT(LINE_MAX), .fact = BUF_INIT(FACT_MAX), .emit = line, .ctx = ctx
	};
	int r;

	begin(&lw, STR(FACTS));
	r = add_facts(w, &lw);
	r = r ? r : end(&lw, STR(FACTS));
	begin(&lw, STR(COUNTERS));
	r = r ? r : add_counters(w, &lw);
	return r ? r : end(&lw, STR(COUNTERS));
}

/* Reading: each function returns 1 when it took the fact, 0 when not, or -errno. */

static int lift_text(struct window *w, struct str key, struct str value)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char **text = text_at(w, &texts[i]);
		int r;

		if (!str_eq(key, str_of(texts[i].key)))
			continue;
		if (*text || !value.len)
			return 0;
		r = window_set_text(text, value);
		return r < 0 ? r : 1;
	}
	return 0;
}

static int lift_number(struct window *w, struct str key, struct str value)
{
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!str_eq(key, str_of(numbers[i].key)))
			continue;
		if (number_get(w, &numbers[i]) || (value.len && value.ptr[0] == '0') ||
		    str_to_u64(value, 1, numbers[i].size == 4 ? UINT32_MAX : UINT64_MAX, &number) < 0)
			return 0;
		number_set(w, &numbers[i], number);
		return 1;
	}
	return 0;
}

static int lift_average(struct window *w, struct str key, struct str value)
{
	char text[32], again[32];
	double number;

	for (size_t i = 0; i < ARRAY_SIZE(averages); i++) {
		if (!str_eq(key, str_of(averages[i].key)))
			continue;
		if (average_get(w, &averages[i]) >= 0 || value.len >= sizeof(text))
			return 0;
		memcpy(text, value.ptr, value.len);
		text[value.len] = 0;
		number = strtod(text, NULL); /* the comparison below refuses what was no number */
		if (!(number >= 0 && number < 1e9))
			return 0;
		(void)snprintf(again, sizeof(again), "%.2f", number); /* below 1e9: fits */
		if (!str_eq(str_of(again), value))
			return 0;
		memcpy((char *)w + averages[i].at, &number, sizeof(number));
		return 1;
	}
	return 0;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Undoes add_name(). Return: false when add_name() would write the result differently. */
static bool read_name(struct str text, bool old, struct buf *out)
{
	scoped(buf_release) struct buf again = BUF_INIT(FACT_MAX);
	struct str rest = text;

	while (rest.len) {
		bool escaped = rest.ptr[0] == '%' && rest.len >= 3 && hex_digit(rest.ptr[1]) >= 0 &&
			       hex_digit(rest.ptr[2]) >= 0;

		buf_addc(out, escaped ? (char)(hex_digit(rest.ptr[1]) * 16 + hex_digit(rest.ptr[2])) : rest.ptr[0]);
		rest = str_skip(rest, escaped ? 3 : 1);
	}
	if (out->error || str_find(buf_str(out), 0) >= 0)
		return false;
	add_name(&again, buf_str(out), old);
	if (again.error)
		out->error = again.error;
	return !again.error && str_eq(buf_str(&again), text);
}

/* Undoes add_value(). Return: false when add_value() would write the result differently. */
static bool read_value(struct str text, struct buf *out)
{
	scoped(buf_release) struct buf again = BUF_INIT(FACT_MAX);
	struct str rest = text;

	if (text.len >= 2 && text.ptr[0] == '"')
		rest = str_skip(str_first(text, text.len - 1), 1);
	while (rest.len) {
		bool escaped = rest.ptr[0] == '\\' && rest.len >= 2, coded = escaped && rest.ptr[1] == 'u';
		unsigned int code = 0;

		for (size_t i = 2; coded && i < 6; i++) {
			char c = i < rest.len ? rest.ptr[i] : 0;
			int digit = hex_digit(c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c);

			if (digit < 0)
				return false;
			code = code * 16 + (unsigned int)digit;
		}
		buf_addc(out, coded ? (char)code : rest.ptr[escaped]);
		rest = str_skip(rest, coded ? 6 : escaped ? 2 : 1);
	}
	if (out->error || str_find(buf_str(out), 0) >= 0)
		return false;
	add_value(&again, buf_str(out));
	if (again.error)
		out->error = again.error;
	return !again.error && str_eq(buf_str(&again), text);
}

static int lift_counter(struct window *w, struct str name, struct str value)
{
	uint64_t number = 0;

	if (str_to_u64(value, 0, UINT64_MAX, &number) < 0 || (value.len > 1 && value.ptr[0] == '0'))
		return 0;
	for (size_t i = 0; i < w->counter_count; i++)
		if (str_eq(str_of(w->counters[i].name), name))
			return 0;
	return window_set_counter(w, name, number);
}

static int lift_label(struct window *w, struct str name, struct str value)
{
	for (size_t i = 0; i < w->label_count; i++)
		if (str_eq(str_of(w->labels[i].key), name))
			return 0;
	return window_add_label(w, name, value);
}

static int lift_named(struct window *w, bool is_counter, bool old, struct str key, struct str value)
{
	scoped(buf_release) struct buf name = BUF_INIT(FACT_MAX);
	size_t before = w->counter_count + w->label_count;
	int r;

	if (!read_name(key, old, &name))
		return name.error == -ENOMEM ? -ENOMEM : 0;
	r = is_counter ? lift_counter(w, buf_str(&name), value) : lift_label(w, buf_str(&name), value);
	if (r < 0 && r != -E2BIG)
		return r;
	return w->counter_count + w->label_count > before; /* a full window: it stays a comment */
}

static int lift_scalar(struct window *w, struct str key, struct str value)
{
	int r = lift_text(w, key, value);

	r = r ? r : lift_number(w, key, value);
	return r ? r : lift_average(w, key, value);
}

/* One fact of a line. @text: key=value */
static int lift_fact(struct window *w, bool is_counter, struct str text)
{
	scoped(buf_release) struct buf value = BUF_INIT(FACT_MAX);
	ptrdiff_t equals = text.len > FACT_MAX ? -1 : str_find(text, '=');
	struct str key;
	int r = 0;

	if (equals < 0)
		return 0;
	key = str_first(text, (size_t)equals);
	if (!read_value(str_skip(text, (size_t)equals + 1), &value))
		return value.error == -ENOMEM ? -ENOMEM : 0;
	if (!is_counter)
		r = lift_scalar(w, key, buf_str(&value));
	if (r == 0 && (is_counter || str_starts(key, STR("label."))))
		r = lift_named(w, is_counter, false, is_counter ? key : str_skip(key, strlen("label.")),
			       buf_str(&value));
	return r;
}

/* What is up to the next space outside of quotes. */
static struct str next_fact(struct str *rest)
{
	struct str fact;
	bool quoted = false;
	size_t len = 0;

	for (; len < rest->len && (quoted || rest->ptr[len] != ' '); len++) {
		if (rest->ptr[len] == '"')
			quoted = !quoted;
		else if (quoted && rest->ptr[len] == '\\' && len + 1 < rest->len)
			len++;
	}
	fact = str_first(*rest, len);
	*rest = str_skip(*rest, MIN(len + 1, rest->len));
	return fact;
}

/* @left: the line without what was taken, empty when nothing is left. Return: 1 when something was taken. */
static int lift_line(struct window *w, struct str prefix, struct str text, struct buf *left)
{
	bool is_counter = str_eq(prefix, STR(COUNTERS));
	struct str rest = str_skip(text, prefix.len), share;
	char expected[32];
	size_t count = 0;
	int taken = 0;

	if (!rest.len || rest.ptr[0] != ' ')
		return 0;
	rest = str_skip(rest, 1);
	buf_adds(left, prefix);
	while (rest.len) {
		struct str fact = next_fact(&rest);
		int r = count++ < LINE_FACTS_MAX ? lift_fact(w, is_counter, fact) : 0;

		if (r < 0)
			return r;
		/* The share follows from the counters: one that says so goes, one that says otherwise stays. */
		share = share_text(w, expected);
		if (!r && is_counter && share.len && str_starts(fact, STR(SHARE "=")))
			r = str_eq(str_skip(fact, strlen(SHARE "=")), share);
		taken |= r;
		if (r)
			continue;
		buf_addc(left, ' ');
		buf_adds(left, fact);
	}
	if (left->len == prefix.len)
		buf_clear(left);
	return left->error ? left->error : taken;
}

/* The first line of each kind from which something is taken. A second one, of a merge by others, stays a comment. */
static int lift_lines(struct window *w, bool *found)
{
	static const char *const prefixes[] = { FACTS, COUNTERS };
	struct model *m = w->model;

	for (size_t k = 0; k < ARRAY_SIZE(prefixes); k++) {
		int taken = 0;
		size_t kept = 0;

		for (size_t i = 0; i < m->comments_count; i++) {
			struct str text = model_string(m, m->comments[i]);
			scoped(buf_release) struct buf left = BUF_INIT(GIB(1));
			uint32_t id = m->comments[i];
			int r = 0;

			if (!taken && str_starts(text, str_of(prefixes[k])))
				r = lift_line(w, str_of(prefixes[k]), text, &left);
			if (r > 0 && left.len)
				r = model_add_string(m, buf_str(&left), &id) < 0 ? -ENOMEM : 1;
			if (r < 0)
				return r;
			taken |= r;
			if (!r || left.len)
				m->comments[kept++] = id;
		}
		m->comments_count = kept;
		*found |= taken;
	}
	return 0;
}

/* The old form: a comment for each fact. */

static int lift_old(struct window *w, struct str text)
{
	struct str key, value;
	ptrdiff_t equals;
	bool is_counter;
	int r;

	if (!str_starts(text, STR(OLD_PREFIX)) || text.len > FACT_MAX || memchr(text.ptr, 0, text.len))
		return 0;
	text = str_skip(text, strlen(OLD_PREFIX));
	equals = str_find(text, '=');
	if (equals < 0)
		return 0;
	key = str_first(text, (size_t)equals);
	value = str_skip(text, (size_t)equals + 1);
	r = lift_scalar(w, key, value);
	is_counter = str_starts(key, STR("counter."));
	if (r || (!is_counter && !str_starts(key, STR("label."))))
		return r;
	return lift_named(w, is_counter, true, str_skip(key, strlen(is_counter ? "counter." : "label.")), value);
}

static void drop_old_share(struct window *w)
{
	struct model *m = w->model;
	char expected[32];
	struct str share = share_text(w, expected), prefix = STR(OLD_PREFIX SHARE "=");

	for (size_t i = 0; share.len && i < m->comments_count; i++) {
		struct str text = model_string(m, m->comments[i]);

		if (!str_starts(text, prefix) || !str_eq(str_skip(text, prefix.len), share))
			continue;
		memmove(&m->comments[i], &m->comments[i + 1], (m->comments_count - i - 1) * sizeof(*m->comments));
		m->comments_count--;
		return;
	}
}

static int lift_all_old(struct window *w)
{
	struct model *m = w->model;
	size_t kept = 0;

	for (size_t i = 0; i < m->comments_count; i++) {
		int r = lift_old(w, model_string(m, m->comments[i]));

		if (r < 0)
			return r;
		if (!r)
			m->comments[kept++] = m->comments[i];
	}
	m->comments_count = kept;
	drop_old_share(w);
	return 0;
}

int pprof_comments_lift(struct window *w)
{
	bool found = false;
	int r = lift_lines(w, &found);

	return r || found ? r : lift_all_old(w);
}
