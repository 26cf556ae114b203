/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "proc/workload.h"

static void units_are_found(void **state)
{
	static const struct {
		const char *name, *cgroup, *want;
	} cases[] = {
		{ "a service", "0::/system.slice/nginx.service\n", "nginx" },
		{ "a group below a service", "0::/system.slice/postgresql@15-main.service/workers/1\n",
		  "postgresql@15-main" },
		{ "a user's service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/db.service\n", "db" },
		{ "a session", "0::/user.slice/user-1000.slice/session-3.scope\n", "" },
		{ "a scope in a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n",
		  "" },
		{ "systemd itself", "0::/init.scope\n", "" },
		{ "the root", "0::/\n", "" },
		{ "version 1", "12:cpu,cpuacct:/\n1:name=systemd:/system.slice/cron.service\n0::/\n", "cron" },
		{ "a controller's own groups", "3:cpu:/other.service\n", "" },
		{ "a colon in a name", "0::/system.slice/a:b.service\n", "a:b" },
		{ "only a suffix", "0::/system.slice/.service\n", "" },
		{ "empty", "", "" },
		{ "cut", "0:", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur text = guard_page(cases[i].cgroup, strlen(cases[i].cgroup));
		struct str got = workload_unit_parse(cur_rest(&text));

		print_message("  %s\n", cases[i].name);
		assert_true(str_eq(got, str_of(cases[i].want)));
	}
}

static void pods_are_found(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "web", "web" },
		{ "k8s_app_shop-6d4cf56db6-x2x8p_default_0f6a_0", "shop-6d4cf56db6-x2x8p" },
		{ "k8s_app", "k8s_app" },
		{ "k8s_app__default_0_0", "k8s_app__default_0_0" },
		{ "k8sx_app_pod_default_0_0", "k8sx_app_pod_default_0_0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_true(str_eq(workload_container(str_of(cases[i].name)), str_of(cases[i].want)));
}

static void the_most_specific_name_wins(void **state)
{
	static char container[] = "web", unit[] = "nginx", exe[] = "/usr/sbin/nginx", gone[] = "/opt/a b (deleted)",
		    empty[] = "";
	static const struct {
		struct proc p;
		const char *want;
	} cases[] = {
		{ { .container = container, .unit = unit, .exe = exe }, "web" },
		{ { .unit = unit, .exe = exe }, "nginx" },
		{ { .exe = exe }, "nginx" },
		{ { .exe = gone }, "a b" },
		{ { .container = empty, .unit = empty, .exe = empty }, "comm" },
		{ { 0 }, "comm" },
		{ { .is_kernel = true }, "kernel" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_true(str_eq(workload_name(&cases[i].p, STR("comm")), str_of(cases[i].want)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_found),
		cmocka_unit_test(pods_are_found),
		cmocka_unit_test(the_most_specific_name_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
