/* SPDX-License-Identifier: Apache-2.0 */
/* Our pprof files before the reference tool: `go tool pprof` must read them, and what it writes again must say the
 * same. Skipped by name where no go is installed. */
#include "support.h"

#include <unistd.h>

#include "base/io.h"
#include "codec/pprof.h"
#include "codec_samples.h"

static bool has_go(void)
{
	return system("go tool pprof -help >/dev/null 2>&1") == 0; /* fixed text: nothing foreign reaches the shell */
}

/* @least_stack: 0 for all samples, 1 without those of the empty stack */
static int64_t total(const struct window *w, size_t column, uint32_t least_stack)
{
	int64_t sum = 0;

	for (size_t i = 0; i < w->model->samples_count; i++)
		if (w->model->samples[i].stack >= least_stack)
			sum += model_values(w->model, &w->model->samples[i])[column];
	return sum;
}

static void write_file(const char *path, const struct window *w)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(64));

	assert_int_equal(codec_pprof.encode(w, &out), 0);
	assert_int_equal(io_replace_file(path, out.ptr, out.len), 0);
}

static void go_reads_and_rewrites(void **state)
{
	char dir[] = "/tmp/hearth-pprof-XXXXXX";
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(64));
	struct codec_error error;

	(void)state;
	if (!has_go())
		skip_because("needs go tool pprof");
	assert_int_equal(hostile_window(&w, true), 0);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	write_file("ours.pb.gz", &w);
	assert_int_equal(system("go tool pprof -raw -output=raw.txt ours.pb.gz >log 2>&1"), 0);
	assert_int_equal(system("go tool pprof -symbolize=none -proto -output=theirs.pb.gz ours.pb.gz >>log 2>&1"), 0);
	assert_int_equal(io_read_file("theirs.pb.gz", &bytes), 0);
	assert_int_equal(codec_pprof.decode(buf_str(&bytes), &back, &error), 0);
	assert_int_equal(system("rm -f ours.pb.gz theirs.pb.gz raw.txt log"), 0);
	assert_int_equal(rmdir(dir), 0);
	for (size_t i = 0; i < 2; i++)
		/* pprof of Go 1.19 leaves out samples without a location, newer ones keep them. */
		if (total(&back, i, 0) != total(&w, i, 0))
			assert_int_equal(total(&back, i, 0), total(&w, i, 1));
	assert_int_equal(back.model->period, w.model->period);
	assert_int_equal(back.frequency_hz, w.frequency_hz); /* comments survive */
	assert_int_equal(window_counter(&back, STR("complete")), 987);
	assert_true(back.model->processes_count > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_reads_and_rewrites),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
