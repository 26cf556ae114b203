/* SPDX-License-Identifier: Apache-2.0 */
/* The server's certificate, which can be replaced while connections are made. Only http_server.c includes this. */
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>

#include "base/buf.h"

struct http_identity;

struct http_tls {
	const char *cert_path, *key_path;
	_Atomic(struct http_identity *) current;
	struct http_identity *all; /* old ones too: a handshake may be using them. One loads at a time */
};

/** http_tls_load - read both files. @why may be NULL. Return: 0 or -errno; what was loaded before stays. */
int http_tls_load(struct http_tls *tls, struct buf *why) warn_unused;
void http_tls_release(struct http_tls *tls);

/** http_tls_use - @tls answers handshakes from now on; NULL: none does. Return: 0 or -EBUSY: another one does. */
int http_tls_use(struct http_tls *tls) warn_unused;
/** http_tls_select - GnuTLS's gnutls_certificate_retrieve_function2, which gets no closure: hence http_tls_use(). */
int http_tls_select(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
		    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
		    unsigned int *count, gnutls_privkey_t *key);
