/* SPDX-License-Identifier: Apache-2.0 */
/* A file of records, for tests and for looking at a problem twice.
 *
 *	offset  size
 *	0       8     "hearthrc"
 *	8       4     RECORDING_VERSION, little-endian
 *	12      4     zero
 *	16      ...   records of abi.h end to end, each a multiple of 8 bytes, in the byte order of the machine
 *
 * A record that was being written when the writer died is cut off; the reader takes what is whole. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/cur.h"

#define RECORDING_VERSION 1
#define RECORDING_HEADER_SIZE 16
#define RECORDING_SIZE_MAX GIB(1) /* a writer stops there */

struct recording; /* a file being written */

/** recording_create - a new or emptied file, readable by its owner only. Return: 0 or -errno. */
int recording_create(const char *path, struct recording **out) warn_unused;
/** recording_add - one whole record of any type. Return: 0, -errno, or -EFBIG at RECORDING_SIZE_MAX. */
int recording_add(struct recording *r, const struct abi_header *record) warn_unused;
/** recording_add_mapping - what a process has mapped; @map carries everything but size and path. Return: as above. */
int recording_add_mapping(struct recording *r, const struct abi_mapping *map, struct str path) warn_unused;
/** recording_close - writes what is buffered; NULL is fine. Return: 0 or -errno. */
int recording_close(struct recording *r);

/** recording_header - eat the header. Return: 0, -EBADMSG, or -ENOTSUP for another version. Pure. */
int recording_header(struct cur *in) warn_unused;

/**
 * recording_next - the next record, eaten
 * @out: borrowed from the cursor's bytes; not aligned
 *
 * Return: its size; 0 when nothing or only a beginning is left; -EBADMSG when what follows is no record. Pure.
 */
int recording_next(struct cur *in, const uint8_t **out) warn_unused;
