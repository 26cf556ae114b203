/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs that move while one watches: GET /api/v1/live (docs/api.yaml). Who asks for the same shares one
 * computation; each has a stream of net/http_server.h, and no thread. */
#pragma once

#include "model/window.h"

struct collector;
struct live;

int live_new(struct collector *c, struct live **out);
void live_free(struct live *l); /* NULL is fine; there are no streams any more */
/** live_changed - a profile was stored. @w: its window, or NULL where only its bytes are known. Any thread; takes no
 * lock. */
void live_changed(struct live *l, uint64_t created_ns, const struct window *w);

/* Streams that are open when another one is asked for. */
struct live_load {
	size_t all, own; /* own: of the same token or address */
	bool has_token;
	bool is_local; /* it comes from this machine */
};

/** live_may_open - whether it may be opened: further streams of one leave as many to all others, everybody's first one
 * has some that only first ones take, and this machine's a few of its own. Pure. */
bool live_may_open(const struct live_load *load);
/** live_tick - to be called about once a second: wakes streams that may have something to say. */
void live_tick(struct live *l);
