/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_sampler.h"

#include <errno.h>
#include <linux/capability.h>

#include "base/io.h"
#include "sampler/sampler.h"

static uint64_t effective_rights(void)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	struct str rest, line;
	uint64_t mask = 0;

	if (io_read_file("/proc/self/status", &text) < 0)
		return 0;
	rest = buf_str(&text);
	while (str_next(&rest, '\n', &line))
		if (str_starts(line, STR("CapEff:")))
			mask = strtoull(line.ptr + strlen("CapEff:"), NULL, 16); /* a line break ends it */
	return mask;
}

/* 0 where it cannot be read: what is unknown is not complained of. */
static uint64_t setting_of(const char *host_root, const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	uint64_t value = 0;

	if (io_read_below(host_root, path, &text) == 0)
		ignore(str_to_u64(str_trim(buf_str(&text)), 0, INT32_MAX, &value)); /* -1: paranoid of nothing */
	return value;
}

static void add_setting(struct buf *out, const char *name, const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

	buf_addf(out, "%s is ", name);
	buf_adds(out, io_read_file(path, &text) < 0 ? STR("not known") : str_trim(buf_str(&text)));
}

static void add_missing(struct buf *out)
{
	const uint64_t rights = effective_rights();
	const bool no_bpf = !(rights & 1ull << CAP_BPF), no_perfmon = !(rights & 1ull << CAP_PERFMON);

	if (rights & 1ull << CAP_SYS_ADMIN || (!no_bpf && !no_perfmon))
		buf_adds(out, STR("the kernel forbids it"));
	else
		buf_addf(out, "%s missing (or CAP_SYS_ADMIN)",
			 no_bpf && no_perfmon ? "CAP_BPF and CAP_PERFMON are"
			 : no_bpf             ? "CAP_BPF is"
					      : "CAP_PERFMON is");
	buf_adds(out, STR("; "));
	add_setting(out, "kernel.unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled");
	buf_adds(out, STR(", "));
	add_setting(out, "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid");
}

/* Options that perf's own rings do not have (sampler_perf.c). */
static size_t add_bpf_options(const struct sampler_config *sampling, struct buf *out)
{
	const struct {
		const char *name;
		bool given;
	} options[] = {
		{ "-L", sampling->tid_count > 0 },
		{ "-C", sampling->cpus != NULL },
		{ "-I", sampling->idle_tasks },
		{ "-U", sampling->no_kernel },
		{ "-K", sampling->no_user },
		{ "--cgroupmap", sampling->cgroup_map != NULL },
		{ "--mntnsmap", sampling->mount_map != NULL },
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].given)
			buf_addf(out, "%s%s", count++ ? ", " : "", options[i].name);
	return count;
}

const struct sampler *profile_sampler(const struct command *c, const struct sampler_config *sampling)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16)), lacks = BUF_INIT(KIB(16)), options = BUF_INIT(KIB(1));
	const struct sampler *bpf = sampler_find(STR("bpf")), *perf = sampler_find(STR("perf"));
	int r = bpf->probe(sampling, &why);
	size_t count;

	if (r == 0)
		return bpf;
	if (r == -EPERM)
		add_missing(&lacks);
	else
		buf_adds(&lacks, buf_str(&why));
	count = add_bpf_options(sampling, &options);
	if (count) {
		command_fail(c, STR_FMT " %s BPF: " STR_FMT "%s", STR_ARG(buf_str(&options)),
			     count > 1 ? "need" : "needs", STR_ARG(buf_str(&lacks)),
			     r == -EPERM ? "; run it with sudo" : "");
		return NULL;
	}
	buf_clear(&why);
	if (perf->probe(sampling, &why) == 0) {
		command_fail(c, "without BPF, by perf's own rings: " STR_FMT, STR_ARG(buf_str(&lacks)));
		return perf;
	}
	if (r == -EPERM)
		command_fail(c, "not permitted: " STR_FMT "; run it with sudo", STR_ARG(buf_str(&lacks)));
	else
		command_fail(c, STR_FMT "; nor by perf's own rings: " STR_FMT, STR_ARG(buf_str(&lacks)),
			     STR_ARG(buf_str(&why)));
	return NULL;
}

/* Source: linux 6.1, kernel/ksyms_common.c, kallsyms_show_value(). */
void profile_warn_hidden(const struct sampler_config *sampling)
{
	const uint64_t rights = effective_rights();
	const bool syslog = rights & 1ull << CAP_SYSLOG,
		   perfmon = rights & (1ull << CAP_PERFMON | 1ull << CAP_SYS_ADMIN);
	const uint64_t restricted = setting_of(sampling->host_root, "/proc/sys/kernel/kptr_restrict"),
		       paranoid = setting_of(sampling->host_root, "/proc/sys/kernel/perf_event_paranoid");
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

	if (sampling->no_kernel || (paranoid > 1 && !perfmon)) /* there are no kernel stacks */
		return;
	if (restricted > 1)
		buf_adds(&text, STR("kernel.kptr_restrict is 2: sudo sysctl kernel.kptr_restrict=1"));
	else if (!syslog && (restricted || paranoid > 1))
		buf_addf(&text, "kernel.kptr_restrict is %u and CAP_SYSLOG is missing: run it with sudo",
			 (unsigned int)restricted);
	else
		return;
	fprintf(stderr, "WARNING: kernel addresses are hidden, and kernel frames have no names; " STR_FMT "\n",
		STR_ARG(buf_str(&text)));
}
