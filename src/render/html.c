/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph page: web/page.html with its {{marks}} filled in. Names are foreign bytes; they reach the page as
 * base64 or escaped here. */
#include <libdeflate.h>
#include <time.h>

#include "base/base64.h"
#include "base/divisor.h"
#include "base/safe.h"
#include "base/utf8.h"
#include "render/classes.h"
#include "render/cut.h"
#include "render/page_types.h"
#include "render/render.h"
#include "render/runtimes.h"
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
	const char *title;
	char own_title[256];
	int level;
	struct tree tree;                    /* of types[0] */
	const struct render_html_diff *diff; /* what the page compares, or NULL */
	struct tree_cut cut;                 /* then: all of the tree, with the base's part of each node */
	struct page_type types[PAGE_TYPES_MAX];
	struct buf packed[PAGE_TYPES_MAX]; /* their trees as the page holds them; the first one is written from tree */
	size_t type_count;
};

static void page_release(struct page *p)
{
	tree_release(&p->tree);
	tree_cut_release(&p->cut);
	for (size_t i = 0; i < PAGE_TYPES_MAX; i++)
		buf_release(&p->packed[i]);
}

/* What a sample type counts, for people. NULL: its name has to do. */
static const char *type_text(const struct page_type *shown)
{
	static const struct {
		const char *name, *text;
	} known[] = {
		{ "samples", "samples" },
		{ "cpu", "CPU time" },
		{ "waits", "number of waits" },
		{ "off_cpu", "time waiting, off the CPU" },
		{ "wall", "wall-clock time" },
		{ "alloc_objects", "objects allocated" },
		{ "alloc_space", "memory allocated" },
		{ "inuse_objects", "objects in use" },
		{ "inuse_space", "memory in use" },
		{ "contentions", "number of contentions" },
		{ "delay", "time blocked" },
		{ "goroutine", "goroutines" },
		{ "threadcreate", "threads created" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(str_of(known[i].name), shown->name))
			return known[i].text;
	return NULL;
}

/* Text for an element or an attribute: markup escaped, control, direction-changing and invisible characters made
 * visible, in the form that visibleText() of web/format.js has. */
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
		else if (safe_hides((uint32_t)c))
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

static int pack(const struct buf *columns, int level, struct buf *out)
{
	scoped(compressorp) struct libdeflate_compressor *c = NULL;
	scoped(freep) uint8_t *packed = NULL;
	size_t room, size;

	c = libdeflate_alloc_compressor(level ? level : level_for(columns->len));
	if (!c)
		return -ENOMEM;
	room = libdeflate_deflate_compress_bound(c, columns->len);
	packed = malloc(room);
	if (!packed)
		return -ENOMEM;
	size = libdeflate_deflate_compress(c, columns->ptr, columns->len, packed, room);
	if (!size)
		return -E2BIG;
	base64_add(out, str_n((const char *)packed, size));
	return out->error;
}

static int add_tree(const struct tree *t, int level, struct buf *out)
{
	scoped(buf_release) struct buf columns = BUF_INIT(COLUMNS_MAX);
	int r = tree_encode(t, &columns);

	return r < 0 ? r : pack(&columns, level, out);
}

static int add_data(const struct page *p, struct buf *out)
{
	scoped(buf_release) struct buf columns = BUF_INIT(COLUMNS_MAX);
	int r;

	if (!p->diff)
		return add_tree(&p->tree, p->level, out);
	r = tree_cut_encode(&p->cut, &columns);
	return r < 0 ? r : pack(&columns, p->level, out);
}

static int add_overview(const struct page *p, struct buf *out)
{
	scoped(tree_release) struct tree overview = { 0 };
	int r;

	if (p->diff || p->tree.node_count < OVERVIEW_FROM)
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
	const struct window_classes classes = window_classes(w);
	uint64_t frames = window_counter(w, STR("frames")), unnamed = window_counter(w, STR("unnamed_frames"));

	if (samples) {
		add_fact_number(out, "samples taken", samples, "");
		add_fact_share(out, "lost", lost, samples + lost);
	}
	if (classes.user) {
		add_fact_share(out, "whole stacks", classes.whole, classes.user + lost);
		add_fact_share(out, "guessed stacks", classes.guessed, classes.user + lost);
		add_fact_share(out, "cut stacks", classes.cut, classes.user + lost);
	}
	if (frames)
		add_fact_share(out, "unnamed frames", unnamed, frames);
	for (int kind = 0; kind < JIT_KIND_COUNT; kind++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
		uint64_t count = window_counter(w, jit_kind_counter((enum jit_kind)kind));

		classes_add_jit(count, (enum jit_kind)kind, &text);
		if (count && !text.error)
			add_fact(out, "no names", buf_cstr(&text));
	}
}

static void add_runtimes(struct buf *out, const struct window *w)
{
	struct str name;

	for (size_t at = 0; runtime_shares_next(w, &at, &name);) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
		struct runtime_shares shares = { 0 };

		runtime_shares_add(&shares, w, name);
		runtime_shares_add_vague(&shares, name, &text);
		if (text.len && !text.error)
			add_fact(out, "lines", buf_cstr(&text));
	}
}

/* One of two that are compared, and what it has of the graph. */
static void add_side(struct buf *out, const char *key, const char *name, uint64_t total, const struct page_type *shown)
{
	buf_addf(out, "<div><dt>%s</dt><dd>", key);
	add_short_text(out, str_of(name));
	if (shown->nanoseconds > 0)
		buf_addf(out, ": %.2f s", (double)total * shown->nanoseconds / (double)NSEC_PER_SEC);
	else
		buf_addf(out, ": %.0f", (double)total * shown->scale);
	buf_adds(out, STR("</dd></div>"));
}

static void add_facts(const struct page *p, struct buf *out)
{
	const struct window *w = p->window;

	const struct page_type *shown = &p->types[0];

	/* The page's script writes these two anew when another value is shown. */
	buf_adds(out, STR("<div><dt>in this graph</dt><dd id=\"fact-total\">"));
	if (str_eq(shown->unit, STR("nanoseconds")))
		buf_addf(out, "%.2f s", (double)shown->total * shown->scale / (double)NSEC_PER_SEC);
	else
		buf_addf(out, "%llu%s", (unsigned long long)shown->total,
			 str_eq(shown->unit, STR("samples")) ? " samples" : "");
	buf_addf(out, "</dd></div><div><dt>call paths</dt><dd id=\"fact-paths\">%u</dd></div>", shown->nodes - 1);
	if (p->diff) {
		add_side(out, "before", p->diff->before_name, p->cut.base_total[0], shown);
		add_side(out, "now", p->diff->now_name, shown->total - p->cut.base_total[0], shown);
		add_fact(out, "width and colour",
			 "both together; orange takes a larger part than before, blue a smaller one");
	}
	if (w) {
		add_quality(out, w);
		add_runtimes(out, w);
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

static void add_type_text(const struct page_type *shown, struct buf *out)
{
	const char *text = type_text(shown);

	add_short_text(out, text ? str_of(text) : shown->name);
	if (text && !str_eq(str_of(text), shown->name)) {
		buf_adds(out, STR(" ("));
		add_short_text(out, shown->name);
		buf_addc(out, ')');
	}
}

/* What is shown, and a switch where there is more than one value. */
static void add_types(const struct page *p, struct buf *out)
{
	if (p->type_count == 1) {
		buf_adds(out, STR("<span class=\"shows\">Shows <b>"));
		add_type_text(&p->types[0], out);
		buf_adds(out, STR("</b></span>"));
		return;
	}
	buf_adds(out, STR("<label class=\"shows\" for=\"type\">Shows</label><select id=\"type\">"));
	for (size_t i = 0; i < p->type_count; i++) {
		buf_addf(out, "<option value=\"%zu\">", i);
		add_type_text(&p->types[i], out);
		buf_adds(out, STR("</option>"));
	}
	buf_adds(out, STR("</select>"));
}

static void add_more(const struct page *p, struct buf *out)
{
	for (size_t i = 1; i < p->type_count; i++) {
		buf_addf(out, "<script type=\"application/octet-stream;base64\" id=\"data-%zu\">", i);
		buf_adds(out, buf_str(&p->packed[i]));
		buf_adds(out, STR("</script>\n"));
	}
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
		page_types_json(str_of(p->title), p->types, p->type_count, out);
	else if (str_eq(mark, STR("types")))
		add_types(p, out);
	else if (str_eq(mark, STR("more")))
		add_more(p, out);
	else if (str_eq(mark, STR("shown")))
		add_type_text(&p->types[0], out);
	else if (str_eq(mark, STR("table")))
		return add_table(p, out);
	else if (str_eq(mark, STR("overview")))
		return add_overview(p, out);
	else if (str_eq(mark, STR("data")))
		return add_data(p, out);
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
	p->types[0] = (struct page_type){ .name = STR("samples"), .unit = STR("samples"), .scale = 1 };
	p->type_count = 1;
}

/* A tree becomes its packed text at once, but for the first, which the page's table and overview are made of, too. */
static int take_type(void *ctx, const struct page_type *type, struct tree *t)
{
	struct page *p = ctx;
	size_t at = p->type_count++;

	p->types[at] = *type;
	p->packed[at].max = COLUMNS_MAX;
	if (at)
		return add_tree(t, p->level, &p->packed[at]);
	p->tree = *t;
	*t = (struct tree){ 0 };
	return 0;
}

int render_html(const struct window *w, const struct render_html_config *cfg, struct buf *out)
{
	scoped(page_release) struct page p = { .window = w };
	int r;

	if (!w->model || cfg->value >= w->model->value_type_count)
		return -EINVAL;
	page_init(&p, cfg);
	p.type_count = 0;
	r = page_types_each(w->model, cfg->value, &cfg->style, take_type, &p);
	if (r < 0)
		return r;
	return add_page(&p, out);
}

int render_html_folded(struct str text, const struct render_html_config *cfg, struct buf *out, uint64_t *bad_line)
{
	scoped(page_release) struct page p = { 0 };
	int r;

	page_init(&p, cfg);
	r = tree_from_folded(text, cfg->progress, &p.tree, bad_line);
	if (r < 0)
		return r;
	page_type_count(&p.types[0], &p.tree);
	return add_page(&p, out);
}

static void choose_shared_unit(struct page_type *shown, const struct render_html_diff *diff)
{
	const struct model *m = diff->now->model;
	uint64_t before = page_type_divisor(diff->before->model, diff->before_value),
		 now = page_type_divisor(m, diff->now_value);

	*shown = (struct page_type){ .name = model_string(m, m->value_types[diff->now_value].type),
				     .unit = model_string(m, m->value_types[diff->now_value].unit),
				     .scale = (double)MAX(greatest_divisor(before, now), UINT64_C(1)) };
	if (page_type_has_unit(m, diff->now_value, STR("nanoseconds")))
		shown->nanoseconds = shown->scale;
	if (page_type_has_unit(m, diff->now_value, STR("count")))
		shown->unit = str_eq(shown->name, STR("waits")) ? shown->name : STR("samples");
}

static int build_pair(struct page *p, const struct render_html_diff *diff, const struct frame_style *style)
{
	scoped(tree_release) struct tree before = { 0 }, now = { 0 };
	scoped(freep) uint64_t *base_total = NULL;
	uint64_t divisor;
	int r;

	choose_shared_unit(&p->types[0], diff);
	divisor = (uint64_t)p->types[0].scale;
	r = tree_from_model(diff->before->model, diff->before_value, divisor, style, &before);
	r = r ? r : tree_from_model(diff->now->model, diff->now_value, divisor, style, &now);
	r = r ? r : tree_pair(&before, &now, &p->tree, &base_total);
	r = r ? r : tree_cut_make(&p->tree, base_total, 0, p->tree.node_count, &p->cut);
	if (r == 0)
		page_type_count(&p->types[0], &p->tree);
	return r;
}

int render_html_diff(const struct render_html_diff *diff, const struct render_html_config *cfg, struct buf *out)
{
	scoped(page_release) struct page p = { .diff = diff };
	int r;

	if (diff->before_value >= diff->before->model->value_type_count ||
	    diff->now_value >= diff->now->model->value_type_count)
		return -EINVAL;
	page_init(&p, cfg);
	r = build_pair(&p, diff, &cfg->style);
	return r < 0 ? r : add_page(&p, out);
}
