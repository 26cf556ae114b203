/* SPDX-License-Identifier: Apache-2.0 */
#include "render/diff.h"

#include <math.h>

#include "codec/folded.h"
#include "codec/folded_lines.h"
#include "render/total.h"

#define STRINGS_MAX GIB(1)
#define TEXT_MAX GIB(4)

/* A profile with values below zero */

static int clone(const struct model *m, struct model *out)
{
	struct model copy = { 0 };
	int r = model_init(&copy, STRINGS_MAX);

	if (r < 0)
		return r;
	r = model_merge(&copy, m);
	if (r < 0)
		model_release(&copy);
	else
		*out = copy;
	return r;
}

static double total_of(const struct model *m, size_t column)
{
	double sum = 0;

	for (size_t i = 0; i < m->samples_count; i++)
		sum += (double)model_values(m, &m->samples[i])[column];
	return sum;
}

static int64_t scaled(int64_t value, double ratio)
{
	double v = round((double)value * ratio);

	return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* Source: github.com/google/pprof, profile/profile.go, Normalize() and ScaleN(). */
static void scale_to(struct model *m, const struct model *base)
{
	for (size_t column = 0; column < m->value_type_count; column++) {
		double own = total_of(m, column), ratio = own != 0 ? total_of(base, column) / own : 1;

		for (size_t i = 0; i < m->samples_count && ratio != 1; i++) {
			int64_t *value = &m->values[m->samples[i].first_value + column];

			*value = scaled(*value, ratio);
		}
	}
}

static int add_base_label(struct model *m, uint32_t set, uint32_t *out)
{
	struct model_label_set row = m->label_sets[set];
	scoped(freep) struct model_label *labels = calloc(row.count + (size_t)1, sizeof(*labels));
	int r;

	if (!labels)
		return -ENOMEM;
	if (row.count)
		memcpy(labels, m->labels + row.first, row.count * sizeof(*labels));
	r = model_add_string(m, STR(TOTAL_BASE_LABEL), &labels[row.count].key);
	r = r ? r : model_add_string(m, STR("true"), &labels[row.count].text);
	return r ? r : model_add_label_set(m, labels, row.count + 1, out);
}

static int negate(struct model *m)
{
	size_t sets = m->label_sets_count;
	scoped(freep) uint32_t *with_base = calloc(sets, sizeof(*with_base));
	int r = with_base ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < sets && r == 0; i++)
		r = add_base_label(m, i, &with_base[i]);
	for (size_t i = 0; i < m->samples_count && r == 0; i++)
		m->samples[i].label_set = with_base[m->samples[i].label_set];
	for (size_t i = 0; i < m->values_count && r == 0; i++)
		m->values[i] = m->values[i] == INT64_MIN ? INT64_MAX : -m->values[i];
	return r;
}

static int subtract(const struct window *before, const struct window *now, bool normalize, struct model *out)
{
	scoped(model_release) struct model base = { 0 }, own = { 0 };
	int r = clone(before->model, &base);

	r = r ? r : clone(now->model, &own);
	if (r < 0)
		return r;
	if (normalize && own.value_type_count == base.value_type_count)
		scale_to(&own, &base);
	r = negate(&base);
	r = r ? r : model_merge(out, &own);
	return r ? r : model_merge(out, &base);
}

int diff_profile(const struct window *before, const struct window *now, bool normalize, struct window *out)
{
	scoped(window_release) struct window w = { 0 };
	int r = window_init(&w, STRINGS_MAX);

	r = r ? r : subtract(before, now, normalize, w.model);
	if (r < 0)
		return r;
	w.start_ns = now->start_ns;
	w.end_ns = now->end_ns;
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

/* Pairs */

void diff_pairs_release(struct diff_pairs *p)
{
	window_release(&p->window);
}

static uint64_t sum_of(const struct folded_lines *l)
{
	unsigned __int128 sum = 0;

	for (size_t i = 0; i < l->count; i++)
		sum += l->items[i].count;
	return sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}

static void normalize_lines(struct folded_lines *before, uint64_t now_total)
{
	uint64_t total = sum_of(before);

	for (size_t i = 0; i < before->count && total && now_total; i++) {
		unsigned __int128 value = (unsigned __int128)before->items[i].count * now_total / total;

		before->items[i].count = value > INT64_MAX ? INT64_MAX : (uint64_t)value;
	}
}

static void add_pair(struct buf *out, struct str stack, uint64_t before, uint64_t now)
{
	buf_adds(out, stack);
	buf_addc(out, ' ');
	buf_addu64(out, before);
	buf_addc(out, ' ');
	buf_addu64(out, now);
	buf_addc(out, '\n');
}

/* Both are sorted by stack. */
static uint64_t join(const struct folded_lines *before, const struct folded_lines *now, struct buf *out)
{
	uint64_t gone = 0;
	size_t i = 0, j = 0;

	while (i < before->count || j < now->count) {
		int order = i == before->count ? 1
			    : j == now->count  ? -1
					       : str_cmp(folded_line_text(before, i), folded_line_text(now, j));

		gone += order < 0;
		add_pair(out, folded_line_text(order <= 0 ? before : now, order <= 0 ? i : j),
			 order <= 0 ? before->items[i].count : 0, order >= 0 ? now->items[j].count : 0);
		i += order <= 0;
		j += order >= 0;
	}
	return gone;
}

/* The columns have their unit, and the second its name. */
static int name_columns(struct model *m, const struct model *from, size_t column)
{
	struct str type, unit;
	int r = 0;

	if (!from->value_type_count)
		return 0;
	type = model_string(from, from->value_types[column].type);
	unit = model_string(from, from->value_types[column].unit);
	if (m->value_type_count < 2) /* there was no line */
		return 0;
	r = model_add_string(m, type, &m->value_types[1].type);
	r = r ? r : model_add_string(m, unit, &m->value_types[1].unit);
	m->value_types[0].unit = m->value_types[1].unit;
	return r;
}

int diff_pairs_make(const struct window *before, const struct window *now, const struct codec_options *options,
		    bool normalize, struct diff_pairs *out)
{
	scoped(folded_lines_release) struct folded_lines a = { 0 }, b = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	scoped(diff_pairs_release) struct diff_pairs pairs = { 0 };
	int r = folded_lines_collect(before->model, options, false, &a);

	r = r ? r : folded_lines_collect(now->model, options, false, &b);
	if (r < 0)
		return r;
	if (a.left_out || b.left_out)
		codec_lose(options->lost, "pairs have no counts below zero: %llu samples are left out",
			   (unsigned long long)a.left_out + b.left_out);
	if (normalize)
		normalize_lines(&a, sum_of(&b));
	pairs.gone = join(&a, &b, &text);
	folded_lines_release(&a);
	folded_lines_release(&b);
	r = text.error ? text.error : codec_folded.decode(buf_str(&text), &pairs.window, NULL);
	r = r ? r
	      : name_columns(pairs.window.model, now->model,
			     codec_value(now->model, options, model_count_value(now->model)));
	if (r < 0)
		return r;
	pairs.window.start_ns = now->start_ns;
	pairs.window.end_ns = now->end_ns;
	*out = pairs;
	pairs = (struct diff_pairs){ 0 }; /* moved out */
	return 0;
}
