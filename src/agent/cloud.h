/* SPDX-License-Identifier: Apache-2.0 */
/* Which cloud the machine is rented from: AWS, Google Cloud or Azure are asked, once and side by side, by threads of
 * their own. Nobody waits for them. */
#pragma once

#include "base/buf.h"

enum cloud_provider { CLOUD_AWS, CLOUD_FARGATE, CLOUD_GCP, CLOUD_AZURE, CLOUD_PROVIDERS };

/** cloud_name - "aws", "gcp" or "azure". */
const char *cloud_name(enum cloud_provider provider);

struct cloud_answer {
	struct str document;   /* JSON: what the provider's metadata service says of the instance */
	struct str life_cycle; /* AWS: text */
	struct str region;     /* Fargate: from the environment */
};

/**
 * cloud_describe - append the object cloud_info of gProfiler's metadata as one line
 * Return: 0; -EBADMSG: that is no answer of this provider; -ENOMEM, -E2BIG. Pure.
 */
int cloud_describe(enum cloud_provider provider, const struct cloud_answer *answer, struct buf *out) warn_unused;

struct cloud;

/** cloud_open - begin to ask, from the network namespace of the host's first process where that can be entered. */
int cloud_open(const char *host_root, struct cloud **out) warn_unused;
/** cloud_get - append what is known by now. @provider: borrowed for ever. Return: 0; -ENOENT: nothing; -ENOMEM. */
int cloud_get(struct cloud *c, const char **provider, struct buf *info) warn_unused;
void cloud_close(struct cloud *c); /* never waits; NULL is fine */
