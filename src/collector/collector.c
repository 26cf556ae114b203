/* SPDX-License-Identifier: Apache-2.0 */
/* Routes, and what is checked before a handler runs. */
#include "collector/collector.h"

#include <inttypes.h>
#include <strings.h>

#include "base/log.h"
#include "codec/gzip.h"
#include "collector/access.h"
#include "collector/collector_int.h"
#include "collector/connect.h"
#include "collector/live.h"

#define QUERIER_BODY_MAX MIB(1)
#define QUERIER(method, lane, large)                                                                   \
	{                                                                                              \
		"/querier.v1.QuerierService/" method, "POST", querier_call, TOKEN_READ, (lane), true,  \
			"/querier.v1.QuerierService/" method, .is_large = (large), .is_connect = true, \
							      .body_max = QUERIER_BODY_MAX             \
	}

/* Rows of one path stand together; the first that fits counts. A path that ends in '*' is a prefix. */
static const struct route {
	const char *path, *method;
	call_fn *run;
	enum token_scope scope; /* 0: everybody */
	enum http_lane lane;
	bool has_body;
	const char *label; /* in metrics */
	bool at_once;      /* answered before any worker is free: who watches the collector asks these */
	bool is_large;     /* its answers often are: not begun while too many of these wait for their readers */
	bool is_connect;   /* errors are told as the Connect protocol has it */
	size_t body_max;   /* 0: as large as an upload */
} routes[] = {
	{ "/api/0/profiles", "POST", profefe_upload, TOKEN_INGEST, HTTP_LANE_WRITE, true, "/api/0/profiles" },
	{ "/api/0/profiles", "GET", profefe_list, TOKEN_READ, HTTP_LANE_READ, false, "/api/0/profiles" },
	{ "/api/0/profiles", "DELETE", profefe_delete, TOKEN_ADMIN, HTTP_LANE_READ, false, "/api/0/profiles" },
	{ "/api/0/profiles/merge", "GET", profefe_merge, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/0/profiles/merge",
	  .is_large = true },
	{ "/api/0/profiles/merge", "POST", profefe_merge, TOKEN_READ, HTTP_LANE_MERGE, true, "/api/0/profiles/merge",
	  .is_large = true },
	{ "/api/0/profiles/symbolz", "POST", profefe_symbolz, TOKEN_READ, HTTP_LANE_READ, true,
	  "/api/0/profiles/symbolz" },
	{ "/api/0/profiles/symbolz", "GET", profefe_symbolz, TOKEN_READ, HTTP_LANE_READ, false,
	  "/api/0/profiles/symbolz" },
	{ "/api/0/profiles/*", "GET", profefe_download, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/0/profiles/__pid__",
	  .is_large = true },
	{ "/api/0/services", "GET", profefe_services, TOKEN_READ, HTTP_LANE_READ, false, "/api/0/services" },
	{ "/api/0/services", "POST", profefe_services, TOKEN_READ, HTTP_LANE_READ, true, "/api/0/services" },
	{ "/api/0/version", "GET", profefe_version, 0, HTTP_LANE_READ, false, "/api/0/version" },
	{ "/ingest", "POST", pyroscope_ingest, TOKEN_INGEST, HTTP_LANE_WRITE, true, "/ingest" },
	{ "/pyroscope/ingest", "POST", pyroscope_ingest, TOKEN_INGEST, HTTP_LANE_WRITE, true, "/ingest" },
	{ "/push.v1.PusherService/Push", "POST", pyroscope_push, TOKEN_INGEST, HTTP_LANE_WRITE, true,
	  "/push.v1.PusherService/Push", .is_connect = true },
	QUERIER("ProfileTypes", HTTP_LANE_READ, false),
	QUERIER("LabelNames", HTTP_LANE_READ, false),
	QUERIER("LabelValues", HTTP_LANE_READ, false),
	QUERIER("Series", HTTP_LANE_READ, false),
	QUERIER("SelectSeries", HTTP_LANE_READ, false),
	QUERIER("GetProfileStats", HTTP_LANE_READ, false),
	QUERIER("AnalyzeQuery", HTTP_LANE_READ, false),
	QUERIER("SelectMergeStacktraces", HTTP_LANE_MERGE, true),
	QUERIER("SelectMergeSpanProfile", HTTP_LANE_MERGE, true),
	QUERIER("SelectMergeProfile", HTTP_LANE_MERGE, true),
	QUERIER("Diff", HTTP_LANE_MERGE, true),
	QUERIER("*", HTTP_LANE_READ, false),
	{ "/pyroscope/render", "GET", pyroscope_render, TOKEN_READ, HTTP_LANE_MERGE, false, "/pyroscope/render",
	  .is_large = true },
	{ "/render", "GET", pyroscope_render, TOKEN_READ, HTTP_LANE_MERGE, false, "/pyroscope/render",
	  .is_large = true },
	{ "/pyroscope/render-diff", "GET", pyroscope_compare, TOKEN_READ, HTTP_LANE_MERGE, false,
	  "/pyroscope/render-diff", .is_large = true },
	{ "/render-diff", "GET", pyroscope_compare, TOKEN_READ, HTTP_LANE_MERGE, false, "/pyroscope/render-diff",
	  .is_large = true },
	{ "/api/v1/services", "GET", view_services, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/services" },
	{ "/api/v1/services", "DELETE", admin_delete_service, TOKEN_ADMIN, HTTP_LANE_READ, false, "/api/v1/services" },
	{ "/api/v1/agents", "GET", view_agents, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/agents" },
	{ "/api/v1/types", "GET", view_types, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/types" },
	{ "/api/v1/labels", "GET", view_labels, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/labels" },
	{ "/api/v1/timeline", "GET", view_timeline, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/timeline" },
	{ "/api/v1/processes", "GET", view_processes, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/v1/processes" },
	{ "/api/v1/subseconds", "GET", view_subseconds, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/v1/subseconds" },
	{ "/api/v1/flame", "GET", view_flame, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/v1/flame", .is_large = true },
	{ "/api/v1/flame", "POST", view_flame, TOKEN_READ, HTTP_LANE_MERGE, true, "/api/v1/flame", .is_large = true,
	  .body_max = MIB(4) },
	{ "/api/v1/compare", "GET", view_compare, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/v1/compare",
	  .is_large = true },
	{ "/api/v1/compare", "POST", view_compare, TOKEN_READ, HTTP_LANE_MERGE, true, "/api/v1/compare",
	  .is_large = true, .body_max = MIB(4) },
	{ "/api/v1/lines", "POST", view_lines, TOKEN_READ, HTTP_LANE_MERGE, true, "/api/v1/lines", .body_max = MIB(4) },
	{ "/api/v1/export", "GET", view_export, TOKEN_READ, HTTP_LANE_MERGE, false, "/api/v1/export",
	  .is_large = true },
	{ "/api/v1/snapshots", "POST", snapshot_keep, TOKEN_ADMIN, HTTP_LANE_MERGE, true, "/api/v1/snapshots",
	  .body_max = KIB(64) },
	{ "/api/v1/snapshots", "GET", snapshot_list, TOKEN_ADMIN, HTTP_LANE_READ, false, "/api/v1/snapshots" },
	{ "/api/v1/snapshots/*", "GET", snapshot_facts, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/snapshots/__id__" },
	{ "/api/v1/snapshots/*", "DELETE", snapshot_remove, TOKEN_ADMIN, HTTP_LANE_READ, false,
	  "/api/v1/snapshots/__id__" },
	{ "/api/v1/live", "GET", view_live, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/live" },
	{ "/api/v1/status", "GET", view_status, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/status" },
	{ "/api/v1/storage", "GET", admin_storage, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/storage" },
	{ "/api/v1/storage/service", "GET", admin_weigh, TOKEN_READ, HTTP_LANE_READ, false, "/api/v1/storage/service" },
	{ "/api/v1/tokens", "GET", admin_tokens, TOKEN_ADMIN, HTTP_LANE_READ, false, "/api/v1/tokens" },
	{ "/api/v1/tokens", "POST", admin_make_token, TOKEN_ADMIN, HTTP_LANE_READ, true, "/api/v1/tokens",
	  .body_max = KIB(64) },
	{ "/api/v1/tokens", "DELETE", admin_revoke_token, TOKEN_ADMIN, HTTP_LANE_READ, false, "/api/v1/tokens" },
	{ "/api/v1/session", "GET", view_session, 0, HTTP_LANE_READ, false, "/api/v1/session" },
	{ "/api/v1/session", "POST", view_sign_in, 0, HTTP_LANE_READ, true, "/api/v1/session", .body_max = KIB(64) },
	{ "/api/v1/session", "DELETE", view_sign_out, 0, HTTP_LANE_READ, false, "/api/v1/session" },
	{ "/", "GET", view_file, 0, HTTP_LANE_READ, false, "/" },
	{ "/ui/*", "GET", view_file, 0, HTTP_LANE_READ, false, "/ui" },
	{ "/healthz", "GET", ops_health, 0, HTTP_LANE_READ, false, "/healthz", true },
	{ "/-/healthy", "GET", ops_health, 0, HTTP_LANE_READ, false, "/-/healthy", true },
	{ "/-/ready", "GET", ops_ready, 0, HTTP_LANE_READ, false, "/-/ready", true },
	{ "/readyz", "GET", ops_ready, 0, HTTP_LANE_READ, false, "/-/ready", true },
	{ "/metrics", "GET", ops_metrics, TOKEN_READ, HTTP_LANE_WATCH, false, "/metrics" },
	{ "/debug/metrics", "GET", ops_metrics, TOKEN_READ, HTTP_LANE_WATCH, false, "/metrics" },
	{ "/debug/*", "GET", ops_debug, TOKEN_READ, HTTP_LANE_READ, false, "/debug" },
};

#define ROUTE_NONE ARRAY_SIZE(routes)

int collector_new(const struct collector_config *config, struct collector **out)
{
	struct collector *c = calloc(1, sizeof(*c));
	int r = c ? metrics_new(&c->metrics) : -ENOMEM;

	r = r ? r : rate_new(config->rate_max, &c->rate);
	r = r ? r : cardinality_new(config->series_max, &c->cardinality);
	r = r ? r : recall_new(config->flame_max, &c->recall);
	r = r ? r : live_new(c, &c->live);
	r = r ? r : watch_new(config->store, config->state, &c->watch);
	if (r < 0) {
		if (c) {
			live_free(c->live);
			recall_free(c->recall);
			cardinality_free(c->cardinality);
			rate_free(c->rate);
			metrics_free(c->metrics);
		}
		free(c);
		return r;
	}
	c->config = *config;
	gate_init(&c->decoders, MAX(config->decoders, 1U));
	gate_init(&c->light, 1);
	c->started_ns = clock_wall_ns(config->clock);
	*out = c;
	return 0;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	watch_free(c->watch);
	live_free(c->live);
	metrics_free(c->metrics);
	rate_free(c->rate);
	cardinality_free(c->cardinality);
	recall_free(c->recall);
	gate_destroy(&c->decoders);
	gate_destroy(&c->light);
	free(c);
}

void collector_server(struct collector *c, struct http_server *server)
{
	c->server = server;
}

void collector_tick(struct collector *c)
{
	live_tick(c->live);
}

void collector_ready(struct collector *c)
{
	atomic_store(&c->ready, true);
}

/* Routes */

static bool path_fits(const struct route *route, struct str path, struct str *rest)
{
	struct str wanted = str_of(route->path);

	*rest = STR("");
	if (wanted.ptr[wanted.len - 1] != '*')
		return str_eq(wanted, path);
	wanted.len--;
	if (!str_starts(path, wanted) || path.len == wanted.len)
		return false;
	*rest = str_skip(path, wanted.len);
	return true;
}

static bool method_fits(const struct route *route, struct str method)
{
	return str_eq(method, str_of(route->method)) || (str_eq(method, STR("HEAD")) && !strcmp(route->method, "GET"));
}

/* A collector's address that ends in a slash makes paths that begin with two. */
static struct str without_slashes(struct str path)
{
	while (str_starts(path, STR("//")))
		path = str_skip(path, 1);
	return path;
}

/* The path as routes have it: profefe's clients write slashes at its ends. */
static struct str path_of(const struct http_request *rq)
{
	struct str path = without_slashes(rq->path);

	while (str_starts(path, STR("/api/0/")) && str_ends(path, STR("/")))
		path.len--;
	return path;
}

/* Return: the row, or ROUTE_NONE; @first: the first row of the path, or ROUTE_NONE when there is none. */
static unsigned int find_route(struct str path, struct str method, size_t *first)
{
	struct str rest;

	*first = ROUTE_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (!path_fits(&routes[i], path, &rest))
			continue;
		if (*first == ROUTE_NONE)
			*first = i;
		if (!strcmp(routes[i].path, routes[*first].path) && method_fits(&routes[i], method))
			return (unsigned int)i;
	}
	return ROUTE_NONE;
}

static void refuse_method(struct http_response *rs, const struct route *first)
{
	scoped(buf_release) struct buf allow = BUF_INIT(KIB(1));

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (strcmp(routes[i].path, first->path) != 0)
			continue;
		buf_addf(&allow, "%s%s", allow.len ? ", " : "", routes[i].method);
		if (!strcmp(routes[i].method, "GET"))
			buf_adds(&allow, STR(", HEAD"));
	}
	http_header_set(rs, "Allow", buf_str(&allow));
	answer_error(rs, 405, "method not allowed");
}

/* Checks */

static bool origin_listed(const struct collector *c, struct str origin)
{
	for (size_t i = 0; i < c->config.cors_count; i++) {
		struct str allowed = str_of(c->config.cors_origins[i]);

		if (str_eq(allowed, STR("*")) || str_eq(allowed, origin))
			return true;
	}
	return false;
}

/* A page of a stranger must not talk to a collector that trusts everybody who can reach it. */
static bool from_here(struct collector *c, struct http_request *rq, struct http_response *rs)
{
	struct str host = http_header_get(rq, "Host"), origin = http_header_get(rq, "Origin"), name;
	bool listed = origin.ptr && origin_listed(c, origin), fine = true;
	uint16_t port;

	if (listed) {
		http_header_set(rs, "Access-Control-Allow-Origin", origin);
		http_header_set(rs, "Vary", STR("Origin"));
		http_header_set(rs, "Access-Control-Expose-Headers",
				STR("X-Total-Count, X-Next-Before, X-Profiles-Merged, X-Profiles-Skipped, "
				    "X-Profiles-Damaged, X-Untimed, X-Lines-Left-Out"));
	}
	if (origin.ptr && !listed && !access_same_origin(origin, host))
		fine = false;
	if (!listed && !access_only_reads(rq->method) && access_is_foreign(rq))
		fine = false;
	if (c->config.local_only && !access_asks_token(c) && host.ptr &&
	    (http_host_split(host, &name, &port) < 0 || !http_host_is_loopback(name)))
		fine = false;
	if (fine)
		return true;
	metrics_add(c->metrics, COLLECTOR_FORBIDDEN, 1);
	answer_error(rs, 403, "this collector does not answer requests for another host or from another origin");
	return false;
}

static bool preflight(struct http_request *rq, struct http_response *rs, const struct route *route)
{
	if (!str_eq(rq->method, STR("OPTIONS")) || !http_header_get(rq, "Origin").ptr || !route)
		return false;
	http_header_set(rs, "Access-Control-Allow-Methods", STR("GET, HEAD, POST, DELETE"));
	http_header_set(rs, "Access-Control-Allow-Headers",
			STR("Authorization, Content-Type, Content-Encoding, Idempotency-Key, X-Request-Id, "
			    "Connect-Protocol-Version, Connect-Timeout-Ms"));
	http_header_set(rs, "Access-Control-Max-Age", STR("600"));
	answer_empty(rs, 204);
	return true;
}

/* Return: whether the path is clean; otherwise the call is answered. */
static bool clean_path(struct http_request *rq, struct http_response *rs)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(64));

	if (http_path_clean(rq->path, &path) < 0) {
		answer_error(rs, 400, "bad request: the path");
		return false;
	}
	if (str_eq(buf_str(&path), without_slashes(rq->path)))
		return true;
	if (rq->query.len) {
		buf_addc(&path, '?');
		buf_adds(&path, rq->query);
	}
	http_header_set(rs, "Location", buf_str(&path));
	/* After 301 clients turn a POST into a GET. */
	answer_error(rs, str_eq(rq->method, STR("GET")) || str_eq(rq->method, STR("HEAD")) ? 301 : 308,
		     "moved to the clean path");
	return false;
}

static bool begin(struct collector *c, struct http_request *rq, struct http_response *rs)
{
	const struct route *route;
	uint64_t sender = 0;
	size_t first;

	rq->route = ROUTE_NONE;
	access_begin(rq, rs);
	http_header_set(rs, "X-Content-Type-Options", STR("nosniff"));
	if (!from_here(c, rq, rs) || !clean_path(rq, rs))
		return false;
	rq->route = find_route(path_of(rq), rq->method, &first);
	if (rq->route == ROUTE_NONE) {
		if (preflight(rq, rs, first == ROUTE_NONE ? NULL : &routes[first]))
			return false;
		if (first == ROUTE_NONE)
			answer_error(rs, 404, "nothing found");
		else
			refuse_method(rs, &routes[first]);
		rq->route = (unsigned int)first; /* for the metrics */
		return false;
	}
	route = &routes[rq->route];
	if (!access_allowed(c, rq, rs, route->scope, &sender))
		return false;
	rq->sender = sender;
	if (route->at_once) {
		route->run(&(struct call){ .collector = c, .rq = rq, .rs = rs });
		return false;
	}
	if (route->scope == TOKEN_INGEST && !access_in_time(c, rq, rs, sender))
		return false;
	rq->lane = route->lane;
	rq->body_max = !route->has_body ? 0 : route->body_max ? route->body_max : c->config.body_max;
	return true;
}

static void tell_error(const struct http_request *rq, struct http_response *rs)
{
	if (rs->status >= 400 && rq->route < ROUTE_NONE && routes[rq->route].is_connect)
		connect_error(rs);
}

void collector_refuse(void *ctx, const struct http_request *rq, unsigned int status, const char *why,
		      struct http_response *rs)
{
	size_t first = ROUTE_NONE;

	(void)ctx;
	answer_error(rs, status, "%s", why);
	if (rq)
		(void)find_route(path_of(rq), rq->method, &first); /* rq->route may not be set yet */
	if (first != ROUTE_NONE && routes[first].is_connect)
		connect_error(rs);
}

bool collector_begin(void *ctx, struct http_request *rq, struct http_response *rs)
{
	bool goes_on = begin(ctx, rq, rs);

	if (!goes_on)
		tell_error(rq, rs);
	return goes_on;
}

size_t collector_weigh(void *ctx, struct http_request *rq)
{
	size_t size;

	(void)ctx;
	if (rq->lane != HTTP_LANE_WRITE)
		return 0;
	size = MAX(rq->body.len, gzip_promise(rq->body));
	if (size > RECEIVE_SMALL)
		rq->lane = HTTP_LANE_LARGE;
	return size;
}

/* A query that stood in line while its client left. */
static bool is_abandoned(const struct http_request *rq)
{
	return (rq->lane == HTTP_LANE_READ || rq->lane == HTTP_LANE_MERGE) &&
	       clock_monotonic_ns(&clock_system) - rq->received_ns > NSEC_PER_SEC && http_gone(rq);
}

/* Large texts are packed, but Pyroscope's uploads have no answer to speak of. */
static bool is_packed(const struct route *route)
{
	return str_starts(str_of(route->path), STR("/api/v1/")) || route->run == view_file ||
	       (route->scope == TOKEN_READ &&
		(route->is_connect || route->run == pyroscope_render || route->run == pyroscope_compare));
}

static void handle(struct call *call, struct http_request *rq, struct http_response *rs)
{
	const struct route *route = &routes[rq->route];
	int r;

	if (is_abandoned(rq)) {
		answer_store(call, -ECANCELED, "");
		return;
	}
	if (route->is_large && http_answers_full(rq)) {
		http_answers_refuse(rq, rs);
		return;
	}
	r = http_query_parse(rq->query, &call->query);
	if (r < 0) {
		answer_error(rs, 400, "bad request: the query cannot be read");
		return;
	}
	call->now_ns = clock_wall_ns(call->collector->config.clock);
	(void)path_fits(route, path_of(rq), &call->rest); /* it was found by it */
	call_run(call, route->run);
	http_query_release(&call->query);
}

void collector_handle(void *ctx, struct http_request *rq, struct http_response *rs)
{
	struct call call = { .collector = ctx, .rq = rq, .rs = rs };

	handle(&call, rq, rs);
	if (!call.later)
		tell_error(rq, rs);
	if (!rs->stream.more && is_packed(&routes[rq->route]))
		answer_pack(&call);
}

/* The end */

static const char *method_label(struct str method)
{
	static const char *const known[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(method, str_of(known[i])))
			return known[i];
	return "other";
}

static void log_access(const struct http_request *rq, unsigned int status, uint64_t took_ns)
{
	const struct request_note *note = rq->owner;
	struct str host = http_header_get(rq, "Host");
	scoped(buf_release) struct buf uri = BUF_INIT(KIB(32));

	buf_adds(&uri, rq->path);
	if (rq->query.len) {
		buf_addc(&uri, '?');
		buf_adds(&uri, rq->query);
	}
	log_info("request", LOG_CSTR("rid", note ? note->id : ""), LOG_STR("method", rq->method),
		 LOG_STR("uri", buf_str(&uri)), LOG_U64("code", status), LOG_STR("host", host),
		 LOG_STR("ip", rq->remote), LOG_U64("rtime_us", took_ns / 1000));
}

void collector_done(void *ctx, struct http_request *rq, unsigned int status, size_t bytes_out)
{
	struct collector *c = ctx;
	uint64_t took_ns = clock_monotonic_ns(&clock_system) - rq->received_ns;
	const char *label = rq->route < ROUTE_NONE ? routes[rq->route].label : "other";

	metrics_request(c->metrics, label, method_label(rq->method), status, took_ns,
			rq->path.len + rq->query.len + rq->body.len, bytes_out);
	if (c->config.access_log)
		log_access(rq, status, took_ns);
	free(rq->owner);
	rq->owner = NULL;
}
