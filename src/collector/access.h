/* SPDX-License-Identifier: Apache-2.0 */
/* Who a request comes from: its token, its sender's rate, and the id that its line in the log has. */
#pragma once

#include "collector/tokens.h"
#include "net/http_server.h"

struct call;
struct collector;

/* What a request keeps until its line is logged. */
struct request_note {
	uint64_t sender; /* whose rate counts; 0: nobody's */
	char id[129];
};

/** access_begin - rq->owner becomes a struct request_note, or NULL without memory; collector_done() frees it. */
void access_begin(struct http_request *rq, struct http_response *rs);
/** access_asks_token - whether there is a token, or has to be. */
bool access_asks_token(struct collector *c);
/**
 * access_allowed - whether the request's token has @scope (0: everybody may)
 * @sender: who the token stands for, however it is written in the header; untouched when none was asked for
 *
 * Return: false after answering.
 */
bool access_allowed(struct collector *c, struct http_request *rq, struct http_response *rs, enum token_scope scope,
		    uint64_t *sender);
/** access_in_time - whether an upload of @sender (of the token, or 0) may begin by its rate. Return: false after
 * answering. */
bool access_in_time(struct collector *c, struct http_request *rq, struct http_response *rs, uint64_t sender);
#define ACCESS_COOKIE "hearth-token"
#define ACCESS_COOKIE_SECONDS 43200

/** access_same_origin - whether a page of @origin was served under the name @host. */
bool access_same_origin(struct str origin, struct str host);
bool access_only_reads(struct str method);
/**
 * access_is_foreign - whether a page of another origin sent it, as its browser says: by Origin, and by Sec-Fetch-Site
 * (Fetch Metadata Request Headers, W3C), where another port of the same host is "same-site". What is no browser sends
 * neither.
 */
bool access_is_foreign(struct http_request *rq);
/** access_has - whether the request may do what needs @scope. */
bool access_has(struct call *call, enum token_scope scope);
/** access_knows - whether @secret is a token, whatever its scopes. */
bool access_knows(struct collector *c, struct str secret);
/** access_token - the token of the request. Return: 0 or -EACCES. */
int access_token(struct call *call, struct token *out) warn_unused;
/**
 * access_may_change - whether the request may change how the collector is run: it came with a token of the scope admin,
 * and from no page but the collector's own, whatever --cors-origin says. @by: the token.
 *
 * Return: false after answering.
 */
bool access_may_change(struct call *call, struct token *by);
/** access_is_admin - whether the request came with a token of that scope. */
bool access_is_admin(struct call *call);
/** access_spent - count bytes against the request's sender. */
void access_spent(struct call *call, uint64_t bytes);
