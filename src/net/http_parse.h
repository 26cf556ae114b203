/* SPDX-License-Identifier: Apache-2.0 */
/* What of HTTP we read ourselves: paths, query strings, credentials, host names, multipart bodies. Pure and bounded:
 * all of it comes from strangers. */
#pragma once

#include "base/buf.h"

/**
 * http_decode - append @s with %XX replaced by its byte
 * @plus: '+' is a blank (query strings; never in a path)
 *
 * Return: 0, -EBADMSG for a bad escape, or the buffer's error. On failure @out has a part.
 */
int http_decode(struct str s, bool plus, struct buf *out) warn_unused;

/** http_encode - append @s as it may stand in a query: all but letters, digits and "-_.~" as %XX. */
void http_encode(struct str s, struct buf *out);

#define HTTP_QUERY_MAX 64 /* parameters */

struct http_param {
	struct str name, value;
};

/* A query string, decoded once; the first of equal names counts. */
struct http_query {
	struct http_param items[HTTP_QUERY_MAX];
	size_t count;
	struct buf bytes; /* what the parameters borrow from */
};

/** http_query_parse - Return: 0, -EBADMSG, -E2BIG (too many parameters), -ENOMEM. @out needs a release only on 0. */
int http_query_parse(struct str raw, struct http_query *out) warn_unused;
void http_query_release(struct http_query *q); /* a zeroed one is fine */
/** http_query_get - the value of @name; ptr NULL when it is not there. */
struct str http_query_get(const struct http_query *q, struct str name);

/**
 * http_path_clean - append @raw without empty, "." and ".." pieces, as it is otherwise; a slash at the end stays
 * Return: 0, or -EBADMSG when it does not begin with a slash.
 */
int http_path_clean(struct str raw, struct buf *out) warn_unused;

/** http_base64 - append what RFC 4648 base64 (with or without padding) stands for. Return: 0, -EBADMSG, -ENOMEM. */
int http_base64(struct str text, struct buf *out) warn_unused;

/**
 * http_credentials - the secret of an Authorization header: a Bearer token, or the password of Basic
 * Return: 0; -ENOTSUP for another scheme, -EBADMSG, -ENOMEM.
 */
int http_credentials(struct str authorization, struct buf *out) warn_unused;

/**
 * http_cookie - the value of the first cookie @name of a Cookie header, without its quotes
 * Return: 0 and a borrowed *out, or -ENOENT.
 */
int http_cookie(struct str header, struct str name, struct str *out);

/** http_host_split - "name:port", "[v6]:port", ":port"; @port is 0 without one. Return: 0 or -EBADMSG. */
int http_host_split(struct str text, struct str *host, uint16_t *port) warn_unused;
/** http_host_is_loopback - localhost, 127.0.0.0/8 (also as ::ffff:127.0.0.1) or ::1, as a Host header or an option
 * writes them. */
bool http_host_is_loopback(struct str host);
/**
 * http_network_of - what one sender has of addresses: an IPv4 address, the first 64 bits of an IPv6 address (RFC
 * 4291 2.5.4: an interface chooses the rest), also of one with a zone. @at: room for 16 bytes Return: their count, or 0
 * where @remote is no address.
 */
size_t http_network_of(struct str remote, uint8_t *at);

/**
 * http_value_param - one parameter of a header's value: the boundary of 'multipart/form-data; boundary="x"'
 * Return: 0 and a borrowed *out (quotes removed; escaped quotes are not supported), or -ENOENT.
 */
int http_value_param(struct str header, struct str name, struct str *out);
/** http_value_is - whether a header's value is @media, parameters and case aside. */
bool http_value_is(struct str header, struct str media);
/** http_accepts - whether Accept-Encoding takes @coding, by its name or as `*`, with a weight above 0 (RFC
 * 9110 12.5.3).
 */
bool http_accepts(struct str header, struct str coding);

struct http_part {
	struct str name, filename, content_type, body;
};

#define HTTP_BOUNDARY_MAX 70 /* RFC 2046 5.1.1 */

/**
 * http_multipart_next - the next part of a multipart/form-data body (RFC 7578)
 * @rest: the whole body first, then what this function left
 *
 * Return: 1, 0 behind the closing boundary, -EBADMSG.
 */
int http_multipart_next(struct str *rest, struct str boundary, struct http_part *out);
