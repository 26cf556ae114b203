/* SPDX-License-Identifier: Apache-2.0 */
/* querier.v1: flame graphs, comparisons, whole profiles. */
#include "codec/pprof.h"
#include "collector/querier.h"
#include "query/flamebearer.h"
#include "query/pick.h"
#include "render/cut.h"

#define NODES_DEFAULT 8192
#define NODES_MAX (1 << 20)

enum { MERGED_FLAMEGRAPH = 1, MERGED_PPROF = 5, PPROF_PROFILE = 1 };

static bool not_served(struct call *call, const char *what)
{
	answer_error(call->rs, 501, "%s: not served, see docs/grafana.md", what);
	return false;
}

/* What is asked for that we cannot tell. */
static bool check(struct call *call, const struct querier_request *rq)
{
	if (rq->async_type || rq->async_id.len)
		return not_served(call, "async");
	if (rq->has_profiles)
		return not_served(call, "profile_id_selector");
	if (rq->has_go_pgo)
		return not_served(call, "go_pgo");
	if (rq->max_nodes > NODES_MAX)
		return querier_bad(call, "max_nodes is more than 1048576");
	return true;
}

static uint32_t nodes_of(const struct querier_request *rq)
{
	return rq->max_nodes > 0 ? (uint32_t)rq->max_nodes : NODES_DEFAULT;
}

static bool failed(struct call *call, int r)
{
	if (r < 0)
		answer_store(call, r, "failed to make an answer");
	return r < 0;
}

/* What @rq means, added up; @w->model NULL when that is nothing. */
static bool add_up(struct querier *q, const struct querier_request *rq, struct window *w, size_t *column)
{
	struct store_sum info;
	int r = 0;

	if (!check(q->call, rq) || !querier_select(q, rq) || !selection_sum(q->call, &q->selection, w, &info, column))
		return false;
	answer_merged(q->call, &info);
	if (!info.profiles) {
		window_release(w);
		*w = (struct window){ 0 };
		return true;
	}
	if (rq->spans.count)
		r = pick_labelled(w->model, STR("span_id"), rq->spans.items, rq->spans.count);
	if (r == 0 && rq->traces.count)
		r = pick_labelled(w->model, STR("trace_id"), rq->traces.items, rq->traces.count);
	return !failed(q->call, r);
}

static int make_tree(const struct window *w, size_t column, const struct querier_request *rq, struct tree *out)
{
	uint64_t line;
	int r = w->model ? tree_from_model(w->model, column, 1, &(struct frame_style){ 0 }, out)
			 : tree_from_folded(STR(""), NULL, out, &line);

	return r ? r : pick_call_site(out, rq->call_site.items, rq->call_site.count);
}

static int write_flamegraph(struct querier *q, const struct tree *t, const uint64_t *left, uint32_t nodes)
{
	scoped(flamebearer_release) struct flamebearer b = { 0 };
	int r = flamebearer_make(t, left, nodes, &b);

	return r ? r : flamebearer_proto(&b, MERGED_FLAMEGRAPH, &q->out);
}

static int write_profile(struct window *w, size_t column, struct buf *out)
{
	scoped(buf_release) struct buf whole = BUF_INIT(out->max);
	int r = pick_column(w->model, column);

	r = r ? r : pprof_encode_plain(w, &whole);
	return r ? r : proto_clean(querier_profile, buf_str(&whole), out);
}

static int write_wrapped(struct window *w, size_t column, struct buf *out)
{
	scoped(buf_release) struct buf profile = BUF_INIT(out->max), wrapped = BUF_INIT(out->max);
	int r = write_profile(w, column, &profile);

	if (r < 0)
		return r;
	wire_add_bytes(&wrapped, PPROF_PROFILE, buf_str(&profile));
	buf_release(&profile);
	wire_add_bytes(out, MERGED_PPROF, buf_str(&wrapped));
	return wrapped.error ? wrapped.error : out->error;
}

static int write_merged(struct querier *q, const struct window *w, size_t column)
{
	scoped(tree_release) struct tree tree = { 0 };
	int r = make_tree(w, column, &q->rq, &tree);

	if (r < 0 || !tree.total[0]) /* without a flame graph a reader shows that there is nothing */
		return r;
	return write_flamegraph(q, &tree, NULL, nodes_of(&q->rq));
}

bool querier_stacktraces(struct querier *q)
{
	scoped(window_release) struct window w = { 0 };
	bool is_pprof = q->rq.format == QUERIER_PPROF && q->method == QUERIER_MERGE_STACKTRACES;
	size_t column;
	int r;

	if (q->rq.format > QUERIER_FLAMEGRAPH && !is_pprof)
		return not_served(q->call, "this format");
	if (is_pprof && q->rq.call_site.count)
		return not_served(q->call, "call_site of a pprof profile");
	if (!add_up(q, &q->rq, &w, &column))
		return false;
	if (!w.model)
		return true;
	r = is_pprof ? write_wrapped(&w, column, &q->out) : write_merged(q, &w, column);
	return !failed(q->call, r);
}

bool querier_merged_profile(struct querier *q)
{
	scoped(window_release) struct window w = { 0 };
	size_t column;

	if (q->rq.call_site.count)
		return not_served(q->call, "call_site of a pprof profile");
	if (!add_up(q, &q->rq, &w, &column))
		return false;
	return !w.model || !failed(q->call, write_profile(&w, column, &q->out));
}

/* Comparisons */

static bool side_tree(struct querier *q, const struct querier_request *rq, struct tree *out)
{
	scoped(window_release) struct window w = { 0 };
	size_t column = 0;

	selection_end(&q->selection);
	return add_up(q, rq, &w, &column) && !failed(q->call, make_tree(&w, column, rq, out));
}

bool querier_diff(struct querier *q)
{
	scoped(tree_release) struct tree left = { 0 }, right = { 0 }, both = { 0 };
	scoped(freep) uint64_t *left_total = NULL;
	int r;

	if (!side_tree(q, &q->sides[0], &left) || !side_tree(q, &q->sides[1], &right))
		return false;
	r = tree_pair(&left, &right, &both, &left_total);
	r = r ? r : write_flamegraph(q, &both, left_total, MAX(nodes_of(&q->sides[0]), nodes_of(&q->sides[1])));
	return !failed(q->call, r);
}
