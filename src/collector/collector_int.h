/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector's files share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "codec/codec.h"
#include "codec/json.h"
#include "collector/cardinality.h"
#include "collector/collector.h"
#include "collector/gate.h"
#include "collector/metrics.h"
#include "collector/rate.h"
#include "collector/recall.h"
#include "collector/tokens.h"
#include "model/split.h"
#include "net/http_parse.h"
#include "query/range.h"
#include "query/whose.h"
#include "store/snapshots.h"

struct collector {
	struct collector_config config;
	struct metrics *metrics;
	struct gate decoders, light; /* light: one place more, for uploads up to RECEIVE_LIGHT */
	struct watch *watch;
	struct live *live;
	struct rate *rate;
	struct recall *recall; /* flame graphs that were made */
	struct cardinality *cardinality;
	struct http_server *server;
	uint64_t started_ns; /* wall clock */
	_Atomic uint64_t overflow_said_ns;
	atomic_bool ready, deleting; /* deleting: a service */
};

/* One request on its way through a handler. */
struct call {
	struct collector *collector;
	struct http_request *rq;
	struct http_response *rs;
	struct http_query query;
	struct str rest;     /* of the path, behind the route's prefix; not decoded */
	uint64_t now_ns;     /* wall clock */
	bool later;          /* it comes again: receive_later() */
	bool too_long;       /* the query took longer than it may */
	bool too_costly;     /* the regular expressions of its labels did */
	bool is_gzip;        /* the answer's body is, whatever the client takes: answer_pack() */
	uint64_t timeout_ns; /* what the client gives it, from its arrival on; 0: nothing is said */
	size_t parts;        /* more profiles than came, which sample labels made of them */
	uint64_t untimed;    /* of the value shown: samples without a time, which within= left out so far */
	const char *about;   /* what is worked on, for the words of errors: "the base: "; NULL: the only one there is */
};

static inline const char *call_about(const struct call *call)
{
	return call->about ? call->about : "";
}

typedef void call_fn(struct call *call);

/* envelope.c: answers */

/** answer_error - the envelope {"code":STATUS,"error":...}; foreign bytes are fine. */
void answer_error(struct http_response *rs, unsigned int status, const char *format, ...) printf_like(3, 4);
/** answer_begin - the envelope of a success up to its body's value; answer_end() closes it. */
void answer_begin(struct http_response *rs, struct json_out *json);
void answer_end(struct http_response *rs, struct json_out *json);
void answer_empty(struct http_response *rs, unsigned int status);
/**
 * answer_store - what a failed store call means to the client, counted: 507, 503, 500; 499 to queries only, since
 * whoever uploads gives a profile up that gets it
 */
void answer_store(struct call *call, int error, const char *what);
/** answer_count - a header with a number. */
void answer_count(struct http_response *rs, const char *name, uint64_t value);
/** answer_pack - gzip what is text and large enough for clients that take it; unpack what is gzip already for others.
 */
void answer_pack(struct call *call);
/** answer_file - @body (taken) as a download called @filename. */
void answer_file(struct http_response *rs, struct buf *body, struct str filename);

/* receive.c: bodies
 *
 * Most uploads are small, and as many as there are cores are decoded side by side. One that says that it needs more
 * than this, or turns out to, is decoded by HTTP_LANE_LARGE, which has one worker: one large one is in memory at a
 * time. */
#define RECEIVE_SMALL MIB(4)   /* bytes expanded; four times as many of the model */
#define RECEIVE_LIGHT KIB(256) /* decoded in a moment */
#define RECEIVE_USUAL_RATIO 8  /* profiles expand less; what expands further counts more for its sender's rate */
#define RECEIVE_DEPTH_MAX 1024 /* docs/collector.md, limits: stack depth, symbol length */
#define RECEIVE_SYMBOL_MAX KIB(16)

struct received {
	struct window window; /* model NULL: @raw it is */
	struct str raw;
	uint64_t expanded;           /* bytes that were made of the body so far, all layers */
	struct buf unwrapped;        /* of Content-Encoding; raw may borrow from it */
	struct gate *gate;           /* held; released by received_release() or while the store waits */
	struct store_label overflow; /* the label in place of too many series */
	bool is_large;               /* in HTTP_LANE_LARGE */
};

void received_release(struct received *r); /* a zeroed one is fine */

/**
 * receive_bytes - the body without its Content-Encoding, and a place among the decoders
 * Return: whether it went well; otherwise the call is answered.
 */
bool receive_bytes(struct call *call, struct received *out);
/** receive_unwrap - take one layer of gzip off out->raw. Return: as receive_bytes(). */
bool receive_unwrap(struct call *call, struct received *out);
/** receive_limits - what a decoder of this request may use; the model twice @expanded_max. */
struct codec_limits receive_limits(struct call *call, const struct received *r, size_t expanded_max);
/** receive_compute - take the place among the decoders again, unless @r has it: before the store packs once more. */
void receive_compute(struct call *call, struct received *r);
/** receive_again - get ready for another profile of the same request: the window goes, the place among the decoders is
 * taken again */
void receive_again(struct call *call, struct received *r);
/** receive_later - when @r is not large yet: the call comes again in HTTP_LANE_LARGE, and is not answered now. */
bool receive_later(struct call *call, struct received *r);
/** receive_failed - answer for a decoder that failed with @r; @what: the form, with the reason. Return: false. */
bool receive_failed(struct call *call, int r, const char *what);
/** receive_decoded - what all decoders' windows are counted for. */
void receive_decoded(struct call *call, const struct window *w);
/**
 * receive_profile - @bytes as pprof (also legacy forms) into out->window
 * Return: the same. An answer of 400 has the decoder's reason.
 */
bool receive_profile(struct call *call, struct str bytes, struct received *out);
/**
 * receive_store - put what was received
 * @upload: service and labels are replaced when there are too many series; see cardinality.h. Without a request_key the
 *	header Idempotency-Key is it
 *
 * Return: whether it is stored (now or before); otherwise the call is answered.
 */
bool receive_store(struct call *call, struct received *in, struct store_upload *upload, struct store_id *out);

/* api_profefe.c */
call_fn profefe_upload, profefe_list, profefe_services, profefe_version, profefe_symbolz, profefe_delete;
/* api_merge.c */
call_fn profefe_merge, profefe_download;
/* api_pyroscope.c, api_push.c, api_render.c */
call_fn pyroscope_ingest, pyroscope_push, pyroscope_render, pyroscope_compare;
/* api_querier.c */
call_fn querier_call;
/* api_totals.c, api_timeline.c, api_owners.c, api_subseconds.c, api_flame.c, api_view.c: the viewer's, docs/api.yaml */
call_fn view_services, view_types, view_labels, view_timeline, view_processes, view_subseconds;
call_fn view_flame, view_compare, view_lines, view_export, view_live;
call_fn view_agents, view_status, view_session, view_sign_in, view_sign_out, view_file;
/* api_admin.c: the administration page's */
call_fn admin_storage, admin_weigh, admin_delete_service, admin_tokens, admin_make_token, admin_revoke_token;
/* api_snapshot.c: results that are kept */
call_fn snapshot_keep, snapshot_list, snapshot_facts, snapshot_remove;

struct kept {
	struct buf bytes;
	uint64_t size;             /* of the file */
	struct snapshot_head head; /* borrows from the bytes */
};

void kept_release(struct kept *k); /* a zeroed one is fine */
/** call_kept - the snapshot called @id, and its profile. Return: whether there is one; otherwise the call is answered.
 */
bool call_kept(struct call *call, struct str id, struct kept *out, struct window *w);
/**
 * merge_common - add up what the profiles of @sel share where their sample types differ
 * @sample: of those that have this sample type; empty: of all
 *
 * Return: as store.sum().
 */
int merge_common(struct call *call, const struct store_selector *sel, struct str sample, struct window *out,
		 struct store_sum *info);
/** merge_within - add up the samples of @within alone, and what profiles share where their sample types differ; the
 * value of samples without a time goes into call->untimed. Return: as store.sum(). */
int merge_within(struct call *call, const struct store_selector *sel, const struct query_within *within,
		 struct window *out, struct store_sum *info);
/** call_begin, call_end - an answer of JSON without the envelope; an object. */
void call_begin(struct call *call, struct json_out *json);
void call_end(struct call *call, struct json_out *json);
/** call_key, call_key_u64 - a member of it. */
void call_key(struct json_out *json, struct str key, struct str text);
void call_key_u64(struct json_out *json, struct str key, uint64_t value);
/**
 * call_key_sample - a member that is a sample type as the parameter `sample` takes it
 * @is_shared: another one has the name, too: the unit is said as well
 */
void call_key_sample(struct json_out *json, struct str key, struct str name, struct str unit, bool is_shared);

/* pyroscope_put.c: one profile of a Pyroscope client */
struct pyroscope_profile {
	struct str service, type;
	struct store_label labels[STORE_LABELS_MAX];
	size_t label_count;
	uint64_t from_ns, until_ns; /* wall clock */
	struct str id, bytes;       /* the sender's name of it, or empty; what was sent under that name */
	uint64_t number;            /* of the profile, in its request */
	bool is_one_of_many;        /* the request has several profiles */
	struct buf names;           /* what the labels borrow from */
};

void pyroscope_profile_release(struct pyroscope_profile *p); /* a zeroed one is fine */
/**
 * pyroscope_labels - service and labels out of those a client gave
 * @app: the application's name, or empty. The label service_name wins over it; then it is kept as app_name. Names
 *	such as __session_id__ control the server they were made for and are not stored.
 *
 * Return: as receive_bytes(). @out->service may be empty.
 */
bool pyroscope_labels(struct call *call, const struct store_label *given, size_t count, struct str app,
		      struct pyroscope_profile *out);
/** pyroscope_type - our type of a profile, by its sample types and the text of a sample_type_config. Static. */
struct str pyroscope_type(const struct model *m, struct str config);
/** pyroscope_own_time - the time that a pprof file says wins over the request's. */
void pyroscope_own_time(const struct model *m, struct pyroscope_profile *p);
/**
 * pyroscope_put - store r->window: one profile for each set of text labels that its samples have, so that selectors
 * find them. One without samples is counted and fine.
 *
 * Return: whether all of it is stored; otherwise the call is answered.
 */
bool pyroscope_put(struct call *call, struct received *r, const struct pyroscope_profile *profile);

/* watch.c: the store's numbers for /metrics, asked for by a thread of their own. Some wait for the store's locks and
 * files, for as long as a merge or a commit takes; who asks for metrics does not. */
struct watch;

int watch_new(const struct store *store, struct store_state *state, struct watch **out) warn_unused;
void watch_free(struct watch *w); /* NULL is fine */
/** watch_stats - the numbers, of now when they are there soon, else the last ones. @age_ns: of them. Return: false:
 * none */
bool watch_stats(struct watch *w, struct store_stats *out, uint64_t *age_ns);

/* api_ops.c */
call_fn ops_health, ops_ready, ops_metrics, ops_debug;

/* answer_profile.c: what all APIs have in common */

/** call_range - the profiles that the request means. Return: whether it went well; otherwise the call is answered. */
bool call_range(struct call *call, const struct query_range_rules *rules, struct query_range *out);
/** call_whose - the processes and threads that it means. Return: as call_range(). */
bool call_whose(struct call *call, struct query_whose *out);
/** call_run - @run. When the regular expressions of a label took too long, what it answered is not whole: 429 in its
 * place. */
void call_run(struct call *call, call_fn *run);
/** answer_costly - that 429. */
void answer_costly(struct http_response *rs);
/** answer_too_many - 429: the answer would have more rows, or more text, than one may have. */
void answer_too_many(struct http_response *rs);
/** call_select - as the store wants it, ending with call_stop(); borrows from @range. */
struct store_selector call_select(struct call *call, const struct query_range *range);
/** call_stop - store_selector.stop of a call: its client left, or it took too long. */
bool call_stop(void *call);
/** call_bad - answer 400 with @why, or 503 for -ENOMEM. Return: false. */
bool call_bad(struct call *call, int error, struct buf *why);
/**
 * call_sum - the profiles of @range as one, of the processes and threads that are asked for; merge_common() where
 * sample types differ
 *
 * Return: whether there are some; otherwise the call is answered.
 */
bool call_sum(struct call *call, const struct query_range *range, struct window *out, struct store_sum *info);
/** call_sum_selected - the same for @sel, which is of @range; there may be none: then info->profiles is 0. */
bool call_sum_selected(struct call *call, const struct query_range *range, const struct store_selector *sel,
		       struct window *out, struct store_sum *info);
/** call_column - the column of @m that @sample names, empty: the default one. Return: as call_sum(). */
bool call_column(struct call *call, const struct model *m, struct str sample, size_t *out);
/** call_pick_whose - leave in @w what @whose means, and nothing that only others used; where that is nothing,
 * @info->profiles is 0. Return: 0 or -errno. */
int call_pick_whose(const struct query_whose *whose, struct window *w, struct store_sum *info) warn_unused;
/** call_nothing - answer 404: nothing is there, or nothing whose time is known. */
void call_nothing(struct call *call, const struct query_range *range);
/** call_no_sample - answer 404: the profiles have no such sample type. */
void call_no_sample(struct call *call, struct str sample);
/** answer_window - a profile as a download called @filename. @options may be NULL. */
void answer_window(struct call *call, const struct window *w, const struct codec *format,
		   const struct codec_options *options, struct str filename);
/** answer_pieces - the same of a format that has begin(), made while it is taken; @w is moved. */
void answer_pieces(struct call *call, struct window *w, const struct codec *format, const struct codec_options *options,
		   struct str filename);
/** answer_merged - the headers that say what a merge was made of, counted. */
void answer_merged(struct call *call, const struct store_sum *info);
