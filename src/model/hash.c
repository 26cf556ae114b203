/* SPDX-License-Identifier: Apache-2.0 */
/* The 128-bit identity of stacks: equal in every process, file and store that holds the same frames. */
#include "model/model.h"

#include <endian.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Fixed, and part of the identity: bump the version when the canonical form changes. */
#define STACK_HASH_SEED UINT64_C(0x6865617274680001)

static void add_u64(XXH3_state_t *state, uint64_t value)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	ignore(XXH3_128bits_update(state, bytes, sizeof(bytes))); /* fails for a NULL state only */
}

static void add_text(XXH3_state_t *state, struct str text)
{
	add_u64(state, text.len); /* the length in front keeps ("ab", "c") apart from ("a", "bc") */
	if (text.len)
		ignore(XXH3_128bits_update(state, text.ptr, text.len)); /* as above */
}

static void add_mapping(XXH3_state_t *state, const struct model *m, const struct model_location *location)
{
	const struct model_mapping *mapping = &m->mappings[location->mapping];
	struct str file = model_string(m, mapping->filename), build_id = model_string(m, mapping->build_id);
	enum model_kind kind = model_kind_of_mapping(file);

	if (!mapping->start && !mapping->limit && !build_id.len && str_eq(file, model_kind_mapping(kind)))
		file = str_n("", 0); /* stands for a kind: the functions say that already */
	add_text(state, build_id);
	add_text(state, build_id.len ? str_n("", 0) : file);
	add_u64(state, location->address - mapping->start + mapping->file_offset);
}

static XXH128_hash_t location_identity(XXH3_state_t *state, const struct model *m,
				       const struct model_location *location)
{
	ignore(XXH3_128bits_reset_withSeed(state, STACK_HASH_SEED)); /* fails for a NULL state only */
	add_mapping(state, m, location);
	add_u64(state, (uint64_t)location->line_count << 1 | location->is_folded);
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct model_line *line = &m->lines[location->first_line + i];
		const struct model_function *function = &m->functions[line->function];

		add_text(state, model_string(m, function->name));
		add_text(state, model_string(m, function->system_name));
		add_text(state, model_string(m, function->filename));
		add_u64(state, (uint64_t)function->start_line);
		add_u64(state, (uint64_t)line->line);
		add_u64(state, (uint64_t)line->column);
		add_u64(state, (uint64_t)function->kind);
	}
	return XXH3_128bits_digest(state);
}

int model_stack_hashes(const struct model *m, struct model_hash *out)
{
	scoped(freep) XXH128_hash_t *frames = calloc(m->locations_count, sizeof(*frames));
	XXH3_state_t state; /* on the stack: half a kilobyte, and its alignment is the type's */

	if (!frames)
		return -ENOMEM;
	for (size_t i = 1; i < m->locations_count; i++)
		frames[i] = location_identity(&state, m, &m->locations[i]);
	out[0] = (struct model_hash){ 0 };
	for (size_t i = 1; i < m->stacks_count; i++) { /* a parent always comes before its children */
		const struct model_stack *node = &m->stacks[i];
		uint64_t chain[4] = { htole64(out[node->parent].high), htole64(out[node->parent].low),
				      htole64(frames[node->location].high64), htole64(frames[node->location].low64) };
		XXH128_hash_t hash = XXH3_128bits_withSeed(chain, sizeof(chain), STACK_HASH_SEED);

		out[i] = (struct model_hash){ .high = hash.high64, .low = hash.low64 };
	}
	return 0;
}
