/* SPDX-License-Identifier: Apache-2.0 */
/* Where separate debug files stand, and whether one is the right one: pure parts of the search, whose openers differ.
 * Source: gdb 13 manual, "Debugging Information in Separate Files". */
#pragma once

#include "base/buf.h"
#include "object/reader.h"

/** debug_file_by_id - append the path for a build id of @size bytes. Return: 0; -ENOENT: too short; -ENOMEM. */
int debug_file_by_id(const char *host_root, const uint8_t *id, size_t size, struct buf *out) warn_unused;
/**
 * debug_file_by_link - append place number @place, from 0 on, of the debug file @name of a program
 * @path: of the program, absolute. Return: 0; -ENOENT behind the last place; -ENOMEM.
 */
int debug_file_by_link(const char *host_root, struct str path, const char *name, size_t place,
		       struct buf *out) warn_unused;
/** debug_file_has_crc - of .gnu_debuglink, over the whole file: read from end to end. */
bool debug_file_has_crc(const struct reader *in, uint32_t wanted);
