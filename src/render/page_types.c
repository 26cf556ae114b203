/* SPDX-License-Identifier: Apache-2.0 */
#include "render/page_types.h"

#include "base/divisor.h"
#include "base/utf8.h"

/* JSON inside a script element: nothing in it may end the element. */
static void add_json_string(struct buf *out, struct str s)
{
	buf_addc(out, '"');
	while (s.len) {
		struct str rest = s;
		int32_t c = utf8_next(&rest);

		if (c < 0)
			buf_adds(out, STR("\\ufffd"));
		else if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x2028 ||
			 c == 0x2029)
			buf_addf(out, "\\u%04x", (unsigned)c);
		else
			buf_add(out, s.ptr, s.len - rest.len);
		s = rest;
	}
	buf_addc(out, '"');
}

static void add_type(const struct page_type *shown, size_t index, struct buf *out)
{
	buf_adds(out, index ? STR(",{\"name\":") : STR("{\"name\":"));
	add_json_string(out, shown->name);
	buf_adds(out, STR(",\"unit\":"));
	add_json_string(out, shown->unit);
	buf_addf(out, ",\"scale\":%.17g,\"nanoseconds\":%.17g,\"nodes\":%u,\"total\":%llu", shown->scale,
		 shown->nanoseconds, shown->nodes, (unsigned long long)shown->total);
	if (shown->negative.samples)
		buf_addf(out, ",\"negative\":{\"samples\":%llu,\"value\":%llu}",
			 (unsigned long long)shown->negative.samples, (unsigned long long)shown->negative.value);
	buf_addc(out, '}');
}

void page_types_json(struct str title, const struct page_type *types, size_t count, struct buf *out)
{
	buf_adds(out, STR("{\"title\":"));
	add_json_string(out, title);
	buf_adds(out, STR(",\"types\":["));
	for (size_t i = 0; i < count; i++)
		add_type(&types[i], i, out);
	buf_adds(out, STR("],\"kinds\":["));
	for (unsigned kind = 0; kind < TREE_KIND_COUNT; kind++) {
		buf_adds(out, kind ? STR(",") : STR(""));
		add_json_string(out, tree_kind_name(kind));
	}
	buf_adds(out, STR("]}"));
}

void page_type_count(struct page_type *shown, const struct tree *t)
{
	shown->nodes = t->node_count;
	shown->total = t->total[0];
	shown->negative = t->negative;
}

uint64_t page_type_divisor(const struct model *m, size_t value)
{
	uint64_t divisor = 0;

	for (size_t i = 0; i < m->samples_count && divisor != 1; i++) {
		int64_t v = model_values(m, &m->samples[i])[value];

		divisor = greatest_divisor(divisor, v > 0 ? (uint64_t)v : 0);
	}
	return divisor;
}

/* How much of column @b one unit of column @a stands for, when that is the same in every sample; otherwise 0. */
static double fixed_ratio(const struct model *m, size_t a, size_t b)
{
	int64_t ratio = 0;

	for (size_t i = 0; i < m->samples_count; i++) {
		const int64_t *v = model_values(m, &m->samples[i]);
		int64_t product;

		if (!v[a] && !v[b])
			continue;
		if (!ratio && v[a] > 0)
			ratio = v[b] / v[a];
		if (!ratio || __builtin_mul_overflow(v[a], ratio, &product) || product != v[b])
			return 0;
	}
	return (double)ratio;
}

bool page_type_has_unit(const struct model *m, size_t value, struct str unit)
{
	return str_eq(model_string(m, m->value_types[value].unit), unit);
}

/* Values are stored as counts with one multiplier: nanoseconds compress badly and say no more.
 * @value: in: the column to show; out: the column that is stored. Return: what its values are divided by. */
static uint64_t choose_unit(struct page_type *shown, const struct model *m, size_t *value)
{
	size_t chosen = *value;
	uint64_t divisor;

	*shown = (struct page_type){ .name = model_string(m, m->value_types[chosen].type),
				     .unit = STR("samples"),
				     .scale = 1 };
	for (size_t i = 0; i < m->value_type_count; i++) {
		bool counts_chosen = page_type_has_unit(m, chosen, STR("count"));
		size_t count = counts_chosen ? chosen : i, time = counts_chosen ? i : chosen;

		if (!page_type_has_unit(m, count, STR("count")) || !page_type_has_unit(m, time, STR("nanoseconds")))
			continue;
		shown->nanoseconds = fixed_ratio(m, count, time);
		if (shown->nanoseconds > 0) {
			*value = count;
			return 1;
		}
	}
	divisor = MAX(page_type_divisor(m, chosen), (uint64_t)1);
	shown->scale = (double)divisor;
	if (page_type_has_unit(m, chosen, STR("count")))
		shown->unit = str_eq(shown->name, STR("waits")) ? shown->name : STR("samples");
	else
		shown->unit = model_string(m, m->value_types[chosen].unit);
	if (page_type_has_unit(m, chosen, STR("nanoseconds")))
		shown->nanoseconds = shown->scale;
	return divisor;
}

struct telling {
	const struct model *m;
	const struct frame_style *style;
	page_type_fn *take;
	void *ctx;
	bool told[MODEL_VALUE_TYPES_MAX];
	size_t count;
};

static int tell(struct telling *t, size_t value)
{
	scoped(tree_release) struct tree tree = { 0 };
	struct page_type type;
	uint64_t divisor = choose_unit(&type, t->m, &value);
	int r;

	if (t->count && (t->told[value] || !page_type_divisor(t->m, value)))
		return 0;
	t->told[value] = true;
	r = tree_from_model(t->m, value, divisor, t->style, &tree);
	if (r < 0)
		return r;
	page_type_count(&type, &tree);
	t->count++;
	return t->take(t->ctx, &type, &tree);
}

int page_types_each(const struct model *m, size_t value, const struct frame_style *style, page_type_fn *take, void *ctx)
{
	struct telling t = { .m = m, .style = style, .take = take, .ctx = ctx };
	int r = tell(&t, value);

	/* From the last: cpu, which a page shows first, and samples are stored once, under the former's name. */
	for (size_t i = m->value_type_count; r == 0 && i-- > 0 && t.count < PAGE_TYPES_MAX;)
		if (i != value)
			r = tell(&t, i);
	return r;
}
