/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/up_table.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/u64map.h"
#include "cli/progress.h"
#include "render/terminal.h"

#define NAME_MAX_BYTES 256
#define SMALL_SHARE 0.005 /* of what was busy: below it a program is one of the others (docs/services.md) */

struct service {
	char name[NAME_MAX_BYTES], kind[32];
	int64_t sum;                    /* of the trend */
	int64_t cost[UP_TABLE_WINDOWS]; /* nanoseconds, by window number modulo */
};

struct up_table {
	pthread_mutex_t lock;
	uint64_t window_ns, count, lost, sampled_ns;
	uint64_t took_ns[UP_TABLE_WINDOWS], busy_ns[UP_TABLE_WINDOWS];
	int64_t beyond[UP_TABLE_WINDOWS]; /* of services that found no row */
	uint32_t cpu_count;
	bool is_short;                     /* memory ran out: the last window is not counted */
	struct service *services, **order; /* order: room to sort them in */
	size_t service_count;
};

struct up_table *up_table_new(uint64_t window_ns)
{
	struct up_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->window_ns = window_ns;
	t->services = calloc(UP_TABLE_SERVICES, sizeof(*t->services));
	t->order = calloc(UP_TABLE_SERVICES, sizeof(struct service *));
	if (!t->services || !t->order || pthread_mutex_init(&t->lock, NULL)) {
		free(t->services);
		free(t->order);
		free(t);
		return NULL;
	}
	return t;
}

void up_table_free(struct up_table *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t->services);
	free(t->order);
	free(t);
}

/* ---- what came ---- */

static void copy_name(char *to, size_t size, struct str name)
{
	name = str_first(name, size - 1);
	if (name.len)
		memcpy(to, name.ptr, name.len);
	to[name.len] = 0;
}

static bool is_row(const struct service *s, const char *name, const char *kind)
{
	return strcmp(s->name, name) == 0 && strcmp(s->kind, kind) == 0;
}

/* What a service cost goes to those without a row. */
static void give_up_row(struct up_table *t, const struct service *s)
{
	for (size_t i = 0; i < UP_TABLE_WINDOWS; i++)
		t->beyond[i] = saturating_add(t->beyond[i], s->cost[i]);
}

/* The row of a service; a new one takes the place of the cheapest, when that costs less than @cost. NULL: no room. */
static struct service *row_of(struct up_table *t, struct str name, struct str kind, int64_t cost)
{
	struct service *cheapest = t->services, wanted = { 0 };

	copy_name(wanted.name, sizeof(wanted.name), name.len ? name : STR("unknown"));
	copy_name(wanted.kind, sizeof(wanted.kind), kind);
	for (size_t i = 0; i < t->service_count; i++) {
		if (is_row(&t->services[i], wanted.name, wanted.kind))
			return &t->services[i];
		if (t->services[i].sum < cheapest->sum)
			cheapest = &t->services[i];
	}
	if (t->service_count < UP_TABLE_SERVICES)
		cheapest = &t->services[t->service_count++];
	else if (cheapest->sum >= cost)
		return NULL;
	else
		give_up_row(t, cheapest);
	*cheapest = wanted;
	return cheapest;
}

struct cost {
	uint32_t workload, kind; /* strings of the window's model */
	int64_t ns;
};

/* CPU time of each service of a window. */
struct costs {
	struct cost *items;
	size_t count;
	struct u64map index;
};

static void costs_release(struct costs *c)
{
	free(c->items);
	u64map_release(&c->index);
}

static int costs_of(const struct model *m, size_t column, struct costs *c)
{
	u64map_init(&c->index, UINT32_MAX);
	c->items = calloc(m->processes_count + 1, sizeof(*c->items));
	if (!c->items)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_process *p = &m->processes[m->samples[i].process];
		uint64_t key = (uint64_t)p->workload << 32 | p->service_kind;
		uint32_t at = (uint32_t)c->count;

		if (u64map_get(&c->index, key, &at) < 0) {
			if (u64map_put(&c->index, key, at) < 0)
				return -ENOMEM;
			c->items[c->count++] = (struct cost){ p->workload, p->service_kind, 0 };
		}
		c->items[at].ns = saturating_add(c->items[at].ns, model_values(m, &m->samples[i])[column]);
	}
	return 0;
}

static void add_costs(struct up_table *t, const struct model *m, const struct costs *costs, size_t at)
{
	for (size_t i = 0; i < costs->count; i++) {
		const struct cost *c = &costs->items[i];
		struct service *s;

		if (c->ns <= 0)
			continue;
		s = row_of(t, model_string(m, c->workload), model_string(m, c->kind), c->ns);
		if (!s) {
			t->beyond[at] = saturating_add(t->beyond[at], c->ns);
			continue;
		}
		s->cost[at] = saturating_add(s->cost[at], c->ns);
		s->sum = saturating_add(s->sum, c->ns);
	}
}

/* Windows older than the trend are forgotten, and services that have no other. */
static void forget(struct up_table *t, size_t at)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->service_count; i++) {
		struct service *s = &t->services[i];

		s->sum -= s->cost[at];
		s->cost[at] = 0;
		if (s->sum > 0)
			t->services[kept++] = *s;
	}
	t->service_count = kept;
	t->beyond[at] = 0;
}

void up_table_add(struct up_table *t, const struct window *w)
{
	scoped(costs_release) struct costs costs = { 0 };
	int column = model_value_index(w->model, STR("cpu"));
	int r = column < 0 ? 0 : costs_of(w->model, (size_t)column, &costs);
	size_t at;

	(void)pthread_mutex_lock(&t->lock);
	at = t->count % UP_TABLE_WINDOWS;
	forget(t, at);
	t->took_ns[at] = w->end_ns > w->start_ns ? w->end_ns - w->start_ns : 0;
	t->busy_ns[at] = w->busy_ns;
	t->cpu_count = w->cpu_count;
	t->lost += window_lost_samples(w);
	t->sampled_ns += t->took_ns[at];
	t->is_short = r < 0;
	if (r == 0)
		add_costs(t, w->model, &costs, at);
	t->count++;
	(void)pthread_mutex_unlock(&t->lock);
}

/* ---- what is shown ---- */

/* Columns of a line; a width of 0 leaves one out. */
struct columns {
	size_t name, kind, trend;
};

#define FIGURES " %6.2f %5.1f %%" /* CPUs, share of what was sampled */
#define FIGURES_WIDTH 15

static struct columns columns_for(size_t width, bool blocks)
{
	struct columns c = { 0 };

	if (width >= 60)
		c.kind = 12;
	if (blocks && width >= 76)
		c.trend = MIN(width - 56, UP_TABLE_WINDOWS) + 1;
	c.name = width - MIN(width - 1, FIGURES_WIDTH + c.kind + c.trend + 1);
	c.name = MIN(c.name, 60);
	return c;
}

static int by_cost(const void *a, const void *b, void *ctx)
{
	const struct service *l = *(const struct service *const *)a, *r = *(const struct service *const *)b;
	size_t at = *(const size_t *)ctx;

	if (l->cost[at] != r->cost[at])
		return l->cost[at] < r->cost[at] ? 1 : -1;
	if (l->sum != r->sum)
		return l->sum < r->sum ? 1 : -1;
	return strcmp(l->name, r->name);
}

static bool may_be_small(const struct service *s)
{
	return strcmp(s->kind, "executable") == 0 || strcmp(s->kind, "short-lived") == 0 ||
	       strcmp(s->kind, "kernel") == 0;
}

static void pad_to(struct buf *out, size_t have, size_t want)
{
	terminal_pad(out, want > have ? want - have : 0);
}

/* Eight heights; each window beside the most costly one of the row. */
static void add_trend(const struct up_table *t, const struct service *s, size_t width, struct buf *out)
{
	static const char *const heights[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					       "\u2585", "\u2586", "\u2587", "\u2588" };
	size_t count = MIN(MIN(t->count, UP_TABLE_WINDOWS), width - 1);
	int64_t most = 1;

	for (size_t i = 0; i < UP_TABLE_WINDOWS; i++)
		most = MAX(most, s->cost[i]);
	buf_addf(out, " ");
	for (size_t i = count; i-- > 0;) {
		int64_t cost = s->cost[(t->count - 1 - i) % UP_TABLE_WINDOWS];

		buf_addf(out, "%s", cost > 0 ? heights[(size_t)((double)cost / (double)most * 7.0)] : " ");
	}
}

static void add_line(const struct up_table *t, const struct service *s, const struct columns *c, double seconds,
		     double busy, size_t at, struct buf *out)
{
	double cost = (double)s->cost[at] / NSEC_PER_SEC;

	pad_to(out, terminal_add(out, str_of(s->name), c->name), c->name);
	if (c->kind) {
		terminal_pad(out, 1);
		pad_to(out, terminal_add(out, str_of(s->kind), c->kind - 1), c->kind - 1);
	}
	buf_addf(out, FIGURES, cost / seconds, busy > 0 ? 100 * cost / busy : 0);
	if (c->trend)
		add_trend(t, s, c->trend, out);
	buf_addf(out, "\n");
}

static void add_cut(struct buf *out, const struct buf *line, size_t width)
{
	terminal_add(out, buf_str(line), width);
	buf_addf(out, "\n");
}

static void add_head(const struct up_table *t, const struct columns *c, double seconds, size_t width, size_t at,
		     struct buf *out)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));
	size_t running = 0;
	char text[32];

	for (size_t i = 0; i < t->service_count; i++)
		running += t->services[i].cost[at] > 0;
	progress_time(t->sampled_ns, text);
	buf_addf(&line, "%.2f of %u CPUs busy in the last %.*f s; %zu services; %s so far",
		 (double)t->busy_ns[at] / NSEC_PER_SEC / seconds, t->cpu_count, seconds < 1 ? 1 : 0, seconds, running,
		 text);
	if (t->lost)
		buf_addf(&line, "; %llu samples lost", (unsigned long long)t->lost);
	if (t->is_short)
		buf_addf(&line, "; no memory for the last window");
	add_cut(out, &line, width);
	buf_clear(&line);
	buf_addf(&line, "%-*s", (int)c->name, "SERVICE");
	if (c->kind)
		buf_addf(&line, " %-*s", (int)c->kind - 1, "NAMED AFTER");
	buf_addf(&line, " %6s %7s", "CPUS", "SHARE");
	if (c->trend)
		buf_addf(&line, " TREND");
	add_cut(out, &line, width);
}

/* The rows in order; what is small, or beyond the last line, is one line at the end. */
static void draw(const struct up_table *t, size_t width, size_t height, bool blocks, struct buf *out)
{
	struct columns c = columns_for(width, blocks);
	struct service **rows = t->order;
	struct service others = { 0 };
	size_t at = (t->count - 1) % UP_TABLE_WINDOWS, shown = 0, other_count = 0, max = MIN(UP_TABLE_ROWS, height - 4);
	double seconds = t->took_ns[at] ? (double)t->took_ns[at] / NSEC_PER_SEC : 1, busy = 0;

	for (size_t i = 0; i < t->service_count; i++) {
		rows[i] = &t->services[i];
		busy += (double)rows[i]->cost[at] / NSEC_PER_SEC;
	}
	memcpy(others.cost, t->beyond, sizeof(others.cost));
	busy += (double)others.cost[at] / NSEC_PER_SEC;
	qsort_r(rows, t->service_count, sizeof(rows[0]), by_cost, &at);
	add_head(t, &c, seconds, width, at, out);
	for (size_t i = 0; i < t->service_count; i++) {
		const struct service *s = rows[i];
		bool is_small = may_be_small(s) && (double)s->cost[at] < SMALL_SHARE * busy * NSEC_PER_SEC;

		if (shown < max && !is_small) {
			add_line(t, s, &c, seconds, busy, at, out);
			shown++;
			continue;
		}
		other_count++;
		for (size_t k = 0; k < UP_TABLE_WINDOWS; k++)
			others.cost[k] = saturating_add(others.cost[k], s->cost[k]);
	}
	if (!other_count && !others.cost[at])
		return;
	(void)snprintf(others.name, sizeof(others.name),
		       t->service_count < UP_TABLE_SERVICES ? "%zu more" : "%zu or more", other_count);
	add_line(t, &others, &c, seconds, busy, at, out);
}

void up_table_draw(struct up_table *t, size_t width, size_t height, bool blocks, struct buf *out)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));
	char text[32];

	width = MAX(width, 20);
	height = MAX(height, 6);
	(void)pthread_mutex_lock(&t->lock);
	if (t->count) {
		draw(t, width, height, blocks, out);
	} else {
		progress_time(t->window_ns, text);
		buf_addf(&line, "waiting for the first window (%s)", text);
		add_cut(out, &line, width);
	}
	(void)pthread_mutex_unlock(&t->lock);
}
