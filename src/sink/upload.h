/* SPDX-License-Identifier: Apache-2.0 */
/* One profile to a collector, in profefe's way: POST /api/0/profiles?service=&type=&labels=&created_at=. */
#pragma once

#include "model/window.h"
#include "net/http_client.h"

#define UPLOAD_QUERY_MAX KIB(64)
#define UPLOAD_KEY_MAX 128

/* All borrowed. */
struct upload {
	struct str query; /* what stands behind the '?' */
	struct str key;   /* Idempotency-Key: the same one with every attempt; printable ASCII; may be empty */
	struct str body;
};

/**
 * upload_query - append the query of one profile
 * @labels: keys and values are escaped one by one, joined, and escaped again (source: profefe, pkg/profile/labels.go)
 * @created_ns: wall clock; 0: left to the collector
 */
void upload_query(struct buf *out, struct str service, struct str type, const struct window_label *labels,
		  size_t label_count, uint64_t created_ns);

enum upload_outcome {
	UPLOAD_DONE,    /* acknowledged */
	UPLOAD_AGAIN,   /* not now: nobody answered, 408, 425, 429, 499 or 5xx */
	UPLOAD_DENIED,  /* us, not this profile: 401, 403, 404, 405, 3xx. It is worth keeping until that is mended */
	UPLOAD_REFUSED, /* never: any other status */
};

struct upload_result {
	enum upload_outcome outcome;
	uint32_t status; /* 0: there was no answer */
	bool was_sent;   /* it got to somebody, who answered or not: failing may be due to this profile */
	bool has_retry_after;
	uint64_t retry_after_ns;
	char id[256];  /* what the collector calls it; "" when it does not say */
	char why[640]; /* for people; "" when done */
};

struct upload_target {
	struct http_client *client;
	const char *url;  /* of the collector, as collector_url() makes it */
	struct str token; /* or empty */
};

/** upload_more_ns - what an attempt may take beyond the client's total_ns with a body of @size bytes. Pure. */
uint64_t upload_more_ns(size_t size);
/** upload_send - one attempt. */
void upload_send(const struct upload_target *target, const struct upload *u, struct upload_result *out);

/**
 * upload_collector_url - append @text as a URL without a slash at its end; http:// where it has no scheme
 * @why: one line on failure, without the password that the URL may have
 *
 * Return: 0, -EINVAL (another scheme than http and https, no host, control bytes), or the buffer's error.
 */
int upload_collector_url(struct buf *out, struct str text, struct buf *why) warn_unused;
