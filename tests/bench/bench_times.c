/* SPDX-License-Identifier: Apache-2.0 */
/* What times of samples cost the store: bench_times DIR timed|plain WINDOW... puts windows of `hearth record --window
 * 10s
 * --sample-times -o NAME.hwin`, a profile for each service, as `hearth up` does; plain: without their times. DIR must
 * not exist and stays. The day is closed at the end. Prints bytes and times; nothing of it is asserted. */
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/window_codec.h"
#include "model/split.h"
#include "store/store.h"

struct bench {
	struct store_state *s;
	uint64_t now, profiles, rows, values, put_ns, split_ns;
};

static uint64_t bench_now(void *self)
{
	return ((const struct bench *)self)->now;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static int put_part(void *ctx, const struct window_part *part)
{
	struct bench *b = ctx;
	const struct model *m = part->window->model;
	struct store_label labels[STORE_LABELS_MAX];
	struct store_upload up = { .service = part->workload,
				   .type = part->type,
				   .labels = labels,
				   .created_ns = part->window->start_ns,
				   .window = part->window };
	struct store_id id;
	uint64_t start = cpu_ns();

	labels[up.label_count++] = (struct store_label){ STR("host"), str_of(part->window->host) };
	for (size_t i = 0; i < part->window->label_count && up.label_count < STORE_LABELS_MAX; i++)
		labels[up.label_count++] = (struct store_label){ str_of(part->window->labels[i].key),
								 str_of(part->window->labels[i].value) };
	must(store_sqlite.put(b->s, &up, &id) == 0);
	b->put_ns += cpu_ns() - start;
	b->profiles++;
	b->rows += m->samples_count;
	for (size_t i = 0; i < m->samples_count; i++)
		b->values += (uint64_t)model_values(m, &m->samples[i])[0];
	return 0;
}

static void put_file(struct bench *b, const char *path, bool timed, const struct store_config *config)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(GIB(1));
	scoped(window_release) struct window w = { 0 };
	struct codec_error error;
	uint64_t start;

	must(io_read_file(path, &bytes) == 0);
	must(codec_window.decode(buf_str(&bytes), &w, &error) == 0);
	for (size_t i = 0; i < w.model->samples_count && !timed; i++)
		w.model->samples[i].time_offset_ns = MODEL_NO_TIME;
	must(timed || model_coalesce(w.model) == 0);
	b->now = w.end_ns;
	if (!b->s)
		must(store_sqlite.open(config, &b->s) == 0);
	start = cpu_ns();
	must(window_split(&w, put_part, b) == 0);
	b->split_ns += cpu_ns() - start;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct clock clock = { .monotonic_ns = bench_now, .wall_ns = bench_now, .self = &b };
	struct store_config config = { .clock = &clock };
	bool timed;

	if (argc < 4 || (strcmp(argv[2], "timed") && strcmp(argv[2], "plain"))) {
		(void)fputs("usage: bench_times DIR timed|plain WINDOW...\n", stderr);
		return 2;
	}
	timed = !strcmp(argv[2], "timed");
	config.path = argv[1];
	for (int i = 3; i < argc; i++)
		put_file(&b, argv[i], timed, &config);
	printf("%s: %d windows, %llu profiles, %llu rows of %llu samples; split %.2f ms, put %.2f ms of CPU each "
	       "window\n",
	       argv[2], argc - 3, (unsigned long long)b.profiles, (unsigned long long)b.rows,
	       (unsigned long long)b.values, (double)(b.split_ns - b.put_ns) / 1e6 / (argc - 3),
	       (double)b.put_ns / 1e6 / (argc - 3));
	b.now += UINT64_C(50) * 3600 * NSEC_PER_SEC;
	if (!getenv("OPEN"))
		must(store_sqlite.maintain(b.s) == 0);
	store_sqlite.close(b.s);
	return 0;
}
