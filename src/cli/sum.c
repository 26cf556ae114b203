/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sum.h"

#include <sys/stat.h>

#include "cli/input.h"
#include "cli/memory.h"
#include "cli/progress.h"

#define STRINGS_MAX GIB(1)

/* One reading of several files. */
struct summing {
	const struct command *command;
	const struct sum_options *options;
	struct window *sum;
};

/* Counters of both add up. */
static int add_metadata(struct window *into, const struct window *from)
{
	int r = 0;

	window_add_times(into, from, !into->start_ns);
	into->busy_ns += from->busy_ns;
	for (size_t i = 0; i < from->counter_count && r == 0; i++) {
		struct str name = str_of(from->counters[i].name);

		r = window_set_counter(into, name, window_counter(into, name) + from->counters[i].value);
	}
	return r;
}

/* The sum begins empty and takes @sum's own samples as it takes those of the other files: without rows of zeros, time
 * offsets, and mappings that nothing uses, with room for the others' strings. */
static int begin_sum(const struct summing *s)
{
	scoped(model_release) struct model first = *s->sum->model;
	struct model empty = { 0 };
	char room[160];
	int r = model_init(&empty, STRINGS_MAX);

	empty.memory_max = first.memory_max;
	*s->sum->model = empty; /* of no size when that failed */
	r = r ? r : model_merge(s->sum->model, &first);
	return r < 0 ? command_fail(s->command, "%s", memory_reason(r, room)) : EXIT_DONE;
}

static int add_file(const struct summing *s, const char *path)
{
	scoped(window_release) struct window w = { 0 };
	bool compat = s->options->compat;
	char room[160];
	int r = input_load(s->command, path, s->options->from, true, &w);

	if (r != EXIT_DONE)
		return r;
	r = model_merge(s->sum->model, w.model);
	if (r == -EINVAL && compat) {
		r = model_keep_common(s->sum->model, w.model);
		r = r ? r : model_merge(s->sum->model, w.model);
	}
	if (r == -EINVAL)
		return command_fail(s->command, "%s: %s", path,
				    compat ? "it shares no value type with the files before"
					   : "its value types differ from those of the files before; --compat "
					     "merges what they share");
	if (r == 0)
		r = add_metadata(s->sum, &w);
	return r < 0 ? command_fail(s->command, "%s: %s", path, memory_reason(r, room)) : EXIT_DONE;
}

/* What a file adds to the work; 0: unknown. */
static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

int sum_load(const struct command *c, const struct sum_options *options, char **paths, int count, struct window *out)
{
	struct summing s = { .command = c, .options = options, .sum = out };
	uint64_t done = 0, total = 0;
	struct progress progress;
	int r;

	progress_begin(&progress, options->quiet || count == 1);
	for (int i = 0; i < count; i++)
		total += size_of(paths[i]);
	r = input_load(c, paths[0], options->from, options->quiet || count > 1, out);
	if (r == EXIT_DONE && count > 1)
		r = begin_sum(&s);
	if (r == EXIT_DONE)
		out->model->duration_ns = (int64_t)MIN(window_duration_ns(out), (uint64_t)INT64_MAX);
	for (int i = 1; i < count && r == EXIT_DONE; i++) {
		progress_show(&progress, done += size_of(paths[i - 1]), total, paths[i]);
		r = add_file(&s, paths[i]);
	}
	progress_end(&progress);
	return r;
}
