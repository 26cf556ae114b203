/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "proc/selection.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct proc process(void)
{
	struct proc p = { .comm = "nginx: worker",
			  .container_id = ID,
			  .container = (char *)"k8s_web_shop-7d9_prod_1c2_0",
			  .pod = (char *)"as-the-pod-says",
			  .unit = (char *)"nginx" };

	return p;
}

struct wanted {
	const char *name, *comms[2], *unit, *pod, *container;
	uint32_t users[2];
	size_t user_count;
	bool want;
};

static void add(struct opt_list *list, const char *item)
{
	if (item)
		list->items[list->count++] = item;
}

static bool is_wanted(const struct wanted *wanted, const struct proc *p, bool *is_all)
{
	struct opt_list comms = { 0 }, units = { 0 }, pods = { 0 };
	struct selection s = { .comms = &comms,
			       .units = &units,
			       .pods = &pods,
			       .container = wanted->container,
			       .users = { wanted->users[0], wanted->users[1] },
			       .user_count = wanted->user_count };

	add(&comms, wanted->comms[0]);
	add(&comms, wanted->comms[1]);
	add(&units, wanted->unit);
	add(&pods, wanted->pod);
	*is_all = selection_is_all(&s);
	return selection_wants(&s, p, 33);
}

static void lists_of_what_is_wanted(void **state)
{
	static const struct wanted cases[] = {
		{ "nothing said", .want = true },
		{ "comm", .comms = { "nginx: worker" }, .want = true },
		{ "a part of it", .comms = { "nginx" } },
		{ "its pattern", .comms = { "nginx*" }, .want = true },
		{ "one of two", .comms = { "bash", "nginx*" }, .want = true },
		{ "neither", .comms = { "bash", "zsh" } },
		{ "unit", .unit = "nginx", .want = true },
		{ "with its suffix", .unit = "nginx.service", .want = true },
		{ "pattern and suffix", .unit = "ng*.service", .want = true },
		{ "another unit", .unit = "ssh" },
		{ "pod, as the engine says", .pod = "shop-*", .want = true },
		{ "what the pod says does not count then", .pod = "as-the-pod-says" },
		{ "container", .container = "k8s_web_shop-7d9_prod_1c2_0", .want = true },
		{ "container's pattern", .container = "k8s_web_*", .want = true },
		{ "container's id", .container = "0123456789ab", .want = true },
		{ "too little of it", .container = "0123456789a" },
		{ "user", .users = { 7, 33 }, .user_count = 2, .want = true },
		{ "another user", .users = { 7 }, .user_count = 1 },
		{ "root is a user, too", .users = { 0 }, .user_count = 1 },
		{ "all of it", { "n*" }, "nginx", "shop-7d9", "k8s*", { 33 }, 1, true },
		{ "all but the user", { "n*" }, "nginx", "shop-7d9", "k8s*", { 1 }, 1, false },
		{ "all but the unit", { "n*" }, "apache", "shop-7d9", "k8s*", { 33 }, 1, false },
	};
	const struct proc p = process();
	bool is_all;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(is_wanted(&cases[i], &p, &is_all), cases[i].want);
		assert_int_equal(is_all, i == 0);
	}
}

/* What is not known fits nothing, not even "*". */
static void unknown_fits_nothing(void **state)
{
	static const struct wanted wanted[] = {
		{ .unit = "*" }, { .pod = "*" }, { .container = "*" }, { .comms = { "*" } }
	};
	static const struct wanted lonely = { .pod = "lon?ly" };
	const struct proc nobody = { 0 };
	struct proc pod = { .comm = "a" };
	bool is_all;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_false(is_wanted(&wanted[i], &nobody, &is_all));
	pod.pod = (char *)"lonely";
	assert_true(is_wanted(&lonely, &pod, &is_all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_what_is_wanted),
		cmocka_unit_test(unknown_fits_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
