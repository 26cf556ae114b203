/* SPDX-License-Identifier: Apache-2.0 */
/* Places in scripts -> places in what these were made of, by the source map that lies beside a script (its path and
 * ".map"). hearth opens the file, the confined child reads it (source_map.h). Answers are kept for the session; the
 * child runs only while something new is asked. Used by one thread. */
#pragma once

#include "base/buf.h"

struct source_maps;

struct source_maps_script {
	uint32_t origin; /* a number for the file system that it lies in */
	int root_fd;     /* root directory of that, borrowed; -1: gone, then nothing new is found out */
	struct str path; /* absolute */
	uint64_t map_id; /* target_file_id() of its map: another one that lies there by now is not read */
};

struct source_maps_place {
	struct source_maps_script script;
	int32_t line, column; /* from 1 on, the column in units of 16 bits */
};

struct source_maps_found {
	struct str file; /* a path, or what the map calls it: "webpack://app/./src/db.js" */
	struct str name; /* of what stands at just that place; empty: the map has none */
	int32_t line;
};

int source_maps_new(struct source_maps **out) warn_unused;
void source_maps_free(struct source_maps *s); /* NULL is fine */
/** source_maps_ask - look up what is not known yet. Return: 0, also when some could not be, or -ENOMEM. */
int source_maps_ask(struct source_maps *s, const struct source_maps_place *places, size_t count) warn_unused;
/** source_maps_get - of a place that was asked for. @out: borrowed until the next source_maps_ask(). Return: is it
 * known where it comes from? */
bool source_maps_get(struct source_maps *s, const struct source_maps_place *place, struct source_maps_found *out);

/** source_maps_path - append where @source lies that the map of @script names: without "." and "..", beside the map
 * unless it is absolute; what has a scheme stays as it is, but for "file://". Pure. */
void source_maps_path(struct str script, struct str source, struct buf *out);
