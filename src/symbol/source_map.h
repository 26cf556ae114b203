/* SPDX-License-Identifier: Apache-2.0 */
/* Source maps: where code that a compiler or a bundler wrote comes from (ECMA-426, revision 3 of the format). Pure but
 * for reading the file. Runs only in the confined child (lines_child.c): a map lies where a stranger put it. Maps that
 * are made of sections are not read. */
#pragma once

#include "symbol/lines_wire.h"

#define SOURCE_MAP_MAX MIB(128) /* bytes of one */

struct source_map;

/** source_map_place - a place in the written code as one number; @line and @column count from 0, the column in units of
 * 16 bits. */
static inline uint64_t source_map_place(uint32_t line, uint32_t column)
{
	return (uint64_t)line << 32 | column;
}

/** source_map_open - @fd: stays the caller's; @deadline_ns: CLOCK_MONOTONIC. Return: 0; -EBADMSG: no map that can be
 * read, or too large; -ETIMEDOUT; -ENOMEM. */
int source_map_open(int fd, uint64_t deadline_ns, struct source_map **out) warn_unused;
/** source_map_parse - the same of its text, which is borrowed. */
int source_map_parse(struct str text, struct source_map **out) warn_unused;
void source_map_close(struct source_map *m); /* NULL is fine */

/**
 * source_map_find - where places come from, in one pass over the mappings
 * @places: source_map_place(), ascending
 * @visit: gets one frame or none for each: the file as the map has it (with its sourceRoot), its line from 1 on, and as
 *	function the name that the map has for just this place
 *
 * Return: 0; -EBADMSG: the mappings are broken; -ETIMEDOUT behind @deadline_ns (CLOCK_MONOTONIC); -ENOMEM; or what
 * @visit returned.
 */
int source_map_find(const struct source_map *m, const uint64_t *places, size_t count, uint64_t deadline_ns,
		    lines_visit_fn *visit, void *ctx) warn_unused;
