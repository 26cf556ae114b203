/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_usage.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"

#define MB 1048576.0

static int read_number(const char *root, const char *name, uint64_t *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), text = BUF_INIT(KIB(4));
	int r;

	buf_addf(&path, "%s/%s", root, name);
	r = io_read_file(buf_cstr(&path), &text);
	return r ? r : str_to_u64(str_trim(buf_str(&text)), 0, UINT64_MAX, out);
}

/* "usage_usec 123" is the first line of cpu.stat. Source: Documentation/admin-guide/cgroup-v2.rst. */
static int read_cpu_v2(const char *root, uint64_t *out_ns)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), text = BUF_INIT(KIB(4));
	struct str rest, line;
	uint64_t us;
	int r;

	buf_addf(&path, "%s/cpu.stat", root);
	r = io_read_file(buf_cstr(&path), &text);
	rest = buf_str(&text);
	while (r == 0 && rest.len && str_next(&rest, '\n', &line)) {
		if (!str_starts(line, STR("usage_usec ")))
			continue;
		r = str_to_u64(str_skip(line, strlen("usage_usec ")), 0, UINT64_MAX / 1000, &us);
		*out_ns = r ? 0 : us * 1000;
		return r;
	}
	return r ? r : -EBADMSG;
}

/* Version 2 where it is; otherwise the controllers of version 1 at their usual places. */
static int read_usage(const char *root, struct agent_usage *out)
{
	if (read_cpu_v2(root, &out->cpu_ns) == 0) {
		ignore(read_number(root, "memory.current", &out->memory)); /* the root group has none */
		if (read_number(root, "memory.peak", &out->peak) < 0)      /* from 5.19 on */
			out->peak = MAX(out->peak, out->memory);
		return 0;
	}
	if (read_number(root, "cpuacct/cpuacct.usage", &out->cpu_ns) < 0)
		return -ENOENT;
	ignore(read_number(root, "memory/memory.usage_in_bytes", &out->memory));
	ignore(read_number(root, "memory/memory.max_usage_in_bytes", &out->peak));
	return 0;
}

int agent_usage_begin(const char *root, struct agent_usage *out)
{
	struct agent_usage u = { .root = root, .at_ns = clock_monotonic_ns(&clock_system) };
	int r = read_usage(root, &u);

	if (r == 0)
		*out = u;
	return r;
}

static void add_difference(struct buf *out, uint64_t before, uint64_t after)
{
	if (before == after)
		buf_adds(out, STR("no diff"));
	else
		buf_addf(out, "diff %+.3f MB", ((double)after - (double)before) / MB);
}

void agent_usage_log(struct agent_usage *u)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));
	struct agent_usage now = *u;
	double seconds, passed;

	if (!u->root || read_usage(u->root, &now) < 0)
		return;
	now.at_ns = clock_monotonic_ns(&clock_system);
	seconds = (double)(now.cpu_ns - MIN(u->cpu_ns, now.cpu_ns)) / (double)NSEC_PER_SEC;
	passed = (double)(now.at_ns - u->at_ns) / (double)NSEC_PER_SEC;
	buf_addf(&line, "CPU usage this cycle: %.3f seconds %.2f%% (%llu cgroup time)", seconds,
		 passed > 0 ? 100 * seconds / passed : 0, (unsigned long long)now.cpu_ns);
	log_debug(buf_cstr(&line));
	buf_clear(&line);
	buf_addf(&line, "Memory usage: %.3f MB (", (double)now.memory / MB);
	add_difference(&line, u->memory, now.memory);
	buf_addf(&line, "), watermark is %.3f MB (", (double)now.peak / MB);
	add_difference(&line, u->peak, now.peak);
	buf_addc(&line, ')');
	log_debug(buf_cstr(&line));
	*u = now;
}
