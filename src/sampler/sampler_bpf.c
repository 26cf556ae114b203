// SPDX-License-Identifier: Apache-2.0
/* The sampler of choice: BPF programs on perf ticks and process events, one ring buffer read by polling. */
#include "sampler/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/settings.h"
#include "base/clock.h"
#include "sampler.skel.h"
#include "sampler/bpf_load.h"
#include "sampler/bpf_probe.h"
#include "sampler/bpf_runtimes.h"
#include "sampler/bpf_tables.h"
#include "sampler/bpf_ticks.h"
#include "sampler/event.h"
#include "sampler/samplers.h"

struct sampler_state {
	struct sampler_bpf *skel;
	struct ring_buffer *ring;
	struct ticks ticks;
	struct bpf_tables tables;            /* descriptors only: another thread may use it during poll */
	struct bpf_runtimes runtimes;        /* likewise */
	const struct sampler_events *events; /* during poll only */
	uint64_t rejected;
	bool off_cpu, ending; /* ending: threads that still wait are told of at the next poll */
};

static void hand_over(const struct sampler_events *to, const struct abi_header *record)
{
	switch (record->type) {
	case ABI_RECORD_SAMPLE:
		to->sample(to->ctx, (const struct abi_sample *)record);
		break;
	case ABI_RECORD_WAIT:
		if (to->wait)
			to->wait(to->ctx, (const struct abi_wait *)record);
		break;
	case ABI_RECORD_NAME:
		if (to->name)
			to->name(to->ctx, (const struct abi_name *)record);
		break;
	case ABI_RECORD_REQUEST:
		if (to->request)
			to->request(to->ctx, (const struct abi_request *)record);
		break;
	default:
		to->process(to->ctx, (const struct abi_process *)record);
	}
}

static int take_record(void *ctx, void *data, size_t size)
{
	struct sampler_state *s = ctx;
	const struct abi_header *header = data;

	if (abi_record_check(data, size) != (int)size || header->type == ABI_RECORD_MAPPING)
		s->rejected++;
	else
		hand_over(s->events, header);
	return 0;
}

/* Who waits at the end has waited so far. Return: how many there are. */
static int end_waits(struct sampler_state *s)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system);
	uint32_t *previous = NULL, tid, next;
	struct abi_waiting entry;
	int fd = bpf_map__fd(s->skel->maps.waiting), count = 0;

	for (; bpf_map_get_next_key(fd, previous, &next) == 0; previous = &tid) {
		struct abi_wait wait = { .header = { .type = ABI_RECORD_WAIT,
						     .version = ABI_VERSION,
						     .size = sizeof(wait),
						     .time_ns = now_ns } };

		tid = next;
		if (bpf_map_lookup_elem(fd, &tid, &entry) < 0 || entry.since_ns > now_ns)
			continue;
		wait.process_start_ns = entry.process_start_ns;
		wait.stack_id = entry.stack_id;
		wait.wait_ns = now_ns - entry.since_ns;
		wait.pid = entry.pid;
		wait.tid = tid;
		if (wait.wait_ns < s->skel->rodata->settings.wait_min_ns)
			continue;
		s->events->wait(s->events->ctx, &wait);
		count++;
	}
	return count;
}

static void bpf_close(struct sampler_state *s)
{
	if (!s)
		return;
	ticks_close(&s->ticks);
	bpf_tables_close(&s->tables);
	ring_buffer__free(s->ring);
	bpf_unload(&s->skel);
	free(s);
}

static void bpf_closep(struct sampler_state **s)
{
	bpf_close(*s);
}

static int bpf_open(const struct sampler_config *cfg, struct buf *why, struct sampler_state **out)
{
	scoped(bpf_closep) struct sampler_state *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->tables.empty_fd = -1;
	s->off_cpu = cfg->off_cpu;
	r = bpf_load(cfg, why, &s->skel);
	if (r < 0)
		return r;
	r = bpf_tables_open(bpf_map__fd(s->skel->maps.tables), bpf_map__fd(s->skel->maps.mappings),
			    bpf_map__fd(s->skel->maps.spaces), s->skel->bss->recent_epochs, &s->tables);
	if (r < 0) {
		bpf_explain(why, "cannot make a table of unwind rows", r);
		return r;
	}
	bpf_runtimes_open(&s->runtimes, s->skel->obj, &s->skel->bss->names_epoch);
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), take_record, s, NULL);
	if (!s->ring) {
		r = -errno;
		bpf_explain(why, "cannot map the ring buffer", r);
		return r;
	}
	r = ticks_open(&s->ticks, bpf_program__fd(s->skel->progs.sample_tick), cfg);
	if (r < 0)
		return event_explain(cfg->event, r, why);
	*out = s;
	s = NULL;
	return 0;
}

static int bpf_start(struct sampler_state *s)
{
	__atomic_store_n(&s->skel->bss->active, 1, __ATOMIC_RELEASE);
	return ticks_start(&s->ticks);
}

static int bpf_poll(struct sampler_state *s, int timeout_ms, const struct sampler_events *events)
{
	int waited, taken;

	s->events = events;
	ticks_follow(&s->ticks, clock_monotonic_ns(&clock_system));
	/* Records come without a wake-up as a rule, so the end of the wait says nothing: look in any case. Being
	 * stopped and continued (Ctrl-Z, a debugger) interrupts the wait even without a signal handler: signal(7). */
	waited = ring_buffer__poll(s->ring, timeout_ms);
	if (waited == -EINTR)
		waited = 0;
	taken = waited < 0 ? waited : ring_buffer__consume(s->ring);
	if (taken == 0 && s->ending) { /* behind all that the ring held */
		s->ending = false;
		taken = events->wait ? end_waits(s) : 0;
	}
	s->events = NULL;
	return taken < 0 ? taken : waited + taken;
}

static int bpf_fd(const struct sampler_state *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

static int bpf_stop(struct sampler_state *s)
{
	ticks_stop(&s->ticks);
	__atomic_store_n(&s->skel->bss->active, 0, __ATOMIC_RELEASE);
	s->ending = s->off_cpu;
	return 0;
}

static int bpf_tables_of(struct sampler_state *s, struct table_sink *out)
{
	bpf_tables_sink(&s->tables, out);
	return 0;
}

static int bpf_runtimes_of(struct sampler_state *s, struct runtime_sink *out)
{
	bpf_runtimes_sink(&s->runtimes, out);
	return 0;
}

static void bpf_counters(const struct sampler_state *s, uint64_t out[ABI_COUNTER_COUNT])
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *values = cpus > 0 ? calloc((size_t)cpus, sizeof(*values)) : NULL;

	memset(out, 0, ABI_COUNTER_COUNT * sizeof(*out));
	for (uint32_t i = 0; values && i < ABI_COUNTER_COUNT; i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.counters), &i, values) < 0)
			continue;
		for (int cpu = 0; cpu < cpus; cpu++)
			out[i] += values[cpu];
	}
	free(values);
	out[ABI_COUNTER_LOST_REJECTED] += s->rejected;
}

const struct sampler sampler_bpf = {
	.name = "bpf",
	.help = "BPF programs on a perf event of every CPU",
	.probe = bpf_probe_all,
	.open = bpf_open,
	.start = bpf_start,
	.poll = bpf_poll,
	.fd = bpf_fd,
	.stop = bpf_stop,
	.tables = bpf_tables_of,
	.runtimes = bpf_runtimes_of,
	.counters = bpf_counters,
	.close = bpf_close,
};
