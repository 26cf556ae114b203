/* SPDX-License-Identifier: Apache-2.0 */
/* What /ingest and push.v1 have in common: labels, times, and a profile for each set of sample labels. */
#include <inttypes.h>

#include "collector/collector_int.h"
#include "query/sample_labels.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PAST_NS (7 * 86400 * NSEC_PER_SEC) /* how far from now a push may be (docs/collector.md) */
#define FUTURE_NS (600 * NSEC_PER_SEC)
#define PARTS_MAX 64   /* of one profile: each is a row of the store, and a commit */
#define PARTS_MORE 512 /* of all profiles of a request, beyond the profiles themselves */

void pyroscope_profile_release(struct pyroscope_profile *p)
{
	buf_release(&p->names);
}

static bool bad(struct call *call, unsigned int status, const char *what)
{
	answer_error(call->rs, status, "bad request: %s", what);
	return false;
}

/* There is room in p->names. Of labels that are written alike the first one counts. */
static bool keep_label(struct pyroscope_profile *p, struct store_label label)
{
	size_t at = p->names.len;

	label_name_legacy(label.key, &p->names);
	label.key = str_n(p->names.ptr + at, p->names.len - at);
	for (size_t i = 0; i < p->label_count; i++)
		if (str_eq(p->labels[i].key, label.key))
			return true;
	if (p->label_count == STORE_LABELS_MAX)
		return false;
	p->labels[p->label_count++] = label;
	return true;
}

bool pyroscope_labels(struct call *call, const struct store_label *given, size_t count, struct str app,
		      struct pyroscope_profile *out)
{
	size_t size = 1;
	bool fits = true;

	for (size_t i = 0; i < count; i++)
		size += given[i].key.len;
	out->names = (struct buf)BUF_INIT(size);
	if (!buf_reserve(&out->names, size))
		return bad(call, 503, "out of memory");
	for (size_t i = 0; i < count && fits; i++) {
		if (str_eq(given[i].key, STR("service_name")))
			out->service = given[i].value;
		else if (given[i].key.len && !str_starts(given[i].key, STR("__"))) /* those control the server */
			fits = keep_label(out, given[i]);
	}
	if (!out->service.len)
		out->service = app;
	else if (app.len && !str_eq(out->service, app) && out->label_count < STORE_LABELS_MAX)
		out->labels[out->label_count++] = (struct store_label){ STR("app_name"), app };
	return fits ? true : bad(call, 400, "too many labels");
}

struct str pyroscope_type(const struct model *m, struct str config)
{
	static const struct {
		const char *word, *type;
	} words[] = { { "mutex_", "mutex" }, { "block_", "block" }, { "goroutines", "goroutine" } };
	struct str type = query_type_detect(m);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (model_value_index(m, str_of(words[i].word)) >= 0 || str_search(config, str_of(words[i].word)) >= 0)
			return str_of(words[i].type);
	if (model_value_index(m, STR("wall")) >= 0)
		return STR("wall");
	if (str_eq(type, STR("other")) && (model_value_index(m, STR("objects")) >= 0))
		return STR("heap");
	return type;
}

void pyroscope_own_time(const struct model *m, struct pyroscope_profile *p)
{
	/* Agents sent microseconds here: a moment of 1970 is none. */
	if (m->time_ns > (int64_t)(366 * 86400 * NSEC_PER_SEC))
		p->from_ns = (uint64_t)m->time_ns;
}

static bool check_time(struct call *call, const struct pyroscope_profile *p)
{
	if (p->from_ns + PAST_NS >= call->now_ns && p->from_ns <= call->now_ns + FUTURE_NS)
		return true;
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_OUT_OF_TIME, 1);
	answer_error(call->rs, 422, "the profile's time is not between 7 days ago and 10 minutes ahead");
	return false;
}

static void set_times(const struct pyroscope_profile *p, struct window *w)
{
	struct model *m = w->model;

	m->time_ns = (int64_t)MIN(p->from_ns, (uint64_t)INT64_MAX);
	if (!m->duration_ns && p->until_ns > p->from_ns)
		m->duration_ns = (int64_t)MIN(p->until_ns - p->from_ns, (uint64_t)INT64_MAX);
	w->start_ns = p->from_ns;
	w->end_ns = p->from_ns + (uint64_t)MAX(m->duration_ns, (int64_t)0);
}

struct putting {
	struct call *call;
	struct received *received;
	const struct pyroscope_profile *profile;
	struct label_groups groups;
	size_t parts, stored;
};

static uint64_t mix(uint64_t hash, struct str text)
{
	return XXH3_64bits_withSeed(text.ptr, text.len, hash);
}

/* A client that tries again after a failure half way must not double the parts that are there. Its own name for the
 * upload tells them: Idempotency-Key, or the profile's id, which counts together with all that was sent under it.
 * Return: false when the client named nothing, and nothing but the client sends a part again. */
static bool make_key(const struct putting *p, char *out, size_t size)
{
	const struct pyroscope_profile *profile = p->profile;
	struct str given = http_header_get(p->call->rq, "Idempotency-Key");
	uint64_t low = profile->number, high;

	if (given.len) {
		low = mix(low, given);
	} else {
		low = mix(mix(mix(low, profile->id), profile->bytes), profile->service);
		if (!profile->id.len) /* this very request, which comes again when a later profile of it is large */
			low = mix(low, str_n((const char *)&p->call->rq->received_ns, sizeof(uint64_t)));
		for (size_t i = 0; i < profile->label_count; i++)
			low = mix(mix(low, profile->labels[i].key), profile->labels[i].value);
	}
	high = mix(~low, given.len ? given : profile->bytes);
	(void)snprintf(out, size, "part:%016" PRIx64 "%016" PRIx64 ":%zu", high, low, p->stored);
	return given.len || profile->id.len || profile->is_one_of_many;
}

/* r->window with the labels of one group. */
static bool put_part(struct putting *p, size_t group)
{
	struct store_label labels[STORE_LABELS_MAX];
	const struct pyroscope_profile *profile = p->profile;
	const struct query_labels *more = &p->groups.groups[group];
	struct store_upload up = { .service = profile->service,
				   .type = profile->type,
				   .labels = labels,
				   .label_count = profile->label_count + more->count,
				   .created_ns = profile->from_ns };
	struct store_id id;
	char key[64];

	must(up.label_count <= STORE_LABELS_MAX); /* label_groups_make() sees to it */
	if (profile->label_count)
		memcpy(labels, profile->labels, profile->label_count * sizeof(*labels));
	if (more->count)
		memcpy(labels + profile->label_count, more->items, more->count * sizeof(*labels));
	if ((p->parts > 1 || profile->is_one_of_many) && make_key(p, key, sizeof(key)))
		up.request_key = str_of(key);
	p->stored++;
	return receive_store(p->call, p->received, &up, &id);
}

/* The parts of one profile took as long as the profile, not as long each: only the first says so. */
static int put_group(void *ctx, size_t group, struct window *part)
{
	struct putting *p = ctx;
	struct window whole = p->received->window;
	bool fine;

	if (p->stored) {
		part->model->duration_ns = 0;
		part->end_ns = part->start_ns;
	}
	receive_compute(p->call, p->received);
	p->received->window = *part;
	fine = put_part(p, group);
	*part = p->received->window;
	p->received->window = whole;
	return fine ? 0 : 1;
}

static bool put_groups(struct putting *p)
{
	const struct model *m = p->received->window.model;
	size_t last = 0;
	bool used[PARTS_MAX + 1] = { false };
	int r;

	for (size_t i = 0; i < m->samples_count; i++)
		used[p->groups.group_of[i]] = true;
	for (size_t i = 0; i < p->groups.count; i++) {
		p->parts += used[i];
		last = used[i] ? i : last;
	}
	if (p->parts <= 1)
		return put_part(p, last);
	r = window_split_groups(&p->received->window, p->groups.group_of, p->groups.count, put_group, p);
	if (r < 0)
		answer_error(p->call->rs, 503, "out of memory");
	return r == 0;
}

/* The same for the same request, so that one that comes again makes the same parts. */
static size_t parts_max(const struct call *call)
{
	return MIN((size_t)PARTS_MAX, PARTS_MORE - MIN(call->parts, (size_t)PARTS_MORE) + 1);
}

bool pyroscope_put(struct call *call, struct received *r, const struct pyroscope_profile *profile)
{
	struct putting p = { .call = call, .received = r, .profile = profile };
	bool fine;

	if (!check_time(call, profile))
		return false;
	if (!r->window.model->samples_count) { /* the SDKs take nothing but 200 for an answer */
		metrics_add(call->collector->metrics, COLLECTOR_PROFILES_EMPTY, 1);
		return true;
	}
	set_times(profile, &r->window);
	if (label_groups_make(r->window.model, profile->labels, profile->label_count, parts_max(call), &p.groups) < 0)
		return bad(call, 503, "out of memory");
	fine = put_groups(&p);
	call->parts += MAX(p.parts, (size_t)1) - 1;
	label_groups_release(&p.groups);
	return fine;
}
