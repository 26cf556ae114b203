/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a window add up to it. */
#include "support.h"

#include "model/split.h"
#include "model_samples.h"

#define SEEDS 40

struct parts {
	struct content content;
	char text[64][32];
	size_t count;
	int result;
	uint64_t samples;
};

static int visit(void *ctx, const struct window_part *part)
{
	struct parts *p = ctx;
	const struct model *m = part->window->model;

	assert_true(p->count < ARRAY_SIZE(p->text));
	(void)snprintf(p->text[p->count], sizeof(p->text[0]), STR_FMT "/" STR_FMT, STR_ARG(part->workload),
		       STR_ARG(part->type));
	p->count++;
	assert_true(m->samples_count > 0);
	for (size_t i = 0; i < m->samples_count; i++) {
		struct str workload = model_string(m, m->processes[m->samples[i].process].workload);

		assert_true(str_eq(workload.len ? workload : STR("unknown"), part->workload));
	}
	p->samples += window_counter(part->window, STR("samples"));
	if (p->content.count < 100000)
		content_add(&p->content, m);
	return p->result;
}

static void name_processes(struct model *m, size_t names)
{
	for (size_t i = 1; i < m->processes_count; i++) {
		char name[32];
		int size = snprintf(name, sizeof(name), "w%zu", i % names);

		if (i % (names + 1))
			assert_int_equal(model_add_string(m, str_n(name, (size_t)size), &m->processes[i].workload), 0);
	}
}

static void parts_add_up(void **state)
{
	static struct parts p; /* large for a stack */

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct model m = { 0 };
		struct window w = { .model = &m };
		scoped(content_release) struct content want = { 0 };

		memset(&p, 0, sizeof(p));
		print_message("  seed %llu\n", (unsigned long long)seed);
		assert_int_equal(random_model(seed, &m), 0);
		name_processes(&m, seed % 5 + 1);
		content_add(&want, &m);
		content_sum(&want);
		assert_int_equal(window_split(&w, visit, &p), 0);
		content_sum(&p.content);
		content_assert_same(&p.content, &want);
		for (size_t a = 0; a < p.count; a++)
			for (size_t b = 0; b < a; b++)
				assert_string_not_equal(p.text[a], p.text[b]);
		content_release(&p.content);
		model_release(&m);
	}
}

/* Two workloads; one of them only waited. */
static void make_waits(struct window *w)
{
	uint32_t name, process, stack, location;

	assert_int_equal(window_init(w, MIB(1)), 0);
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(w->model, STR("cpu"), STR("nanoseconds")), 0);
	assert_int_equal(model_add_value_type(w->model, STR("waits"), STR("count")), 0);
	assert_int_equal(model_add_value_type(w->model, STR("off_cpu"), STR("nanoseconds")), 0);
	w->model->period = 100;
	assert_int_equal(model_add_location(w->model, &(struct model_location){ .address = 16 }, NULL, &location), 0);
	assert_int_equal(model_add_stack(w->model, 0, location, &stack), 0);
	for (uint32_t i = 0; i < 4; i++) {
		const int64_t values[4] = { i == 3 ? 5 : 0, i == 3 ? 500 : 0, i == 3 ? 0 : 2, i == 3 ? 0 : 900 };

		assert_int_equal(model_add_string(w->model, i % 2 ? STR("busy") : STR("idle"), &name), 0);
		assert_int_equal(model_add_process(w->model, &(struct model_process){ .pid = i + 1, .workload = name },
						   &process),
				 0);
		assert_int_equal(model_add_sample(w->model,
						  &(struct model_sample){ .stack = stack,
									  .process = process,
									  .time_offset_ns = MODEL_NO_TIME },
						  values),
				 0);
	}
	assert_int_equal(window_set_counter(w, STR("lost_ring_full"), 9), 0);
	assert_int_equal(window_set_counter(w, STR("complete"), 4), 0);
	assert_int_equal(window_set_counter(w, STR("user_samples"), 6), 0);
	assert_int_equal(window_set_text(&w->host, STR("h")), 0);
	assert_int_equal(window_add_label(w, STR("group"), STR("g")), 0);
}

static int visit_waits(void *ctx, const struct window_part *part)
{
	struct parts *p = ctx;
	const struct window *w = part->window;
	bool cpu = str_eq(part->type, STR("cpu"));

	assert_int_equal(w->model->value_type_count, 2);
	assert_true(str_eq(model_string(w->model, w->model->value_types[1].type), cpu ? STR("cpu") : STR("off_cpu")));
	assert_int_equal(w->model->period, cpu ? 100 : 0);
	assert_int_equal(window_counter(w, STR("machine_lost_ring_full")), 9);
	assert_int_equal(window_counter(w, STR("complete")), 0);
	assert_int_equal(window_counter(w, STR("machine_complete")), 4);
	assert_int_equal(window_counter(w, STR("machine_user_samples")), 6);
	assert_int_equal(window_lost_samples(w), 0);
	assert_string_equal(w->host, "h");
	assert_true(str_eq(window_label(w, STR("group")), STR("g")));
	assert_int_equal(window_counter(w, STR("samples")), cpu ? 5 : 0);
	return visit(p, part);
}

static void waits_become_profiles_of_their_own(void **state)
{
	scoped(window_release) struct window w = { 0 };
	struct parts p = { 0 };

	(void)state;
	make_waits(&w);
	p.content.count = 100000;
	assert_int_equal(window_split(&w, visit_waits, &p), 0);
	assert_int_equal(p.count, 3);
	assert_string_equal(p.text[0], "busy/cpu");
	assert_string_equal(p.text[1], "idle/offcpu");
	assert_string_equal(p.text[2], "busy/offcpu");
}

static int visit_times(void *ctx, const struct window_part *part)
{
	const struct model *m = part->window->model;
	struct parts *p = ctx;

	assert_int_equal(m->samples_count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(m->samples[i].time_offset_ns, i == 2 ? MODEL_NO_TIME : i * 20 * NSEC_PER_MSEC);
		assert_int_equal(model_values(m, &m->samples[i])[0], i == 1 ? 4 : 1);
	}
	return visit(p, part);
}

static int visit_group(void *ctx, size_t group, struct window *part)
{
	assert_int_equal(group, 0);
	assert_int_equal(part->model->samples_count, 1);
	assert_int_equal(part->model->samples[0].time_offset_ns, MODEL_NO_TIME);
	assert_int_equal(model_values(part->model, part->model->samples)[0], 6);
	++*(size_t *)ctx;
	return 0;
}

/* Parts of one window begin when it does. Groups, of what others send, have no times. */
static void parts_have_times(void **state)
{
	static const int moments[] = { 0, 1, 1, -1 };
	static const int64_t values[] = { 1, 1, 3, 1 };
	static const uint32_t group_of[4];
	scoped(window_release) struct window w = { 0 };
	struct parts p = { .content.count = 100000 };
	size_t groups = 0;

	(void)state;
	assert_int_equal(window_init(&w, MIB(1)), 0);
	assert_int_equal(model_add_value_type(w.model, STR("samples"), STR("count")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };

		if (moments[i] >= 0)
			row.time_offset_ns = (uint64_t)moments[i] * 20 * NSEC_PER_MSEC;
		assert_int_equal(model_add_sample(w.model, &row, &values[i]), 0);
	}
	assert_int_equal(window_split(&w, visit_times, &p), 0);
	assert_int_equal(p.count, 1);
	assert_int_equal(p.samples, 6);
	assert_int_equal(window_split_groups(&w, group_of, 1, visit_group, &groups), 0);
	assert_int_equal(groups, 1);
}

static int visit_kinds(void *ctx, const struct window_part *part)
{
	assert_true(str_eq(window_label(part->window, STR(MODEL_SERVICE_KIND)), part->kind));
	return visit(ctx, part);
}

/* One name for a unit and for a program: two services. What a service is named after is its label. */
static void kinds_are_labels(void **state)
{
	scoped(window_release) struct window w = { 0 };
	struct parts p = { 0 };
	struct model *m;

	(void)state;
	make_waits(&w);
	m = w.model;
	assert_int_equal(model_add_string(m, STR("unit"), &m->processes[1].service_kind), 0);
	assert_int_equal(model_add_string(m, STR("executable"), &m->processes[3].service_kind), 0);
	assert_true(m->processes[1].workload == m->processes[3].workload);
	p.content.count = 100000;
	assert_int_equal(window_split(&w, visit_kinds, &p), 0);
	assert_int_equal(p.count, 4);
	assert_string_equal(p.text[1], "idle/offcpu");
	assert_string_equal(p.text[3], "idle/offcpu");
}

static void a_visitor_can_end_it(void **state)
{
	scoped(window_release) struct window w = { 0 };
	struct parts p = { .result = -EIO };

	(void)state;
	make_waits(&w);
	p.content.count = 100000;
	assert_int_equal(window_split(&w, visit, &p), -EIO);
	assert_int_equal(p.count, 1);
}

static int count_parts(void *ctx, const struct window_part *part)
{
	(void)part;
	++*(size_t *)ctx;
	return 0;
}

static int split_once(void *ctx)
{
	size_t count = 0;

	return window_split(ctx, count_parts, &count);
}

static void memory_can_run_out(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	make_waits(&w);
	for_each_failing_allocation(split_once, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),         cmocka_unit_test(waits_become_profiles_of_their_own),
		cmocka_unit_test(parts_have_times),     cmocka_unit_test(kinds_are_labels),
		cmocka_unit_test(a_visitor_can_end_it), cmocka_unit_test(memory_can_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
