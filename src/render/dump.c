/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as the text pprof itself dumps: profile.Profile.String of github.com/google/pprof, profile/profile.go. */
#include <inttypes.h>
#include <time.h>

#include "base/array.h"
#include "base/utf8.h"
#include "codec/pprof.h" /* which of the window's facts are comments in the file */
#include "render/render.h"
#include "render/terminal.h"

#define SCRATCH_MAX MIB(16)
#define LABELS_MAX 65536

/* One label of the sample at hand. pprof keeps a list of values per key; equal keys are neighbours after sorting. */
struct dump_label {
	struct str key, text, unit;
	int64_t number;
	bool is_number;
	size_t index; /* keeps the order of a key's values */
};

/* "key:[values]" in scratch. */
struct dump_piece {
	size_t start, end;
};

struct dump {
	const struct model *m;
	struct buf *out;
	bool escape;
	struct dump_label *labels;
	size_t label_count, label_cap;
	struct dump_piece *pieces;
	size_t piece_count, piece_cap;
	struct buf scratch;
};

static void dump_release(struct dump *d)
{
	free(d->labels);
	free(d->pieces);
	buf_release(&d->scratch);
}

static void add_text(struct dump *d, struct str s)
{
	if (d->escape)
		terminal_add(d->out, s, 0);
	else
		buf_adds(d->out, s);
}

static void add_id(struct dump *d, uint32_t id)
{
	add_text(d, model_string(d->m, id));
}

/* The first four characters of Go's time.Duration.String. */
static void duration_text(int64_t ns, char *out, size_t size)
{
	const uint64_t abs = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	const char *sign = ns < 0 ? "-" : "", *unit = abs < 1000 ? "ns" : abs < 1000000 ? "\xc2\xb5s" : "ms";
	const uint64_t divisor = abs < 1000 ? 1 : abs < 1000000 ? 1000 : 1000000;
	const uint64_t minutes = abs / (60 * NSEC_PER_SEC), rest = abs % (60 * NSEC_PER_SEC);
	char seconds[32];
	int len;

	if (abs < NSEC_PER_SEC)
		len = snprintf(seconds, sizeof(seconds), "%" PRIu64 ".%09" PRIu64, abs / divisor,
			       abs % divisor * (NSEC_PER_SEC / divisor));
	else
		len = snprintf(seconds, sizeof(seconds), "%" PRIu64 ".%09" PRIu64, rest / NSEC_PER_SEC,
			       rest % NSEC_PER_SEC);
	while (seconds[len - 1] == '0')
		len--;
	if (seconds[len - 1] == '.')
		len--;
	seconds[len] = '\0';
	if (abs < NSEC_PER_SEC)
		snprintf(out, size, "%s%s%s", sign, seconds, unit);
	else if (minutes >= 60)
		snprintf(out, size, "%s%" PRIu64 "h%" PRIu64 "m%ss", sign, minutes / 60, minutes % 60, seconds);
	else if (minutes)
		snprintf(out, size, "%s%" PRIu64 "m%ss", sign, minutes, seconds);
	else
		snprintf(out, size, "%s%ss", sign, seconds);
}

static void add_duration(struct dump *d)
{
	char text[64];
	struct str rest;

	duration_text(d->m->duration_ns, text, sizeof(text));
	rest = str_of(text);
	for (int i = 0; i < 4 && rest.len; i++)
		ignore(utf8_next(&rest)); /* characters, not bytes: the micro sign counts once */
	buf_adds(d->out, STR("Duration: "));
	buf_add(d->out, text, strlen(text) - rest.len);
	buf_addc(d->out, '\n');
}

static void add_time(struct dump *d)
{
	int64_t seconds = d->m->time_ns / (int64_t)NSEC_PER_SEC, ns = d->m->time_ns % (int64_t)NSEC_PER_SEC;
	char text[64] = "", zone[64] = "", fraction[16];
	struct tm tm;
	time_t at;
	int len;

	if (ns < 0) {
		ns += (int64_t)NSEC_PER_SEC;
		seconds--;
	}
	at = (time_t)seconds;
	if (!localtime_r(&at, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	strftime(zone, sizeof(zone), " %z %Z", &tm);
	len = snprintf(fraction, sizeof(fraction), ".%09" PRId64, ns);
	while (fraction[len - 1] == '0')
		len--;
	buf_addf(d->out, "Time: %s%.*s%s\n", text, len > 1 ? len : 0, fraction, zone);
}

static int add_comment(void *dump, struct str text)
{
	struct dump *d = dump;

	buf_adds(d->out, STR("Comment: "));
	add_text(d, text);
	buf_addc(d->out, '\n');
	return 0;
}

/* Those of the profile, then what the window knows: as the file has them. */
static int add_comments(struct dump *d, const struct window *w)
{
	for (size_t i = 0; i < d->m->comments_count; i++)
		ignore(add_comment(d, model_string(d->m, d->m->comments[i]))); /* always 0 */
	return pprof_comments_each(w, add_comment, d);
}

static void add_head(struct dump *d)
{
	const struct model *m = d->m;

	if (m->doc_url) {
		buf_adds(d->out, STR("Doc: "));
		add_id(d, m->doc_url);
		buf_addc(d->out, '\n');
	}
	buf_adds(d->out, STR("PeriodType: "));
	add_id(d, m->period_type.type);
	buf_addc(d->out, ' ');
	add_id(d, m->period_type.unit);
	buf_addf(d->out, "\nPeriod: %" PRId64 "\n", m->period);
	if (m->time_ns)
		add_time(d);
	if (m->duration_ns)
		add_duration(d);
	buf_adds(d->out, STR("Samples:\n"));
	for (size_t i = 0; i < m->value_type_count; i++) {
		if (i)
			buf_addc(d->out, ' ');
		add_id(d, m->value_types[i].type);
		buf_addc(d->out, '/');
		add_id(d, m->value_types[i].unit);
		if (m->value_types[i].type == m->default_type)
			buf_adds(d->out, STR("[dflt]"));
	}
	buf_addc(d->out, '\n');
}

/* A label without text and number does not exist for pprof. */
static int add_label(struct dump *d, struct dump_label label)
{
	int r;

	if (label.is_number ? !label.number && !label.unit.len : !label.text.len)
		return 0;
	r = array_grow(&d->labels, &d->label_cap, d->label_count, LABELS_MAX);
	if (r < 0)
		return r;
	label.index = d->label_count;
	d->labels[d->label_count++] = label;
	return 0;
}

static int add_text_label(struct dump *d, struct str key, uint32_t text)
{
	return add_label(d, (struct dump_label){ .key = key, .text = model_string(d->m, text) });
}

static int add_number_label(struct dump *d, struct str key, int64_t number)
{
	return add_label(d, (struct dump_label){ .key = key, .number = number, .is_number = true });
}

/* The labels of the file: those the model keeps as processes, threads and stack ends, and the free ones. */
static int collect_labels(struct dump *d, const struct model_sample *s)
{
	const struct model *m = d->m;
	const struct model_label_set *set = &m->label_sets[s->label_set];
	int r = 0;

	d->label_count = 0;
	if (s->process) {
		const struct model_process *p = &m->processes[s->process];

		r = add_number_label(d, STR("pid"), p->pid);
		r = r < 0 ? r : add_text_label(d, STR("comm"), p->comm);
		r = r < 0 ? r : add_text_label(d, STR("container"), p->container);
		r = r < 0 ? r : add_text_label(d, STR("appid"), p->app_id);
	}
	if (s->thread) {
		r = r < 0 ? r : add_number_label(d, STR("tid"), m->threads[s->thread].tid);
		r = r < 0 ? r : add_text_label(d, STR("thread"), m->threads[s->thread].name);
	}
	r = r < 0 ? r : add_text_label(d, STR("stack_end"), s->end);
	for (uint32_t i = 0; s->label_set && i < set->count && r == 0; i++) {
		const struct model_label *l = &m->labels[set->first + i];

		r = add_label(d, (struct dump_label){ .key = model_string(m, l->key),
						      .text = model_string(m, l->text),
						      .unit = model_string(m, l->unit),
						      .number = l->number,
						      .is_number = l->is_number });
	}
	return r;
}

static int compare_labels(const void *a, const void *b)
{
	const struct dump_label *x = a, *y = b;
	const int order = str_cmp(x->key, y->key);

	if (x->is_number != y->is_number)
		return x->is_number ? 1 : -1;
	if (order)
		return order;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_pieces(const void *a, const void *b, void *dump)
{
	const struct dump *d = dump;
	const struct dump_piece *x = a, *y = b;

	return str_cmp(str_n(d->scratch.ptr + x->start, x->end - x->start),
		       str_n(d->scratch.ptr + y->start, y->end - y->start));
}

/* One piece from the labels [first, end), which share a key. */
static int add_piece(struct dump *d, size_t first, size_t end)
{
	const size_t start = d->scratch.len;
	bool has_unit = false;
	int r = array_grow(&d->pieces, &d->piece_cap, d->piece_count, LABELS_MAX);

	if (r < 0)
		return r;
	for (size_t i = first; i < end; i++)
		has_unit |= d->labels[i].unit.len > 0;
	buf_adds(&d->scratch, d->labels[first].key);
	buf_adds(&d->scratch, STR(":["));
	for (size_t i = first; i < end; i++) {
		const struct dump_label *l = &d->labels[i];

		if (i > first)
			buf_addc(&d->scratch, ' ');
		if (!l->is_number) {
			buf_adds(&d->scratch, l->text);
			continue;
		}
		buf_addf(&d->scratch, "%" PRId64, l->number);
		if (has_unit) {
			buf_addc(&d->scratch, ' ');
			buf_adds(&d->scratch, l->unit);
		}
	}
	buf_addc(&d->scratch, ']');
	d->pieces[d->piece_count++] = (struct dump_piece){ start, d->scratch.len };
	return d->scratch.error;
}

/* One line: every label that is (not) a number, in [*at, end of that kind). */
static int add_label_line(struct dump *d, size_t *at, bool is_number)
{
	size_t first = *at, end;
	int r = 0;

	buf_clear(&d->scratch);
	d->piece_count = 0;
	for (; first < d->label_count && d->labels[first].is_number == is_number && r == 0; first = end) {
		for (end = first + 1; end < d->label_count; end++) {
			if (d->labels[end].is_number != is_number || !str_eq(d->labels[end].key, d->labels[first].key))
				break;
		}
		r = add_piece(d, first, end);
	}
	*at = first;
	if (r < 0 || !d->piece_count)
		return r;
	qsort_r(d->pieces, d->piece_count, sizeof(*d->pieces), compare_pieces, d);
	terminal_pad(d->out, 16);
	for (size_t i = 0; i < d->piece_count; i++) {
		if (i)
			buf_addc(d->out, ' ');
		add_text(d, str_n(d->scratch.ptr + d->pieces[i].start, d->pieces[i].end - d->pieces[i].start));
	}
	buf_addc(d->out, '\n');
	return 0;
}

static int add_sample(struct dump *d, const struct model_sample *s)
{
	const int64_t *values = model_values(d->m, s);
	size_t at = 0;
	int r;

	for (size_t i = 0; i < d->m->value_type_count; i++)
		buf_addf(d->out, " %10" PRId64, values[i]);
	buf_adds(d->out, STR(": "));
	for (uint32_t stack = s->stack; stack; stack = d->m->stacks[stack].parent) {
		buf_addu64(d->out, d->m->stacks[stack].location);
		buf_addc(d->out, ' ');
	}
	buf_addc(d->out, '\n');
	r = collect_labels(d, s);
	if (r < 0)
		return r;
	if (d->label_count)
		qsort(d->labels, d->label_count, sizeof(*d->labels), compare_labels);
	r = add_label_line(d, &at, false);
	return r < 0 ? r : add_label_line(d, &at, true);
}

static void add_line(struct dump *d, const struct model_line *line)
{
	const struct model_function *f = &d->m->functions[line->function];

	if (!line->function) {
		buf_adds(d->out, STR("??"));
		return;
	}
	add_id(d, f->name);
	buf_addc(d->out, ' ');
	add_id(d, f->filename);
	buf_addf(d->out, ":%" PRId64 ":%" PRId64 " s=%" PRId64, line->line, line->column, f->start_line);
	if (f->name != f->system_name) {
		buf_addc(d->out, '(');
		add_id(d, f->system_name);
		buf_addc(d->out, ')');
	}
}

static void add_location(struct dump *d, uint32_t id)
{
	const struct model_location *l = &d->m->locations[id];

	buf_addf(d->out, "%6" PRIu32 ": 0x%" PRIx64 " ", id, l->address);
	if (l->mapping)
		buf_addf(d->out, "M=%" PRIu32 " ", l->mapping);
	if (l->is_folded)
		buf_adds(d->out, STR("[F] "));
	for (uint32_t i = 0; i < l->line_count; i++) {
		if (i)
			buf_adds(d->out, STR("\n             "));
		add_line(d, &d->m->lines[l->first_line + i]);
	}
	buf_addc(d->out, '\n');
}

static void add_mapping(struct dump *d, uint32_t id)
{
	static const char *const flags[] = { "[FN]", "[FL]", "[LN]",
					     "[IN]" }; /* enum model_mapping_flags, bit by bit */
	const struct model_mapping *map = &d->m->mappings[id];

	buf_addf(d->out, "%" PRIu32 ": 0x%" PRIx64 "/0x%" PRIx64 "/0x%" PRIx64 " ", id, map->start, map->limit,
		 map->file_offset);
	add_id(d, map->filename);
	buf_addc(d->out, ' ');
	add_id(d, map->build_id);
	buf_addc(d->out, ' ');
	for (unsigned int bit = 0; bit < ARRAY_SIZE(flags); bit++) {
		if (map->flags & 1u << bit)
			buf_adds(d->out, str_of(flags[bit]));
	}
	buf_addc(d->out, '\n');
}

int render_dump(const struct window *w, bool escape, struct buf *out)
{
	scoped(dump_release) struct dump d = { .m = w->model, .out = out, .escape = escape };
	const size_t start = out->len;
	int r;

	d.scratch.max = SCRATCH_MAX;
	r = add_comments(&d, w);
	add_head(&d);
	for (size_t i = 0; i < w->model->samples_count && r == 0 && !out->error; i++)
		r = add_sample(&d, &w->model->samples[i]);
	buf_adds(out, STR("Locations\n"));
	for (uint32_t i = 1; i < w->model->locations_count; i++)
		add_location(&d, i);
	buf_adds(out, STR("Mappings\n"));
	for (uint32_t i = 1; i < w->model->mappings_count; i++)
		add_mapping(&d, i);
	r = r < 0 ? r : out->error;
	if (r < 0)
		out->len = start;
	return r;
}
