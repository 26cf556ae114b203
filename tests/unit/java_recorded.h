/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over recordings of JVMs' memory, with memory that goes missing or lies: for walk_java_test.c and
 * walk_java_aarch64_test.c, each with its FOLDER. */
#pragma once

#include "support.h"

#include <linux/types.h>

#include "base/io.h"
#include "tests/walk/java_image.h"

struct recorded {
	struct buf bytes;
	struct java_image image;
	struct walk walk;
	struct walk_world world;
	size_t reads, fails_at; /* the read with that number fails; 0: none does */
	int map_says;           /* what each byte of a segment map is; -1: as recorded */
	/** beyond - what the recording lacks. NULL: nothing is there. Return: 0 or -EFAULT. */
	int (*beyond)(struct recorded *r, uint8_t *dst, __u32 size, __u64 at);
	uint64_t back;   /* of beyond(): the return address of a top frame that has pushed words */
	uint32_t noise;  /* for who makes some up */
	int64_t call_to; /* the call in front of it, from there; NO_CALL */
	/* Words that are others than those of the recording; at 0: none. */
	struct {
		uint64_t at, word;
	} patches[8];
};

#define NO_CALL INT64_MIN

/* Return: whether that is all that was read. */
static inline bool patch(const struct recorded *r, uint8_t *dst, __u32 size, __u64 at)
{
	bool is_all = false;

	for (size_t i = 0; i < ARRAY_SIZE(r->patches); i++) {
		if (r->patches[i].at < at || r->patches[i].at - at + 8 > size)
			continue;
		memcpy(dst + (r->patches[i].at - at), &r->patches[i].word, 8);
		is_all |= size == 8;
	}
	return is_all;
}

static inline int recorded_read(struct recorded *r, void *dst, __u32 size, __u64 at)
{
	if (++r->reads == r->fails_at)
		return -EFAULT;
	if (size == 1 && r->map_says >= 0) {
		*(uint8_t *)dst = (uint8_t)r->map_says;
		return 0;
	}
	if (java_image_read(&r->image, dst, size, at) == 0)
		return 0;
	return r->beyond ? r->beyond(r, dst, size, at) : -EFAULT;
}

static inline int counted_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct recorded *r = self;
	int e = recorded_read(r, dst, size, at);

	return patch(r, dst, size, at) ? 0 : e;
}

static inline struct recorded *take(const char *name)
{
	struct recorded *r = calloc(1, sizeof(*r));
	char path[512];
	struct cur in;

	must(r);
	r->bytes = (struct buf)BUF_INIT(MIB(1));
	r->map_says = -1;
	snprintf(path, sizeof(path), "%s/" FOLDER "/%s",
		 getenv("HEARTH_SOURCE_ROOT") ? getenv("HEARTH_SOURCE_ROOT") : ".", name);
	assert_int_equal(io_read_file(path, &r->bytes), 0);
	in = cur_of(r->bytes.ptr, r->bytes.len);
	java_image_take(&in, &r->image);
	r->image.info.met = 0;
	r->world = (struct walk_world){ .read = counted_read, .find_map = java_image_find_map, .self = r };
	return r;
}

static inline void walk(struct recorded *r)
{
	memset(&r->walk, 0, sizeof(r->walk));
	r->walk.world = &r->world;
	r->reads = 0;
	java_image_walk(&r->walk, &r->image.info, r->image.leaf, r->image.is_return);
}

static inline void drop(struct recorded *r)
{
	buf_release(&r->bytes);
	free(r);
}
