/* SPDX-License-Identifier: Apache-2.0 */
/* Scrapes the programs of a targets file: a few threads, each with one target at a time, whose profiles it fetches one
 * after the other. Where they go is the caller's: a store, or another collector. */
#pragma once

#include <stdatomic.h>

#include "collector/pull_targets.h"
#include "model/window.h"

struct pulled { /* all borrowed */
	const struct pull_target *target;
	struct str type;
	struct window *window; /* the receiver may change it */
	uint64_t created_ns;
};

struct pull_config {
	unsigned int threads;   /* scrapes at a time; 0: 8 */
	size_t body_max;        /* of an answer; 0: 32 MiB */
	size_t expanded_max;    /* of a profile; 0: 64 MiB */
	const char *user_agent; /* NULL: hearth's */
	/** A profile; may be called from several threads. Return: 0 or -errno, which is counted and said. */
	int (*deliver)(void *ctx, const struct pulled *p);
	void *ctx;
};

struct pull_stats {
	uint64_t scrapes, failed; /* requests */
	uint64_t delivered, undelivered;
	uint64_t empty;    /* nothing had happened */
	uint64_t restarts; /* of targets, seen by their counts */
	uint64_t targets;
};

struct pull;

/** pull_open - start scraping @targets, which is moved from. Return: 0, -ENOMEM, -errno. */
int pull_open(const struct pull_config *cfg, struct pull_targets *targets, struct pull **out) warn_unused;
/**
 * pull_replace - other targets from now on (a reload), moved from
 * What is there again, same address and same service, keeps what differences are made with.
 * Return: 0 or -ENOMEM, then nothing has changed.
 */
int pull_replace(struct pull *p, struct pull_targets *targets) warn_unused;
void pull_stats(struct pull *p, struct pull_stats *out);
void pull_close(struct pull *p); /* ends requests under way; NULL is fine */
