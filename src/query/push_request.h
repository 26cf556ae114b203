/* SPDX-License-Identifier: Apache-2.0 */
/* The body of Pyroscope's push.v1.PusherService/Push: labels and pprof files. Pure parsers of bytes that come from
 * strangers. Source: grafana/pyroscope, api/push/v1/push.proto and api/types/v1/types.proto. */
#pragma once

#include "store/store.h"

#define PUSH_PROFILES_MAX 256 /* of one request; the same for series */
#define PUSH_LABELS_MAX 64    /* of one series, before those are taken out that the server does not keep */

struct push_series {
	uint32_t first_label, label_count; /* in push_request.labels */
};

struct push_profile {
	struct str bytes; /* pprof, gzip or not */
	struct str id;    /* the sender's name of it, a UUID; may be empty */
	uint32_t series;
};

/* All texts borrow from the body or from @text. */
struct push_request {
	struct push_series *series;
	size_t series_count, series_cap;
	struct store_label *labels;
	size_t labels_count, labels_cap;
	struct push_profile *profiles;
	size_t profiles_count, profiles_cap;
	struct buf text; /* what a JSON body's strings stand for */
};

void push_request_release(struct push_request *p); /* a zeroed one is fine */

/**
 * push_request_proto - read the protobuf form
 * Unknown fields are skipped. Return: 0, -EBADMSG, -E2BIG (too many series, labels or profiles), -ENOMEM. @out needs a
 * release only on 0.
 */
int push_request_proto(struct str body, struct push_request *out) warn_unused;

/**
 * push_request_json - read the JSON form: names in lowerCamelCase or as in the .proto file, bytes as base64
 * @text_max: bytes that decoded strings may take; they never take more than @body
 *
 * Return: as above; -EFBIG when @text_max is too little.
 */
int push_request_json(struct str body, size_t text_max, struct push_request *out) warn_unused;
