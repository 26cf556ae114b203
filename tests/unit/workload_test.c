/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/utf8.h"
#include "proc/workload.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "pod0f6a3c1e_7b1d_4a52_9f0e_2c6d8a1b3c4d"

static void groups_are_read(void **state)
{
	static const struct {
		const char *name, *cgroup, *id, *container, *unit;
		bool is_pod;
	} cases[] = {
		{ "a service", "0::/system.slice/nginx.service\n", "", "", "nginx", false },
		{ "a group below a service", "0::/system.slice/postgresql@15-main.service/workers/1\n", "", "",
		  "postgresql@15-main", false },
		{ "a template's slice", "0::/system.slice/system-getty.slice/getty@tty1.service\n", "", "",
		  "getty@tty1", false },
		{ "an escaped unit", "0::/system.slice/systemd-fsck@dev-vda\\x2d1.service\n", "", "",
		  "systemd-fsck@dev-vda\\x2d1", false },
		{ "a user's service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/db.service\n", "", "",
		  "db", false },
		{ "a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "", "",
		  false },
		{ "a session", "0::/user.slice/user-1000.slice/session-3.scope\n", "", "", "", false },
		{ "a scope in a user's manager", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n",
		  "", "", "", false },
		{ "systemd itself", "0::/init.scope\n", "", "", "", false },
		{ "the root", "0::/\n", "", "", "", false },
		{ "systemd-run without a name", "0::/system.slice/run-u123.service\n", "", "", "", false },
		{ "the same, random", "0::/system.slice/run-r3f0c9a.service\n", "", "", "", false },
		{ "the same, later systemd", "0::/system.slice/run-p812-i813.service\n", "", "", "", false },
		{ "a unit that only begins so", "0::/system.slice/run-update.service\n", "", "", "run-update", false },
		{ "a removed group", "0::/system.slice/old.service (deleted)\n", "", "", "old", false },
		{ "version 1", "12:cpu,cpuacct:/\n1:name=systemd:/system.slice/cron.service\n0::/\n", "", "", "cron",
		  false },
		{ "a controller's own groups", "3:cpu:/other.service\n", "", "", "", false },
		{ "a colon in a name", "0::/system.slice/a:b.service\n", "", "", "a:b", false },
		{ "only a suffix", "0::/system.slice/.service\n", "", "", "", false },
		{ "empty", "", "", "", "", false },
		{ "cut", "0:", "", "", "", false },
		{ "docker, cgroupfs", "0::/docker/" ID "\n", ID, "", "", false },
		{ "docker, systemd", "0::/system.slice/docker-" ID ".scope\n", ID, "", "", false },
		{ "docker, version 1", "4:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", ID, "", "", false },
		{ "docker in docker",
		  "0::/docker/" ID "/docker/fedcba9876543210fedcba9876543210"
		  "fedcba9876543210fedcba9876543210\n",
		  "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210", "", "", false },
		{ "systemd in a container", "0::/system.slice/docker-" ID ".scope/system.slice/nginx.service\n", ID, "",
		  "", false },
		{ "podman", "0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", "", false },
		{ "podman, rootless",
		  "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n", ID, "",
		  "", false },
		{ "podman's quadlet", "0::/system.slice/web.service/libpod-payload-" ID "\n", ID, "", "", false },
		{ "podman's monitor", "0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", "", false },
		{ "CRI-O's monitor", "0::/kubepods.slice/crio-conmon-" ID ".scope\n", "", "", "", false },
		{ "kubernetes, containerd, systemd",
		  "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD ".slice/cri-containerd-" ID
		  ".scope\n",
		  ID, "", "", true },
		{ "kubernetes, containerd, cgroupfs", "0::/kubepods/besteffort/" POD "/" ID "\n", ID, "", "", true },
		{ "kubernetes, CRI-O", "0::/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope/container\n", ID,
		  "", "", true },
		{ "kubernetes, docker",
		  "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-" POD ".slice/docker-" ID
		  ".scope\n",
		  ID, "", "", true },
		{ "kubernetes, version 1",
		  "11:cpu,cpuacct:/kubepods/burstable/" POD "/" ID "\n1:name=systemd:/kubepods/burstable/" POD "/" ID
		  "\n",
		  ID, "", "", true },
		{ "containerd with systemd's names and the other driver",
		  "0::/system.slice/containerd.service/kubepods-burstable-" POD ".slice:cri-containerd:" ID "\n", ID,
		  "", "", true },
		{ "seen from another group", "0::/../cri-containerd-" ID ".scope\n", ID, "", "", false },
		{ "containerd itself", "0::/system.slice/containerd.service\n", "", "", "containerd", false },
		{ "a longer number is no id", "0::/docker/" ID "00\n", "", "", "", false },
		{ "lxc", "0::/lxc/web/system.slice/nginx.service\n", "", "web", "", false },
		{ "lxc 4", "0::/lxc.payload.db/init.scope\n", "", "db", "", false },
		{ "lxc 3", "0::/lxc.payload/old\n", "", "old", "", false },
		{ "lxc's monitor", "0::/lxc.monitor.db\n", "", "", "", false },
		{ "systemd-nspawn",
		  "0::/machine.slice/systemd-nspawn@build.service/payload/system.slice/cron.service\n", "", "build", "",
		  false },
		{ "a machine", "0::/machine.slice/machine-build.scope\n", "", "build", "", false },
		{ "a virtual machine", "0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "", "", "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur text = guard_page(cases[i].cgroup, strlen(cases[i].cgroup));
		struct workload_group got;

		print_message("  %s\n", cases[i].name);
		workload_group_parse(cur_rest(&text), &got);
		assert_string_equal(got.container_id, cases[i].id);
		assert_true(str_eq(got.container, str_of(cases[i].container)));
		assert_true(str_eq(got.unit, str_of(cases[i].unit)));
		assert_int_equal(got.is_pod, cases[i].is_pod);
	}
}

static void paths_are_systemds(void **state)
{
	struct workload_group got;

	(void)state;
	workload_group_parse(STR("3:cpu:/batch\n1:name=systemd:/system.slice/a.service\n0::/\n"), &got);
	assert_true(str_eq(got.path, STR("/system.slice/a.service")));
	workload_group_parse(STR("0::/batch/jobs (deleted)\n"), &got);
	assert_true(str_eq(got.path, STR("/batch/jobs")));
}

static void pods_are_found(void **state)
{
	static const struct {
		const char *name, *want;
		bool is_pod;
	} cases[] = {
		{ "web", "web", false },
		{ "k8s_app_shop-6d4cf56db6-x2x8p_default_0f6a_0", "shop-6d4cf56db6-x2x8p", true },
		{ "k8s_app", "k8s_app", false },
		{ "k8s_app__default_0_0", "k8s_app__default_0_0", false },
		{ "k8sx_app_pod_default_0_0", "k8sx_app_pod_default_0_0", false },
	};
	bool is_pod;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(str_eq(workload_container(str_of(cases[i].name), &is_pod), str_of(cases[i].want)));
		assert_int_equal(is_pod, cases[i].is_pod);
	}
	assert_true(str_eq(workload_hostname(str_n("A=1\0HOSTNAME=shop-1\0B=2", 23)), STR("shop-1")));
	assert_int_equal(workload_hostname(str_n("XHOSTNAME=a\0HOST", 16)).len, 0);
	assert_int_equal(workload_hostname(STR("")).len, 0);
}

#define TEXT(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static void the_most_specific_name_wins(void **state)
{
	static const struct {
		struct workload_facts facts;
		const char *want;
		enum workload_kind kind;
	} cases[] = {
		{ { .pod = TEXT("shop-1"), .container = TEXT("c0ffee"), .unit = TEXT("u") }, "shop-1", WORKLOAD_POD },
		{ { .container = TEXT("k8s_app_shop-2_default_0_0") }, "shop-2", WORKLOAD_POD },
		{ { .container = TEXT("web"), .unit = TEXT("nginx"), .exe = TEXT("/usr/sbin/nginx") },
		  "web",
		  WORKLOAD_CONTAINER },
		{ { .unit = TEXT("nginx"), .exe = TEXT("/usr/bin/node"), .argv = TEXT("node\0a.js") },
		  "nginx",
		  WORKLOAD_UNIT },
		{ { .exe = TEXT("/usr/bin/node"), .argv = TEXT("node\0/srv/a.js\0") }, "a.js", WORKLOAD_APPLICATION },
		{ { .exe = TEXT("/usr/bin/node"), .comm = TEXT("node") }, "node", WORKLOAD_EXECUTABLE },
		{ { .exe = TEXT("/usr/bin/dash"), .argv = TEXT("sh\0/srv/backup.sh\0") },
		  "backup.sh",
		  WORKLOAD_EXECUTABLE },
		{ { .exe = TEXT("/usr/sbin/nginx"), .comm = TEXT("worker") }, "nginx", WORKLOAD_EXECUTABLE },
		{ { .exe = TEXT("/opt/a b (deleted)") }, "a b", WORKLOAD_EXECUTABLE },
		{ { .exe = TEXT("/memfd:runc_cloned:/proc/self/exe (deleted)") }, "runc_cloned", WORKLOAD_EXECUTABLE },
		{ { .exe = TEXT("/memfd: (deleted)"), .comm = TEXT("3") }, "3", WORKLOAD_EXECUTABLE },
		{ { .comm = TEXT("comm") }, "comm", WORKLOAD_EXECUTABLE },
		{ { .comm = TEXT(" \n ") }, "unknown", WORKLOAD_EXECUTABLE },
		{ { .is_kernel = false }, "unknown", WORKLOAD_EXECUTABLE },
		{ { .is_kernel = true, .comm = TEXT("kworker/0:1") }, "kernel", WORKLOAD_KERNEL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

		print_message("  %s\n", cases[i].want);
		assert_int_equal(workload_name(&cases[i].facts, NULL, &name), cases[i].kind);
		assert_string_equal(buf_cstr(&name), cases[i].want);
	}
}

static void hostile_names_are_bounded_and_escaped(void **state)
{
	static const struct {
		struct str name;
		const char *want;
	} cases[] = {
		{ TEXT("/x/a\nb"), "a\\x0ab" },
		{ TEXT("/x/b\x1b[31mred"), "b\\x1b[31mred" },
		{ TEXT("/x/\xff\xfe"), "\\xff\\xfe" },
		{ TEXT("/x/a\xe2\x80\xae"
		       "b"),
		  "a\\u202eb" },
		{ TEXT("/x/<img src=x onerror=1>"), "<img src=x onerror=1>" },
		{ TEXT("/x/caf\xc3\xa9"), "caf\xc3\xa9" },
	};
	static char large[MIB(1)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

		workload_name(&(struct workload_facts){ .exe = cases[i].name }, NULL, &name);
		assert_string_equal(buf_cstr(&name), cases[i].want);
	}
	for (int fill = 0; fill < 3; fill++) { /* letters, bytes that are escaped, characters of two bytes */
		for (size_t i = 0; i < sizeof(large); i++)
			large[i] = fill == 0 ? 'a' : fill == 1 ? (i % 2 ? '\x01' : 'a') : i % 2 ? '\xa9' : '\xc3';
		for (int field = 0; field < 4; field++) {
			scoped(buf_release) struct buf name = BUF_INIT(KIB(1));
			struct str text = str_n(large, sizeof(large));
			struct workload_facts facts = { .exe = field == 0 ? text : STR("/usr/bin/node"),
							.unit = field == 1 ? text : STR(""),
							.container = field == 2 ? text : STR(""),
							.argv = field == 3 ? text : STR("") };

			workload_name(&facts, NULL, &name);
			assert_int_equal(name.error, 0);
			assert_in_range(name.len, 1, WORKLOAD_NAME_MAX);
			assert_true(utf8_valid(buf_str(&name)));
			assert_true(field == 3 || str_ends(buf_str(&name), STR("...")));
		}
	}
}

static void rules_win(void **state)
{
	static const char text[] = "command *manage.py runserver* -> shop\nunit postgresql@* -> postgres\n"
				   "container web-* -> web\ncgroup /batch/* -> batch\nexe /opt/acme/* -> acme\n";
	static const struct {
		struct workload_facts facts;
		const char *want;
		enum workload_kind kind;
	} cases[] = {
		{ { .exe = TEXT("/usr/bin/python3"), .argv = TEXT("python3\0manage.py\0runserver\0:80\0") },
		  "shop",
		  WORKLOAD_RULE },
		{ { .unit = TEXT("postgresql@15-main"), .exe = TEXT("/opt/acme/postgres") },
		  "postgres",
		  WORKLOAD_RULE },
		{ { .container = TEXT("web-1") }, "web", WORKLOAD_RULE },
		{ { .container = TEXT("db"), .cgroup = TEXT("/batch/7") }, "batch", WORKLOAD_RULE },
		{ { .exe = TEXT("/opt/acme/bin/x (deleted)") }, "acme", WORKLOAD_RULE },
		{ { .exe = TEXT("/opt/other") }, "other", WORKLOAD_EXECUTABLE },
		{ { .exe = TEXT("/opt/acme/bin/x"), .is_kernel = true }, "kernel", WORKLOAD_KERNEL },
	};
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct service_rules *rules;

	(void)state;
	assert_int_equal(service_rules_parse(str_of(text), &why, &rules), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

		assert_int_equal(workload_name(&cases[i].facts, rules, &name), cases[i].kind);
		assert_string_equal(buf_cstr(&name), cases[i].want);
	}
	service_rules_free(rules);
}

static void only_programs_may_be_short(void **state)
{
	(void)state;
	for (int kind = 0; kind < WORKLOAD_KIND_COUNT; kind++)
		assert_int_equal(workload_may_be_short((enum workload_kind)kind),
				 kind == WORKLOAD_APPLICATION || kind == WORKLOAD_EXECUTABLE);
	assert_true(str_eq(workload_kind_name(WORKLOAD_SHORT_LIVED), STR("short-lived")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_read),
		cmocka_unit_test(paths_are_systemds),
		cmocka_unit_test(pods_are_found),
		cmocka_unit_test(the_most_specific_name_wins),
		cmocka_unit_test(hostile_names_are_bounded_and_escaped),
		cmocka_unit_test(rules_win),
		cmocka_unit_test(only_programs_may_be_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
