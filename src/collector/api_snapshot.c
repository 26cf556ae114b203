/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are kept: what a selection has now as a file of its own, which stays when its profiles are gone
 * (docs/api.yaml). */
#include "base/log.h"
#include "collector/collector_int.h"

static struct snapshots *snapshots_of(struct call *call)
{
	struct snapshots *s = call->collector->config.snapshots;

	if (!s)
		answer_error(call->rs, 501, "this collector keeps nothing on disk: it takes no snapshots");
	return s;
}

static void refuse_unknown(struct call *call)
{
	answer_error(call->rs, 404, "%sthere is no such snapshot: it was deleted, or its address is not complete",
		     call_about(call));
}

/* Answers */

static void write_columns(struct json_out *json, const struct snapshot_head *head)
{
	struct snapshot_column usual;
	size_t called = 0;

	json_out_key(json, STR("samples"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < head->column_count; i++) {
		json_out_begin(json, '{');
		call_key(json, STR("sample"), head->columns[i].type);
		call_key(json, STR("unit"), head->columns[i].unit);
		call_key_u64(json, STR("total"), (uint64_t)MAX(head->columns[i].total, 0));
		json_out_end(json, '}');
	}
	json_out_end(json, ']');
	if (!head->column_count)
		return;
	usual = head->columns[head->default_column];
	for (size_t i = 0; i < head->column_count; i++)
		called += str_eq(head->columns[i].type, usual.type);
	call_key_sample(json, STR("default"), usual.type, usual.unit, called > 1);
}

static void write_members(struct json_out *json, struct str id, uint64_t size, const struct snapshot_head *head)
{
	call_key(json, STR("id"), id);
	call_key(json, STR("title"), head->title);
	call_key(json, STR("selection"), head->selection);
	call_key(json, STR("service"), head->service);
	call_key(json, STR("type"), head->type);
	call_key_u64(json, STR("from_ms"), head->from_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("to_ms"), head->to_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("created_ms"), head->created_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("profiles"), head->profiles);
	call_key_u64(json, STR("bytes"), size);
	write_columns(json, head);
}

/* Keeping */

/* The member title of a body, which may be empty. Return: 0, -EBADMSG, -E2BIG. */
static int title_of(struct str body, struct buf *out)
{
	struct str rest = body, object, key, value;
	int r = 0;

	if (!str_trim(body).len)
		return 0;
	if (json_value(&rest, &object) < 0 || str_trim(rest).len || object.ptr[0] != '{')
		return -EBADMSG;
	while (r == 0 && json_member(&object, &key, &value) == 1)
		if (str_eq(key, STR("\"title\""))) {
			buf_clear(out);
			r = json_text(value, out);
		}
	return r ? r : out->error || out->len > SNAPSHOT_TITLE_MAX ? -E2BIG : 0;
}

static void add_quoted(struct buf *out, struct str text)
{
	buf_addc(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '"' || text.ptr[i] == '\\')
			buf_addc(out, '\\');
		buf_addc(out, text.ptr[i]);
	}
	buf_addc(out, '"');
}

static void add_matcher(struct str key, const char *op, struct str value, struct buf *out)
{
	if (out->len && out->ptr[out->len - 1] != '{')
		buf_addc(out, ',');
	buf_adds(out, key);
	buf_adds(out, str_of(op));
	add_quoted(out, value);
}

static void add_matchers(const struct matchers *m, struct buf *out)
{
	static const char *const ops[] = {
		[MATCHER_EQUAL] = "=", [MATCHER_NOT_EQUAL] = "!=", [MATCHER_FITS] = "=~", [MATCHER_FITS_NOT] = "!~"
	};

	for (size_t i = 0; i < m->count; i++)
		add_matcher(m->items[i].name, ops[m->items[i].op], m->items[i].value, out);
}

/* What was asked for, for people: cpu{service="api",host="h1"} */
static void add_selection(const struct call *call, const struct query_range *range, struct buf *out)
{
	static const struct str whose[] = { STR("process"), STR("program"), STR("thread"), STR("thread-name"),
					    STR("within") };

	buf_adds(out, range->type);
	buf_addc(out, '{');
	if (range->service.len)
		add_matcher(STR("service"), "=", range->service, out);
	for (size_t i = 0; i < range->labels.count; i++)
		add_matcher(range->labels.items[i].key, "=", range->labels.items[i].value, out);
	if (range->matchers)
		add_matchers(range->matchers, out);
	for (size_t i = 0; i < ARRAY_SIZE(whose); i++)
		if (http_query_get(&call->query, whose[i]).len)
			add_matcher(whose[i], "=", http_query_get(&call->query, whose[i]), out);
	buf_addc(out, '}');
}

static void refuse_full(struct call *call, struct snapshots *s, int r)
{
	struct snapshots_stats stats;

	snapshots_stats(s, &stats);
	metrics_add(call->collector->metrics, COLLECTOR_STORE_FULL, 1);
	if (r == -EDQUOT)
		answer_error(call->rs, 507,
			     "there is no room for another snapshot: %llu of %llu are kept, with %llu of %llu bytes; "
			     "delete some, or raise --snapshots and --snapshots-size",
			     (unsigned long long)stats.count, (unsigned long long)stats.count_max,
			     (unsigned long long)stats.size, (unsigned long long)stats.size_max);
	else
		answer_error(call->rs, 507, "the disk has no room for a snapshot (--retention-free)");
}

static void refuse_put(struct call *call, struct snapshots *s, int r, size_t size)
{
	if (r == -EDQUOT || r == -ENOSPC)
		refuse_full(call, s, r);
	else if (r == -E2BIG || r == -EFBIG)
		answer_error(call->rs, 413, "this is too large for a snapshot%s: choose a shorter time, or one service",
			     size ? " (--snapshots-size)" : "");
	else
		answer_store(call, r, "failed to keep a snapshot");
}

static void put(struct call *call, struct snapshots *s, const struct snapshot_head *head, const struct window *w)
{
	scoped(buf_release) struct buf file = BUF_INIT(SNAPSHOT_FILE_MAX);
	char id[SNAPSHOT_ID_TEXT + 1];
	struct json_out json;
	int r = snapshot_encode(head, w, &file);

	if (r == 0 && call_stop(call))
		r = -ECANCELED;
	r = r ? r : snapshots_put(s, buf_str(&file), head->created_ns, id);
	if (r < 0) {
		refuse_put(call, s, r, r == -EFBIG ? file.len : 0);
		return;
	}
	log_info("a snapshot is kept", LOG_CSTR("id", id), LOG_U64("bytes", file.len),
		 LOG_U64("profiles", head->profiles));
	call_begin(call, &json);
	write_members(&json, str_of(id), file.len, head);
	call_end(call, &json);
	if (call->rs->status == 200)
		call->rs->status = 201;
}

own_frame static void keep(struct call *call, struct snapshots *s, struct str title, const struct query_range *range)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf selection = BUF_INIT(SNAPSHOT_TEXT_MAX);
	struct snapshot_head head = { .created_ns = call->now_ns,
				      .from_ns = range->from_ns,
				      .to_ns = range->to_ns,
				      .title = title,
				      .service = range->service,
				      .type = range->type };
	struct store_sum info;

	if (range->within.to_ns) {
		head.from_ns = range->within.from_ns;
		head.to_ns = range->within.to_ns - 1;
	}
	if (!call_sum(call, range, &w, &info))
		return;
	add_selection(call, range, &selection);
	head.profiles = info.profiles;
	head.selection = buf_str(&selection);
	snapshot_set_columns(w.model, &head);
	put(call, s, &head, &w);
	answer_merged(call, &info);
}

void snapshot_keep(struct call *call)
{
	scoped(buf_release) struct buf title = BUF_INIT(KIB(8));
	struct snapshots *s = snapshots_of(call);
	struct query_range range;
	int r = s ? title_of(call->rq->body, &title) : 0;

	if (!s)
		return;
	if (r < 0) {
		answer_error(call->rs, 400,
			     r == -E2BIG ? "bad request: \"title\" is longer than %d bytes"
					 : "bad request: the body is no {\"title\": TEXT}",
			     SNAPSHOT_TITLE_MAX);
		return;
	}
	if (!call_range(call, &query_range_view, &range))
		return;
	keep(call, s, buf_str(&title), &range);
	query_range_release(&range);
}

/* Using */

void kept_release(struct kept *k)
{
	buf_release(&k->bytes);
}

static bool read_kept(struct call *call, struct str id, size_t max, struct kept *out)
{
	struct snapshots *s = snapshots_of(call);
	int r;

	if (!s)
		return false;
	out->bytes = (struct buf)BUF_INIT(SNAPSHOT_FILE_MAX);
	r = snapshots_read(s, id, max, &out->bytes, &out->size);
	if (r == -ENOENT)
		refuse_unknown(call);
	else if (r == -EBADMSG || r == -E2BIG)
		answer_error(call->rs, 500, "the snapshot is damaged");
	else if (r < 0)
		answer_store(call, r, "failed to read a snapshot");
	return r == 0;
}

bool call_kept(struct call *call, struct str id, struct kept *out, struct window *w)
{
	int r;

	if (!read_kept(call, id, SNAPSHOT_FILE_MAX, out))
		return false;
	r = snapshot_decode(buf_str(&out->bytes), &out->head, w);
	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r < 0)
		answer_error(call->rs, 500, "the snapshot is damaged");
	return r == 0;
}

void snapshot_facts(struct call *call)
{
	scoped(kept_release) struct kept kept = { 0 };
	struct json_out json;

	if (!read_kept(call, call->rest, SNAPSHOT_FRONT_MAX, &kept))
		return;
	if (snapshot_decode_head(buf_str(&kept.bytes), kept.size, &kept.head) < 0) {
		answer_error(call->rs, 500, "the snapshot is damaged");
		return;
	}
	call_begin(call, &json);
	write_members(&json, call->rest, kept.size, &kept.head);
	call_end(call, &json);
}

void snapshot_remove(struct call *call)
{
	struct snapshots *s = snapshots_of(call);
	int r = s ? snapshots_remove(s, call->rest) : 0;

	if (!s)
		return;
	if (r == -ENOENT) {
		refuse_unknown(call);
	} else if (r < 0) {
		answer_store(call, r, "failed to delete a snapshot");
	} else {
		log_info("a snapshot is deleted", LOG_STR("id", call->rest));
		answer_empty(call->rs, 204);
	}
}

/* The list */

static int add_row(void *ctx, const char *id, uint64_t size, const struct snapshot_head *head)
{
	struct json_out *json = ctx;

	json_out_begin(json, '{');
	write_members(json, str_of(id), size, head);
	json_out_end(json, '}');
	return json->out->error;
}

void snapshot_list(struct call *call)
{
	struct snapshots *s = snapshots_of(call);
	struct snapshots_stats stats;
	struct json_out json;

	if (!s)
		return;
	snapshots_stats(s, &stats);
	call_begin(call, &json);
	call_key_u64(&json, STR("count"), stats.count);
	call_key_u64(&json, STR("bytes"), stats.size);
	call_key_u64(&json, STR("count_max"), stats.count_max);
	call_key_u64(&json, STR("bytes_max"), stats.size_max);
	call_key_u64(&json, STR("odd"), stats.odd);
	json_out_key(&json, STR("snapshots"));
	json_out_begin(&json, '[');
	ignore(snapshots_list(s, add_row, &json)); /* the answer's error says it */
	json_out_end(&json, ']');
	call_end(call, &json);
}
