/* SPDX-License-Identifier: Apache-2.0 */
/* The window's own facts as pprof comments: lines "hearth: key=value" that other tools show and we read back. A comment
 * is taken back only when writing it again gives the same text, so nothing that a stranger wrote is changed. */
#include <stddef.h>

#include "codec/pprof_int.h"

#define PREFIX "hearth: "
#define LINE_MAX KIB(64)

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
	struct buf line;
	int (*emit)(void *ctx, struct str text);
	void *ctx;
};

static void writer_release(struct line_writer *lw)
{
	buf_release(&lw->line);
}

static void begin(struct line_writer *lw, const char *key)
{
	buf_clear(&lw->line);
	buf_adds(&lw->line, STR(PREFIX));
	buf_adds(&lw->line, str_of(key));
}

static int end(struct line_writer *lw)
{
	if (lw->line.error == -E2BIG)
		return 0; /* a text of 64 KiB is no comment: left out */
	return lw->line.error ? lw->line.error : lw->emit(lw->ctx, buf_str(&lw->line));
}

/* "counter.NAME=": '=' and '%' in the name as %3D and %25. */
static void add_name(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] == '=' || name.ptr[i] == '%')
			buf_addf(out, "%%%02X", (unsigned int)name.ptr[i]);
		else
			buf_addc(out, name.ptr[i]);
	}
}

static int emit_scalars(const struct window *w, struct line_writer *lw)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++) {
		const char *text = *text_at((struct window *)w, &texts[i]);

		if (!text || !*text)
			continue;
		begin(lw, texts[i].key);
		buf_addf(&lw->line, "=%s", text);
		r = end(lw);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
		if (!number_get(w, &numbers[i]))
			continue;
		begin(lw, numbers[i].key);
		buf_addc(&lw->line, '=');
		buf_addu64(&lw->line, number_get(w, &numbers[i]));
		r = end(lw);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(averages); i++) {
		double value = average_get(w, &averages[i]);

		if (!(value >= 0 && value < 1e9))
			continue;
		begin(lw, averages[i].key);
		buf_addf(&lw->line, "=%.2f", value);
		r = end(lw);
	}
	return r;
}

static int emit_share(const struct window *w, struct line_writer *lw)
{
	double share = window_complete_share(w);

	if (share < 0)
		return 0;
	begin(lw, "complete_share");
	buf_addf(&lw->line, "=%.2f%%", share * 100);
	return end(lw);
}

static int emit_counter(struct line_writer *lw, const struct window_counter *counter)
{
	begin(lw, "counter.");
	add_name(&lw->line, str_of(counter->name));
	buf_addc(&lw->line, '=');
	buf_addu64(&lw->line, counter->value);
	return end(lw);
}

static int emit_label(struct line_writer *lw, const struct window_label *label)
{
	begin(lw, "label.");
	add_name(&lw->line, str_of(label->key));
	buf_addf(&lw->line, "=%s", label->value);
	return end(lw);
}

int pprof_comments_each(const struct window *w, int (*line)(void *ctx, struct str text), void *ctx)
{
	scoped(writer_release) struct line_writer lw = { .line = BUF_INIT(LINE_MAX), .emit = line, .ctx = ctx };
	int r = emit_scalars(w, &lw);

	for (size_t i = 0; r == 0 && i < w->label_count; i++)
		r = emit_label(&lw, &w->labels[i]);
	for (size_t i = 0; r == 0 && i < w->counter_count; i++)
		r = emit_counter(&lw, &w->counters[i]);
	return r ? r : emit_share(w, &lw);
}

/* Reading: each function returns 1 when it took the comment, 0 when not, or -errno. */

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

/* Undoes add_name(). Return: false when add_name() would write the result differently. */
static bool read_name(struct str text, struct buf *out)
{
	while (text.len) {
		bool is_equals = str_starts(text, STR("%3D"));

		if (text.ptr[0] == '%' && !is_equals && !str_starts(text, STR("%25")))
			return false;
		buf_addc(out, is_equals ? '=' : text.ptr[0]);
		text = str_skip(text, text.ptr[0] == '%' ? 3 : 1);
	}
	return !out->error;
}

static int lift_named(struct window *w, struct str key, struct str value)
{
	bool is_counter = str_starts(key, STR("counter."));
	scoped(buf_release) struct buf name = BUF_INIT(LINE_MAX);
	uint64_t number = 0;
	int r;

	if (!is_counter && !str_starts(key, STR("label.")))
		return 0;
	if (!read_name(str_skip(key, is_counter ? strlen("counter.") : strlen("label.")), &name))
		return name.error == -ENOMEM ? -ENOMEM : 0;
	if (is_counter) {
		if (str_to_u64(value, 0, UINT64_MAX, &number) < 0 || (value.len > 1 && value.ptr[0] == '0'))
			return 0;
		for (size_t i = 0; i < w->counter_count; i++)
			if (str_eq(str_of(w->counters[i].name), buf_str(&name)))
				return 0;
		r = window_set_counter(w, buf_str(&name), number);
	} else {
		for (size_t i = 0; i < w->label_count; i++)
			if (str_eq(str_of(w->labels[i].key), buf_str(&name)))
				return 0;
		r = window_add_label(w, buf_str(&name), value);
	}
	if (r == -E2BIG)
		return 0; /* the window is full: it stays a comment */
	return r < 0 ? r : 1;
}

static int lift(struct window *w, struct str text)
{
	struct str key, value;
	ptrdiff_t equals;
	int r;

	if (!str_starts(text, STR(PREFIX)) || text.len > LINE_MAX || memchr(text.ptr, 0, text.len))
		return 0;
	text = str_skip(text, strlen(PREFIX));
	equals = str_find(text, '=');
	if (equals < 0)
		return 0;
	key = str_first(text, (size_t)equals);
	value = str_skip(text, (size_t)equals + 1);
	r = lift_text(w, key, value);
	r = r ? r : lift_number(w, key, value);
	r = r ? r : lift_average(w, key, value);
	return r ? r : lift_named(w, key, value);
}

/* The share follows from the counters: the comment that says so goes, one that says otherwise stays. */
static void drop_share(struct window *w)
{
	struct model *m = w->model;
	double share = window_complete_share(w);
	char text[80];

	if (share < 0)
		return;
	(void)snprintf(text, sizeof(text), PREFIX "complete_share=%.2f%%", share * 100); /* cut: then it stays */
	for (size_t i = 0; i < m->comments_count; i++) {
		if (!str_eq(model_string(m, m->comments[i]), str_of(text)))
			continue;
		memmove(&m->comments[i], &m->comments[i + 1], (m->comments_count - i - 1) * sizeof(*m->comments));
		m->comments_count--;
		return;
	}
}

int pprof_comments_lift(struct window *w)
{
	struct model *m = w->model;
	size_t kept = 0;

	for (size_t i = 0; i < m->comments_count; i++) {
		int r = lift(w, model_string(m, m->comments[i]));

		if (r < 0)
			return r;
		if (!r)
			m->comments[kept++] = m->comments[i];
	}
	m->comments_count = kept;
	drop_share(w);
	return 0;
}
