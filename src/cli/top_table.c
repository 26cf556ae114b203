/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_table.h"

#include "base/array.h"
#include "cli/progress.h"
#include "render/terminal.h"

#define WIDTH_LEAST 30
#define HEIGHT_LEAST 6
#define CALLERS_SHOWN 4096
#define REVERSE "\033[7m"
#define PLAIN "\033[0m"
#define CELL_MAX KIB(4)

const char *const top_sort_names[] = { "self", "total", "process", "container", "function", NULL };

void top_table_release(struct top_table *t)
{
	free(t->order);
	t->order = NULL;
}

void top_table_renamed(struct top_table *t)
{
	t->is_chosen = t->shows_callers = false;
}

/* Keys */

static const struct {
	const char *text;
	enum top_key key;
} sequences[] = {
	{ "\033[A", TOP_KEY_UP },   { "\033OA", TOP_KEY_UP },       { "\033[B", TOP_KEY_DOWN },
	{ "\033OB", TOP_KEY_DOWN }, { "\033[5~", TOP_KEY_PAGE_UP }, { "\033[6~", TOP_KEY_PAGE_DOWN },
	{ "\033[H", TOP_KEY_HOME }, { "\033OH", TOP_KEY_HOME },     { "\033[1~", TOP_KEY_HOME },
	{ "\033[F", TOP_KEY_END },  { "\033OF", TOP_KEY_END },      { "\033[4~", TOP_KEY_END },
};

/* A sequence that is not known means nothing, wholly. */
static int read_escape(struct str *text)
{
	size_t len = 2;

	for (size_t i = 0; i < ARRAY_SIZE(sequences); i++)
		if (str_starts(*text, str_of(sequences[i].text))) {
			*text = str_skip(*text, strlen(sequences[i].text));
			return (int)sequences[i].key;
		}
	if (text->len < 2 || (text->ptr[1] != '[' && text->ptr[1] != 'O')) {
		*text = str_skip(*text, 1);
		return TOP_KEY_ESCAPE;
	}
	while (len < text->len && (text->ptr[len] < 0x40 || text->ptr[len] > 0x7e))
		len++;
	*text = str_skip(*text, len + 1);
	return TOP_KEY_NONE;
}

int top_key_read(struct str *text)
{
	unsigned char c = (unsigned char)text->ptr[0];

	if (c == 033)
		return read_escape(text);
	*text = str_skip(*text, 1);
	if (c == '\r' || c == '\n')
		return TOP_KEY_ENTER;
	return c == 0x7f || c == '\b' ? TOP_KEY_BACKSPACE : c;
}

static void sort_by(struct top_table *t, enum top_sort sort)
{
	t->is_reversed = t->sort == sort && !t->is_reversed;
	t->sort = sort;
	t->at = t->first = 0;
	t->is_chosen = false;
}

static void type(struct top_table *t, int key)
{
	size_t len = strlen(t->filter);

	t->at = t->first = 0;
	t->is_chosen = false;
	if (key == TOP_KEY_ENTER) {
		t->is_typing = false;
	} else if (key == TOP_KEY_ESCAPE) {
		memcpy(t->filter, t->typed, sizeof(t->filter));
		t->is_typing = false;
	} else if (key == TOP_KEY_BACKSPACE) {
		while (len && ((unsigned char)t->filter[len - 1] & 0xc0) == 0x80) /* the rest of a character */
			t->filter[--len] = 0;
		t->filter[len ? len - 1 : 0] = 0;
	} else if (key == 'U' - '@') {
		t->filter[0] = 0;
	} else if (key >= ' ' && key < 256 && len < TOP_FILTER_MAX) {
		t->filter[len] = (char)key;
		t->filter[len + 1] = 0;
	}
}

static void move(size_t *at, size_t count, size_t page, int key)
{
	const size_t last = count ? count - 1 : 0;

	page = MAX(page, (size_t)1);
	if (key == TOP_KEY_UP || key == 'k')
		*at -= MIN(*at, (size_t)1);
	else if (key == TOP_KEY_DOWN || key == 'j')
		*at += 1;
	else if (key == TOP_KEY_PAGE_UP)
		*at -= MIN(*at, page);
	else if (key == TOP_KEY_PAGE_DOWN)
		*at += page;
	else if (key == TOP_KEY_HOME || key == 'g')
		*at = 0;
	else if (key == TOP_KEY_END || key == 'G')
		*at = last;
	*at = MIN(*at, last);
}

static void choose(struct top_table *t, const struct top_counts *c)
{
	t->is_chosen = t->order_count > 0;
	if (!t->is_chosen)
		return;
	t->at = MIN(t->at, t->order_count - 1);
	t->name = c->rows[t->order[t->at]].name;
	t->group = c->rows[t->order[t->at]].group;
}

static bool press_callers(struct top_table *t, int key)
{
	if (key == TOP_KEY_ESCAPE || key == TOP_KEY_BACKSPACE || key == TOP_KEY_ENTER || key == 'q')
		t->shows_callers = false;
	move(&t->callers_first, SIZE_MAX, t->shown, key);
	return true;
}

static bool press_row(struct top_table *t, const struct top_counts *c, int key)
{
	const size_t before = t->at;

	switch (key) {
	case TOP_KEY_ENTER:
		if (!t->is_chosen)
			choose(t, c);
		t->shows_callers = t->is_chosen;
		t->callers_first = 0;
		return true;
	case TOP_KEY_ESCAPE:
		t->filter[0] = 0;
		t->is_chosen = false;
		t->at = t->first = 0;
		return true;
	case '/':
		memcpy(t->typed, t->filter, sizeof(t->typed));
		t->is_typing = true;
		return true;
	case 'q':
		return false;
	default:
		move(&t->at, t->order_count, t->shown, key);
		if (t->at != before)
			choose(t, c);
		return true;
	}
}

bool top_table_press(struct top_table *t, const struct top_counts *c, int key)
{
	static const struct {
		char key;
		enum top_sort sort;
	} sorts[] = { { 's', TOP_SORT_SELF },
		      { 't', TOP_SORT_TOTAL },
		      { 'p', TOP_SORT_PROCESS },
		      { 'c', TOP_SORT_CONTAINER },
		      { 'f', TOP_SORT_FUNCTION } };

	if (t->is_typing) {
		type(t, key);
		return true;
	}
	if (t->shows_help) {
		t->shows_help = false;
		return true;
	}
	if (key == ' ')
		t->is_paused = !t->is_paused;
	if (key == '?' || key == 'h')
		t->shows_help = true;
	if (t->shows_callers)
		return press_callers(t, key);
	for (size_t i = 0; i < ARRAY_SIZE(sorts); i++)
		if (key == sorts[i].key)
			sort_by(t, sorts[i].sort);
	if (key == 'r')
		t->is_reversed = !t->is_reversed;
	return press_row(t, c, key);
}

/* Rows in order */

struct ordering {
	const struct top_table *t;
	const struct top_counts *c;
};

static int by_value(int64_t a, int64_t b)
{
	return a == b ? 0 : a < b ? 1 : -1; /* the costly first */
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct ordering *o = ctx;
	const struct top_row *x = &o->c->rows[*(const uint32_t *)a], *y = &o->c->rows[*(const uint32_t *)b];
	const struct top_group *gx = &o->c->groups[x->group], *gy = &o->c->groups[y->group];
	int r = 0;

	if (o->t->sort == TOP_SORT_TOTAL)
		r = by_value(x->total, y->total);
	else if (o->t->sort == TOP_SORT_PROCESS)
		r = str_cmp(top_name(o->c, gx->comm), top_name(o->c, gy->comm));
	else if (o->t->sort == TOP_SORT_CONTAINER) /* what is in none comes last */
		r = gx->container && gy->container
			    ? str_cmp(top_name(o->c, gx->container), top_name(o->c, gy->container))
			    : !gx->container - !gy->container;
	else if (o->t->sort == TOP_SORT_FUNCTION)
		r = str_cmp(top_name(o->c, x->name), top_name(o->c, y->name));
	r = r ? r : by_value(x->self, y->self);
	r = r ? r : by_value(x->total, y->total);
	if (r)
		return o->t->is_reversed ? -r : r;
	r = str_cmp(top_name(o->c, x->name), top_name(o->c, y->name));
	return r ? r : (x->group > y->group) - (x->group < y->group);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool has(struct str text, const char *filter)
{
	const size_t len = strlen(filter);

	for (size_t at = 0; at + len <= text.len; at++) {
		size_t k = 0;

		while (k < len && lower(text.ptr[at + k]) == lower(filter[k]))
			k++;
		if (k == len)
			return true;
	}
	return false;
}

static bool passes(const struct top_table *t, const struct top_counts *c, const struct top_row *row)
{
	const struct top_group *g = &c->groups[row->group];

	return !t->filter[0] || has(top_name(c, row->name), t->filter) || has(top_name(c, g->comm), t->filter) ||
	       has(top_name(c, g->container), t->filter);
}

static int put_in_order(struct top_table *t, const struct top_counts *c)
{
	struct ordering o = { t, c };
	int r = array_reserve(&t->order, &t->order_cap, c->row_count + 1);

	t->order_count = 0;
	for (size_t i = 0; i < c->row_count && r == 0; i++)
		if (c->rows[i].total && passes(t, c, &c->rows[i]))
			t->order[t->order_count++] = (uint32_t)i;
	if (r == 0)
		qsort_r(t->order, t->order_count, sizeof(*t->order), compare, &o);
	return r;
}

/* What was chosen stays chosen wherever it is now. */
static void find_chosen(struct top_table *t, const struct top_counts *c, size_t room)
{
	for (size_t i = 0; t->is_chosen && i < t->order_count; i++) {
		const struct top_row *row = &c->rows[t->order[i]];

		if (row->name == t->name && row->group == t->group) {
			t->at = i;
			break;
		}
	}
	t->at = t->order_count ? MIN(t->at, t->order_count - 1) : 0;
	if (t->at < t->first)
		t->first = t->at;
	if (t->at >= t->first + room)
		t->first = t->at - room + 1;
	if (t->first + room > t->order_count)
		t->first = t->order_count > room ? t->order_count - room : 0;
}

/* Lines */

struct columns {
	size_t process, container, function; /* widths; container 0: nothing is in one */
};

static void end_line(struct buf *out, size_t used, size_t width, bool mark)
{
	if (mark) {
		terminal_pad(out, width > used ? width - used : 0);
		buf_adds(out, STR(PLAIN));
	}
	buf_addc(out, '\n');
}

static void add_cut(struct buf *out, struct buf *line, size_t width, bool mark)
{
	size_t used;

	if (mark)
		buf_adds(out, STR(REVERSE));
	used = terminal_add(out, buf_str(line), width);
	end_line(out, used, width, mark);
	buf_clear(line);
}

static double percent(int64_t value, int64_t total)
{
	return total > 0 ? 100.0 * (double)value / (double)total : 0;
}

static void add_cell(struct buf *out, struct str text, size_t width)
{
	size_t used = terminal_add(out, text, width);

	terminal_pad(out, width - MIN(used, width));
}

/* "make 1234", "cc1 x17": the number is never cut. */
static void add_process(struct buf *out, const struct top_counts *c, const struct top_group *g, size_t width)
{
	char tail[32] = "";
	size_t len, used;

	if (g->pid_count > 1)
		(void)snprintf(tail, sizeof(tail), " x%u", g->pid_count);
	else if (g->pid_count == 1 && g->pid)
		(void)snprintf(tail, sizeof(tail), " %u", g->pid);
	len = MIN(strlen(tail), width - 1);
	used = terminal_add(out, top_name(c, g->comm), width - len);
	buf_add(out, tail, len);
	terminal_pad(out, width - MIN(used + len, width));
}

static void add_row(struct buf *out, const struct top_counts *c, const struct top_row *row, const struct columns *w,
		    size_t width, bool mark)
{
	const struct top_group *g = &c->groups[row->group];
	size_t used = 16 + w->process + 1 + (w->container ? w->container + 1 : 0);

	if (mark)
		buf_adds(out, STR(REVERSE));
	buf_addf(out, "%6.2f%% %6.2f%% ", percent(row->self, c->total), percent(row->total, c->total));
	add_process(out, c, g, w->process);
	buf_addc(out, ' ');
	if (w->container) {
		add_cell(out, top_name(c, g->container), w->container);
		buf_addc(out, ' ');
	}
	used += terminal_add(out, top_name(c, row->name), w->function);
	end_line(out, used, width, mark);
}

static struct columns columns_for(const struct top_counts *c, size_t width)
{
	struct columns w = { .process = width >= 60 ? 20 : 10 };
	size_t used;

	for (size_t i = 0; i < c->group_count && width >= 60; i++)
		if (c->groups[i].container && c->groups[i].pid_count)
			w.container = 12;
	used = 16 + w.process + 1 + (w.container ? w.container + 1 : 0);
	w.function = width > used ? width - used : 1;
	return w;
}

static void add_titles(struct buf *out, const struct top_table *t, const struct columns *w, size_t width, bool mark)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));
	const char *titles[] = { "SELF", "TOTAL", "PROCESS", "CONTAINER", "FUNCTION" };
	char text[5][16];

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		(void)snprintf(text[i], sizeof(text[i]), "%s%s", titles[i],
			       (size_t)t->sort != i ? ""
			       : t->is_reversed     ? "^"
						    : "v");
	buf_addf(&line, "%7s %7s %-*s ", text[0], text[1], (int)w->process, text[2]);
	if (w->container)
		buf_addf(&line, "%-*s ", (int)w->container, text[3]);
	buf_addf(&line, "%s", text[4]);
	add_cut(out, &line, width, mark);
}

static void add_number(struct buf *out, uint64_t value)
{
	if (value >= 1000) {
		add_number(out, value / 1000);
		buf_addf(out, ",%03u", (unsigned)(value % 1000));
	} else {
		buf_addf(out, "%u", (unsigned)value);
	}
}

static void add_head(struct buf *out, const struct top_table *t, const struct top_counts *c, size_t width)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(4));
	const double seconds = (double)c->took_ns / NSEC_PER_SEC;
	char text[32];

	if (!c->used) {
		progress_time(t->refresh_ns, text);
		buf_addf(&line, "hearth top: waiting for the first samples (%s)", text);
		add_cut(out, &line, width, false);
		return;
	}
	buf_addf(&line, "hearth top: %.2f of %u CPUs busy, last %.*f s, ",
		 seconds > 0 ? (double)c->busy_ns / NSEC_PER_SEC / seconds : 0, c->cpu_count,
		 t->refresh_ns % NSEC_PER_SEC ? 1 : 0, seconds);
	add_number(&line, c->count);
	buf_addf(&line, " samples");
	if (c->lost) {
		buf_addf(&line, ", ");
		add_number(&line, c->lost);
		buf_addf(&line, " lost");
	}
	if (t->is_paused)
		buf_addf(&line, ", PAUSED");
	if (c->is_short)
		buf_addf(&line, ", no memory for all");
	add_cut(out, &line, width, false);
}

static void add_filter(struct buf *out, const struct top_table *t, const struct top_counts *c, size_t width)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(4));
	int64_t self = 0;

	for (size_t i = 0; i < t->order_count; i++)
		self += c->rows[t->order[i]].self;
	if (t->is_typing)
		buf_addf(&line, "filter: %s_", t->filter);
	else if (t->filter[0])
		buf_addf(&line, "filter: %s", t->filter);
	if (t->filter[0])
		buf_addf(&line, "   (%zu functions, %.2f%% self)", t->order_count, percent(self, c->total));
	add_cut(out, &line, width, false);
}

static void add_keys(struct buf *out, const struct top_table *t, size_t width)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));

	if (t->is_typing)
		buf_addf(&line, "Enter: keep the filter   Esc: as before");
	else if (t->shows_callers)
		buf_addf(&line, "Esc: back   up, down: scroll   space: pause   ?: help");
	else
		buf_addf(&line, "q: quit  s,t,p,c,f: sort  r: reverse  /: filter  Enter: callers  ?: help");
	terminal_add(out, buf_str(&line), width);
	buf_addc(out, '\n');
}

static void draw_help(struct buf *out, size_t width, size_t height)
{
	static const char *const lines[] = {
		"Functions of the last seconds, by what they cost.",
		"",
		"SELF   share of all samples in the function itself",
		"TOTAL  the same with all that it called",
		"",
		"s t p c f   sort by self, total, process, container, function",
		"            (the same key again: the other way round)",
		"r           the other way round",
		"/           show only what has a text in function, process or container",
		"Esc         without filter; back",
		"up down     choose (also j k, page up, page down, Home, End)",
		"Enter       who calls the chosen function",
		"space       hold the picture, go on",
		"q Ctrl-C    quit",
		"",
		"Any key goes back.",
	};
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));

	for (size_t i = 0; i < ARRAY_SIZE(lines) && i + 1 < height; i++) {
		buf_addf(&line, "%s", lines[i]);
		add_cut(out, &line, width, false);
	}
}

/* The share is of the function's total. */
static void draw_callers(struct top_table *t, const struct top_counts *c, size_t width, size_t room, bool marks,
			 struct buf *out)
{
	scoped(buf_release) struct buf line = BUF_INIT(CELL_MAX);
	const struct top_group *g = &c->groups[t->group];
	struct top_caller *list = NULL;
	size_t count = 0;

	if (top_counts_callers(c, t->name, t->group, CALLERS_SHOWN, &list, &count) < 0)
		buf_addf(&line, "no memory");
	else
		buf_addf(&line, "callers of " STR_FMT, STR_ARG(str_first(top_name(c, t->name), 1000)));
	add_cut(out, &line, width, false);
	buf_addf(&line, "   SHARE   TOTAL CALLER, in " STR_FMT, STR_ARG(str_first(top_name(c, g->comm), 64)));
	add_cut(out, &line, width, marks);
	t->callers_first = MIN(t->callers_first, count > room ? count - room : 0);
	for (size_t i = t->callers_first; i < count && i < t->callers_first + room; i++) {
		const size_t depth = list[i].depth, indent = MIN(depth, width / 3), used = 16 + indent + 2;

		buf_addf(out, "%7.2f%% %6.2f%% ", percent(list[i].value, list[0].value),
			 percent(list[i].value, c->total));
		terminal_pad(out, indent);
		terminal_add(out, str_of(depth ? "< " : "  "), 2);
		terminal_add(out, top_name(c, list[i].name), width > used + 1 ? width - used - 1 : 1);
		buf_addc(out, '\n');
	}
	free(list);
}

static void draw_rows(struct top_table *t, struct top_counts *c, size_t width, size_t room, bool marks, struct buf *out)
{
	const struct columns w = columns_for(c, width);

	find_chosen(t, c, MAX(room, (size_t)1));
	add_titles(out, t, &w, width, marks);
	for (size_t i = t->first; i < t->order_count && i < t->first + room; i++)
		add_row(out, c, &c->rows[t->order[i]], &w, width, marks && i == t->at);
}

static size_t lines_of(const struct buf *b, size_t from)
{
	size_t count = 0;

	for (size_t i = from; i < b->len; i++)
		count += b->ptr[i] == '\n';
	return count;
}

void top_table_draw(struct top_table *t, struct top_counts *c, size_t width, size_t height, size_t rows, bool marks,
		    struct buf *out)
{
	const bool is_plain = height == 0;
	const size_t begin = out->len;

	width = MAX(width, (size_t)WIDTH_LEAST);
	height = MAX(height, (size_t)HEIGHT_LEAST);
	t->shown = is_plain ? rows : height - 4; /* head, filter, titles, keys */
	if (t->shows_help && !is_plain) {
		draw_help(out, width, height);
		return;
	}
	top_counts_processes(c);
	if (put_in_order(t, c) < 0)
		c->is_short = true;
	add_head(out, t, c, width);
	if (t->shows_callers && c->used && t->group < c->group_count) {
		draw_callers(t, c, width, t->shown, marks, out);
	} else {
		if (!is_plain || t->filter[0])
			add_filter(out, t, c, width);
		draw_rows(t, c, width, t->shown, marks, out);
	}
	if (is_plain)
		return;
	for (size_t have = lines_of(out, begin); have + 1 < height; have++)
		buf_addc(out, '\n');
	add_keys(out, t, width);
}
