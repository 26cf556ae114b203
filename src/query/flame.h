/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs as the viewer asks for them (docs/api.yaml): the body that names a call path, the two forms of an
 * answer. */
#pragma once

#include "codec/json.h"
#include "render/cut.h"

#define FLAME_PATH_MAX 65536 /* steps */

struct flame_path {
	struct tree_step *steps;
	size_t count, cap;
	struct buf bytes; /* what the steps borrow from */
};

void flame_path_release(struct flame_path *p); /* a zeroed one is fine */

/**
 * flame_path_parse - {"path": [{"name": TEXT, "kind": TEXT, "module": TEXT}, ...]}; members that are missing are empty
 * Pure. Return: 0, -EBADMSG, -E2BIG (too many steps), -ENOMEM. @out needs a release only on 0.
 */
int flame_path_parse(struct str json, struct flame_path *out) warn_unused;

/* What a flame graph is grouped by, and what the labels' names borrow from. */
struct flame_groups {
	struct tree_group items[TREE_GROUPS_MAX];
	size_t count;
	struct buf bytes;
};

void flame_groups_release(struct flame_groups *g); /* a zeroed one is fine */
/**
 * flame_groups_parse - "thread,host,label:NAME", each name decoded once more; empty: none
 * Pure. Return: 0, -EBADMSG (nothing of that kind, a bad escape, a long name), -E2BIG (too many), -ENOMEM. @out needs a
 * release only on 0.
 */
int flame_groups_parse(struct str text, struct flame_groups *out) warn_unused;

/** flame_write_json - the members of a JSON answer behind "meta". */
int flame_write_json(struct json_out *json, const struct tree_cut *c) warn_unused;

/** flame_pack - append the columns, deflated: what a binary answer ends with. Return: 0 or -errno. */
int flame_pack(const struct tree_cut *c, struct buf *out) warn_unused;
/** flame_write_binary - append size of @meta, @meta, and @columns of flame_pack(). Return: 0 or -errno. */
int flame_write_binary(struct str meta, struct str columns, struct buf *out) warn_unused;
