/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/flame_key.h"

#include <gnutls/crypto.h>

#define KEY_MAX (FLAME_KEY_PROFILES_MAX * STORE_ID_SIZE + MIB(1))
#define TOO_MANY 1

struct ids {
	struct buf bytes;
	uint64_t count;
};

static int note_id(void *ctx, const struct store_profile *profile)
{
	struct ids *ids = ctx;

	if (ids->count == FLAME_KEY_PROFILES_MAX)
		return TOO_MANY;
	ids->count++;
	buf_add(&ids->bytes, profile->id.bytes, sizeof(profile->id.bytes));
	return ids->bytes.error;
}

/* With its length in front: no two lists of texts look the same. */
static void add_text(struct buf *out, struct str text)
{
	uint64_t size = text.len;

	buf_add(out, &size, sizeof(size));
	buf_adds(out, text);
}

static bool digest(const struct buf *bytes, struct recall_key *out)
{
	static_assert(sizeof(out->bytes) == 32, "SHA-256");
	return !bytes->error && gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes->ptr, bytes->len, out->bytes) >= 0;
}

bool flame_key(struct call *call, const struct query_range *range, struct str sample, struct recall_key *out,
	       uint64_t *profiles)
{
	static const char *const params[] = { "group", "process", "program", "thread", "thread-name" };
	const struct collector_config *config = &call->collector->config;
	struct ids ids = { .bytes = BUF_INIT(KEY_MAX) };
	struct store_selector sel = call_select(call, range);
	const struct query_within *within = &range->within;
	bool found = false;

	if (config->flame_max && range->to_ns - range->from_ns <= STORE_LONG_RANGE_NS) {
		if (within->to_ns)
			sel = query_within_select(within, sel);
		add_text(&ids.bytes, sample);
		buf_add(&ids.bytes, within, sizeof(*within));
		for (size_t i = 0; i < ARRAY_SIZE(params); i++)
			add_text(&ids.bytes, http_query_get(&call->query, str_of(params[i])));
		found = config->store->list(config->state, &sel, note_id, &ids) == 0 && ids.count &&
			digest(&ids.bytes, out);
	}
	*profiles = ids.count;
	buf_release(&ids.bytes);
	return found;
}

bool flame_answer_key(const struct call *call, const struct recall_key *key, const struct recall_key *base,
		      uint64_t nodes, struct recall_key *out)
{
	static const struct recall_key none;
	struct buf bytes = BUF_INIT(MIB(8));
	bool found;

	buf_add(&bytes, key->bytes, sizeof(key->bytes));
	buf_add(&bytes, base ? base->bytes : none.bytes, sizeof(none.bytes));
	buf_add(&bytes, &nodes, sizeof(nodes));
	add_text(&bytes, call->rq->body);
	found = digest(&bytes, out);
	buf_release(&bytes);
	return found;
}
