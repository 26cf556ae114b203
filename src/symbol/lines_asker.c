/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/lines_asker.h"

#include "base/clock.h"
#include "base/log.h"

#define REPLY_PATIENCE_NS (8 * NSEC_PER_SEC)

int lines_asker_init(struct lines_asker *a, const struct lines_asker_config *cfg)
{
	*a = (struct lines_asker){ .cfg = *cfg, .process = LINES_PROCESS_INIT };
	if (!a->cfg.reply_patience_ns)
		a->cfg.reply_patience_ns = REPLY_PATIENCE_NS;
	a->packet = malloc(LINES_MESSAGE_MAX);
	return a->packet ? 0 : -ENOMEM;
}

void lines_asker_release(struct lines_asker *a)
{
	lines_process_stop(&a->process);
	free(a->packet);
	a->packet = NULL;
}

/* The child has died, or must be killed. */
static void bury(struct lines_asker *a, int why)
{
	lines_process_stop(&a->process);
	a->deaths++;
	a->faults += why != -ETIME;
	a->is_off = a->faults > LINES_RESTARTS_MAX;
	if (a->is_off)
		log_warn(a->cfg.is_off, LOG_ERR(why));
	else if (a->deaths == 1)
		log_warn(a->cfg.file_lost, LOG_ERR(why));
}

int lines_asker_start(struct lines_asker *a)
{
	return lines_process_start(&a->process, a->cfg.reply_patience_ns, a->cfg.needs_libdw);
}

int lines_asker_ready(struct lines_asker *a)
{
	int r;

	if (a->process.fd >= 0)
		return 0;
	r = a->is_off ? -EPIPE : lines_asker_start(a);
	if (r < 0 && !a->is_off)
		bury(a, r);
	return r;
}

void lines_asker_rest(struct lines_asker *a)
{
	lines_process_stop(&a->process);
}

/* Many slow packets with one answer each must not add up to hours. */
static uint64_t patience_left(const struct lines_asker *a)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system);

	return now_ns < a->end_ns ? MIN(a->cfg.reply_patience_ns, a->end_ns - now_ns) : 0;
}

bool lines_asker_has_time(const struct lines_asker *a)
{
	return patience_left(a) > 0;
}

/* The addresses from @done on, as many as one packet holds. */
static int send_part(struct lines_asker *a, const struct lines_question *q, size_t done)
{
	scoped(buf_release) struct buf request = BUF_INIT(LINES_MESSAGE_MAX);
	size_t count = MIN(q->count - done, (size_t)LINES_ADDRESSES_MAX);

	lines_request_add(&request, done ? 0 : q->flags, q->addresses + done, count);
	return lines_process_send(&a->process, &request, q->fds, done ? 0 : q->fd_count);
}

/* An earlier death of the child is not counted against this file. */
static int send_first(struct lines_asker *a, const struct lines_question *q)
{
	int r = send_part(a, q, 0);

	if (r == 0 || r == -ENOMEM)
		return r;
	bury(a, r);
	r = lines_asker_ready(a);
	return r < 0 ? r : send_part(a, q, 0);
}

/* One packet of answers to the addresses from @from on. Return: how many; -ENOENT when the child says that the file is
 * of no use; -ENOMEM; or how the child failed. */
static int take_packet(struct lines_asker *a, size_t from, size_t done, size_t count, lines_asker_fn *take, void *ctx)
{
	struct lines_reply reply;
	int r = lines_process_receive(&a->process, a->packet, patience_left(a));

	if (r >= 0)
		r = lines_reply_parse(cur_of(a->packet, (size_t)r), &reply);
	if (r < 0)
		return r;
	if (reply.status == LINES_BAD_FILE || reply.status == LINES_TOO_LONG)
		return -ENOENT;
	if (reply.status != LINES_ANSWERS || reply.first != done || reply.count > count - done)
		return -EBADMSG;
	for (uint32_t i = 0; i < reply.count; i++) {
		lines_reply_next(&reply, &a->answer);
		r = take(ctx, from + done + i, &a->answer);
		if (r < 0)
			return r;
	}
	return (int)reply.count;
}

static int take_answers(struct lines_asker *a, size_t from, size_t count, lines_asker_fn *take, void *ctx)
{
	int r = 0;

	for (size_t done = 0; done < count && r >= 0; done += r > 0 ? (size_t)r : 0)
		r = take_packet(a, from, done, count, take, ctx);
	return r < 0 ? r : 0;
}

int lines_asker_ask(struct lines_asker *a, const struct lines_question *question, lines_asker_fn *take, void *ctx,
		    size_t *done)
{
	int r = 0;

	for (*done = 0; *done < question->count && r == 0;) {
		size_t part = MIN(question->count - *done, (size_t)LINES_ADDRESSES_MAX);

		r = *done ? send_part(a, question, *done) : send_first(a, question);
		if (r == 0)
			r = take_answers(a, *done, part, take, ctx);
		*done += r == 0 ? part : 0;
	}
	if (r == -ETIMEDOUT && !lines_asker_has_time(a))
		r = -ETIME;
	if (r < 0 && r != -ENOENT &&
	    a->process.fd >= 0) /* it may still be writing: its rest would be the next answer */
		bury(a, r);
	return r;
}
