/* SPDX-License-Identifier: Apache-2.0 */
#include "query/whose.h"

#include <inttypes.h>

#include "base/utf8.h"

#define SHOWN 64

static int bad(struct buf *why, const char *name, struct str raw, const char *what)
{
	buf_addf(why, "bad \"%s\" \"" STR_FMT "\": %s", name, STR_ARG(str_first(raw, SHOWN)), what);
	return -EBADMSG;
}

static int read_number(struct str raw, uint32_t *out)
{
	uint64_t number;

	if (str_to_u64(raw, 0, UINT32_MAX, &number) < 0)
		return -EBADMSG;
	*out = (uint32_t)number;
	return 0;
}

static int read_process(struct str raw, struct query_whose *out)
{
	ptrdiff_t dash = str_find(raw, '-');

	out->has_pid = true;
	out->has_start = dash >= 0;
	if (dash >= 0 && str_to_u64(str_skip(raw, (size_t)dash + 1), 0, UINT64_MAX, &out->start_ns) < 0)
		return -EBADMSG;
	return read_number(dash < 0 ? raw : str_first(raw, (size_t)dash), &out->pid);
}

int query_whose_read(const struct http_query *query, struct query_whose *out, struct buf *why)
{
	struct str process = http_query_get(query, STR("process")), thread = http_query_get(query, STR("thread"));
	struct query_whose w = { .program = http_query_get(query, STR("program")),
				 .thread = http_query_get(query, STR("thread-name")) };

	if (process.len && read_process(process, &w) < 0)
		return bad(why, "process", process, "a number of a process, or PID-START");
	if (thread.len && read_number(thread, &w.tid) < 0)
		return bad(why, "thread", thread, "a number of a thread");
	w.has_tid = thread.len > 0;
	*out = w;
	return 0;
}

void query_whose_process(struct buf *out, uint32_t pid, uint64_t start_ns)
{
	buf_addf(out, "%" PRIu32 "-%" PRIu64, pid, start_ns);
}

bool query_whose_all(const struct query_whose *w)
{
	return !w->has_pid && !w->has_tid && !w->program.len && !w->thread.len;
}

/* Whether JSON shows @raw as @shown. */
static bool same_text(struct str raw, struct str shown)
{
	if (str_eq(raw, shown))
		return true;
	while (raw.len && shown.len) {
		int32_t c = utf8_next(&raw);

		if ((c < 0 ? 0xfffd : c) != utf8_next(&shown))
			return false;
	}
	return !raw.len && !shown.len;
}

bool query_whose_fits(const struct query_whose *w, const struct store_owner *owner)
{
	return (!w->has_pid || w->pid == owner->pid) && (!w->has_start || w->start_ns == owner->start_ns) &&
	       (!w->has_tid || w->tid == owner->tid) && (!w->program.len || same_text(owner->comm, w->program)) &&
	       (!w->thread.len || same_text(owner->thread, w->thread));
}

static bool fits_rows(const struct query_whose *w, const struct model *m, uint32_t process, uint32_t thread)
{
	const struct model_process *p = &m->processes[process];
	const struct model_thread *t = &m->threads[thread];
	const struct store_owner owner = { .pid = p->pid,
					   .tid = t->tid,
					   .start_ns = p->start_ns,
					   .comm = model_string(m, p->comm),
					   .thread = model_string(m, t->name) };

	return query_whose_fits(w, &owner);
}

int query_whose_pick(const struct query_whose *w, struct model *m)
{
	uint8_t *known; /* by thread, of the process beside it: 0 not asked yet, 1 not meant, 2 meant */
	uint32_t *process;
	size_t kept = 0;

	if (query_whose_all(w))
		return 0;
	known = calloc(m->threads_count + 1, sizeof(*known));
	process = calloc(m->threads_count + 1, sizeof(*process));
	for (size_t i = 0; known && process && i < m->samples_count; i++) {
		const struct model_sample s = m->samples[i];

		if (!known[s.thread] || process[s.thread] != s.process) {
			process[s.thread] = s.process;
			known[s.thread] = fits_rows(w, m, s.process, s.thread) ? 2 : 1;
		}
		if (known[s.thread] == 2)
			m->samples[kept++] = s;
	}
	if (known && process)
		m->samples_count = kept;
	free(process);
	free(known);
	return known && process ? 0 : -ENOMEM;
}
