/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph page: web/page.html with its {{marks}} filled in. Names are foreign bytes; they reach the page as
 * base64 or escaped here. */
#include <libdeflate.h>
#include <time.h>

#include "base/utf8.h"
#include "render/render.h"
#include "render/tree.h"
#include "web/assets.h"

#define OVERVIEW_NODES 20000u
#define OVERVIEW_FROM 60000u /* nodes; smaller trees are shown whole before an overview would be */
#define TABLE_ROWS 30u
#define CELL_BYTES 300u
#define COLUMNS_MAX GIB(2)
#define SMALL_COLUMNS MIB(6)
#define LARGE_COLUMNS MIB(24)

struct page {
	const struct window *window; /* NULL: straight from text */
	const char *title, *unit;
	char own_title[256];
	double scale;       /* unit per stored value */
	double nanoseconds; /* per stored value, 0: unknown */
	int level;
	struct tree tree;
};

static void page_release(struct page *p)
{
	tree_release(&p->tree);
}

/* Text for an element or an attribute: markup escaped, control and direction-changing characters made visible. */
static void add_text(struct buf *out, struct str s)
{
	while (s.len) {
		int32_t c;
		struct str rest = s;

		c = utf8_next(&rest);
		if (c == '&')
			buf_adds(out, STR("&amp;"));
		else if (c == '<')
			buf_adds(out, STR("&lt;"));
		else if (c == '>')
			buf_adds(out, STR("&gt;"));
		else if (c == '"')
			buf_adds(out, STR("&quot;"));
		else if (c < 0)
			buf_adds(out, STR("\xef\xbf\xbd"));
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
			 (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
			buf_addf(out, "\\u{%x}", (unsigned)c);
		else
			buf_add(out, s.ptr, s.len - rest.len);
		s = rest;
	}
}

static void add_short_text(struct buf *out, struct str s)
{
	add_text(out, str_first(s, CELL_BYTES));
	if (s.len > CELL_BYTES)
		buf_adds(out, STR("\xe2\x80\xa6"));
}

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

static void add_base64(struct buf *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t length = (size + 2) / 3 * 4, i = 0;
	char *to = buf_reserve(out, length);

	if (!to)
		return;
	for (; i + 3 <= size; i += 3) {
		uint32_t v = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = digits[v >> 6 & 63];
		*to++ = digits[v & 63];
	}
	if (i < size) {
		uint32_t v = (uint32_t)bytes[i] << 16 | (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = i + 1 < size ? digits[v >> 6 & 63] : '=';
		*to++ = '=';
	}
	buf_commit(out, length);
}

static void compressorp(struct libdeflate_compressor **c)
{
	if (*c)
		libdeflate_free_compressor(*c);
}

/* What a level saves is worth its time while that stays unnoticed: of 38 MB, level 4 makes 9.65 MB of page in 0.26 s,
 * 6 9.23 MB in 0.6 s, 10 8.03 MB in 8 s. */
static int level_for(size_t size)
{
	return size <= SMALL_COLUMNS ? 10 : size <= LARGE_COLUMNS ? 6 : 4;
}

static int add_tree(const struct tree *t, int level, struct buf *out)
{
	scoped(compressorp) struct libdeflate_compressor *c = NULL;
	scoped(buf_release) struct buf columns = BUF_INIT(COLUMNS_MAX);
	scoped(freep) uint8_t *packed = NULL;
	size_t room, size;
	int r = tree_encode(t, &columns);

	if (r < 0)
		return r;
	c = libdeflate_alloc_compressor(level ? level : level_for(columns.len));
	if (!c)
		return -ENOMEM;
	room = libdeflate_deflate_compress_bound(c, columns.len);
	packed = malloc(room);
	if (!packed)
		return -ENOMEM;
	size = libdeflate_deflate_compress(c, columns.ptr, columns.len, packed, room);
	if (!size)
		return -E2BIG;
	add_base64(out, packed, size);
	return out->error;
}

static int add_overview(const struct page *p, struct buf *out)
{
	scoped(tree_release) struct tree overview = { 0 };
	int r;

	if (p->tree.node_count < OVERVIEW_FROM)
		return 0;
	r = tree_prune(&p->tree, OVERVIEW_NODES, &overview);
	if (r < 0)
		return r;
	return add_tree(&overview, p->level, out);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_fact(struct buf *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buf_adds(out, STR("<div><dt>"));
	add_text(out, str_of(name));
	buf_adds(out, STR("</dt><dd>"));
	add_short_text(out, str_of(value));
	buf_adds(out, STR("</dd></div>"));
}

static void add_fact_number(struct buf *out, const char *name, uint64_t value, const char *unit)
{
	buf_addf(out, "<div><dt>%s</dt><dd>%llu%s</dd></div>", name, (unsigned long long)value, unit);
}

static void add_fact_share(struct buf *out, const char *name, uint64_t part, uint64_t whole)
{
	buf_addf(out, "<div><dt>%s</dt><dd>%llu (%.2f\xc2\xa0%%)</dd></div>", name, (unsigned long long)part,
		 percent(part, whole));
}

static bool format_start(uint64_t start_ns, char text[64])
{
	time_t seconds = (time_t)(start_ns / NSEC_PER_SEC);
	struct tm utc;

	return start_ns && gmtime_r(&seconds, &utc) && strftime(text, 64, "%Y-%m-%d %H:%M:%S UTC", &utc);
}

static void add_start(struct buf *out, uint64_t start_ns)
{
	char text[64];

	if (format_start(start_ns, text))
		add_fact(out, "start", text);
}

static void add_quality(struct buf *out, const struct window *w)
{
	uint64_t samples = window_counter(w, STR("samples")), lost = window_lost_samples(w);
	uint64_t user = window_counter(w, STR("user_samples")), complete = window_counter(w, STR("complete"));
	uint64_t frames = window_counter(w, STR("frames")), unnamed = window_counter(w, STR("unnamed_frames"));

	if (samples) {
		add_fact_number(out, "samples taken", samples, "");
		add_fact_share(out, "lost", lost, samples + lost);
	}
	if (user)
		add_fact_share(out, "cut stacks", user - MIN(complete, user), user + lost);
	if (frames)
		add_fact_share(out, "unnamed frames", unnamed, frames);
}

static void add_facts(const struct page *p, struct buf *out)
{
	const struct window *w = p->window;

	if (!strcmp(p->unit, "nanoseconds"))
		buf_addf(out, "<div><dt>in this graph</dt><dd>%.2f s</dd></div>",
			 (double)p->tree.total[0] * p->scale / (double)NSEC_PER_SEC);
	else
		add_fact_number(out, "in this graph", p->tree.total[0], strcmp(p->unit, "samples") ? "" : " samples");
	add_fact_number(out, "call paths", p->tree.node_count - 1, "");
	if (w) {
		add_quality(out, w);
		if (w->frequency_hz)
			add_fact_number(out, "rate", w->frequency_hz, "\xc2\xa0Hz");
		if (w->end_ns > w->start_ns)
			buf_addf(out, "<div><dt>duration</dt><dd>%.1f\xc2\xa0s</dd></div>",
				 (double)(w->end_ns - w->start_ns) / 1e9);
		add_start(out, w->start_ns);
		add_fact(out, "command", w->command);
		add_fact(out, "host", w->host);
		if (w->cpu_count)
			add_fact_number(out, "CPUs", w->cpu_count, "");
		add_fact(out, "kernel", w->kernel_release);
		add_fact(out, "system", w->os_name);
		add_fact(out, "sampler", w->sampler);
		add_fact(out, "unwinder", w->unwinder);
	}
	add_fact(out, "written by", "hearth " HEARTH_VERSION);
}

static void add_meta(const struct page *p, struct buf *out)
{
	buf_adds(out, STR("{\"title\":"));
	add_json_string(out, str_of(p->title));
	buf_adds(out, STR(",\"unit\":"));
	add_json_string(out, str_of(p->unit));
	buf_addf(out, ",\"scale\":%.17g,\"nanoseconds\":%.17g,\"nodes\":%u,\"total\":%llu,\"kinds\":[", p->scale,
		 p->nanoseconds, p->tree.node_count, (unsigned long long)p->tree.total[0]);
	for (unsigned kind = 0; kind < TREE_KIND_COUNT; kind++) {
		buf_adds(out, kind ? STR(",") : STR(""));
		add_json_string(out, tree_kind_name(kind));
	}
	buf_adds(out, STR("]}"));
}

static int add_table(const struct page *p, struct buf *out)
{
	scoped(freep) struct tree_top_row *rows = NULL;
	uint64_t whole = p->tree.total[0];
	size_t count = 0;
	int r = tree_top(&p->tree, TABLE_ROWS, &rows, &count);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		buf_adds(out, STR("<tr><td>"));
		add_short_text(out, tree_frame_text(&p->tree, rows[i].frame));
		buf_addf(out, "</td><td>%s</td><td>%llu</td><td>%.2f %%</td><td>%llu</td><td>%.2f %%</td></tr>\n",
			 tree_kind_name(p->tree.frames[rows[i].frame].kind).ptr, (unsigned long long)rows[i].self,
			 percent(rows[i].self, whole), (unsigned long long)rows[i].total,
			 percent(rows[i].total, whole));
	}
	return out->error;
}

static int add_mark(const struct page *p, struct str mark, struct buf *out)
{
	if (str_eq(mark, STR("title")))
		add_short_text(out, str_of(p->title));
	else if (str_eq(mark, STR("policy")))
		buf_addf(out,
			 "default-src 'none'; script-src '%s'; style-src '%s'; worker-src blob:; base-uri 'none'; "
			 "form-action 'none'",
			 web_script_hash, web_style_hash);
	else if (str_eq(mark, STR("style")))
		buf_add(out, web_style, web_style_size);
	else if (str_eq(mark, STR("script")))
		buf_add(out, web_script, web_script_size);
	else if (str_eq(mark, STR("facts")))
		add_facts(p, out);
	else if (str_eq(mark, STR("meta")))
		add_meta(p, out);
	else if (str_eq(mark, STR("table")))
		return add_table(p, out);
	else if (str_eq(mark, STR("overview")))
		return add_overview(p, out);
	else if (str_eq(mark, STR("data")))
		return add_tree(&p->tree, p->level, out);
	return out->error;
}

static int add_page(const struct page *p, struct buf *out)
{
	struct str rest = str_n((const char *)web_page, web_page_size);

	for (;;) {
		ptrdiff_t open = str_search(rest, STR("{{")), close = str_search(rest, STR("}}"));
		int r;

		if (open < 0 || close < open)
			break;
		buf_adds(out, str_first(rest, (size_t)open));
		r = add_mark(p, str_n(rest.ptr + open + 2, (size_t)(close - open) - 2), out);
		if (r < 0)
			return r;
		rest = str_skip(rest, (size_t)close + 2);
	}
	buf_adds(out, rest);
	return out->error;
}

/* What was looked at and when, for a page nobody named. */
static const char *make_title(struct page *p)
{
	const struct window *w = p->window;
	const char *what = !w ? NULL : w->command && *w->command ? w->command : w->host;
	char when[64];

	if (!w || !what || !*what)
		return "Flame graph";
	snprintf(p->own_title, sizeof(p->own_title), "%s%s%s", what, format_start(w->start_ns, when) ? ", " : "",
		 format_start(w->start_ns, when) ? when : "");
	return p->own_title;
}

static void page_init(struct page *p, const struct render_html_config *cfg)
{
	p->title = cfg->title && *cfg->title ? cfg->title : make_title(p);
	p->level = cfg->compression_level;
	p->unit = "samples";
	p->scale = 1;
}

/* What every value of a column can be divided by; 0 when there is nothing above zero. */
static uint64_t common_divisor(const struct model *m, size_t value)
{
	uint64_t divisor = 0;

	for (size_t i = 0; i < m->samples_count && divisor != 1; i++) {
		int64_t v = model_values(m, &m->samples[i])[value];
		uint64_t a = v > 0 ? (uint64_t)v : 0, b = divisor;

		while (a) {
			uint64_t left = b % a;

			b = a;
			a = left;
		}
		divisor = b;
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

static bool has_unit(const struct model *m, size_t value, struct str unit)
{
	return str_eq(model_string(m, m->value_types[value].unit), unit);
}

/* Values are stored as counts with one multiplier: nanoseconds compress badly and say no more. */
static void choose_unit(struct page *p, const struct model *m, size_t *value, uint64_t *divisor)
{
	size_t chosen = *value;

	for (size_t i = 0; i < m->value_type_count; i++) {
		bool counts_chosen = has_unit(m, chosen, STR("count"));
		size_t count = counts_chosen ? chosen : i, time = counts_chosen ? i : chosen;

		if (!has_unit(m, count, STR("count")) || !has_unit(m, time, STR("nanoseconds")))
			continue;
		p->nanoseconds = fixed_ratio(m, count, time);
		if (p->nanoseconds > 0) {
			*value = count;
			*divisor = 1;
			return;
		}
	}
	*divisor = MAX(common_divisor(m, chosen), (uint64_t)1);
	p->scale = (double)*divisor;
	if (!has_unit(m, chosen, STR("count")))
		p->unit = model_string(m, m->value_types[chosen].unit).ptr;
	if (has_unit(m, chosen, STR("nanoseconds")))
		p->nanoseconds = p->scale;
}

int render_html(const struct window *w, const struct render_html_config *cfg, struct buf *out)
{
	scoped(page_release) struct page p = { .window = w };
	scoped(freep) char *unit = NULL;
	size_t value = cfg->value;
	uint64_t divisor;
	int r;

	if (!w->model || value >= w->model->value_type_count)
		return -EINVAL;
	page_init(&p, cfg);
	choose_unit(&p, w->model, &value, &divisor);
	if (p.unit == model_string(w->model, w->model->value_types[value].unit).ptr) {
		unit = str_dup(model_string(w->model, w->model->value_types[value].unit));
		if (!unit)
			return -ENOMEM;
		p.unit = unit;
	}
	r = tree_from_model(w->model, value, divisor, &cfg->style, &p.tree);
	if (r < 0)
		return r;
	return add_page(&p, out);
}

int render_html_folded(struct str text, const struct render_html_config *cfg, struct buf *out, uint64_t *bad_line)
{
	scoped(page_release) struct page p = { 0 };
	int r;

	page_init(&p, cfg);
	r = tree_from_folded(text, &p.tree, bad_line);
	if (r < 0)
		return r;
	return add_page(&p, out);
}
