/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_sampler.h"

#include <errno.h>
#include <linux/capability.h>

#include "base/io.h"
#include "sampler/probe.h"

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

const struct sampler *profile_sampler(const struct command *c, const struct sampler_config *sampling)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16)), rights = BUF_INIT(KIB(4));
	const struct sampler *bpf = sampler_find(STR("bpf")), *perf = sampler_find(STR("perf"));
	int r = bpf->probe(sampling, &why);

	if (r == 0)
		return bpf;
	if (probe_pid_namespace(sampling->host_root))
		add_missing(&rights);
	else
		buf_adds(&rights, buf_str(&why));
	buf_clear(&why);
	if (perf->probe(sampling, &why) == 0) {
		command_fail(c, "without BPF, by perf's own rings: " STR_FMT, STR_ARG(buf_str(&rights)));
		return perf;
	}
	if (r != -EPERM)
		return bpf; /* opening it tells what the kernel lacks */
	command_fail(c, "not permitted: " STR_FMT "; run it with sudo", STR_ARG(buf_str(&rights)));
	return NULL;
}
