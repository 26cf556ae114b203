/* SPDX-License-Identifier: Apache-2.0 */
/* What the administration page asks and does (docs/api.yaml): what is kept and goes next, tokens, deleting a service.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/log.h"
#include "collector/access.h"
#include "collector/collector_int.h"
#include "store/expiry.h"

#define NAMES_MAX 10000 /* services that are named */
#define ODD_MAX 1000    /* files that are */

/* The store: what it has, what goes next */

struct storage {
	struct call *call;
	struct json_out json;
	uint64_t profiles, services, odd;
	bool years;
};

static void key_flag(struct json_out *json, struct str key, bool value)
{
	json_out_key(json, key);
	json_out_raw(json, value ? STR("true") : STR("false"));
}

/* A year's first day has the year in front. */
static void key_day(struct json_out *json, int64_t day, bool is_year)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);

	clock_add_iso(&text, (uint64_t)day * 86400 * NSEC_PER_SEC);
	call_key(json, is_year ? STR("year") : STR("day"), str_first(buf_str(&text), is_year ? 4 : 10));
}

static int write_day(void *ctx, const struct store_day *day)
{
	struct storage *s = ctx;
	struct json_out *json = &s->json;

	if (day->is_year != s->years) { /* days come first */
		json_out_end(json, ']');
		json_out_key(json, STR("years"));
		json_out_begin(json, '[');
		s->years = true;
	}
	json_out_begin(json, '{');
	key_day(json, day->day, day->is_year);
	key_flag(json, STR("open"), day->is_open);
	if (!day->is_year)
		call_key_u64(json, STR("profiles"), day->profiles);
	call_key_u64(json, STR("files"), day->files);
	call_key_u64(json, STR("bytes"), day->bytes);
	if (day->newest_ns)
		call_key_u64(json, STR("newest_ms"), day->newest_ns / NSEC_PER_MSEC);
	if (day->reason)
		call_key(json, STR("goes"), str_of(day->reason));
	json_out_end(json, '}');
	s->profiles += day->profiles;
	return call_stop(s->call) ? -ECANCELED : 0;
}

static void write_rules(struct json_out *json, const struct store_outlook *o)
{
	json_out_key(json, STR("retention"));
	json_out_begin(json, '{');
	call_key_u64(json, STR("age_ms"), o->age_max_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("daily_age_ms"), o->rollup_age_max_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("size"), o->size_max);
	key_flag(json, STR("free_auto"), o->free_min == EXPIRY_FREE_AUTO);
	call_key_u64(json, STR("free"), o->free_min == EXPIRY_FREE_AUTO ? o->free_goal : o->free_min);
	json_out_end(json, '}');
}

static void write_outlook(struct json_out *json, const struct store_outlook *o)
{
	write_rules(json, o);
	if (o->disk_known) {
		json_out_key(json, STR("disk"));
		json_out_begin(json, '{');
		call_key_u64(json, STR("size"), o->disk_size);
		call_key_u64(json, STR("free"), o->disk_free);
		call_key_u64(json, STR("leaving"), o->leaving);
		call_key_u64(json, STR("goal"), o->free_goal);
		key_flag(json, STR("lowered"), o->is_lowered);
		json_out_end(json, '}');
	}
	key_flag(json, STR("over"), o->is_over);
	key_flag(json, STR("stuck"), o->is_stuck);
	if (o->any_next) {
		json_out_key(json, STR("next"));
		json_out_begin(json, '{');
		key_day(json, o->next_day, o->next_is_year);
		call_key_u64(json, STR("not_before_ms"), o->next_ns / NSEC_PER_MSEC);
		json_out_end(json, '}');
	}
}

static void write_odd(void *ctx, const char *where, const char *what)
{
	struct storage *s = ctx;

	if (s->odd++ >= ODD_MAX)
		return;
	json_out_begin(&s->json, '{');
	call_key(&s->json, STR("file"), str_of(where));
	call_key(&s->json, STR("why"), str_of(what));
	json_out_end(&s->json, '}');
}

static int write_name(void *ctx, struct str name)
{
	struct storage *s = ctx;

	if (s->services++ < NAMES_MAX)
		json_out_string(&s->json, name);
	return 0;
}

static int write_storage(struct storage *s)
{
	const struct collector_config *config = &s->call->collector->config;
	const struct store_selector all = { .to_ns = UINT64_MAX, .stop = call_stop, .stop_ctx = s->call };
	struct store_outlook outlook = { 0 };
	int r;

	call_key(&s->json, STR("engine"), str_of(config->store->name));
	call_key_u64(&s->json, STR("now_ms"), s->call->now_ns / NSEC_PER_MSEC);
	json_out_key(&s->json, STR("days"));
	json_out_begin(&s->json, '[');
	r = config->store->survey(config->state, write_day, s, &outlook);
	json_out_end(&s->json, ']');
	write_outlook(&s->json, &outlook);
	call_key_u64(&s->json, STR("profiles"), s->profiles);
	call_key_u64(&s->json, STR("bytes"), outlook.bytes);
	json_out_key(&s->json, STR("odd"));
	json_out_begin(&s->json, '[');
	r = r ? r : MIN(config->store->odd(config->state, write_odd, s), 0);
	json_out_end(&s->json, ']');
	call_key_u64(&s->json, STR("odd_count"), s->odd);
	json_out_key(&s->json, STR("services"));
	json_out_begin(&s->json, '[');
	r = r ? r : config->store->services(config->state, &all, write_name, s);
	json_out_end(&s->json, ']');
	call_key_u64(&s->json, STR("service_count"), s->services);
	return r;
}

void admin_storage(struct call *call)
{
	struct storage s = { .call = call };
	int r;

	call_begin(call, &s.json);
	r = write_storage(&s);
	if (r < 0)
		answer_store(call, r, "failed to look at the store");
	else
		call_end(call, &s.json);
}

/* Who changed something is in the log, by the token's id. */

static const char *request_id(const struct call *call)
{
	const struct request_note *note = call->rq->owner;

	return note ? note->id : "";
}

#define LOG_WHO(call, token)                                                                                    \
	LOG_CSTR("token", (token).id), LOG_CSTR("token_name", (token).name), LOG_STR("ip", (call)->rq->remote), \
		LOG_CSTR("rid", request_id(call))

/* Deleting a service */

/* Whoever asked may have left: it is done all the same. */
static bool delete_stop(void *ctx)
{
	const struct call *call = ctx;

	return http_stopping(call->rq);
}

/* The one service that the query names, and nothing else. Return: whether it does; otherwise the call is answered. */
static bool only_service(struct call *call, struct str *out)
{
	struct str service = http_query_get(&call->query, STR("service"));

	if (service.len && service.len <= STORE_NAME_MAX && call->query.count == 1) {
		*out = service;
		return true;
	}
	answer_error(call->rs, 400,
		     "bad request: service, and nothing else: all of it is meant (DELETE /api/0/profiles removes a "
		     "part)");
	return false;
}

static void delete_failed(struct call *call, int r)
{
	metrics_add(call->collector->metrics, COLLECTOR_STORE_FAILED, 1);
	if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG) {
		http_header_set(call->rs, "Retry-After", STR("30"));
		answer_error(call->rs, 507,
			     "the disk is full: what stays is written anew and needs room beside; nothing was deleted");
	} else if (r == -ECANCELED) {
		http_header_set(call->rs, "Retry-After", STR("5"));
		answer_error(call->rs, 503, "the collector stops: nothing was deleted");
	} else if (r == -EINPROGRESS || r == -EALREADY) {
		answer_error(call->rs, 500, "%s service is deleted when the collector starts again; until then none is",
			     r == -EALREADY ? "another" : "the store failed: the");
	} else {
		answer_error(call->rs, 500, "the store failed (%s): nothing was deleted", strerror(-r));
	}
}

/* What went, or would go. */
static void answer_removed(struct call *call, struct str service, const struct store_removed *gone)
{
	struct json_out json;

	call_begin(call, &json);
	call_key(&json, STR("service"), service);
	call_key_u64(&json, STR("profiles"), gone->profiles);
	call_key_u64(&json, STR("sums"), gone->sums);
	call_key_u64(&json, STR("files"), gone->files);
	call_key_u64(&json, STR("bytes"), gone->bytes);
	call_key_u64(&json, STR("aside"), gone->aside);
	call_end(call, &json);
}

static void delete_service(struct call *call, struct str service, const struct token *by)
{
	const struct collector_config *config = &call->collector->config;
	const struct store_selector sel = {
		.service = service, .to_ns = UINT64_MAX, .stop = delete_stop, .stop_ctx = call
	};
	struct store_removed gone;
	int r = config->store->remove(config->state, &sel, &gone);
	bool any = gone.profiles || gone.sums || gone.files;

	if (r < 0)
		log_error("a service could not be deleted", LOG_STR("service", service), LOG_ERR(r),
			  LOG_WHO(call, *by));
	else if (any)
		log_warn("a service was deleted", LOG_STR("service", service), LOG_U64("profiles", gone.profiles),
			 LOG_U64("sums", gone.sums), LOG_U64("files", gone.files), LOG_U64("bytes", gone.bytes),
			 LOG_U64("aside", gone.aside), LOG_WHO(call, *by));
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_DELETED, gone.profiles);
	if (r < 0) {
		delete_failed(call, r);
		return;
	}
	if (!any) {
		answer_error(call->rs, 404, "nothing is stored of this service%s",
			     gone.aside ? " in files that can be read" : "");
		return;
	}
	metrics_add(call->collector->metrics, COLLECTOR_SERVICES_DELETED, 1);
	answer_removed(call, service, &gone);
}

void admin_delete_service(struct call *call)
{
	struct str service;
	struct token by;

	if (!access_may_change(call, &by) || !only_service(call, &service))
		return;
	if (atomic_exchange(&call->collector->deleting, true)) { /* it would wait, and hold its worker for minutes */
		http_header_set(call->rs, "Retry-After", STR("5"));
		answer_error(call->rs, 503, "another service is being deleted: nothing of this one is");
		return;
	}
	delete_service(call, service, &by);
	atomic_store(&call->collector->deleting, false);
}

void admin_weigh(struct call *call)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector sel = { .to_ns = UINT64_MAX, .stop = call_stop, .stop_ctx = call };
	struct store_removed found;
	int r;

	if (!only_service(call, &sel.service))
		return;
	r = config->store->weigh(config->state, &sel, &found);
	if (r < 0)
		answer_store(call, r, "failed to look for the service");
	else if (!found.files && !found.profiles)
		answer_error(call->rs, 404, "nothing is stored of this service%s",
			     found.aside ? " in files that can be read" : "");
	else
		answer_removed(call, sel.service, &found);
}

/* Tokens */

static void write_scopes(struct json_out *json, unsigned int scopes)
{
	scoped(buf_release) struct buf text = BUF_INIT(256);
	struct str rest, piece;

	token_scopes_write(scopes, &text);
	rest = buf_str(&text);
	json_out_key(json, STR("scopes"));
	json_out_begin(json, '[');
	while (str_next(&rest, ',', &piece))
		json_out_string(json, piece);
	json_out_end(json, ']');
}

static void write_token(struct json_out *json, const struct token *t)
{
	call_key(json, STR("id"), str_of(t->id));
	call_key(json, STR("name"), str_of(t->name));
	write_scopes(json, t->scopes);
	call_key_u64(json, STR("created_ms"), t->created_s > UINT64_MAX / 1000 ? UINT64_MAX : t->created_s * 1000);
}

/* Whether the folder lets us: it may be root's, or read-only. */
static bool is_writable(const char *path)
{
	scoped(buf_release) struct buf folder = BUF_INIT(KIB(16));
	const char *slash = strrchr(path, '/');

	buf_adds(&folder, slash ? str_n(path, MAX((size_t)(slash - path), (size_t)1)) : STR("."));
	return access(buf_cstr(&folder), W_OK) == 0;
}

void admin_tokens(struct call *call)
{
	struct token_file *file = call->collector->config.tokens;
	scoped(token_list_release) struct token_list list = { 0 };
	struct token own = { 0 };
	struct json_out json;

	if (file && token_file_list(file, &list) < 0) {
		answer_error(call->rs, 503, "out of memory");
		return;
	}
	ignore(access_token(call, &own)); /* without one none is marked */
	call_begin(call, &json);
	key_flag(&json, STR("asked_for"), access_asks_token(call->collector));
	key_flag(&json, STR("possible"), file != NULL);
	key_flag(&json, STR("writable"), file && is_writable(token_file_path(file)));
	json_out_key(&json, STR("tokens"));
	json_out_begin(&json, '[');
	for (size_t i = 0; i < list.count; i++) {
		json_out_begin(&json, '{');
		write_token(&json, &list.items[i]);
		key_flag(&json, STR("own"), strcmp(own.id, list.items[i].id) == 0);
		json_out_end(&json, '}');
	}
	json_out_end(&json, ']');
	call_end(call, &json);
	http_header_set(call->rs, "Cache-Control", STR("no-store"));
}

/* @r: of changing the file. Return: whether it went well; otherwise the call is answered. */
static bool edited(struct call *call, int r, const struct token_edit *e)
{
	if (r == 0)
		return true;
	if (r == -EBADMSG) {
		answer_error(call->rs, 500, "the file of tokens: line %u cannot be read", e->line);
	} else if (r == -EWOULDBLOCK) {
		http_header_set(call->rs, "Retry-After", STR("1"));
		answer_error(call->rs, 503, "somebody else is changing the tokens");
	} else if (r == -ENOSPC || r == -EDQUOT) {
		answer_error(call->rs, 507, "the disk is full: the tokens are as they were");
	} else if (r == -EOVERFLOW) {
		answer_error(call->rs, 422, "there are %d tokens, no more fit", TOKENS_MAX);
	} else if (r == -ENOENT) {
		answer_error(call->rs, 404, "there is no token with this id");
	} else {
		log_error("the tokens could not be changed", LOG_ERR(r));
		answer_error(call->rs, 500, "the tokens could not be changed: %s", strerror(-r));
	}
	return false;
}

/* In force at once, and not only when somebody looks. */
static void reload(struct call *call)
{
	if (token_file_reload(call->collector->config.tokens) < 0)
		log_warn("the changed tokens cannot be read yet");
}

void admin_make_token(struct call *call)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(4)), secret = BUF_INIT(256);
	scoped(token_edit_release) struct token_edit edit = TOKEN_EDIT_INIT;
	unsigned int scopes = 0;
	struct token by, made;
	struct json_out json;
	int r;

	if (!access_may_change(call, &by))
		return;
	if (token_request_parse(call->rq->body, &name, &scopes) < 0 || name.len > TOKEN_NAME_MAX) {
		answer_error(call->rs, 400,
			     "bad request: the body is {\"name\": TEXT of at most %d bytes, \"scopes\": some of ingest,"
			     " read, admin}",
			     TOKEN_NAME_MAX);
		return;
	}
	r = token_edit_begin(&edit, token_file_path(call->collector->config.tokens), false);
	r = r ? r : token_edit_add(&edit, buf_str(&name), scopes, call->now_ns / NSEC_PER_SEC, &secret);
	r = r ? r : token_edit_save(&edit);
	if (!edited(call, r, &edit))
		return;
	made = edit.list.items[edit.list.count - 1];
	reload(call);
	log_warn("a token was made", LOG_CSTR("id", made.id), LOG_CSTR("name", made.name), LOG_WHO(call, by));
	metrics_add(call->collector->metrics, COLLECTOR_TOKENS_MADE, 1);
	call_begin(call, &json);
	write_token(&json, &made);
	call_key(&json, STR("token"), buf_str(&secret));
	call_end(call, &json);
	http_header_set(call->rs, "Cache-Control", STR("no-store"));
}

void admin_revoke_token(struct call *call)
{
	struct str id = http_query_get(&call->query, STR("id"));
	scoped(token_edit_release) struct token_edit edit = TOKEN_EDIT_INIT;
	struct token by, gone = { 0 };
	struct json_out json;
	int r;

	if (!access_may_change(call, &by))
		return;
	r = token_edit_begin(&edit, token_file_path(call->collector->config.tokens), false);
	r = r ? r : token_edit_revoke(&edit, id, &gone);
	r = r ? r : token_edit_save(&edit);
	if (!edited(call, r, &edit))
		return;
	reload(call);
	log_warn("a token was revoked", LOG_CSTR("id", gone.id), LOG_CSTR("name", gone.name), LOG_WHO(call, by));
	metrics_add(call->collector->metrics, COLLECTOR_TOKENS_REVOKED, 1);
	call_begin(call, &json);
	write_token(&json, &gone);
	call_key_u64(&json, STR("left"), edit.list.count);
	call_end(call, &json);
	http_header_set(call->rs, "Cache-Control", STR("no-store"));
}
