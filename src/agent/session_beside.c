/* SPDX-License-Identifier: Apache-2.0 */
/* A second sampler that reads the stacks of runtimes from outside, beside the first one, which then sees native frames
 * only. Of a process that both saw the runtime stacks stay, scaled: agent/merge_runtime.h. */
#include "agent/session_beside.h"

#include "agent/session_runtimes.h"
#include "base/log.h"

struct beside {
	const struct sampler *sampler;
	struct sampler_state *sampling;
	struct aggregate *aggregate;
	struct take_in *take_in; /* made at the first sample: the runtimes come after the samplers */
};

/* ---- samples ---- */

static int get_take_in(struct session *s)
{
	const struct take_in_config cfg = { .clock = s->cfg.clock,
					    .host_root = s->cfg.host_root,
					    .processes = s->processes,
					    .files = s->files,
					    .runtimes = s->runtimes,
					    .choice = s->choice,
					    .only_runtime = true };

	return s->beside->take_in ? 0 : take_in_new(&cfg, &s->beside->take_in);
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct session *s = ctx;
	struct proc *p = proc_get(s->processes, sample->pid, sample->process_start_ns, sample->exec_id, sample->comm);
	int r = p ? get_take_in(s) : -ENOMEM;

	if (p && !session_wants(s, p))
		return;
	if (r == 0)
		r = take_in_sample(s->beside->take_in, p, sample, 0, s->beside->aggregate);
	s->left_out += r > 0;
	if (r >= 0)
		return;
	s->beside->aggregate->dropped++;
	s->dropped++;
}

static void on_name(void *ctx, const struct abi_name *name)
{
	session_name(ctx, name);
}

static void on_process(void *ctx, const struct abi_process *event)
{
	(void)ctx; /* the first sampler tells of them */
	(void)event;
}

void session_poll_beside(struct session *s)
{
	const struct sampler_events events = { .sample = on_sample, .process = on_process, .name = on_name, .ctx = s };

	if (s->beside)
		ignore(s->beside->sampler->poll(s->beside->sampling, 0, &events)); /* it cannot fail */
}

/* ---- life ---- */

size_t session_settle_beside(struct session *s)
{
	struct beside *b = s->beside;

	return b && b->take_in ? take_in_settle(b->take_in, b->aggregate) : 0;
}

int session_open_beside(struct session *s, struct buf *why)
{
	struct sampler_config cfg = s->cfg.sampling;
	int r;

	if (!s->cfg.beside_hz || !s->wanted[0] || s->sampler->only_runtimes || s->sampler->is_replay)
		return 0;
	s->beside = calloc(1, sizeof(*s->beside));
	if (!s->beside)
		return -ENOMEM;
	s->beside->sampler = sampler_find(STR("remote"));
	cfg.frequency_hz = s->cfg.beside_hz;
	cfg.beside = true;
	r = s->beside->sampler->probe(&cfg, why);
	if (r == 0)
		r = s->beside->sampler->open(&cfg, why, &s->beside->sampling);
	return r < 0 ? r : session_new_aggregate(s, 0, &s->beside->aggregate);
}

void session_close_beside(struct session *s)
{
	struct beside *b = s->beside;

	if (!b)
		return;
	if (b->sampling)
		b->sampler->close(b->sampling);
	take_in_free(b->take_in);
	aggregate_free(b->aggregate);
	free(b);
	s->beside = NULL;
}

int session_start_beside(struct session *s)
{
	return s->beside ? s->beside->sampler->start(s->beside->sampling) : 0;
}

/* What is on its way is taken in, too. */
void session_stop_beside(struct session *s)
{
	if (!s->beside || !s->started)
		return;
	if (s->beside->sampler->stop(s->beside->sampling) < 0)
		log_warn("the second sampler did not end");
	session_poll_beside(s);
}

int session_runtime_sink(struct session *s, struct runtime_sink *out)
{
	if (s->beside)
		return s->beside->sampler->runtimes(s->beside->sampling, out);
	return s->sampler->runtimes ? s->sampler->runtimes(s->sampling, out) : 1;
}

int session_cut_beside(struct session *s, struct job *job)
{
	struct aggregate *next;
	int r = s->beside ? session_new_aggregate(s, 0, &next) : 1;

	if (r)
		return r < 0 ? r : 0;
	job->beside = s->beside->aggregate;
	s->beside->aggregate = next;
	if (s->beside->take_in)
		take_in_cut(s->beside->take_in);
	return 0;
}

/* What is said of runtimes is the second sampler's; of samples that were lost, both's. */
void session_beside_counters(const struct session *s, uint64_t counters[ABI_COUNTER_COUNT])
{
	static const enum abi_counter from[] = {
		ABI_COUNTER_NAMES,           ABI_COUNTER_NAMES_LOST,
		ABI_COUNTER_RUNTIME_WALKS,   ABI_COUNTER_RUNTIME_NO_STATE,
		ABI_COUNTER_RUNTIME_FAILED,  ABI_COUNTER_RUNTIME_GAPS,
		ABI_COUNTER_RUNTIME_CHANGED,
	};
	uint64_t own[ABI_COUNTER_COUNT];

	if (!s->beside)
		return;
	s->beside->sampler->counters(s->beside->sampling, own);
	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		counters[from[i]] = own[from[i]];
}
