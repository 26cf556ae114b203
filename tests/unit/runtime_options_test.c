/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "cli/runtime_options.h"
#include "sampler/samplers.h"

/* A registry that has two rows more: they get their options by being in it. */
enum { RUNTIME_first = RUNTIME_COUNT, RUNTIME_second, WITH_FAKES };

static const char *const runtime_modes_first[] = { "auto", "disabled", NULL };
static const char *const runtime_modes_second[] = { "auto", "quickly", "none", NULL };

#define FAKES(X, ...) X(first, "First", "as ever", __VA_ARGS__) X(second, "Second", "quickly or not", __VA_ARGS__)

struct fakes {
	size_t mode[WITH_FAKES];
	bool on[WITH_FAKES];
};

struct config {
	uint64_t other;
	struct runtime_options runtimes;
	struct fakes fakes;
};

static const struct opt options[] = RUNTIME_OPTIONS(struct config, runtimes);
static const struct opt label_options[] = RUNTIME_LABEL_OPTIONS(struct config, runtimes);
static const struct opt switches[] = RUNTIME_SWITCHES(struct config, runtimes);
static const struct opt of_fakes[] = { FAKES(RUNTIME_BOTH_ROWS, struct config, fakes){ 0 } };
static const struct opt_group groups[] = { { NULL, options }, { "Fakes", of_fakes }, { 0 } };

static void parse(const struct opt_group *of, const char *first, const char *second, struct config *config)
{
	const struct opt_spec spec = { .program = "hearth test", .groups = of };
	scoped(opt_result_release) struct opt_result result;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	char *argv[] = { (char *)(uintptr_t) "test", (char *)(uintptr_t)first, (char *)(uintptr_t)second };
	int count = !first ? 1 : second ? 3 : 2;

	*config = (struct config){ 0 };
	assert_int_equal(opt_parse(&spec, count, argv, config, &result, &why), 0);
}

static void every_row_has_its_switch(void **state)
{
	static const struct opt_group only_switches[] = { { NULL, switches }, { 0 } };
	struct config config;
	char word[64], mode[64];

	(void)state;
	parse(groups, NULL, NULL, &config);
	assert_int_equal(runtime_options_without(&config.runtimes), 0);
	for (size_t i = 0; i < RUNTIME_COUNT; i++) {
		const struct runtime *runtime = runtime_at(i);

		snprintf(word, sizeof(word), "--no-%s", runtime->name);
		snprintf(mode, sizeof(mode), "--%s-mode", runtime->name);
		parse(groups, word, NULL, &config);
		assert_int_equal(runtime_options_without(&config.runtimes), 1U << runtime->id);
		parse(only_switches, word, NULL, &config);
		assert_int_equal(runtime_options_without(&config.runtimes), 1U << runtime->id);
		parse(groups, mode, "disabled", &config);
		assert_int_equal(runtime_options_without(&config.runtimes), 1U << runtime->id);
		parse(groups, mode, "none", &config);
		assert_int_equal(runtime_options_without(&config.runtimes), 1U << runtime->id);
	}
}

/* Labels are asked for only where something shows them. */
static void labels_are_asked_for_where_shown(void **state)
{
	static const struct opt_group with[] = { { NULL, label_options }, { 0 } };
	const struct opt_spec without = { .program = "hearth test", .groups = groups };
	scoped(opt_result_release) struct opt_result result;
	scoped(buf_release) struct buf words = BUF_INIT(KIB(16)), why = BUF_INIT(KIB(1));
	char *argv[] = { (char *)(uintptr_t) "test", (char *)(uintptr_t) "--php-request" };
	struct session_config session = { 0 };
	struct config config;

	(void)state;
	parse(with, "--php-request", NULL, &config);
	runtime_options_apply(&config.runtimes, &session);
	assert_true(session.sampling.php_request);
	config = (struct config){ 0 };
	assert_true(opt_parse(&without, 2, argv, &config, &result, &why) < 0);
	assert_true(str_search(buf_str(&why), STR("--php-request")) >= 0);
	opt_words(&without, &words);
	assert_true(str_search(buf_str(&words), STR("--native-interpreter-frames")) > 0);
	assert_true(str_search(buf_str(&words), STR("php-request")) < 0);
}

static void a_new_row_is_enough(void **state)
{
	const struct opt_spec spec = { .program = "hearth test", .groups = groups };
	scoped(buf_release) struct buf help = BUF_INIT(KIB(16)), words = BUF_INIT(KIB(16)), man = BUF_INIT(KIB(16));
	struct config config;

	(void)state;
	parse(groups, "--no-first", "--second-mode=quickly", &config);
	assert_false(config.fakes.on[RUNTIME_first]);
	assert_true(config.fakes.on[RUNTIME_second]);
	assert_int_equal(config.fakes.mode[RUNTIME_second], 1);
	assert_int_equal(config.other, 0);
	assert_int_equal(runtime_options_without(&config.runtimes), 0);
	opt_help(&spec, 0, &help);
	assert_true(str_search(buf_str(&help), STR("name the functions of First programs (on; --no-first ")) > 0);
	assert_true(str_search(buf_str(&help), STR("stacks of Second: quickly or not: auto, quickly, none")) > 0);
	opt_words(&spec, &words);
	assert_true(str_search(buf_str(&words), STR("--no-second")) > 0);
	opt_man(&spec, &man);
	assert_true(str_search(buf_str(&man), STR("no-second")) > 0);
}

/* What gProfiler's modes of Python mean for a session. */
static void modes_become_ways(void **state)
{
	static const struct {
		const char *mode;
		uint64_t rate;
		bool is_outside, wants_bpf;
		uint32_t beside_hz;
	} cases[] = {
		{ "auto", 99, false, false, 0 },     { "pyperf", 99, false, true, 0 },
		{ "pyspy", 99, true, false, 50 },    { "py-spy", 11, true, false, 11 },
		{ "disabled", 99, false, false, 0 },
	};
	struct config config;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct session_config session = { .sampling.frequency_hz = (uint32_t)cases[i].rate };

		print_message("  %s\n", cases[i].mode);
		parse(groups, "--python-mode", cases[i].mode, &config);
		runtime_options_apply(&config.runtimes, &session);
		assert_int_equal(runtime_options_outside(&config.runtimes), cases[i].is_outside);
		assert_int_equal(session.beside_hz, cases[i].beside_hz);
		assert_ptr_equal(session.sampler, cases[i].wants_bpf ? sampler_find(STR("bpf")) : NULL);
	}
	parse(groups, "--no-python", "--python-mode=pyspy", &config);
	assert_false(runtime_options_outside(&config.runtimes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_its_switch),
		cmocka_unit_test(labels_are_asked_for_where_shown),
		cmocka_unit_test(a_new_row_is_enough),
		cmocka_unit_test(modes_become_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
