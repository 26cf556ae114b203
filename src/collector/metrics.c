/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/metrics.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/array.h"

/* The default buckets of Prometheus's Go client, which profefe uses, in microseconds. */
static const uint64_t buckets_us[] = { 5000,   10000,   25000,   50000,   100000,  250000,
				       500000, 1000000, 2500000, 5000000, 10000000 };

struct row {
	const char *route, *method;
	unsigned int code;
	uint64_t count, took_ns, bytes_in, bytes_out;
	uint64_t buckets[ARRAY_SIZE(buckets_us)];
};

#define ROWS_MAX 2048 /* routes times methods times codes: far fewer in truth */

struct metrics {
	pthread_mutex_t lock; /* guards rows */
	struct row *rows;
	size_t count, cap;
	_Atomic uint64_t counters[COLLECTOR_COUNTER_COUNT];
};

int metrics_new(struct metrics **out)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	(void)pthread_mutex_init(&m->lock, NULL); /* no attributes: cannot fail on Linux */
	*out = m;
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	(void)pthread_mutex_destroy(&m->lock);
	free(m->rows);
	free(m);
}

void metrics_add(struct metrics *m, enum collector_counter counter, uint64_t value)
{
	atomic_fetch_add_explicit(&m->counters[counter], value, memory_order_relaxed);
}

static struct row *find_row(struct metrics *m, const char *route, const char *method, unsigned int code)
{
	struct row *row;

	for (size_t i = 0; i < m->count; i++)
		if (m->rows[i].route == route && m->rows[i].method == method && m->rows[i].code == code)
			return &m->rows[i];
	if (array_grow(&m->rows, &m->cap, m->count, ROWS_MAX) < 0)
		return NULL;
	row = &m->rows[m->count++];
	*row = (struct row){ .route = route, .method = method, .code = code };
	return row;
}

void metrics_request(struct metrics *m, const char *route, const char *method, unsigned int code, uint64_t took_ns,
		     size_t bytes_in, size_t bytes_out)
{
	struct row *row;

	(void)pthread_mutex_lock(&m->lock);
	row = find_row(m, route, method, code);
	if (row) {
		row->count++;
		row->took_ns += took_ns;
		row->bytes_in += bytes_in;
		row->bytes_out += bytes_out;
		for (size_t i = 0; i < ARRAY_SIZE(buckets_us); i++)
			row->buckets[i] += took_ns <= buckets_us[i] * 1000;
	}
	(void)pthread_mutex_unlock(&m->lock);
}

static void head(struct buf *out, const char *name, const char *help, const char *type)
{
	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
	head(out, name, help, "gauge");
	buf_addf(out, "%s %" PRIu64 "\n", name, value);
}

void metrics_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
	head(out, name, help, "counter");
	buf_addf(out, "%s %" PRIu64 "\n", name, value);
}

static void labels(struct buf *out, const struct row *row, bool code)
{
	buf_addf(out, "{method=\"%s\",path=\"%s\"", row->method, row->route);
	if (code)
		buf_addf(out, ",code=\"%u\"", row->code);
}

#define DURATION "profefe_api_request_duration_seconds"

static void write_durations(const struct metrics *m, struct buf *out)
{
	head(out, DURATION, "how long requests took", "histogram");
	for (size_t i = 0; i < m->count; i++) {
		const struct row *row = &m->rows[i];

		for (size_t b = 0; b < ARRAY_SIZE(buckets_us); b++) {
			buf_adds(out, STR(DURATION "_bucket"));
			labels(out, row, true);
			buf_addf(out, ",le=\"%g\"} %" PRIu64 "\n", (double)buckets_us[b] / 1e6, row->buckets[b]);
		}
		buf_adds(out, STR(DURATION "_bucket"));
		labels(out, row, true);
		buf_addf(out, ",le=\"+Inf\"} %" PRIu64 "\n" DURATION "_sum", row->count);
		labels(out, row, true);
		buf_addf(out, "} %.9f\n" DURATION "_count", (double)row->took_ns / 1e9);
		labels(out, row, true);
		buf_addf(out, "} %" PRIu64 "\n", row->count);
	}
}

/* A summary has no code: rows of one route and method together. */
static void write_sizes(const struct metrics *m, const char *name, const char *help, bool in, struct buf *out)
{
	head(out, name, help, "summary");
	for (size_t i = 0; i < m->count; i++) {
		uint64_t sum = 0, count = 0;
		bool first = true;

		for (size_t j = 0; j < m->count; j++) {
			const struct row *other = &m->rows[j];

			if (other->route != m->rows[i].route || other->method != m->rows[i].method)
				continue;
			first &= j >= i;
			sum += in ? other->bytes_in : other->bytes_out;
			count += other->count;
		}
		if (!first)
			continue;
		buf_addf(out, "%s_sum", name);
		labels(out, &m->rows[i], false);
		buf_addf(out, "} %" PRIu64 "\n%s_count", sum, name);
		labels(out, &m->rows[i], false);
		buf_addf(out, "} %" PRIu64 "\n", count);
	}
}

void metrics_write(struct metrics *m, struct buf *out)
{
#define X(id, name, help) { "hearth_" name "_total", help },
	static const struct {
		const char *name, *help;
	} counters[] = { COLLECTOR_COUNTERS(X) };
#undef X

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		metrics_counter(out, counters[i].name, counters[i].help, m->counters[i]);
	(void)pthread_mutex_lock(&m->lock);
	head(out, "profefe_api_requests_total", "requests that were answered", "counter");
	for (size_t i = 0; i < m->count; i++) {
		buf_adds(out, STR("profefe_api_requests_total"));
		labels(out, &m->rows[i], true);
		buf_addf(out, "} %" PRIu64 "\n", m->rows[i].count);
	}
	write_durations(m, out);
	write_sizes(m, "profefe_api_request_size_bytes", "sizes of requests", true, out);
	write_sizes(m, "profefe_api_response_size_bytes", "sizes of answers", false, out);
	(void)pthread_mutex_unlock(&m->lock);
}
