/* SPDX-License-Identifier: Apache-2.0 */
/* Merging and adding up against the slow, obvious version, and against `go tool pprof` on our files. */
#include "support.h"

#include <unistd.h>

#include "base/io.h"
#include "codec/pprof.h"
#include "model_samples.h"

#define SEEDS 60

static void merge_agrees_with_the_slow_version(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		scoped(model_release) struct model a = { 0 }, b = { 0 }, into = { 0 };
		scoped(content_release) struct content got = { 0 }, want = { 0 };

		print_message("  seed %llu\n", (unsigned long long)seed);
		assert_int_equal(random_model(seed, &a), 0);
		assert_int_equal(random_model(seed * 31 + 5, &b), 0);
		assert_int_equal(model_init(&into, MIB(1)), 0);
		assert_int_equal(model_merge(&into, &a), 0);
		assert_int_equal(model_merge(&into, &b), 0);
		content_add(&want, &a);
		content_add(&want, &b);
		content_sum(&want);
		content_add(&got, &into);
		content_assert_same(&got, &want);
		assert_true(into.mappings_count <= 5); /* the second's lie elsewhere, and are the same */
		assert_int_equal(into.duration_ns, 10);
		assert_int_equal(into.time_ns, MIN(a.time_ns, b.time_ns));
	}
}

static void coalesce_agrees_with_the_slow_version(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		scoped(model_release) struct model m = { 0 };
		scoped(content_release) struct content got = { 0 }, want = { 0 };
		size_t before;

		print_message("  seed %llu\n", (unsigned long long)seed);
		assert_int_equal(random_model(seed, &m), 0);
		content_add(&want, &m);
		content_sum(&want);
		before = m.samples_count;
		assert_int_equal(model_coalesce(&m), 0);
		assert_true(m.samples_count < before);
		assert_int_equal(m.values_count, 2 * m.samples_count);
		content_add(&got, &m);
		content_assert_same(&got, &want);
	}
}

/* Every sample at two moments, with a part of its values each. */
static void add_moments(struct model *m)
{
	scoped(freep) struct model_sample *rows = calloc(m->samples_count + 1, sizeof(*rows));
	scoped(freep) int64_t *values = calloc(m->values_count + 1, sizeof(*values));
	size_t count = m->samples_count, width = m->value_type_count;

	assert_non_null(rows);
	assert_non_null(values);
	memcpy(rows, m->samples, count * sizeof(*rows));
	memcpy(values, m->values, m->values_count * sizeof(*values));
	m->samples_count = m->values_count = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t first[MODEL_VALUE_TYPES_MAX], *rest = values + i * width;

		for (size_t k = 0; k < width; k++) {
			first[k] = rest[k] / 2;
			rest[k] -= first[k];
		}
		rows[i].time_offset_ns = i % 3 * 20 * NSEC_PER_MSEC;
		assert_int_equal(model_add_sample(m, &rows[i], first), 0);
		rows[i].time_offset_ns += 20 * NSEC_PER_MSEC;
		assert_int_equal(model_add_sample(m, &rows[i], rest), 0);
	}
}

static size_t count_timed(const struct model *m)
{
	size_t count = 0;

	for (size_t i = 0; i < m->samples_count; i++)
		count += m->samples[i].time_offset_ns != MODEL_NO_TIME;
	return count;
}

static void sums_have_no_times(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		scoped(model_release) struct model m = { 0 }, copy = { 0 }, into = { 0 };
		scoped(content_release) struct content got = { 0 }, want = { 0 };
		size_t rows;

		assert_int_equal(random_model(seed, &m), 0);
		content_add(&want, &m);
		content_sum(&want);
		assert_int_equal(model_init(&into, MIB(1)), 0);
		assert_int_equal(model_merge(&into, &m), 0);
		rows = into.samples_count;
		add_moments(&m);
		/* a copy has all of them */
		assert_int_equal(model_init(&copy, MIB(1)), 0);
		assert_int_equal(model_merge_timed(&copy, &m), 0);
		assert_true(copy.samples_count > rows);
		assert_int_equal(count_timed(&copy), copy.samples_count);
		content_add(&got, &copy);
		content_sum(&got);
		content_assert_same(&got, &want);
		/* what is added to it joins them again, and so does adding it to another */
		content_add(&want, &m);
		content_sum(&want);
		assert_int_equal(model_merge(&copy, &m), 0);
		assert_int_equal(model_merge(&into, &m), 0);
		assert_int_equal(into.samples_count, rows);
		assert_int_equal(copy.samples_count, rows);
		assert_int_equal(count_timed(&into) + count_timed(&copy), 0);
		content_release(&got);
		got = (struct content){ 0 };
		content_add(&got, &into);
		content_assert_same(&got, &want);
		content_release(&got);
		got = (struct content){ 0 };
		content_add(&got, &copy);
		content_assert_same(&got, &want);
	}
}

/* Values of @count samples without a stack, added one by one. */
static void add_values(struct model *m, const int64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(
			model_add_sample(m, &(struct model_sample){ .time_offset_ns = MODEL_NO_TIME }, &values[i]), 0);
}

static void sums_saturate(void **state)
{
	static const struct {
		const char *name;
		int64_t values[2], want;
	} cases[] = {
		{ "plain", { 3, 4 }, 7 },
		{ "over", { INT64_MAX, 1 }, INT64_MAX },
		{ "under", { INT64_MIN, -1 }, INT64_MIN },
		{ "both ends", { INT64_MAX, INT64_MIN }, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(model_release) struct model m = { 0 }, into = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(model_init(&m, KIB(1)), 0);
		assert_int_equal(model_init(&into, KIB(1)), 0);
		assert_int_equal(model_add_value_type(&m, STR("x"), STR("count")), 0);
		add_values(&m, cases[i].values, 2);
		assert_int_equal(model_merge(&into, &m), 0);
		assert_int_equal(into.samples_count, 1);
		assert_int_equal(into.values[0], cases[i].want);
		assert_int_equal(model_coalesce(&m), 0);
		assert_int_equal(m.samples_count, 1);
		assert_int_equal(m.values[0], cases[i].want);
	}
}

static void refuses_other_types(void **state)
{
	scoped(model_release) struct model a = { 0 }, b = { 0 };
	size_t samples;

	(void)state;
	assert_int_equal(random_model(1, &a), 0);
	assert_int_equal(random_model(2, &b), 0);
	assert_int_equal(model_add_string(&b, STR("milliseconds"), &b.value_types[1].unit), 0);
	samples = a.samples_count;
	assert_int_equal(model_merge(&a, &b), -EINVAL);
	assert_int_equal(a.samples_count, samples);
	b.value_types[1].unit = b.period_type.unit;
	b.period_type.unit = 0;
	assert_int_equal(model_merge(&a, &b), -EINVAL);
}

static int merge_once(void *ctx)
{
	scoped(model_release) struct model a = { 0 }, into = { 0 }, copy = { 0 };
	int r = random_model(*(const uint64_t *)ctx, &a);

	r = r ? r : model_init(&into, MIB(1));
	r = r ? r : model_merge(&into, &a);
	if (r == 0)
		a.samples[0].time_offset_ns = 0;
	r = r ? r : model_init(&copy, MIB(1));
	r = r ? r : model_merge_timed(&copy, &a);
	r = r ? r : model_merge(&copy, &a);
	return r ? r : model_coalesce(&a);
}

static void survives_failing_allocations(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for_each_failing_allocation(merge_once, &seed);
}

static void write_model(const char *path, const struct model *m)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	const struct window w = { .model = (struct model *)m };

	assert_int_equal(codec_pprof.encode(&w, &out), 0);
	assert_int_equal(io_replace_file(path, out.ptr, out.len), 0);
}

static void read_content(const char *path, struct content *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	scoped(window_release) struct window w = { 0 };
	struct codec_error error;

	assert_int_equal(io_read_file(path, &bytes), 0);
	assert_int_equal(codec_pprof.decode(buf_str(&bytes), &w, &error), 0);
	content_add(out, w.model);
}

static void go_merges_the_same(void **state)
{
	char dir[] = "/tmp/hearth-merge-XXXXXX";

	(void)state;
	if (system("go tool pprof -help >/dev/null 2>&1") != 0) { /* fixed text: nothing foreign reaches the shell */
		print_message("no go tool pprof here\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	for (uint64_t seed = 1; seed <= 5; seed++) {
		scoped(model_release) struct model a = { 0 }, b = { 0 }, into = { 0 };
		scoped(content_release) struct content got = { 0 }, want = { 0 };

		print_message("  seed %llu\n", (unsigned long long)seed);
		assert_int_equal(random_model(seed, &a), 0);
		assert_int_equal(random_model(seed + 1, &b), 0);
		assert_int_equal(model_init(&into, MIB(1)), 0);
		assert_int_equal(model_merge(&into, &a), 0);
		assert_int_equal(model_merge(&into, &b), 0);
		write_model("a", &a);
		write_model("b", &b);
		write_model("ours", &into);
		assert_int_equal(system("go tool pprof -symbolize=none -proto -output=theirs a b >log 2>&1"), 0);
		read_content("ours", &got);
		read_content("theirs", &want);
		content_assert_same(&got, &want);
	}
	assert_int_equal(system("rm -f a b ours theirs log"), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_agrees_with_the_slow_version),
		cmocka_unit_test(coalesce_agrees_with_the_slow_version),
		cmocka_unit_test(sums_have_no_times),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(refuses_other_types),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(go_merges_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
