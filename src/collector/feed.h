/* SPDX-License-Identifier: Apache-2.0 */
/* Windows from an agent beside the collector, over a socket: one profile per workload and window goes into the store. A
 * frame is its length (four bytes, little-endian) and an encoded window (docs/formats/window.md). The agent is
 * privileged and the collector is not, so the agent has no reason to lie; what it sends is checked all the same. Each
 * frame is answered with a byte: what became of it. */
#pragma once

#include "base/buf.h"

#define FEED_FRAME_MAX MIB(512)

/* The answer to a frame. */
enum feed_answer {
	FEED_FAILED = 0, /* some of it, or all, is not in the store */
	FEED_STORED = 1,
};

struct collector;
struct feed;

struct feed_config {
	struct str service;        /* windows are stored whole, under this name; empty: one profile per workload */
	void (*stored)(void *ctx); /* after each window, on the feed's thread; NULL: nobody wants to know */
	void *ctx;
};

/** feed_open - take windows from @fd (ours from then on) in a thread of its own. @config stays. Return: 0 or -errno. */
int feed_open(struct collector *c, int fd, const struct feed_config *config, struct feed **out) warn_unused;
/** feed_ended - whether the other side is gone and all it sent is stored. */
bool feed_ended(const struct feed *f);
/** feed_end_fd - readable once feed_ended(). */
int feed_end_fd(const struct feed *f);
/** feed_close - waits for the frame under way, at most. NULL is fine. */
void feed_close(struct feed *f);
