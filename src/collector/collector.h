/* SPDX-License-Identifier: Apache-2.0 */
/* The collector behind the HTTP server: what is asked is looked up in one table of routes, checked (tokens, origins,
 * limits) before the body is read, and answered by one file per protocol. docs/collector.md describes the protocols. */
#pragma once

#include "base/clock.h"
#include "net/http_server.h"
#include "store/store.h"

struct snapshots;
struct token_file;

#define COLLECTOR_FACTS_MAX 8

/* A file as the pages show it: the service it is stored as, and what its reader said about it, as text. */
struct collector_file {
	struct str service;
	struct store_label facts[COLLECTOR_FACTS_MAX];
	size_t fact_count;
};

/* A store of one or two files, all of one moment: the pages show these instead of services in time. */
struct collector_shown {
	struct collector_file file, base; /* base: what it is compared with; service empty: nothing */
	struct str type;                  /* of both */
	uint64_t at_ns;                   /* created_ns of both */
};

struct collector_config {
	const struct store *store; /* state and token file stay the caller's */
	struct store_state *state;
	struct snapshots *snapshots; /* the caller's; NULL: none are taken */
	const struct clock *clock;
	struct token_file *tokens; /* NULL: nobody is asked for one */
	bool need_token;           /* also while there are no tokens */
	bool local_only;           /* listens on loopback: Host and Origin have to be too (DNS rebinding) */
	const char *const *cors_origins;
	size_t cors_count;
	size_t body_max, expanded_max;       /* bytes of one upload as it comes; of all that it expands to */
	size_t samples_max;                  /* of one profile */
	size_t list_limit, merge_max;        /* profiles: of a list without a limit; of a merge, 0: any number */
	size_t names_max;                    /* bytes of all names of an answer about totals; 0: 64 MiB */
	size_t flame_max;                    /* bytes of flame graphs that are kept for the next question; 0: none */
	size_t series_max;                   /* written to within an hour or two; 0: any number */
	uint64_t rate_max;                   /* bytes a second of one sender; 0: no limit */
	uint64_t query_max_ns;               /* a query ends after this; 0: never */
	unsigned int decoders;               /* uploads that are decoded at the same time */
	const char *web_dir;                 /* the viewer's files come from here; NULL: those in the program */
	const struct collector_shown *shown; /* NULL: services in time */
	bool live_only; /* nothing but what happens now is shown: the pages are the live one, and `window=start` is all
			 */
	bool access_log;
};

struct collector;

int collector_new(const struct collector_config *config, struct collector **out) warn_unused;
void collector_free(struct collector *c); /* NULL is fine */

/** collector_server - the server whose numbers /metrics shows; set before the first request is handled. */
void collector_server(struct collector *c, struct http_server *server);
/** collector_tick - to be called about once a second: what live streams show moves on. */
void collector_tick(struct collector *c);
/** collector_ready - /-/ready says so from now on. */
void collector_ready(struct collector *c);

/* For struct http_server_config; ctx is the collector. */
bool collector_begin(void *ctx, struct http_request *rq, struct http_response *rs);
size_t collector_weigh(void *ctx, struct http_request *rq);
void collector_handle(void *ctx, struct http_request *rq, struct http_response *rs);
void collector_done(void *ctx, struct http_request *rq, unsigned int status, size_t bytes_out);
/** collector_refuse - in the words of the protocol that @rq's path belongs to. @ctx: not used. @rq: NULL: none of ours.
 */
void collector_refuse(void *ctx, const struct http_request *rq, unsigned int status, const char *why,
		      struct http_response *rs);
