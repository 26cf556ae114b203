/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot: the result of a query as one file, which stays when the profiles that it was made of are gone.
 * docs/formats/snapshot.md has every byte. */
#pragma once

#include "base/cur.h"
#include "model/window.h"

#define SNAPSHOT_TITLE_MAX 400      /* bytes */
#define SNAPSHOT_TEXT_MAX KIB(64)   /* bytes of each other text */
#define SNAPSHOT_FRONT_MAX KIB(256) /* bytes of a file in front of its profile */
#define SNAPSHOT_FILE_MAX MIB(64)   /* bytes of a whole file */
#define SNAPSHOT_PLAIN_MAX MIB(512) /* bytes of its profile once compression is taken off */
#define SNAPSHOT_COLUMNS_MAX MODEL_VALUE_TYPES_MAX

struct snapshot_column {
	struct str type, unit;
	int64_t total; /* of all samples */
};

/* What a file says in front of its profile. Texts are borrowed, from its bytes or from the window it was made of. */
struct snapshot_head {
	uint64_t created_ns;      /* when it was taken */
	uint64_t from_ns, to_ns;  /* what was asked for */
	uint64_t profiles;        /* how many were added up */
	struct str title;         /* what somebody calls it, or empty */
	struct str selection;     /* for people: cpu{service="api"} */
	struct str service, type; /* empty: all services */
	struct snapshot_column columns[SNAPSHOT_COLUMNS_MAX];
	size_t column_count, default_column; /* the default one is below the count, or 0 */
};

/** snapshot_set_columns - the sample types of @m and their totals. */
void snapshot_set_columns(const struct model *m, struct snapshot_head *out);

/**
 * snapshot_encode - append a whole file
 * Return: 0; -E2BIG: over a limit above; -ENOMEM.
 */
int snapshot_encode(const struct snapshot_head *head, const struct window *w, struct buf *out) warn_unused;

/**
 * snapshot_decode_head - what stands in front of the profile. Pure.
 * @front: the first bytes of a file, SNAPSHOT_FRONT_MAX or all of them; @out borrows from it
 * @file_size: of the whole file
 *
 * Return: 0; -EBADMSG: it is no snapshot, damaged or cut off; -ENOTSUP: of a later version.
 */
int snapshot_decode_head(struct str front, uint64_t file_size, struct snapshot_head *out) warn_unused;

/** snapshot_decode - a whole file. Return: as above, or -E2BIG, -ENOMEM; @w needs a release only on 0. */
int snapshot_decode(struct str file, struct snapshot_head *out, struct window *w) warn_unused;
