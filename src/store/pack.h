/* SPDX-License-Identifier: Apache-2.0 */
/* Windows into rows of a dictionary, and back. */
#pragma once

#include "model/window.h"
#include "store/columns.h"
#include "store/dictionary.h"
#include "store/header.h"
#include "store/remap.h"

/**
 * pack_window - bring everything @w uses into @d and say what is left as header and columns
 *
 * Return: 0; -E2BIG when a table is full or the window has more than the form can hold (it is then kept as encoded
 * bytes); -ENOMEM. On failure @d may have rows that nothing uses.
 */
int pack_window(struct dictionary *d, const struct window *w, struct header *h, struct columns *c) warn_unused;

/** pack_facts - what a window says besides its model, its times left aside, encoded; nothing when it says nothing. */
int pack_facts(const struct window *w, struct buf *out) warn_unused;

/**
 * unpack_window - the window again
 * @facts: of pack_facts(), or empty
 *
 * Return: 0, -EBADMSG, -E2BIG, -ENOMEM; @out untouched on failure.
 */
int unpack_window(const struct dictionary *d, const struct header *h, const struct columns *c, struct str facts,
		  struct window *out) warn_unused;

/**
 * unpack_to_read - the same for a window without facts that is only looked at
 * Where it has much of what the dictionary has, it gets all of its functions, locations and stacks (and may_repeat):
 * several times as fast.
 */
int unpack_to_read(const struct dictionary *d, const struct header *h, const struct columns *c,
		   struct window *out) warn_unused;

/** pack_key - carry one key of dictionary @from into @into through @rm. */
int pack_key(struct remap *rm, struct dictionary *into, const struct dictionary_key *key, uint32_t *out) warn_unused;

/** pack_place_all - every mapping of a dictionary into another one as it is; before pack_key(). */
int pack_place_all(struct remap *rm) warn_unused;

/** pack_header - a header of the source dictionary of @rm in rows of the target. @into is empty. */
int pack_header(struct remap *rm, const struct header *from, struct header *into) warn_unused;

#define PACK_BYTES_MAX GIB(1)

/** pack_compress - append @bytes as one zstd frame with its checksum. Return: 0, -ENOMEM, -E2BIG. */
int pack_compress(struct str bytes, int level, struct buf *out) warn_unused;
/** pack_expand - append what pack_compress() was given. Return: 0, -EBADMSG, -E2BIG, -ENOMEM. */
int pack_expand(struct str bytes, struct buf *out) warn_unused;
