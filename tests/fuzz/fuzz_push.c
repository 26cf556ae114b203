/* SPDX-License-Identifier: Apache-2.0 */
/* The body of push.v1.PusherService/Push in both forms, and every profile in it grouped by its samples' labels. */
#include "fuzz.h"

#include "codec/pprof.h"
#include "model/split.h"
#include "query/push_request.h"
#include "query/sample_labels.h"

#define GROUPS 4

static int count_samples(void *ctx, size_t group, struct window *part)
{
	size_t *left = ctx;

	must(group <= GROUPS && part->model->samples_count <= *left);
	*left -= part->model->samples_count;
	return 0;
}

static void check_groups(const struct window *w)
{
	const struct store_label series[] = { { STR("host"), STR("h") } };
	scoped(label_groups_release) struct label_groups g = { 0 };
	size_t left = w->model->samples_count;

	if (label_groups_make(w->model, series, ARRAY_SIZE(series), GROUPS, &g) < 0)
		return;
	must(g.count >= 1 && g.count <= GROUPS && !g.groups[0].count);
	for (size_t i = 0; i < g.count; i++)
		must(g.groups[i].count < STORE_LABELS_MAX);
	for (size_t i = 0; i < w->model->samples_count; i++)
		must(g.group_of[i] < g.count);
	ignore(window_split_groups(w, g.group_of, g.count, count_samples, &left));
}

static void check(const struct push_request *p)
{
	must(p->series_count <= PUSH_PROFILES_MAX && p->profiles_count <= PUSH_PROFILES_MAX);
	for (size_t i = 0; i < p->series_count; i++)
		must(p->series[i].first_label + p->series[i].label_count <= p->labels_count);
	for (size_t i = 0; i < p->profiles_count; i++) {
		struct codec_limits limits = { .expanded_max = MIB(1), .memory_max = MIB(4), .samples_max = 1000 };
		scoped(window_release) struct window w = { 0 };
		struct codec_error error = { 0 };

		must(p->profiles[i].series < p->series_count);
		if (pprof_decode_limited(p->profiles[i].bytes, &limits, &w, &error) == 0)
			check_groups(&w);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = str_n((const char *)data, size);
	struct push_request p;

	if (push_request_proto(body, &p) == 0) {
		check(&p);
		push_request_release(&p);
	}
	if (push_request_json(body, KIB(64), &p) == 0) {
		check(&p);
		push_request_release(&p);
	}
	return 0;
}
