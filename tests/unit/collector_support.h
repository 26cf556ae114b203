/* SPDX-License-Identifier: Apache-2.0 */
/* A collector on a store of its own, which answers without a socket. */
#pragma once

#include <jansson.h>

#include "collector/collector_int.h"
#include "store_support.h"

struct served {
	struct fixture *f;
	struct collector *c;
};

/** served_open - @fixture: of store_support.h; @names_max: of struct collector_config. Return: 0; -1, for cmocka. */
int served_open(int (*fixture)(void **), uint64_t now_ns, size_t names_max, struct served *out);
int served_close(struct served *s); /* Return: as fixture_end() */

/** served_ask - what @what answers to @query; the status has to be @want. The caller frees it. */
json_t *served_ask(const struct served *s, call_fn *what, const char *query, unsigned int want);
/** json_number - the member @key, which has to be a number. */
uint64_t json_number(const json_t *object, const char *key);
