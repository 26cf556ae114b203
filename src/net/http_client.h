/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request and its answer, over libcurl: every length and every time is bounded, redirects are not followed,
 * certificates are checked. A client belongs to one thread at a time and keeps its connection between requests. */
#pragma once

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/buf.h"

struct http_client_config {
	uint64_t connect_ns;       /* to reach the peer; 0: 10 s */
	uint64_t total_ns;         /* for a whole request; 0: 60 s */
	size_t answer_max;         /* most bytes of a body, expanded; 0: 1 MiB */
	const char *user_agent;    /* NULL: hearth/VERSION */
	const char *ca_file;       /* PEM; NULL: the system's */
	bool no_verify;            /* take any certificate */
	bool no_proxy;             /* else http_proxy, https_proxy, no_proxy and all_proxy of the environment count */
	bool http_only;            /* refuse https */
	bool expand;               /* offer compressed answers and expand them, within answer_max */
	const atomic_bool *cancel; /* looked at several times a second; true ends the request. NULL: never */
	/**
	 * Asked for every address before a socket is made, after the name was resolved: what is asked about is what is
	 * connected to. NULL: every address. With a proxy it is the proxy's.
	 */
	bool (*address_allowed)(void *ctx, const struct sockaddr *address, socklen_t size);
	/** Asked for every piece of a body: false ends the request with -E2BIG (several clients share one memory).
	 * NULL: yes. */
	bool (*answer_room)(void *ctx, size_t size);
	void *ctx; /* of both */
};

struct http_header {
	struct str name, value; /* a value with control bytes is refused: -EINVAL */
};

struct http_request {
	const char *method; /* NULL: POST when there is a body, else GET */
	const char *url;    /* http:// or https:// */
	const struct http_header *headers;
	size_t header_count;
	struct str bearer; /* token, or empty */
	const void *body;  /* NULL: none; sent as it is */
	size_t body_size;
	uint64_t more_ns; /* that this request may take beyond total_ns: a large body over a slow line */
};

struct http_answer {
	uint32_t status;
	uint64_t retry_after_ns; /* 0: not given */
	bool has_retry_after;
	char content_type[96]; /* cut when longer; "" when not given */
	struct buf body;
};

struct http_client;

/** http_client_open - Return: 0 or -ENOMEM. @cfg is copied, what it points to has to stay. */
int http_client_open(const struct http_client_config *cfg, struct http_client **out) warn_unused;
void http_client_close(struct http_client *c); /* NULL is fine */

/**
 * http_send - send @request and take the whole answer of any status
 * @why: on failure one line for people, appended
 * @out: zeroed by the caller; http_answer_release() when done. Untouched on failure.
 *
 * Return: 0; -EINVAL: no URL of ours, or a bad header; -EHOSTUNREACH: the name has no address; -ECONNREFUSED: nobody
 * answers; -EPERM: every address was refused by address_allowed(); -ETIMEDOUT; -ECANCELED; -EKEYREJECTED: TLS;
 * -E2BIG: the answer is longer than answer_max; -EPROTO: no HTTP; -EIO: broken off; -ENOMEM.
 */
int http_send(struct http_client *c, const struct http_request *request, struct buf *why,
	      struct http_answer *out) warn_unused;
/**
 * http_was_sent - whether the last request, or some of it, left over a connection that stood: failing then may be due
 * to the request, while a peer that is not there, or whose certificate is wrong, says nothing about it
 */
bool http_was_sent(const struct http_client *c);
void http_answer_release(struct http_answer *a);
