/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <jansson.h>
#include <linux/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"

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
		{ "no facts", nothing_works, 0, false, "\nNothing can be sampled here.\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

		print_message("  %s\n", cases[i].name);
		doctor_text(cases[i].facts, cases[i].count, &out);
		assert_string_equal(buf_cstr(&out), cases[i].want);
		assert_int_equal(doctor_usable(cases[i].facts, cases[i].count), cases[i].usable);
	}
}

static void json(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));
	json_t *object, *fact;

	(void)state;
	assert_int_equal(doctor_json(some_missing, 3, &out), 0);
	object = json_loadb(out.ptr, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_is_true(json_object_get(object, "usable")));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),
		cmocka_unit_test(json),
		cmocka_unit_test(capabilities),
		cmocka_unit_test(unprivileged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
