/* SPDX-License-Identifier: Apache-2.0 */
#include "model/window.h"

#include "base/array.h"

void window_release(struct window *w)
{
	if (w->model)
		model_release(w->model);
	free(w->model);
	free(w->host);
	free(w->agent_version);
	free(w->sampler);
	free(w->unwinder);
	free(w->kernel_release);
	free(w->os_name);
	free(w->command);
	free(w->metadata_json);
	free(w->codes);
	free(w->bases);
	for (size_t i = 0; i < w->label_count; i++) {
		free(w->labels[i].key);
		free(w->labels[i].value);
	}
	free(w->labels);
	for (size_t i = 0; i < w->counter_count; i++)
		free(w->counters[i].name);
	free(w->counters);
	*w = (struct window){ 0 };
}

int window_init(struct window *w, size_t byte_max)
{
	scoped(freep) struct model *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	r = model_init(m, byte_max);
	if (r < 0)
		return r;
	*w = (struct window){ .model = m, .cpu_average = -1, .memory_average = -1 };
	m = NULL; /* moved out */
	return 0;
}

int window_set_text(char **field, struct str value)
{
	char *text = str_dup(value);

	if (!text)
		return -ENOMEM;
	free(*field);
	*field = text;
	return 0;
}

static struct window_label *label_of(const struct window *w, struct str key)
{
	for (size_t i = 0; i < w->label_count; i++)
		if (str_eq(str_of(w->labels[i].key), key))
			return &w->labels[i];
	return NULL;
}

int window_add_label(struct window *w, struct str key, struct str value)
{
	struct window_label *old = label_of(w, key);
	scoped(freep) char *name = NULL;
	char *text;
	int r;

	if (old)
		return window_set_text(&old->value, value);
	r = array_grow(&w->labels, &w->label_cap, w->label_count, WINDOW_LABELS_MAX);
	if (r < 0)
		return r;
	name = str_dup(key);
	text = str_dup(value);
	if (!name || !text) {
		free(text);
		return -ENOMEM;
	}
	w->labels[w->label_count++] = (struct window_label){ .key = name, .value = text };
	name = NULL; /* moved out */
	return 0;
}

struct str window_label(const struct window *w, struct str key)
{
	const struct window_label *found = label_of(w, key);

	return found ? str_of(found->value) : str_n("", 0);
}

static struct window_counter *counter_of(const struct window *w, struct str name)
{
	for (size_t i = 0; i < w->counter_count; i++)
		if (str_eq(str_of(w->counters[i].name), name))
			return &w->counters[i];
	return NULL;
}

int window_set_counter(struct window *w, struct str name, uint64_t value)
{
	struct window_counter *old = counter_of(w, name);
	char *text;
	int r;

	if (old) {
		old->value = value;
		return 0;
	}
	r = array_grow(&w->counters, &w->counter_cap, w->counter_count, WINDOW_COUNTERS_MAX);
	if (r < 0)
		return r;
	text = str_dup(name);
	if (!text)
		return -ENOMEM;
	w->counters[w->counter_count++] = (struct window_counter){ .name = text, .value = value };
	return 0;
}

uint64_t window_counter(const struct window *w, struct str name)
{
	const struct window_counter *found = counter_of(w, name);

	return found ? found->value : 0;
}

uint64_t window_duration_ns(const struct window *w)
{
	if (w->model->duration_ns || w->end_ns < w->start_ns)
		return (uint64_t)w->model->duration_ns;
	return w->end_ns - w->start_ns;
}

void window_add_times(struct window *into, const struct window *from, bool is_first)
{
	if (!from->model->duration_ns) /* model_merge() added nothing */
		into->model->duration_ns = saturating_add(into->model->duration_ns,
							  (int64_t)MIN(window_duration_ns(from), (uint64_t)INT64_MAX));
	if (is_first || (from->start_ns && from->start_ns < into->start_ns))
		into->start_ns = from->start_ns;
	into->end_ns = MAX(into->end_ns, from->end_ns);
	if (!into->model->duration_ns)
		into->end_ns = into->start_ns;
}

uint64_t window_lost_samples(const struct window *w)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < w->counter_count; i++)
		if (str_starts(str_of(w->counters[i].name), STR("lost_")) &&
		    __builtin_add_overflow(lost, w->counters[i].value, &lost))
			return UINT64_MAX;
	return lost;
}

double window_complete_share(const struct window *w)
{
	uint64_t user = window_counter(w, STR("user_samples"));
	double all = (double)user + (double)window_lost_samples(w);

	return user ? (double)window_counter(w, STR("complete")) / all : -1;
}

struct window_classes window_classes(const struct window *w)
{
	struct window_classes c = { .user = window_counter(w, STR("user_samples")), .lost = window_lost_samples(w) };
	uint64_t guessed = window_counter(w, STR("guessed")), older = window_counter(w, STR(WINDOW_CUT_GUESSED));

	c.whole = MIN(window_counter(w, STR("complete")), c.user);
	c.guessed = MIN(guessed, c.user - c.whole);
	c.guessed += MIN(older, c.user - c.whole - c.guessed);
	c.cut = c.user - c.whole - c.guessed;
	return c;
}

struct str window_cut_reason(const struct window_counter *counter)
{
	struct str name = str_of(counter->name);

	return str_starts(name, STR("cut_")) && !str_eq(name, STR(WINDOW_CUT_GUESSED)) ? str_skip(name, 4) : STR("");
}
