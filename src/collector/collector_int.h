/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector's files share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "codec/json.h"
#include "collector/cardinality.h"
#include "collector/collector.h"
#include "collector/metrics.h"
#include "collector/rate.h"
#include "collector/tokens.h"
#include "net/http_parse.h"
#include "query/params.h"

/* So many at a time, in the order they came: who just left must not overtake those that wait. */
struct gate {
	pthread_mutex_t lock; /* guards the rest */
	unsigned int free;
	struct gate_place *first, *last; /* who waits */
};

struct collector {
	struct collector_config config;
	struct metrics *metrics;
	struct gate decoders, large; /* large: uploads beyond RECEIVE_SMALL */
	struct rate *rate;
	struct cardinality *cardinality;
	struct http_server *server;
	uint64_t started_ns; /* wall clock */
	_Atomic uint64_t overflow_said_ns;
	atomic_bool ready;
};

/* One request on its way through a handler. */
struct call {
	struct collector *collector;
	struct http_request *rq;
	struct http_response *rs;
	struct http_query query;
	struct str rest; /* of the path, behind the route's prefix; not decoded */
	uint64_t now_ns; /* wall clock */
	bool too_long;   /* the query took longer than it may */
};

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
/** answer_file - @body (taken) as a download called @filename. */
void answer_file(struct http_response *rs, struct buf *body, struct str filename);

/* receive.c: bodies
 *
 * Most uploads are small, and as many as there are cores are decoded side by side. One that turns out to need more than
 * this is decoded anew when no other large one is in memory. */
#define RECEIVE_SMALL MIB(4)   /* bytes expanded; four times as many of the model */
#define RECEIVE_DEPTH_MAX 1024 /* design/server.md 5.7: stack depth, symbol length */
#define RECEIVE_SYMBOL_MAX KIB(16)

void gate_init(struct gate *g, unsigned int places);
void gate_destroy(struct gate *g);
void gate_enter(struct gate *g);
void gate_leave(struct gate *g);

struct received {
	struct window window; /* model NULL: @raw it is */
	struct str raw;
	struct buf unwrapped;        /* of Content-Encoding; raw may borrow from it */
	struct gate *gate;           /* held; released by received_release() or while the store waits */
	struct store_label overflow; /* the label in place of too many series */
	struct gate *large;          /* the same, but held until the end: it stands for memory */
};

void received_release(struct received *r); /* a zeroed one is fine */

/**
 * receive_bytes - the body without its Content-Encoding, and a place among the decoders
 * Return: whether it went well; otherwise the call is answered.
 */
bool receive_bytes(struct call *call, struct received *out);
/** receive_spent - count the bytes of a request's body against its sender. */
void receive_spent(struct call *call);
/** receive_limits - what a decoder of this request may use; the model twice @expanded_max. */
struct codec_limits receive_limits(struct call *call, const struct received *r, size_t expanded_max);
/** receive_spend - wait until @r may be large. Return: false when it was before: it is too large. */
bool receive_spend(struct call *call, struct received *r);
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
 * @upload: service and labels are replaced when there are too many series; see cardinality.h
 *
 * Return: whether it is stored (now or before); otherwise the call is answered.
 */
bool receive_store(struct call *call, struct received *in, struct store_upload *upload, struct store_id *out);

/* api_profefe.c */
call_fn profefe_upload, profefe_list, profefe_services, profefe_version, profefe_symbolz, profefe_delete;
/* api_merge.c */
call_fn profefe_merge, profefe_download;
/* api_pyroscope.c, api_render.c */
call_fn pyroscope_ingest, pyroscope_render;
/* api_ops.c */
call_fn ops_health, ops_ready, ops_metrics, ops_debug;

struct range_params {
	struct store_selector sel;
	struct str type;
	struct query_labels labels;
	struct str before; /* an id or a time, or empty */
};

void range_params_release(struct range_params *p);
/** range_params_read - service, type, labels, from, to, limit, in the order of their checks. Return: as
 * receive_bytes().
 */
bool range_params_read(struct call *call, struct range_params *out);
/** profile_object - the JSON object of one stored profile. */
void profile_object(struct json_out *json, const struct store_profile *profile);
/** parse_labels_param - the parameter labels; false after answering. */
bool parse_labels_param(struct call *call, struct query_labels *out);
/** range_stop - store_selector.stop of a call: its client left, or it took too long. */
bool range_stop(void *call);
