/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a perf ring of any bytes: what is made of them must be what sampler.h promises to its readers. The first
 * byte says what the events were asked for. */
#include "fuzz.h"

#include <linux/perf_event.h>
#include <stdlib.h>

#include "sampler/perf/tasks.h"
#include "sampler/sampler.h"

static void make(const struct perf_record *r, size_t chain_max, struct abi_sample *out)
{
	static const char comm[ABI_COMM_SIZE] = "fuzzed", thread_name[ABI_COMM_SIZE] = "thread";
	const struct perf_identity who = {
		.process_start_ns = 1, .exec_id = 1, .comm = comm, .thread_name = thread_name
	};
	const enum perf_walk walks[] = { PERF_WALK_CHAIN, PERF_WALK_STACK };

	for (size_t i = 0; i < ARRAY_SIZE(walks); i++) {
		int size;

		ignore(perf_sample_make(r, &who, walks[i], chain_max, out));
		must(out->header.size <= PERF_ABI_SAMPLE_MAX);
		size = abi_record_check(out, out->header.size);
		must(size == (int)out->header.size || !r->pid || !r->tid || r->pid > 1U << 22 || r->tid > 1U << 22 ||
		     r->cpu >= 65536);
	}
}

static void take(struct perf_tasks *t, const struct perf_record *r, struct abi_sample *out, size_t chain_max)
{
	struct abi_mapping *m = NULL;
	struct perf_process *p;

	switch (r->kind) {
	case PERF_KIND_SAMPLE:
		make(r, chain_max, out);
		p = perf_tasks_get(t, r->pid);
		must(!p || memchr(perf_tasks_thread_name(t, p, r->tid), 0, ABI_COMM_SIZE));
		if (p && r->cpu & 1)
			p->is_sampled = true;
		break;
	case PERF_KIND_FORK:
		p = r->pid == r->parent_pid ? NULL : perf_tasks_find(t, r->pid);
		if (p)
			perf_tasks_drop(t, p);
		ignore(perf_tasks_fork(t, r) == NULL);
		break;
	case PERF_KIND_EXIT:
		perf_tasks_exit(t, r);
		while ((p = perf_tasks_left(t)))
			perf_tasks_drop(t, p);
		break;
	case PERF_KIND_COMM:
		ignore(perf_tasks_comm(t, r) == NULL);
		break;
	case PERF_KIND_MAP:
		if (perf_tasks_map(t, r, &m) == 1 && r->pid && r->pid <= 1U << 22)
			must(abi_record_check(m, m->header.size) == (int)m->header.size);
		free(m);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct abi_sample *out;
	struct perf_tasks t;
	struct perf_format format = { 0 };
	size_t chain_max;

	if (size < 2)
		return 0;
	if (!out)
		out = malloc(PERF_ABI_SAMPLE_MAX);
	must(out);
	perf_tasks_init(&t, "/nowhere");
	format.with_stack = data[0] & 1;
	chain_max = data[1];
	data += 2;
	size -= 2;
	while (size >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		struct perf_record r;

		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			break;
		ignore(perf_record_time(data, header.size) == 0);
		if (perf_record_parse(data, header.size, &format, &r) == 0)
			take(&t, &r, out, chain_max);
		data += header.size;
		size -= header.size;
	}
	perf_tasks_release(&t);
	return 0;
}
