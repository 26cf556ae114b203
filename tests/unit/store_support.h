/* SPDX-License-Identifier: Apache-2.0 */
/* A store on a simulated clock, and what its tests compare. */
#pragma once

#include "store/store.h"

struct fixture {
	const struct store *store;
	struct store_state *s;
	struct store_config config;
	struct clock clock;
	_Atomic uint64_t now;
	bool lasts; /* profiles are there again after fixture_reopen() */
	char path[64];
};

int fixture_memory(void **state);
int fixture_sqlite(void **state);
int fixture_sqlite_tight(void **state); /* dictionaries are dropped from memory at once */
int fixture_end(void **state);
void fixture_reopen(struct fixture *f);
size_t fixture_clear(const char *path); /* a folder with what is in it. Return: how many files */

/** fixture_window - a window with random_model(@seed). */
void fixture_window(uint64_t seed, struct window *out);
/** fixture_put - @labels: "k=v;k=v". */
struct store_id fixture_put(struct fixture *f, const char *service, const char *type, const char *labels,
			    uint64_t created_ns, const struct window *w);
void fixture_put_random(struct fixture *f, const char *service, uint64_t seed, uint64_t created_ns);
size_t fixture_count(struct fixture *f, const struct store_selector *sel);
/** fixture_remove - Return: how many profiles went. */
size_t fixture_remove(struct fixture *f, const struct store_selector *sel);
/** fixture_assert_reads - what is read equals @want in everything but the order of samples and tables. */
void fixture_assert_reads(struct fixture *f, const struct store_id *id, const struct window *want);
/** fixture_assert_sum - sum() equals merging what list() and read() give, one after the other. */
void fixture_assert_sum(struct fixture *f, const struct store_selector *sel);
