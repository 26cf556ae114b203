/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <jansson.h>
#include <linux/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/doctor_debug.h"

#define BIT(c) (UINT64_C(1) << (c))

static const struct probe_fact all_well[] = {
	{ "sampler", PROBE_NEED_SAMPLER, true, "bpf: works", "" },
	{ "lockdown", PROBE_NEED_SAMPLER, true, "none", "" },
	{ "tracefs", PROBE_NEED_NOTHING, true, "not mounted", "" },
};

static const struct probe_fact some_missing[] = {
	{ "sampler", PROBE_NEED_SAMPLER, true, "bpf: works", "" },
	{ "kernel-symbols", PROBE_NEED_DETAIL, false, "hidden \"x\"", "sysctl" },
	{ "tracefs", PROBE_NEED_NOTHING, false, "not mounted", "" },
};

static const struct probe_fact nothing_works[] = {
	{ "sampler", PROBE_NEED_SAMPLER, false, "none can be used here", "run as root" },
};

#define CAPS                                                                             \
	"sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_syslog," \
	"cap_checkpoint_restore+ep"

static const struct probe_fact mendable[] = {
	{ "sampler", PROBE_NEED_SAMPLER, false, "none can be used here", "setcap", PROBE_MEND_RIGHTS },
	{ "own-python", PROBE_NEED_NOTHING, true, "Python can", "" },
	{ "bpf", PROBE_NEED_SAMPLER, false, "not permitted", "setcap", PROBE_MEND_RIGHTS },
	{ "disk", PROBE_NEED_DETAIL, false, "full", "make room" },
	{ "kernel-symbols", PROBE_NEED_DETAIL, false, "hidden", "sysctl", PROBE_MEND_RIGHTS | PROBE_MEND_KPTR },
	{ "libdw", PROBE_NEED_NOTHING, false, "none", "install it", PROBE_MEND_LIBDW },
};

/* One command, for this reader and this path. */
static void remedy(void **state)
{
	static const struct {
		const char *name, *program;
		bool root;
		const struct probe_fact *facts;
		size_t count, mended;
		const char *want;
	} cases[] = {
		{ "all well", "/opt/hearth", false, all_well, 3, 0, "" },
		{ "rights once", "/opt/hearth", false, mendable, 4, 2, CAPS " /opt/hearth" },
		{ "a path with a blank and a quote", "/o p/it's", false, mendable, 1, 1, CAPS " '/o p/it'\\''s'" },
		{ "a path with a new line", "/o\np/h", false, mendable, 6, 1, "sudo apt-get install -y libdw1" },
		{ "an unlinked program", "/opt/hearth (deleted)", false, mendable, 1, 0, "" },
		{ "an unknown program", "", false, mendable, 1, 0, "" },
		{ "root", "/opt/hearth", true, mendable + 5, 1, 1, "apt-get install -y libdw1" },
		{ "what is ok asks for nothing", "/opt/hearth", true, mendable + 1, 1, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

		print_message("  %s\n", cases[i].name);
		assert_int_equal(doctor_remedy(cases[i].facts, cases[i].count, cases[i].program, cases[i].root, &out),
				 cases[i].mended);
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
}

static void text(void **state)
{
	static const struct {
		const char *name;
		const struct probe_fact *facts;
		size_t count;
		bool usable;
		const char *want;
	} cases[] = {
		{ "all well", all_well, 3, true,
		  "ok       sampler                bpf: works\n"
		  "ok       lockdown               none\n"
		  "ok       tracefs                not mounted\n"
		  "\nEverything works here.\n" },
		{ "some missing", some_missing, 3, true,
		  "ok       sampler                bpf: works\n"
		  "missing  kernel-symbols         hidden \"x\"\n"
		  "                                -> sysctl\n"
		  "note     tracefs                not mounted\n"
		  "\nSampling works; 1 of 3 facts above make profiles less complete.\n" },
		{ "nothing works", nothing_works, 1, false,
		  "missing  sampler                none can be used here\n"
		  "                                -> run as root\n"
		  "\nNothing can be sampled here.\n" },
		{ "rights and a package", mendable, 6, false,
		  "missing  sampler                none can be used here\n"
		  "                                -> see the last line\n"
		  "ok       own-python             Python can\n"
		  "missing  bpf                    not permitted\n"
		  "                                -> see the last line\n"
		  "missing  disk                   full\n"
		  "                                -> make room\n"
		  "missing  kernel-symbols         hidden\n"
		  "                                -> see the last line\n"
		  "note     libdw                  none\n"
		  "                                -> see the last line\n"
		  "\nThe whole machine cannot be sampled here. Python can\n"
		  "This mends 4 of the 5 that are not ok: " CAPS " /opt/hearth && sudo sysctl -w kernel.kptr_restrict=1"
		  " && sudo apt-get install -y libdw1\n" },
		{ "no facts", nothing_works, 0, false, "\nNothing can be sampled here.\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

		print_message("  %s\n", cases[i].name);
		doctor_text(cases[i].facts, cases[i].count, "/opt/hearth", false, &out);
		assert_string_equal(buf_cstr(&out), cases[i].want);
		assert_int_equal(doctor_usable(cases[i].facts, cases[i].count), cases[i].usable);
	}
}

static void json(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));
	json_t *object, *fact;

	(void)state;
	assert_int_equal(doctor_json(some_missing, 3, "/opt/hearth", false, &out), 0);
	object = json_loadb(out.ptr, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_is_true(json_object_get(object, "usable")));
	assert_string_equal(json_string_value(json_object_get(object, "remedy")), "");
	assert_int_equal(json_array_size(json_object_get(object, "facts")), 3);
	fact = json_array_get(json_object_get(object, "facts"), 1);
	assert_string_equal(json_string_value(json_object_get(fact, "name")), "kernel-symbols");
	assert_string_equal(json_string_value(json_object_get(fact, "need")), "detail");
	assert_string_equal(json_string_value(json_object_get(fact, "value")), "hidden \"x\"");
	assert_string_equal(json_string_value(json_object_get(fact, "remedy")), "sysctl");
	assert_true(json_is_false(json_object_get(fact, "ok")));
	json_decref(object);
}

static void capabilities(void **state)
{
	static const struct {
		const char *name;
		uint64_t held;
		const char *missing; /* blank-separated */
	} cases[] = {
		{ "root", UINT64_MAX, "" },
		{ "nobody", 0,
		  "cap-bpf cap-perfmon cap-sys-ptrace cap-syslog cap-checkpoint-restore cap-dac-read-search " },
		{ "bpf and perfmon", BIT(CAP_BPF) | BIT(CAP_PERFMON),
		  "cap-sys-ptrace cap-syslog cap-checkpoint-restore cap-dac-read-search " },
		{ "sys_admin of old", BIT(CAP_SYS_ADMIN), "cap-sys-ptrace cap-syslog cap-dac-read-search " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf missing = BUF_INIT(KIB(1));
		struct probe_fact facts[8];
		size_t count = doctor_capabilities(cases[i].held, "/usr/bin/hearth", facts);

		print_message("  %s\n", cases[i].name);
		for (size_t f = 0; f < count; f++) {
			assert_int_equal(facts[f].ok, !facts[f].remedy[0]);
			if (!facts[f].ok)
				buf_addf(&missing, "%s ", facts[f].name);
		}
		assert_string_equal(buf_cstr(&missing), cases[i].missing);
	}
}

/* Nobody without any right: in a child, since there is no way back. */
static int as_nobody(void)
{
	static struct probe_fact facts[DOCTOR_FACT_MAX];
	struct doctor_config cfg = { .host_root = "", .data_dir = "/tmp/hearth-not-there/deep" };
	const struct probe_fact *f;
	size_t count;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 77;
	count = doctor_collect(&cfg, facts);
	if (doctor_usable(facts, count))
		return 1;
	f = probe_find(facts, count, "cap-bpf");
	if (!f || f->ok || !f->remedy[0])
		return 2;
	f = probe_find(facts, count, "disk");
	return f && strstr(f->value, "/tmp/hearth-not-there/deep") ? 0 : 3;
}

static void unprivileged(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root to become nobody");
	pid = fork();
	if (pid == 0)
		_exit(as_nobody());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A made-up host: one process maps two copies of a stripped program, of which one has a package. */
static void debug_packages(void **state)
{
	static const char make[] =
		"set -e; cd %s; mkdir -p proc/7 usr/lib var/lib/dpkg/info; cp /usr/bin/true usr/lib/a.so\n"
		"strip usr/lib/a.so; cp usr/lib/a.so b.so\n"
		"for f in usr/lib/a.so b.so; do echo \"1000-2000 r-xp 00000000 08:01 $(stat -c %%i $f) /$f\"; done "
		">proc/7/maps\n"
		"echo '3000-4000 r-xp 00000000 08:01 1 /usr/lib/../gone' >>proc/7/maps; echo torn >>proc/7/maps\n"
		"printf '/.\\n/lib/a.so\\n' >var/lib/dpkg/info/liba1:amd64.list; printf '/b.so\\n' "
		">'var/lib/dpkg/info/B;x.list'\n";
	char folder[] = "/tmp/hearth-doctor-XXXXXX", command[1500];
	struct probe_fact fact;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_true(snprintf(command, sizeof(command), make, folder) > 0);
	assert_int_equal(system(command), 0);
	doctor_debug_packages(folder, &fact);
	assert_false(fact.ok);
	assert_string_equal(fact.value, "2 of 3 mapped files have exported names only; those below are mapped most");
	assert_string_equal(fact.remedy, "packages, perhaps of the debug archive: liba1-dbgsym");
	doctor_debug_packages("/tmp/hearth-not-there", &fact);
	assert_true(fact.ok);
	assert_true(snprintf(command, sizeof(command), "rm -r %s", folder) > 0);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),         cmocka_unit_test(remedy),         cmocka_unit_test(json),
		cmocka_unit_test(capabilities), cmocka_unit_test(debug_packages), cmocka_unit_test(unprivileged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
